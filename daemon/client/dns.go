package client

import (
	"context"
	"time"
)

// DNSQuery asks what DNS answers now.
type DNSQuery struct {
	Name string // with or without suffix, or an address for its name; "": all names of sets and members
	Type string // "A" when empty
	From string // who asks: an address, "web-0" or "NAMESPACE/web-0"; "": every kind of client
}

// DNS is GET /v1/dns.
type DNS struct {
	Listeners []DNSListener `json:"listeners"`
	Names     []DNSName     `json:"names"`
}

// DNSListener is an address that DNS answers at.
type DNSListener struct {
	Address string `json:"address"`
	Problem string `json:"problem,omitempty"` // why it does not
}

// DNSName is one name and what is answered for it.
type DNSName struct {
	Name string    `json:"name"`
	Type string    `json:"type"`
	Told []DNSTold `json:"told"`
}

// DNSTold is what one kind of client is told, and why.
type DNSTold struct {
	To        []string `json:"to"`
	Rcode     string   `json:"rcode"` // "NOERROR", …; "" when the name is forwarded
	Records   []string `json:"records"`
	Why       string   `json:"why"`
	Forwarded []string `json:"forwarded,omitempty"` // the servers that are asked instead
}

// DNSTraced is one line of GET /v1/dns/trace: a question and what became of it.
type DNSTraced struct {
	Time         time.Time `json:"time"`
	Client       string    `json:"client"`
	At           string    `json:"at"` // the address that was asked
	TCP          bool      `json:"tcp"`
	Name         string    `json:"name"` // as asked; "": it could not be read
	Type         string    `json:"type"`
	Rcode        string    `json:"rcode"`
	Records      []string  `json:"records"` // ours; those of foreign names are passed on unread
	Why          string    `json:"why"`
	Foreign      bool      `json:"foreign"`      // no name of ours
	Cut          bool      `json:"cut"`          // the answer said "ask over TCP"
	Microseconds int64     `json:"microseconds"` // that it took
	Missed       int       `json:"missed"`       // questions so far that came faster than they were read
}

// DNS is what is answered now, to whom and why.
func (c *Client) DNS(ctx context.Context, q DNSQuery) (DNS, error) {
	return get[DNS](ctx, c, "/v1/dns", optional("name", q.Name, "type", q.Type, "from", q.From))
}

// TraceDNS calls each with every question from now on, of one name when name is
// not "", until ctx ends, each fails or the daemon ends (ErrStreamEnded).
func (c *Client) TraceDNS(ctx context.Context, name string, each func(DNSTraced) error) error {
	return lines(ctx, c, "/v1/dns/trace", optional("name", name), each)
}
