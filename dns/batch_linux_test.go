package dns

import (
	"net"
	"testing"
)

// A reply that the kernel refuses costs nobody else theirs.
func TestAReplyThatCannotBeSentHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	b, udp := openBatch(t, "127.0.0.1:0")
	var clients []*net.UDPConn
	for range 3 {
		conn := dialUDP(t, udp.LocalAddr())
		if _, err := conn.Write([]byte("?")); err != nil {
			t.Fatal(err)
		}
		clients = append(clients, conn)
	}
	for got := 0; got < 3; {
		n, err := b.receive()
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			if got+i == 1 {
				b.froms[i].Port = 0 // nothing can be sent there
			}
			b.reply(i, []byte("!"))
		}
		b.send()
		got += n
	}
	for _, i := range []int{0, 2} {
		buf := make([]byte, 10)
		if n, err := clients[i].Read(buf); err != nil || string(buf[:n]) != "!" {
			t.Errorf("client %d gets %q, %v", i, buf[:n], err)
		}
	}
}
