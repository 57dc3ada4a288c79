//go:build !linux

package dns

import (
	"net"
	"net/netip"
)

// batch moves one packet at a time where the kernel has no call for more.
type batch struct {
	udp  *net.UDPConn
	buf  [maxQuery]byte
	size int
	from netip.AddrPort
}

func newBatch(udp *net.UDPConn) (*batch, error) { return &batch{udp: udp}, nil }

func (b *batch) receive() (n int, err error) {
	b.size, b.from, err = b.udp.ReadFromUDPAddrPort(b.buf[:])
	return 1, err
}

func (b *batch) packet(int) ([]byte, netip.AddrPort) { return b.buf[:b.size], b.from }

func (b *batch) reply(_ int, reply []byte) { send(b.udp, reply, b.from) }

func (b *batch) send() {}
