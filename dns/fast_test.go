package dns

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// message is a reply taken apart by hand: names without compression and in lower case, the records of a section sorted.
type message struct {
	flags    uint16
	question string
	sections [3][]string
}

func readMessage(b []byte) (m message, err error) {
	if len(b) < headerSize {
		return m, fmt.Errorf("%d bytes", len(b))
	}
	m.flags = binary.BigEndian.Uint16(b[2:])
	at := headerSize
	for range count(b, 0) {
		end := headerSize + questionSize(b)
		m.question += string(b[at:end])
		at = end
	}
	for section := range m.sections {
		for range count(b, section+1) {
			var r string
			if r, at, err = readRecord(b, at); err != nil {
				return m, err
			}
			m.sections[section] = append(m.sections[section], r)
		}
		slices.Sort(m.sections[section])
	}
	if at != len(b) {
		return m, fmt.Errorf("%d bytes behind the records", len(b)-at)
	}
	return m, nil
}

func readRecord(b []byte, at int) (string, int, error) {
	owner, at, err := readWireName(b, at)
	if err != nil || at+10 > len(b) {
		return "", at, fmt.Errorf("record at %d: %v", at, err)
	}
	head, size := b[at:at+8], int(binary.BigEndian.Uint16(b[at+8:]))
	data := at + 10
	if data+size > len(b) {
		return "", at, fmt.Errorf("data at %d is cut", data)
	}
	text := fmt.Sprintf("%s %x ", owner, head)
	if binary.BigEndian.Uint16(head) != TypeSOA {
		return text + fmt.Sprintf("%x", b[data:data+size]), data + size, nil
	}
	server, next, err := readWireName(b, data)
	if err != nil {
		return "", at, err
	}
	mailbox, next, err := readWireName(b, next)
	if err != nil {
		return "", at, err
	}
	return text + fmt.Sprintf("%s %s %x", server, mailbox, b[next:data+size]), data + size, nil
}

func readWireName(b []byte, at int) (name string, next int, err error) {
	for range 128 {
		switch {
		case at >= len(b):
			return "", 0, fmt.Errorf("name at %d is cut", at)
		case b[at] == 0:
			return lowerName(name), max(next, at+1), nil
		case b[at] >= 0xc0:
			next = max(next, at+2)
			at = int(binary.BigEndian.Uint16(b[at:]) & 0x3fff)
			continue
		case at+1+int(b[at]) > len(b):
			return "", 0, fmt.Errorf("label at %d is cut", at)
		}
		name += string(b[at+1:at+1+int(b[at])]) + "."
		at += 1 + int(b[at])
		if next == 0 && at < len(b) && b[at] == 0 {
			return lowerName(name), at + 1, nil
		}
	}
	return "", 0, fmt.Errorf("name does not end")
}

func (s *Server) fastReply(client netip.Addr, packet []byte) []byte {
	snap := s.snapshot.Load()
	return s.fast(new(scratch), snap, s.sourceOf(snap, client, netip.Addr{}), packet, 0)
}

// checkFast: what the fast way answers at all, it answers as the slow way does.
func checkFast(t interface {
	Helper()
	Fatalf(string, ...any)
}, s *Server, client netip.Addr, packet []byte) (answered bool) {
	t.Helper()
	fast := s.fastReply(client, packet)
	if fast == nil {
		return false
	}
	a := &asked{client: client, packet: packet}
	s.handle(a)
	if a.foreign {
		t.Fatalf("%x is foreign, the fast way answers %x", packet, fast)
	}
	got, err := readMessage(fast)
	if err != nil {
		t.Fatalf("fast reply %x: %v", fast, err)
	}
	want, err := readMessage(a.reply)
	if err != nil {
		t.Fatalf("slow reply %x: %v", a.reply, err)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) || !bytes.Equal(fast[:2], packet[:2]) || len(fast) > a.query.limit {
		t.Fatalf("%q for %s\nfast %q\nslow %q", packet, client, fmt.Sprint(got), fmt.Sprint(want))
	}
	return true
}

// dual is the fixture with what it lacks: both families, several networks, a loopback address, a set
// that is kept from the host, one not seen yet.
func dual() Zone {
	z := fixture()
	z.Networks[0].More = []netip.Prefix{netip.MustParsePrefix("fd00:87::/64")}
	z.Networks = append(z.Networks, Network{Subnet: netip.MustParsePrefix("172.30.0.0/24"), Gateway: ip("172.30.0.1"),
		Others: map[string][]netip.Addr{"shop": {ip("172.30.0.9")}}})
	z.Sets[0].Members[0].Also = []netip.Addr{ip("fd00:87::10"), ip("172.30.0.10")}
	z.Sets[0].Members[1].Loopback = ip("127.87.0.2")
	z.Sets = append(z.Sets, Set{Name: "vault", Ports: []Port{{Name: "api", Number: 8200}},
		Members: []Member{{Name: "vault-0", Address: ip("10.87.1.40"), Running: true, Ready: true, NoHost: true}}})
	z.Sets = append(z.Sets, Set{Name: "old", Stale: true, Members: []Member{{Name: "old-0", Address: ip("10.87.1.30")}}})
	return z
}

func TestTheFastWayTakesWhatIsAskedMost(t *testing.T) {
	t.Parallel()
	s := NewServer(Config{})
	s.Publish(Build(dual()))
	for _, c := range []struct {
		what   string
		client string
		packet []byte
		fast   bool
	}{
		{"a member", container, ask4("web-0.svc", TypeA), true},
		{"its AAAA", container, ask4("web-0.svc", TypeAAAA), true},
		{"no AAAA of another", container, ask4("web-1.svc", TypeAAAA), true},
		{"case", container, ask4("WeB-0.SvC", TypeA), true},
		{"the long name", container, ask4("web-0.web."+long, TypeA), true},
		{"without suffix", container, ask4("web-0.web", TypeA), true},
		{"the set", container, ask4("web.svc", TypeA), true},
		{"the set for its member", "10.87.0.12", ask4("web", TypeA), true},
		{"a denied member", container, ask4("web-2.svc", TypeA), true},
		{"a denied member without suffix", container, ask4("web-2.web", TypeA), true},
		{"a search list's miss", container, ask4("web-0.svc."+long, TypeA), true},
		{"an empty name", container, ask4("_tcp.web."+long, TypeA), true},
		{"EDNS", container, withOPT(ask4("web-0.svc", TypeA), 4096, doBit), true},
		{"a single label of nobody", container, ask4("nosuch", TypeA), true},
		{"another network's client", "172.30.0.8", ask4("web-0.svc", TypeA), true},
		{"the host", "127.0.0.1", ask4("web-1.svc", TypeA), true},
		{"the host, of what it is not told", "127.0.0.1", ask4("vault-0.svc", TypeA), true},
		{"the set of that", "127.0.0.1", ask4("vault.svc", TypeA), true},
		{"an option", container, withOPT(ask4("web-0.svc", TypeA), 4096, 0, 0, 10, 0, 0), false},
		{"EDNS 1", container, withOPT(ask4("web-0.svc", TypeA), 4096, 1<<16), false},
		{"SRV", container, ask4("web.svc", TypeSRV), false},
		{"an escape", container, ask4("*.svc", TypeA), false},
		{"a foreign name", container, ask4("example.test", TypeA), false},
		{"another container", container, ask4("redis", TypeA), false},
		{"a set not seen yet", container, ask4("old.svc", TypeA), false},
		{"the apex", container, ask4("svc", TypeA), false},
		{"an address", container, ask4("99.0.87.10.in-addr.arpa", TypeA), false},
		{"class CH", container, askClass("web-0.svc", TypeA, 3), false},
		{"bytes behind", container, append(ask4("web-0.svc", TypeA), 0), false},
		{"a cut question", container, ask4("web-0.svc", TypeA)[:24], false},
		{"a header", container, header(1, 0, 1), false},
	} {
		if got := checkFast(t, s, ip(c.client), c.packet); got != c.fast {
			t.Errorf("%s: answered fast = %v, want %v", c.what, got, c.fast)
		}
	}
}

func TestTheFastWayLeavesWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	s := crowd()
	client := ip("127.0.0.1")
	if checkFast(t, s, client, ask4("web.svc", TypeA)) {
		t.Error("60 addresses fit into 512 bytes")
	}
	if !checkFast(t, s, client, withOPT(ask4("web.svc", TypeA), 1232, 0)) {
		t.Error("60 addresses do not fit into 1232 bytes")
	}
}

func TestTheFastWayTurnsTheOrder(t *testing.T) { // 4
	t.Parallel()
	s, query := handler(), ask4("web.svc", TypeA)
	first := map[byte]int{}
	for range 400 {
		first[lastBytes(s.fastReply(ip(container), query), query)[0]]++
	}
	if len(first) != 2 || first[10] < 120 || first[11] < 120 {
		t.Errorf("first = %v, want it even", first)
	}
}

func TestTheFastWayAllocatesNothing(t *testing.T) {
	s := NewServer(Config{})
	s.Publish(Build(dual()))
	sc := new(scratch)
	for _, query := range [][]byte{ask4("WEB-0.svc", TypeA), ask4("web-1.svc", TypeAAAA), ask4("web.svc", TypeA), ask4("web-9.web."+long, TypeA),
		ask4("web-0.web", TypeA), withOPT(ask4("web."+long, TypeA), 1232, 0), ask4("nosuch", TypeA)} {
		allocated := testing.AllocsPerRun(100, func() {
			snap, now := s.snapshot.Load(), s.clock()
			src := s.sourceOf(snap, ip(container), ip("10.87.0.1"))
			if s.meter.ask(ip(container), now) != ignored && s.fast(sc, snap, src, query, now) == nil {
				t.Fatalf("%q was left to the slow way", query)
			}
		})
		if allocated != 0 {
			t.Errorf("%q: %v allocations", query, allocated)
		}
	}
}

func TestWhoTracesIsToldEverything(t *testing.T) {
	t.Parallel()
	s := handler()
	s.watching.Add(1)
	if s.fastReply(ip(container), ask4("web-0.svc", TypeA)) != nil {
		t.Error("answered the fast way, which tells nobody")
	}
}

func TestFastAndSlowAgreeOnAnyZone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		pick := func(name string, from ...string) string { return rapid.SampledFrom(from).Draw(t, name) }
		s := NewServer(Config{ForwardOff: rapid.Bool().Draw(t, "off")})
		s.Publish(Build(drawZone(t)))
		var labels []string
		for range rapid.IntRange(1, 4).Draw(t, "labels") {
			labels = append(labels, pick("label", "web", "db", "default", "shared", "web-0", "db-1", "_http", "_tcp", "com", "nobody"))
		}
		name := strings.Join(labels, ".") + pick("zone", "", ".svc", ".svc.cluster.local")
		packet := ask4(name, rapid.SampledFrom([]uint16{TypeA, TypeAAAA}).Draw(t, "type"))
		if rapid.Bool().Draw(t, "edns") {
			packet = withOPT(packet, uint16(rapid.IntRange(0, 5000).Draw(t, "size")), 0)
		}
		checkFast(t, s, ip(pick("client", "127.0.0.1", "10.87.0.10", "10.87.0.11", "10.87.4.9")), packet)
	})
}

func FuzzFastAgainstSlow(f *testing.F) {
	for _, name := range []string{"web-0.svc", "web.svc", "WEB-9.svc", "web-0.web." + long, "x.y.z", "nosuch", "_tcp.web.svc", "old.svc", "vault-0.svc"} {
		f.Add(ask4(name, TypeA), byte(0))
		f.Add(withOPT(ask4(name, TypeAAAA), 1232, doBit), byte(1))
	}
	s := NewServer(Config{})
	s.cfg.Log = func(msg string, kv ...any) { panic(fmt.Sprint(msg, kv)) }
	s.Publish(Build(dual()))
	clients := []string{container, "10.87.0.12", stranger, "127.0.0.1", "172.30.0.8", "fd00:87::99"}
	f.Fuzz(func(t *testing.T, packet []byte, client byte) {
		checkFast(t, s, ip(clients[int(client)%len(clients)]), packet)
	})
}

func BenchmarkFast(b *testing.B) {
	s, sc, query, client := handler(), new(scratch), ask4("web-0.svc", TypeA), ip(container)
	b.ReportAllocs()
	for b.Loop() {
		snap := s.snapshot.Load()
		s.fast(sc, snap, s.sourceOf(snap, client, netip.Addr{}), query, s.clock())
	}
}
