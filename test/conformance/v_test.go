package conformance

import (
	"strings"
	"testing"
	"time"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/daemon/planner"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

// pausing checks a set in the three states of a pause.
func pausing(unpaused, held, grown string, manage string) []row {
	holds := func(grow bool) func(*testing.T) {
		return story(func(s *stage) {
			s.apply(manage)
			s.rest()
			before := s.runs()
			s.rollout("pause", 0)
			s.apply(manage + " image=app:2")
			if grow {
				s.scale(5)
			}
			s.pass(time.Minute)
			s.untouched(before, "web-0", "web-1", "web-2")
			if n := len(s.runs()); grow != (n == 5) {
				s.Errorf("host = %s", s.host())
			}
		})
	}
	return []row{
		is(unpaused, "a set that is not paused, "+manage, "the image changes", "its members are updated", story(func(s *stage) { turns("", "image=app:2", containers(3, 0))(s, manage) })),
		is(held, "a paused set, "+manage, "the image changes", "nobody is stopped", holds(false)),
		is(grown, "a paused set, "+manage, "the image changes and the set grows", "new members are made, the old ones left alone", holds(true)),
	}
}

func hook(on string, change ...func(*jobspecs.Hook)) option {
	return func(w *planner.World) {
		h := jobspecs.Hook{Name: "tell", On: on}
		for _, f := range change {
			f(&h)
		}
		w.Set.Hooks = append(w.Set.Hooks, h)
	}
}

func joined(m *planner.Member)   { m.Joined = true }
func hasLeft(m *planner.Member)  { m.Left = true }
func askFresh(m *planner.Member) { m.Ask = planner.AskFresh }
func askTurn(m *planner.Member)  { m.Ask = planner.AskTurn }
func askNow(m *planner.Member)   { m.Ask = planner.AskNow }

func kruise() []row {
	rows := append(pausing("V1", "V2", "V3", "manage=ordered"), pausing("V4", "V5", "V6", "manage=parallel")...)
	grown := func(d time.Duration, options ...option) planner.World {
		return world(append([]option{neverComplete, minReady(d), readyFor(0, "r1", 0)}, options...)...)
	}
	ask := func(s *stage, do string, ordinals ...int) {
		s.Helper()
		s.asked(s.ChangeMembers(s.Context(), web, client.MembersRequest{Do: do, Ordinals: ordinals, Write: sure}))
	}
	rows = append(rows,
		is("V7", "an ordered set without min_ready, web-0 ready just now", "the set grows", "the next one is made", plans(grown(0), "create web-1 (missing)")),
		is("V8", "an ordered set with min_ready 1s, web-0 ready just now", "the set grows", "nobody is made before it has passed", all(plans(grown(time.Second), ""), wakes(grown(time.Second), time.Second))),
		is("V9", "an ordered set with min_ready 3s, web-0 ready just now", "the set grows", "nobody is made before it has passed", all(plans(grown(3*time.Second), ""), wakes(grown(3*time.Second), 3*time.Second))),
		is("V10", "a parallel set without min_ready", "the set grows", "all are made at once", plans(grown(0, parallel), "create web-1 (missing), create web-2 (missing)")),
		is("V11", "a parallel set with min_ready 1s", "the set grows", "all are made at once", plans(grown(time.Second, parallel), "create web-1 (missing), create web-2 (missing)")),
		is("V13-V18", "max_unavailable 1 or 2, with and without min_ready, and a member that is new and ready just now", "the image has changed",
			"under min_ready it uses up the budget until that has passed, without it at once", all(
				plans(world(to("r2"), full(0, 1), readyFor(2, "r2", 0)), "stop web-1 (outdated)"),
				plans(world(to("r2"), minReady(time.Second), full(0, 1), readyFor(2, "r2", 0)), ""),
				plans(world(to("r2"), maxUnavailable("2"), full(0, 1), readyFor(2, "r2", 0)), "stop web-0 (outdated), stop web-1 (outdated)"),
				plans(world(to("r2"), maxUnavailable("2"), minReady(time.Second), full(0, 1), readyFor(2, "r2", 0)), "stop web-1 (outdated)"),
				plans(world(to("r2"), parallel, minReady(time.Second), full(0, 1), readyFor(2, "r2", 0)), ""),
				plans(world(to("r2"), parallel, maxUnavailable("2"), minReady(time.Second), full(0, 1), readyFor(2, "r2", 0)), "stop web-1 (outdated)"))),
		is("V19", "max_unavailable 2, ordered or parallel", "the image changes", "two are stopped at once", all(
			plans(world(to("r2"), maxUnavailable("2"), full(0, 2)), "stop web-1 (outdated), stop web-2 (outdated)"),
			plans(world(to("r2"), parallel, maxUnavailable("2"), full(0, 2)), "stop web-1 (outdated), stop web-2 (outdated)"))),
		is("V20", "a budget that a sick member below the partition uses up", "the image has changed", "a healthy old one is left alone, a sick old one is replaced",
			plans(world(to("r2"), replicas(5), partition(1), unready(0, "r1"), full(1, 2), unready(3, "r1"), full(4, 4)), "stop web-3 (outdated and not available)")),
		is("V21", "members that are to be replaced, restarted or stopped", "the set is updated, guarded, or has claims", "they go by their turn and the guard; a fresh volume comes after the old one is gone; a member that was stopped stays so until it is started", all(
			plans(world(full(0, 2), remembers(askTurn, 0, 2)), "stop web-2 (its restart was asked for)"),
			plans(world(full(0, 2), remembers(askNow, 0, 1), minAvailable(2)), "stop web-0 (its restart was asked for)"),
			plans(world(to("r2"), full(0, 1), remembers(askTurn, 0), unready(2, "r2")), ""),
			plans(world(claims("retain", "retain", "data"), full(0, 2), volume("data", 0, 1, 2), record("data", 1, true, false), remembers(askFresh, 1)), "stop web-1 (it is replaced, with fresh volumes)"),
			plans(world(claims("retain", "retain", "data"), full(0, 0), full(2, 2), volume("data", 0, 1, 2), record("data", 1, true, false), once("r1", 1), remembers(askFresh, 1)),
				"delete volume data-web-1 (web-1 is replaced, with fresh volumes)"),
			plans(world(claims("retain", "retain", "data"), full(0, 0), full(2, 2), volume("data", 0, 2), once("r1", 1), remembers(askFresh, 1)), "create volume data-web-1 (needed by web-1)"),
			story(func(s *stage) {
				s.apply("")
				s.rest()
				before, disks := s.runs(), s.world.Disks()
				s.asked(s.FreshVolume(s.Context(), web, client.FreshVolumeRequest{Ordinal: 1, Write: sure}))
				s.pass(time.Second)
				s.rest()
				s.untouched(before, "web-0", "web-2")
				for i, d := range s.world.Disks() {
					if fresh := d.Serial != disks[i].Serial; fresh != (i == 1) {
						s.Errorf("%s is fresh: %v", d.Name, fresh)
					}
				}
			}),
			story(func(s *stage) {
				s.apply("")
				s.rest()
				s.world.Forget()
				ask(s, "restart")
				s.pass(10 * time.Second)
				s.rest()
				s.want("stops", s.deeds("stop"), "stop web-2, stop web-1, stop web-0")
				s.want("history", s.history(), "1 app:1 web-0,web-1,web-2")
			}),
			story(func(s *stage) {
				s.apply("")
				s.rest()
				before := s.runs()
				ask(s, "stop", 1)
				s.pass(time.Minute)
				s.end()
				s.boot()
				s.pass(time.Minute)
				s.want("host", s.host(), "web-0 app:1, web-2 app:1")
				ask(s, "start", 1)
				s.pass(time.Minute)
				s.rest()
				s.untouched(before, "web-0", "web-2")
			}))),
		none("V22-V24", "the image, env and limits of a Docker container are given when it is made: an update makes a fresh one, of the same name, address and volumes"),
		differs("V25-V28", "a set that was formed, with a join hook", "a member is available for the first time", "the hook runs then, not before, and is tried until it succeeds; without a hook nothing is waited for",
			"Hooks are commands of the set instead of labels that somebody else has to set.", all(
				plans(world(full(0, 2), formed, remembers(joined, 0, 1)), ""),
				plans(world(full(0, 1), unready(2, "r1"), formed, hook(jobspecs.OnJoin), remembers(joined, 0, 1)), ""),
				plans(world(full(0, 2), formed, hook(jobspecs.OnJoin), remembers(joined, 0, 1)), "hook tell in web-2 (web-2 joins)"),
				plans(world(full(0, 2), formed, hook(jobspecs.OnJoin), remembers(joined, 0, 1, 2)), ""))),
		differs("V29-V30", "a leave hook", "a member's ordinal goes, or it is updated", "before it goes the hook runs, and it stays until that has succeeded; an update runs none",
			"A hook for membership runs when membership changes, and knows why.", all(
				plans(world(replicas(2), full(0, 2), hook(jobspecs.OnLeave)), "hook tell in web-2 (web-2 leaves)"),
				plans(world(replicas(2), full(0, 2), hook(jobspecs.OnLeave), remembers(hasLeft, 2)), "stop web-2 (scaled down)"),
				plans(world(to("r2"), full(0, 2), hook(jobspecs.OnLeave), formed, remembers(joined, 0, 1, 2)), "stop web-2 (outdated)"))),
		none("V31-V36", "members are not updated in place (V22-V24)"),
		none("V37", "how many members are made at once is the daemon's limit of engine calls, for all sets together"),
		is("V44", "an image that changed", "it is undone", "the former one runs again, under its former name", revised(func(s *stage) {
			s.rollout("undo", 0)
			s.rest()
			s.want("host", s.host(), containers(3, 3))
		})),
		is("V45", "an image that changed and changed again before all had it", "it is undone to the first", "only those that left are restarted", story(func(s *stage) {
			s.apply("")
			s.rest()
			before := s.runs()
			s.image("never:1")
			s.pass(30 * time.Second)
			s.image("app:3")
			s.until(time.Minute, func() bool { return strings.Contains(s.host(), "web-2 app:3") })
			s.rollout("undo", 1)
			s.rest()
			s.want("host", s.host(), containers(3, 3))
			s.untouched(before, "web-0")
		})),
	)
	rows = append(rows, sizeChanges()...)
	return append(rows,
		differs("V48", "reserved ordinals", "one is reserved and given back", "it is skipped and the next higher one used; given back, the highest goes, and with it its volume where retention says so",
			"A list is as long as it has to be; ranges are written by an expression.", all(
				plans(world(reserve(1), full(0, 0), full(2, 2)), "create web-3 (missing)"),
				plans(world(reserve(1), full(0, 3)), "stop web-1 (scaled down)"),
				plans(world(full(0, 0), full(2, 3)), "create web-1 (missing)"),
				plans(world(full(0, 3)), "stop web-3 (scaled down)"),
				plans(world(claims("delete", "retain", "data"), reserve(1), full(0, 0), full(2, 3), volume("data", 0, 1, 2, 3)), `delete volume data-web-1 (on_scale_down = "delete")`))),
		is("V49", "start_ordinal 2 and 3 reserved", "the set is made", "2, 4 and 5 are its members", all(
			plans(world(start(2), reserve(3), parallel, neverComplete), "create web-2 (missing), create web-4 (missing), create web-5 (missing)"))),
		differs("V50", "a partition, and an update that is ordered by role", "the image changes", "ordinals below the partition stay old, whatever their role",
			"A partition names members that one can point at, not a number of them.", func(t *testing.T) {
				byRole := func(w *planner.World) { w.Set.Update.Order, w.Set.Update.Last = jobspecs.OrderRole, "primary" }
				primary := pod(2, "r1", func(p *runtime.Pod) { p.Role = "primary" })
				plans(world(to("r2"), partition(1), byRole, full(0, 1), primary), "stop web-1 (outdated)")(t)
				plans(world(to("r2"), partition(1), byRole, full(0, 0), running("web-1:r2"), primary), "stop web-2 (outdated)")(t)
				plans(world(to("r2"), partition(1), byRole, full(0, 0), running("web-1:r2", "web-2:r2")), "")(t)
			}),
	)
}
