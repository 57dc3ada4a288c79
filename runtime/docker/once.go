package docker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"
)

// A command of a hook goes on when stsd is killed. The engine knows it by the id of
// its exec, which is kept in a file of the pod's folder as long as it runs: a daemon
// that comes back waits for that one instead of beginning another beside it.

// once names a command that does not run beside itself. The zero value is one that
// may.
type once struct {
	name  string
	lasts bool // nor after itself, as long as the engine remembers how it ended
}

// execOnce is exec of such a command: one of this name that was begun before is waited
// for, and its exit code is the answer. What it printed until then is lost. Where no
// folder outlives us, it is plain exec.
func (h *Host) execOnce(ctx context.Context, id string, as once, o container.ExecOptions, s streams) (int, error) {
	mark := h.execMark(id, as.name, o.Cmd)
	if mark == "" {
		return h.exec(ctx, id, o, s)
	}
	execID, _ := os.ReadFile(mark) // none is the rule
	if h.execBegan(ctx, string(execID)) {
		code, err := h.awaitExec(ctx, string(execID))
		if as.lasts {
			return code, err
		}
		return code, errors.Join(err, h.unmark(ctx, mark, string(execID), err))
	}
	begun := ""
	s.begins = func(execID string) error {
		begun = execID
		return h.markExec(id, mark, execID)
	}
	code, err := h.exec(ctx, id, o, s)
	if as.lasts && begun != "" {
		return code, err
	}
	return code, errors.Join(err, h.unmark(ctx, mark, begun, err))
}

// execMark is the file of a command that is run once at a time; "": there is none.
func (h *Host) execMark(id, name string, command []string) string {
	dir := h.startedFolder(id)
	if dir == "" || name == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(name + "\x00" + strings.Join(command, "\x00")))
	return filepath.Join(dir, id+"."+hex.EncodeToString(sum[:8]))
}

func (h *Host) markExec(id, mark, execID string) error {
	if err := h.markFolder(h.startedFolder(id)); err != nil {
		return fmt.Errorf("remember the hook: %w", err)
	}
	if err := os.WriteFile(mark, []byte(execID), 0o600); err != nil {
		return fmt.Errorf("remember the hook: %w", err)
	}
	return nil
}

// unmark forgets a command that has ended. One of which that is not known, since the
// engine did not answer, is asked for again.
func (h *Host) unmark(ctx context.Context, mark, execID string, err error) error {
	if err != nil && execID != "" && (ctx.Err() == nil || !h.execEnded(ctx, execID)) {
		return nil
	}
	if err := os.Remove(mark); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("forget the hook: %w", err)
	}
	return nil
}

// execBegan tells whether a command runs, or did. One that was made and never started
// has no pid.
func (h *Host) execBegan(ctx context.Context, execID string) bool {
	if execID == "" {
		return false
	}
	e, err := h.cli().ContainerExecInspect(ctx, execID)
	return err == nil && (e.Running || e.Pid > 0)
}

// execEnded waits some seconds for the engine to notice that a command was killed.
func (h *Host) execEnded(ctx context.Context, execID string) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, 500*time.Millisecond) {
		e, err := h.cli().ContainerExecInspect(ctx, execID)
		if isNotFound(err) || err == nil && !e.Running {
			return true
		}
		if !sleep(wait, ctx.Done()) {
			return false
		}
	}
}

// awaitExec waits for the end of a command that somebody else began. When ctx ends
// the command is killed.
func (h *Host) awaitExec(ctx context.Context, execID string) (int, error) {
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		e, err := h.cli().ContainerExecInspect(ctx, execID)
		switch {
		case ctx.Err() != nil:
			h.killExec(ctx, execID)
			return 0, ctx.Err()
		case err != nil:
			return 0, execError(err)
		case !e.Running:
			return e.ExitCode, nil
		}
		sleep(wait, ctx.Done())
	}
}
