package e2e_test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"
)

// The design's case 61: a member comes back under its address, and who still holds a
// connection to the one before is told, rather than left to wait.
func TestPeersOfAMemberThatCameBackAreReset(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(spec{replicas: 1})
	address := w.address("web-0")
	at := netip.AddrPortFrom(netip.MustParseAddr(address), 8080).String()
	conn, err := net.DialTimeout("tcp", at, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const question = "GET /healthz HTTP/1.1\r\nHost: web-0\r\n\r\n"
	ask := func() error {
		_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
		if _, err := conn.Write([]byte(question)); err != nil {
			return err
		}
		_, err := conn.Read(make([]byte, 4096))
		return err
	}
	if err := ask(); err != nil {
		t.Fatalf("before: %v", err)
	}
	before := w.ids("web")
	w.ok("restart", "web-0")
	w.changedAll(before, w.ids("web"))
	if got := w.address("web-0"); got != address {
		t.Errorf("it came back at %s, and was at %s", got, address)
	}
	w.await("the old connection to be reset", func() error {
		err := ask()
		if errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
			return nil
		}
		return fmt.Errorf("it says %v", err)
	})
}
