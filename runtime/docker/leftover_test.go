package docker

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"

	"github.com/stsd/stsd/jobspecs"
)

// folders are those of pods under a run folder, without the tests' namespace.
func (e *env) folders() string {
	found, err := filepath.Glob(filepath.Join(e.cfg.RunDir, "*", e.ns, "*"))
	check(e.t, err)
	var list []string
	for _, dir := range found {
		rel, err := filepath.Rel(e.cfg.RunDir, dir)
		check(e.t, err)
		list = append(list, strings.Replace(rel, e.ns+"/", "", 1))
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

func TestFoldersOfPodsThatWentUnseenAreSwept(t *testing.T) {
	t.Parallel()
	needRoot(t)
	e := newEnv(t)
	secret := files(jobspecs.File{Path: "/key", Content: []byte("secret"), Mode: 0o400, Sensitive: true})
	gone := e.run(e.spec("web", 0, secret))
	e.run(e.spec("web", 1, secret))
	for dir, content := range map[string]string{
		"memory/" + e.ns + "/other-0/daemon":    "another",
		"pods/" + e.ns + "/other-0/resolv.conf": "# stsd another gateway 10.87.0.1\n",
		"pods/" + e.ns + "/nobody-0/note":       "of nobody knows whom",
	} {
		path := filepath.Join(e.cfg.RunDir, dir)
		check(t, os.MkdirAll(filepath.Dir(path), 0o755))
		check(t, os.WriteFile(path, []byte(content), 0o600))
	}
	inMemory := "memory"
	if fits(filepath.Join(e.cfg.RunDir, "pods"), false) == nil {
		inMemory = "pods"
	}
	if got := e.folders(); !strings.Contains(got, inMemory+"/web-0") {
		t.Fatalf("at first there is %s", got)
	}

	next := must(New(e.cfg))(t) // the daemon's next run
	defer next.Close()
	check(t, raw().ContainerRemove(t.Context(), gone, container.RemoveOptions{Force: true, RemoveVolumes: true}))
	must(next.List(t.Context()))(t)
	want := "memory/other-0 memory/web-1 pods/nobody-0 pods/other-0 pods/web-1"
	if inMemory == "pods" {
		want = "memory/other-0 pods/nobody-0 pods/other-0 pods/web-1"
	}
	if got := e.folders(); got != want {
		t.Errorf("left  %s\nwant %s", got, want)
	}
	if got := e.in("web-1", "cat", "/key"); got != "secret" {
		t.Errorf("the key of the one that runs has %q", got)
	}
}

// A look may have begun before a container went and end after it: what it found is
// not there any more.
func TestAContainerThatWentDuringALookIsNotNoted(t *testing.T) {
	t.Parallel()
	pod := &jobspecs.PodSpec{Set: jobspecs.Key{Namespace: "default", Name: "web"}, Name: "web-0"}
	labels := objectLabels("me", pod.Set, 0)
	for name, do := range map[string]func(r *resolvers){
		"found, removed, noted": func(r *resolvers) {
			_, err := r.begin(pod)
			check(t, err)
			r.end(pod, "c1")
			done := r.look()
			r.drop("c1")
			r.use("c1", labels)
			done()
		},
		"made, removed, noted": func(r *resolvers) {
			done := r.look()
			_, err := r.begin(pod)
			check(t, err)
			r.drop("c1")
			r.end(pod, "c1")
			done()
		},
		"two looks": func(r *resolvers) {
			_, err := r.begin(pod)
			check(t, err)
			r.end(pod, "c1")
			first, second := r.look(), r.look()
			r.drop("c1")
			first()
			r.use("c1", labels)
			second()
		},
	} {
		var r resolvers
		run := t.TempDir()
		r.init(run, "me")
		r.memory.shm = t.TempDir()
		do(&r)
		left, err := filepath.Glob(filepath.Join(run, "*", "*"))
		check(t, err)
		if len(r.ids()) > 0 || len(r.gone) > 0 || len(left) > 0 {
			t.Errorf("%s: noted %v, gone %v, folders %v; want none", name, r.ids(), r.gone, left)
		}
	}
}

func TestWhoseAFolderIs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"a mark", map[string]string{"daemon": "me\n"}, "me"},
		{"a resolv.conf", map[string]string{"resolv.conf": "# stsd me gateway 10.87.0.1\n"}, "me"},
		{"the mark counts", map[string]string{"daemon": "me\n", "resolv.conf": "# stsd other gateway 10.87.0.1\n"}, "me"},
		{"a resolv.conf of somebody", map[string]string{"resolv.conf": "nameserver 1.1.1.1\n"}, ""},
		{"half a mark", map[string]string{"daemon": ""}, ""},
		{"nothing", nil, ""},
	} {
		dir := t.TempDir()
		for name, text := range c.files {
			check(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		}
		if got := folderOwner(dir); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
