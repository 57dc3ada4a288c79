package docker

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime/pods"
)

func TestExecProbeSaysItsFirstLine(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	at := e.target(t, e.run(e.spec("web", 0)))
	for _, c := range []struct {
		command   []string
		said, err string
	}{
		{[]string{"/helper", "say-once", "primary", "more"}, "primary", ""},
		{[]string{"/helper", "say-once", "!a warning", "primary"}, "primary", ""}, // stderr is not what it says
		{[]string{"/helper", "say-once"}, "", ""},
		{[]string{"/helper", "exit", "2", "no", "quorum"}, "", "exec /helper exit 2 no quorum: exit code 2: no quorum"},
	} {
		said, err := e.Check(t.Context(), at, jobspecs.Probe{Exec: c.command})
		if said != c.said || errorText(err) != c.err {
			t.Errorf("%q: %q, %v; want %q, %q", c.command, said, err, c.said, c.err)
		}
	}
}

// An engine keeps the exec of a command that left a child behind open for 2 s, or
// as long as the child lives.
func TestExecProbeThatLeavesAChildBehindEndsAtOnce(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	at := e.target(t, e.run(e.spec("web", 0)))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // the child lives longer
	defer cancel()
	said, err := e.Check(ctx, at, jobspecs.Probe{Exec: []string{"/helper", "daemon"}})
	if said != "in the background" || err != nil {
		t.Errorf("said %q, %v", said, err)
	}
}

func TestHooks(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	at := e.target(t, e.run(e.spec("web", 0)))
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	addr := netip.MustParseAddrPort(server.Listener.Addr().String())

	post := func(do jobspecs.Handler) pods.Hook {
		return pods.Hook{Kind: pods.PostStart, Handler: do, Env: map[string]string{"STSD_REASON": "update", "B": "a=b"}}
	}
	web := at
	web.Address = addr.Addr()
	for _, c := range []struct {
		name   string
		target pods.Target
		do     jobspecs.Handler
		want   string
	}{
		{"an exec that fails", at, jobspecs.Handler{Exec: []string{"/helper", "exit", "3", "not", "yet"}}, "exec /helper exit 3 not yet: exit code 3: not yet"},
		{"a command that is not there", at, jobspecs.Handler{Exec: []string{"nosuch"}}, `exec nosuch: exit code 126: exec: "nosuch": executable file not found in $PATH`},
		{"a get that fails", web, jobspecs.Handler{HTTP: &jobspecs.HTTPCheck{Port: int(addr.Port()), Path: "/drain"}}, "http " + addr.String() + "/drain: status 404"},
		{"nothing to do", at, jobspecs.Handler{}, ""},
	} {
		if got := errorText(e.Hook(t.Context(), c.target, pods.Hook{Kind: pods.PreStop, Handler: c.do})); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}

	failed := e.Hook(t.Context(), at, post(jobspecs.Handler{Exec: []string{"/helper", "exit", "1"}}))
	if failed == nil || e.postStarted(at.ID, at.Run) {
		t.Errorf("a post_start that failed: %v, remembered", failed)
	}
	check(t, e.Hook(t.Context(), at, pods.Hook{Kind: pods.PreStop, Handler: jobspecs.Handler{Exec: []string{"/helper", "env"}}}))
	if e.postStarted(at.ID, at.Run) {
		t.Error("a pre_stop is remembered as post_start")
	}
	check(t, e.Hook(t.Context(), at, post(jobspecs.Handler{Exec: []string{"/helper", "wants", "STSD_REASON=update", "B=a=b", "FROM=image"}})))
	if !e.postStarted(at.ID, at.Run) || e.postStarted(at.ID, at.Run.Add(1)) {
		t.Error("a post_start that succeeded is remembered for this run, and no other")
	}
}

func TestHangingHookIsKilledWithItsChildren(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	at := e.target(t, e.run(e.spec("web", 0)))
	ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
	defer cancel()
	err := e.Hook(ctx, at, pods.Hook{Kind: pods.PreStop, Handler: jobspecs.Handler{Exec: []string{"/helper", "family", "2"}}})
	if got := errorText(err); got != "exec /helper family 2: timed out" || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("err = %q", got)
	}
	top := must(raw().ContainerTop(t.Context(), at.ID, []string{"-eo", "pid,args"}))(t)
	for _, p := range top.Processes {
		if strings.Contains(p[len(p)-1], "family") {
			t.Errorf("still runs: %q", p)
		}
	}
}

func TestSleepingHookHeedsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sleeps := pods.Hook{Kind: pods.PreStop, Handler: jobspecs.Handler{Sleep: 10 * time.Second}}
		began := time.Now()
		check(t, (&Host{}).Hook(t.Context(), pods.Target{}, sleeps))
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("slept %s", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if got := errorText((&Host{}).Hook(ctx, pods.Target{}, sleeps)); got != "sleep 10s: timed out" {
			t.Errorf("err = %q", got)
		}
	})
}
