package pods

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

// clear removes what an ended pod left at the host, its sandbox last. It looks
// anew: a reply may have been lost. What is not ours stays.
func (e *Engine) clear(ctx context.Context, name runtime.PodName, p *pod, keep bool) error {
	if err := e.limits.enter(ctx, e.limits.calls); err != nil {
		return err
	}
	defer func() { <-e.limits.calls }()
	var parts []spot
	known := false // whether the pod has scratch folders
	if p != nil {
		world := p.snapshot()
		known = world.Spec != nil
		keep = keep && (world.Spec == nil || len(world.Spec.Scratch) == 0) // a kept container would hold the folder
		for i := range world.Parts {
			parts = append(parts, world.at(len(world.Parts)-1-i))
		}
	}
	for _, s := range parts {
		if err := e.clearPart(ctx, name, s, keep && s.Kind == jobspecs.KindMain); err != nil {
			return err
		}
	}
	if keep && known {
		return nil // it has no scratch folder
	}
	if !keep {
		if err := e.clearKept(ctx, name, parts); err != nil {
			return err
		}
	}
	err := e.host.RemoveScratch(ctx, name)
	if errors.Is(err, ErrScratchInUse) {
		return e.clearAll(ctx, name)
	}
	return err
}

// clearAll removes every ended container of the pod, whatever it is called by now,
// and then the scratch folders, which one of them held.
func (e *Engine) clearAll(ctx context.Context, name runtime.PodName) error {
	list, err := e.host.List(ctx)
	if err != nil {
		return err
	}
	for i := range list {
		owner, ok := podOf(&list[i])
		switch {
		case !ok || owner.name != name || list[i].Labels[jobspecs.LabelDaemon] != e.daemon:
		case list[i].Running():
			return runs(&list[i])
		default:
			if err := e.host.Remove(ctx, list[i].ID); err != nil {
				return err
			}
		}
	}
	return e.host.RemoveScratch(ctx, name)
}

// snapshot is what is known of the pod now.
func (p *pod) snapshot() *PodWorld {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.world.clone()
}

func (e *Engine) clearPart(ctx context.Context, name runtime.PodName, s spot, keep bool) error {
	id, previous := s.containerName(), s.previousName()
	if s.Main != nil {
		id = s.Main.ID
	}
	main, err := e.find(ctx, name, id)
	switch {
	case err != nil || main == nil:
		return err
	case main.Running():
		return runs(main)
	case main.Name == previous:
		return nil
	case !keep || main.StartedAt.IsZero() || main.State != "exited":
		return e.host.Remove(ctx, main.ID)
	}
	if err := e.clearNamed(ctx, name, previous); err != nil {
		return err
	}
	err = e.host.Rename(ctx, main.ID, previous)
	var taken *Problem
	switch {
	case errors.Is(err, ErrNoContainer):
		return nil
	case errors.As(err, &taken) && taken.Reason == runtime.ReasonNameTaken: // by somebody else: it cannot be kept
		return e.host.Remove(ctx, main.ID)
	}
	return err
}

// clearKept removes the kept containers of a pod.
func (e *Engine) clearKept(ctx context.Context, name runtime.PodName, parts []spot) error {
	e.mu.RLock()
	names := slices.Clone(e.left[name])
	e.mu.RUnlock()
	names = append(names, jobspecs.ContainerName(name.Namespace, name.Name, jobspecs.PartPrevious))
	for _, s := range parts {
		names = append(names, s.previousName())
		if s.Previous != nil {
			names = append(names, s.Previous.ID) // it may have another name by now
		}
		for i := range s.Beside {
			names = append(names, s.Beside[i].ID)
		}
	}
	slices.Sort(names)
	for _, n := range slices.Compact(names) {
		if err := e.clearNamed(ctx, name, n); err != nil {
			return err
		}
	}
	return nil
}

// clearNamed removes the kept container of a pod.
func (e *Engine) clearNamed(ctx context.Context, name runtime.PodName, id string) error {
	c, err := e.find(ctx, name, id)
	switch {
	case err != nil || c == nil:
		return err
	case c.Running():
		return runs(c)
	}
	return e.host.Remove(ctx, c.ID)
}

// runs is ErrRunning that says which container it is, and what ends it.
func runs(c *Container) error {
	return fmt.Errorf("container %s runs, docker stop %s ends it: %w", c.Name, c.Name, runtime.ErrRunning)
}

// find is a container of the pod that this daemon made; nil: there is none.
func (e *Engine) find(ctx context.Context, name runtime.PodName, id string) (*Container, error) {
	c, err := e.host.Inspect(ctx, id)
	if errors.Is(err, ErrNoContainer) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	owner, ok := podOf(&c)
	if !ok || c.Labels[jobspecs.LabelDaemon] != e.daemon || owner.name != name {
		return nil, nil
	}
	return &c, nil
}
