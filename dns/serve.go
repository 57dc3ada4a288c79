package dns

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// asked is one packet on its way to its reply.
type asked struct {
	client, at netip.Addr // who asked, and at which address of ours
	tcp        bool
	packet     []byte
	start      time.Duration // on the server's clock

	query   *query // nil: it could not be read
	view    viewKind
	zone    zoneKind
	answer  Answer
	foreign bool   // no reply yet: it has to be forwarded
	reply   []byte // nil otherwise: silence
}

// source is what is known of a client.
type source struct {
	view     view
	admitted bool // others get silence, their addresses may be forged
	forwards bool // foreign names are asked elsewhere for it
}

// sourceOf: a process of the host is told what the host is told, wherever it asks. One that asks at a gateway has that
// gateway's address as its source, and sees its network's namespace: the source of packets may be rewritten on the way
// (NAT), the address that was asked is not. Nothing is forwarded for the host's processes: they have
// a resolver, and it may be asking us, a loop. Before the first snapshot private addresses are admitted, to be told that
// nothing is known.
func (s *Server) sourceOf(snap *Snapshot, client, at netip.Addr) (src source) {
	if snap == nil {
		src.admitted = client.IsLoopback() || client.IsPrivate() || s.isHosts(client) || s.isAllowed(client)
		return src
	}
	v := snap.view(client)
	onHost := v.host || s.isHosts(client)
	src.admitted = onHost || v.network != nil || v.member != nil || s.isAllowed(client)
	src.forwards = !onHost && !s.cfg.ForwardOff && v.mayLeave()
	if onHost && v.member == nil {
		if snap.networkOf(at) != nil {
			v = snap.view(at)
		}
		v.host = true
	}
	src.view = v
	return src
}

func (s *Server) isHosts(client netip.Addr) bool { return (*s.host.Load())[client] }

func (s *Server) isAllowed(client netip.Addr) bool {
	return slices.ContainsFunc(s.cfg.AllowFrom, func(p netip.Prefix) bool { return p.Contains(client) })
}

func (s *Server) admits(client netip.Addr) bool {
	return s.sourceOf(s.snapshot.Load(), client, netip.Addr{}).admitted
}

// clock is the time since the server was made: half the price of the time of day.
func (s *Server) clock() time.Duration { return time.Since(s.made) }

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
	for _, udp := range l.udps {
		serving.Go(func() { s.serveUDP(ctx, l, udp) })
	}
	serving.Go(func() { s.serveTCP(ctx, l) })
}

// serveUDP answers our own names one after the other, which takes microseconds, and forwards side by side.
func (s *Server) serveUDP(ctx context.Context, l *listener, udp *net.UDPConn) {
	r := reader{server: s, at: l.addr.Addr(), udp: udp}
	defer r.relays.Wait()
	b, err := newBatch(udp)
	for err == nil {
		var n int
		n, err = b.receive()
		now := s.clock()
		for i := range n {
			packet, from := b.packet(i)
			b.reply(i, r.reply(ctx, packet, from, now))
		}
		b.send()
	}
	l.fail(err)
}

// reader answers the packets of one socket.
type reader struct {
	server *Server
	at     netip.Addr // where the socket is bound
	udp    *net.UDPConn
	relays sync.WaitGroup
	sc     scratch
}

// reply is good until it is called again; nil is silence, or a reply that comes later.
func (r *reader) reply(ctx context.Context, packet []byte, from netip.AddrPort, now time.Duration) []byte {
	s, client := r.server, from.Addr().Unmap()
	snap := s.snapshot.Load()
	src := s.sourceOf(snap, client, r.at)
	if reply, ok := s.lets(src, netip.AddrPortFrom(client, from.Port()), now, packet); !ok {
		return reply
	}
	if reply := s.fast(&r.sc, snap, src, packet, now); reply != nil {
		return reply
	}
	a := asked{client: client, at: r.at, packet: packet, start: now}
	s.handle(&a)
	if !a.foreign {
		s.finish(&a)
		return a.reply
	}
	a.packet = slices.Clone(packet)
	s.relayAside(ctx, &r.relays, a, func(reply []byte) { send(r.udp, reply, from) })
	return nil
}

// lets says whether a packet is looked at, and counts it. One that is not may have a reply all the same.
func (s *Server) lets(src source, from netip.AddrPort, now time.Duration, packet []byte) (reply []byte, ok bool) {
	if from.Port() == 0 || s.ours(from) {
		s.tally.drops[dropLoop].Add(1)
		return nil, false
	}
	if !src.admitted {
		s.tally.drops[dropSource].Add(1)
		return nil, false
	}
	switch s.meter.ask(from.Addr(), now) {
	case served:
		s.tally.queries.Add(1)
		return nil, true
	case cut:
		if reply := cutReply(packet); reply != nil {
			s.tally.cut.Add(1)
			return reply, false
		}
	}
	s.tally.drops[dropRate].Add(1)
	return nil, false
}

// send has no one to tell about an error: the client asks again.
func send(udp *net.UDPConn, reply []byte, to netip.AddrPort) {
	if len(reply) > 0 {
		udp.WriteToUDPAddrPort(reply, to)
	}
}

// fast answers without allocating, or gives nil. While someone traces it gives nil: a trace says why.
func (s *Server) fast(sc *scratch, snap *Snapshot, src source, packet []byte, start time.Duration) (reply []byte) {
	if snap == nil || s.watching.Load() > 0 {
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			s.cfg.Log("dns query panicked on the fast way", "panic", p)
			reply = nil
		}
	}()
	reply, zone, rcode := sc.answer(snap, src.view, packet, src.forwards)
	if reply != nil {
		s.tally.fast.Add(1)
		s.tally.answered(src.view.kind(), zone, rcode, s.clock()-start)
	}
	return reply
}

// handle gives a packet its reply, or finds that it has to be forwarded.
func (s *Server) handle(a *asked) {
	defer func() {
		if p := recover(); p != nil {
			s.cfg.Log("dns query panicked", "panic", p, "client", a.client)
			a.foreign, a.reply = false, headerReply(a.packet, ServFail)
		}
	}()
	a.view, a.zone = viewOther, zoneNone
	a.query, a.reply = decode(a.packet, a.tcp)
	if a.query == nil {
		return
	}
	snap := s.snapshot.Load()
	if snap == nil {
		a.answer = Answer{Rcode: ServFail, Extended: extNotReady, Why: "nothing is known yet"}
		a.reply = a.query.encode(a.answer, false)
		return
	}
	src := s.sourceOf(snap, a.client, a.at)
	a.view = src.view.kind()
	a.answer = snap.answer(src.view, a.query.name, a.query.qtype)
	a.zone = snap.kindOfName(a.query.name, a.answer)
	if a.answer.Foreign {
		a.answer, a.foreign = s.elsewhere(a, src)
	}
	if !a.foreign {
		a.reply = a.query.encode(a.answer, src.forwards)
	}
}

// elsewhere says what becomes of a name that is not ours.
func (s *Server) elsewhere(a *asked, src source) (answer Answer, forwarded bool) {
	answer = Answer{Rcode: Refused, Foreign: true, Extended: extNotAuthoritative}
	switch {
	case s.inDomain(a.query.name):
		answer.Why = "not a name of ours, and its domain never leaves the host"
	case s.cfg.ForwardOff:
		answer.Why = "not a name of ours, and none is forwarded"
	case !src.forwards:
		answer.Why = "not a name of ours, and nothing is forwarded for this client"
	case s.forward.isServer(a.client):
		answer.Why = "not a name of ours, and asked by a server that we would ask: a loop"
	default:
		return Answer{Foreign: true, Why: "not a name of ours: forwarded"}, true
	}
	return answer, false
}

func (s *Server) inDomain(name string) bool {
	_, ok := under(splitName(name), s.domain)
	return ok
}

// finish counts a packet that has its reply, and tells the watchers.
func (s *Server) finish(a *asked) {
	if len(a.reply) < headerSize {
		return
	}
	rcode, took := int(a.reply[3]&0xf), s.clock()-a.start
	s.tally.answered(a.view, a.zone, rcode, took)
	if s.watching.Load() == 0 {
		return
	}
	q := Query{Time: time.Now().Add(-took), Client: a.client, At: a.at, TCP: a.tcp, Rcode: RcodeName(rcode), Records: []string{},
		Why: a.answer.Why, Foreign: a.answer.Foreign, Cut: a.reply[2]&0x02 != 0, Took: took}
	if a.query != nil {
		q.Name, q.Type, q.Records = a.query.name, TypeName(a.query.qtype), lines(a.answer.Records)
	}
	if q.Why == "" {
		q.Why = "could not be read as a question of class IN"
	}
	s.tell(q)
}

// relayAside forwards without holding up who reads packets.
func (s *Server) relayAside(ctx context.Context, relays *sync.WaitGroup, a asked, reply func([]byte)) {
	if !s.enterForwards(&a) {
		s.finish(&a)
		reply(a.reply)
		return
	}
	relays.Go(func() {
		defer s.forwards.leave(a.client)
		s.relay(ctx, &a)
		s.finish(&a)
		reply(a.reply)
	})
}

// enterForwards gives the packet a failure when too many are under way. Otherwise forwards must be left again.
func (s *Server) enterForwards(a *asked) bool {
	if s.forwards.enter(a.client) {
		return true
	}
	s.failForward(a, extNoReachableAuthority, "too many questions are being forwarded")
	return false
}

func (s *Server) failForward(a *asked, extended uint16, why string) {
	s.tally.failed.Add(1)
	a.answer = Answer{Rcode: ServFail, Foreign: true, Extended: extended, Why: why}
	a.reply = a.query.encode(a.answer, true)
}

// relay forwards a query and always has a reply.
func (s *Server) relay(ctx context.Context, a *asked) {
	defer func() {
		if p := recover(); p != nil {
			s.cfg.Log("dns forward panicked", "panic", p, "client", a.client)
			a.reply = headerReply(a.packet, ServFail)
		}
	}()
	reply, err := s.forward.exchange(ctx, s.forward.servers(s.ours), a.packet, a.tcp)
	if err != nil {
		s.failForward(a, extendedOf(err), err.Error())
		return
	}
	s.tally.forwarded.Add(1)
	a.reply = a.query.shrink(reply)
}

// extendedOf: nobody answered in time, or the network says why nobody could.
func extendedOf(err error) uint16 {
	var network *net.OpError
	if errors.As(err, &network) && !network.Timeout() {
		return extNetworkError
	}
	return extNoReachableAuthority
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
		if why, ok := s.letsConnect(client); !ok {
			s.tally.drops[why].Add(1)
			conn.Close()
			continue
		}
		conns.Go(func() {
			defer s.conns.leave(client)
			s.serveConn(ctx, conn, client, l.addr.Addr())
		})
	}
}

func (s *Server) letsConnect(client netip.Addr) (why int, ok bool) {
	if !s.admits(client) {
		return dropSource, false
	}
	return dropConns, s.conns.enter(client)
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
		s.tally.queries.Add(1)
		a := asked{client: client, at: at, tcp: true, packet: packet, start: s.clock()}
		s.handle(&a)
		if a.foreign {
			s.relayHere(ctx, &a)
		}
		s.finish(&a)
		if len(a.reply) == 0 {
			return
		}
		conn.SetDeadline(time.Now().Add(connIdle))
		if writeFrame(conn, a.reply) != nil {
			return
		}
	}
}

func (s *Server) relayHere(ctx context.Context, a *asked) {
	if s.enterForwards(a) {
		defer s.forwards.leave(a.client)
		s.relay(ctx, a)
	}
}
