package daemon

import (
	"context"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/stsd/stsd/dns"
	"github.com/stsd/stsd/jobspecs"
)

// Network is one that members are on: a namespace's own, or one that they joined.
type Network struct {
	Namespace string // of the members on it
	Name      string
	Subnet    netip.Prefix
	More      []netip.Prefix // further subnets, as of IPv6
	Gateway   netip.Addr
	Internal  bool // no way out
	// Others are the containers on it that are none of ours, by every name.
	Others map[string][]netip.Addr
}

const (
	// networksDelay lets the events of containers that start together be one look.
	networksDelay = 20 * time.Millisecond
	// networksRetry is how often an engine is asked that did not answer.
	networksRetry = time.Second
)

// networksChanged asks for a new look at the networks. It does not block.
func (n *names) networksChanged() {
	select {
	case n.netBell <- struct{}{}:
	default:
	}
}

// watchNetworks keeps the names of other containers until ctx ends.
func (n *names) watchNetworks(ctx context.Context) {
	if n.d.parts.Networks == nil {
		return
	}
	n.networksChanged()
	for said := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-n.netBell:
		}
		if !rest(ctx, networksDelay) {
			return
		}
		found, err := n.d.parts.Networks(ctx)
		if err == nil {
			n.putNetworks(found)
			said = false
			continue
		}
		if !said && ctx.Err() == nil {
			n.d.log.Warn("names of other containers are as they were", "error", err)
			said = true
		}
		if !rest(ctx, networksRetry) {
			return
		}
		n.networksChanged()
	}
}

// rest reports false when ctx ended.
func rest(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

func (n *names) putNetworks(found []Network) {
	n.mu.Lock()
	same := n.netsKnown && reflect.DeepEqual(n.found, found)
	n.found, n.netsKnown = found, true
	gone := n.forgetGone()
	n.mu.Unlock()
	if !same || gone {
		n.publish()
	}
	if gone {
		n.listen()
	}
}

// forgetGone drops the namespaces that have neither a network nor a set: nobody is
// answered at their gateways any more. The caller holds mu.
func (n *names) forgetGone() (any bool) {
	if !n.loaded {
		return false
	}
	used := map[string]bool{}
	for key := range n.sets {
		used[key.Namespace] = true
	}
	for _, f := range n.found {
		used[f.Namespace] = used[f.Namespace] || f.Name == jobspecs.NetworkName(f.Namespace)
	}
	for ns := range n.nets {
		if !used[ns] {
			delete(n.nets, ns)
			any = true
		}
	}
	return any
}

// zone is everything that has a name now. The caller holds mu.
func (n *names) zone() dns.Zone {
	z := dns.Zone{Domain: n.d.cfg.Domain, Serial: n.serial}
	for _, s := range n.sets {
		z.Sets = append(z.Sets, s)
	}
	slices.SortFunc(z.Sets, func(a, b dns.Set) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	z.Networks = n.networks()
	return z
}

// networks are those of the namespaces and those that members joined beside them,
// the former first.
func (n *names) networks() []dns.Network {
	stale := n.d.parts.Networks != nil && !n.netsKnown
	own := map[string]Network{}
	for ns, p := range n.nets {
		own[ns] = Network{Namespace: ns, Subnet: p}
	}
	var joined, all []dns.Network
	for _, f := range n.found {
		if p, ok := n.nets[f.Namespace]; f.Name == jobspecs.NetworkName(f.Namespace) && (!ok || p == f.Subnet) {
			own[f.Namespace] = f
			continue
		}
		joined = append(joined, f.named(stale))
	}
	for _, net := range own {
		net.Gateway = gatewayOf(net.Subnet)
		all = append(all, net.named(stale))
	}
	slices.SortFunc(all, func(a, b dns.Network) int { return strings.Compare(a.Namespace, b.Namespace) })
	return append(all, joined...)
}

func (f Network) named(stale bool) dns.Network {
	return dns.Network{Namespace: f.Namespace, Subnet: f.Subnet, More: f.More, Gateway: f.Gateway, Internal: f.Internal, Others: f.Others, Stale: stale}
}

// gatewayOf is where DNS answers the members of a namespace.
func gatewayOf(subnet netip.Prefix) netip.Addr { return subnet.Masked().Addr().Next() }
