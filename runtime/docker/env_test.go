package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/volume"
	"github.com/docker/docker/client"
	"go.uber.org/goleak"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/runtime/pods"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if testImage.made {
		for _, tag := range append(testImage.further, testImage.tag) {
			_, err := raw().ImageRemove(context.Background(), tag, image.RemoveOptions{Force: true})
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}
		raw().Close()
	}
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// raw is a client of our own, to look from outside.
var raw = sync.OnceValue(func() *client.Client {
	c, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		panic(err)
	}
	return c
})

// env is one test's part of the engine: a daemon id, a namespace and a pool that
// nobody else has, and all of it gone afterwards.
type env struct {
	*Host
	t     testing.TB
	ns    string
	image string // the helper's
}

func needDocker(t testing.TB) {
	t.Helper()
	if os.Getenv("STSD_TEST_DOCKER") != "1" {
		t.Skip("needs Docker: set STSD_TEST_DOCKER=1")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if _, err := raw().Ping(ctx); err != nil {
		t.Skipf("Docker does not answer: %v", err)
	}
}

func newEnv(t testing.TB, change ...func(*Config)) *env {
	t.Helper()
	needDocker(t)
	id := random()
	cfg := Config{
		Daemon: "test-" + id,
		Pool:   netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 200 + randomByte()%48, randomByte() &^ 15, 0}), 20),
		RunDir: t.TempDir(),
	}
	for _, c := range change {
		c(&cfg)
	}
	h, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { clean(t, cfg.Daemon); unmountMemory(filepath.Join(cfg.RunDir, "memory")); h.Close() })
	return &env{Host: h, t: t, ns: "t" + id, image: helperImage(t)}
}

func random() string {
	b := make([]byte, 4)
	rand.Read(b)
	return hex.EncodeToString(b)
}

func randomByte() byte {
	b := make([]byte, 1)
	rand.Read(b)
	return b[0]
}

func clean(t testing.TB, daemon string) {
	ctx := context.Background()
	mine := filters.NewArgs(filters.Arg("label", jobspecs.LabelDaemon+"="+daemon))
	list, err := raw().ContainerList(ctx, container.ListOptions{All: true, Filters: mine})
	check(t, err)
	for _, c := range list {
		check(t, raw().ContainerRemove(ctx, c.ID, container.RemoveOptions{Force: true, RemoveVolumes: true}))
	}
	vols, err := raw().VolumeList(ctx, volume.ListOptions{Filters: mine})
	check(t, err)
	for _, v := range vols.Volumes {
		check(t, raw().VolumeRemove(ctx, v.Name, true))
	}
	nets, err := raw().NetworkList(ctx, network.ListOptions{Filters: mine})
	check(t, err)
	for _, n := range nets {
		check(t, raw().NetworkRemove(ctx, n.ID))
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

var testImage struct {
	sync.Mutex
	made    bool
	tag     string
	further []string // made from it
}

// helperImage makes the image of testdata/helper, once.
func helperImage(t testing.TB) string {
	t.Helper()
	testImage.Lock()
	defer testImage.Unlock()
	if testImage.made {
		return testImage.tag
	}
	testImage.tag = "stsd-docker-test:" + random()
	importImage(t, testImage.tag, helperArchive(t), `ENTRYPOINT ["/helper"]`, `CMD ["args", "of", "the", "image"]`,
		`ENV FROM=image`, `VOLUME /anonymous`, `HEALTHCHECK CMD /helper exit 0`)
	testImage.made = true
	return testImage.tag
}

func importImage(t testing.TB, tag string, archive []byte, changes ...string) {
	t.Helper()
	out, err := raw().ImageImport(t.Context(), image.ImportSource{Source: bytes.NewReader(archive), SourceName: "-"}, tag,
		image.ImportOptions{Changes: changes})
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if err := followPull(out, nil); err != nil {
		t.Fatal(err)
	}
}

// passwdImage is the helper's with users in it: redis and admin, who is root, and
// the group staff.
func passwdImage(t testing.TB) string {
	return furtherImage(t, "passwd")
}

// userImage is passwdImage with a USER.
func userImage(t testing.TB) string {
	return furtherImage(t, "user", "USER redis")
}

func furtherImage(t testing.TB, name string, changes ...string) string {
	t.Helper()
	base := helperImage(t)
	testImage.Lock()
	defer testImage.Unlock()
	tag := base + "-" + name
	if slices.Contains(testImage.further, tag) {
		return tag
	}
	passwd := packed{"etc/passwd", []byte("root:x:0:0::/:\nadmin:x:0:5::/:\nredis:x:999:998::/:\n"), 0o644}
	group := packed{"etc/group", []byte("root:x:0:\nstaff:x:50:\n"), 0o644}
	importImage(t, tag, helperArchive(t, passwd, group), append(changes, `ENTRYPOINT ["/helper"]`)...)
	testImage.further = append(testImage.further, tag)
	return tag
}

func helperArchive(t testing.TB, more ...packed) []byte {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "helper")
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", bin, "./testdata/helper")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the helper: %v\n%s", err, out)
	}
	program, err := os.ReadFile(bin)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	put := func(h tar.Header, content []byte) {
		h.Size = int64(len(content))
		check(t, w.WriteHeader(&h))
		_, err := w.Write(content)
		check(t, err)
	}
	put(tar.Header{Name: "helper", Mode: 0o755}, program)
	put(tar.Header{Name: "data/", Typeflag: tar.TypeDir, Mode: 0o750, Uid: 999, Gid: 998}, nil)
	put(tar.Header{Name: "data/seed", Mode: 0o640, Uid: 999, Gid: 998}, []byte("of the image\n"))
	put(tar.Header{Name: "private/", Typeflag: tar.TypeDir, Mode: 0o700, Uid: 999, Gid: 998}, nil)
	put(tar.Header{Name: "noexec", Mode: 0o644}, []byte("not a program"))
	for _, f := range more {
		put(tar.Header{Name: f.name, Mode: f.mode}, f.content)
	}
	check(t, w.Close())
	return b.Bytes()
}

// spec is a container of member set-ordinal; change adapts it.
func (e *env) spec(set string, ordinal int, change ...func(*pods.ContainerSpec)) pods.ContainerSpec {
	e.t.Helper()
	subnet := must(e.Subnet(e.t.Context(), e.ns, nil))(e.t)
	name := jobspecs.MemberName(set, ordinal)
	addr := subnet.Addr().Next()
	gateway := addr
	for range ordinal + 1 {
		addr = addr.Next()
	}
	s := pods.ContainerSpec{
		Name:   jobspecs.ContainerName(e.ns, name, ""),
		Labels: map[string]string{jobspecs.LabelRendering: "r1", jobspecs.LabelRestarts: "0"},
		Image:  must(e.Image(e.t.Context(), e.image))(e.t),
		Pod: jobspecs.PodSpec{
			Set: jobspecs.Key{Namespace: e.ns, Name: set}, Ordinal: ordinal, Name: name,
			Revision: set + "-0123456789", Service: set,
			Domain:  jobspecs.ServiceDomain(set, e.ns, "cluster.local"),
			Search:  []string{e.ns + ".svc.cluster.local", "svc.cluster.local", "cluster.local"},
			Network: jobspecs.NetworkName(e.ns), Subnet: subnet, Gateway: gateway, Address: addr,
			TerminationGrace: 5 * time.Second,
		},
		Main: jobspecs.Container{Name: set, Image: e.image, Args: []string{"sleep"}},
	}
	for _, c := range change {
		c(&s)
	}
	s.Pod.Containers = []jobspecs.Container{s.Main}
	return s
}

func args(words ...string) func(*pods.ContainerSpec) {
	return func(s *pods.ContainerSpec) { s.Main.Args = words }
}

// run creates and starts.
func (e *env) run(s pods.ContainerSpec) (id string) {
	e.t.Helper()
	id = must(e.Create(e.t.Context(), s))(e.t)
	if err := e.Start(e.t.Context(), id); err != nil {
		e.t.Fatalf("start: %v", err)
	}
	return id
}

// in runs the helper in a member and returns its output.
func (e *env) in(member string, words ...string) string {
	e.t.Helper()
	var out bytes.Buffer
	code, err := e.Exec(e.t.Context(), runtime.PodName{Namespace: e.ns, Name: member},
		runtime.ExecOptions{Command: append([]string{"/helper"}, words...), Stdout: &out, Stderr: &out})
	if err != nil || code != 0 {
		e.t.Fatalf("exec %s: exit code %d, %v: %s", strings.Join(words, " "), code, err, &out)
	}
	return out.String()
}

func (e *env) pod(name string) runtime.PodName { return runtime.PodName{Namespace: e.ns, Name: name} }
