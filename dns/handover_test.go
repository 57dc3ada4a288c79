package dns

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// childNames makes the test binary a server: it names the file of the zone that it answers from.
const childNames, childAddr = "STSD_TEST_NAMES", "STSD_TEST_ADDR"

func TestMain(m *testing.M) {
	if path := os.Getenv(childNames); path != "" {
		serveAsChild(path)
		return
	}
	goleak.VerifyTestMain(m)
}

func serveAsChild(path string) {
	sockets, err := Inherited(os.Getenv)
	if err != nil || sockets == nil {
		fmt.Fprintln(os.Stderr, "no sockets:", err)
		os.Exit(1)
	}
	z, err := Load(path)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	s := NewServer(Config{Sockets: sockets})
	s.Publish(Build(z))
	s.SetListeners([]netip.AddrPort{netip.MustParseAddrPort(os.Getenv(childAddr))})
	s.Run(context.Background())
}

// startChild gives it the sockets in the way of systemd.
func startChild(t *testing.T, names string, addr netip.AddrPort, sockets ...*os.File) *exec.Cmd {
	t.Helper()
	script := fmt.Sprintf(`LISTEN_PID=$$ LISTEN_FDS=%d exec "$0"`, len(sockets))
	child := exec.Command("/bin/sh", "-c", script, os.Args[0])
	child.Env = append(os.Environ(), childNames+"="+names, childAddr+"="+addr.String())
	child.ExtraFiles, child.Stderr = sockets, os.Stderr
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	return child
}

func TestARestartLosesNoQuery(t *testing.T) { // 63
	t.Parallel()
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skip("needs a shell: ", err)
	}
	l := listen(anyPort)
	if l.err != nil {
		t.Fatal(l.err)
	}
	defer l.close()
	udp, err := l.udps[0].File()
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	closeAll(l.udps[1:]) // one socket, as systemd has it
	tcp, err := l.tcp.File()
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	names := filepath.Join(t.TempDir(), "names.json")
	if err := Save(names, fixture()); err != nil {
		t.Fatal(err)
	}

	child := startChild(t, names, l.addr, udp, tcp)
	query, failed := ask4("web-0.svc", TypeA), 0
	for i := range 200 {
		if i == 60 || i == 130 { // killed, and the next one is not there yet
			child.Process.Kill()
			child.Wait()
			child = startChild(t, names, l.addr, udp, tcp)
		}
		network := "udp"
		if i%10 == 9 {
			network = "tcp"
		}
		if !lookUp(t, network, l.addr, query) {
			failed++
		}
	}
	child.Process.Signal(syscall.SIGKILL)
	child.Wait()
	if failed > 0 {
		t.Errorf("%d of 200 look-ups failed", failed)
	}
}

func lookUp(t *testing.T, network string, addr netip.AddrPort, query []byte) bool {
	t.Helper()
	conn, err := net.DialTimeout(network, addr.String(), 5*time.Second)
	if err != nil {
		return false
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(5 * time.Second)) // as long as resolvers wait
	if network == "tcp" {
		writeFrame(conn, query)
		reply, err := readFrame(conn)
		return err == nil && count(reply, 1) == 1
	}
	conn.Write(query)
	buf := make([]byte, 512)
	n, err := conn.Read(buf)
	return err == nil && count(buf[:n], 1) == 1
}

func TestSocketsOfAnotherProcessAreNotTaken(t *testing.T) {
	t.Parallel()
	env := func(pairs ...string) func(string) string {
		return func(name string) string {
			for _, pair := range pairs {
				if value, ok := strings.CutPrefix(pair, name+"="); ok {
					return value
				}
			}
			return ""
		}
	}
	me := fmt.Sprintf("LISTEN_PID=%d", os.Getpid())
	for _, c := range []struct {
		what string
		env  func(string) string
		none bool
		err  bool
	}{
		{"nothing", env(), true, false},
		{"of another process", env("LISTEN_PID=1", "LISTEN_FDS=2"), true, false},
		{"no number", env(me, "LISTEN_FDS=x"), true, true},
		{"none of them", env(me, "LISTEN_FDS=0"), true, false},
		{"a store", env("NOTIFY_SOCKET=/run/notify"), false, false},
	} {
		got, err := Inherited(c.env)
		if (got == nil) != c.none || (err != nil) != c.err {
			t.Errorf("%s: %v, %v", c.what, got, err)
		}
	}
}

// New sockets are given to systemd's store by a name, and taken out when their address is no longer served.
func TestNewSocketsAreKeptByTheStore(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "notify")
	notify, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer notify.Close()
	sockets, err := Inherited(func(name string) string { return map[string]string{"NOTIFY_SOCKET": path}[name] })
	if err != nil {
		t.Fatal(err)
	}
	s, addr := run(t, Config{Sockets: sockets})
	message, fds := receive(t, notify)
	if want := fmt.Sprintf("FDSTORE=1\nFDNAME=stsd-dns-127.0.0.1_%d", addr.Port()); message != want || len(fds) != 1+socketsPerAddress() {
		t.Errorf("stored %q with %d descriptors, want %q with TCP and each UDP socket", message, len(fds), want)
	}

	// The store outlives the server: what waits in its sockets is answered by the next one that gets them.
	next := &Sockets{files: map[netip.AddrPort][]*os.File{}}
	for _, fd := range fds {
		next.take(fd)
	}
	s.SetListeners(nil)
	if message, _ := receive(t, notify); message != fmt.Sprintf("FDSTOREREMOVE=1\nFDNAME=stsd-dns-127.0.0.1_%d", addr.Port()) {
		t.Errorf("removed %q", message)
	}
	conn := dial(t, "udp", "127.0.0.1", addr)
	conn.Write(ask4("web-0.svc", TypeA))
	successor := NewServer(Config{Sockets: next})
	successor.Publish(loopback())
	start(t, successor)
	successor.SetListeners([]netip.AddrPort{addr})
	boundTo(t, successor)
	buf := make([]byte, 512)
	if n, err := conn.Read(buf); err != nil || count(buf[:n], 1) != 1 {
		t.Errorf("what was asked in between: %x, %v", buf[:n], err)
	}
	next.forget(addr)
}

func receive(t *testing.T, conn *net.UnixConn) (message string, fds []int) {
	t.Helper()
	conn.SetReadDeadline(time.Now().Add(5 * time.Second))
	text, rights := make([]byte, 512), make([]byte, 512)
	n, m, _, _, err := conn.ReadMsgUnix(text, rights)
	if err != nil {
		t.Fatal(err)
	}
	messages, err := syscall.ParseSocketControlMessage(rights[:m])
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range messages {
		got, err := syscall.ParseUnixRights(&c)
		if err != nil {
			t.Fatal(err)
		}
		fds = append(fds, got...)
	}
	return string(text[:n]), fds
}
