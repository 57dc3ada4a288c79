package daemon

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stsd/stsd/daemon/planner"
	"github.com/stsd/stsd/daemon/store"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/volumes"
)

// loop owns one set. Everything but kick and the published snapshot is touched
// by its goroutine alone.
type loop struct {
	d    *Daemon
	key  jobspecs.Key
	bell chan struct{}

	seen    snapshotBox // for readers
	failing map[failureKey]failure
	noted   map[int]runtime.Note   // the last one recorded, by ordinal
	met     bool                   // its pods were seen since the loop began
	since   map[int]readiness      // see overlay
	made    map[int]planner.Member // as this process stored them; see inTime
	cache   renderings
	logged  string                  // the last plan that was logged
	gen     int64                   // generation of the last look
	fills   map[string]volumes.Fill // that was told of, by volume

	hooks   map[hookKey]*hookRun                  // that go on or are not taken over yet
	hooking sync.WaitGroup                        // their goroutines
	heeds   atomic.Pointer[map[jobspecs.Key]bool] // sets whose changes matter to it

	given  []string // sensitive texts that the set has, of this generation
	unsaid []string // they and what was made of them, as hcl.Scrub takes it
	owes   bool     // pods do not have the credentials of this generation yet
}

// failure is an engine call that failed; it is tried again at until.
type failure struct {
	err   error
	tries int
	until time.Time
}

// snapshot is what readers see of a set.
type snapshot struct {
	status jobspecs.Status
	plan   planner.Plan
}

// snapshotBox is an immutable snapshot and a bell that rings when it changes.
type snapshotBox struct {
	value atomic.Pointer[snapshot]
	mu    sync.Mutex
	bell  chan struct{} // closed at the next change
	gone  bool
}

func (b *snapshotBox) get() *snapshot { return b.value.Load() }

// changed is closed when the snapshot is replaced; gone tells that none follows.
func (b *snapshotBox) changed() (bell <-chan struct{}, gone bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bell, b.gone
}

func (b *snapshotBox) put(s *snapshot) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.value.Store(s)
	close(b.bell)
	b.bell = make(chan struct{})
}

func (b *snapshotBox) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.gone {
		b.gone = true
		close(b.bell)
	}
}

func newLoop(d *Daemon, key jobspecs.Key) *loop {
	l := &loop{d: d, key: key, bell: make(chan struct{}, 1), failing: map[failureKey]failure{}, hooks: map[hookKey]*hookRun{}, since: map[int]readiness{}, made: map[int]planner.Member{}}
	l.seen.bell = make(chan struct{})
	return l
}

// kick makes the loop look again; kicks that come faster than it looks are one.
func (l *loop) kick() {
	select {
	case l.bell <- struct{}{}:
	default:
	}
}

// Bounds of the wait after a failed look or action.
const (
	firstRetry = 200 * time.Millisecond
	lastRetry  = 30 * time.Second
)

// run is look → decide → act, then sleep until a kick, the plan's wake-up or
// the end of a back-off.
func (l *loop) run(ctx context.Context) {
	defer l.seen.close()
	ctx, cancel := context.WithCancel(ctx)
	defer l.hooking.Wait()
	defer cancel()
	l.await(ctx)
	blind := 0 // looks that failed in a row
	for ctx.Err() == nil {
		wake, again, err := l.once(ctx)
		switch {
		case errors.Is(err, store.ErrNotFound):
			l.end()
			return
		case err != nil:
			blind++
			l.blind(err, blind)
			wake = l.d.now().Add(backoff(blind))
		default:
			blind = 0
		}
		if again && err == nil {
			continue
		}
		l.sleep(ctx, wake)
	}
}

// once is one turn. again tells that something was done or learned, so that the
// world is another one now.
func (l *loop) once(ctx context.Context) (wake time.Time, again bool, err error) {
	start := time.Now()
	s, err := l.look(ctx)
	l.d.metrics.looked(err)
	if err != nil {
		return time.Time{}, false, err
	}
	l.d.metrics.took(stepLook, start)
	wake, again, err = l.turn(ctx, s)
	if err != nil && l.d.names != nil { // it could not be stored, and was seen all the same
		l.d.names.put(l.key, l.d.namesOf(&s, planner.Plan{}))
	}
	return wake, again, err
}

// turn decides on what was seen, and does it. An error is one of the store: nothing
// was done.
func (l *loop) turn(ctx context.Context, s sight) (wake time.Time, again bool, err error) {
	m := l.d.metrics
	if news, err := l.harvest(&s); err != nil || news {
		return time.Time{}, news, err
	}
	start := time.Now()
	plan := planner.Next(s.world)
	m.took(stepDecide, start)
	if s.view.Record.Lost && s.world.Deleting == nil {
		plan.Actions = nil // not even what ended is cleared away: its labels are all that is known
	}
	if plan.Failed != nil && s.world.RollsBack() {
		return time.Time{}, true, l.rollBack(ctx, &s, plan.Failed)
	}
	learned, err := l.learn(s, plan)
	if err != nil {
		return time.Time{}, false, err
	}
	if plan.Gone {
		return time.Time{}, true, l.finish(s)
	}
	l.tellHooks(&s, &plan)
	l.tell(s, plan)
	start = time.Now()
	did, retry := l.act(ctx, s, plan)
	m.took(stepAct, start)
	l.hand(ctx, &s)
	return earliest(plan.Wake, retry), did || learned, nil
}

// await waits for the engine's first answer, or for its first refusal: until then it
// cannot be said to be out of reach. An engine hints at both.
func (l *loop) await(ctx context.Context) {
	for errors.Is(l.d.Ready(), runtime.ErrConnecting) && l.d.now().Before(l.d.patientUntil()) && ctx.Err() == nil {
		l.sleep(ctx, l.d.patientUntil())
	}
}

func (l *loop) sleep(ctx context.Context, wake time.Time) {
	alarm, stop := timer(wake, l.d.now())
	defer stop()
	select {
	case <-ctx.Done():
	case <-l.bell:
	case <-alarm:
	}
}

// end says good-bye to a set that is no longer stored.
func (l *loop) end() {
	l.d.parts.Engine.Release(l.key) // of an orphaned set; what this turn handed over too
	l.d.forget(l)
	l.d.usage.watch(l.key, nil)
	l.d.kickFollowers(l.key)
	if l.d.names != nil {
		l.d.names.drop(l.key)
	}
	l.d.revive(l.key)
}

// blind tells that the world could not be seen: nothing is known, nothing is done.
func (l *loop) blind(err error, tries int) {
	if tries == 1 {
		l.d.log.Warn("look", "set", l.key.String(), "error", err)
	}
	l.tellBlind(err)
}

// finish forgets a set of which nothing is left.
func (l *loop) finish(s sight) error {
	var keep store.Kept
	for name, v := range s.world.Volumes {
		keep.Volumes = append(keep.Volumes, name)
		keep.Members = append(keep.Members, jobspecs.MemberName(l.key.Name, v.Ordinal))
	}
	if err := l.d.store.Delete(l.key, keep); err != nil {
		return err
	}
	l.d.events.record(l.key, "", normal, deleted, "the set is deleted")
	l.d.log.Info("deleted", "set", l.key.String())
	return nil
}

func backoff(tries int) time.Duration {
	d := firstRetry << min(tries-1, 12)
	return min(d, lastRetry)
}

func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
