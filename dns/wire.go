package dns

import (
	"encoding/binary"
	"math/rand/v2"
	"net"

	wire "github.com/miekg/dns"
)

// This is the only file that imports a DNS library; fast.go knows the plainest packets by itself.

const (
	headerSize = 12
	badVers    = 16
)

// query is a packet that asks one thing in class IN.
type query struct {
	name  string // presentation form, absolute, case kept
	qtype uint16
	limit int // bytes that the client takes

	id           uint16
	class        uint16
	rd, edns, do bool
}

// decode reads a packet. Without a query there is only the reply to send, or silence.
func decode(packet []byte, tcp bool) (*query, []byte) {
	if len(packet) < headerSize || isResponse(packet) {
		return nil, nil
	}
	if opcode := packet[2] >> 3 & 0xf; opcode != wire.OpcodeQuery {
		return nil, headerReply(packet, NotImp)
	}
	var m wire.Msg
	if !plausible(packet) || m.Unpack(packet) != nil || !complete(packet, &m) {
		return nil, headerReply(packet, FormErr)
	}
	q := &query{name: m.Question[0].Name, qtype: m.Question[0].Qtype, class: m.Question[0].Qclass}
	q.id, q.rd, q.limit = m.Id, m.RecursionDesired, minUDP
	version, ok := q.readOPT(&m)
	if tcp {
		q.limit = maxTCP
	}
	switch {
	case !ok:
		return nil, headerReply(packet, FormErr)
	case version != 0:
		return nil, q.fail(badVers)
	case q.class != wire.ClassINET:
		return nil, q.fail(Refused)
	}
	return q, nil
}

func isResponse(packet []byte) bool { return packet[2]&0x80 != 0 }

func count(packet []byte, section int) int {
	return int(binary.BigEndian.Uint16(packet[4+2*section:]))
}

// plausible looks at the counts before anything is unpacked. IXFR has a SOA in authority; OPT and TSIG are additional.
func plausible(packet []byte) bool {
	return count(packet, 0) == 1 && count(packet, 1) == 0 && count(packet, 2) <= 1 && count(packet, 3) <= 2
}

// complete: the library forgives a packet that ends after its header or between two records.
func complete(packet []byte, m *wire.Msg) bool {
	return len(m.Question) == 1 && len(m.Ns) == count(packet, 2) && len(m.Extra) == count(packet, 3) &&
		questionSize(packet) > 0
}

// questionSize is the length of a question that holds no pointers, 0 if there is none.
func questionSize(packet []byte) int {
	for i := headerSize; i < len(packet); i += 1 + int(packet[i]) {
		switch {
		case packet[i] > 63:
			return 0
		case packet[i] == 0 && i+5 <= len(packet):
			return i + 5 - headerSize
		case packet[i] == 0:
			return 0
		}
	}
	return 0
}

func (q *query) readOPT(m *wire.Msg) (version uint8, ok bool) {
	for _, r := range m.Extra {
		opt, isOPT := r.(*wire.OPT)
		if !isOPT {
			continue
		}
		if q.edns || opt.Hdr.Name != "." {
			return 0, false
		}
		q.edns, q.do, version = true, opt.Do(), opt.Version()
		q.limit = min(max(int(opt.UDPSize()), minUDP), maxUDP)
	}
	return version, true
}

// headerReply answers what could not be read: no question, no OPT. The packet has a header.
func headerReply(packet []byte, rcode int) []byte {
	reply := make([]byte, headerSize)
	copy(reply, packet[:2])
	reply[2] = 0x80 | packet[2]&0x79 // opcode and RD
	reply[3] = byte(rcode)
	return reply
}

// fail answers with an rcode alone.
func (q *query) fail(rcode int) []byte { return q.pack(q.reply(rcode)) }

// encode packs an answer of ours, in an order that turns, so that load spreads and a cut answer differs each time.
func (q *query) encode(a Answer, recursion bool) []byte {
	m := q.reply(a.Rcode)
	m.Authoritative = a.Rcode == NoError || a.Rcode == NXDomain
	if opt := m.IsEdns0(); opt != nil && a.Extended != 0 {
		opt.Option = append(opt.Option, &wire.EDNS0_EDE{InfoCode: a.Extended, ExtraText: a.Why})
	}
	m.RecursionAvailable = recursion
	if n := len(a.Records); n > 0 {
		turn := rand.IntN(n)
		m.Answer = appendRRs(appendRRs(m.Answer, a.Records[turn:]), a.Records[:turn])
	}
	m.Ns = appendRRs(m.Ns, a.Authority)
	m.Extra = append(appendRRs(nil, a.Glue), m.Extra...)
	return q.pack(m)
}

func (q *query) reply(rcode int) *wire.Msg {
	m := new(wire.Msg)
	m.Id, m.Response, m.RecursionDesired, m.Rcode = q.id, true, q.rd, rcode
	m.Question = []wire.Question{{Name: q.name, Qtype: q.qtype, Qclass: q.class}}
	if q.edns {
		opt := &wire.OPT{Hdr: wire.RR_Header{Name: ".", Rrtype: wire.TypeOPT}}
		opt.SetUDPSize(maxUDP)
		if q.do {
			opt.SetDo()
		}
		m.Extra = []wire.RR{opt}
	}
	return m
}

// pack fits the message into what the client takes: first glue goes, then as much of the answer as must, with TC set.
func (q *query) pack(m *wire.Msg) []byte {
	m.Compress = true
	b, err := m.Pack()
	if err == nil && len(b) > q.limit {
		dropGlue(m)
		m.Truncate(q.limit)
		b, err = m.Pack()
	}
	if err != nil || len(b) > q.limit {
		return q.servfail()
	}
	return b
}

func dropGlue(m *wire.Msg) {
	opt := m.IsEdns0()
	m.Extra = nil
	if opt != nil {
		m.Extra = []wire.RR{opt}
	}
}

func (q *query) servfail() []byte {
	b := make([]byte, headerSize)
	binary.BigEndian.PutUint16(b, q.id)
	b[2], b[3] = 0x80, ServFail
	return b
}

// cutReply tells the sender of a packet to ask over TCP; nil if it holds no question.
func cutReply(packet []byte) []byte {
	if len(packet) < headerSize || isResponse(packet) || packet[2]&0x78 != 0 || count(packet, 0) != 1 {
		return nil
	}
	n := questionSize(packet)
	if n == 0 {
		return nil
	}
	b := append([]byte(nil), packet[:headerSize+n]...)
	b[2] = 0x82 | packet[2]&0x01 // QR, TC and RD as it was
	b[3] = 0
	clear(b[6:headerSize])
	return b
}

// shrink fits a forwarded reply into what the client takes.
func (q *query) shrink(reply []byte) []byte {
	if len(reply) <= q.limit {
		return reply
	}
	var m wire.Msg
	if m.Unpack(reply) != nil {
		return cutToQuestion(reply)
	}
	m.Compress = true
	m.Truncate(q.limit)
	b, err := m.Pack()
	if err != nil || len(b) > q.limit {
		return cutToQuestion(reply)
	}
	return b
}

// cutToQuestion leaves nothing but the advice to ask over TCP.
func cutToQuestion(reply []byte) []byte {
	b := append([]byte(nil), reply[:headerSize+questionSize(reply)]...)
	b[2] |= 0x02
	clear(b[6:headerSize])
	return b
}

func appendRRs(rrs []wire.RR, records []Record) []wire.RR {
	for _, r := range records {
		rrs = append(rrs, toRR(r))
	}
	return rrs
}

func toRR(r Record) wire.RR {
	head := wire.RR_Header{Name: r.Name, Rrtype: r.Type, Class: wire.ClassINET, Ttl: r.TTL}
	switch r.Type {
	case TypeA:
		return &wire.A{Hdr: head, A: net.IP(r.Addr.AsSlice())}
	case TypeAAAA:
		return &wire.AAAA{Hdr: head, AAAA: net.IP(r.Addr.AsSlice())}
	case TypeSRV:
		return &wire.SRV{Hdr: head, Weight: srvWeight, Port: r.Port, Target: r.Target}
	case TypePTR:
		return &wire.PTR{Hdr: head, Ptr: r.Target}
	case TypeNS:
		return &wire.NS{Hdr: head, Ns: r.Target}
	case TypeTXT:
		return &wire.TXT{Hdr: head, Txt: []string{r.Text}}
	case TypeHINFO:
		return &wire.HINFO{Hdr: head, Cpu: r.Text}
	}
	return soaRR(r, head)
}

func soaRR(r Record, head wire.RR_Header) wire.RR {
	return &wire.SOA{Hdr: head, Ns: r.Target, Mbox: r.Text, Serial: r.Serial,
		Refresh: soaRefresh, Retry: soaRetry, Expire: soaExpire, Minttl: r.Minimum}
}
