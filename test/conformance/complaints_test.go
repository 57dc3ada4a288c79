package conformance

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stsd/stsd/daemon/planner"
	"github.com/stsd/stsd/jobspecs"
)

// failing is the file of a set whose rollout has a minute for each member.
func failing(opts, onFailure string) string {
	return strings.Replace(hcl(opts), "update {", fmt.Sprintf("update {\ndeadline = \"1m\"\non_failure = %q", onFailure), 1)
}

// fails runs a rollout that misses its deadline.
func fails(onFailure string, check func(s *stage, before map[string]string)) func(*testing.T) {
	return story(func(s *stage) {
		s.applyText(failing("", onFailure))
		s.rest()
		before := s.runs()
		s.applyText(failing("image=never:1", onFailure))
		s.pass(3 * time.Minute)
		check(s, before)
	})
}

func complaints() []row {
	return []row{
		differs("6.1", `on_failure "rollback" and a bad image`, "its first member misses the deadline", "it goes back by itself, is told why, and nobody else is restarted",
			"A bad revision neither blocks its own repair (2.15.7) nor waits for somebody to notice.", fails("rollback", func(s *stage, before map[string]string) {
				s.rest()
				s.want("host", s.host(), containers(3, 3))
				s.untouched(before, "web-0", "web-1")
				if c := condition(s.status(), jobspecs.CondRolledBack); !c.Status || !strings.Contains(c.Message, "web-2") {
					s.Errorf("condition = %+v", c)
				}
			})),
		claimGrowth(),
		differs("6.3", "a set to which a claim was added", "that is undone", "members run without it, and its volumes stay",
			"Claims and their mounts are a part of the template.", story(func(s *stage) {
				s.apply("claim=data:retain:retain")
				s.rest()
				s.apply("claim=data:retain:retain,log:retain:retain")
				s.rest()
				s.rollout("undo", 0)
				s.rest()
				s.want("volumes", s.disks(), "data-web-0 data-web-1 data-web-2 log-web-0 log-web-1 log-web-2")
				s.want("history", s.history(), "2 app:1; 3 app:1 web-0,web-1,web-2")
			})),
		differs("6.4", `on_failure "pause" and a bad image`, "its first member misses the deadline", "conditions name the member and the cause, and the rollout stands still until a corrected file or resume",
			"Kubernetes' sets have no conditions and no deadline.", fails("pause", func(s *stage, before map[string]string) {
				stalled := condition(s.status(), jobspecs.CondStalled)
				if !stalled.Status || stalled.Reason != "DeadlineExceeded" || !strings.Contains(stalled.Message, "web-2 is not available") {
					s.Errorf("condition = %+v", stalled)
				}
				s.untouched(before, "web-0", "web-1")
				s.applyText(failing("image=app:3", "pause"))
				s.rest()
				s.want("host", s.host(), strings.ReplaceAll(containers(3, 3), "app:1", "app:3"))
			})),
		differs("6.5", "an old member that is sick already", "the image changes", "it is replaced first, and costs no budget", "What is down cannot become less available.", all(
			plans(world(to("r2"), unready(0, "r1"), full(1, 2)), "stop web-0 (outdated and not available)"),
			plans(world(to("r2"), maxUnavailable("2"), unready(0, "r1"), full(1, 2)), "stop web-0 (outdated and not available), stop web-2 (outdated)"))),
		differs("6.6", "all members new and ready, one not for min_ready yet", "completion is asked", "the rollout goes on until it is available", "Complete means that every member has proved itself.", all(
			completes(world(to("r2"), minReady(time.Minute), running("web-0:r2", "web-1:r2"), readyFor(2, "r2", 59*time.Second)), false),
			completes(world(to("r2"), minReady(time.Minute), running("web-0:r2", "web-1:r2"), readyFor(2, "r2", time.Minute)), true))),
		differs("6.7", "a process that ignores its stop signal", "its member is updated", "it is killed when its grace is over, and the member comes back", "One host knows the truth: nothing is terminating for ever.", story(func(s *stage) {
			s.apply("image=stubborn:1 grace=10s")
			s.rest()
			s.image("app:2")
			s.pass(9 * time.Second)
			s.has("host", s.host(), "web-2 stubborn:1")
			s.rest()
			s.want("host", s.host(), containers(3, 0))
		})),
		differs("6.8", "every member sick", "the set is scaled to one", "the others go from the top", "Nobody needs a healthy peer to leave.", inBoth(func(s *stage, manage string) {
			s.apply(manage + " image=never:1 replicas=1")
			s.pass(time.Minute)
			s.apply(manage + " replicas=3")
			s.rest()
			for _, m := range []string{"web-0", "web-1", "web-2"} {
				s.world.Sicken(m, "out of order")
			}
			s.pass(time.Minute)
			s.scale(1)
			s.pass(time.Minute)
			s.want("host", s.host(), "web-0 app:1")
		})),
		differs("6.9", "three members", "ordinal 1 is reserved, and given back", "web-3 stands in for web-1; then web-1 is back and web-3 goes", "A member can be taken out of the middle.", story(func(s *stage) {
			reserving := func(list string) string {
				return strings.Replace(hcl(""), "replicas = 3", "replicas = 3\nreserve = ["+list+"]", 1)
			}
			s.apply("")
			s.rest()
			before := s.runs()
			s.applyText(reserving("1"))
			s.rest()
			s.want("host", s.host(), "web-0 app:1, web-2 app:1, web-3 app:1")
			s.applyText(reserving(""))
			s.rest()
			s.want("host", s.host(), containers(3, 3))
			s.untouched(before, "web-0", "web-2")
		})),
		differs("6.10", "members that are not ready yet", "their peers ask for them", "they are told at once, and everybody else only of ready ones", "No negative answer is kept for half a minute while a cluster forms.", nil).in("dns", "TestSetNameSaysWhoIsListed", "Peers"),
		differs("6.11", "an argument that depends on the ordinal", "the file is read", "each member has its own; the expression is one template", "Members may differ without a set for each.", renders(
			block("web", box(`args = [self.ordinal == 0 ? "primary" : "replica"]`)), func(c jobspecs.Container) string { return strings.Join(c.Args, " ") }, "primary", "replica")),
		differs("6.12", "a member that ends", "its pre_stop runs", "it is told why: restart, update, scale_down, delete, replace or stop", "A hook can tell a restart from leaving for good.", nil).in("daemon", "TestAPreStopHookIsToldWhy", "STSD_REASON"),
		differs("6.13", "on_delete and a new image", "the last old member was removed by hand", "the new revision is the current one", "Completion is what runs, under every strategy.", story(func(s *stage) {
			s.apply("strategy=on_delete")
			s.rest()
			r := s.apply("strategy=on_delete image=app:2")
			s.rest()
			for _, m := range []string{"web-0", "web-1", "web-2"} {
				if s.status().CurrentRevision == r.Revision {
					s.Error("it is complete before all are new")
				}
				s.world.RemoveContainer(m)
				s.pass(time.Second)
				s.rest()
			}
			s.want("current revision", s.status().CurrentRevision, r.Revision)
		})),
		differs("6.14", "a process that keeps ending", "stsd is restarted again and again", "back-off goes on where it was", "One back-off per member, over restarts of everything.", story(func(s *stage) {
			s.apply("replicas=1 image=crash:1 probe=none")
			s.pass(10 * time.Minute)
			s.world.Forget()
			for range 5 {
				s.end()
				s.boot()
				s.pass(time.Minute)
			}
			if n := strings.Count(s.deeds("start"), "start"); n > 7 {
				s.Errorf("%d starts in five minutes, with a back-off of a minute", n)
			}
		})),
		differs("6.15", "a set", "pod_management, service, claims and retention change at once", "the file is taken; the plan says what it costs", "Nothing has to be deleted and made again to be changed.", story(func(s *stage) {
			s.apply("")
			s.rest()
			s.apply("manage=parallel service=other claim=data:delete:delete,log:retain:retain")
			s.rest()
			s.want("name", s.member(0).FQDN, "web-0.other.default.svc.cluster.local")
			s.want("volumes", s.disks(), "data-web-0 data-web-1 data-web-2 log-web-0 log-web-1 log-web-2")
		})),
		differs("6.16", "a volume that was removed by hand with its container", "it comes back by hand", "the member waits for it, over restarts of stsd, and runs again when it is there", "It never starts empty in silence.", story(func(s *stage) {
			s.apply("")
			s.rest()
			s.world.RemoveContainer("web-1")
			s.world.RemoveVolume("data-web-1")
			s.hooks.Changed()
			s.pass(time.Minute)
			s.end()
			s.boot()
			s.pass(time.Minute)
			s.want("host", s.host(), "web-0 app:1, web-2 app:1")
			if c := condition(s.status(), jobspecs.CondStalled); !c.Status || c.Reason != "VolumeLost" {
				s.Errorf("condition = %+v", c)
			}
			labels := labelsOf(s.world.Daemon(), "web", "1")
			labels[jobspecs.LabelClaim] = "data"
			s.world.ForeignVolume("data-web-1", labels)
			s.hooks.Changed()
			s.pass(time.Minute)
			s.rest()
		})),
		differs("6.17", "an ordered set that was formed, all of whose containers were killed with the host", "it comes back", "all start side by side, or staged by recovery_wait; an ordered set that cannot form says that it may need its peers", "Whoever needs a quorum to become ready gets it.", all(
			plans(world(once("r1", 0, 1, 2)), "create web-0 (recovery), create web-1 (recovery), create web-2 (recovery)"),
			plans(world(recoveryWait(time.Minute), once("r1", 0, 1, 2)), "create web-0 (recovery)"),
			plans(world(recoveryWait(3*time.Hour), unready(0, "r1"), once("r1", 1, 2)), ""),
			plans(world(recoveryWait(time.Hour), unready(0, "r1"), once("r1", 1, 2)), "create web-1 (recovery)"),
			func(t *testing.T) {
				p := planner.Next(world(neverComplete, unready(0, "r1")))
				if len(p.Waiting) == 0 || !p.Waiting[0].NeedsPeers || !strings.Contains(p.Waiting[0].For, `pod_management = "parallel"`) {
					t.Errorf("waiting = %v", p.Waiting)
				}
			})),
		differs("6.18", "a file whose layout and comments change, or whose tag means another image", "it is applied", "the first is no revision, the second is one", "What is compared is what was meant.", story(func(s *stage) {
			s.apply("")
			s.rest()
			if r := s.applyText("# the same\n" + strings.ReplaceAll(hcl(""), "\n", "\n  ")); r.Changed {
				s.Errorf("another layout changed something: %+v", r)
			}
			s.world.Program("app:1", images["app:1"])
			if r := s.apply(""); !r.Changed {
				s.Error("another image under the same name changed nothing")
			}
			s.rest()
			s.want("history", s.history(), "1 app:1; 2 app:1 web-0,web-1,web-2")
		})),
		differs("6.19", "a rollout", "it is paused and resumed", "it stands still between", "Pausing needs no trick; in place or with a surge a member cannot be updated, as it has one name and one volume.", story(func(s *stage) {
			s.apply("")
			s.rest()
			s.image("slow:1")
			s.until(time.Minute, func() bool { return strings.Contains(s.host(), "web-2 slow:1") })
			s.rollout("pause", 0)
			s.pass(5 * time.Minute)
			s.want("host", s.host(), "web-0 app:1, web-1 app:1, web-2 slow:1")
			s.rollout("resume", 0)
			s.rest()
			s.want("host", s.host(), "web-0 slow:1, web-1 slow:1, web-2 slow:1")
		})),
		differs("6.20", "a name that is too long for its revision", "the file is read", "it is refused at once", "It is not found late, by members that never come.", all(
			refuses(block(strings.Repeat("a", 53), box("")), "the set's name is too long"), takes(block(strings.Repeat("a", 52), box(""))))),
	}
}
