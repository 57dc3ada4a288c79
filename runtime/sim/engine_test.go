package sim_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/runtime/enginetest"
	"github.com/stsd/stsd/runtime/pods"
	"github.com/stsd/stsd/runtime/sim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestEngine(t *testing.T) {
	enginetest.RunIn(t, synctest.Test, func(t *testing.T) enginetest.Fixture {
		world := sim.New(sim.Config{})
		programs := map[string]enginetest.Program{enginetest.Missing: {Image: "missing:1"}}
		for name, p := range suite {
			p.Hook, p.Says = hook, "primary"
			world.Program(name, p)
			programs[name] = enginetest.Program{Image: name}
		}
		engine := sim.NewEngine(world)
		stop := run(t, engine)
		t.Cleanup(func() {
			for _, v := range world.Violations() {
				t.Errorf("violation: %s", v)
			}
		})
		return enginetest.Fixture{
			Engine: engine, Programs: programs, Commands: commands, Line: "^et-[0-9]+ started$",
			Complete: func(s *jobspecs.PodSpec) {
				s.Address = netip.AddrFrom4([4]byte{10, 87, 0, byte(10 + s.Ordinal)})
			},
			Kill:   func(_ *testing.T, name string) { world.Kill(name) },
			Rename: func(_ *testing.T, name, to string) { world.Rename(name, to) },
			Foreign: func(_ *testing.T, name string) func() {
				world.ForeignContainer(name, netip.Addr{}, nil)
				return func() { world.RemoveContainer(name) }
			},
			Again: func(t *testing.T) runtime.Engine {
				stop()
				engine := sim.NewEngine(world)
				run(t, engine)
				return engine
			},
			Scratch: func(*testing.T) (names []string) {
				for _, d := range world.Scratches() {
					names = append(names, d.Name)
				}
				return names
			},
		}
	})
}

// suite is what the programs of enginetest do.
var suite = map[string]sim.Program{
	enginetest.Serve:    {Answer: answers},
	enginetest.Wait:     {Answer: answers},
	enginetest.Done:     {ExitAfter: 1},
	enginetest.Exit:     {ExitAfter: 1, ExitCode: 3},
	enginetest.Brief:    {ExitAfter: time.Second, ExitCode: 3},
	enginetest.Stubborn: {IgnoresTerm: true},
}

// answers is what a probe of port 8080, or of a command, gets to hear.
func answers(p jobspecs.Probe, up time.Duration) error {
	if len(p.Exec) > 0 {
		_, err := hook(pods.Hook{Handler: jobspecs.Handler{Exec: p.Exec}})
		return err
	}
	return onPort(8080)(p, up)
}

var commands = enginetest.Commands{
	True: []string{"true"}, False: []string{"false"}, Hang: []string{"hang"}, Role: []string{"role"},
	Reason: func(want string) []string { return []string{"reason", want} },
}

// hook runs one of commands.
func hook(h pods.Hook) (takes time.Duration, err error) {
	argv := h.Handler.Exec
	switch {
	case argv[0] == "hang":
		return -1, nil
	case argv[0] == "false", argv[0] == "reason" && h.Env["STSD_REASON"] != argv[1]:
		return 0, errors.New("exit code 1")
	}
	return 0, nil
}

// run runs an engine until the test ends, or stop is called.
func run(t *testing.T, e sim.Engine) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = e.Run(ctx)
	}()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	synctest.Wait()
	return stop
}

func TestAMemberCanBeLookedInto(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world := sim.New(sim.Config{})
		world.Program("web:1", sim.Program{})
		engine := sim.NewEngine(world)
		run(t, engine)
		port := jobspecs.Port{Host: 8080, Protocol: "tcp"}
		name := runtime.PodName{Namespace: "default", Name: "web-0"}
		if err := engine.Create(t.Context(), jobspecs.PodSpec{
			Set: web, Name: "web-0", Revision: "web-1", Network: "stsd",
			Containers: []jobspecs.Container{{Name: "web", Image: "web:1", Ports: []jobspecs.Port{port}}},
		}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		var out strings.Builder
		code, err := engine.Exec(t.Context(), name, runtime.ExecOptions{Command: []string{"hostname"}, Stdout: &out})
		logs := engine.Logs(t.Context(), name, runtime.LogOptions{}, &out, nil)
		id, err2 := engine.ImageID(t.Context(), "web:1")
		got := fmt.Sprintf("%d %q %s %q %q", code, out.String(), id,
			engine.PortOwner(t.Context(), name, port), engine.PortOwner(t.Context(), runtime.PodName{Name: "other"}, port))
		want := `0 "web-0\nweb-0 started\n" sha256:web:1@1 "" "container web-0"`
		if err := errors.Join(err, err2, logs); err != nil || got != want {
			t.Errorf("saw %s, %v, want %s", got, err, want)
		}
	})
}
