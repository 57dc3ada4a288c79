package pods

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/stsd/stsd/jobspecs"
)

// meet looks at a running container that no pod knows, which somebody started or
// made by hand; at every one where id is empty. It goes on until the host answers.
func (e *Engine) meet(ctx context.Context, id string) {
	for tries := 0; ; tries++ {
		list, err := e.strangers(ctx, id)
		for i := range list {
			e.place(&list[i])
		}
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(doubled(reconnectFirst, reconnectMax, tries)):
		}
	}
}

func (e *Engine) strangers(ctx context.Context, id string) ([]Container, error) {
	if err := e.limits.enter(ctx, e.limits.calls); err != nil {
		return nil, err
	}
	defer func() { <-e.limits.calls }()
	if id == "" {
		return e.host.List(ctx)
	}
	c, err := e.host.Inspect(ctx, id)
	if errors.Is(err, ErrNoContainer) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return []Container{c}, nil
}

// place gives a running container of ours to its pod, which stops it beside its
// own. Where there is no such pod it is one, as if it had been found when the host
// was connected: what becomes of it is the planner's.
func (e *Engine) place(c *Container) {
	o, ok := podOf(c)
	if !ok || !c.Running() || c.Labels[jobspecs.LabelDaemon] != e.daemon {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if p := e.pods[o.name]; p != nil {
		p.change(func(w *PodWorld) { w.met(c) })
		return
	}
	p := e.add(o.name, PodWorld{Set: o.set, Name: o.name.Name, Ordinal: o.ordinal, Offline: true})
	p.change(func(w *PodWorld) {
		w.reconnected(grouped([]Container{*c})[o.name])
		w.note(c.Labels[jobspecs.LabelContainer], true, "StartedByHand", "container "+c.Name+" was started by hand")
	})
	e.begin(p)
}

// met notes a running container of the pod that none of its parts knows.
func (w *PodWorld) met(c *Container) {
	if w.knows(c.ID) {
		w.happened(c.ID)
		return
	}
	s, ok := w.part(c.Labels[jobspecs.LabelContainer])
	switch {
	case ok:
	case len(w.Parts) == 0:
		return
	default: // its block is of another revision
		s = w.at(0)
	}
	others := slices.DeleteFunc(slices.Clone(s.Beside), func(o Container) bool { return o.ID == c.ID })
	s.Beside = append(others, *c)
	w.note(s.Block, true, "StartedByHand", "container "+c.Name+" was started by hand beside the pod and is being stopped")
}

// besides is the container that runs beside the part's own; nil: none does.
func (w spot) besides() *Container {
	if w.Previous != nil && w.Previous.Running() {
		return w.Previous
	}
	i := slices.IndexFunc(w.Beside, func(c Container) bool { return c.Running() })
	if i < 0 {
		return nil
	}
	return &w.Beside[i]
}

// fenced notes that the run which s stopped is over. One that was started again
// meanwhile is another run.
func (w spot) fenced(s Step) {
	w.Beside = slices.Clone(w.Beside)
	for i := range w.Beside {
		if c := &w.Beside[i]; c.ID == s.ID && c.StartedAt.Equal(s.Run) {
			c.State = "exited"
		}
	}
}
