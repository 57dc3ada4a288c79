package pods_test

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
	"github.com/stsd/stsd/runtime/pods"
	"github.com/stsd/stsd/runtime/sim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	key  = jobspecs.Key{Namespace: "default", Name: "web"}
	web0 = runtime.PodName{Namespace: "default", Name: "web-0"}
)

// spec is web-0 with one container.
func spec(change ...func(*jobspecs.Container)) jobspecs.PodSpec {
	c := jobspecs.Container{
		Name: "web", Image: "web:1", Pull: jobspecs.PullMissing,
		Mounts:  []jobspecs.Mount{{Claim: "data", Volume: "data-web-0", Path: "/data"}},
		Restart: jobspecs.Restart{First: 0, Initial: time.Second, Max: time.Minute, Reset: 5 * time.Minute},
	}
	for _, f := range change {
		f(&c)
	}
	return jobspecs.PodSpec{
		Set: key, Name: "web-0", Revision: "web-1", Service: "web", Network: "stsd",
		Address: netip.MustParseAddr("10.87.0.10"), TerminationGrace: 10 * time.Second, Containers: []jobspecs.Container{c},
	}
}

func readiness(p jobspecs.Probe) func(*jobspecs.Container) {
	return func(c *jobspecs.Container) { c.Readiness = &p }
}
func liveness(p jobspecs.Probe) func(*jobspecs.Container) {
	return func(c *jobspecs.Container) { c.Liveness = &p }
}
func startup(p jobspecs.Probe) func(*jobspecs.Container) {
	return func(c *jobspecs.Container) { c.Startup = &p }
}

// tcp is a probe with the period and failure threshold.
func tcp(period time.Duration, failures int) jobspecs.Probe {
	return jobspecs.Probe{TCP: &jobspecs.TCPCheck{Port: 80}, Period: period, Timeout: time.Second, SuccessThreshold: 1, FailureThreshold: failures}
}

// rig is an engine on a simulated host.
type rig struct {
	*testing.T
	world *sim.World
	*pods.Engine
	stop  func()
	began time.Time
}

// onHost runs f in a bubble, with web:1 as the program.
func onHost(t *testing.T, p sim.Program, f func(r *rig)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{T: t, world: sim.New(sim.Config{}), began: time.Now()}
		r.world.Program("web:1", p)
		r.must(r.world.Volumes().Create(t.Context(), key, 0, jobspecs.VolumeSpec{Claim: "data", Name: "data-web-0"}))
		r.world.Forget()
		defer func() { r.stop() }()
		r.connect()
		f(r)
		for _, v := range r.world.Violations() {
			t.Errorf("violation: %s", v)
		}
	})
}

// connect runs a new engine on the same host, as a restarted daemon does.
func (r *rig) connect() {
	if r.stop != nil {
		r.stop()
	}
	engine := pods.New(pods.Config{Host: r.world.Host(), Daemon: r.world.Daemon(), Probes: 2})
	r.Engine = engine
	ctx, cancel := context.WithCancel(r.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = engine.Run(ctx)
	}()
	r.stop = func() { cancel(); <-done }
	synctest.Wait()
}

// after lets time pass.
func (r *rig) after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (r *rig) create(s jobspecs.PodSpec) {
	r.Helper()
	if err := r.Create(r.Context(), s); err != nil {
		r.Fatalf("create: %v", err)
	}
	synctest.Wait()
}

func (r *rig) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

func (r *rig) pod() runtime.Pod {
	r.Helper()
	list, err := r.List(r.Context(), key)
	r.must(err)
	if len(list) != 1 {
		return runtime.Pod{Phase: "absent"}
	}
	return list[0]
}

// show is a pod in one line.
func show(p runtime.Pod) string {
	s := string(p.Phase)
	if p.Reason != "" {
		s += " (" + p.Reason + ")"
	}
	if p.Ready {
		s += " ready"
	}
	if !p.ReadyKnown && p.Phase != "absent" {
		s += " ready?"
	}
	if !p.Managed && p.Phase != "absent" {
		s += " unmanaged"
	}
	if p.Restarts > 0 {
		s += fmt.Sprintf(" restarts=%d", p.Restarts)
	}
	return s
}

func (r *rig) want(want string) {
	r.Helper()
	synctest.Wait()
	if got := show(r.pod()); got != want {
		r.Errorf("after %v: pod is %q, want %q (message %q; host: %s)", time.Since(r.began), got, want, r.pod().Message, r.world)
	}
}

func (r *rig) wantHost(want string) {
	r.Helper()
	if got := r.world.String(); got != want {
		r.Errorf("host has %q, want %q", got, want)
	}
}

// writes are the writes so far, with the time of each.
func (r *rig) writes(verb string) string {
	var list []string
	for _, c := range r.world.Writes() {
		if c.Verb == verb {
			list = append(list, c.At.Sub(r.began).String())
		}
	}
	return strings.Join(list, " ")
}

func TestAPodIsMadeAndStarted(t *testing.T) {
	onHost(t, sim.Program{}, func(r *rig) {
		r.create(spec())
		r.want("Running ready")
		r.wantHost("web-0 running")
		var got []string
		for _, c := range r.world.Writes() {
			got = append(got, c.String())
		}
		if want := "create web-0, start web-0"; strings.Join(got, ", ") != want {
			r.Errorf("writes = %q, want %q", got, want)
		}
	})
}

func TestAnIdlePodAsksNothing(t *testing.T) {
	onHost(t, sim.Program{}, func(r *rig) {
		r.create(spec())
		r.world.Forget()
		r.after(time.Hour)
		if n := r.world.Reads() + len(r.world.Writes()); n != 0 {
			r.Errorf("%d calls in an idle hour, want 0", n)
		}
	})
}

func TestADeadContainerIsReplacedWithBackOff(t *testing.T) {
	onHost(t, sim.Program{ExitAfter: 100 * time.Millisecond, ExitCode: 3}, func(r *rig) {
		r.create(spec())
		r.after(4 * time.Second)
		r.want("Backoff (Exited) restarts=3")
		if got, want := r.pod().Message, "it ended with exit code 3"; got != want {
			r.Errorf("message = %q, want %q", got, want)
		}
		r.wantHost("web-0 exited, web-0_previous exited")
		r.after(4 * time.Minute)
		// each start 100 ms after its wait: 0s, 1s, 2s, 4s … and at most 1 m
		want := "0s 100ms 1.2s 3.3s 7.4s 15.5s 31.6s 1m3.7s 2m3.8s 3m3.9s 4m4s"
		if got := r.writes("start"); got != want {
			r.Errorf("started at %s, want %s", got, want)
		}
	})
}

func TestALongRunEndsTheCrashLoop(t *testing.T) {
	onHost(t, sim.Program{ExitAfter: 5 * time.Minute}, func(r *rig) {
		r.create(spec())
		r.after(16 * time.Minute)
		if got, want := r.writes("start"), "0s 5m0s 10m0s 15m0s"; got != want {
			r.Errorf("started at %s, want %s", got, want)
		}
		r.want("Running ready restarts=3")
	})
}

func TestASlowStartIsNotRestarted(t *testing.T) {
	onHost(t, sim.Program{ReadyAfter: 20 * time.Second}, func(r *rig) {
		r.create(spec(startup(tcp(time.Second, 60)), liveness(tcp(time.Second, 3))))
		r.after(19 * time.Second)
		r.want("Starting (StartupPending)")
		r.after(2 * time.Second)
		r.want("Running ready")
		r.after(time.Minute)
		r.want("Running ready")
	})
}

func TestAStartupProbeGivesUp(t *testing.T) {
	onHost(t, sim.Program{NeverReady: true}, func(r *rig) {
		r.create(spec(startup(tcp(time.Second, 5))))
		r.after(4999 * time.Millisecond)
		r.want("Starting (StartupPending)")
		r.after(time.Millisecond)
		r.want("Starting (StartupPending) restarts=1")
		r.after(5 * time.Second)
		r.want("Backoff (StartupFailed) restarts=1")
		if got, want := r.writes("stop"), "5s 10s"; got != want {
			r.Errorf("stopped at %s, want %s", got, want)
		}
	})
}

func TestReadinessIsSeenWhenItHappens(t *testing.T) {
	onHost(t, sim.Program{ReadyAfter: 2 * time.Second}, func(r *rig) {
		r.create(spec(readiness(tcp(10*time.Second, 3))))
		r.want("Running (NotReady)")
		r.after(3 * time.Second) // checks after 20, 40, 80 … 1280, 2560 ms
		r.want("Running ready")
		if got, want := r.pod().ReadySince.Sub(r.began), 2560*time.Millisecond; got != want {
			r.Errorf("ready after %v, want %v", got, want)
		}
	})
}

func TestHurriedFailuresDoNotCount(t *testing.T) {
	onHost(t, sim.Program{ReadyAfter: time.Minute}, func(r *rig) {
		r.connect()
		r.create(spec(readiness(tcp(10*time.Second, 1))))
		r.stop()
		r.connect()
		r.must(r.Create(r.Context(), spec(readiness(tcp(10*time.Second, 1)))))
		r.after(20 * time.Second)
		r.want("Running ready?")
		r.after(time.Second)
		r.want("Running (NotReady)")
	})
}

func TestReadinessIsLostAfterTheThreshold(t *testing.T) {
	onHost(t, sim.Program{}, func(r *rig) {
		r.create(spec(readiness(tcp(10*time.Second, 3))))
		r.after(20 * time.Millisecond)
		r.want("Running ready")
		r.world.Sicken("web-0", "503")
		r.after(29 * time.Second)
		r.want("Running ready")
		r.after(time.Second)
		r.want("Running (NotReady)")
		if got, want := r.pod().Message, "readiness tcp :80: 503"; got != want {
			r.Errorf("message = %q, want %q", got, want)
		}
		r.world.Heal("web-0")
		r.after(10 * time.Second)
		r.want("Running ready")
	})
}

func TestLivenessRestarts(t *testing.T) {
	onHost(t, sim.Program{TermTime: 2 * time.Second}, func(r *rig) {
		r.create(spec(liveness(tcp(time.Second, 3))))
		r.after(10 * time.Second)
		r.world.Sicken("web-0", "hangs")
		r.after(3 * time.Second)
		r.want("Stopping (LivenessFailed) ready")
		r.after(2 * time.Second)
		r.want("Running ready restarts=1")
		r.after(time.Hour)
		r.want("Running ready restarts=1")
	})
}

func TestAnImageHealthcheckIsReadiness(t *testing.T) {
	onHost(t, sim.Program{Healthcheck: []string{"check"}, ReadyAfter: 50 * time.Millisecond}, func(r *rig) {
		r.create(spec())
		r.want("Running (NotReady)")
		r.after(100 * time.Millisecond)
		r.want("Running ready")
		r.connect()
		r.create(spec())
		r.want("Running ready")
		r.world.Sicken("web-0", "sick")
		r.after(30 * time.Second)
		r.want("Running (NotReady)")
		if got, want := r.pod().Message, "readiness exec check: sick"; got != want {
			r.Errorf("message = %q, want %q", got, want)
		}
	})
}

func TestStopCutsAPullShort(t *testing.T) {
	onHost(t, sim.Program{Remote: true, PullTime: time.Hour}, func(r *rig) {
		r.create(spec())
		r.after(time.Second)
		r.want("Pulling")
		r.must(r.Stop(r.Context(), web0, runtime.StopOptions{Grace: time.Minute}))
		r.want("Stopped (StopRequested)")
		r.must(r.Remove(r.Context(), web0, false))
		r.want("absent")
		r.wantHost("")
	})
}

func TestStopWaitsForTheGraceAndALaterStopShortensIt(t *testing.T) {
	onHost(t, sim.Program{IgnoresTerm: true}, func(r *rig) {
		r.create(spec())
		r.must(r.Stop(r.Context(), web0, runtime.StopOptions{Grace: time.Minute}))
		if got, want := show(r.pod()), "Stopping (StopRequested) ready"; got != want {
			r.Errorf("pod is %q, want %q", got, want)
		}
		if err := r.Create(r.Context(), spec()); !errors.Is(err, runtime.ErrConflict) {
			r.Errorf("create while stopping: %v, want ErrConflict", err)
		}
		if err := r.Remove(r.Context(), web0, true); !errors.Is(err, runtime.ErrRunning) {
			r.Errorf("remove while stopping: %v, want ErrRunning", err)
		}
		r.after(10 * time.Second)
		r.must(r.Stop(r.Context(), web0, runtime.StopOptions{Grace: 5 * time.Second}))
		r.after(5 * time.Second)
		r.want("Stopped (StopRequested)")
	})
}

func TestALaterStopDoesNotPutOffTheKill(t *testing.T) {
	onHost(t, sim.Program{IgnoresTerm: true}, func(r *rig) {
		r.create(spec())
		r.must(r.Stop(r.Context(), web0, runtime.StopOptions{Grace: 20 * time.Second}))
		r.after(10 * time.Second)
		r.must(r.Stop(r.Context(), web0, runtime.StopOptions{Grace: time.Hour}))
		r.after(10 * time.Second)
		r.want("Stopped (StopRequested)")
	})
}

func TestReadinessIsProbedWhileStopping(t *testing.T) {
	onHost(t, sim.Program{IgnoresTerm: true}, func(r *rig) {
		r.create(spec(readiness(tcp(time.Second, 1)), liveness(tcp(time.Second, 1))))
		r.after(time.Second)
		r.must(r.Stop(r.Context(), web0, runtime.StopOptions{Grace: time.Minute}))
		r.want("Stopping (StopRequested) ready")
		r.world.Sicken("web-0", "closed")
		r.after(2 * time.Second)
		r.want("Stopping (StopRequested)")
		if got, want := r.writes("stop"), "1s"; got != want {
			r.Errorf("stopped at %s, want %s", got, want)
		}
	})
}

func TestAHandedOverPodIsNotTouched(t *testing.T) {
	onHost(t, sim.Program{}, func(r *rig) {
		s := spec(readiness(tcp(10*time.Second, 3)))
		r.create(s)
		r.after(time.Second)
		r.connect()
		r.want("Running ready? unmanaged")
		r.world.Forget()
		r.must(r.Create(r.Context(), s))
		if got, want := show(r.pod()), "Running ready?"; got != want {
			r.Errorf("pod is %q, want %q", got, want)
		}
		r.want("Running ready")
		if n := len(r.world.Writes()); n != 0 {
			r.Errorf("%d writes, want 0", n)
		}
		other := s
		other.Revision = "web-2"
		if err := r.Create(r.Context(), other); !errors.Is(err, runtime.ErrConflict) {
			r.Errorf("create of another revision: %v, want ErrConflict", err)
		}
	})
}

func TestAHandOverDuringAStartupKeepsItsBudget(t *testing.T) {
	onHost(t, sim.Program{ReadyAfter: 20 * time.Second}, func(r *rig) {
		s := spec(startup(tcp(time.Second, 30)), liveness(tcp(time.Second, 3)))
		r.create(s)
		r.after(5 * time.Second)
		r.connect()
		r.create(s)
		r.after(14 * time.Second)
		r.want("Running ready?")
		r.after(3 * time.Second)
		r.want("Running ready")
	})
}

func TestWhatTheEngineRestartKilledIsThePlanners(t *testing.T) {
	onHost(t, sim.Program{}, func(r *rig) {
		r.create(spec())
		r.after(time.Second)
		r.world.RestartEngine(3 * time.Second)
		r.after(time.Second)
		if _, err := r.List(r.Context(), key); !errors.Is(err, runtime.ErrUnreachable) {
			r.Errorf("list: %v, want ErrUnreachable", err)
		}
		if err := r.Create(r.Context(), spec()); !errors.Is(err, runtime.ErrUnreachable) {
			r.Errorf("create: %v, want ErrUnreachable", err)
		}
		r.after(5 * time.Second)
		r.want("Stopped (EngineRestarted)")
		r.must(r.Remove(r.Context(), web0, true))
		r.wantHost("web-0_previous exited")
		r.create(spec())
		r.want("Running ready restarts=1")
	})
}

func TestARunThatOutlivesTheConnectionStaysAsItWas(t *testing.T) {
	onHost(t, sim.Program{}, func(r *rig) {
		r.create(spec(readiness(tcp(10*time.Second, 3))))
		r.after(time.Second)
		r.world.Disconnect(3 * time.Second)
		r.after(10 * time.Second)
		r.want("Running ready")
	})
}

func TestARemovedContainerIsThePlanners(t *testing.T) {
	onHost(t, sim.Program{}, func(r *rig) {
		r.create(spec())
		r.world.RemoveContainer("web-0")
		r.want("Stopped (Removed)")
		r.after(time.Minute)
		r.wantHost("")
		r.must(r.Remove(r.Context(), web0, true))
		r.create(spec())
		r.want("Running ready")
	})
}

func TestAForeignNameIsNamedAndLeftAlone(t *testing.T) {
	onHost(t, sim.Program{}, func(r *rig) {
		r.world.ForeignContainer("web-0", netip.Addr{}, nil)
		r.create(spec())
		r.after(10 * time.Second)
		r.want("Failed (NameTaken)")
		if got, want := r.pod().Message, "container web-0 exists and is not ours (made by somebody else)"; got != want {
			r.Errorf("message = %q, want %q", got, want)
		}
		if got, want := r.writes("create"), "0s 1s 3s 7s"; got != want {
			r.Errorf("tried at %s, want %s", got, want)
		}
		r.wantHost("web-0 running")
		r.world.RemoveContainer("web-0")
		r.after(30 * time.Second)
		r.want("Running ready")
	})
}

// The text that a user reads has its time from here: it stands still while nothing
// happens, so that what is shown changes with each try alone.
func TestAPodSaysWhenItIsTriedAgain(t *testing.T) {
	next := func(r *rig, want string) {
		r.Helper()
		got := "never"
		if at := r.pod().NextTry; !at.IsZero() {
			got = at.Sub(r.began).Round(100 * time.Millisecond).String()
		}
		if got != want {
			r.Errorf("next try at %s, want %s; it is %s", got, want, show(r.pod()))
		}
	}
	t.Run("after an end", func(t *testing.T) {
		onHost(t, sim.Program{ExitAfter: 100 * time.Millisecond}, func(r *rig) {
			r.create(spec())
			next(r, "never")
			r.after(4 * time.Second)
			next(r, "7.4s")
			r.after(3 * time.Second)
			next(r, "7.4s")
			r.after(420 * time.Millisecond)
			next(r, "never")
		})
	})
	t.Run("after a failure", func(t *testing.T) {
		onHost(t, sim.Program{}, func(r *rig) {
			r.create(spec(func(c *jobspecs.Container) { c.Image = "typo:1" }))
			r.after(time.Minute)
			next(r, "1m10s")
			r.world.Program("typo:1", sim.Program{})
			r.after(time.Minute)
			next(r, "never")
		})
	})
}

func TestAnUnknownImageFailsAndRecovers(t *testing.T) {
	onHost(t, sim.Program{}, func(r *rig) {
		r.create(spec(func(c *jobspecs.Container) { c.Image = "typo:1" }))
		r.after(time.Minute)
		r.want("Failed (ImageUnknown)")
		if got, want := r.writes("pull"), "0s 10s 30s"; got != want {
			r.Errorf("pulled at %s, want %s", got, want)
		}
		r.world.Program("typo:1", sim.Program{})
		r.after(time.Minute)
		r.want("Running ready")
	})
}

func TestPullNeverWaitsForTheImage(t *testing.T) {
	onHost(t, sim.Program{Remote: true}, func(r *rig) {
		r.create(spec(func(c *jobspecs.Container) { c.Pull = jobspecs.PullNever }))
		r.after(time.Minute)
		r.want("Failed (ImageMissing)")
		r.world.Program("web:1", sim.Program{})
		r.after(time.Minute)
		r.want("Running ready")
		if got := r.writes("pull"); got != "" {
			r.Errorf("pulled at %s, want never", got)
		}
	})
}

func TestAContainerThatCannotBeStartedIsMadeAgain(t *testing.T) {
	bad := sim.Program{StartError: &pods.Problem{Reason: runtime.ReasonBadCommand, Message: "no such file: /bin/nope"}}
	onHost(t, bad, func(r *rig) {
		r.create(spec())
		r.after(2 * time.Second)
		r.want("Failed (BadCommand)")
		r.wantHost("")
		r.world.Program("web:1", sim.Program{})
		r.after(10 * time.Second)
		r.want("Running ready")
	})
}

// Any reply can be lost, and any call can fail: the end is the same.
func TestLostReplies(t *testing.T) {
	for _, when := range []int{sim.Before, sim.After} {
		for _, verb := range []string{"watch", "list", "inspect", "image", "pull", "create", "start", "stop", "remove", "rename"} {
			for _, times := range []int{1, 3} {
				t.Run(fmt.Sprintf("%s-%d-%d", verb, when, times), func(t *testing.T) {
					onHost(t, sim.Program{Remote: true}, func(r *rig) {
						r.world.Fail(sim.Fault{Verb: verb, When: when, Times: times})
						r.connect()
						r.after(5 * time.Second)
						r.create(spec())
						r.after(5 * time.Minute)
						r.want("Running ready")
						for range 2 {
							r.world.Kill("web-0")
							r.after(10 * time.Minute)
						}
						r.want("Running ready restarts=2")
						r.must(r.Stop(r.Context(), web0, runtime.StopOptions{Grace: time.Second}))
						r.after(time.Minute)
						r.want("Stopped (StopRequested) restarts=2")
						for range 8 {
							if r.Remove(r.Context(), web0, false) == nil {
								break
							}
						}
						r.want("absent")
						r.wantHost("")
					})
				})
			}
		}
	}
}

func TestTheLastEndedContainerIsKept(t *testing.T) {
	onHost(t, sim.Program{}, func(r *rig) {
		r.create(spec())
		r.world.Kill("web-0")
		r.want("Running ready restarts=1")
		r.wantHost("web-0 running, web-0_previous exited")
		c := r.pod().Containers[0]
		if c.ExitCode == nil || *c.ExitCode != 137 || c.Signal != "SIGKILL" {
			r.Errorf("last end = %v %q, want 137 SIGKILL", c.ExitCode, c.Signal)
		}
		r.must(r.Stop(r.Context(), web0, runtime.StopOptions{Grace: time.Second}))
		r.after(0)
		r.must(r.Remove(r.Context(), web0, true))
		r.wantHost("web-0_previous exited")
		r.must(r.Remove(r.Context(), web0, false))
		r.wantHost("")
	})
}

func TestCountAndBackOffOutliveTheDaemon(t *testing.T) {
	onHost(t, sim.Program{ExitAfter: 100 * time.Millisecond}, func(r *rig) {
		r.create(spec())
		r.after(4 * time.Second) // the fourth container ended at 3.4 s, the next is due at 7.4 s
		r.want("Backoff (Exited) restarts=3")
		r.connect()
		r.want("Stopped (EngineRestarted) unmanaged restarts=3")
		r.must(r.Remove(r.Context(), web0, true))
		r.create(spec())
		r.want("Backoff (Exited) restarts=4")
		r.after(3300 * time.Millisecond)
		r.want("Backoff (Exited) restarts=4")
		r.after(100 * time.Millisecond)
		r.want("Running ready restarts=4")
		if got, want := r.writes("start"), "0s 100ms 1.2s 3.3s 7.4s"; got != want {
			r.Errorf("started at %s, want %s", got, want)
		}
	})
}

func TestAnotherRevisionBeginsToCountAnew(t *testing.T) {
	onHost(t, sim.Program{}, func(r *rig) {
		r.create(spec())
		r.world.Kill("web-0")
		r.want("Running ready restarts=1")
		r.must(r.Stop(r.Context(), web0, runtime.StopOptions{Grace: time.Second}))
		r.after(0)
		r.must(r.Remove(r.Context(), web0, true))
		s := spec()
		s.Revision = "web-2"
		r.create(s)
		r.want("Running ready")
	})
}

func TestAPausedContainerRunsAndIsNotReady(t *testing.T) {
	onHost(t, sim.Program{}, func(r *rig) {
		r.create(spec(liveness(tcp(time.Second, 1))))
		r.world.Pause("web-0")
		r.after(time.Minute)
		r.want("Running (ContainerPaused)")
		r.world.Unpause("web-0")
		r.want("Running ready")
	})
}

func TestAKeptContainerStartedByHandIsStopped(t *testing.T) {
	onHost(t, sim.Program{ExitAfter: time.Second}, func(r *rig) {
		r.create(spec())
		r.after(2100 * time.Millisecond) // the second has ended, and waits
		r.want("Backoff (Exited) restarts=1")
		r.world.Restart("web-0_previous")
		r.want("Backoff (Exited) restarts=1")
		r.wantHost("web-0 exited, web-0_previous exited")
	})
}

func TestAContainerStartedByHandRunsAgain(t *testing.T) {
	onHost(t, sim.Program{}, func(r *rig) {
		r.create(spec())
		r.world.RestartEngine(time.Second)
		r.after(5 * time.Second)
		r.want("Stopped (EngineRestarted)")
		r.world.Restart("web-0")
		r.want("Running ready")
	})
}

func TestARenamedContainerIsStillThePods(t *testing.T) {
	onHost(t, sim.Program{}, func(r *rig) {
		r.create(spec())
		r.world.Forget()
		r.world.Rename("web-0", "mine")
		r.want("Running ready")
		r.wantHost("web-0 running")
		r.wantDeeds("0s rename mine", "create", "start", "stop", "remove", "rename")
		r.connect()
		r.world.Rename("web-0", "mine")
		r.want("Running ready? unmanaged") // it is left alone until its spec is handed over
		r.wantHost("mine running")
		r.must(r.Stop(r.Context(), web0, runtime.StopOptions{Grace: time.Second}))
		r.after(0)
		r.must(r.Remove(r.Context(), web0, false))
		r.wantHost("")
	})
}

func TestARunningContainerIsNoKeptOneWhateverItIsCalled(t *testing.T) {
	onHost(t, sim.Program{}, func(r *rig) {
		r.create(spec())
		before, _ := r.world.Container("web-0")
		r.world.Rename("web-0", "web-0_previous")
		r.want("Running ready")
		r.wantHost("web-0 running")
		r.connect()
		r.world.Rename("web-0", "web-0_previous")
		r.connect()
		r.want("Running ready? unmanaged")
		r.create(spec())
		r.want("Running ready")
		r.wantHost("web-0 running")
		if now, _ := r.world.Container("web-0"); now.ID != before.ID || !now.StartedAt.Equal(before.StartedAt) {
			r.Errorf("container = %+v, was %+v", now, before)
		}
	})
}

func TestEveryPartThatWasRenamedGetsItsNameBack(t *testing.T) {
	onHost(t, sim.Program{}, func(r *rig) {
		r.world.Program("prepare", sim.Program{ExitAfter: time.Second})
		for _, image := range []string{"side", "web", "db"} {
			r.world.Program(image, sim.Program{})
		}
		s := pod(initc("prepare"), side("side"), mainc("web"), mainc("db"))
		r.create(s)
		r.after(10 * time.Second)
		host := r.world.String()
		runs := r.world.Containers()
		for i, c := range runs {
			r.world.Rename(c.Name, fmt.Sprintf("mine-%d", i))
		}
		r.after(0)
		r.wantHost(host)
		for i, c := range r.world.Containers() {
			if c.ID != runs[i].ID {
				r.Errorf("%s is another container", c.Name)
			}
		}
		r.want("Running ready")
	})
}

func TestAPausedContainerGetsItsNameBackToo(t *testing.T) {
	onHost(t, sim.Program{}, func(r *rig) {
		r.create(spec())
		r.world.Pause("web-0")
		r.world.Rename("web-0", "mine")
		r.want("Running (ContainerPaused)")
		r.wantHost("web-0 paused")
	})
}

func TestAContainerWhoseNameIsTakenRunsOnAndSaysSo(t *testing.T) {
	onHost(t, sim.Program{}, func(r *rig) {
		r.create(spec())
		r.connect()
		r.world.Rename("web-0", "mine")
		r.world.ForeignContainer("web-0", netip.Addr{}, nil)
		r.world.Forget()
		r.create(spec())
		r.want("Running (ContainerRenamed) ready")
		if got, want := r.pod().Message, "its container was renamed to mine and does not get its name back: container web-0 exists and is not ours (made by somebody else)"; got != want {
			r.Errorf("message = %q, want %q", got, want)
		}
		r.after(time.Hour)
		if n := len(r.world.Writes()); n > 130 { // a try every 30 s
			r.Errorf("%d tries in an hour", n)
		}
		r.wantHost("mine running, web-0 running")

		r.world.Kill("mine") // its end is not kept up by its name
		r.want("Failed (NameTaken) restarts=1")
		r.wantHost("web-0 running, web-0_previous exited")
		r.world.RemoveContainer("web-0")
		r.want("Running ready restarts=1")
	})
}

func TestANewRenderingIsKeptForTheNextStart(t *testing.T) {
	onHost(t, sim.Program{}, func(r *rig) {
		first, second := spec(), spec(func(c *jobspecs.Container) { c.Env = map[string]string{"PEERS": "3"} })
		r.create(first)
		r.create(second)
		p := r.pod()
		if p.Rendering != second.Digest() || p.Started != first.Digest() {
			r.Errorf("rendering, started = %s, %s, want %s, %s", p.Rendering, p.Started, second.Digest(), first.Digest())
		}
		r.world.Kill("web-0")
		r.want("Running ready restarts=1")
		if p := r.pod(); p.Started != second.Digest() {
			r.Errorf("started = %s, want %s", p.Started, second.Digest())
		}
	})
}

// A readiness probe that takes longer than its period is always due when it answers.
func TestASlowExecProbeLeavesTheOthersTheirTurn(t *testing.T) {
	exec := func(what string, period time.Duration) *jobspecs.Probe {
		return &jobspecs.Probe{Exec: []string{what}, Period: period, Timeout: 5 * time.Second, SuccessThreshold: 1, FailureThreshold: 3}
	}
	hangs := func(p jobspecs.Probe, up time.Duration) error {
		if p.Exec[0] == "alive" && up > time.Minute {
			return errors.New("deadlock")
		}
		return nil
	}
	onHost(t, sim.Program{CheckTime: 3 * time.Second, Says: "primary", Answer: hangs}, func(r *rig) {
		r.create(spec(func(c *jobspecs.Container) {
			c.Readiness, c.Liveness, c.Role = exec("ready", time.Second), exec("alive", 10*time.Second), exec("role", time.Second)
		}))
		r.after(30 * time.Second)
		if got := r.pod().Role; got != "primary" {
			r.Errorf("role = %q after 30 s", got)
		}
		r.world.Say("web-0", "replica")
		r.after(15 * time.Second)
		if got := r.pod().Role; got != "replica" {
			r.Errorf("role = %q 15 s after it changed", got)
		}
		r.after(75 * time.Second)
		if got := r.pod().Restarts; got != 1 {
			r.Errorf("restarts = %d: its liveness probe was not asked", got)
		}
	})
}

func TestExecProbesWaitForEachOther(t *testing.T) {
	onHost(t, sim.Program{CheckTime: time.Second}, func(r *rig) {
		for i := range 4 {
			s := spec(readiness(jobspecs.Probe{Exec: []string{"ping"}, Timeout: 5 * time.Second, Period: time.Minute}))
			s.Ordinal, s.Name = i, jobspecs.MemberName("web", i)
			s.Address, s.Containers[0].Mounts = netip.Addr{}, nil
			r.create(s)
		}
		var got []string
		for range 4 {
			r.after(550 * time.Millisecond)
			list, _ := r.List(r.Context(), key)
			n := 0
			for _, p := range list {
				if p.Ready {
					n++
				}
			}
			got = append(got, fmt.Sprint(n))
		}
		if got, want := strings.Join(got, " "), "0 2 2 4"; got != want { // two at a time: Config.Probes
			r.Errorf("ready = %s, want %s", got, want)
		}
	})
}

func TestAWatcherIsToldAndNeverHoldsAnybodyUp(t *testing.T) {
	onHost(t, sim.Program{ExitAfter: time.Millisecond}, func(r *rig) {
		ctx, cancel := context.WithCancel(r.Context())
		hints, err := r.Watch(ctx)
		r.must(err)
		r.create(spec(func(c *jobspecs.Container) { c.Restart.Max = time.Second }))
		r.after(time.Hour)
		var last jobspecs.Key
		n := 0
		for len(hints) > 0 {
			last, n = <-hints, n+1
		}
		if n == 0 || last != (jobspecs.Key{}) {
			r.Errorf("%d hints, the last %v; want the zero key at the end of a full queue", n, last)
		}
		cancel()
		synctest.Wait()
		if _, open := <-hints; open {
			r.Error("the channel is open after its context ended")
		}
	})
}

func TestAForeignPreviousNameDoesNotKeepAPodDown(t *testing.T) {
	onHost(t, sim.Program{}, func(r *rig) {
		r.world.ForeignContainer("web-0_previous", netip.Addr{}, nil)
		r.create(spec())
		r.world.Kill("web-0")
		r.after(time.Minute)
		r.want("Running ready restarts=1")
		r.must(r.Stop(r.Context(), web0, runtime.StopOptions{Grace: time.Second}))
		r.after(0)
		r.must(r.Remove(r.Context(), web0, true))
		r.wantHost("web-0_previous running")
	})
}

func TestAStopDoesNotWaitForALook(t *testing.T) {
	onHost(t, sim.Program{}, func(r *rig) {
		r.create(spec())
		r.world.Fail(sim.Fault{Verb: "inspect", Times: -1})
		r.world.Pause("web-0")
		r.after(time.Second)
		r.must(r.Stop(r.Context(), web0, runtime.StopOptions{Grace: time.Second}))
		r.after(0)
		r.wantHost("web-0 exited")
		r.world.Mend()
		r.after(time.Minute)
		r.want("Stopped (StopRequested)")
	})
}

func TestATakenPortIsNamedAndWaitedFor(t *testing.T) {
	onHost(t, sim.Program{}, func(r *rig) {
		port := jobspecs.Port{Name: "http", Container: 80, Host: 8080, Protocol: "tcp"}
		r.world.ForeignPort(port, "nginx (pid 7)")
		r.create(spec(func(c *jobspecs.Container) { c.Ports = []jobspecs.Port{port} }))
		r.after(10 * time.Second)
		r.want("Failed (PortTaken)")
		if got, want := r.pod().Message, "port 8080/tcp of the host is taken by nginx (pid 7)"; got != want {
			r.Errorf("message = %q, want %q", got, want)
		}
		r.world.ForeignPort(port, "")
		r.after(30 * time.Second)
		r.want("Running ready")
	})
}
