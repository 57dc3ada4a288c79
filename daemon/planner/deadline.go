package planner

import (
	"fmt"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

// Tries tells whether a pod uses up the deadline of its rollout: it runs, or fails,
// and is not available. Progress of pulls and init containers does not.
func (w *World) Tries(p *runtime.Pod) bool {
	if p.Revision != w.Update || w.Current == w.Update || w.IsAvailable(p) {
		return false
	}
	switch p.Phase {
	case runtime.Starting, runtime.Running, runtime.Backoff, runtime.Failed:
		return true
	}
	return false
}

// deadline finds the member with which the rollout fails.
func (w *World) deadline(p *Plan, wanted []*slot) {
	u := w.Set.Update
	if u.Deadline == 0 || w.Deleting != nil || w.Paused || w.Halted != nil && w.Halted.Revision == w.Update {
		return
	}
	for _, s := range wanted {
		trying := w.Members[s.ordinal].Trying
		if s.pod == nil || s.halted || trying.IsZero() || !w.Tries(s.pod) {
			continue
		}
		end := trying.Add(u.Deadline)
		if w.Now.Before(end) {
			p.wakeAt(end)
			continue
		}
		p.Failed = &Halt{Revision: w.Update, Member: s.name, Why: fmt.Sprintf("%s is not available %s after it could have been: %s", s.name, u.Deadline, w.describe(s))}
		return
	}
}

// RollsBack tells whether a rollout that fails goes back to the revision that the
// set was complete with.
func (w *World) RollsBack() bool {
	return w.Set.Update.OnFailure == jobspecs.FailRollback && w.Current != "" && w.Current != w.Update
}
