package client

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/stsd/stsd/runtime"
)

// Logs copies a member's output until it ends or, following, until ctx ends.
func (c *Client) Logs(ctx context.Context, name runtime.PodName, o runtime.LogOptions, stdout, stderr io.Writer) error {
	resp, err := c.send(ctx, http.MethodGet, memberPath(name.Namespace, name.Name, "logs"), logQuery(o), nil, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	r := bufio.NewReader(resp.Body)
	for {
		kind, p, err := ReadFrame(r)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return ErrStreamEnded
		case err != nil:
			return fmt.Errorf("%w: %w", ErrStreamEnded, err)
		case kind == FrameEnd:
			return nil
		}
		if err := output(kind, p, stdout, stderr); err != nil {
			return err
		}
	}
}

func logQuery(o runtime.LogOptions) url.Values {
	v := optional("tail", o.Tail, "container", o.Container)
	if !o.Since.IsZero() {
		v.Set("since", o.Since.Format(time.RFC3339Nano))
	}
	for name, on := range map[string]bool{"follow": o.Follow, "timestamps": o.Timestamps, "previous": o.Previous} {
		if on {
			v.Set(name, "true")
		}
	}
	return v
}

// output writes a frame of output, or returns the error that the frame is.
func output(kind byte, p []byte, stdout, stderr io.Writer) error {
	var err error
	switch kind {
	case FrameStdout:
		_, err = stdout.Write(p)
	case FrameStderr:
		_, err = stderr.Write(p)
	case FrameError:
		if problem := asProblem(p); problem != nil {
			return problem
		}
		return fmt.Errorf("the daemon says: %s", p)
	}
	return err
}
