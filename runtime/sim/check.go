package sim

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime/pods"
)

// Check implements pods.Host.
func (h host) Check(ctx context.Context, t pods.Target, probe jobspecs.Probe) (said string, err error) {
	h.mu.Lock()
	var takes time.Duration
	if b, err := h.box(t.ID); err == nil {
		takes = b.image.program.CheckTime
	}
	h.mu.Unlock()
	if err := sleep(ctx, takes); err != nil {
		return "", late(target(probe), err)
	}
	err = h.call(ctx, "check", h.name(t.ID), func() error {
		b, err := h.box(t.ID)
		if err != nil {
			return err
		}
		said, err = h.answer(b, t, probe)
		return err
	})
	return said, late(target(probe), err)
}

// answer is what a probe gets to hear; w.mu is held.
func (w *World) answer(b *box, t pods.Target, probe jobspecs.Probe) (said string, err error) {
	switch {
	case b.c.State != "running":
		err = errors.New("container is " + b.c.State)
	case probe.Log != nil:
		err = b.wrote(t, probe.Log.Pattern)
	case len(probe.Exec) == 0 && !w.reachable(b, t):
		err = errors.New("no route to host")
	case b.sick != "":
		err = errors.New(b.sick)
	case b.image.program.Answer != nil:
		return b.said(probe), b.image.program.Answer(probe, time.Since(b.began))
	case !b.ready():
		err = errors.New("connection refused")
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", target(probe), err)
	}
	return b.said(probe), err
}

func (b *box) ready() bool {
	p := &b.image.program
	return !p.NeverReady && time.Since(b.began) >= p.ReadyAfter
}

// said is the first line of the output of an exec.
func (b *box) said(probe jobspecs.Probe) string {
	if len(probe.Exec) == 0 {
		return ""
	}
	return b.says
}

// wrote looks for a line since the last look, as it looks into a log that only
// grows.
func (b *box) wrote(t pods.Target, pattern string) error {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return err
	}
	since := t.Run
	if t.Since.After(since) {
		since = t.Since
	}
	for _, l := range b.lines {
		if !l.at.Before(since) && re.MatchString(l.text) {
			return nil
		}
	}
	return errors.New("no line matches")
}

// reachable tells whether an address leads to the container: its own, or that of
// the sandbox, as long as the very run of it lasts that the container joined.
func (w *World) reachable(b *box, t pods.Target) bool {
	if b.spec.Sandbox == "" {
		return t.Address == b.c.Address
	}
	sandbox := w.boxes[b.spec.Sandbox]
	return sandbox != nil && sandbox.c.Running() && sandbox.run == b.joined && t.Address == sandbox.c.Address
}

// late says what a time-out is to a person.
func late(what string, err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s: no answer in time", what)
	}
	return err
}

func target(p jobspecs.Probe) string {
	switch {
	case p.HTTP != nil:
		return fmt.Sprintf("http :%d%s", p.HTTP.Port, p.HTTP.Path)
	case p.TCP != nil:
		return fmt.Sprintf("tcp :%d", p.TCP.Port)
	case p.GRPC != nil:
		return strings.TrimRight(fmt.Sprintf("grpc :%d %s", p.GRPC.Port, p.GRPC.Service), " ")
	case p.Log != nil:
		return "log " + p.Log.Pattern
	}
	return "exec " + strings.Join(p.Exec, " ")
}
