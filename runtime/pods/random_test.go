package pods_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/runtime/sim"
)

// Whatever happens to a pod, a planner that does no more than remove what ended
// and create what is missing gets it back, there are never two of it, and the
// host is not flooded.
func TestAPodSurvivesRandomHistories(t *testing.T) {
	runs := 100
	if testing.Short() {
		runs = 15
	}
	for seed := range runs {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			onHost(t, sim.Program{Remote: true, ReadyAfter: 50 * time.Millisecond, TermTime: time.Second}, func(r *rig) {
				h := history{r, rand.New(rand.NewPCG(uint64(seed), 0))}
				for range 60 {
					h.happen()
					r.after(time.Duration(h.IntN(3000)) * time.Millisecond)
					h.plan()
				}
				h.recover()
			})
		})
	}
}

type history struct {
	*rig
	*rand.Rand
}

func (h history) spec() jobspecs.PodSpec {
	return spec(readiness(tcp(time.Second, 2)), startup(tcp(time.Second, 10)), liveness(tcp(2*time.Second, 2)))
}

func (h history) happen() {
	w := h.world
	verbs := []string{"", "watch", "list", "inspect", "create", "start", "stop", "remove", "rename", "image", "pull", "check"}
	switch h.IntN(18) {
	case 0, 1:
		w.Kill("web-0")
	case 2:
		w.RemoveContainer("web-0")
	case 3:
		w.RemoveContainer("web-0_previous")
	case 4:
		w.RestartEngine(time.Duration(h.IntN(5000)) * time.Millisecond)
	case 5:
		w.Disconnect(time.Duration(h.IntN(5000)) * time.Millisecond)
	case 6, 7, 8:
		w.Fail(sim.Fault{Verb: verbs[h.IntN(len(verbs))], When: h.IntN(2), Times: 1 + h.IntN(3)})
	case 9:
		w.Latency(verbs[h.IntN(len(verbs))], time.Duration(h.IntN(2000))*time.Millisecond)
	case 10:
		w.Mend()
	case 11:
		h.connect()
	case 12:
		_ = h.Stop(h.Context(), web0, runtime.StopOptions{Grace: time.Duration(h.IntN(4)) * 500 * time.Millisecond})
	case 13:
		w.Sicken("web-0", "sick")
	case 14:
		w.Pause("web-0")
	case 15:
		w.Unpause("web-0")
	case 16:
		w.RemoveImage("web:1")
	case 17:
		w.Rename("web-0", []string{"mine", "web-0_previous"}[h.IntN(2)])
	}
}

// plan is the smallest planner.
func (h history) plan() {
	list, err := h.List(h.Context(), key)
	if err != nil {
		return
	}
	if len(list) == 1 && list[0].Gone() {
		_ = h.Remove(h.Context(), web0, true)
	}
	if err := h.Create(h.Context(), h.spec()); err != nil && !errors.Is(err, runtime.ErrConflict) && !errors.Is(err, runtime.ErrUnreachable) {
		h.Errorf("create: %v", err)
	}
}

func (h history) recover() {
	h.world.Mend()
	h.world.Unpause("web-0")
	h.world.Unpause("mine")
	h.world.Unpause("web-0_previous")
	before := len(h.world.Writes())
	for range 400 { // the longest back-off is that of a pull: 5 minutes
		h.plan()
		h.after(time.Second)
		if list, err := h.List(h.Context(), key); err == nil && len(list) == 1 && list[0].Phase == runtime.Running && list[0].Ready && list[0].ReadyKnown {
			break
		}
	}
	if p := h.pod(); p.Phase != runtime.Running || !p.Ready || !p.ReadyKnown {
		h.Errorf("in the end the pod is %q (%s), want it ready; host: %s", show(p), p.Message, h.world)
	}
	if n := len(h.world.Writes()) - before; n > 60 {
		h.Errorf("%d writes for the recovery", n)
	}
}
