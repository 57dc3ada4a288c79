package pods

import (
	"errors"
	"testing"
	"time"

	"github.com/stsd/stsd/jobspecs"
)

func TestWhichImageTheNextContainerIsMadeFrom(t *testing.T) {
	of := func(id string) fact { return func(w spot) { w.Main.ImageID = id } }
	anotherRevision := func(w spot) { w.Main.Labels[jobspecs.LabelRevision] = "web-0" }
	pulled := func(w spot) { w.Pulled = true }
	for _, c := range []struct {
		name  string
		facts []fact
		want  string
	}{
		{"the first of a revision: what its name means", nil, "web:1"},
		{"a later member of it: the same as the first", []fact{pinned}, "sha256:1"},
		{"after a restart too, though its own was another", []fact{has("exited"), of("sha256:0"), pinned}, "sha256:1"},
		{"a restart: the one that it had, though the tag may have moved", []fact{has("exited"), of("sha256:0")}, "sha256:0"},
		{"one that was pulled for it: what its name means now", []fact{has("exited"), of("sha256:0"), pulled}, "web:1"},
		{"after another revision: what its name means", []fact{has("exited"), of("sha256:0"), anotherRevision}, "web:1"},
		{"of one that runs: its own", []fact{has("running"), of("sha256:0"), pinned}, "sha256:0"},
	} {
		w := world(c.facts...)
		if got := w.at(0).imageRef(); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestOneExecOfAContainerIsOutAtATime(t *testing.T) {
	exec := &jobspecs.Probe{Exec: []string{"ping"}, Period: time.Second}
	connect := &jobspecs.Probe{TCP: &jobspecs.TCPCheck{Port: 80}, Period: time.Second}
	for _, c := range []struct {
		name     string
		liveness *jobspecs.Probe
		out      bool // readiness is out
		want     int
	}{
		{"of two execs that are due one is sent", exec, false, 1},
		{"the other waits for its answer", exec, true, 0},
		{"a connection waits for nobody", connect, true, 1},
		{"nor an exec for a connection", connect, false, 2},
	} {
		p := newProbes(&Container{ID: "c1"}, &jobspecs.Container{Readiness: exec, Liveness: c.liveness}, nil, false, noon)
		p.Readiness.Busy = c.out
		later := noon.Add(time.Minute)
		if send, _ := p.due(later, []Kind{Readiness, Liveness}); len(send) != c.want {
			t.Errorf("%s: %v are sent, want %d", c.name, send, c.want)
		}
	}
}

// A stop that failed may never have reached the engine: the grace begins with the one
// that does.
func TestAStopThatFailedTakesNothingOfTheGrace(t *testing.T) {
	w := world(has("running"), ordered)
	s := w.at(0)
	for range 2 {
		step := Next(w).Parts[0].Step
		if step == nil || step.Verb != Stop || step.Grace != time.Second {
			t.Fatalf("at %s: step = %+v, want a stop with the whole grace", w.Now.Sub(noon), step)
		}
		s.begin(*step)
		s.done(Result{Err: errors.New("no answer")})
		if !s.Sent.IsZero() || !w.Order.Began.IsZero() {
			t.Errorf("sent at %v, and the end began at %v, want neither", s.Sent, w.Order.Began)
		}
		w.Now = w.Now.Add(time.Minute)
		s.Stale = false
	}
}

func TestALaterOrderOnlyShortensTheGrace(t *testing.T) {
	w := world(has("running"))
	for _, c := range []struct {
		name              string
		after, given, now time.Duration // given from then on; now from the first on
	}{
		{"the first", 0, 20 * time.Second, 20 * time.Second},
		{"a longer one", 0, time.Hour, 20 * time.Second},
		{"a shorter one", 0, 15 * time.Second, 15 * time.Second},
		{"one that is shorter, but ends later", 10 * time.Second, 6 * time.Second, 15 * time.Second},
		{"one that ends sooner", 10 * time.Second, 2 * time.Second, 12 * time.Second},
	} {
		if c.after > 0 {
			w.at(0).told()
			w.Now = w.Order.Began.Add(c.after)
		}
		w.ordered(Order{Grace: c.given})
		if w.Order.Grace != c.now {
			t.Errorf("%s: the grace is %s, want %s", c.name, w.Order.Grace, c.now)
		}
	}
}
