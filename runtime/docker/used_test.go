//go:build linux

package docker

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/volume"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime/pods"
)

func TestWhatLiesInAFolderIsCountedOnce(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	put := func(path string, bytes int) {
		t.Helper()
		check(t, os.MkdirAll(filepath.Dir(path), 0o755))
		check(t, os.WriteFile(path, make([]byte, bytes), 0o644))
	}
	put(filepath.Join(outside, "large"), 4<<20)
	put(filepath.Join(dir, "one"), 1<<20)
	put(filepath.Join(dir, "a", "b", "two"), 1<<20)
	put(filepath.Join(dir, "mounted", "three"), 1<<20)
	check(t, os.Link(filepath.Join(dir, "one"), filepath.Join(dir, "again")))
	check(t, os.Symlink(outside, filepath.Join(dir, "away")))
	check(t, os.Symlink(filepath.Join(outside, "large"), filepath.Join(dir, "larger")))

	used, err := usedBelow(t.Context(), dir, map[string]mountpoint{filepath.Join(dir, "mounted"): {}})
	check(t, err)
	if used < 2<<20 || used > 2<<20+256<<10 { // folders take some blocks
		t.Errorf("used = %d, want about 2 MiB: a file of two names counts once, links and other file systems do not", used)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := usedBelow(ctx, dir, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a count without time ended with %v", err)
	}
	if _, err := usedBelow(t.Context(), filepath.Join(dir, "nowhere"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
}

func TestReadMounts(t *testing.T) {
	t.Parallel()
	got, err := readMounts(strings.NewReader(`22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
40 22 0:50 / /v/data/_data rw shared:2 - tmpfs tmpfs rw,size=1024k
41 22 8:1 /srv/x /v/with\040space/_data rw shared:3 master:4 - ext4 /dev/sda1 rw
42 22 0:51 / /v/far/_data rw - nfs4 nas:/data rw
43 42 0:52 / /v/far/_data rw - fuse.sshfs nas: rw
`))
	check(t, err)
	want := map[string]mountpoint{
		"/": {"ext4", true}, "/v/data/_data": {"tmpfs", true}, "/v/with space/_data": {"ext4", false}, "/v/far/_data": {"fuse.sshfs", true},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("mounts = %v, want %v", got, want)
	}
	for kind, distant := range map[string]bool{"ext4": false, "xfs": false, "tmpfs": false, "nfs4": true, "fuse.sshfs": true, "cifs": true} {
		if got := (mountpoint{kind: kind}).distant(); got != distant {
			t.Errorf("distant(%s) = %v", kind, got)
		}
	}
	if _, err := readMounts(strings.NewReader("nonsense\n")); err == nil {
		t.Error("a line that is none was read")
	}
}

func TestWhatCannotBeMeasuredSaysWhy(t *testing.T) {
	t.Parallel()
	for want, v := range map[string]*volume.Volume{
		"driver other does not say where the volume lies": {Driver: "other"},
		"it is not mounted now":                           {Driver: "local", Mountpoint: t.TempDir(), Options: map[string]string{"type": "tmpfs"}},
	} {
		if _, err := usedBy(t.Context(), v); err == nil || err.Error() != want {
			t.Errorf("error = %v, want %s", err, want)
		}
	}
}

func TestVolumesAreMeasuredWhereTheyLie(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	memory := func(s *pods.ContainerSpec) {
		mounted(e)(s)
		v := &s.Pod.Volumes[0]
		v.Name = jobspecs.VolumeName(e.ns, "memory", s.Pod.Set.Name, s.Pod.Ordinal)
		v.Options = map[string]string{"type": "tmpfs", "device": "tmpfs", "o": "size=8m"}
		s.Main.Mounts[0].Volume = v.Name
	}
	for ordinal, change := range []func(*pods.ContainerSpec){mounted(e), memory} {
		s := e.spec("web", ordinal, change)
		v := s.Pod.Volumes[0]
		check(t, e.Volumes().Create(t.Context(), s.Pod.Set, ordinal, v))
		e.run(s)
		before := must(e.Volumes().Used(t.Context(), v.Name))(t)
		e.in(s.Pod.Name, "write", "/data/large", strings.Repeat("x", 100<<10))
		after := must(e.Volumes().Used(t.Context(), v.Name))(t)
		if grown := after - before; grown < 100<<10 || grown > 200<<10 {
			t.Errorf("%s: %d bytes, then %d: want 100 KiB more", v.Name, before, after)
		}
	}
	if _, err := e.Volumes().Used(t.Context(), "nowhere-"+e.ns); err == nil {
		t.Error("a volume that is not there was measured")
	}
}

// A claim whose driver changes keeps its volumes: what their containers mount is
// what is there.
func TestAVolumeKeepsItsDriver(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	s := e.spec("web", 0, mounted(e))
	check(t, e.Volumes().Create(t.Context(), s.Pod.Set, 0, s.Pod.Volumes[0]))
	id := e.run(s)
	check(t, e.Stop(t.Context(), id, "", time.Second))
	check(t, e.Remove(t.Context(), id))

	s.Pod.Volumes[0].Driver, s.Pod.Volumes[0].Size = "other", 1<<30
	e.run(s)
	if got := e.in("web-0", "cat", "/data/seed"); got != "of the image\n" {
		t.Errorf("the next container finds %q", got)
	}
}
