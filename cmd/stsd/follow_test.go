package main

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stsd/stsd/daemon/api"
	"github.com/stsd/stsd/daemon/api/apitest"
	"github.com/stsd/stsd/jobspecs"
)

// status is a set "web" of three members, all there, in a rollout.
func statusOf(edits ...func(*jobspecs.Status)) jobspecs.Status {
	st := jobspecs.Status{
		Namespace: "default", Name: "web", Replicas: 3, ReadyReplicas: 3, AvailableReplicas: 3, UpdatedReplicas: 3,
		Generation: 2, ObservedGeneration: 2, UpdateRevision: "web-2",
		Conditions: []jobspecs.Condition{{Type: jobspecs.CondProgressing, Status: true, Reason: "Working"}},
	}
	for i := range 3 {
		st.Members = append(st.Members, jobspecs.Member{Namespace: "default", Set: "web", Ordinal: i, Name: jobspecs.MemberName("web", i), Phase: "Running", Ready: true, Available: true, Revision: "web-2"})
	}
	for _, e := range edits {
		e(&st)
	}
	return st
}

func member(i int, edit func(*jobspecs.Member)) func(*jobspecs.Status) {
	return func(st *jobspecs.Status) { edit(&st.Members[i]) }
}

func sick(reason, message string) func(*jobspecs.Member) {
	return func(m *jobspecs.Member) {
		m.Phase, m.Ready, m.Available, m.Reason, m.Message = "Failed", false, false, reason, message
	}
}

func refused(since time.Duration) func(*jobspecs.Status) {
	return func(st *jobspecs.Status) {
		setCondition(jobspecs.CondStalled, true, reasonHookFailed)(st)
		for i := range st.Conditions {
			st.Conditions[i].Since = time.Now().Add(-since)
		}
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	complete := setCondition(jobspecs.CondProgressing, false, "Complete")
	stalled := setCondition(jobspecs.CondStalled, true, "ImageUnknown")
	paused := setCondition(jobspecs.CondPaused, true, "ByUser")
	back := setCondition(jobspecs.CondRolledBack, true, "Deadline")
	going := verdict{}
	for _, tc := range []struct {
		name  string
		st    jobspecs.Status
		after int64
		want  verdict
	}{
		{"work goes on", statusOf(), 2, going},
		{"complete", statusOf(complete), 2, verdict{over: true, say: "web  3/3 available  revision web-2"}},
		{"complete, but of the generation before", statusOf(complete), 3, going},
		{"stalled, but of the generation before", statusOf(stalled), 3, going},
		{"a later generation is complete", statusOf(complete), 1, verdict{over: true, say: "web  3/3 available  revision web-2"}},
		{"not progressing for another reason", statusOf(setCondition(jobspecs.CondProgressing, false, "Paused")), 2, going},
		{"nothing is known yet", statusOf(func(st *jobspecs.Status) { st.Conditions = nil }), 2, going},
		{"stalled names the member", statusOf(stalled, member(1, sick("ImageUnknown", "no such image"))), 2,
			verdict{over: true, code: 3, say: "web is stalled: ImageUnknown; the daemon goes on trying", next: []string{"stsd explain web-1"}}},
		{"stalled, the permanent error before the waiting one", statusOf(stalled, member(0, sick("Exited", "")), member(2, sick("PortTaken", ""))), 2,
			verdict{over: true, code: 3, say: "web is stalled: ImageUnknown; the daemon goes on trying", next: []string{"stsd explain web-2"}}},
		{"stalled and nobody to blame", statusOf(stalled), 2,
			verdict{over: true, code: 3, say: "web is stalled: ImageUnknown; the daemon goes on trying", next: []string{"stsd status web"}}},
		{"a hook that says no may soon say yes", statusOf(refused(29 * time.Second)), 2, going},
		{"or it says no for good", statusOf(refused(31 * time.Second)), 2,
			verdict{over: true, code: 3, say: "web is stalled: HookFailed; the daemon goes on trying", next: []string{"stsd status web"}}},
		{"complete up to the partition", statusOf(complete, func(st *jobspecs.Status) {
			st.UpdatedReplicas, st.Conditions[0].Message = 1, "members from ordinal 2 on run web-2 (partition)"
		}), 2, verdict{over: true, say: "web  3/3 available  revision web-2: members from ordinal 2 on run web-2 (partition)"}},
		{"complete although something is stalled", statusOf(complete, stalled), 2, verdict{over: true, say: "web  3/3 available  revision web-2"}},
		{"paused", statusOf(paused), 2, verdict{over: true, code: 4, say: "web is paused", next: []string{"stsd rollout resume web"}}},
		{"paused and complete", statusOf(paused, complete), 2, verdict{over: true, say: "web  3/3 available  revision web-2"}},
		{"stalled and paused", statusOf(paused, stalled), 2, verdict{over: true, code: 3, say: "web is stalled: ImageUnknown; the daemon goes on trying", next: []string{"stsd status web"}}},
		{"rolled back is no success", statusOf(back, complete), 2, verdict{over: true, code: 3, say: "web was rolled back: Deadline", next: []string{"stsd status web"}}},
		{"another namespace", statusOf(paused, func(st *jobspecs.Status) { st.Namespace = "prod" }), 2,
			verdict{over: true, code: 4, say: "prod/web is paused", next: []string{"stsd rollout resume prod/web"}}},
	} {
		if got := judge(tc.st, tc.after); !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: got %+v, want %+v", tc.name, got, tc.want)
		}
	}
}

// rollout is a rolling update of web-2 then web-1, as a daemon would tell it.
func rollout() []jobspecs.Status {
	stopping := func(m *jobspecs.Member) {
		m.Phase, m.Ready, m.Available, m.Reason = "Stopping", false, false, "StopRequested"
	}
	waiting := func(m *jobspecs.Member) {
		m.Phase, m.Ready, m.Available, m.Waiting = "Pending", false, false, "waiting for its container to be removed"
	}
	probing := func(text string) func(*jobspecs.Member) {
		return func(m *jobspecs.Member) {
			m.Phase, m.Ready, m.Available, m.Reason, m.Message = "Running", false, false, "NotReady", text
		}
	}
	fourth := func(st *jobspecs.Status) {
		st.Members = append(st.Members, jobspecs.Member{Name: "web-3", Phase: "Stopping", Reason: "StopRequested"})
	}
	return []jobspecs.Status{
		statusOf(fourth),
		statusOf(member(2, stopping)),
		statusOf(member(2, waiting)),
		statusOf(member(2, probing("connection refused, 1 s"))),
		statusOf(member(2, probing("connection refused, 2 s"))),
		statusOf(),
		statusOf(setCondition(jobspecs.CondProgressing, false, "Complete")),
	}
}

// Who wrote first is told that somebody else wrote then: his spec runs nowhere.
func TestFollowingEndsWhenSomebodyElseWroteMeanwhile(t *testing.T) {
	t.Parallel()
	s := apitest.World()
	s.Statuses[apitest.Web] = rollout()
	got := against(t, s).run("apply", write(t, "web.hcl", spec))
	want := "stsd: web was changed meanwhile: generation 2 wants revision web-2, this was web-1111111111\n  try: stsd rollout history web\n"
	if got.code != exitChanged || !strings.HasSuffix(got.stderr, want) {
		t.Errorf("exit %d\n%s\nwant the end\n%s", got.code, got.stderr, want)
	}
}

func TestFollowingWritesOneLinePerChange(t *testing.T) {
	t.Parallel()
	s := apitest.World()
	s.Statuses[apitest.Web] = rollout()
	got := against(t, s).run("rollout", "status", "web")
	want := `web-3  Stopping  not ready  (StopRequested)
web-2  Stopping  not ready  (StopRequested)
web-3  removed
web-2  Pending  not ready  (waiting for its container to be removed)
web-2  Running  not ready  (NotReady: connection refused, 1 s)
web-2  Running  ready  (available)
web  3/3 available  revision web-2
`
	if got.code != exitOK || got.stdout != want {
		t.Errorf("exit %d\n%s\nwant\n%s", got.code, got.stdout, want)
	}
}

func TestProgressOfApplyIsOnStderr(t *testing.T) {
	t.Parallel()
	s := apitest.World()
	s.Statuses[apitest.Web] = rollout()
	s.Result.Revision = "web-2"
	c := against(t, s)
	file := write(t, "web.hcl", spec)
	got := c.run("apply", file, "-o", "name")
	if got.stdout != "web\n" || !strings.HasSuffix(got.stderr, "web  3/3 available  revision web-2\n") {
		t.Errorf("stdout = %q\nstderr = %q", got.stdout, got.stderr)
	}
	if got := c.run("apply", file, "-q"); got.stdout != "web\n" || got.stderr != "" {
		t.Errorf("-q: stdout = %q\nstderr = %q", got.stdout, got.stderr)
	}
}

func TestJSONProgressIsStatusLines(t *testing.T) {
	t.Parallel()
	s := apitest.World()
	s.Statuses[apitest.Web] = rollout()
	got := against(t, s).run("rollout", "status", "web", "--progress=json")
	lines := strings.Split(strings.TrimSpace(got.stdout), "\n")
	if len(lines) != len(rollout()) {
		t.Fatalf("%d lines, want %d\n%s", len(lines), len(rollout()), got.stdout)
	}
	for _, l := range lines {
		var st jobspecs.Status
		if err := json.Unmarshal([]byte(l), &st); err != nil || st.Name != "web" {
			t.Errorf("%s: %v", l, err)
		}
	}
}

func TestDeletingIsFollowedUntilTheSetIsGone(t *testing.T) {
	t.Parallel()
	s := apitest.World()
	deleting := func(st *jobspecs.Status) { st.Deleting = true }
	s.Statuses[apitest.Web] = []jobspecs.Status{statusOf(deleting), statusOf(deleting, func(st *jobspecs.Status) { st.Members = st.Members[:1] })}
	s.Gone = true
	got := against(t, s).run("delete", "web", "--wait", "--progress=plain")
	want := "web-0  Running  ready  (available)\nweb-1  Running  ready  (available)\nweb-2  Running  ready  (available)\nweb-1  removed\nweb-2  removed\nweb  deleted\n"
	if got.code != exitOK || got.stderr != want {
		t.Errorf("exit %d\n%s\nwant\n%s", got.code, got.stderr, want)
	}
}

// restarting is a daemon whose watch breaks off once, as when it is replaced.
type restarting struct {
	*apitest.Service
	watches atomic.Int32
}

func (r *restarting) WatchStatus(ctx context.Context, set jobspecs.Key) (<-chan jobspecs.Status, error) {
	if r.watches.Add(1) == 1 {
		out := make(chan jobspecs.Status, 1)
		out <- statusOf(member(2, sick("Exited", "exit code 1")))
		return out, nil // ends with the connection, below
	}
	return r.Service.WatchStatus(ctx, set)
}

func TestFollowingSurvivesARestartOfTheDaemon(t *testing.T) {
	t.Parallel()
	s := apitest.World()
	s.Statuses[apitest.Web] = []jobspecs.Status{statusOf(setCondition(jobspecs.CondProgressing, false, "Complete"))}
	path := t.TempDir() + "/s"
	service := &restarting{Service: s}
	stop := daemonAt(t, path, service)
	c := &cli{t: t, ctx: t.Context(), env: []string{"STSD_HOST=unix://" + path}}
	second := func() {}
	c.wrote = func() {
		if service.watches.Load() == 1 && stop != nil {
			stop()
			stop = nil
			second = daemonAt(t, path, service)
		}
	}
	got := c.run("rollout", "status", "web")
	second()
	want := "web-2  Failed  not ready  (Exited: exit code 1)\nthe daemon does not answer; trying again\nweb-2  Running  ready  (available)\nweb  3/3 available  revision web-2\n"
	if got.code != exitOK || got.stdout != want {
		t.Errorf("exit %d\n%s%s\nwant\n%s", got.code, got.stdout, got.stderr, want)
	}
}

// daemonAt serves until the returned function is called.
func daemonAt(t *testing.T, path string, s api.Service) func() {
	t.Helper()
	ln, err := api.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- (&api.Server{Service: s}).Serve(ctx, ln) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func TestTheWorstOfSeveralSetsDecides(t *testing.T) {
	t.Parallel()
	good, late, bad := verdict{over: true, say: "a"}, verdict{over: true, code: exitGoing, say: "b is paused"}, verdict{over: true, code: exitRollout, say: "c is stalled"}
	for _, tc := range []struct {
		verdicts []verdict
		want     int
	}{
		{[]verdict{good, good}, exitOK}, {[]verdict{good, late}, exitGoing}, {[]verdict{late, bad}, exitRollout}, {[]verdict{bad, late, good}, exitRollout},
	} {
		var out strings.Builder
		a := newApp(nil, nil, &out, &out)
		if got := exitCode(t.Context(), a.settled(&out, tc.verdicts)); got != tc.want {
			t.Errorf("%v: exit %d, want %d", tc.verdicts, got, tc.want)
		}
	}
}

func TestLiveRowsFitTheScreen(t *testing.T) {
	t.Parallel()
	long := statusOf(member(1, sick("NotReady", strings.Repeat("ä", 200)+"\nsecond line")))
	rows := liveRows([]jobspecs.Status{long}, 60, 10)
	want := []string{
		"web  3/3 ready  3 updated",
		"  web-0   Running   ready       available",
		"  web-1   Failed    not ready   NotReady: " + strings.Repeat("ä", 17) + "…",
		"  web-2   Running   ready       available",
	}
	if !reflect.DeepEqual(rows, want) {
		t.Errorf("rows\n%s\nwant\n%s", strings.Join(rows, "\n"), strings.Join(want, "\n"))
	}
	many := statusOf()
	many.Members = nil
	for i := range 100 {
		m := jobspecs.Member{Name: fmt.Sprintf("web-%d", i), Phase: "Running", Ready: true, Available: i < 97}
		many.Members = append(many.Members, m)
	}
	if rows := liveRows([]jobspecs.Status{many}, 80, 10); len(rows) != 4 {
		t.Errorf("97 of 100 available: %d rows, want the headline and the other 3", len(rows))
	}
	for i := range many.Members {
		many.Members[i].Available = false
	}
	rows = liveRows([]jobspecs.Status{many}, 80, 10)
	if len(rows) != 10 || rows[9] != "… and 92 more" {
		t.Errorf("%d rows, the last %q", len(rows), rows[len(rows)-1])
	}
}

func TestLiveRowsAreRedrawnInPlace(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	d := &liveDisplay{w: &out, sets: map[int]jobspecs.Status{}}
	one := statusOf(func(st *jobspecs.Status) { st.Members = st.Members[:1] })
	d.show(update{goal: 0, status: one})
	d.show(update{goal: 0, status: one})
	rows := "\x1b[Jweb  3/3 ready  3 updated\n  web-0   Running   ready   available\n"
	if want := rows + "\x1b[2A\r" + rows; out.String() != want {
		t.Errorf("wrote %q, want %q", out.String(), want)
	}
}
