package pods

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// fact changes a pod of one container.
type fact func(spot)

// world is web-0 of revision web-1, handed over, with nothing on the host.
func world(facts ...fact) PodWorld {
	w := PodWorld{Now: noon, Daemon: "d", Set: jobspecs.Key{Namespace: "default", Name: "web"}, Name: "web-0"}
	w.Spec = &jobspecs.PodSpec{
		Set: w.Set, Name: "web-0", Revision: "web-1", TerminationGrace: 30 * time.Second,
		Containers: []jobspecs.Container{{Name: "web", Image: "web:1", Pull: jobspecs.PullMissing}},
	}
	w.lay()
	w.Parts[0].Stale, w.Parts[0].StalePrev = false, false
	for _, f := range facts {
		f(w.at(0))
	}
	return w
}

// has is a container in a state; it started a minute ago and, ended, did so now.
func has(state string) fact {
	return func(w spot) {
		w.Main = &Container{ID: "c1", Name: "web-0", State: state, Labels: w.labels("")}
		if state != "created" {
			w.Main.StartedAt = noon.Add(-time.Minute)
		}
		if state == "exited" || state == "dead" {
			w.Main.FinishedAt, w.EndedAt = noon, noon
		}
	}
}

func renamed(w spot) {
	c := *w.Main
	c.Name = "mine"
	w.Main = &c
}

func kept(w spot) {
	w.Previous = &Container{ID: "c0", Name: "web-0_previous", State: "exited", Labels: map[string]string{}}
}

func keptRuns(w spot) { w.Previous.State = "running" }

func resolved(w spot)      { w.Image = &Image{ID: "sha256:1"} }
func made(w spot)          { w.Made = "c1" }
func unmanaged(w spot)     { w.Spec = nil }
func offline(w spot)       { w.Offline, w.PodWorld.Phase = true, runtime.Running }
func stale(w spot)         { w.Stale = true }
func ordered(w spot)       { w.Order = &Order{Grace: time.Second} }
func shownStopped(w spot)  { w.Phase = runtime.Stopped }
func absent(w spot)        { w.Absent = true }
func removedByHand(w spot) { w.Lost = runtime.ReasonRemoved }
func foundDead(w spot)     { w.Lost = runtime.ReasonEngineRestarted }

func pull(policy string) fact { return func(w spot) { w.Spec.Containers[0].Pull = policy } }
func pinned(w spot)           { w.Spec.Containers[0].ImageID = "sha256:1" }
func doing(s Step) fact       { return func(w spot) { w.Doing = &s } }

// looped is an ended container that was the nth restart of its crash loop.
func looped(n int) fact {
	return func(w spot) { w.Main.Labels[labelStreak] = fmt.Sprint(n) }
}

// since is how long ago the container ended.
func since(d time.Duration) fact { return func(w spot) { w.EndedAt = noon.Add(-d) } }

func failed(v Verb, reason string, tries int, ago time.Duration) fact {
	return func(w spot) {
		w.Trouble[troubleOf(v)] = Trouble{Verb: v, Reason: reason, Message: "m", Tries: tries, At: noon.Add(-ago)}
	}
}

// probed starts the probes that the spec has.
func probed(kinds ...Kind) fact {
	return func(w spot) {
		p := &jobspecs.Probe{TCP: &jobspecs.TCPCheck{Port: 80}, Period: time.Second}
		for _, k := range kinds {
			switch k {
			case Startup:
				w.block().Startup = p
			case Readiness:
				w.block().Readiness = p
			case Liveness:
				w.block().Liveness = p
			}
		}
		w.Probes = newProbes(w.Main, w.block(), nil, false, noon)
	}
}

// says lets a check of the kind have come back n times with the same word.
func says(k Kind, err error, n int) fact {
	return func(w spot) {
		r := w.Probes.of(k)
		r.Early = false
		for range n {
			r.sent(w.Now)
			w.Probes.heard(k, err, w.Now)
		}
	}
}

func in(d time.Duration) fact { return func(w spot) { w.Now = w.Now.Add(d) } }

func TestNext(t *testing.T) {
	refused := errors.New("refused")
	for _, c := range []struct {
		says string
		when []fact
		want string
	}{
		{"a new pod asks what its image means", nil, "Pending: resolve main (what web:1 means now)"},
		{"an image that is not here is pulled", []fact{absent}, "Pulling: pull main (the image is not here)"},
		{"always pulls before it asks", []fact{pull(jobspecs.PullAlways)}, "Pulling: pull main (pull is always)"},
		{"always asks only, when the revision is pinned", []fact{pull(jobspecs.PullAlways), pinned}, "Pending: resolve main (what web:1 means now)"},
		{"a resolved image is made a container", []fact{resolved}, "Starting: create main (there is none)"},
		{"a whole container is started", []fact{has("created"), made}, "Starting: start main (it was made)"},
		{"it is started before it is looked at", []fact{has("created"), made, stale}, "Starting: start main (it was made)"},
		{"one that may not be whole is removed", []fact{has("created")}, "Starting: remove main (it was made and could not be started)"},

		{"a running one is left alone", []fact{has("running"), resolved, probed()}, "Running"},
		{"something happened: look", []fact{has("running"), resolved, probed(), stale}, "Running: look at main (something happened to it)"},
		{"one that was renamed gets its name back", []fact{has("running"), resolved, probed(), renamed}, "Running: give its name back to main (it was renamed by hand)"},
		{"not before it is known what happened", []fact{has("running"), resolved, probed(), renamed, stale}, "Running: look at main (something happened to it)"},
		{"it says so while that does not work", []fact{has("running"), resolved, probed(), renamed, failed(Recall, runtime.ReasonNameTaken, 1, 0)}, "Running (ContainerRenamed)"},
		{"and is tried again", []fact{has("running"), resolved, probed(), renamed, failed(Recall, runtime.ReasonNameTaken, 1, time.Second)},
			"Running (ContainerRenamed): give its name back to main (it was renamed by hand)"},
		{"an unready one says that first", []fact{has("running"), resolved, probed(Readiness), renamed, failed(Recall, runtime.ReasonNameTaken, 1, 0), says(Readiness, refused, 3), in(time.Second / 2)}, "Running (NotReady)"},
		{"without its spec it is left alone", []fact{has("running"), renamed, unmanaged}, "Running"},
		{"one that is to end keeps the name that it has", []fact{has("running"), renamed, ordered}, "Stopping (StopRequested): stop main (its end was asked for)"},
		{"one that ended is kept under its usual name", []fact{has("exited"), renamed}, "Backoff (Exited): rename main (kept for its output)"},
		{"though its own name is taken", []fact{has("exited"), renamed, failed(Recall, runtime.ReasonNameTaken, 1, 0)}, "Backoff (Exited): rename main (kept for its output)"},
		{"a paused one says so", []fact{has("paused"), resolved, probed()}, "Running (ContainerPaused)"},
		{"one that was taken over is asked for its HEALTHCHECK", []fact{has("running")}, "Running: resolve main (whether the image has a HEALTHCHECK)"},

		{"an ended one is kept under another name", []fact{has("exited")}, "Backoff (Exited): rename main (kept for its output)"},
		{"the one kept before goes first", []fact{has("exited"), kept}, "Backoff (Exited): remove previous (a later one is kept)"},
		{"a dead one is removed", []fact{has("dead")}, "Backoff (Exited): remove main (it is dead)"},
		{"a second end waits", []fact{has("exited"), looped(1)}, "Backoff (Exited)"},
		{"a second end waits a second", []fact{has("exited"), looped(1), since(time.Second)}, "Backoff (Exited): rename main (kept for its output)"},
		{"a fourth end waits four seconds", []fact{has("exited"), looped(3), since(3999 * time.Millisecond)}, "Backoff (Exited)"},
		{"no end waits longer than a minute", []fact{has("exited"), looped(99), since(time.Minute)}, "Backoff (Exited): rename main (kept for its output)"},

		{"a failure waits", []fact{resolved, failed(Create, runtime.ReasonNameTaken, 1, 0)}, "Failed (NameTaken)"},
		{"a failure is tried again after a second", []fact{resolved, failed(Create, runtime.ReasonNameTaken, 1, time.Second)}, "Failed (NameTaken): create main (there is none)"},
		{"a seventh failure waits half a minute", []fact{resolved, failed(Create, runtime.ReasonNameTaken, 7, 29*time.Second)}, "Failed (NameTaken)"},
		{"a pull that failed waits ten seconds", []fact{failed(Pull, runtime.ReasonPullFailed, 1, 9*time.Second)}, "Failed (PullFailed)"},
		{"a fence is no failure", []fact{resolved, failed(Start, runtime.ReasonWaitingForFence, 1, 0)}, "Pending (WaitingForFence)"},

		{"an end that was asked for is brought about", []fact{has("running"), ordered}, "Stopping (StopRequested): stop main (its end was asked for)"},
		{"what has not begun has ended", []fact{ordered}, "Stopped (StopRequested)"},
		{"what has ended is not restarted", []fact{has("exited"), ordered}, "Stopped (StopRequested)"},
		{"late news of its end does not take it back", []fact{has("exited"), ordered, shownStopped, stale}, "Stopped (StopRequested): look at main (something happened to it)"},
		{"an end cuts a pull short", []fact{ordered, doing(Step{Verb: Pull})}, "Stopping (StopRequested): cancel"},
		{"an end lets a create finish", []fact{ordered, doing(Step{Verb: Create})}, "Stopping (StopRequested)"},
		{"a shorter grace cuts a stop short", []fact{has("running"), ordered, doing(Step{Verb: Stop, KillAt: noon.Add(time.Minute)})}, "Stopping (StopRequested): cancel"},
		{"a longer one does not", []fact{has("running"), ordered, doing(Step{Verb: Stop, KillAt: noon})}, "Stopping (StopRequested)"},

		{"what was found dead is the planner's", []fact{has("exited"), foundDead}, "Stopped (EngineRestarted)"},
		{"what was removed is the planner's", []fact{removedByHand}, "Stopped (Removed)"},
		{"without a spec a pod is left alone", []fact{has("running"), unmanaged}, "Running"},
		{"without a spec a dead pod is the planner's", []fact{has("exited"), unmanaged}, "Stopped (EngineRestarted)"},
		{"out of reach nothing is done", []fact{has("exited"), offline}, "Running"},
		{"out of reach nothing goes on", []fact{offline, doing(Step{Verb: Pull})}, "Running: cancel"},
		{"a kept one must not run beside the pod", []fact{kept, func(w spot) { w.Previous.State = "running" }}, "Pending (WaitingForFence): stop previous (it runs beside the pod)"},
		{"nor beside one that was found dead", []fact{has("exited"), kept, keptRuns, unmanaged, foundDead}, "Stopping (WaitingForFence): stop previous (it runs beside the pod)"},
		{"nor beside one that is to end", []fact{has("exited"), kept, keptRuns, ordered}, "Stopping (WaitingForFence): stop previous (it runs beside the pod)"},
		{"nor beside one that is not handed over yet", []fact{has("running"), kept, keptRuns, unmanaged}, "Running (WaitingForFence): stop previous (it runs beside the pod)"},

		{"probes wait for their moment", []fact{has("running"), probed(Startup, Readiness, Liveness)}, "Starting (StartupPending)"},
		{"the startup probe comes alone", []fact{has("running"), probed(Startup, Readiness, Liveness), in(20 * time.Millisecond)}, "Starting (StartupPending); check startup"},
		{"after it readiness comes at once", []fact{has("running"), probed(Startup, Readiness, Liveness), says(Startup, nil, 1)}, "Running (NotReady); check readiness"},
		{"liveness comes after its period", []fact{has("running"), probed(Startup, Readiness, Liveness), says(Startup, nil, 1), says(Readiness, nil, 1), in(time.Second)}, "Running; check readiness; check liveness"},
		{"a startup that takes too long is ended", []fact{has("running"), resolved, probed(Startup), in(3 * time.Second), says(Startup, refused, 1)}, "Stopping (StartupFailed): stop main (startup probe gave up: refused)"},
		{"a check that is out may save it", []fact{has("running"), resolved, probed(Startup), says(Startup, refused, 1), in(3 * time.Second), func(w spot) { w.Probes.Startup.Busy = true }}, "Starting (StartupPending)"},
		{"two failures of liveness are none", []fact{has("running"), resolved, probed(Liveness), says(Liveness, refused, 2)}, "Running"},
		{"three failures of liveness end it", []fact{has("running"), resolved, probed(Liveness), says(Liveness, refused, 3)}, "Stopping (LivenessFailed): stop main (liveness probe failed: refused)"},
		{"liveness does not end a paused one", []fact{has("paused"), resolved, probed(Liveness), says(Liveness, refused, 3)}, "Running (ContainerPaused)"},
		{"an ending one is asked for readiness alone", []fact{has("running"), probed(Readiness, Liveness), in(time.Minute), ordered, doing(Step{Verb: Stop, KillAt: noon})}, "Stopping (StopRequested); check readiness"},
	} {
		t.Run(c.says, func(t *testing.T) {
			if got := Next(world(c.when...)).String(); got != c.want {
				t.Errorf("plan = %q, want %q", got, c.want)
			}
		})
	}
}

// Deciding changes nothing, and deciding again decides the same.
func TestNextIsPure(t *testing.T) {
	w := world(has("exited"), kept, looped(2), stale)
	first, second := Next(w).String(), Next(w).String()
	if first != second {
		t.Errorf("plans differ: %q, %q", first, second)
	}
}

func TestSignalsHaveNames(t *testing.T) {
	got := fmt.Sprintf("%q %q %q %q", signal(0), signal(1), signal(137), signal(128+35))
	if want := `"" "" "SIGKILL" "signal 35"`; got != want {
		t.Errorf("signals = %s, want %s", got, want)
	}
}
