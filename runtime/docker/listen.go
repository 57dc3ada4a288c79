package docker

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/stsd/stsd/runtime/pods"
)

var _ pods.Listener = (*Host)(nil)

// errCannotListen says that the sockets of a container are out of sight.
var errCannotListen = errors.New("the container's sockets cannot be seen from here")

// How often the sockets of a container that starts are read, and how long.
const (
	listenEvery  = 5 * time.Millisecond
	listenLater  = 50 * time.Millisecond
	listenEager  = 5 * time.Second
	listenGiveUp = 2 * time.Minute
)

// Listening reads the kernel's table of the container's sockets, a file of some
// lines, until the port is in it. A probe would cost a connection each time, and the
// server a log line.
func (h *Host) Listening(ctx context.Context, t pods.Target, port int) error {
	if h.remote || h.blind.Load() {
		return errCannotListen
	}
	c, err := h.cli().ContainerInspect(ctx, t.ID)
	if err != nil {
		return fmt.Errorf("inspect container %s: %w", shortID(t.ID), engineError(err))
	}
	if c.State == nil || c.State.Pid <= 0 {
		return errCannotListen
	}
	return awaitPort(ctx, fmt.Sprintf("/proc/%d/net", c.State.Pid), port)
}

// awaitPort looks into the tables of a folder until a socket listens on the port.
func awaitPort(ctx context.Context, dir string, port int) error {
	begin := time.Now()
	tick := time.NewTicker(listenEvery)
	defer tick.Stop()
	for {
		open, err := listens(dir, port)
		if open || err != nil {
			return err
		}
		switch since := time.Since(begin); {
		case since > listenGiveUp:
			return errCannotListen
		case since > listenEager:
			tick.Reset(listenLater)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// listens tells whether a TCP socket of the network listens on the port, at
// whatever address.
func listens(dir string, port int) (bool, error) {
	for _, table := range []string{"tcp", "tcp6"} {
		f, err := os.Open(dir + "/" + table)
		if errors.Is(err, os.ErrNotExist) && table == "tcp6" {
			continue // a kernel without IPv6
		}
		if err != nil {
			return false, fmt.Errorf("%w: %w", errCannotListen, err)
		}
		found := false
		for lines := bufio.NewScanner(f); lines.Scan() && !found; {
			found = listenerAt(lines.Text()) == port
		}
		f.Close()
		if found {
			return true, nil
		}
	}
	return false, nil
}

// listenerAt is the port of a line of /proc/net/tcp in state LISTEN; 0 for others
// (proc(5): "sl local_address rem_address st …", hexadecimal).
func listenerAt(line string) int {
	f := strings.Fields(line)
	if len(f) < 4 || f[3] != "0A" {
		return 0
	}
	_, port, _ := strings.Cut(f[1], ":")
	n, err := strconv.ParseUint(port, 16, 16)
	if err != nil {
		return 0
	}
	return int(n)
}
