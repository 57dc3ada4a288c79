package planner

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

// Status tells what was seen and decided, in the words of the API. The times of
// its conditions are left to the caller, who knows the former ones.
func Status(w World, p Plan) jobspecs.Status {
	wanted, condemned := w.slots()
	s := jobspecs.Status{
		Namespace: w.Set.Namespace, Name: w.Set.Name, Replicas: w.Replicas,
		CurrentRevision: w.Current, UpdateRevision: w.Update, Paused: w.Paused, Deleting: w.Deleting != nil,
		Strategy: w.Set.Update.Strategy, Partition: w.Set.Update.Partition,
		Members: []jobspecs.Member{}, Volumes: w.volumeStatus(wanted), Endpoints: []jobspecs.Endpoint{},
	}
	if s.CurrentRevision == "" {
		s.CurrentRevision = w.Update
	}
	waits := waitsByMember(p)
	for _, slot := range append(append([]*slot{}, wanted...), reversed(condemned)...) {
		m := w.memberStatus(slot, waits[slot.name])
		s.Members = append(s.Members, m)
		w.count(&s, slot, m)
	}
	if len(p.Waiting) > 0 && !p.Complete {
		first := p.Waiting[0]
		on := first.On
		if on == "" {
			on = first.Member
		}
		s.Waiting = &jobspecs.Waiting{Member: on, For: first.For, Since: first.Since}
	} else if sick := w.firstSick(wanted); sick != nil {
		s.Waiting = &jobspecs.Waiting{Member: sick.name, For: w.describe(sick), Since: w.sinceOf(sick)}
	}
	s.Conditions = w.conditions(p, wanted, condemned)
	return s
}

func waitsByMember(p Plan) map[string]Wait {
	out := map[string]Wait{}
	for _, wait := range p.Waiting {
		if _, ok := out[wait.Member]; !ok {
			out[wait.Member] = wait
		}
	}
	return out
}

func (w *World) firstSick(wanted []*slot) *slot {
	for _, s := range wanted {
		if !s.halted && !w.available(s) {
			return s
		}
	}
	return nil
}

// count adds one member to the counters. Those of revisions leave out members
// that are stopping (k8s StatefulSetStatus).
func (w *World) count(s *jobspecs.Status, slot *slot, m jobspecs.Member) {
	if m.Ready {
		s.ReadyReplicas++
	}
	if m.Available {
		s.AvailableReplicas++
	}
	if slot.pod == nil || slot.stopping() || slot.gone() {
		return
	}
	if slot.pod.Revision == s.CurrentRevision {
		s.CurrentReplicas++
	}
	if slot.pod.Revision == w.Update {
		s.UpdatedReplicas++
	}
}

// Reasons of a member that no engine gives.
const (
	ReasonNotCreated   = "NotCreated"   // Pending: it has no pod yet
	ReasonVolumeLost   = "VolumeLost"   // its volume held data and is gone
	ReasonMayNeedPeers = "MayNeedPeers" // it waits for one that may be waiting for it
	ReasonByUser       = "ByUser"       // Stopped: until `stsd start`
	ReasonDisconnected = "Disconnected" // Running: its container was taken off its network, or has another address there
	ReasonHookFailed   = "HookFailed"   // any: a hook that has to run for it fails; a leave hook says no so

	ReasonStray = "Stray" // any: its set is not stored; it is left alone

	ReasonVolumeNearlyFull = "VolumeNearlyFull" // Running: a volume or scratch folder of it is above 90 % of its size
	ReasonVolumeOverSize   = "VolumeOverSize"   // Running: one holds more than its size
)

// memberStatus is one row of ps.
func (w *World) memberStatus(s *slot, wait Wait) jobspecs.Member {
	m := jobspecs.Member{
		Namespace: w.Set.Namespace, Set: w.Set.Name, Name: s.name, Ordinal: s.ordinal,
		Phase: string(runtime.Pending), Reason: ReasonNotCreated, Revision: s.target,
		Ports: []jobspecs.MemberPort{}, Volumes: []string{}, Containers: []jobspecs.MemberContainer{},
	}
	if wait.For != "" {
		m.Waiting = wait.String()
		m.Message = m.Waiting
		if wait.NeedsPeers {
			m.Reason = ReasonMayNeedPeers
		}
		if w.lostVolume(s) != "" {
			m.Reason = ReasonVolumeLost
		}
	}
	if s.halted && s.pod == nil {
		m.Phase, m.Reason, m.Message = string(runtime.Stopped), ReasonByUser, "stopped by the user; stsd start "+w.typed(s.name)+" brings it back"
		m.Revision = w.Members[s.ordinal].Revision
	}
	spec := w.Specs[Target{s.ordinal, s.target}].Spec
	if s.pod != nil {
		spec = w.Specs[Target{s.ordinal, s.pod.Revision}].Spec
		w.fromPod(&m, s)
	}
	fromSpec(&m, spec)
	if s.pod != nil && !s.pod.StartedAt.IsZero() {
		m.Ports = portsNow(m.Ports, s.pod.Published)
	}
	w.cutOff(&m, s)
	return m
}

// Stray is the row of a pod whose set is not stored, with the sentence for it.
func Stray(set jobspecs.Key, p *runtime.Pod, message string) jobspecs.Member {
	w := World{Set: &jobspecs.Set{Namespace: set.Namespace, Name: set.Name}}
	m := jobspecs.Member{
		Namespace: set.Namespace, Set: set.Name, Name: p.Name, Ordinal: p.Ordinal,
		Ports: []jobspecs.MemberPort{}, Volumes: []string{}, Containers: []jobspecs.MemberContainer{},
	}
	w.fromPod(&m, &slot{ordinal: p.Ordinal, name: p.Name, pod: p, target: p.Revision})
	m.Reason, m.Message, m.Available, m.NextTry = ReasonStray, message, false, nil
	return m
}

// cutOff says of a member that runs and that nobody, or not everybody, reaches why
// that is so.
func (w *World) cutOff(m *jobspecs.Member, s *slot) {
	if !w.disconnected(s) || m.Reason != "" && (m.Reason != runtime.ReasonNotReady || !w.unreachable(s)) {
		return
	}
	m.Reason, m.Message = ReasonDisconnected, w.disconnection(s)
}

// disconnected tells whether a running pod has lost the address it was given, or
// its place on a network that it joined: somebody took its container off.
func (w *World) disconnected(s *slot) bool {
	return s.pod != nil && s.pod.Phase == runtime.Running && !s.pod.StartedAt.IsZero() && (w.unreachable(s) || len(s.pod.Detached) > 0)
}

// unreachable: it is off its own network, or there at another address than the one
// that is reserved for it.
func (w *World) unreachable(s *slot) bool {
	own := w.Specs[Target{s.ordinal, s.pod.Revision}].Spec.Address
	return own.IsValid() && s.pod.Address != own
}

// disconnection is the sentence for it, with the cure.
func (w *World) disconnection(s *slot) string {
	spec := w.Specs[Target{s.ordinal, s.pod.Revision}].Spec
	part := ""
	if spec.Sandboxed() {
		part = jobspecs.PartSandbox
	}
	name := jobspecs.ContainerName(w.Set.Namespace, s.name, part)
	if !w.unreachable(s) {
		off := s.pod.Detached[0]
		return fmt.Sprintf("container %s was taken off network %s; docker network connect --alias %s --alias %s --alias %s.%s %s %s brings it back",
			name, off, s.name, spec.Service, s.name, spec.Service, off, name)
	}
	connect := fmt.Sprintf("docker network connect --ip %s %s %s", spec.Address, spec.Network, name)
	if s.pod.Address.IsValid() {
		return fmt.Sprintf("container %s was put on network %s at %s, and its own address is %s; docker network disconnect %s %s && %s brings it back",
			name, spec.Network, s.pod.Address, spec.Address, spec.Network, name, connect)
	}
	return fmt.Sprintf("container %s was taken off network %s; %s brings it back", name, spec.Network, connect)
}

func (w *World) fromPod(m *jobspecs.Member, s *slot) {
	p := s.pod
	m.Phase, m.Reason, m.Revision = string(p.Phase), p.Reason, p.Revision
	if p.Message != "" || m.Waiting == "" {
		m.Message = p.Message
	}
	m.Ready = p.Ready && p.Phase == runtime.Running
	m.Available = w.available(s)
	if w.bereft(s) != "" && w.lostVolume(s) != "" {
		m.Reason, m.Message = ReasonVolumeLost, m.Waiting
	}
	m.Restarts, m.Image, m.ImageID, m.Role = restarts(p), p.Image, p.ImageID, p.Role
	m.StartedAt, m.Since, m.NextTry = timeOrNil(p.StartedAt), timeOrNil(p.Since), timeOrNil(p.NextTry)
	m.Stale = stale(p, w.Specs[Target{s.ordinal, p.Revision}].Spec.Steady)
	if p.Address.IsValid() {
		m.IP = p.Address.String()
	}
	for _, c := range p.Containers {
		m.Containers = append(m.Containers, containerStatus(c))
	}
}

// stale tells whether a new start would run something else than what runs. That a set
// has formed since, or volumes are in use, is no news for who runs.
func stale(p *runtime.Pod, steady string) bool {
	if p.Started == "" || p.Rendering == "" || p.Started == p.Rendering {
		return false
	}
	return p.Steady == "" || p.Steady != steady
}

// restarts counts those of init containers too while the pod has not got past them.
func restarts(p *runtime.Pod) int {
	n := 0
	for _, c := range p.Containers {
		if c.Kind != jobspecs.KindInit && (!c.StartedAt.IsZero() || c.ExitCode != nil) {
			return p.Restarts
		}
		if c.Kind == jobspecs.KindInit {
			n += c.Restarts
		}
	}
	return p.Restarts + n
}

func containerStatus(c runtime.Container) jobspecs.MemberContainer {
	kind := c.Kind
	if kind == "" {
		kind = jobspecs.KindMain
	}
	return jobspecs.MemberContainer{
		Name: c.Name, Kind: kind, Image: c.Image, ImageID: c.ImageID, State: c.State, Ready: c.Ready,
		Reason: c.Reason, Message: c.Message, ExitCode: c.ExitCode, OOMKilled: c.OOMKilled, Signal: c.Signal,
		Restarts: c.Restarts, StartedAt: timeOrNil(c.StartedAt),
	}
}

// fromSpec adds what only the rendering knows.
func fromSpec(m *jobspecs.Member, spec jobspecs.PodSpec) {
	if spec.Name == "" {
		return
	}
	m.FQDN = spec.FQDN()
	if m.IP == "" && spec.Address.IsValid() {
		m.IP = spec.Address.String()
	}
	for _, v := range spec.Volumes {
		m.Volumes = append(m.Volumes, v.Name)
	}
	if m.Image == "" && len(spec.Containers) > 0 {
		m.Image = spec.First().Image
	}
	for _, c := range spec.Containers {
		for _, p := range c.Ports {
			m.Ports = append(m.Ports, jobspecs.MemberPort{Name: p.Name, Container: p.Container, Host: p.Host, HostIP: p.HostIP, Protocol: p.Protocol})
		}
	}
}

// portsNow are those of a rendering, published as what runs is.
func portsNow(rendered []jobspecs.MemberPort, published []jobspecs.Port) []jobspecs.MemberPort {
	out, left := []jobspecs.MemberPort{}, slices.Clone(published)
	take := func(like func(jobspecs.Port) bool) *jobspecs.Port {
		i := slices.IndexFunc(left, like)
		if i < 0 {
			return nil
		}
		p := left[i]
		left = slices.Delete(left, i, i+1)
		return &p
	}
	for _, m := range rendered {
		same := func(p jobspecs.Port) bool {
			return p.Container == m.Container && cmp.Or(p.Protocol, "tcp") == cmp.Or(m.Protocol, "tcp")
		}
		p := take(func(p jobspecs.Port) bool { return same(p) && p.Host == m.Host && p.HostIP == m.HostIP })
		if p == nil && m.Name != "" {
			p = take(same)
		}
		switch {
		case p != nil:
			m.Host, m.HostIP = p.Host, p.HostIP
		case m.Name == "": // what only its next start publishes
			continue
		default:
			m.Host, m.HostIP = 0, ""
		}
		out = append(out, m)
	}
	for _, p := range left {
		out = append(out, jobspecs.MemberPort{Container: p.Container, Host: p.Host, HostIP: p.HostIP, Protocol: p.Protocol})
	}
	return out
}

func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func (w *World) volumeStatus(wanted []*slot) []jobspecs.VolumeStatus {
	out := []jobspecs.VolumeStatus{}
	for name, v := range w.Volumes {
		state := "retained"
		if w.Fits(v.Ordinal) && w.Deleting == nil && w.claim(v.Claim) != nil {
			state = "bound"
		}
		out = append(out, jobspecs.VolumeStatus{Name: name, Claim: v.Claim, Ordinal: v.Ordinal, State: state, Driver: v.Driver})
	}
	for name, r := range w.Records {
		if w.isLost(name) {
			out = append(out, jobspecs.VolumeStatus{Name: name, Claim: r.Claim, Ordinal: r.Ordinal, State: "lost"})
		}
	}
	sort.Slice(out, func(i, j int) bool {
		if out[i].Ordinal != out[j].Ordinal {
			return out[i].Ordinal < out[j].Ordinal
		}
		return out[i].Name < out[j].Name
	})
	return out
}

// conditions are the closed list of jobspecs.Cond…, each with its reason.
func (w *World) conditions(p Plan, wanted, condemned []*slot) []jobspecs.Condition {
	available, outdated, present := 0, 0, 0
	var stalled, degraded, cutOff *slot
	for _, s := range wanted {
		if s.halted {
			if s.pod != nil {
				outdated++ // on its way out
			}
			continue
		}
		present++
		if w.available(s) {
			available++
		} else if degraded == nil && w.Members[s.ordinal].Once != "" {
			degraded = s
		}
		if s.pod != nil && stalled == nil && !w.outdated(s) && runtime.Permanent(s.pod.Reason) && s.pod.Tries >= 2 {
			stalled = s
		}
		if w.due(s) || s.ask != AskNone {
			outdated++
		}
		if cutOff == nil && w.disconnected(s) {
			cutOff = s
		}
	}
	lost := w.lost(wanted)
	all := available == present && w.Deleting == nil
	done := all && outdated == 0 && len(condemned) == 0 && !p.has(Create) && !p.has(Stop) && !p.has(DeleteVolume) && !p.has(RunHook)
	behind := w.held() && w.behind(wanted)

	cond := func(kind string, status bool, reason, message string) jobspecs.Condition {
		return jobspecs.Condition{Type: kind, Status: status, Reason: reason, Message: message}
	}
	out := []jobspecs.Condition{cond(jobspecs.CondAvailable, all, pick(all, "AllAvailable", "MembersUnavailable"),
		fmt.Sprintf("%d of %d members are available", available, present)+stoppedToo(len(wanted)-present))}
	switch {
	case w.Deleting != nil:
		out = append(out, cond(jobspecs.CondProgressing, true, "Deleting", fmt.Sprintf("%d members are left", len(condemned))))
	case behind && all && len(condemned) == 0:
		out = append(out, cond(jobspecs.CondProgressing, false, "Paused", "the rollout is paused"))
	case done:
		out = append(out, cond(jobspecs.CondProgressing, false, "Complete", w.completeMessage(wanted)))
	default:
		out = append(out, cond(jobspecs.CondProgressing, true, "Working", w.workMessage(p, wanted)))
	}
	switch {
	case lost != "":
		out = append(out, cond(jobspecs.CondStalled, true, ReasonVolumeLost, lost))
	case w.failed():
		out = append(out, cond(jobspecs.CondStalled, true, "DeadlineExceeded", w.Halted.Why))
	case stalled != nil:
		out = append(out, cond(jobspecs.CondStalled, true, stalled.pod.Reason, stalled.name+": "+stalled.pod.Message))
	default:
		out = append(out, cond(jobspecs.CondStalled, false, "", ""))
	}
	out = append(out, w.pausedCondition())
	switch {
	case degraded != nil && w.Deleting == nil:
		out = append(out, cond(jobspecs.CondDegraded, true, "MemberUnavailable", degraded.name+": "+w.describe(degraded)))
	case cutOff != nil && w.Deleting == nil:
		out = append(out, cond(jobspecs.CondDegraded, true, ReasonDisconnected, cutOff.name+": "+w.disconnection(cutOff)))
	default:
		out = append(out, cond(jobspecs.CondDegraded, false, "", ""))
	}
	return out
}

// failed tells whether the rollout that is wanted has missed its deadline.
func (w *World) failed() bool { return w.Halted != nil && w.Halted.Revision == w.Update }

func (w *World) pausedCondition() jobspecs.Condition {
	c := jobspecs.Condition{Type: jobspecs.CondPaused, Status: w.held()}
	cure := "stsd rollout resume " + w.typed(w.Set.Name)
	switch {
	case w.Paused:
		c.Reason, c.Message = "ByUser", cure
	case c.Status:
		c.Reason, c.Message = "DeadlineExceeded", w.Halted.Why+"; a corrected spec goes on by itself, "+cure+" tries again"
	}
	return c
}

func stoppedToo(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", %d stopped by the user", n)
}

// behind tells whether members run another revision than the wanted one.
func (w *World) behind(wanted []*slot) bool {
	for _, s := range wanted {
		if s.pod != nil && !s.halted && s.pod.Revision != w.Update {
			return true
		}
	}
	return false
}

// lost is the sentence about the first volume that holds a member back.
func (w *World) lost(wanted []*slot) string {
	for _, s := range wanted {
		if name := w.lostVolume(s); name != "" {
			return VolumeLost(name, w.typed(s.name))
		}
	}
	return ""
}

// lostVolume names the volume that held data, is gone, and holds back a member
// that is missing or ended, or whose pod needs it; "" there is none.
func (w *World) lostVolume(s *slot) string {
	if s.ask == AskFresh {
		return ""
	}
	revision := s.target
	switch {
	case w.bereft(s) != "":
		revision = s.pod.Revision
	case !s.missing() && !s.gone():
		return ""
	}
	for _, v := range w.Specs[Target{s.ordinal, revision}].Spec.Volumes {
		if w.isLost(v.Name) {
			return v.Name
		}
	}
	return ""
}

func (w *World) completeMessage(wanted []*slot) string {
	if !w.behind(wanted) {
		return fmt.Sprintf("all %d members run %s", len(wanted), w.Update)
	}
	if w.Set.Update.Strategy == jobspecs.OnDelete {
		return "members take the new revision when they are removed (on_delete)"
	}
	return fmt.Sprintf("members from ordinal %d on run %s (partition)", w.Set.Update.Partition, w.Update)
}

func (w *World) workMessage(p Plan, wanted []*slot) string {
	if len(p.Waiting) > 0 {
		return p.Waiting[0].String()
	}
	if s := w.firstSick(wanted); s != nil {
		return s.name + ": " + w.describe(s)
	}
	return p.String()
}

func pick(b bool, yes, no string) string {
	if b {
		return yes
	}
	return no
}
