package pods_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/runtime/sim"
)

// Whatever happens to a pod of several containers, they begin in their order, no
// two lives of it overlap, and in the end all of them are ready.
func TestAPodOfSeveralSurvivesRandomHistories(t *testing.T) {
	runs := 150
	if testing.Short() {
		runs = 20
	}
	for seed := range runs {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			onHost(t, sim.Program{}, func(r *rig) {
				h := severalHistory{history{r, rand.New(rand.NewPCG(uint64(seed), 1))}, nil}
				h.prepare()
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

type severalHistory struct {
	history
	pod *jobspecs.PodSpec
}

// prepare draws a pod of one to three mains, with sidecars and init containers
// among them or none, and what each of them does.
func (h *severalHistory) prepare() {
	h.world.Program("init", sim.Program{ExitAfter: time.Second, ExitCode: 1, Failures: 1 + h.IntN(3)})
	h.world.Program("init2", sim.Program{ExitAfter: time.Millisecond})
	h.world.Program("side", sim.Program{PostStartTime: 100 * time.Millisecond, TermTime: time.Second})
	h.world.Program("web", sim.Program{Remote: true, ReadyAfter: 50 * time.Millisecond, TermTime: time.Second, PreStopTime: time.Second})
	h.world.Program("db", sim.Program{PreStopTime: -1})
	cs := []jobspecs.Container{
		initc("init"), side("side", startup(tcp(time.Second, 10)), postStart(viaExec)), initc("init2"),
		mainc("web", readiness(tcp(time.Second, 2)), startup(tcp(time.Second, 10)), liveness(tcp(2*time.Second, 2)), preStop(viaExec)),
		mainc("db", preStop(viaExec)),
	}
	for _, name := range []string{"init", "side", "init2", "db"} {
		if h.IntN(3) == 0 {
			cs = slices.DeleteFunc(cs, func(c jobspecs.Container) bool { return c.Name == name })
		}
	}
	for i := range cs {
		cs[i].Mounts = []jobspecs.Mount{
			{Kind: jobspecs.MountVolume, Claim: "data", Volume: "data-web-0", Path: "/data"},
			{Kind: jobspecs.MountScratch, Claim: "tmp", Path: "/tmp"},
		}
	}
	s := pod(cs...)
	s.ShareProcesses = h.IntN(4) == 0
	s.TerminationGrace = 3 * time.Second
	s.Scratch = []jobspecs.Scratch{{Name: "tmp", Volume: "tmp-web-0_scratch", Medium: jobspecs.MediumDisk}}
	h.pod = &s
}

func (h *severalHistory) happen() {
	w := h.world
	names := []string{"web-0", "web-0_sandbox", "web-0_side", "web-0_db", "web-0_init", "web-0_init2"}
	name := names[h.IntN(len(names))]
	verbs := []string{"", "watch", "list", "inspect", "create", "start", "stop", "remove", "rename", "image", "sandbox.image", "pull", "check", "hook", "scratch.remove"}
	switch h.IntN(20) {
	case 0, 1, 2:
		w.Kill(name)
	case 3:
		w.RemoveContainer(name)
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
		w.Sicken(name, "sick")
	case 14:
		w.Pause(name)
	case 15:
		w.Unpause(name)
	case 16:
		w.RemoveImage([]string{"web", sim.SandboxImage}[h.IntN(2)])
	case 17:
		w.EmptyRun()
	case 18:
		w.Restart(name)
	case 19:
		w.Rename(name, []string{"mine", name + "_previous"}[h.IntN(2)])
	}
}

// plan is the smallest planner.
func (h *severalHistory) plan() {
	list, err := h.List(h.Context(), key)
	if err != nil {
		return
	}
	if len(list) == 1 && list[0].Gone() {
		_ = h.Remove(h.Context(), web0, h.IntN(2) == 0)
	}
	if err := h.Create(h.Context(), *h.pod); err != nil && !errors.Is(err, runtime.ErrConflict) && !errors.Is(err, runtime.ErrUnreachable) {
		h.Errorf("create: %v", err)
	}
}

func (h *severalHistory) recover() {
	h.world.Mend()
	for _, c := range h.world.Containers() {
		h.world.Unpause(c.Name)
	}
	before := len(h.world.Writes())
	for range 400 { // the longest back-off is that of a pull: 5 minutes
		h.plan()
		h.after(time.Second)
		if list, err := h.List(h.Context(), key); err == nil && len(list) == 1 && list[0].Phase == runtime.Running && list[0].Ready && list[0].ReadyKnown {
			break
		}
	}
	if p := h.rig.pod(); p.Phase != runtime.Running || !p.Ready || !p.ReadyKnown {
		h.Errorf("in the end the pod is %q (%s), want it ready; host: %s", show(p), p.Message, h.world)
	}
	if n := len(h.world.Writes()) - before; n > 120 {
		h.Errorf("%d writes for the recovery", n)
	}
}
