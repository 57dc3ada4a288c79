package e2e_test

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stsd/stsd/jobspecs"
)

// docker runs Docker's own command line, which must end well.
func docker(t testing.TB, args ...string) string {
	t.Helper()
	out, err := exec.Command("docker", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("docker %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// needs skips a test that lacks an image or a command.
func needs(t *testing.T, images ...string) {
	t.Helper()
	if _, err := exec.LookPath("docker"); err != nil {
		t.Skipf("needs Docker's command line: %v", err)
	}
	if os.Getenv("DOCKER_HOST") != "" {
		t.Skip("needs an engine at /var/run/docker.sock: DOCKER_HOST names another")
	}
	for _, image := range images {
		if err := exec.Command("docker", "image", "inspect", image).Run(); err != nil {
			name, _, _ := strings.Cut(strings.TrimPrefix(image, "stsd-"), ":")
			t.Skipf("needs %s: test/images/build.sh %s", image, strings.TrimPrefix(name, "test-"))
		}
	}
}

// contain runs the world's daemon in a container, which goes with the test.
// flags come before the image's name, command after it.
func (w *world) contain(image string, flags []string, command ...string) (name string) {
	w.t.Helper()
	name = "stsd-e2e-" + w.ns
	args := append([]string{"run", "-d", "--name", name, "-v", "/var/run/docker.sock:/var/run/docker.sock", "-v", w.dir + ":" + w.dir}, flags...)
	docker(w.t, append(append(args, image), command...)...)
	w.t.Cleanup(func() {
		if w.t.Failed() {
			w.t.Logf("log of container %s:\n%s", name, docker(w.t, "logs", "--tail", "60", name))
		}
		docker(w.t, "rm", "-f", "-v", name)
	})
	return name
}

// learnID waits for the daemon at the world's socket and notes whose objects it makes.
func (w *world) learnID() {
	w.t.Helper()
	w.await("the daemon to answer", func() error {
		r := w.stsd("-o", "json", "version")
		var v version
		if err := json.Unmarshal([]byte(r.out), &v); err != nil || v.Daemon == nil {
			return errors.Join(err, errors.New(r.String()))
		}
		w.id = v.Daemon.Daemon
		return nil
	})
}

// The daemon as the image of the Dockerfile: what its members look up while it
// runs, while it is stopped, and when it is back.
func TestTheDaemonInAContainer(t *testing.T) {
	t.Parallel()
	w := idleWorld(t)
	needs(t, "stsd-demo:1")
	image := "stsd-e2e:" + w.ns
	folder := filepath.Join(w.dir, "build")
	for name, from := range map[string]string{"bin/stsd": binary, "Dockerfile": "../../Dockerfile", ".dockerignore": "../../.dockerignore"} {
		text, err := os.ReadFile(from)
		if err := errors.Join(err, os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o755), os.WriteFile(filepath.Join(folder, name), text, 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	docker(t, "build", "-q", "-t", image, folder)
	t.Cleanup(func() { docker(t, "rmi", image) })
	name := w.contain(image, []string{"--network", "host"}, append(w.daemonArgs(), "--dns-listen", "127.0.0.1:0")...)
	w.learnID()

	w.apply(spec{replicas: 2})
	want := []string{w.address("web-1")}
	finds := func(who string) {
		t.Helper()
		for _, name := range []string{"web-1", "web-1.web", "web-1.svc", "web-1.web." + w.ns + ".svc.cluster.local"} {
			w.await(name+" "+who, func() error {
				if got, err := w.lookup("web-0", name); err != nil || !slices.Equal(got, want) {
					return fmt.Errorf("%v, %v, want %v", got, err, want)
				}
				return nil
			})
		}
	}
	finds("while the daemon runs")
	docker(t, "stop", name)
	finds("while the daemon is stopped")
	docker(t, "start", name)
	w.learnID()
	w.scale(3)
	w.await("web-2 in the set's name", func() error {
		got, err := w.lookup("web-0", "web.svc")
		if err != nil || len(got) != 3 {
			return fmt.Errorf("%v, %v, want 3", got, err)
		}
		return nil
	})
}

func (w *world) scale(n int) {
	w.t.Helper()
	w.ok("scale", "web", fmt.Sprint(n), "--timeout", patience.String())
}

// host is a machine with a resolver of its own, in a container: a user's.
type host struct {
	*world
	name string
}

const machine = "stsd-test-machine:1"

// newHost starts the machine with a daemon and a set of two on it. Beside its
// resolver there is the server of its provider, which knows example.test (at a public
// address: dnsmasq drops others where it is told to stop rebinding).
func newHost(t *testing.T) *host {
	t.Helper()
	w := idleWorld(t)
	needs(t, "stsd-demo:1", machine)
	h := &host{world: w}
	h.name = w.contain(machine, []string{"--cap-add", "NET_ADMIN", "--dns", "192.0.2.1", "-v", binary + ":/usr/local/bin/stsd:ro"})
	h.sh(`provider=$(ip -4 -o addr show eth0 | sed "s/.*inet \([0-9.]*\).*/\1/")
		echo $provider >/run/provider
		dnsmasq -C /dev/null --no-resolv --no-hosts --listen-address=$provider --bind-interfaces --pid-file=/run/provider.pid \
			--address=/example.test/8.7.6.5 --local=/test/ --log-queries --log-facility=/var/log/provider.log`)
	docker(t, append([]string{"exec", "-d", h.name, "bash", "-c", `exec "$@" >/proc/1/fd/1 2>&1`, "bash", "stsd"}, w.daemonArgs()...)...)
	w.learnID()
	w.apply(spec{replicas: 2, noProbe: true, noVolume: true})
	return h
}

// sh runs a script on the machine, which must end well.
func (h *host) sh(script string) string {
	h.t.Helper()
	return docker(h.t, "exec", "-e", "STSD_HOST=unix://"+h.socket(), h.name, "bash", "-euc", script)
}

// finds is what a program that uses the C library gets for a name.
func (h *host) finds(name string) []string {
	out, _ := exec.Command("docker", "exec", h.name, "getent", "ahostsv4", name).Output() // no such name: nothing
	var found []string
	for line := range strings.Lines(string(out)) {
		found = append(found, strings.Fields(line)[0])
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func (h *host) awaitName(name string, want ...string) {
	h.t.Helper()
	h.await(name+" on the machine", func() error {
		if got := h.finds(name); !slices.Equal(got, want) {
			return fmt.Errorf("%v, want %v", got, want)
		}
		return nil
	})
}

// etc is every file of /etc: owner, mode, text.
func (h *host) etc() string {
	h.t.Helper()
	out, err := exec.Command("docker", "exec", h.name, "busybox", "tar", "-c", "-C", "/", "etc").Output()
	if err != nil {
		h.t.Fatal(err)
	}
	var lines []string
	for r := tar.NewReader(bytes.NewReader(out)); ; {
		f, err := r.Next()
		if err == io.EOF {
			break
		}
		text, readErr := io.ReadAll(r)
		if err := cmp.Or(err, readErr); err != nil {
			h.t.Fatal(err)
		}
		lines = append(lines, fmt.Sprintf("%s %o %d:%d %s %q", f.Name, f.Mode, f.Uid, f.Gid, f.Linkname, text))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// changed are the lines that differ.
func changed(before, after string) []string {
	a, b := strings.Split(before, "\n"), strings.Split(after, "\n")
	return slices.DeleteFunc(append(a, b...), func(line string) bool { return slices.Contains(a, line) && slices.Contains(b, line) })
}

// Real resolvers of Debian: after install the machine finds members and asks nobody
// else for them (but for a name that is not in the hosts file), and all else is as
// before; after uninstall every file is what it was.
func TestInstallOnAMachine(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	tests := []struct {
		method string
		flags  string
		setUp  string
		file   string // that is written
		down   string // ends the resolver
	}{
		{"resolved", "", `mkdir -p /run/systemd/netif/links /run/systemd/system
			printf 'ADMIN_STATE=configured\nOPER_STATE=routable\nDNS=%s\n' $(cat /run/provider) >/run/systemd/netif/links/$(cat /sys/class/net/eth0/ifindex)
			echo nameserver 127.0.0.53 >/etc/resolv.conf
			systemctl restart systemd-resolved.service`, "/etc/systemd/resolved.conf.d/stsd.conf", "kill $(cat /run/systemd-resolved.test-pid)"},
		{"dnsmasq", "", `mkdir -p /run/systemd/system
			printf 'listen-address=127.0.0.1\nbind-interfaces\nno-resolv\nstop-dns-rebind\nserver=%s\n' $(cat /run/provider) >/etc/dnsmasq.conf
			echo nameserver 127.0.0.1 >/etc/resolv.conf
			systemctl restart dnsmasq.service`, "/etc/dnsmasq.d/stsd.conf", "kill $(cat /run/dnsmasq.test-pid)"},
		{"networkmanager", "", `mkdir -p /run/dbus /run/NetworkManager
			printf '[main]\ndns=dnsmasq\nrc-manager=unmanaged\nplugins=keyfile\n[keyfile]\nunmanaged-devices=interface-name:eth0\n[global-dns-domain-*]\nservers=%s\n' $(cat /run/provider) >/etc/NetworkManager/NetworkManager.conf
			echo nameserver 127.0.0.1 >/etc/resolv.conf
			lan=/etc/NetworkManager/system-connections/lan.nmconnection
			printf '[connection]\nid=lan\ntype=bridge\ninterface-name=lan0\n[ipv4]\nmethod=manual\naddress1=198.51.100.2/24\n[ipv6]\nmethod=disabled\n' >$lan
			chmod 600 $lan
			dbus-daemon --system --fork --nopidfile 2>/dev/null
			setsid NetworkManager --no-daemon >/var/log/nm.log 2>&1 </dev/null &`, "/etc/NetworkManager/dnsmasq.d/stsd.conf", "kill $(pidof NetworkManager)"},
		{"hosts", "", `echo nameserver $(cat /run/provider) >/etc/resolv.conf`, "/etc/hosts", "true"},
	}
	for _, tt := range tests {
		t.Run(tt.method, func(t *testing.T) {
			h.t = t
			h.sh(tt.setUp)
			h.awaitName("example.test", "8.7.6.5")
			before := h.etc()
			h.sh(">/var/log/provider.log")
			h.installs(tt.method, tt.file)
			h.answersMembers()
			if tt.method != "hosts" {
				h.says("status", `"machine_answers": true`, `"server_answers": true`, `"state": "intact"`)
			}
			if out := h.sh("stsd dns install --yes -o json"); !strings.Contains(out, `"steps": []`) {
				t.Errorf("the second install: %s", out)
			}
			if asked := h.sh("cat /var/log/provider.log"); strings.Contains(asked, "svc") && tt.method != "hosts" {
				t.Errorf("the provider was asked for members:\n%s", asked)
			}
			h.sh("stsd dns uninstall --yes")
			if lines := changed(before, h.etc()); len(lines) > 0 {
				t.Errorf("after uninstall these files differ:\n%s", strings.Join(lines, "\n"))
			}
			h.sh("! test -e /var/lib/stsd")
			h.awaitName("example.test", "8.7.6.5")
			h.awaitName(h.long("web-0"))
			h.sh(tt.down)
		})
	}
	h.t = t
}

func (h *host) long(member string) string {
	return member + ".web." + h.ns + ".svc.cluster.local"
}

func (h *host) installs(method, file string) {
	h.t.Helper()
	out := h.sh("stsd dns install --yes -o json 2>&1")
	if want := fmt.Sprintf("%q: %q", "method", method); !strings.Contains(out, want) || !strings.Contains(out, `"done": true`) {
		h.t.Fatalf("install: %s\nwant %s", out, want)
	}
	if text := h.sh("cat " + file); !strings.Contains(text, "stsd dns uninstall") {
		h.t.Errorf("%s holds %q", file, text)
	}
}

// answersMembers: names of members by every form that the machine's own namespace
// has, and foreign names as before.
func (h *host) answersMembers() {
	h.t.Helper()
	first, second := h.address("web-0"), h.address("web-1")
	both := []string{first, second}
	slices.Sort(both)
	h.awaitName(h.long("web-0"), first)
	h.awaitName("web-1.web."+h.ns+".svc", second)
	h.awaitName("web."+h.ns+".svc", both...)
	h.awaitName("example.test", "8.7.6.5")
	start := time.Now()
	if got := h.finds("nosuch.test"); len(got) > 0 {
		h.t.Errorf("nosuch.test is %v", got)
	}
	if took := time.Since(start); took > 3*time.Second {
		h.t.Errorf("that there is no nosuch.test took %s: it was asked of somebody who is silent", took)
	}
}

func (h *host) says(verb string, words ...string) {
	h.t.Helper()
	h.await("stsd dns "+verb, func() error {
		out := h.sh("stsd dns " + verb + " -o json")
		for _, word := range words {
			if !strings.Contains(out, word) {
				return fmt.Errorf("no %s in %s", word, out)
			}
		}
		return nil
	})
}

// A program of the machine that asks the host view and connects to what it says:
// by each mode, and while a changed one waits for the next start.
func TestHostAccess(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w *world) { w.flags = append(w.flags, "--dns-listen", "127.0.0.1:0") })
	port := freePort(t)
	apply := func(mode string) {
		t.Helper()
		set := fmt.Sprintf("  host_access {\n    mode = %q\n  }\n", mode)
		text := strings.ReplaceAll(spec{replicas: 2, set: set, noVolume: true, env: fmt.Sprintf("PORT=%d", port)}.String(), "8080", fmt.Sprint(port))
		w.ok("apply", "--timeout", patience.String(), w.file("web.hcl", text))
	}
	reaches := func(member, address string, port int) {
		t.Helper()
		w.await(member+" at "+address, func() error {
			got, err := w.hostView().LookupHost(t.Context(), member+".web."+w.ns+".svc.cluster.local")
			if err != nil || !slices.Equal(got, []string{address}) {
				return fmt.Errorf("%v, %v", got, err)
			}
			return nil
		})
		reply, err := http.Get(fmt.Sprintf("http://%s:%d/", address, port))
		if err != nil {
			t.Fatal(err)
		}
		defer reply.Body.Close()
		text, err := io.ReadAll(reply.Body)
		if err != nil || !strings.Contains(string(text), member) {
			t.Errorf("%s:%d is %q, %v, want %s", address, port, text, err, member)
		}
	}
	loopback := func(member string) string {
		return jobspecs.LoopbackOf(netip.MustParseAddr(w.address(member))).String()
	}
	ids := func() string { return fmt.Sprint(w.ids("web")) }
	stale := func() (names []string) {
		for _, m := range decode[[]struct {
			Name  string
			Stale bool
		}](w, "ps", "web") {
			if m.Stale {
				names = append(names, m.Name)
			}
		}
		return names
	}

	apply("loopback")
	for _, member := range []string{"web-0", "web-1"} {
		reaches(member, loopback(member), port)
	}
	inside, err := w.lookup("web-0", "web-1")
	if want := w.address("web-1"); err != nil || !slices.Equal(inside, []string{want}) {
		t.Errorf("inside, web-1 is %v, %v, want %s", inside, err, want)
	}

	before := ids()
	apply("ports")
	w.await("members to be stale", func() error {
		if got := stale(); len(got) != 2 {
			return fmt.Errorf("%v", got)
		}
		return nil
	})
	if after := ids(); after != before {
		t.Errorf("a change of the mode restarted members: %s, before %s", after, before)
	}
	reaches("web-1", loopback("web-1"), port)
	w.ok("rollout", "restart", "web", "--timeout", patience.String())
	reaches("web-0", "127.0.0.1", port)
	reaches("web-1", "127.0.0.1", port+1)
	if got := stale(); got != nil {
		t.Errorf("still stale: %v", got)
	}

	apply("direct")
	w.ok("rollout", "restart", "web", "--timeout", patience.String())
	reaches("web-1", w.address("web-1"), port)
	if published := w.inspect("web-1").HostConfig.PortBindings; len(published) > 0 {
		t.Errorf("direct publishes %v", published)
	}

	before = ids()
	apply("none")
	w.await("no name for this machine", func() error {
		var none *net.DNSError
		got, err := w.hostView().LookupHost(t.Context(), "web-1.web."+w.ns+".svc.cluster.local")
		if !errors.As(err, &none) || !none.IsNotFound {
			return fmt.Errorf("%v, %v", got, err)
		}
		return nil
	})
	inside, err = w.lookup("web-0", "web-1.svc")
	if want := w.address("web-1"); err != nil || !slices.Equal(inside, []string{want}) {
		t.Errorf("inside, web-1 is %v, %v, want %s", inside, err, want)
	}
	if after := ids(); after != before {
		t.Errorf("none restarted members: %s, before %s", after, before)
	}
}

// freePort is the first of two that nobody has, at any address.
func freePort(t *testing.T) int {
	t.Helper()
	for range 100 {
		first, err := net.Listen("tcp", ":0")
		if err != nil {
			t.Fatal(err)
		}
		port := first.Addr().(*net.TCPAddr).Port
		second, err := net.Listen("tcp", fmt.Sprintf(":%d", port+1))
		first.Close()
		if err == nil {
			second.Close()
			return port
		}
	}
	t.Fatal("no two free ports")
	return 0
}

// hostView is a resolver that asks the daemon where it answers this machine.
func (w *world) hostView() *net.Resolver {
	w.t.Helper()
	at := ""
	for _, listener := range decode[struct{ Daemon struct{ DNS []string } }](w, "version").Daemon.DNS {
		if strings.HasPrefix(listener, "127.") {
			at = listener
		}
	}
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, at)
	}}
}
