package daemon

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/dns"
	"github.com/stsd/stsd/jobspecs"
)

var errDNSOff = &client.Problem{Type: client.ProblemConflict, Title: "this daemon serves no DNS", Detail: "it was started with --dns-listen off, or its engine has no network"}

// DNS tells what is answered now, to whom and why.
func (d *Daemon) DNS(_ context.Context, q client.DNSQuery) (client.DNS, error) {
	if d.names == nil {
		return client.DNS{}, errDNSOff
	}
	out := client.DNS{Listeners: d.names.listening(), Names: []client.DNSName{}}
	from, err := d.names.asker(q.From)
	if err != nil {
		return out, err
	}
	qtype, ok := dns.ParseType(q.Type)
	if !ok && q.Type != "" {
		return out, &client.Problem{Type: client.ProblemInvalid, Title: "no such type of record", Detail: q.Type}
	}
	if !ok {
		qtype = dns.TypeA
	}
	wanted := []string{q.Name}
	if addr, err := netip.ParseAddr(q.Name); err == nil {
		wanted, qtype = []string{dns.ReverseName(addr)}, dns.TypePTR
	}
	if q.Name == "" {
		wanted = d.names.all()
	}
	for _, name := range wanted {
		out.Names = append(out.Names, d.names.told(from, name, qtype))
	}
	return out, nil
}

func (n *names) listening() []client.DNSListener {
	out := []client.DNSListener{}
	for _, l := range n.server.Status() {
		at := client.DNSListener{Address: l.Addr.String()}
		if l.Err != nil {
			at.Problem = l.Err.Error()
		}
		out = append(out, at)
	}
	return out
}

func (n *names) all() []string {
	if snap := n.server.Snapshot(); snap != nil {
		return snap.Names()
	}
	return nil
}

func (n *names) told(from netip.Addr, name string, qtype uint16) client.DNSName {
	out := client.DNSName{Name: name, Type: dns.TypeName(qtype), Told: []client.DNSTold{}}
	for _, t := range n.server.Told(from, name, qtype) {
		told := client.DNSTold{To: t.To, Rcode: dns.RcodeName(t.Answer.Rcode), Records: []string{}, Why: t.Answer.Why, Forwarded: t.Forward}
		if len(t.Forward) > 0 {
			told.Rcode = ""
		}
		for _, r := range t.Answer.Records {
			told.Records = append(told.Records, r.String())
		}
		out.Told = append(out.Told, told)
	}
	return out
}

// asker is the address of who asks: given itself, or a member's. "" is none.
func (n *names) asker(from string) (netip.Addr, error) {
	if from == "" {
		return netip.Addr{}, nil
	}
	if addr, err := netip.ParseAddr(from); err == nil {
		return addr, nil
	}
	namespace, member, ok := strings.Cut(from, "/")
	if !ok {
		namespace, member = jobspecs.DefaultNamespace, from
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for key, s := range n.sets {
		if key.Namespace != namespace {
			continue
		}
		for _, m := range s.Members {
			if m.Name == member && m.Address.IsValid() {
				return m.Address, nil
			}
		}
	}
	return netip.Addr{}, &client.Problem{Type: client.ProblemNotFound, Title: fmt.Sprintf("%q is neither an address nor a member that has one", from)}
}

// TraceDNS gives every question from now on to each, of one name when name is not
// "", until ctx ends or each fails; start is called before the first.
func (d *Daemon) TraceDNS(ctx context.Context, name string, start func() error, each func(client.DNSTraced) error) error {
	if d.names == nil {
		return errDNSOff
	}
	if err := start(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var failed error
	d.names.server.Trace(ctx, func(q dns.Query, missed int) {
		if name != "" && !dns.SameName(q.Name, name) || ctx.Err() != nil {
			return
		}
		if err := each(traced(q, missed)); err != nil {
			failed = err
			cancel()
		}
	})
	return failed
}

func traced(q dns.Query, missed int) client.DNSTraced {
	return client.DNSTraced{
		Time: q.Time, Client: q.Client.String(), At: q.At.String(), TCP: q.TCP, Name: q.Name, Type: q.Type, Rcode: q.Rcode,
		Records: q.Records, Why: q.Why, Foreign: q.Foreign, Cut: q.Cut, Microseconds: q.Took.Microseconds(), Missed: missed,
	}
}

// DNSCounters are the numbers of the DNS server; ok is false when there is none.
func (d *Daemon) DNSCounters() (c dns.Counters, ok bool) {
	if d.names == nil {
		return c, false
	}
	return d.names.server.Counters(), true
}
