package test

import (
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/stsd/stsd/jobspecs"
)

// hostClock is the wall clock of a host, which somebody may set. As on a real host,
// what one process measures with the monotonic part of its times goes on as before.
type hostClock struct{ ahead atomic.Int64 }

func (c *hostClock) now() time.Time { return stepped(time.Now(), time.Duration(c.ahead.Load())) }

func (c *hostClock) step(d time.Duration) { c.ahead.Add(int64(d)) }

// set tells whether it was.
func (c *hostClock) set() bool { return c.ahead.Load() != 0 }

// instant is a time.Time with a monotonic part: a flag, 33 bits of seconds since 1885
// and 30 of nanoseconds; then the nanoseconds of the monotonic clock.
type instant struct {
	wall uint64
	mono int64
	loc  *time.Location
}

const hasMono = 1 << 63

var (
	wallEpoch = time.Date(1885, 1, 1, 0, 0, 0, 0, time.UTC)
	monoEpoch = time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC) // before every bubble
)

// stepped is a time of a bubble of testing/synctest, which has no monotonic part, with
// one, and by another wall clock. Package time makes such times of the system's alone.
func stepped(t time.Time, d time.Duration) time.Time {
	x := (*instant)(unsafe.Pointer(&t))
	if x.wall&hasMono != 0 {
		panic("this is no time of a bubble")
	}
	wall := t.Add(d)
	x.wall, x.mono = hasMono|uint64(wall.Unix()-wallEpoch.Unix())<<30|uint64(wall.Nanosecond()), int64(t.Sub(monoEpoch))
	return t
}

func TestASteppedClockIsThatOfAHost(t *testing.T) {
	synctest.Test(t, func(*testing.T) {
		var c hostClock
		before := c.now()
		if got := before.Round(0); !got.Equal(time.Now()) {
			t.Errorf("it shows %s at %s", got, time.Now())
		}
		for _, d := range []time.Duration{0, time.Hour, -2 * time.Hour, 1500 * time.Millisecond, -time.Nanosecond, 1000 * time.Hour} {
			wall := c.now().Round(0)
			c.step(d)
			if got := c.now().Round(0).Sub(wall); got != d {
				t.Errorf("the wall clock stepped by %s, not by %s", got, d)
			}
			if got := c.now().Sub(before); got != 0 {
				t.Errorf("after a step by %s %s have passed", d, got)
			}
		}
		time.Sleep(time.Minute)
		if got := c.now().Sub(before); got != time.Minute {
			t.Errorf("after a minute %s have passed", got)
		}
		if got := before.Add(time.Minute); !got.Equal(c.now()) {
			t.Errorf("a minute later it is not %s", got)
		}
	})
}

// Members that were available before the clock was set back, and the daemon started
// again, are so a moment later, and a rollout goes on.
func TestAClockThatIsSetBackHoldsUpNobody(t *testing.T) {
	for _, spec := range []string{"", " minready=4s", " recovery=40s"} {
		inRig(t, func(t *testing.T, r *rig) {
			r.tells("apply web"+spec, "pass 1m")
			before := r.runs()
			r.tells("crash", "clock -90m", "pass 40s")
			r.rest(t, time.Second)
			r.tells("crash down=2s", "clock -90m", "pass 40s")
			r.rest(t, time.Second)
			r.same(t, before, "web-0", "web-1", "web-2")
			r.tells("image web app:2", "clock -90m", "kill web-0", "crash")
			r.rest(t, 3*time.Minute)
		})
	}
}

// A clock that is set forward takes no time from a member that is starting, in a
// daemon that goes on running.
func TestAClockThatIsSetForwardEndsNoDeadline(t *testing.T) {
	inRig(t, func(t *testing.T, r *rig) {
		r.tells("apply web deadline=1m failure=rollback", "pass 1m", "image web slow:1", "pass 3s", "clock 90m", "pass 3s", "clock 48h")
		r.rest(t, 5*time.Minute)
		s, _ := r.status("web")
		for _, c := range s.Conditions {
			if c.Type == jobspecs.CondRolledBack && c.Status {
				t.Errorf("%s: %s", c.Reason, c.Message)
			}
		}
	})
}

// min_ready is a time that passes, whatever the clock shows.
func TestAClockThatIsSetForwardDoesNotMakeAvailable(t *testing.T) {
	inRig(t, func(t *testing.T, r *rig) {
		r.tells("apply web minready=20s manage=parallel", "pass 10s", "clock 90m", "pass 5s")
		if s, _ := r.status("web"); s.AvailableReplicas != 0 || s.ReadyReplicas != 3 {
			t.Errorf("after 15s of 20s %d are available and %d ready", s.AvailableReplicas, s.ReadyReplicas)
		}
		r.rest(t, 20*time.Second)
	})
}

// A deadline that began before the clock was set back ends all the same.
func TestAClockThatIsSetBackPutsOffNoDeadline(t *testing.T) {
	inRig(t, func(t *testing.T, r *rig) {
		r.tells("apply web deadline=40s failure=rollback", "pass 1m", "image web never:1", "pass 20s", "crash down=2s", "clock -90m", "pass 2m")
		s, _ := r.status("web")
		if !slices.ContainsFunc(s.Conditions, func(c jobspecs.Condition) bool { return c.Type == jobspecs.CondRolledBack && c.Status }) {
			t.Errorf("two minutes later it is not rolled back: %+v", s.Conditions)
		}
	})
}
