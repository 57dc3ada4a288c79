package daemon

import (
	"errors"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"sort"

	"github.com/stsd/stsd/daemon/planner"
	"github.com/stsd/stsd/dns"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

// tell publishes what was seen and decided: names first, so that a member is
// out of the set's name before it is stopped, then the status.
func (l *loop) tell(s sight, plan planner.Plan) {
	if l.d.names != nil {
		l.d.names.put(l.key, l.d.namesOf(&s, plan))
	}
	status := planner.Status(s.world, plan)
	status.Generation = s.view.Record.Generation
	status.ObservedGeneration = s.view.Record.Generation
	status.Created = s.view.Record.Created
	if o := s.view.Record.Overrides; !o.None() {
		status.Overrides = &o
	}
	if s.view.Record.Lost {
		status.Paused = false // nobody asked for it
		setCondition(&status, jobspecs.CondPaused, false, "", "")
		setCondition(&status, jobspecs.CondStalled, true, reasonSpecLost, specLost(l.key))
	}
	tellRolled(&status, s.view.Record.Rolled, typed(l.key.Namespace, l.key.Name))
	s.tellStale(&status)
	tellPorts(&status, s.world.PortHeld)
	l.tellFailures(&status)
	l.tellVolumes(&s, &status)
	status.Endpoints = l.d.endpoints(&s)
	if l.d.names != nil && l.d.names.degraded(l.key.Namespace) {
		addCondition(&status, jobspecs.CondDegraded, "DNS", l.d.names.why(l.key.Namespace))
	}
	l.publish(status, plan)
	l.met = true
	l.tellNotes(s.world.Pods)
}

// tellFailures shows engine calls that failed, which no pod can show.
func (l *loop) tellFailures(status *jobspecs.Status) {
	for _, k := range slices.SortedFunc(maps.Keys(l.failing), failureKey.compare) {
		f := l.failing[k]
		reason, mendable := permanent(f.err)
		if errors.Is(f.err, runtime.ErrRunning) { // what nobody ends holds up the end of a member
			reason, mendable = runtime.ReasonWaitingForFence, true
		}
		if mendable && f.tries >= 2 {
			setCondition(status, jobspecs.CondStalled, true, reason, f.err.Error())
		}
		for i := range status.Members {
			m := &status.Members[i]
			if !k.about(m) {
				continue
			}
			m.Message = f.err.Error()
			if until := f.until; l.d.now().Before(until) {
				m.NextTry = &until
			}
			if reason != "" {
				m.Reason = reason
			}
			if status.Waiting == nil || status.Waiting.Member == m.Name {
				status.Waiting = &jobspecs.Waiting{Member: m.Name, For: f.err.Error(), Since: l.d.now()}
			}
		}
	}
}

// tellBlind shows that nothing is known: the last members, as Unknown.
func (l *loop) tellBlind(err error) {
	status := jobspecs.Status{Namespace: l.key.Namespace, Name: l.key.Name}
	if old := l.seen.get(); old != nil {
		status = old.status
	} else if v, lookErr := l.d.store.Look(l.key); lookErr == nil {
		status = l.d.unseen(&v, reasonUnseen, err.Error())
	}
	reason := runtime.ReasonUnreachable
	if !errors.Is(err, runtime.ErrUnreachable) {
		reason = runtime.ReasonLookFailed
	}
	members := make([]jobspecs.Member, len(status.Members))
	copy(members, status.Members)
	for i := range members {
		members[i].Phase, members[i].Reason, members[i].Message = string(runtime.Unknown), reason, err.Error()
		members[i].Available, members[i].NextTry = false, nil
	}
	status.Members = members
	status.AvailableReplicas = 0
	status.Conditions = append([]jobspecs.Condition(nil), status.Conditions...)
	setCondition(&status, jobspecs.CondAvailable, false, reason, err.Error())
	setCondition(&status, jobspecs.CondProgressing, true, reason, err.Error())
	status.Waiting = &jobspecs.Waiting{Member: l.key.Name, For: err.Error(), Since: l.d.now()}
	l.publish(status, planner.Plan{})
}

func setCondition(s *jobspecs.Status, kind string, status bool, reason, message string) {
	for i := range s.Conditions {
		if s.Conditions[i].Type == kind {
			s.Conditions[i].Status, s.Conditions[i].Reason, s.Conditions[i].Message = status, reason, message
			return
		}
	}
	s.Conditions = append(s.Conditions, jobspecs.Condition{Type: kind, Status: status, Reason: reason, Message: message})
}

// addCondition sets a condition unless it is already true for another reason.
func addCondition(s *jobspecs.Status, kind, reason, message string) {
	for _, c := range s.Conditions {
		if c.Type == kind && c.Status {
			return
		}
	}
	setCondition(s, kind, true, reason, message)
}

// publish replaces the snapshot when it differs, keeps the times of conditions
// that did not change, and records what happened to members.
func (l *loop) publish(status jobspecs.Status, plan planner.Plan) {
	old := l.seen.get()
	now := l.d.now()
	if old != nil && status.Waiting != nil && old.status.Waiting != nil &&
		old.status.Waiting.Member == status.Waiting.Member && old.status.Waiting.For == status.Waiting.For {
		status.Waiting.Since = old.status.Waiting.Since
	}
	for i := range status.Conditions {
		status.Conditions[i].Since = now
		if old == nil {
			continue
		}
		for _, c := range old.status.Conditions {
			if c.Type == status.Conditions[i].Type && c.Status == status.Conditions[i].Status && c.Reason == status.Conditions[i].Reason {
				status.Conditions[i].Since = c.Since
			}
		}
	}
	if old != nil && reflect.DeepEqual(old.status, status) {
		return
	}
	if old != nil && l.met { // what is known from the store alone is no news
		l.tellNews(old.status, status)
	}
	l.seen.put(&snapshot{status: status, plan: plan})
	if old == nil || old.status.ObservedGeneration != status.ObservedGeneration || holds(old.status, jobspecs.CondAvailable) != holds(status, jobspecs.CondAvailable) {
		l.d.kickFollowers(l.key)
	}
}

// namesOf is what DNS shall know of the set.
func (d *Daemon) namesOf(s *sight, plan planner.Plan) dns.Set {
	out := d.staticNames(s)
	leaving := map[string]bool{}
	for _, a := range plan.Actions {
		if a.Op == planner.Stop {
			leaving[a.Member] = true
		}
	}
	pods := map[int]*runtime.Pod{}
	for i := range s.world.Pods {
		pods[s.world.Pods[i].Ordinal] = &s.world.Pods[i]
	}
	ordinals := map[int]bool{}
	if s.world.Deleting == nil {
		for _, o := range s.world.Set.Ordinals(s.world.Replicas) {
			ordinals[o] = true
		}
	}
	for o := range pods {
		ordinals[o] = true
	}
	for _, o := range sortedInts(ordinals) {
		m := dns.Member{Name: jobspecs.MemberName(s.world.Set.Name, o), Address: s.addresses[o]}
		if p := pods[o]; p != nil {
			if p.Address.IsValid() {
				m.Address = p.Address
			}
			m.Also = furtherAddresses(p)
			m.Running = !p.StartedAt.IsZero() && (p.Phase == runtime.Running || p.Phase == runtime.Starting || p.Phase == runtime.Stopping)
			m.Ready = p.Ready && p.Phase == runtime.Running && (p.Address.IsValid() || !m.Address.IsValid()) // somebody may have taken it off its network
			m.Leaving = leaving[m.Name] || p.Phase == runtime.Stopping
		}
		s.toHost(&m, pods[o], o)
		out.Members = append(out.Members, m)
	}
	return out
}

// furtherAddresses are those of a pod beside the one that is reserved for it.
func furtherAddresses(p *runtime.Pod) (list []netip.Addr) {
	if p.Address6.IsValid() {
		list = append(list, p.Address6)
	}
	for _, e := range p.Joined {
		list = append(list, e.Addresses...)
	}
	return list
}

// staticNames is the part that does not depend on members.
func (d *Daemon) staticNames(s *sight) dns.Set {
	set := s.world.Set
	out := dns.Set{
		Namespace: set.Namespace, Name: set.Name, Service: set.Service,
		MemberNames: set.DNS.MemberNames, SetName: set.DNS.SetName, TTL: set.DNS.TTL, NegativeTTL: set.DNS.NegativeTTL,
	}
	for _, t := range s.world.Needed() {
		for _, c := range s.world.Specs[t].Spec.Containers {
			for _, p := range c.Ports {
				if p.Name != "" { // one without is the same port, published once more
					out.Ports = append(out.Ports, dns.Port{Name: p.Name, Protocol: p.Protocol, Number: p.Container})
				}
			}
		}
		if len(out.Ports) > 0 {
			break
		}
	}
	return out
}

// endpoints are the names for status.
func (d *Daemon) endpoints(s *sight) []jobspecs.Endpoint {
	set := s.world.Set
	all := jobspecs.Endpoint{Name: jobspecs.ServiceDomain(set.Service, set.Namespace, d.cfg.Domain), Addresses: []string{}}
	out := []jobspecs.Endpoint{}
	for i := range s.world.Pods {
		p := &s.world.Pods[i]
		if p.Ready && p.Phase == runtime.Running && p.Address.IsValid() {
			all.Addresses = append(all.Addresses, p.Address.String())
		}
	}
	for _, o := range set.Ordinals(s.world.Replicas) {
		if a := s.addresses[o]; a.IsValid() {
			name := jobspecs.FQDN(jobspecs.MemberName(set.Name, o), set.Service, set.Namespace, d.cfg.Domain)
			out = append(out, jobspecs.Endpoint{Name: name, Addresses: []string{a.String()}})
		}
	}
	return append([]jobspecs.Endpoint{all}, out...)
}

func sortedInts(m map[int]bool) []int {
	out := make([]int, 0, len(m))
	for o := range m {
		out = append(out, o)
	}
	sort.Ints(out)
	return out
}
