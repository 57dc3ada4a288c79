package dns

import (
	"context"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// Query is one question and what became of it.
type Query struct {
	Time    time.Time     `json:"time"`
	Client  netip.Addr    `json:"client"`
	At      netip.Addr    `json:"at"` // the address that was asked
	TCP     bool          `json:"tcp"`
	Name    string        `json:"name"` // as asked; "": it could not be read
	Type    string        `json:"type"`
	Rcode   string        `json:"rcode"`
	Records []string      `json:"records"` // ours; those of foreign names are passed on unread
	Why     string        `json:"why"`
	Foreign bool          `json:"foreign"` // no name of ours
	Cut     bool          `json:"cut"`     // the reply says "ask over TCP"
	Took    time.Duration `json:"took"`
}

// traceQueue is how many queries wait for a watcher; a slow one misses some.
const traceQueue = 512

// Trace gives each query that is answered from now on to each, until ctx ends. While someone traces, no query is
// answered the fast way. A watcher that is slower than the queries misses some: missed says how many so far.
func (s *Server) Trace(ctx context.Context, each func(q Query, missed int)) {
	w := &watcher{queries: make(chan Query, traceQueue)}
	s.watchers.Store(w, true)
	s.watching.Add(1)
	defer func() {
		s.watching.Add(-1)
		s.watchers.Delete(w)
	}()
	for {
		select {
		case <-ctx.Done():
			return
		case q := <-w.queries:
			each(q, int(w.missed.Load()))
		}
	}
}

// tell hands a query to the watchers without ever waiting.
func (s *Server) tell(q Query) {
	s.watchers.Range(func(key, _ any) bool {
		w := key.(*watcher)
		select {
		case w.queries <- q:
		default:
			w.missed.Add(1)
		}
		return true
	})
}

// TypeName is a record type as people write it: "A", "TYPE65".
func TypeName(t uint16) string {
	if name, ok := typeNames[t]; ok {
		return name
	}
	return "TYPE" + strconv.Itoa(int(t))
}

// ParseType reads a TypeName, in any case.
func ParseType(name string) (uint16, bool) {
	name = strings.ToUpper(name)
	for t, known := range typeNames {
		if known == name {
			return t, true
		}
	}
	number, ok := strings.CutPrefix(name, "TYPE")
	n, err := strconv.ParseUint(number, 10, 16)
	return uint16(n), ok && err == nil
}

// RcodeName is "NOERROR" and so on.
func RcodeName(rcode int) string {
	if name, ok := rcodeNames[rcode]; ok {
		return name
	}
	return "RCODE" + strconv.Itoa(rcode)
}

func lines(records []Record) []string {
	out := make([]string, len(records))
	for i, r := range records {
		out[i] = r.String()
	}
	return out
}
