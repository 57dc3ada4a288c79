package docker

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/runtime/pods"
)

func files(list ...jobspecs.File) func(*pods.ContainerSpec) {
	return func(s *pods.ContainerSpec) { s.Main.Files = list }
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root may give files away and mount")
	}
}

// sources are where a container's files are bound from, by their path in it.
func (e *env) sources(id string) map[string]string {
	e.t.Helper()
	found := map[string]string{}
	for _, m := range must(raw().ContainerInspect(e.t.Context(), id))(e.t).Mounts {
		if m.Type == "bind" {
			found[m.Destination] = m.Source
		}
	}
	return found
}

func TestSensitiveFileIsInMemoryAlone(t *testing.T) {
	t.Parallel()
	needRoot(t)
	e := newEnv(t)
	s := e.spec("web", 0, files(
		jobspecs.File{Path: "/etc/web/key", Content: []byte("secret"), Mode: 0o400, Owner: "7:8", Sensitive: true},
		jobspecs.File{Path: "/etc/web/conf", Content: []byte("plain"), Mode: 0o644},
		jobspecs.File{Path: "/hook", Content: helperLink, Mode: 0o555, Sensitive: true},
	))
	id := e.run(s)
	if got := e.in("web-0", "cat", "/etc/web/key", "/etc/web/conf"); got != "secretplain" {
		t.Errorf("files have %q", got)
	}
	if got := e.in("web-0", "stat", "/etc/web/key", "/hook"); got != "/etc/web/key 400 7:8\n/hook 555 0:0\n" {
		t.Errorf("got %q", got)
	}
	if code, _ := e.Exec(t.Context(), e.pod("web-0"), quiet("/helper", "write", "/etc/web/key", "x")); code == 0 {
		t.Error("a sensitive file was written to")
	}
	sources := e.sources(id)
	for _, path := range []string{"/etc/web/key", "/hook"} {
		dir := filepath.Dir(sources[path])
		stat := must(os.Stat(dir))(t)
		if err := fits(dir, true); err != nil || stat.Mode().Perm() != 0o700 || !strings.HasPrefix(dir, e.cfg.RunDir) {
			t.Errorf("%s comes from %s (mode %o): %v", path, dir, stat.Mode().Perm(), err)
		}
	}
	if sources["/etc/web/conf"] != "" {
		t.Errorf("a plain file is bound from %s", sources["/etc/web/conf"])
	}
	e.endPod(id)
	if left, _ := filepath.Glob(filepath.Join(e.cfg.RunDir, "*", "*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if fits(filepath.Join(e.cfg.RunDir, "memory"), false) == nil {
		t.Error("the tmpfs is left")
	}
}

// helperLink is a program for the exec test: what a script would be in an image
// with a shell.
var helperLink = []byte("#!/helper args\n")

func quiet(words ...string) runtime.ExecOptions {
	return runtime.ExecOptions{Command: words, Stdout: io.Discard, Stderr: io.Discard}
}

func TestFilesOfAReadOnlyRoot(t *testing.T) {
	t.Parallel()
	needRoot(t)
	e := newEnv(t)
	s := e.spec("web", 0, podOf2, files(
		jobspecs.File{Path: "/new/deep/conf", Content: []byte("a"), Mode: 0o640, Owner: "7:8"},
		jobspecs.File{Path: "/tmp/inside", Content: []byte("b"), Mode: 0o644},
		jobspecs.File{Path: "/hook", Content: []byte("#!/helper id\n"), Mode: 0o755},
	), func(s *pods.ContainerSpec) {
		s.Pod.ShareProcesses, s.Main.ReadOnlyRoot = false, true
	})
	id := e.run(s)
	if got := e.in("web-0", "cat", "/new/deep/conf", "/tmp/inside"); got != "ab" {
		t.Errorf("files have %q", got)
	}
	if got := e.in("web-0", "stat", "/new/deep/conf"); got != "/new/deep/conf 640 7:8\n" {
		t.Errorf("got %q", got)
	}
	if code, err := e.Exec(t.Context(), e.pod("web-0"), quiet("/hook")); code != 0 || err != nil {
		t.Errorf("a script that is bound ends with %d, %v", code, err)
	}
	for _, path := range []string{"/x", "/new/x"} {
		if code, _ := e.Exec(t.Context(), e.pod("web-0"), quiet("/helper", "write", path, "x")); code == 0 {
			t.Errorf("%s was written in a read-only root", path)
		}
	}
	e.in("web-0", "write", "/tmp/x", "x")
	e.endPod(id)
}

func TestFilesComeBackAfterTheRunFolderWasEmptied(t *testing.T) {
	t.Parallel()
	needRoot(t)
	e := newEnv(t)
	s := e.spec("web", 0, files(
		jobspecs.File{Path: "/key", Content: []byte("secret"), Mode: 0o400, Sensitive: true}))
	id := e.run(s)
	unmountMemory(filepath.Join(e.cfg.RunDir, "memory")) // as after a start of the host
	check(t, os.RemoveAll(e.cfg.RunDir))
	check(t, e.Stop(t.Context(), id, "", time.Second))
	check(t, e.Rename(t.Context(), id, s.Name+"_previous"))
	next := e.run(s)
	if got := e.in("web-0", "cat", "/key"); got != "secret" {
		t.Errorf("got %q", got)
	}
	e.endPod(id)
	if got := e.in("web-0", "cat", "/key", "/etc/resolv.conf"); !strings.HasPrefix(got, "secret# stsd") {
		t.Errorf("got %q", got)
	}
	e.endPod(next)
}

func TestManyMegabytesOfFiles(t *testing.T) {
	t.Parallel()
	needRoot(t)
	e := newEnv(t)
	big := bytes.Repeat([]byte("0123456789abcdef"), 1<<20/16)
	for i, sensitive := range []bool{false, true} {
		var list []jobspecs.File
		for n := range 5 {
			list = append(list, jobspecs.File{Path: fmt.Sprintf("/big/%d", n), Content: big, Mode: 0o644, Sensitive: sensitive})
		}
		s := e.spec("web", i, files(list...))
		began := time.Now()
		id := e.run(s)
		t.Logf("sensitive %v: created and started in %s", sensitive, time.Since(began))
		if got := e.in(s.Pod.Name, "cat", "/big/0", "/big/1", "/big/2", "/big/3", "/big/4"); got != strings.Repeat(string(big), 5) {
			t.Errorf("sensitive %v: %d bytes came", sensitive, len(got))
		}
		e.endPod(id)
	}
}

func TestWithoutAFolderInMemory(t *testing.T) {
	t.Parallel()
	needRoot(t)
	run, shm := t.TempDir(), t.TempDir()
	if fits(run, false) == nil {
		t.Skip("temporary folders are in memory here")
	}
	check(t, os.MkdirAll(filepath.Join(run, "memory"), 0o700))
	check(t, os.WriteFile(filepath.Join(run, "memory", "used"), nil, 0o600))
	m := memory{run: run, shm: shm}
	_, err := m.find(false)
	wantProblem(t, err, runtime.ReasonNoMemoryFolder, "no folder in memory for sensitive files: "+strings.Join([]string{
		run + "/pods is not in memory",
		run + "/memory is in use: no tmpfs is mounted over it",
		shm + "/stsd-0 is not in memory",
	}, "\n"))
}

func TestAFolderUnderShmMustBeOursAlone(t *testing.T) {
	t.Parallel()
	needRoot(t)
	for name, lay := range map[string]func(dir string) error{
		"a link":         func(dir string) error { return os.Symlink("/etc", dir) },
		"open to others": func(dir string) error { return os.Mkdir(dir, 0o755) },
		"somebody's":     func(dir string) error { return joinErrors(os.Mkdir(dir, 0o700), os.Chown(dir, 1000, 1000)) },
		"a file":         func(dir string) error { return os.WriteFile(dir, nil, 0o700) },
	} {
		m := memory{shm: t.TempDir()}
		check(t, lay(m.shared()))
		if _, err := m.ofUser(); err == nil || err.Error() != m.shared()+" is not ours alone" {
			t.Errorf("%s: %v", name, err)
		}
	}
	m := memory{shm: t.TempDir()}
	if dir, err := m.ofUser(); err != nil || dir != m.shared() {
		t.Errorf("a new one: %s, %v", dir, err)
	}
}

func joinErrors(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func TestSensitiveContentIsNeverWrittenToADisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if fits(dir, false) == nil {
		t.Skip("temporary folders are in memory here")
	}
	f := jobspecs.File{Path: "/key", Content: []byte("secret"), Mode: 0o400, Sensitive: true}
	_, err := writeBound(dir, "web", f, os.Geteuid(), os.Getegid())
	if err == nil || !strings.HasSuffix(err.Error(), "is not in memory") {
		t.Errorf("written: %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestWhichFilesCanBeBound(t *testing.T) {
	t.Parallel()
	root, user := identity{0, 0}, identity{1000, 1000}
	const unseen, notOurs = "the engine does not see the files of this machine", "only root may give a file to its owner"
	for _, c := range []struct {
		name        string
		file        jobspecs.File
		owner, self identity
		seen        bool
		want        string
	}{
		{"root gives to anybody", jobspecs.File{Mode: 0o400, Owner: "7:7"}, identity{7, 7}, root, true, ""},
		{"not where nobody sees it", jobspecs.File{Mode: 0o400}, root, root, false, unseen},
		{"a user keeps its own", jobspecs.File{Mode: 0o400, Owner: "1000:1000"}, user, user, true, ""},
		{"a user gives nothing away", jobspecs.File{Mode: 0o644, Owner: "0:0"}, root, user, true, notOurs},
		{"a user may let everybody read", jobspecs.File{Mode: 0o644}, root, user, true, ""},
		{"but not one alone", jobspecs.File{Mode: 0o600}, root, user, true, notOurs},
	} {
		if got := unbindable(c.file, c.owner, c.self, c.seen); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestFilesOfAnEngineThatDoesNotSeeOurs(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.resolvers.dir = hideFromEngine(t)
	first := e.spec("web", 0, files(jobspecs.File{Path: "/etc/a", Content: []byte("a"), Mode: 0o644}))
	e.run(first) // it is found out here
	const unseen = "the engine does not see the files of this machine"
	for name, c := range map[string]struct {
		change       func(*pods.ContainerSpec)
		reason, want string
	}{
		"sensitive": {files(jobspecs.File{Path: "/key", Sensitive: true, Mode: 0o400}), runtime.ReasonNoMemoryFolder,
			"file /key is sensitive and cannot be mounted from memory: " + unseen},
		"read-only root": {func(s *pods.ContainerSpec) {
			s.Main.ReadOnlyRoot, s.Main.Files = true, []jobspecs.File{{Path: "/a", Mode: 0o444}}
		}, runtime.ReasonCreateFailed, "file /a cannot be put into a container with read_only_root: " + unseen},
		"in memory": {func(s *pods.ContainerSpec) {
			podOf2(s)
			s.Main.Files = []jobspecs.File{{Path: "/tmp/a", Mode: 0o444}}
		}, runtime.ReasonCreateFailed, "file /tmp/a cannot be put into a scratch folder in memory: " + unseen},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := e.Create(t.Context(), e.spec("web", 1, c.change))
			wantProblem(t, err, c.reason, c.want)
		})
	}
	list := must(raw().ContainerList(t.Context(), container.ListOptions{All: true}))(t)
	for _, c := range list {
		if strings.Contains(strings.Join(c.Names, ""), e.ns+".web-1") {
			t.Errorf("container %v is left", c.Names)
		}
	}
}
