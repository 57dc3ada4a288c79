package dns

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"
)

func openBatch(t testing.TB, addr string) (*batch, *net.UDPConn) {
	t.Helper()
	udps, err := listenUDP(netip.MustParseAddrPort(addr), 1)
	if err != nil {
		t.Skipf("cannot listen on %s: %v", addr, err)
	}
	t.Cleanup(func() { closeAll(udps) })
	b, err := newBatch(udps[0])
	if err != nil {
		t.Fatal(err)
	}
	return b, udps[0]
}

func dialUDP(t testing.TB, to net.Addr) *net.UDPConn {
	t.Helper()
	conn, err := net.DialUDP("udp", nil, to.(*net.UDPAddr))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(10 * time.Second))
	return conn
}

// Packets that wait together are received whole, each with its sender, and each sender gets the reply to its own.
func TestABatchKeepsPacketsAndSendersApart(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"127.0.0.1:0", "[::1]:0"} {
		b, udp := openBatch(t, at)
		want := map[netip.AddrPort]string{}
		var clients []*net.UDPConn
		const all = 2*batchSize + 3
		for i := range all { // the last of them is empty, the one before as long as can be
			conn := dialUDP(t, udp.LocalAddr())
			text := bytes.Repeat([]byte{byte('a' + i)}, i)
			switch i {
			case all - 2:
				text = bytes.Repeat([]byte("x"), maxQuery)
			case all - 1:
				text = nil
			}
			if _, err := conn.Write(text); err != nil {
				t.Fatal(err)
			}
			clients = append(clients, conn)
			want[conn.LocalAddr().(*net.UDPAddr).AddrPort()] = string(text)
		}
		for got := 0; got < all; {
			n, err := b.receive()
			if err != nil {
				t.Fatal(err)
			}
			for i := range n {
				packet, from := b.packet(i)
				if text, ok := want[from]; !ok || string(packet) != text {
					t.Errorf("%s: %d bytes from %s, want %d", at, len(packet), from, len(text))
				}
				if len(packet)%2 == 0 {
					b.reply(i, fmt.Append(nil, from))
				}
			}
			b.send()
			got += n
		}
		for _, conn := range clients {
			me := conn.LocalAddr().(*net.UDPAddr).AddrPort()
			if len(want[me])%2 == 1 {
				continue // silence; a reply that is not its own would have been another's
			}
			buf := make([]byte, 100)
			if n, err := conn.Read(buf); err != nil || string(buf[:n]) != me.String() {
				t.Errorf("%s: %s gets %q, %v", at, me, buf[:n], err)
			}
		}
	}
}

func TestABatchAllocatesNothing(t *testing.T) {
	b, udp := openBatch(t, "127.0.0.1:0")
	conn := dialUDP(t, udp.LocalAddr())
	s := NewServer(Config{Rate: -1})
	s.Publish(loopback())
	r := reader{server: s, at: ip("127.0.0.1"), udp: udp}
	query, buf := ask4("web-0.svc", TypeA), make([]byte, 512)
	allocated := testing.AllocsPerRun(100, func() {
		conn.Write(query)
		n, err := b.receive()
		for i := range n {
			packet, from := b.packet(i)
			b.reply(i, r.reply(t.Context(), packet, from, s.clock()))
		}
		b.send()
		if size, readErr := conn.Read(buf); err != nil || readErr != nil || size <= len(query) {
			t.Fatalf("%v, %v: %d bytes", err, readErr, size)
		}
	})
	if allocated != 0 {
		t.Errorf("%v allocations from packet to reply", allocated)
	}
}

// Bursts of many clients at once: every question has its answer, and only its.
func TestABurstIsAnsweredWhole(t *testing.T) {
	t.Parallel()
	_, addr := run(t, Config{Rate: -1})
	const clients, each = 4, 40
	for c := range clients {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			t.Parallel()
			conn := dialUDP(t, net.UDPAddrFromAddrPort(addr))
			asked := map[uint16]string{}
			for i := range each {
				name := []string{"web-0.svc", "web.svc", "web-9.svc", "*.svc"}[i%4] // the last goes the slow way
				query := ask4(name, TypeA)
				id := uint16(c*each + i)
				binary.BigEndian.PutUint16(query, id)
				asked[id] = string(query[headerSize : headerSize+questionSize(query)])
				if _, err := conn.Write(query); err != nil {
					t.Fatal(err)
				}
			}
			buf := make([]byte, maxUDP)
			for len(asked) > 0 {
				n, err := conn.Read(buf)
				if err != nil {
					t.Fatalf("%d questions have no answer: %v", len(asked), err)
				}
				id := binary.BigEndian.Uint16(buf)
				if got := string(buf[headerSize : headerSize+questionSize(buf[:n])]); asked[id] != got {
					t.Errorf("answer %d is to %q, want %q", id, got, asked[id])
				}
				delete(asked, id)
			}
		})
	}
}
