package pods_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/runtime/sim"
)

func TestInitContainersAsAKubeletHasThem(t *testing.T) {
	short := programs{"init": {ExitAfter: time.Second}, "init2": {ExitAfter: time.Second}}
	done := sim.Program{ExitAfter: 1}
	playAll(t, []scenario{
		{"Q1 Q2 R1 R2", "given two init containers, when the pod starts, then each ends before the next begins, and the mains wait for all", short, func(r *rig) {
			r.create(pod(initc("init"), initc("init2"), mainc("web"), mainc("db")))
			r.want("Initializing (InitRunning)")
			r.after(time.Second)
			r.wantParts("init exited, init2 running, web waiting, db waiting")
			r.after(time.Second)
			r.want("Running ready")
			r.wantSomeOrder("0s start web-0_sandbox, 0s start web-0_init, 1s start web-0_init2, 2s start web-0, 2s start web-0_db", "start")
		}},
		{"Q3", "given an init container that fails, when it was tried three times, then the main has not begun; when it succeeds, then it does", programs{"init": {ExitAfter: time.Second, ExitCode: 1, Failures: 3}}, func(r *rig) {
			r.create(pod(initc("init"), mainc("web")))
			r.after(5500 * time.Millisecond)
			r.want("Backoff (Exited)")
			r.wantParts("init exited +2, web waiting")
			r.after(time.Minute)
			r.want("Running ready")
			r.wantParts("init exited +3, web running*")
			r.wantDeeds("0s start web-0_init, 1s start web-0_init, 3s start web-0_init, 6s start web-0_init, 7s start web-0", "start")
		}},
		{"R3", "given a main with a post_start, when the pod starts, then its hook comes after the init containers", short, func(r *rig) {
			r.create(pod(initc("init"), mainc("web", postStart(viaExec))))
			r.after(2 * time.Second)
			r.want("Running ready")
			r.wantHooks("1s post_start web-0 (start)")
		}},
		{"R7", "given a pod that began, when its main ends again and again, then its init container does not run again", programs{"init": done, "web": {ExitAfter: time.Minute}}, func(r *rig) {
			r.create(pod(initc("init"), mainc("web")))
			r.after(10 * time.Minute)
			if n := strings.Count(r.deeds("start"), "web-0_init"); n != 1 {
				r.Errorf("the init container was started %d times, want once", n)
			}
		}},
		{"R13", "given an init container that ended, when its image is another one in a new rendering, then it does not run again", short, func(r *rig) {
			r.create(pod(initc("init"), mainc("web")))
			r.after(time.Minute)
			r.create(pod(initc("init", func(c *jobspecs.Container) { c.Image = "init2" }), mainc("web")))
			r.world.Kill("web-0")
			r.after(time.Minute)
			r.want("Running ready restarts=1")
			r.wantDeeds("0s start web-0_init, 1s start web-0, 1m0s start web-0", "start")
		}},
		{"R14", "given an init container that runs, when its image is another one in a new rendering, then it is not run again", short, func(r *rig) {
			r.create(pod(initc("init"), mainc("web")))
			r.create(pod(initc("init", func(c *jobspecs.Container) { c.Image = "init2" }), mainc("web")))
			r.after(time.Minute)
			r.wantDeeds("0s start web-0_init, 1s start web-0", "start")
		}},
		{"R16", "given a pod of all kinds, when the host boots, then everything runs in order again", programs{"init": done}, func(r *rig) {
			s := pod(initc("init"), side("side"), mainc("web"))
			r.create(s)
			r.after(time.Second)
			r.world.RestartEngine(time.Second)
			r.after(10 * time.Second)
			r.want("Stopped (EngineRestarted)")
			r.world.Forget()
			r.forget(true)
			r.create(s)
			r.after(time.Second)
			r.wantParts("init exited, side running*, web running* +1")
			r.wantDeeds("11s start web-0_sandbox, 11s start web-0_init, 11.000000001s start web-0_side, 11.000000001s start web-0", "start")
		}},
		{"R17", "given init containers that ended, when the daemon restarts, then they do not run again", programs{"init": done}, func(r *rig) {
			for _, s := range []jobspecs.PodSpec{pod(initc("init"), mainc("web")), pod(initc("init"), mainc("web"), mainc("db"))} {
				r.create(s)
				r.after(time.Second)
				r.world.Forget()
				r.connect()
				r.create(s)
				r.after(time.Minute)
				r.want("Running ready")
				r.world.Kill("web-0")
				r.after(time.Minute)
				if got := r.deeds("start"); strings.Contains(got, "init") || !strings.Contains(got, "web-0") {
					r.Errorf("started %s, want the main alone", got)
				}
				r.again()
			}
		}},
		{"R18", "given init containers that ended and were cleared away, when the daemon restarts, then they do not run again", programs{"init": done}, func(r *rig) {
			for _, s := range []jobspecs.PodSpec{pod(initc("init"), mainc("web")), pod(initc("init"), mainc("web"), mainc("db"))} {
				r.create(s)
				r.after(time.Second)
				r.world.RemoveContainer("web-0_init")
				r.after(time.Second)
				r.world.Forget()
				r.connect()
				r.create(s)
				r.after(time.Minute)
				r.want("Running ready")
				r.wantDeeds("", "create", "start")
				r.again()
			}
		}},
		{"R18", "given an init container that ended and was cleared away, when the sidecar after it has not begun for good, then it does not run again", programs{"init": done, "side": {ReadyAfter: 10 * time.Second}}, func(r *rig) {
			r.create(pod(initc("init"), side("side", startup(tcp(time.Second, 60))), mainc("web")))
			r.after(time.Second)
			r.wantParts("init exited, side running, web waiting")
			r.world.RemoveContainer("web-0_init")
			r.after(time.Minute)
			r.want("Running ready")
			if n := strings.Count(r.deeds("start"), "web-0_init"); n != 1 {
				r.Errorf("the init container was started %d times, want once", n)
			}
		}},
		{"R18", "given an init container that was cleared away, when the daemon restarts while only the sidecar after it runs, then it does not run again", programs{"init": done}, func(r *rig) {
			s := pod(initc("init"), side("side"), mainc("web"))
			r.create(s)
			r.after(time.Second)
			r.world.RemoveContainer("web-0_init")
			r.stop()
			r.world.Kill("web-0")
			r.connect()
			r.create(s)
			r.after(time.Minute)
			r.want("Running ready restarts=1")
			if n := strings.Count(r.deeds("start"), "web-0_init"); n != 1 {
				r.Errorf("the init container was started %d times, want once", n)
			}
		}},
		{"R25", "given an init container that runs, when the pod ends, then it ends at once, and nothing else begins", programs{"init": {ExitAfter: time.Hour}}, func(r *rig) {
			r.create(pod(side("side"), initc("init"), mainc("web")))
			r.after(time.Second)
			r.wantParts("side running*, init running, web waiting")
			r.end(time.Minute, "")
			r.want("Stopped (StopRequested)")
			r.wantDeeds("1s stop web-0_init, 1s stop web-0_side, 1s stop web-0_sandbox", "stop")
			r.forget(false)
			r.wantHost("")
		}},
		{"R25", "given an image that is being pulled, when the pod ends, then nothing hangs", programs{"init": {Remote: true, PullTime: time.Hour}}, func(r *rig) {
			r.create(pod(initc("init"), mainc("web"), mainc("db")))
			r.after(time.Second)
			r.want("Pulling")
			r.end(time.Minute, "")
			r.want("Stopped (StopRequested)")
		}},
	})
}

func TestTheLifeOfAPodAsAKubeletHasIt(t *testing.T) {
	done := sim.Program{ExitAfter: 1}
	playAll(t, []scenario{
		{"R4", "given two mains, when one fails, then it alone is restarted", programs{"web": {ExitAfter: time.Minute, ExitCode: 1}}, func(r *rig) {
			r.create(pod(mainc("web"), mainc("db")))
			r.after(61 * time.Second)
			r.want("Running ready restarts=1")
			r.wantParts("web running* +1, db running*")
			if c := r.pod().Containers[0]; c.ExitCode == nil || *c.ExitCode != 1 {
				r.Errorf("last exit code = %v, want 1", c.ExitCode)
			}
		}},
		{"R5", "given two mains, when the first one's post_start runs, then the second has not begun", programs{"web": {PostStartTime: 5 * time.Second}}, func(r *rig) {
			r.create(pod(mainc("web", postStart(viaExec)), mainc("db")))
			r.after(4 * time.Second)
			r.wantParts("web running, db waiting")
			r.after(time.Second)
			r.want("Running ready")
			r.wantDeeds("0s start web-0_sandbox, 0s start web-0, 5s start web-0_db", "start")
		}},
		{"R6", "given a post_start that fails, when the container starts, then it is killed and restarted with back-off", programs{"web": {PostStartTime: time.Second, PostStartError: errors.New("exit code 1")}}, func(r *rig) {
			r.create(pod(mainc("web", postStart(viaExec)), mainc("db")))
			r.after(2500 * time.Millisecond)
			r.want("Backoff (PostStartFailed) restarts=1")
			r.wantParts("web exited +1, db running*")
			r.wantDeeds("1s stop web-0, 2s stop web-0", "stop")
			r.wantNotes("web: FailedPostStartHook", "web: FailedPostStartHook")
			r.wantHooks("0s post_start web-0 (start)", "1s post_start web-0 (restart)")
		}},
		{"R6", "given a post_start that succeeded, when the daemon restarts, then it is not repeated", nil, func(r *rig) {
			s := pod(mainc("web", postStart(viaExec)))
			r.create(s)
			r.connect()
			r.create(s)
			r.after(time.Second)
			r.want("Running ready")
			r.wantHooks("0s post_start web-0 (start)")
		}},
		{"R6", "given a post_start whose success is not remembered, when the daemon restarts, then it runs again", nil, func(r *rig) {
			s := pod(mainc("web", postStart(viaExec)))
			r.create(s)
			r.world.EmptyRun()
			r.connect()
			r.create(s)
			r.after(time.Second)
			r.want("Running ready")
			if n := len(r.world.Hooks()); n != 2 {
				r.Errorf("%d hooks, want 2: at least once", n)
			}
		}},
		{"R8", "given a process that ignores its signal, when the pod ends, then it is killed when its grace is over", programs{"web": {IgnoresTerm: true}}, func(r *rig) {
			r.create(pod(mainc("web")))
			r.end(10*time.Second, "")
			r.after(9999 * time.Millisecond)
			r.want("Stopping (StopRequested) ready")
			r.after(time.Millisecond)
			r.want("Stopped (StopRequested)")
			if c := r.pod().Containers[0]; c.ExitCode == nil || *c.ExitCode != 137 || c.Signal != "SIGKILL" {
				r.Errorf("container is %+v, want SIGKILL", c)
			}
		}},
		{"R9", "given a long pre_stop, when the pod ends, then its time counts against the grace", programs{"web": {PreStopTime: 6 * time.Second, IgnoresTerm: true}}, func(r *rig) {
			r.create(pod(mainc("web", preStop(viaExec))))
			r.end(10*time.Second, "")
			r.after(9999 * time.Millisecond)
			r.want("Stopping (StopRequested) ready")
			r.after(time.Millisecond)
			r.want("Stopped (StopRequested)")
			r.wantDeeds("6s stop web-0", "stop")
		}},
		{"R9", "given a pre_stop that uses the whole grace up, when it is cut, then the process has two seconds after its signal", programs{"web": {PreStopTime: -1, IgnoresTerm: true}}, func(r *rig) {
			r.create(pod(mainc("web", preStop(viaExec))))
			r.end(10*time.Second, "")
			r.after(11999 * time.Millisecond)
			r.want("Stopping (StopRequested) ready")
			r.after(time.Millisecond)
			r.want("Stopped (StopRequested)")
		}},
		{"R10", "given a pre_stop, when the startup probe gives up, then it runs before the kill", programs{"web": {NeverReady: true, PreStopTime: time.Second}}, func(r *rig) {
			r.create(pod(mainc("web", startup(tcp(time.Second, 5)), preStop(viaExec))))
			r.after(5500 * time.Millisecond)
			r.want("Stopping (StartupFailed)")
			r.after(time.Second)
			r.wantHooks("5s pre_stop web-0 (restart)")
			r.want("Starting (StartupPending) restarts=1")
		}},
		{"R11", "given a pre_stop, when liveness fails, then it runs before the kill", programs{"web": {NeverReady: true, PreStopTime: time.Second}}, func(r *rig) {
			r.create(pod(side("side"), mainc("web", liveness(tcp(time.Second, 5)), preStop(viaExec))))
			r.after(6500 * time.Millisecond)
			r.wantHooks("5s pre_stop web-0 (restart)")
			r.wantParts("side running*, web running* +1")
		}},
		{"R12", "given a pre_stop that runs, when probes fail, then readiness is lost and nothing is restarted", programs{"web": {PreStopTime: time.Minute}}, func(r *rig) {
			r.create(pod(mainc("web", readiness(tcp(time.Second, 1)), liveness(tcp(time.Second, 1)), preStop(viaExec))))
			r.after(time.Second)
			r.end(2*time.Minute, "")
			r.want("Stopping (PreStopRunning) ready")
			r.world.Sicken("web-0", "draining")
			r.after(2 * time.Second)
			r.want("Stopping (PreStopRunning)")
			r.after(time.Hour)
			r.want("Stopped (StopRequested)")
			r.wantDeeds("1m1s stop web-0", "stop")
		}},
		{"R15", "given a pod that ends, when another rendering is handed over, then it is refused and nothing begins again", programs{"web": {IgnoresTerm: true}, "init": done}, func(r *rig) {
			r.create(pod(initc("init"), mainc("web")))
			r.after(time.Second)
			r.end(time.Minute, "")
			err := r.Create(r.Context(), pod(initc("init", func(c *jobspecs.Container) { c.Image = "init2" }), mainc("web")))
			if !errors.Is(err, runtime.ErrConflict) {
				r.Errorf("create: %v, want ErrConflict", err)
			}
			r.after(time.Hour)
			r.wantParts("init exited, web exited")
		}},
		{"R19", "given a sidecar before an init container, when the pod starts, then the sidecar runs before it", programs{"init": {ExitAfter: time.Second}}, func(r *rig) {
			r.create(pod(side("side"), initc("init"), mainc("web")))
			r.wantParts("side running*, init running, web waiting")
			r.after(time.Second)
			r.wantParts("side running*, init exited, web running*")
			r.wantDeeds("0s start web-0_sandbox, 0s start web-0_side, 0s start web-0_init, 1s start web-0", "start")
		}},
		{"R20", "given a sidecar with a startup probe, when the pod starts, then the next waits until it has started", programs{"side": {ReadyAfter: 10 * time.Second}, "init": done}, func(r *rig) {
			r.create(pod(side("side", startup(tcp(time.Second, 60))), initc("init"), mainc("web")))
			r.after(9 * time.Second)
			r.want("Starting (StartupPending)")
			r.wantParts("side running, init waiting, web waiting")
			r.after(3 * time.Second)
			r.want("Running ready")
		}},
		{"R20", "given a sidecar that is not ready, when it has started, then the next begins", programs{"side": {NeverReady: true}}, func(r *rig) {
			r.create(pod(side("side", readiness(tcp(time.Second, 1))), mainc("web")))
			r.after(time.Minute)
			r.want("Running (NotReady)")
			r.wantParts("side running, web running*")
		}},
		{"R20", "given a sidecar with a post_start, when it runs, then the next waits for its end", programs{"side": {PostStartTime: 3 * time.Second}}, func(r *rig) {
			r.create(pod(side("side", postStart(viaExec)), mainc("web")))
			r.after(2 * time.Second)
			r.wantParts("side running, web waiting")
			r.after(2 * time.Second)
			r.want("Running ready")
		}},
		{"R21", "given a sidecar that exits, when the mains have not begun and when they have, then it is restarted", programs{"side": {ExitAfter: 10 * time.Second}, "init": {ExitAfter: 15 * time.Second}}, func(r *rig) {
			r.create(pod(side("side"), initc("init"), mainc("web")))
			r.after(12 * time.Second)
			r.wantParts("side running* +1, init running, web waiting")
			r.after(18 * time.Second)
			r.wantParts("side running* +2, init exited, web running*")
			r.wantDeeds("0s start web-0_sandbox, 0s start web-0_side, 0s start web-0_init, 10s start web-0_side, 15s start web-0, 21s start web-0_side", "start")
		}},
		{"R22", "given a failing init container beside a sidecar, when it is tried again, then the pod goes on initializing", programs{"init": {ExitAfter: time.Second, ExitCode: 1}}, func(r *rig) {
			r.create(pod(side("side"), initc("init"), mainc("web")))
			r.after(time.Minute)
			r.want("Backoff (Exited)")
			r.wantParts("side running*, init exited +6, web waiting")
		}},
		{"R23", "given mains and sidecars, when the pod ends, then mains end first, then sidecars in reverse order, then the sandbox", programs{"web": {TermTime: time.Second}, "db": {TermTime: 2 * time.Second}, "side": {TermTime: time.Second}, "side2": {TermTime: time.Second}}, func(r *rig) {
			r.create(pod(side("side"), side("side2"), mainc("web"), mainc("db")))
			r.end(30*time.Second, "")
			r.after(500 * time.Millisecond)
			r.wantParts("side running*, side2 running*, web running*, db running*")
			r.after(time.Second)
			r.wantParts("side running*, side2 running*, web exited, db running*")
			r.after(time.Second)
			r.wantParts("side running*, side2 running*, web exited, db exited")
			r.after(time.Second)
			r.wantParts("side running*, side2 exited, web exited, db exited")
			r.after(time.Second)
			r.want("Stopped (StopRequested)")
			r.wantHost("web-0 exited, web-0_db exited, web-0_sandbox exited, web-0_side exited, web-0_side2 exited")
		}},
		{"R24", "given a pre_stop that hangs, when the pod ends, then the sidecars end within the grace too", programs{"web": {PreStopTime: -1}}, func(r *rig) {
			r.create(pod(side("side"), mainc("web", preStop(viaExec))))
			r.end(10*time.Second, "")
			r.after(9999 * time.Millisecond)
			r.want("Stopping (PreStopRunning) ready")
			r.after(time.Millisecond)
			r.want("Stopped (StopRequested)")
		}},
		{"R24", "given pre_stops of sidecars that hang, when the pod ends, then each has two seconds at most beyond the grace", programs{"web": {PreStopTime: -1}, "side": {PreStopTime: -1}, "side2": {PreStopTime: -1}}, func(r *rig) {
			r.create(pod(side("side", preStop(viaExec)), side("side2", preStop(viaExec)), mainc("web", preStop(viaExec))))
			r.end(10*time.Second, "")
			r.after(16 * time.Second)
			r.want("Stopped (StopRequested)")
		}},
		{"R26", "given a sidecar that ends with an error, when the pod ends, then the pod has stopped as if it had not", programs{"side": {TermCode: 1}}, func(r *rig) {
			r.create(pod(side("side"), mainc("web")))
			r.end(10*time.Second, "")
			r.want("Stopped (StopRequested)")
			r.wantNotes()
		}},
		{"R27", "given a main that exceeds its grace, when the pod ends, then it is killed, which is noted", programs{"web": {IgnoresTerm: true}}, func(r *rig) {
			r.create(pod(side("side"), mainc("web")))
			r.end(10*time.Second, "")
			r.after(10 * time.Second)
			r.want("Stopped (StopRequested)")
			r.wantNotes("web: Killed")
		}},
		{"R29", "given pods of every kind of probe, when the daemon restarts, then ready and started stay as they were", nil, func(r *rig) {
			none := func(*jobspecs.Container) {}
			for _, change := range []func(*jobspecs.Container){none, startup(tcp(time.Second, 9)), readiness(tcp(time.Second, 9)), liveness(tcp(time.Second, 9)),
				startup(command(time.Second, 9)), readiness(command(time.Second, 9)), liveness(command(time.Second, 9))} {
				for _, s := range []jobspecs.PodSpec{pod(mainc("web", change)), pod(side("side", change), mainc("web", change), mainc("db", change))} {
					r.create(s)
					r.after(time.Minute)
					r.want("Running ready")
					before, host := r.pod(), r.world.String()
					r.world.Forget()
					r.connect()
					r.create(s)
					r.after(time.Second)
					if p := r.pod(); show(p) != "Running ready" || !p.StartedAt.Equal(before.StartedAt) || len(r.world.Writes()) != 0 || r.world.String() != host {
						r.Errorf("pod is %q after %v on %s, want it untouched on %s", show(p), r.world.Writes(), r.world, host)
					}
					r.again()
				}
			}
		}},
	})
}

func TestTheSandboxAsAKubeletHasIt(t *testing.T) {
	done := sim.Program{ExitAfter: 1}
	all := func() jobspecs.PodSpec { return pod(initc("init"), side("side"), mainc("web"), mainc("db")) }
	playAll(t, []scenario{
		{"R16", "given a pod of several containers, when its sandbox ends, then all end, mains first, and begin again in order at the same address", programs{"init": done}, func(r *rig) {
			r.create(all())
			r.after(time.Second)
			address := r.pod().Address
			r.world.Forget()
			r.world.Kill("web-0_sandbox")
			r.after(time.Second)
			r.wantParts("init exited +1, side running* +1, web running* +1, db running* +1")
			r.want("Running ready restarts=3")
			r.wantSomeOrder("1s stop web-0, 1s stop web-0_db, 1s stop web-0_side", "stop")
			r.wantSomeOrder("1s start web-0_sandbox, 1s start web-0_init, 1.000000001s start web-0_side, 1.000000001s start web-0, 1.000000001s start web-0_db", "start")
			r.wantNotes(": SandboxEnded")
			if got := r.pod().Address; got != address || got != netip.MustParseAddr("10.87.0.10") {
				r.Errorf("address = %v, want %v", got, address)
			}
		}},
		{"R16", "given a pod of several containers, when its sandbox is removed by hand, then it begins again", programs{"init": done}, func(r *rig) {
			r.create(all())
			r.after(time.Second)
			r.world.RemoveContainer("web-0_sandbox")
			r.after(time.Minute)
			r.want("Running ready restarts=3")
		}},
		{"R16", "given a pod whose processes are shared, when its sandbox ends, then it begins again", programs{"init": done}, func(r *rig) {
			s := pod(initc("init"), mainc("web"))
			s.ShareProcesses = true
			r.create(s)
			r.after(time.Second)
			r.world.Kill("web-0_sandbox")
			r.after(time.Minute)
			r.want("Running ready restarts=1")
			r.wantParts("init exited +1, web running* +1")
		}},
		{"R16", "given a sandbox that ended while the daemon was away, when it is back, then the pod begins again", programs{"init": done}, func(r *rig) {
			r.create(all())
			r.after(time.Second)
			r.stop()
			r.world.Kill("web-0_sandbox")
			r.connect()
			r.create(all())
			r.after(time.Minute)
			r.want("Running ready restarts=3")
		}},
		{"R16", "given a sandbox that cannot be made, when the fault is over, then the pod begins", programs{"init": done}, func(r *rig) {
			r.world.Fail(sim.Fault{Verb: "sandbox.image", Times: 3})
			r.create(all())
			r.want("Failed (CreateFailed)")
			r.after(time.Minute)
			r.want("Running ready")
		}},
		{"R16", "given a sandbox's image that was pruned, when the pod begins again, then it is made again", programs{"init": done}, func(r *rig) {
			r.create(all())
			r.after(time.Second)
			r.world.RemoveImage(sim.SandboxImage)
			r.world.Kill("web-0_sandbox")
			r.after(time.Minute)
			r.want("Running ready restarts=3")
		}},
		{"R4", "given several mains, when one is removed by hand, then it alone is made again", nil, func(r *rig) {
			r.create(pod(mainc("web"), mainc("db")))
			r.after(time.Second)
			r.world.RemoveContainer("web-0_db")
			r.after(time.Minute)
			r.wantParts("web running*, db running* +1")
			r.wantNotes("db: Removed")
		}},
		{"R4", "given several mains, when the one of the pod's own name is removed by hand, then it alone is made again", nil, func(r *rig) {
			r.create(pod(mainc("web"), mainc("db")))
			r.after(time.Second)
			r.world.RemoveContainer("web-0")
			r.after(time.Minute)
			r.wantParts("web running* +1, db running*")
		}},
	})
}
