package dns

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/stsd/stsd/jobspecs"
)

// Rcodes that an Answer may carry.
const (
	NoError  = 0
	FormErr  = 1
	ServFail = 2
	NXDomain = 3
	NotImp   = 4
	Refused  = 5
)

// Record types that we have.
const (
	TypeA     = 1
	TypeNS    = 2
	TypeSOA   = 6
	TypePTR   = 12
	TypeHINFO = 13
	TypeTXT   = 16
	TypeAAAA  = 28
	TypeSRV   = 33
	TypeIXFR  = 251
	TypeAXFR  = 252
	TypeANY   = 255
)

// dnsVersion is the version of the Kubernetes DNS specification, found at dns-version.DOMAIN.
const (
	dnsVersion    = "1.1.0"
	dnsVersionTTL = 28800
)

// Answer is what one client gets for one question.
type Answer struct {
	Rcode     int
	Foreign   bool     // not ours: Refused, unless someone else is asked
	Extended  uint16   // extended error of RFC 8914; 0: none
	Records   []Record // the name's own; in a fixed order
	Authority []Record // the SOA of a denial
	Glue      []Record // addresses of SRV and NS targets; may be left out
	Why       string
}

// Record is one resource record of class IN. Fields that its type does not have are zero.
type Record struct {
	Name    string
	Type    uint16
	TTL     uint32
	Addr    netip.Addr // A, AAAA
	Target  string     // NS, PTR, SRV, SOA
	Port    uint16     // SRV
	Text    string     // TXT, HINFO; the mailbox of SOA
	Serial  uint32     // SOA
	Minimum uint32     // SOA
}

// state orders what a name can be, from nothing to something.
type state int

const (
	absent state = iota // not a name of ours
	hidden              // ours, but nothing to show to this client
	empty               // only names below it
	full                // has records
)

// Extended errors of RFC 8914.
const (
	extNotReady             = 14
	extNotAuthoritative     = 20
	extNoReachableAuthority = 22
	extNetworkError         = 23
)

// node is what one name holds for one client.
type node struct {
	state       state
	service     *service // the listed members of its sets are the name's hosts
	member      *member  // the only host
	fixed       []Record // records that are no member's; owner not filled in
	onlySRV     bool
	port, proto string // of its SRV records; empty means all
	set         *set   // whose TTLs count; nil: the zone's
	unsure      bool   // what it lacks may be there: it has not been seen yet
	origin      string // whose SOA denies
	why         string
}

// hosts appends the members that have the name.
func (n *node) hosts(into []*member, v view) []*member {
	if n.member != nil {
		return append(into, n.member)
	}
	if n.service == nil {
		return into
	}
	for _, st := range n.service.sets {
		for _, m := range st.members {
			if m.listed(v) && (!n.onlySRV || m.named()) {
				into = append(into, m)
			}
		}
	}
	return into
}

// question is what Answer works on.
type question struct {
	owner string // as asked, absolute: case is kept
	qtype uint16
	view  view
	zone  *zone // nil for names without suffix and addresses
}

// Answer decides. The name is in presentation form, with or without the last dot.
func (s *Snapshot) Answer(client netip.Addr, name string, qtype uint16) Answer {
	return s.answer(s.view(client), name, qtype)
}

func (s *Snapshot) answer(v view, name string, qtype uint16) Answer {
	if qtype == TypeAXFR || qtype == TypeIXFR {
		return Answer{Rcode: Refused, Why: "zones are not transferred"}
	}
	labels := splitName(name)
	n, z := s.locate(v, strings.Join(labels, "."), labels)
	if n.state == absent && z == nil {
		return Answer{Rcode: Refused, Foreign: true, Why: "not a name of ours"}
	}
	return s.respond(question{owner: absolute(name), qtype: qtype, view: v, zone: z}, n)
}

// locate finds a name, in lower case and without the last dot, and the zone it is in. One that is absent and in no zone
// is not ours. It allocates nothing for the names of sets and members.
func (s *Snapshot) locate(v view, name string, labels []string) (node, *zone) {
	if z, front := s.zoneOf(labels); z != nil {
		n := s.inZone(v, z, front)
		n.origin = z.name
		return n, z
	}
	if n := s.reverse(v, labels); n.state != absent {
		return n, nil
	}
	n := s.bare(v, name, labels)
	n.origin = "."
	return n, nil
}

func (s *Snapshot) zoneOf(labels []string) (*zone, []string) {
	for _, z := range s.zones {
		if front, ok := under(labels, z.labels); ok {
			return z, front
		}
	}
	return nil, nil
}

func (s *Snapshot) respond(q question, n node) Answer {
	a := Answer{Why: n.why}
	if n.state == full {
		a.Records, a.Glue = s.records(q, n)
	}
	switch {
	case len(a.Records) > 0:
		return a
	case n.unsure:
		return Answer{Rcode: ServFail, Extended: extNotReady, Why: n.why + ", as far as is known: it has not been seen yet"}
	case n.state < empty:
		a.Rcode = NXDomain
	}
	a.Authority = []Record{s.soa(n.origin, n.negative())}
	return a
}

// inZone finds the labels in front of one of our zones.
func (s *Snapshot) inZone(v view, z *zone, front []string) node {
	if len(front) == 0 {
		return node{state: full, fixed: []Record{s.soa("", negativeTTL), s.ns()}, why: "zone"}
	}
	if z.cluster {
		return s.inCluster(v, front)
	}
	return s.short(v, front)
}

func (s *Snapshot) inCluster(v view, front []string) node {
	last := len(front) - 1
	switch {
	case front[last] == "svc" && last == 0:
		return node{state: empty, why: "all namespaces"}
	case front[last] == "svc":
		return s.inNamespace(v, front[:last], false)
	case front[last] == "dns" && last == 0:
		return node{state: empty, why: "name server"}
	case front[last] == "dns" && last == 1 && front[0] == "ns":
		return node{state: full, fixed: addresses(s.serverFor(v), zoneTTL), why: "name server"}
	case front[last] == "dns-version" && last == 0:
		return node{state: full, fixed: []Record{{Type: TypeTXT, TTL: dnsVersionTTL, Text: dnsVersion}}, why: "version"}
	}
	return node{why: "no such name in the zone"}
}

// short finds a name without zone: in the client's namespace, or in the one that its last label says.
func (s *Snapshot) short(v view, labels []string) node {
	own := v.space.find(v, labels, true)
	if own.state == full {
		return own
	}
	if other := s.inNamespace(v, labels, true); other.state > own.state {
		return other
	}
	return own
}

// inNamespace finds a name that ends in a namespace.
func (s *Snapshot) inNamespace(v view, labels []string, short bool) node {
	last := len(labels) - 1
	sp := s.spaces[labels[last]]
	if sp == nil {
		return node{why: "no set or namespace of this name"}
	}
	if last == 0 {
		return node{state: empty, why: "namespace"}
	}
	return sp.find(v, labels[:last], short)
}

// bare finds a name without any suffix: ours, another container's, or one that must never leave the host.
func (s *Snapshot) bare(v view, name string, labels []string) node {
	if len(labels) == 0 {
		return node{}
	}
	own := s.short(v, labels)
	if own.state != absent && own.set != nil {
		return own
	}
	addrs, stale := v.others(name)
	if len(addrs) > 0 {
		return node{state: full, fixed: addresses(addrs, zoneTTL), why: "container of the client's network"}
	}
	if own.state != absent { // a namespace
		return own
	}
	if len(labels) == 1 {
		return node{state: hidden, unsure: stale, why: "no set, member or container of this name, and a single label never leaves the host"}
	}
	switch labels[len(labels)-1] {
	case "local", "onion", "invalid", "localhost":
		return node{state: hidden, why: "such names never leave the host"}
	}
	return node{}
}

// find finds web, web-0.web, _tcp.web and _http._tcp.web; with short also web-0.
func (sp *space) find(v view, labels []string, short bool) node {
	last := len(labels) - 1
	sv := sp.services[labels[last]]
	if last == 0 {
		return sp.single(v, labels[0], sv, short)
	}
	if sv == nil || last > 2 {
		return node{why: "no set or namespace of this name"}
	}
	first := labels[0]
	switch {
	case last == 1 && strings.HasPrefix(first, "_"):
		return sv.portNode(v, "", first[1:])
	case last == 1:
		return sv.below(first, sv.memberNode(v, sp.members[first]))
	case len(first) > 1 && first[0] == '_' && strings.HasPrefix(labels[1], "_"):
		return sv.portNode(v, first[1:], labels[1][1:])
	}
	return node{set: sv.sets[0], unsure: sv.stale(), why: "no such name below the set"}
}

// below is what a name below the set holds. One that nobody else can have meant, as the next ordinal, is ours though
// there is nothing of that name.
func (sv *service) below(label string, n node) node {
	name, _, ok := jobspecs.ParseMember(label)
	if n.state == absent && ok && slices.ContainsFunc(sv.sets, func(st *set) bool { return st.Name == name }) {
		n.state = hidden
	}
	return n
}

// single finds a set, and where short names are allowed a member, by one label.
func (sp *space) single(v view, label string, sv *service, short bool) node {
	n := node{why: "no set or namespace of this name"}
	if sv != nil {
		n = sv.node(v)
	}
	m := sp.members[label]
	if m == nil && n.state == absent && short && sp.mayBe(label) {
		return node{state: hidden, unsure: true, why: "no such member of the set"}
	}
	if n.state >= empty || !short || m == nil {
		return n
	}
	return m.set.service.memberNode(v, m)
}

// node is the set's name.
func (sv *service) node(v view) node {
	n := node{state: hidden, service: sv, set: sv.sets[0], why: "no member to list"}
	for _, st := range sv.sets {
		for _, m := range st.members {
			if m.listed(v) {
				n.state, n.why = full, st.whoIsListed(v.set)
				return n
			}
			if m.named() && !m.keptFrom(v) {
				n.state = empty
			}
		}
	}
	n.unsure = sv.stale()
	return n
}

// stale: one of its sets has not been seen since the start.
func (sv *service) stale() bool {
	for _, st := range sv.sets {
		if st.Stale {
			return true
		}
	}
	return false
}

func (st *set) whoIsListed(client *set) string {
	switch {
	case st.SetName == Running:
		return "running members"
	case st.SetName != Ready && client == st:
		return "running members, for their peers"
	}
	return "ready members"
}

func (sv *service) memberNode(v view, m *member) node {
	if m == nil || m.set.service != sv {
		return node{set: sv.sets[0], unsure: sv.stale(), why: "no such member of the set"}
	}
	if m.keptFrom(v) {
		return node{state: hidden, set: m.set, why: whyKept}
	}
	if !m.named() {
		return node{state: hidden, set: m.set, unsure: m.set.Stale, why: m.whyHidden()}
	}
	return node{state: full, set: m.set, member: m, why: m.whyNamed()}
}

// whyNamed says which rule lets the member's name answer.
func (m *member) whyNamed() string {
	switch {
	case m.set.MemberNames == Ready:
		return "member, ready"
	case m.set.MemberNames == Running:
		return "member, running"
	case !m.Running:
		return "member; not running, its address is reserved"
	}
	return "member"
}

const whyKept = "host_access is none: programs of this machine are not told"

func (m *member) whyHidden() string {
	switch {
	case !m.Address.IsValid():
		return "member has no address yet"
	case !m.Running:
		return "member is not running"
	case !m.Ready:
		return "member is not ready"
	}
	return "member is leaving"
}

// portNode is _http._tcp.web, or _tcp.web when port is empty. Only members whose names answer can be targets. Such names
// are ours also where there is no such port.
func (sv *service) portNode(v view, port, proto string) node {
	n := node{state: hidden, service: sv, set: sv.sets[0], unsure: sv.stale(), onlySRV: true, port: port, proto: proto, why: "no such port"}
	for _, st := range sv.sets {
		if !st.hasPort(port, proto) {
			continue
		}
		if n.state < empty {
			n.why = "no member to list"
		}
		if !st.anyTarget(v) {
			continue
		}
		n.state, n.unsure, n.why = full, false, "port of the set"
		if port == "" {
			n.state, n.why = empty, "only names below"
		}
	}
	return n
}

func (st *set) anyTarget(v view) bool {
	for _, m := range st.members {
		if m.listed(v) && m.named() {
			return true
		}
	}
	return false
}

func (st *set) hasPort(port, proto string) bool {
	for _, p := range st.Ports {
		if p.Name != "" && p.Protocol == proto && (port == "" || p.Name == port) {
			return true
		}
	}
	return false
}

// reverse finds an address of a managed network, or of a member. Anything else is absent.
func (s *Snapshot) reverse(v view, labels []string) node {
	block, extra, ok := parseReverse(labels)
	if !ok {
		return node{}
	}
	m := s.byAddr[block.Addr()]
	if !block.IsSingleIP() || extra > 0 {
		m = nil
	}
	subnet := s.subnetOf(block.Addr())
	managed := subnet.network != nil && block.Bits() >= subnet.Bits()
	if !managed && m == nil {
		return node{}
	}
	n := s.blockNode(v, block, m, extra)
	n.origin = reverseName(block)
	if managed { // the smallest reverse zone that holds nothing but managed addresses
		n.origin = reverseName(netip.PrefixFrom(block.Addr(), subnet.Bits()))
	}
	return n
}

func (s *Snapshot) blockNode(v view, block netip.Prefix, m *member, extra int) node {
	switch {
	case m != nil && m.keptFrom(v):
		return node{state: hidden, set: m.set, why: whyKept}
	case m != nil && m.named():
		fixed := []Record{{Type: TypePTR, TTL: m.set.ttl, Target: m.fqdn}}
		return node{state: full, fixed: fixed, set: m.set, why: "address of a member"}
	case m != nil:
		return node{state: hidden, set: m.set, unsure: m.set.Stale, why: m.whyHidden()}
	case extra == 0 && !block.IsSingleIP() && s.anyNamed(block):
		return node{state: empty, why: "addresses below"}
	}
	return node{state: hidden, why: "address of nobody"}
}

func (s *Snapshot) anyNamed(block netip.Prefix) bool {
	from, _ := slices.BinarySearchFunc(s.addrs, block.Addr(), netip.Addr.Compare)
	for _, addr := range s.addrs[from:] {
		if !block.Contains(addr) {
			return false
		}
		if s.byAddr[addr].named() {
			return true
		}
	}
	return false
}

// records gives what the node has of the type asked for.
func (s *Snapshot) records(q question, n node) (records, glue []Record) {
	switch q.qtype {
	case TypeANY: // RFC 8482
		return []Record{{Name: q.owner, Type: TypeHINFO, TTL: n.positive(), Text: "RFC8482"}}, nil
	case TypeSRV:
		return s.srv(q, n)
	}
	for _, r := range n.fixed {
		if r.Type == q.qtype {
			r.Name = q.owner
			records = append(records, r)
		}
	}
	if q.qtype == TypeNS && len(records) > 0 {
		return records, s.nsGlue(q)
	}
	if n.onlySRV {
		return records, nil
	}
	if q.qtype != TypeA && q.qtype != TypeAAAA {
		return records, nil
	}
	for _, m := range n.hosts(nil, q.view) {
		for _, r := range m.records(q.owner, q.view) {
			if r.Type == q.qtype {
				records = append(records, r)
			}
		}
	}
	return records, nil
}

func (s *Snapshot) nsGlue(q question) []Record {
	glue := addresses(s.serverFor(q.view), zoneTTL)
	for i := range glue {
		glue[i].Name = s.nsName()
	}
	return glue
}

func (s *Snapshot) srv(q question, n node) (records, glue []Record) {
	for _, m := range n.hosts(nil, q.view) {
		if !m.named() {
			continue
		}
		target := s.target(q, m)
		before := len(records)
		for _, p := range m.set.Ports {
			if n.port != "" && (p.Name != n.port || p.Protocol != n.proto) {
				continue
			}
			r := Record{Name: q.owner, Type: TypeSRV, TTL: m.set.ttl, Target: target, Port: uint16(p.Number)}
			records = append(records, r)
		}
		if len(records) > before {
			glue = append(glue, m.records(target, q.view)...)
		}
	}
	return records, glue
}

// target is the member's name in the zone that was asked, for resolvers that are sent to us for that zone only. Names
// without suffix get the long one: programs written for Kubernetes take its first three labels.
func (s *Snapshot) target(q question, m *member) string {
	switch {
	case q.zone == nil || q.zone.cluster:
		return m.fqdn
	case m.set.space == q.view.space:
		return m.Name + "." + q.zone.name
	}
	return m.Name + "." + m.set.service.label + "." + m.set.space.name + "." + q.zone.name
}

// records are the addresses that the client finds the member at.
func (m *member) records(owner string, v view) []Record {
	var records []Record
	for f := range 2 {
		if addr := m.hostFor(v, f).addrs[f]; addr.IsValid() {
			records = append(records, Record{Name: owner, Type: addrType(addr), TTL: m.set.ttl, Addr: addr})
		}
	}
	return records
}

func (n node) positive() uint32 {
	if n.set == nil {
		return zoneTTL
	}
	return n.set.ttl
}

func (n node) negative() uint32 {
	if n.set == nil {
		return negativeTTL
	}
	return n.set.negative
}

func (s *Snapshot) soa(origin string, ttl uint32) Record {
	return Record{Name: origin, Type: TypeSOA, TTL: ttl, Target: s.nsName(), Text: "hostmaster." + s.domain.name,
		Serial: s.serial, Minimum: ttl}
}

func (s *Snapshot) ns() Record {
	return Record{Type: TypeNS, TTL: zoneTTL, Target: s.nsName()}
}

func (s *Snapshot) nsName() string { return "ns.dns." + s.domain.name }

// serverFor is where the client finds us.
func (s *Snapshot) serverFor(v view) []netip.Addr {
	addr := s.server
	if v.network != nil && v.network.Gateway.IsValid() {
		addr = v.network.Gateway
	}
	if !addr.IsValid() {
		return nil
	}
	return []netip.Addr{addr}
}

func addresses(addrs []netip.Addr, ttl uint32) []Record {
	records := make([]Record, len(addrs))
	for i, addr := range addrs {
		addr = addr.Unmap()
		records[i] = Record{Type: addrType(addr), TTL: ttl, Addr: addr}
	}
	return records
}

func addrType(addr netip.Addr) uint16 {
	if addr.Is4() {
		return TypeA
	}
	return TypeAAAA
}

var (
	rcodeNames = map[int]string{NoError: "NOERROR", FormErr: "FORMERR", ServFail: "SERVFAIL", NXDomain: "NXDOMAIN",
		NotImp: "NOTIMP", Refused: "REFUSED"}
	typeNames = map[uint16]string{TypeA: "A", TypeNS: "NS", TypeSOA: "SOA", TypePTR: "PTR", TypeHINFO: "HINFO",
		TypeTXT: "TXT", TypeAAAA: "AAAA", TypeSRV: "SRV", TypeIXFR: "IXFR", TypeAXFR: "AXFR", TypeANY: "ANY",
		15: "MX", 43: "DS", 65: "HTTPS", 257: "CAA"} // the last ones are only asked for
)

// String is the record in zone file form.
func (r Record) String() string {
	head := fmt.Sprintf("%s %d %s ", r.Name, r.TTL, typeNames[r.Type])
	switch r.Type {
	case TypeA, TypeAAAA:
		return head + r.Addr.String()
	case TypeSRV:
		return head + fmt.Sprintf("0 %d %d %s", srvWeight, r.Port, r.Target)
	case TypeSOA:
		return head + fmt.Sprintf("%s %d %d", r.Target, r.Serial, r.Minimum)
	case TypeTXT, TypeHINFO:
		return head + fmt.Sprintf("%q", r.Text)
	}
	return head + r.Target
}

// srvWeight is equal for all members.
const srvWeight = 1

// Seconds in every SOA; nobody transfers our zones.
const (
	soaRefresh = 7200
	soaRetry   = 1800
	soaExpire  = 86400
)

// String is the rcode, the records, and after + and / the glue and the authority.
func (a Answer) String() string {
	var b strings.Builder
	b.WriteString(rcodeNames[a.Rcode])
	for _, part := range []struct {
		mark    string
		records []Record
	}{{" | ", a.Records}, {" + ", a.Glue}, {" / ", a.Authority}} {
		for _, r := range part.records {
			b.WriteString(part.mark)
			b.WriteString(r.String())
		}
	}
	return b.String()
}
