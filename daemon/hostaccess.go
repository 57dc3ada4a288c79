package daemon

import (
	"cmp"
	"fmt"
	goruntime "runtime"
	"slices"
	"strings"

	"github.com/stsd/stsd/daemon/planner"
	"github.com/stsd/stsd/dns"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

// hostAccess is how programs of this machine reach the set's members.
func hostAccess(set *jobspecs.Set) string {
	return cmp.Or(set.HostAccess, jobspecs.HostAccessOn(goruntime.GOOS))
}

// hostAccessModes are those that differ in what is published: none is as direct.
var hostAccessModes = []string{jobspecs.HostDirect, jobspecs.HostLoopback, jobspecs.HostPorts}

// runsWith is the mode that a member runs with, by what it publishes: a new one is for
// its next start. One that fits none is taken to run with the set's.
func runsWith(p *runtime.Pod, spec jobspecs.PodSpec, mode string) string {
	if p == nil || p.StartedAt.IsZero() || len(spec.Containers) == 0 {
		return mode
	}
	for _, other := range append([]string{mode}, hostAccessModes...) {
		if slices.Equal(bindings(republished(spec, mode, other)), portTexts(p.Published)) {
			return other
		}
	}
	return mode
}

// republished is a rendering of one mode as it would be by another.
func republished(spec jobspecs.PodSpec, mode, other string) jobspecs.PodSpec {
	spec.Unpublish(mode)
	spec.Publish(other)
	return spec
}

// bindings are the ports that a pod publishes, sorted.
func bindings(spec jobspecs.PodSpec) []string {
	var all []jobspecs.Port
	for _, c := range spec.Containers {
		all = append(all, c.Ports...)
	}
	return portTexts(all)
}

func portTexts(ports []jobspecs.Port) []string {
	var out []string
	for _, p := range ports {
		if p.Host != 0 {
			out = append(out, fmt.Sprintf("%s:%d->%d/%s", hostIP(p.HostIP), p.Host, p.Container, cmp.Or(p.Protocol, "tcp")))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// toHost adds what programs of this machine are told of a member: nothing, or where
// it is, when that is not at its own address. What is published moves with a member's
// next start, and so does its name.
func (s *sight) toHost(m *dns.Member, p *runtime.Pod, ordinal int) {
	mode := hostAccess(s.world.Set)
	if p != nil {
		mode = runsWith(p, s.world.Specs[planner.Target{Ordinal: ordinal, Revision: p.Revision}].Spec, mode)
	}
	m.Loopback, m.NoHost = jobspecs.HostAddress(mode, s.addresses[ordinal]), mode == jobspecs.HostNone
}

// tellStale says of members that run an older rendering what differs, as far as is
// known.
func (s *sight) tellStale(status *jobspecs.Status) {
	for i := range status.Members {
		m := &status.Members[i]
		if p := podOf(s.world.Pods, m.Ordinal); m.Stale && p != nil {
			m.StaleWhy = s.whyStale(p)
		}
	}
}

func podOf(pods []runtime.Pod, ordinal int) *runtime.Pod {
	i := slices.IndexFunc(pods, func(p runtime.Pod) bool { return p.Ordinal == ordinal })
	if i < 0 {
		return nil
	}
	return &pods[i]
}

func (s *sight) whyStale(p *runtime.Pod) string {
	var why []string
	r := s.world.Specs[planner.Target{Ordinal: p.Ordinal, Revision: p.Revision}]
	mode := hostAccess(s.world.Set)
	before := runsWith(p, r.Spec, mode)
	member := typed(p.Set.Namespace, p.Name)
	if before != mode {
		why = append(why, pendingAccess(mode, member))
	}
	if before == mode || !startedFrom(p, republished(r.Spec, mode, before), republished(r.Steady, mode, before)) {
		why = append(why, "what its expressions say of the set (members, addresses, other sets) changed since it started; a restart gives it the new values: stsd restart "+member)
	}
	return strings.Join(why, "; ")
}

// startedFrom tells whether a member runs one of these renderings.
func startedFrom(p *runtime.Pod, now, steady jobspecs.PodSpec) bool {
	return p.Started == now.Digest() || p.Steady != "" && p.Steady == steady.Digest()
}

func pendingAccess(mode, name string) string {
	return fmt.Sprintf("host_access = %q takes effect at its next start: stsd restart %s", mode, name)
}

// pendingAccesses are the members that a change leaves as they are published, in a
// sentence; steps are what it does.
func pendingAccesses(c *change, s *sight, steps []jobspecs.Step) []string {
	mode := hostAccess(&c.intent.Record.Set)
	if c.before == nil || hostAccess(&c.before.Record.Set) == mode {
		return nil
	}
	var names []string
	for i := range s.world.Pods {
		p := &s.world.Pods[i]
		begins := slices.ContainsFunc(steps, func(st jobspecs.Step) bool {
			return st.Member == p.Name && st.Volume == "" && st.Op != jobspecs.OpKeep
		})
		r := s.world.Specs[planner.Target{Ordinal: p.Ordinal, Revision: p.Revision}]
		if !begins && runsWith(p, r.Spec, mode) != mode {
			names = append(names, p.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	return []string{strings.Join(names, ", ") + ": " + pendingAccess(mode, typed(c.key.Namespace, c.key.Name))}
}
