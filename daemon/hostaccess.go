package daemon

import (
	"cmp"
	goruntime "runtime"

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

// runsWith is the mode that a member runs with: a new one is for its next start.
// When its rendering is old for another reason as well it is taken to be the set's.
func runsWith(p *runtime.Pod, now planner.Rendered, mode string) string {
	if p == nil || p.Started == "" || p.Started == now.Digest || now.Err != nil {
		return mode
	}
	for _, other := range hostAccessModes {
		spec := now.Spec
		spec.Unpublish(mode)
		spec.Publish(other)
		if spec.Digest() == p.Started {
			return other
		}
	}
	return mode
}

// toHost adds what programs of this machine are told of a member: nothing, or where
// it is, when that is not at its own address. What is published moves with a member's
// next start, and so does its name.
func (s *sight) toHost(m *dns.Member, p *runtime.Pod, ordinal int) {
	mode := hostAccess(s.world.Set)
	if p != nil {
		mode = runsWith(p, s.world.Specs[planner.Target{Ordinal: ordinal, Revision: p.Revision}], mode)
	}
	m.Loopback, m.NoHost = jobspecs.HostAddress(mode, s.addresses[ordinal]), mode == jobspecs.HostNone
}
