package dns

import (
	"net/netip"
	"sync"
	"time"
)

const (
	minUDP   = 512  // bytes that every client takes
	maxUDP   = 1232 // bytes that no path cuts; see the DNS flag day 2020
	maxTCP   = 65535
	maxQuery = 4096 // bytes of a query over UDP that we read

	udpQueue   = 1 << 20 // bytes of queries that the kernel holds for us in a burst; it may grant less
	maxSockets = 8       // per address, on UDP

	defaultRate = 1000 // queries per second and source; twice as many in a burst

	maxForwards     = 256
	maxForwardsEach = 32 // per source
	maxConns        = 64 // TCP, of all listeners
	maxConnsEach    = 8  // per source
	maxConnQueries  = 128
	connIdle        = 5 * time.Second // to send one whole query, or to take one answer

	forwardTotal = 4400 * time.Millisecond // clients give up after 5 s
	forwardTry   = 2 * time.Second
	maxServers   = 3 // as in resolv.conf(5)

	upkeepEvery = 10 * time.Second // failed listeners, the host's addresses
)

// turnstile bounds how many of something go on at once, in all and per source.
type turnstile struct {
	max, maxEach int

	mu   sync.Mutex
	all  int
	each map[netip.Addr]int
}

// enter must be paired with leave when it says true.
func (t *turnstile) enter(source netip.Addr) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all >= t.max || t.each[source] >= t.maxEach {
		return false
	}
	if t.each == nil {
		t.each = map[netip.Addr]int{}
	}
	t.all++
	t.each[source]++
	return true
}

func (t *turnstile) leave(source netip.Addr) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all--
	t.each[source]--
	if t.each[source] == 0 {
		delete(t.each, source)
	}
}

// meter bounds how often each source may ask.
type meter struct {
	rate   float64 // per second; zero or less: as often as it likes
	shards [16]meterShard
}

type meterShard struct {
	mu      sync.Mutex
	buckets map[netip.Addr]*bucket
	_       [48]byte // shards that are used side by side share no cache line
}

// bucket holds the questions that a source may ask at once, up to two seconds' worth.
type bucket struct {
	tokens float64
	at     time.Duration // on the server's clock
	over   int           // questions since it was empty
}

// maxBuckets per shard: more sources than our networks have make it forget all of them.
const maxBuckets = 1024

// verdict is what a source gets for a question.
type verdict int

const (
	served  verdict = iota
	cut             // told to ask over TCP, where it cannot forge its address
	ignored         // it asks too often
)

// ask takes a token. A source without one gets a cut reply and silence in turn, so that one whose address is forged is
// not flooded.
func (m *meter) ask(source netip.Addr, now time.Duration) verdict {
	if m.rate <= 0 {
		return served
	}
	last := source.As16()
	sh := &m.shards[last[15]%byte(len(m.shards))]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	b := sh.buckets[source]
	if b == nil {
		if sh.buckets == nil || len(sh.buckets) >= maxBuckets {
			sh.buckets = map[netip.Addr]*bucket{}
		}
		b = &bucket{tokens: 2 * m.rate, at: now}
		sh.buckets[source] = b
	}
	if passed := (now - b.at).Seconds(); passed > 0 {
		b.tokens, b.at = min(2*m.rate, b.tokens+passed*m.rate), now
	}
	if b.tokens >= 1 {
		b.tokens--
		b.over = 0
		return served
	}
	b.over++
	if b.over%2 == 1 {
		return cut
	}
	return ignored
}
