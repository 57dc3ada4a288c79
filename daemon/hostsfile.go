package daemon

import (
	"net/netip"
	"slices"
	"time"

	"github.com/stsd/stsd/dns"
	"github.com/stsd/stsd/dns/hostdns"
	"github.com/stsd/stsd/jobspecs"
)

// hostsFile is where programs of this machine look before they ask a server.
const hostsFile = "/etc/hosts"

// hostsDelay lets changes that come together be written once.
const hostsDelay = 50 * time.Millisecond

// keepHosts keeps this daemon's block of the hosts file, where "stsd dns install"
// has put one. What goes wrong is said once.
func (n *names) keepHosts() {
	file := n.d.cfg.HostsFile
	if file == "" {
		file = hostsFile
	}
	n.mu.Lock()
	var sets []dns.Set
	for _, s := range n.sets {
		sets = append(sets, s)
	}
	known := n.ready
	n.mu.Unlock()
	if !known {
		return
	}
	changed, err := hostdns.KeepBlock(file, n.d.store.ID(), func() []string {
		return hostdns.Lines(hostEntries(n.server.Snapshot(), sets, n.d.cfg.Domain))
	})
	if changed {
		n.d.log.Debug("hosts file", "file", file)
	}
	said := ""
	if err != nil {
		said = err.Error()
	}
	if said != "" && said != n.hostsError {
		n.d.log.Warn("hosts file is not kept up to date", "error", err)
	}
	n.hostsError = said
}

// thisMachine is how a program of this machine asks.
var thisMachine = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// hostEntries are the names of all sets as this machine is answered them.
func hostEntries(snap *dns.Snapshot, sets []dns.Set, domain string) []hostdns.Entry {
	if snap == nil {
		return nil
	}
	byAddr := map[netip.Addr][]string{}
	add := func(names ...string) {
		for _, a := range addressesOf(snap, names[0]) {
			byAddr[a] = append(byAddr[a], names...)
		}
	}
	for _, s := range sets {
		add(jobspecs.ServiceDomain(s.Service, s.Namespace, domain), shortName(s.Service, s))
		for _, m := range s.Members {
			add(jobspecs.FQDN(m.Name, s.Service, s.Namespace, domain), memberShortName(m.Name, s))
		}
	}
	var out []hostdns.Entry
	for a, names := range byAddr {
		slices.Sort(names) // several sets may share a service
		out = append(out, hostdns.Entry{Address: a, Names: slices.Compact(names)})
	}
	return out
}

func addressesOf(snap *dns.Snapshot, name string) []netip.Addr {
	var out []netip.Addr
	for _, kind := range []uint16{dns.TypeA, dns.TypeAAAA} {
		for _, r := range snap.Answer(thisMachine, name, kind).Records {
			if r.Addr.IsValid() {
				out = append(out, r.Addr)
			}
		}
	}
	return out
}

// shortName is a service's name on this machine, which is in the default
// namespace: "web.svc", "web.NS.svc".
func shortName(service string, s dns.Set) string {
	if s.Namespace == jobspecs.DefaultNamespace {
		return service + ".svc"
	}
	return service + "." + s.Namespace + ".svc"
}

// memberShortName is "web-0.svc", or "web-0.web.NS.svc".
func memberShortName(member string, s dns.Set) string {
	if s.Namespace == jobspecs.DefaultNamespace {
		return member + ".svc"
	}
	return member + "." + shortName(s.Service, s)
}
