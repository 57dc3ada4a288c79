package main

import (
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stsd/stsd/daemon/api/apitest"
	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/jobspecs"
)

const fromWeb = "Defaulted container web out of: web, prepare (init), exporter (sidecar)\n"

func TestWhichContainerIsMeantIsSaidWhereThereAreSeveral(t *testing.T) {
	t.Parallel()
	c := against(t, apitest.World())
	for _, tc := range []struct {
		name, args, stdout, stderr string
	}{
		{"one of several, for logs", "logs web-1", "one a\none b\n", fromWeb},
		{"named", "logs web-1 -c exporter", "one a\none b\n", ""},
		{"there is one only", "logs web-0", "zero a\nzero b\n", ""},
		{"nobody wants to know", "-q logs web-1", "one a\none b\n", ""},
		{"for exec", "exec web-1 -- exit 0", "", fromWeb + "web-1 exits\n"},
		{"for exec, named", "exec web-1 -c web -- exit 0", "", "web-1 exits\n"},
	} {
		got := c.run(strings.Split(tc.args, " ")...)
		if got.code != exitOK || got.stdout != tc.stdout || got.stderr != tc.stderr {
			t.Errorf("%s: exit %d\n%s%swant\n%s%s", tc.name, got.code, got.stdout, got.stderr, tc.stdout, tc.stderr)
		}
	}
}

func TestAContainerThatIsNotThereIsAnErrorThatListsThoseThatAre(t *testing.T) {
	t.Parallel()
	s := apitest.World()
	s.Err = &client.Problem{Type: client.ProblemInvalid, Title: "member web-1 has no container x", Detail: "it has prepare (init), web"}
	c := against(t, s)
	for _, args := range []string{"logs web-1 -c x", "exec web-1 -c x -- true"} {
		got := c.run(strings.Split(args, " ")...)
		if got.code == exitOK || !strings.Contains(got.stderr, "member web-1 has no container x\n") || !strings.Contains(got.stderr, "it has prepare (init), web\n") {
			t.Errorf("%s: exit %d: %s", args, got.code, got.stderr)
		}
	}
}

func TestExplainListsTheContainersOfAMemberOfSeveral(t *testing.T) {
	t.Parallel()
	s := apitest.World()
	s.Why.Containers = s.People[1].Containers
	got := against(t, s).run("explain", "web-2")
	want := `Containers
  prepare    init        exited    -           0   59m   prepare:1    exit code 0
  exporter   sidecar     running   ready       2   59m   exporter:1   last ended by SIGSEGV
  web        container   running   not ready   0   59m   web:1        StartupPending: http 10.87.0.11:8080/: connection refused
`
	if got.code != exitOK || !strings.Contains(got.stdout, want) {
		t.Errorf("exit %d\n%s%swant\n%s", got.code, got.stdout, got.stderr, want)
	}
}

func TestAPassingPhaseThatLastsSaysHowLong(t *testing.T) {
	t.Parallel()
	now := apitest.Start
	a := newApp(nil, nil, nil, nil)
	a.now = func() time.Time { return now }
	since := func(d time.Duration) *time.Time {
		at := now.Add(-d)
		return &at
	}
	for want, m := range map[string]jobspecs.Member{
		"Initializing (InitRunning) for 3m":  {Phase: "Initializing", Reason: "InitRunning", Since: since(3 * time.Minute)},
		"Stopping (PreStopRunning) for 12s":  {Phase: "Stopping", Reason: "PreStopRunning", Since: since(12 * time.Second)},
		"Stopping (StopRequested)":           {Phase: "Stopping", Reason: "StopRequested", Since: since(time.Second)},
		"Running":                            {Phase: "Running", Since: since(time.Hour)},
		"Running (NotReady) stale":           {Phase: "Running", Reason: "NotReady", Stale: true, Since: since(time.Hour)},
		"Backoff (Exited), next try in 40s":  {Phase: "Backoff", Reason: "Exited", Since: since(20 * time.Second), NextTry: since(-40 * time.Second)},
		"Backoff (Exited)":                   {Phase: "Backoff", Reason: "Exited", NextTry: since(time.Second)},
		"Pending":                            {Phase: "Pending", Reason: "NotCreated"},
		"Starting (PostStartPending) for 2h": {Phase: "Starting", Reason: "PostStartPending", Since: since(2 * time.Hour)},
	} {
		if got := a.stateOf(m); got != want {
			t.Errorf("state = %q, want %q", got, want)
		}
	}
}

func TestReadyCountsTheContainersThatAreMeantToLast(t *testing.T) {
	t.Parallel()
	c := func(kind string, ready bool) jobspecs.MemberContainer {
		return jobspecs.MemberContainer{Kind: kind, Ready: ready}
	}
	for _, tc := range []struct {
		name string
		m    jobspecs.Member
		want string
	}{
		{"nothing was made", jobspecs.Member{}, "0/1"},
		{"one, ready", jobspecs.Member{Ready: true, Containers: []jobspecs.MemberContainer{c("container", true)}}, "1/1"},
		{"one after an init container", jobspecs.Member{Ready: true, Containers: []jobspecs.MemberContainer{c("init", false), c("container", true)}}, "1/1"},
		{"a sidecar counts", jobspecs.Member{Containers: []jobspecs.MemberContainer{c("init", false), c("sidecar", true), c("container", false)}}, "1/2"},
		{"two mains", jobspecs.Member{Ready: true, Containers: []jobspecs.MemberContainer{c("container", true), c("container", true)}}, "2/2"},
	} {
		if got := readyCount(tc.m); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
}

func TestTheOutputOfASidecarIsOpenedAgainWhenItIsStartedAgain(t *testing.T) {
	t.Parallel()
	then, now := apitest.Start, apitest.Start.Add(time.Minute)
	member := jobspecs.Member{StartedAt: &then, Containers: []jobspecs.MemberContainer{{Name: "web", StartedAt: &then}, {Name: "exporter", StartedAt: &now}}}
	m := merger{}
	m.options.Container = "exporter"
	if o, due := m.due(&stream{started: then}, member); !due || !o.Since.Equal(now) {
		t.Errorf("due = %v, since %v", due, o.Since)
	}
	m.options.Container = ""
	if _, due := m.due(&stream{started: then}, member); due {
		t.Error("the main container was not started again")
	}
}

func TestATimeoutIsNotNegative(t *testing.T) {
	t.Parallel()
	c := against(t, apitest.World())
	for _, args := range []string{"apply web.hcl", "scale web 3", "rollout status web", "rollout undo web", "delete web", "wait web"} {
		got := c.run(append(strings.Split(args, " "), "--timeout=-1s")...)
		if got.code != exitUsage || !strings.Contains(got.stderr, "it cannot be negative") {
			t.Errorf("%s: exit %d: %s", args, got.code, got.stderr)
		}
	}
}

func TestAPipeIsNoFileOfASpec(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fifo := filepath.Join(dir, "web.hcl")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Skip("no pipes here:", err)
	}
	c := against(t, apitest.World())
	file := write(t, "web.hcl", spec)
	reading := write(t, "web.hcl", strings.Replace(spec, `"web:1"`, `file("`+fifo+`")`, 1))
	for _, args := range [][]string{
		{"validate", fifo}, {"validate", dir}, {"plan", fifo}, {"apply", "-f", fifo}, {"fmt", fifo},
		{"validate", file, "--var-file", fifo}, {"validate", reading},
	} {
		ended := make(chan ran, 1)
		go func() { ended <- c.run(args...) }()
		select {
		case got := <-ended:
			if got.code != exitFailure || !strings.Contains(got.stderr, "it is no regular file") {
				t.Errorf("%s: exit %d: %s", args, got.code, got.stderr)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("%s hangs", args)
		}
	}
}

func TestLinesOfAnotherNamespaceSayWhich(t *testing.T) {
	t.Parallel()
	s := apitest.World()
	for i := range s.People {
		s.People[i].Namespace = "prod"
	}
	c := against(t, s)
	got := c.run("-n", "prod", "logs", "web-0,1", "-c", "web")
	lines := strings.Split(strings.TrimSpace(got.stdout), "\n")
	slices.Sort(lines)
	want := []string{"prod/web-0 | zero a", "prod/web-0 | zero b", "prod/web-1 | one a", "prod/web-1 | one b"}
	if got.code != exitOK || !slices.Equal(lines, want) {
		t.Errorf("exit %d: %q, want %q\n%s", got.code, lines, want, got.stderr)
	}

	var out strings.Builder
	d := newPlainDisplay(&out)
	d.show(update{status: jobspecs.Status{Members: s.People[1:]}})
	d.show(update{status: jobspecs.Status{Members: s.People[1:2]}})
	shown := `prod/web-1  Starting  not ready  (StartupPending: http 10.87.0.11:8080/: connection refused)
prod/web-2  Pending  not ready  (waiting for web-1: StartupPending)
prod/web-2  removed
`
	if out.String() != shown {
		t.Errorf("progress:\n%swant\n%s", out.String(), shown)
	}
}

func TestTheOneContainerOfAMemberIsShownWhereItIsNotWell(t *testing.T) {
	t.Parallel()
	a := &app{now: time.Now}
	code := 3
	ill := jobspecs.MemberContainer{Name: "web", Kind: jobspecs.KindMain, State: "exited", Restarts: 4, ExitCode: &code}
	if got, want := a.containerRows("", []jobspecs.MemberContainer{ill}), [][]string{{"web", "container", "exited", "not ready", "4", "-", "-", "exit code 3"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("rows = %q, want %q", got, want)
	}
	if got := a.containerRows("", []jobspecs.MemberContainer{{Name: "web", Kind: jobspecs.KindMain, State: "running", Ready: true}}); got != nil {
		t.Errorf("rows = %q, want none", got)
	}
}
