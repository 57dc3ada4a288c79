package main

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stsd/stsd/daemon/api/apitest"
	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

func TestWhatVerbsSend(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]any{
		"scale web 5 --detach":                   client.ScaleRequest{Replicas: 5},
		"scale web +2 --detach":                  client.ScaleRequest{Replicas: 2, Relative: true},
		"scale web -1 --detach":                  client.ScaleRequest{Replicas: -1, Relative: true},
		"scale web 0 --dry-run":                  client.ScaleRequest{Write: client.Write{DryRun: true}},
		"set image web web:2 --detach":           client.ImageRequest{Images: map[string]string{"": "web:2"}},
		"set image web a=x:1 b=y:2 --detach":     client.ImageRequest{Images: map[string]string{"a": "x:1", "b": "y:2"}},
		"rollout undo web --detach":              client.RolloutRequest{Do: "undo"},
		"rollout undo web --to 3 --detach --yes": client.RolloutRequest{Do: "undo", To: 3, Write: client.Write{Yes: true}},
		"rollout pause web":                      client.RolloutRequest{Do: "pause"},
		"rollout resume web --detach":            client.RolloutRequest{Do: "resume"},
		"rollout restart web -m why --detach":    client.RolloutRequest{Do: "restart", Write: client.Write{Cause: "why"}},
		"restart web --detach":                   client.MembersRequest{Do: "restart"},
		"restart web-1 --detach --force":         client.MembersRequest{Do: "restart", Ordinals: []int{1}, Write: client.Write{Force: true}},
		"stop web-0,2 web-[1-2] --detach":        client.MembersRequest{Do: "stop", Ordinals: []int{0, 2, 1}},
		"stop web-0 web --detach":                client.MembersRequest{Do: "stop"},
		"start default/web-2 --dry-run":          client.MembersRequest{Do: "start", Ordinals: []int{2}, Write: client.Write{DryRun: true}},
		"replace web-0 --detach":                 client.MembersRequest{Do: "replace", Ordinals: []int{0}},
		"replace web-2 --fresh-volume --detach":  client.FreshVolumeRequest{Ordinal: 2},
		"scale web 1 --force --detach":           client.ScaleRequest{Replicas: 1, Write: client.Write{Force: true}},
		"delete web":                             client.DeleteRequest{},
		"delete web --volumes=delete --dry-run":  client.DeleteRequest{Volumes: "delete", Write: client.Write{DryRun: true}},
	} {
		s := apitest.World()
		got := against(t, s).run(strings.Fields(args)...)
		if sent := s.Got(); got.code != exitOK || len(sent) != 1 || !reflect.DeepEqual(sent[0], want) {
			t.Errorf("stsd %s: exit %d, sent %+v, want %+v\n%s", args, got.code, sent, want, got.stderr)
		}
	}
}

func TestADryRunShowsThePlan(t *testing.T) {
	t.Parallel()
	file := write(t, "web.hcl", spec)
	for _, args := range []string{"scale web 5 --dry-run", "set image web web:2 --dry-run", "rollout undo web --dry-run", "rollout pause web --dry-run", "delete web --dry-run", "restart web --dry-run", "stop web-1 --dry-run", "replace web-0 --dry-run", "apply --dry-run " + file} {
		got := against(t, apitest.World()).run(strings.Fields(args)...)
		if got.code != exitOK || !strings.HasPrefix(got.stdout, "web: revision web-1111111111 → web-2222222222\n") {
			t.Errorf("stsd %s: exit %d\n%s%s", args, got.code, got.stdout, got.stderr)
		}
	}
}

func TestADryRunOfADeleteShowsVolumesAndNoRevision(t *testing.T) {
	t.Parallel()
	s := apitest.World()
	s.Plans = []jobspecs.Plan{{
		Namespace: "default", Set: "web", Generation: 3, Changes: true, Revision: jobspecs.PlanRevision{From: "web-1", To: "web-1"},
		Steps: []jobspecs.Step{
			{Op: jobspecs.OpStop, Member: "web-0", Why: "set is being deleted", Now: true},
			{Op: jobspecs.OpKeepVolume, Member: "web-0", Volume: "data-web-0", Why: "stays when the set is gone"},
		},
	}}
	for args, want := range map[string]string{
		"delete web --dry-run": `web:
  -   stop          web-0        set is being deleted         now
  =   keep volume   data-web-0   stays when the set is gone
  1 to stop; volumes: 1 kept
`,
		"stop web --dry-run": `web:
  -   stop   web-0   set is being deleted   now
  1 to stop; volumes: 1 kept
`,
	} {
		if got := against(t, s).run(strings.Fields(args)...); got.code != exitOK || got.stdout != want {
			t.Errorf("stsd %s: exit %d\n%s%s\nwant\n%s", args, got.code, got.stdout, got.stderr, want)
		}
	}
}

func TestStatusSaysWhatIsKeptOnTopOfTheFile(t *testing.T) {
	t.Parallel()
	s, four := apitest.World(), 4
	s.Statuses[apitest.Web] = []jobspecs.Status{statusOf(func(st *jobspecs.Status) { st.Overrides = &jobspecs.Overrides{Replicas: &four, Restarted: "today"} })}
	want := "Overrides    kept on top of the file: replicas = 4; applying a changed file drops it; restarted today\n"
	if got := against(t, s).run("status", "web"); !strings.Contains(got.stdout, want) {
		t.Errorf("status = %s%s\nwant a line %q", got.stdout, got.stderr, want)
	}
}

func TestALongCauseIsShortenedInTheTableOnly(t *testing.T) {
	t.Parallel()
	s := apitest.World()
	begin := "rolled back from web-2222222222 to web-1111111111:"
	s.Rev[1].Cause = begin + " web-1 is not available 5m0s after it could have been\nand more"
	c := against(t, s)
	for args, want := range map[string]string{
		"rollout history web":                      "   " + strings.TrimSuffix(begin, ":") + "…   ",
		"rollout history web -o wide":              begin + " web-1 is not available 5m0s after it could have been   ",
		"rollout history web --revision 2":         "# cause: " + begin + " web-1 is not available 5m0s after it could have been\n#   and more\n",
		"rollout history web --revision 2 -o json": begin + ` web-1 is not available 5m0s after it could have been\nand more"`,
		"rollout history web -o json":              begin + ` web-1 is not available 5m0s after it could have been\nand more"`,
	} {
		if got := c.run(strings.Fields(args)...); !strings.Contains(got.stdout, want) {
			t.Errorf("stsd %s:\n%s%s\nwant %q", args, got.stdout, got.stderr, want)
		}
	}
}

func TestLogsFollowMembersThatComeLater(t *testing.T) {
	t.Parallel()
	s := apitest.World()
	c := against(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	lines := 0
	c.ctx, c.wrote = ctx, func() {
		if lines++; lines == 4 {
			cancel()
		}
	}
	got := c.run("logs", "-f", "web")
	if got.code != exitInterrupted || strings.Count(got.stdout, "web-0 |") != 2 || strings.Count(got.stdout, "web-1 |") != 2 {
		t.Errorf("exit %d\n%s%s", got.code, got.stdout, got.stderr)
	}
}

func TestExecInAllMembers(t *testing.T) {
	t.Parallel()
	got := against(t, apitest.World()).run("exec", "--all", "web", "--", "exit", "3")
	want := fromWeb + "web-0:\nweb-0 exits\nweb-1:\nweb-1 exits\nweb-2:\nweb-2 exits\n"
	if got.code != 3 || got.stderr != want {
		t.Errorf("exit %d, %q, want 3, %q", got.code, got.stderr, want)
	}
}

func TestExecPassesStandardInput(t *testing.T) {
	t.Parallel()
	c := against(t, apitest.World())
	c.stdin = strings.NewReader("some text")
	if got := c.run("exec", "-i", "web-0", "--", "cat"); got.code != exitOK || got.stdout != "some text" {
		t.Errorf("exit %d, %q\n%s", got.code, got.stdout, got.stderr)
	}
}

func TestWait(t *testing.T) {
	t.Parallel()
	s := apitest.World()
	s.Statuses[apitest.Web] = append(s.Statuses[apitest.Web], statusOf(setCondition(jobspecs.CondProgressing, false, "Complete")))
	c := against(t, s)
	for _, what := range []string{"ready", "available", "rollout"} {
		got := c.run("wait", "web", "--for="+what, "-o", "json")
		if got.code != exitOK || !strings.Contains(got.stdout, `"met": true`) {
			t.Errorf("--for=%s: exit %d\n%s%s", what, got.code, got.stdout, got.stderr)
		}
	}
}

func TestNamesAreCompletedFromTheDaemon(t *testing.T) {
	t.Parallel()
	c := against(t, apitest.World())
	for args, want := range map[string]string{
		"status |":                 "web :4",
		"delete prod/|":            "prod/db :4",
		"logs |":                   "web web-0 web-1 web-2 :4",
		"explain web-|":            "web web-0 web-1 web-2 :4",
		"rollout undo web --to |":  "1\tweb-1111111111 2\tweb-2222222222 :4",
		"diff web --revision 1..|": "1..1\tweb-1111111111 1..2\tweb-2222222222 :4",
		"ls -n |":                  "default prod :4",
		"wait web --for |":         "ready available deleted rollout :4",
		"ls -o |":                  "table wide json yaml name go-template= :4",
		"delete web --volumes |":   "delete retain :4",
		"example |":                "etcd rabbitmq redis redis-roles web :4",
		"apply |":                  "hcl :8",
		"status web |":             ":4",
		"scale |":                  "web :4",
		"scale web |":              ":4",
		"set image |":              "web :4",
		"set image web |":          "web= prepare= exporter= :6",
		"exec web-1 |":             ":4",
		"explain web-1 |":          ":4",
		"logs web-1 -c |":          "prepare\tinit exporter\tsidecar web\tcontainer :4",
		"exec web-0 -c |":          "web\tcontainer :4",
		"exec -c |":                ":4",
	} {
		typed := strings.Split(args, " ")
		typed[len(typed)-1] = strings.TrimSuffix(typed[len(typed)-1], "|")
		got := c.run(append([]string{"__complete"}, typed...)...)
		if words := strings.Join(strings.Split(strings.TrimSpace(got.stdout), "\n"), " "); words != want {
			t.Errorf("%s completes %q, want %q", args, words, want)
		}
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if got := c.run("completion", shell); got.code != exitOK || got.stdout == "" {
			t.Errorf("completion %s: exit %d: %s", shell, got.code, got.stderr)
		}
	}
}

func TestWhereTheDaemonIsLookedFor(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		host string
		env  []string
		want []string
	}{
		{"unix:///a", []string{"STSD_HOST=unix:///b"}, []string{"unix:///a"}},
		{"", []string{"STSD_HOST=unix:///b", "XDG_RUNTIME_DIR=/run/user/1"}, []string{"unix:///b"}},
		{"", []string{"XDG_RUNTIME_DIR=/run/user/1"}, []string{"unix:///run/stsd/stsd.sock", "unix:///run/user/1/stsd.sock"}},
	} {
		a := newApp(tc.env, nil, nil, nil)
		a.host = tc.host
		if got := a.hosts(); !reflect.DeepEqual(got, tc.want) {
			t.Errorf("-H %q, %v: %v, want %v", tc.host, tc.env, got, tc.want)
		}
	}
}

func TestTheFirstHostThatAnswersIsAsked(t *testing.T) {
	t.Parallel()
	c, err := client.New("unix:///nowhere/s", apitest.Serve(t, apitest.World()))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if v, err := c.Version(t.Context()); err != nil || v.Daemon != "d0" {
		t.Errorf("version = %+v, %v", v, err)
	}
}

func TestWhenOutputIsOpenedAgain(t *testing.T) {
	t.Parallel()
	then, now := apitest.Start, apitest.Start.Add(time.Minute)
	running := jobspecs.Member{StartedAt: &then}
	m := merger{options: runtime.LogOptions{Follow: true, Tail: "5"}}
	from := func(at time.Time) runtime.LogOptions { return runtime.LogOptions{Follow: true, Tail: "all", Since: at} }
	for _, tc := range []struct {
		name   string
		s      *stream
		member jobspecs.Member
		want   runtime.LogOptions
		due    bool
	}{
		{"a member that never started has none", nil, jobspecs.Member{}, m.options, false},
		{"the first time as the user said", nil, running, m.options, true},
		{"not twice at once", &stream{started: then, running: true}, running, m.options, false},
		{"not the same container again", &stream{started: then}, running, from(then), false},
		{"a new container from its start", &stream{started: then}, jobspecs.Member{StartedAt: &now}, from(now), true},
		{"where it broke off with the daemon", &stream{started: then, lostAt: now}, running, from(now), true},
	} {
		if got, due := m.due(tc.s, tc.member); got != tc.want || due != tc.due {
			t.Errorf("%s: %+v, %v, want %+v, %v", tc.name, got, due, tc.want, tc.due)
		}
	}
}
