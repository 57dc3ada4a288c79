package docker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/volume"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/runtime/pods"
	"github.com/stsd/stsd/volumes"
)

func TestMemberFindsItsNamesAndResolver(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.SetResolver(map[string]bool{e.ns: true})
	s := e.spec("web", 0)
	id := e.run(s)

	got := e.in("web-0", "names")
	want := "web-0 " + s.Pod.Domain + " web-0." + s.Pod.Domain + "\n"
	if got != want {
		t.Errorf("names = %q, want %q", got, want)
	}
	gateway := s.Pod.Gateway.String()
	got = e.in("web-0", "cat", "/etc/resolv.conf")
	want = "# stsd " + e.cfg.Daemon + " gateway " + gateway + "\nsearch " + strings.Join(s.Pod.Search, " ") +
		"\nnameserver " + gateway + "\noptions ndots:5\n"
	if got != want {
		t.Errorf("resolv.conf = %q, want %q", got, want)
	}

	e.SetResolver(nil)
	got = e.in("web-0", "cat", "/etc/resolv.conf")
	want = strings.Replace(strings.Replace(want, "nameserver "+gateway, "nameserver 127.0.0.11", 1), "ndots:5", "ndots:1", 1)
	if got != want {
		t.Errorf("resolv.conf of a running member = %q, want %q", got, want)
	}

	c := must(e.Inspect(t.Context(), id))(t)
	if c.Address != s.Pod.Address || c.State != "running" || c.Image != e.image || c.ImageID != s.Image.ID {
		t.Errorf("inspected %+v", c)
	}
}

func TestFallbackAnswersEveryShortName(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	a, b := e.spec("web", 0), e.spec("web", 1)
	e.run(a)
	e.run(b)
	member := a.Pod.Address.String()
	both := member + " " + b.Pod.Address.String()
	var names, want []string
	for _, base := range []struct{ name, addrs string }{{"web-0.web", member}, {"web", both}} {
		for _, suffix := range []string{"", "." + e.ns, "." + e.ns + ".svc", "." + e.ns + ".svc.cluster.local"} {
			names = append(names, base.name+suffix)
			want = append(want, base.name+suffix+" ["+base.addrs+"] false")
		}
	}
	names = append(names, "web-0.svc", "web.svc")
	want = append(want, "web-0.svc ["+member+"] false", "web.svc ["+both+"] false")
	got := e.in("web-1", append([]string{"lookup"}, names...)...)
	if got != strings.Join(want, "\n")+"\n" {
		t.Errorf("got:\n%swant:\n%s", got, strings.Join(want, "\n"))
	}
}

func TestLongDomainKeepsHostname(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	s := e.spec("web", 0, func(s *pods.ContainerSpec) {
		s.Pod.Service = strings.Repeat("s", 63)
		s.Pod.Domain = jobspecs.ServiceDomain(s.Pod.Service, e.ns, "cluster.local")
	})
	e.run(s)
	got := strings.Fields(e.in("web-0", "names"))
	if got[0] != "web-0" || got[2] != s.Pod.FQDN() {
		t.Errorf("names = %q, want web-0 and %s", got, s.Pod.FQDN())
	}
}

func TestFilesHaveModeOwnerAndParents(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.run(e.spec("web", 0, func(s *pods.ContainerSpec) {
		s.Main.User = "999:998"
		s.Main.Files = []jobspecs.File{
			{Path: "/etc/web.conf", Content: []byte("a"), Mode: 0o640},
			{Path: "/private/new/deep/b.conf", Content: []byte("b"), Mode: 0o400, Owner: "0:0"},
			{Path: "/private/c.sh", Content: []byte("c"), Mode: 0o755, Owner: "7"},
		}
	}))
	got := e.in("web-0", "stat", "/etc/web.conf", "/private", "/private/new", "/private/new/deep", "/private/new/deep/b.conf", "/private/c.sh", "/etc")
	want := `/etc/web.conf 640 999:998
/private 700 999:998
/private/new 755 0:0
/private/new/deep 755 0:0
/private/new/deep/b.conf 400 0:0
/private/c.sh 755 7:0
/etc 755 0:0
`
	if got != want {
		t.Errorf("got:\n%swant:\n%s", got, want)
	}
}

func TestCommandAndArguments(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	for i, c := range []struct {
		name          string
		command, args []string
		want          string
	}{
		{"neither: the image's", nil, nil, "of|the|image\n"},
		{"args replace CMD", nil, []string{"args", "a"}, "a\n"},
		{"command alone drops CMD", []string{"/helper", "args"}, nil, "\n"},
		{"both", []string{"/helper"}, []string{"args", "x", "y"}, "x|y\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e.run(e.spec("web", i, func(s *pods.ContainerSpec) { s.Main.Command, s.Main.Args = c.command, c.args }))
			if got := e.firstLine(t, jobspecs.MemberName("web", i)); got != c.want {
				t.Errorf("printed %q, want %q", got, c.want)
			}
		})
	}
}

// firstLine follows a member's log up to its first line.
func (e *env) firstLine(t *testing.T, member string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	w := &lineWriter{enough: cancel}
	if err := e.Logs(ctx, e.pod(member), runtime.LogOptions{Follow: true}, w, w); err != nil {
		t.Fatal(err)
	}
	return w.b.String()
}

type lineWriter struct {
	b      bytes.Buffer
	enough func()
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.b.Write(p)
	if bytes.ContainsRune(p, '\n') {
		w.enough()
	}
	return len(p), nil
}

func TestStopWithSignalAndGrace(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	for i, c := range []struct {
		name   string
		does   string
		own    string
		signal string
		grace  time.Duration
		code   int
		min    time.Duration
		max    time.Duration
	}{
		{"the container's own signal", "until", "SIGUSR1", "", 20 * time.Second, 0, 0, 5 * time.Second},
		{"another signal", "until", "", "SIGUSR1", 20 * time.Second, 0, 0, 5 * time.Second},
		{"killed after the grace", "deaf", "", "", 1500 * time.Millisecond, 137, 1500 * time.Millisecond, 6 * time.Second},
		{"another signal, killed after the grace", "deaf", "", "SIGTERM", time.Second, 137, time.Second, 6 * time.Second},
		{"no grace", "deaf", "", "", 0, 137, 0, 3 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			id := e.run(e.spec("web", i, args(c.does), func(s *pods.ContainerSpec) { s.Main.StopSignal = c.own }))
			e.firstLine(t, jobspecs.MemberName("web", i)) // its handlers are set
			began := time.Now()
			if err := e.Stop(t.Context(), id, c.signal, c.grace); err != nil {
				t.Fatal(err)
			}
			took := time.Since(began)
			got := must(e.Inspect(t.Context(), id))(t)
			if got.State != "exited" || got.ExitCode != c.code || took < c.min || took > c.max {
				t.Errorf("state %s, exit code %d after %s; want exited, %d, %s to %s", got.State, got.ExitCode, took, c.code, c.min, c.max)
			}
			check(t, e.Stop(t.Context(), id, c.signal, c.grace)) // ended: nil
			check(t, e.Remove(t.Context(), id))
			check(t, e.Stop(t.Context(), id, c.signal, c.grace)) // absent: nil
			check(t, e.Remove(t.Context(), id))
		})
	}
}

func TestStopHeedsContext(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	id := e.run(e.spec("web", 0, args("deaf")))
	e.firstLine(t, "web-0") // it ignores the signal from here on
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := e.Stop(ctx, id, "", time.Minute); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("err = %v, want a deadline", err)
	}
}

func TestStopEndsPausedContainer(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	id := e.run(e.spec("web", 0))
	check(t, raw().ContainerPause(t.Context(), id))
	if c := must(e.Inspect(t.Context(), id))(t); c.State != "paused" || !c.Running() {
		t.Errorf("state = %q, want paused", c.State)
	}
	check(t, e.Stop(t.Context(), id, "", 2*time.Second))
	if c := must(e.Inspect(t.Context(), id))(t); c.State != "exited" {
		t.Errorf("state = %q, want exited", c.State)
	}
}

func TestForeignNameIsNamedAndLeftAlone(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	s := e.spec("web", 0)
	foreign := must(raw().ContainerCreate(t.Context(), &container.Config{
		Image: e.image, Labels: map[string]string{"com.docker.compose.project": "shop"},
	}, nil, nil, nil, s.Name))(t)
	t.Cleanup(func() {
		raw().ContainerRemove(context.Background(), foreign.ID, container.RemoveOptions{RemoveVolumes: true})
	})

	_, err := e.Create(t.Context(), s)
	want := "container name " + s.Name + " is taken by container " + shortID(foreign.ID) + " (" + e.image +
		", made by docker compose, project shop), which is left alone"
	wantProblem(t, err, runtime.ReasonNameTaken, want)
	must(raw().ContainerInspect(t.Context(), foreign.ID))(t)
}

func wantProblem(t *testing.T, err error, reason, message string) {
	t.Helper()
	var p *pods.Problem
	if !errors.As(err, &p) {
		t.Fatalf("err = %v, want a problem %s", err, reason)
	}
	if p.Reason != reason || message != "" && p.Error() != message {
		t.Errorf("got  %s: %s\nwant %s: %s", p.Reason, p.Error(), reason, message)
	}
}

func TestLostReplyOfCreateIsHealed(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	s := e.spec("web", 0)
	id := must(e.Create(t.Context(), s))(t)
	again := must(e.Create(t.Context(), s))(t)
	if again != id {
		t.Errorf("second create = %s, want %s", again, id)
	}
	other := e.spec("web", 0, func(s *pods.ContainerSpec) { s.Labels[jobspecs.LabelRendering] = "r2" })
	_, err := e.Create(t.Context(), other)
	wantProblem(t, err, runtime.ReasonWaitingForFence, "container "+s.Name+" of an earlier start is still there (created)")
}

func TestFailedCreateLeavesNothing(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	for name, change := range map[string]func(*pods.ContainerSpec){
		"file onto a folder":    func(s *pods.ContainerSpec) { s.Main.Files = []jobspecs.File{{Path: "/private", Mode: 0o644}} },
		"owner that is no user": func(s *pods.ContainerSpec) { s.Main.Files = []jobspecs.File{{Path: "/x", Owner: "redis"}} },
		"volume that is gone": func(s *pods.ContainerSpec) {
			s.Main.Mounts = []jobspecs.Mount{{Claim: "data", Volume: e.ns + ".data-web-0", Path: "/data"}}
		},
		"option that the log driver has not": func(s *pods.ContainerSpec) {
			s.Main.Log = &jobspecs.Log{Driver: "json-file", Options: map[string]string{"nonsense": "1"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := e.Create(t.Context(), e.spec("web", 0, change))
			wantProblem(t, err, runtime.ReasonCreateFailed, "")
			if list := must(e.List(t.Context()))(t); len(list) > 0 {
				t.Errorf("%d containers are left", len(list))
			}
			if left, _ := filepath.Glob(filepath.Join(e.cfg.RunDir, "pods", "*", "*")); len(left) > 0 {
				t.Errorf("left: %q", left)
			}
		})
	}
}

func TestCancelledCreateLeavesNothing(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	s := e.spec("web", 0)
	must(e.Subnet(t.Context(), e.ns, nil))(t)
	for d := time.Millisecond; d < 40*time.Millisecond; d += 3 * time.Millisecond {
		ctx, cancel := context.WithTimeout(t.Context(), d)
		id, err := e.Create(ctx, s)
		cancel()
		if err == nil {
			check(t, e.Remove(t.Context(), id))
			continue
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after %s: %v", d, err)
		}
	}
	if list := must(e.List(t.Context()))(t); len(list) > 0 {
		t.Errorf("%d containers are left", len(list))
	}
}

func TestTakenPortNamesItsOwner(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	publish := func(s *pods.ContainerSpec) {
		s.Main.Ports = []jobspecs.Port{{Name: "http", Container: 8080, Protocol: "tcp", Host: port, HostIP: "127.0.0.1"}}
	}
	first := must(e.Create(t.Context(), e.spec("web", 0, publish)))(t)
	wantProblem(t, e.Start(t.Context(), first), runtime.ReasonPortTaken,
		fmt.Sprintf("port 127.0.0.1:%d is taken by process docker.test (pid %d)", port, os.Getpid()))
	if c := must(e.Inspect(t.Context(), first))(t); c.State != "created" || c.Error == "" {
		t.Errorf("state %q, error %q; want created and the engine's error", c.State, c.Error)
	}

	l.Close()
	check(t, e.Start(t.Context(), first))
	second := must(e.Create(t.Context(), e.spec("web", 1, publish)))(t)
	wantProblem(t, e.Start(t.Context(), second), runtime.ReasonPortTaken,
		fmt.Sprintf("port 127.0.0.1:%d is taken by container %s (%s, ours, of %s/web)", port, e.ns+".web-0", e.image, e.ns))

	p := jobspecs.Port{Container: 8080, Host: port}
	if got := e.PortOwner(t.Context(), e.pod("web-0"), p); got != "" {
		t.Errorf("owner for the pod that has it = %q", got)
	}
	if got := e.PortOwner(t.Context(), e.pod("web-9"), p); !strings.Contains(got, e.ns+".web-0") {
		t.Errorf("owner = %q, want web-0", got)
	}
}

func TestAddressIsAFence(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	s := e.spec("web", 0)
	e.run(s)
	other := e.spec("web", 1, func(o *pods.ContainerSpec) { o.Pod.Address = s.Pod.Address })
	id := must(e.Create(t.Context(), other))(t)
	wantProblem(t, e.Start(t.Context(), id), runtime.ReasonWaitingForFence,
		fmt.Sprintf("address %s is taken by container %s (%s, ours, of %s/web)", s.Pod.Address, s.Name, e.image, e.ns))

	third := e.spec("web", 2)
	name := "foreign-" + e.ns
	foreign := must(raw().ContainerCreate(t.Context(), &container.Config{Image: e.image, Cmd: []string{"sleep"}},
		&container.HostConfig{NetworkMode: container.NetworkMode(third.Pod.Network)},
		&network.NetworkingConfig{EndpointsConfig: map[string]*network.EndpointSettings{
			third.Pod.Network: {IPAMConfig: &network.EndpointIPAMConfig{IPv4Address: third.Pod.Address.String()}},
		}}, nil, name))(t)
	defer raw().ContainerRemove(context.Background(), foreign.ID, container.RemoveOptions{Force: true, RemoveVolumes: true})
	check(t, raw().ContainerStart(t.Context(), foreign.ID, container.StartOptions{}))
	id = must(e.Create(t.Context(), third))(t)
	wantProblem(t, e.Start(t.Context(), id), runtime.ReasonAddressTaken,
		fmt.Sprintf("address %s is taken by container %s (%s, not made by stsd)", third.Pod.Address, name, e.image))

	nets := must(e.Networks(t.Context()))(t)
	if len(nets) != 1 || nets[0].Namespace != e.ns || nets[0].Subnet != s.Pod.Subnet || nets[0].Gateway != s.Pod.Gateway ||
		len(nets[0].Others) != 1 || nets[0].Others[name][0] != third.Pod.Address {
		t.Errorf("networks = %+v", nets)
	}
}

func TestBadCommands(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	for i, c := range []struct{ command, want string }{
		{"nosuch", `command "nosuch" is not in the container's $PATH`},
		{"/no/such", `command "/no/such" does not exist in the container`},
		{"/noexec", `command "/noexec" may not be executed: it is a folder, or its mode or a folder above it forbids it`},
	} {
		t.Run(c.command, func(t *testing.T) {
			id := must(e.Create(t.Context(), e.spec("web", i, func(s *pods.ContainerSpec) { s.Main.Command = []string{c.command} })))(t)
			wantProblem(t, e.Start(t.Context(), id), runtime.ReasonBadCommand, c.want)
		})
	}
	id := must(e.Create(t.Context(), e.spec("web", 9, func(s *pods.ContainerSpec) { s.Main.User = "nobody-here" })))(t)
	wantProblem(t, e.Start(t.Context(), id), runtime.ReasonBadCommand, `user = "nobody-here": the image has no such user`)
}

func TestForeignNetworkIsNamedAndLeftAlone(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	s := e.spec("web", 0)
	made := must(raw().NetworkCreate(t.Context(), s.Pod.Network, network.CreateOptions{
		IPAM: &network.IPAM{Config: []network.IPAMConfig{{Subnet: s.Pod.Subnet.String()}}},
	}))(t)
	t.Cleanup(func() { raw().NetworkRemove(context.Background(), made.ID) })
	_, err := e.Create(t.Context(), s)
	wantProblem(t, err, runtime.ReasonNetworkTaken, "network "+s.Pod.Network+" exists (not made by stsd) and is left alone: remove or rename it")

	other := e.spec("web", 0, func(o *pods.ContainerSpec) {
		o.Pod.Network += "x"
		o.Pod.Subnet, o.Pod.Gateway = s.Pod.Subnet, s.Pod.Gateway
	})
	_, err = e.Create(t.Context(), other)
	wantProblem(t, err, runtime.ReasonNetworkTaken, fmt.Sprintf("subnet %s of network %s overlaps network %s (not made by stsd)",
		s.Pod.Subnet, other.Pod.Network, s.Pod.Network))
}

func TestSubnetIsStableAndFree(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	before := must(e.Subnet(t.Context(), e.ns, nil))(t)
	e.run(e.spec("web", 0))
	after := must(e.Subnet(t.Context(), e.ns, []netip.Prefix{before}))(t)
	if before != after {
		t.Errorf("subnet = %s, then %s", before, after)
	}
	other := must(e.Subnet(t.Context(), "other", nil))(t)
	if other.Overlaps(before) {
		t.Errorf("other namespace got %s beside %s", other, before)
	}
}

func TestNetworkReadyIsCalledBeforeStart(t *testing.T) {
	t.Parallel()
	called := make(chan string, 10)
	var e *env
	e = newEnv(t, func(c *Config) {
		c.NetworkReady = func(ns string, gateway netip.Addr, subnet netip.Prefix) {
			called <- fmt.Sprint(ns, " ", gateway, " ", subnet)
			check(t, e.SetResolver(map[string]bool{ns: true})) // must not deadlock
		}
	})
	s := e.spec("web", 0)
	id := must(e.Create(t.Context(), s))(t)
	want := fmt.Sprint(e.ns, " ", s.Pod.Gateway, " ", s.Pod.Subnet)
	if got := <-called; got != want {
		t.Errorf("called with %q, want %q", got, want)
	}
	check(t, e.Start(t.Context(), id))
	if got := e.in("web-0", "cat", "/etc/resolv.conf"); !strings.Contains(got, "nameserver "+s.Pod.Gateway.String()) {
		t.Errorf("resolv.conf = %q", got)
	}
}

func mounted(e *env) func(*pods.ContainerSpec) {
	return func(s *pods.ContainerSpec) {
		name := jobspecs.VolumeName(e.ns, "data", s.Pod.Set.Name, s.Pod.Ordinal)
		s.Pod.Volumes = []jobspecs.VolumeSpec{{Claim: "data", Name: name, Driver: "local"}}
		s.Main.Mounts = []jobspecs.Mount{{Claim: "data", Volume: name, Path: "/data"}}
	}
}

func TestVolumeOutlivesItsContainers(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	s := e.spec("web", 0, mounted(e))
	v := s.Pod.Volumes[0]
	check(t, e.Volumes().Create(t.Context(), s.Pod.Set, 0, v))
	check(t, e.Volumes().Create(t.Context(), s.Pod.Set, 0, v))
	id := e.run(s)
	if got := e.in("web-0", "cat", "/data/seed"); got != "of the image\n" {
		t.Errorf("a fresh volume has %q, want the image's content", got)
	}
	if got := e.in("web-0", "stat", "/data", "/data/seed"); got != "/data 750 999:998\n/data/seed 640 999:998\n" {
		t.Errorf("a fresh volume has %q, want the image's modes and owners", got)
	}
	e.in("web-0", "write", "/data/seed", "of the member\n")

	err := e.Volumes().Delete(t.Context(), v.Name)
	if !errors.Is(err, volumes.ErrInUse) {
		t.Errorf("delete of a mounted volume: %v, want ErrInUse", err)
	}
	anonymous := e.anonymous(id)
	check(t, e.Stop(t.Context(), id, "", time.Second))
	check(t, e.Remove(t.Context(), id))
	if _, err := raw().VolumeInspect(t.Context(), anonymous); err == nil {
		t.Errorf("the anonymous volume %s is left", anonymous)
	}
	want := []volumes.Volume{{Set: s.Pod.Set, Name: v.Name, Claim: "data", Ordinal: 0, Driver: "local"}}
	if got := must(e.Volumes().List(t.Context(), s.Pod.Set))(t); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("volumes = %v, want %v", got, want)
	}
	e.run(s)
	if got := e.in("web-0", "cat", "/data/seed"); got != "of the member\n" {
		t.Errorf("the next container finds %q", got)
	}
}

func (e *env) anonymous(id string) string {
	c := must(raw().ContainerInspect(e.t.Context(), id))(e.t)
	for _, m := range c.Mounts {
		if m.Destination == "/anonymous" {
			return m.Name
		}
	}
	e.t.Fatal("the image's VOLUME is not mounted")
	return ""
}

func TestFileInsideAVolumeWinsAndStaysOutOfIt(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	file := func(content string) func(*pods.ContainerSpec) {
		return func(s *pods.ContainerSpec) {
			s.Main.Files = []jobspecs.File{{Path: "/data/myid", Content: []byte(content), Mode: 0o640, Owner: "999:998"}}
		}
	}
	s := e.spec("zk", 0, mounted(e), file("1\n"))
	check(t, e.Volumes().Create(t.Context(), s.Pod.Set, 0, s.Pod.Volumes[0]))
	id := e.run(s)
	if got := e.in("zk-0", "cat", "/data/myid", "/data/seed"); got != "1\nof the image\n" {
		t.Errorf("got %q", got)
	}
	if got := e.in("zk-0", "stat", "/data/myid"); got != "/data/myid 640 999:998\n" {
		t.Errorf("got %q", got)
	}
	check(t, e.Stop(t.Context(), id, "", time.Second))
	check(t, e.Remove(t.Context(), id))
	id = e.run(e.spec("zk", 0, mounted(e), file("2\n")))
	if got := e.in("zk-0", "cat", "/data/myid"); got != "2\n" {
		t.Errorf("the next container finds %q", got)
	}
	check(t, e.Stop(t.Context(), id, "", time.Second))
	check(t, e.Remove(t.Context(), id))
	e.run(e.spec("zk", 0, mounted(e)))
	if got := e.in("zk-0", "cat", "/data/myid"); got != "" {
		t.Errorf("the volume kept %q", got)
	}
}

func TestEngineThatDoesNotSeeOurFiles(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	// What a local socket to another machine does: the folder is not there for it.
	e.resolvers.dir = hideFromEngine(t)
	s := e.spec("web", 0, mounted(e), func(s *pods.ContainerSpec) {
		s.Main.Files = []jobspecs.File{{Path: "/data/x", Content: []byte("x\n"), Mode: 0o644}}
	})
	check(t, e.Volumes().Create(t.Context(), s.Pod.Set, 0, s.Pod.Volumes[0]))
	e.run(s)
	if got := e.in("web-0", "cat", "/data/x"); got != "x\n" {
		t.Errorf("file = %q", got)
	}
	if got := e.in("web-0", "cat", "/etc/resolv.conf"); !strings.Contains(got, "127.0.0.11") {
		t.Errorf("resolv.conf = %q", got)
	}
	c := must(raw().ContainerInspect(t.Context(), s.Name))(t)
	if fmt.Sprint(c.HostConfig.DNS) != "["+s.Pod.Gateway.String()+"]" {
		t.Errorf("dns = %q", c.HostConfig.DNS)
	}
}

// hideFromEngine is a folder that only this process has under its path.
func hideFromEngine(t *testing.T) string {
	t.Helper()
	dir, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dir.Close() })
	return fmt.Sprintf("/proc/self/fd/%d", dir.Fd())
}

// A volume that goes between the look at it and the engine's create is made anew by the engine, empty: the container never
// runs with it.
func TestAVolumeThatTheEngineMadeByItselfIsUndone(t *testing.T) {
	t.Parallel()
	e := newEnv(t, func(c *Config) { c.Parallel = 1 })
	s := e.spec("web", 0, mounted(e))
	name := s.Pod.Volumes[0].Name
	stale := &volume.Volume{Name: name, Labels: volumeLabels(e.cfg.Daemon, s.Pod.Set, 0, "data")}
	e.volumes.mu.Lock()
	e.volumes.valid, e.volumes.mine = true, map[string]*volume.Volume{name: stale} // it is gone, and nobody knows yet
	e.volumes.mu.Unlock()
	_, err := e.Create(t.Context(), s)
	var p *pods.Problem
	if !errors.As(err, &p) || p.Reason != runtime.ReasonCreateFailed || !strings.Contains(p.Message, name) {
		t.Errorf("create = %v, want that %s is gone", err, name)
	}
	if _, err := raw().VolumeInspect(t.Context(), name); err == nil {
		t.Errorf("volume %s was made", name)
	}
	if _, err := e.Inspect(t.Context(), s.Name); !errors.Is(err, pods.ErrNoContainer) {
		t.Errorf("the container is left: %v", err)
	}
}

func TestForeignVolumeIsNeverTouched(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	s := e.spec("web", 0, mounted(e))
	name := s.Pod.Volumes[0].Name
	must(raw().VolumeCreate(t.Context(), volume.CreateOptions{Name: name, Labels: map[string]string{jobspecs.LabelDaemon: "somebody"}}))(t)
	t.Cleanup(func() { raw().VolumeRemove(context.Background(), name, false) })

	want := volumes.ForeignError{Name: name, Owner: "of another stsd, somebody"}
	for verb, err := range map[string]error{
		"create":  e.Volumes().Create(t.Context(), s.Pod.Set, 0, s.Pod.Volumes[0]),
		"delete":  e.Volumes().Delete(t.Context(), name),
		"foreign": e.Volumes().Foreign(t.Context(), s.Pod.Set, name),
	} {
		var foreign *volumes.ForeignError
		if !errors.As(err, &foreign) || *foreign != want {
			t.Errorf("%s: %v, want %v", verb, err, &want)
		}
	}
	_, err := e.Create(t.Context(), s)
	wantProblem(t, err, runtime.ReasonVolumeForeign, want.Error())
	must(raw().VolumeInspect(t.Context(), name))(t)
	if got := must(e.Volumes().List(t.Context(), s.Pod.Set))(t); len(got) > 0 {
		t.Errorf("listed %v", got)
	}
}

func TestVolumesFollowEvents(t *testing.T) {
	t.Parallel()
	changed := make(chan struct{}, 100)
	e := newEnv(t, func(c *Config) { c.Changed = func() { changed <- struct{}{} } })
	must(e.Watch(t.Context()))(t)
	set := jobspecs.Key{Namespace: e.ns, Name: "web"}
	store := e.Volumes()
	count := func() int { t.Helper(); return len(must(store.List(t.Context(), set))(t)) }
	if count() != 0 {
		t.Error("volumes before the first")
	}
	one := jobspecs.VolumeSpec{Claim: "data", Name: e.ns + ".data-web-0"}
	check(t, store.Create(t.Context(), set, 0, one))
	if count() != 1 {
		t.Error("own write is not seen")
	}
	<-changed
	check(t, raw().VolumeRemove(t.Context(), one.Name, false))
	<-changed
	for count() != 0 { // the event of the create may come between the two
		<-changed
	}
	check(t, store.Delete(t.Context(), one.Name)) // absent: nil
}

func TestEventsComeAndEnd(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	ctx, cancel := context.WithCancel(t.Context())
	events := must(e.Watch(ctx))(t)
	s := e.spec("web", 0)
	id := must(e.Create(t.Context(), s))(t)
	for got := range events { // networks that are made and joined, by whomever, come in between
		if got.ID == id {
			break
		}
	}
	cancel()
	for range events {
	}
	if e.watched() {
		t.Error("still counts as watched")
	}
}

func TestPreviousContainerKeepsItsLogs(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	s := e.spec("web", 0, args("exit", "3", "went wrong"))
	id := e.run(s)
	check(t, e.waitEnded(t.Context(), id))
	previous := jobspecs.ContainerName(e.ns, "web-0", jobspecs.PartPrevious)
	check(t, e.Rename(t.Context(), id, previous))
	check(t, e.Rename(t.Context(), id, previous)) // once more: nil
	next := e.run(e.spec("web", 0))

	var out, errOut bytes.Buffer
	check(t, e.Logs(t.Context(), e.pod("web-0"), runtime.LogOptions{Previous: true, Tail: "1"}, &out, &errOut))
	if out.String() != "" || errOut.String() != "went wrong\n" {
		t.Errorf("previous logs = %q, %q", &out, &errOut)
	}
	err := e.Rename(t.Context(), next, previous)
	wantProblem(t, err, runtime.ReasonWaitingForFence, "container "+previous+" of an earlier start is still there (exited)")
	list := must(e.List(t.Context()))(t)
	if len(list) != 2 || list[0].Name != s.Name || list[1].Name != previous || list[1].ExitCode != 3 {
		t.Errorf("list = %+v", list)
	}
	check(t, e.Remove(t.Context(), id))
	folder := filepath.Join(e.cfg.RunDir, "pods", e.ns, "web-0")
	if _, err := os.Stat(folder); err != nil {
		t.Errorf("the resolver of the running one is gone: %v", err)
	}
	check(t, e.Stop(t.Context(), next, "", 0))
	check(t, e.Remove(t.Context(), next))
	if _, err := os.Stat(folder); err == nil {
		t.Error("the folder of a pod without containers is left")
	}
	if err := e.Logs(t.Context(), e.pod("web-0"), runtime.LogOptions{}, nil, nil); !errors.Is(err, runtime.ErrNotFound) {
		t.Errorf("logs of an absent pod: %v", err)
	}
	if err := e.Rename(t.Context(), next, previous); !errors.Is(err, pods.ErrNoContainer) {
		t.Errorf("rename of an absent container: %v", err)
	}
}

func TestExec(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.run(e.spec("web", 0))
	for _, tty := range []bool{false, true} {
		var out, errOut bytes.Buffer
		sizes := make(chan [2]uint, 1)
		sizes <- [2]uint{40, 100}
		in := "a\nb\n"
		if tty {
			in += "\x04" // end of input, as typed
		}
		code, err := e.Exec(t.Context(), e.pod("web-0"), runtime.ExecOptions{
			Command: []string{"/helper", "echo"}, TTY: tty, Stdin: strings.NewReader(in), Stdout: &out, Stderr: &errOut, Resize: sizes,
		})
		if code != 7 || err != nil || !strings.Contains(out.String(), "got a") || !strings.Contains(out.String(), "got b") {
			t.Errorf("tty %v: exit code %d, %v, %q", tty, code, err, &out)
		}
	}
	var out, errOut bytes.Buffer
	code, err := e.Exec(t.Context(), e.pod("web-0"), runtime.ExecOptions{Command: []string{"/helper", "exit", "5", "words"}, Stdout: &out, Stderr: &errOut})
	if code != 5 || err != nil || out.String() != "" || errOut.String() != "first line\nwords\n" {
		t.Errorf("exit code %d, %v, %q, %q", code, err, &out, &errOut)
	}
	if _, err := e.Exec(t.Context(), e.pod("web-1"), runtime.ExecOptions{Command: []string{"x"}}); !errors.Is(err, runtime.ErrNotFound) {
		t.Errorf("exec in an absent pod: %v", err)
	}
}

func TestProbes(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	s := e.spec("web", 0, args("serve", "8080"))
	id := e.run(s)
	e.awaitServer(t, s.Pod.Address)
	at := s.Pod.Address.String()
	for _, c := range []struct {
		name  string
		probe jobspecs.Probe
		want  string
	}{
		{"http", jobspecs.Probe{HTTP: &jobspecs.HTTPCheck{Port: 8080, Path: "/x"}}, ""},
		{"http refused", jobspecs.Probe{HTTP: &jobspecs.HTTPCheck{Port: 8081, Path: "/x"}}, "http " + at + ":8081/x: connection refused"},
		{"tcp", jobspecs.Probe{TCP: &jobspecs.TCPCheck{Port: 8080}}, ""},
		{"tcp refused", jobspecs.Probe{TCP: &jobspecs.TCPCheck{Port: 8081}}, "tcp " + at + ":8081: connection refused"},
		{"exec", jobspecs.Probe{Exec: []string{"/helper", "exit", "0"}}, ""},
		{"exec fails", jobspecs.Probe{Exec: []string{"/helper", "exit", "2", "no", "quorum"}}, "exec /helper exit 2 no quorum: exit code 2: no quorum"},
		{"exec of nothing", jobspecs.Probe{Exec: []string{"nosuch"}}, `exec nosuch: exit code 126: exec: "nosuch": executable file not found in $PATH`},
	} {
		_, err := e.Check(t.Context(), pods.Target{ID: id, Address: s.Pod.Address}, c.probe)
		if got := errorText(err); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func (e *env) awaitServer(t *testing.T, addr netip.Addr) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for checkTCP(ctx, addr, &jobspecs.TCPCheck{Port: 8080}) != nil {
		if ctx.Err() != nil {
			t.Fatal("the server does not answer")
		}
		time.Sleep(10 * time.Millisecond) // a real server on a real clock
	}
}

func TestLateExecIsKilledWithItsChildren(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	s := e.spec("web", 0)
	id := e.run(s)
	ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
	defer cancel()
	_, err := e.Check(ctx, pods.Target{ID: id, Address: s.Pod.Address}, jobspecs.Probe{Exec: []string{"/helper", "family", "2"}})
	if got := errorText(err); got != "exec /helper family 2: timed out" {
		t.Errorf("err = %q", got)
	}
	top := must(raw().ContainerTop(t.Context(), id, []string{"-eo", "pid,args"}))(t)
	for _, p := range top.Processes {
		if strings.Contains(p[len(p)-1], "family") {
			t.Errorf("still runs: %q", p)
		}
	}
}

func TestUnreachableEngine(t *testing.T) {
	t.Parallel()
	h := must(New(Config{Host: "unix://" + t.TempDir() + "/none.sock", Daemon: "x", RunDir: t.TempDir()}))(t)
	_, pingErr := h.Ping(t.Context())
	_, listErr := h.List(t.Context())
	_, watchErr := h.Watch(t.Context())
	_, volErr := h.Volumes().List(t.Context(), jobspecs.Key{Namespace: "a", Name: "b"})
	createErr := h.Volumes().Create(t.Context(), jobspecs.Key{}, 0, jobspecs.VolumeSpec{Name: "x"})
	_, imageErr := h.Image(t.Context(), "x")
	pullErr := h.Pull(t.Context(), "x", nil, nil)
	_, execErr := h.Exec(t.Context(), runtime.PodName{Namespace: "a", Name: "b-0"}, runtime.ExecOptions{})
	stopErr := h.Stop(t.Context(), "x", "", time.Second)
	startErr := h.Start(t.Context(), "x")
	for i, err := range []error{pingErr, listErr, watchErr, volErr, createErr, imageErr, pullErr, execErr, stopErr, startErr} {
		if !errors.Is(err, runtime.ErrUnreachable) {
			t.Errorf("call %d: %v, want ErrUnreachable", i, err)
		}
	}
}

func TestImageOfTheTests(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	i := must(e.Image(t.Context(), e.image))(t)
	if !strings.HasPrefix(i.ID, "sha256:") || strings.Join(i.Healthcheck, " ") != "/bin/sh -c /helper exit 0" || !strings.HasPrefix(i.Platform, "linux/") {
		t.Errorf("image = %+v", i)
	}
	if id := must(e.ImageID(t.Context(), e.image))(t); id != i.ID {
		t.Errorf("id = %q, want %q", id, i.ID)
	}
	if id, err := e.ImageID(t.Context(), "no/such:image"); id != "" || err != nil {
		t.Errorf("absent image: %q, %v", id, err)
	}
	if _, err := e.Image(t.Context(), "no/such:image"); !errors.Is(err, pods.ErrNoImage) {
		t.Errorf("absent image: %v", err)
	}
}

func TestLimitsAndLabels(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	s := e.spec("web", 0, func(s *pods.ContainerSpec) {
		s.Main.CPU, s.Main.Memory = 0.5, 64<<20
		s.Pod.Labels = map[string]string{"team": "shop", jobspecs.LabelDaemon: "forged"}
		s.Pod.ExtraHosts = map[string]string{"db": "10.1.2.3"}
		s.Pod.Sysctls = map[string]string{"net.core.somaxconn": "1000"}
	})
	id := e.run(s)
	c := must(raw().ContainerInspect(t.Context(), id))(t)
	got := fmt.Sprintln(c.HostConfig.NanoCPUs, c.HostConfig.Memory, c.HostConfig.MemorySwap, c.HostConfig.RestartPolicy.Name,
		c.HostConfig.LogConfig, c.Config.Labels["team"], c.Config.Labels[jobspecs.LabelDaemon] == e.cfg.Daemon,
		c.Config.Labels[jobspecs.LabelOrdinal], c.State.Health == nil)
	want := "500000000 67108864 67108864 no {json-file map[max-file:3 max-size:10m]} shop true 0 true\n"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := e.in("web-0", "cat", "/proc/sys/net/core/somaxconn"); got != "1000\n" {
		t.Errorf("sysctl = %q", got)
	}
	if got := e.in("web-0", "cat", "/etc/hosts"); !strings.Contains(got, "10.1.2.3\tdb") {
		t.Errorf("hosts = %q", got)
	}
}

func TestListOfMany(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	for i := range 12 {
		must(e.Create(t.Context(), e.spec("web", i)))(t)
	}
	began := time.Now()
	list := must(e.List(t.Context()))(t)
	t.Logf("list of %d: %s", len(list), time.Since(began))
	for i, c := range list {
		if c.Labels[jobspecs.LabelSet] != "web" || c.State != "created" {
			t.Errorf("container %s: %+v", strconv.Itoa(i), c)
		}
	}
	if len(list) != 12 {
		t.Errorf("listed %d, want 12", len(list))
	}
}
