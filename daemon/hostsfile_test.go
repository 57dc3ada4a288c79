package daemon

import (
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/stsd/stsd/daemon/store"
	"github.com/stsd/stsd/dns"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/runtime/sim"
)

// speaker is a daemon that knows names and does not run.
func speaker(t *testing.T, log *strings.Builder) *Daemon {
	t.Helper()
	d, err := New(Config{
		DataDir: t.TempDir(), HostsFile: filepath.Join(t.TempDir(), "hosts"), Store: store.Options{NoSync: true},
		Log: hclog.New(&hclog.LoggerOptions{Output: log}),
		Engine: func(id string, _ Hooks) (Parts, error) {
			return Parts{Engine: sim.NewEngine(sim.New(sim.Config{Daemon: id}))}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.store.Close(); err != nil {
			t.Error(err)
		}
	})
	d.names.ready = true
	return d
}

func member(name, address string, ready bool) dns.Member {
	return dns.Member{Name: name, Address: netip.MustParseAddr(address), Running: ready, Ready: ready}
}

func TestTheBlockOfTheHostsFileIsKept(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	d := speaker(t, &log)
	block := func(lines string) string {
		return "127.0.0.1 localhost\n# BEGIN stsd " + d.store.ID() + "\n" + lines + "# END stsd " + d.store.ID() + "\n"
	}
	says := func(want string) {
		t.Helper()
		d.names.keepHosts()
		got, err := os.ReadFile(d.cfg.HostsFile)
		if err != nil || string(got) != want {
			t.Errorf("hosts file %q, %v\nwant %q", got, err, want)
		}
	}
	put := func(text string) {
		t.Helper()
		if err := os.WriteFile(d.cfg.HostsFile, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}

	d.names.put(jobspecs.Key{Namespace: "default", Name: "web"}, dns.Set{
		Namespace: "default", Name: "web", Service: "web",
		Members: []dns.Member{member("web-0", "10.87.0.10", true), member("web-1", "10.87.0.11", false)},
	})
	put("127.0.0.1 localhost\n")
	says("127.0.0.1 localhost\n") // nobody asked for it

	put(block("10.0.0.1\told\n"))
	says(block("10.87.0.10\tweb-0.svc web-0.web.default.svc.cluster.local web.default.svc.cluster.local web.svc\n" +
		"10.87.0.11\tweb-1.svc web-1.web.default.svc.cluster.local\n"))

	loopback := member("db-0", "10.87.4.10", true)
	loopback.Loopback = netip.MustParseAddr("127.87.4.10")
	d.names.drop(jobspecs.Key{Namespace: "default", Name: "web"})
	d.names.put(jobspecs.Key{Namespace: "lab", Name: "db"}, dns.Set{Namespace: "lab", Name: "db", Service: "data", Members: []dns.Member{loopback}})
	says(block("127.87.4.10\tdata.lab.svc data.lab.svc.cluster.local db-0.data.lab.svc db-0.data.lab.svc.cluster.local\n"))

	kept := member("vault-0", "10.87.0.20", true)
	kept.NoHost = true
	d.names.put(jobspecs.Key{Namespace: "default", Name: "vault"}, dns.Set{Namespace: "default", Name: "vault", Service: "vault", Members: []dns.Member{kept}})
	says(block("127.87.4.10\tdata.lab.svc data.lab.svc.cluster.local db-0.data.lab.svc db-0.data.lab.svc.cluster.local\n"))

	broken := strings.TrimSuffix(block(""), "# END stsd "+d.store.ID()+"\n")
	put(broken)
	says(broken)
	d.names.keepHosts()
	if got := strings.Count(log.String(), "does not end"); got != 1 {
		t.Errorf("a damaged block was told of %d times, want once:\n%s", got, log.String())
	}
}

func TestWhatTheHostIsToldByMode(t *testing.T) {
	t.Parallel()
	address := netip.MustParseAddr("10.87.0.11")
	for mode, want := range map[string]dns.Member{
		jobspecs.HostDirect:   {},
		jobspecs.HostLoopback: {Loopback: netip.MustParseAddr("127.87.0.11")},
		jobspecs.HostPorts:    {Loopback: netip.MustParseAddr("127.0.0.1")},
		jobspecs.HostNone:     {NoHost: true},
	} {
		s := sight{addresses: map[int]netip.Addr{1: address}}
		s.world.Set = &jobspecs.Set{HostAccess: mode}
		var got dns.Member
		if s.toHost(&got, nil, 1); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", mode, got, want)
		}
	}
}

func TestAMemberIsFoundWhereItWasPublishedWhenItStarted(t *testing.T) {
	t.Parallel()
	spec := jobspecs.PodSpec{
		Name: "redis-1", Ordinal: 1, Address: netip.MustParseAddr("10.87.0.11"),
		Containers: []jobspecs.Container{{Name: "redis", Ports: []jobspecs.Port{{Name: "client", Container: 6379, Protocol: "tcp"}}}},
	}
	rendered := func(mode string) jobspecs.PodSpec {
		s := spec
		s.Publish(mode)
		return s
	}
	for _, now := range hostAccessModes {
		for _, before := range hostAccessModes {
			p := &runtime.Pod{StartedAt: time.Now(), Published: rendered(before).Containers[0].Ports}
			if got := runsWith(p, rendered(now), now); got != before {
				t.Errorf("started with %s, the set says %s: found by %s", before, now, got)
			}
		}
		old := &runtime.Pod{StartedAt: time.Now(), Published: []jobspecs.Port{{Container: 1, Host: 1}}}
		for what, p := range map[string]*runtime.Pod{"not there": nil, "not started": {}, "published as by no mode": old} {
			if got := runsWith(p, rendered(now), now); got != now {
				t.Errorf("a member that is %s is found by %s, want what the set says, %s", what, got, now)
			}
		}
	}
}
