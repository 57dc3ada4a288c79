package daemon

import (
	"time"

	"github.com/stsd/stsd/daemon/planner"
	"github.com/stsd/stsd/daemon/store"
)

// The clock of a host may be set, by hand or when it wakes up. Times that this process
// made are compared by its monotonic clock, which nobody sets, and keep it here when
// they come back from the state file. Of times that another one stored only the wall
// clock is known: one that lies in the future is of before the clock was set back, and
// counts as now.

// inTime gives the stored members of a look their times, and stores those that had to
// be mended.
func (l *loop) inTime(v *store.View, now time.Time) error {
	mended := map[int]planner.Member{}
	for o, m := range v.Members {
		m = eachTime(m, l.made[o], func(stored, made time.Time) time.Time {
			if made.Equal(stored) {
				return made
			}
			return stored
		})
		v.Members[o] = m
		past := eachTime(m, m, func(t, _ time.Time) time.Time {
			if t.After(now) {
				return now
			}
			return t
		})
		if !same(past, m) {
			mended[o], v.Members[o] = past, past
		}
	}
	if len(mended) == 0 {
		return nil
	}
	err := l.d.store.Learn(l.key, store.Facts{Members: mended})
	l.keep(mended)
	return err
}

// keep remembers the times of members as this process made them.
func (l *loop) keep(members map[int]planner.Member) {
	for o, m := range members {
		l.made[o] = m
	}
}

// eachTime is a with times made of its own and of b's.
func eachTime(a, b planner.Member, f func(a, b time.Time) time.Time) planner.Member {
	a.ReadySince, a.Unready = f(a.ReadySince, b.ReadySince), f(a.Unready, b.Unready)
	a.Trying, a.Resting = f(a.Trying, b.Trying), f(a.Resting, b.Resting)
	return a
}
