package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime/pods"
)

// HookCall is one lifecycle hook that was begun.
type HookCall struct {
	Began, Ended time.Time // Ended is zero while it goes on
	Kind         string    // pods.PostStart, pods.PreStop
	Container    string    // its name
	Handler      jobspecs.Handler
	Env          map[string]string
	Err          string // what it failed with
}

// String is "pre_stop web-0 (update)": the reason is the one it was given.
func (c HookCall) String() string {
	return fmt.Sprintf("%s %s (%s)", c.Kind, c.Container, c.Env["STSD_REASON"])
}

// Hooks are the hooks so far, in the order in which they began.
func (w *World) Hooks() []HookCall {
	w.mu.Lock()
	defer w.mu.Unlock()
	var list []HookCall
	for _, c := range w.hooks {
		list = append(list, *c)
	}
	return list
}

// hooking is a hook that goes on.
type hooking struct {
	*HookCall
	box   *box
	run   int
	ended chan struct{} // of the container
	takes time.Duration // negative: for ever
	fails error
}

// Hook implements pods.Host. As at Docker the end of the container ends what runs
// in it, but no sleep.
func (h host) Hook(ctx context.Context, t pods.Target, hook pods.Hook) error {
	call := Call{Verb: "hook", Name: h.name(t.ID)}
	if err := h.travel(ctx, call.Verb); err != nil {
		return err
	}
	g, err := h.beginHook(ctx, call.Name, t, hook)
	if err == nil {
		err = g.last(ctx)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if g != nil {
		err = h.endHook(g, err)
	}
	h.log(call, err)
	return err
}

func (w *World) beginHook(ctx context.Context, name string, t pods.Target, hook pods.Hook) (*hooking, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.reached(ctx, "hook", name); err != nil {
		return nil, err
	}
	b, err := w.box(t.ID)
	if err != nil {
		return nil, err
	}
	if b.c.State != "running" {
		return nil, fmt.Errorf("%s: container is %s", deed(hook.Handler), b.c.State)
	}
	c := &HookCall{Began: time.Now(), Kind: hook.Kind, Container: b.c.Name, Handler: hook.Handler, Env: maps.Clone(hook.Env)}
	w.hooks = append(w.hooks, c)
	g := &hooking{HookCall: c, box: b, run: b.run, ended: b.ended}
	p := &b.image.program
	switch {
	case hook.Handler.Sleep > 0:
		g.takes, g.ended = hook.Handler.Sleep, nil
	case p.Hook != nil:
		g.takes, g.fails = p.Hook(hook)
	case hook.Kind == pods.PostStart:
		g.takes, g.fails = p.PostStartTime, p.PostStartError
	default:
		g.takes, g.fails = p.PreStopTime, p.PreStopError
	}
	return g, nil
}

// last lets the hook do its work.
func (g *hooking) last(ctx context.Context) error {
	var over <-chan time.Time
	if g.takes >= 0 {
		t := time.NewTimer(g.takes)
		defer t.Stop()
		over = t.C
	}
	select {
	case <-over:
		return g.fails
	case <-g.ended:
		return errors.New("the container ended")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// endHook notes what came of a hook, and what of it the caller is told; w.mu is
// held.
func (w *World) endHook(g *hooking, err error) error {
	g.Ended = time.Now()
	if err == nil && g.Kind == pods.PostStart && g.box.run == g.run {
		g.box.c.PostStarted = true
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("%s: it did not end in time", deed(g.Handler))
	case err != nil:
		err = fmt.Errorf("%s: %w", deed(g.Handler), err)
	}
	if err != nil {
		g.Err = err.Error()
	}
	switch {
	case w.down:
		return errDown
	case err == nil:
		return w.strikes("hook", g.Container, After)
	}
	return err
}

// deed is what a handler does, for people.
func deed(h jobspecs.Handler) string {
	switch {
	case h.HTTP != nil:
		return fmt.Sprintf("http :%d%s", h.HTTP.Port, h.HTTP.Path)
	case h.Sleep > 0:
		return "sleep " + h.Sleep.String()
	}
	return "exec " + strings.Join(h.Exec, " ")
}
