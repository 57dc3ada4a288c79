package docker

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"io"
	"math/bits"
	"net"
	"net/netip"
	"os"
	"strings"
)

// subnetBits is the size of a namespace's network: 510 reserved addresses and as
// many that the engine gives to others.
const subnetBits = 22

// freeSubnet is the first part of pool that overlaps nothing in use; ok is false
// when there is none.
func freeSubnet(pool netip.Prefix, used []netip.Prefix) (_ netip.Prefix, ok bool) {
	pool = pool.Masked()
	if !pool.Addr().Is4() {
		return netip.Prefix{}, false
	}
	size := max(subnetBits, pool.Bits())
	base := binary.BigEndian.Uint32(pool.Addr().AsSlice())
	for i := range uint32(1) << (size - pool.Bits()) {
		p := netip.PrefixFrom(addr4(base+i<<(32-size)), size)
		if !overlaps(p, used) {
			return p, true
		}
	}
	return netip.Prefix{}, false
}

func overlaps(p netip.Prefix, used []netip.Prefix) bool {
	for _, u := range used {
		if u.Overlaps(p) {
			return true
		}
	}
	return false
}

// upperHalf is the part of a subnet from which the engine may give addresses.
// The lower half is for reserved ones.
func upperHalf(p netip.Prefix) netip.Prefix {
	base := binary.BigEndian.Uint32(p.Masked().Addr().AsSlice())
	return netip.PrefixFrom(addr4(base+1<<(31-p.Bits())), p.Bits()+1)
}

func addr4(n uint32) netip.Addr {
	return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, n)))
}

// hostPrefixes is what this machine reaches already: its interfaces, its routes
// and its nameservers. The engine accepts a subnet that hides one of them, and
// then they are gone.
func hostPrefixes() []netip.Prefix {
	var used []netip.Prefix
	addrs, _ := net.InterfaceAddrs()
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			used = append(used, p.Masked())
		}
	}
	if f, err := os.Open("/proc/net/route"); err == nil {
		used = append(used, parseRoutes(f)...)
		f.Close()
	}
	for _, path := range []string{"/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"} {
		if f, err := os.Open(path); err == nil {
			used = append(used, parseNameservers(f)...)
			f.Close()
		}
	}
	return used
}

// parseRoutes reads /proc/net/route. Default routes say nothing about a network,
// nor do the two halves of everything that a VPN puts in their place.
func parseRoutes(r io.Reader) []netip.Prefix {
	var routes []netip.Prefix
	for s := bufio.NewScanner(r); s.Scan(); {
		f := strings.Fields(s.Text())
		if len(f) < 8 {
			continue
		}
		dest, err1 := hex.DecodeString(f[1])
		mask, err2 := hex.DecodeString(f[7])
		if err1 != nil || err2 != nil || len(dest) != 4 || len(mask) != 4 {
			continue
		}
		n := bits.OnesCount32(binary.LittleEndian.Uint32(mask))
		if n >= 8 {
			routes = append(routes, netip.PrefixFrom(addr4(binary.LittleEndian.Uint32(dest)), n))
		}
	}
	return routes
}

func parseNameservers(r io.Reader) []netip.Prefix {
	var servers []netip.Prefix
	for s := bufio.NewScanner(r); s.Scan(); {
		f := strings.Fields(s.Text())
		if len(f) < 2 || f[0] != "nameserver" {
			continue
		}
		if a, err := netip.ParseAddr(f[1]); err == nil {
			a = a.WithZone("")
			servers = append(servers, netip.PrefixFrom(a, a.BitLen()))
		}
	}
	return servers
}
