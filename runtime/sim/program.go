package sim

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime/pods"
)

// Program is what an image does. The zero one runs until it is stopped, answers
// every probe from its start, and ends at once, with 0, when it is told to.
type Program struct {
	// Remote images are not on the host until they are pulled.
	Remote bool
	// PullTime is how long that takes.
	PullTime time.Duration
	// PullError is what pulling it fails with; nil: nothing.
	PullError error

	// StartDelay is how long Start takes.
	StartDelay time.Duration
	// StartError is what Start fails with; nil: nothing.
	StartError error
	// ReadyAfter is when it begins to answer probes, counted from its start.
	ReadyAfter time.Duration
	// NeverReady answers no probe.
	NeverReady bool
	// ExitAfter is when it ends by itself; zero: never.
	ExitAfter time.Duration
	// ExitCode is what it ends with by itself.
	ExitCode int
	// OOM says that it ends by itself because it ran out of memory.
	OOM bool

	// IgnoresTerm runs on until it is killed.
	IgnoresTerm bool
	// TermTime is how long it takes to end after the stop signal.
	TermTime time.Duration
	// TermCode is what it ends with after the stop signal.
	TermCode int

	// CheckTime is how long a probe takes.
	CheckTime time.Duration
	// Answer replaces ReadyAfter and NeverReady: it is asked by every probe, with
	// the time since the start.
	Answer func(probe jobspecs.Probe, up time.Duration) error
	// Healthcheck is the image's HEALTHCHECK as an argv.
	Healthcheck []string
	// Exec replaces the few commands that Engine.Exec knows.
	Exec func(member string, argv []string) (output string, code int)
}

// image is one name in the local store or the registry.
type image struct {
	id      string
	program Program
	local   bool
	version int
}

// Program registers an image, and moves its name when it has one already.
func (w *World) Program(ref string, p Program) {
	w.mu.Lock()
	defer w.mu.Unlock()
	version := 1
	if old := w.images[ref]; old != nil {
		version = old.version + 1
	}
	im := &image{id: fmt.Sprintf("sha256:%s@%d", ref, version), program: p, local: !p.Remote, version: version}
	w.images[ref] = im
	w.ids[im.id] = im
}

// RemoveImage takes an image from the local store; the registry keeps it.
func (w *World) RemoveImage(ref string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if im := w.images[ref]; im != nil {
		im.local = false
	}
}

func (w *World) image(ref string) *image {
	if im := w.images[ref]; im != nil {
		return im
	}
	return w.ids[ref]
}

// answer is what the program says to a probe.
func (p *Program) answer(probe jobspecs.Probe, up time.Duration, sick string) error {
	text := "connection refused"
	switch {
	case sick != "":
		text = sick
	case p.Answer != nil:
		return p.Answer(probe, up)
	case !p.NeverReady && up >= p.ReadyAfter:
		return nil
	}
	return errors.New(target(probe) + ": " + text)
}

func target(p jobspecs.Probe) string {
	switch {
	case p.HTTP != nil:
		return fmt.Sprintf("http :%d%s", p.HTTP.Port, p.HTTP.Path)
	case p.TCP != nil:
		return fmt.Sprintf("tcp :%d", p.TCP.Port)
	}
	return "exec " + strings.Join(p.Exec, " ")
}

func problem(reason, format string, args ...any) error {
	return &pods.Problem{Reason: reason, Message: fmt.Sprintf(format, args...)}
}
