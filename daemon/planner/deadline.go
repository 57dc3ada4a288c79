package planner

import (
	"fmt"
	"time"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

// Clock is the member's, with the deadline of its rollout begun, stopped, going on or
// over. One that runs, or fails, and is not available uses it up; progress of pulls
// and init containers does not, nor does it begin anew for a container that is started
// again.
func (w *World) Clock(m Member, p *runtime.Pod) Member {
	switch {
	case p.Revision != w.Update || w.Current == w.Update || w.IsAvailable(p):
		m.Trying, m.Resting = time.Time{}, time.Time{}
	case tries(p) && m.Trying.IsZero():
		m.Trying = w.Now
	case tries(p) && !m.Resting.IsZero():
		m.Trying, m.Resting = m.Trying.Add(w.Now.Sub(m.Resting)), time.Time{}
	case !tries(p) && !m.Trying.IsZero() && m.Resting.IsZero():
		m.Resting = w.Now
	}
	return m
}

func tries(p *runtime.Pod) bool {
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
		if s.pod == nil || s.halted || !tries(s.pod) {
			continue
		}
		m := w.Clock(w.Members[s.ordinal], s.pod)
		if m.Trying.IsZero() {
			continue
		}
		end := m.Trying.Add(u.Deadline)
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
