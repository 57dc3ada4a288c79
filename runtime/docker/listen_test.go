package docker

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestListenerAt(t *testing.T) {
	for _, c := range []struct {
		says, line string
		want       int
	}{
		{"the heading", "  sl  local_address rem_address   st tx_queue rx_queue", 0},
		{"a listener", "   0: 00000000:18EB 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1", 6379},
		{"one of IPv6", "   0: 00000000000000000000000000000000:1F90 00000000000000000000000000000000:0000 0A 00000000:00000000", 8080},
		{"a connection", "   1: 0100007F:18EB 0100007F:A1B2 01 00000000:00000000 00:00000000 00000000     0        0 2", 0},
		{"nonsense", "a b c 0A", 0},
		{"nothing", "", 0},
	} {
		if got := listenerAt(c.line); got != c.want {
			t.Errorf("%s: port %d, want %d", c.says, got, c.want)
		}
	}
}

func TestAwaitPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := awaitPort(ctx, "/proc/self/net", l.Addr().(*net.TCPAddr).Port); err != nil {
		t.Errorf("a port that listens: %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	empty := t.TempDir()
	if err := os.WriteFile(filepath.Join(empty, "tcp"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := awaitPort(ended, empty, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("a port that does not: %v, want the context's end", err)
	}
	if err := awaitPort(ctx, filepath.Join(empty, "gone"), 1); !errors.Is(err, errCannotListen) {
		t.Errorf("a container that is gone: %v, want %v", err, errCannotListen)
	}
}
