package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/daemon/store"
	"github.com/stsd/stsd/dns"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/runtime/sim"
)

// resolving is a daemon with DNS on the simulator. Its networks are nobody's, so
// it is asked on loopback, or its snapshot is.
type resolving struct {
	*Daemon
	t       *testing.T
	world   *sim.World
	engine  sim.Engine
	changed func()
	stop    func()
}

// resolvingConfig changes how one is made; its zero value is plain.
type resolvingConfig struct {
	program  sim.Program
	networks func(context.Context) ([]Network, error)
	engine   func(sim.Engine) runtime.Engine
	listen   []netip.AddrPort
	log      hclog.Logger
	down     bool // the engine does not answer
	resolve  func(up map[string]bool) error
	around   func(commit func() error) error
}

func resolve(t *testing.T, dir string, c resolvingConfig) *resolving {
	t.Helper()
	r := &resolving{t: t}
	d, err := New(Config{
		DataDir: dir, HostsFile: filepath.Join(dir, "no-hosts"), DNSListen: c.listen, DNSForwardOff: true, Log: c.log,
		Store: store.Options{NoSync: true, Around: c.around},
		Engine: func(id string, h Hooks) (Parts, error) {
			r.world = sim.New(sim.Config{Daemon: id, Pool: netip.MustParsePrefix("198.18.0.0/16")})
			r.world.Program("web:1", c.program)
			r.engine, r.changed = sim.NewEngine(r.world), h.Changed
			var engine runtime.Engine = r.engine
			if c.engine != nil {
				engine = c.engine(r.engine)
			}
			if c.down {
				r.world.Disconnect(time.Hour)
			}
			return Parts{Engine: engine, Volumes: r.world.Volumes(), Run: r.engine.Run, Networks: c.networks, Resolve: c.resolve,
				Name: func(context.Context) (string, error) { return "sim", nil }}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	r.Daemon = d
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(r.stop)
	return r
}

func (r *resolving) apply(text string) {
	r.t.Helper()
	if _, err := r.Apply(r.t.Context(), request(text)); err != nil {
		var p *client.Problem
		errors.As(err, &p)
		r.t.Fatalf("apply: %v: %+v", err, p.Diagnostics)
	}
}

// told is what a client is answered for A: an rcode, or the addresses' last parts.
func (r *resolving) told(asker, name string) string {
	snap := r.names.server.Snapshot()
	if snap == nil {
		return "nothing known"
	}
	a := snap.Answer(netip.MustParseAddr(asker), name, dns.TypeA)
	var out []string
	for _, record := range a.Records {
		out = append(out, record.Addr.String())
	}
	if len(out) == 0 {
		return dns.RcodeName(a.Rcode)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// until waits for f, and fails after a time that is long for everything here.
func until(t *testing.T, what string, f func() bool) time.Duration {
	t.Helper()
	start := time.Now()
	for !f() {
		if time.Since(start) > 20*time.Second {
			t.Fatalf("after %s: not %s", time.Since(start), what)
		}
		time.Sleep(time.Millisecond)
	}
	return time.Since(start)
}

const host = "127.0.0.1"

const readyWebs = `
statefulset "web" {
  replicas = 3
  container "web" {
    image = "web:1"
    port "http" { container = 8080 }
    probe "readiness" {
      period = "1s"
      http { port = "http" }
    }
  }
}`

// lookUp asks over UDP and gives the last byte of each address.
func lookUp(t *testing.T, at netip.AddrPort, name string) []byte {
	t.Helper()
	conn, err := net.Dial("udp", at.String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	query := []byte{7, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0}
	for label := range strings.SplitSeq(name, ".") {
		query = append(append(query, byte(len(label))), label...)
	}
	query = append(query, 0, 0, 1, 0, 1)
	conn.SetDeadline(time.Now().Add(5 * time.Second))
	conn.Write(query)
	reply := make([]byte, 512)
	n, err := conn.Read(reply)
	if err != nil {
		t.Fatal(err)
	}
	var out []byte
	for i := len(query); i+16 <= n && len(out) < int(reply[7]); i += 16 {
		out = append(out, reply[i+15])
	}
	slices.Sort(out)
	return out
}

// at is where the daemon answers on loopback.
func (r *resolving) at() (at netip.AddrPort) {
	r.t.Helper()
	until(r.t, "listening", func() bool {
		for _, l := range r.names.server.Status() {
			if l.Err == nil && l.Addr.Addr().IsLoopback() && l.Addr.Port() != 0 {
				at = l.Addr
			}
		}
		return at.IsValid()
	})
	return at
}

func TestAChangeIsSeenWithin50ms(t *testing.T) { // case 59, in simulated time: no timer and no look that failed lies between
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		r := resolve(t, dir, resolvingConfig{program: sim.Program{ReadyAfter: 100 * time.Millisecond}})
		defer r.stop()
		r.apply(readyWebs)
		listed := func(n int) func() bool {
			return func() bool { return len(strings.Fields(r.told(host, "web.svc"))) == n }
		}
		ready := func() (n int) {
			pods, err := r.engine.List(t.Context(), web)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range pods {
				if p.Ready && p.Phase == runtime.Running {
					n++
				}
			}
			return n
		}
		until(t, "all three listed", listed(3))
		for _, name := range []string{"web-0", "web-1", "web-2"} {
			r.world.Kill(name)
			out := until(t, "out of the set's name", listed(2))
			until(t, "ready", func() bool { return ready() == 3 })
			back := until(t, "listed again", listed(3))
			if limit := 50 * time.Millisecond; out > limit || back > limit {
				t.Errorf("%s: killed, it is out after %s; ready, it is in after %s; want %s at most", name, out, back, limit)
			}
		}
	})
}

// spy tells what DNS said when an engine was called.
type spy struct {
	sim.Engine
	stopping func(runtime.PodName)
}

func (s spy) Stop(ctx context.Context, name runtime.PodName, o runtime.StopOptions) error {
	s.stopping(name)
	return s.Engine.Stop(ctx, name, o)
}

func TestAMemberLeavesTheSetsNameBeforeItIsStopped(t *testing.T) { // case 60
	t.Parallel()
	var r *resolving
	var mu sync.Mutex
	listed := map[string]string{}
	stopping := func(name runtime.PodName) {
		mu.Lock()
		defer mu.Unlock()
		if _, met := listed[name.Name]; !met {
			listed[name.Name] = r.told(host, "web.svc") + ", itself " + r.told(host, name.Name+".svc")
		}
	}
	r = resolve(t, t.TempDir(), resolvingConfig{engine: func(e sim.Engine) runtime.Engine { return spy{e, stopping} }})
	r.apply(readyWebs)
	all := "198.18.0.10 198.18.0.11 198.18.0.12"
	until(t, "all listed", func() bool { return len(strings.Fields(r.told(host, "web.svc"))) == 3 })
	all = r.told(host, "web.svc")
	addrs := strings.Fields(all)
	r.apply(strings.Replace(readyWebs, "replicas = 3", "replicas = 1", 1))
	until(t, "two gone", func() bool { return r.told(host, "web.svc") == addrs[0] && r.told(host, "web-1.svc") == "NXDOMAIN" })
	mu.Lock()
	defer mu.Unlock()
	want := map[string]string{
		"web-2": addrs[0] + " " + addrs[1] + ", itself " + addrs[2],
		"web-1": addrs[0] + ", itself " + addrs[1],
	}
	if !maps.Equal(listed, want) {
		t.Errorf("when a member was stopped its set was %v\nwant %v", listed, want)
	}
}

func TestAMemberComesBackUnderItsAddress(t *testing.T) { // case 61
	t.Parallel()
	r := resolve(t, t.TempDir(), resolvingConfig{})
	r.apply(readyWebs)
	until(t, "all listed", func() bool { return len(strings.Fields(r.told(host, "web.svc"))) == 3 })
	before := r.told(host, "web-1.svc")
	for range 3 {
		r.world.RemoveContainer("web-1")
		until(t, "out", func() bool { return len(strings.Fields(r.told(host, "web.svc"))) == 2 })
		if got := r.told(host, "web-1.svc"); got != before {
			t.Errorf("while it is away web-1 is %s, want %s", got, before)
		}
		until(t, "back", func() bool { return len(strings.Fields(r.told(host, "web.svc"))) == 3 })
		if got := r.told(host, "web-1.svc"); got != before {
			t.Errorf("recreated web-1 is %s, want %s", got, before)
		}
	}
}

func TestTheStoredNamesAnswerBeforeTheEngine(t *testing.T) { // case 63
	t.Parallel()
	dir := t.TempDir()
	others := map[string][]netip.Addr{"shop": {netip.MustParseAddr("198.18.2.9")}}
	found := func(context.Context) ([]Network, error) {
		return []Network{{Namespace: "default", Name: "stsd", Subnet: netip.MustParsePrefix("198.18.0.0/22"), Others: others}}, nil
	}
	never := func(context.Context) ([]Network, error) { return nil, errors.New("no engine") }
	r := resolve(t, dir, resolvingConfig{networks: found})
	r.apply(readyWebs + "\nstatefulset \"slow\" {\n  container \"web\" { image = \"web:1\" }\n  dns { member_names = \"ready\" }\n}\n")
	until(t, "all listed", func() bool {
		return len(strings.Fields(r.told(host, "web.svc"))) == 3 && r.told("198.18.0.99", "shop") == "198.18.2.9" && r.told(host, "slow.svc") != "NXDOMAIN"
	})
	r.world.Kill("slow-0")
	want := r.told(host, "web.svc")
	r.stop()

	for _, c := range []struct {
		what         string
		file         func(path string) error
		shop, nobody string
	}{
		{"with what was answered last", func(string) error { return nil }, "198.18.2.9", "SERVFAIL"},
		{"with a broken file", func(path string) error { return os.WriteFile(path, []byte("{"), 0o600) }, "SERVFAIL", "SERVFAIL"},
		{"without the file", os.Remove, "SERVFAIL", "SERVFAIL"},
	} {
		if err := c.file(filepath.Join(dir, namesFile)); err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		again := resolve(t, dir, resolvingConfig{networks: never, down: true, log: hclog.New(&hclog.LoggerOptions{Output: &log, Mutex: new(sync.Mutex)})})
		until(t, "loaded", func() bool { again.names.mu.Lock(); defer again.names.mu.Unlock(); return again.names.loaded })
		until(t, "answering", func() bool { return again.told(host, "web.svc") == want })
		for name, said := range map[string]string{
			"web.svc": want, "web-1.svc": strings.Fields(want)[1], "web-9.svc": "SERVFAIL", "nosuch.svc": "NXDOMAIN",
		} {
			if got := again.told(host, name); got != said {
				t.Errorf("%s: %s is %s, want %s", c.what, name, got, said)
			}
		}
		for name, said := range map[string]string{"shop": c.shop, "nobody": c.nobody} {
			if got := again.told("198.18.0.99", name); got != said {
				t.Errorf("%s: container %s is %s, want %s", c.what, name, got, said)
			}
		}
		again.stop()
	}
}

func TestNamesOfOtherContainersFollowTheEngine(t *testing.T) {
	t.Parallel()
	var others atomic.Pointer[map[string][]netip.Addr]
	others.Store(&map[string][]netip.Addr{})
	r := resolve(t, t.TempDir(), resolvingConfig{networks: func(context.Context) ([]Network, error) {
		if others.Load() == nil {
			return nil, errors.New("engine is away")
		}
		return []Network{
			{Namespace: "default", Name: "stsd", Subnet: netip.MustParsePrefix("198.18.0.0/22"), Others: *others.Load()},
			{Namespace: "default", Name: "shop", Subnet: netip.MustParsePrefix("198.19.0.0/24"), Gateway: netip.MustParseAddr("198.19.0.1")},
		}, nil
	}})
	r.apply(readyWebs)
	until(t, "listed", func() bool { return len(strings.Fields(r.told(host, "web.svc"))) == 3 })
	const stranger = "198.18.0.200"
	until(t, "denied, once all are known", func() bool { return r.told(stranger, "cache") == "NXDOMAIN" })
	others.Store(&map[string][]netip.Addr{"cache": {netip.MustParseAddr("198.18.2.7")}})
	r.changed()
	until(t, "found", func() bool { return r.told(stranger, "cache") == "198.18.2.7" })
	others.Store(nil)
	r.changed()
	others.Store(&map[string][]netip.Addr{})
	until(t, "gone again", func() bool { return r.told(stranger, "cache") == "NXDOMAIN" })
	if got := r.told("198.19.0.9", "web-0"); got == "NXDOMAIN" {
		t.Errorf("a client of a network that members joined is told %s for web-0", got)
	}
}

// A thousand restarts, and a member's own name and its peers' always answer.
// Whoever is told that there is no such name keeps that for a while.
func TestNothingIsPublishedBeforeTheStoredNamesWereRead(t *testing.T) {
	t.Parallel()
	d := speaker(t, new(strings.Builder))
	d.names.ready = false
	d.names.networkReady("default", netip.MustParseAddr("198.18.0.1"), netip.MustParsePrefix("198.18.0.0/22"))
	d.names.put(web, dns.Set{Namespace: "default", Name: "web"})
	d.names.drop(web)
	if d.names.server.Snapshot() != nil {
		t.Error("names are answered, and denied, of which nothing is known yet")
	}
	if err := d.names.load(); err != nil {
		t.Fatal(err)
	}
	if d.names.server.Snapshot() == nil {
		t.Error("no names are answered after the stored ones were read")
	}
}

func TestMembersAreSentElsewhereBeforeTheSocketsClose(t *testing.T) {
	t.Parallel()
	var r *resolving
	var stopping atomic.Bool
	last := "nothing"
	r = resolve(t, t.TempDir(), resolvingConfig{
		listen: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")},
		resolve: func(up map[string]bool) error {
			if stopping.Load() {
				serves := slices.ContainsFunc(r.names.server.Status(), func(l dns.Listener) bool { return l.Err == nil })
				last = fmt.Sprint(up, " ", serves)
			}
			return nil
		},
	})
	r.apply(readyWebs)
	until(t, "all listed", func() bool { return len(strings.Fields(r.told(host, "web.svc"))) == 3 })
	r.at()
	r.names.networkReady("default", netip.MustParseAddr("198.18.0.1"), netip.MustParsePrefix("198.18.0.0/22"))
	stopping.Store(true)
	r.stop()
	if want := "map[default:false] true"; last != want {
		t.Errorf("at the end the engine was told %s, want %s: asked elsewhere, and DNS still serves", last, want)
	}
}

func TestRestartsOfMembersFailNoLookUp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		r := resolve(t, dir, resolvingConfig{program: sim.Program{ReadyAfter: 2 * time.Second}})
		defer r.stop()
		r.apply(readyWebs)
		time.Sleep(time.Minute)
		addrs := strings.Fields(r.told(host, "web.svc"))
		if len(addrs) != 3 {
			t.Fatalf("web.svc = %v, want three", addrs)
		}
		asked, failed := 0, 0
		check := func() {
			for n, name := range []string{"web-0.svc", "web-1.web", "web-2.web.default.svc.cluster.local"} {
				for _, member := range addrs {
					asked++
					if r.told(member, name) != addrs[n] {
						failed++
					}
				}
			}
		}
		names := []string{"web-0", "web-1", "web-2"}
		for i := range 1000 {
			r.world.Kill(names[i%3])
			check()
			time.Sleep(time.Duration(i%17) * 700 * time.Millisecond)
			check()
		}
		if failed > 0 {
			t.Errorf("%d of %d look-ups of own and peer names failed", failed, asked)
		}
		t.Logf("%d look-ups over 1000 kills", asked)
	})
}

func TestChangesSideBySideShareASnapshot(t *testing.T) {
	t.Parallel()
	d := speaker(t, new(strings.Builder))
	var putting sync.WaitGroup
	for i := range 200 {
		putting.Go(func() {
			key := jobspecs.Key{Namespace: "default", Name: jobspecs.MemberName("s", i) + "x"}
			addr := netip.AddrFrom4([4]byte{198, 18, 1, byte(i)})
			d.names.put(key, dns.Set{Namespace: key.Namespace, Name: key.Name, Members: []dns.Member{{Name: key.Name + "-0", Address: addr}}})
			a := d.names.server.Snapshot().Answer(thisMachine, key.Name+"-0.svc", dns.TypeA)
			if len(a.Records) != 1 {
				t.Errorf("%s does not answer although put has returned: %s", key, a)
			}
		})
	}
	putting.Wait()
}

func TestDNSTellsToWhomAndWhy(t *testing.T) {
	t.Parallel()
	r := resolve(t, t.TempDir(), resolvingConfig{listen: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}})
	r.apply(readyWebs)
	until(t, "all listed", func() bool { return len(strings.Fields(r.told(host, "web.svc"))) == 3 })
	first := r.told(host, "web-0.svc")
	for _, c := range []struct {
		q         client.DNSQuery
		name, why string
	}{
		{client.DNSQuery{Name: "web-0.svc"}, "web-0.svc A: NOERROR [web-0.svc. 5 A " + first + "]", "member"},
		{client.DNSQuery{Name: "web-9.svc", From: "web-0"}, "web-9.svc A: NXDOMAIN []", "no set or namespace of this name"},
		{client.DNSQuery{Name: "web-0.svc", Type: "aaaa", From: "127.0.0.1"}, "web-0.svc AAAA: NOERROR []", "member"},
		{client.DNSQuery{Name: first}, dns.ReverseName(netip.MustParseAddr(first)) + " PTR: NOERROR [" + dns.ReverseName(netip.MustParseAddr(first)) +
			" 5 PTR web-0.web.default.svc.cluster.local.]", "address of a member"},
		{client.DNSQuery{Name: "example.test", From: "default/web-1"}, "example.test A: REFUSED []", "not a name of ours"},
	} {
		got, err := r.DNS(t.Context(), c.q)
		if err != nil || len(got.Names) != 1 || len(got.Names[0].Told) != 1 {
			t.Fatalf("%+v: %+v, %v", c.q, got, err)
		}
		n, told := got.Names[0], got.Names[0].Told[0]
		if text := fmt.Sprintf("%s %s: %s %v", n.Name, n.Type, told.Rcode, told.Records); text != c.name || told.Why != c.why {
			t.Errorf("%+v: %s (%s)\nwant %s (%s)", c.q, text, told.Why, c.name, c.why)
		}
	}
	all, err := r.DNS(t.Context(), client.DNSQuery{})
	if err != nil || len(all.Names) != 4 || len(all.Listeners) == 0 {
		t.Errorf("all names: %+v, %v, want the set and its members", all, err)
	}
	for _, q := range []client.DNSQuery{{Name: "web", Type: "nonsense"}, {Name: "web", From: "nobody"}} {
		var p *client.Problem
		if _, err := r.DNS(t.Context(), q); !errors.As(err, &p) {
			t.Errorf("%+v: %v, want a problem", q, err)
		}
	}
}

func TestATraceOfOneName(t *testing.T) {
	t.Parallel()
	r := resolve(t, t.TempDir(), resolvingConfig{listen: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}})
	r.apply(readyWebs)
	until(t, "all listed", func() bool { return len(strings.Fields(r.told(host, "web.svc"))) == 3 })
	enough := errors.New("enough")
	got := make(chan error, 1)
	var lines []client.DNSTraced
	go func() {
		got <- r.TraceDNS(t.Context(), "WEB-1.svc", func() error { return nil }, func(q client.DNSTraced) error {
			lines = append(lines, q)
			return enough
		})
	}()
	until(t, "tracing", func() bool { c, ok := r.DNSCounters(); return ok && c.Watchers == 1 })
	for _, name := range []string{"web-0.svc", "web-1.svc"} {
		lookUp(t, r.at(), name)
	}
	if err := <-got; !errors.Is(err, enough) || len(lines) != 1 || lines[0].Name != "web-1.svc." || lines[0].Why != "member" || lines[0].Client != host {
		t.Errorf("trace ended with %v after %+v", err, lines)
	}
}

// A member is found where it joined, under its address there, and whoever is there
// is found by it.
func TestMembersAreFoundOnNetworksThatTheyJoined(t *testing.T) {
	t.Parallel()
	six := netip.MustParsePrefix("fd00:7e57::/64")
	var shop atomic.Pointer[Network]
	r := resolve(t, t.TempDir(), resolvingConfig{
		networks: func(context.Context) ([]Network, error) {
			if n := shop.Load(); n != nil {
				return []Network{*n}, nil
			}
			return nil, nil
		},
		engine: func(e sim.Engine) runtime.Engine { return sixthSense{e, six} },
	})
	r.apply("statefulset \"web\" {\n  replicas = 2\n  networks = [\"shop\"]\n  container \"web\" { image = \"web:1\" }\n}\n")
	var at netip.Addr
	until(t, "members that run", func() bool {
		list, err := r.engine.List(t.Context(), jobspecs.Key{Namespace: "default", Name: "web"})
		if err != nil || len(list) != 2 || len(list[1].Joined) == 0 {
			return false
		}
		at = list[1].Joined[0].Addresses[0]
		return true
	})
	subnet := netip.PrefixFrom(at, 16).Masked()
	shop.Store(&Network{Namespace: "default", Name: "shop", Subnet: subnet, More: []netip.Prefix{six},
		Others: map[string][]netip.Addr{"db": {subnet.Addr().Next(), six.Addr().Next()}}})
	r.changed()
	own, there := "198.18.0.11", subnet.Addr().Next().Next().String()
	until(t, "the network's names", func() bool { return r.told(own, "db") == subnet.Addr().Next().String() })

	member := sixOf(six, 1)
	for _, c := range []struct{ says, asker, name, want string }{
		{"another member is told the address on their own network", "198.18.0.10", "web-1.svc", own},
		{"a container of the joined network the one there", there, "web-1.svc", at.String()},
		{"a member the other container's", own, "db", subnet.Addr().Next().String()},
	} {
		if got := r.told(c.asker, c.name); got != c.want {
			t.Errorf("%s: %q, want %q", c.says, got, c.want)
		}
	}
	snap := r.names.server.Snapshot()
	ask := func(asker, name string, kind uint16) string {
		a := snap.Answer(netip.MustParseAddr(asker), name, kind)
		var out []string
		for _, record := range a.Records {
			out = append(out, strings.TrimSuffix(record.Addr.String(), "invalid IP")+record.Target)
		}
		return strings.Join(out, " ")
	}
	if got := ask(there, "web-1.svc", dns.TypeAAAA); got != member.String() {
		t.Errorf("AAAA there = %q, want %q", got, member)
	}
	if got := ask(own, "db", dns.TypeAAAA); got != six.Addr().Next().String() {
		t.Errorf("AAAA of the other = %q", got)
	}
	fqdn := "web-1.web.default.svc.cluster.local."
	for _, a := range []netip.Addr{at, member} {
		if got := ask(own, dns.ReverseName(a), dns.TypePTR); got != fqdn {
			t.Errorf("PTR of %s = %q, want %q", a, got, fqdn)
		}
	}
}

// sixthSense gives every pod an IPv6 address on the networks that it joined.
type sixthSense struct {
	sim.Engine
	six netip.Prefix
}

func sixOf(p netip.Prefix, ordinal int) netip.Addr {
	a := p.Addr().As16()
	a[15] = byte(16 + ordinal)
	return netip.AddrFrom16(a)
}

func (s sixthSense) List(ctx context.Context, key jobspecs.Key) ([]runtime.Pod, error) {
	list, err := s.Engine.List(ctx, key)
	for i := range list {
		joined := slices.Clone(list[i].Joined)
		for j := range joined {
			joined[j].Addresses = append(slices.Clone(joined[j].Addresses), sixOf(s.six, list[i].Ordinal))
		}
		list[i].Joined = joined
	}
	return list, err
}

func TestNobodyIsAnsweredAtTheGatewayOfANetworkThatIsGone(t *testing.T) {
	t.Parallel()
	var there atomic.Bool
	subnet := netip.MustParsePrefix("198.18.4.0/22")
	own := Network{Namespace: "shop", Name: "stsd.shop", Subnet: subnet}
	r := resolve(t, t.TempDir(), resolvingConfig{networks: func(context.Context) ([]Network, error) {
		if there.Load() {
			return []Network{own}, nil
		}
		return nil, nil
	}})
	until(t, "what is stored", func() bool {
		r.names.mu.Lock()
		defer r.names.mu.Unlock()
		return r.names.loaded && r.names.netsKnown
	})
	there.Store(true)
	gateway := netip.AddrPortFrom(gatewayOf(subnet), dnsPort)
	r.names.networkReady("shop", gateway.Addr(), subnet)
	listens := func() bool {
		return slices.ContainsFunc(r.names.server.Status(), func(l dns.Listener) bool { return l.Addr == gateway })
	}
	r.changed()
	until(t, "the network", func() bool { r.names.mu.Lock(); defer r.names.mu.Unlock(); return len(r.names.found) == 1 })
	if !listens() {
		t.Fatal("nobody listens at the gateway of a network")
	}
	there.Store(false)
	r.changed()
	until(t, "the end of its sockets", func() bool { return !listens() })
}
