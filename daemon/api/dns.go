package api

import (
	"net/http"

	"github.com/stsd/stsd/daemon/client"
)

var (
	dnsParams = []param{
		{"name", "string", "with or without suffix, or an address for its name; absent: all names of sets and members"},
		{"type", "string", "type of record; absent: A"},
		{"from", "string", "who asks: an address, a member, or NAMESPACE/MEMBER; absent: every kind of client"},
	}
	dnsTraceParams = []param{{"name", "string", "questions for this name only"}}
)

func dnsNames(s *Server, w http.ResponseWriter, r *http.Request) error {
	v := r.URL.Query()
	out, err := s.Service.DNS(r.Context(), client.DNSQuery{Name: v.Get("name"), Type: v.Get("type"), From: v.Get("from")})
	if err != nil {
		return err
	}
	return answer(w, out)
}

func dnsTrace(s *Server, w http.ResponseWriter, r *http.Request) error {
	started := false
	err := s.Service.TraceDNS(r.Context(), r.URL.Query().Get("name"), func() error {
		started = true
		return startLines(w)
	}, func(q client.DNSTraced) error { return line(w, q) })
	if err != nil && !started {
		return err
	}
	return endLines(w, r, err)
}
