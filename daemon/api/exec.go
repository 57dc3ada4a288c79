package api

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/runtime"
)

var execParams = []param{
	{"command", "strings", "the command and its arguments, once for each"},
	{"container", "string", "absent: the main one"},
	{"tty", "boolean", "give it a terminal"},
	{"stdin", "boolean", "frames of kind stdin will come"},
}

func exec(s *Server, w http.ResponseWriter, r *http.Request) error {
	name, err := podOf(r)
	if err != nil {
		return err
	}
	o, stdin, err := execOptions(r)
	if err != nil {
		return err
	}
	conn, buf, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return fmt.Errorf("take over the connection: %w", err)
	}
	s.hijacked.Add(1)
	defer s.hijacked.Done()
	defer conn.Close()
	head := "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + client.ExecProtocol + "\r\n\r\n"
	if _, err := io.WriteString(conn, head); err != nil {
		return nil // the caller went away
	}
	s.run(r.Context(), conn, buf.Reader, name, o, stdin)
	return nil
}

func execOptions(r *http.Request) (o runtime.ExecOptions, stdin bool, err error) {
	v := r.URL.Query()
	o = runtime.ExecOptions{Command: v["command"], Container: v.Get("container")}
	if len(o.Command) == 0 || o.Command[0] == "" {
		return o, false, invalid("exec: no command")
	}
	if !strings.EqualFold(r.Header.Get("Upgrade"), client.ExecProtocol) {
		return o, false, invalid("exec: want the header Upgrade: %s", client.ExecProtocol)
	}
	if o.TTY, err = flag(r, "tty"); err != nil {
		return o, false, err
	}
	stdin, err = flag(r, "stdin")
	return o, stdin, err
}

// run speaks frames on conn until the command ends. A caller that goes away
// cancels the command.
func (s *Server) run(ctx context.Context, conn net.Conn, in *bufio.Reader, name runtime.PodName, o runtime.ExecOptions, stdin bool) {
	ctx, cancel := context.WithCancel(ctx)
	frames := client.NewFrameWriter(conn)
	sizes := make(chan [2]uint, 1)
	reader, writer := io.Pipe()
	o.Stdout, o.Stderr, o.Resize = frames.Stream(client.FrameStdout), frames.Stream(client.FrameStderr), sizes
	if stdin {
		o.Stdin = reader
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		defer cancel()
		writer.CloseWithError(receive(ctx, in, writer, sizes))
	})
	stop := context.AfterFunc(ctx, func() { reader.Close() })

	code, err := s.Service.Exec(ctx, name, o)
	reader.Close() // a command that ended reads no more: let go of the writer
	s.sendExit(frames, code, err)
	stop()
	conn.Close()
	wg.Wait()
}

// receive reads the caller's frames until the connection ends.
func receive(ctx context.Context, in *bufio.Reader, stdin *io.PipeWriter, sizes chan [2]uint) error {
	for {
		kind, p, err := client.ReadFrame(in)
		if err != nil {
			return err
		}
		switch kind {
		case client.FrameStdin:
			_, _ = stdin.Write(p) // nobody reads it: the command goes on without
		case client.FrameStdinEnd:
			stdin.Close()
		case client.FrameResize:
			newest(sizes, p)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// newest leaves only the last size to a slow reader.
func newest(sizes chan [2]uint, p []byte) {
	var size client.Resize
	if json.Unmarshal(p, &size) != nil {
		return
	}
	select {
	case <-sizes:
	default:
	}
	sizes <- [2]uint{size.Rows, size.Columns}
}

func (s *Server) sendExit(frames *client.FrameWriter, code int, err error) {
	if err != nil {
		_ = sendError(frames, err) // nobody is left to tell
		return
	}
	p, _ := json.Marshal(client.Exit{Code: code}) // an int never fails
	_ = frames.Frame(client.FrameExit, p)
}
