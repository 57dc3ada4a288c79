// Package e2e_test runs the real program against a real Docker engine. Every
// test has a daemon process, a state folder, a subnet pool and a namespace of
// its own; what it did not make it does not touch.
package e2e_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// binary is the program under test; TestMain builds it.
var binary string

// atOnce is how many tests run side by side: most of their time is waiting.
const atOnce = "4"

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if reason := noDocker(); reason != "" {
		return m.Run() // every test says why it skips
	}
	dir, err := os.MkdirTemp("", "stsd-e2e")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "stsd")
	build := exec.Command("go", "build", "-o", binary, "github.com/stsd/stsd/cmd/stsd")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build stsd: %v\n%s", err, out)
		return 1
	}
	if !given("test.parallel") {
		_ = flag.Set("test.parallel", atOnce) // a flag of package testing
	}
	return m.Run()
}

func given(name string) (found bool) {
	flag.Visit(func(f *flag.Flag) { found = found || f.Name == name })
	return found
}

// noDocker is why tests cannot run here, or "".
func noDocker() string {
	if os.Getenv("STSD_TEST_DOCKER") != "1" {
		return "needs Docker: set STSD_TEST_DOCKER=1"
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if _, err := engine().Ping(ctx); err != nil {
		return fmt.Sprintf("Docker does not answer: %v", err)
	}
	return ""
}

// world is what one test owns: a daemon and its corner of the engine.
type world struct {
	t     testing.TB
	ns    string
	dir   string // of state, socket, specs and log
	pool  string
	flags []string // further flags of the daemon

	id   string // of the store
	proc *exec.Cmd
	end  chan struct{} // closed when proc has ended
}

// option changes a world before its daemon starts.
type option func(*world)

func dockerHost(host string) option {
	return func(w *world) { w.flags = append(w.flags, "--docker-host", host) }
}

// newWorld starts a daemon; everything is gone when the test has ended.
func newWorld(t testing.TB, options ...option) *world {
	t.Helper()
	w := idleWorld(t, options...)
	w.start()
	return w
}

// idleWorld is newWorld without the daemon.
func idleWorld(t testing.TB, options ...option) *world {
	t.Helper()
	if reason := noDocker(); reason != "" {
		t.Skip(reason)
	}
	dir, err := os.MkdirTemp("", "stsd-") // short: a socket's path has 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, ns: "t" + random(), dir: dir, pool: pool()}
	for _, o := range options {
		o(w)
	}
	t.Cleanup(w.clean)
	return w
}

func random() string {
	b := make([]byte, 3)
	rand.Read(b)
	return hex.EncodeToString(b)
}

var pools = func() *atomic.Uint32 {
	b := make([]byte, 2)
	rand.Read(b)
	n := &atomic.Uint32{}
	n.Store(uint32(b[0])<<8 | uint32(b[1]))
	return n
}()

// pool is a /20, four networks, somewhere in 10.190.0.0/15 and 10.192.0.0/14.
func pool() string {
	n := pools.Add(1)
	return fmt.Sprintf("10.%d.%d.0/20", 190+n/16%6, n%16*16)
}

func (w *world) socket() string { return filepath.Join(w.dir, "s") }
func (w *world) state() string  { return filepath.Join(w.dir, "state") }
func (w *world) logs() string   { return filepath.Join(w.dir, "log") }

// start starts the daemon and waits until it answers.
func (w *world) start() {
	w.t.Helper()
	w.spawn()
	w.await("the daemon to answer", func() error {
		select {
		case <-w.end:
			w.t.Fatalf("the daemon ended:\n%s", w.logTail())
		default:
		}
		v := decode[version](w, "version")
		if v.Daemon == nil {
			return errors.New(v.Error)
		}
		w.id = v.Daemon.Daemon
		return nil
	})
}

func (w *world) daemonArgs() []string {
	return append([]string{"daemon", "--data-dir", w.state(), "--socket", w.socket(),
		"--run-dir", filepath.Join(w.dir, "run"), "--subnet-pool", w.pool}, w.flags...)
}

func (w *world) spawn() {
	w.t.Helper()
	log, err := os.OpenFile(w.logs(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		w.t.Fatal(err)
	}
	defer log.Close()
	w.proc = exec.Command(binary, w.daemonArgs()...)
	w.proc.Stdout, w.proc.Stderr = log, log
	if err := w.proc.Start(); err != nil {
		w.t.Fatal(err)
	}
	proc, end := w.proc, make(chan struct{})
	w.end = end
	go func() {
		_ = proc.Wait() // killed on purpose, mostly
		close(end)
	}()
}

// kill is kill -9 of the daemon, terminate a kill -TERM; both wait for its end.
func (w *world) kill()      { w.signal(syscall.SIGKILL) }
func (w *world) terminate() { w.signal(syscall.SIGTERM) }

func (w *world) signal(s syscall.Signal) {
	if w.proc == nil {
		return
	}
	_ = w.proc.Process.Signal(s) // one that has ended is as good
	select {
	case <-w.end:
	case <-time.After(30 * time.Second):
		w.t.Errorf("the daemon does not end on %v", s)
		_ = w.proc.Process.Kill()
		<-w.end
	}
	w.proc = nil
}

// clean ends the daemon, shows its log if the test failed, and removes what the
// daemon made.
func (w *world) clean() {
	w.kill()
	if w.t.Failed() {
		w.t.Logf("log of the daemon in %s:\n%s", w.ns, w.logTail())
	}
	w.wipe(w.id)
	_ = syscall.Unmount(filepath.Join(w.dir, "run", "memory"), syscall.MNT_DETACH) // after a kill it is still mounted
	if err := os.RemoveAll(w.dir); err != nil {
		w.t.Error(err)
	}
}

func (w *world) logTail() string {
	text, _ := os.ReadFile(w.logs())
	lines := strings.Split(string(text), "\n")
	return strings.Join(lines[max(0, len(lines)-60):], "\n")
}

// result is how a run of the command line ended.
type result struct {
	args     []string
	out, err string
	code     int
}

func (r result) String() string {
	return fmt.Sprintf("stsd %s: exit code %d\nstdout: %s\nstderr: %s", strings.Join(r.args, " "), r.code, r.out, r.err)
}

// command is the command line with this world's daemon and namespace.
func (w *world) command(args ...string) *exec.Cmd {
	cmd := exec.Command(binary, append([]string{"-n", w.ns}, args...)...)
	cmd.Dir = w.dir
	cmd.Env = append(os.Environ(), "STSD_HOST=unix://"+w.socket(), "NO_COLOR=1")
	return cmd
}

// stsd runs the command line to its end.
func (w *world) stsd(args ...string) result {
	w.t.Helper()
	cmd := w.command(args...)
	var out, err bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &err
	var exit *exec.ExitError
	if e := cmd.Run(); e != nil && !errors.As(e, &exit) {
		w.t.Fatalf("stsd %v: %v", args, e)
	}
	return result{args, out.String(), err.String(), cmd.ProcessState.ExitCode()}
}

// ok runs the command line, which must end well, and returns what it prints.
func (w *world) ok(args ...string) string {
	w.t.Helper()
	r := w.stsd(args...)
	if r.code != 0 {
		w.t.Fatal(r)
	}
	return r.out
}

// fails runs the command line, which must end with code and say all of words.
func (w *world) fails(code int, words []string, args ...string) result {
	w.t.Helper()
	r := w.stsd(args...)
	if r.code != code {
		w.t.Errorf("exit code %d, want %d: %v", r.code, code, r)
	}
	for _, word := range words {
		if !strings.Contains(r.out+r.err, word) {
			w.t.Errorf("%q is not said: %v", word, r)
		}
	}
	return r
}

// decode runs the command line with -o json.
func decode[T any](w *world, args ...string) T {
	w.t.Helper()
	var v T
	out := w.ok(append([]string{"-o", "json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &v); err != nil {
		w.t.Fatalf("stsd %v: %v\n%s", args, err, out)
	}
	return v
}

// file writes a file into the world's folder and returns its name, which is
// good for the command line.
func (w *world) file(name, text string) string {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
	return name
}

// patience bounds every wait; a machine that runs other tests as well is slow.
const patience = 2 * time.Minute

// await polls until what holds.
func (w *world) await(what string, holds func() error) {
	w.t.Helper()
	w.awaitFor(patience, what, holds)
}

func (w *world) awaitFor(limit time.Duration, what string, holds func() error) {
	w.t.Helper()
	var err error
	for start := time.Now(); time.Since(start) < limit; time.Sleep(50 * time.Millisecond) {
		if err = holds(); err == nil {
			return
		}
	}
	w.t.Fatalf("waited %s for %s: %v", limit, what, err)
}

// stays checks for as long as d that what holds.
func (w *world) stays(d time.Duration, holds func() error) {
	w.t.Helper()
	for start := time.Now(); time.Since(start) < d; time.Sleep(100 * time.Millisecond) {
		if err := holds(); err != nil {
			w.t.Fatal(err)
		}
	}
}
