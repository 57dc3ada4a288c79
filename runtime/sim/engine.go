package sim

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/runtime/pods"
)

// Engine is the pod agent on a World, with the optional interfaces of runtime.
type Engine struct {
	*pods.Engine
	World *World
}

var (
	_ runtime.Engine   = Engine{}
	_ runtime.Networks = Engine{}
	_ runtime.Images   = Engine{}
	_ runtime.Ports    = Engine{}
	_ runtime.Logs     = Engine{}
	_ runtime.Execs    = Engine{}
)

// NewEngine is an engine on w; its Run has to be called.
func NewEngine(w *World) Engine {
	return Engine{pods.New(pods.Config{Host: w.Host(), Daemon: w.daemon}), w}
}

// Subnet implements runtime.Networks.
func (e Engine) Subnet(_ context.Context, namespace string, taken []netip.Prefix) (netip.Prefix, error) {
	return e.World.Subnet(namespace, taken)
}

// ImageID implements runtime.Images.
func (e Engine) ImageID(_ context.Context, ref string) (string, error) {
	w := e.World
	w.mu.Lock()
	defer w.mu.Unlock()
	switch im := w.image(ref); {
	case w.down:
		return "", fmt.Errorf("%w: %w", runtime.ErrUnreachable, errDown)
	case im != nil && im.local:
		return im.id, nil
	}
	return "", nil
}

// PortOwner implements runtime.Ports.
func (e Engine) PortOwner(_ context.Context, pod runtime.PodName, p jobspecs.Port) string {
	w := e.World
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.portOwner(func(b *box) bool { return w.pod(b) == pod }, p)
}

// Subnet is the one that the namespace has, or the first of the pool that is free.
func (w *World) Subnet(namespace string, taken []netip.Prefix) (netip.Prefix, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.down {
		return netip.Prefix{}, fmt.Errorf("%w: %w", runtime.ErrUnreachable, errDown)
	}
	if has, ok := w.networks[namespace]; ok && has.IsValid() {
		return has, nil
	}
	for _, other := range w.networks {
		taken = append(taken[:len(taken):len(taken)], other)
	}
	for p := netip.PrefixFrom(w.pool.Addr(), 22); w.pool.Contains(p.Addr()); p = after(p) {
		if free(p, taken) {
			return p, nil
		}
	}
	return netip.Prefix{}, fmt.Errorf("no free subnet in %s", w.pool)
}

func free(p netip.Prefix, taken []netip.Prefix) bool {
	for _, t := range taken {
		if t.IsValid() && p.Overlaps(t) {
			return false
		}
	}
	return true
}

// after is the next /22.
func after(p netip.Prefix) netip.Prefix {
	a := p.Addr().As4()
	n := (uint32(a[0])<<24 | uint32(a[1])<<16 | uint32(a[2])<<8 | uint32(a[3])) + 1<<10
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}), 22)
}

// subnet is what a namespace's network gets when its first container is made.
func (w *World) subnet(namespace string, wanted netip.Prefix) netip.Prefix {
	if has, ok := w.networks[namespace]; ok {
		return has
	}
	return wanted
}
