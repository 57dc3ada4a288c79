package planner

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

func reserve(ordinals ...int) option { return func(w *World) { w.Set.Reserve = ordinals } }
func startAfter(sets ...string) option {
	return func(w *World) { w.After = sets }
}
func minAvailable(n int) option { return func(w *World) { w.MinAvailable = n } }
func forced(w *World)           { w.Forced = true }
func formed(w *World)           { w.Formed = true }
func hook(name, on string, change ...func(*jobspecs.Hook)) option {
	return func(w *World) {
		h := jobspecs.Hook{Name: name, On: on}
		for _, f := range change {
			f(&h)
		}
		w.Set.Hooks = append(w.Set.Hooks, h)
	}
}
func in(ordinal int) func(*jobspecs.Hook) { return func(h *jobspecs.Hook) { h.Ordinal = &ordinal } }
func onceOnly(h *jobspecs.Hook)           { h.Once = true }
func hookDone(key string) option          { return func(w *World) { w.HooksDone = map[string]bool{key: true} } }
func deadline(d time.Duration) option     { return func(w *World) { w.Set.Update.Deadline = d } }
func onFailure(what string) option        { return func(w *World) { w.Set.Update.OnFailure = what } }
func halted(rev string) option {
	return func(w *World) { w.Halted = &Halt{Revision: rev, Why: "web-2 failed"} }
}
func byRole(last string) option {
	return func(w *World) { w.Set.Update.Order, w.Set.Update.Last = jobspecs.OrderRole, last }
}
func roles(roles ...string) option {
	return func(w *World) {
		for i := range w.Pods {
			w.Pods[i].Role = roles[i]
		}
	}
}

// each changes what the store remembers of members.
func each(f func(*Member), ordinals ...int) option {
	return func(w *World) {
		for _, o := range ordinals {
			m := w.Members[o]
			f(&m)
			w.Members[o] = m
		}
	}
}
func joined(m *Member)   { m.Joined = true }
func left(m *Member)     { m.Left = true }
func down(m *Member)     { m.Stopped = true }
func askNow(m *Member)   { m.Ask = AskNow }
func askTurn(m *Member)  { m.Ask = AskTurn }
func askFresh(m *Member) { m.Ask = AskFresh }
func tryingFor(d time.Duration) func(*Member) {
	return func(m *Member) { m.Trying = now.Add(-d) }
}

func TestWhatUsersAskFor(t *testing.T) {
	all := running("web-0", "web-1", "web-2")
	for _, c := range []struct {
		name  string
		world World
		want  string
	}{
		{"a reserved ordinal is left out", world(reserve(1), running("web-0", "web-2")), "create web-3 (missing)"},
		{"a member whose ordinal is reserved goes", world(reserve(1), running("web-0", "web-1", "web-2", "web-3")), "stop web-1 (scaled down)"},
		{"a first start waits for other sets", world(startAfter("etcd"), neverComplete), ""},
		{"a repair does not", world(startAfter("etcd"), once("r1", 0, 1, 2), running("web-1", "web-2")), "create web-0 (recovery)"},

		{"a restart in its turn begins at the top", world(all, each(askTurn, 0, 1, 2)), "stop web-2 (its restart was asked for)"},
		{"one after the other", world(running("web-0", "web-1"), unready(2, "r1"), each(askTurn, 0, 1)), ""},
		{"a restart at once does not wait", world(all, each(askNow, 0, 1)), "stop web-0 (its restart was asked for), stop web-1 (its restart was asked for)"},
		{"one that is on its way is not told again", world(running("web-1", "web-2"), stopping(0, "r1"), each(askNow, 0)), ""},
		{"a replacement deletes the volumes when its pod is gone", world(claims("retain", "retain"), running("web-0", "web-1"), volume(0, 1, 2), record(2, true, false), each(askFresh, 2)),
			"delete volume data-web-2 (web-2 is replaced, with fresh volumes)"},
		{"not before", world(claims("retain", "retain"), all, volume(0, 1, 2), record(2, true, false), each(askFresh, 2)),
			"stop web-2 (it is replaced, with fresh volumes)"},
		{"and makes fresh ones", world(claims("retain", "retain"), running("web-0", "web-1"), volume(0, 1), each(askFresh, 2)),
			"create volume data-web-2 (needed by web-2)"},
		{"which are kept", world(claims("retain", "retain"), running("web-0", "web-1"), volume(0, 1, 2), record(2, false, false), each(askFresh, 2)),
			"create web-2 (missing)"},

		{"a member that was stopped ends", world(all, each(down, 1)), "stop web-1 (stopped by the user)"},
		{"and is cleared away", world(running("web-0", "web-2"), stopped(1, "r1", runtime.ReasonStopRequested), each(down, 1)), "remove web-1 (stopped by the user)"},
		{"nobody waits for it", world(running("web-0"), each(down, 1)), "create web-2 (missing)"},
		{"an update goes on without it", world(running("web-0", "web-2"), each(down, 1), update("r2")), "stop web-2 (outdated)"},

		{"the guard keeps an update from stopping too many", world(all, update("r2"), minAvailable(3)), ""},
		{"force overrides it", world(all, update("r2"), minAvailable(3), forced), "stop web-2 (outdated)"},
		{"it lets go what leaves enough", world(all, update("r2"), minAvailable(2)), "stop web-2 (outdated)"},
		{"a sick member may go", world(running("web-0", "web-1"), unready(2, "r1"), update("r2"), minAvailable(3)), "stop web-2 (outdated and not available)"},
		{"two at once are counted", world(all, each(askNow, 0, 1), minAvailable(2)), "stop web-0 (its restart was asked for)"},
		{"one that could not be made again is not stopped", world(all, each(askNow, 0, 1), unmakable(1)), "stop web-0 (its restart was asked for)"},
		{"it keeps a scale-down", world(all, replicas(1), minAvailable(3)), ""},
		{"it does not keep a set that is deleted", world(all, deleting(""), minAvailable(3)), "stop web-2 (set is being deleted)"},

		{"the role goes last", world(all, update("r2"), byRole("primary"), roles("replica", "replica", "primary")), "stop web-1 (outdated)"},
		{"without it the order is from the top", world(all, update("r2"), byRole("primary"), roles("primary", "replica", "replica")), "stop web-2 (outdated)"},

		{"a rollout that failed stands still", world(running("web-0", "web-1", "web-2:r2"), update("r2"), halted("r2")), ""},
		{"another revision goes on", world(running("web-0", "web-1"), unready(2, "r2"), update("r3"), halted("r2")), "stop web-2 (outdated and not available)"},
		{"wait goes on whatever fails", world(running("web-0", "web-1", "web-2:r2"), update("r2"), halted("r2"), onFailure(jobspecs.FailWait)), "stop web-1 (outdated)"},

		{"a leaving member runs its hook first", world(all, replicas(2), hook("forget", jobspecs.OnLeave)), "hook forget in web-2 (web-2 leaves)"},
		{"then it stops", world(all, replicas(2), hook("forget", jobspecs.OnLeave), each(left, 2)), "stop web-2 (scaled down)"},
		{"a hook may run in another member", world(all, replicas(2), hook("forget", jobspecs.OnLeave, in(0))), "hook forget in web-0 (web-2 leaves)"},
		{"one that never was available leaves without it", world(running("web-0", "web-1"), unready(2, "r1"), replicas(2), hook("forget", jobspecs.OnLeave)), "stop web-2 (scaled down)"},
		{"nor does one that was available and ended", world(running("web-0", "web-1"), phase(2, "r1", runtime.Backoff, "it ended"), once("r1", 2), replicas(2), hook("forget", jobspecs.OnLeave)), "stop web-2 (scaled down, without hook forget: it does not run)"},
		{"one that was available and runs is asked", world(running("web-0", "web-1"), unready(2, "r1"), once("r1", 2), replicas(2), hook("forget", jobspecs.OnLeave)), "hook forget in web-2 (web-2 leaves)"},
		{"what others do for one that ended is done", world(running("web-0", "web-1"), phase(2, "r1", runtime.Backoff, "it ended"), once("r1", 2), replicas(2), hook("out", jobspecs.OnLeave), hook("forget", jobspecs.OnLeave, in(0))),
			"hook forget in web-0 (web-2 leaves)"},
		{"force leaves without it", world(all, replicas(2), hook("forget", jobspecs.OnLeave), forced), "stop web-2 (scaled down)"},
		{"an update runs no hook", world(all, update("r2"), hook("forget", jobspecs.OnLeave), formed, each(joined, 0, 1, 2)), "stop web-2 (outdated)"},
		{"the end of the set runs none", world(all, deleting(""), hook("forget", jobspecs.OnLeave)), "stop web-2 (set is being deleted)"},
		{"a member that joins a formed set runs its hook", world(all, formed, hook("add", jobspecs.OnJoin), each(joined, 0, 1)), "hook add in web-2 (web-2 joins)"},
		{"not before it is available", world(running("web-0", "web-1"), unready(2, "r1"), formed, hook("add", jobspecs.OnJoin), each(joined, 0, 1)), ""},
		{"not while the set forms", world(all, hook("add", jobspecs.OnJoin)), ""},
		{"a set that is ready runs its hook in the first member", world(all, hook("form", jobspecs.OnSetReady, onceOnly)), "hook form in web-0 (all members are ready)"},
		{"once", world(all, hook("form", jobspecs.OnSetReady, onceOnly), hookDone("form")), ""},
		{"one after the other", world(all, hook("form", jobspecs.OnSetReady), hook("fill", jobspecs.OnSetReady)), "hook form in web-0 (all members are ready)"},
		{"the second when the first has run", world(all, hook("form", jobspecs.OnSetReady), hook("fill", jobspecs.OnSetReady), hookDone("form[0,1,2]")), "hook fill in web-0 (all members are ready)"},
		{"or for the same members once", world(all, hook("form", jobspecs.OnSetReady), hookDone("form[0,1,2]")), ""},
		{"and again when they are others", world(all, running("web-3"), replicas(4), hook("form", jobspecs.OnSetReady), hookDone("form[0,1,2]")), "hook form in web-0 (all members are ready)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Next(c.world).String(); got != c.want {
				t.Errorf("plan = %q, want %q; waiting %v", got, c.want, Next(c.world).Waiting)
			}
		})
	}
}

func TestADeadlineEndsARollout(t *testing.T) {
	late := "web-2 is not available 10m0s after it could have been: not ready: http 10.87.0.10:8080/healthz: connection refused"
	for _, c := range []struct {
		name  string
		world World
		want  string
	}{
		{"not before its time", world(running("web-0", "web-1"), unready(2, "r2"), update("r2"), deadline(10*time.Minute), each(tryingFor(9*time.Minute), 2)), ""},
		{"then it fails", world(running("web-0", "web-1"), unready(2, "r2"), update("r2"), deadline(10*time.Minute), each(tryingFor(10*time.Minute), 2)), late},
		{"zero is never", world(running("web-0", "web-1"), unready(2, "r2"), update("r2"), each(tryingFor(time.Hour), 2)), ""},
		{"an old member that is sick does not count", world(running("web-0", "web-1"), unready(2, "r1"), update("r2"), deadline(time.Minute), each(tryingFor(time.Hour), 2)), ""},
		{"a pull does not count", world(running("web-0", "web-1"), phase(2, "r2", runtime.Pulling, ""), update("r2"), deadline(time.Minute), each(tryingFor(time.Hour), 2)), ""},
		{"a set that was complete has no rollout", world(running("web-0", "web-1"), unready(2, "r1"), deadline(time.Minute), each(tryingFor(time.Hour), 2)), ""},
		{"a pause stops the clock", world(running("web-0", "web-1"), unready(2, "r2"), update("r2"), paused, deadline(time.Minute), each(tryingFor(time.Hour), 2)), ""},
		{"it fails once", world(running("web-0", "web-1"), unready(2, "r2"), update("r2"), halted("r2"), deadline(time.Minute), each(tryingFor(time.Hour), 2)), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ""
			if f := Next(c.world).Failed; f != nil {
				got = f.Why
			}
			if got != c.want {
				t.Errorf("failed = %q, want %q", got, c.want)
			}
		})
	}
}

// The clock of a deadline goes on over restarts of a container, and stands still while
// an image is pulled or an init container runs.
func TestTheClockOfADeadline(t *testing.T) {
	at := func(s int) time.Time { return now.Add(time.Duration(s) * time.Second) }
	type look struct {
		at    int // seconds
		phase runtime.Phase
		rev   string
		ready bool
	}
	for _, c := range []struct {
		name  string
		looks []look
		want  int // since when it tries; -1: it does not
	}{
		{"it begins when it runs", []look{{0, runtime.Pulling, "r2", false}, {60, runtime.Starting, "r2", false}, {70, runtime.Running, "r2", false}}, 60},
		{"it goes on while a container is started again", []look{
			{0, runtime.Running, "r2", false}, {5, runtime.Backoff, "r2", false}, {15, runtime.Pending, "r2", false},
			{15, runtime.Starting, "r2", false}, {20, runtime.Backoff, "r2", false}, {60, runtime.Pending, "r2", false}, {60, runtime.Running, "r2", false}}, 0},
		{"an init container that runs again does not count", []look{
			{0, runtime.Backoff, "r2", false}, {10, runtime.Initializing, "r2", false}, {40, runtime.Backoff, "r2", false}}, 30},
		{"nor does a pull that is tried again", []look{
			{0, runtime.Failed, "r2", false}, {10, runtime.Pulling, "r2", false}, {11, runtime.Pulling, "r2", false}, {110, runtime.Starting, "r2", false}}, 100},
		{"it ends when the member is available", []look{{0, runtime.Running, "r2", false}, {10, runtime.Running, "r2", true}}, -1},
		{"and begins anew when it is lost", []look{{0, runtime.Running, "r2", false}, {10, runtime.Running, "r2", true}, {20, runtime.Backoff, "r2", false}}, 20},
		{"another revision has none", []look{{0, runtime.Running, "r2", false}, {10, runtime.Running, "r1", false}}, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			var m Member
			for _, l := range c.looks {
				w := world(update("r2"))
				w.Now = at(l.at)
				p := &runtime.Pod{Ordinal: 2, Phase: l.phase, Revision: l.rev, Ready: l.ready, ReadyKnown: true, ReadySince: w.Now}
				m = w.Clock(m, p)
			}
			switch {
			case c.want < 0 && (!m.Trying.IsZero() || !m.Resting.IsZero()):
				t.Errorf("it tries since %s, rests since %s, want none", m.Trying, m.Resting)
			case c.want >= 0 && !m.Trying.Equal(at(c.want)):
				t.Errorf("it tries since %s, want %s", m.Trying, at(c.want))
			}
		})
	}
}

func TestAMemberThatWasStoppedIsShownSo(t *testing.T) {
	w := world(running("web-0", "web-2"), each(down, 1))
	s := Status(w, Next(w))
	m := s.Members[1]
	got := fmt.Sprintf("%s %s %q; %s", m.Phase, m.Reason, m.Message, s.Conditions[0].Message)
	want := `Stopped ByUser "stopped by the user; stsd start web-1 brings it back"; 2 of 2 members are available, 1 stopped by the user`
	if got != want {
		t.Errorf("status = %s, want %s", got, want)
	}
}

func TestWhatBecomesOfMembersThatUsersAskedSomethingOf(t *testing.T) {
	all := running("web-0", "web-1", "web-2")
	for _, c := range []struct {
		name  string
		world World
		want  string
	}{
		{"a restart in its turn", world(all, each(askTurn, 1)), "keep web-0 (up to date), keep web-2 (up to date), restart web-1 (its restart was asked for)"},
		{"a restart at once", world(all, each(askNow, 1)), "keep web-0 (up to date), keep web-2 (up to date), restart web-1 (its restart was asked for)"},
		{"of an outdated one", world(all, update("r2"), each(askNow, 2)), "replace web-2 (outdated), replace web-1 (outdated), replace web-0 (outdated)"},
		{"fresh volumes", world(all, each(askFresh, 1)), "keep web-0 (up to date), keep web-2 (up to date), replace web-1 (with fresh volumes)"},
		{"a stop", world(all, each(down, 1)), "keep web-0 (up to date), keep web-2 (up to date), stop web-1 (stopped by the user)"},
		{"one that is down", world(running("web-0", "web-2"), each(down, 1)), "keep web-0 (up to date), keep web-1 (stopped by the user), keep web-2 (up to date)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, v := range Classify(c.world) {
				got = append(got, fmt.Sprintf("%s %s (%s)", v.Op, v.Member, v.Why))
			}
			if text := strings.Join(got, ", "); text != c.want {
				t.Errorf("verdicts = %q, want %q", text, c.want)
			}
		})
	}
}

func TestALostVolumeIsGivenUpByAnAskForFreshOnes(t *testing.T) {
	w := world(claims("retain", "retain"), running("web-0", "web-1"), volume(0, 1), record(2, true, false), each(askFresh, 2))
	if got, want := Next(w).String(), "create volume data-web-2 (needed by web-2)"; got != want {
		t.Errorf("plan = %q, want %q", got, want)
	}
	if s := Status(w, Next(w)); s.Members[2].Reason == ReasonVolumeLost {
		t.Errorf("web-2 = %+v: it is given up", s.Members[2])
	}
}

func TestAGuardThatCannotBeWorkedOutKeepsAll(t *testing.T) {
	w := world(running("web-0", "web-1", "web-2"), update("r2"), minAvailable(GuardUnknown))
	p := Next(w)
	got := p.String() + fmt.Sprint(p.Waiting)
	if want := "[web-2 waits: guard: min_available cannot be worked out]"; got != want {
		t.Errorf("plan = %q, want %q", got, want)
	}
}

func TestASetIsNotDoneWhileSomethingThatWasAskedIsNotDone(t *testing.T) {
	all := running("web-0", "web-1", "web-2")
	for _, c := range []struct {
		name  string
		world World
		want  string
	}{
		{"nothing was asked", world(all), "Complete"},
		{"a restart", world(all, each(askTurn, 0)), "Working"},
		{"a stop that is under way", world(running("web-0", "web-2"), stopping(1, "r1"), each(down, 1)), "Working"},
		{"a stop that is done", world(running("web-0", "web-2"), each(down, 1)), "Complete"},
		{"a hook", world(all, hook("form", jobspecs.OnSetReady, onceOnly)), "Working"},
		{"a hook that has run", world(all, hook("form", jobspecs.OnSetReady, onceOnly), hookDone("form")), "Complete"},
	} {
		if got := Status(c.world, Next(c.world)).Conditions[1].Reason; got != c.want {
			t.Errorf("%s: progressing = %s, want %s", c.name, got, c.want)
		}
	}
}

func unmakable(ordinal int) option {
	return func(w *World) {
		t := Target{ordinal, "r1"}
		r := w.Specs[t]
		r.Err = errors.New("sets.db.first.ip: there is no set db in namespace default")
		w.Specs[t] = r
	}
}
