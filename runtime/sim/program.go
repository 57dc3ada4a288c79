package sim

import (
	"fmt"
	"time"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime/pods"
)

// Program is what an image does. The zero one runs until it is stopped, answers
// every probe from its start, does its hooks at once, and ends at once, with 0,
// when it is told to.
type Program struct {
	// Remote images are not on the host until they are pulled.
	Remote bool
	// PullTime is how long that takes.
	PullTime time.Duration
	// PullError is what pulling it fails with; nil: nothing.
	PullError error
	// Password is the one that the registry wants for it. Empty: none.
	Password string
	// Platform is what it was built for. Default: "linux/amd64", the host's.
	Platform string
	// User is the image's USER.
	User string

	// StartDelay is how long Start takes.
	StartDelay time.Duration
	// StartError is what Start fails with; nil: nothing.
	StartError error
	// ReadyAfter is when it begins to answer probes, counted from its start.
	ReadyAfter time.Duration
	// NeverReady answers no probe.
	NeverReady bool
	// ExitAfter is when it ends by itself; zero: never. Nothing is as short as a
	// nanosecond.
	ExitAfter time.Duration
	// ExitCode is what it ends with by itself.
	ExitCode int
	// Failures is how many runs of one container name end with ExitCode; those
	// that follow end with 0. Zero: all of them.
	Failures int
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
	// the time since the start. A log probe reads the output instead.
	Answer func(probe jobspecs.Probe, up time.Duration) error
	// Says is the first line that an exec probe prints. World.Say changes it.
	Says string
	// LogLine is a line of its output. Empty: none.
	LogLine string
	// LogAfter is when it writes LogLine, counted from its start.
	LogAfter time.Duration
	// Healthcheck is the image's HEALTHCHECK as an argv.
	Healthcheck []string
	// Exec replaces the few commands that Engine.Exec knows.
	Exec func(member string, argv []string) (output string, code int)
	// ExecTime is how long such a command takes.
	ExecTime time.Duration

	// PostStartTime is how long its post_start hook takes, where it is no sleep.
	// Negative: until somebody ends it.
	PostStartTime time.Duration
	// PostStartError is what the hook fails with; nil: nothing.
	PostStartError error
	// PreStopTime is how long its pre_stop hook takes, where it is no sleep.
	// Negative: until somebody ends it.
	PreStopTime time.Duration
	// PreStopError is what the hook fails with; nil: nothing.
	PreStopError error
	// Hook replaces these four: what a hook that is no sleep takes, and what it
	// fails with.
	Hook func(pods.Hook) (takes time.Duration, err error)
}

// exitCode is what the given run, from 1, ends with by itself.
func (p *Program) exitCode(run int) int {
	if p.Failures > 0 && run > p.Failures {
		return 0
	}
	return p.ExitCode
}

func problem(reason, format string, args ...any) error {
	return &pods.Problem{Reason: reason, Message: fmt.Sprintf(format, args...)}
}
