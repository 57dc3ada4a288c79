package planner

import (
	"slices"
	"time"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

// update stops outdated members, from the top, so that fill makes them anew:
//
//   - outdated and already unavailable ones first: they cost no availability, and
//     a broken new member never blocks its own repair;
//   - then available ones, while no more than max_unavailable members of the
//     whole set are unavailable.
//
// What was stopped or made for the update and is not available yet counts as in
// flight; at most max_unavailable are. Members that the user stopped do not count: a
// guard does count them.
func (w *World) update(p *Plan, wanted []*slot) {
	limit := w.Set.Update.MaxUnavailableOf(w.Replicas)
	unavailable, inFlight, unmade := 0, 0, true
	for _, s := range wanted {
		if w.available(s) || s.halted {
			continue
		}
		unavailable++
		leaving := s.missing() || s.stopping() || s.gone()
		if leaving || s.pod.Revision == w.Update {
			inFlight++
			unmade = unmade && leaving
		}
	}
	// A missing member that waits at its gate for a sick outdated one would wait
	// for ever if that one might not be replaced: the lowest unavailable member
	// may go, as long as all that is in flight is only waiting to be made. One that
	// is ready becomes available by itself, so it goes on serving; one that was, and
	// runs, may only miss the one that is in flight, and has a while to find itself.
	lowest := w.firstUnavailable(wanted)
	if lowest != nil && (lowest.pod.Ready || w.blinks(p, lowest)) {
		lowest = nil
	}
	for _, s := range reversed(wanted) {
		if !w.due(s) || s.stopping() || s.gone() || w.available(s) {
			continue
		}
		if inFlight >= limit && !(s == lowest && unmade) {
			w.waitForBudget(p, s, wanted)
			continue
		}
		if w.unmakeable(p, s, w.next(s)) {
			continue
		}
		p.act(w.stopForUpdate(s, "outdated and not available"))
		inFlight++
	}
	for _, s := range w.byRole(reversed(wanted)) {
		if !w.due(s) || !w.available(s) {
			continue
		}
		if unavailable >= limit {
			w.waitForBudget(p, s, wanted)
			return
		}
		if w.unmakeable(p, s, w.next(s)) || w.guarded(p, s) {
			return
		}
		p.stop(w.stopForUpdate(s, "outdated"), true)
		unavailable++
	}
}

// recovery is how long a member that was ready and runs is left alone while another
// one is in flight: the peers of a member that is being replaced elect another leader,
// or connect anew.
const recovery = 30 * time.Second

func (w *World) blinks(p *Plan, s *slot) bool {
	m := Readiness(w.Members[s.ordinal], s.pod, w.Now)
	end := m.Unready.Add(recovery)
	if m.Unready.IsZero() || m.Once != s.pod.Revision || !w.Now.Before(end) {
		return false
	}
	p.wakeAt(end)
	return true
}

// Readiness is the member's, with what its pod shows of it.
func Readiness(m Member, p *runtime.Pod, now time.Time) Member {
	switch {
	case p.Ready:
		return m.ready(p.ReadySince, time.Time{})
	case p.Phase != runtime.Running:
		return m.ready(time.Time{}, time.Time{})
	case !m.ReadySince.IsZero():
		return m.ready(time.Time{}, now)
	}
	return m
}

func (m Member) ready(since, not time.Time) Member {
	m.ReadySince, m.Unready = since, not
	return m
}

// byRole puts the members whose role goes last behind the others; the order is
// kept otherwise.
func (w *World) byRole(order []*slot) []*slot {
	u := w.Set.Update
	if u.Order != jobspecs.OrderRole {
		return order
	}
	slices.SortStableFunc(order, func(a, b *slot) int { return last(a, u.Last) - last(b, u.Last) })
	return order
}

func last(s *slot, role string) int {
	if s.pod != nil && s.pod.Role == role {
		return 1
	}
	return 0
}

// next is the revision of which a member that is due is made when its turn comes.
func (w *World) next(s *slot) string {
	if w.outdated(s) {
		return w.Update
	}
	return s.pod.Revision
}

func (w *World) stopForUpdate(s *slot, why string) Action {
	if !w.outdated(s) {
		return Action{
			Op: Stop, Ordinal: s.ordinal, Member: s.name, Target: s.pod.Revision, Reason: runtime.WhyRestart,
			Why: "its restart was asked for",
		}
	}
	reason := runtime.WhyUpdate
	if w.Again[s.pod.Revision] {
		reason = runtime.WhyRestart
	}
	return Action{Op: Stop, Ordinal: s.ordinal, Member: s.name, Target: w.Update, Reason: reason, Why: why}
}

// waitForBudget names the highest unavailable member, which is the one that the
// update waits for.
func (w *World) waitForBudget(p *Plan, s *slot, wanted []*slot) {
	for _, other := range reversed(wanted) {
		if other != s && !w.available(other) {
			p.wait(Wait{Member: s.name, On: other.name, For: w.describe(other), Since: w.sinceOf(other)})
			return
		}
	}
}

func (w *World) firstUnavailable(wanted []*slot) *slot {
	for _, s := range wanted {
		if s.pod != nil && !w.available(s) {
			return s
		}
	}
	return nil
}

func reversed(in []*slot) []*slot {
	out := make([]*slot, len(in))
	for i, s := range in {
		out[len(in)-1-i] = s
	}
	return out
}
