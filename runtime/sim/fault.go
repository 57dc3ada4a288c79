package sim

import (
	"context"
	"errors"
	"slices"
	"time"
)

// When a fault strikes.
const (
	Before = iota // nothing has happened yet
	After         // it has happened, and the reply is lost
)

// Fault makes calls fail.
type Fault struct {
	// Verb is one of watch, list, inspect, create, start, stop, remove, rename,
	// image, pull, sandbox.image, check, hook, scratch.remove, volume.list,
	// volume.create, volume.delete. Empty: any.
	Verb string
	// Name of the container, image or volume. Empty: any.
	Name string
	// When is Before or After.
	When int
	// Times is how many calls fail. Zero: one; negative: all, until Mend.
	Times int
	// Err is what they fail with. Nil: an error that says so.
	Err error
}

// errInjected is the error of a Fault without one.
var errInjected = errors.New("injected fault")

// Fail lets calls fail from now on.
func (w *World) Fail(f Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if f.Times == 0 {
		f.Times = 1
	}
	if f.Err == nil {
		f.Err = errInjected
	}
	w.faults = append(w.faults, &f)
}

// Mend ends all faults and latencies.
func (w *World) Mend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults = nil
	clear(w.latency)
}

// Latency makes every call of a verb take d longer, "" for all verbs.
func (w *World) Latency(verb string, d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.latency[verb] = d
}

// strikes is the error of the first fault that fits; w.mu is held.
func (w *World) strikes(verb, name string, when int) error {
	for i, f := range w.faults {
		if f.When != when || f.Verb != "" && f.Verb != verb || f.Name != "" && f.Name != name {
			continue
		}
		if f.Times--; f.Times == 0 {
			w.faults = slices.Delete(w.faults, i, i+1)
		}
		return f.Err
	}
	return nil
}

// Call is one write that was asked of the host.
type Call struct {
	At   time.Time
	Verb string
	Name string // of the container, image, volume or pod
	Err  string // what the caller was told

	Signal string        // of a stop
	Grace  time.Duration // of a stop
}

// String is "create web-0".
func (c Call) String() string { return c.Verb + " " + c.Name }

// Writes are the calls so far that change something, in order, whatever came of
// them.
func (w *World) Writes() []Call {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.calls)
}

// WritesSince counts those that are not older than a moment.
func (w *World) WritesSince(t time.Time) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for k := len(w.calls) - 1; k >= 0 && w.calls[k].At.After(t); k-- {
		n++
	}
	return n
}

// Reads counts the other calls, checks among them.
func (w *World) Reads() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reads
}

// Forget empties Writes and Reads.
func (w *World) Forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls, w.reads = nil, 0
}

func isRead(verb string) bool {
	switch verb {
	case "watch", "list", "inspect", "image", "sandbox.image", "check", "volume.list", "volume.inspect":
		return true
	}
	return false
}

// call is the way of every call: latency, reachability, faults, the effect, the
// log. It is what one sees of a connection. f runs with w.mu held.
func (w *World) call(ctx context.Context, verb, name string, f func() error) error {
	return w.logged(ctx, Call{Verb: verb, Name: name}, f)
}

func (w *World) logged(ctx context.Context, c Call, f func() error) error {
	if err := w.travel(ctx, c.Verb); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	err := w.effect(ctx, c.Verb, c.Name, f)
	w.log(c, err)
	return err
}

// travel is the way to the host.
func (w *World) travel(ctx context.Context, verb string) error {
	w.mu.Lock()
	delay := w.latency[verb] + w.latency[""]
	w.mu.Unlock()
	return sleep(ctx, delay)
}

// log notes a call and what came of it; w.mu is held.
func (w *World) log(c Call, err error) {
	if isRead(c.Verb) {
		w.reads++
		return
	}
	c.At = time.Now()
	if err != nil {
		c.Err = err.Error()
	}
	w.calls = append(w.calls, c)
}

func (w *World) effect(ctx context.Context, verb, name string, f func() error) error {
	if err := w.reached(ctx, verb, name); err != nil {
		return err
	}
	if err := f(); err != nil {
		return err
	}
	return w.strikes(verb, name, After)
}

// reached tells whether a call comes to the host; w.mu is held.
func (w *World) reached(ctx context.Context, verb, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if w.down {
		return errDown
	}
	return w.strikes(verb, name, Before)
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
