package jobspecs

import (
	"net/netip"
	"slices"
)

// Modes of host_access: how programs of the engine's own machine reach members.
const (
	HostDirect   = "direct"   // at the member's address; nothing is published for it
	HostLoopback = "loopback" // at a loopback address of its own, under its own port numbers
	HostPorts    = "ports"    // at 127.0.0.1, under its port numbers plus the ordinal
	HostNone     = "none"     // not at all: nothing is published, and no name of theirs is answered
)

// HostAccessOn is the mode of a set that names none: where the engine is in a
// virtual machine, members' addresses lead nowhere.
func HostAccessOn(goos string) string {
	if goos == "linux" {
		return HostDirect
	}
	return HostLoopback
}

var localhost = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// HostAddress is where programs of the machine find a member with this address, by
// mode; zero: at the address itself.
func HostAddress(mode string, a netip.Addr) netip.Addr {
	switch mode {
	case HostLoopback:
		return LoopbackOf(a)
	case HostPorts:
		return localhost
	}
	return netip.Addr{}
}

// LoopbackOf is the loopback address of the member that has this address for life:
// 127.87.0.10 for 10.87.0.10. So it is as stable, and as unique among the networks of
// one pool. 127.0 is moved to 127.255, since 127.0.0.1 and its like are others'. Zero
// where there is none.
func LoopbackOf(a netip.Addr) netip.Addr {
	a = a.Unmap()
	if !a.Is4() {
		return netip.Addr{}
	}
	b := a.As4()
	b[0] = 127
	if b[1] == 0 {
		b[1] = 255
	}
	return netip.AddrFrom4(b)
}

// Publish publishes the ports of the pod's containers as the mode says. What the
// spec publishes by itself stays.
func (p *PodSpec) Publish(mode string) {
	if mode != HostLoopback && mode != HostPorts {
		return
	}
	p.Containers = slices.Clone(p.Containers)
	for i := range p.Containers {
		p.Containers[i].Ports = p.published(p.Containers[i].Ports, mode)
	}
}

// published are the ports with what the mode adds: in a port that is not published,
// or beside one that is, without its name.
func (p *PodSpec) published(ports []Port, mode string) []Port {
	var out []Port
	for _, port := range ports {
		at := port
		at.HostIP, at.Host = p.hostPort(port, mode)
		switch {
		case port.Host == 0:
			out = append(out, at)
		case at.Host == 0, at == port, mode == HostPorts: // the spec has a base of its own
			out = append(out, port)
		default:
			at.Name = ""
			out = append(out, port, at)
		}
	}
	return out
}

// hostPort is where a port is published by mode; zero: nowhere.
func (p *PodSpec) hostPort(port Port, mode string) (ip string, number int) {
	if mode == HostPorts {
		return localhost.String(), port.Container + p.Ordinal
	}
	if a := LoopbackOf(p.Address); a.IsValid() {
		return a.String(), port.Container
	}
	return "", 0
}

// Unpublish takes back what Publish added.
func (p *PodSpec) Unpublish(mode string) {
	if mode != HostLoopback && mode != HostPorts {
		return
	}
	p.Containers = slices.Clone(p.Containers)
	for i := range p.Containers {
		var out []Port
		for _, port := range p.Containers[i].Ports {
			if ip, number := p.hostPort(port, mode); port.HostIP == ip && port.Host == number {
				port.HostIP, port.Host = "", 0
			}
			if port.Name != "" {
				out = append(out, port)
			}
		}
		p.Containers[i].Ports = out
	}
}
