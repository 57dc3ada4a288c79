package sim_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/runtime/enginetest"
	"github.com/stsd/stsd/runtime/sim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestEngine(t *testing.T) {
	enginetest.RunIn(t, synctest.Test, func(t *testing.T) enginetest.Fixture {
		world := sim.New(sim.Config{})
		world.Program("serve", sim.Program{Answer: onPort(8080)})
		world.Program("exit", sim.Program{ExitAfter: 1, ExitCode: 3})
		world.Program("stubborn", sim.Program{IgnoresTerm: true})
		engine := sim.NewEngine(world)
		run(t, engine)
		t.Cleanup(func() {
			for _, v := range world.Violations() {
				t.Errorf("violation: %s", v)
			}
		})
		return enginetest.Fixture{
			Engine: engine,
			Images: map[string]string{enginetest.Serve: "serve", enginetest.Exit: "exit", enginetest.Stubborn: "stubborn", enginetest.Missing: "missing:1"},
			Complete: func(s *jobspecs.PodSpec) {
				s.Address = netip.AddrFrom4([4]byte{10, 87, 0, byte(10 + s.Ordinal)})
			},
		}
	})
}

// run runs an engine until the test ends.
func run(t *testing.T, e sim.Engine) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = e.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-done })
	synctest.Wait()
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
