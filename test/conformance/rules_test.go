package conformance

import (
	"net/netip"
	"strings"
	"time"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/daemon/planner"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/runtime/sim"
)

// broken is a set whose rollout to a bad image stands still.
func (s *stage) broken(manage string) map[string]string {
	s.Helper()
	s.apply(manage)
	s.rest()
	before := s.runs()
	s.apply(manage + " image=never:1")
	s.pass(5 * time.Minute)
	s.want("host of a broken rollout", s.host(), "web-0 app:1, web-1 app:1, web-2 never:1")
	return before
}

func timelines() []row {
	return []row{
		is("2.15.1", "no set", "an ordered one of three is applied", "0 is made, then 1 when 0 is available, then 2", story(func(s *stage) {
			s.apply("image=slow:1")
			s.pass(10 * time.Second)
			s.want("host", s.host(), "web-0 slow:1")
			s.pass(20 * time.Second)
			s.want("host", s.host(), "web-0 slow:1, web-1 slow:1")
			s.want("counters", s.counters(), "replicas 3 current 2 updated 2 ready 1 available 1")
			s.rest()
			s.want("counters", s.counters(), every(3))
		})),
		is("2.15.2", "web-1 is sick", "web-0 is lost for good", "web-0 is made again at once, and web-1 is not touched", story(func(s *stage) {
			s.apply("")
			s.rest()
			s.world.Sicken("web-1", "out of order")
			s.pass(30 * time.Second)
			before := s.runs()
			s.world.RemoveContainer("web-0")
			s.pass(10 * time.Second)
			if !s.member(0).Available {
				s.Errorf("web-0 is %s", s.member(0).Phase)
			}
			s.untouched(before, "web-1", "web-2")
		})),
		is("2.15.3", "web-2 is sick", "three are scaled to one", "2 goes, then 1", all(
			plans(world(replicas(1), full(0, 1), unready(2, "r1")), "stop web-2 (scaled down)"), plans(world(replicas(1), full(0, 1)), "stop web-1 (scaled down)"))),
		is("2.15.4", "web-1 is sick", "three are scaled to one", "2 goes, then 1", all(
			plans(world(replicas(1), full(0, 0), unready(1, "r1"), full(2, 2)), "stop web-2 (scaled down)"), plans(world(replicas(1), full(0, 0), unready(1, "r1")), "stop web-1 (scaled down)"))),
		differs("2.15.5", "web-1 and web-2 are sick", "three are scaled to one", "2 goes, then 1", "Kubernetes is stuck here until somebody deletes web-2 by hand.", all(
			plans(world(replicas(1), full(0, 0), unready(1, "r1"), unready(2, "r1")), "stop web-2 (scaled down)"), plans(world(replicas(1), full(0, 0), unready(1, "r1")), "stop web-1 (scaled down)"))),
		differs("2.15.6", "web-0 is sick", "three are scaled to one", "2 goes, then 1", "Kubernetes is stuck here until web-0 is healthy.", all(
			plans(world(replicas(1), unready(0, "r1"), full(1, 2)), "stop web-2 (scaled down)"), plans(world(replicas(1), unready(0, "r1"), full(1, 1)), "stop web-1 (scaled down)"))),
		differs("2.15.7", "a rollout that stands still at its first member", "a corrected file is applied", "the broken member is replaced at once, and the rollout goes on", "Kubernetes is stuck here until somebody deletes web-2 by hand (kubernetes#67250).",
			inBoth(func(s *stage, manage string) {
				s.broken(manage)
				s.apply(manage + " image=app:3")
				s.pass(20 * time.Second)
				s.rest()
				s.want("host", s.host(), strings.ReplaceAll(containers(3, 3), "app:1", "app:3"))
			})),
		differs("2.15.8", "a rollout that stands still at its first member", "it is undone", "the broken member goes back at once, and nobody else is restarted", "As in 2.15.7.",
			inBoth(func(s *stage, manage string) {
				before := s.broken(manage)
				s.rollout("undo", 0)
				s.pass(20 * time.Second)
				s.rest()
				s.want("host", s.host(), containers(3, 3))
				s.untouched(before, "web-0", "web-1")
			})),
		is("2.15.9", "partition 2 of three and a new image", "web-0 and web-2 are removed", "they come back old and new; the two revisions stay apart", story(func(s *stage) {
			s.apply("partition=2")
			s.rest()
			s.apply("partition=2 image=app:2")
			s.rest()
			for _, m := range []string{"web-0", "web-2"} {
				s.world.RemoveContainer(m)
				s.pass(time.Second)
				s.rest()
			}
			s.want("host", s.host(), containers(3, 2))
			s.want("counters", s.counters(), "replicas 3 current 2 updated 1 ready 3 available 3")
			if st := s.status(); st.CurrentRevision == st.UpdateRevision {
				s.Error("the rollout counts as complete")
			}
		})),
		is("2.15.10", `on_scale_down "delete"`, "three become two and three again at once", "web-2 waits until its volume is gone, and both are new", reclaims("delete:retain")),
		is("2.15.11", "three members from 0", "start_ordinal becomes 2", "3 and 4 are made while 2 stays, then 1 goes, then 0", story(func(s *stage) {
			s.apply("claim=")
			s.rest()
			before := s.runs()
			s.world.Forget()
			s.apply("claim= start=2")
			s.rest()
			s.want("starts", s.deeds("start"), "start web-3, start web-4")
			s.want("stops", s.deeds("stop"), "stop web-1, stop web-0") // 4 is made by then, and may be started after
			s.untouched(before, "web-2")
		})),
	}
}

func rules() []row {
	return []row{
		is("8.1", "a slot that is empty and a sick one", "the planner looks", "the empty one is filled before there is any reason to wait", plans(world(full(1, 1), unready(2, "r1"), once("r1", 0)), "create web-0 (recovery)")),
		differs("8.2", "several sick members that have to go", "the set shrinks", "each goes from the top, whatever its health", "There is no exception to know: none of them has to be healthy.", all(
			plans(world(replicas(1), full(0, 0), unready(1, "r1"), unready(2, "r1")), "stop web-2 (scaled down)"),
			plans(world(replicas(1), unready(0, "r1"), unready(1, "r1"), unready(2, "r1")), "stop web-2 (scaled down)"))),
		differs("8.3", "a sick member that stays, old ones, and one too many", "the planner looks", "the one too many goes first, and does not wait for the sick one", "Scaling comes before updating; health of others is no reason to keep what is not wanted.",
			plans(world(replicas(2), to("r2"), unready(0, "r1"), full(1, 2)), "stop web-2 (scaled down)")),
		is("8.4", "an old member that is sick, and a new one that is", "the update looks", "the old one is replaced; a new sick one holds the update", all(
			plans(world(to("r2"), unready(0, "r1"), full(1, 2)), "stop web-0 (outdated and not available)"),
			plans(world(to("r2"), full(0, 1), unready(2, "r2")), ""))),
		differs("8.5", "a member that is lost in the middle of a rollout", "it is made again", "below the partition it is old; above it, it comes back as it was until its turn has come", "A reboot does not spread a rollout.", all(
			makes(world(to("r2"), partition(1), full(1, 2), once("r1", 0)), "web-0", "r1"),
			makes(world(to("r2"), partition(1), full(1, 2), remembers(func(m *planner.Member) { m.Revision = "r2" }, 0)), "web-0", "r1"),
			makes(world(to("r2"), full(0, 0), running("web-2:r2"), once("r1", 1)), "web-1", "r1"),
			makes(world(to("r2"), full(0, 0), running("web-2:r2"), left(1)), "web-1", "r2"),
			makes(world(to("r2"), full(0, 2), replicas(4)), "web-3", "r2"))),
		differs("8.6", "start_ordinal 5 and partition 6", "the image changes", "the partition is compared with the real ordinal", "One number means one member.", all(
			plans(world(to("r2"), start(5), partition(6), full(5, 6), running("web-7:r2")), "stop web-6 (outdated)"),
			plans(world(to("r2"), start(5), partition(6), full(5, 5), running("web-6:r2", "web-7:r2")), ""))),
		is("8.7", "a rollout that has done web-2", "the former template is applied", "it has its former name under a new number, and those that never left are not restarted", story(func(s *stage) {
			first := s.apply("")
			s.rest()
			before := s.runs()
			s.apply("image=never:1")
			s.pass(time.Minute)
			again := s.apply("")
			s.rest()
			s.want("revision", again.Revision, first.Revision)
			s.want("history", s.history(), "2 never:1; 3 app:1 web-0,web-1,web-2")
			s.untouched(before, "web-0", "web-1")
		})),
		is("8.8", "a member on its way out", "counters are made and completion is asked", "it counts for no revision, and the rollout is not complete", all(
			counts(world(full(0, 1), stopping(2)), currentOf, 2), counts(world(full(0, 1), stopping(2)), updatedOf, 2),
			completes(world(to("r2"), running("web-0:r2", "web-1:r2", "web-2:r2")), true),
			completes(world(to("r2"), full(0, 0), running("web-1:r2", "web-2:r2")), false),
			completes(world(to("r2"), replicas(2), running("web-0:r2", "web-1:r2", "web-2:r2")), false),
			completes(world(to("r2"), minReady(time.Minute), running("web-0:r2", "web-1:r2"), readyFor(2, "r2", time.Second)), false))),
		is("8.9", "a member that ended", "the planner looks twice", "it is removed in one pass and made in another", all(
			plans(world(full(1, 2), ended(0, runtime.ReasonEngineRestarted), once("r1", 0)), "remove web-0 (ended: found stopped when the engine was connected)"),
			plans(world(full(1, 2), once("r1", 0)), "create web-0 (recovery)"))),
		is("8.10", "revision_history_limit 0, an engine that makes nothing, and members of several revisions", "templates are applied", "those that no member runs go in spite of the errors, the others stay", story(func(s *stage) {
			s.apply("history=0")
			s.rest()
			s.world.Fail(sim.Fault{Verb: "create", Times: -1})
			for _, image := range []string{"app:2", "app:3", "never:1"} {
				s.apply("history=0 image=" + image)
				s.pass(10 * time.Second)
			}
			rows, err := s.History(s.Context(), web)
			if err != nil || len(rows) > 3 || rows[0].Images[0] != "app:1" || rows[len(rows)-1].Images[0] != "never:1" {
				s.Errorf("history = %s, %v", s.history(), err)
			}
		})),
		is("8.11", "an engine that fails", "status is asked for", "it is of the newest generation and tells the error", faulty(sim.Fault{Verb: "create", Times: -1}, func(s *stage) {
			if st := s.status(); st.ObservedGeneration != st.Generation || !strings.Contains(s.member(0).Message, "injected fault") {
				s.Errorf("observed %d of %d: %s", st.ObservedGeneration, st.Generation, s.member(0).Message)
			}
		})),
		is("8.12", "an engine that does not stop a member", "the image has changed", "counters are what runs: they do not run ahead of the engine", story(func(s *stage) {
			s.apply("")
			s.rest()
			s.world.Fail(sim.Fault{Verb: "stop", Times: -1})
			s.image("app:2")
			s.pass(30 * time.Second)
			if st := s.status(); st.UpdatedReplicas != 0 || st.ReadyReplicas < 2 {
				s.Errorf("counters = %s", s.counters())
			}
			s.want("host", s.host(), containers(3, 3))
		})),
		is("8.13", "a volume whose deletion was decided", "its member is wanted again", "the member never starts on it", reclaims("delete:delete")),
		is("8.14", "objects of another stsd that name our set", "the set is applied and deleted", "they are named and left alone", story(func(s *stage) {
			s.world.ForeignVolume("data-web-0", map[string]string{jobspecs.LabelDaemon: "another", jobspecs.LabelSet: "web"})
			s.world.ForeignContainer("web-1", netip.Addr{}, labelsOf("another", "web", "1"))
			s.apply("manage=parallel")
			s.pass(time.Minute)
			s.has("web-0", s.member(0).Message, "is not ours (of stsd another)")
			s.has("web-1", s.member(1).Message, "container web-1 exists and is not ours")
			s.deleted("delete")
			s.want("volumes", s.disks(), "data-web-0")
			s.want("host", s.host(), "web-1 foreign")
		})),
		is("8.15", "members that become available at different times", "the planner looks", "it looks again at the earliest", wakes(world(minReady(10*time.Second), full(0, 0), readyFor(1, "r1", 4*time.Second), readyFor(2, "r1", 9*time.Second)), time.Second)),
		is("8.16", "an engine that is slow to list", "a set is made and updated", "nothing is asked twice and nothing conflicts", story(func(s *stage) {
			s.world.Latency("list", 5*time.Second)
			s.world.Latency("inspect", 5*time.Second)
			s.apply("")
			s.rest()
			s.image("app:2")
			s.rest()
			s.want("starts", s.deeds("start"), "start web-0, start web-1, start web-2, start web-2, start web-1, start web-0")
			s.want("failures", s.told("Failed"), "")
		})),
		is("8.17", "a sick member below the partition, and percentages", "the update looks", "all slots count; a percentage is rounded down and never below one", all(
			plans(world(to("r2"), partition(1), unready(0, "r1"), full(1, 2)), ""),
			plans(world(to("r2"), maxUnavailable("70%"), full(0, 2)), "stop web-1 (outdated), stop web-2 (outdated)"),
			plans(world(to("r2"), maxUnavailable("1%"), full(0, 2)), "stop web-2 (outdated)"))),
		is("8.18", "a parallel set and max_unavailable 1", "the image changes", "members are updated one at a time", plans(world(to("r2"), parallel, full(0, 2)), "stop web-2 (outdated)")),
		differs("8.19", "a parallel set and an engine that refuses one member", "it is applied", "the others are made all the same; the refused one is tried again with back-off", "One bad member does not hold back the others.", story(func(s *stage) {
			s.world.Fail(sim.Fault{Verb: "create", Name: "web-1", Times: -1})
			s.apply("manage=parallel replicas=6")
			s.pass(time.Minute)
			s.want("host", s.host(), "web-0 app:1, web-2 app:1, web-3 app:1, web-4 app:1, web-5 app:1")
			tries := 0
			for _, c := range s.world.Writes() {
				if c.Verb == "create" && c.Name == "web-1" {
					tries++
				}
			}
			if tries < 2 || tries > 20 {
				s.Errorf("web-1 was tried %d times in a minute", tries)
			}
		})),
		differs("8.20", "an ordered set", "it is deleted", "members go from the top, each when the one above is gone", "Kubernetes deletes in no order.", story(func(s *stage) {
			s.apply("image=lingers:1")
			s.rest()
			s.world.Forget()
			s.delete(client.DeleteRequest{})
			s.pass(2 * time.Second)
			s.want("stops", s.deeds("stop"), "stop web-2")
			if m := s.member(2); m.Phase != "Stopping" || len(s.runs()) != 3 {
				s.Errorf("web-2 is %s; host %s", m.Phase, s.host())
			}
			s.pass(time.Minute)
			s.want("stops", s.deeds("stop"), "stop web-2, stop web-1, stop web-0")
		})),
		differs("8.21", "a strategy that is written out, and an update block that is empty or absent", "the file is read", "all three are the same", "The half strategy of an absent block does not exist.", all(
			reads(set(""), func(s jobspecs.Spec) bool { return s.Set.Update.Strategy == jobspecs.Rolling }),
			reads(updates(""), func(s jobspecs.Spec) bool { return s.Set.Update.Strategy == jobspecs.Rolling }),
			reads(updates(`strategy = "rolling"`), func(s jobspecs.Spec) bool { return s.Set.Update.Partition == 0 }))),
		is("8.22", "a set whose service changes", "members are made anew one by one", "each has its new name from its next container on", story(func(s *stage) {
			s.apply("")
			s.rest()
			s.rollout("pause", 0)
			s.apply("service=other")
			s.pass(time.Minute)
			s.want("name while paused", s.member(0).FQDN, "web-0.web.default.svc.cluster.local")
			s.rollout("resume", 0)
			s.rest()
			s.want("name", s.member(0).FQDN, "web-0.other.default.svc.cluster.local")
		})),
		is("8.23", "containers of our name without our labels, with our labels and another name, and a set that is being deleted", "a set is applied", "nothing of others is taken over, and nothing comes back to a set that goes", story(func(s *stage) {
			s.world.ForeignContainer("web-0", netip.Addr{}, nil)
			s.apply("manage=parallel image=lingers:1")
			s.pass(time.Minute)
			s.has("web-0", s.member(0).Message, "container web-0 exists and is not ours")
			s.delete(client.DeleteRequest{})
			s.has("apply", s.refused("replicas=5"), "deleted")
			s.pass(time.Minute)
			s.want("host", s.host(), "web-0 foreign")
		})),
		is("8.24", "a member that ends", "its probes are due", "readiness is asked, liveness is not", nil).in(agent, ofProbesIn, "N23"),
		is("8.25", "a process that ends after three seconds, again and again", "time passes", "the first restart does not wait; back-off grows from the last end, and ends when it has run long enough", story(func(s *stage) {
			s.apply("replicas=1 image=crash:1 probe=none")
			s.pass(5 * time.Minute)
			var starts []time.Time
			for _, c := range s.world.Writes() {
				if c.Verb == "start" && c.Err == "" {
					starts = append(starts, c.At)
				}
			}
			if len(starts) < 5 {
				s.Fatalf("%d starts", len(starts))
			}
			last := time.Duration(0)
			for i := 1; i < len(starts); i++ {
				waited := starts[i].Sub(starts[i-1]) - 3*time.Second
				if i == 1 && waited > time.Second || waited < last-time.Second || waited > 61*time.Second {
					s.Errorf("restart %d waited %s after %s", i, waited, last)
				}
				last = waited
			}
		})),
	}
}
