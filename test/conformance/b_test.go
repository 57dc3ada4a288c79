package conformance

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stsd/stsd/daemon/planner"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/runtime/sim"
)

// containers is "web-0 IMAGE, …" for n members, of which those below old run
// app:1 and the others app:2.
func containers(n, old int) string {
	var out []string
	for o := range n {
		image := "app:2"
		if o < old {
			image = "app:1"
		}
		out = append(out, fmt.Sprintf("web-%d %s", o, image))
	}
	return strings.Join(out, ", ")
}

// turns makes a set, changes it once, and checks what runs in the end.
func turns(first, then, want string) func(*stage, string) {
	return func(s *stage, opts string) {
		s.apply(opts + " " + first)
		s.rest()
		s.apply(opts + " " + then)
		s.rest()
		s.want("host", s.host(), want)
	}
}

// emptied scales to nothing and back to n.
func (s *stage) emptied(n int) {
	s.Helper()
	s.scale(0)
	s.rest()
	s.want("host of an empty set", s.host(), "")
	s.scale(n)
	s.rest()
}

// onDeleted changes a set whose strategy is on_delete; before are the containers
// after that, after those when it was emptied and filled again.
func onDeleted(first, then int, before, after string) func(*stage, string) {
	return func(s *stage, opts string) {
		opts += " strategy=on_delete"
		s.apply(fmt.Sprintf("%s replicas=%d", opts, first))
		s.rest()
		s.apply(fmt.Sprintf("%s replicas=%d image=app:2", opts, then))
		s.rest()
		s.want("host", s.host(), before)
		s.emptied(then)
		s.want("host when it was filled again", s.host(), after)
	}
}

// sixOf is the set of the rows on max_unavailable: six members, partition 3, at
// most two unavailable, all to become r2.
func sixOf(options ...option) planner.World {
	return world(append([]option{replicas(6), to("r2"), partition(3), maxUnavailable("2")}, options...)...)
}

// limited rolls out more revisions than the history keeps and checks how many are
// stored after each.
func limited(limit, most int) func(*stage, string) {
	return func(s *stage, opts string) {
		opts = fmt.Sprintf("%s replicas=2 history=%d", opts, limit)
		for n := range 10 {
			s.apply(fmt.Sprintf("%s env=%d", opts, n))
			s.rest()
			rows, err := s.History(s.Context(), web)
			if err != nil || len(rows) > most {
				s.Errorf("after %d templates %d are stored, want at most %d; %v", n+1, len(rows), most, err)
			}
		}
	}
}

// gauge checks what max_unavailable comes to and how many are not available.
func gauge(id, given string, options []option, limit, unavailable int) row {
	w := world(options...)
	return is(id, given, "its numbers are asked for",
		fmt.Sprintf("max_unavailable comes to %d, and %d are not available", limit, unavailable), func(t *testing.T) {
			got := w.Set.Update.MaxUnavailableOf(w.Replicas)
			if s := planner.Status(w, planner.Next(w)); got != limit || w.Replicas-s.AvailableReplicas != unavailable {
				t.Errorf("limit %d, %d of %d available", got, s.AvailableReplicas, w.Replicas)
			}
		})
}

// sick gives that many unready pods, then available ones up to n.
func sick(unavailable, n int) option {
	return func(w *planner.World) {
		for o := range n {
			if o < unavailable {
				unready(o, "r1")(w)
				continue
			}
			full(o, o)(w)
		}
	}
}

// actions checks how many of one verb a single plan holds.
func actions(w planner.World, op planner.Op, want int) func(*testing.T) {
	return func(t *testing.T) {
		n := 0
		for _, a := range planner.Next(w).Actions {
			if a.Op == op {
				n++
			}
		}
		if n != want {
			t.Errorf("%d × %s in one plan, want %d", n, op, want)
		}
	}
}

func controlLoop() []row {
	rows := []row{
		is("B1", "no set", "one of three is applied", "three are ready, and the number in each name is its ordinal", inAll(func(s *stage, opts string) {
			s.apply(opts)
			s.rest()
			s.want("counters", s.counters(), every(3))
			for i, m := range s.status().Members {
				if m.Ordinal != i || m.Name != jobspecs.MemberName("web", i) {
					s.Errorf("member %d is %s, ordinal %d", i, m.Name, m.Ordinal)
				}
			}
		})),
		is("B2", "three members", "the set is scaled to four", "all counters are four", inAll(func(s *stage, opts string) {
			s.apply(opts)
			s.rest()
			s.scale(4)
			s.rest()
			s.want("counters", s.counters(), every(4))
		})),
		is("B3", "three members", "the set is scaled to none", "all counters are zero", inAll(func(s *stage, opts string) {
			s.apply(opts)
			s.rest()
			s.scale(0)
			s.rest()
			s.want("counters", s.counters(), every(0))
		})),
		is("B4", "five members", "the containers of 0, 2 and 4 are removed by hand", "they come back with their volumes", inAll(func(s *stage, opts string) {
			s.apply(opts + " replicas=5")
			s.rest()
			before := s.runs()
			for _, o := range []string{"web-0", "web-2", "web-4"} {
				s.world.RemoveContainer(o)
			}
			s.pass(time.Second)
			s.rest()
			s.want("counters", s.counters(), every(5))
			s.untouched(before, "web-1", "web-3")
			s.want("volumes", s.disks(), "data-web-0 data-web-1 data-web-2 data-web-3 data-web-4")
		})),
		is("B5", "web-0 found dead", "the planner looks", "it is removed once, and made afresh when it is gone, not before", all(
			plans(world(ended(0, runtime.ReasonEngineRestarted), full(1, 2), once("r1", 0)), "remove web-0 (ended: found stopped when the engine was connected)"),
			plans(world(full(1, 2), once("r1", 0)), "create web-0 (recovery)"))),
		is("B6", "a member whose process ends well", "time passes", "it is started again: a member is meant to last", inBoth(func(s *stage, manage string) {
			s.apply(manage + " image=finish:1 replicas=1")
			s.rest()
			s.pass(5 * time.Minute)
			if m := s.member(0); m.Restarts < 3 {
				s.Errorf("restarts = %d", m.Restarts)
			}
		})),
		is("B7", "members found dead", "removing one fails", "the error is told, the removal is tried again, and all come back", inBoth(func(s *stage, manage string) {
			s.apply(manage)
			s.rest()
			s.world.Fail(sim.Fault{Verb: "rename", Name: "web-0"})
			s.world.Fail(sim.Fault{Verb: "remove", Name: "web-0"})
			s.world.RestartEngine(time.Second)
			s.pass(10 * time.Second)
			s.rest()
			s.want("counters", s.counters(), every(3))
		})),
		is("B8", "a member whose process ends well", "replacing its container fails once", "it is tried again, and the member runs", inBoth(func(s *stage, manage string) {
			s.apply(manage + " image=finish:1 replicas=1")
			s.rest()
			s.world.Fail(sim.Fault{Verb: "create", Name: "web-0"})
			s.pass(2 * time.Minute)
			if m := s.member(0); m.Restarts < 1 || len(s.runs()) != 1 {
				s.Errorf("restarts %d, host %s", m.Restarts, s.host())
			}
		})),
		is("B9", "an engine that refuses the third member", "the set grows to three", "the refusal is shown, and the next try brings all three", inBoth(func(s *stage, manage string) {
			s.world.Fail(sim.Fault{Verb: "create", Name: "web-2", Times: 3})
			s.apply(manage)
			if !s.until(time.Minute, func() bool {
				st := s.status()
				return len(st.Members) == 3 && strings.Contains(st.Members[2].Message, "injected fault")
			}) {
				s.Errorf("web-2 does not say what fails: %+v", s.member(2))
			}
			s.rest()
			s.want("counters", s.counters(), every(3))
		})),
		is("B10", "web-0 whose container was renamed by hand", "giving the name back fails once", "it is tried again; web-0 runs on in its container, under its name", inBoth(func(s *stage, manage string) {
			s.apply(manage)
			s.rest()
			before := s.runs()
			s.world.Fail(sim.Fault{Verb: "rename", Name: "odd"})
			s.world.Rename("web-0", "odd")
			s.until(500*time.Millisecond, func() bool { return s.member(0).Reason != "" })
			s.want("reason", s.member(0).Reason, runtime.ReasonRenamed)
			s.pass(time.Minute)
			s.want("counters", s.counters(), every(3))
			s.want("told", s.told("Renamed"), "web-0: its container was renamed to odd by hand, and is web-0 again")
			s.want("host", s.host(), containers(3, 3))
			s.untouched(before, "web-0", "web-1", "web-2")
		})),
		none("B11", "status is a snapshot in memory, made anew at each look: there is no write of it that could fail"),
		is("B12", "three members", "the image changes and the stop of web-2 fails once", "three still count as current; the next try goes on", inBoth(func(s *stage, manage string) {
			s.apply(manage)
			s.rest()
			s.world.Fail(sim.Fault{Verb: "stop", Name: "web-2", Times: 5})
			s.image("app:2")
			s.until(2*time.Second, func() bool {
				return len(s.world.Writes()) > 0 && s.status().UpdateRevision != s.status().CurrentRevision
			})
			if st := s.status(); st.UpdateRevision == st.CurrentRevision {
				s.Errorf("revisions are equal in the middle of a rollout: %s", st.UpdateRevision)
			}
			s.rest()
			s.want("host", s.host(), containers(3, 0))
		})),
		differs("B13", "a member that waits and whose volume is gone", "the planner looks", "a volume that never held data is made again; one that did holds the member back (VolumeLost)",
			"An empty volume in the place of a full one looks like a healthy member.", all(
				plans(world(claims("retain", "retain", "data"), full(1, 2), record("data", 0, false, false), once("r1", 0)), "create volume data-web-0 (needed by web-0)"),
				waits(world(claims("retain", "retain", "data"), full(1, 2), record("data", 0, true, false), once("r1", 0)),
					"web-0 waits: volume data-web-0 held data and is gone; bring it back under that name and with its labels (stsd explain web-0 prints them), or start empty: stsd replace web-0 --fresh-volume"))),
		is("B14", "start_ordinal 2 and three replicas", "the set is applied", "members are 2, 3 and 4, and all counters are three", inAll(func(s *stage, opts string) {
			s.apply(opts + " start=2")
			s.rest()
			s.want("host", s.host(), "web-2 app:1, web-3 app:1, web-4 app:1")
			s.want("counters", s.counters(), every(3))
		})),
		is("B15", "three members", "the set is scaled to none and one stop fails", "the retry ends at none", inAll(func(s *stage, opts string) {
			s.apply(opts)
			s.rest()
			s.world.Fail(sim.Fault{Verb: "stop", Name: "web-1", Times: 3})
			s.scale(0)
			s.rest()
			s.want("host", s.host(), "")
		})),
		is("B16", "no set", "one is applied", "one revision is stored, which is both current and wanted", inAll(func(s *stage, opts string) {
			s.apply(opts)
			s.rest()
			s.want("history", s.history(), "1 app:1 web-0,web-1,web-2")
			if st := s.status(); st.CurrentRevision != st.UpdateRevision {
				s.Errorf("current %s, update %s", st.CurrentRevision, st.UpdateRevision)
			}
		})),
		is("B17", "one revision", "the image changes", "two are stored: the first is current, the second wanted", inAll(func(s *stage, opts string) {
			first := s.apply(opts)
			s.rest()
			second := s.apply(opts + " image=never:1")
			s.pass(time.Minute)
			s.want("history", s.history(), "1 app:1 web-0,web-1; 2 never:1 web-2")
			if st := s.status(); st.CurrentRevision != first.Revision || st.UpdateRevision != second.Revision {
				s.Errorf("current %s, update %s; want %s, %s", st.CurrentRevision, st.UpdateRevision, first.Revision, second.Revision)
			}
		})),
		is("B18", "two revisions", "the same file is applied again", "there are still two, and nothing has changed", inAll(func(s *stage, opts string) {
			s.apply(opts)
			s.rest()
			s.apply(opts + " image=app:2")
			s.rest()
			if r := s.apply(opts + " image=app:2"); r.Changed {
				s.Errorf("an equal apply changed something: %+v", r)
			}
			s.want("history", s.history(), "1 app:1; 2 app:2 web-0,web-1,web-2")
		})),
		is("B19", "three revisions", "the template of the second is applied", "there are still three; the second has number 4 and its old name", inAll(func(s *stage, opts string) {
			s.apply(opts)
			s.rest()
			second := s.apply(opts + " image=app:2")
			s.rest()
			s.apply(opts + " image=app:3")
			s.rest()
			again := s.apply(opts + " image=app:2")
			s.rest()
			s.want("history", s.history(), "1 app:1; 3 app:3; 4 app:2 web-0,web-1,web-2")
			s.want("revision", again.Revision, second.Revision)
		})),
		is("B20", "six members, ordered, partition 3, max_unavailable 2", "the image changes", "4 and 5 are stopped together; 4 is made, then 5, before 3 is touched", all(
			plans(sixOf(full(0, 5)), "stop web-4 (outdated), stop web-5 (outdated)"),
			plans(sixOf(full(0, 3), left(4, 5)), "create web-4 (missing)"),
			plans(sixOf(full(0, 3), unready(4, "r2"), left(5)), ""),
			plans(sixOf(full(0, 3), running("web-4:r2"), left(5)), "create web-5 (missing)"))),
		is("B21", "the same set, parallel", "the image changes", "4 and 5 are stopped together and made together; when 4 is available 3 is stopped", all(
			plans(sixOf(parallel, full(0, 5)), "stop web-4 (outdated), stop web-5 (outdated)"),
			plans(sixOf(parallel, full(0, 3), left(4, 5)), "create web-4 (missing), create web-5 (missing)"),
			plans(sixOf(parallel, full(0, 3), running("web-4:r2"), unready(5, "r2")), "stop web-3 (outdated)"),
			plans(sixOf(parallel, full(0, 2), left(3), running("web-4:r2"), unready(5, "r2")), "create web-3 (missing)"))),
		is("B22", "3, 4 and 5 are new and available, partition 3", "the planner looks", "0 to 2 are left alone",
			plans(sixOf(full(0, 2), running("web-3:r2", "web-4:r2", "web-5:r2")), "")),
		is("B23", "max_unavailable 2 and nobody on its way out", "the image changes", "two are stopped", plans(sixOf(parallel, full(0, 5)), "stop web-4 (outdated), stop web-5 (outdated)")),
		is("B24", "max_unavailable 2 and web-5 on its way out", "the planner looks", "one more is stopped", plans(sixOf(parallel, full(0, 4), stopping(5)), "stop web-4 (outdated)")),
		is("B25", "max_unavailable 2 and web-3 on its way out", "the planner looks", "one more is stopped", plans(sixOf(parallel, full(0, 2), stopping(3), full(4, 5)), "stop web-5 (outdated)")),
		is("B26", "max_unavailable 2 and web-4 on its way out", "the planner looks", "one more is stopped", plans(sixOf(parallel, full(0, 3), stopping(4), full(5, 5)), "stop web-5 (outdated)")),
		is("B27", "max_unavailable 2 and 5 and 4 on their way out", "the planner looks", "nobody else is stopped", plans(sixOf(parallel, full(0, 3), stopping(4, 5)), "")),
		is("B28", "max_unavailable 2 and 5 and 3 on their way out", "the planner looks", "nobody else is stopped", plans(sixOf(parallel, full(0, 2), stopping(3), full(4, 4), stopping(5)), "")),
		is("B29", "max_unavailable 2 and 4 and 3 on their way out", "the planner looks", "nobody else is stopped", plans(sixOf(parallel, full(0, 2), stopping(3, 4), full(5, 5)), "")),
		is("B30", "max_unavailable 2 and three on their way out", "the planner looks", "nobody else is stopped", plans(sixOf(parallel, full(0, 2), stopping(3, 4, 5)), "")),
		is("B31", "web-2, below the partition, on its way out", "the planner looks", "it counts: one is stopped", plans(sixOf(parallel, full(0, 1), stopping(2), full(3, 5)), "stop web-5 (outdated)")),
		is("B32", "web-1, below the partition, on its way out", "the planner looks", "it counts: one is stopped", plans(sixOf(parallel, full(0, 0), stopping(1), full(2, 5)), "stop web-5 (outdated)")),
	}
	rows = append(rows, rollouts()...)
	rows = append(rows, histories()...)
	rows = append(rows, readiness()...)
	return append(rows, gauges()...)
}

// twice is a row for the ordered set and one for the parallel set.
func twice(ordered, parallel, given, when, then string, run func(*stage, string)) []row {
	for3 := func(manage string) func(*testing.T) {
		return func(t *testing.T) {
			for _, r := range []string{"retain:retain", "retain:delete", "delete:retain", "delete:delete"} {
				opts := "claim=data:" + r + " manage=" + manage
				t.Run(r, story(func(s *stage) { run(s, opts) }))
			}
		}
	}
	return []row{
		is(ordered, given+", ordered", when, then, for3("ordered")),
		is(parallel, given+", parallel", when, then, for3("parallel")),
	}
}

func rollouts() []row {
	var rows []row
	for _, r := range [][]row{
		twice("B33", "B36", "three members", "the image changes", "all run the new one", turns("replicas=3", "replicas=3 image=app:2", containers(3, 0))),
		twice("B34", "B37", "three members", "the image changes and the set grows to five", "all five run the new one", turns("replicas=3", "replicas=5 image=app:2", containers(5, 0))),
		twice("B35", "B38", "five members", "the image changes and the set shrinks to three", "all three run the new one", turns("replicas=5", "replicas=3 image=app:2", containers(3, 0))),
		twice("B39", "B42", "on_delete and three members", "the image changes", "they stay old; emptied and filled again they are new", onDeleted(3, 3, containers(3, 3), containers(3, 0))),
		twice("B40", "B43", "on_delete and three members", "the image changes and the set grows to five", "0 to 2 stay old, 3 and 4 are new; filled again all are new", onDeleted(3, 5, containers(5, 3), containers(5, 0))),
		twice("B41", "B44", "on_delete and five members", "the image changes and the set shrinks to three", "0 to 2 stay old; filled again all are new", onDeleted(5, 3, containers(3, 3), containers(3, 0))),
		twice("B45", "B47", "partition 2 and three members", "the image changes", "0 and 1 stay old, 2 is new", turns("partition=2", "partition=2 image=app:2", containers(3, 2))),
		twice("B46", "B48", "partition 2 and three members", "the image changes and the set grows to five", "0 and 1 stay old, 2 to 4 are new", turns("partition=2", "partition=2 image=app:2 replicas=5", containers(5, 2))),
		twice("B55", "B58", "three members that were updated", "the first template is applied again", "all run it", func(s *stage, opts string) {
			turns("", "image=app:2", containers(3, 0))(s, opts)
			s.apply(opts)
			s.rest()
			s.want("host", s.host(), containers(3, 3))
		}),
		twice("B56", "B59", "five members, updated while the set grew", "the first template is applied again", "all five run it", func(s *stage, opts string) {
			turns("", "image=app:2 replicas=5", containers(5, 0))(s, opts)
			s.apply(opts + " replicas=5")
			s.rest()
			s.want("host", s.host(), containers(5, 5))
		}),
		twice("B57", "B60", "three members, updated while the set shrank", "the first template is applied again", "all three run it", func(s *stage, opts string) {
			turns("replicas=5", "image=app:2", containers(3, 0))(s, opts)
			s.apply(opts)
			s.rest()
			s.want("host", s.host(), containers(3, 3))
		}),
	} {
		rows = append(rows, r...)
	}
	return rows
}

func histories() []row {
	ordered := func(f func(*stage, string)) func(*testing.T) { return story(func(s *stage) { f(s, "manage=ordered") }) }
	return []row{
		is("B49", "revision_history_limit 3 and an engine that makes nothing", "eight templates are applied", "at most the limit and the live ones are stored after each", inBoth(func(s *stage, opts string) {
			s.world.Fail(sim.Fault{Verb: "create", Times: -1})
			for n := range 8 {
				s.apply(fmt.Sprintf("%s history=3 env=%d", opts, n))
				s.pass(10 * time.Second)
				if rows, err := s.History(s.Context(), web); err != nil || len(rows) > 5 {
					s.Errorf("after %d templates %d are stored; %v", n+1, len(rows), err)
				}
			}
		})),
		is("B50", "revision_history_limit 2, ordered", "ten templates are rolled out", "at most four are stored after each", ordered(limited(2, 4))),
		is("B51", "revision_history_limit 2, parallel", "ten templates are rolled out", "at most four are stored after each", story(func(s *stage) { limited(2, 4)(s, "manage=parallel") })),
		is("B52", "revision_history_limit 0", "ten templates are rolled out", "only live ones are left", story(func(s *stage) {
			limited(0, 2)(s, "manage=ordered")
			s.want("history", s.history(), "10 app:1 web-0,web-1")
		})),
		is("B53", "a negative revision_history_limit", "ten templates are rolled out", "none is ever dropped", story(func(s *stage) {
			limited(-1, 10)(s, "manage=ordered")
			if rows, err := s.History(s.Context(), web); err != nil || len(rows) != 10 {
				s.Errorf("%d are stored, %v", len(rows), err)
			}
		})),
		is("B54", "revision_history_limit 5", "ten templates are rolled out", "at most seven are stored after each", ordered(limited(5, 7))),
	}
}

func readiness() []row {
	return []row{
		is("B61", "min_ready of an hour and a member that is ready for two", "the status is asked for", "it is available", counts(world(replicas(1), minReady(time.Hour), readyFor(0, "r1", 2*time.Hour)), availableOf, 1)),
		is("B62", "min_ready of an hour and a member that is ready for half an hour", "the status is asked for", "it is not available", counts(world(replicas(1), minReady(time.Hour), readyFor(0, "r1", 30*time.Minute)), availableOf, 0)),
		is("B63", "a set that is whole", "an hour passes", "nothing is written, and status says so", story(func(s *stage) {
			s.apply("probe=none")
			s.rest()
			s.world.Forget()
			s.pass(time.Hour)
			s.want("writes", fmt.Sprint(s.world.Writes()), "[]")
			s.want("counters", s.counters(), every(3))
		})),
		is("B64", "an engine that makes nothing", "a set is applied", "status is told all the same, with the engine's error", story(func(s *stage) {
			s.world.Fail(sim.Fault{Verb: "create", Times: -1})
			s.apply("")
			s.pass(10 * time.Second)
			s.has("web-0", s.member(0).Message, "injected fault")
			if st := s.status(); st.ObservedGeneration != st.Generation {
				s.Errorf("observed %d of %d", st.ObservedGeneration, st.Generation)
			}
		})),
		none("B65-B66", "status is a snapshot in memory: there is no write of it that could fail, alone or beside an action"),
		is("B67", "a parallel set of three", "it is scaled to thirty", "one plan makes all that are missing", actions(world(parallel, neverComplete, replicas(30), full(0, 2)), planner.Create, 27)),
		is("B68", "a parallel set of ten", "it is scaled to one", "one plan stops all that are too many", actions(world(parallel, replicas(1), full(0, 9)), planner.Stop, 9)),
		is("B69", "a parallel set of 501", "it is scaled to none", "one plan stops all", actions(world(parallel, replicas(0), full(0, 500)), planner.Stop, 501)),
		is("B70", "an empty parallel set", "it is scaled to a thousand", "one plan makes all; how many calls run at once is the daemon's limit", actions(world(parallel, neverComplete, replicas(1000)), planner.Create, 1000)),
		differs("B71", "two outdated members, ready for 10 s of a min_ready of 30 s", "the image has changed", "none counts as available; one is replaced, the other one is left until that is available",
			"A member that is not available costs no availability, so a corrected spec replaces it at once.", all(
				counts(world(replicas(2), to("r2"), minReady(30*time.Second), readyFor(0, "r1", 10*time.Second), readyFor(1, "r1", 10*time.Second)), availableOf, 0),
				plans(world(replicas(2), to("r2"), minReady(30*time.Second), readyFor(0, "r1", 10*time.Second), readyFor(1, "r1", 10*time.Second)), "stop web-1 (outdated and not available)"),
				plans(world(replicas(2), to("r2"), minReady(30*time.Second), readyFor(0, "r1", time.Minute), readyFor(1, "r2", 10*time.Second)), ""),
				plans(world(replicas(2), to("r2"), minReady(30*time.Second), readyFor(0, "r1", time.Minute), readyFor(1, "r2", time.Minute)), "stop web-0 (outdated)"))),
		differs("B72", "three members, ready for 10 s of a min_ready of 30 s", "the set is scaled to one", "web-2 is stopped",
			"A scale-down never waits for members to become healthy.",
			plans(world(replicas(1), minReady(30*time.Second), readyFor(0, "r1", 10*time.Second), readyFor(1, "r1", 10*time.Second), readyFor(2, "r1", 10*time.Second)), "stop web-2 (scaled down)")),
		is("B73", "on_delete and members that are not available yet", "the image changes", "the new revision is the wanted one, and nobody is stopped", all(
			plans(world(onDelete, to("r2"), minReady(time.Hour), readyFor(0, "r1", 0), readyFor(1, "r1", 0), readyFor(2, "r1", 0)), ""),
			counts(world(onDelete, to("r2"), full(0, 2)), updatedOf, 0))),
		is("B74", "min_ready 0 and two members that became ready now", "the status is asked for", "both are available", counts(world(replicas(2), readyFor(0, "r1", 0), readyFor(1, "r1", 0)), availableOf, 2)),
		differs("B75", "partition 2, four members, ready for 10 s of a min_ready of 30 s", "the image has changed", "those below the partition are left alone; above it one is replaced",
			"As in B71.",
			plans(world(replicas(4), to("r2"), partition(2), minReady(30*time.Second), readyFor(0, "r1", 10*time.Second), readyFor(1, "r1", 10*time.Second), readyFor(2, "r1", 10*time.Second), readyFor(3, "r1", 10*time.Second)),
				"stop web-3 (outdated and not available)")),
	}
}

func gauges() []row {
	of := func(options ...option) []option { return options }
	return []row{
		gauge("B76", "an ordered set of three, max_unavailable 2, one sick", of(maxUnavailable("2"), sick(1, 3)), 2, 1),
		gauge("B77", "a parallel set of ten, 20 %, three sick", of(parallel, replicas(10), maxUnavailable("20%"), sick(3, 10)), 2, 3),
		gauge("B78", "an ordered set of five, max_unavailable 3, three sick", of(replicas(5), maxUnavailable("3"), sick(3, 5)), 3, 3),
		gauge("B79", "a parallel set of three, max_unavailable 1, none sick", of(parallel, maxUnavailable("1"), sick(0, 3)), 1, 0),
		gauge("B80", "an ordered set of ten, 25 %, one sick", of(replicas(10), maxUnavailable("25%"), sick(1, 10)), 2, 1),
		gauge("B81", "a parallel set of five, 80 %, four sick", of(parallel, replicas(5), maxUnavailable("80%"), sick(4, 5)), 4, 4),
		gauge("B82", "a set of two, max_unavailable 1, one sick", of(replicas(2), maxUnavailable("1"), sick(1, 2)), 1, 1),
		gauge("B83", "a set of one, sick", of(replicas(1), maxUnavailable("1"), sick(1, 1)), 1, 1),
		gauge("B84", "on_delete, ordered, two sick", of(onDelete, maxUnavailable("1"), sick(2, 3)), 1, 2),
		gauge("B85", "on_delete, parallel, one sick", of(onDelete, parallel, maxUnavailable("1"), sick(1, 3)), 1, 1),
		gauge("B86", "no max_unavailable, ordered, two sick", of(maxUnavailable(""), sick(2, 3)), 1, 2),
		gauge("B87", "no max_unavailable, parallel, none sick", of(parallel, maxUnavailable(""), sick(0, 3)), 1, 0),
	}
}
