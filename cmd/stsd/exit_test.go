package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stsd/stsd/daemon/api/apitest"
	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/jobspecs"
)

// The table of exit codes, each reached by typing something.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	file := write(t, "web.hcl", spec)
	bad := write(t, "bad.hcl", "statefulset \"web\" {\n  replica = 3\n}\n")
	ugly := write(t, "ugly.hcl", strings.ReplaceAll(spec, "  ", "      "))
	warns := write(t, "warns.hcl", strings.Replace(spec, "container \"web\" {", "container \"web\" {\n    args = [\"$(X)\"]", 1))
	fails := func(err error) func(*apitest.Service) { return func(s *apitest.Service) { s.Err = err } }
	problem := func(kind string) func(*apitest.Service) { return fails(&client.Problem{Type: kind, Title: "no"}) }
	is := func(edit func(*jobspecs.Status)) func(*apitest.Service) {
		return func(s *apitest.Service) { edit(&s.Statuses[apitest.Web][0]) }
	}
	complete := is(setCondition(jobspecs.CondProgressing, false, "Complete"))
	stalled := is(setCondition(jobspecs.CondStalled, true, "ImageUnknown"))
	paused := is(setCondition(jobspecs.CondPaused, true, "ByUser"))
	for _, tc := range []struct {
		name  string
		code  int
		world func(*apitest.Service)
		args  string
	}{
		{"help", 0, nil, "--help"},
		{"nothing", 0, nil, ""},
		{"done", 0, complete, "apply " + file},
		{"detached", 0, nil, "apply --detach " + file},
		{"dry run", 0, nil, "apply --dry-run " + file},
		{"plan", 0, nil, "plan " + file},
		{"nothing to do", 0, func(s *apitest.Service) { s.Plans[0].Changes = false }, "plan --exit-code " + file},
		{"valid", 0, nil, "validate " + file},
		{"formatted", 0, nil, "fmt --check " + file},
		{"rollout complete", 0, complete, "rollout status web"},
		{"rollout looked at once", 0, nil, "rollout status web --watch=false"},
		{"already gone", 0, nil, "wait nothing --for=deleted"},
		{"deleted", 0, func(s *apitest.Service) { s.Gone = true }, "delete web --wait"},
		{"exec", 0, nil, "exec web-0 -- exit 0"},

		{"no such file", 1, nil, "apply nothing.hcl"},
		{"invalid spec", 1, nil, "apply " + bad},
		{"invalid spec, validate", 1, nil, "validate " + bad},
		{"warnings with --strict", 1, nil, "validate --strict " + warns},
		{"invalid for the daemon", 1, problem(client.ProblemInvalid), "apply " + file},
		{"no such set", 1, nil, "status nothing"},
		{"no such member", 1, nil, "ps web-7"},
		{"conflict", 1, problem(client.ProblemConflict), "rollout undo web"},
		{"engine gone", 1, problem(client.ProblemEngine), "apply " + file},
		{"broken daemon", 1, fails(errors.New("oops")), "ls"},

		{"differences, plan", 2, nil, "plan --exit-code " + file},
		{"differences, diff", 2, nil, "diff --exit-code " + file},
		{"not formatted", 2, nil, "fmt --check " + ugly},

		{"stalled", 3, stalled, "apply " + file},
		{"stalled, status", 3, stalled, "rollout status web"},
		{"rolled back", 3, is(setCondition(jobspecs.CondRolledBack, true, "Deadline")), "rollout status web"},
		{"deleted meanwhile", 3, func(s *apitest.Service) { s.Gone = true }, "apply " + file},
		{"stalled, wait", 3, stalled, "wait web --for=rollout"},

		{"time-out", 4, nil, "apply --timeout 50ms " + file},
		{"time-out, wait", 4, nil, "wait web --for=ready --timeout 50ms"},
		{"time-out, delete", 4, nil, "delete web --wait --timeout 50ms"},
		{"paused", 4, paused, "apply " + file},
		{"paused, scale", 4, paused, "scale web 4"},

		{"changed since", 5, problem(client.ProblemChanged), "apply --expect-generation 3 " + file},

		{"loss of data not confirmed", 6, func(s *apitest.Service) { s.Loss = []string{"data-web-2"} }, "apply " + file},
		{"loss of volumes not confirmed", 6, func(s *apitest.Service) { s.Loss = []string{"data-web-2"} }, "delete web --volumes=delete"},

		{"the guard refuses a scale", 6, problem(client.ProblemGuard), "scale web 1"},
		{"the guard refuses an apply", 6, problem(client.ProblemGuard), "apply " + file},
		{"rolled back", 3, func(s *apitest.Service) {
			setCondition(jobspecs.CondRolledBack, true, "DeadlineExceeded")(&s.Statuses[apitest.Web][0])
		}, "rollout status web"},

		{"no daemon", 7, nil, "-H unix:///nowhere/s ls"},
		{"no daemon to apply", 7, nil, "-H unix:///nowhere/s apply " + file},

		{"unknown verb", 64, nil, "frobnicate"},
		{"foreign verb", 64, nil, "up " + file},
		{"unknown verb of a group", 64, nil, "rollout frobnicate"},
		{"no verb of a group", 64, nil, "rollout"},
		{"verb to come", 64, nil, "attach web-1"},
		{"replace of a set", 64, nil, "replace web"},
		{"fresh volumes for two", 64, nil, "replace web-0 web-1 --fresh-volume"},
		{"unknown flag", 64, nil, "ls --frobnicate"},
		{"bad value of a flag", 64, nil, "apply --timeout soon " + file},
		{"unknown format", 64, nil, "ls -o xml"},
		{"bad template", 64, nil, "ls -o go-template={{"},
		{"missing argument", 64, nil, "status"},
		{"too many arguments", 64, nil, "status web web"},
		{"no file", 64, nil, "apply"},
		{"Kubernetes YAML", 64, nil, "apply web.yaml"},
		{"member where a set is due", 64, nil, "delete web-1"},
		{"list where a set is due", 64, nil, "status web-0,1"},
		{"set where a member is due", 64, nil, "explain web"},
		{"no number", 64, nil, "scale web many"},
		{"TCP", 64, nil, "-H tcp://127.0.0.1:1 ls"},
		{"no namespace", 64, nil, "ls -n Bad_Name"},
		{"two namespaces", 64, nil, "status -n prod default/web"},
		{"cascade", 64, nil, "delete web --cascade=foreground"},
		{"wait for what", 64, nil, "wait web --for=godot"},

		{"exec passes on", 42, nil, "exec web-0 -- exit 42"},
		{"exec passes on 64", 64, nil, "exec web-0 -- exit 64"},
		{"exec in all", 7, nil, "exec --all web-0,1 -- exit 7"},
		{"exec, no daemon", 125, nil, "-H unix:///nowhere/s exec web-0 -- ls"},
		{"exec, no command", 125, nil, "exec web-0"},
		{"exec, unknown flag", 125, nil, "exec --frobnicate web-0 -- ls"},
		{"exec, a set", 125, nil, "exec web -- ls"},
		{"exec, no such member", 125, nil, "exec web-9 -- ls"},
		{"exec, cannot start", 125, nil, "exec web-0 -- nothing"},
		{"exec, no terminal", 125, nil, "exec -it web-0 -- ls"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := apitest.World()
			if tc.world != nil {
				tc.world(s)
			}
			got := against(t, s).run(strings.Fields(tc.args)...)
			if got.code != tc.code {
				t.Errorf("stsd %s: exit %d, want %d\n%s%s", tc.args, got.code, tc.code, got.stdout, got.stderr)
			}
			quiet := tc.code == 0 || tc.code == 2 || strings.Contains(tc.args, "-- exit")
			if !quiet && got.stderr == "" {
				t.Errorf("stsd %s: exit %d and not a word", tc.args, got.code)
			}
		})
	}
}

func setCondition(kind string, status bool, reason string) func(*jobspecs.Status) {
	return func(st *jobspecs.Status) {
		for i := range st.Conditions {
			if st.Conditions[i].Type == kind {
				st.Conditions[i].Status, st.Conditions[i].Reason = status, reason
				return
			}
		}
		st.Conditions = append(st.Conditions, jobspecs.Condition{Type: kind, Status: status, Reason: reason})
	}
}

func TestCtrlCSaysThatTheDaemonCarriesOn(t *testing.T) {
	t.Parallel()
	c := against(t, apitest.World())
	ctx, cancel := context.WithCancel(t.Context())
	c.ctx, c.wrote = ctx, cancel // as a user would, after the first line
	got := c.run("rollout", "status", "web")
	want := "stsd: interrupted; the daemon carries on with web\n  try: stsd rollout status web\n"
	if got.code != exitInterrupted || got.stderr != want {
		t.Errorf("exit %d, want %d\n%s", got.code, exitInterrupted, got.stderr)
	}
}

func TestErrorsEndWithWhatToType(t *testing.T) {
	t.Parallel()
	file := write(t, "web.hcl", spec)
	stalled := apitest.World()
	setCondition(jobspecs.CondStalled, true, "ImageUnknown")(&stalled.Statuses[apitest.Web][0])
	loss := apitest.World()
	loss.Loss = []string{"data-web-2 would be left"}
	for _, tc := range []struct {
		world *apitest.Service
		args  string
		last  string
	}{
		{apitest.World(), "delete web-1", "  try: stsd stop web-1, to have it down until stsd start"},
		{apitest.World(), "status web-1", "  try: stsd explain web-1"},
		{apitest.World(), "rollout restart web-1 --detach", "  try: stsd rollout restart web"},
		{apitest.World(), "explain web", "  try: stsd status web"},
		{apitest.World(), "down web", "  try: stsd delete"},
		{apitest.World(), "describe web", "  try: stsd status"},
		{apitest.World(), "get web", "  try: stsd ps"},
		{apitest.World(), "aply web", "  try: stsd apply"},
		{apitest.World(), "rollout histroy web", "  try: stsd rollout history"},
		{apitest.World(), "-H unix:///nowhere/s ls", "  try: stsd -H unix:///path/to/stsd.sock …, or STSD_HOST, when it listens elsewhere"},
		{stalled, "apply " + file, "  try: stsd explain web-1"},
		{loss, "apply " + file, "  try: stsd apply … --yes, when the data may go"},
		{apitest.World(), "apply --timeout 50ms " + file, "  try: stsd explain web-1"},
		{apitest.World(), "apply --prune " + file, "  try: stsd delete SET"},
		{apitest.World(), "diff web --revision 1..9", "  try: stsd rollout history web"},
	} {
		got := against(t, tc.world).run(strings.Fields(tc.args)...)
		lines := strings.Split(strings.TrimRight(got.stderr, "\n"), "\n")
		if last := lines[len(lines)-1]; last != tc.last {
			t.Errorf("stsd %s ends with %q, want %q\n%s", tc.args, last, tc.last, got.stderr)
		}
	}
}

func TestDataIsShownBeforeItIsRefused(t *testing.T) {
	t.Parallel()
	s := apitest.World()
	s.Loss = []string{"data-web-2 would be left"}
	c := against(t, s)
	got := c.run("delete", "web", "--volumes=delete")
	want := "data: data-web-2 would be left\nstsd: data would be lost sight of\n  try: stsd delete … --yes, when the data may go\n"
	if got.stderr != want {
		t.Errorf("stderr = %q, want %q", got.stderr, want)
	}
	if got := c.run("delete", "web", "--volumes=delete", "--yes"); got.code != exitOK {
		t.Errorf("--yes: exit %d: %s", got.code, got.stderr)
	}
	sent := s.Got()
	if yes := sent[1].(client.DeleteRequest); !yes.Yes || yes.Volumes != "delete" {
		t.Errorf("sent %+v", yes)
	}
}

func TestOnlyTheSetsNameConfirms(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string]int{"web\n": exitOK, " web \n": exitOK, "web": exitOK, "y\n": exitRefused, "": exitRefused, "webb\n": exitRefused} {
		var errs strings.Builder
		a := newApp(nil, strings.NewReader(typed), &errs, &errs)
		if got := exitCode(t.Context(), a.ask(t.Context(), "set", "web")); got != want {
			t.Errorf("typed %q: exit %d, want %d", typed, got, want)
		}
	}
}

func TestVerbsToComeAreKnown(t *testing.T) {
	t.Parallel()
	c := against(t, apitest.World())
	for verb := range later {
		got := c.run(verb, "x", "--any-flag")
		if want := fmt.Sprintf("stsd: %s is not supported yet\n", verb); got.code != exitUsage || !strings.HasPrefix(got.stderr, want) {
			t.Errorf("%s: exit %d, %q", verb, got.code, got.stderr)
		}
	}
}
