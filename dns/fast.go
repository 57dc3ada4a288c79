package dns

import (
	"encoding/binary"
	"math/rand/v2"
	"strings"
	"unsafe"
)

// This file answers most packets without a library and without allocating: one question for A or AAAA of a plain name,
// with no OPT or an empty one. Names are found by the very code that Answer uses; records lie packed in the snapshot.
// Whatever is not plain is left to the slow way, whose reply would say the same.

const (
	pointerToQuestion = 0xc00c // the name at the end of the header, compressed

	optSize = 11 // bytes of an OPT without options
	soaTail = 20 // bytes of a SOA after its two names
)

// scratch is what one reader needs to answer without allocating. What it returns is good until it is used again.
type scratch struct {
	name   [maxName]byte // in lower case, with dots
	labels [maxName / 2]string
	hosts  []*member
	reply  [maxUDP]byte
}

const maxName = 255 // bytes on the wire

// plain is a packet that the fast way reads.
type plain struct {
	name   string   // in lower case, without the last dot; in the scratch
	labels []string // of it
	end    int      // of the question
	qtype  uint16
	limit  int // bytes that the client takes
	edns   bool
	do     bool
}

// answer replies to a packet, or gives nil when the slow way has to. where and rcode are for the counters.
func (s *scratch) answer(snap *Snapshot, v view, packet []byte, recursion bool) (reply []byte, where zoneKind, rcode int) {
	q, ok := s.read(packet)
	if !ok {
		return nil, 0, 0
	}
	n, z := snap.locate(v, q.name, q.labels)
	if z == nil && (n.state == absent || n.origin != ".") || n.fixed != nil || n.unsure {
		return nil, 0, 0
	}
	s.hosts = s.hosts[:0]
	if n.state == full && !n.onlySRV {
		s.hosts = n.hosts(s.hosts, v)
	}
	b := append(s.reply[:0], packet[:q.end]...)
	b, answers := s.addresses(b, &q, v)
	authority := 0
	if answers == 0 {
		b, authority = snap.deny(b, &q, &n, z), 1
	}
	b = q.appendOPT(b)
	if len(b) > q.limit || authority == 1 && snap.denial == nil {
		return nil, 0, 0
	}
	if n.state < empty {
		rcode = NXDomain
	}
	q.finish(b, rcode, answers, authority, recursion)
	return b, kindOf(z), rcode
}

// read takes the packet apart. Anything unusual is not ok.
func (s *scratch) read(packet []byte) (q plain, ok bool) {
	if len(packet) < headerSize || packet[2]&0xf8 != 0 || binary.BigEndian.Uint32(packet[4:]) != 1<<16 ||
		binary.BigEndian.Uint32(packet[8:])&^1 != 0 {
		return q, false
	}
	if !s.readName(packet, &q) || len(packet) < q.end {
		return q, false
	}
	q.qtype = binary.BigEndian.Uint16(packet[q.end-4:])
	class := binary.BigEndian.Uint16(packet[q.end-2:])
	if class != 1 || q.qtype != TypeA && q.qtype != TypeAAAA {
		return q, false
	}
	q.limit = minUDP
	rest := packet[q.end:]
	if packet[11] == 0 {
		return q, len(rest) == 0
	}
	return q, q.readOPT(rest)
}

// readName reads letters, digits, dashes and underscores only: other bytes have escapes in presentation form.
func (s *scratch) readName(packet []byte, q *plain) bool {
	labels, n := 0, 0
	for i := headerSize; i < len(packet); {
		size := int(packet[i])
		if size == 0 {
			q.end = i + 5
			q.labels = s.labels[:labels]
			q.name = unsafe.String(&s.name[0], max(n-1, 0)) // the scratch keeps it until the next packet
			return labels > 0
		}
		if size > 63 || i+1+size >= len(packet) || n+size+2 > maxName {
			return false
		}
		start := n
		for _, c := range packet[i+1 : i+1+size] {
			if s.name[n] = lowerPlain[c]; s.name[n] == 0 {
				return false
			}
			n++
		}
		s.labels[labels] = unsafe.String(&s.name[start], size)
		labels++
		s.name[n] = '.'
		n++
		i += 1 + size
	}
	return false
}

// lowerPlain is the lower case of the bytes that need no escape, and zero for others.
var lowerPlain = func() (table [256]byte) {
	for c := range byte(128) {
		switch {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-', c == '_':
			table[c] = c
		case 'A' <= c && c <= 'Z':
			table[c] = c + 'a' - 'A'
		}
	}
	return table
}()

// readOPT takes one of version 0 without options, and nothing behind it.
func (q *plain) readOPT(rest []byte) bool {
	if len(rest) != optSize || rest[0] != 0 || rest[1] != 0 || rest[2] != 41 || rest[5] != 0 || rest[6] != 0 ||
		rest[9] != 0 || rest[10] != 0 {
		return false
	}
	q.edns, q.do = true, rest[7]&0x80 != 0
	q.limit = min(max(int(binary.BigEndian.Uint16(rest[3:])), minUDP), maxUDP)
	return true
}

// addresses appends the hosts' records in an order that turns. Those that do not fit any reply are counted, not written.
func (s *scratch) addresses(b []byte, q *plain, v view) ([]byte, int) {
	f := 0
	if q.qtype == TypeAAAA {
		f = 1
	}
	count, turn := 0, 0
	if len(s.hosts) > 1 {
		turn = rand.IntN(len(s.hosts))
	}
	for i := range s.hosts {
		m := s.hosts[(i+turn)%len(s.hosts)]
		packed := m.hostFor(v, f).packed[f]
		if len(packed) == 0 {
			continue
		}
		count++
		if len(b)+len(packed) > len(s.reply) {
			q.limit = 0 // the slow way cuts answers
			return b, count
		}
		b = append(b, packed...)
	}
	return b, count
}

// deny appends the SOA of the zone, whose name is the end of the question.
func (s *Snapshot) deny(b []byte, q *plain, n *node, z *zone) []byte {
	ttl := n.negative()
	if z == nil {
		b = append(b, 0)
	} else {
		b = binary.BigEndian.AppendUint16(b, 0xc000|uint16(q.end-4-z.wireSize))
	}
	start := len(b)
	b = append(b, s.denial...)
	if len(s.denial) > 0 {
		binary.BigEndian.PutUint32(b[start+4:], ttl)
		binary.BigEndian.PutUint32(b[len(b)-4:], ttl)
	}
	return b
}

func (q *plain) appendOPT(b []byte) []byte {
	if !q.edns {
		return b
	}
	var do byte
	if q.do {
		do = 0x80
	}
	return append(b, 0, 0, 41, maxUDP>>8, maxUDP&0xff, 0, 0, do, 0, 0, 0)
}

// finish writes the header of an authoritative reply over that of the query.
func (q *plain) finish(b []byte, rcode, answers, authority int, recursion bool) {
	b[2] = 0x84 | b[2]&1 // QR, AA, and RD as it was
	b[3] = byte(rcode)
	if recursion {
		b[3] |= 0x80
	}
	binary.BigEndian.PutUint16(b[6:], uint16(answers))
	binary.BigEndian.PutUint16(b[8:], uint16(authority))
	b[10], b[11] = 0, 0
	if q.edns {
		b[11] = 1
	}
}

// packAddress is an A or AAAA record that is owned by the name asked.
func packAddress(r Record) []byte {
	b := binary.BigEndian.AppendUint16(make([]byte, 0, 28), pointerToQuestion)
	b = appendFixed(b, r)
	data := r.Addr.AsSlice()
	b = binary.BigEndian.AppendUint16(b, uint16(len(data)))
	return append(b, data...)
}

// packSOA is a SOA without its owner, nil if a name of it has no plain form.
func packSOA(r Record) []byte {
	server, ok1 := packName(r.Target)
	mailbox, ok2 := packName(r.Text)
	if !ok1 || !ok2 {
		return nil
	}
	b := appendFixed(nil, r)
	b = binary.BigEndian.AppendUint16(b, uint16(len(server)+len(mailbox)+soaTail))
	b = append(append(b, server...), mailbox...)
	for _, v := range []uint32{r.Serial, soaRefresh, soaRetry, soaExpire, r.Minimum} {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	return b
}

func appendFixed(b []byte, r Record) []byte {
	b = binary.BigEndian.AppendUint16(b, r.Type)
	b = binary.BigEndian.AppendUint16(b, 1) // class IN
	return binary.BigEndian.AppendUint32(b, r.TTL)
}

func packName(name string) (b []byte, ok bool) {
	if strings.Contains(name, `\`) {
		return nil, false
	}
	for label := range strings.SplitSeq(strings.TrimSuffix(name, "."), ".") {
		if label == "" || len(label) > 63 {
			return nil, false
		}
		b = append(append(b, byte(len(label))), label...)
	}
	b = append(b, 0)
	return b, len(b) <= maxName
}
