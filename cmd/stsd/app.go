package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/jobspecs"
)

// app is one run of the program: its environment and its global flags.
type app struct {
	env            map[string]string
	stdin          io.Reader
	stdout, stderr io.Writer
	now            func() time.Time

	host      string
	namespace string
	output    string
	outFormat string // --format
	noColor   bool
	quiet     bool
	progress  string

	format format // of stdout; set before a verb runs
}

func newApp(env []string, stdin io.Reader, stdout, stderr io.Writer) *app {
	a := &app{env: map[string]string{}, stdin: stdin, stdout: stdout, stderr: stderr, now: time.Now}
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		a.env[name] = value
	}
	return a
}

func (a *app) run(ctx context.Context, args []string) int {
	root := newRootCmd(a)
	root.SetArgs(rewrite(args))
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	cmd, err := root.ExecuteContextC(ctx)
	return a.finish(ctx, cmd, err)
}

// finish prints what went wrong and gives the exit code.
func (a *app) finish(ctx context.Context, cmd *cobra.Command, err error) int {
	code := exitCode(ctx, err)
	if cmd.Name() == "exec" && code != exitOK && code != exitInterrupted && !passedOn(err) {
		code = exitExec
	}
	a.report(cmd, err)
	return code
}

func (a *app) lookupEnv(name string) (string, bool) {
	v, ok := a.env[name]
	return v, ok
}

// setFlags are the global flags.
func (a *app) setFlags(root *cobra.Command) {
	f := root.PersistentFlags()
	f.StringVarP(&a.namespace, "namespace", "n", "", "namespace of the set (default \"default\"); an error when the file says another")
	f.StringVarP(&a.host, "host", "H", "", "daemon to ask: unix:///path (default STSD_HOST, then the usual sockets)")
	f.StringVarP(&a.output, "output", "o", "", "table, wide, json, yaml, name or go-template=…")
	f.StringVar(&a.outFormat, "format", "", "the same as --output")
	f.BoolVar(&a.noColor, "no-color", false, "no colours (NO_COLOR does the same)")
	f.BoolVarP(&a.quiet, "quiet", "q", false, "names only; no progress")
	f.StringVar(&a.progress, "progress", "auto", "auto, tty, plain or json")
	a.complete(root, "namespace", a.completeNamespaces)
	a.complete(root, "output", words("table", "wide", "json", "yaml", "name", "go-template="))
	a.complete(root, "progress", words("auto", "tty", "plain", "json"))
}

// prepare checks the global flags before a verb runs.
func (a *app) prepare() error {
	f, err := parseFormat(a.output, a.outFormat)
	if err != nil {
		return err
	}
	a.format = f
	switch a.progress {
	case "auto", "tty", "plain", "json":
	default:
		return usagef("--progress %q: want auto, tty, plain or json", a.progress)
	}
	if a.namespace != "" && !jobspecs.IsLabel(a.namespace) {
		return usagef("--namespace %q is no name: want lower-case letters, digits and dashes", a.namespace)
	}
	return nil
}

// Where a daemon listens when nobody says otherwise.
const defaultSocket = "/run/stsd/stsd.sock"

func (a *app) hosts() []string {
	if a.host != "" {
		return []string{a.host}
	}
	if h := a.env["STSD_HOST"]; h != "" {
		return []string{h}
	}
	hosts := []string{"unix://" + defaultSocket}
	if dir := a.env["XDG_RUNTIME_DIR"]; dir != "" {
		return append(hosts, "unix://"+dir+"/stsd.sock")
	}
	if _, socket := defaultPaths(a); socket != defaultSocket && ours(filepath.Dir(socket)) {
		hosts = append(hosts, "unix://"+socket)
	}
	return hosts
}

func (a *app) client() (*client.Client, error) {
	c, err := client.New(a.hosts()...)
	if err != nil {
		return nil, &exitError{code: exitUsage, err: err}
	}
	return c, nil
}

// inNamespace is the namespace asked for, or the default one.
func (a *app) inNamespace() string {
	if a.namespace == "" {
		return jobspecs.DefaultNamespace
	}
	return a.namespace
}

// say writes a line to stderr, unless -q.
func (a *app) say(format string, args ...any) {
	if !a.quiet {
		fmt.Fprintf(a.stderr, format+"\n", args...)
	}
}
