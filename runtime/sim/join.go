package sim

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/runtime/pods"
)

// Networks of others. There are all that a pod may name, but those that were taken
// away.

// NoNetwork takes a network of others away: nobody can join it, until Network.
// Who is on it stays there.
func (w *World) NoNetwork(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.missing[name] = true
}

// Network makes it again.
func (w *World) Network(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.missing, name)
	w.tell(pods.Event{Freed: true})
}

// TakeOff is `docker network disconnect` of a running container from a network that
// it joined.
func (w *World) TakeOff(name, network string) {
	w.act(name, func(b *box) {
		b.c.Joined = slices.DeleteFunc(slices.Clone(b.c.Joined), func(e runtime.Endpoint) bool { return e.Network == network })
		w.changed(b)
	})
}

// mayJoin refuses a container that joins a network that is not there; w.mu is held.
func (w *World) mayJoin(spec *pods.ContainerSpec) error {
	if spec.Sandbox != "" {
		return nil
	}
	for _, name := range spec.Pod.Networks {
		if w.missing[name] {
			return problem(runtime.ReasonNetworkMissing, "%s", missingNetwork(name))
		}
	}
	return nil
}

func missingNetwork(name string) string {
	return fmt.Sprintf("network %s is not there: start what makes it, or make it (docker network create %s)", name, name)
}

// MissingNetwork implements runtime.Joins.
func (e Engine) MissingNetwork(_ context.Context, name string) string {
	w := e.World
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.missing[name] {
		return missingNetwork(name)
	}
	return ""
}

// join gives a container that starts its addresses on the networks of its pod; w.mu
// is held. A network has the same subnet as long as the world lasts, and an address
// is given once.
func (w *World) join(b *box) {
	b.c.Joined = nil
	if b.spec.Sandbox != "" {
		return
	}
	for _, name := range b.spec.Pod.Networks {
		if !slices.Contains(w.joined, name) {
			w.joined = append(w.joined, name)
		}
		w.serial++
		n, i := slices.Index(w.joined, name), w.serial
		address := netip.AddrFrom4([4]byte{172, byte(18 + n%200), byte(i >> 8), byte(i)})
		b.c.Joined = append(b.c.Joined, runtime.Endpoint{Network: name, Addresses: []netip.Addr{address}})
	}
	slices.SortFunc(b.c.Joined, func(a, b runtime.Endpoint) int { return strings.Compare(a.Network, b.Network) })
}
