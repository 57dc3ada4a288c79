package dns

import (
	"context"
	"net/netip"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestQueriesAreCountedByWhoAskedForWhat(t *testing.T) {
	t.Parallel()
	s, addr := run(t, to(newUpstream(t, says(NoError, 1))))
	for _, name := range []string{"web-0.svc", "web-0.svc", "web-9.svc", "web-0.web." + long, "web", "example.test"} {
		exchangeUDP(t, containerIP, addr, ask4(name, TypeA))
	}
	exchangeUDP(t, containerIP, addr, ask4("10.0.87.10.in-addr.arpa", TypePTR))
	exchangeUDP(t, containerIP, addr, header(1, 0, 1))
	got := s.Counters()
	want := []QueryCount{
		{"network", "cluster", "NOERROR", 1},
		{"network", "short", "NOERROR", 2},
		{"network", "short", "NXDOMAIN", 1},
		{"network", "bare", "NOERROR", 1},
		{"network", "reverse", "NOERROR", 1},
		{"network", "foreign", "NOERROR", 1},
		{"other", "none", "FORMERR", 1},
	}
	if !reflect.DeepEqual(got.Answers, want) {
		t.Errorf("answers %v\nwant %v", got.Answers, want)
	}
	var answered uint64
	for _, n := range got.Latency.Counts {
		answered += n
	}
	if answered != 8 || got.Queries != 8 || got.Fast != 5 || got.Forwarded != 1 || got.SnapshotAge <= 0 {
		t.Errorf("counters %+v, want 8 queries, 5 of them fast, one forwarded", got)
	}
}

func TestHistogramsCountEachBucket(t *testing.T) {
	t.Parallel()
	s := NewServer(Config{})
	for _, d := range []time.Duration{0, time.Millisecond, 2 * time.Millisecond, 40 * time.Millisecond, time.Hour} {
		s.Propagated(d)
	}
	got := s.Counters().Propagation
	want := []uint64{2, 1, 0, 1, 0, 0, 1}
	if !reflect.DeepEqual(got.Counts, want) || got.Sum != time.Hour+43*time.Millisecond {
		t.Errorf("counts %v, sum %s, want %v", got.Counts, got.Sum, want)
	}
}

func TestPacketsLostByTheKernelAreReadFromItsTable(t *testing.T) {
	t.Parallel()
	table := `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops
  501: 0100570A:0035 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 20154 2 0000000000000000 7
  502: 0100570A:0035 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 20155 2 0000000000000000 5
  503: 0100007F:0035 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 20156 2 0000000000000000 90
  504: nonsense
`
	got := readDrops(strings.NewReader(table), map[netip.AddrPort]bool{netip.MustParseAddrPort("10.87.0.1:53"): true})
	if got != 12 {
		t.Errorf("lost %d, want 12", got)
	}
	for text, want := range map[string]string{
		"0100007F:0035":                         "127.0.0.1:53",
		"00000000000000000000000001000000:14EB": "[::1]:5355",
		"0000000000000000FFFF00000100007F:0035": "127.0.0.1:53",
	} {
		if got, err := parseProcAddr(text); err != nil || got.String() != want {
			t.Errorf("%s = %v, %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "0100007F", "01:35", "xyz:35", "0100007F:99999"} {
		if got, err := parseProcAddr(text); err == nil {
			t.Errorf("%q = %v, want an error", text, got)
		}
	}
}

func TestATraceSaysWhatWasAnsweredAndWhy(t *testing.T) {
	t.Parallel()
	s, addr := run(t, to(newUpstream(t, says(NXDomain, 0))))
	ctx, cancel := context.WithCancel(t.Context())
	seen := make(chan Query, 10)
	var tracing sync.WaitGroup
	tracing.Go(func() { s.Trace(ctx, func(q Query, _ int) { seen <- q }) })
	for s.Counters().Watchers == 0 {
		time.Sleep(time.Millisecond)
	}
	for _, name := range []string{"web-0.svc", "web-2.svc", "example.test"} {
		exchangeUDP(t, containerIP, addr, ask4(name, TypeA))
	}
	exchangeUDP(t, containerIP, addr, header(1, 0, 1))
	for _, want := range []Query{
		{Name: "web-0.svc.", Type: "A", Rcode: "NOERROR", Records: []string{"web-0.svc. 5 A 10.87.0.10"}, Why: "member, ready"},
		{Name: "web-2.svc.", Type: "A", Rcode: "NXDOMAIN", Records: []string{}, Why: "member is not ready"},
		{Name: "example.test.", Type: "A", Rcode: "NXDOMAIN", Records: []string{}, Why: "not a name of ours: forwarded", Foreign: true},
		{Rcode: "FORMERR", Records: []string{}, Why: "could not be read as a question of class IN"},
	} {
		got := <-seen
		if got.Took <= 0 || got.Time.IsZero() {
			t.Errorf("%s: took %s at %s", got.Name, got.Took, got.Time)
		}
		want.Client, want.At, want.Time, want.Took = ip(containerIP), addr.Addr(), got.Time, got.Took
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v\nwant %+v", got, want)
		}
	}
	cancel()
	tracing.Wait()
	if n := s.Counters().Watchers; n != 0 {
		t.Errorf("%d watchers left", n)
	}
}
