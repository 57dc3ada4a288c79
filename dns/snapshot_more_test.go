package dns

import (
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// joined: web-0 has both families on its own network and is on shop's network too; web-1 has a loopback address.
func TestAMemberIsFoundWhereTheClientIs(t *testing.T) {
	t.Parallel()
	s := Build(dual())
	for _, c := range []struct{ what, client, name, want string }{
		{"on its own network", container, "web-0.svc. A", "10.87.0.10"},
		{"by IPv6 there", container, "web-0.svc. AAAA", "fd00:87::10"},
		{"by an IPv6 client", "fd00:87::99", "web-0.svc. A", "10.87.0.10"},
		{"on the network it joined", "172.30.0.9", "web-0.svc. A", "172.30.0.10"},
		{"without IPv6 there", "172.30.0.9", "web-0.svc. AAAA", ""},
		{"one that did not join", "172.30.0.9", "web-1.svc. A", "10.87.0.11"},
		{"from another namespace", stranger, "web-0.web.default.svc. A", "10.87.0.10"},
		{"on loopback, by the host", "127.0.0.1", "web-1.svc. A", "127.87.0.2"},
		{"the host finds others as they are", "127.0.0.1", "web-0.svc. A", "10.87.0.10"},
		{"a container of the network it joined", "172.30.0.10", "shop. A", "172.30.0.9"},
		{"the same, asked from its own address", "10.87.0.10", "shop. A", "172.30.0.9"},
		{"which others do not see", "10.87.0.11", "shop. A", ""},
	} {
		name, qtype := cutQuery(c.name)
		got := ""
		for _, addr := range addrsOf(s.Answer(ip(c.client), name, qtype)) {
			got += addr.String()
		}
		if got != c.want {
			t.Errorf("%s: %s for %s = %q, want %q", c.what, c.name, c.client, got, c.want)
		}
	}
	if a := s.Answer(ip(container), "0.1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.7.8.0.0.0.0.d.f.ip6.arpa", TypePTR); len(a.Records) != 1 {
		t.Errorf("address of the other family: %s", a)
	}
	if a := s.Answer(ip(container), "10.0.30.172.in-addr.arpa", TypePTR); len(a.Records) != 1 || a.Records[0].Target != "web-0.web."+long {
		t.Errorf("address on the joined network: %s", a)
	}
}

// host_access none: this machine's own programs are told no name of the set, everybody else is.
func TestTheHostIsNotToldWhatIsKeptFromIt(t *testing.T) {
	t.Parallel()
	s := Build(dual())
	for _, query := range []string{"vault-0.svc. A", "vault.svc. A", "vault-0.vault." + long + " A", "vault. A", "vault.svc. SRV",
		"_api._tcp.vault.svc. SRV", "_tcp.vault.svc. A", "vault-0.svc. ANY", "40.1.87.10.in-addr.arpa. PTR"} {
		name, qtype := cutQuery(query)
		if got := s.Answer(ip("127.0.0.1"), name, qtype); got.Rcode != NXDomain || len(got.Records)+len(got.Glue) > 0 {
			t.Errorf("the host is told %s for %s", got, query)
		}
		if got := s.Answer(ip(container), name, qtype); got.Rcode != NoError {
			t.Errorf("a container is told %s for %s", got, query)
		}
	}
	if got := s.Answer(ip("127.0.0.1"), "vault-0.svc", TypeA); got.Why != whyKept {
		t.Errorf("the reason is %q", got.Why)
	}
}

// Two members whose own network has IPv4 alone find each other by IPv6 on a network that both joined.
func TestMembersFindEachOtherByIPv6WhereBothAre(t *testing.T) {
	t.Parallel()
	z := dual()
	z.Networks = append(z.Networks, Network{Subnet: netip.MustParsePrefix("172.31.0.0/24"), More: []netip.Prefix{netip.MustParsePrefix("fd00:31::/64")}})
	z.Sets[0].Members[1].Also = []netip.Addr{ip("172.31.0.11"), ip("fd00:31::11")}
	z.Sets[0].Members[2].Also = []netip.Addr{ip("172.31.0.12"), ip("fd00:31::12")}
	server := NewServer(Config{})
	server.Publish(Build(z))
	for _, c := range []struct{ what, client, name, want string }{
		{"IPv4 on their own network", "10.87.0.12", "web-1.svc. A", "10.87.0.11"},
		{"IPv6 where both are", "10.87.0.12", "web-1.svc. AAAA", "fd00:31::11"},
		{"the set's too", "10.87.0.12", "web.svc. AAAA", "fd00:31::11 fd00:87::10"},
		{"not one that is not there", "10.87.0.10", "web-1.svc. AAAA", ""},
		{"nor of one that is not there", "10.87.0.12", "db-0.svc. AAAA", ""},
		{"another container of the network", "172.31.0.99", "web-1.svc. AAAA", "fd00:31::11"},
		{"another container of their own network", container, "web-1.svc. AAAA", ""},
		{"the host", "127.0.0.1", "web-1.svc. AAAA", ""},
	} {
		name, qtype := cutQuery(c.name)
		var found []string
		for _, addr := range addrsOf(server.Snapshot().Answer(ip(c.client), name, qtype)) {
			found = append(found, addr.String())
		}
		slices.Sort(found)
		if got := strings.Join(found, " "); got != c.want {
			t.Errorf("%s: %s for %s = %q, want %q", c.what, c.name, c.client, got, c.want)
		}
		if len(found) < 2 && !checkFast(t, server, ip(c.client), ask4(name, qtype)) {
			t.Errorf("%s: not answered the fast way", c.what)
		}
	}
}

// What has not been seen since the start may be there: it is not denied.
func TestIgnoranceIsNoDenial(t *testing.T) {
	t.Parallel()
	z := fixture()
	for i := range z.Sets {
		z.Sets[i].Stale = true
	}
	for i := range z.Networks {
		z.Networks[i].Stale = true
	}
	s := Build(z)
	for query, want := range map[string]string{
		"web-0.svc. A":                      "NOERROR | web-0.svc. 5 A 10.87.0.10",
		"web-0.svc. AAAA":                   "NOERROR" + soaOf("svc."),
		"web.svc. A":                        "NOERROR | web.svc. 5 A 10.87.0.10 | web.svc. 5 A 10.87.0.11",
		"web-2.svc. A":                      "SERVFAIL",
		"web-7.svc. A":                      "SERVFAIL",
		"web-7. A":                          "SERVFAIL",
		"web-7.web.svc. A":                  "SERVFAIL",
		"none.svc. A":                       "SERVFAIL",
		"12.0.87.10.in-addr.arpa. PTR":      "SERVFAIL",
		"_nosuch._tcp.web." + long + " SRV": "SERVFAIL",
		"somebody. A":                       "SERVFAIL",
		"redis. A":                          "NOERROR | redis. 5 A 10.87.2.9",
		"nosuch." + long + " A":             "NXDOMAIN" + soaOf("cluster.local."),
		"example.test. A":                   "REFUSED",
	} {
		name, qtype := cutQuery(query)
		got := s.Answer(ip(container), name, qtype)
		if got.String() != want {
			t.Errorf("%s = %s, want %s", query, got, want)
		}
		if (got.Rcode == ServFail) != (got.Extended == extNotReady) {
			t.Errorf("%s: extended error %d of %s", query, got.Extended, got)
		}
	}
}

func TestASavedZoneIsLoadedAsStale(t *testing.T) { // 63
	t.Parallel()
	path := filepath.Join(t.TempDir(), "names.json")
	if _, err := Load(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	want := dual()
	for range 2 { // the second time over the first
		if err := Save(path, want); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range want.Sets {
		want.Sets[i].Stale = true
	}
	for i := range want.Networks {
		want.Networks[i].Stale = true
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("loaded %+v\nwant %+v", got, want)
	}
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 1 {
		t.Errorf("files left: %v", left)
	}
	os.WriteFile(path, []byte(`{"Sets":`), 0o600)
	if _, err := Load(path); err == nil {
		t.Error("a cut file was read")
	}
}

func TestDomainsWithoutPlainFormAreServedTheSlowWay(t *testing.T) {
	t.Parallel()
	z := fixture()
	z.Domain = `odd\.name.test`
	s := NewServer(Config{})
	s.Publish(Build(z))
	if s.fastReply(ip(container), ask4("nosuch.svc", TypeA)) != nil {
		t.Error("a denial was packed with an escape in it")
	}
	if got := s.reply(ask4("nosuch.svc", TypeA)); rcodeOf(got) != NXDomain {
		t.Errorf("%x, want NXDOMAIN", got)
	}
}
