package sim

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

// What users see of a pod from inside.

// inside finds a container of a pod by the name of its block, "" for the one that
// has the pod's own name; w.mu is held.
func (w *World) inside(pod runtime.PodName, container string, previous bool) (*box, error) {
	if container == "" {
		return w.first(pod, previous)
	}
	var there []string
	for _, name := range slices.Sorted(maps.Keys(w.names)) {
		b := w.names[name]
		if w.pod(b) != pod || b.spec.Main.Kind == jobspecs.KindSandbox || strings.HasSuffix(name, "_"+jobspecs.PartPrevious) != previous {
			continue
		}
		if b.spec.Main.Name == container {
			return b, nil
		}
		there = append(there, b.spec.Main.Name)
	}
	if len(there) == 0 {
		return nil, runtime.ErrNotFound
	}
	return nil, fmt.Errorf("pod %s has no container %s, but %s: %w", pod.Name, container, strings.Join(there, ", "), runtime.ErrNotFound)
}

// first is the container that has the pod's own name, or the only main where somebody
// renamed it; w.mu is held.
func (w *World) first(pod runtime.PodName, previous bool) (*box, error) {
	part := ""
	if previous {
		part = jobspecs.PartPrevious
	}
	var mains []*box
	for _, id := range slices.Sorted(maps.Keys(w.boxes)) {
		b := w.boxes[id]
		switch {
		case b.c.Labels[jobspecs.LabelDaemon] != w.daemon || w.pod(b) != pod:
		case b.c.Name == jobspecs.ContainerName(pod.Namespace, pod.Name, part):
			return b, nil
		case b.c.Labels[jobspecs.LabelKind] == jobspecs.KindMain && !strings.HasSuffix(b.c.Name, "_"+jobspecs.PartPrevious):
			mains = append(mains, b)
		}
	}
	if len(mains) != 1 || previous {
		return nil, runtime.ErrNotFound
	}
	return mains[0], nil
}

// Logs implements runtime.Logs. A follower's end by ctx is no error.
func (e Engine) Logs(ctx context.Context, name runtime.PodName, o runtime.LogOptions, stdout, _ io.Writer) error {
	w := e.World
	w.mu.Lock()
	b, err := w.inside(name, o.Container, o.Previous)
	if err != nil {
		w.mu.Unlock()
		return err
	}
	lines := wanted(b.lines, o)
	for at := len(b.lines); ; {
		more := b.more(o.Follow)
		w.mu.Unlock()
		for _, l := range lines {
			if _, err := fmt.Fprintln(stdout, l.shown(o.Timestamps)); err != nil {
				return err
			}
		}
		if more == nil {
			return nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return nil
		}
		w.mu.Lock()
		lines, at = slices.Clone(b.lines[at:]), len(b.lines)
	}
}

// more is closed by the next line; nil: nobody waits for one. w.mu is held.
func (b *box) more(follow bool) <-chan struct{} {
	if !follow || !b.c.Running() {
		return nil
	}
	if b.grown == nil {
		b.grown = make(chan struct{})
	}
	return b.grown
}

// wanted are the lines that were asked for.
func wanted(all []line, o runtime.LogOptions) (lines []line) {
	for _, l := range all {
		if !l.at.Before(o.Since) {
			lines = append(lines, l)
		}
	}
	if n, err := strconv.Atoi(o.Tail); err == nil && n >= 0 && n < len(lines) {
		lines = lines[len(lines)-n:]
	}
	return lines
}

func (l line) shown(timestamp bool) string {
	if timestamp {
		return l.at.UTC().Format(time.RFC3339Nano) + " " + l.text
	}
	return l.text
}

// Exec implements runtime.Execs: true, false, hostname, echo, or what the program
// brings.
func (e Engine) Exec(ctx context.Context, name runtime.PodName, o runtime.ExecOptions) (int, error) {
	run, takes, err := e.World.shell(name, o.Container)
	if err != nil {
		return 0, err
	}
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(takes):
	}
	output, code := run(name.Name, o.Command)
	e.World.noteExec(name, o, code)
	if o.Stdout == nil {
		return code, nil
	}
	_, err = io.WriteString(o.Stdout, output)
	return code, err
}

// ExecCall is one command that was run in a container for somebody.
type ExecCall struct {
	At      time.Time
	Pod     runtime.PodName
	Command []string
	Env     map[string]string
	Code    int
}

// Execs are the commands so far, in their order; probes are none of them.
func (w *World) Execs() []ExecCall {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.execs)
}

func (w *World) noteExec(name runtime.PodName, o runtime.ExecOptions, code int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.execs = append(w.execs, ExecCall{At: time.Now(), Pod: name, Command: slices.Clone(o.Command), Env: maps.Clone(o.Env), Code: code})
}

// shell is what runs commands in a container that runs.
func (w *World) shell(pod runtime.PodName, container string) (run func(string, []string) (string, int), takes time.Duration, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	b, err := w.inside(pod, container, false)
	switch {
	case err != nil:
		return nil, 0, err
	case b.c.State != "running":
		return nil, 0, fmt.Errorf("container %s is %s: %w", b.c.Name, b.c.State, runtime.ErrNotFound)
	case b.image.program.Exec != nil:
		return b.image.program.Exec, b.image.program.ExecTime, nil
	}
	return Builtin, b.image.program.ExecTime, nil
}

// Builtin runs the commands that every program has, where it brings none of its own.
func Builtin(member string, argv []string) (string, int) {
	switch strings.Join(argv[:min(1, len(argv))], "") {
	case "true":
		return "", 0
	case "false":
		return "", 1
	case "hostname":
		return member + "\n", 0
	case "echo":
		return strings.Join(argv[1:], " ") + "\n", 0
	}
	return "", 127
}
