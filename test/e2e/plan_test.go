package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestAPlanWritesNothingAndItsStepsAreWhatApplyDoes(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	w := idleWorld(t, behind(p))
	p.start()
	w.start()

	w.await("the engine to be met", func() error {
		if r := w.stsd("plan", w.spec(spec{})); r.code != 0 {
			return fmt.Errorf("%v", r)
		}
		return nil
	})

	p.planned(spec{})                                  // new
	p.planned(spec{replicas: 4})                       // grows
	p.planned(spec{replicas: 4, image: "stsd-demo:2"}) // rolls
	p.planned(spec{replicas: 2, image: "stsd-demo:2"}) // shrinks
	p.planned(spec{replicas: 3, image: "stsd-demo:1"}) // grows again and rolls
	p.planned(spec{replicas: 3, image: "stsd-demo:1"}) // is as it is
	if got := writes(p.record(func() { w.ok("delete", "web", "--dry-run") })); len(got) > 0 {
		t.Errorf("delete --dry-run writes %v", got)
	}
}

// planned compares the steps of a plan with what the engine is asked for when
// the plan is applied.
func (p *proxy) planned(s spec) {
	w := p.w
	w.t.Helper()
	file := w.spec(s)
	var plan setPlan
	asked := p.record(func() { plan = decode[[]setPlan](w, "plan", file)[0] })
	if got := writes(asked); len(got) > 0 {
		w.t.Errorf("plan writes %v", got)
	}
	asked = p.record(func() { w.ok("apply", "--timeout", patience.String(), file) })
	if got, want := p.steps(asked), stepsOf(plan); !slices.Equal(got, want) {
		w.t.Errorf("%d %s: the engine was asked for %v\nbut the plan's steps are     %v", s.replicas, s.image, got, want)
	}
}

// stepsOf are the writes that a plan promises, in its order.
func stepsOf(p setPlan) []string {
	var out []string
	for _, s := range p.Steps {
		switch s.Op {
		case "create":
			out = append(out, "create "+s.Member)
		case "replace":
			out = append(out, "stop", "create "+s.Member)
		case "create-volume", "delete-volume", "stop":
			out = append(out, s.Op)
		}
	}
	return out
}

func TestAnIdleDaemonAsksTheEngineNothing(t *testing.T) {
	t.Parallel()
	idle := time.Minute
	if testing.Short() {
		idle = 20 * time.Second
	}
	p := newProxy(t)
	w := idleWorld(t, behind(p))
	p.start()
	w.start()
	w.apply(spec{noProbe: true})
	var asked []string
	w.await("the daemon to be quiet", func() error {
		asked = p.record(func() { time.Sleep(time.Second) }) // what is measured is time
		return nothing(asked)
	})
	if asked = p.record(func() { time.Sleep(idle) }); len(asked) > 0 {
		t.Errorf("in %s of idleness the engine was asked for\n%s", idle, strings.Join(asked, "\n"))
	}
}
