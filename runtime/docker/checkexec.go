package docker

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"
)

// checkExec runs a probe's command in the container. How many begin at once on the
// host is the caller's to bound; one that outlives ctx is killed.
func (h *Host) checkExec(ctx context.Context, id string, command []string) (said string, err error) {
	return h.runExec(ctx, id, once{}, command, nil)
}

// runExec runs a command that nobody watches, and returns the first line that it
// printed. An error carries its last line.
func (h *Host) runExec(ctx context.Context, id string, as once, command []string, env map[string]string) (said string, err error) {
	var first head
	var out tail
	code, err := h.execOnce(ctx, id, as,
		container.ExecOptions{Cmd: command, Env: envOf(env), AttachStdout: true, AttachStderr: true},
		streams{stdout: both{&first, &out}, stderr: &out, unwatched: true})
	switch line := commandError(out.lastLine()); {
	case ctx.Err() != nil:
		return "", fmt.Errorf("%s: %w", execTitle(command), cause(ctx, ctx.Err()))
	case err != nil:
		return "", fmt.Errorf("%s: %w", execTitle(command), err)
	case code != 0 && line != "":
		return first.line(), fmt.Errorf("%s: exit code %d: %s", execTitle(command), code, line)
	case code != 0:
		return first.line(), fmt.Errorf("%s: exit code %d", execTitle(command), code)
	}
	return first.line(), nil
}

func execTitle(command []string) string { return "exec " + shorten(strings.Join(command, " "), 2000) }

// envOf is an environment as the engine takes it, sorted.
func envOf(env map[string]string) []string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, name+"="+env[name])
	}
	return list
}
