package daemon

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/daemon/store"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/jobspecs/hcl"
)

// Sets see each other in two ways: an expression names another one (sets.NAME), and
// one starts after another. Whoever does so is looked at again when the other changes.

// others are the sets of a namespace that expressions name, as far as they are
// stored. A set that goes has members still.
func (d *Daemon) others(namespace string, names []string) (map[string]hcl.Other, error) {
	out := map[string]hcl.Other{}
	for _, name := range names {
		v, err := d.store.Look(jobspecs.Key{Namespace: namespace, Name: name})
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if out[name], err = d.other(&v); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (d *Daemon) other(v *store.View) (hcl.Other, error) {
	r := &v.Record
	o := hcl.Other{Service: r.Set.Service, Ordinals: r.Set.Ordinals(r.Replicas), Fresh: map[int]bool{}}
	for _, n := range o.Ordinals {
		o.Fresh[n] = isFresh(v, n)
	}
	addresses, err := d.store.Addresses(r.Key())
	o.Addresses = addresses
	return o, err
}

// isFresh tells whether no container has used the volumes of an ordinal yet.
func isFresh(v *store.View, ordinal int) bool {
	return !v.Members[ordinal].Used && !usedVolume(v, ordinal)
}

// uses names the other sets that a set's expressions, those of its stored revisions
// too, may name.
func uses(v *store.View) []string {
	templates := []jobspecs.Template{v.Record.Template}
	for i := range v.Revisions {
		templates = append(templates, v.Revisions[i].Template)
	}
	return hcl.Uses(&v.Record.Set, templates...)
}

// known are the sets that the sources of an apply may name, by namespace; nil when
// they name none.
func (d *Daemon) known(r client.ApplyRequest) (func(string) map[string]hcl.Other, error) {
	if !slices.ContainsFunc(r.Scopes, func(s client.Scope) bool {
		return slices.ContainsFunc(s.Sources, func(f jobspecs.Source) bool { return bytes.Contains(f.Text, []byte("sets")) })
	}) {
		return nil, nil
	}
	all := map[string]map[string]hcl.Other{}
	put := func(key jobspecs.Key, o hcl.Other) {
		if all[key.Namespace] == nil {
			all[key.Namespace] = map[string]hcl.Other{}
		}
		all[key.Namespace][key.Name] = o
	}
	keys, err := d.store.Keys()
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		v, err := d.store.Look(key)
		if err != nil {
			continue // it went this moment
		}
		o, err := d.other(&v)
		if err != nil {
			return nil, err
		}
		put(key, o)
	}
	for _, scope := range r.Scopes {
		in := scope.Inputs
		in.Secrets = nil
		draft, _ := hcl.Parse(scope.Sources, in, hcl.Options{AllowMissing: true, Draft: true})
		if draft == nil {
			continue // said when it is read
		}
		if vars, _ := d.keptVars(draft, in, r.Namespace); len(vars) > len(in.Vars) {
			in.Vars = vars
			if draft, _ = hcl.Parse(scope.Sources, in, hcl.Options{AllowMissing: true, Draft: true}); draft == nil {
				continue
			}
		}
		for i := range draft.Specs {
			s := &draft.Specs[i]
			key := inNamespace(s, r.Namespace)
			o := all[key.Namespace][key.Name]
			o.Service = s.Set.Service
			switch n := d.keptReplicas(key, s); {
			case n != nil:
				o.Ordinals = s.Set.Ordinals(*n)
			case s.Set.Replicas != nil:
				o.Ordinals = s.Set.Ordinals(*s.Set.Replicas)
			case o.Ordinals == nil:
				o.Ordinals = s.Set.Ordinals(1)
			}
			put(key, o)
		}
	}
	return func(namespace string) map[string]hcl.Other {
		if r.Namespace != "" {
			namespace = r.Namespace
		}
		if all[namespace] == nil {
			return map[string]hcl.Other{}
		}
		return all[namespace]
	}, nil
}

// keptReplicas are those that a user gave a stored set, where its source says what it
// said then; nil: there are none.
func (d *Daemon) keptReplicas(key jobspecs.Key, s *jobspecs.Spec) *int {
	v, err := d.load(key)
	if err != nil || v == nil || v.Record.Overrides.Replicas == nil {
		return nil
	}
	spec := *s
	spec.Set.Namespace = key.Namespace
	scope, err := d.store.Scope(key)
	if err != nil {
		return nil
	}
	return keptOf(v, &spec, scope).Replicas
}

// inNamespace is the key of a set that was applied with -n.
func inNamespace(s *jobspecs.Spec, namespace string) jobspecs.Key {
	key := s.Set.Key()
	if namespace != "" && !s.Placed {
		key.Namespace = namespace
	}
	return key
}

// unavailable are the sets of start_after that are not available, or not there.
func (d *Daemon) unavailable(set *jobspecs.Set) []string {
	var out []string
	for _, name := range set.StartAfter {
		if !d.available(jobspecs.Key{Namespace: set.Namespace, Name: name}) {
			out = append(out, name)
		}
	}
	return out
}

// available tells whether every member of a set is, as what is stored now wants it.
func (d *Daemon) available(key jobspecs.Key) bool {
	r, err := d.store.Get(key)
	l := d.loop(key)
	if err != nil || l == nil || r.Deleting != nil {
		return false
	}
	snap := l.seen.get()
	return snap != nil && snap.status.ObservedGeneration >= r.Generation && holds(snap.status, jobspecs.CondAvailable)
}

func holds(s jobspecs.Status, kind string) bool {
	return slices.ContainsFunc(s.Conditions, func(c jobspecs.Condition) bool { return c.Type == kind && c.Status })
}

// heedOthers notes whose changes the set is looked at again for: of sets of its
// namespace by name, of others by key.
func (l *loop) heedOthers(names, after []string, keys ...jobspecs.Key) {
	heeded := map[jobspecs.Key]bool{}
	for _, name := range slices.Concat(names, after) {
		heeded[jobspecs.Key{Namespace: l.key.Namespace, Name: name}] = true
	}
	for _, key := range keys {
		heeded[key] = true
	}
	l.heeds.Store(&heeded)
}

// kickFollowers looks again at the sets that heed this one.
func (d *Daemon) kickFollowers(key jobspecs.Key) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for k, l := range d.loops {
		if heeds := l.heeds.Load(); k != key && heeds != nil && (*heeds)[key] {
			l.kick()
		}
	}
}

// circles refuses sets that wait for each other to start, stored ones included, and
// says of which they wait that are not there.
func (d *Daemon) circles(changes []*change) error {
	records, err := d.store.Records()
	if err != nil {
		return err
	}
	after := map[string]map[string][]string{}
	put := func(s *jobspecs.Set) {
		if after[s.Namespace] == nil {
			after[s.Namespace] = map[string][]string{}
		}
		after[s.Namespace][s.Name] = s.StartAfter
	}
	for i := range records {
		put(&records[i].Set)
	}
	for _, c := range changes {
		put(&c.intent.Record.Set)
	}
	for _, c := range changes {
		all := after[c.key.Namespace]
		if circle := jobspecs.StartCircle(all); slices.Contains(circle, c.key.Name) {
			return invalid(fmt.Sprintf("these sets wait for each other to start: %s (start_after)", strings.Join(circle, " → ")))
		}
		for _, name := range c.intent.Record.Set.StartAfter {
			if _, there := all[name]; !there {
				c.notes = append(c.notes, fmt.Sprintf("start_after: there is no set %s yet; new members wait for it", name))
			}
		}
	}
	return nil
}

// checkSpec holds the members of a set against each other. known are the sets that
// it may name; nil: those that are stored.
func (d *Daemon) checkSpec(set *jobspecs.Set, t jobspecs.Template, known func(string) map[string]hcl.Other) error {
	var others map[string]hcl.Other
	var err error
	if known != nil {
		others = known(set.Namespace)
	} else if others, err = d.others(set.Namespace, hcl.Uses(set, t)); err != nil {
		return err
	}
	if err := hcl.Check(set, t, others); err != nil {
		return invalid(err.Error())
	}
	return nil
}
