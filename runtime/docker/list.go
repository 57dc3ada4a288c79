package docker

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"golang.org/x/sync/errgroup"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime/pods"
)

// List is every container of ours, inspected, by name.
func (h *Host) List(ctx context.Context) ([]pods.Container, error) {
	if err := h.sweepOnce(ctx); err != nil {
		return nil, err
	}
	defer h.resolvers.look()()
	before := h.resolvers.ids()
	found, err := h.cli().ContainerList(ctx, container.ListOptions{
		All:     true,
		Filters: filters.NewArgs(filters.Arg("label", jobspecs.LabelDaemon+"="+h.cfg.Daemon)),
	})
	if err != nil {
		return nil, fmt.Errorf("list containers: %w", engineError(err))
	}
	all := make([]*pods.Container, len(found))
	group, ctx := errgroup.WithContext(ctx)
	for i := range found {
		group.Go(func() error {
			c, err := h.inspectOne(ctx, found[i].ID)
			all[i] = c
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	list := h.noteAll(before, all)
	slices.SortFunc(list, func(a, b pods.Container) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// sweepOnce removes what an earlier run of this daemon left behind.
func (h *Host) sweepOnce(ctx context.Context) error {
	if h.swept.Load() {
		return nil
	}
	if err := h.sweepInside(ctx); err != nil {
		return err
	}
	h.swept.Store(true)
	return nil
}

// noteAll tells the resolvers who is there, and who of before is not. What belongs
// to nobody then goes.
func (h *Host) noteAll(before []string, all []*pods.Container) []pods.Container {
	there := map[string]bool{}
	var list []pods.Container
	for _, c := range all {
		if c == nil {
			continue
		}
		list = append(list, *c)
		there[c.ID] = true
		h.resolvers.use(c.ID, c.Labels)
	}
	h.forgetContainers(slices.DeleteFunc(before, func(id string) bool { return there[id] })...)
	if !h.remote { // the folders are not of its containers
		h.resolvers.sweepLeft()
	}
	return list
}

// inspectOne is nil for a container that went since it was listed.
func (h *Host) inspectOne(ctx context.Context, id string) (*pods.Container, error) {
	done, err := h.slot(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	defer h.resolvers.look()()
	c, err := h.cli().ContainerInspect(ctx, id)
	if isNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("inspect container %s: %w", shortID(id), engineError(err))
	}
	found := containerOf(&c)
	if h.ours(found.Labels) {
		h.resolvers.use(found.ID, found.Labels)
		found.PostStarted = h.postStarted(found.ID, found.StartedAt)
	}
	return &found, nil
}

// Inspect is one container, whoever made it.
func (h *Host) Inspect(ctx context.Context, id string) (pods.Container, error) {
	c, err := h.inspectOne(ctx, id)
	if err != nil {
		return pods.Container{}, err
	}
	if c == nil {
		return pods.Container{}, fmt.Errorf("inspect container %s: %w", id, pods.ErrNoContainer)
	}
	return *c, nil
}

func containerOf(c *container.InspectResponse) pods.Container {
	endpoints, own := c.NetworkSettings.Networks, ownNetworkOf(c.Config.Labels)
	return pods.Container{
		ID:         c.ID,
		Name:       strings.TrimPrefix(c.Name, "/"),
		Labels:     c.Config.Labels,
		State:      c.State.Status,
		ExitCode:   c.State.ExitCode,
		OOMKilled:  c.State.OOMKilled,
		Error:      c.State.Error,
		Image:      c.Config.Image,
		ImageID:    c.Image,
		Address:    address(endpoints, own),
		Address6:   address6(endpoints, own),
		Joined:     joined(endpoints, own),
		Published:  publishedPorts(c),
		CreatedAt:  moment(c.Created),
		StartedAt:  moment(c.State.StartedAt),
		FinishedAt: moment(c.State.FinishedAt),
	}
}

// publishedPorts are those that a container was made with, in order.
func publishedPorts(c *container.InspectResponse) (out []jobspecs.Port) {
	if c.ContainerJSONBase == nil || c.HostConfig == nil {
		return nil
	}
	for _, port := range slices.Sorted(maps.Keys(c.HostConfig.PortBindings)) {
		for _, b := range c.HostConfig.PortBindings[port] {
			out = append(out, publishedPort(port, b))
		}
	}
	return out
}

// moment reads the engine's time; its year 1 is our zero.
func moment(s string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil || t.Year() <= 1 {
		return time.Time{}
	}
	return t
}
