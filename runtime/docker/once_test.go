package docker

import (
	"context"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/runtime/pods"
)

// preStop is a hook that runs a command of the helper.
func preStop(command ...string) pods.Hook {
	return pods.Hook{Kind: pods.PreStop, Handler: jobspecs.Handler{Exec: append([]string{"/helper"}, command...)}}
}

// again is a Host as a daemon has it that comes back.
func (e *env) again(t *testing.T) *Host {
	t.Helper()
	h := must(New(e.cfg))(t)
	t.Cleanup(func() { h.Close() })
	must(h.List(t.Context()))(t)
	return h
}

// pids are those, on this host, of a container's processes with a word in their command.
func pids(t *testing.T, id, word string) (list []int) {
	t.Helper()
	top := must(raw().ContainerTop(t.Context(), id, []string{"-eo", "pid,args"}))(t)
	for _, p := range top.Processes {
		if pid, err := strconv.Atoi(p[0]); err == nil && strings.Contains(p[len(p)-1], word) {
			list = append(list, pid)
		}
	}
	return list
}

func awaitPids(t *testing.T, id, word string, n int) []int {
	t.Helper()
	for range 600 {
		if list := pids(t, id, word); len(list) == n {
			return list
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("processes %v of %q, want %d", pids(t, id, word), word, n)
	return nil
}

func TestAHookThatOutlivesItsDaemonIsWaitedFor(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	at := e.target(t, e.run(e.spec("web", 0)))
	hook := preStop("until", "SIGUSR1")
	first, second := make(chan error, 1), make(chan error, 1)
	go func() { first <- e.Hook(t.Context(), at, hook) }() // a daemon that is killed leaves as much
	awaitPids(t, at.ID, "until", 1)
	other := e.again(t)
	go func() { second <- other.Hook(t.Context(), at, hook) }()
	select {
	case err := <-second:
		t.Fatalf("it did not wait: %v", err)
	case <-time.After(2 * time.Second):
	}
	for _, pid := range awaitPids(t, at.ID, "until", 1) {
		check(t, syscall.Kill(pid, syscall.SIGUSR1))
	}
	check(t, <-first)
	check(t, <-second)
	check(t, e.again(t).Hook(t.Context(), at, hook)) // it has run: nobody would end another one
}

func TestAHookThatOutlivesItsDaemonIsKilledWhenItsTimeIsOver(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	at := e.target(t, e.run(e.spec("web", 0)))
	hook := preStop("family", "1")
	go func() { _ = e.Hook(t.Context(), at, hook) }() // its end is seen at the other
	awaitPids(t, at.ID, "family", 2)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if got := errorText(e.again(t).Hook(ctx, at, hook)); got != "exec /helper family 1: timed out" {
		t.Errorf("err = %q", got)
	}
	awaitPids(t, at.ID, "family", 0)
}

// What a daemon left behind counts for the same command in the same run alone.
func TestWhatCountsAsTheHookThatWasBegun(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	at := e.target(t, e.run(e.spec("web", 0)))
	failing := preStop("exit", "3", "old")
	mark := func(hook pods.Hook, start bool, command ...string) {
		made := must(raw().ContainerExecCreate(t.Context(), at.ID, container.ExecOptions{Cmd: command}))(t)
		if start {
			check(t, raw().ContainerExecStart(t.Context(), made.ID, container.ExecStartOptions{}))
			_, err := e.awaitExec(t.Context(), made.ID)
			check(t, err)
		}
		check(t, e.markExec(at.ID, e.execMark(at.ID, hookName(hook.Kind, at.Run), hook.Handler.Exec), made.ID))
	}
	good := []string{"/helper", "say-once"}
	for _, c := range []struct {
		name   string
		marked pods.Hook // with an exec that ends well
		start  bool
		hook   pods.Hook
		target func(pods.Target) pods.Target
		want   string
	}{
		{"it ended while nobody looked", failing, true, failing, nil, ""},
		{"it was never started", failing, false, failing, nil, "exec /helper exit 3 old: exit code 3: old"},
		{"it was another command", preStop("exit", "3"), true, failing, nil, "exec /helper exit 3 old: exit code 3: old"},
		{"it was of another run", failing, true, failing, func(t pods.Target) pods.Target { t.Run = t.Run.Add(1); return t }, "exec /helper exit 3 old: exit code 3: old"},
	} {
		e.forgetContainers(at.ID) // the marks of the case before
		must(e.List(t.Context()))(t)
		mark(c.marked, c.start, good...)
		target := at
		if c.target != nil {
			target = c.target(at)
		}
		if got := errorText(e.Hook(t.Context(), target, c.hook)); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	e.forgetContainers(at.ID)
	if left, _ := os.ReadDir(e.startedFolder(at.ID)); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// A command that is no lifecycle hook may run again once it has ended, and does not
// run beside itself.
func TestANamedCommandRunsAgainOnceItHasEnded(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	s := e.spec("web", 0)
	id := e.run(s)
	must(e.List(t.Context()))(t)
	pod := runtime.PodName{Namespace: e.ns, Name: "web-0"}
	run := func(ctx context.Context, h *Host, command ...string) (int, error) {
		return h.Exec(ctx, pod, runtime.ExecOptions{Command: append([]string{"/helper"}, command...), Once: "hook leave"})
	}
	for range 2 {
		if code, err := run(t.Context(), e.Host, "exit", "7"); code != 7 || err != nil {
			t.Errorf("code %d, %v", code, err)
		}
	}
	codes := make(chan int, 2)
	begin := func(h *Host) {
		code, err := run(t.Context(), h, "until", "SIGUSR1")
		check(t, err)
		codes <- code
	}
	go begin(e.Host)
	awaitPids(t, id, "until", 1)
	go begin(e.again(t))
	time.Sleep(time.Second) // long enough to begin another
	for _, pid := range awaitPids(t, id, "until", 1) {
		check(t, syscall.Kill(pid, syscall.SIGUSR1))
	}
	if a, b := <-codes, <-codes; a != 0 || b != 0 {
		t.Errorf("codes %d, %d", a, b)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := run(ctx, e.Host, "deaf"); err == nil {
		t.Error("a command that was killed ended well")
	}
	awaitPids(t, id, "deaf", 0)
	if left := must(os.ReadDir(e.startedFolder(id)))(t); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
