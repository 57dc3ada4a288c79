package dns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Config has a working zero value.
type Config struct {
	// Log takes a constant message and pairs of key and value. Default: silence.
	Log func(msg string, kv ...any)
	// Forward are the servers for foreign names, "ip" or "ip:port", asked in this order. Default: those of ResolvConf.
	Forward []string
	// ForwardOff refuses foreign names instead.
	ForwardOff bool
	// ResolvConf is read again whenever it changes. Default "/etc/resolv.conf".
	ResolvConf string
	// Domain is never forwarded, whatever the snapshot calls its own. Default "cluster.local".
	Domain string
}

// Listener is one address to be served, on UDP and TCP.
type Listener struct {
	Addr netip.AddrPort // as bound; port 0 has become a real one
	Err  error          // nil: serving
}

// Counters only grow.
type Counters struct {
	Queries   uint64 // packets from sources that we serve
	Dropped   uint64 // packets and connections from others
	Forwarded uint64
	Failed    uint64 // forwards that got no answer, or were over the limit
}

// Server answers on sockets what the latest snapshot says.
type Server struct {
	cfg      Config
	domain   []string
	forward  *forwarder
	forwards turnstile
	conns    turnstile

	snapshot atomic.Pointer[Snapshot]
	host     atomic.Pointer[map[netip.Addr]bool]     // the host's addresses
	bound    atomic.Pointer[map[netip.AddrPort]bool] // our listeners

	queries, dropped, forwarded, failed atomic.Uint64

	mu        sync.Mutex
	wanted    []netip.AddrPort
	listeners map[netip.AddrPort]*listener // by the address that was wanted
	serve     func(*listener)              // nil unless Run is going
}

// NewServer makes a server that listens nowhere and knows nothing yet.
func NewServer(cfg Config) *Server {
	if cfg.Log == nil {
		cfg.Log = func(string, ...any) {}
	}
	if cfg.Domain == "" {
		cfg.Domain = defaultDomain
	}
	s := &Server{
		cfg:       cfg,
		domain:    splitName(cfg.Domain),
		forward:   newForwarder(cfg),
		forwards:  turnstile{max: maxForwards, maxEach: maxForwardsEach},
		conns:     turnstile{max: maxConns, maxEach: maxConnsEach},
		listeners: map[netip.AddrPort]*listener{},
	}
	s.bound.Store(&map[netip.AddrPort]bool{})
	s.lookAtHost()
	return s
}

// Publish replaces the snapshot for all queries from now on.
func (s *Server) Publish(snap *Snapshot) { s.snapshot.Store(snap) }

// Counters is a copy of the counters.
func (s *Server) Counters() Counters {
	return Counters{
		Queries:   s.queries.Load(),
		Dropped:   s.dropped.Load(),
		Forwarded: s.forwarded.Load(),
		Failed:    s.failed.Load(),
	}
}

// SetListeners says where to serve. While Run is going each new address is bound, or its error is in Status, when it
// returns; before, Run does it first. Calling it again with the same addresses retries those that failed.
func (s *Server) SetListeners(addrs []netip.AddrPort) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wanted = slices.Clone(addrs)
	s.lookAtHost()
	s.reconcile()
}

// Status lists the wanted listeners in the order they were given. Before Run, none of them serves.
func (s *Server) Status() []Listener {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Listener
	for _, addr := range s.wanted {
		l := s.listeners[addr]
		if l == nil {
			out = append(out, Listener{Addr: addr, Err: errNotRunning})
			continue
		}
		out = append(out, l.status())
	}
	return out
}

var errNotRunning = errors.New("dns server is not running")

// Run serves until ctx ends. Everything it started has ended when it returns, and the sockets are closed.
func (s *Server) Run(ctx context.Context) error {
	var serving sync.WaitGroup
	s.start(func(l *listener) { s.serveListener(ctx, &serving, l) })
	defer serving.Wait()
	defer s.stop()

	upkeep := time.NewTicker(upkeepEvery)
	defer upkeep.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-upkeep.C:
			s.upkeep()
		}
	}
}

func (s *Server) start(serve func(*listener)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serve = serve
	s.reconcile()
}

func (s *Server) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serve = nil
	for _, l := range s.listeners {
		l.close()
	}
	clear(s.listeners)
	s.noteBound()
}

func (s *Server) upkeep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lookAtHost()
	s.reconcile()
}

// reconcile closes what is no longer wanted and opens what is not open. The caller holds mu.
func (s *Server) reconcile() {
	if s.serve == nil {
		return
	}
	for addr, l := range s.listeners {
		if !slices.Contains(s.wanted, addr) {
			l.close()
			delete(s.listeners, addr)
		}
	}
	for _, addr := range s.wanted {
		s.open(addr)
	}
	s.noteBound()
}

func (s *Server) open(addr netip.AddrPort) {
	before := s.listeners[addr]
	if before != nil && before.status().Err == nil {
		return
	}
	l := listen(addr)
	s.listeners[addr] = l
	if l.err != nil {
		if before == nil || before.status().Err.Error() != l.err.Error() {
			s.cfg.Log("dns listener failed", "addr", addr, "error", l.err)
		}
		return
	}
	s.cfg.Log("dns listener open", "addr", l.addr)
	s.serve(l)
}

func (s *Server) noteBound() {
	bound := map[netip.AddrPort]bool{}
	for _, l := range s.listeners {
		bound[l.addr] = true
	}
	s.bound.Store(&bound)
}

func (s *Server) lookAtHost() {
	addrs, err := net.InterfaceAddrs()
	if err != nil && s.host.Load() != nil {
		return // keep what we knew
	}
	host := map[netip.Addr]bool{}
	for _, a := range addrs {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil {
			host[prefix.Addr().Unmap()] = true
		}
	}
	s.host.Store(&host)
}

// admits: others get silence, their addresses may be forged.
func (s *Server) admits(client netip.Addr) bool {
	if client.IsLoopback() || (*s.host.Load())[client] {
		return true
	}
	snap := s.snapshot.Load()
	if snap == nil {
		return client.IsPrivate() // they only get SERVFAIL
	}
	return snap.knows(client)
}

// forwardsFor: containers only. The host's own processes have a resolver, and it may be asking us: a loop.
func (s *Server) forwardsFor(snap *Snapshot, client netip.Addr) bool {
	return !s.cfg.ForwardOff && snap.mayLeave(client) && !(*s.host.Load())[client]
}

// handle answers one packet that came to the address at. A query instead of a reply has to be forwarded; neither means
// silence.
func (s *Server) handle(client, at netip.Addr, packet []byte, tcp bool) (foreign *query, reply []byte) {
	defer func() {
		if p := recover(); p != nil {
			s.cfg.Log("dns query panicked", "panic", p, "client", client)
			foreign, reply = nil, headerReply(packet, ServFail)
		}
	}()
	q, reply := decode(packet, tcp)
	if q == nil {
		return nil, reply
	}
	snap := s.snapshot.Load()
	if snap == nil {
		return nil, q.fail(ServFail)
	}
	a := snap.Answer(s.standsFor(snap, client, at), q.name, q.qtype)
	forwards := s.forwardsFor(snap, client)
	if a.Foreign && forwards && !s.inDomain(q.name) {
		return q, nil
	}
	return nil, q.encode(a, forwards)
}

// standsFor is whose view a client has. A process of the host that asks at a gateway sees that network's namespace: the
// source of its packets may be rewritten on the way (NAT), the address that it asked is not.
func (s *Server) standsFor(snap *Snapshot, client, at netip.Addr) netip.Addr {
	if snap.networkOf(client) == nil && (client.IsLoopback() || (*s.host.Load())[client]) && snap.networkOf(at) != nil {
		return at
	}
	return client
}

func (s *Server) inDomain(name string) bool {
	_, ok := under(splitName(name), s.domain)
	return ok
}

// relay forwards a query within the limits and always has a reply.
func (s *Server) relay(ctx context.Context, client netip.Addr, q *query, packet []byte, tcp bool) (reply []byte) {
	defer func() {
		if p := recover(); p != nil {
			s.cfg.Log("dns forward panicked", "panic", p, "client", client)
			reply = headerReply(packet, ServFail)
		}
	}()
	reply, err := s.forward.exchange(ctx, s.forward.servers(s.ours), packet, tcp)
	if err != nil {
		s.failed.Add(1)
		return q.fail(ServFail, edeNoReachableAuthority)
	}
	s.forwarded.Add(1)
	return q.shrink(reply)
}

func (s *Server) ours(addr netip.AddrPort) bool { return (*s.bound.Load())[addr] }

// listener is one address on UDP and TCP. All but err is fixed once it is made.
type listener struct {
	addr netip.AddrPort
	udp  *net.UDPConn
	tcp  *net.TCPListener
	done chan struct{} // closed by close

	mu     sync.Mutex
	err    error
	closed bool
}

// listen binds both sockets or none. With port 0 the TCP port that UDP was given may be taken: then another is tried.
func listen(addr netip.AddrPort) *listener {
	l := &listener{addr: addr, done: make(chan struct{})}
	for range 5 {
		l.udp, l.err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(addr))
		if l.err != nil {
			break
		}
		l.addr = l.udp.LocalAddr().(*net.UDPAddr).AddrPort()
		l.tcp, l.err = net.ListenTCP("tcp", net.TCPAddrFromAddrPort(l.addr))
		if l.err == nil {
			l.udp.SetReadBuffer(udpQueue)
			return l
		}
		l.udp.Close()
		if addr.Port() != 0 {
			break
		}
	}
	l.addr, l.closed = addr, true
	l.err = fmt.Errorf("listen on %s: %w", addr, l.err)
	return l
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
	l.udp.Close()
	l.tcp.Close()
}

// serveListener starts what serves one listener; its context ends with the listener.
func (s *Server) serveListener(ctx context.Context, serving *sync.WaitGroup, l *listener) {
	ctx, cancel := context.WithCancel(ctx)
	serving.Go(func() {
		defer cancel()
		select {
		case <-l.done:
		case <-ctx.Done():
		}
	})
	serving.Go(func() { s.serveUDP(ctx, l) })
	serving.Go(func() { s.serveTCP(ctx, l) })
}

// serveUDP answers our own names one after the other, which takes microseconds, and forwards side by side.
func (s *Server) serveUDP(ctx context.Context, l *listener) {
	var relays sync.WaitGroup
	defer relays.Wait()
	buf := make([]byte, maxTCP)
	for {
		n, from, err := l.udp.ReadFromUDPAddrPort(buf)
		if err != nil {
			l.fail(err)
			return
		}
		client := from.Addr().Unmap()
		if from.Port() == 0 || !s.admits(client) {
			s.dropped.Add(1)
			continue
		}
		s.queries.Add(1)
		q, reply := s.handle(client, l.addr.Addr(), buf[:n], false)
		if q != nil && !s.forwards.enter(client) {
			s.failed.Add(1)
			q, reply = nil, q.fail(ServFail, edeNoReachableAuthority)
		}
		if q == nil {
			l.send(reply, from)
			continue
		}
		packet := slices.Clone(buf[:n])
		relays.Go(func() {
			defer s.forwards.leave(client)
			l.send(s.relay(ctx, client, q, packet, false), from)
		})
	}
}

// send has no one to tell about an error: the client asks again.
func (l *listener) send(reply []byte, to netip.AddrPort) {
	if len(reply) > 0 {
		l.udp.WriteToUDPAddrPort(reply, to)
	}
}

func (s *Server) serveTCP(ctx context.Context, l *listener) {
	var conns sync.WaitGroup
	defer conns.Wait()
	for {
		conn, err := l.tcp.AcceptTCP()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // too many open files, most likely: UDP goes on
			l.pause()
			continue
		}
		client := conn.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().Unmap()
		if !s.admits(client) || !s.conns.enter(client) {
			s.dropped.Add(1)
			conn.Close()
			continue
		}
		conns.Go(func() {
			defer s.conns.leave(client)
			s.serveConn(ctx, conn, client, l.addr.Addr())
		})
	}
}

func (l *listener) pause() {
	select {
	case <-l.done:
	case <-time.After(100 * time.Millisecond):
	}
}

// serveConn answers in the order of the questions, until the client is idle for too long or has asked enough.
func (s *Server) serveConn(ctx context.Context, conn net.Conn, client, at netip.Addr) {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	for range maxConnQueries {
		conn.SetDeadline(time.Now().Add(connIdle))
		packet, err := readFrame(conn)
		if err != nil {
			return
		}
		s.queries.Add(1)
		q, reply := s.handle(client, at, packet, true)
		if q != nil {
			reply = s.relayWithin(ctx, client, q, packet)
		}
		if len(reply) == 0 {
			return
		}
		conn.SetDeadline(time.Now().Add(connIdle))
		if writeFrame(conn, reply) != nil {
			return
		}
	}
}

func (s *Server) relayWithin(ctx context.Context, client netip.Addr, q *query, packet []byte) []byte {
	if !s.forwards.enter(client) {
		s.failed.Add(1)
		return q.fail(ServFail, edeNoReachableAuthority)
	}
	defer s.forwards.leave(client)
	return s.relay(ctx, client, q, packet, true)
}
