package dns

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// Sockets are open sockets that whoever started this process holds too: systemd, from a socket unit or from its store of
// descriptors. While we are away queries wait in them, so a restart loses none.
type Sockets struct {
	notify string // where systemd takes descriptors; "": nowhere

	mu    sync.Mutex
	files map[netip.AddrPort][]*os.File
}

const firstInherited = 3 // sd_listen_fds(3)

// Inherited takes the sockets that the environment announces to this very process. Those that are neither UDP nor TCP
// are left alone. Nil, which works as "none", if there are none and nobody keeps any.
func Inherited(getenv func(string) string) (*Sockets, error) {
	s := &Sockets{notify: getenv("NOTIFY_SOCKET"), files: map[netip.AddrPort][]*os.File{}}
	if pid := getenv("LISTEN_PID"); pid == strconv.Itoa(os.Getpid()) {
		n, err := strconv.Atoi(getenv("LISTEN_FDS"))
		if err != nil || n < 0 {
			return nil, fmt.Errorf("read LISTEN_FDS %q: no number of descriptors", getenv("LISTEN_FDS"))
		}
		for fd := firstInherited; fd < firstInherited+n; fd++ {
			s.take(fd)
		}
	}
	if s.notify == "" && len(s.files) == 0 {
		return nil, nil
	}
	return s, nil
}

func (s *Sockets) take(fd int) {
	syscall.CloseOnExec(fd)
	file := os.NewFile(uintptr(fd), "socket")
	if addr, ok := localAddr(file); ok {
		s.files[addr] = append(s.files[addr], file)
	}
}

// localAddr is where a UDP socket, or one that listens on TCP, is bound.
func localAddr(file *os.File) (netip.AddrPort, bool) {
	if udp, ok := asUDP(file); ok {
		defer udp.Close()
		return unmapped(udp.LocalAddr().(*net.UDPAddr).AddrPort()), true
	}
	if tcp, ok := asTCP(file); ok {
		defer tcp.Close()
		return unmapped(tcp.Addr().(*net.TCPAddr).AddrPort()), true
	}
	return netip.AddrPort{}, false
}

func unmapped(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()) }

// asUDP and asTCP make a second descriptor: closing it leaves the socket open.
func asUDP(file *os.File) (*net.UDPConn, bool) {
	conn, err := net.FilePacketConn(file)
	if err != nil {
		return nil, false
	}
	udp, ok := conn.(*net.UDPConn)
	if !ok {
		conn.Close()
	}
	return udp, ok
}

func asTCP(file *os.File) (*net.TCPListener, bool) {
	l, err := net.FileListener(file)
	if err != nil {
		return nil, false
	}
	tcp, ok := l.(*net.TCPListener)
	if !ok {
		l.Close()
	}
	return tcp, ok
}

// listen serves the sockets of an address that were handed over, and opens those that were not.
func (s *Sockets) listen(addr netip.AddrPort) *listener {
	udps, tcp := s.of(addr)
	if len(udps) == 0 && tcp == nil {
		return listen(addr)
	}
	l := &listener{addr: addr, udps: udps, tcp: tcp, handed: true, done: make(chan struct{})}
	var err error
	if tcp == nil {
		l.tcp, err = net.ListenTCP("tcp", net.TCPAddrFromAddrPort(addr))
	}
	if err == nil && len(udps) == 0 {
		l.udps, err = listenUDP(addr, 1)
	}
	if err == nil {
		widen(l.udps)
		return l
	}
	closeAll(l.udps)
	if l.tcp != nil {
		l.tcp.Close()
	}
	return &listener{addr: addr, closed: true, err: fmt.Errorf("listen on %s, beside sockets that were handed over: %w", addr, err)}
}

func (s *Sockets) of(addr netip.AddrPort) (udps []*net.UDPConn, tcp *net.TCPListener) {
	if s == nil {
		return nil, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, file := range s.files[unmapped(addr)] {
		if udp, ok := asUDP(file); ok {
			udps = append(udps, udp)
			continue
		}
		if l, ok := asTCP(file); ok && tcp == nil {
			tcp = l
		}
	}
	return udps, tcp
}

// keep gives new sockets to systemd's store, from where the next start of the unit gets them back. Without a store, or
// for sockets that came from it, it does nothing. The store takes them only with FileDescriptorStoreMax= in the unit.
func (s *Sockets) keep(l *listener) error {
	if s == nil || s.notify == "" || l.handed {
		return nil
	}
	var files []*os.File
	defer func() {
		for _, f := range files {
			f.Close()
		}
	}()
	add := func(f *os.File, err error) error {
		if err == nil {
			files = append(files, f)
		}
		return err
	}
	err := add(l.tcp.File())
	for _, udp := range l.udps {
		err = errors.Join(err, add(udp.File()))
	}
	if err != nil {
		return fmt.Errorf("give sockets of %s to systemd: %w", l.addr, err)
	}
	return s.tell("FDSTORE=1\nFDNAME="+storeName(l.addr), files)
}

// forget takes the sockets of an address that is no longer served out of the store.
func (s *Sockets) forget(addr netip.AddrPort) {
	if s == nil {
		return
	}
	s.mu.Lock()
	for _, f := range s.files[unmapped(addr)] {
		f.Close()
	}
	delete(s.files, unmapped(addr))
	s.mu.Unlock()
	if s.notify != "" {
		s.tell("FDSTOREREMOVE=1\nFDNAME="+storeName(addr), nil) // what stays there is unused and harmless
	}
}

// storeName has no colon, which systemd does not take.
func storeName(addr netip.AddrPort) string {
	return "stsd-dns-" + strings.NewReplacer(":", "_", "[", "", "]", "").Replace(addr.String())
}

func (s *Sockets) tell(message string, files []*os.File) error {
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("speak to systemd: %w", err)
	}
	defer conn.Close()
	var fds []int
	for _, f := range files {
		fd := int(f.Fd())
		syscall.SetNonblock(fd, true) // Fd made it wait, and the socket that we serve with it; it has taken this before
		fds = append(fds, fd)
	}
	var rights []byte
	if len(fds) > 0 {
		rights = syscall.UnixRights(fds...)
	}
	if _, _, err := conn.WriteMsgUnix([]byte(message), rights, &net.UnixAddr{Name: s.notify, Net: "unixgram"}); err != nil {
		return fmt.Errorf("speak to systemd: %w", err)
	}
	return nil
}
