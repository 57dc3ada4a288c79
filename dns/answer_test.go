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

func cutQuery(query string) (name string, qtype uint16) {
	name, text, _ := strings.Cut(query, " ")
	return name, types[text]
}

func TestAnswersBesideTheCases(t *testing.T) {
	t.Parallel()
	nx := func(zone string) string { return "NXDOMAIN" + soaOf(zone) }
	const cluster, foreign = "cluster.local.", "REFUSED"
	for _, c := range []struct{ what, client, query, want string }{
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

func BenchmarkAnswer(b *testing.B) {
	s := Build(fixture())
	client := ip(container)
	b.ReportAllocs()
	for b.Loop() {
		s.Answer(client, "web-0.svc.", TypeA)
	}
}
