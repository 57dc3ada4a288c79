package docker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"

	"github.com/docker/docker/api/types/network"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

// Network is a network of ours, or one of others that containers of ours are on.
type Network struct {
	Namespace string // of ours; else the first of those whose containers are on it
	Name      string
	Subnet    netip.Prefix
	More      []netip.Prefix // its other subnets, as of IPv6
	Gateway   netip.Addr
	Internal  bool // no way out
	// Others are the containers on it that are none of ours, by name and alias.
	Others map[string][]netip.Addr
}

// networks remembers which ones are there, while events would tell if they went.
type networks struct {
	mu    sync.Mutex
	gen   int // counts forgets: what was seen before one is not kept
	known map[string]netip.Prefix
	turns map[string]*sync.Mutex // one maker per name: the engine takes a name twice
}

func (n *networks) has(name string, subnet netip.Prefix) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.known[name] == subnet && subnet.IsValid()
}

func (n *networks) forget() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.gen++
	n.known = nil
}

func (n *networks) generation() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.gen
}

func (n *networks) keep(gen int, name string, subnet netip.Prefix) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.gen != gen {
		return
	}
	if n.known == nil {
		n.known = map[string]netip.Prefix{}
	}
	n.known[name] = subnet
}

func (n *networks) turn(name string) *sync.Mutex {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.turns == nil {
		n.turns = map[string]*sync.Mutex{}
	}
	if n.turns[name] == nil {
		n.turns[name] = &sync.Mutex{}
	}
	return n.turns[name]
}

// Subnet is that of the namespace's network, or a free one from the pool. A
// foreign network of the name is not told here: Create does, on the member.
func (h *Host) Subnet(ctx context.Context, namespace string, taken []netip.Prefix) (netip.Prefix, error) {
	list, err := h.cli().NetworkList(ctx, network.ListOptions{})
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("list networks: %w", engineError(err))
	}
	used := slices.Clone(taken)
	for i := range list {
		n := &list[i]
		if n.Name == jobspecs.NetworkName(namespace) && h.ours(n.Labels) && subnetOf(n).IsValid() {
			return subnetOf(n), nil
		}
		used = append(used, subnetsOf(n)...)
	}
	if !h.remote {
		used = append(used, hostPrefixes()...)
	}
	p, ok := freeSubnet(h.cfg.Pool, used)
	if !ok {
		return netip.Prefix{}, fmt.Errorf("no subnet of %s is free for namespace %s: each overlaps a network, a route or a nameserver of this host", h.cfg.Pool, namespace)
	}
	return p, nil
}

// ensureNetwork makes the pod's network or finds it, and refuses a foreign one.
func (h *Host) ensureNetwork(ctx context.Context, pod *jobspecs.PodSpec) error {
	if h.networks.has(pod.Network, pod.Subnet) {
		return nil
	}
	turn := h.networks.turn(pod.Network)
	turn.Lock()
	defer turn.Unlock()
	if h.networks.has(pod.Network, pod.Subnet) {
		return nil
	}
	gen := h.networks.generation()
	n, err := h.cli().NetworkInspect(ctx, pod.Network, network.InspectOptions{})
	switch {
	case isNotFound(err):
		err = h.createNetwork(ctx, pod)
	case err != nil:
		err = fmt.Errorf("inspect network %s: %w", pod.Network, engineError(err))
	default:
		err = h.fits(&n, pod)
	}
	if err != nil {
		return err
	}
	if h.cfg.NetworkReady != nil {
		h.cfg.NetworkReady(pod.Set.Namespace, pod.Gateway, pod.Subnet)
	}
	if h.watched() {
		h.networks.keep(gen, pod.Network, pod.Subnet)
	}
	return nil
}

// fits tells whether a network that is there can be the pod's.
func (h *Host) fits(n *network.Inspect, pod *jobspecs.PodSpec) error {
	if !h.ours(n.Labels) || n.Labels[jobspecs.LabelNamespace] != pod.Set.Namespace {
		return problem(runtime.ReasonNetworkTaken, nil,
			"network %s exists (%s) and is left alone: remove or rename it", n.Name, h.owner(n.Labels))
	}
	if got := subnetOf(n); got != pod.Subnet {
		return problem(runtime.ReasonCreateFailed, nil,
			"network %s has subnet %s, but the members' addresses were reserved in %s: remove the network", n.Name, got, pod.Subnet)
	}
	return nil
}

func (h *Host) createNetwork(ctx context.Context, pod *jobspecs.PodSpec) error {
	labels := map[string]string{
		jobspecs.LabelDaemon:    h.cfg.Daemon,
		jobspecs.LabelNamespace: pod.Set.Namespace,
	}
	// The engine goes on with a network whose asker hung up, and until it is done
	// its subnet is taken by nobody.
	whole, cancel := context.WithTimeout(context.WithoutCancel(ctx), createTime)
	defer cancel()
	_, err := h.cli().NetworkCreate(whole, pod.Network, network.CreateOptions{
		Driver: "bridge",
		Labels: labels,
		IPAM: &network.IPAM{Config: []network.IPAMConfig{{
			Subnet:  pod.Subnet.String(),
			IPRange: upperHalf(pod.Subnet).String(),
			Gateway: pod.Gateway.String(),
		}}},
		Options: map[string]string{"com.docker.network.bridge.name": bridgeName(pod.Network)},
	})
	if err == nil {
		return nil
	}
	if contains(err.Error(), "overlap", "failed to allocate gateway") {
		return h.subnetTaken(ctx, pod, err)
	}
	return known(createNetworkReason(err), err, "create network %s", pod.Network)
}

func createNetworkReason(err error) string {
	if isConflict(err) {
		return runtime.ReasonNetworkTaken
	}
	return runtime.ReasonCreateFailed
}

func (h *Host) subnetTaken(ctx context.Context, pod *jobspecs.PodSpec, cause error) error {
	list, err := h.cli().NetworkList(ctx, network.ListOptions{})
	if err != nil {
		return errors.Join(engineError(cause), engineError(err))
	}
	for i := range list {
		if overlaps(pod.Subnet, subnetsOf(&list[i])) {
			return problem(runtime.ReasonNetworkTaken, nil, "subnet %s of network %s overlaps network %s (%s)",
				pod.Subnet, pod.Network, list[i].Name, h.owner(list[i].Labels))
		}
	}
	return problem(runtime.ReasonNetworkTaken, engineError(cause), "create network %s with subnet %s", pod.Network, pod.Subnet)
}

// bridgeName is the name of the network's interface on the host: always the same,
// and within the kernel's 15 characters.
func bridgeName(network string) string {
	sum := sha256.Sum256([]byte(network))
	return "stsd-" + hex.EncodeToString(sum[:4])
}

func subnetsOf(n *network.Inspect) []netip.Prefix {
	var list []netip.Prefix
	for _, c := range n.IPAM.Config {
		if p, err := netip.ParsePrefix(c.Subnet); err == nil {
			list = append(list, p.Masked())
		}
	}
	return list
}

func subnetOf(n *network.Inspect) netip.Prefix {
	for _, p := range subnetsOf(n) {
		if p.Addr().Is4() {
			return p
		}
	}
	return netip.Prefix{}
}

func gatewayOf(n *network.Inspect) netip.Addr {
	for _, c := range n.IPAM.Config {
		if a, err := netip.ParseAddr(c.Gateway); err == nil && a.Is4() {
			return a
		}
	}
	return netip.Addr{}
}
