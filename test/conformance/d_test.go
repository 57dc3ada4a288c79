package conformance

import (
	"strings"
	"testing"
	"time"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime/sim"
	"github.com/stsd/stsd/volumes"
)

// faulty applies a set on a host where a verb fails, and looks after ten seconds.
func faulty(f sim.Fault, look func(*stage)) func(*testing.T) {
	return story(func(s *stage) {
		s.world.Fail(f)
		s.apply("")
		s.pass(10 * time.Second)
		look(s)
	})
}

// decides checks what becomes of a volume.
func decides(c volumes.Case, want volumes.Retention) func(*testing.T) {
	return func(t *testing.T) {
		if got := volumes.Decide(c); got != want {
			t.Errorf("%+v: %v, want %v", c, got, want)
		}
	}
}

// twoClaims is a set of one whose web-0 is missing.
func twoClaims(options ...option) func(want string) func(*testing.T) {
	w := world(append([]option{replicas(1), claims("delete", "retain", "data", "log"), once("r1", 0)}, options...)...)
	return func(want string) func(*testing.T) { return plans(w, want) }
}

func podControl() []row {
	return []row{
		is("D1", "no set", "one is applied", "events tell that volume and member were made", story(func(s *stage) {
			s.apply("replicas=1")
			s.rest()
			s.has("events", s.told("VolumeCreated"), "web-0: create volume data-web-0 (needed by web-0)")
			s.has("events", s.told("Created"), "web-0: create web-0 (missing)")
		})),
		is("D2", "a container and a volume that were made while the replies were lost", "the engine is asked again", "both are found and used: nothing is made twice", story(func(s *stage) {
			s.world.Fail(sim.Fault{Verb: "create", Name: "web-0", When: sim.After})
			s.world.Fail(sim.Fault{Verb: "volume.create", Name: "data-web-0", When: sim.After})
			s.apply("replicas=1")
			s.rest()
			s.want("host", s.host(), "web-0 app:1")
			if d, _ := s.world.Disk("data-web-0"); len(d.Writers) != 1 {
				s.Errorf("volume is used by %v", d.Writers)
			}
		})),
		is("D3", "a host that makes no volume", "a set is applied", "a warning tells it, and the member is not made", faulty(sim.Fault{Verb: "volume.create", Times: -1}, func(s *stage) {
			s.has("events", s.told("Failed"), "web-0: create volume data-web-0 (needed by web-0): injected fault")
			s.want("host", s.host(), "")
		})),
		is("D4", "a volume that is being deleted", "its member is wanted again", "the member waits until it is gone", waits(
			world(replicas(1), claims("delete", "retain", "data"), record("data", 0, true, true)), "web-0 waits: volume data-web-0 is being deleted first")),
		is("D5", "volumes that cannot be listed", "a set is applied", "nothing is made, and status says why", faulty(sim.Fault{Verb: "volume.list", Times: -1}, func(s *stage) {
			s.want("writes", s.deeds("volume.create", "create", "start"), "")
			if c := condition(s.status(), jobspecs.CondAvailable); c.Status || c.Message == "" {
				s.Errorf("condition = %+v", c)
			}
		})),
		is("D6", "an engine that makes no container", "a set is applied", "the volume is there, and the member says what fails", faulty(sim.Fault{Verb: "create", Times: -1}, func(s *stage) {
			s.want("volumes", s.disks(), "data-web-0")
			s.has("web-0", s.member(0).Message, "injected fault")
			if !strings.Contains(s.told("CreateFailed")+s.told("Failed"), "web-0") {
				s.Error("no event tells it")
			}
		})),
		is("D7", "a member that is as it should be", "the planner looks", "nothing is done and no event is written", story(func(s *stage) {
			s.apply("")
			s.rest()
			s.world.Forget()
			before := s.told("Created")
			s.scale(3)
			s.pass(time.Minute)
			s.want("writes", s.deeds("create", "start", "stop", "remove", "rename"), "")
			s.want("events", s.told("Created"), before)
		})),
		none("D8-D9", "the labels of a Docker container cannot be removed or changed; a name that was changed by hand is B10"),
		none("D10-D11", "the mounts of a Docker container cannot be changed, so there is nothing to repair; a volume that is gone is B13"),
		none("D12", "objects of the engine have no versions that a write could conflict with; conflicts between writers of intent are M10"),
		is("D13", "three members", "the set is scaled to two", "one event tells the stop", story(func(s *stage) {
			s.apply("")
			s.rest()
			s.scale(2)
			s.rest()
			s.want("events", s.told("Stopping"), "web-2: stop web-2 (scaled down)")
		})),
		is("D14", "a member that is on its way out", "somebody removes its container by hand", "that is no error: the set goes on", story(func(s *stage) {
			s.apply("image=lingers:1")
			s.rest()
			s.scale(1)
			s.pass(time.Second)
			s.world.RemoveContainer("web-2")
			s.rest()
			s.want("host", s.host(), "web-0 lingers:1")
			s.want("failures", s.told("Failed"), "")
		})),
		is("D15", "an engine that does not stop a container", "the set shrinks", "the member is shown as stopping until it works", story(func(s *stage) {
			s.apply("")
			s.rest()
			s.world.Fail(sim.Fault{Verb: "stop", Times: -1})
			s.scale(2)
			s.pass(10 * time.Second)
			if m := s.member(2); m.Phase != "Stopping" {
				s.Errorf("web-2 is %s: %s", m.Phase, m.Message)
			}
			s.world.Mend()
			s.rest()
			s.want("host", s.host(), containers(2, 2))
		})),
		is("D16", "a volume of a member", "its retention is retain, or delete while the member is there", "it stays", all(
			decides(volumes.Case{Claim: &jobspecs.Claim{OnScaleDown: "retain", OnDelete: "retain"}, InRange: true, PodGone: true}, volumes.Kept),
			decides(volumes.Case{Claim: &jobspecs.Claim{OnScaleDown: "delete", OnDelete: "delete"}, InRange: true, PodGone: true}, volumes.Kept))),
		is("D17", `on_delete "delete"`, "the set is deleted and the member is gone", "the volume goes, not before", all(
			decides(volumes.Case{Claim: &jobspecs.Claim{OnDelete: "delete"}, InRange: true, Deleting: true, PodGone: true}, volumes.Reclaimed),
			decides(volumes.Case{Claim: &jobspecs.Claim{OnDelete: "delete"}, InRange: true, Deleting: true}, volumes.Kept))),
		is("D18", "a foreign volume of a member's name", "the set is applied and deleted with its volumes", "the member says whose it is, and the volume stays", story(func(s *stage) {
			s.world.ForeignVolume("data-web-0", map[string]string{jobspecs.LabelDaemon: "other"})
			s.apply("claim=data:delete:delete manage=parallel")
			s.pass(time.Minute)
			s.has("web-0", s.member(0).Message, "volume data-web-0 exists and is not ours")
			s.deleted("delete")
			s.want("volumes", s.disks(), "data-web-0")
		})),
		is("D19", "two claims, no volume yet", "the member is wanted", "both are made", twoClaims()("create volume data-web-0 (needed by web-0), create volume log-web-0 (needed by web-0)")),
		is("D20", "no claims", "the member is wanted", "it is made", plans(world(replicas(1), once("r1", 0)), "create web-0 (recovery)")),
		is("D21-D22", "two claims, volumes that are there", "the member is wanted", "it is made with them", twoClaims(volume("data", 0), volume("log", 0), record("data", 0, true, false))("create web-0 (recovery)")),
		is("D23 D25", "one volume to be deleted and one that stays", "the member is wanted", "it is not made; the one is deleted", twoClaims(volume("data", 0), volume("log", 0), record("data", 0, true, true))(`delete volume data-web-0 (on_scale_down = "delete")`)),
		is("D24", "one volume to be deleted and one missing", "the member is wanted", "it is not made; the one is deleted, the other may be made", twoClaims(volume("data", 0), record("data", 0, true, true))(
			`create volume log-web-0 (needed by web-0), delete volume data-web-0 (on_scale_down = "delete")`)),
		is("D26", "both volumes to be deleted", "the member is wanted", "it is not made", twoClaims(volume("data", 0), volume("log", 0), record("data", 0, true, true), record("log", 0, true, true))(
			`delete volume data-web-0 (on_scale_down = "delete"), delete volume log-web-0 (on_scale_down = "delete")`)),
		is("D27", `a set whose volumes were to be deleted`, "the file says retain", "nobody is restarted, and a scale-down keeps them", story(func(s *stage) {
			s.apply("claim=data:delete:delete")
			s.rest()
			before := s.runs()
			s.apply("claim=data:retain:retain")
			s.rest()
			s.untouched(before, "web-0", "web-1", "web-2")
			s.scale(1)
			s.rest()
			s.want("volumes", s.disks(), "data-web-0 data-web-1 data-web-2")
		})),
		is("D28", `a set whose volumes were to stay`, "the file says delete", "nobody is restarted, and a scale-down takes them", story(func(s *stage) {
			s.apply("claim=data:retain:retain")
			s.rest()
			before := s.runs()
			s.apply("claim=data:delete:delete")
			s.rest()
			s.untouched(before, "web-0", "web-1", "web-2")
			s.scale(1)
			s.rest()
			s.want("volumes", s.disks(), "data-web-0")
		})),
		is("D29", "members without their volumes yet", "the retention changes", "that is no error, and holds once they are there", story(func(s *stage) {
			s.world.Fail(sim.Fault{Verb: "volume.create", Times: -1})
			s.apply("claim=data:retain:retain")
			s.pass(10 * time.Second)
			s.apply("claim=data:delete:delete")
			s.world.Mend()
			s.rest()
			s.delete(client.DeleteRequest{})
			s.pass(time.Minute)
			s.want("volumes", s.disks(), "")
		})),
		is("D30-D33", "an engine and a store of volumes", "a verb has returned", "the next list shows what it did, so no decision is made on an older view", story(func(s *stage) {
			s.world.Latency("list", 3*time.Second)
			s.world.Latency("inspect", 3*time.Second)
			s.world.Latency("volume.list", 3*time.Second)
			s.apply("manage=parallel replicas=5")
			s.rest()
			s.world.Forget()
			s.image("app:2")
			s.rest()
			s.want("stops", s.deeds("stop"), "stop web-4, stop web-3, stop web-2, stop web-1, stop web-0")
			s.want("failures", s.told("Failed"), "")
		})),
	}
}
