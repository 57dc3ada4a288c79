package main

import (
	"bytes"
	"context"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/stsd/stsd/daemon/api"
	"github.com/stsd/stsd/daemon/api/apitest"
)

var updateGolden = flag.Bool("update", false, "write golden files and docs/cli.md")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ran is what one run of the program did.
type ran struct {
	code           int
	stdout, stderr string
}

// cli is the program in front of one daemon, an hour after the world began.
type cli struct {
	t     *testing.T
	ctx   context.Context
	env   []string
	stdin io.Reader
	wrote func() // after each write to stdout
}

// hook sees what is written.
type hook struct{ c *cli }

func (h hook) Write(p []byte) (int, error) {
	if h.c.wrote != nil {
		h.c.wrote()
	}
	return len(p), nil
}

func against(t *testing.T, s api.Service) *cli {
	t.Helper()
	return &cli{t: t, ctx: t.Context(), env: []string{"STSD_HOST=" + apitest.Serve(t, s), "STSD_VAR_image=web:1"}, stdin: strings.NewReader("")}
}

func (c *cli) run(args ...string) ran {
	c.t.Helper()
	var out, errs bytes.Buffer
	a := newApp(c.env, c.stdin, io.MultiWriter(&out, hook{c}), &errs)
	a.now = func() time.Time { return apitest.Start.Add(time.Hour) }
	return ran{a.run(c.ctx, args), out.String(), errs.String()}
}

// spec is a file with a whole set, and nothing but.
const spec = `statefulset "web" {
  container "web" {
    image = "web:1"
  }
}
`

func write(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *updateGolden {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is out of date; look at the change, then go test -update\ngot:\n%s", file, got)
	}
}
