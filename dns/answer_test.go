package dns

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

func ip(s string) netip.Addr { return netip.MustParseAddr(s) }

const long = "default.svc.cluster.local."

// fixture is the one of the design's test table: publishing "ready" unless a case is about something else.
func fixture() Zone {
	member := func(name, addr string, running, ready bool) Member {
		return Member{Name: name, Address: ip(addr), Running: running, Ready: ready}
	}
	web := Set{
		Namespace: "default", Name: "web", MemberNames: Ready, SetName: Ready,
		TTL: 5 * time.Second, NegativeTTL: 2 * time.Second,
		Ports: []Port{{Name: "http", Protocol: "tcp", Number: 8080}, {Number: 9000}},
		Members: []Member{
			member("web-0", "10.87.0.10", true, true),
			member("web-1", "10.87.0.11", true, true),
			member("web-2", "10.87.0.12", true, false),
		},
	}
	like := func(name string, members ...Member) Set {
		s := web
		s.Name, s.Ports, s.Members = name, nil, members
		return s
	}
	db := like("db", member("db-0", "10.87.1.10", true, false))
	db.MemberNames, db.SetName = Running, Running
	other := like("web", member("web-0", "10.87.9.10", true, true))
	other.Namespace = "other"
	return Zone{
		Sets: []Set{web, db, like("none"), like("one", member("one-0", "10.87.1.20", true, true)), other},
		Networks: []Network{
			{Subnet: netip.MustParsePrefix("10.87.0.0/22"), Gateway: ip("10.87.0.1"),
				Others: map[string][]netip.Addr{"Redis": {ip("10.87.2.9")}, "web": {ip("10.87.2.8")}, "other": {ip("10.87.2.7")}}},
			{Namespace: "other", Subnet: netip.MustParsePrefix("10.87.8.0/22"), Gateway: ip("10.87.8.1")},
		},
		Serial: 7,
	}
}

var types = map[string]uint16{"A": TypeA, "AAAA": TypeAAAA, "SRV": TypeSRV, "PTR": TypePTR, "SOA": TypeSOA, "NS": TypeNS,
	"TXT": TypeTXT, "ANY": TypeANY, "AXFR": TypeAXFR, "IXFR": TypeIXFR, "MX": 15, "DS": 43, "HTTPS": 65, "CAA": 257, "TYPE65280": 65280}

const (
	container = "10.87.0.99" // of namespace default, no member
	stranger  = "10.87.8.99" // of namespace other
)

func soaOf(zone string) string { return " / " + zone + " 2 SOA ns.dns.cluster.local. 7 2" }

func TestAnswersOfTheDesign(t *testing.T) {
	t.Parallel()
	nodata := func(zone string) string { return "NOERROR" + soaOf(zone) }
	nx := func(zone string) string { return "NXDOMAIN" + soaOf(zone) }
	const cluster, foreign = "cluster.local.", "REFUSED"
	for _, c := range []struct{ what, client, query, want string }{
		{"1 a member", container, "web-0.svc. A", "NOERROR | web-0.svc. 5 A 10.87.0.10"},
		{"2 a set lists ready members", container, "web.svc. A", "NOERROR | web.svc. 5 A 10.87.0.10 | web.svc. 5 A 10.87.0.11"},
		{"3 a member's long name", container, "web-0.web." + long + " A", "NOERROR | web-0.web." + long + " 5 A 10.87.0.10"},
		{"4 a set's long name", container, "web." + long + " A", "NOERROR | web." + long + " 5 A 10.87.0.10 | web." + long + " 5 A 10.87.0.11"},
		{"5 a member that is not ready", container, "web-2.svc. A", nx("svc.")},
		{"6 a running member, publish running", container, "db-0.svc. A", "NOERROR | db-0.svc. 5 A 10.87.1.10"},
		{"6 its set", container, "db.svc. A", "NOERROR | db.svc. 5 A 10.87.1.10"},
		{"7 AAAA of an A is NODATA", container, "web-0.svc. AAAA", nodata("svc.")},
		{"8 AAAA of a hidden member", container, "web-2.svc. AAAA", nx("svc.")},
		{"9 an ordinal that is not there", container, "web-9.svc. A", nx("svc.")},
		{"10 a set of nobody", container, "none.svc. A", nx("svc.")},
		{"10 its long name", container, "none." + long + " A", nx(cluster)},
		{"11 no such set", container, "nosuch.svc. A", nx("svc.")},
		{"11 its long name", container, "nosuch." + long + " A", nx(cluster)},
		{"12 case is kept", container, "WeB-0.SvC. A", "NOERROR | WeB-0.SvC. 5 A 10.87.0.10"},
		{"13 a port", container, "_http._tcp.web." + long + " SRV", "NOERROR | _http._tcp.web." + long + " 5 SRV 0 1 8080 web-0.web." + long +
			" | _http._tcp.web." + long + " 5 SRV 0 1 8080 web-1.web." + long + " + web-0.web." + long + " 5 A 10.87.0.10 + web-1.web." + long + " 5 A 10.87.0.11"},
		{"14 targets are in the zone asked", container, "_http._tcp.web.svc. SRV", "NOERROR | _http._tcp.web.svc. 5 SRV 0 1 8080 web-0.svc." +
			" | _http._tcp.web.svc. 5 SRV 0 1 8080 web-1.svc. + web-0.svc. 5 A 10.87.0.10 + web-1.svc. 5 A 10.87.0.11"},
		{"14 of another namespace", container, "_http._tcp.web.other.svc. SRV", nx("svc.")},
		{"16 a set without ports", container, "one." + long + " SRV", nodata(cluster)},
		{"17 no such port", container, "_nosuch._tcp.web." + long + " SRV", nx(cluster)},
		{"17 no such protocol", container, "_http._udp.web." + long + " SRV", nx(cluster)},
		{"18 an empty non-terminal", container, "_tcp.web." + long + " A", nodata(cluster)},
		{"19 a port has no address", container, "_http._tcp.web." + long + " A", nodata(cluster)},
		{"20 SRV of a member", container, "one-0.one." + long + " SRV", nodata(cluster)},
		{"21 an address", container, "10.0.87.10.in-addr.arpa. PTR", "NOERROR | 10.0.87.10.in-addr.arpa. 5 PTR web-0.web." + long},
		{"22 an address that is not ready", container, "12.0.87.10.in-addr.arpa. PTR", nx("0.87.10.in-addr.arpa.")},
		{"22 a free address", container, "99.0.87.10.in-addr.arpa. PTR", nx("0.87.10.in-addr.arpa.")},
		{"22 another spelling is another name", container, "010.0.87.10.in-addr.arpa. PTR", nx("0.87.10.in-addr.arpa.")},
		{"22 the parent of addresses", container, "0.87.10.in-addr.arpa. PTR", nodata("0.87.10.in-addr.arpa.")},
		{"22 a parent of nothing", container, "3.87.10.in-addr.arpa. PTR", nx("3.87.10.in-addr.arpa.")},
		{"23 a foreign address", container, "1.2.0.192.in-addr.arpa. PTR", foreign},
		{"24 SOA", container, "cluster.local. SOA", "NOERROR | cluster.local. 2 SOA ns.dns.cluster.local. 7 2"},
		{"24 NS", container, "cluster.local. NS", "NOERROR | cluster.local. 5 NS ns.dns.cluster.local. + ns.dns.cluster.local. 5 A 10.87.0.1"},
		{"24 the name server is the client's gateway", stranger, "ns.dns.cluster.local. A", "NOERROR | ns.dns.cluster.local. 5 A 10.87.8.1"},
		{"25 apex", container, "cluster.local. A", nodata(cluster)},
		{"25 svc", container, "svc.cluster.local. A", nodata(cluster)},
		{"25 namespace", container, long + " A", nodata(cluster)},
		{"25 short apex", container, "svc. A", nodata("svc.")},
		{"26 no such namespace", container, "nons.svc.cluster.local. A", nx(cluster)},
		{"27 another namespace", container, "web.other.svc.cluster.local. A", "NOERROR | web.other.svc.cluster.local. 5 A 10.87.9.10"},
		{"28 the client's namespace", stranger, "web.svc. A", "NOERROR | web.svc. 5 A 10.87.9.10"},
		{"28 of a name without suffix", stranger, "web. A", "NOERROR | web. 5 A 10.87.9.10"},
		{"28 default for the host", "127.0.0.1", "web-1. A", "NOERROR | web-1. 5 A 10.87.0.11"},
		{"29 version", container, "dns-version.cluster.local. TXT", `NOERROR | dns-version.cluster.local. 28800 TXT "1.1.0"`},
		{"30 web.", container, "one. A", "NOERROR | one. 5 A 10.87.1.20"},
		{"30 web-0.web.", container, "web-0.web. A", "NOERROR | web-0.web. 5 A 10.87.0.10"},
		{"30 web-0.", container, "web-0. A", "NOERROR | web-0. 5 A 10.87.0.10"},
		{"30 web-0.web.default.", container, "web-0.web.default. A", "NOERROR | web-0.web.default. 5 A 10.87.0.10"},
		{"30 web.default.svc.", container, "one.default.svc. A", "NOERROR | one.default.svc. 5 A 10.87.1.20"},
		{"30 web-0.web.other.svc.", container, "web-0.web.other.svc. A", "NOERROR | web-0.web.other.svc. 5 A 10.87.9.10"},
		{"30 a known member that is hidden", container, "web-2.web. A", nx(".")},
		{"31 single labels stay here", container, "unknownlabel. A", nx(".")},
		{"31 .local stays here", container, "printer.local. A", nx(".")},
		{"31 localhost stays here", container, "a.localhost. A", nx(".")},
		{"32 no wildcards", container, "*.web." + long + " A", nx(cluster)},
		{"32 no any", container, "any.web." + long + " A", nx(cluster)},
		{"33 too many labels", container, "a.b.c.d.web." + long + " A", nx(cluster)},
		{"34 MX", container, "web-0.svc. MX", nodata("svc.")},
		{"34 TXT", container, "web-0.svc. TXT", nodata("svc.")},
		{"34 HTTPS", container, "web-0.svc. HTTPS", nodata("svc.")},
		{"34 CAA", container, "web-0.svc. CAA", nodata("svc.")},
		{"34 DS", container, "web-0.svc. DS", nodata("svc.")},
		{"34 an unknown type", container, "web-0.svc. TYPE65280", nodata("svc.")},
		{"35 ANY", container, "web-0.svc. ANY", `NOERROR | web-0.svc. 5 HINFO "RFC8482"`},
		{"35 ANY of nothing", container, "web-9.svc. ANY", nx("svc.")},
		{"36 AXFR", container, "svc. AXFR", "REFUSED"},
		{"36 IXFR", container, "svc. IXFR", "REFUSED"},
		{"54 foreign", container, "example.test. A", foreign},
		{"54 foreign, below a name of ours", container, "mail.web.default. A", foreign},
		{"54 the root", container, ". NS", foreign},
		{"an escaped dot is no dot", container, `a\.svc. A`, nx(".")},
		{"an escaped dot in front", container, `web\.web.svc. A`, nx("svc.")},
		{"another container", container, "redis. A", "NOERROR | redis. 5 A 10.87.2.9"},
		{"another container, by its own name only", container, "redis.svc. A", nx("svc.")},
		{"another container that is called like a namespace", container, "other. A", "NOERROR | other. 5 A 10.87.2.7"},
		{"another container, from elsewhere", stranger, "redis. A", nx(".")},
		{"own names come first", container, "web. A", "NOERROR | web. 5 A 10.87.0.10 | web. 5 A 10.87.0.11"},
	} {
		name, qtype, _ := strings.Cut(c.query, " ")
		got := Build(fixture()).Answer(ip(c.client), name, types[qtype])
		if got.String() != c.want {
			t.Errorf("%s: %s for %s\n got %s (%s)\nwant %s", c.what, c.query, c.client, got, got.Why, c.want)
		}
		if got.Why == "" {
			t.Errorf("%s: no reason given", c.what)
		}
		if got.Foreign != (c.want == foreign && !strings.HasSuffix(qtype, "XFR")) {
			t.Errorf("%s: foreign = %v", c.what, got.Foreign)
		}
	}
}

func TestTheSetsNameHasAllPortsOfAllListedMembers(t *testing.T) { // 15, 66
	t.Parallel()
	got := Build(fixture()).Answer(ip(container), "web", TypeSRV)
	var lines []string
	for _, r := range got.Records {
		lines = append(lines, fmt.Sprintf("%d %s", r.Port, r.Target))
	}
	want := []string{"8080 web-0.web." + long, "9000 web-0.web." + long, "8080 web-1.web." + long, "9000 web-1.web." + long}
	if !slices.Equal(lines, want) {
		t.Errorf("SRV of web = %q, want %q", lines, want)
	}
}

func TestAMembersNameHasItsPorts(t *testing.T) { // 20
	t.Parallel()
	got := Build(fixture()).Answer(ip(container), "web-0.web."+long, TypeSRV)
	if len(got.Records) != 2 || len(got.Glue) != 1 {
		t.Errorf("SRV of web-0 = %s, want both ports and one address", got)
	}
}

// modes answers for a set of five: ready, running, down, leaving and without address.
func modes(memberNames, setName string) *Snapshot {
	return Build(Zone{Sets: []Set{{Name: "db", Service: "dbs", MemberNames: memberNames, SetName: setName, Members: []Member{
		{Name: "db-0", Address: ip("10.87.0.10"), Running: true, Ready: true},
		{Name: "db-1", Address: ip("10.87.0.11"), Running: true},
		{Name: "db-2", Address: ip("10.87.0.12")},
		{Name: "db-3", Address: ip("10.87.0.13"), Running: true, Ready: true, Leaving: true},
		{Name: "db-4"},
	}}}})
}

func ordinals(a Answer) string {
	var out []string
	for _, r := range a.Records {
		out = append(out, string(r.Addr.String()[len("10.87.0.1"):]))
	}
	return strings.Join(out, " ")
}

func TestMemberNamesSayWhichNamesAnswer(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]string{"": "0 1 2 3", Always: "0 1 2 3", Running: "0 1 3", Ready: "0"} {
		s := modes(mode, Ready)
		var got []string
		for i := range 5 {
			if a := s.Answer(ip(container), fmt.Sprintf("db-%d.dbs", i), TypeA); len(a.Records) > 0 {
				got = append(got, ordinals(a))
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("member_names %q answers for %q, want %q", mode, got, want)
		}
	}
}

func TestSetNameSaysWhoIsListed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ mode, client, want string }{
		{"", container, "0"},
		{"", "10.87.0.12", "0 1"}, // a member, even one that is down
		{Peers, container, "0"},
		{Peers, "10.87.0.11", "0 1"},
		{Ready, "10.87.0.11", "0"},
		{Running, container, "0 1"},
	} {
		got := ordinals(modes(Always, c.mode).Answer(ip(c.client), "dbs.svc", TypeA))
		if got != c.want {
			t.Errorf("set_name %q lists %q for %s, want %q", c.mode, got, c.client, c.want)
		}
	}
}

func TestASetWithNobodyReadyIsNoDataWhileItsMembersHaveNames(t *testing.T) { // 10, 62: RFC 8020
	t.Parallel()
	s := Build(Zone{Sets: []Set{{Name: "db", Members: []Member{{Name: "db-0", Address: ip("10.87.0.10")}}}}})
	got := s.Answer(ip(container), "db.svc", TypeA)
	want := "NOERROR / svc. 0 SOA ns.dns.cluster.local. 1 0"
	if got.String() != want {
		t.Errorf("db.svc = %s, want %s", got, want)
	}
	if a := s.Answer(ip(container), "db-0.svc", TypeA); a.String() != "NOERROR | db-0.svc. 0 A 10.87.0.10" {
		t.Errorf("db-0.svc = %s, want its reserved address", a)
	}
}

func TestZonesAreConfigurable(t *testing.T) {
	t.Parallel()
	z := fixture()
	z.Domain, z.Suffixes = "Example.Internal.", []string{"svc", "svc.internal"}
	s := Build(z)
	for query, want := range map[string]string{
		"web-0.svc.internal":               "NOERROR | web-0.svc.internal. 5 A 10.87.0.10",
		"web-0.web.default.svc":            "NOERROR | web-0.web.default.svc. 5 A 10.87.0.10",
		"one.default.svc.example.internal": "NOERROR | one.default.svc.example.internal. 5 A 10.87.1.20",
		"web.default.svc.cluster.local":    "NXDOMAIN / . 2 SOA ns.dns.example.internal. 7 2",
	} {
		if got := s.Answer(ip(container), query, TypeA).String(); got != want {
			t.Errorf("%s = %s, want %s", query, got, want)
		}
	}
}

func TestTwoSetsMayShareAService(t *testing.T) {
	t.Parallel()
	set := func(name, addr string) Set {
		return Set{Name: name, Service: "db", Members: []Member{{Name: name + "-0", Address: ip(addr), Running: true, Ready: true}}}
	}
	s := Build(Zone{Sets: []Set{set("blue", "10.87.0.10"), set("green", "10.87.0.11")}})
	if got := ordinals(s.Answer(ip(container), "db", TypeA)); got != "0 1" {
		t.Errorf("db lists %q, want both", got)
	}
}

func TestIPv6(t *testing.T) {
	t.Parallel()
	s := Build(Zone{
		Sets:     []Set{{Name: "db", Members: []Member{{Name: "db-0", Address: ip("fd00::10"), Running: true, Ready: true}}}},
		Networks: []Network{{Subnet: netip.MustParsePrefix("fd00::/62")}},
	})
	arpa := reverseName(netip.MustParsePrefix("fd00::10/128"))
	for query, want := range map[string]string{
		"db-0.svc. AAAA": "NOERROR | db-0.svc. 0 AAAA fd00::10",
		"db-0.svc. A":    "NOERROR / svc. 0 SOA ns.dns.cluster.local. 1 0",
		arpa + " PTR":    "NOERROR | " + arpa + " 0 PTR db-0.db." + long,
		"1.0.0.0.0.0.0.0.0.0.0.0.0.0.d.f.ip6.arpa. PTR": "NXDOMAIN / 1.0.0.0.0.0.0.0.0.0.0.0.0.0.d.f.ip6.arpa. 2 SOA ns.dns.cluster.local. 1 2",
	} {
		name, qtype, _ := strings.Cut(query, " ")
		if got := s.Answer(ip("fd00::99"), name, types[qtype]).String(); got != want {
			t.Errorf("%s = %s, want %s", query, got, want)
		}
	}
}

func TestALargeSnapshotIsBuiltInAMoment(t *testing.T) { // 70
	z := Zone{}
	for i := range 10_000 {
		set := Set{Name: fmt.Sprintf("s%d", i), TTL: time.Second, Ports: []Port{{Name: "http", Number: 80}}}
		for n := range 3 {
			addr := netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), byte(n + 10)})
			set.Members = append(set.Members, Member{Name: fmt.Sprintf("s%d-%d", i, n), Address: addr, Running: true, Ready: true})
		}
		z.Sets = append(z.Sets, set)
	}
	best := time.Hour
	for range 3 {
		start := time.Now()
		Build(z)
		best = min(best, time.Since(start))
	}
	if best > time.Second { // the goal is 100 ms without -race; this only catches what is not linear
		t.Errorf("Build took %s", best)
	}
	t.Logf("10000 sets of 3: %s", best)
}

func BenchmarkAnswer(b *testing.B) {
	s := Build(fixture())
	client := ip(container)
	b.ReportAllocs()
	for b.Loop() {
		s.Answer(client, "web-0.svc.", TypeA)
	}
}
