package daemon

import (
	"context"
	"sync"
	"time"

	"github.com/stsd/stsd/daemon/store"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

// Types of an event.
const (
	normal  = "Normal"
	warning = "Warning"
)

// Reasons of the last event of a set.
const (
	deleted  = "Deleted"
	orphaned = "Orphaned"
)

// hookRuns is the reason of an event of a hook that begins: the only normal one that
// is tried again and again.
const hookRuns = "HookRuns"

// recorder keeps events: in memory at once, on disk in batches. One that
// repeats is counted.
type recorder struct {
	store  *store.Store
	clock  runtime.Clock
	failed func(error) // told once when events cannot be stored

	counted func(*jobspecs.Event) // of each; nil: nobody counts

	mu    sync.Mutex
	all   []numbered
	dirty map[uint64]jobspecs.Event
	last  uint64
	bell  chan struct{} // closed when something is new
}

type numbered struct {
	n uint64
	jobspecs.Event
}

// keptEvents is how many are held in memory.
const keptEvents = 5000

// batch is how long events may wait for their commit.
const batch = 500 * time.Millisecond

func newRecorder(s *store.Store, clock runtime.Clock, failed func(error)) (*recorder, error) {
	events, last, err := s.Events()
	if err != nil {
		return nil, err
	}
	r := &recorder{store: s, clock: clock, failed: failed, last: last, dirty: map[uint64]jobspecs.Event{}, bell: make(chan struct{})}
	for i, e := range events {
		if e.FirstTime.IsZero() { // stored before there was one
			e.FirstTime = e.Time
		}
		r.all = append(r.all, numbered{last - uint64(len(events)-1-i), e})
	}
	return r, nil
}

// record notes that something happened. The same trouble of the same member, or
// try of its hook, within an hour is counted, not repeated.
func (r *recorder) record(set jobspecs.Key, member, kind, reason, message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.Now().UTC()
	e := numbered{Event: jobspecs.Event{
		Time: now, Namespace: set.Namespace, Set: set.Name, Member: member,
		Type: kind, Reason: reason, Message: message, Count: 1, FirstTime: now,
	}}
	for i := len(r.all) - 1; i >= 0 && i >= len(r.all)-200; i-- {
		o := r.all[i]
		if o.Namespace == set.Namespace && o.Set == set.Name && (o.Reason == deleted || o.Reason == orphaned) {
			break // what was before happened to another set of that name
		}
		if o.Namespace == set.Namespace && o.Set == set.Name && o.Member == member && (kind == warning || reason == hookRuns) &&
			o.Reason == reason && o.Message == message && now.Sub(o.Time) < time.Hour {
			e.Count, e.FirstTime = o.Count+1, o.FirstTime
			e.n = o.n
			r.all = append(r.all[:i:i], r.all[i+1:]...)
			break
		}
	}
	if e.n == 0 {
		r.last++
		e.n = r.last
	}
	r.all = append(r.all, e)
	if len(r.all) > keptEvents {
		r.all = r.all[len(r.all)-keptEvents:]
	}
	r.dirty[e.n] = e.Event
	if r.counted != nil {
		r.counted(&e.Event)
	}
	close(r.bell)
	r.bell = make(chan struct{})
}

// list is every event in order of time, and a bell for the next.
func (r *recorder) list() ([]numbered, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]numbered(nil), r.all...), r.bell
}

// run writes batches until ctx ends, then the last one.
func (r *recorder) run(ctx context.Context) error {
	failing := false
	for {
		_, bell := r.list()
		if !r.pending() {
			select {
			case <-ctx.Done():
				return nil
			case <-bell:
			}
		}
		pause(ctx, batch)
		err := r.flush()
		if err != nil && !failing {
			r.failed(err)
		}
		failing = err != nil
		if failing && ctx.Err() != nil {
			return err
		}
		if failing { // a full disk, most likely: they are kept and tried again
			pause(ctx, lastRetry)
		}
	}
}

// pause waits, or less when ctx ends.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

func (r *recorder) pending() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.dirty) > 0
}

func (r *recorder) flush() error {
	r.mu.Lock()
	dirty := r.dirty
	r.dirty = map[uint64]jobspecs.Event{}
	r.mu.Unlock()
	err := r.store.PutEvents(dirty)
	if err == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for n, e := range dirty {
		if _, newer := r.dirty[n]; !newer {
			r.dirty[n] = e
		}
	}
	return err
}
