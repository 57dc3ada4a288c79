package planner

import "github.com/stsd/stsd/runtime"

// asked ends members that the user wants restarted or replaced at once. It reports
// whether any are on their way.
func (w *World) asked(p *Plan, wanted []*slot) (busy bool) {
	for _, s := range wanted {
		if s.halted || s.ask != AskNow && s.ask != AskFresh || s.missing() || s.gone() {
			continue
		}
		if s.stopping() {
			busy = true
			continue
		}
		if w.unmakeable(p, s, s.pod.Revision) || w.guarded(p, s) {
			continue
		}
		a := Action{Op: Stop, Ordinal: s.ordinal, Member: s.name, Target: s.pod.Revision, Reason: runtime.WhyRestart, Why: "its restart was asked for"}
		if s.ask == AskFresh {
			a.Reason, a.Why = runtime.WhyReplace, "it is replaced, with fresh volumes"
		}
		p.stop(a, w.available(s))
		busy = true
	}
	return busy
}

// unmakeable tells whether a member that is there could not be made of a revision: it is
// not stopped then.
func (w *World) unmakeable(p *Plan, s *slot, revision string) bool {
	r := w.Specs[Target{s.ordinal, revision}]
	if r.Err != nil {
		p.wait(Wait{Member: s.name, For: "it could not be made again: " + r.Err.Error(), Since: w.Now})
	}
	return r.Err != nil
}

// rest keeps a member down that the user stopped.
func (w *World) rest(p *Plan, s *slot) (busy bool) {
	switch {
	case s.missing():
		return false
	case s.gone():
		p.act(Action{Op: Remove, Ordinal: s.ordinal, Member: s.name, Keep: true, Why: "stopped by the user"})
	case s.stopping():
		p.wait(Wait{Member: s.name, On: s.name, For: w.describe(s), Since: w.sinceOf(s)})
	case w.guarded(p, s):
		return false
	default:
		p.stop(Action{Op: Stop, Ordinal: s.ordinal, Member: s.name, Reason: runtime.WhyStop, Why: "stopped by the user"}, w.available(s))
	}
	return true
}

// renews deletes the volumes that held data of a member that is replaced with
// fresh ones. It reports whether any are left: the member is not made before.
func (w *World) renews(p *Plan, s *slot) (busy bool) {
	if s.ask != AskFresh {
		return false
	}
	for _, v := range w.Specs[Target{s.ordinal, s.target}].Spec.Volumes {
		if _, exists := w.Volumes[v.Name]; exists && w.Records[v.Name].Used {
			p.act(Action{Op: DeleteVolume, Ordinal: s.ordinal, Member: s.name, Volume: v.Name, Why: s.name + " is replaced, with fresh volumes"})
			busy = true
		}
	}
	return busy
}

// stop is an action that takes a member away; available says that it is one that
// counts for the guard.
func (p *Plan) stop(a Action, available bool) {
	p.act(a)
	if available {
		p.leaving++
	}
}

// guarded tells whether the guard keeps the member: without it fewer than
// min_available would be left. One that is not available may go.
func (w *World) guarded(p *Plan, s *slot) bool {
	if w.MinAvailable == 0 || w.Forced || !w.available(s) {
		return false
	}
	n := 0
	for i := range w.Pods {
		if w.IsAvailable(&w.Pods[i]) {
			n++
		}
	}
	if n-p.leaving-1 >= w.MinAvailable {
		return false
	}
	p.wait(Wait{Member: s.name, For: guardSentence(n-p.leaving, w.MinAvailable), Since: w.Now})
	return true
}

// Guards tells whether the guard allows that many available members to be stopped;
// the sentence says why not.
func (w *World) Guards(stopped int) (refused string) {
	n := 0
	for i := range w.Pods {
		if w.IsAvailable(&w.Pods[i]) {
			n++
		}
	}
	if w.MinAvailable == 0 || stopped == 0 || n-stopped >= w.MinAvailable {
		return ""
	}
	return guardSentence(n, w.MinAvailable)
}
