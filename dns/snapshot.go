package dns

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Publish modes of member names and set names, in the words of the spec.
const (
	Always  = "always"
	Running = "running"
	Ready   = "ready"
	Peers   = "peers"
)

// Zone is everything that has a name at one moment.
type Zone struct {
	Domain   string   // the Kubernetes zone; default "cluster.local"
	Suffixes []string // zones of short names; nil means "svc"
	Sets     []Set
	Networks []Network
	Serial   uint32 // of every SOA; must never go down; 0 counts as 1
}

// Set is one set and all its ordinals, in order, whether they run or not.
type Set struct {
	Namespace, Name      string // Namespace defaults to "default"
	Service              string // the label under which the set and its members are found; default Name
	MemberNames, SetName string // default Always and Peers
	TTL, NegativeTTL     time.Duration
	Ports                []Port
	Members              []Member
}

// Port makes SRV records. One without a name is found at the set's name only.
type Port struct {
	Name, Protocol string // Protocol defaults to "tcp"
	Number         int
}

// Member is one ordinal of a set.
type Member struct {
	Name           string     // "web-0"
	Address        netip.Addr // zero: none reserved yet, so no name either
	Running, Ready bool
	Leaving        bool // its termination is decided: out of the set's name at once
}

// Network is a network whose containers we answer.
type Network struct {
	Namespace string // default "default"
	Subnet    netip.Prefix
	Gateway   netip.Addr
	Internal  bool                    // no way out: foreign names are refused too
	Others    map[string][]netip.Addr // containers that are no members, by every name they have
}

const (
	defaultNamespace = "default"
	defaultDomain    = "cluster.local"
	defaultSuffix    = "svc"

	zoneTTL     = 5         // seconds, of names that belong to no set
	negativeTTL = 2         // seconds, of denials that belong to no set
	maxTTL      = time.Hour // longer makes no sense for names that move
)

// Snapshot answers for one moment. It never changes.
type Snapshot struct {
	serial   uint32
	domain   *zone
	zones    []*zone // most labels first
	spaces   map[string]*space
	networks []*Network // longest prefix first
	byAddr   map[netip.Addr]*member
	addrs    []netip.Addr // keys of byAddr, sorted
	server   netip.Addr   // what ns.dns.DOMAIN answers outside managed networks
}

type zone struct {
	labels  []string
	name    string // absolute
	cluster bool   // Kubernetes' names rather than short ones
}

// space is a namespace.
type space struct {
	name     string
	services map[string]*service
	members  map[string]*member
}

// service is one label with members below it. Several sets may share it.
type service struct {
	label string
	sets  []*set
}

type set struct {
	Set
	space         *space
	service       *service
	ttl, negative uint32
	members       []*member
}

type member struct {
	Member
	set  *set
	fqdn string
}

// Build makes the snapshot of a zone. It keeps nothing of what it is given. Of two members with one name or one
// address the first is kept; admission refuses such sets.
func Build(z Zone) *Snapshot {
	s := &Snapshot{serial: max(z.Serial, 1), spaces: map[string]*space{}, byAddr: map[netip.Addr]*member{}}
	s.addZones(z.Domain, z.Suffixes)
	s.spaceOf(defaultNamespace)
	for _, n := range z.Networks {
		s.addNetwork(n)
	}
	slices.SortStableFunc(s.networks, func(a, b *Network) int { return b.Subnet.Bits() - a.Subnet.Bits() })
	for _, spec := range z.Sets {
		s.addSet(spec)
	}
	slices.SortFunc(s.addrs, netip.Addr.Compare)
	return s
}

func (s *Snapshot) addZones(domain string, suffixes []string) {
	if domain == "" {
		domain = defaultDomain
	}
	if suffixes == nil {
		suffixes = []string{defaultSuffix}
	}
	s.domain = newZone(domain)
	s.domain.cluster = true
	s.zones = append(s.zones, s.domain)
	for _, suffix := range suffixes {
		if z := newZone(suffix); len(z.labels) > 0 {
			s.zones = append(s.zones, z)
		}
	}
	slices.SortStableFunc(s.zones, func(a, b *zone) int { return len(b.labels) - len(a.labels) })
}

func newZone(name string) *zone {
	labels := splitName(strings.Trim(name, "."))
	return &zone{labels: labels, name: strings.Join(labels, ".") + "."}
}

// spaceOf returns the namespace, made when it is new.
func (s *Snapshot) spaceOf(name string) *space {
	if name == "" {
		name = defaultNamespace
	}
	name = lowerName(name)
	if s.spaces[name] == nil {
		s.spaces[name] = &space{name: name, services: map[string]*service{}, members: map[string]*member{}}
	}
	return s.spaces[name]
}

func (s *Snapshot) addNetwork(n Network) {
	n.Namespace = s.spaceOf(n.Namespace).name
	n.Subnet = n.Subnet.Masked()
	others := make(map[string][]netip.Addr, len(n.Others))
	for name, addrs := range n.Others { // names that differ in case only are one
		others[lowerName(name)] = append(others[lowerName(name)], addrs...)
	}
	for _, addrs := range others {
		slices.SortFunc(addrs, netip.Addr.Compare)
	}
	n.Others = others
	s.networks = append(s.networks, &n)
	if !s.server.IsValid() {
		s.server = n.Gateway
	}
}

func (s *Snapshot) addSet(spec Set) {
	sp := s.spaceOf(spec.Namespace)
	st := &set{Set: spec, space: sp, ttl: seconds(spec.TTL), negative: seconds(spec.NegativeTTL)}
	st.Ports = clonePorts(spec.Ports)
	st.service = sp.serviceOf(lowerName(cmp.Or(spec.Service, spec.Name)))
	st.service.sets = append(st.service.sets, st)
	tail := "." + st.service.label + "." + sp.name + ".svc." + s.domain.name
	members := make([]member, len(spec.Members))
	for i, spec := range spec.Members {
		m := &members[i]
		*m = member{Member: spec, set: st}
		m.Name = lowerName(m.Name)
		m.Address = m.Address.Unmap()
		m.fqdn = m.Name + tail
		s.addMember(m)
	}
}

func (s *Snapshot) addMember(m *member) {
	sp := m.set.space
	if m.Name == "" || sp.members[m.Name] != nil {
		return
	}
	sp.members[m.Name] = m
	m.set.members = append(m.set.members, m)
	if !m.Address.IsValid() || s.byAddr[m.Address] != nil {
		return
	}
	s.byAddr[m.Address] = m
	s.addrs = append(s.addrs, m.Address)
}

func (sp *space) serviceOf(label string) *service {
	if sp.services[label] == nil {
		sp.services[label] = &service{label: label}
	}
	return sp.services[label]
}

func clonePorts(ports []Port) []Port {
	ports = slices.Clone(ports)
	for i, p := range ports {
		ports[i].Name = lowerName(p.Name)
		ports[i].Protocol = lowerName(cmp.Or(p.Protocol, "tcp"))
	}
	return ports
}

func seconds(d time.Duration) uint32 {
	return uint32(min(max(d, 0), maxTTL) / time.Second)
}

// named: does the member's own name answer?
func (m *member) named() bool {
	if !m.Address.IsValid() {
		return false
	}
	switch m.set.MemberNames {
	case Running:
		return m.Running
	case Ready:
		return m.Running && m.Ready && !m.Leaving
	}
	return true
}

// listed: is the member under the set's name, for a client that is a member of the given set, or of none?
func (m *member) listed(client *set) bool {
	if !m.Address.IsValid() || !m.Running || m.Leaving {
		return false
	}
	switch m.set.SetName {
	case Running:
		return true
	case Ready:
		return m.Ready
	}
	return m.Ready || client == m.set
}

// view is what a client's address says about it.
type view struct {
	space   *space
	network *Network // nil outside managed networks
	set     *set     // nil if it is no member
}

func (s *Snapshot) view(client netip.Addr) view {
	client = client.Unmap()
	v := view{space: s.spaces[defaultNamespace], network: s.networkOf(client)}
	if v.network != nil {
		v.space = s.spaces[v.network.Namespace]
	}
	if m := s.byAddr[client]; m != nil {
		v.set, v.space = m.set, m.set.space
	}
	return v
}

func (s *Snapshot) networkOf(addr netip.Addr) *Network {
	for _, n := range s.networks {
		if n.Subnet.Contains(addr) {
			return n
		}
	}
	return nil
}

// knows: is this the address of a member, or in a managed network?
func (s *Snapshot) knows(client netip.Addr) bool {
	return s.byAddr[client] != nil || s.networkOf(client) != nil
}

// mayLeave: may a question of this container be forwarded?
func (s *Snapshot) mayLeave(client netip.Addr) bool {
	n := s.networkOf(client)
	if n == nil {
		return s.byAddr[client] != nil
	}
	return !n.Internal && client != n.Gateway
}
