package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/jobspecs"
)

// target is what a user names: a set, a member, or a list or range of members.
type target struct {
	namespace string // "" when not written
	name      string // without the namespace, as written
	set       string // of the members; "" when name can only be a set
	ordinals  []span // nil: all
	listed    bool   // a list or range: "redis-0,2", "redis-[0-2]"
}

// span is a range of ordinals, both ends included.
type span struct{ from, to int }

// parseTarget reads "redis", "redis-1", "redis-0,2", "redis-[0-2]", each with or
// without "NS/". Whether "redis-1" is a member or a set is the daemon's to say.
func parseTarget(s string) (target, error) {
	ns, name, ok := strings.Cut(s, "/")
	if !ok {
		ns, name = "", s
	}
	t := target{namespace: ns, name: name}
	if ok && !jobspecs.IsLabel(ns) {
		return t, badTarget(s)
	}
	if strings.ContainsAny(name, ",[]") {
		return t.list(s)
	}
	if !jobspecs.IsLabel(name) {
		return t, badTarget(s)
	}
	if set, n, ok := jobspecs.ParseMember(name); ok {
		t.set, t.ordinals = set, []span{{n, n}}
	}
	return t, nil
}

func (t target) list(written string) (target, error) {
	set, list, ok := strings.Cut(t.name, "-[")
	if ok {
		list, ok = strings.CutSuffix(list, "]")
	} else {
		head, _, _ := strings.Cut(t.name, ",")
		set, _, ok = jobspecs.ParseMember(head)
		list = strings.TrimPrefix(t.name, set+"-")
	}
	if !ok || !jobspecs.IsLabel(set) {
		return t, badTarget(written)
	}
	t.set, t.listed = set, true
	for part := range strings.SplitSeq(list, ",") {
		s, ok := parseSpan(part)
		if !ok {
			return t, badTarget(written)
		}
		t.ordinals = append(t.ordinals, s)
	}
	return t, nil
}

func parseSpan(s string) (span, bool) {
	first, last, ranged := strings.Cut(s, "-")
	if !ranged {
		last = first
	}
	from, err1 := strconv.ParseUint(first, 10, 31)
	to, err2 := strconv.ParseUint(last, 10, 31)
	return span{int(from), int(to)}, err1 == nil && err2 == nil && from <= to
}

func badTarget(s string) error {
	return usagef("%q is no target: want a set (redis), a member (redis-1), a list (redis-0,2), a range (redis-[0-2]), each with or without NAMESPACE/", s)
}

// picks tells whether the target names the member by its ordinal.
func (t target) picks(m jobspecs.Member) bool {
	return m.Set == t.set && slices.ContainsFunc(t.ordinals, func(s span) bool { return s.from <= m.Ordinal && m.Ordinal <= s.to })
}

// place settles the namespace: the one written, that of -n, or the default one.
func (a *app) place(t *target) error {
	if t.namespace != "" && a.namespace != "" && t.namespace != a.namespace {
		return usagef("%s/%s is not in namespace %s of -n", t.namespace, t.name, a.namespace)
	}
	if t.namespace == "" {
		t.namespace = a.inNamespace()
	}
	return nil
}

// setArg reads an argument that must be a set.
func (a *app) setArg(verb, arg string) (jobspecs.Key, error) {
	t, err := parseTarget(arg)
	if err != nil {
		return jobspecs.Key{}, err
	}
	if err := a.place(&t); err != nil {
		return jobspecs.Key{}, err
	}
	if t.listed {
		return jobspecs.Key{}, memberGiven(verb, t)
	}
	return jobspecs.Key{Namespace: t.namespace, Name: t.name}, nil
}

// memberGiven names the verb for a member where a set is due.
func memberGiven(verb string, t target) error {
	e := &exitError{code: exitUsage, err: fmt.Errorf("%s takes a set; %s is a member of %s", verb, t.name, t.set)}
	if t.listed {
		e.err = fmt.Errorf("%s takes a set; %s are members of %s", verb, t.name, t.set)
	}
	set, name := nameOf(t.namespace, t.set), nameOf(t.namespace, t.name)
	switch verb {
	case "delete":
		e.next = []string{
			"stsd scale " + set + " N, to have fewer members",
			"stsd replace " + name + ", to have it made anew",
			"stsd stop " + name + ", to have it down until stsd start",
		}
	case "status":
		e.next = []string{"stsd explain " + name}
	default:
		e.next = []string{"stsd " + verb + " " + set}
	}
	return e
}

// orMember turns "no such set" into the better answer when the name is a
// member's.
func (a *app) orMember(ctx context.Context, c *client.Client, verb string, key jobspecs.Key, err error) error {
	var p *client.Problem
	if !errors.As(err, &p) || p.Type != client.ProblemNotFound {
		return err
	}
	t, parseErr := parseTarget(key.Name)
	if parseErr != nil || t.set == "" {
		return err
	}
	if _, statusErr := c.Status(ctx, jobspecs.Key{Namespace: key.Namespace, Name: t.set}); statusErr != nil {
		return err
	}
	t.namespace = key.Namespace
	return memberGiven(verb, t)
}

// members finds what the arguments name, in the order of the daemon's list and
// each once; whole tells that one of them is a set or a list.
func (a *app) members(ctx context.Context, c *client.Client, args []string) (found []jobspecs.Member, whole bool, err error) {
	lists := map[string][]jobspecs.Member{}
	for _, arg := range args {
		t, err := parseTarget(arg)
		if err != nil {
			return nil, false, err
		}
		if err := a.place(&t); err != nil {
			return nil, false, err
		}
		if lists[t.namespace] == nil {
			if lists[t.namespace], err = c.Members(ctx, t.namespace); err != nil {
				return nil, false, err
			}
		}
		picked, set := pick(t, lists[t.namespace])
		if len(picked) == 0 {
			if err := noMember(ctx, c, t); err != nil {
				return nil, false, err
			}
		}
		whole = whole || set || t.listed
		found = appendNew(found, picked)
	}
	return found, whole, nil
}

// pick finds a target in a list; a set's name goes first.
func pick(t target, list []jobspecs.Member) (picked []jobspecs.Member, set bool) {
	for _, m := range list {
		if m.Set == t.name {
			picked = append(picked, m)
		}
	}
	if picked != nil {
		return picked, true
	}
	for _, m := range list {
		if t.picks(m) {
			picked = append(picked, m)
		}
	}
	return picked, false
}

// noMember is nil when the target is a set without members.
func noMember(ctx context.Context, c *client.Client, t target) error {
	rows, err := c.Sets(ctx, t.namespace)
	if err != nil {
		return err
	}
	for _, r := range rows {
		switch r.Name {
		case t.name:
			return nil
		case t.set:
			return &exitError{code: exitFailure, err: fmt.Errorf("%s has no member %s", t.set, t.name), next: []string{"stsd ps " + nameOf(t.namespace, t.set)}}
		}
	}
	return &exitError{code: exitFailure, err: fmt.Errorf("no set or member %s in namespace %s", t.name, t.namespace), next: []string{"stsd ls -A"}}
}

func appendNew(to, more []jobspecs.Member) []jobspecs.Member {
	for _, m := range more {
		same := func(o jobspecs.Member) bool { return o.Namespace == m.Namespace && o.Name == m.Name }
		if !slices.ContainsFunc(to, same) {
			to = append(to, m)
		}
	}
	return to
}

// nameOf is a name that can be given as a target.
func nameOf(namespace, name string) string {
	if namespace == jobspecs.DefaultNamespace || namespace == "" {
		return name
	}
	return namespace + "/" + name
}
