package docker

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/pkg/stdcopy"

	"github.com/stsd/stsd/runtime"
)

// Logs copies a pod's output. A follower's end by ctx is no error.
func (h *Host) Logs(ctx context.Context, name runtime.PodName, o runtime.LogOptions, stdout, stderr io.Writer) error {
	id, err := h.find(ctx, name, o.Container, o.Previous)
	if err != nil {
		return err
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
		return fmt.Errorf("read logs of %s: %w", name.Name, engineError(err))
	}
	defer stream.Close()
	_, err = stdcopy.StdCopy(orDiscard(stdout), orDiscard(stderr), stream)
	if o.Follow && ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read logs of %s: %w", name.Name, err)
	}
	return nil
}

// since is a time as the engine reads it: seconds and nanoseconds.
func since(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return strconv.FormatInt(t.Unix(), 10) + fmt.Sprintf(".%09d", t.Nanosecond())
}
