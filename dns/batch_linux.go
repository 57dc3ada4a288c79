package dns

import (
	"encoding/binary"
	"net"
	"net/netip"
	"os"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// batchSize is how many packets one system call moves. More gain little: by then the kernel's work on each is what costs.
const batchSize = 16

// batch receives all packets that wait in a UDP socket, and sends all replies to them, by one system call each, since
// those calls are most of what an answer costs. It is one goroutine's, and allocates nothing once it is made.
type batch struct {
	raw     syscall.RawConn
	packets [batchSize][maxQuery]byte
	replies [batchSize][maxUDP]byte
	froms   [batchSize]unix.RawSockaddrInet6 // room for IPv4 too
	in, out messages

	received, queued, sent int
	err                    syscall.Errno

	tryReceive, trySend func(fd uintptr) bool // methods as values, made once
}

// messages are buffers as the kernel wants them.
type messages struct {
	headers [batchSize]mmsghdr
	vectors [batchSize]unix.Iovec
}

// mmsghdr is struct mmsghdr of recvmmsg(2).
type mmsghdr struct {
	unix.Msghdr
	size uint32
}

func newBatch(udp *net.UDPConn) (*batch, error) {
	raw, err := udp.SyscallConn()
	if err != nil {
		return nil, err
	}
	b := &batch{raw: raw}
	b.tryReceive, b.trySend = b.receiveNow, b.sendNow
	for i := range batchSize {
		b.in.point(i, b.packets[i][:])
		b.out.point(i, b.replies[i][:])
		b.in.headers[i].Name = (*byte)(unsafe.Pointer(&b.froms[i]))
	}
	return b, nil
}

func (m *messages) point(i int, buf []byte) {
	m.vectors[i].Base = &buf[0]
	m.vectors[i].SetLen(len(buf))
	m.headers[i].Iov = &m.vectors[i]
	m.headers[i].SetIovlen(1)
}

// receive waits for packets and says how many there are. They are good until it is called again.
func (b *batch) receive() (int, error) {
	for i := range batchSize {
		b.in.headers[i].Namelen = unix.SizeofSockaddrInet6
	}
	if err := b.raw.Read(b.tryReceive); err != nil {
		return 0, err
	}
	if b.err != 0 {
		return 0, os.NewSyscallError("recvmmsg", b.err)
	}
	return b.received, nil
}

// receiveNow is false when nothing is there to be received.
func (b *batch) receiveNow(fd uintptr) bool {
	b.received, b.err = b.in.call(unix.SYS_RECVMMSG, fd, 0, batchSize)
	return b.err != syscall.EAGAIN
}

// packet is one of those received, and who sent it.
func (b *batch) packet(i int) ([]byte, netip.AddrPort) {
	return b.packets[i][:b.in.headers[i].size], addrPortOf(&b.froms[i])
}

// reply keeps a copy of the reply to a packet for send; none is silence.
func (b *batch) reply(i int, reply []byte) {
	if len(reply) == 0 {
		return
	}
	b.out.vectors[b.queued].SetLen(copy(b.replies[b.queued][:], reply))
	to := &b.out.headers[b.queued]
	to.Name, to.Namelen = b.in.headers[i].Name, b.in.headers[i].Namelen
	b.queued++
}

// send has no one to tell about a reply that cannot be sent: the client asks again.
func (b *batch) send() {
	for b.sent = 0; b.sent < b.queued; {
		if b.raw.Write(b.trySend) != nil {
			break // closed
		}
	}
	b.queued = 0
}

// sendNow is false when the socket takes no more for now. The reply that an error is about is left out.
func (b *batch) sendNow(fd uintptr) bool {
	n, err := b.out.call(unix.SYS_SENDMMSG, fd, b.sent, b.queued)
	switch err {
	case 0:
		b.sent += n
	case syscall.EAGAIN:
		return false
	default:
		b.sent++
	}
	return true
}

// call makes a system call for the messages from the first up to the end, and says how many it has done.
func (m *messages) call(number, fd uintptr, first, end int) (int, syscall.Errno) {
	for {
		n, _, err := unix.Syscall6(number, fd, uintptr(unsafe.Pointer(&m.headers[first])), uintptr(end-first), unix.MSG_DONTWAIT, 0, 0)
		if err != syscall.EINTR {
			return int(n), err
		}
	}
}

func addrPortOf(a *unix.RawSockaddrInet6) netip.AddrPort {
	port := binary.BigEndian.Uint16((*[2]byte)(unsafe.Pointer(&a.Port))[:])
	if a.Family == unix.AF_INET {
		return netip.AddrPortFrom(netip.AddrFrom4((*unix.RawSockaddrInet4)(unsafe.Pointer(a)).Addr), port)
	}
	addr := netip.AddrFrom16(a.Addr)
	if a.Scope_id != 0 {
		addr = addr.WithZone(strconv.Itoa(int(a.Scope_id)))
	}
	return netip.AddrPortFrom(addr, port)
}
