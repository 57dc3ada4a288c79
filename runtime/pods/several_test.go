package pods

import (
	"errors"
	"testing"
	"time"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

// several is redis-0 with an init container, a sidecar and two mains, handed over,
// with nothing on the host and every image resolved.
func several(facts ...func(*PodWorld)) PodWorld {
	w := PodWorld{Now: noon, Daemon: "d", Set: jobspecs.Key{Namespace: "default", Name: "redis"}, Name: "redis-0"}
	w.Spec = &jobspecs.PodSpec{
		Set: w.Set, Name: "redis-0", Revision: "redis-1", TerminationGrace: 30 * time.Second,
		Containers: []jobspecs.Container{
			{Kind: jobspecs.KindInit, Name: "prepare", Image: "p:1"},
			{Kind: jobspecs.KindSidecar, Name: "exporter", Image: "e:1"},
			{Kind: jobspecs.KindSidecar, Name: "proxy", Image: "x:1"},
			{Kind: jobspecs.KindMain, Name: "redis", Image: "r:1"},
			{Kind: jobspecs.KindMain, Name: "app", Image: "a:1"},
		},
	}
	w.lay()
	w.each(func(s spot) {
		s.Stale, s.StalePrev = false, false
		s.Image = &Image{ID: "sha256:" + s.Block}
	})
	for _, f := range facts {
		f(&w)
	}
	w.settle()
	return w
}

// part changes one of them.
func part(block string, facts ...fact) func(*PodWorld) {
	return func(w *PodWorld) {
		s, ok := w.part(block)
		if !ok {
			panic("no part " + block)
		}
		for _, f := range facts {
			f(s)
		}
	}
}

// is puts a container there that joined the sandbox that runs.
func is(state string) fact {
	return func(s spot) {
		joins := s.generation()
		if joins == noSandbox || s.Kind == jobspecs.KindSandbox {
			joins = ""
		}
		s.Main = nil // it was no restart
		s.Main = &Container{ID: s.Block + "1", Name: s.containerName(), State: state, Labels: s.labels(joins)}
		if state == "created" {
			s.Made = s.Main.ID
			return
		}
		s.Main.StartedAt = noon.Add(-time.Minute)
		s.Run = life{s.Main.ID, s.Main.StartedAt}
		if state == "exited" {
			s.Main.FinishedAt, s.EndedAt = noon, noon
			return
		}
		s.probe(false)
	}
}

func endedWith(code int) fact {
	return func(s spot) {
		is("exited")(s)
		s.Main.ExitCode = code
	}
}

// up is the whole pod running.
func up(w *PodWorld) {
	part("sandbox", is("running"))(w)
	part("prepare", endedWith(0))(w)
	for _, b := range []string{"exporter", "proxy", "redis", "app"} {
		part(b, is("running"))(w)
	}
	w.settle()
}

func toEnd(w *PodWorld) { w.Order = &Order{Grace: 30 * time.Second, Why: runtime.WhyUpdate} }

func hookOf(block string, preStop bool) func(*PodWorld) {
	return func(w *PodWorld) {
		h := &jobspecs.Handler{Exec: []string{"true"}}
		s, _ := w.part(block)
		if preStop {
			s.block().PreStop = h
			return
		}
		s.block().PostStart = h
	}
}

func TestSeveral(t *testing.T) {
	for _, c := range []struct {
		says string
		when []func(*PodWorld)
		want string
	}{
		{"the sandbox comes first", nil, "Starting: sandbox create main (there is none)"},
		{"the init container joins it, and the rest waits", []func(*PodWorld){part("sandbox", is("running"))},
			"Starting: prepare create main (there is none)"},
		{"while it runs nothing else begins", []func(*PodWorld){part("sandbox", is("running")), part("prepare", is("running"))},
			"Initializing (InitRunning)"},
		{"one that failed is made again, and the rest waits", []func(*PodWorld){part("sandbox", is("running")), part("prepare", endedWith(1))},
			"Backoff (Exited): prepare rename main (kept for its output)"},
		{"after it the sidecar begins", []func(*PodWorld){part("sandbox", is("running")), part("prepare", endedWith(0))},
			"Starting: exporter create main (there is none)"},
		{"a sidecar has begun when it is past its startup", []func(*PodWorld){part("sandbox", is("running")), part("prepare", endedWith(0)), part("exporter", is("running"))},
			"Starting: proxy create main (there is none)"},
		{"then the first main", []func(*PodWorld){part("sandbox", is("running")), part("prepare", endedWith(0)), part("exporter", is("running")), part("proxy", is("running"))},
			"Starting: redis create main (there is none)"},
		{"a main waits while the one before it starts", []func(*PodWorld){up, part("redis", is("created")), part("app", func(s spot) { s.Main = nil })},
			"Starting: redis start main (it was made)"},
		{"and while its post_start hook runs", []func(*PodWorld){hookOf("redis", false), up, part("app", func(s spot) { s.Main = nil })},
			"Starting (PostStartPending); redis hook post_start"},
		{"all run", []func(*PodWorld){up}, "Running"},

		{"the end of one leaves the others alone", []func(*PodWorld){up, part("app", is("exited"))},
			"Backoff (Exited): app rename main (kept for its output)"},
		{"the end of a sidecar does too", []func(*PodWorld){up, part("exporter", is("exited"))},
			"Backoff (Exited): exporter rename main (kept for its output)"},
		{"an init container that was cleared away is not repeated", []func(*PodWorld){up, part("prepare", func(s spot) { s.Main = nil })}, "Running"},
		{"nor when a main is made again", []func(*PodWorld){up, part("prepare", func(s spot) { s.Main = nil }), part("redis", func(s spot) { s.Main = nil })},
			"Starting: redis create main (there is none)"},

		{"an end begins with the mains", []func(*PodWorld){up, toEnd},
			"Stopping (StopRequested): redis stop main (its end was asked for): app stop main (its end was asked for)"},
		{"sidecars end after them, the last one first", []func(*PodWorld){up, part("redis", is("exited")), part("app", is("exited")), toEnd},
			"Stopping (StopRequested): proxy stop main (its end was asked for)"},
		{"one after the other", []func(*PodWorld){up, part("redis", is("exited")), part("app", is("exited")), part("proxy", is("exited")), toEnd},
			"Stopping (StopRequested): exporter stop main (its end was asked for)"},
		{"the sandbox ends last", []func(*PodWorld){up, part("redis", is("exited")), part("app", is("exited")), part("proxy", is("exited")), part("exporter", is("exited")), toEnd},
			"Stopping (StopRequested): sandbox stop main (its end was asked for)"},
		{"then the pod has ended", []func(*PodWorld){part("prepare", endedWith(0)), toEnd}, "Stopped (StopRequested)"},
		{"an init container ends with the mains", []func(*PodWorld){part("sandbox", is("running")), part("prepare", is("running")), toEnd},
			"Stopping (StopRequested): prepare stop main (its end was asked for)"},

		{"a sandbox that ended takes the mains with it", []func(*PodWorld){up, part("sandbox", is("exited"))},
			"Backoff (SandboxEnded): sandbox remove main (it ended): prepare rename main (kept for its output): redis stop main (its sandbox ended; the whole pod begins again): app stop main (its sandbox ended; the whole pod begins again)"},
		{"no new one is made while one of them runs", []func(*PodWorld){up, part("sandbox", func(s spot) { s.Main = nil }), part("redis", is("exited")), part("app", is("exited")), part("proxy", is("exited"))},
			"Pending: prepare rename main (kept for its output): exporter stop main (its sandbox ended; the whole pod begins again): proxy rename main (kept for its output): redis rename main (kept for its output): app rename main (kept for its output)"},

		{"pre_stop comes before the signal", []func(*PodWorld){hookOf("redis", true), up, toEnd},
			"Stopping (PreStopRunning); redis hook pre_stop: app stop main (its end was asked for)"},
	} {
		t.Run(c.says, func(t *testing.T) {
			if got := Next(several(c.when...)).String(); got != c.want {
				t.Errorf("plan =\n %q, want\n %q", got, c.want)
			}
		})
	}
}

// Within one grace: what a hook took is not there for the signal, but for two
// seconds.
func TestTheGraceIsOne(t *testing.T) {
	for _, c := range []struct {
		says   string
		passed time.Duration
		want   time.Duration
	}{
		{"a short hook leaves the rest", 10 * time.Second, 20 * time.Second},
		{"a long one leaves two seconds", 29 * time.Second, 2 * time.Second},
		{"one that never ends, too", 31 * time.Second, 2 * time.Second},
	} {
		t.Run(c.says, func(t *testing.T) {
			w := several(hookOf("redis", true), up, toEnd)
			s, _ := w.part("redis")
			s.sendHook(PreStop)
			w.Now = noon.Add(c.passed)
			s.hooked(PreStop, false, errors.New("timed out"))
			p := Next(w)
			for i, part := range p.Parts {
				if w.Parts[i].Block != "redis" {
					continue
				}
				if part.Step == nil || part.Step.Verb != Stop || part.Step.Grace != c.want {
					t.Errorf("step = %+v, want a stop within %s", part.Step, c.want)
				}
			}
		})
	}
}

func TestWhyAHookIsCalled(t *testing.T) {
	again := func(s spot) { s.Main.Labels[jobspecs.LabelRestarts] = "2" }
	for _, c := range []struct {
		says, kind, want string
		when             []func(*PodWorld)
	}{
		{"the first start", PostStart, runtime.WhyStart, nil},
		{"a restart", PostStart, runtime.WhyRestart, []func(*PodWorld){part("redis", again)}},
		{"an end that was asked for", PreStop, runtime.WhyUpdate, []func(*PodWorld){toEnd}},
		{"an end by a probe", PreStop, runtime.WhyRestart, nil},
	} {
		t.Run(c.says, func(t *testing.T) {
			w := several(append([]func(*PodWorld){up}, c.when...)...)
			s, _ := w.part("redis")
			if got := s.hookCall(c.kind).Env["STSD_REASON"]; got != c.want {
				t.Errorf("STSD_REASON = %q, want %q", got, c.want)
			}
		})
	}
}

// Only the first container that mounts a fresh volume makes it writable.
func TestAFreshVolumeIsPreparedOnce(t *testing.T) {
	w := several(func(w *PodWorld) {
		w.Spec.Volumes = []jobspecs.VolumeSpec{{Claim: "data", Name: "data-redis-0", Fresh: true}, {Claim: "old", Name: "old-redis-0"}}
		for i := range w.Spec.Containers {
			w.Spec.Containers[i].Mounts = []jobspecs.Mount{
				{Kind: jobspecs.MountVolume, Claim: "data", Volume: "data-redis-0", Path: "/data"},
				{Kind: jobspecs.MountVolume, Claim: "old", Volume: "old-redis-0", Path: "/old"},
			}
		}
	})
	var got []string
	for _, block := range []string{"prepare", "redis"} {
		s, _ := w.part(block)
		got = append(got, s.containerSpec("x").Fresh...)
		s.created(block, "x")
	}
	if len(got) != 1 || got[0] != "data-redis-0" {
		t.Errorf("fresh = %q, want data-redis-0 once", got)
	}
}

// What never ends is told once, when it has taken long.
func TestWhatTakesLongIsToldOnce(t *testing.T) {
	for _, c := range []struct {
		says string
		when []func(*PodWorld)
		want string
	}{
		{"an init container", []func(*PodWorld){part("sandbox", is("running")), part("prepare", is("running"))}, "init prepare has been running for 30s"},
		{"a hook", []func(*PodWorld){hookOf("redis", false), up, part("redis", func(s spot) { s.sendHook(PostStart) })}, "the post_start hook of redis has been running for 30s"},
	} {
		w := several(c.when...)
		w.Notes = nil
		w.each(func(s spot) {
			s.Slow = false
			if s.running() { // since noon
				main := *s.Main
				main.StartedAt = noon
				s.Main = &main
			}
		})
		w.turn(noon.Add(29 * time.Second))
		early := len(w.Notes)
		w.turn(noon.Add(30 * time.Second))
		w.turn(noon.Add(time.Hour))
		if early != 0 || len(w.Notes) != 1 || w.Notes[0].Message != c.want {
			t.Errorf("%s: %d notes early, then %+v, want %q", c.says, early, w.Notes, c.want)
		}
	}
}

// Where the engine starts a program of another platform at all, it ends at once:
// that is still what is wrong with it.
func TestAWrongPlatformStaysTheReason(t *testing.T) {
	w := world(resolved, has("created"), made, failed(Start, runtime.ReasonWrongPlatform, 1, 0))
	s := w.at(0)
	ran := *s.Main
	ran.State, ran.StartedAt, ran.FinishedAt, ran.ExitCode = "exited", noon, noon, 1
	s.Main.Labels[jobspecs.LabelDaemon], s.Main.Labels[jobspecs.LabelOrdinal] = "d", "0"
	s.sawMain(&ran, false)
	if got, want := Next(w).String(), "Failed (WrongPlatform)"; got[:min(len(got), len(want))] != want {
		t.Errorf("plan = %q, want %q", got, want)
	}
}

// What an attacker found.
func TestHandsThatMeddle(t *testing.T) {
	again := func(s spot) {
		main := *s.Main
		main.StartedAt = noon.Add(-time.Second)
		s.Main = &main
	}
	for _, c := range []struct {
		says string
		when []func(*PodWorld)
		want string
	}{
		{"a sandbox that was restarted by hand is another one", []func(*PodWorld){up, part("sandbox", again)},
			"Backoff (SandboxEnded): prepare rename main (kept for its output): redis stop main (its sandbox ended; the whole pod begins again): app stop main (its sandbox ended; the whole pod begins again)"},
		{"an init container that was started by hand beside the mains is stopped", []func(*PodWorld){up, part("prepare", is("running"))},
			"Running (WaitingForFence): prepare stop main (init prepare was started by hand beside the mains and is being stopped)"},
		{"when the grace is over the sidecars wait for nobody", []func(*PodWorld){up, toEnd, func(w *PodWorld) {
			w.Order.Began = noon.Add(-time.Minute)
			part("redis", func(s spot) { s.Doing = &Step{Verb: Stop, KillAt: noon} })(w)
			part("app", is("exited"))(w)
		}}, "Stopping (StopRequested): exporter stop main (its end was asked for): proxy stop main (its end was asked for)"},
	} {
		t.Run(c.says, func(t *testing.T) {
			if got := Next(several(c.when...)).String(); got != c.want {
				t.Errorf("plan =\n %q, want\n %q", got, c.want)
			}
		})
	}
}
