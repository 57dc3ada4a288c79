package dns

import (
	"net/netip"
	"strconv"
	"strings"
)

// splitName cuts a name in presentation form into lower-case labels, the leftmost first. An escaped dot does not cut;
// a label that holds an escape equals none of ours.
func splitName(name string) []string {
	name = strings.TrimSuffix(lowerName(name), ".")
	if name == "" {
		return nil
	}
	labels := make([]string, 0, 8)
	start := 0
	for i := 0; i < len(name); i++ {
		switch name[i] {
		case '\\':
			i++
		case '.':
			labels = append(labels, name[start:i])
			start = i + 1
		}
	}
	return append(labels, name[start:])
}

// lowerName lowers ASCII only: strings.ToLower would make a k out of the Kelvin sign.
func lowerName(name string) string {
	for i := range len(name) {
		if 'A' <= name[i] && name[i] <= 'Z' {
			return lowerFrom(name, i)
		}
	}
	return name
}

func lowerFrom(name string, from int) string {
	b := []byte(name)
	for i := from; i < len(b); i++ {
		if 'A' <= b[i] && b[i] <= 'Z' {
			b[i] += 'a' - 'A'
		}
	}
	return string(b)
}

// SameName compares two names in presentation form; case and the last dot do not count.
func SameName(a, b string) bool {
	return strings.TrimSuffix(lowerName(a), ".") == strings.TrimSuffix(lowerName(b), ".")
}

func absolute(name string) string {
	if strings.HasSuffix(name, ".") {
		return name
	}
	return name + "."
}

// under returns the labels in front of zone, and whether the name is in the zone at all.
func under(labels, zone []string) (front []string, ok bool) {
	n := len(labels) - len(zone)
	if n < 0 {
		return nil, false
	}
	for i, label := range zone {
		if labels[n+i] != label {
			return nil, false
		}
	}
	return labels[:n], true
}

var (
	reverse4 = []string{"in-addr", "arpa"}
	reverse6 = []string{"ip6", "arpa"}
)

// parseReverse reads the block of addresses that a name below in-addr.arpa or ip6.arpa stands for, and how many
// labels in front of it are no part of an address.
func parseReverse(labels []string) (block netip.Prefix, extra int, ok bool) {
	if front, ok := under(labels, reverse4); ok {
		var b [4]byte
		n := 0
		for n < len(b) && n < len(front) && parseOctet(front[len(front)-1-n], &b[n]) {
			n++
		}
		return netip.PrefixFrom(netip.AddrFrom4(b), 8*n), len(front) - n, true
	}
	if front, ok := under(labels, reverse6); ok {
		var b [16]byte
		n := 0
		for n < 2*len(b) && n < len(front) && parseNibble(front[len(front)-1-n], &b[n/2], n%2 == 0) {
			n++
		}
		return netip.PrefixFrom(netip.AddrFrom16(b), 4*n), len(front) - n, true
	}
	return netip.Prefix{}, 0, false
}

// parseOctet refuses 010 and +1: they are other names than 10 and 1.
func parseOctet(label string, into *byte) bool {
	v, err := strconv.ParseUint(label, 10, 8)
	if err != nil || strconv.FormatUint(v, 10) != label {
		return false
	}
	*into = byte(v)
	return true
}

func parseNibble(label string, into *byte, high bool) bool {
	v, err := strconv.ParseUint(label, 16, 4)
	if err != nil || len(label) != 1 {
		return false
	}
	if high {
		v <<= 4
	}
	*into |= byte(v)
	return true
}

// ReverseName is where the name of an address is found: "10.0.87.10.in-addr.arpa."
func ReverseName(addr netip.Addr) string {
	addr = addr.Unmap()
	return reverseName(netip.PrefixFrom(addr, addr.BitLen()))
}

// reverseName is the name of a block; bits that do not fill a label are rounded up.
func reverseName(block netip.Prefix) string {
	const hex = "0123456789abcdef"
	b := block.Addr().AsSlice()
	var labels []string
	if block.Addr().Is4() {
		for i := range (block.Bits() + 7) / 8 {
			labels = append([]string{strconv.Itoa(int(b[i]))}, labels...)
		}
		return strings.Join(append(labels, reverse4...), ".") + "."
	}
	for i := range (block.Bits() + 3) / 4 {
		digit := hex[b[i/2]>>(4*(1-i%2))&0xf]
		labels = append([]string{string(digit)}, labels...)
	}
	return strings.Join(append(labels, reverse6...), ".") + "."
}
