package conformance

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/daemon/planner"
	"github.com/stsd/stsd/jobspecs"
)

// twoRevisions is a set that was updated once, with a cause.
func (s *stage) twoRevisions() {
	s.Helper()
	s.apply("")
	s.rest()
	r := request(hcl("image=app:2"), sure)
	r.Cause = "a newer image"
	if _, err := s.Apply(s.Context(), r); err != nil {
		s.Fatal(err)
	}
	s.rest()
}

// revised runs f on such a set.
func revised(f func(*stage)) func(*testing.T) {
	return story(func(s *stage) {
		s.twoRevisions()
		f(s)
	})
}

// progress checks what the condition Progressing says.
func progress(w planner.World, going bool, message string) func(*testing.T) {
	return func(t *testing.T) {
		c := condition(planner.Status(w, planner.Next(w)), jobspecs.CondProgressing)
		if c.Status != going || c.Message != message {
			t.Errorf("condition = %v %q, want %v %q", c.Status, c.Message, going, message)
		}
	}
}

func kubectl() []row {
	return []row{
		is("M1", "one revision", "it is undone, or brought back by number", "nothing changes", story(func(s *stage) {
			s.apply("")
			s.rest()
			_, err := s.Rollout(s.Context(), web, client.RolloutRequest{Do: "undo"})
			s.has("undo", s.problem(err), "there is no earlier revision to go back to")
			if r := s.rollout("undo", 1); r.Changed || !strings.HasPrefix(r.Message, "skipped") {
				s.Errorf("undo to 1 = %+v", r)
			}
		})),
		is("M2", "a set", "another template is applied with a cause", "members run it, and the second revision keeps the cause", revised(func(s *stage) {
			s.want("host", s.host(), containers(3, 0))
			rows, err := s.History(s.Context(), web)
			if err != nil || len(rows) != 2 || rows[1].Cause != "a newer image" {
				s.Errorf("history = %+v, %v", rows, err)
			}
		})),
		is("M3", "two revisions", "history is asked for", "it lists both by number, with cause and members", nil).in("test/testdata/script", "repair.txtar", "rollout history"),
		is("M4", "two revisions", "each is shown", "its template is told", revised(func(s *stage) {
			rows, err := s.History(s.Context(), web)
			if err != nil {
				s.Fatal(err)
			}
			for i, r := range rows {
				s.has("template", string(r.Template), fmt.Sprintf("app:%d", i+1))
			}
		})),
		is("M5", "two revisions", "undo is tried with --dry-run", "the plan is shown, and nothing changes", revised(func(s *stage) {
			r := s.asked(s.Rollout(s.Context(), web, client.RolloutRequest{Do: "undo", Write: client.Write{DryRun: true}}))
			if r.Plan == nil || !r.Plan.Changes || r.Plan.Revision.EqualTo != 1 {
				s.Errorf("plan = %+v", r.Plan)
			}
			s.pass(time.Minute)
			s.want("history", s.history(), "1 app:1; 2 app:2 web-0,web-1,web-2")
		})),
		is("M6", "two revisions", "it is brought back to 1", "the image is back, and history has 2 and 3", revised(func(s *stage) {
			s.rollout("undo", 1)
			s.rest()
			s.want("history", s.history(), "2 app:2; 3 app:1 web-0,web-1,web-2")
		})),
		is("M7", "two revisions", "it is brought back to 1000000", "that is an error, and nothing changes", revised(func(s *stage) {
			_, err := s.Rollout(s.Context(), web, client.RolloutRequest{Do: "undo", To: 1000000})
			s.has("undo", s.problem(err), "there is no revision 1000000")
			s.want("history", s.history(), "1 app:1; 2 app:2 web-0,web-1,web-2")
		})),
		is("M8", "a set that was brought back once", "it is undone", "the former template is back, and history has 3 and 4", revised(func(s *stage) {
			s.rollout("undo", 1)
			s.rest()
			s.rollout("undo", 0)
			s.rest()
			s.want("history", s.history(), "3 app:1; 4 app:2 web-0,web-1,web-2")
		})),
		is("M9", "a set that was updated", "it is deleted", "its members go, and what was kept of them for their logs", revised(func(s *stage) {
			s.deleted("")
			if left := s.world.Containers(); len(left) > 0 {
				s.Errorf("left: %v", left)
			}
		})),
		is("M10", "a set of which the caller has seen an older generation", "it is scaled with that precondition", "it is refused; with the present one it is done and observed", story(func(s *stage) {
			s.apply("replicas=1")
			s.rest()
			expect := func(g int64) client.ScaleRequest {
				return client.ScaleRequest{Replicas: 2, Write: client.Write{Yes: true, Expect: map[string]int64{"default/web": g}}}
			}
			_, err := s.Scale(s.Context(), web, expect(7))
			s.has("scale", s.problem(err), "changed")
			s.asked(s.Scale(s.Context(), web, expect(1)))
			s.rest()
			if st := s.status(); st.ObservedGeneration != 2 || st.AvailableReplicas != 2 {
				s.Errorf("observed %d, available %d", st.ObservedGeneration, st.AvailableReplicas)
			}
		})),
		is("M11", "a set", "its rollout is restarted", "every member is made anew from the top, under a new revision, and the generation is observed", story(func(s *stage) {
			s.apply("")
			s.rest()
			s.world.Forget()
			s.rollout("restart", 0)
			s.rest()
			s.want("stops", s.deeds("stop"), "stop web-2, stop web-1, stop web-0")
			s.want("history", s.history(), "1 app:1; 2 app:1 web-0,web-1,web-2")
			if st := s.status(); st.ObservedGeneration != 2 {
				s.Errorf("observed %d", st.ObservedGeneration)
			}
		})),
		none("M12", "a list is one answer: there is no size of chunks to ask for"),
		differs("M13", "on_delete and an old member", "the rollout's state is asked for", "it is said that members take the new revision when they are removed",
			"A rollout that nobody has to wait for is no error.", progress(world(onDelete, to("r2"), full(0, 2)), false, "members take the new revision when they are removed (on_delete)")),
		is("M14", "a status of the generation before", "a rollout is followed", "it is not over", nil).in("cmd/stsd", "TestJudge", "complete, but of the generation before"),
		is("M15", "a member that is not ready", "the rollout's state is asked for", "it says whom it waits for, and why",
			progress(world(to("r2"), full(0, 1), unready(2, "r2")), true, "web-1 waits for web-2: not ready: connection refused")),
		is("M16", "partition 2 and web-2 new", "the rollout's state is asked for", "it is over", progress(world(to("r2"), partition(2), full(0, 1), running("web-2:r2")), false, "members from ordinal 2 on run r2 (partition)")),
		is("M17", "partition 1 and only web-2 new", "the rollout's state is asked for", "it goes on", progress(world(to("r2"), partition(1), full(0, 1), running("web-2:r2")), true, "stop web-1 (outdated)")),
		is("M18", "all members new", "the rollout's state is asked for", "it is over", progress(world(to("r2"), running("web-0:r2", "web-1:r2", "web-2:r2")), false, "all 3 members run r2")),
		is("M19", "two sets", "both are restarted", "each is rolled by itself", story(func(s *stage) {
			s.apply("replicas=2")
			s.applyText(strings.Replace(hcl("replicas=2"), `"web"`, `"db"`, 1))
			s.pass(time.Minute)
			before := s.runs()
			for _, set := range []string{"web", "db"} {
				s.asked(s.Rollout(s.Context(), jobspecs.Key{Namespace: "default", Name: set}, client.RolloutRequest{Do: "restart"}))
			}
			s.pass(time.Minute)
			for name, id := range s.runs() {
				if before[name] == id {
					s.Errorf("%s was not restarted", name)
				}
			}
			if len(s.runs()) != 4 {
				s.Errorf("host = %s", s.host())
			}
		})),
		differs("M20", "a restart", "another follows within the same second", "both are taken: the second one is a revision of its own",
			"Whoever asks twice means it; a clock is no reason to refuse.", story(func(s *stage) {
				s.apply("")
				s.rest()
				first := s.rollout("restart", 0)
				time.Sleep(time.Millisecond)
				if second := s.rollout("restart", 0); second.Revision == first.Revision {
					s.Errorf("both are %s", first.Revision)
				}
				s.rest()
			})),
		none("M21", "there are no selectors"),
		differs("M22", "a set", "its rollout is paused while the image changes, and resumed", "nobody is updated until then",
			"Kubernetes has no pause for sets.", story(func(s *stage) {
				s.apply("")
				s.rest()
				s.rollout("pause", 0)
				s.image("app:2")
				s.pass(time.Minute)
				s.want("host", s.host(), containers(3, 3))
				s.rollout("resume", 0)
				s.rest()
				s.want("host", s.host(), containers(3, 0))
			})),
		is("M23", "a set", "somebody waits for it to be ready, available, rolled out or deleted, with time-outs", "the wait ends when it is so, or says that it did not", nil).
			in("cmd/stsd", "TestExitCodes", "time-out, wait"),
		is("M24", "a spec that differs from what is stored, and one that does not", "the difference is asked for", "the exit code tells them apart, and from an error", nil).
			in("cmd/stsd", "TestExitCodes", "differences, diff"),
		differs("M25", "a set", "it is deleted, in the foreground, or with its members left", "members go from the top, each within its grace, or run on and can be taken over",
			"There is one way to delete and it has an order.", all(
				story(func(s *stage) {
					s.apply("image=lingers:1")
					s.rest()
					s.world.Forget()
					s.deleted("")
					s.want("stops", s.deeds("stop"), "stop web-2, stop web-1, stop web-0")
				}),
				story(func(s *stage) {
					s.apply("")
					s.rest()
					before := s.runs()
					s.delete(client.DeleteRequest{Orphan: true})
					s.pass(time.Minute)
					s.untouched(before, "web-0", "web-1", "web-2")
				}))),
	}
}
