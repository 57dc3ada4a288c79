package dns

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var anyPort = netip.MustParseAddrPort("127.0.0.1:0")

// containerIP is a loopback address that no interface has, in a network that loopback publishes as managed.
const containerIP = "127.0.0.2"

func loopback() *Snapshot {
	z := fixture()
	z.Networks = append(z.Networks, Network{Subnet: netip.MustParsePrefix("127.0.0.0/8")})
	return Build(z)
}

// run serves on a free port until the test ends.
func run(t *testing.T, cfg Config) (*Server, netip.AddrPort) {
	t.Helper()
	s := NewServer(cfg)
	s.Publish(loopback())
	start(t, s)
	s.SetListeners([]netip.AddrPort{anyPort})
	return s, boundTo(t, s)
}

func start(t *testing.T, s *Server) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { s.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	for { // until Run has begun, SetListeners would not wait for it
		s.mu.Lock()
		going := s.serve != nil
		s.mu.Unlock()
		if going {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func boundTo(t *testing.T, s *Server) netip.AddrPort {
	t.Helper()
	status := s.Status()
	if len(status) != 1 || status[0].Err != nil || status[0].Addr.Port() == 0 {
		t.Fatalf("status = %v, want one that serves", status)
	}
	return status[0].Addr
}

func dial(t *testing.T, network, from string, to netip.AddrPort) net.Conn {
	t.Helper()
	d := net.Dialer{Timeout: 5 * time.Second}
	d.LocalAddr = &net.UDPAddr{IP: net.ParseIP(from)}
	if network == "tcp" {
		d.LocalAddr = &net.TCPAddr{IP: net.ParseIP(from)}
	}
	conn, err := d.Dial(network, to.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(10 * time.Second))
	return conn
}

func exchangeUDP(t *testing.T, from string, to netip.AddrPort, query []byte) []byte {
	t.Helper()
	conn := dial(t, "udp", from, to)
	conn.Write(query)
	buf := make([]byte, maxTCP)
	n, err := conn.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	return buf[:n]
}

func TestServesUDPAndTCP(t *testing.T) {
	t.Parallel()
	_, addr := run(t, Config{})
	query := ask4("web-0.svc", TypeA)
	if got := exchangeUDP(t, "127.0.0.1", addr, query); rcodeOf(got) != NoError || count(got, 1) != 1 {
		t.Errorf("UDP: %x", got)
	}
	conn := dial(t, "tcp", "127.0.0.1", addr)
	for range 3 { // 51: pipelined
		writeFrame(conn, query)
	}
	for range 3 {
		if got, err := readFrame(conn); err != nil || count(got, 1) != 1 {
			t.Errorf("TCP: %x, %v", got, err)
		}
	}
}

func TestGosOwnResolverFindsPeers(t *testing.T) { // 66: what peer-finder does
	t.Parallel()
	_, addr := run(t, Config{})
	r := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, addr.String())
	}}
	_, records, err := r.LookupSRV(t.Context(), "", "", "web.")
	if err != nil || len(records) != 4 {
		t.Fatalf("LookupSRV: %v, %v", records, err)
	}
	for _, record := range records {
		if labels := strings.Split(record.Target, "."); labels[1] != "web" || labels[2] != "default" {
			t.Errorf("target %s, want web-N.web.default first", record.Target)
		}
	}
	if addrs, err := r.LookupHost(t.Context(), "web-0.svc."); err != nil || len(addrs) != 1 || addrs[0] != "10.87.0.10" {
		t.Errorf("LookupHost: %v, %v", addrs, err)
	}
	if names, err := r.LookupAddr(t.Context(), "10.87.0.10"); err != nil || len(names) != 1 || names[0] != "web-0.web."+long {
		t.Errorf("LookupAddr: %v, %v", names, err)
	}
}

func TestTwoQuestionsWithOneIDFromOnePort(t *testing.T) { // 69
	t.Parallel()
	_, addr := run(t, Config{})
	conn := dial(t, "udp", "127.0.0.1", addr)
	for _, qtype := range []uint16{TypeA, TypeAAAA} {
		conn.Write(ask4("web-0.svc", qtype))
	}
	answers := map[uint16]int{}
	for range 2 {
		buf := make([]byte, 512)
		n, err := conn.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		end := headerSize + questionSize(buf[:n])
		answers[binary.BigEndian.Uint16(buf[end-4:])] = count(buf, 1)
	}
	if len(answers) != 2 || answers[TypeA] != 1 || answers[TypeAAAA] != 0 {
		t.Errorf("answers per type = %v", answers)
	}
}

func TestBadPacketsDoNotEndTheServer(t *testing.T) { // 46, 47, 48
	t.Parallel()
	_, addr := run(t, Config{})
	conn := dial(t, "udp", "127.0.0.1", addr)
	for _, packet := range [][]byte{{}, {1}, make([]byte, 11), header(1, 0x8000, 1), header(1, 0, 1)} {
		conn.Write(packet)
	}
	buf := make([]byte, 512)
	if n, err := conn.Read(buf); err != nil || rcodeOf(buf[:n]) != FormErr {
		t.Errorf("header of a question: %x, %v", buf[:n], err)
	}
	if got := exchangeUDP(t, "127.0.0.1", addr, ask4("web-0.svc", TypeA)); count(got, 1) != 1 {
		t.Errorf("afterwards: %x", got)
	}
}

func TestPublishIsSeenAtOnce(t *testing.T) { // 59, 60
	t.Parallel()
	s, addr := run(t, Config{})
	z := fixture()
	z.Sets[0].Members[0].Leaving, z.Sets[0].Members[2].Ready = true, true
	s.Publish(Build(z))
	query := ask4("web.svc", TypeA)
	got := lastBytes(exchangeUDP(t, "127.0.0.1", addr, query), query)
	if len(got) != 2 || bytes.IndexByte(got, 12) < 0 || bytes.IndexByte(got, 10) >= 0 {
		t.Errorf("members %v, want 11 and 12", got)
	}
}

func TestOthersGetSilence(t *testing.T) { // 52
	t.Parallel()
	s := NewServer(Config{})
	s.Publish(Build(fixture()))
	for client, want := range map[string]bool{"10.87.0.99": true, "10.87.9.10": true, "127.0.0.1": true, "127.0.0.9": true,
		"192.0.2.1": false, "10.99.0.1": false, "172.17.0.2": false, "2001:db8::1": false} {
		if got := s.admits(ip(client)); got != want {
			t.Errorf("admits %s = %v, want %v", client, got, want)
		}
	}
}

// Their addresses may be forged: a reply, even that of a limit, would hit somebody else.
func TestPacketsOfOthersAreDropped(t *testing.T) { // 52
	t.Parallel()
	s := NewServer(Config{})
	from := netip.MustParseAddrPort("192.0.2.1:1000")
	for range 3 * defaultRate {
		if reply, got := s.lets(source{}, from, 0, ask4("web-0.svc", TypeA)); got || reply != nil {
			t.Fatalf("a packet of others is looked at: %v, and answered with %x", got, reply)
		}
	}
	if n := s.Counters().Drops["source"]; n != 3*defaultRate {
		t.Errorf("%d dropped for their source, want %d", n, 3*defaultRate)
	}
}

func TestOurOwnSocketsAreNotAnswered(t *testing.T) {
	t.Parallel()
	s, addr := run(t, Config{})
	src := source{admitted: true}
	for from, want := range map[netip.AddrPort]bool{
		addr:                               false, // two servers that answer each other never stop
		netip.AddrPortFrom(addr.Addr(), 0): false,
		netip.MustParseAddrPort("127.0.0.9:1000"): true,
	} {
		if _, got := s.lets(src, from, 0, nil); got != want {
			t.Errorf("a packet from %s is looked at: %v, want %v", from, got, want)
		}
	}
	if n := s.Counters().Drops["loop"]; n != 2 {
		t.Errorf("%d dropped, want 2", n)
	}
}

func TestListenersFollowTheList(t *testing.T) {
	t.Parallel()
	s := NewServer(Config{})
	s.Publish(loopback())
	s.SetListeners([]netip.AddrPort{anyPort})
	if got := s.Status(); len(got) != 1 || !errors.Is(got[0].Err, errNotRunning) {
		t.Errorf("before Run: %v", got)
	}
	start(t, s)
	first := boundTo(t, s)
	s.SetListeners([]netip.AddrPort{anyPort})
	if again := boundTo(t, s); again != first {
		t.Errorf("the same list moved the listener from %s to %s", first, again)
	}

	taken := first
	absent := netip.MustParseAddrPort("192.0.2.1:53")
	s.SetListeners([]netip.AddrPort{anyPort, taken, absent})
	status := s.Status()
	if status[0].Err != nil || status[1].Err == nil || status[1].Addr != taken || status[2].Err == nil {
		t.Errorf("with a taken and an absent address: %v", status)
	}

	s.SetListeners(nil)
	if got := s.Status(); len(got) != 0 {
		t.Errorf("after an empty list: %v", got)
	}
	udp, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(first))
	if err != nil {
		t.Fatalf("the socket is still held: %v", err)
	}
	defer udp.Close()

	// A failed address is tried again, by the same list or by the upkeep of Run.
	s.SetListeners([]netip.AddrPort{first})
	if got := s.Status(); got[0].Err == nil {
		t.Fatalf("status = %v, want the error of a taken port", got)
	}
	udp.Close()
	s.upkeep()
	boundTo(t, s)
}

func TestConnectionsAreLimitedPerSource(t *testing.T) { // 51
	t.Parallel()
	_, addr := run(t, Config{})
	query := ask4("web-0.svc", TypeA)
	for range maxConnsEach {
		conn := dial(t, "tcp", "127.0.0.1", addr)
		writeFrame(conn, query)
		if _, err := readFrame(conn); err != nil {
			t.Fatal(err)
		}
	}
	conn := dial(t, "tcp", "127.0.0.1", addr)
	writeFrame(conn, query)
	if _, err := readFrame(conn); err == nil {
		t.Error("one connection more than allowed was answered")
	}
	other := dial(t, "tcp", "127.0.0.3", addr)
	writeFrame(other, query)
	if _, err := readFrame(other); err != nil {
		t.Errorf("another source: %v", err)
	}
}

func TestAHalfQueryIsClosed(t *testing.T) { // 51; takes connIdle
	t.Parallel()
	if testing.Short() {
		t.Skip("waits for the idle time")
	}
	_, addr := run(t, Config{})
	conn := dial(t, "tcp", "127.0.0.1", addr)
	conn.Write([]byte{0})
	start := time.Now()
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) || time.Since(start) > connIdle+time.Second {
		t.Errorf("after %s: %v", time.Since(start), err)
	}
}

// upstream is another server: it answers each packet with what reply makes of it.
type upstream struct {
	addr  netip.AddrPort
	asked atomic.Int64
}

func newUpstream(t *testing.T, reply func(query []byte) [][]byte) *upstream {
	t.Helper()
	udp, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(anyPort))
	if err != nil {
		t.Fatal(err)
	}
	u := &upstream{addr: udp.LocalAddr().(*net.UDPAddr).AddrPort()}
	tcp, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(u.addr))
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() { u.serveUDP(udp, reply) })
	serving.Go(func() { u.serveTCP(tcp, reply) })
	t.Cleanup(func() { udp.Close(); tcp.Close(); serving.Wait() })
	return u
}

func (u *upstream) serveUDP(udp *net.UDPConn, reply func([]byte) [][]byte) {
	buf := make([]byte, maxTCP)
	for {
		n, from, err := udp.ReadFromUDPAddrPort(buf)
		if err != nil {
			return
		}
		u.asked.Add(1)
		for _, packet := range reply(bytes.Clone(buf[:n])) {
			udp.WriteToUDPAddrPort(packet, from)
		}
	}
}

func (u *upstream) serveTCP(tcp *net.TCPListener, reply func([]byte) [][]byte) {
	for {
		conn, err := tcp.Accept()
		if err != nil {
			return
		}
		query, err := readFrame(conn)
		if err == nil {
			u.asked.Add(1)
			for _, packet := range reply(query) {
				writeFrame(conn, packet)
			}
		}
		conn.Close()
	}
}

// with makes the query a response with an rcode and records of 192.0.2.1.
func with(query []byte, rcode byte, records int) []byte {
	b := bytes.Clone(query)
	b[2] |= 0x80
	b[3] = rcode
	b[7] = byte(records)
	for range records {
		b = append(b, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 9, 0, 4, 192, 0, 2, 1)
	}
	return b
}

func says(rcode byte, records int) func([]byte) [][]byte {
	return func(query []byte) [][]byte { return [][]byte{with(query, rcode, records)} }
}

func silent([]byte) [][]byte { return nil }

func to(servers ...*upstream) Config {
	cfg := Config{Forward: []string{}}
	for _, u := range servers {
		cfg.Forward = append(cfg.Forward, u.addr.String())
	}
	return cfg
}

func TestForeignNamesAreForwarded(t *testing.T) { // 23, 54
	t.Parallel()
	query := ask4("example.test", TypeA)
	for _, c := range []struct {
		what           string
		servers        []*upstream
		rcode, answers int
	}{
		{"54 an answer", []*upstream{newUpstream(t, says(NoError, 1))}, NoError, 1},
		{"54 NXDOMAIN", []*upstream{newUpstream(t, says(NXDomain, 0))}, NXDomain, 0},
		{"54 SERVFAIL", []*upstream{newUpstream(t, says(ServFail, 0))}, ServFail, 0},
		{"the next server after SERVFAIL", []*upstream{newUpstream(t, says(ServFail, 0)), newUpstream(t, says(NoError, 2))}, NoError, 2},
		{"SERVFAIL of both", []*upstream{newUpstream(t, says(Refused, 0)), newUpstream(t, says(ServFail, 0))}, ServFail, 0},
		{"no server", nil, ServFail, 0},
	} {
		_, addr := run(t, to(c.servers...))
		got := exchangeUDP(t, containerIP, addr, query)
		if rcodeOf(got) != c.rcode || count(got, 1) != c.answers || !bytes.Equal(got[:2], query[:2]) {
			t.Errorf("%s: %x", c.what, got)
		}
		if len(c.servers) > 0 && (got[3]&0x80 == 0 || got[2]&4 != 0) {
			t.Errorf("%s: flags %x, want RA, and AA as the other server", c.what, got[2:4])
		}
		conn := dial(t, "tcp", containerIP, addr)
		writeFrame(conn, query)
		if got, err := readFrame(conn); err != nil || rcodeOf(got) != c.rcode || count(got, 1) != c.answers {
			t.Errorf("%s over TCP: %x, %v", c.what, got, err)
		}
	}
}

func TestOwnNamesAreNeverForwarded(t *testing.T) { // 22, 31
	t.Parallel()
	u := newUpstream(t, says(NoError, 1))
	_, addr := run(t, to(u))
	for _, name := range []string{"web-9.svc", "web-9.web", "web-9.web.default", "_x._tcp.web", "_tcp.db", "nosuch." + long, "unknownlabel", "99.0.87.10.in-addr.arpa", "x.local", "x.onion", "x.invalid", "localhost"} {
		if got := exchangeUDP(t, containerIP, addr, ask4(name, TypeA)); rcodeOf(got) != NXDomain {
			t.Errorf("%s: %x, want NXDOMAIN", name, got)
		}
	}
	if n := u.asked.Load(); n != 0 {
		t.Errorf("the other server was asked %d times", n)
	}
}

func TestForgedAnswersAreIgnored(t *testing.T) { // 56
	t.Parallel()
	u := newUpstream(t, func(query []byte) [][]byte {
		wrongID, wrongQuestion := with(query, NoError, 3), with(query, NoError, 3)
		wrongID[0] ^= 1
		wrongQuestion[headerSize+1] ^= 1
		return [][]byte{{}, wrongID, wrongQuestion, query, with(query, NoError, 1)}
	})
	_, addr := run(t, to(u))
	if got := exchangeUDP(t, containerIP, addr, ask4("example.test", TypeA)); count(got, 1) != 1 {
		t.Errorf("%x, want the one true answer", got)
	}
}

func TestEachForwardHasItsOwnID(t *testing.T) { // 56
	t.Parallel()
	var mu sync.Mutex
	ids := map[string]bool{}
	u := newUpstream(t, func(query []byte) [][]byte {
		mu.Lock()
		defer mu.Unlock()
		ids[string(query[:2])] = true
		return [][]byte{with(query, NoError, 1)}
	})
	_, addr := run(t, to(u))
	for range 20 {
		exchangeUDP(t, containerIP, addr, ask4("example.test", TypeA))
	}
	mu.Lock()
	defer mu.Unlock()
	if len(ids) < 18 {
		t.Errorf("%d ids for 20 forwards", len(ids))
	}
}

func TestASilentServerIsServfailAndHoldsUpNobody(t *testing.T) { // 55
	t.Parallel()
	if forwardTotal >= 4500*time.Millisecond {
		t.Errorf("forwards may take %s, clients wait for 5 s", forwardTotal)
	}
	s := NewServer(to(newUpstream(t, silent)))
	s.forward.total, s.forward.try = 3*time.Second, 2*time.Second
	s.Publish(loopback())
	start(t, s)
	s.SetListeners([]netip.AddrPort{anyPort})
	addr := boundTo(t, s)

	waiting := dial(t, "udp", containerIP, addr)
	begin := time.Now()
	waiting.Write(withOPT(ask4("example.test", TypeA), 1232, 0))
	if got := exchangeUDP(t, containerIP, addr, ask4("web-0.svc", TypeA)); count(got, 1) != 1 {
		t.Errorf("own name meanwhile: %x", got)
	}
	if took := time.Since(begin); took > 1500*time.Millisecond {
		t.Errorf("own name took %s", took)
	}
	buf := make([]byte, 512)
	n, err := waiting.Read(buf)
	if err != nil || rcodeOf(buf) != ServFail || extendedIn(buf[:n]) != extNoReachableAuthority {
		t.Errorf("foreign name: %x, %v, want SERVFAIL with EDE 22", buf[:n], err)
	}
	if s.Counters().Failed != 1 {
		t.Errorf("counters = %+v", s.Counters())
	}
}

func TestForwardsAreLimitedPerSource(t *testing.T) {
	t.Parallel()
	u := newUpstream(t, silent)
	_, addr := run(t, to(u))
	conn := dial(t, "udp", containerIP, addr)
	for range maxForwardsEach + 1 {
		conn.Write(ask4("example.test", TypeA))
	}
	buf := make([]byte, 512)
	conn.SetReadDeadline(time.Now().Add(time.Second)) // long before the others give up
	if _, err := conn.Read(buf); err != nil || rcodeOf(buf) != ServFail {
		t.Errorf("one more than allowed: %x, %v", buf[:4], err)
	}
}

func TestWeAreNeverForwardedTo(t *testing.T) { // 57
	t.Parallel()
	var mu sync.Mutex
	var logged []string
	path := filepath.Join(t.TempDir(), "resolv.conf")
	s, addr := run(t, Config{ResolvConf: path, Log: func(msg string, kv ...any) {
		mu.Lock()
		defer mu.Unlock()
		logged = append(logged, msg)
	}})
	s.forward.mu.Lock()
	s.forward.fixed = []netip.AddrPort{addr}
	s.forward.mu.Unlock()
	for range 2 {
		if got := exchangeUDP(t, containerIP, addr, ask4("example.test", TypeA)); rcodeOf(got) != ServFail {
			t.Errorf("%x, want SERVFAIL", got)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if n := strings.Count(strings.Join(logged, "\n"), "is ourselves"); n != 1 {
		t.Errorf("%d warnings in %q, want one", n, logged)
	}
}

func TestTheHostsResolvConfIsFollowed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "resolv.conf")
	f := newForwarder(Config{ResolvConf: path, Log: func(string, ...any) {}})
	nobody := func(netip.AddrPort) bool { return false }
	list := func() string {
		var out []string
		for _, s := range f.servers(nobody) {
			out = append(out, s.String())
		}
		return strings.Join(out, " ")
	}
	write := func(text string) {
		if err := os.WriteFile(path+".new", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	if got := list(); got != "" {
		t.Errorf("no file: %q", got)
	}
	write("# x\nsearch a b\nnameserver 192.0.2.1\nnameserver bad\nnameserver fe80::1%eth0\noptions ndots:1\n")
	if got, want := list(), "192.0.2.1:53 [fe80::1%eth0]:53"; got != want {
		t.Errorf("servers %q, want %q", got, want)
	}
	write("nameserver 192.0.2.1\nnameserver 192.0.2.2\nnameserver 192.0.2.3\nnameserver 192.0.2.4\n")
	if got, want := list(), "192.0.2.1:53 192.0.2.2:53 192.0.2.3:53"; got != want {
		t.Errorf("after a change %q, want %q", got, want)
	}
	os.Remove(path)
	if got := list(); !strings.HasPrefix(got, "192.0.2.1") {
		t.Errorf("while it is replaced %q, want the last list", got)
	}
}

func TestForwardListIsRead(t *testing.T) {
	t.Parallel()
	var skipped int
	f := newForwarder(Config{Forward: []string{"192.0.2.1", "192.0.2.2:5353", "[::1]:54", "nonsense"}, Log: func(string, ...any) { skipped++ }})
	got := f.servers(func(netip.AddrPort) bool { return false })
	want := []netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:53"), netip.MustParseAddrPort("192.0.2.2:5353"), netip.MustParseAddrPort("[::1]:54")}
	if len(got) != 3 || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] || skipped != 1 {
		t.Errorf("servers %v, want %v", got, want)
	}
}

func TestALargeForwardedAnswerIsCutToAUsefulOne(t *testing.T) {
	t.Parallel()
	u := newUpstream(t, says(NoError, 100))
	_, addr := run(t, to(u))
	got := exchangeUDP(t, containerIP, addr, ask4("example.test", TypeA))
	if len(got) > minUDP || !truncated(got) || count(got, 1) < 25 {
		t.Errorf("%d bytes, %d answers, TC %v", len(got), count(got, 1), truncated(got))
	}
}

func TestRunEndsWhileForwardsAreWaiting(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 10)
	u := newUpstream(t, func([]byte) [][]byte { asked <- struct{}{}; return nil })
	s := NewServer(to(u))
	s.Publish(loopback())
	s.SetListeners([]netip.AddrPort{anyPort})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- s.Run(ctx) }()
	for s.Status()[0].Err != nil {
		time.Sleep(time.Millisecond)
	}
	addr := boundTo(t, s)
	dial(t, "udp", containerIP, addr).Write(ask4("example.test", TypeA))
	writeFrame(dial(t, "tcp", containerIP, addr), ask4("example.test", TypeA))
	<-asked
	<-asked
	begin := time.Now()
	cancel()
	if err := <-ended; err != nil || time.Since(begin) > 3*time.Second {
		t.Errorf("Run ended after %s: %v", time.Since(begin), err)
	}
}

func TestServesOverIPv6(t *testing.T) {
	t.Parallel()
	probe, err := net.ListenPacket("udp", "[::1]:0")
	if err != nil {
		t.Skip("no IPv6 on loopback: ", err)
	}
	probe.Close()
	s := NewServer(Config{})
	s.Publish(Build(fixture()))
	start(t, s)
	s.SetListeners([]netip.AddrPort{netip.MustParseAddrPort("[::1]:0")})
	addr := boundTo(t, s)
	query := ask4("web-0.svc", TypeA)
	for _, network := range []string{"udp", "tcp"} {
		if !lookUp(t, network, addr, query) {
			t.Errorf("no answer over %s at %s", network, addr)
		}
	}
}
