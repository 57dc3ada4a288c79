package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/volumes"
)

// usage measures how much volumes hold that have a size, one after the other and
// at a slow pace. The loops say which, and tell what was found. Without such a
// volume it does nothing.
type usage struct {
	meter   volumes.Meter // nil: nobody can tell
	changed func(jobspecs.Key)

	mu       sync.Mutex
	watched  map[jobspecs.Key][]string // names of volumes, sorted
	readings map[string]reading        // by volume
	bell     chan struct{}             // one more is to be measured
}

// reading is what was measured last.
type reading struct {
	used int64
	err  error     // why it could not be
	next time.Time // when it is measured again
}

// The pace of measuring: each volume once a minute, for half a minute at most, and
// all of them together no more than a twentieth of the time.
const (
	measuringPeriod = time.Minute
	measuringLimit  = 30 * time.Second
	measuringRest   = 20
)

// errUncounted is said of a volume that took too long.
var errUncounted = fmt.Errorf("it has more files than can be counted in %s", measuringLimit)

func newUsage(store volumes.Store, changed func(jobspecs.Key)) *usage {
	meter, _ := store.(volumes.Meter)
	return &usage{
		meter: meter, changed: changed, bell: make(chan struct{}, 1),
		watched: map[jobspecs.Key][]string{}, readings: map[string]reading{},
	}
}

// watch says which volumes of a set are to be measured, by sorted names.
func (u *usage) watch(set jobspecs.Key, names []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	before := u.watched[set]
	if u.meter == nil || slices.Equal(before, names) {
		return
	}
	for _, name := range before {
		if _, stays := slices.BinarySearch(names, name); !stays {
			delete(u.readings, name)
		}
	}
	u.watched[set] = names
	if len(names) == 0 {
		delete(u.watched, set)
	}
	u.ring()
}

// renewed says that a volume was made: what was measured before was another one.
func (u *usage) renewed(name string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, known := u.readings[name]; known {
		delete(u.readings, name)
		u.ring()
	}
}

// ring wakes run; u.mu is held.
func (u *usage) ring() {
	select {
	case u.bell <- struct{}{}:
	default:
	}
}

// of is what was measured of a volume last; ok is false before it was.
func (u *usage) of(name string) (r reading, ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	r, ok = u.readings[name]
	return r, ok
}

// now is of, or what a look of that moment finds.
func (u *usage) now(ctx context.Context, name string) (used int64, ok bool) {
	r, ok := u.of(name)
	if !ok && u.meter != nil {
		r.used, r.err = u.meter.Used(ctx, name)
		ok = true
	}
	return r.used, ok && r.err == nil
}

// run measures until ctx ends.
func (u *usage) run(ctx context.Context) error {
	for ctx.Err() == nil {
		alarm, stop := timer(u.round(ctx), time.Now())
		select {
		case <-ctx.Done():
		case <-u.bell:
		case <-alarm:
		}
		stop()
	}
	return nil
}

// round measures every volume whose time has come, and says when the next has.
func (u *usage) round(ctx context.Context) (next time.Time) {
	for _, v := range u.list() {
		r, known := u.of(v.name)
		if !known || !time.Now().Before(r.next) {
			took := u.measure(ctx, v)
			pause(ctx, took*measuringRest)
			r, _ = u.of(v.name)
		}
		next = earliest(next, r.next)
	}
	return next
}

// measured is one volume that is watched.
type measured struct {
	set  jobspecs.Key
	name string
}

func (u *usage) list() []measured {
	u.mu.Lock()
	defer u.mu.Unlock()
	var all []measured
	for set, names := range u.watched {
		for _, name := range names {
			all = append(all, measured{set, name})
		}
	}
	slices.SortFunc(all, func(a, b measured) int { return strings.Compare(a.name, b.name) })
	return all
}

// measure takes one reading, and wakes the loop of the set if it is news.
func (u *usage) measure(ctx context.Context, v measured) (took time.Duration) {
	limited, cancel := context.WithTimeout(ctx, measuringLimit)
	defer cancel()
	start := time.Now()
	used, err := u.meter.Used(limited, v.name)
	now := time.Now()
	took = now.Sub(start)
	if ctx.Err() != nil {
		return 0
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = errUncounted
	}
	if u.keep(v, reading{used: used, err: err, next: now.Add(measuringPeriod)}) {
		u.changed(v.set)
	}
	return took
}

// keep stores a reading and tells whether it says something new.
func (u *usage) keep(v measured, r reading) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !slices.Contains(u.watched[v.set], v.name) {
		return false
	}
	before, known := u.readings[v.name]
	u.readings[v.name] = r
	return !known || before.used != r.used || fmt.Sprint(before.err) != fmt.Sprint(r.err)
}
