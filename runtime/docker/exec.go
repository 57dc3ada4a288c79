package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/pkg/stdcopy"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

// Exec runs a command in a pod. When ctx ends the command is killed.
func (h *Host) Exec(ctx context.Context, name runtime.PodName, o runtime.ExecOptions) (int, error) {
	id, err := h.find(ctx, name, o.Container, false)
	if err != nil {
		return 0, err
	}
	options := container.ExecOptions{
		Cmd: o.Command, Env: envOf(o.Env), Tty: o.TTY,
		AttachStdin: o.Stdin != nil, AttachStdout: true, AttachStderr: true,
	}
	code, err := h.execOnce(ctx, id, once{name: o.Once}, options, streams{stdin: o.Stdin, stdout: o.Stdout, stderr: o.Stderr, resize: o.Resize})
	if errors.Is(err, runtime.ErrNotRunning) || errors.Is(err, runtime.ErrNotFound) {
		return 0, h.explainStopped(ctx, name, id, err)
	}
	return code, err
}

// execError tells a container that does not run from other reasons.
func execError(err error) error {
	switch {
	case isNotFound(err):
		return absent("the container is gone")
	case contains(err.Error(), "is paused"):
		return notRunning("the container is paused")
	case contains(err.Error(), "is not running", "is restarting", "in a stopped ", "that has stopped"):
		return notRunning("the container is not running")
	}
	return engineError(err)
}

// notRunning is runtime.ErrNotRunning that says why.
type notRunning string

func (n notRunning) Error() string        { return string(n) }
func (n notRunning) Is(target error) bool { return target == runtime.ErrNotRunning }

// explainStopped says of a container in which nothing can be run how it is now.
func (h *Host) explainStopped(ctx context.Context, pod runtime.PodName, id string, cause error) error {
	who := pod.Namespace + "/" + pod.Name
	c, err := h.cli().ContainerInspect(ctx, id)
	if isNotFound(err) {
		return absent(who + ": the container is gone")
	}
	if err != nil {
		return fmt.Errorf("%s: %w", who, cause)
	}
	return notRunning(fmt.Sprintf("%s: container %q %s", who, c.Config.Labels[jobspecs.LabelContainer], stateText(c.State)))
}

// stateText says why nothing can be run in a container.
func stateText(s *container.State) string {
	switch s.Status {
	case container.StateCreated:
		return "is not running: it was not started yet"
	case container.StatePaused:
		return "is paused"
	case container.StateExited, container.StateDead:
		return fmt.Sprintf("is not running: it ended with exit code %d", s.ExitCode)
	}
	return "is not running: the engine calls it " + s.Status
}

// streams are the ends of a command; each may be nil.
type streams struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	resize         <-chan [2]uint            // rows, columns
	begins         func(execID string) error // called before it is started

	// unwatched is a command whose end counts and not that of its output: what it
	// left in the background may hold the output for ever.
	unwatched bool
}

// exec runs a command to its end and returns its exit code.
func (h *Host) exec(ctx context.Context, id string, o container.ExecOptions, s streams) (int, error) {
	made, err := h.cli().ContainerExecCreate(ctx, id, o)
	if err != nil {
		return 0, execError(err)
	}
	if s.begins != nil {
		if err := s.begins(made.ID); err != nil {
			return 0, err
		}
	}
	conn, err := h.cli().ContainerExecAttach(ctx, made.ID, container.ExecAttachOptions{Tty: o.Tty})
	if err != nil {
		if ctx.Err() != nil { // it may have been started
			h.killExec(ctx, made.ID)
		}
		return 0, execError(err)
	}
	err = h.carry(ctx, made.ID, conn, o.Tty, s)
	if ctx.Err() != nil {
		h.killExec(ctx, made.ID)
		return 0, ctx.Err()
	}
	if err != nil {
		return 0, err
	}
	return h.exitCode(ctx, made.ID)
}

// carry moves bytes until the command's output ends.
func (h *Host) carry(ctx context.Context, execID string, conn types.HijackedResponse, tty bool, s streams) error {
	var helpers sync.WaitGroup
	defer helpers.Wait()
	defer conn.Close()
	stop := context.AfterFunc(ctx, conn.Close)
	defer stop()
	done := make(chan struct{})
	defer close(done)
	var over atomic.Bool
	if s.unwatched {
		helpers.Go(func() {
			if h.awaitExit(ctx, execID, done) {
				over.Store(true)
				conn.Close()
			}
		})
	}
	if s.resize != nil {
		helpers.Go(func() { h.resize(ctx, execID, s.resize, done) })
	}
	if s.stdin != nil {
		// Not waited for: nobody can interrupt a read of the caller's stdin. It ends
		// with the next byte, or when the caller closes it.
		go func() {
			_, _ = io.Copy(conn.Conn, s.stdin)
			if !tty { // the engine would close the terminal's output with it
				_ = conn.CloseWrite()
			}
		}()
	}
	err := copyOutput(conn.Reader, tty, s)
	if over.Load() {
		return nil
	}
	return err
}

// awaitExit tells when a command has ended although its output has not, some
// moments later, in which what it said last arrives. It is false when done closes
// first. An engine answers an attach before it starts the command, which then has
// no pid and does not run either.
func (h *Host) awaitExit(ctx context.Context, execID string, done <-chan struct{}) bool {
	ran := false
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		if !sleep(wait, done) {
			return false
		}
		e, err := h.cli().ContainerExecInspect(ctx, execID)
		ran = ran || err == nil && (e.Running || e.Pid > 0)
		if err == nil && ran && !e.Running {
			return sleep(100*time.Millisecond, done)
		}
	}
}

// sleep is false when done closes first.
func sleep(d time.Duration, done <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-done:
		return false
	}
}

func copyOutput(r io.Reader, tty bool, s streams) error {
	stdout, stderr := orDiscard(s.stdout), orDiscard(s.stderr)
	if tty {
		_, err := io.Copy(stdout, r)
		return err
	}
	_, err := stdcopy.StdCopy(stdout, stderr, r)
	return err
}

func orDiscard(w io.Writer) io.Writer {
	if w == nil {
		return io.Discard
	}
	return w
}

func (h *Host) resize(ctx context.Context, execID string, sizes <-chan [2]uint, done <-chan struct{}) {
	for {
		select {
		case size, ok := <-sizes:
			if !ok {
				return
			}
			// A size that comes too early or too late is of no use to anybody.
			_ = h.cli().ContainerExecResize(ctx, execID, container.ResizeOptions{Height: size[0], Width: size[1]})
		case <-done:
			return
		}
	}
}

// exitCode waits for the engine to notice the end of a command whose output has
// ended: usually it has.
func (h *Host) exitCode(ctx context.Context, execID string) (int, error) {
	for wait := time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		e, err := h.cli().ContainerExecInspect(ctx, execID)
		if err != nil {
			return 0, engineError(err)
		}
		if !e.Running {
			return e.ExitCode, nil
		}
		if !sleep(wait, ctx.Done()) {
			h.killExec(ctx, execID)
			return 0, ctx.Err()
		}
	}
}
