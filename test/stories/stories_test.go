// Package stories_test runs the scripts in test/testdata/script: what a user
// types, and what stsd answers. They run on the simulator, and, where
// STSD_TEST_DOCKER=1 says so, the same files on Docker.
package stories_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

var binary string // folder of the stsd that is tried

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "stsd-stories")
	if err != nil {
		panic(err)
	}
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "stsd"), "../../cmd/stsd")
	build.Stdout, build.Stderr = os.Stdout, os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		os.Exit(1)
	}
	binary = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

func TestStoriesOnTheSimulator(t *testing.T) { play(t, "sim") }

func TestStoriesOnDocker(t *testing.T) {
	if os.Getenv("STSD_TEST_DOCKER") != "1" {
		t.Skip("needs Docker: set STSD_TEST_DOCKER=1")
	}
	if testing.Short() {
		t.Skip("the simulator's run is the short one")
	}
	if out, err := exec.Command("docker", "image", "inspect", "stsd-demo:1", "stsd-demo:2").CombinedOutput(); err != nil {
		t.Skipf("needs the demo images (test/images/demo.sh): %s", out)
	}
	play(t, "docker")
}

// play runs every script. A script sees NS, a namespace of its own; PREFIX, how
// its containers are named; and ENGINE.
func play(t *testing.T, engine string) {
	testscript.Run(t, testscript.Params{
		Dir: "../testdata/script",
		Setup: func(e *testscript.Env) error {
			ns := fmt.Sprintf("t%08x", rand.Uint32())
			s := &stage{engine: engine, dir: e.WorkDir, ns: ns, pool: fmt.Sprintf("10.%d.%d.0/22", 200+rand.IntN(40), rand.IntN(64)*4)}
			socket, err := shortSocket(e)
			if err != nil {
				return err
			}
			s.socket = socket
			e.Setenv("PATH", binary+string(os.PathListSeparator)+e.Getenv("PATH"))
			e.Setenv("NS", ns)
			e.Setenv("ENGINE", engine)
			e.Setenv("SOCKET", socket)
			e.Setenv("STSD_HOST", "unix://"+socket)
			e.Setenv("NO_COLOR", "1")
			e.Values[key{}] = s
			e.Defer(func() { s.clear(e.T()) })
			if engine == "docker" {
				s.witness, err = watch(ns)
			}
			return err
		},
		Condition: func(cond string) (bool, error) { return cond == engine, nil },
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"daemon": func(ts *testscript.TestScript, neg bool, args []string) {
				ts.Check(ts.Value(key{}).(*stage).daemon(args))
			},
			"until": until,
			"lives": func(ts *testscript.TestScript, neg bool, args []string) {
				ts.Check(ts.Value(key{}).(*stage).lives(args))
			},
			"saw": func(ts *testscript.TestScript, neg bool, args []string) {
				ts.Check(ts.Value(key{}).(*stage).saw(args))
			},
		},
	})
}

type key struct{}

// stage is the daemon of one script.
type stage struct {
	engine, dir, ns, pool, socket string
	cmd                           *exec.Cmd
	witness                       *witness // of Docker
}

// shortSocket gives a path that fits into a socket's address.
func shortSocket(e *testscript.Env) (string, error) {
	dir, err := os.MkdirTemp("", "s")
	if err != nil {
		return "", err
	}
	e.Defer(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "s"), nil
}

// daemon is the command of that name: start, stop (SIGTERM), kill (SIGKILL).
func (s *stage) daemon(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("usage: daemon start|stop|kill")
	}
	switch args[0] {
	case "start":
		return s.start()
	case "stop":
		return s.end(syscall.SIGTERM)
	case "kill":
		return s.end(syscall.SIGKILL)
	}
	return fmt.Errorf("daemon %s: want start, stop or kill", args[0])
}

func (s *stage) start() error {
	log, err := os.OpenFile(filepath.Join(s.dir, "daemon.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	s.cmd = exec.Command(filepath.Join(binary, "stsd"), "daemon", "--engine", s.engine, "--data-dir", filepath.Join(s.dir, "data"),
		"--run-dir", filepath.Join(filepath.Dir(s.socket), "run"), "--socket", s.socket, "--subnet-pool", s.pool)
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := s.cmd.Start(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		if c, err := net.Dial("unix", s.socket); err == nil {
			return c.Close()
		}
		time.Sleep(10 * time.Millisecond) // no event tells when a socket is there
	}
	text, _ := os.ReadFile(filepath.Join(s.dir, "daemon.log"))
	return fmt.Errorf("the daemon does not answer:\n%s", text)
}

func (s *stage) end(sig syscall.Signal) error {
	if s.cmd == nil {
		return nil
	}
	err := s.cmd.Process.Signal(sig)
	_ = s.cmd.Wait() // killed is what it is meant to be
	s.cmd = nil
	return err
}

// clear removes what the script made, and nothing else. A simulator that saw
// what is promised never to happen fails the script.
func (s *stage) clear(t testscript.T) {
	_ = s.end(syscall.SIGTERM)
	if s.engine != "docker" {
		s.checkPromises(t)
		return
	}
	s.witness.end()
	filter := "label=stsd.namespace=" + s.ns
	for _, kind := range [][]string{{"container", "ls", "-aq"}, {"volume", "ls", "-q"}, {"network", "ls", "-q"}} {
		out, _ := exec.Command("docker", append(kind, "--filter", filter)...).Output()
		for _, id := range strings.Fields(string(out)) {
			rm := []string{kind[0], "rm", id}
			if kind[0] == "container" {
				rm = []string{"container", "rm", "-f", id}
			}
			_ = exec.Command("docker", rm...).Run()
		}
	}
}

// checkPromises fails the script when a simulator of it said at its end that a
// promise was broken.
func (s *stage) checkPromises(t testscript.T) {
	text, _ := os.ReadFile(filepath.Join(s.dir, "daemon.log"))
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "promise broken") {
			t.Fatal(line)
		}
	}
}
