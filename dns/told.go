package dns

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Told is what one kind of client is told.
type Told struct {
	To      []string // "the host", "the host at 10.87.4.1", "containers of namespace default (10.87.0.0/22)", "members of other/web"
	Answer  Answer
	leaves  bool     // foreign names may leave the host for it
	Forward []string // the servers that are asked instead, when the name is not ours; Answer is empty then
}

// Told says what each kind of client is told under a name now; with a client, what that one is told.
func (s *Server) Told(client netip.Addr, name string, qtype uint16) []Told {
	snap := s.snapshot.Load()
	if snap == nil {
		return []Told{{To: []string{"everybody"}, Answer: Answer{Rcode: ServFail, Extended: extNotReady, Why: "nothing is known yet"}}}
	}
	if client.IsValid() {
		return []Told{s.orForward(snap.ToldTo(client, name, qtype), name)}
	}
	all := snap.Told(name, qtype, s.listensAt)
	for i := range all {
		all[i] = s.orForward(all[i], name)
	}
	return all
}

// orForward says who is asked for a name that is not ours, by those for whom anybody is.
func (s *Server) orForward(t Told, name string) Told {
	if !t.Answer.Foreign || !t.leaves || s.cfg.ForwardOff || s.inDomain(name) {
		return t
	}
	for _, server := range s.forward.servers(s.ours) {
		t.Forward = append(t.Forward, server.String())
	}
	t.Answer = Answer{Foreign: true, Why: "not a name of ours: forwarded"}
	if t.Forward == nil {
		t.Answer = Answer{Foreign: true, Rcode: ServFail, Extended: extNoReachableAuthority, Why: "not a name of ours: " + errNoServer.Error()}
	}
	return t
}

// Told says what each kind of client is told. Members are only mentioned where they are told something
// else than other containers of their namespace, and the host at a gateway where it is told something else there than
// on loopback; listens says where anybody answers.
func (s *Snapshot) Told(name string, qtype uint16, listens func(netip.Addr) bool) []Told {
	var all []Told
	add := func(to string, v view, a Answer) {
		leaves := a.Foreign && v.mayLeave()
		i := slices.IndexFunc(all, func(t Told) bool { return sameAnswer(t.Answer, a) && t.leaves == leaves })
		if i < 0 {
			all = append(all, Told{Answer: a, leaves: leaves})
			i = len(all) - 1
		}
		all[i].To = append(all[i].To, to)
	}
	own := s.spaces[defaultNamespace]
	host := view{space: own, host: true}
	onLoopback := s.answer(host, name, qtype)
	add("the host", host, onLoopback)
	for _, n := range s.networksInOrder() {
		if !n.Gateway.IsValid() || !listens(n.Gateway) {
			continue
		}
		v := s.view(n.Gateway)
		if a := s.answer(v, name, qtype); !sameAnswer(a, onLoopback) {
			all[0].To[0] = "the host on loopback"
			add("the host at "+n.Gateway.String(), v, a)
		}
	}
	byNetwork := map[*Network]Answer{}
	for _, n := range s.networksInOrder() {
		v := view{space: s.spaces[n.Namespace], network: n}
		byNetwork[n] = s.answer(v, name, qtype)
		add("containers "+n.called(), v, byNetwork[n])
	}
	for _, st := range s.setsInOrder() {
		m := st.members[0]
		v := view{space: st.space, member: m, set: st}
		if len(m.hosts) > 0 {
			v.network = m.hosts[0].network
		}
		if a := s.answer(v, name, qtype); !sameAnswer(a, byNetwork[v.network]) {
			add("members of "+st.space.name+"/"+st.Name, v, a)
		}
	}
	return all
}

// ToldTo is what the client at an address is told, and who that is.
func (s *Snapshot) ToldTo(client netip.Addr, name string, qtype uint16) Told {
	v := s.view(client)
	to := client.String()
	switch {
	case v.member != nil:
		to += ", member " + v.space.name + "/" + v.member.Name
	case v.host && v.network != nil:
		to += ", the host at the gateway " + v.network.called()
	case v.host:
		to += ", the host"
	case v.network != nil:
		to += ", container " + v.network.called()
	default:
		to += ", which is served only if its source is allowed"
	}
	return Told{To: []string{to}, Answer: s.answer(v, name, qtype), leaves: v.mayLeave()}
}

func (n *Network) called() string {
	return fmt.Sprintf("of namespace %s (%s)", n.Namespace, n.Subnet)
}

// networksInOrder lists each network once.
func (s *Snapshot) networksInOrder() []*Network {
	var all []*Network
	for _, sub := range s.subnets {
		if !slices.Contains(all, sub.network) {
			all = append(all, sub.network)
		}
	}
	slices.SortStableFunc(all, func(a, b *Network) int { return a.Subnet.Addr().Compare(b.Subnet.Addr()) })
	return all
}

// setsInOrder lists the sets that have members, by namespace and name.
func (s *Snapshot) setsInOrder() []*set {
	var all []*set
	for _, sp := range s.spaces {
		for _, sv := range sp.services {
			for _, st := range sv.sets {
				if len(st.members) > 0 {
					all = append(all, st)
				}
			}
		}
	}
	slices.SortFunc(all, func(a, b *set) int {
		if a.space != b.space {
			return strings.Compare(a.space.name, b.space.name)
		}
		return strings.Compare(a.Name, b.Name)
	})
	return all
}

// Names are the shortest names of all sets and members as the host has them: "web.svc", "web-0.svc", "web.other.svc".
func (s *Snapshot) Names() []string {
	suffix := s.shortZone()
	var names []string
	for _, st := range s.setsInOrder() {
		tail := suffix
		if st.space.name != defaultNamespace {
			tail = "." + st.space.name + suffix
		}
		if name := st.service.label + tail; !slices.Contains(names, name) {
			names = append(names, name)
		}
		for _, m := range st.members {
			if st.space.name == defaultNamespace {
				names = append(names, m.Name+tail)
				continue
			}
			names = append(names, m.Name+"."+st.service.label+tail)
		}
	}
	return names
}

// shortZone is what short names end in, ".svc"; "" where there is no such zone: they answer without any.
func (s *Snapshot) shortZone() string {
	for _, z := range s.zones {
		if !z.cluster {
			return "." + strings.TrimSuffix(z.name, ".")
		}
	}
	return ""
}

func sameAnswer(a, b Answer) bool { return a.Why == b.Why && a.String() == b.String() }
