package docker

import (
	"archive/tar"
	"bytes"
	"io"
	goruntime "runtime"
	"testing"

	"github.com/stsd/stsd/runtime/pods"
)

// helperProgram is the file /helper of the tests' image.
func helperProgram(t *testing.T) []byte {
	t.Helper()
	for r := tar.NewReader(bytes.NewReader(helperArchive(t))); ; {
		h, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if h.Name == "helper" {
			return must(io.ReadAll(r))(t)
		}
	}
}

func TestImageForAnotherPlatform(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	engine := e.platform(t.Context())
	garbage := []byte("\x7fELF of another world")
	for i, c := range []struct {
		name, arch string
		program    []byte
		want       string
	}{
		{"its program cannot run here", "s390x", garbage, "WrongPlatform: image ADDR/app:1 is for linux/s390x, this engine is " + engine},
		{"its program runs all the same, as in an emulator", "s390x", helperProgram(t), ""},
		{"an image for this one", goruntime.GOARCH, garbage, ""}, // it starts, and ends
	} {
		r := newRegistry(t, open)
		r.move(r.image(t, c.arch, c.program, 10))
		dropImage(t, r.ref())
		check(t, e.Pull(t.Context(), r.ref(), nil, nil))
		s := e.spec("web", i, func(s *pods.ContainerSpec) {
			s.Main.Image, s.Image = r.ref(), must(e.Image(t.Context(), r.ref()))(t)
			s.Main.Command, s.Main.Args = []string{"/program"}, []string{"sleep"}
		})
		if want := "linux/" + c.arch; s.Image.Platform != want {
			t.Errorf("%s: platform %q, want %q", c.name, s.Image.Platform, want)
		}
		id := must(e.Create(t.Context(), s))(t)
		if got := problemOf(e.Start(t.Context(), id), r.Listener.Addr().String()); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, c.want)
		}
		t.Cleanup(func() { clean(t, e.cfg.Daemon) }) // before the image
	}
}
