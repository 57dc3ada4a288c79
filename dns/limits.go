package dns

import (
	"net/netip"
	"sync"
	"time"
)

const (
	minUDP = 512  // bytes that every client takes
	maxUDP = 1232 // bytes that no path cuts; see the DNS flag day 2020
	maxTCP = 65535

	udpQueue = 1 << 20 // bytes of queries that the kernel holds for us in a burst; it may grant less

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
