package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/api/types/image"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/runtime/pods"
)

func TestSandboxArchiveIsTheSameEachTime(t *testing.T) {
	t.Parallel()
	for _, arch := range []string{"amd64", "arm64"} {
		a, err := sandboxArchive(arch, sandboxImage)
		b, err2 := sandboxArchive(arch, sandboxImage)
		if err != nil || err2 != nil || !bytes.Equal(a, b) {
			t.Errorf("%s: %v, %v, same: %v", arch, err, err2, bytes.Equal(a, b))
		}
		var names []string
		for r := tar.NewReader(bytes.NewReader(a)); ; {
			h, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, h.Name[max(0, len(h.Name)-13):])
		}
		if len(names) != 3 || names[0] != "layer.tar" || names[2] != "manifest.json" {
			t.Errorf("%s: the archive has %v", arch, names)
		}
	}
	_, err := sandboxArchive("s390x", sandboxImage)
	wantProblem(t, err, runtime.ReasonWrongPlatform,
		"the engine runs on s390x: pods whose containers share something work on amd64 and arm64")
}

func TestSandboxImageIsMadeOnceAndAgain(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.sandboxes.name = "stsd/sandbox-test:" + random()
	t.Cleanup(func() { raw().ImageRemove(context.Background(), e.sandboxes.name, image.RemoveOptions{}) })
	var ids [4]string
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() { ids[i] = must(e.SandboxImage(t.Context()))(t).ID })
	}
	wg.Wait()
	for _, id := range ids {
		if id != ids[0] || id == "" {
			t.Errorf("images %v, want one", ids)
		}
	}
	must(raw().ImageRemove(t.Context(), e.sandboxes.name, image.RemoveOptions{}))(t)
	again := must(e.SandboxImage(t.Context()))(t)
	if again.ID != ids[0] || again.User != "65535:65535" {
		t.Errorf("made again: %+v, want id %s", again, ids[0])
	}
	found := must(raw().ImageInspect(t.Context(), e.sandboxes.name))(t)
	if found.Size > 1024 || found.Config.Labels["stsd.image"] != "sandbox" || found.Config.Labels[jobspecs.LabelSandbox] != "" {
		t.Errorf("image of %d bytes with labels %v", found.Size, found.Config.Labels)
	}
}

func TestAForeignImageOfTheNameIsLeftAlone(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.sandboxes.name = "stsd/sandbox-test:" + random()
	check(t, raw().ImageTag(t.Context(), e.image, e.sandboxes.name))
	t.Cleanup(func() { raw().ImageRemove(context.Background(), e.sandboxes.name, image.RemoveOptions{}) })
	_, err := e.SandboxImage(t.Context())
	wantProblem(t, err, runtime.ReasonCreateFailed, "image "+e.sandboxes.name+" exists and was not made by stsd: remove or rename it")
}

func TestWhenASandboxIsGone(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"No such container: b0x":                                                     true,
		"No such container: c0":                                                      false,
		"cannot join network of a non running container: b0x":                        true,
		"joining PID namespace of container b0x: cannot join PID of a dead one":      true,
		"can't join IPC of container b0x: container is not running":                  true,
		"network stsd.shop not found":                                                false,
		"driver failed programming external connectivity: port is already allocated": false,
	} {
		if got := sandboxGone(text, "c0"); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

// podOf2 is a pod of two containers, "web" and "side", with all that a pod shares.
func podOf2(s *pods.ContainerSpec) {
	s.Pod.ShareProcesses = true
	s.Pod.ExtraHosts = map[string]string{"db": "10.1.2.3"}
	s.Pod.Sysctls = map[string]string{"net.core.somaxconn": "1000"}
	s.Pod.Scratch = []jobspecs.Scratch{
		{Name: "tmp", Medium: jobspecs.MediumMemory, Size: 1 << 20, Volume: jobspecs.ScratchName(s.Pod.Set.Namespace, "tmp", s.Pod.Set.Name, s.Pod.Ordinal)},
		{Name: "work", Medium: jobspecs.MediumDisk, Volume: jobspecs.ScratchName(s.Pod.Set.Namespace, "work", s.Pod.Set.Name, s.Pod.Ordinal)},
	}
	s.Main.Mounts = []jobspecs.Mount{
		{Kind: jobspecs.MountScratch, Claim: "tmp", Path: "/tmp"},
		{Kind: jobspecs.MountScratch, Claim: "work", Path: "/work"},
	}
}

// several makes and starts a pod: its sandbox, then a container for each main.
func (e *env) several(s pods.ContainerSpec, mains ...jobspecs.Container) (sandbox string, ids []string) {
	e.t.Helper()
	s.Pod.Containers = mains
	member := s.Pod.Name
	box := s
	box.Name = jobspecs.ContainerName(e.ns, member, jobspecs.PartSandbox)
	box.Main = jobspecs.Container{Kind: jobspecs.KindSandbox}
	box.Image = must(e.SandboxImage(e.t.Context()))(e.t)
	box.Labels = map[string]string{jobspecs.LabelKind: jobspecs.KindSandbox}
	sandbox = e.run(box)
	for i, m := range mains {
		c := s
		c.Main, c.Sandbox = m, sandbox
		c.Labels = map[string]string{jobspecs.LabelSandbox: sandbox}
		if i > 0 {
			c.Name = jobspecs.ContainerName(e.ns, member, m.Name)
		}
		ids = append(ids, e.run(c))
	}
	return sandbox, ids
}

func (e *env) endPod(ids ...string) {
	e.t.Helper()
	for _, id := range ids {
		check(e.t, e.Stop(e.t.Context(), id, "", 2*time.Second))
		check(e.t, e.Remove(e.t.Context(), id))
	}
}

func TestContainersOfAPodShareWhatIsThePods(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	s := e.spec("web", 0, podOf2)
	port := freePort(t)
	web, side := s.Main, s.Main
	web.Args = []string{"serve", "8080"}
	web.Ports = []jobspecs.Port{{Name: "http", Container: 8080, Protocol: "tcp"}}
	web.ShmSize = 1 << 20
	side.Name, side.ShmSize = "side", 3<<20
	side.Ports = []jobspecs.Port{{Name: "again", Container: 8080, Protocol: "tcp", Host: port}}
	sandbox, ids := e.several(s, web, side)

	fqdn := "web-0." + s.Pod.Domain
	for _, part := range []string{"", "side"} {
		for _, c := range []struct{ words, want string }{
			{"names", "web-0 " + s.Pod.Domain + " " + fqdn + "\n"},
			{"cat /proc/sys/net/core/somaxconn", "1000\n"},
			{"size /dev/shm /tmp", fmt.Sprintf("/dev/shm %d\n/tmp %d\n", 3<<20, 1<<20)},
			{"stat /tmp /work", "/tmp 1777 0:0\n/work 1777 0:0\n"},
		} {
			if got := e.inPart("web-0", part, strings.Fields(c.words)...); got != c.want {
				t.Errorf("%q: %s = %q, want %q", part, c.words, got, c.want)
			}
		}
		if got := e.inPart("web-0", part, "cat", "/etc/hosts"); !strings.Contains(got, "10.1.2.3\tdb") || !strings.Contains(got, fqdn) {
			t.Errorf("%q: hosts = %q", part, got)
		}
		if got := e.inPart("web-0", part, "cat", "/etc/resolv.conf"); !strings.HasPrefix(got, "# stsd "+e.cfg.Daemon) {
			t.Errorf("%q: resolv.conf = %q", part, got)
		}
	}
	e.inPart("web-0", "side", "write", "/tmp/a", "in memory")
	e.inPart("web-0", "side", "write", "/work/b", " and on disk")
	e.inPart("web-0", "side", "write", "/dev/shm/c", ", shared")
	if got := e.inPart("web-0", "", "cat", "/tmp/a", "/work/b", "/dev/shm/c"); got != "in memory and on disk, shared" {
		t.Errorf("the other container reads %q", got)
	}
	if got := answer(t, "http://127.0.0.1:"+strconv.Itoa(port)); got == "" {
		t.Error("nobody answers at the published port")
	}
	if owner := e.PortOwner(t.Context(), e.pod("web-0"), side.Ports[0]); owner != "" {
		t.Errorf("the port of the pod is held by %q", owner)
	}
	if owner := e.PortOwner(t.Context(), e.pod("web-1"), side.Ports[0]); !strings.Contains(owner, "web-0_sandbox") {
		t.Errorf("the port of the pod is held by %q, want its sandbox", owner)
	}
	if c := must(e.Inspect(t.Context(), sandbox))(t); c.Address != s.Pod.Address {
		t.Errorf("the sandbox has address %s, want %s", c.Address, s.Pod.Address)
	}
	for _, id := range ids {
		if c := must(e.Inspect(t.Context(), id))(t); c.Address.IsValid() || c.State != "running" {
			t.Errorf("container %s: address %s, %s; want none of its own, running", c.Name, c.Address, c.State)
		}
	}

	// Memory survives a container, since the sandbox has it.
	e.endPod(ids...)
	c := s
	c.Pod.Containers = []jobspecs.Container{web, side}
	c.Main, c.Sandbox = web, sandbox
	id := e.run(c)
	if got := e.inPart("web-0", "", "cat", "/tmp/a", "/work/b"); got != "in memory and on disk" {
		t.Errorf("the next container reads %q", got)
	}
	if err := e.RemoveScratch(t.Context(), e.pod("web-0")); err == nil {
		t.Error("scratch folders in use were removed")
	}
	e.endPod(id, sandbox)
	check(t, e.RemoveScratch(t.Context(), e.pod("web-0")))
	check(t, e.RemoveScratch(t.Context(), e.pod("web-0")))
	for _, scratch := range s.Pod.Scratch {
		if _, err := raw().VolumeInspect(t.Context(), scratch.Volume); err == nil {
			t.Errorf("volume %s is left", scratch.Volume)
		}
	}
}

func (e *env) inPart(member, part string, words ...string) string {
	e.t.Helper()
	var out bytes.Buffer
	code, err := e.Exec(e.t.Context(), e.pod(member), runtime.ExecOptions{
		Container: part, Command: append([]string{"/helper"}, words...), Stdout: &out, Stderr: &out,
	})
	if err != nil || code != 0 {
		e.t.Fatalf("exec %s in %q: exit code %d, %v: %s", strings.Join(words, " "), part, code, err, &out)
	}
	return out.String()
}

func answer(t *testing.T, url string) string {
	t.Helper()
	for range 100 {
		reply, err := http.Get(url)
		if err == nil {
			defer reply.Body.Close()
			text, _ := io.ReadAll(reply.Body)
			http.DefaultClient.CloseIdleConnections()
			return string(text)
		}
		time.Sleep(20 * time.Millisecond)
	}
	return ""
}

func TestSandboxReapsAndEndsAtOnce(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	s := e.spec("web", 0, func(s *pods.ContainerSpec) { s.Pod.ShareProcesses = true })
	sandbox, ids := e.several(s, s.Main)
	for range 5 {
		e.in("web-0", "orphan")
	}
	var got string
	for range 100 {
		if got = e.in("web-0", "ps"); !strings.Contains(got, " Z") && strings.HasPrefix(got, "1 (sandbox) S\n") {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if strings.Contains(got, " Z") || !strings.HasPrefix(got, "1 (sandbox) S\n") {
		t.Errorf("processes of the pod:\n%s", got)
	}
	stats := must(raw().ContainerStatsOneShot(t.Context(), sandbox))(t)
	text, _ := io.ReadAll(stats.Body)
	stats.Body.Close()
	if used := usage(text); used <= 0 || used > 1<<20 {
		t.Errorf("the sandbox uses %d bytes, want some, and less than 1 MB", used)
	}
	e.endPod(ids...)
	began := time.Now()
	check(t, e.Stop(t.Context(), sandbox, "", 10*time.Second))
	c := must(e.Inspect(t.Context(), sandbox))(t)
	if took := time.Since(began); took > 5*time.Second || c.ExitCode != 0 {
		t.Errorf("ended after %s with exit code %d, want by itself, before it is killed after 10 s, and 0", took, c.ExitCode)
	}
}

func TestJoiningADeadSandboxSaysSo(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	s := e.spec("web", 0)
	sandbox, ids := e.several(s, s.Main)
	e.endPod(ids...)
	c := s
	c.Sandbox = sandbox
	created := must(e.Create(t.Context(), c))(t)
	check(t, e.Stop(t.Context(), sandbox, "", time.Second))
	wantProblem(t, e.Start(t.Context(), created), runtime.ReasonSandbox, "the sandbox to join has ended")
	check(t, e.Remove(t.Context(), sandbox))
	wantProblem(t, e.Start(t.Context(), created), runtime.ReasonSandbox, "the sandbox to join has ended")
	check(t, e.Remove(t.Context(), created))
	_, err := e.Create(t.Context(), c)
	wantProblem(t, err, runtime.ReasonSandbox, "the sandbox to join has ended")
}

func usage(stats []byte) int64 {
	var s struct {
		Memory struct {
			Usage int64 `json:"usage"`
		} `json:"memory_stats"`
	}
	if err := json.Unmarshal(stats, &s); err != nil {
		return 0
	}
	return s.Memory.Usage
}

// freePort is one of this machine that nobody listens on.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
