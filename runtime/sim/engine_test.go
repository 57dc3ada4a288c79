package sim_test

import (
	"context"
	"net/netip"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/stsd/stsd/jobspecs"
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
