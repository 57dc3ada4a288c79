package pods

import (
	"context"
	"errors"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

// clear removes what an ended pod left at the host. It looks anew: a reply may
// have been lost. What is not ours stays.
func (e *Engine) clear(ctx context.Context, name runtime.PodName, p *pod, keep bool) error {
	if err := e.limits.enter(ctx, e.limits.calls); err != nil {
		return err
	}
	defer func() { <-e.limits.calls }()
	previous := jobspecs.ContainerName(name.Namespace, name.Name, jobspecs.PartPrevious)
	if p != nil {
		if err := e.clearMain(ctx, name, p, keep, previous); err != nil {
			return err
		}
	}
	if keep {
		return nil
	}
	return e.clearNamed(ctx, name, previous)
}

func (e *Engine) clearMain(ctx context.Context, name runtime.PodName, p *pod, keep bool, previous string) error {
	id := jobspecs.ContainerName(name.Namespace, name.Name, "")
	if containers := p.seen.Load().Containers; len(containers) > 0 {
		id = containers[0].ID
	}
	main, err := e.find(ctx, name, id)
	switch {
	case err != nil || main == nil || main.Name == previous:
		return err
	case main.Running():
		return runtime.ErrRunning
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

// clearNamed removes the kept container of a pod.
func (e *Engine) clearNamed(ctx context.Context, name runtime.PodName, id string) error {
	c, err := e.find(ctx, name, id)
	switch {
	case err != nil || c == nil:
		return err
	case c.Running():
		return runtime.ErrRunning
	}
	return e.host.Remove(ctx, c.ID)
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
