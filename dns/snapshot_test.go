package dns

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// drawZone makes small zones whose names collide on purpose: sets called like namespaces, services shared.
func drawZone(t *rapid.T) Zone {
	pick := func(name string, from ...string) string { return rapid.SampledFrom(from).Draw(t, name) }
	var z Zone
	z.Networks = []Network{
		{Subnet: netip.MustParsePrefix("10.87.0.0/22"), Gateway: ip("10.87.0.1")},
		{Namespace: "web", Subnet: netip.MustParsePrefix("10.87.4.0/28"), Gateway: ip("10.87.4.1")},
	}
	next := ip("10.87.0.10")
	for _, ns := range []string{"default", "web", "com"} {
		for _, name := range []string{"web", "db", "default"} {
			if rapid.Bool().Draw(t, "there") {
				set := Set{Namespace: ns, Name: name, Service: pick("service", "", name, "shared"),
					MemberNames: pick("member_names", Always, Running, Ready, ""),
					SetName:     pick("set_name", Peers, Running, Ready, "")}
				if rapid.Bool().Draw(t, "port") {
					set.Ports = []Port{{Name: "http", Protocol: pick("protocol", "tcp", "udp", ""), Number: 80}, {Number: 1}}
				}
				noHost := rapid.Bool().Draw(t, "no_host")
				for i := range rapid.IntRange(0, 3).Draw(t, "members") {
					m := Member{NoHost: noHost, Name: fmt.Sprintf("%s-%d", name, i), Running: rapid.Bool().Draw(t, "running"),
						Ready: rapid.Bool().Draw(t, "ready"), Leaving: rapid.Bool().Draw(t, "leaving")}
					if rapid.Bool().Draw(t, "reserved") {
						m.Address = next
					}
					next = next.Next()
					set.Members = append(set.Members, m)
				}
				z.Sets = append(z.Sets, set)
			}
		}
	}
	return z
}

// expected says in the words of the spec which members answer under which long names.
func expected(z Zone, client netip.Addr) map[string][]netip.Addr {
	names := map[string][]netip.Addr{}
	for _, set := range z.Sets {
		base := set.Service
		if base == "" {
			base = set.Name
		}
		base += "." + set.Namespace + ".svc.cluster.local."
		peer := slices.ContainsFunc(set.Members, func(m Member) bool { return m.Address == client })
		for _, m := range set.Members {
			if !m.Address.IsValid() || m.NoHost && client.IsLoopback() {
				continue
			}
			ready := m.Running && m.Ready
			if set.MemberNames == Always || set.MemberNames == "" || set.MemberNames == Running && m.Running ||
				set.MemberNames == Ready && ready && !m.Leaving {
				names[m.Name+"."+base] = append(names[m.Name+"."+base], m.Address)
			}
			peers := set.SetName == Peers || set.SetName == ""
			if !m.Leaving && (ready || m.Running && (set.SetName == Running || peers && peer)) {
				names[base] = append(names[base], m.Address)
			}
		}
	}
	return names
}

func addrsOf(a Answer) []netip.Addr {
	var out []netip.Addr
	for _, r := range a.Records {
		out = append(out, r.Addr)
	}
	return out
}

func checkZone(t *rapid.T) {
	z := drawZone(t)
	s := Build(z)
	client := ip(rapid.SampledFrom([]string{"127.0.0.1", "10.87.0.10", "10.87.0.11", "10.87.4.9"}).Draw(t, "client"))
	for name, addrs := range expected(z, client) {
		if got := s.Answer(client, name, TypeA); !slices.Equal(addrsOf(got), addrs) {
			t.Fatalf("%s = %s, want %v", name, got, addrs)
		}
		checkParents(t, s, client, name)
		checkShort(t, s, client, name, addrs)
	}
	for _, set := range z.Sets {
		for _, m := range set.Members {
			checkReverse(t, s, client, m.Address)
		}
	}
}

// checkParents: every parent of a name exists, up to the zone.
func checkParents(t *rapid.T, s *Snapshot, client netip.Addr, name string) {
	for parent := name; parent != "cluster.local."; {
		_, parent, _ = strings.Cut(parent, ".")
		if a := s.Answer(client, parent, TypeTXT); a.Rcode != NoError {
			t.Fatalf("%s exists, its parent %s is %s", name, parent, a)
		}
	}
}

// checkShort: the same name without zone is never foreign nor denied, and equal unless an own name hides it.
func checkShort(t *rapid.T, s *Snapshot, client netip.Addr, name string, addrs []netip.Addr) {
	for _, short := range []string{strings.TrimSuffix(name, "cluster.local."), strings.TrimSuffix(name, "svc.cluster.local.")} {
		a := s.Answer(client, short, TypeA)
		if a.Rcode != NoError || len(a.Records) == 0 {
			t.Fatalf("%s answers, %s is %s", name, short, a)
		}
		if !slices.Equal(addrsOf(a), addrs) && a.Why != "member" && !strings.Contains(a.Why, "members") {
			t.Fatalf("%s = %s, want %v", short, a, addrs)
		}
	}
}

// checkReverse: an address points to a name that has this very address.
func checkReverse(t *rapid.T, s *Snapshot, client, addr netip.Addr) {
	if !addr.IsValid() {
		return
	}
	a := s.Answer(client, reverseName(netip.PrefixFrom(addr, 32)), TypePTR)
	if a.Rcode == NXDomain {
		return
	}
	if len(a.Records) != 1 {
		t.Fatalf("PTR of %s = %s, want one name", addr, a)
	}
	if back := s.Answer(client, a.Records[0].Target, TypeA); !slices.Equal(addrsOf(back), []netip.Addr{addr}) {
		t.Fatalf("%s points to %s", addr, back)
	}
	checkArpaParents(t, s, client, addr)
}

func checkArpaParents(t *rapid.T, s *Snapshot, client, addr netip.Addr) {
	parent := reverseName(netip.PrefixFrom(addr, 24))
	if a := s.Answer(client, parent, TypePTR); a.Rcode != NoError && !a.Foreign {
		t.Fatalf("%s exists, its parent is %s", addr, a)
	}
}

func TestEveryNameAnswersAndNoParentIsDenied(t *testing.T) {
	t.Parallel()
	rapid.Check(t, checkZone)
}

func FuzzSnapshot(f *testing.F) { f.Fuzz(rapid.MakeFuzz(checkZone)) }

func TestSRVTargetsResolveToTheirGlue(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := Build(drawZone(t))
		name := rapid.SampledFrom([]string{"web", "shared.svc", "web.web.svc", "_http._tcp.db", "db.com.svc.cluster.local"}).Draw(t, "name")
		client := ip("10.87.0.10")
		a := s.Answer(client, name, TypeSRV)
		for _, r := range a.Records {
			i := slices.IndexFunc(a.Glue, func(g Record) bool { return g.Name == r.Target })
			if i < 0 {
				t.Fatalf("%s: no glue for %s", name, r.Target)
			}
			if got := s.Answer(client, r.Target, TypeA); !slices.Contains(addrsOf(got), a.Glue[i].Addr) {
				t.Fatalf("%s: target %s is %s, glue %s", name, r.Target, got, a.Glue[i])
			}
		}
	})
}

func TestBuildKeepsNothingOfItsInput(t *testing.T) {
	t.Parallel()
	z := fixture()
	s := Build(z)
	want := s.Answer(ip(container), "web", TypeSRV).String()
	z.Sets[0].Members[0].Name, z.Sets[0].Ports[0].Number = "gone-0", 1
	delete(z.Networks[0].Others, "Redis")
	if got := s.Answer(ip(container), "web", TypeSRV).String(); got != want {
		t.Errorf("after the input changed: %s, want %s", got, want)
	}
}
