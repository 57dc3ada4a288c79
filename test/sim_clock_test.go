package test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"
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
