package planner

import (
	"fmt"
	"slices"
	"time"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

// fill makes every missing member whose gate is open, volumes first, clears
// away what ended, and hands newer renderings to pods that stay. It reports
// whether something is being made, so that no stage that stops members acts on
// a set that is not yet whole.
func (w *World) fill(p *Plan, wanted []*slot) (busy bool) {
	var blocker *slot // the lowest member that is not available
	for i, s := range wanted {
		switch {
		case s.halted:
			busy = w.rest(p, s) || busy
			continue
		case s.missing() && w.renews(p, s):
			busy = true
		case s.missing():
			busy = w.make(p, s, wanted[:i], blocker) || busy
		case s.gone():
			p.act(Action{Op: Remove, Ordinal: s.ordinal, Member: s.name, Target: w.after(s), Keep: true, Why: "ended: " + ended(s.pod)})
			busy = true
		case w.bereft(s) != "" && s.ask != AskNow && s.ask != AskFresh:
			busy = w.giveUp(p, s) || busy
		default:
			w.refresh(p, s)
		}
		if blocker == nil && !w.available(s) {
			blocker = s
		}
	}
	return busy
}

// after is the revision that a member whose pod ended comes back with. Under
// on_delete, whoever removed the pod asked for the new one.
func (w *World) after(s *slot) string {
	byHand := s.pod.Reason == runtime.ReasonRemoved
	if byHand && w.Set.Update.Strategy == jobspecs.OnDelete && !w.held() {
		return w.Update
	}
	return s.target
}

// make creates one missing member if its gate is open. lower are those before it,
// blocker the lowest member that is not available; nil: none.
func (w *World) make(p *Plan, s *slot, lower []*slot, blocker *slot) bool {
	if !w.gate(p, s, lower, blocker) {
		return false
	}
	r, ok := w.Specs[Target{s.ordinal, s.target}]
	if !ok {
		r.Err = fmt.Errorf("revision %s is not stored", s.target)
	}
	if r.Err != nil {
		p.wait(Wait{Member: s.name, For: r.Err.Error(), Since: w.Now})
		return false
	}
	if held, ok := w.PortHeld[s.ordinal]; ok {
		p.wait(Wait{Member: s.name, For: held.Why, Since: w.Now})
		return false
	}
	ready, busy := w.provide(p, s, r.Spec.Volumes)
	if !ready {
		return busy
	}
	p.act(Action{Op: Create, Ordinal: s.ordinal, Member: s.name, Target: s.target, Why: w.whyMissing(s)})
	return true
}

func (w *World) whyMissing(s *slot) string {
	if w.recovers(s) {
		return "recovery"
	}
	return "missing"
}

// gate tells whether a missing member may be made now. In an ordered set it
// waits until every lower member is available: on first start, scale-up, update
// and rollback. In any set a member that was available once with the revision it
// comes back with waits for nobody, or is staged by recovery_wait: gating a
// recovery deadlocks clusters that need a quorum to be ready.
func (w *World) gate(p *Plan, s *slot, lower []*slot, blocker *slot) bool {
	if len(w.After) > 0 && w.Members[s.ordinal].Once == "" && !w.Members[s.ordinal].Used {
		p.wait(Wait{Member: s.name, On: w.After[0], For: "start_after: " + w.After[0] + " is not available yet", Since: w.Now})
		return false
	}
	if w.recovers(s) {
		return w.staged(p, s, predecessor(p, lower))
	}
	if !ordered(w) || blocker == nil {
		return true
	}
	wait := Wait{Member: s.name, On: blocker.name, For: w.describe(blocker), Since: w.sinceOf(blocker)}
	w.hint(p, s, blocker, &wait)
	p.wait(wait)
	return false
}

// patience is how long a member of an ordered set may run unready, while its
// successor was never made, before it is said that it may need its peers.
const patience = 30 * time.Second

func (w *World) hint(p *Plan, s, blocker *slot, wait *Wait) {
	pod := blocker.pod
	if w.Members[s.ordinal].Used || pod == nil || pod.StartedAt.IsZero() || pod.Ready || pod.Phase != runtime.Running {
		return
	}
	if at := pod.StartedAt.Add(patience); w.Now.Before(at) && !w.unborn(pod) {
		p.wakeAt(at)
		return
	}
	wait.NeedsPeers = true
	wait.For += fmt.Sprintf("; if %s needs its peers to become ready, write pod_management = \"parallel\"", blocker.name)
}

// unborn tells whether a pod is to start in the future: the host's clock was set back
// since, and nobody knows how long it has run.
func (w *World) unborn(p *runtime.Pod) bool { return p.StartedAt.After(w.Now) }

// recovers tells whether a missing member was available with this revision.
func (w *World) recovers(s *slot) bool {
	return s.target != "" && w.Members[s.ordinal].Once == s.target
}

// staged applies recovery_wait: a member waits until its predecessor is
// available or has run for that long.
func (w *World) staged(p *Plan, s, before *slot) bool {
	if w.Set.RecoveryWait == 0 || before == nil || w.available(before) {
		return true
	}
	if !before.missing() && !before.gone() && !before.pod.StartedAt.IsZero() {
		open := before.pod.StartedAt.Add(w.Set.RecoveryWait)
		if !w.Now.Before(open) || w.unborn(before.pod) {
			return true
		}
		p.wakeAt(open)
	}
	s.staged = true
	p.wait(Wait{Member: s.name, On: before.name, For: "recovery_wait, " + w.describe(before), Since: w.sinceOf(before)})
	return false
}

// predecessor is the last of the lower members that runs or is on its way: one that
// the user stopped, that cannot be made or that waits for its first start holds up
// nobody. Nil: there is none.
func predecessor(p *Plan, lower []*slot) *slot {
	for _, s := range reversed(lower) {
		if !s.halted && p.comes(s) {
			return s
		}
	}
	return nil
}

// comes tells whether a member has a pod that has started or can, is being made, or
// waits for its own predecessor.
func (p *Plan) comes(s *slot) bool {
	if s.missing() || s.gone() {
		return s.staged || slices.ContainsFunc(p.Actions, func(a Action) bool { return a.Ordinal == s.ordinal })
	}
	return !s.pod.StartedAt.IsZero() || s.pod.Phase != runtime.Failed && s.pod.Phase != runtime.Backoff
}

// provide makes the volumes that a member needs and lacks. It reports whether
// all are there, and whether some are being made. A volume that held data and
// is gone holds the member: it is never replaced by an empty one in silence.
func (w *World) provide(p *Plan, s *slot, specs []jobspecs.VolumeSpec) (ready, busy bool) {
	ready = true
	for _, v := range specs {
		_, exists := w.Volumes[v.Name]
		record := w.Records[v.Name]
		switch {
		case record.Deleting:
			p.wait(Wait{Member: s.name, For: "volume " + v.Name + " is being deleted first", Since: w.Now})
			ready, busy = false, busy || !exists // it is gone, and is noted so in this turn
		case exists:
		case w.isLost(v.Name) && s.ask != AskFresh:
			p.wait(Wait{Member: s.name, For: VolumeLost(v.Name, w.typed(s.name)), Since: w.Now})
			ready = false
		default:
			p.act(Action{Op: CreateVolume, Ordinal: s.ordinal, Member: s.name, Target: s.target, Volume: v.Name, Why: "needed by " + s.name})
			ready, busy = false, true
		}
	}
	return ready, busy
}

// bereft names a volume that the pod of a slot was made with and that is gone,
// while no container of the pod runs; "" there is none. No container can be made
// from it any more.
func (w *World) bereft(s *slot) string {
	if s.pod == nil || s.pod.Phase != runtime.Failed && s.pod.Phase != runtime.Backoff {
		return ""
	}
	for _, v := range w.Specs[Target{s.ordinal, s.pod.Revision}].Spec.Volumes {
		if _, exists := w.Volumes[v.Name]; !exists {
			return v.Name
		}
	}
	return ""
}

// giveUp ends a pod whose volume has to be made anew, so that the member comes
// back with a fresh one. One that held data holds it as it is.
func (w *World) giveUp(p *Plan, s *slot) (busy bool) {
	if lost := w.lostVolume(s); lost != "" {
		p.wait(Wait{Member: s.name, For: VolumeLost(lost, w.typed(s.name)), Since: w.Now})
		return false
	}
	p.act(Action{
		Op: Stop, Ordinal: s.ordinal, Member: s.name, Target: s.target, Reason: runtime.WhyReplace,
		Why: "volume " + w.bereft(s) + " is made anew",
	})
	return true
}

// VolumeLost is the sentence for a volume that held data and is gone.
func VolumeLost(volume, member string) string {
	return fmt.Sprintf("volume %s held data and is gone; bring it back under that name and with its labels (stsd explain %s prints them), or start empty: stsd replace %s --fresh-volume", volume, member, member)
}

// typed is a member as a command line takes it.
func (w *World) typed(member string) string {
	if w.Set.Namespace == jobspecs.DefaultNamespace {
		return member
	}
	return w.Set.Namespace + "/" + member
}

// refresh hands a newer rendering to a pod that stays, for its next start.
func (w *World) refresh(p *Plan, s *slot) {
	r, ok := w.Specs[Target{s.ordinal, s.pod.Revision}]
	if !ok || r.Err != nil || s.stopping() {
		return
	}
	switch {
	case !s.pod.Managed:
		p.act(Action{Op: Refresh, Ordinal: s.ordinal, Member: s.name, Target: s.pod.Revision, Why: takenOver})
	case s.pod.Rendering != r.Digest:
		p.act(Action{Op: Refresh, Ordinal: s.ordinal, Member: s.name, Target: s.pod.Revision, Why: "newer rendering for its next start"})
	}
}

func ended(p *runtime.Pod) string {
	switch p.Reason {
	case runtime.ReasonEngineRestarted:
		return "found stopped when the engine was connected"
	case runtime.ReasonRemoved:
		return "its container was removed"
	case runtime.ReasonStopRequested:
		return "stopped"
	}
	return p.Reason
}
