package docker

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/versions"
	"github.com/docker/docker/client"
)

// oldest is the API of Engine 20.10.
const oldest = "1.41"

func newClient(host string, called func(call string, took time.Duration, failed bool)) (*client.Client, error) {
	opts := []client.Opt{client.FromEnv, client.WithAPIVersionNegotiation(), client.WithUserAgent("stsd")}
	if host != "" {
		opts = append(opts, client.WithHost(host))
	}
	var way *http.Client // of c, which wraps what stands in it
	opts = append(opts, func(c *client.Client) error {
		way = c.HTTPClient()
		return client.WithHTTPClient(way)(c)
	})
	c, err := client.NewClientWithOpts(opts...)
	if err != nil {
		return nil, fmt.Errorf("engine address %q: %w", host, err)
	}
	if called != nil {
		way.Transport = observed{way.Transport, called}
	}
	return c, nil
}

// meet asks the engine for its API. A client negotiates once in its life, so an
// engine that was replaced by another version gets a new one.
func (h *Host) meet(ctx context.Context) error {
	ping, err := h.cli().Ping(ctx)
	if err != nil {
		return err
	}
	if versions.LessThan(ping.APIVersion, oldest) {
		return fmt.Errorf("the engine is too old (API %s): 20.10 or newer is needed", ping.APIVersion)
	}
	h.meeting.Lock()
	defer h.meeting.Unlock()
	if h.met == ping.APIVersion {
		return nil
	}
	if h.met != "" {
		c, err := newClient(h.cfg.Host, h.cfg.Called)
		if err != nil {
			return err
		}
		h.client.Store(c)
	}
	h.met = ping.APIVersion
	return nil
}

// mountsFolders tells whether the engine can mount a folder of a volume, as those
// from 26.0 (API 1.45) on can; before, the folder is bound by its path.
func (h *Host) mountsFolders(ctx context.Context) bool {
	return h.cli().NewVersionError(ctx, "1.45", "a folder of a volume") == nil
}

// stopWith ends a container. The engine's own stop is preferred: it goes on when
// we end. Engines before 23.0 (API 1.42) take no signal for it; there a signal
// other than the container's own is a kill and a wait.
func (h *Host) stopWith(ctx context.Context, id, signal string, grace time.Duration) error {
	cli := h.cli()
	if grace <= 0 {
		return h.kill(ctx, id)
	}
	seconds := wholeSeconds(grace)
	if signal == "" || cli.NewVersionError(ctx, "1.42", "a signal for stop") == nil || h.isOwnSignal(ctx, id, signal) {
		return cli.ContainerStop(ctx, id, container.StopOptions{Signal: signal, Timeout: &seconds})
	}
	if err := cli.ContainerKill(ctx, id, signal); err != nil {
		return err
	}
	within, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	if err := h.waitEnded(within, id); err == nil || ctx.Err() != nil || within.Err() == nil {
		return err
	}
	return h.kill(ctx, id)
}

func (h *Host) isOwnSignal(ctx context.Context, id, signal string) bool {
	c, err := h.cli().ContainerInspect(ctx, id)
	return err == nil && cmp.Or(c.Config.StopSignal, "SIGTERM") == signal
}

func (h *Host) kill(ctx context.Context, id string) error {
	err := h.cli().ContainerKill(ctx, id, "KILL")
	if cerrdefs.IsConflict(err) && strings.Contains(err.Error(), "is not running") {
		return nil
	}
	if err != nil {
		return err
	}
	return h.waitEnded(ctx, id)
}

func (h *Host) waitEnded(ctx context.Context, id string) error {
	// A wait that nobody reads any more would keep its goroutine.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended, errs := h.cli().ContainerWait(ctx, id, container.WaitConditionNotRunning)
	select {
	case <-ended:
		return nil
	case err := <-errs:
		return err
	}
}
