package api

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// ErrInUse is returned by Listen when another daemon answers on the socket.
var ErrInUse = errors.New("another daemon answers on this socket")

// Group is the group of the socket, where there is one: who may use Docker may
// use stsd.
const Group = "docker"

// Listen opens the unix socket at path with mode 0660 and group docker. A stale
// socket is replaced; one on which a daemon answers is ErrInUse, and anything
// that is no socket is left alone. Close removes the socket, unless another one
// has taken its place.
func Listen(path string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("make the folder of the socket: %w", err)
	}
	if err := checkStale(path); err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	// It gets its permissions under another name: nobody meets it without.
	draft := path + "~"
	if err := os.Remove(draft); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: draft, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	ln.SetUnlinkOnClose(false)
	own, err := publish(draft, path)
	if err != nil {
		ln.Close()
		os.Remove(draft)
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	return &listener{Listener: ln, path: path, own: own}, nil
}

// checkStale is nil when path is free or a socket that nobody serves.
func checkStale(path string) error {
	fi, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if fi.Mode().Type() != fs.ModeSocket {
		return errors.New("there is something that is no socket")
	}
	conn, err := net.DialTimeout("unix", path, time.Second)
	if err != nil {
		return nil
	}
	conn.Close()
	return ErrInUse
}

func publish(draft, path string) (fs.FileInfo, error) {
	if err := os.Chmod(draft, 0o660); err != nil {
		return nil, err
	}
	if gid, ok := groupID(Group); ok {
		_ = os.Chown(draft, -1, gid) // not allowed: the socket stays our own group's
	}
	own, err := os.Lstat(draft)
	if err != nil {
		return nil, err
	}
	return own, os.Rename(draft, path)
}

func groupID(name string) (int, bool) {
	g, err := user.LookupGroup(name)
	if err != nil {
		return 0, false
	}
	gid, err := strconv.Atoi(g.Gid)
	return gid, err == nil
}

type listener struct {
	net.Listener
	path string
	own  fs.FileInfo
	once sync.Once
}

func (l *listener) Close() error {
	l.once.Do(func() {
		if now, err := os.Lstat(l.path); err == nil && os.SameFile(now, l.own) {
			os.Remove(l.path)
		}
	})
	return l.Listener.Close()
}

// drain is how long requests under way may take when the server ends. Streams
// end at once.
const drain = 5 * time.Second

// Serve answers on ln until ctx ends, then waits for what is under way. It
// closes ln.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	srv := &http.Server{
		Handler:           s.Handler(),
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: 10 * time.Second,
	}
	if s.Log != nil {
		srv.ErrorLog = s.Log.StandardLogger(&hclog.StandardLoggerOptions{InferLevels: true})
	}
	ended := make(chan error, 1)
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { ended <- srv.Serve(ln) })
	select {
	case err := <-ended:
		return fmt.Errorf("serve %s: %w", ln.Addr(), err)
	case <-ctx.Done():
	}
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	if err := srv.Shutdown(limit); err != nil {
		srv.Close()
	}
	s.hijacked.Wait()
	return nil
}
