package daemon

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stsd/stsd/daemon/planner"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) *time.Time {
	t := noon.Add(-d)
	return &t
}

func code(n int) *int { return &n }

// several is a member of an init container, a sidecar and a main one.
func several(change func(m *jobspecs.Member, prepare, exporter, main *jobspecs.MemberContainer)) jobspecs.Member {
	m := jobspecs.Member{
		Namespace: "default", Set: "web", Name: "web-0", Revision: "web-1", Image: "web:1", Since: ago(90 * time.Second),
		Containers: []jobspecs.MemberContainer{
			{Name: "prepare", Kind: jobspecs.KindInit, Image: "prepare:1", State: "exited", ExitCode: code(0)},
			{Name: "exporter", Kind: jobspecs.KindSidecar, Image: "exporter:1", State: "running", Ready: true, StartedAt: ago(time.Minute)},
			{Name: "web", Kind: jobspecs.KindMain, Image: "web:1", State: "running", Ready: true, StartedAt: ago(time.Minute)},
		},
	}
	change(&m, &m.Containers[0], &m.Containers[1], &m.Containers[2])
	return m
}

func TestExplainTellsWhatAPodOfSeveralContainersDoes(t *testing.T) {
	type container = jobspecs.MemberContainer
	for _, c := range []struct {
		name   string
		member jobspecs.Member
		want   string // sentence, reasons, then what to type
	}{
		{"an init container runs", several(func(m *jobspecs.Member, prepare, exporter, main *container) {
			m.Phase, m.Reason, m.Message = "Initializing", runtime.ReasonInitRunning, "init prepare runs"
			*prepare = container{Name: "prepare", Kind: jobspecs.KindInit, State: "running", StartedAt: ago(200 * time.Second), Reason: runtime.ReasonInitRunning}
			exporter.State, main.State = "waiting", "waiting"
		}), `web-0 is Initializing (InitRunning) for 1m30s: init prepare runs
its init containers run to their end, one after the other, before the rest
init prepare has run for 3m20s
> stsd logs web-0 -c prepare`},
		{"a back-off says when it is over", several(func(m *jobspecs.Member, prepare, exporter, main *container) {
			m.Phase, m.Reason, m.Message, m.NextTry = "Backoff", runtime.ReasonExited, "it ended with exit code 3", ago(-40*time.Second)
			main.State, main.Ready, main.ExitCode, main.Restarts, main.Reason = "exited", false, code(3), 5, runtime.ReasonExited
		}), `web-0 is Backoff (Exited) for 1m30s: it ended with exit code 3
container web last ended with exit code 3, 5 restarts
web-0 is tried again in 40s
> stsd logs --previous web-0 -c web
> stsd events web-0`},
		{"not once it is over", several(func(m *jobspecs.Member, prepare, exporter, main *container) {
			m.Phase, m.Reason, m.Message, m.NextTry = "Failed", runtime.ReasonWrongPlatform, "image web:1 is for linux/arm64", ago(time.Second)
		}), `web-0 is Failed (WrongPlatform) for 1m30s: image web:1 is for linux/arm64
the image is made for another architecture than that of this host
> docker image inspect -f '{{.Os}}/{{.Architecture}}' web:1
> stsd set image web IMAGE`},
		{"an init container failed", several(func(m *jobspecs.Member, prepare, exporter, main *container) {
			m.Phase, m.Reason, m.Message = "Backoff", runtime.ReasonExited, "prepare: it ended with exit code 3"
			prepare.ExitCode, prepare.Reason, prepare.Restarts = code(3), runtime.ReasonExited, 4
			exporter.State, main.State = "waiting", "waiting"
		}), `web-0 is Backoff (Exited) for 1m30s: prepare: it ended with exit code 3
init prepare last ended with exit code 3, 4 restarts
> stsd logs web-0 -c prepare
> stsd events web-0`},
		{"a post_start hook runs", several(func(m *jobspecs.Member, prepare, exporter, main *container) {
			m.Phase, m.Reason, m.Message = "Starting", runtime.ReasonPostStart, "web: its post_start hook runs"
			main.Ready, main.Reason = false, runtime.ReasonPostStart
		}), `web-0 is Starting (PostStartPending) for 1m30s: web: its post_start hook runs
a container counts as started once its post_start hook has ended, for which it has no time-out; what the hook prints stands in no log
container web is not ready
> stsd exec web-0 -c web -- ps, which shows whether the hook's command still runs
> stsd apply FILE, with a hook that ends`},
		{"a post_start hook failed", several(func(m *jobspecs.Member, prepare, exporter, main *container) {
			m.Phase, m.Reason, m.Message = "Backoff", runtime.ReasonPostStartFailed, "post_start exec false: exit code 1"
			main.State, main.Ready, main.Reason = "exited", false, runtime.ReasonPostStartFailed
			main.ExitCode, main.Signal = code(143), "SIGTERM"
		}), `web-0 is Backoff (PostStartFailed) for 1m30s: post_start exec false: exit code 1
a container whose post_start hook fails is started anew
container web ended by signal SIGTERM
> stsd logs --previous web-0 -c web
> stsd events web-0`},
		{"a pre_stop hook runs", several(func(m *jobspecs.Member, prepare, exporter, main *container) {
			m.Phase, m.Reason, m.Message = "Stopping", runtime.ReasonPreStop, "its pre_stop hook runs"
			main.Ready, main.Reason = false, runtime.ReasonPreStop
			exporter.State, exporter.ExitCode = "exited", code(0)
		}), `web-0 is Stopping (PreStopRunning) for 1m30s: its pre_stop hook runs
the stop signal follows its pre_stop hook, and the kill follows when its termination_grace is over
sidecar exporter last ended with exit code 0, 0 restarts
container web has not ended yet
> stsd logs web-0 -c web`},
		{"a stop waits for its grace", several(func(m *jobspecs.Member, prepare, exporter, main *container) {
			m.Phase, m.Reason = "Stopping", runtime.ReasonStopRequested
			main.Ready = false
		}), `web-0 is Stopping (StopRequested) for 1m30s
a container that does not end by itself is killed when its termination_grace is over
sidecar exporter has not ended yet
container web has not ended yet
> stsd logs web-0 -c web`},
		{"the sandbox ended", several(func(m *jobspecs.Member, prepare, exporter, main *container) {
			m.Phase, m.Reason, m.Message = "Backoff", runtime.ReasonSandbox, "its sandbox ended"
			exporter.State, main.State = "exited", "exited"
		}), `web-0 is Backoff (SandboxEnded) for 1m30s: its sandbox ended
the container that holds what its containers share has ended: all of them begin again, init containers too
> stsd events web-0`},
		{"the image of a sidecar is for another architecture", several(func(m *jobspecs.Member, prepare, exporter, main *container) {
			m.Phase, m.Reason, m.Message = "Failed", runtime.ReasonWrongPlatform, "image exporter:1 is for linux/arm64"
			exporter.State, exporter.Reason, main.State = "waiting", runtime.ReasonWrongPlatform, "waiting"
		}), `web-0 is Failed (WrongPlatform) for 1m30s: image exporter:1 is for linux/arm64
the image is made for another architecture than that of this host
> docker image inspect -f '{{.Os}}/{{.Architecture}}' exporter:1
> stsd set image web IMAGE`},
		{"a sidecar ran out of memory", several(func(m *jobspecs.Member, prepare, exporter, main *container) {
			m.Phase, m.Reason, m.Message = "Backoff", runtime.ReasonOOMKilled, "exporter: it ran out of memory"
			exporter.State, exporter.Ready, exporter.OOMKilled, exporter.ExitCode, exporter.Reason = "exited", false, true, code(137), runtime.ReasonOOMKilled
		}), `web-0 is Backoff (OOMKilled) for 1m30s: exporter: it ran out of memory
sidecar exporter was killed because it ran out of memory
> stsd logs --previous web-0 -c exporter
> stsd events web-0`},
		{"one of the mains is not ready", several(func(m *jobspecs.Member, prepare, exporter, main *container) {
			m.Phase, m.Reason, m.Message = "Running", runtime.ReasonNotReady, "web: readiness tcp 10.87.0.10:80: connection refused"
			main.Ready, main.Reason, main.Message = false, runtime.ReasonNotReady, "readiness tcp 10.87.0.10:80: connection refused"
		}), `web-0 is running but not ready: web: readiness tcp 10.87.0.10:80: connection refused
> stsd logs web-0 -c web`},
	} {
		e := explain(jobspecs.Status{UpdateRevision: "web-1", Members: []jobspecs.Member{c.member}}, &c.member, planner.Plan{}, noon)
		lines := append([]string{e.State}, e.Because...)
		for _, n := range e.Next {
			lines = append(lines, "> "+n)
		}
		if got := strings.Join(lines, "\n"); got != c.want {
			t.Errorf("%s:\n%s\nwant:\n%s", c.name, got, c.want)
		}
		if !reflect.DeepEqual(e.Containers, c.member.Containers) {
			t.Errorf("%s: containers = %+v", c.name, e.Containers)
		}
	}
}

// A reason that the contract lists has something to type for whoever meets it.
func TestEveryReasonThatSomebodyHasToMendHasANextCommand(t *testing.T) {
	for _, reason := range []string{
		runtime.ReasonImageMissing, runtime.ReasonImageUnknown, runtime.ReasonPullFailed, runtime.ReasonAccessDenied, runtime.ReasonBadCommand,
		runtime.ReasonWrongPlatform, runtime.ReasonRunsAsRoot, runtime.ReasonNoMemoryFolder, runtime.ReasonNameTaken, runtime.ReasonPortTaken,
		runtime.ReasonAddressTaken, runtime.ReasonNetworkTaken, runtime.ReasonNetworkMissing, runtime.ReasonVolumeForeign, runtime.ReasonCreateFailed, runtime.ReasonInitRunning,
		runtime.ReasonPostStart, runtime.ReasonPostStartFailed, runtime.ReasonPreStop, runtime.ReasonSandbox, runtime.ReasonExited,
		runtime.ReasonOOMKilled, runtime.ReasonLiveness, runtime.ReasonStartup, runtime.ReasonNotReady, runtime.ReasonStartupPending,
		runtime.ReasonWaitingForFence, runtime.ReasonUnreachable, runtime.ReasonLookFailed, runtime.ReasonNoAddress, runtime.ReasonPaused, runtime.ReasonRenamed,
		planner.ReasonVolumeLost, planner.ReasonDisconnected,
	} {
		m := several(func(m *jobspecs.Member, _, _, _ *jobspecs.MemberContainer) { m.Reason = reason })
		if len(advice(&m)) == 0 {
			t.Errorf("%s: no advice", reason)
		}
	}
}

func TestExplainOfAStopThatASetWaitsFor(t *testing.T) {
	m := jobspecs.Member{
		Namespace: "db", Set: "web", Name: "web-2", Phase: "Stopping", Reason: runtime.ReasonPreStop, Message: "its pre_stop hook runs", Since: ago(12 * time.Second), Revision: "web-1",
		Containers: []jobspecs.MemberContainer{{Name: "web", Kind: jobspecs.KindMain, State: "running"}},
	}
	plan := planner.Plan{Waiting: []planner.Wait{{Member: "web-2", On: "web-2", For: "stopping: its pre_stop hook runs"}}}
	got := explain(jobspecs.Status{UpdateRevision: "web-1", Members: []jobspecs.Member{m}}, &m, plan, noon)
	want := jobspecs.Explanation{
		Namespace: "db", Member: "web-2", State: "web-2 is Stopping (PreStopRunning) for 12s: its pre_stop hook runs",
		Because: []string{
			"web-2 waits: stopping: its pre_stop hook runs",
			"the stop signal follows its pre_stop hook, and the kill follows when its termination_grace is over",
		},
		Next: []string{"stsd logs db/web-2"}, Containers: m.Containers,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("explanation = %+v\nwant          %+v", got, want)
	}
}

func TestWhatToTypeNext(t *testing.T) {
	type container = jobspecs.MemberContainer
	for _, c := range []struct {
		about  string
		member jobspecs.Member
		want   []string
	}{
		{"a sidecar is paused", several(func(m *jobspecs.Member, _, exporter, _ *container) {
			m.Namespace, m.Reason, exporter.State, exporter.Reason = "db", runtime.ReasonPaused, "paused", runtime.ReasonPaused
		}), []string{"docker unpause db.web-0_exporter"}},
		{"the first main is paused", several(func(m *jobspecs.Member, _, _, main *container) {
			m.Reason, main.State, main.Reason = runtime.ReasonPaused, "paused", runtime.ReasonPaused
		}), []string{"docker unpause web-0"}},
		{"a sidecar was renamed and its name is taken", several(func(m *jobspecs.Member, _, exporter, _ *container) {
			m.Namespace, m.Reason, exporter.Reason = "db", runtime.ReasonRenamed, runtime.ReasonRenamed
		}), []string{"docker inspect db.web-0_exporter", "docker rename db.web-0_exporter ANOTHER-NAME, and it has its name back"}},
		{"a command that is not there", several(func(m *jobspecs.Member, _, exporter, _ *container) {
			m.Reason, exporter.Reason, exporter.State, exporter.StartedAt = runtime.ReasonBadCommand, runtime.ReasonBadCommand, "waiting", nil
		}), []string{"stsd apply FILE, with another command, args or working_dir of sidecar exporter"}},
		{"a registry refuses", several(func(m *jobspecs.Member, _, _, main *container) {
			m.Reason, main.Reason, main.Image = runtime.ReasonAccessDenied, runtime.ReasonAccessDenied, "ghcr.io/web:1"
		}), []string{"docker login ghcr.io, as the user that stsd runs as", "stsd apply FILE, with a registry_auth block for ghcr.io in its container"}},
		{"a port that another set of ours has", several(func(m *jobspecs.Member, _, _, _ *container) {
			m.Reason, m.Message = runtime.ReasonPortTaken, "port 127.0.0.1:80/tcp is taken by container shop.db-0 (db:1, ours, of shop/db)"
		}), []string{"stsd status shop/db"}},
		{"a port that somebody has", several(func(m *jobspecs.Member, _, _, _ *container) {
			m.Reason, m.Message = runtime.ReasonPortTaken, "port 127.0.0.1:80/tcp is taken by process nginx (pid 7)"
		}), []string{"ss -ltnp"}},
		{"a bind without its source", several(func(m *jobspecs.Member, _, _, _ *container) {
			m.Reason, m.Message = runtime.ReasonCreateFailed, "invalid mount config for type \"bind\": bind source path does not exist: /srv/x"
		}), []string{"mkdir -p the source of the bind on the host; it is tried again by itself"}},
		{"no GPU", several(func(m *jobspecs.Member, _, _, _ *container) {
			m.Reason, m.Message = runtime.ReasonCreateFailed, `this engine has no driver for gpus = "all"`
		}), []string{"install the driver's container runtime on the host, or stsd apply FILE without gpus"}},
	} {
		if got := advice(&c.member); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %q, want %q", c.about, got, c.want)
		}
	}
}

func TestAStalledRolloutOffersTheWayBack(t *testing.T) {
	m := jobspecs.Member{
		Namespace: "db", Set: "web", Name: "web-1", Phase: "Failed", Reason: runtime.ReasonImageUnknown, Message: "no image web:9", Revision: "web-2",
		Containers: []jobspecs.MemberContainer{{Name: "web", Kind: jobspecs.KindMain, State: "waiting"}},
	}
	s := jobspecs.Status{
		Namespace: "db", Name: "web", CurrentRevision: "web-1", UpdateRevision: "web-2", Members: []jobspecs.Member{m},
		Conditions: []jobspecs.Condition{{Type: jobspecs.CondStalled, Status: true, Reason: m.Reason, Message: "web-1: no image web:9"}},
	}
	e := explain(s, &m, planner.Plan{}, noon)
	if want := []string{"docker image ls", "stsd set image db/web IMAGE", "stsd rollout undo db/web"}; !reflect.DeepEqual(e.Next, want) {
		t.Errorf("next = %q, want %q", e.Next, want)
	}
	if len(e.Because) > 0 {
		t.Errorf("because = %q: the state says it all, each once", e.Because)
	}
	s.UpdateRevision, s.Members[0].Revision, m.Revision = "web-1", "web-1", "web-1"
	if e := explain(s, &m, planner.Plan{}, noon); strings.Contains(strings.Join(e.Next, "\n"), "undo") {
		t.Errorf("next = %q: there is no revision to go back to", e.Next)
	}
}

func TestWhatAContainerEndedWithLongAgoIsNoReason(t *testing.T) {
	m := several(func(m *jobspecs.Member, _, _, main *jobspecs.MemberContainer) {
		m.Phase, m.Reason, m.Message = "Running", runtime.ReasonNotReady, "web: readiness refused"
		main.Ready, main.ExitCode, main.Message, main.StartedAt = false, code(1), "readiness refused", ago(time.Hour)
	})
	if got := causes(&m, noon); len(got) > 0 {
		t.Errorf("causes = %q, want none", got)
	}
	m.Containers[2].StartedAt, m.Containers[2].Restarts = ago(time.Minute), 1
	if got, want := causes(&m, noon), []string{"container web last ended with exit code 1, 1 restart"}; !reflect.DeepEqual(got, want) {
		t.Errorf("causes = %q, want %q", got, want)
	}
}

func TestAnOldEndIsToldOnlyWhereItExplains(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(m *jobspecs.Member, c *jobspecs.MemberContainer)
		told bool
	}{
		"paused, after a crash of before": {func(m *jobspecs.Member, c *jobspecs.MemberContainer) {
			m.Phase, m.Reason, c.State, c.Signal, c.Restarts = "Running", runtime.ReasonPaused, "paused", "SIGKILL", 1
		}, false},
		"an ordinary start": {func(m *jobspecs.Member, c *jobspecs.MemberContainer) {
			m.Phase, c.State, c.ExitCode = "Starting", "running", code(0)
		}, false},
		"a start after a crash": {func(m *jobspecs.Member, c *jobspecs.MemberContainer) {
			m.Phase, c.State, c.ExitCode, c.Restarts = "Starting", "running", code(3), 1
		}, true},
		"unready since a crash": {func(m *jobspecs.Member, c *jobspecs.MemberContainer) {
			m.Phase, m.Reason, c.State, c.ExitCode, c.Restarts = "Running", runtime.ReasonNotReady, "running", code(3), 1
		}, true},
		"another reason to fail": {func(m *jobspecs.Member, c *jobspecs.MemberContainer) {
			m.Phase, m.Reason, c.State, c.ExitCode, c.Restarts = "Failed", runtime.ReasonNameTaken, "waiting", code(3), 1
		}, false},
		"in back-off": {func(m *jobspecs.Member, c *jobspecs.MemberContainer) {
			m.Phase, m.Reason, c.State, c.ExitCode = "Backoff", runtime.ReasonExited, "waiting", code(3)
		}, true},
		"just ended": {func(m *jobspecs.Member, c *jobspecs.MemberContainer) {
			m.Phase, c.State, c.ExitCode = "Stopping", "exited", code(3)
		}, true},
	} {
		m := jobspecs.Member{Name: "web-0", Containers: []jobspecs.MemberContainer{{Name: "web", Kind: jobspecs.KindMain, StartedAt: ago(time.Minute)}}}
		c.edit(&m, &m.Containers[0])
		told := strings.Contains(strings.Join(causes(&m, noon), "\n"), "ended")
		if told != c.told {
			t.Errorf("%s: because %q; the last end is told: %v, want %v", name, causes(&m, noon), told, c.told)
		}
	}
}
