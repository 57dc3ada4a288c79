package conformance

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/daemon/planner"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime/sim"
)

// labelsOf are those that a container of a set's ordinal carries.
func labelsOf(daemon, set, ordinal string) map[string]string {
	return map[string]string{
		jobspecs.LabelDaemon: daemon, jobspecs.LabelNamespace: "default", jobspecs.LabelSet: set,
		jobspecs.LabelOrdinal: ordinal, jobspecs.LabelRevision: set + "-bcdfghjklm",
	}
}

// orphaned lets the set be forgotten and taken over again; the policy is that of
// its claim. In the end it is scaled to none.
func orphaned(retention, left string) func(*testing.T) {
	return story(func(s *stage) {
		opts := "replicas=2 claim=data:" + retention
		s.apply(opts)
		s.rest()
		before := s.runs()
		s.delete(client.DeleteRequest{Orphan: true})
		s.pass(time.Minute)
		s.untouched(before, "web-0", "web-1")
		s.apply(opts)
		s.rest()
		s.untouched(before, "web-0", "web-1")
		s.scale(0)
		s.rest()
		s.want("volumes", s.disks(), left)
	})
}

// reclaims lets a volume whose deletion was decided fail to go, while its member
// is wanted again.
func reclaims(retention string) func(*testing.T) {
	return story(func(s *stage) {
		s.apply("claim=data:" + retention)
		s.rest()
		old, _ := s.world.Disk("data-web-2")
		s.world.Fail(sim.Fault{Verb: "volume.delete", Times: 5})
		s.scale(2)
		s.until(time.Minute, func() bool { return s.told("Failed") != "" })
		s.scale(3)
		s.pass(2 * time.Second)
		if _, runs := s.runs()["web-2"]; runs {
			s.Error("web-2 runs on a volume that is to be deleted")
		}
		s.rest()
		if fresh, _ := s.world.Disk("data-web-2"); fresh.Serial == old.Serial {
			s.Error("web-2 runs on the volume that was to be deleted")
		}
	})
}

func adoption() []row {
	return []row{
		is("C1", "no set", "one of three is applied", "three members run", story(func(s *stage) {
			s.apply("claim=")
			s.rest()
			s.want("counters", s.counters(), every(3))
		})),
		is("C2", "three members", "the file says none", "none is left", story(func(s *stage) {
			s.apply("")
			s.rest()
			s.apply("replicas=0")
			s.rest()
			s.want("host", s.host(), "")
		})),
		is("C3", "three members and two above them on their way out", "the planner looks", "nothing is done until those are gone; then the set can shrink", all(
			plans(world(full(0, 2), stopping(3, 4)), ""),
			plans(world(full(0, 2), replicas(0)), "stop web-2 (scaled down)"))),
		is("C4", "web-0 on its way out", "the set is scaled from three to five", "web-3 is not made; when web-0 is gone it comes first", all(
			plans(world(replicas(5), stopping(0), full(1, 2)), ""),
			plans(world(replicas(5), full(1, 2), once("r1", 0)), "create web-0 (recovery)"))),
		is("C5", "a set that is being deleted and has no members", "the planner looks", "nothing is made, and the set is gone", func(t *testing.T) {
			if p := planner.Next(world(deleting(""))); p.String() != "" || !p.Gone {
				t.Errorf("plan = %q, gone %v", p, p.Gone)
			}
		}),
		is("C6", "a set that is being deleted", "it is scaled meanwhile", "that is refused, and nothing is made", story(func(s *stage) {
			s.apply("image=lingers:1")
			s.rest()
			s.delete(client.DeleteRequest{})
			_, err := s.Scale(s.Context(), web, client.ScaleRequest{Replicas: 5, Write: sure})
			s.has("scale", s.problem(err), "it is being deleted")
			s.pass(5 * time.Minute)
			s.want("host", s.host(), "")
		})),
		is("C7 C10 C16", "two sets", "a container of one is removed", "that one makes it again, and the other does nothing", story(func(s *stage) {
			s.apply("")
			db := strings.ReplaceAll(hcl(""), `statefulset "web"`, `statefulset "db"`)
			if _, err := s.Apply(s.Context(), request(db, sure)); err != nil {
				s.Fatal(err)
			}
			s.pass(time.Minute)
			before := s.runs()
			s.world.Forget()
			s.world.RemoveContainer("web-1")
			s.pass(time.Minute)
			s.want("starts", s.deeds("start", "stop", "remove"), "start web-1")
			s.untouched(before, "db-0", "db-1", "db-2", "web-0", "web-2")
		})),
		none("C8 C13 C15", "a container names its one set by labels that cannot change: there are no selectors that several sets match, and no owner references that go"),
		is("C9 C11", "a container that carries our labels and those of a set that is not stored", "it comes and goes", "nothing is done about it", story(func(s *stage) {
			s.apply("")
			s.rest()
			s.world.ForeignContainer("ghost-0", netip.Addr{}, labelsOf(s.world.Daemon(), "ghost", "0"))
			s.world.Forget()
			s.pass(time.Minute)
			s.want("writes", s.deeds("create", "start", "stop", "remove", "rename"), "")
			s.has("host", s.host(), "ghost-0")
		})),
		is("C12", "a set that is whole", "nothing happens for an hour", "nothing is asked and nothing is done", story(func(s *stage) {
			s.apply("probe=none")
			s.rest()
			s.world.Forget()
			s.pass(time.Hour)
			if n := s.world.Reads() + len(s.world.Writes()); n != 0 {
				s.Errorf("%d requests", n)
			}
		})),
		none("C14", "a container keeps the set that its labels name: its owner cannot change"),
		is("C17", "a foreign container", "it is removed", "nothing is done", story(func(s *stage) {
			s.apply("")
			s.rest()
			s.world.ForeignContainer("other", netip.Addr{}, nil)
			s.world.Forget()
			s.world.RemoveContainer("other")
			s.pass(time.Minute)
			s.want("writes", s.deeds("create", "start", "stop", "remove", "rename"), "")
		})),
		is("C18", "a container that is removed while stsd is away", "stsd starts again", "it is made again", story(func(s *stage) {
			s.apply("")
			s.rest()
			before := s.runs()
			s.end()
			s.world.RemoveContainer("web-1")
			s.boot()
			s.pass(time.Minute)
			s.rest()
			s.untouched(before, "web-0", "web-2")
			s.want("host", s.host(), containers(3, 3))
		})),
		differs("C19", "a set web with a member web-1", "a set named web-1 is applied", "that is refused by name",
			"Two sets can never claim one member, so there is no overlap to log.", refuses(set("")+block("web-1", box("")), "these sets cannot live side by side")),
		is("C20", "members of a set that was forgotten, and a foreign container named like one", "the set is applied again with one member more", "its own members are taken over as they run; the foreign one is named and left alone", story(func(s *stage) {
			s.apply("replicas=2")
			s.rest()
			before := s.runs()
			s.delete(client.DeleteRequest{Orphan: true})
			s.world.ForeignContainer("web-2", netip.Addr{}, nil)
			s.apply("replicas=3")
			s.pass(time.Minute)
			s.untouched(before, "web-0", "web-1")
			s.has("web-2", s.member(2).Message, "container web-2 exists and is not ours")
			s.has("host", s.host(), "web-2 foreign")
		})),
		is("C21", "a set that was forgotten", "the same file is applied again", "its revision has the name that it had, so nobody is outdated", story(func(s *stage) {
			first := s.apply("")
			s.rest()
			s.delete(client.DeleteRequest{Orphan: true})
			again := s.apply("")
			s.rest()
			s.want("revision", again.Revision, first.Revision)
			s.want("history", s.history(), "1 app:1 web-0,web-1,web-2")
		})),
		none("C22", "labels and names that tell whose a container is cannot be taken off it while it exists, so there is nothing to release; `delete --cascade=orphan` releases a whole set (C20)"),
		is("C23", "claims that are retained", "a set is forgotten, taken over and emptied", "volumes stay", orphaned("retain:retain", "data-web-0 data-web-1")),
		is("C24", `on_delete "delete"`, "a set is forgotten, taken over and emptied", "volumes stay", orphaned("retain:delete", "data-web-0 data-web-1")),
		is("C25", `on_scale_down "delete"`, "a set is forgotten, taken over and emptied", "volumes go", orphaned("delete:retain", "")),
		is("C26", "both delete", "a set is forgotten, taken over and emptied", "volumes go", orphaned("delete:delete", "")),
		is("C27", `on_scale_down "delete" and a volume that does not go at once`, "the set shrinks and grows again", "the member waits until the volume is gone, and has a new one", reclaims("delete:retain")),
		is("C28", `both "delete" and a volume that does not go at once`, "the set shrinks and grows again", "the member waits until the volume is gone, and has a new one", reclaims("delete:delete")),
		is("C29", "min_ready 5 s and members that are ready for 0 s, 2 s and 4.3 s", "the planner looks", "three are ready, none is available, and it looks again in 0.7 s", func() func(*testing.T) {
			w := world(parallel, replicas(4), minReady(5*time.Second), readyFor(0, "r1", 0), readyFor(1, "r1", 2*time.Second), readyFor(2, "r1", 4300*time.Millisecond), unready(3, "r1"))
			return all(counts(w, readyOf, 3), counts(w, availableOf, 0), wakes(w, 700*time.Millisecond))
		}()),
	}
}
