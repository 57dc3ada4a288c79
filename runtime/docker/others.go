package docker

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/network"

	"github.com/stsd/stsd/jobspecs"
)

// Networks is every network of ours, and those of others that containers of ours
// are on, with the foreign containers on them.
func (h *Host) Networks(ctx context.Context) ([]Network, error) {
	ours := filters.NewArgs(filters.Arg("label", jobspecs.LabelDaemon+"="+h.cfg.Daemon))
	list, err := h.cli().NetworkList(ctx, network.ListOptions{Filters: ours})
	if err != nil {
		return nil, fmt.Errorf("list networks: %w", engineError(err))
	}
	members, err := h.cli().ContainerList(ctx, container.ListOptions{Filters: ours})
	if err != nil {
		return nil, fmt.Errorf("list containers: %w", engineError(err))
	}
	look := others{host: h, mine: map[string]bool{}, seen: map[string]bool{}}
	namespaces := joinedBy(members)
	for _, n := range list {
		namespaces[n.ID] = n.Labels[jobspecs.LabelNamespace]
	}
	for _, c := range members {
		look.mine[c.ID] = true
	}
	var found []Network
	for _, id := range slices.Sorted(maps.Keys(namespaces)) {
		full, err := h.cli().NetworkInspect(ctx, id, network.InspectOptions{})
		if isNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("inspect network %s: %w", shortID(id), engineError(err))
		}
		n := networkOf(&full, namespaces[id])
		if n.Others, err = look.on(ctx, &full); err != nil {
			return nil, err
		}
		found = append(found, n)
	}
	h.endpoints.keep(look.seen)
	slices.SortFunc(found, func(a, b Network) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), cmp.Compare(a.Subnet.String(), b.Subnet.String()))
	})
	return found, nil
}

// joinedBy are the networks that containers are on, by id: the first namespace of
// theirs.
func joinedBy(members []container.Summary) map[string]string {
	found := map[string]string{}
	for i := range members {
		c := &members[i]
		if c.NetworkSettings == nil {
			continue
		}
		ns := c.Labels[jobspecs.LabelNamespace]
		for _, e := range c.NetworkSettings.Networks {
			if e == nil || e.NetworkID == "" || ns == "" {
				continue
			}
			if old, ok := found[e.NetworkID]; !ok || ns < old {
				found[e.NetworkID] = ns
			}
		}
	}
	return found
}

func networkOf(n *network.Inspect, namespace string) Network {
	found := Network{Namespace: namespace, Name: n.Name, Subnet: subnetOf(n), Gateway: gatewayOf(n), Internal: n.Internal}
	for _, p := range subnetsOf(n) {
		if p != found.Subnet {
			found.More = append(found.More, p)
		}
	}
	return found
}

// others is one look at who is on networks.
type others struct {
	host *Host
	mine map[string]bool // containers of ours, by id
	seen map[string]bool // endpoints
}

// on are the foreign containers of a network by every name they have there.
func (o *others) on(ctx context.Context, n *network.Inspect) (map[string][]netip.Addr, error) {
	found := map[string][]netip.Addr{}
	for _, id := range slices.Sorted(maps.Keys(n.Containers)) {
		e := n.Containers[id]
		at := addressesOf(&e)
		if o.mine[id] || e.Name == "" || len(at) == 0 {
			continue
		}
		o.seen[e.EndpointID] = true
		aliases, err := o.host.aliasesOf(ctx, id, &e, n.Name)
		if err != nil {
			return nil, err
		}
		for _, name := range aliases {
			found[name] = append(found[name], at...)
		}
	}
	return found, nil
}

func addressesOf(e *network.EndpointResource) []netip.Addr {
	var list []netip.Addr
	for _, s := range []string{e.IPv4Address, e.IPv6Address} {
		if p, err := netip.ParsePrefix(s); err == nil {
			list = append(list, p.Addr())
		}
	}
	return list
}

// aliasesOf are the names of a container on a network, each once: its own, and
// those it was connected with, which never change while the endpoint lives.
func (h *Host) aliasesOf(ctx context.Context, id string, e *network.EndpointResource, on string) ([]string, error) {
	aliases, ok := h.endpoints.get(e.EndpointID)
	if !ok {
		c, err := h.cli().ContainerInspect(ctx, id)
		if err != nil && !isNotFound(err) {
			return nil, fmt.Errorf("inspect container %s: %w", shortID(id), engineError(err))
		}
		if err == nil && c.NetworkSettings != nil && c.NetworkSettings.Networks[on] != nil {
			aliases = c.NetworkSettings.Networks[on].Aliases
		}
		h.endpoints.put(e.EndpointID, aliases)
	}
	names := append([]string{e.Name}, aliases...)
	slices.Sort(names)
	names = slices.Compact(names)
	return slices.DeleteFunc(names, func(s string) bool { return s == shortID(id) || s == "" }), nil
}

// endpoints remembers the aliases of endpoints that are there.
type endpoints struct {
	mu    sync.Mutex
	known map[string][]string
}

func (p *endpoints) get(id string) ([]string, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	aliases, ok := p.known[id]
	return aliases, ok
}

func (p *endpoints) put(id string, aliases []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil {
		p.known = map[string][]string{}
	}
	p.known[id] = aliases
}

// keep forgets all but these.
func (p *endpoints) keep(ids map[string]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.known, func(id string, _ []string) bool { return !ids[id] })
}
