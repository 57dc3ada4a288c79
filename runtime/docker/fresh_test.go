package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/runtime/pods"
)

func pointer[T any](v T) *T { return &v }

func TestOwnerOfAFreshVolumesEntries(t *testing.T) {
	t.Parallel()
	entries := []tar.Header{
		{Name: "0/", Typeflag: tar.TypeDir, Mode: 0o755},
		{Name: "0/sub/", Typeflag: tar.TypeDir, Mode: 0o700, Uid: 7, Gid: 8},
		{Name: "0/sub/file", Typeflag: tar.TypeReg, Mode: 0o600, Uid: 7, Gid: 8, Size: 2},
		{Name: "0/link", Typeflag: tar.TypeLink, Linkname: "0/sub/file", Mode: 0o600, Uid: 7, Gid: 5},
		{Name: "0/soft", Typeflag: tar.TypeSymlink, Linkname: "sub", Mode: 0o777},
		{Name: "0/right", Typeflag: tar.TypeReg, Mode: 0o660, Gid: 5},
	}
	for _, c := range []struct {
		name string
		to   ownership
		want string
	}{
		{"nobody in particular", ownership{}, "false"},
		{"a user gets the volume's own folder", ownership{user: &identity{9, -1}}, "true 0/ 755 9:0"},
		{"a user and its group too", ownership{user: &identity{9, 6}}, "true 0/ 755 9:6"},
		{"a group gets all", ownership{group: pointer(5)},
			"true 0/ 2775 0:5|0/sub/ 2770 7:5|0/sub/file 660 7:5 ab|0/link 600 7:5|0/soft 777 0:5"},
		{"a group wins over the user's", ownership{group: pointer(5), user: &identity{9, 6}},
			"true 0/ 2775 9:5|0/sub/ 2770 7:5|0/sub/file 660 7:5 ab|0/link 600 7:5|0/soft 777 0:5"},
		{"a scratch folder is open", ownership{open: true}, "true 0/ 1777 0:0"},
	} {
		var from, to bytes.Buffer
		w := tar.NewWriter(&from)
		for _, h := range entries {
			check(t, w.WriteHeader(&h))
			w.Write([]byte("ab")[:h.Size])
		}
		check(t, w.Close())
		any, err := rewrite(&to, &from, c.to)
		check(t, err)
		got := fmt.Sprint(any)
		var list []string
		for r := tar.NewReader(&to); ; {
			h, err := r.Next()
			if err == io.EOF {
				break
			}
			check(t, err)
			content, _ := io.ReadAll(r)
			list = append(list, strings.TrimSpace(fmt.Sprintf("%s %o %d:%d %s", h.Name, h.Mode, h.Uid, h.Gid, content)))
		}
		if got = strings.TrimSpace(got + " " + strings.Join(list, "|")); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, c.want)
		}
	}
}

func TestAScratchFolderWithAGroupKeepsIt(t *testing.T) {
	t.Parallel()
	h := tar.Header{Typeflag: tar.TypeDir, Mode: 0o755}
	if !(ownership{open: true, group: pointer(5)}).adapt(&h, true) || h.Mode != 0o3777 || h.Gid != 5 {
		t.Errorf("mode %o, group %d; want 3777, 5", h.Mode, h.Gid)
	}
}

// fresh is a member with one volume that never ran, mounted at path.
func (e *env) fresh(ordinal int, path string, change func(*pods.ContainerSpec)) pods.ContainerSpec {
	e.t.Helper()
	s := e.spec("web", ordinal, mounted(e), func(s *pods.ContainerSpec) {
		s.Main.Mounts[0].Path = path
		s.Fresh = []string{s.Pod.Volumes[0].Name}
	}, change)
	check(e.t, e.Volumes().Create(e.t.Context(), s.Pod.Set, ordinal, s.Pod.Volumes[0]))
	return s
}

func TestFreshVolumeIsGivenToItsGroupAndUser(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	for i, c := range []struct {
		name, path string
		change     func(*pods.ContainerSpec)
		want       string
	}{
		{"nobody: as the engine makes it", "/empty", func(*pods.ContainerSpec) {}, "/empty 755 0:0"},
		{"a user by number", "/empty", func(s *pods.ContainerSpec) { s.Main.User = "1000" }, "/empty 755 1000:0"},
		{"a user and a group by number", "/empty", func(s *pods.ContainerSpec) { s.Main.User = "1000:1001" }, "/empty 755 1000:1001"},
		{"a user by name", "/empty", func(s *pods.ContainerSpec) { s.Main.User = "redis" }, "/empty 755 999:998"},
		{"root stays root", "/empty", func(s *pods.ContainerSpec) { s.Main.User = "0:0" }, "/empty 755 0:0"},
		{"what the image gave to somebody stays", "/data", func(s *pods.ContainerSpec) { s.Main.User = "1000:998" },
			"/data 750 999:998\n/data/seed 640 999:998"},
		{"a group", "/data", func(s *pods.ContainerSpec) { s.Main.FSGroup = pointer(2000) },
			"/data 2770 999:2000\n/data/seed 660 999:2000"},
		{"a group and a user, root read-only", "/empty", func(s *pods.ContainerSpec) {
			s.Main.FSGroup, s.Main.User, s.Main.ReadOnlyRoot = pointer(2000), "1000:1001", true
		}, "/empty 2775 1000:2000"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := e.fresh(i, c.path, func(s *pods.ContainerSpec) {
				c.change(s)
				s.Main.Image = passwdImage(t)
				s.Image = must(e.Image(t.Context(), s.Main.Image))(t)
			})
			e.run(s)
			paths := []string{c.path}
			if strings.Contains(c.want, "seed") {
				paths = append(paths, c.path+"/seed")
			}
			if got := e.in(s.Pod.Name, append([]string{"stat"}, paths...)...); got != c.want+"\n" {
				t.Errorf("got  %swant %s", got, c.want)
			}
			if strings.Contains(c.want, "seed") && e.in(s.Pod.Name, "cat", c.path+"/seed") != "of the image\n" {
				t.Error("the content was lost")
			}
		})
	}
}

// A volume that is not fresh is the members' business.
func TestAVolumeThatRanIsLeftAlone(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	s := e.fresh(0, "/empty", func(s *pods.ContainerSpec) { s.Main.User, s.Fresh = "1000:1000", nil })
	e.run(s)
	if got := e.in("web-0", "stat", "/empty"); got != "/empty 755 0:0\n" {
		t.Errorf("got %q", got)
	}
}

func TestRunAsNonRoot(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	for i, c := range []struct{ image, user, want string }{
		{"", "999:998", "999 998 [998]\n"},
		{"passwd", "redis", "999 998 [998]\n"},
		{"user", "", "999 998 [998]\n"},
		{"", "", "container web would run as root, and run_as_non_root is set: set user to a number, or use an image with a USER"},
		{"", "0:5", `container web would run as root (user "0:5"), and run_as_non_root is set: set another user`},
		{"passwd", "admin", `container web would run as root (user "admin"), and run_as_non_root is set: set another user`},
		{"passwd", "nobody", `container web: the image's /etc/passwd does not say whether user "nobody" is root, and run_as_non_root is set: set user to a number`},
		{"", "redis", `container web: the image's /etc/passwd does not say whether user "redis" is root, and run_as_non_root is set: set user to a number`},
	} {
		s := e.spec("web", i, func(s *pods.ContainerSpec) {
			s.Main.User, s.Main.RunAsNonRoot = c.user, true
			if c.image != "" {
				s.Main.Image = map[string]func(testing.TB) string{"passwd": passwdImage, "user": userImage}[c.image](t)
				s.Image = must(e.Image(t.Context(), s.Main.Image))(t)
			}
		})
		id, err := e.Create(t.Context(), s)
		if strings.HasPrefix(c.want, "container") {
			wantProblem(t, err, runtime.ReasonRunsAsRoot, c.want)
			if _, err := raw().ContainerInspect(t.Context(), s.Name); err == nil {
				t.Errorf("user %q: the container is left", c.user)
			}
			continue
		}
		check(t, err)
		check(t, e.Start(t.Context(), id))
		if got := e.in(s.Pod.Name, "id"); got != c.want {
			t.Errorf("user %q runs as %q, want %q", c.user, got, c.want)
		}
	}
}

func TestUserOfAPasswdFile(t *testing.T) {
	t.Parallel()
	text := "root:x:0:0:root:/root:/bin/sh\nshort:x:1\nodd:x:y:1::/:\nredis:x:999:998::/:\n"
	for name, want := range map[string]string{
		"root": "{0 0} true", "redis": "{999 998} true", "short": "{0 0} false", "nobody": "{0 0} false", "": "{0 0} false",
	} {
		who, ok := lookUser(text, name)
		if got := fmt.Sprint(who, ok); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if _, ok := lookUser(text, "odd"); ok {
		t.Error("a uid that is no number was read")
	}
}

func subMounts(s *pods.ContainerSpec, subs ...string) {
	whole := s.Main.Mounts[0]
	s.Main.Mounts = nil
	for i, sub := range subs {
		m := whole
		m.Path, m.SubPath = fmt.Sprintf("/m%d", i), sub
		s.Main.Mounts = append(s.Main.Mounts, m)
	}
}

func TestSubPathIsMadeAndMounted(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	s := e.fresh(0, "/data", func(s *pods.ContainerSpec) {
		s.Main.FSGroup = pointer(2000)
		s.Main.User = "1000:1001"
		subMounts(s, "a/b", "c", "a/b", "")
	})
	id := e.run(s)
	e.in("web-0", "write", "/m0/x", "in a/b")
	if got := e.in("web-0", "cat", "/m2/x", "/m3/a/b/x"); got != "in a/bin a/b" {
		t.Errorf("got %q", got)
	}
	want := "/m0 2775 1000:2000\n/m1 2775 1000:2000\n/m3/a 2775 1000:2000\n"
	if got := e.in("web-0", "stat", "/m0", "/m1", "/m3/a"); got != want {
		t.Errorf("got:\n%swant:\n%s", got, want)
	}
	e.endPod(id)
	s.Fresh = nil
	e.run(s)
	if got := e.in("web-0", "cat", "/m0/x"); got != "in a/b" {
		t.Errorf("the next container reads %q", got)
	}
	left := must(raw().ContainerList(t.Context(), container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("label", labelInside))}))(t)
	for _, c := range left {
		if strings.HasPrefix(c.Labels[labelInside], e.cfg.Daemon+" ") {
			t.Errorf("container %v is left", c.Names)
		}
	}
}

func TestSubPathIsOfAUserByName(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.run(e.fresh(0, "/data", func(s *pods.ContainerSpec) {
		subMounts(s, "a/b")
		s.Main.Image, s.Main.User = passwdImage(t), "redis"
		s.Image = must(e.Image(t.Context(), s.Main.Image))(t)
	}))
	if got := e.in("web-0", "stat", "/m0"); got != "/m0 755 999:998\n" {
		t.Errorf("got %q", got)
	}
}

func TestSubPathFollowsNoLink(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	s := e.fresh(0, "/data", func(*pods.ContainerSpec) {})
	id := e.run(s)
	e.in("web-0", "mkdir", "/data/real")
	e.in("web-0", "mkdir", "/data/gone")
	e.in("web-0", "swap", "/data/gone", "/etc")
	e.endPod(id)
	name := s.Pod.Volumes[0].Name
	s.Fresh = nil
	for sub, want := range map[string]string{
		"gone":      "sub_path gone of volume " + name + ": gone is a link, which is not followed",
		"gone/deep": "sub_path gone/deep of volume " + name + ": gone is a link, which is not followed",
		"seed":      "sub_path seed of volume " + name + ": seed is not a folder",
		"seed/x":    "sub_path seed/x of volume " + name + ": seed is not a folder",
	} {
		c := s
		subMounts(&c, sub)
		_, err := e.Create(t.Context(), c)
		wantProblem(t, err, runtime.ReasonCreateFailed, want)
	}
	up := s
	subMounts(&up, "../../real")
	e.run(up)
	e.in("web-0", "write", "/m0/x", "x")
}

func TestSubPathOfAVolumeWithOptionsOnAnOldEngine(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	if e.mountsFolders(t.Context()) {
		t.Skip("this engine mounts folders of volumes by itself")
	}
	s := e.spec("web", 0, mounted(e), func(s *pods.ContainerSpec) {
		s.Pod.Volumes[0].Options = map[string]string{"type": "tmpfs", "device": "tmpfs"}
		subMounts(s, "sub")
	})
	check(t, e.Volumes().Create(t.Context(), s.Pod.Set, 0, s.Pod.Volumes[0]))
	_, err := e.Create(t.Context(), s)
	wantProblem(t, err, runtime.ReasonCreateFailed, "sub_path of volume "+s.Pod.Volumes[0].Name+
		": this engine can mount a folder only of a volume of driver local without options; Engine 26 can of any")
}

// A container of the pod puts a link in the place of the folder, between our look
// at it and the engine's mount.
func TestASwappedSubPathIsNoticed(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	if e.mountsFolders(t.Context()) {
		t.Skip("this engine mounts folders of volumes by itself")
	}
	if os.Geteuid() != 0 {
		t.Skip("only root may look at what a process has mounted")
	}
	s := e.fresh(0, "/data", func(*pods.ContainerSpec) {})
	e.run(s)
	other := s
	other.Name += "_other"
	other.Pod.Address = other.Pod.Address.Next()
	other.Fresh = nil
	subMounts(&other, "sub")
	id := must(e.Create(t.Context(), other))(t)
	e.in("web-0", "swap", "/data/sub", "/etc")
	wantProblem(t, e.Start(t.Context(), id), runtime.ReasonCreateFailed,
		"sub_path sub: another folder was mounted at /m0 than that of the volume; was it replaced by a link?")
	if c := must(e.Inspect(t.Context(), id))(t); c.Running() {
		t.Error("the container still runs")
	}
}

func TestAContainerLeftByAnotherRunIsSwept(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	s := e.fresh(0, "/data", func(*pods.ContainerSpec) {})
	must(e.SandboxImage(t.Context()))(t)
	leave := func(instance string) string {
		made := must(raw().ContainerCreate(t.Context(), &container.Config{
			Image: sandboxImage, Labels: map[string]string{labelInside: e.cfg.Daemon + " " + instance},
		}, &container.HostConfig{Binds: []string{s.Pod.Volumes[0].Name + ":/volumes/0"}}, nil, nil, ""))(t)
		t.Cleanup(func() {
			raw().ContainerRemove(context.Background(), made.ID, container.RemoveOptions{Force: true, RemoveVolumes: true})
		})
		return made.ID
	}
	dead, live := leave("dead"), leave(e.instance)
	if list := must(e.List(t.Context()))(t); len(list) != 0 {
		t.Errorf("listed %+v", list)
	}
	if _, err := raw().ContainerInspect(t.Context(), dead); err == nil {
		t.Error("what another run left is still there")
	}
	must(raw().ContainerInspect(t.Context(), live))(t)
}

func TestScratchOfOneContainer(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	s := e.spec("web", 0, podOf2, func(s *pods.ContainerSpec) {
		s.Pod.ShareProcesses = false
		s.Main.FSGroup, s.Main.User = pointer(2000), "1000:1000"
		s.Main.Mounts[0].SubPath = "any"
	})
	id := e.run(s)
	if got := e.in("web-0", "stat", "/tmp", "/work"); got != "/tmp 3777 0:2000\n/work 3777 0:2000\n" {
		t.Errorf("got %q", got)
	}
	if got := e.in("web-0", "size", "/tmp"); got != "/tmp 1048576\n" {
		t.Errorf("got %q", got)
	}
	if got := e.in("web-0", "id"); got != "1000 1000 [1000 2000]\n" {
		t.Errorf("runs as %q", got)
	}
	e.in("web-0", "write", "/tmp/a", "a")
	e.in("web-0", "write", "/work/b", "b")
	if vols := must(e.Volumes().List(t.Context(), s.Pod.Set))(t); len(vols) != 0 {
		t.Errorf("scratch folders are listed as volumes: %v", vols)
	}
	e.endPod(id)
	id = e.run(s)
	if got := e.in("web-0", "ls", "/tmp", "/work"); got != "b\n" {
		t.Errorf("after a restart: %q, want what is on disk", got)
	}
	e.endPod(id)
	check(t, e.RemoveScratch(t.Context(), e.pod("web-0")))
	e.run(s)
	if got := e.in("web-0", "ls", "/tmp", "/work"); got != "" {
		t.Errorf("a new pod finds %q", got)
	}
}

func TestScratchInMemoryMountedTwice(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	s := e.spec("web", 0, podOf2, func(s *pods.ContainerSpec) {
		s.Pod.ShareProcesses = false
		s.Main.Mounts[1] = jobspecs.Mount{Kind: jobspecs.MountScratch, Claim: "tmp", Path: "/again"}
	})
	id := e.run(s)
	e.in("web-0", "write", "/tmp/a", "a")
	if got := e.in("web-0", "cat", "/again/a"); got != "a" {
		t.Errorf("got %q", got)
	}
	e.endPod(id)
	s.Main.Mounts[0].SubPath = "x"
	_, err := e.Create(t.Context(), s)
	wantProblem(t, err, runtime.ReasonCreateFailed,
		"mount /tmp: a sub_path of scratch tmp, which is in memory and mounted more than once, needs a pod of several containers")
}

func TestSubPathOfScratch(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	s := e.spec("web", 0, podOf2, func(s *pods.ContainerSpec) {
		s.Main.Mounts[0].SubPath, s.Main.Mounts[1].SubPath = "a", "b/c"
		s.Main.Mounts = append(s.Main.Mounts,
			jobspecs.Mount{Kind: jobspecs.MountScratch, Claim: "tmp", Path: "/all", ReadOnly: true})
	})
	e.several(s, s.Main)
	e.in("web-0", "write", "/tmp/x", "x")
	e.in("web-0", "write", "/work/y", "y")
	if got := e.in("web-0", "ls", "/all", "/all/a", "/work"); got != "a\nx\ny\n" {
		t.Errorf("got %q", got)
	}
}

func TestForeignScratchIsNeverTouched(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	s := e.spec("web", 0, podOf2)
	other := newEnv(t)
	theirs := s
	theirs.Main.Mounts = theirs.Main.Mounts[1:]
	must(other.Create(t.Context(), withNetwork(other, theirs)))(t)
	_, err := e.Create(t.Context(), s)
	wantProblem(t, err, runtime.ReasonVolumeForeign, "volume "+s.Pod.Scratch[1].Volume+" exists and is not ours (of another stsd, "+other.cfg.Daemon+")")
	check(t, e.RemoveScratch(t.Context(), e.pod("web-0")))
	must(raw().VolumeInspect(t.Context(), s.Pod.Scratch[1].Volume))(t)
}

// withNetwork moves a spec to another environment's network; its volumes stay.
func withNetwork(e *env, s pods.ContainerSpec) pods.ContainerSpec {
	own := e.spec("web", 0)
	s.Pod.Set.Namespace = e.ns
	s.Pod.Network, s.Pod.Subnet, s.Pod.Gateway, s.Pod.Address, s.Name = own.Pod.Network, own.Pod.Subnet, own.Pod.Gateway, own.Pod.Address, own.Name
	return s
}

func TestBindNeedsItsSource(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	dir := t.TempDir()
	check(t, os.WriteFile(filepath.Join(dir, "a"), []byte("of the host"), 0o644))
	bind := func(source string) func(*pods.ContainerSpec) {
		return func(s *pods.ContainerSpec) {
			s.Main.Mounts = []jobspecs.Mount{{Kind: jobspecs.MountBind, Claim: "certs", Source: source, Path: "/certs", ReadOnly: true}}
		}
	}
	e.run(e.spec("web", 0, bind(dir)))
	if got := e.in("web-0", "cat", "/certs/a"); got != "of the host" {
		t.Errorf("got %q", got)
	}
	if code, _ := e.Exec(t.Context(), e.pod("web-0"), runtime.ExecOptions{Command: []string{"/helper", "write", "/certs/b", "x"}, Stdout: io.Discard, Stderr: io.Discard}); code == 0 {
		t.Error("a read-only bind was written to")
	}
	_, err := e.Create(t.Context(), e.spec("web", 1, bind(dir+"/absent")))
	wantProblem(t, err, runtime.ReasonCreateFailed, "bind certs: "+dir+"/absent is not there on the engine's host (mounted at /certs)")
	if e.blind.Load() {
		t.Error("the engine is taken for one that does not see our files")
	}
}

func TestPostStartedIsOfOneRun(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	id := e.run(e.spec("web", 0))
	first := must(e.Inspect(t.Context(), id))(t)
	if first.PostStarted {
		t.Error("a hook that never ran has succeeded")
	}
	check(t, e.markPostStarted(id, first.StartedAt))
	again, err := New(e.cfg) // as after a restart of the daemon
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	for _, h := range []*Host{e.Host, again} {
		if list := must(h.List(t.Context()))(t); len(list) != 1 || !list[0].PostStarted {
			t.Errorf("listed %+v, want its hook done", list)
		}
	}
	check(t, e.Stop(t.Context(), id, "", time.Second))
	check(t, e.Start(t.Context(), id))
	if c := must(again.Inspect(t.Context(), id))(t); c.PostStarted {
		t.Error("the hook of another run counts")
	}
	e.endPod(id)
	if _, err := os.Stat(filepath.Join(e.cfg.RunDir, "pods", e.ns)); err == nil {
		t.Error("the pod's folder is left")
	}
}
