package docker

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/stsd/stsd/runtime"
)

// Logs copies a pod's output. A follower's end by ctx is no error.
func (h *Host) Logs(ctx context.Context, name runtime.PodName, o runtime.LogOptions, stdout, stderr io.Writer) error {
	id, err := h.find(ctx, name, o.Container, o.Previous)
	if err != nil {
		return err
	}
	c, err := h.cli().ContainerInspect(ctx, id)
	if err != nil {
		return h.noLogs(ctx, name, id, engineError(err))
	}
	stream, err := h.cli().ContainerLogs(ctx, id, container.LogsOptions{
		ShowStdout: true,
		ShowStderr: true,
		Follow:     o.Follow,
		Timestamps: o.Timestamps,
		Tail:       o.Tail,
		Since:      since(o.Since),
	})
	if err != nil {
		return h.noLogs(ctx, name, id, logsError(err, &c))
	}
	defer stream.Close()
	err = copyOutput(stream, c.Config.Tty, streams{stdout: stdout, stderr: stderr})
	if o.Follow && ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return h.noLogs(ctx, name, id, logsError(err, &c))
	}
	return nil
}

// noLogs says why a pod's output cannot be read. That its container went meanwhile
// is runtime.ErrNotFound.
func (h *Host) noLogs(ctx context.Context, pod runtime.PodName, id string, cause error) error {
	_, err := h.cli().ContainerInspect(ctx, id)
	if isNotFound(err) || contains(cause.Error(), "dead or marked for removal") {
		return absent(pod.Namespace + "/" + pod.Name + ": the container is gone, and its logs with it")
	}
	return fmt.Errorf("read logs of %s: %w", pod.Name, cause)
}

// logsError says so where the log driver is one that only writes. Engine 20.10
// tells it inside the stream, others before it.
func logsError(err error, c *container.InspectResponse) error {
	if contains(err.Error(), "does not support reading") && c.HostConfig != nil {
		return fmt.Errorf("the log driver %q cannot be read", c.HostConfig.LogConfig.Type)
	}
	return engineError(err)
}

// since is a time as the engine reads it: seconds and nanoseconds.
func since(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return strconv.FormatInt(t.Unix(), 10) + fmt.Sprintf(".%09d", t.Nanosecond())
}
