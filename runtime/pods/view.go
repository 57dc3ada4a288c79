package pods

import (
	"fmt"
	"slices"
	"time"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

// view is the pod as List shows it.
func view(w *PodWorld, plan PodPlan) runtime.Pod {
	pod := runtime.Pod{
		Set: w.Set, Name: w.Name, Ordinal: w.Ordinal, Revision: w.revision(),
		Phase: plan.Phase, Reason: plan.Reason, Message: plan.Message, Tries: plan.Tries, Since: w.Since,
		CreatedAt: w.CreatedAt, Managed: w.Spec != nil, Rendering: w.Rendering, ReadyKnown: true,
		Address: w.address(), Notes: w.Notes,
	}
	if plan.Tries > 0 {
		pod.NextTry = plan.Retry
	}
	w.viewNetworks(&pod)
	for i := range w.Parts {
		s := w.at(i)
		if s.Kind == jobspecs.KindSandbox {
			continue
		}
		c := s.container()
		if i < len(plan.Parts) {
			c.Reason, c.Message = plan.Parts[i].Reason, plan.Parts[i].Message
		}
		pod.Containers = append(pod.Containers, c)
		if s.lasting() {
			pod.Restarts += c.Restarts
			pod.ReadyKnown = pod.ReadyKnown && s.known()
		}
		if s.Probes.Said != "" && pod.Role == "" {
			pod.Role = s.Probes.Said
		}
	}
	w.viewFirst(&pod)
	pod.Ready, pod.ReadySince = w.ready()
	return pod
}

// viewNetworks shows where the pod is beside its own address.
func (w *PodWorld) viewNetworks(pod *runtime.Pod) {
	c := w.attached()
	if c == nil {
		return
	}
	pod.Address6, pod.Joined, pod.Published = c.Address6, c.Joined, c.Published
	if w.Spec == nil || c.StartedAt.IsZero() {
		return
	}
	for _, name := range w.Spec.Networks {
		if !slices.ContainsFunc(c.Joined, func(e runtime.Endpoint) bool { return e.Network == name }) {
			pod.Detached = append(pod.Detached, name)
		}
	}
}

// viewFirst shows what a pod has from its first main.
func (w *PodWorld) viewFirst(pod *runtime.Pod) {
	f, ok := w.first()
	if !ok {
		return
	}
	if w.Spec != nil {
		pod.Image, pod.ImageID = f.block().Image, f.block().ImageID
	}
	if f.Main == nil {
		return
	}
	pod.Service = f.Main.Labels[jobspecs.LabelService]
	pod.Image, pod.ImageID = f.Main.Image, f.Main.ImageID
	pod.Started, pod.Steady = f.Main.Labels[jobspecs.LabelRendering], f.Main.Labels[jobspecs.LabelSteady]
	if f.running() {
		pod.StartedAt = f.Main.StartedAt
	}
}

// ready tells whether every main and sidecar is ready, and since when all are.
func (w *PodWorld) ready() (is bool, since time.Time) {
	for i := range w.Parts {
		s := w.at(i)
		if !s.lasting() {
			continue
		}
		if !s.ready() {
			return false, time.Time{}
		}
		is, since = true, later(since, s.Probes.ReadySince)
	}
	return is, since
}

func (w spot) ready() bool {
	return w.running() && w.Spec != nil && w.Probes.Ready && !w.paused()
}

// known tells whether readiness is: see runtime.Pod.ReadyKnown.
func (w spot) known() bool {
	switch {
	case !w.running():
		return true
	case w.Spec == nil:
		return false
	case !w.posted():
		return !w.Found
	}
	return w.Probes.ID != "" && w.Probes.Known
}

func (w spot) restarts() int {
	if w.Main != nil {
		return number(w.Main.Labels[jobspecs.LabelRestarts])
	}
	if w.Spec == nil {
		return 0
	}
	n, _ := w.counts()
	return n
}

// container shows a part, with the end of the last container that ended.
func (w spot) container() runtime.Container {
	c := runtime.Container{Name: w.Block, Kind: w.Kind, State: "waiting", Restarts: w.restarts()}
	if w.Spec != nil {
		c.Image, c.ImageID = w.block().Image, w.block().ImageID
	}
	m := w.Main
	if m == nil {
		return w.lastEnd(c)
	}
	c.ID, c.Image, c.ImageID, c.State = m.ID, m.Image, m.ImageID, m.State
	c.Ready = w.ready() || w.Kind == jobspecs.KindInit && w.over()
	c.StartedAt = m.StartedAt
	if !m.Running() && !m.StartedAt.IsZero() {
		return ended(c, m)
	}
	return w.lastEnd(c)
}

func (w spot) lastEnd(c runtime.Container) runtime.Container {
	if w.Previous != nil && w.Previous.Labels[jobspecs.LabelRevision] == w.revision() {
		return ended(c, w.Previous)
	}
	return c
}

func ended(c runtime.Container, last *Container) runtime.Container {
	code := last.ExitCode
	c.ExitCode, c.OOMKilled, c.Signal = &code, last.OOMKilled, signal(code)
	return c
}

// signal names the signal that an exit code stands for; "" when it stands for none.
func signal(code int) string {
	n := code - 128
	if n < 1 || n > 64 {
		return ""
	}
	if s, ok := signals[n]; ok {
		return s
	}
	return fmt.Sprintf("signal %d", n)
}

// Of Linux, where containers run, whatever the daemon runs on.
var signals = map[int]string{
	1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL",
	10: "SIGUSR1", 11: "SIGSEGV", 12: "SIGUSR2", 13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM",
}

// turn decides, and keeps since when the phase is what it is.
func (w *PodWorld) turn(now time.Time) PodPlan {
	w.Now = now
	w.settle()
	plan := Next(*w)
	if plan.Phase != w.Phase || w.Since.IsZero() {
		w.Phase, w.Since = plan.Phase, now
	}
	return plan
}
