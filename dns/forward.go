package dns

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// forwarder passes packets to other servers. It keeps no answers: there is nothing to poison and nothing gets stale.
type forwarder struct {
	fixed      []netip.AddrPort // nil: follow path
	path       string
	total, try time.Duration
	log        func(msg string, kv ...any)

	mu     sync.Mutex
	stat   os.FileInfo
	list   []netip.AddrPort
	warned map[netip.AddrPort]bool
}

func newForwarder(cfg Config) *forwarder {
	f := &forwarder{path: cfg.ResolvConf, total: forwardTotal, try: forwardTry, log: cfg.Log}
	if f.path == "" {
		f.path = "/etc/resolv.conf"
	}
	for _, text := range cfg.Forward {
		addr, err := parseServer(text)
		if err != nil {
			f.log("dns server to forward to is skipped", "server", text, "error", err)
			continue
		}
		f.fixed = append(f.fixed, addr)
	}
	if cfg.Forward != nil && f.fixed == nil {
		f.fixed = []netip.AddrPort{}
	}
	return f
}

// parseServer reads "1.1.1.1", "1.1.1.1:53", "fe80::1%eth0" and "[::1]:53".
func parseServer(text string) (netip.AddrPort, error) {
	if addr, err := netip.ParseAddr(text); err == nil {
		return netip.AddrPortFrom(addr.Unmap(), 53), nil
	}
	return netip.ParseAddrPort(text)
}

// servers are those to ask now, in order, without our own listeners.
func (f *forwarder) servers(ours func(netip.AddrPort) bool) []netip.AddrPort {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := f.all()
	var out []netip.AddrPort
	for _, server := range list {
		if ours(server) {
			f.warnLoop(server)
			continue
		}
		out = append(out, server)
	}
	return out[:min(len(out), maxServers)]
}

// all are the servers that were given, or the host's. The caller holds mu.
func (f *forwarder) all() []netip.AddrPort {
	if f.fixed != nil {
		return f.fixed
	}
	return f.follow()
}

// isServer: is this the address of a server that we ask? To ask it what it asks us would never end.
func (f *forwarder) isServer(client netip.Addr) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.ContainsFunc(f.all(), func(s netip.AddrPort) bool { return s.Addr() == client })
}

func (f *forwarder) warnLoop(server netip.AddrPort) {
	if f.warned[server] {
		return
	}
	if f.warned == nil {
		f.warned = map[netip.AddrPort]bool{}
	}
	f.warned[server] = true
	f.log("dns server to forward to is ourselves, skipped", "server", server)
}

// follow reads the host's file again when it has changed. A file that is gone leaves the last list: it is being replaced.
func (f *forwarder) follow() []netip.AddrPort {
	stat, err := os.Stat(f.path)
	if err != nil || f.stat != nil && sameFile(stat, f.stat) {
		return f.list
	}
	text, err := os.ReadFile(f.path)
	if err != nil {
		return f.list
	}
	f.stat, f.list = stat, parseResolvConf(string(text))
	return f.list
}

func sameFile(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

func parseResolvConf(text string) []netip.AddrPort {
	var list []netip.AddrPort
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) < 2 || words[0] != "nameserver" {
			continue
		}
		if addr, err := netip.ParseAddr(words[1]); err == nil {
			list = append(list, netip.AddrPortFrom(addr.Unmap(), 53))
		}
	}
	return list
}

var errNoServer = errors.New("no server to forward to")

// exchange asks the servers in turn, at least two times in all, until one gives an answer. A server that fails or
// refuses is believed only if no other answers.
func (f *forwarder) exchange(ctx context.Context, servers []netip.AddrPort, packet []byte, tcp bool) ([]byte, error) {
	if len(servers) == 0 {
		return nil, errNoServer
	}
	ctx, cancel := context.WithTimeout(ctx, f.total)
	defer cancel()
	tries := max(2, len(servers))
	each := min(f.try, f.total/time.Duration(tries))
	var second []byte
	var last error
	for i := range tries {
		if second != nil && i >= len(servers) {
			break
		}
		reply, err := ask(ctx, servers[i%len(servers)], packet, tcp, each)
		if err != nil {
			last = err
			continue
		}
		if rcode := reply[3] & 0xf; rcode != ServFail && rcode != Refused {
			return reply, nil
		}
		second = reply
	}
	if second != nil {
		return second, nil
	}
	return nil, last
}

// ask sends the packet from a fresh port with a fresh id, and takes only what answers just that.
func ask(ctx context.Context, server netip.AddrPort, packet []byte, tcp bool, patience time.Duration) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	network := "udp"
	if tcp {
		network = "tcp"
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, network, server.String())
	if err != nil {
		return nil, fmt.Errorf("forward to %s: %w", server, err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })()

	sent := bytes.Clone(packet)
	rand.Read(sent[:2]) // never fails
	reply, err := transact(conn, sent, tcp)
	if err != nil {
		return nil, fmt.Errorf("forward to %s: %w", server, err)
	}
	copy(reply, packet[:2])
	reply[3] |= 0x80 // recursion available: we just did it
	return reply, nil
}

func transact(conn net.Conn, sent []byte, tcp bool) ([]byte, error) {
	if tcp {
		return transactTCP(conn, sent)
	}
	if _, err := conn.Write(sent); err != nil {
		return nil, err
	}
	buf := make([]byte, 4096) // what does not fit is cut, and shrink says so to the client
	for {
		n, err := conn.Read(buf)
		if err != nil {
			return nil, err
		}
		if answers(buf[:n], sent) {
			return buf[:n], nil
		}
	}
}

func transactTCP(conn net.Conn, sent []byte) ([]byte, error) {
	if err := writeFrame(conn, sent); err != nil {
		return nil, err
	}
	for {
		reply, err := readFrame(conn)
		if err != nil {
			return nil, err
		}
		if answers(reply, sent) {
			return reply, nil
		}
	}
}

// answers: same id, and the same question, whose case some servers lose.
func answers(reply, sent []byte) bool {
	if len(reply) < headerSize || !isResponse(reply) || !bytes.Equal(reply[:2], sent[:2]) || count(reply, 0) != 1 {
		return false
	}
	n := questionSize(reply)
	if n == 0 || n != questionSize(sent) {
		return false
	}
	a, b := reply[headerSize:headerSize+n], sent[headerSize:headerSize+n]
	return lowerName(string(a[:n-4])) == lowerName(string(b[:n-4])) && bytes.Equal(a[n-4:], b[n-4:])
}

func readFrame(r io.Reader) ([]byte, error) {
	var size [2]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	frame := make([]byte, binary.BigEndian.Uint16(size[:]))
	_, err := io.ReadFull(r, frame)
	return frame, err
}

func writeFrame(w io.Writer, packet []byte) error {
	frame := binary.BigEndian.AppendUint16(make([]byte, 0, 2+len(packet)), uint16(len(packet)))
	_, err := w.Write(append(frame, packet...))
	return err
}
