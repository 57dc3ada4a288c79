package planner

import "github.com/stsd/stsd/runtime"

// shrink ends members that the set no longer has, from the top, whatever their
// health: one at a time in an ordered set, each gone before the next. It
// reports whether any are on their way.
//
// Members below a start_ordinal that moved up stay until their successors
// exist, so that moving a set does not take it down first. Meanwhile updates go
// on: the successor may wait for a broken member that one has to replace.
func (w *World) shrink(p *Plan, wanted, condemned []*slot) (busy bool) {
	for _, s := range condemned {
		if s.gone() {
			p.act(Action{Op: Remove, Ordinal: s.ordinal, Member: s.name, Why: w.whyCondemned()})
			busy = true
		}
	}
	for _, s := range condemned {
		if s.gone() {
			if ordered(w) {
				break
			}
			continue
		}
		if s.stopping() {
			busy = true
			p.wait(Wait{Member: s.name, On: s.name, For: w.describe(s), Since: w.sinceOf(s)})
			if ordered(w) {
				break
			}
			continue
		}
		if hole := firstMissing(wanted); w.Deleting == nil && s.ordinal < w.Set.StartOrdinal && hole != nil {
			p.wait(Wait{Member: s.name, On: hole.name, For: "it stays until " + hole.name + " is made", Since: w.Now})
			break
		}
		if w.Deleting == nil && (w.guarded(p, s) || !w.leaves(p, s, wanted)) {
			busy = busy || p.has(RunHook)
			break
		}
		p.stop(Action{Op: Stop, Ordinal: s.ordinal, Member: s.name, Reason: w.reasonCondemned(), Why: w.whyCondemned() + w.unasked(s)}, w.available(s))
		busy = true
		if ordered(w) {
			break
		}
	}
	return busy
}

func (w *World) whyCondemned() string {
	if w.Deleting != nil {
		return "set is being deleted"
	}
	return "scaled down"
}

func (w *World) reasonCondemned() string {
	if w.Deleting != nil {
		return runtime.WhyDelete
	}
	return runtime.WhyScaleDown
}

func firstMissing(wanted []*slot) *slot {
	for _, s := range wanted {
		if s.missing() {
			return s
		}
	}
	return nil
}
