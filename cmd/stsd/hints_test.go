package main

import (
	"strings"
	"testing"

	"github.com/stsd/stsd/daemon/api/apitest"
	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/jobspecs"
)

// inProd is a world whose members and sets are in namespace prod.
func inProd() *apitest.Service {
	s := apitest.World()
	for i := range s.People {
		s.People[i].Namespace = "prod"
	}
	for i := range s.Rows {
		s.Rows[i].Namespace = "prod"
	}
	return s
}

func TestHintsNameTheNamespace(t *testing.T) {
	t.Parallel()
	for args, hint := range map[string]string{
		"ps web-7 -n prod":              "  try: stsd ps prod/web\n",
		"-n prod delete web-0,1":        "  try: stsd stop prod/web-0,1, to have it down until stsd start\n",
		"-n prod status web-0,1":        "  try: stsd explain prod/web-0,1\n",
		"-n prod rollout undo web-0,1":  "  try: stsd rollout undo prod/web\n",
		"-n prod exec web -- hostname":  "  try: stsd exec --all prod/web -- hostname\n",
		"exec prod/web-0,1 -- hostname": "  try: stsd exec prod/web-0 -- hostname\n",
	} {
		if got := against(t, inProd()).run(strings.Fields(args)...); got.code == exitOK || !strings.Contains(got.stderr, hint) {
			t.Errorf("stsd %s: exit %d\n%swant %s", args, got.code, got.stderr, hint)
		}
	}
}

func TestADetailThatIsACommandIsMarkedAsOne(t *testing.T) {
	t.Parallel()
	for detail, want := range map[string]string{
		"stsd ps prod/web":             "  try: stsd ps prod/web\n",
		"docker unpause web-0":         "  try: docker unpause web-0\n",
		"it is at generation 2, not 1": "  it is at generation 2, not 1\n",
	} {
		s := apitest.World()
		s.Err = &client.Problem{Type: client.ProblemConflict, Title: "no", Status: 409, Detail: detail}
		if got := against(t, s).run("status", "web"); got.stderr != "stsd: no\n"+want {
			t.Errorf("%q, want %q", got.stderr, want)
		}
	}
}

func TestAnEmptyNamespaceSaysThatOthersAreNot(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"ps":          "no members in namespace default; -A shows all\n",
		"ls":          "no sets in namespace default; -A shows all\n",
		"ps -n empty": "no members in namespace empty; -A shows all\n",
	} {
		if got := against(t, inProd()).run(strings.Fields(args)...); got.code != exitOK || got.stdout != "" || got.stderr != want {
			t.Errorf("stsd %s: exit %d, %q%q, want %q", args, got.code, got.stdout, got.stderr, want)
		}
	}
	s := inProd()
	s.People, s.Rows = nil, nil
	if got := against(t, s).run("ps"); got.stderr != "no members\n" {
		t.Errorf("nothing anywhere: %q", got.stderr)
	}
	if got := against(t, inProd()).run("ps", "-o", "json"); strings.TrimSpace(got.stdout) != "[]" {
		t.Errorf("-o json: %q", got.stdout)
	}
}

func TestARollbackIsSaidOnce(t *testing.T) {
	t.Parallel()
	back := jobspecs.Condition{Type: jobspecs.CondRolledBack, Status: true, Reason: "DeadlineExceeded", Message: "rolled back from web-2 to web-1: web-0 is not available"}
	got := judge(statusOf(func(st *jobspecs.Status) { st.Conditions = append(st.Conditions, back) }), 2).say
	if want := "web was rolled back from web-2 to web-1: web-0 is not available (DeadlineExceeded)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestAFollowedLineIsNotRepeated(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	d := newPlainDisplay(&out)
	for _, edit := range []func(*jobspecs.Member){
		func(m *jobspecs.Member) { sick("Exited", "exit code 1")(m) },
		func(m *jobspecs.Member) { sick("Exited", "exit code 1")(m); m.Restarts = 1 },
		func(m *jobspecs.Member) { sick("NotCreated", "web-1 waits for web-0: it is not ready")(m) },
		func(m *jobspecs.Member) { sick("VolumeLost", "web-1 waits: volume data-web-1 held data")(m) },
	} {
		d.show(update{status: statusOf(member(1, edit))})
	}
	want := "web-1  Failed  not ready  (Exited: exit code 1)\n" +
		"web-1  Failed  not ready  (waits for web-0: it is not ready)\n" +
		"web-1  Failed  not ready  (VolumeLost: volume data-web-1 held data)\n"
	if out.String() != want {
		t.Errorf("%s\nwant\n%s", out.String(), want)
	}
}
