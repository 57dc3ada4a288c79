package dns

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

// The packets of these tests are built and read by hand: a second opinion on the library.

func header(id uint16, flags uint16, counts ...uint16) []byte {
	b := binary.BigEndian.AppendUint16(nil, id)
	b = binary.BigEndian.AppendUint16(b, flags)
	for i := range 4 {
		var n uint16
		if i < len(counts) {
			n = counts[i]
		}
		b = binary.BigEndian.AppendUint16(b, n)
	}
	return b
}

func wireName(name string) []byte {
	var b []byte
	for label := range strings.SplitSeq(strings.Trim(name, "."), ".") {
		if label != "" {
			b = append(append(b, byte(len(label))), label...)
		}
	}
	return append(b, 0)
}

const rdFlag = 0x0100

func ask4(name string, qtype uint16) []byte { return askClass(name, qtype, 1) }

func askClass(name string, qtype, class uint16) []byte {
	b := append(header(0x1234, rdFlag, 1), wireName(name)...)
	b = binary.BigEndian.AppendUint16(b, qtype)
	return binary.BigEndian.AppendUint16(b, class)
}

func withOPT(packet []byte, size uint16, ttl uint32, options ...byte) []byte {
	b := append(bytes.Clone(packet), 0, 0, 41)
	b = binary.BigEndian.AppendUint16(b, size)
	b = binary.BigEndian.AppendUint32(b, ttl)
	b = binary.BigEndian.AppendUint16(b, uint16(len(options)))
	b[11]++
	return append(b, options...)
}

const doBit = 0x8000

// extendedIn is the extended error in the OPT at the end of a reply, 0 if there is none.
func extendedIn(reply []byte) int {
	i := bytes.LastIndex(reply, []byte{0, 0, 41, maxUDP >> 8, maxUDP & 0xff})
	if i < 0 || len(reply) < i+optSize+6 || !bytes.Equal(reply[i+optSize:i+optSize+2], []byte{0, 15}) {
		return 0
	}
	return int(binary.BigEndian.Uint16(reply[i+optSize+4:]))
}

func rcodeOf(reply []byte) int { return int(reply[3] & 0xf) }
func truncated(b []byte) bool  { return b[2]&2 != 0 }

func handler() *Server {
	s := NewServer(Config{})
	s.Publish(Build(fixture()))
	return s
}

func (s *Server) reply(packet []byte) []byte { return s.ask(container, packet, false).reply }

// ask handles a packet of a client.
func (s *Server) ask(client string, packet []byte, tcp bool) *asked {
	a := &asked{client: ip(client), packet: packet, tcp: tcp, start: s.clock()}
	s.handle(a)
	return a
}

func TestPacketsThatAreNoQuestion(t *testing.T) {
	t.Parallel()
	s := handler()
	good := ask4("web-0.svc", TypeA)
	set := func(at int, value byte) []byte {
		b := bytes.Clone(good)
		b[at] = value
		return b
	}
	const silence = -1
	for _, c := range []struct {
		what   string
		packet []byte
		want   int
	}{
		{"46 a response", set(2, 0x81), silence},
		{"46 11 bytes", good[:11], silence},
		{"46 nothing", nil, silence},
		{"47 a header that promises a question", header(1, rdFlag, 1), FormErr},
		{"47 no question", header(1, rdFlag), FormErr},
		{"47 two questions", append(set(5, 2), good[headerSize:]...), FormErr},
		{"47 65535 questions", append(header(1, 0, 65535), good[headerSize:]...), FormErr},
		{"48 a pointer to itself", append(header(1, 0, 1), 0xc0, 12, 0, 1, 0, 1), FormErr},
		{"48 a pointer into the header", append(header(1, 0, 1), 0xc0, 4, 0, 1, 0, 1), FormErr},
		{"48 a label of 64", append(append(header(1, 0, 1), 64), bytes.Repeat([]byte{'a'}, 70)...), FormErr},
		{"48 a name over 255", append(append(header(1, 0, 1), bytes.Repeat([]byte("\x3f"+strings.Repeat("a", 63)), 5)...), 0, 0, 1, 0, 1), FormErr},
		{"48 a cut name", good[:18], FormErr},
		{"48 a cut type", good[:len(good)-3], FormErr},
		{"48 OPT that ends too late", withOPT(good, 4096, 0)[:len(good)+9], FormErr},
		{"48 OPT promised", set(11, 1), FormErr},
		{"48 two OPTs", withOPT(withOPT(good, 4096, 0), 4096, 0), FormErr},
		{"49 NOTIFY", set(2, 4<<3), NotImp},
		{"49 UPDATE", set(2, 5<<3), NotImp},
		{"49 STATUS", set(2, 2<<3), NotImp},
		{"49 opcode 15", set(2, 15<<3), NotImp},
		{"37 class CH", askClass("version.bind", TypeTXT, 3), Refused},
		{"37 class ANY", askClass("web-0.svc", TypeA, 255), Refused},
		{"36 AXFR", ask4("svc", TypeAXFR), Refused},
		{"36 IXFR", ask4("svc", TypeIXFR), Refused},
		{"a good one", good, NoError},
	} {
		reply := s.reply(c.packet)
		if c.want == silence {
			if reply != nil {
				t.Errorf("%s: answered %x", c.what, reply)
			}
			continue
		}
		if len(reply) < headerSize || rcodeOf(reply) != c.want || !bytes.Equal(reply[:2], c.packet[:2]) {
			t.Errorf("%s: reply %x, want rcode %d", c.what, reply, c.want)
		}
	}
}

func TestFlagsAndQuestionOfAReply(t *testing.T) { // 12, 50
	t.Parallel()
	query := ask4("WeB-0.SvC", TypeA)
	query[3] |= 0x70 // Z, AD, CD
	got := handler().reply(query)
	if flags := binary.BigEndian.Uint16(got[2:]); flags != 0x8580 { // QR AA RD RA
		t.Errorf("flags = %04x, want 8580", flags)
	}
	if !bytes.HasPrefix(got[headerSize:], query[headerSize:]) {
		t.Errorf("question is not echoed: %x", got)
	}
	if rest := hex.EncodeToString(got[len(query):]); rest != "c00c00010001000000050004"+"0a57000a" {
		t.Errorf("answer = %s, want a pointer to the question and 10.87.0.10", rest)
	}
}

func TestTheHostIsNotOfferedRecursion(t *testing.T) { // 58
	t.Parallel()
	got := handler().ask("127.0.0.1", ask4("example.test", TypeA), false).reply
	if rcodeOf(got) != Refused || got[3]&0x80 != 0 {
		t.Errorf("reply flags %x, want REFUSED without RA", got[2:4])
	}
}

func TestEDNS(t *testing.T) {
	t.Parallel()
	query := ask4("web-0.svc", TypeA)
	opt := func(ttl string) string { return "00002904d0" + ttl + "0000" }
	for _, c := range []struct {
		what string
		ask  []byte
		end  string
	}{
		{"38 DO is echoed, our size is 1232", withOPT(query, 4096, doBit), opt("00008000")},
		{"39 version 1 is BADVERS of version 0", withOPT(query, 4096, 1<<16), opt("01000000")},
		{"40 options are not echoed", withOPT(query, 4096, 0, 0, 10, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0xfd, 0xe9, 0, 1, 9), opt("00000000")},
	} {
		if got := hex.EncodeToString(handler().reply(c.ask)); !strings.HasSuffix(got, c.end) {
			t.Errorf("%s: reply %s, want it to end in %s", c.what, got, c.end)
		}
	}
	if got := handler().reply(query); got[11] != 0 {
		t.Errorf("OPT without being asked: %x", got)
	}
}

// crowd has a set of 60 ready members.
func crowd() *Server {
	set := Set{Name: "web", TTL: time.Second, Ports: []Port{{Name: "http", Number: 80}}}
	for i := range 60 {
		addr := netip.AddrFrom4([4]byte{10, 87, 0, byte(10 + i)})
		set.Members = append(set.Members, Member{Name: fmt.Sprintf("web-%d", i), Address: addr, Running: true, Ready: true})
	}
	s := NewServer(Config{})
	s.Publish(Build(Zone{Sets: []Set{set}}))
	return s
}

func TestAnswersThatDoNotFit(t *testing.T) {
	t.Parallel()
	s := crowd()
	a, srv := ask4("web.svc", TypeA), ask4("_http._tcp.web.svc", TypeSRV)
	for _, c := range []struct {
		what        string
		ask         []byte
		tcp         bool
		limit       int
		least, most int
		truncated   bool
		glue, opt   bool
	}{
		{"42 no EDNS", a, false, 512, 25, 59, true, false, false},
		{"43 TCP", a, true, 65535, 60, 60, false, false, false},
		{"44 EDNS 1232", withOPT(a, 1232, 0), false, 1232, 60, 60, false, false, true},
		{"44 EDNS 65535", withOPT(srv, 65535, 0), false, 1232, 25, 59, true, false, true},
		{"41 EDNS 0", withOPT(a, 0, 0), false, 512, 25, 59, true, false, true},
		{"41 EDNS 100", withOPT(a, 100, 0), false, 512, 25, 59, true, false, true},
		{"45 SRV, no EDNS", srv, false, 512, 10, 59, true, false, false},
		{"45 SRV over TCP", srv, true, 65535, 60, 60, false, true, false},
	} {
		got := s.ask("127.0.0.1", c.ask, c.tcp).reply
		answers, extra := count(got, 1), count(got, 3)
		if len(got) > c.limit || answers < c.least || answers > c.most || truncated(got) != c.truncated {
			t.Errorf("%s: %d bytes, %d answers, TC %v", c.what, len(got), answers, truncated(got))
		}
		if glue := c.opt && extra > 1 || !c.opt && extra > 0; glue != c.glue || c.opt && extra < 1 {
			t.Errorf("%s: %d additional records", c.what, extra)
		}
	}
}

func TestGlueGoesBeforeTheAnswerIsCut(t *testing.T) { // 45
	t.Parallel()
	set := Set{Name: "web", Ports: []Port{{Name: "http", Number: 80}}}
	for i := range 11 {
		set.Members = append(set.Members, Member{Name: fmt.Sprintf("web-%d", i), Address: netip.AddrFrom4([4]byte{10, 87, 0, byte(i)}), Running: true, Ready: true})
	}
	s := NewServer(Config{})
	s.Publish(Build(Zone{Sets: []Set{set}}))
	got := s.ask("127.0.0.1", ask4("_http._tcp.web.svc", TypeSRV), false).reply
	if count(got, 1) != 11 || count(got, 3) != 0 || truncated(got) {
		t.Errorf("%d answers, %d glue, TC %v, want 11, 0, false", count(got, 1), count(got, 3), truncated(got))
	}
}

// lastBytes are the last bytes of the addresses of an answer of A records.
func lastBytes(reply, query []byte) []byte {
	var out []byte
	for at := len(query); at+16 <= len(reply) && len(out) < count(reply, 1); at += 16 {
		out = append(out, reply[at+15])
	}
	return out
}

func TestTheOrderTurns(t *testing.T) { // 4, 42
	t.Parallel()
	s, query := handler(), ask4("web."+long, TypeA)
	first := map[byte]int{}
	for range 400 {
		got := lastBytes(s.reply(query), query)
		first[got[0]]++
		slices.Sort(got)
		if !slices.Equal(got, []byte{10, 11}) {
			t.Fatalf("members %v, want 10 and 11", got)
		}
	}
	if first[10] < 120 || first[11] < 120 {
		t.Errorf("first = %v, want it even", first)
	}

	s, query = crowd(), ask4("web.svc", TypeA)
	seen := map[byte]bool{}
	for range 200 {
		reply := s.ask("127.0.0.1", query, false).reply
		for _, b := range lastBytes(reply, query) {
			seen[b] = true
		}
	}
	if len(seen) != 60 {
		t.Errorf("cut answers showed %d of 60 members", len(seen))
	}
}

func TestNothingIsKnownBeforeTheFirstSnapshot(t *testing.T) { // 64
	t.Parallel()
	s := NewServer(Config{})
	for _, name := range []string{"web-0.svc", "web", "web-0.web", "web." + long, "10.0.87.10.in-addr.arpa", "example.test"} {
		a := s.ask(container, withOPT(ask4(name, TypeA), 1232, 0), false)
		if a.foreign || rcodeOf(a.reply) != ServFail || extendedIn(a.reply) != extNotReady {
			t.Errorf("%s: forward %v, reply %x, want SERVFAIL, not ready", name, a.foreign, a.reply)
		}
	}
	if !s.admits(ip(container)) || s.admits(ip("192.0.2.1")) {
		t.Error("before the first snapshot private addresses are answered and public ones are not")
	}
}

func TestWhoIsForwardedFor(t *testing.T) {
	t.Parallel()
	z := fixture()
	z.Networks[1].Internal = true
	cfg := Config{ForwardOff: true}
	on, off := NewServer(Config{}), NewServer(cfg)
	on.Publish(Build(z))
	off.Publish(Build(z))
	elsewhere := NewServer(Config{Domain: "corp.test"})
	elsewhere.Publish(Build(z))
	loop := NewServer(Config{Forward: []string{container}})
	loop.Publish(Build(z))
	for _, c := range []struct {
		what, client, name string
		server             *Server
		want               bool
	}{
		{"54 a container", container, "example.test", on, true},
		{"a name below a set's that no member can have", container, "www.web", on, true},
		{"off", container, "example.test", off, false},
		{"an internal network", stranger, "example.test", on, false},
		{"58 the host", "127.0.0.1", "example.test", on, false},
		{"57 the gateway", "10.87.0.1", "example.test", on, false},
		{"our domain, that the snapshot forgot", container, "a.corp.test", elsewhere, false},
		{"57 a server that we ask ourselves", container, "example.test", loop, false},
	} {
		a := c.server.ask(c.client, withOPT(ask4(c.name, TypeA), 1232, 0), false)
		if a.foreign != c.want {
			t.Errorf("%s: forwarded = %v, want %v", c.what, a.foreign, c.want)
		}
		if !c.want && (rcodeOf(a.reply) != Refused || extendedIn(a.reply) != extNotAuthoritative) {
			t.Errorf("%s: reply %x, want REFUSED, not authoritative", c.what, a.reply)
		}
	}
}

func TestAPanicIsServfail(t *testing.T) {
	t.Parallel()
	s := NewServer(Config{})
	s.Publish(&Snapshot{spaces: map[string]*space{}, zones: []*zone{nil}})
	if got := s.reply(ask4("web", TypeA)); rcodeOf(got) != ServFail {
		t.Errorf("reply %x, want SERVFAIL", got)
	}
}

func FuzzHandle(f *testing.F) {
	good := ask4("web-0.svc", TypeA)
	for _, seed := range [][]byte{good, withOPT(good, 4096, doBit), withOPT(ask4("_http._tcp.web", TypeSRV), 1232, 0), header(1, 0, 1),
		ask4("10.0.87.10.in-addr.arpa", TypePTR), ask4("web."+long, TypeANY), ask4("example.test", TypeA), ask4("", TypeNS)} {
		f.Add(seed, false)
		f.Add(seed, true)
	}
	s := handler()
	s.cfg.Log = func(msg string, kv ...any) { panic(fmt.Sprint(msg, kv)) }
	f.Fuzz(func(t *testing.T, packet []byte, tcp bool) {
		a := s.ask(container, packet, tcp)
		if a.foreign {
			s.failForward(a, extNoReachableAuthority, "nobody answered")
		}
		reply := a.reply
		if reply == nil {
			if len(packet) >= headerSize && !isResponse(packet) {
				t.Fatalf("silence for %x", packet)
			}
			return
		}
		limit := minUDP
		if len(packet) >= headerSize && count(packet, 3) > 0 {
			limit = maxUDP
		}
		if tcp {
			limit = maxTCP
		}
		if len(reply) < headerSize || len(reply) > limit || !isResponse(reply) || !bytes.Equal(reply[:2], packet[:2]) {
			t.Fatalf("reply %x to %x", reply, packet)
		}
	})
}

func BenchmarkHandle(b *testing.B) {
	s, query := handler(), ask4("web-0.svc", TypeA)
	b.ReportAllocs()
	for b.Loop() {
		s.ask(container, query, false)
	}
}

// A process of the host that asks at a gateway has that gateway as its source, and the host's view of that namespace.
func TestTheHostIsToldItsOwnAtAGateway(t *testing.T) {
	t.Parallel()
	z := fixture()
	web := &z.Sets[len(z.Sets)-1] // web-0 of namespace other
	for mode, want := range map[string]string{"direct": "10.87.9.10", "loopback": "127.87.9.10", "none": ""} {
		web.Members[0].Loopback, web.Members[0].NoHost = netip.Addr{}, mode == "none"
		if mode == "loopback" {
			web.Members[0].Loopback = ip("127.87.9.10")
		}
		s := NewServer(Config{})
		s.Publish(Build(z))
		for _, client := range []string{"10.87.8.1", "10.87.0.1", "127.0.0.1"} { // that of another network too
			for _, name := range []string{"web-0.svc", "web-0", "web-0.web.other.svc"} {
				a := &asked{client: ip(client), at: ip("10.87.8.1"), packet: ask4(name, TypeA)}
				s.handle(a)
				got := ""
				if len(a.answer.Records) > 0 {
					got = a.answer.Records[0].Addr.String()
				}
				if got != want || a.view != viewHost {
					t.Errorf("%s: %s asks for %s and is told %q in view %v, want %q in the host's", mode, client, name, got, a.view, want)
				}
			}
		}
		if got := s.ask("10.87.8.1", ask4("example.test", TypeA), false); got.foreign {
			t.Errorf("%s: a question of the host is forwarded", mode)
		}
		if got := s.ask(stranger, ask4("web-0.svc", TypeA), false).answer.Records; len(got) != 1 || got[0].Addr != ip("10.87.9.10") {
			t.Errorf("%s: a container is told %v", mode, got)
		}
	}
}

// A process of the host that asks at the gateway of a namespace sees that namespace, whatever became of its source address.
func TestTheHostSeesTheNamespaceWhoseGatewayItAsks(t *testing.T) {
	t.Parallel()
	s := NewServer(Config{ForwardOff: true})
	s.Publish(Build(fixture()))
	query := ask4("web-0.svc", TypeA)
	for gateway, client := range map[string]string{"10.87.0.1": container, "10.87.8.1": stranger} {
		want := s.ask(client, query, false).reply
		got := &asked{client: ip("127.0.0.1"), at: ip(gateway), packet: query}
		s.handle(got)
		if !bytes.Equal(got.reply, want) || rcodeOf(want) != NoError {
			t.Errorf("at %s: %x, want %x", gateway, got.reply, want)
		}
	}
}
