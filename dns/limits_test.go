package dns

import (
	"net/netip"
	"testing"
	"time"
)

func TestASourceMayAskSoOften(t *testing.T) { // 53
	t.Parallel()
	m := meter{rate: 1000}
	now := time.Hour
	count := func(source string, asks int, during time.Duration) (got [3]int) {
		for i := range asks {
			got[m.ask(ip(source), now+during*time.Duration(i)/time.Duration(asks))]++
		}
		return got
	}
	if got, want := count("10.87.0.9", 5000, 0), [3]int{2000, 1500, 1500}; got != want {
		t.Errorf("5000 at once: served, cut, ignored %v, want %v", got, want)
	}
	if got, want := count("10.87.0.25", 2000, 0), [3]int{2000, 0, 0}; got != want {
		t.Errorf("another source meanwhile: %v, want %v", got, want)
	}
	now += time.Minute
	if got := count("10.87.0.9", 5000, time.Second); got[served] < 2990 || got[served] > 3000 {
		t.Errorf("5000 in a second: %d served, want the burst of 2000 and 1000 more", got[served])
	}
	now += time.Second
	if got := count("10.87.0.9", 500, time.Second); got[served] != 500 {
		t.Errorf("500 in a second: %v, want all served", got)
	}
	free := meter{rate: -1}
	for range 10_000 {
		if free.ask(ip("10.87.0.9"), now) != served {
			t.Fatal("without a rate all are served")
		}
	}
}

func TestManySourcesTakeLittleRoom(t *testing.T) {
	t.Parallel()
	m := meter{rate: 1}
	addr := ip("10.0.0.0")
	for range 100_000 {
		m.ask(addr, 0)
		addr = addr.Next()
	}
	for i := range m.shards {
		if n := len(m.shards[i].buckets); n > maxBuckets {
			t.Errorf("shard %d remembers %d sources, want %d at most", i, n, maxBuckets)
		}
	}
}

func TestAFloodIsCutAndOthersAreServed(t *testing.T) { // 53
	t.Parallel()
	s, addr := run(t, Config{Rate: 5})
	query := ask4("web-0.svc", TypeA)
	flood := dial(t, "udp", "127.0.0.4", addr)
	for range 30 {
		flood.Write(query)
	}
	answers, cuts := 0, 0
	buf := make([]byte, 512)
	flood.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
	for {
		n, err := flood.Read(buf)
		if err != nil {
			break
		}
		if truncated(buf[:n]) {
			cuts++
			if n != len(query) {
				t.Errorf("cut reply of %d bytes to a query of %d", n, len(query))
			}
			continue
		}
		answers++
	}
	if answers < 10 || answers > 13 || cuts < 8 || cuts > 10 {
		t.Errorf("%d answers and %d cut replies to 30 queries, want 10 and 10", answers, cuts)
	}
	if got := exchangeUDP(t, "127.0.0.5", addr, query); count(got, 1) != 1 {
		t.Errorf("another source: %x", got)
	}
	c := s.Counters()
	if c.Cut != uint64(cuts) || c.Drops["rate"] == 0 || c.Queries != uint64(answers)+1 {
		t.Errorf("counters %+v after %d answers and %d cuts", c, answers, cuts)
	}
}

func TestSourcesThatAreAllowedSeeOwnNamesOnly(t *testing.T) {
	t.Parallel()
	s := NewServer(Config{AllowFrom: []netip.Prefix{netip.MustParsePrefix("192.168.7.0/24")}})
	s.Publish(Build(fixture()))
	if !s.admits(ip("192.168.7.9")) || s.admits(ip("192.168.8.9")) {
		t.Error("allowed sources, and only they, are admitted")
	}
	if got := s.ask("192.168.7.9", ask4("web-0.svc", TypeA), false); rcodeOf(got.reply) != NoError || got.view != viewOther {
		t.Errorf("own name: %x", got.reply)
	}
	if got := s.ask("192.168.7.9", ask4("example.test", TypeA), false); got.foreign || rcodeOf(got.reply) != Refused {
		t.Errorf("foreign name: forwarded %v, %x, want REFUSED", got.foreign, got.reply)
	}
}
