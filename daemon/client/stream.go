package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// lines calls each for every line of a stream. A stream that fails has a
// problem as its last line; one that ends without is ErrStreamEnded.
func lines[T any](ctx context.Context, c *Client, path string, q url.Values, each func(T) error) error {
	resp, err := c.send(ctx, http.MethodGet, path, q, nil, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	r := bufio.NewReader(resp.Body)
	for {
		line, err := r.ReadBytes('\n')
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return ErrStreamEnded
		case err != nil:
			return fmt.Errorf("%w: %w", ErrStreamEnded, err)
		}
		if err := oneLine(line, each); err != nil {
			return err
		}
	}
}

func oneLine[T any](line []byte, each func(T) error) error {
	if p := asProblem(line); p != nil {
		return p
	}
	var v T
	if err := json.Unmarshal(line, &v); err != nil {
		return fmt.Errorf("read a line of the stream: %w", err)
	}
	return each(v)
}
