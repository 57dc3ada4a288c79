package enginetest_test

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/runtime/docker"
	"github.com/stsd/stsd/runtime/enginetest"
	"github.com/stsd/stsd/runtime/pods"
)

// TestDocker proves the contract on the engine of this machine: the pod agent on
// real containers.
func TestDocker(t *testing.T) {
	if os.Getenv("STSD_TEST_DOCKER") != "1" {
		t.Skip("needs Docker: set STSD_TEST_DOCKER=1")
	}
	if err := exec.Command("docker", "version").Run(); err != nil {
		t.Skipf("the docker command does not reach an engine: %v", err)
	}
	tag := image(t)
	var subnets taken
	atOnce := make(chan struct{}, 4)
	enginetest.RunIn(t, func(t *testing.T, prove func(*testing.T)) {
		t.Parallel()
		atOnce <- struct{}{}
		defer func() { <-atOnce }()
		prove(t)
	}, func(t *testing.T) enginetest.Fixture { return newBerth(t, &subnets).fixture(tag) })
}

// berth is one sentence's part of the engine: a daemon id, a namespace and a
// subnet that nobody else has. All of it goes afterwards.
type berth struct {
	t         *testing.T
	id        string
	cfg       docker.Config
	subnet    netip.Prefix
	end       func() // of the engine that runs
	namespace string
}

// taken are the subnets of the sentences that are being proved at once.
type taken struct {
	sync.Mutex
	list []netip.Prefix
}

func newBerth(t *testing.T, subnets *taken) *berth {
	t.Helper()
	id := strings.ToLower(rand.Text()[:8])
	b := &berth{t: t, id: "test-" + id, namespace: "t" + id}
	b.cfg = docker.Config{Daemon: b.id, Pool: netip.MustParsePrefix("10.198.0.0/16"), RunDir: t.TempDir()}
	t.Cleanup(b.clean)
	host := b.host()
	subnets.Lock()
	defer subnets.Unlock()
	subnet, err := host.Subnet(t.Context(), b.namespace, subnets.list)
	if err != nil {
		t.Fatal(err)
	}
	subnets.list = append(subnets.list, subnet)
	b.subnet = subnet
	t.Cleanup(func() {
		subnets.Lock()
		defer subnets.Unlock()
		subnets.list = slices.DeleteFunc(subnets.list, func(p netip.Prefix) bool { return p == subnet })
	})
	return b
}

func (b *berth) host() *docker.Host {
	b.t.Helper()
	h, err := docker.New(b.cfg)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = h.Close() })
	return h
}

// engine runs an engine, as a daemon does that has just begun.
func (b *berth) engine() runtime.Engine {
	b.t.Helper()
	e := pods.New(pods.Config{Host: b.host(), Daemon: b.id})
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.t.Context()))
	ready, err := e.Watch(ctx)
	if err != nil {
		b.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = e.Run(ctx)
	}()
	b.end = sync.OnceFunc(func() { cancel(); <-done })
	b.t.Cleanup(b.end)
	for !e.Connected() {
		<-ready
	}
	return e
}

func (b *berth) fixture(image string) enginetest.Fixture {
	program := func(args ...string) enginetest.Program { return enginetest.Program{Image: image, Args: args} }
	command := func(args ...string) []string { return append([]string{"/program"}, args...) }
	return enginetest.Fixture{
		Engine: b.engine(), Namespace: b.namespace, Complete: b.complete, Line: "^serving$",
		Programs: map[string]enginetest.Program{
			enginetest.Serve: program("serve"), enginetest.Wait: program("wait"), enginetest.Done: program("exit", "0"),
			enginetest.Exit: program("exit", "3"), enginetest.Brief: program("brief"), enginetest.Stubborn: program("stubborn"),
			enginetest.Missing: {Image: "127.0.0.1:1/missing:1"},
		},
		Commands: enginetest.Commands{
			True: command("exit", "0"), False: command("exit", "1"), Hang: command("hang"), Role: command("role"),
			Reason: func(want string) []string { return command("reason", want) },
		},
		Kill:   func(_ *testing.T, name string) { b.docker("kill", name) },
		Rename: func(_ *testing.T, name, to string) { b.docker("rename", name, to) },
		Foreign: func(t *testing.T, name string) func() {
			id := b.docker("create", "--name", name, image)
			remove := sync.OnceFunc(func() { b.docker("rm", "-f", id[0]) })
			t.Cleanup(remove)
			return remove
		},
		Again: func(*testing.T) runtime.Engine {
			b.end()
			return b.engine()
		},
		Scratch: func(*testing.T) []string {
			return b.docker("volume", "ls", "-q", "--filter", "label="+jobspecs.LabelDaemon+"="+b.id, "--filter", "label="+jobspecs.LabelScratch)
		},
	}
}

func (b *berth) complete(s *jobspecs.PodSpec) {
	gateway := b.subnet.Addr().Next()
	a := gateway.As4()
	a[3] += byte(10 + s.Ordinal)
	s.Network, s.Subnet, s.Gateway, s.Address = jobspecs.NetworkName(b.namespace), b.subnet, gateway, netip.AddrFrom4(a)
}

// docker runs the docker command and gives the lines that it prints.
func (b *berth) docker(args ...string) []string {
	b.t.Helper()
	out, err := exec.Command("docker", args...).CombinedOutput()
	if err != nil {
		b.t.Errorf("docker %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return strings.Fields(string(out))
}

// clean removes what has this daemon's label.
func (b *berth) clean() {
	mine := "label=" + jobspecs.LabelDaemon + "=" + b.id
	for _, kind := range []struct{ list, remove []string }{
		{[]string{"ps", "-aq"}, []string{"rm", "-f", "-v"}},
		{[]string{"volume", "ls", "-q"}, []string{"volume", "rm"}},
		{[]string{"network", "ls", "-q"}, []string{"network", "rm"}},
	} {
		if ids := b.docker(append(kind.list, "--filter", mine)...); len(ids) > 0 {
			b.docker(append(kind.remove, ids...)...)
		}
	}
}

// image makes the image of testdata/program; it goes after the test.
func image(t *testing.T) string {
	t.Helper()
	tag := "stsd-enginetest:" + strings.ToLower(rand.Text()[:8])
	bin := filepath.Join(t.TempDir(), "program")
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", bin, "./testdata/program")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the program: %v\n%s", err, out)
	}
	program, err := os.ReadFile(bin)
	if err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	if err := w.WriteHeader(&tar.Header{Name: "program", Mode: 0o755, Size: int64(len(program))}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(program); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	load := exec.Command("docker", "import", "--change", `ENTRYPOINT ["/program"]`, "-", tag)
	load.Stdin = &archive
	if out, err := load.CombinedOutput(); err != nil {
		t.Fatalf("docker import: %v\n%s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("docker", "rmi", tag).CombinedOutput(); err != nil {
			t.Errorf("docker rmi %s: %v: %s", tag, err, out)
		}
	})
	return tag
}
