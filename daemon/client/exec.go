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
	"sync"

	"github.com/stsd/stsd/runtime"
)

// Exec runs a command in a member and returns its exit code. It does not wait
// for a Read of Stdin that is under way when the command ends.
func (c *Client) Exec(ctx context.Context, name runtime.PodName, o runtime.ExecOptions) (int, error) {
	conn, err := c.upgrade(ctx, memberPath(name.Namespace, name.Name, "exec"), execQuery(o))
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	defer conn.Close()

	w := NewFrameWriter(conn)
	if o.Stdin != nil {
		go sendStdin(w, o.Stdin) // not waited for: nothing interrupts a Read of a terminal
	}
	if o.Resize != nil {
		wg.Go(func() { sendSizes(ctx, w, o.Resize) })
	}
	return receive(ctx, conn, o)
}

func execQuery(o runtime.ExecOptions) url.Values {
	v := optional("container", o.Container)
	v["command"] = o.Command
	if o.TTY {
		v.Set("tty", "true")
	}
	if o.Stdin != nil {
		v.Set("stdin", "true")
	}
	return v
}

func (c *Client) upgrade(ctx context.Context, path string, q url.Values) (io.ReadWriteCloser, error) {
	header := http.Header{"Connection": {"Upgrade"}, "Upgrade": {ExecProtocol}}
	resp, err := c.send(ctx, http.MethodPost, path, q, nil, header)
	if err != nil {
		return nil, err
	}
	conn, ok := resp.Body.(io.ReadWriteCloser)
	if resp.StatusCode != http.StatusSwitchingProtocols || !ok {
		resp.Body.Close()
		return nil, fmt.Errorf("%s answered %s instead of switching to %s", path, resp.Status, ExecProtocol)
	}
	return conn, nil
}

// receive copies output until the command's exit code comes.
func receive(ctx context.Context, conn io.Reader, o runtime.ExecOptions) (int, error) {
	r := bufio.NewReader(conn)
	for {
		kind, p, err := ReadFrame(r)
		switch {
		case ctx.Err() != nil:
			return 0, context.Cause(ctx)
		case err != nil && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)):
			return 0, ErrStreamEnded
		case err != nil:
			return 0, fmt.Errorf("%w: %w", ErrStreamEnded, err)
		case kind == FrameExit:
			var exit Exit
			err := json.Unmarshal(p, &exit)
			return exit.Code, err
		}
		if err := output(kind, p, orDiscard(o.Stdout), orDiscard(o.Stderr)); err != nil {
			return 0, err
		}
	}
}

func orDiscard(w io.Writer) io.Writer {
	if w == nil {
		return io.Discard
	}
	return w
}

// sendStdin ends quietly when the connection does: receive has the reason.
func sendStdin(w *FrameWriter, stdin io.Reader) {
	if _, err := io.Copy(w.Stream(FrameStdin), stdin); err == nil {
		_ = w.Frame(FrameStdinEnd, nil)
	}
}

func sendSizes(ctx context.Context, w *FrameWriter, sizes <-chan [2]uint) {
	for {
		select {
		case <-ctx.Done():
			return
		case s, ok := <-sizes:
			if !ok {
				return
			}
			p, err := json.Marshal(Resize{Rows: s[0], Columns: s[1]})
			if err != nil || w.Frame(FrameResize, p) != nil {
				return
			}
		}
	}
}
