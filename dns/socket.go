package dns

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"time"
)

// listener is one address on UDP and TCP. All but err is fixed once it is made.
type listener struct {
	addr   netip.AddrPort
	udps   []*net.UDPConn
	tcp    *net.TCPListener
	handed bool          // its sockets are somebody else's too, and outlive us
	done   chan struct{} // closed by close

	mu     sync.Mutex
	err    error
	closed bool
}

// listen binds all sockets of an address or none. TCP comes first: several sockets may share a UDP port, and it is TCP's
// that keeps a second daemon out. With port 0 the UDP port that TCP was given may be taken: then another is tried.
func listen(addr netip.AddrPort) *listener {
	var err error
	for range 5 {
		var l *listener
		if l, err = tryListen(addr); err == nil {
			return l
		}
		if addr.Port() != 0 {
			break
		}
	}
	return &listener{addr: addr, closed: true, err: fmt.Errorf("listen on %s: %w", addr, err)}
}

func tryListen(addr netip.AddrPort) (*listener, error) {
	tcp, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(addr))
	if err != nil {
		return nil, err
	}
	l := &listener{addr: tcp.Addr().(*net.TCPAddr).AddrPort(), tcp: tcp, done: make(chan struct{})}
	if l.udps, err = listenUDP(l.addr, socketsPerAddress()); err != nil {
		tcp.Close()
		return nil, err
	}
	return l, nil
}

// socketsPerAddress is one per core where the kernel spreads queries over them.
func socketsPerAddress() int {
	if !spreads {
		return 1
	}
	return min(runtime.GOMAXPROCS(0), maxSockets)
}

func listenUDP(addr netip.AddrPort, n int) (udps []*net.UDPConn, err error) {
	cfg := net.ListenConfig{}
	if n > 1 {
		cfg.Control = sharePort
	}
	for range n {
		conn, err := cfg.ListenPacket(context.Background(), "udp", addr.String())
		if err != nil {
			closeAll(udps)
			return nil, err
		}
		udps = append(udps, conn.(*net.UDPConn))
	}
	widen(udps)
	return udps, nil
}

// widen asks for room for a burst; what the kernel does not grant is missed by nobody but a burst.
func widen(udps []*net.UDPConn) {
	for _, udp := range udps {
		udp.SetReadBuffer(udpQueue)
	}
}

func closeAll(udps []*net.UDPConn) {
	for _, udp := range udps {
		udp.Close()
	}
}

func (l *listener) status() Listener {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Listener{Addr: l.addr, Err: l.err}
}

func (l *listener) close() { l.fail(nil) }

// fail closes the sockets; upkeep opens them again if err is not nil.
func (l *listener) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	l.closed, l.err = true, err
	close(l.done)
	closeAll(l.udps)
	l.tcp.Close()
}

func (l *listener) pause() {
	select {
	case <-l.done:
	case <-time.After(100 * time.Millisecond):
	}
}
