package e2e_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const resolversImage = "stsd-resolvers:1"

// lookers are programs that look names up each in its own way, and print addresses.
var lookers = map[string][]string{
	"glibc": {"/lookup-glibc"},
	"musl":  {"/lookup-musl"},
	"Go":    {"/demo", "lookup"},
}

// The design's case 65.
func TestResolversInContainers(t *testing.T) {
	t.Parallel()
	bridge := "172.17.0.0/16"
	if out, err := exec.Command("docker", "network", "inspect", "bridge", "-f", "{{(index .IPAM.Config 0).Subnet}}").Output(); err == nil {
		bridge = strings.TrimSpace(string(out))
	}
	w := newWorld(t, func(w *world) { w.flags = append(w.flags, "--dns-allow-from", bridge, "--dns-listen", "127.0.0.1:0") })
	needs(t, resolversImage)
	w.apply(spec{replicas: 2, image: resolversImage})
	zero, one := w.address("web-0"), w.address("web-1")
	long := ".web." + w.ns + ".svc.cluster.local"
	names := map[string][]string{
		"web": {zero, one}, "web.svc": {zero, one}, "web" + long[len(".web"):]: {zero, one},
		"web-1": {one}, "web-1.web": {one}, "web-1.svc": {one}, "web-1.web.svc": {one}, "web-1" + long: {one},
	}
	check := func(where, resolver, name string, want []string, look func(command ...string) (string, error)) {
		t.Helper()
		start := time.Now()
		out, err := look(append(slices.Clone(lookers[resolver]), name)...)
		got := slices.Compact(slices.Sorted(slices.Values(strings.Fields(out))))
		slices.Sort(want)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s, %s: %s is %v, %v, want %v", where, resolver, name, got, err, want)
		}
		if took := time.Since(start); where == "in a member" && took > 4*time.Second { // who waits for a server waits for 5 s
			t.Errorf("%s, %s: %s took %s", where, resolver, name, took)
		}
	}
	for resolver := range lookers {
		for name, want := range names {
			check("in a member", resolver, name, want, func(command ...string) (string, error) { return w.inside("web-0", command...) })
		}
		for _, network := range []string{"bridge", "host", w.network()} {
			for _, name := range []string{"web-1" + long, "web-1.web." + w.ns + ".svc"} {
				check("on network "+network, resolver, name, []string{one}, func(command ...string) (string, error) {
					args := []string{"run", "--rm", "--network", network, "--dns", w.gateway().String(), "--entrypoint", command[0], resolversImage}
					out, err := exec.Command("docker", append(args, command[1:]...)...).CombinedOutput()
					return string(out), err
				})
			}
		}
	}
}

// Case 65 by Java, in a member and in a container of somebody else on the namespace's network.
func TestJavaFindsMembers(t *testing.T) {
	t.Parallel()
	const image = "stsd-java:1"
	w := newWorld(t, func(w *world) { w.flags = append(w.flags, "--dns-listen", "127.0.0.1:0") })
	needs(t, "stsd-demo:1", image)
	w.apply(spec{replicas: 2})
	w.apply(spec{name: "app", replicas: 1, image: image, noProbe: true, noVolume: true})
	zero, one := w.address("web-0"), w.address("web-1")
	long := ".web." + w.ns + ".svc.cluster.local"
	names := []string{"web-1", "web-1.web", "web-1.svc", "web-1" + long}
	want := strings.Join([]string{one, one, one, one}, "\n")
	if got, err := w.inside("app-0", append([]string{"/lookup-java"}, names...)...); err != nil || got != want {
		t.Errorf("%v are %q, %v, want %q", names, got, err, want)
	}
	for _, name := range []string{"web", "web.svc", long[1:]} {
		got, err := w.inside("app-0", "/lookup-java", name)
		if found := slices.Sorted(slices.Values(strings.Fields(got))); err != nil || !slices.Equal(found, slices.Sorted(slices.Values([]string{zero, one}))) {
			t.Errorf("%s is %v, %v, want %s and %s", name, found, err, zero, one)
		}
	}
	if got, err := w.inside("app-0", "/lookup-java", "web-9.svc"); err == nil || !strings.Contains(err.Error(), "UnknownHostException") {
		t.Errorf("web-9.svc is %q, %v", got, err)
	}
	if got := docker(t, "run", "--rm", "--network", w.network(), "--dns", w.gateway().String(), image, "/lookup-java", "web-1"+long); got != one {
		t.Errorf("outside of members, web-1%s is %q, want %s", long, got, one)
	}
}

// Members' look-ups while the daemon is stopped in order and started again, once and again.
func TestLookUpsGoOnOverRestartsOfTheDaemon(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w *world) { w.flags = append(w.flags, "--dns-listen", "127.0.0.1:0") })
	needs(t, resolversImage)
	w.apply(spec{replicas: 2, image: resolversImage})
	enough := w.looksUp("web-0")
	for range 3 {
		w.terminate()
		time.Sleep(time.Second) // it is really away
		w.start()
		w.await("the daemon's names", func() error {
			conf, err := w.inside("web-0", "/bin/cat", "/etc/resolv.conf")
			if err != nil || !strings.Contains(conf, w.gateway().String()+"\n") {
				return fmt.Errorf("%q, %v", conf, err)
			}
			return nil
		})
	}
	enough()
}

// looksUp lets a member look names up in a loop until it is told that it is enough: none may have failed.
func (w *world) looksUp(member string) (enough func()) {
	const script = `n=0; while [ ! -e /data/enough ]; do
		for l in /lookup-glibc /lookup-musl; do
			n=$((n+1)); $l web-0.svc web-1.svc web-1.web >/dev/null || echo "$l failed"
		done
	done; echo "$n times"`
	type outcome struct {
		out string
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		out, err := w.inside(member, "/bin/sh", "-c", script)
		done <- outcome{out, err}
	}()
	return func() {
		w.t.Helper()
		if _, err := w.inside(member, "/bin/touch", "/data/enough"); err != nil {
			w.t.Fatal(err)
		}
		got := <-done
		if got.err != nil || strings.Contains(got.out, "failed") || strings.HasPrefix(got.out, "0 times") {
			w.t.Errorf("look-ups of %s: %v\n%s", member, got.err, got.out)
		}
		w.t.Log(got.out)
	}
}

// The same while it is killed: systemd's store has its sockets, those of gateways too, and gives them to its next start.
func TestLookUpsOfMembersGoOnOverKillsOfTheDaemon(t *testing.T) {
	t.Parallel()
	w := idleWorld(t, func(w *world) { w.flags = append(w.flags, "--dns-listen", "127.0.0.1:0") })
	needs(t, resolversImage)
	store := newSocketStore(t, filepath.Join(w.dir, "notify"))
	w.spawnHolding(nil, store.env())
	w.learnID()
	w.apply(spec{replicas: 2, image: resolversImage})
	if len(store.kept()) == 0 {
		t.Fatal("no socket was given to the store")
	}
	enough := w.looksUp("web-0")
	for range 3 {
		w.kill()
		time.Sleep(time.Second) // it is really away
		w.spawnHolding(store.kept(), store.env())
		w.learnID()
	}
	enough()
}

// Without a store look-ups fail while a killed daemon is away, and not a moment longer.
func TestLookUpsAreBackWithAKilledDaemon(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w *world) { w.flags = append(w.flags, "--dns-listen", "127.0.0.1:0") })
	needs(t, resolversImage)
	w.apply(spec{replicas: 2, image: resolversImage})
	want := w.address("web-1")
	w.kill()
	if got, err := w.inside("web-0", "/lookup-glibc", "web-1.svc"); err == nil {
		t.Errorf("nobody is there, and says %q", got)
	}
	w.start()
	for _, command := range lookers {
		if got, err := w.inside("web-0", append(slices.Clone(command), "web-1.svc")...); err != nil || got != want {
			t.Errorf("%v says %q, %v, want %s", command, got, err, want)
		}
	}
}

// socketStore keeps what a daemon asks systemd to keep.
type socketStore struct {
	conn *net.UnixConn
	mu   sync.Mutex
	list []*os.File
}

func newSocketStore(t *testing.T, path string) *socketStore {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	s := &socketStore{conn: conn}
	var taking sync.WaitGroup
	taking.Go(s.take)
	t.Cleanup(func() {
		conn.Close()
		taking.Wait()
		for _, f := range s.list {
			f.Close()
		}
	})
	return s
}

// take ends when the socket is closed.
func (s *socketStore) take() {
	text, rights := make([]byte, 4096), make([]byte, 4096)
	for {
		n, size, _, _, err := s.conn.ReadMsgUnix(text, rights)
		if err != nil {
			return
		}
		messages, err := syscall.ParseSocketControlMessage(rights[:size])
		if err != nil || !strings.HasPrefix(string(text[:n]), "FDSTORE=1\n") {
			continue
		}
		for _, m := range messages {
			fds, _ := syscall.ParseUnixRights(&m) // what is no descriptor is not kept
			s.mu.Lock()
			for _, fd := range fds {
				syscall.CloseOnExec(fd)
				s.list = append(s.list, os.NewFile(uintptr(fd), "socket"))
			}
			s.mu.Unlock()
		}
	}
}

func (s *socketStore) env() string { return "NOTIFY_SOCKET=" + s.conn.LocalAddr().String() }

func (s *socketStore) kept() []*os.File {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.list)
}

// A container that somebody else put on the namespace's network is found by its name, and told ours.
func TestOtherContainersOnTheNetworkHaveNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w *world) { w.flags = append(w.flags, "--dns-listen", "127.0.0.1:0") })
	needs(t, resolversImage)
	w.apply(spec{replicas: 1, image: resolversImage})
	name := "stsd-e2e-shop-" + w.ns
	if _, err := w.inside("web-0", "/lookup-glibc", name); err == nil {
		t.Errorf("%s is found before it is there", name)
	}
	docker(t, "run", "-d", "--name", name, "--network", w.network(), "--dns", w.gateway().String(), resolversImage)
	t.Cleanup(func() { docker(t, "rm", "-f", name) })
	address := docker(t, "inspect", "-f", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", name)
	for resolver, command := range lookers {
		w.await(name+" by "+resolver, func() error {
			got, err := w.inside("web-0", append(slices.Clone(command), name)...)
			if err != nil || !strings.Contains(got, address) {
				return fmt.Errorf("%q, %v, want %s", got, err, address)
			}
			return nil
		})
	}
	if got := docker(t, "exec", name, "/lookup-musl", "web-0.web."+w.ns+".svc"); !strings.Contains(got, w.address("web-0")) {
		t.Errorf("the other container is told %q for web-0", got)
	}
	docker(t, "network", "disconnect", w.network(), name)
	w.await("no more "+name, func() error {
		if got, err := w.inside("web-0", "/lookup-glibc", name); err == nil {
			return fmt.Errorf("still %s", got)
		}
		return nil
	})
	shown := w.ok("dns", "web-0.web."+w.ns+".svc", "--from", "web-0")
	if !strings.Contains(shown, w.address("web-0")) || !strings.Contains(shown, "member "+w.ns+"/web-0") {
		t.Errorf("dns shows\n%s", shown)
	}
}

// The design's case 63 with the real program: its sockets are somebody else's too, as systemd's are, and it is killed.
func TestAKilledDaemonLosesNoLookUp(t *testing.T) {
	t.Parallel()
	udp, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	at := udp.LocalAddr().String()
	tcp, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	w := idleWorld(t, func(w *world) { w.flags = append(w.flags, "--dns-listen", at) })
	sockets := []*os.File{file(t, udp), file(t, tcp.(*net.TCPListener))}
	w.spawnHolding(sockets)
	w.learnID()
	w.apply(spec{replicas: 2})
	name, want := "web-1.web."+w.ns+".svc.cluster.local", []string{w.address("web-1")}

	resolver := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, at)
	}}
	asked := 0
	look := func() {
		t.Helper()
		asked++
		if got, err := resolver.LookupHost(t.Context(), name); err != nil || !slices.Equal(got, want) {
			t.Errorf("look-up %d: %v, %v, want %v", asked, got, err, want)
		}
	}
	for range 3 {
		for range 50 {
			look()
		}
		w.kill()
		waiting := make(chan struct{})
		go func() {
			defer close(waiting)
			look() // nobody is there
		}()
		w.spawnHolding(sockets)
		<-waiting
		for range 50 {
			look()
		}
		w.learnID()
	}
	t.Logf("%d look-ups over 3 kills", asked)
}

func file(t *testing.T, socket interface{ File() (*os.File, error) }) *os.File {
	t.Helper()
	f, err := socket.File()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// spawnHolding starts the daemon with sockets, in the way of systemd.
func (w *world) spawnHolding(sockets []*os.File, env ...string) {
	w.t.Helper()
	log, err := os.OpenFile(w.logs(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		w.t.Fatal(err)
	}
	defer log.Close()
	script := fmt.Sprintf(`LISTEN_PID=$$ LISTEN_FDS=%d exec "$0" "$@"`, len(sockets))
	proc, end := exec.Command("/bin/sh", append([]string{"-c", script, binary}, w.daemonArgs()...)...), make(chan struct{})
	proc.Stdout, proc.Stderr, proc.ExtraFiles, proc.Env = log, log, sockets, append(os.Environ(), env...)
	if err := proc.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.proc, w.end = proc, end
	go func() {
		_ = proc.Wait() // killed on purpose
		close(end)
	}()
}
