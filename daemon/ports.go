package daemon

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/stsd/stsd/daemon/planner"
	"github.com/stsd/stsd/daemon/store"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

// A port of the host stays with the member that ran with it, as long as its set wants
// that member: one that never ran does not take it while the other is down for a
// moment, after a restart of the host above all.

// holdPorts notes which members that never ran are not made yet for the sake of a
// port.
func (l *loop) holdPorts(s *sight) error {
	wanted := firstPorts(s)
	if len(wanted) == 0 {
		return nil
	}
	keys, err := l.d.store.Keys()
	if err != nil {
		return err
	}
	l.heedOthers(uses(&s.view), s.world.Set.StartAfter, keys...) // before they are read: no change is missed
	for _, key := range keys {
		v, err := l.d.store.Look(key)
		if key == l.key || err != nil || v.Record.Deleting != nil {
			continue // it is gone, or goes
		}
		l.d.heldBy(&v, wanted, s.world.PortHeld)
	}
	return nil
}

// firstPorts are the ports of the host of members that are to be made for the first
// time.
func firstPorts(s *sight) map[int][]jobspecs.Port {
	present := map[int]bool{}
	for i := range s.world.Pods {
		present[s.world.Pods[i].Ordinal] = true
	}
	out := map[int][]jobspecs.Port{}
	for t, r := range s.world.Specs {
		if present[t.Ordinal] || hasRunBefore(s.world.Members[t.Ordinal]) {
			continue
		}
		for _, c := range r.Spec.Containers {
			for _, p := range c.Ports {
				if p.Host != 0 {
					out[t.Ordinal] = append(out[t.Ordinal], p)
				}
			}
		}
	}
	return out
}

func hasRunBefore(m planner.Member) bool { return m.Used || m.Once != "" }

// heldBy adds the members whose ports members of another set hold. Of a set that was
// not looked at yet nobody knows which.
func (d *Daemon) heldBy(v *store.View, wanted map[int][]jobspecs.Port, held map[int]planner.PortHeld) {
	key := v.Record.Key()
	status, seen := d.observed(key, v.Record.Generation)
	for _, o := range v.Record.Set.Ordinals(v.Record.Replicas) {
		if !hasRunBefore(v.Members[o]) || v.Members[o].Stopped {
			continue
		}
		name := jobspecs.MemberName(key.Name, o)
		m := memberNamed(status, name, "")
		for _, ordinal := range slices.Sorted(maps.Keys(wanted)) {
			if _, already := held[ordinal]; already {
				continue
			}
			if !seen {
				held[ordinal] = planner.PortHeld{Why: fmt.Sprintf("which ports of the host %s/%s has is not known yet", key.Namespace, key.Name)}
			} else if p := clash(wanted[ordinal], m); p != nil {
				held[ordinal] = planner.PortHeld{Known: true, Why: fmt.Sprintf("port %s:%d is taken by member %s (ours, of %s/%s)", hostIP(p.HostIP), p.Host, name, key.Namespace, key.Name)}
			}
		}
	}
}

// observed is what was seen of a set as it is stored now.
func (d *Daemon) observed(key jobspecs.Key, generation int64) (jobspecs.Status, bool) {
	l := d.loop(key)
	if l == nil {
		return jobspecs.Status{}, false
	}
	snap := l.seen.get()
	if snap == nil || snap.status.ObservedGeneration < generation {
		return jobspecs.Status{}, false
	}
	return snap.status, true
}

// clash is the first of the ports that a member publishes too; nil: none.
func clash(ports []jobspecs.Port, m *jobspecs.Member) *jobspecs.Port {
	if m == nil {
		return nil
	}
	for i := range ports {
		p := &ports[i]
		if slices.ContainsFunc(m.Ports, func(q jobspecs.MemberPort) bool {
			return q.Host == p.Host && cmp.Or(q.Protocol, "tcp") == cmp.Or(p.Protocol, "tcp") && meet(hostIP(q.HostIP), hostIP(p.HostIP))
		}) {
			return p
		}
	}
	return nil
}

func hostIP(text string) string { return cmp.Or(text, "127.0.0.1") }

// meet tells whether listeners at two addresses are in each other's way.
func meet(a, b string) bool {
	x, err1 := netip.ParseAddr(a)
	y, err2 := netip.ParseAddr(b)
	return err1 != nil || err2 != nil || x.IsUnspecified() || y.IsUnspecified() || x.Unmap() == y.Unmap()
}

// tellPorts shows of members that wait for a port of the host that somebody has to
// give way.
func tellPorts(status *jobspecs.Status, held map[int]planner.PortHeld) {
	for i := range status.Members {
		m := &status.Members[i]
		h := held[m.Ordinal]
		if !h.Known || !unmade(m) {
			continue
		}
		m.Reason, m.Message = runtime.ReasonPortTaken, h.Why
		addCondition(status, jobspecs.CondStalled, m.Reason, m.Name+": "+h.Why)
	}
}
