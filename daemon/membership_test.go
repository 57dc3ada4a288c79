package daemon

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/daemon/planner"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime/sim"
)

// pair is a set of two with more lines.
func pair(lines string) string {
	return "variable \"image\" {\ntype = string\ndefault = \"web:1\"\n}\nstatefulset \"web\" {\nreplicas = 2\n" + lines + "\ncontainer \"web\" {\nimage = var.image\n}\n}\n"
}

// ready is pair with a probe, so that a program may be unready.
func ready(lines string) string {
	return strings.Replace(pair(lines), "image = var.image\n", "image = var.image\nport \"http\" {\ncontainer = 80\n}\nprobe \"readiness\" {\ntcp {\nport = \"http\"\n}\nperiod = \"1s\"\n}\n", 1)
}

func (s *stage) scale(n int, w client.Write) error {
	_, err := s.Scale(s.t.Context(), web, client.ScaleRequest{Replicas: n, Write: w})
	s.settle()
	return err
}

func (s *stage) members(do string, w client.Write, ordinals ...int) error {
	_, err := s.ChangeMembers(s.t.Context(), web, client.MembersRequest{Do: do, Ordinals: ordinals, Write: w})
	s.settle()
	return err
}

func (s *stage) condition(kind string) jobspecs.Condition {
	for _, c := range s.status().Conditions {
		if c.Type == kind {
			c.Since = time.Time{}
			return c
		}
	}
	return jobspecs.Condition{}
}

// names are the members with phase and readiness.
func (s *stage) names() string {
	var out []string
	for _, m := range s.status().Members {
		out = append(out, fmt.Sprintf("%s %s %v", m.Name, m.Phase, m.Available))
	}
	return strings.Join(out, ", ")
}

// execs are the commands of hooks so far: where, what, with which environment.
func (s *stage) execs() string {
	var out []string
	for _, e := range s.world.Execs() {
		out = append(out, fmt.Sprintf("%s: %s (%s %s %s)", e.Pod.Name, strings.Join(e.Command, " "), e.Env["STSD_REASON"], e.Env["STSD_MEMBER"], e.Env["STSD_ORDINAL"]))
	}
	return strings.Join(out, "; ")
}

func (s *stage) said(reason string) string {
	text := ""
	all, _ := s.events.list()
	for _, e := range all {
		if e.Reason == reason {
			text = e.Message
		}
	}
	return text
}

func problemType(err error) string {
	var p *client.Problem
	if !errors.As(err, &p) {
		return fmt.Sprint(err)
	}
	return p.Type
}

func want(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s = %q\nwant %q", what, got, want)
	}
}

func TestHooksRunWhenTheMembershipChanges(t *testing.T) {
	play(t, func(s *stage) {
		s.apply(pair(`
			hook "form" {
				on      = "set_ready"
				once    = true
				ordinal = 1
				command = ["echo", "form", self.name]
			}
			hook "add" {
				on      = "join"
				ordinal = 0
				command = ["echo", "add", self.name]
			}
			hook "greet" {
				on      = "join"
				command = ["echo", "greet"]
			}
			hook "forget" {
				on      = "leave"
				ordinal = 0
				command = ["echo", "forget", self.name]
			}`))
		form := "web-1: echo form web-1 (set_ready web-1 1)"
		want(t, "after the first start", s.execs(), form)
		if err := s.scale(3, client.Write{}); err != nil {
			t.Fatal(err)
		}
		joined := form + "; web-0: echo add web-2 (join web-2 2); web-2: echo greet (join web-2 2)"
		want(t, "after a scale-up", s.execs(), joined)
		s.apply(pair(""), "image=web:2") // also drops the hooks
		s.world.RemoveContainer("web-1")
		s.settle()
		want(t, "after an update and a repair", s.execs(), joined)
	})
}

func TestAHookMayNotRunForARestart(t *testing.T) {
	play(t, func(s *stage) {
		text := pair("hook \"a\" {\non = \"leave\"\ncommand = [\"false\"]\n}\nhook \"b\" {\non = \"join\"\ncommand = [\"false\"]\n}")
		s.apply(text)
		s.apply(text, "image=web:2")
		if err := s.members("restart", client.Write{}); err != nil {
			t.Fatal(err)
		}
		s.world.Kill("web-0")
		s.settle()
		want(t, "hooks", s.execs(), "")
		want(t, "members", s.names(), "web-0 Running true, web-1 Running true")
	})
}

func TestALeaveHookMayVeto(t *testing.T) {
	play(t, func(s *stage) {
		s.world.Program("web:1", sim.Program{Exec: func(string, []string) (string, int) { return "quorum\nwould be lost\n", 3 }})
		s.apply(pair("hook \"forget\" {\non = \"leave\"\ncommand = [\"forget\"]\n}"))
		if err := s.scale(1, client.Write{}); err != nil {
			t.Fatal(err)
		}
		want(t, "members", s.names(), "web-0 Running true, web-1 Running true")
		no := "hook forget says no: exit code 3: would be lost"
		stalled := s.condition(jobspecs.CondStalled)
		want(t, "stalled", fmt.Sprint(stalled.Status, stalled.Reason, stalled.Message), "true"+planner.ReasonHookFailed+no)
		want(t, "message of web-1", s.status().Members[1].Message, no)
		want(t, "event", s.said("Failed"), "hook forget in web-1 (web-1 leaves): "+no)
		if err := s.scale(1, client.Write{Force: true}); err != nil {
			t.Fatal(err)
		}
		want(t, "members after force", s.names(), "web-0 Running true")
	})
}

func TestADeadMemberLeavesWithoutTheHooksThatWouldRunInIt(t *testing.T) {
	play(t, func(s *stage) {
		s.world.Program("web:1", sim.Program{})
		text := pair("hook \"out\" {\non = \"leave\"\ncommand = [\"false\"]\n}\nhook \"forget\" {\non = \"leave\"\nordinal = 0\ncommand = [\"echo\", \"forget\", self.name]\n}")
		s.apply(strings.Replace(text, "image = var.image\n", "image = var.image\nrestart {\nfirst = \"1h\"\ninitial = \"1h\"\nmax = \"1h\"\n}\n", 1))
		s.world.Kill("web-1")
		s.settle()
		want(t, "members", s.names(), "web-0 Running true, web-1 Backoff false")
		if err := s.scale(1, client.Write{}); err != nil {
			t.Fatal(err)
		}
		want(t, "members after", s.names(), "web-0 Running true")
		want(t, "hooks", s.execs(), "web-0: echo forget web-1 (leave web-1 1)")
		want(t, "event", s.said("Stopping"), "stop web-1 (scaled down, without hook out: it does not run)")
	})
}

func TestAMemberThatRunsIsAskedBeforeItLeavesReadyOrNot(t *testing.T) {
	play(t, func(s *stage) {
		s.world.Program("web:1", sim.Program{Exec: func(string, []string) (string, int) { return "it has shards\n", 1 }})
		s.apply(ready("hook \"out\" {\non = \"leave\"\ncommand = [\"out\"]\n}"))
		s.world.Sicken("web-1", "overloaded")
		s.settle()
		want(t, "members", s.names(), "web-0 Running true, web-1 Running false")
		if err := s.scale(1, client.Write{}); err != nil {
			t.Fatal(err)
		}
		want(t, "members after", s.names(), "web-0 Running true, web-1 Running false")
		want(t, "message", s.status().Members[1].Message, "hook out says no: exit code 1: it has shards")
		if next := s.status().Members[1].NextTry; next == nil {
			t.Error("it does not say when it is tried again")
		}
		if err := s.scale(1, client.Write{Force: true}); err != nil {
			t.Fatal(err)
		}
		want(t, "members after force", s.names(), "web-0 Running true")
	})
}

func TestHooksFindTheirSetInTheEnvironment(t *testing.T) {
	play(t, func(s *stage) {
		s.apply(pair("hook \"form\" {\non = \"set_ready\"\ncommand = [\"form\"]\n}"))
		got := s.world.Execs()[0].Env
		want(t, "environment", fmt.Sprint(got), "map[STSD_MEMBER:web-0 STSD_NAMESPACE:default STSD_ORDINAL:0 STSD_REASON:set_ready STSD_SET:web]")
	})
}

func TestAFailureThatDoesNotCountLetsTheMemberGo(t *testing.T) {
	play(t, func(s *stage) {
		s.apply(pair("hook \"forget\" {\non = \"leave\"\ncommand = [\"false\"]\non_failure = \"continue\"\n}"))
		if err := s.scale(1, client.Write{}); err != nil {
			t.Fatal(err)
		}
		want(t, "members", s.names(), "web-0 Running true")
		want(t, "event", s.said(planner.ReasonHookFailed), "hook forget says no: exit code 1; it goes on all the same")
	})
}

func TestALongHookDoesNotKeepTheSetFromItsRepairs(t *testing.T) {
	play(t, func(s *stage) {
		s.world.Program("web:1", sim.Program{ExecTime: 10 * time.Minute, Exec: func(string, []string) (string, int) { return "", 0 }})
		s.apply(pair("hook \"move\" {\non = \"leave\"\ncommand = [\"move\"]\ntimeout = \"1h\"\n}"))
		if err := s.scale(1, client.Write{}); err != nil {
			t.Fatal(err)
		}
		want(t, "what is waited for", s.status().Members[1].Waiting, "web-1 waits: hook move runs there")
		s.world.RemoveContainer("web-0")
		s.settle()
		want(t, "members meanwhile", s.names(), "web-0 Running true, web-1 Running true")
		time.Sleep(10 * time.Minute)
		s.settle()
		want(t, "members at the end", s.names(), "web-0 Running true")
		want(t, "hooks", s.execs(), "web-1: move (leave web-1 1)")
	})
}

func TestAHookThatTakesTooLongHasFailed(t *testing.T) {
	play(t, func(s *stage) {
		s.world.Program("web:1", sim.Program{ExecTime: time.Hour, Exec: func(string, []string) (string, int) { return "", 0 }})
		s.apply(pair("hook \"form\" {\non = \"set_ready\"\ncommand = [\"form\"]\ntimeout = \"10s\"\n}"))
		want(t, "event", s.said("Failed"), "hook form in web-0 (all members are ready): hook form failed: it did not end within 10s")
		if c := s.condition(jobspecs.CondProgressing); !c.Status {
			t.Errorf("progressing = %+v: the set is not complete before its hook has run", c)
		}
	})
}

func TestAMemberThatWasToLeaveAndStaysJoinsAgain(t *testing.T) {
	play(t, func(s *stage) {
		s.world.Program("web:1", sim.Program{ExecTime: 10 * time.Second, Exec: func(string, []string) (string, int) { return "", 0 }})
		s.apply(pair("hook \"out\" {\non = \"leave\"\ncommand = [\"out\"]\n}\nhook \"in\" {\non = \"join\"\ncommand = [\"in\"]\n}"))
		if _, err := s.Scale(t.Context(), web, client.ScaleRequest{Replicas: 1}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		if err := s.scale(2, client.Write{}); err != nil {
			t.Fatal(err)
		}
		want(t, "hooks", s.execs(), "web-1: out (leave web-1 1); web-1: in (join web-1 1)")
		want(t, "restarts", fmt.Sprint(s.status().Members[1].Restarts), "0")
	})
}

func TestAGuardRefusesUpFront(t *testing.T) {
	play(t, func(s *stage) {
		s.apply(pair("guard {\nmin_available = 2\n}"))
		for name, err := range map[string]error{
			"stop":      s.members("stop", client.Write{}, 1),
			"restart":   s.members("restart", client.Write{}),
			"replace":   s.members("replace", client.Write{}, 0),
			"scale":     s.scale(1, client.Write{}),
			"dry run":   s.scale(1, client.Write{DryRun: true}),
			"roll anew": func() error { _, err := s.Rollout(t.Context(), web, client.RolloutRequest{Do: "restart"}); return err }(),
		} {
			want(t, name, problemType(err), client.ProblemGuard)
		}
		if err := s.scale(3, client.Write{}); err != nil {
			t.Errorf("a scale-up: %v", err)
		}
		if err := s.members("restart", client.Write{}); err != nil {
			t.Errorf("a restart with one to spare: %v", err)
		}
		want(t, "members", s.names(), "web-0 Running true, web-1 Running true, web-2 Running true")
		if err := s.scale(1, client.Write{Force: true}); err != nil {
			t.Errorf("force: %v", err)
		}
		want(t, "members", s.names(), "web-0 Running true")
	})
}

// Two that ask at once are not both told that their member may go, though none has gone yet.
func TestAGuardCountsWhoIsToGoAlready(t *testing.T) {
	play(t, func(s *stage) {
		s.apply(strings.Replace(pair("guard {\nmin_available = 2\n}"), "replicas = 2", "replicas = 3", 1))
		want(t, "members", s.names(), "web-0 Running true, web-1 Running true, web-2 Running true")
		stop := func(o int) error {
			_, err := s.ChangeMembers(t.Context(), web, client.MembersRequest{Do: "stop", Ordinals: []int{o}})
			return err
		}
		first, second := stop(0), stop(1)
		if first != nil || problemType(second) != client.ProblemGuard {
			t.Errorf("stop of web-0: %v, of web-1 at once: %v", first, second)
		}
		again := stop(0)
		s.settle()
		if again != nil || s.names() != "web-0 Stopped false, web-1 Running true, web-2 Running true" {
			t.Errorf("stop of web-0 again: %v, members %s", again, s.names())
		}
	})
}

func TestAGuardThatCannotBeWorkedOutLetsNobodyGo(t *testing.T) {
	play(t, func(s *stage) {
		s.apply(pair("guard {\nmin_available = floor(6 / (set.replicas - 1))\n}"))
		v, err := s.store.Look(web)
		if err != nil {
			t.Fatal(err)
		}
		for replicas, least := range map[int]int{1: planner.GuardUnknown, 4: 2} {
			v.Record.Replicas = replicas
			look := sight{view: v, world: s.Daemon.world(&v, time.Now(), nil, nil)}
			look.env = s.env(&look)
			if got := guard(&look); got != least {
				t.Errorf("of %d: %d members have to stay, want %d", replicas, got, least)
			}
		}
	})
}

func TestAGuardKeepsAnUpdateWaiting(t *testing.T) {
	play(t, func(s *stage) {
		text := pair("guard {\nmin_available = set.replicas\n}")
		s.apply(text)
		s.apply(text, "image=web:2")
		want(t, "images", s.images(), "web:1 web:1")
		want(t, "waiting", s.status().Waiting.For, "guard: 2 members are available and min_available is 2")
		e, err := s.Explain(t.Context(), "default", "web-1")
		if err != nil {
			t.Fatal(err)
		}
		want(t, "explain", e.Because[0], "web-1 waits: guard: 2 members are available and min_available is 2")
		if _, err := s.Apply(t.Context(), func() client.ApplyRequest {
			r := request(text, "image=web:2")
			r.Force = true
			return r
		}()); err != nil {
			t.Fatal(err)
		}
		s.settle()
		want(t, "images after force", s.images(), "web:2 web:2")
	})
}

// broken is an image that never becomes ready.
func (s *stage) broken() { s.world.Program("web:2", sim.Program{NeverReady: true}) }

func TestARolloutThatMissesItsDeadlineStandsStill(t *testing.T) {
	play(t, func(s *stage) {
		s.broken()
		text := ready("update {\ndeadline = \"5m\"\n}")
		s.apply(text)
		s.apply(text, "image=web:2")
		want(t, "stalled before", fmt.Sprint(s.condition(jobspecs.CondStalled).Status), "false")
		time.Sleep(5 * time.Minute)
		s.settle()
		stalled, paused := s.condition(jobspecs.CondStalled), s.condition(jobspecs.CondPaused)
		want(t, "stalled", fmt.Sprint(stalled.Status, " ", stalled.Reason), "true DeadlineExceeded")
		want(t, "paused", fmt.Sprint(paused.Status, " ", paused.Reason), "true DeadlineExceeded")
		want(t, "images", s.images(), "web:1 web:2")

		s.world.Program("web:2", sim.Program{ReadyAfter: time.Second}) // mended: another image of that name
		if _, err := s.Rollout(t.Context(), web, client.RolloutRequest{Do: "resume"}); err != nil {
			t.Fatal(err)
		}
		s.settle()
		want(t, "stalled after resume", fmt.Sprint(s.condition(jobspecs.CondStalled).Status), "false")
	})
}

func TestARolloutThatFailedIsRolledBack(t *testing.T) {
	play(t, func(s *stage) {
		s.broken()
		text := ready("update {\ndeadline = \"5m\"\non_failure = \"rollback\"\n}")
		first := s.apply(text)
		started := s.status().Members[0].StartedAt
		second := s.apply(text, "image=web:2")
		time.Sleep(5 * time.Minute)
		s.settle()
		want(t, "images", s.images(), "web:1 web:1")
		if now := s.status().Members[0].StartedAt; !now.Equal(*started) {
			t.Errorf("web-0, which never left, was restarted at %s", now)
		}
		c := s.condition(jobspecs.CondRolledBack)
		begin := fmt.Sprintf("rolled back from %s to %s: web-1 is not available 5m0s after it could have been: not ready: ", second.Revision, first.Revision)
		if !c.Status || !strings.HasPrefix(c.Message, begin) {
			t.Errorf("condition = %+v, want a message that begins with %q", c, begin)
		}
		rows, err := s.History(t.Context(), web)
		if err != nil {
			t.Fatal(err)
		}
		last := rows[len(rows)-1]
		if last.Name != first.Revision || last.Number != 3 || !strings.HasPrefix(last.Cause, begin) {
			t.Errorf("history = %+v", last)
		}

		same := s.apply(text, "image=web:2") // the file says what it said: it is not tried again by itself
		want(t, "images after the same apply", s.images(), "web:1 web:1")
		if same.Changed || !s.condition(jobspecs.CondRolledBack).Status {
			t.Errorf("same apply = %+v", same)
		}
		s.apply(text, "image=web:1")
		if s.condition(jobspecs.CondRolledBack).Status {
			t.Error("another spec was applied, and the condition is left")
		}
	})
}

// A container that is started again and again uses up the deadline as one that never is
// ready does.
func TestARolloutThatCrashesIsRolledBack(t *testing.T) {
	for _, c := range []struct {
		name string
		web2 sim.Program
	}{
		{"at once", sim.Program{ExitAfter: time.Second, ExitCode: 1, NeverReady: true}},
		{"later", sim.Program{ExitAfter: 40 * time.Second, ExitCode: 1, NeverReady: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			play(t, func(s *stage) {
				s.world.Program("web:2", c.web2)
				text := ready("update {\ndeadline = \"10m\"\non_failure = \"rollback\"\n}")
				first := s.apply(text)
				s.apply(text, "image=web:2")
				time.Sleep(5 * time.Minute)
				want(t, "images before", s.images(), "web:1 web:2")
				time.Sleep(6 * time.Minute)
				s.settle()
				want(t, "images", s.images(), "web:1 web:1")
				if c := s.condition(jobspecs.CondRolledBack); !c.Status || !strings.Contains(c.Message, first.Revision) {
					t.Errorf("condition = %+v", c)
				}
			})
		})
	}
}

func TestARolloutThatWasTakenBackIsTriedAgain(t *testing.T) {
	play(t, func(s *stage) {
		s.broken()
		text := ready("update {\ndeadline = \"5m\"\non_failure = \"rollback\"\n}")
		s.apply(text)
		if _, err := s.SetImage(t.Context(), web, client.ImageRequest{Images: map[string]string{"": "web:2"}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(7 * time.Minute)
		s.settle()
		want(t, "images", s.images(), "web:1 web:1")
		if _, err := s.Rollout(t.Context(), web, client.RolloutRequest{Do: "resume"}); err != nil {
			t.Fatal(err)
		}
		s.settle()
		want(t, "images after resume", s.images(), "web:1 web:2")
	})
}

func TestAFirstRolloutThatFailsHasNothingToGoBackTo(t *testing.T) {
	play(t, func(s *stage) {
		s.broken()
		s.apply(ready("update {\ndeadline = \"1m\"\non_failure = \"rollback\"\n}"), "image=web:2")
		s.settle()
		want(t, "stalled", s.condition(jobspecs.CondStalled).Reason, "DeadlineExceeded")
		want(t, "rolled back", fmt.Sprint(s.condition(jobspecs.CondRolledBack).Status), "false")
	})
}

func TestAStoppedMemberStaysDownUntilItIsStarted(t *testing.T) {
	play(t, func(s *stage) {
		s.apply(pair(""))
		if err := s.members("stop", client.Write{}, 1); err != nil {
			t.Fatal(err)
		}
		want(t, "members", s.names(), "web-0 Running true, web-1 Stopped false")
		want(t, "progressing", s.condition(jobspecs.CondProgressing).Reason, "Complete")
		s.apply(pair(""), "image=web:2")
		want(t, "members after an update", s.names(), "web-0 Running true, web-1 Stopped false")
		want(t, "a restart of it", problemType(s.members("restart", client.Write{}, 1)), client.ProblemConflict)
		r, err := s.ChangeMembers(t.Context(), web, client.MembersRequest{Do: "stop", Ordinals: []int{1}})
		if err != nil || r.Changed || r.Message != "web-1 is stopped already" {
			t.Errorf("again = %+v, %v", r, err)
		}
		if err := s.members("start", client.Write{}); err != nil {
			t.Fatal(err)
		}
		want(t, "members after start", s.names(), "web-0 Running true, web-1 Running true")
		want(t, "images after start", s.images(), "web:2 web:2")
	})
}

func TestARestartIsDoneOnce(t *testing.T) {
	play(t, func(s *stage) {
		s.apply(pair(""))
		revision := s.status().UpdateRevision
		for _, c := range []struct {
			name     string
			ordinals []int
			want     string
		}{
			{"all, one by one", nil, "web-1 web-0"},
			{"one", []int{0}, "web-0"},
			{"two at once", []int{0, 1}, "web-0 web-1"},
		} {
			before := time.Now()
			if err := s.members("restart", client.Write{}, c.ordinals...); err != nil {
				t.Fatal(err)
			}
			s.settle()
			var made []string
			all, _ := s.events.list()
			for _, e := range all {
				if e.Reason == "Created" && !e.Time.Before(before) {
					made = append(made, e.Member)
				}
			}
			if len(c.ordinals) > 1 {
				slices.Sort(made) // side by side
			}
			want(t, c.name, strings.Join(made, " "), c.want)
			want(t, "revision", s.status().UpdateRevision, revision)
		}
	})
}

func TestAReplacedMemberHasFreshVolumesAndTheOthersKeepTheirs(t *testing.T) {
	play(t, func(s *stage) {
		s.apply(oneVolume)
		serial := func(name string) int { d, _ := s.world.Disk(name); return d.Serial }
		zero, one := serial("data-web-0"), serial("data-web-1")
		if _, err := s.FreshVolume(t.Context(), web, client.FreshVolumeRequest{Ordinal: 1, Write: client.Write{Yes: true}}); err != nil {
			t.Fatal(err)
		}
		s.settle()
		if serial("data-web-0") != zero || serial("data-web-1") == one || serial("data-web-1") == 0 {
			t.Errorf("volumes = %d and %d, were %d and %d", serial("data-web-0"), serial("data-web-1"), zero, one)
		}
		one = serial("data-web-1")
		s.world.RemoveContainer("web-1")
		s.settle()
		if serial("data-web-1") != one {
			t.Error("it was replaced once, and its volume is another one again")
		}
		want(t, "members", s.names(), "web-0 Running true, web-1 Running true")
	})
}

const chain = `
statefulset "etcd" {
  replicas = 1
  container "etcd" {
    image = "etcd:1"
    port "http" { container = 80 }
    probe "readiness" {
      tcp { port = "http" }
    }
  }
}
statefulset "web" {
  replicas    = 1
  start_after = ["etcd"]
  container "web" {
    image = "web:1"
    env   = { ETCD = join(",", sets.etcd.members[*].name) }
  }
}`

func TestASetStartsAfterAnother(t *testing.T) {
	play(t, func(s *stage) {
		s.world.Program("etcd:1", sim.Program{ReadyAfter: 5 * time.Minute})
		s.apply(chain)
		want(t, "waiting", s.status().Waiting.For, "start_after: etcd is not available yet")
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		want(t, "members", s.names(), "web-0 Running true")
		s.world.Kill("etcd-0")
		s.world.RemoveContainer("web-0")
		s.settle()
		want(t, "a repair", s.names(), "web-0 Running true")
	})
}

// Whoever names another set is told when it goes; a member that could not be made again
// is not taken down for a restart.
func TestAMemberThatNamesASetThatIsGoneIsNotStopped(t *testing.T) {
	play(t, func(s *stage) {
		s.world.Program("etcd:1", sim.Program{ReadyAfter: time.Second})
		s.apply(chain)
		time.Sleep(time.Minute)
		synctest.Wait()
		etcd := jobspecs.Key{Namespace: jobspecs.DefaultNamespace, Name: "etcd"}
		r, err := s.Delete(t.Context(), etcd, client.DeleteRequest{})
		if err != nil {
			t.Fatal(err)
		}
		want(t, "delete", r.Message, "etcd is being deleted; members of web cannot be made without it: they use sets.etcd")
		s.settle()
		if err := s.members("restart", client.Write{}, 0); err != nil {
			t.Fatal(err)
		}
		s.settle()
		want(t, "members", s.names(), "web-0 Running true")
		want(t, "waiting", s.status().Members[0].Waiting, `web-0 waits: it could not be made again: render web-0: container.web.env.ETCD: join(",", sets.etcd.members[*].name): there is no set etcd in namespace default`)
		s.apply(chain)
		time.Sleep(time.Minute)
		synctest.Wait()
		want(t, "members in the end", s.names(), "web-0 Running true")
		if m := s.status().Members[0]; m.Waiting != "" {
			t.Errorf("it waits for %s", m.Waiting)
		}
	})
}

func TestAMemberKnowsOtherSetsAsTheyAreWhenItStarts(t *testing.T) {
	play(t, func(s *stage) {
		s.world.Program("etcd:1", sim.Program{})
		s.apply(chain)
		etcd := jobspecs.Key{Namespace: "default", Name: "etcd"}
		if _, err := s.Scale(t.Context(), etcd, client.ScaleRequest{Replicas: 2}); err != nil {
			t.Fatal(err)
		}
		s.settle()
		if m := s.status().Members[0]; !m.Stale || m.Restarts != 0 {
			t.Errorf("web-0 = %+v: it goes on, and its rendering is stale", m)
		}
	})
}

func TestSetsThatNameNothingAreRefused(t *testing.T) {
	play(t, func(s *stage) {
		for _, c := range []struct{ name, spec, want string }{
			{"a set that is not there", pair("labels = {\na = sets.db.fqdn\n}"), `there is no set "db" in namespace default`},
			{"a circle with a stored set", strings.ReplaceAll(pair("start_after = [\"web\"]"), `statefulset "web"`, `statefulset "db"`), "these sets wait for each other to start: db → web → db (start_after)"},
		} {
			if c.name == "a circle with a stored set" {
				if _, err := s.Apply(t.Context(), request(pair("start_after = [\"db\"]"))); err != nil {
					t.Fatal(err)
				}
			}
			_, err := s.Apply(t.Context(), request(c.spec))
			var p *client.Problem
			if !errors.As(err, &p) || p.Type != client.ProblemInvalid {
				t.Fatalf("%s: %v", c.name, err)
			}
			text := p.Title
			for _, d := range p.Diagnostics {
				text += " " + d.Summary
			}
			if !strings.Contains(text, c.want) {
				t.Errorf("%s: %s, want %q", c.name, text, c.want)
			}
		}
	})
}

func TestTheMemberWhoseRoleGoesLastIsUpdatedLast(t *testing.T) {
	play(t, func(s *stage) {
		text := strings.Replace(pair("update {\norder = \"role\"\nlast = \"primary\"\n}"), "image = var.image\n", "image = var.image\nprobe \"role\" {\nexec {\ncommand = [\"role\"]\n}\nperiod = \"1s\"\n}\n", 1)
		s.apply(text)
		s.world.Say("web-1", "primary")
		s.world.Say("web-0", "replica")
		s.settle()
		before := time.Now()
		s.apply(text, "image=web:2")
		var ended []string
		all, _ := s.events.list()
		for _, e := range all {
			if e.Reason == "Stopping" && !e.Time.Before(before) {
				ended = append(ended, e.Member)
			}
		}
		want(t, "order", strings.Join(ended, " "), "web-0 web-1")
		want(t, "images", s.images(), "web:2 web:2")
	})
}
