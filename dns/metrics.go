package dns

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// viewKind and zoneKind say in a counter who asked for what.
type (
	viewKind int
	zoneKind int
)

const (
	viewHost viewKind = iota
	viewMember
	viewNetwork
	viewOther
	viewKinds
)

const (
	zoneCluster zoneKind = iota
	zoneShort
	zoneBare
	zoneReverse
	zoneForeign
	zoneNone // what could not be read
	zoneKinds
)

var (
	viewNames = [viewKinds]string{"host", "member", "network", "other"}
	zoneNames = [zoneKinds]string{"cluster", "short", "bare", "reverse", "foreign", "none"}
	rcodeKind = [...]string{"NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED", "other"}
)

// Reasons for which a packet or a connection gets no answer.
const (
	dropSource = iota // a source that we do not serve
	dropRate          // more than a source may ask
	dropConns         // more connections than there may be
	dropLoop          // from one of our own sockets, or from port 0
	dropKinds
)

var dropNames = [dropKinds]string{"source", "rate", "connections", "loop"}

// QueryCount is how many queries of one kind had one outcome.
type QueryCount struct {
	View  string // "host", "member", "network" (another container of one), "other" (allowed by its source)
	Zone  string // "cluster", "short", "bare" (no suffix), "reverse", "foreign", "none" (could not be read)
	Rcode string
	Count uint64
}

// Histogram counts durations. Counts has one more than Bounds, for what is longer than all.
type Histogram struct {
	Bounds []time.Duration
	Counts []uint64 // each of its own bucket, not cumulative
	Sum    time.Duration
}

// Counters only grow, but for SnapshotAge and Watchers.
type Counters struct {
	Queries   uint64 // packets from sources that we serve
	Answers   []QueryCount
	Fast      uint64    // of Answers, those that needed no allocation
	Latency   Histogram // from the packet to the reply, forwards included
	Forwarded uint64
	Failed    uint64 // forwards that got no answer, or were over the limit
	Dropped   uint64 // packets and connections without an answer
	Drops     map[string]uint64
	Cut       uint64 // replies that said "ask over TCP" because their source asked too often
	// Lost are packets that the kernel dropped because a socket's queue was full; -1 where that is not known.
	Lost int64
	// Propagation is from the moment a change was seen to the snapshot that shows it.
	Propagation Histogram
	SnapshotAge time.Duration // since the latest Publish; zero: none yet
	Watchers    int           // of Trace
}

var (
	latencyBounds = []time.Duration{10 * time.Microsecond, 100 * time.Microsecond, time.Millisecond, 10 * time.Millisecond,
		100 * time.Millisecond, time.Second, 5 * time.Second}
	propagationBounds = []time.Duration{time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 50 * time.Millisecond,
		100 * time.Millisecond, time.Second}
)

// histogram is a Histogram that many count into.
type histogram struct {
	bounds []time.Duration
	counts [8]atomic.Uint64
	sum    atomic.Int64
}

func (h *histogram) add(d time.Duration) {
	i := 0
	for i < len(h.bounds) && d > h.bounds[i] {
		i++
	}
	h.counts[i].Add(1)
	h.sum.Add(int64(d))
}

func (h *histogram) read() Histogram {
	out := Histogram{Bounds: slices.Clone(h.bounds), Sum: time.Duration(h.sum.Load())}
	for i := range len(h.bounds) + 1 {
		out.Counts = append(out.Counts, h.counts[i].Load())
	}
	return out
}

// tally is everything that a server counts.
type tally struct {
	queries, fast, forwarded, failed, cut atomic.Uint64

	answers     [viewKinds][zoneKinds][len(rcodeKind)]atomic.Uint64
	drops       [dropKinds]atomic.Uint64
	latency     histogram
	propagation histogram
	published   atomic.Int64 // Unix nanoseconds of the latest snapshot
}

func (t *tally) answered(v viewKind, z zoneKind, rcode int, took time.Duration) {
	t.answers[v][z][min(rcode, len(rcodeKind)-1)].Add(1)
	t.latency.add(took)
}

// Counters is a copy of the counters.
func (s *Server) Counters() Counters {
	t := &s.tally
	c := Counters{
		Queries: t.queries.Load(), Fast: t.fast.Load(), Forwarded: t.forwarded.Load(), Failed: t.failed.Load(), Cut: t.cut.Load(),
		Drops: map[string]uint64{}, Latency: t.latency.read(), Propagation: t.propagation.read(),
		Lost: lostPackets(*s.bound.Load()), Watchers: int(s.watching.Load()),
	}
	for i := range t.drops {
		n := t.drops[i].Load()
		c.Drops[dropNames[i]] = n
		c.Dropped += n
	}
	for v := range t.answers {
		for z := range t.answers[v] {
			for r := range t.answers[v][z] {
				if n := t.answers[v][z][r].Load(); n > 0 {
					c.Answers = append(c.Answers, QueryCount{viewNames[v], zoneNames[z], rcodeKind[r], n})
				}
			}
		}
	}
	if at := t.published.Load(); at != 0 {
		c.SnapshotAge = time.Since(time.Unix(0, at))
	}
	return c
}

// kindOf is the kind of a name of ours that is no address.
func kindOf(z *zone) zoneKind {
	switch {
	case z == nil:
		return zoneBare
	case z.cluster:
		return zoneCluster
	}
	return zoneShort
}

// kindOfName is the kind of any name, after it was answered.
func (s *Snapshot) kindOfName(name string, a Answer) zoneKind {
	labels := splitName(name)
	z, _ := s.zoneOf(labels)
	if _, _, ok := parseReverse(labels); ok && !a.Foreign {
		return zoneReverse
	}
	if a.Foreign {
		return zoneForeign
	}
	return kindOf(z)
}

func (v view) kind() viewKind {
	switch {
	case v.member != nil:
		return viewMember
	case v.host:
		return viewHost
	case v.network != nil:
		return viewNetwork
	}
	return viewOther
}

// lostPackets adds up what the kernel dropped at our sockets.
func lostPackets(bound map[netip.AddrPort]bool) int64 {
	total := int64(-1)
	for _, path := range []string{"/proc/net/udp", "/proc/net/udp6"} {
		f, err := os.Open(path)
		if err != nil {
			continue
		}
		total = max(total, 0) + readDrops(f, bound)
		f.Close()
	}
	return total
}

// readDrops reads the table of proc(5): the second column is the local address, the last one counts drops.
func readDrops(table io.Reader, bound map[netip.AddrPort]bool) (drops int64) {
	for lines := bufio.NewScanner(table); lines.Scan(); {
		words := strings.Fields(lines.Text())
		if len(words) < 3 {
			continue
		}
		local, err := parseProcAddr(words[1])
		if err != nil || !bound[local] {
			continue
		}
		if n, err := strconv.ParseInt(words[len(words)-1], 10, 64); err == nil {
			drops += n
		}
	}
	return drops
}

// parseProcAddr reads "0100007F:0035": words of four bytes in the order of this machine, taken to be little-endian.
func parseProcAddr(text string) (netip.AddrPort, error) {
	host, port, _ := strings.Cut(text, ":")
	b, err := hex.DecodeString(host)
	if err != nil || len(b)%4 != 0 {
		return netip.AddrPort{}, fmt.Errorf("read address %q: no hexadecimal words", text)
	}
	for i := 0; i < len(b); i += 4 {
		slices.Reverse(b[i : i+4])
	}
	addr, ok := netip.AddrFromSlice(b)
	p, err := strconv.ParseUint(port, 16, 16)
	if err != nil || !ok {
		return netip.AddrPort{}, fmt.Errorf("read address %q: %w", text, err)
	}
	return netip.AddrPortFrom(addr.Unmap(), uint16(p)), nil
}
