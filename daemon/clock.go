package daemon

import (
	"time"

	"github.com/stsd/stsd/daemon/planner"
	"github.com/stsd/stsd/daemon/store"
)

// The clock of a host may be set, by hand or when it wakes up. Times that were stored
// have lost the reading of the monotonic clock, which nobody sets. Those that this
// process made get it back when they are read; those of another one are given one when
// they are read first, and one that lies in the future then is of before the clock was
// set back, and counts as now.

// inTime gives the stored members of a look their times, and stores those that had to
// be mended.
func (l *loop) inTime(v *store.View, now time.Time) error {
	mended := map[int]planner.Member{}
	for o, stored := range v.Members {
		m := eachTime(stored, l.made[o], func(stored, made time.Time) time.Time {
			switch {
			case stored.IsZero():
				return stored
			case made.Equal(stored):
				return made
			case stored.After(now):
				return now
			}
			return now.Add(stored.Sub(now))
		})
		if !same(m, stored) {
			mended[o] = m
		}
		v.Members[o], l.made[o] = m, m
	}
	return l.d.store.Learn(l.key, store.Facts{Members: mended})
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
