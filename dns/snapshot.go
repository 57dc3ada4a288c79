package dns

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/stsd/stsd/jobspecs"
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
	Stale                bool // not seen since the start: what it has is answered, what it lacks is not denied
}

// Port makes SRV records. One without a name is found at the set's name only.
type Port struct {
	Name, Protocol string // Protocol defaults to "tcp"
	Number         int
}

// Member is one ordinal of a set.
type Member struct {
	Name           string     // "web-0"
	Address        netip.Addr // on its namespace's network; zero: none reserved yet, so no name either
	Running, Ready bool
	Leaving        bool         // its termination is decided: out of the set's name at once
	Also           []netip.Addr // of its other networks, and of the other family
	Loopback       netip.Addr   // what the host is told instead; zero: the same as others
	NoHost         bool         // the host's own programs are told nothing
}

// Network is a network whose containers we answer: a namespace's own, or one that members joined beside it.
type Network struct {
	Namespace string // whose names its containers see first; default "default"
	Subnet    netip.Prefix
	More      []netip.Prefix // further subnets of it, as of IPv6
	Gateway   netip.Addr
	Internal  bool                    // no way out: foreign names are refused too
	Others    map[string][]netip.Addr // containers that are no members, by every name they have
	Stale     bool                    // Others are not known yet: a container is not denied
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
	serial  uint32
	domain  *zone
	zones   []*zone // most labels first
	spaces  map[string]*space
	subnets []subnet // longest prefix first
	byAddr  map[netip.Addr]*member
	addrs   []netip.Addr // keys of byAddr, sorted
	server  netip.Addr   // what ns.dns.DOMAIN answers outside managed networks
	denial  []byte       // a SOA on the wire without its owner; see packSOA
}

type subnet struct {
	netip.Prefix
	network *Network
}

type zone struct {
	labels   []string
	name     string // absolute
	wireSize int    // bytes of the name in a packet
	cluster  bool   // Kubernetes' names rather than short ones
}

// space is a namespace.
type space struct {
	name     string
	services map[string]*service
	members  map[string]*member
	stale    map[string]bool // names of sets that have not been seen; nil: all have
}

// mayBe: a set that has not been seen may have a member of this name.
func (sp *space) mayBe(label string) bool {
	if sp.stale == nil {
		return false
	}
	name, _, ok := jobspecs.ParseMember(label)
	return ok && sp.stale[name]
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
	set      *set
	fqdn     string
	networks []*Network // that it is on
	hosts    []host     // the first for everybody who finds none of his own
	loopback *host      // for the host; nil: the first of hosts
}

// host is where a member is found by some clients: an address of each family, and its record on the wire.
type host struct {
	network *Network      // whose clients find it here; nil: no network of ours
	addrs   [2]netip.Addr // IPv4 and IPv6; zero: none
	packed  [2][]byte     // A and AAAA, owned by the name asked
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
	slices.SortStableFunc(s.subnets, func(a, b subnet) int { return b.Bits() - a.Bits() })
	for _, spec := range z.Sets {
		s.addSet(spec)
	}
	slices.SortFunc(s.addrs, netip.Addr.Compare)
	s.denial = packSOA(s.soa("", 0))
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
	absolute := strings.Join(labels, ".") + "."
	return &zone{labels: labels, name: absolute, wireSize: len(absolute) + 1}
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
	others := make(map[string][]netip.Addr, len(n.Others))
	for name, addrs := range n.Others { // names that differ in case only are one
		others[lowerName(name)] = append(others[lowerName(name)], addrs...)
	}
	for _, addrs := range others {
		slices.SortFunc(addrs, netip.Addr.Compare)
	}
	n.Others = others
	for _, p := range append([]netip.Prefix{n.Subnet}, n.More...) {
		s.subnets = append(s.subnets, subnet{p.Masked(), &n})
	}
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
	if st.Stale {
		sp.addStale(lowerName(st.Name))
	}
	tail := "." + st.service.label + "." + sp.name + ".svc." + s.domain.name
	members := make([]member, len(spec.Members))
	for i, spec := range spec.Members {
		m := &members[i]
		*m = member{Member: spec, set: st}
		m.Name = lowerName(m.Name)
		m.Address = m.Address.Unmap()
		m.fqdn = m.Name + tail
		s.place(m)
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
	s.addAddress(m.Address, m)
	for _, addr := range m.Also {
		s.addAddress(addr.Unmap(), m)
	}
}

func (s *Snapshot) addAddress(addr netip.Addr, m *member) {
	if !addr.IsValid() || s.byAddr[addr] != nil {
		return
	}
	s.byAddr[addr] = m
	s.addrs = append(s.addrs, addr)
}

// place gives the member a host for each network that it is on. Its own network's is the first.
func (s *Snapshot) place(m *member) {
	if !m.Address.IsValid() {
		return
	}
	s.addHost(m, m.Address)
	for _, addr := range m.Also {
		s.addHost(m, addr.Unmap())
	}
	for i := range m.hosts {
		m.hosts[i].pack(m.set.ttl)
	}
	if m.Loopback.IsValid() {
		m.loopback = new(host)
		m.loopback.add(m.Loopback.Unmap())
		m.loopback.pack(m.set.ttl)
	}
}

func (s *Snapshot) addHost(m *member, addr netip.Addr) {
	n := s.networkOf(addr)
	i := slices.IndexFunc(m.hosts, func(h host) bool { return h.network == n })
	if i < 0 {
		i = len(m.hosts)
		m.hosts = append(m.hosts, host{network: n})
	}
	m.hosts[i].add(addr)
	if n != nil && !slices.Contains(m.networks, n) {
		m.networks = append(m.networks, n)
	}
}

// add keeps the first address of a family.
func (h *host) add(addr netip.Addr) {
	if f := family(addr); addr.IsValid() && !h.addrs[f].IsValid() {
		h.addrs[f] = addr
	}
}

func (h *host) pack(ttl uint32) {
	for f, addr := range h.addrs {
		if addr.IsValid() {
			h.packed[f] = packAddress(Record{Type: addrType(addr), TTL: ttl, Addr: addr})
		}
	}
}

// family is 0 for IPv4 and 1 for IPv6.
func family(addr netip.Addr) int {
	if addr.Is4() {
		return 0
	}
	return 1
}

func (sp *space) addStale(name string) {
	if sp.stale == nil {
		sp.stale = map[string]bool{}
	}
	sp.stale[name] = true
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

// listed: does the client find the member under the set's name?
func (m *member) listed(v view) bool {
	if !m.Address.IsValid() || !m.Running || m.Leaving || m.keptFrom(v) {
		return false
	}
	switch m.set.SetName {
	case Running:
		return true
	case Ready:
		return m.Ready
	}
	return m.Ready || v.set == m.set
}

// keptFrom: is the client a program of the host that has no access?
func (m *member) keptFrom(v view) bool { return v.host && m.NoHost }

// hostFor is where the client finds the member under an address of that family: on the network that it asks from, else,
// for a member, on another one that both are on.
func (m *member) hostFor(v view, family int) *host {
	h := m.nearest(v)
	if v.member == nil || len(m.hosts) == 1 || h.addrs[family].IsValid() {
		return h
	}
	for i := range m.hosts {
		o := &m.hosts[i]
		if o.addrs[family].IsValid() && o.network != nil && slices.Contains(v.member.networks, o.network) {
			return o
		}
	}
	return h
}

// nearest is where the client finds the member: on the network that it asks from, else on the member's own.
func (m *member) nearest(v view) *host {
	if v.host && m.loopback != nil {
		return m.loopback
	}
	for i := range m.hosts[1:] {
		if h := &m.hosts[1+i]; h.network != nil && h.network == v.network {
			return h
		}
	}
	return &m.hosts[0]
}

// view is what a client's address says about it.
type view struct {
	space   *space
	network *Network // nil outside managed networks
	member  *member  // nil if it is none
	set     *set     // of that member
	host    bool     // a process of the host: it asks on loopback, or at a gateway, whose network it sees then
}

func (s *Snapshot) view(client netip.Addr) view {
	client = client.Unmap()
	v := view{space: s.spaces[defaultNamespace], network: s.networkOf(client)}
	v.host = client.IsLoopback()
	if v.network != nil {
		v.space = s.spaces[v.network.Namespace]
		v.host = client == v.network.Gateway
	}
	if m := s.byAddr[client]; m != nil {
		v.member, v.set, v.space = m, m.set, m.set.space
	}
	return v
}

// others are the addresses of a container that is no member, on the client's network or on another of the member that
// the client is. stale: there may be one that is not known yet.
func (v view) others(name string) (addrs []netip.Addr, stale bool) {
	if v.network != nil {
		addrs, stale = v.network.Others[name], v.network.Stale
	}
	if v.member == nil {
		return addrs, stale
	}
	for _, n := range v.member.networks {
		if len(addrs) == 0 {
			addrs = n.Others[name]
		}
		stale = stale || n.Stale
	}
	return addrs, stale
}

func (s *Snapshot) networkOf(addr netip.Addr) *Network { return s.subnetOf(addr).network }

func (s *Snapshot) subnetOf(addr netip.Addr) subnet {
	for _, n := range s.subnets {
		if n.Contains(addr) {
			return n
		}
	}
	return subnet{}
}

// knows: is this the address of a member, or in a managed network?
func (s *Snapshot) knows(client netip.Addr) bool {
	return s.byAddr[client] != nil || s.networkOf(client) != nil
}

// mayLeave: may a question of this client be forwarded? The view is that of its own address.
func (v view) mayLeave() bool {
	if v.host || v.network == nil {
		return v.member != nil
	}
	return !v.network.Internal
}
