package hostdns

import (
	"net"
	"net/netip"
	"slices"
)

// Aliases are the commands that give this machine the loopback addresses it
// lacks: macOS has 127.0.0.1 alone, others all of 127.0.0.0/8. They are gone with
// the next start of the machine.
func Aliases(goos string, wanted, have []netip.Addr) [][]string {
	if goos != "darwin" {
		return nil
	}
	var out [][]string
	for _, a := range wanted {
		if a.IsLoopback() && !slices.Contains(have, a) {
			out = append(out, []string{"sudo", "ifconfig", "lo0", "alias", a.String(), "up"})
		}
	}
	return out
}

// Addresses are those of this machine.
func Addresses() []netip.Addr {
	var out []netip.Addr
	addrs, _ := net.InterfaceAddrs() // none: every alias is shown
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			out = append(out, p.Addr().Unmap())
		}
	}
	return out
}
