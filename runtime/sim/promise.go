package sim

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

// What the design promises of containers, checked whenever one changed.

// podOf is the pod that labels name.
func podOf(labels map[string]string) runtime.PodName {
	ordinal, err := strconv.Atoi(labels[jobspecs.LabelOrdinal])
	if err != nil || labels[jobspecs.LabelSet] == "" {
		return nobody
	}
	return runtime.PodName{Namespace: labels[jobspecs.LabelNamespace], Name: jobspecs.MemberName(labels[jobspecs.LabelSet], ordinal)}
}

// nobody is the pod of what is not ours.
var nobody runtime.PodName

// pod is the one that b belongs to.
func (w *World) pod(b *box) runtime.PodName {
	if b.c.Labels[jobspecs.LabelDaemon] != w.daemon {
		return nobody
	}
	return podOf(b.c.Labels)
}

// life is one life of a pod: from its sandbox's start, or from its beginning, to
// its end. In each its containers begin in their order.
type life struct {
	pod      runtime.PodName
	revision string
	sandbox  string
}

func (w *World) life(b *box) life {
	return life{w.pod(b), b.c.Labels[jobspecs.LabelRevision], b.spec.Sandbox}
}

// step is one container of one life.
type step struct {
	life
	container string
}

// began notes that b begins to run; w.mu is held.
func (w *World) began(b *box) { w.steps[step{w.life(b), b.spec.Main.Name}] = false }

// ended notes how a run of b ended; w.mu is held.
func (w *World) ended(b *box) {
	if b.c.ExitCode == 0 {
		w.steps[step{w.life(b), b.spec.Main.Name}] = true
	}
}

// over tells whether b has ended well in its life; w.mu is held.
func (w *World) over(b *box) bool { return w.steps[step{w.life(b), b.spec.Main.Name}] }

// forget ends the life of a pod; w.mu is held.
func (w *World) forget(pod runtime.PodName) {
	maps.DeleteFunc(w.steps, func(s step, _ bool) bool { return s.pod == pod })
}

// check notes what the design promises never happens; w.mu is held.
func (w *World) check() {
	held, pods := map[string]*box{}, map[runtime.PodName][]*box{}
	for _, id := range slices.Sorted(maps.Keys(w.boxes)) {
		b := w.boxes[id]
		if !b.c.Running() || b.beside {
			continue
		}
		pod := w.pod(b)
		for _, h := range w.holds(b) {
			other := held[h.what]
			if other != nil && (!h.shared || w.pod(other) != pod || pod == nobody) {
				w.violation("%s and %s both run on %s", other.c.Name, b.c.Name, h.what)
			}
			held[h.what] = b
		}
		if pod == nobody {
			continue
		}
		for _, other := range pods[pod] {
			w.checkOne(other, b)
		}
		pods[pod] = append(pods[pod], b)
		w.checkOrder(b)
	}
}

// twins are the running containers of b's part, but b.
func (w *World) twins(b *box) (list []*box) {
	for _, id := range slices.Sorted(maps.Keys(w.boxes)) {
		o := w.boxes[id]
		if o != b && o.c.Running() && w.pod(o) != nobody && w.pod(o) == w.pod(b) && o.part() == b.part() {
			list = append(list, o)
		}
	}
	return list
}

// hold is a thing that only one running container may have, or only those of one
// pod.
type hold struct {
	what   string
	shared bool
}

func (w *World) holds(b *box) (held []hold) {
	if pod := w.pod(b); pod != nobody {
		held = append(held, hold{"container " + b.part() + " of pod " + pod.Namespace + "/" + pod.Name, false})
	}
	for _, v := range b.volumes {
		held = append(held, hold{"volume " + v, true})
	}
	if b.c.Address.IsValid() {
		held = append(held, hold{"address " + b.c.Address.String(), false})
	}
	return held
}

// part is what tells the containers of one pod apart.
func (b *box) part() string {
	if b.spec.Main.Kind == jobspecs.KindSandbox {
		return jobspecs.PartSandbox
	}
	return b.spec.Main.Name
}

// checkOne notes two pods of one ordinal: their containers differ in revision, or
// do not share their network.
func (w *World) checkOne(a, b *box) {
	ra, rb := a.c.Labels[jobspecs.LabelRevision], b.c.Labels[jobspecs.LabelRevision]
	switch {
	case ra != rb:
		w.violation("%s of revision %s runs beside %s of revision %s", b.c.Name, rb, a.c.Name, ra)
	case a.network() != b.network() && a.part() != b.part():
		w.violation("%s runs beside %s and does not share its network", b.c.Name, a.c.Name)
	}
}

// network is the container whose network b lives in.
func (b *box) network() string {
	if b.spec.Sandbox != "" {
		return b.spec.Sandbox
	}
	return b.c.ID
}

// checkOrder notes a container that runs before its time.
func (w *World) checkOrder(b *box) {
	for _, c := range b.spec.Pod.Containers {
		if c.Name == b.spec.Main.Name || b.spec.Main.Kind == jobspecs.KindSandbox {
			return
		}
		over, begun := w.steps[step{w.life(b), c.Name}]
		switch {
		case c.Kind == jobspecs.KindInit && !over:
			w.violation("%s runs before init container %s ended with 0", b.c.Name, c.Name)
		case c.Kind == jobspecs.KindSidecar && !begun:
			w.violation("%s runs before sidecar %s was started", b.c.Name, c.Name)
		}
	}
}

func (w *World) violation(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !slices.Contains(w.violations, text) {
		w.violations = append(w.violations, text)
	}
}

// Violations are the promises that were broken so far, each once.
func (w *World) Violations() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.violations)
}
