package main

import (
	"context"
	"fmt"
	"io"
	goruntime "runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stsd/stsd/daemon/client"
)

// release is set by the linker: -X main.release=v1.2.3.
var release string

// version is the release, else what the Go toolchain knows.
var version = stsdVersion()

func stsdVersion() string {
	if release != "" {
		return release
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "dev"
}

func newVersionCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show the versions of client, daemon and engine",
		Args:  args(0, 0, ""),
		RunE:  func(cmd *cobra.Command, _ []string) error { return a.version(cmd.Context()) },
	}
}

// versions is what -o json of version shows.
type versions struct {
	Client clientVersion   `json:"client"`
	Daemon *client.Version `json:"daemon"` // null: none answers
	Error  string          `json:"error,omitempty"`
}

type clientVersion struct {
	Version string `json:"version"`
	API     string `json:"api"`
	Go      string `json:"go"`
	OS      string `json:"os"`
}

func (a *app) version(ctx context.Context) error {
	c, err := a.client()
	if err != nil {
		return err
	}
	out := versions{Client: clientVersion{version, "v1", goruntime.Version(), goruntime.GOOS + "/" + goruntime.GOARCH}}
	v, err := c.Version(ctx)
	if err == nil {
		out.Daemon = &v
	} else {
		out.Error = err.Error()
	}
	return a.show(view{doc: out, table: func(w io.Writer) { writeVersions(w, out) }})
}

func writeVersions(w io.Writer, v versions) {
	t := table{}
	t.row("client", v.Client.Version, v.Client.Go+" "+v.Client.OS)
	d := v.Daemon
	if d == nil {
		t.row("daemon", "-", v.Error)
		t.write(w)
		return
	}
	t.row("daemon", d.Version, fmt.Sprintf("id %s, pid %d, %s", d.Daemon, d.PID, d.DataDir))
	engine := "connected"
	if !d.Connected {
		engine = "not reachable: " + d.EngineError
	}
	t.row("engine", d.Engine, engine)
	t.row("dns", orDash(strings.Join(d.DNS, ", ")))
	t.write(w)
}
