package pods

import (
	"fmt"
	"time"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

// view is the pod as List shows it.
func view(w *PodWorld, plan PodPlan) runtime.Pod {
	pod := runtime.Pod{
		Set: w.Set, Name: w.Name, Ordinal: w.Ordinal, Revision: w.revision(),
		Phase: plan.Phase, Reason: plan.Reason, Message: plan.Message, Tries: plan.Tries, Since: w.Since,
		CreatedAt: w.CreatedAt, Managed: w.Spec != nil, Rendering: w.Rendering,
		ReadyKnown: !w.running() || w.Spec != nil && w.Probes.ID != "" && w.Probes.Known,
		Restarts:   restarts(w),
	}
	if w.Spec != nil {
		pod.Address = w.Spec.Address
		pod.Image, pod.ImageID = w.main().Image, w.main().ImageID
	}
	if w.Main == nil {
		return pod
	}
	c := container(w)
	pod.Image, pod.ImageID, pod.Started = c.Image, c.ImageID, w.Main.Labels[jobspecs.LabelRendering]
	if w.Main.Address.IsValid() {
		pod.Address = w.Main.Address
	}
	pod.Containers = []runtime.Container{c}
	if w.running() {
		pod.StartedAt = w.Main.StartedAt
		pod.Ready = c.Ready
		if c.Ready {
			pod.ReadySince = w.Probes.ReadySince
		}
	}
	return pod
}

func restarts(w *PodWorld) int {
	if w.Main != nil {
		return number(w.Main.Labels[jobspecs.LabelRestarts])
	}
	if w.Spec == nil {
		return 0
	}
	n, _ := w.counts()
	return n
}

// container is the main one, with the end of the last that ended.
func container(w *PodWorld) runtime.Container {
	m := w.Main
	c := runtime.Container{
		Name: m.Labels[jobspecs.LabelContainer], ID: m.ID, Image: m.Image, ImageID: m.ImageID, State: m.State,
		Ready: w.running() && w.Spec != nil && w.Probes.Ready && !w.paused(), Restarts: restarts(w), StartedAt: m.StartedAt,
	}
	if !m.Running() && !m.StartedAt.IsZero() {
		return ended(c, m)
	}
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
	plan := Next(*w)
	if plan.Phase != w.Phase || w.Since.IsZero() {
		w.Phase, w.Since = plan.Phase, now
	}
	return plan
}
