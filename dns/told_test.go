package dns

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func TestWhoIsToldWhat(t *testing.T) {
	t.Parallel()
	z := dual()
	z.Sets[0].SetName = Peers
	s := Build(z)
	show := func(name string) string {
		var b strings.Builder
		for _, told := range s.Told(name, TypeA, func(netip.Addr) bool { return false }) {
			b.WriteString(strings.Join(told.To, ", ") + ":")
			for _, addr := range addrsOf(told.Answer) {
				b.WriteString(" " + addr.String())
			}
			b.WriteString(" (" + told.Answer.Why + ")\n")
		}
		return b.String()
	}
	want := `the host: 10.87.0.10 127.87.0.2 (ready members)
containers of namespace default (10.87.0.0/22): 10.87.0.10 10.87.0.11 (ready members)
containers of namespace other (10.87.8.0/22): 10.87.9.10 (ready members)
containers of namespace default (172.30.0.0/24): 172.30.0.10 10.87.0.11 (ready members)
members of default/web: 10.87.0.10 10.87.0.11 10.87.0.12 (running members, for their peers)
`
	if got := show("web.svc"); got != want {
		t.Errorf("web.svc is told\n%swant\n%s", got, want)
	}
	want = `the host, containers of namespace default (10.87.0.0/22), containers of namespace other (10.87.8.0/22), containers of namespace default (172.30.0.0/24): (member is not ready)
`
	if got := show("web-2.web." + long); got != want {
		t.Errorf("web-2 is told\n%swant\n%s", got, want)
	}
}

func TestTheHostsAtAGatewayIsShownWhereItDiffers(t *testing.T) {
	t.Parallel()
	z := fixture()
	web := &z.Sets[len(z.Sets)-1]
	web.Service = "g" // in namespace other alone
	at := func(gateways ...string) string {
		told := Build(z).Told("g.svc", TypeA, func(a netip.Addr) bool { return slices.Contains(gateways, a.String()) })
		var out []string
		for _, one := range told {
			out = append(out, fmt.Sprintf("%s: %s", strings.Join(one.To, ", "), RcodeName(one.Answer.Rcode)))
		}
		return strings.Join(out, "\n")
	}
	containers := "containers of namespace default (10.87.0.0/22): NXDOMAIN\n" // as the host's: one row
	want := "the host on loopback, " + containers + "the host at 10.87.8.1, containers of namespace other (10.87.8.0/22): NOERROR"
	if got := at("10.87.0.1", "10.87.8.1"); got != want {
		t.Errorf("told\n%s\nwant\n%s", got, want)
	}
	want = "the host, " + containers + "containers of namespace other (10.87.8.0/22): NOERROR"
	if got := at("10.87.0.1"); got != want { // nobody answers at the other
		t.Errorf("told\n%s\nwant\n%s", got, want)
	}
}

func TestWhoAsks(t *testing.T) {
	t.Parallel()
	s := Build(fixture())
	for client, want := range map[string]string{
		"10.87.0.10": "10.87.0.10, member default/web-0",
		container:    container + ", container of namespace default (10.87.0.0/22)",
		"127.0.0.1":  "127.0.0.1, the host",
		"10.87.0.1":  "10.87.0.1, the host at the gateway of namespace default (10.87.0.0/22)",
		"192.0.2.1":  "192.0.2.1, which is served only if its source is allowed",
	} {
		if got := s.ToldTo(ip(client), "web-0.svc", TypeA); got.To[0] != want || len(got.Answer.Records) != 1 {
			t.Errorf("%s is %v and told %s, want %q", client, got.To, got.Answer, want)
		}
	}
}

func TestTheNamesOfASnapshot(t *testing.T) {
	t.Parallel()
	s := Build(fixture())
	got := s.Names()
	want := []string{"db.svc", "db-0.svc", "one.svc", "one-0.svc", "web.svc", "web-0.svc", "web-1.svc", "web-2.svc", "web.other.svc", "web-0.web.other.svc"}
	if !slices.Equal(got, want) {
		t.Errorf("names %q, want %q", got, want)
	}
	for _, name := range got {
		if a := s.Answer(ip("127.0.0.1"), name, TypeA); a.Rcode == NXDomain && a.Why != "member is not ready" {
			t.Errorf("%s: %s (%s)", name, a, a.Why)
		}
	}
}

func TestWhereForeignNamesGo(t *testing.T) {
	t.Parallel()
	show := func(cfg Config, publish bool) string {
		s := NewServer(cfg)
		if publish {
			s.Publish(Build(fixture()))
		}
		var out []string
		for _, told := range s.Told(netip.Addr{}, "example.test", TypeA) {
			out = append(out, fmt.Sprintf("%d to %s, forwarded to %v", told.Answer.Rcode, told.To[0], told.Forward))
		}
		return strings.Join(out, "; ")
	}
	for _, c := range []struct {
		cfg     Config
		publish bool
		want    string
	}{
		{Config{Forward: []string{"192.0.2.1", "192.0.2.2"}}, true, "5 to the host, forwarded to []; 0 to containers of namespace default (10.87.0.0/22), forwarded to [192.0.2.1:53 192.0.2.2:53]"},
		{Config{Forward: []string{}}, true, "5 to the host, forwarded to []; 2 to containers of namespace default (10.87.0.0/22), forwarded to []"},
		{Config{ForwardOff: true}, true, "5 to the host, forwarded to []; 5 to containers of namespace default (10.87.0.0/22), forwarded to []"},
		{Config{}, false, "2 to everybody, forwarded to []"},
	} {
		if got := show(c.cfg, c.publish); got != c.want {
			t.Errorf("%+v\n got %s\nwant %s", c.cfg, got, c.want)
		}
	}
	s := NewServer(Config{Forward: []string{"192.0.2.1"}})
	s.Publish(Build(fixture()))
	if got := s.Told(ip(container), "example.test", TypeA); len(got) != 1 || len(got[0].Forward) != 1 {
		t.Errorf("a container is told %+v", got)
	}
}

func TestTypesHaveNames(t *testing.T) {
	t.Parallel()
	for _, want := range []uint16{TypeA, TypeAAAA, TypeSRV, TypePTR, TypeTXT, TypeNS, TypeSOA, TypeANY, 15, 65, 65280} {
		if got, ok := ParseType(strings.ToLower(TypeName(want))); !ok || got != want {
			t.Errorf("type %d is called %s and read as %d, %v", want, TypeName(want), got, ok)
		}
	}
	for _, text := range []string{"", "TYPE", "TYPE65536", "nonsense"} {
		if got, ok := ParseType(text); ok {
			t.Errorf("%q was read as type %d", text, got)
		}
	}
}
