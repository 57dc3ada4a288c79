package docker

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"slices"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/runtime/pods"
)

// Networks of others, which a pod joins beside its own. They are never made,
// changed or removed here: only our containers' endpoints on them are ours.

// checkJoined refuses a pod that joins a network that is not there. The engine
// takes the begin of an id for a name; we do not.
func (h *Host) checkJoined(ctx context.Context, pod *jobspecs.PodSpec) error {
	for _, name := range pod.Networks {
		n, err := h.cli().NetworkInspect(ctx, name, network.InspectOptions{})
		if isNotFound(err) || err == nil && n.Name != name {
			return networkMissing(name)
		}
		if err != nil {
			return known(runtime.ReasonCreateFailed, err, "inspect network %s, which %s joins", name, pod.Name)
		}
	}
	return nil
}

func networkMissing(name string) error {
	return problem(runtime.ReasonNetworkMissing, nil,
		"network %s is not there: start what makes it, or make it (docker network create %s)", name, name)
}

// MissingNetwork says what to do about a network of others that is not there.
func (h *Host) MissingNetwork(ctx context.Context, name string) string {
	var p *pods.Problem
	err := h.checkJoined(ctx, &jobspecs.PodSpec{Networks: []string{name}})
	if errors.As(err, &p) && p.Reason == runtime.ReasonNetworkMissing {
		return p.Message
	}
	return ""
}

// join puts a created container on the networks that its pod joins: an engine
// before 25 takes one network with a create.
func (h *Host) join(ctx context.Context, id string, pod *jobspecs.PodSpec) error {
	for _, name := range pod.Networks {
		err := h.cli().NetworkConnect(ctx, name, id, &network.EndpointSettings{Aliases: joinedAliases(pod)})
		switch {
		case err == nil, contains(err.Error(), "already exists in network", "already connected", "already attached"):
		case isNotFound(err) && contains(err.Error(), "network"):
			return networkMissing(name)
		default:
			return known(runtime.ReasonCreateFailed, err, "join network %s", name)
		}
	}
	return nil
}

// joinedAliases are the names under which the engine's own resolver finds a member
// and its set on a network of others.
func joinedAliases(pod *jobspecs.PodSpec) []string {
	return []string{pod.Name, pod.Name + "." + pod.Service, pod.Service}
}

// explainMissing names the network that went between the create and the start of
// a container.
func (h *Host) explainMissing(ctx context.Context, c *container.InspectResponse, cause error) error {
	for _, name := range slices.Sorted(maps.Keys(c.NetworkSettings.Networks)) {
		if name == string(c.HostConfig.NetworkMode) {
			continue
		}
		if _, err := h.cli().NetworkInspect(ctx, name, network.InspectOptions{}); isNotFound(err) {
			return networkMissing(name)
		}
	}
	return known(runtime.ReasonCreateFailed, cause, "start")
}

// ownNetworkOf is the network of a container's namespace; "" for one that is none
// of stsd's.
func ownNetworkOf(labels map[string]string) string {
	if ns := labels[jobspecs.LabelNamespace]; ns != "" {
		return jobspecs.NetworkName(ns)
	}
	return ""
}

// address is where a container is, or will be, on a network ("": on any): the
// reserved one first.
func address(endpoints map[string]*network.EndpointSettings, on string) netip.Addr {
	for _, name := range slices.Sorted(maps.Keys(endpoints)) {
		e := endpoints[name]
		if e == nil || on != "" && name != on {
			continue
		}
		if e.IPAMConfig != nil {
			if a, err := netip.ParseAddr(e.IPAMConfig.IPv4Address); err == nil {
				return a
			}
		}
		if a, err := netip.ParseAddr(e.IPAddress); err == nil {
			return a
		}
	}
	return netip.Addr{}
}

// address6 is that of the other family on the network.
func address6(endpoints map[string]*network.EndpointSettings, on string) netip.Addr {
	if e := endpoints[on]; e != nil {
		a, _ := netip.ParseAddr(e.GlobalIPv6Address)
		return a
	}
	return netip.Addr{}
}

// joined is where a running container is beside its own network.
func joined(endpoints map[string]*network.EndpointSettings, own string) []runtime.Endpoint {
	var list []runtime.Endpoint
	for _, name := range slices.Sorted(maps.Keys(endpoints)) {
		e := endpoints[name]
		if own == "" || name == own || e == nil || e.EndpointID == "" {
			continue
		}
		list = append(list, runtime.Endpoint{Network: name, Addresses: parsed(e.IPAddress, e.GlobalIPv6Address)})
	}
	return list
}

// parsed are the addresses of those texts that are one.
func parsed(texts ...string) []netip.Addr {
	var list []netip.Addr
	for _, s := range texts {
		if a, err := netip.ParseAddr(s); err == nil {
			list = append(list, a)
		}
	}
	return list
}
