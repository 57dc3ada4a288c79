package pods_test

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/runtime/sim"
)

// Any reply can be lost, and any call can fail: a pod of all kinds comes up, comes
// back, and goes.
func TestLostRepliesOfAPodOfSeveral(t *testing.T) {
	for _, when := range []int{sim.Before, sim.After} {
		for _, verb := range []string{"list", "inspect", "image", "pull", "sandbox.image", "create", "start", "stop", "remove", "rename", "hook", "check", "scratch.remove"} {
			t.Run(fmt.Sprintf("%s-%d", verb, when), func(t *testing.T) {
				onHost(t, sim.Program{}, func(r *rig) {
					for name, p := range (programs{"init": {ExitAfter: 1}, "side": {}, "web": {Remote: true}, "db": {}}) {
						r.world.Program(name, p)
					}
					s := pod(initc("init"), side("side", postStart(viaExec), preStop(viaExec)),
						mainc("web", readiness(tcp(time.Second, 1)), postStart(viaExec), preStop(viaExec)), mainc("db"))
					s.Scratch = []jobspecs.Scratch{{Name: "tmp", Volume: "tmp-web-0_scratch", Medium: jobspecs.MediumDisk}}
					s.Containers[2].Mounts = []jobspecs.Mount{{Kind: jobspecs.MountScratch, Claim: "tmp", Path: "/tmp"}}
					strike := func() { r.world.Fail(sim.Fault{Verb: verb, When: when, Times: 2}) }
					strike()
					r.create(s)
					r.after(10 * time.Minute)
					r.world.Mend()
					if p := r.pod(); !p.Ready {
						r.Fatalf("pod is %q (%s), want it ready; host: %s", show(p), p.Message, r.world)
					}
					for _, name := range []string{"web-0", "web-0_sandbox", "web-0_side"} {
						strike()
						r.world.Kill(name)
						r.after(10 * time.Minute)
						r.world.Mend()
						if p := r.pod(); !p.Ready {
							r.Fatalf("after the end of %s the pod is %q (%s), want it ready; host: %s", name, show(p), p.Message, r.world)
						}
					}
					strike()
					r.end(10*time.Second, "")
					r.after(10 * time.Minute)
					for range 9 {
						if r.Remove(r.Context(), web0, false) == nil {
							break
						}
					}
					r.want("absent")
					r.wantHost("")
					if n := len(r.world.Scratches()); n != 0 {
						r.Errorf("%d scratch folders stay", n)
					}
				})
			})
		}
	}
}

// What a kubelet has no word for, or leaves to others.
func TestTheLifeOfAPodOfSeveralHere(t *testing.T) {
	done := sim.Program{ExitAfter: 1}
	playAll(t, []scenario{
		{"R5", "given two mains, when the image of the first is missing, then the second runs", nil, func(r *rig) {
			r.create(pod(mainc("web", func(c *jobspecs.Container) { c.Image = "typo" }), mainc("db")))
			r.after(time.Minute)
			r.want("Failed (ImageUnknown)")
			r.wantParts("web waiting, db running*")
		}},
		{"R5", "given two mains, when the first cannot be started, then the second runs", programs{"web": {StartError: errors.New("exec format error")}}, func(r *rig) {
			r.create(pod(mainc("web"), mainc("db")))
			r.after(time.Minute)
			r.want("Failed (CreateFailed)")
			if c := r.pod().Containers[1]; !c.Ready {
				r.Errorf("the second is %+v, want it ready", c)
			}
		}},
		{"R17", "given several mains, when one ended while the daemon was away, then it alone is restarted", programs{"init": done}, func(r *rig) {
			s := pod(initc("init"), side("side"), mainc("web"), mainc("db"))
			r.create(s)
			r.after(time.Second)
			r.stop()
			r.world.Kill("web-0_db")
			r.connect()
			r.want("Running ready? unmanaged")
			r.wantHost("web-0 running, web-0_db exited, web-0_init exited, web-0_sandbox running, web-0_side running")
			r.create(s)
			r.after(time.Minute)
			r.wantParts("init exited, side running*, web running*, db running* +1")
		}},
		{"R17", "given an init container that ended while the daemon was away, when it is back, then the pod goes on after it", programs{"init": {ExitAfter: time.Minute}}, func(r *rig) {
			for _, s := range []jobspecs.PodSpec{pod(initc("init"), mainc("web"), mainc("db")), pod(initc("init"), side("side"), mainc("web"))} {
				r.create(s)
				r.after(time.Second)
				r.stop()
				r.after(time.Hour)
				r.connect()
				r.create(s)
				r.after(time.Minute)
				r.want("Running ready")
				if n := strings.Count(r.deeds("start"), "web-0_init"); n != 1 {
					r.Errorf("the init container was started %d times, want once: %s", n, r.deeds("start"))
				}
				r.again()
				r.world.Forget()
			}
		}},
		{"R23", "given a pod whose spec was not handed over, when it ends, then its order is kept", programs{"web": {TermTime: time.Second}, "side2": {TermTime: time.Second}}, func(r *rig) {
			r.create(pod(side("side"), side("side2"), mainc("web")))
			r.after(time.Second)
			r.connect()
			r.end(time.Minute, "")
			r.after(10 * time.Second)
			r.want("Stopped (StopRequested) unmanaged")
			r.wantDeeds("1s stop web-0, 2s stop web-0_side2, 3s stop web-0_side, 3s stop web-0_sandbox", "stop")
		}},
		{"R23", "given mains that were kept, when the daemon restarts and the pod is removed for good, then they go", nil, func(r *rig) {
			r.create(pod(mainc("web"), mainc("db")))
			r.end(0, "")
			r.forget(true)
			r.wantHost("web-0_db_previous exited, web-0_previous exited")
			r.connect()
			r.want("absent")
			r.forget(false)
			r.wantHost("")
		}},
		{"R23", "given a pod that ended, when the daemon restarts and the engine fails while it is removed, then it is kept and removed later", nil, func(r *rig) {
			r.create(pod(mainc("web")))
			r.end(0, "")
			r.connect()
			r.world.Fail(sim.Fault{Verb: "scratch.remove"})
			if err := r.Remove(r.Context(), web0, true); err == nil {
				r.Error("nobody heard that the engine failed")
			}
			r.wantHost("web-0_previous exited")
			r.forget(true)
			r.wantHost("web-0_previous exited")
			r.want("absent")
		}},
		{"R23", "given a pod that ended, when the daemon restarts before it is removed, then it is removed", nil, func(r *rig) {
			s := pod(side("side"), mainc("web"), mainc("db"))
			s.Scratch = []jobspecs.Scratch{{Name: "tmp", Volume: "tmp-web-0_scratch", Medium: jobspecs.MediumMemory}}
			r.create(s)
			r.world.Kill("web-0")
			r.after(time.Second)
			r.end(time.Second, "")
			r.connect()
			r.want("Stopped (EngineRestarted) unmanaged restarts=1")
			r.forget(false)
			r.wantHost("")
			if n := len(r.world.Scratches()); n != 0 {
				r.Errorf("%d scratch folders stay", n)
			}
		}},
		{"R4", "given a main that ended, when somebody starts it by hand while it is being replaced, then no two of it run", nil, func(r *rig) {
			r.create(pod(mainc("web"), mainc("db")))
			r.world.Latency("rename", time.Second)
			r.world.Kill("web-0_db")
			r.after(500 * time.Millisecond)
			r.world.Restart("web-0_db")
			r.after(time.Minute)
			r.want("Running ready restarts=1")
		}},
		{"R23", "given a main with scratch that somebody renamed, when the host boots and the daemon is new, then the pod comes back and can be removed", nil, func(r *rig) {
			s := pod(mainc("web"), mainc("db"))
			s.Scratch = []jobspecs.Scratch{{Name: "tmp", Volume: "tmp-web-0_scratch", Medium: jobspecs.MediumDisk}}
			s.Containers[0].Mounts = []jobspecs.Mount{{Kind: jobspecs.MountScratch, Claim: "tmp", Path: "/tmp"}}
			r.create(s)
			r.world.Rename("web-0", "mine")
			r.world.RestartEngine(time.Second)
			r.connect()
			r.after(10 * time.Second)
			r.forget(true)
			r.create(s)
			r.after(time.Minute)
			if p := r.pod(); !p.Ready {
				r.Errorf("pod is %q, want it ready", show(p))
			}
			r.connect()
			r.create(s)
			r.again()
			r.wantHost("")
		}},
		{"N22", "given a pod of several, when one container is paused by hand, then the pod is not ready, and nothing is restarted", nil, func(r *rig) {
			r.create(pod(side("side"), mainc("web", liveness(tcp(time.Second, 1))), mainc("db")))
			r.world.Pause("web-0")
			r.after(time.Minute)
			r.want("Running (ContainerPaused)")
			r.world.Unpause("web-0")
			r.after(time.Second)
			r.want("Running ready")
			r.wantDeeds("", "stop")
		}},
		{"O13", "given a role probe, when the role changes, then the pod tells it; a failing one tells none", programs{"web": {Says: "primary"}}, func(r *rig) {
			role := command(10*time.Second, 1)
			r.create(pod(side("side"), mainc("web", func(c *jobspecs.Container) { c.Role = &role })))
			r.after(time.Second)
			roles := []string{r.pod().Role}
			r.world.Say("web-0", "replica")
			r.after(11 * time.Second)
			roles = append(roles, r.pod().Role)
			r.world.Sicken("web-0", "down")
			r.after(11 * time.Second)
			roles = append(roles, r.pod().Role)
			if got, want := fmt.Sprintf("%q", roles), `["primary" "replica" ""]`; got != want {
				r.Errorf("roles = %s, want %s", got, want)
			}
			r.want("Running ready")
		}},
		{"O4", "given a log probe, when the line is written late, then the startup ends then; a fresh container needs a line of its own", programs{"web": {LogLine: "ready to accept", LogAfter: 20 * time.Second}}, func(r *rig) {
			p := jobspecs.Probe{Log: &jobspecs.LogCheck{Pattern: "ready to"}, Period: time.Second, Timeout: time.Second, SuccessThreshold: 1, FailureThreshold: 60}
			r.create(pod(mainc("web", startup(p), readiness(p)), mainc("db")))
			r.after(19 * time.Second)
			r.want("Starting (StartupPending)")
			r.after(3 * time.Second)
			r.want("Running ready")
			r.after(time.Hour)
			r.want("Running ready")
			r.world.Kill("web-0")
			r.after(10 * time.Second)
			r.want("Starting (StartupPending) restarts=1")
			r.after(15 * time.Second)
			r.want("Running ready restarts=1")
		}},
		{"O9", "given a log probe that matched, when the daemon restarts, then it stays as it was", programs{"web": {LogLine: "ready to accept"}}, func(r *rig) {
			p := jobspecs.Probe{Log: &jobspecs.LogCheck{Pattern: "ready to"}, Period: time.Second, Timeout: time.Second, SuccessThreshold: 1, FailureThreshold: 3}
			s := pod(mainc("web", readiness(p)))
			r.create(s)
			r.after(time.Hour)
			r.connect()
			r.create(s)
			r.after(time.Hour)
			r.want("Running ready")
		}},
		{"R16", "given a pod of several, when its network's address is held by an old container of ours, then it waits", nil, func(r *rig) {
			r.world.ForeignContainer("guest", netip.MustParseAddr("10.87.0.10"), nil)
			r.create(pod(mainc("web"), mainc("db")))
			r.after(10 * time.Second)
			r.want("Failed (AddressTaken)")
			r.world.RemoveContainer("guest")
			r.after(time.Minute)
			r.want("Running ready")
		}},
		{"R16", "given a host port of one main, when a process of the host has it, then the pod says so", nil, func(r *rig) {
			port := jobspecs.Port{Name: "http", Container: 80, Host: 8080, Protocol: "tcp"}
			r.world.ForeignPort(port, "nginx (pid 7)")
			r.create(pod(mainc("web"), mainc("db", func(c *jobspecs.Container) { c.Ports = []jobspecs.Port{port} })))
			r.after(10 * time.Second)
			r.want("Failed (PortTaken)")
			r.world.ForeignPort(port, "")
			r.after(time.Minute)
			r.want("Running ready")
		}},
		{"R16", "given a foreign container of a part's name, when the pod starts, then it says so and leaves it alone", nil, func(r *rig) {
			r.world.ForeignContainer("web-0_db", netip.Addr{}, nil)
			r.create(pod(mainc("web"), mainc("db")))
			r.after(time.Minute)
			r.want("Failed (NameTaken)")
			r.end(0, "")
			r.forget(false)
			r.wantHost("web-0_db running")
		}},
		{"S15", "given a volume that is gone, when the pod starts, then it says so and makes no empty one", nil, func(r *rig) {
			r.world.RemoveVolume("data-web-0")
			r.create(spec(func(c *jobspecs.Container) { c.Image = "web" }))
			r.after(time.Minute)
			r.want("Failed (CreateFailed)")
			if n := len(r.world.Disks()); n != 0 {
				r.Errorf("%d volumes, want none", n)
			}
		}},
		{"U2", "given an image of another platform, when the pod starts, then it says so", programs{"db": {Platform: "linux/arm64"}}, func(r *rig) {
			r.create(pod(mainc("web"), mainc("db")))
			r.after(time.Minute)
			r.want("Failed (WrongPlatform)")
		}},
		{"P9", "given a post_start that hangs, when the container ends, then it is restarted", programs{"web": {PostStartTime: -1}}, func(r *rig) {
			r.create(pod(mainc("web", postStart(viaExec))))
			r.after(time.Second)
			r.world.Kill("web-0")
			r.after(time.Second)
			r.want("Starting (PostStartPending) restarts=1")
		}},
		{"P8", "given a post_start that hangs, when the pod ends, then it is cut short", programs{"web": {PostStartTime: -1}}, func(r *rig) {
			r.create(pod(mainc("web", postStart(viaExec), preStop(viaExec))))
			r.after(time.Second)
			r.end(time.Minute, "")
			r.want("Stopped (StopRequested)")
		}},
		{"R11", "given a pre_stop that hangs, when liveness fails, then the container is restarted within the grace", programs{"web": {PreStopTime: -1}}, func(r *rig) {
			r.create(pod(mainc("web", liveness(tcp(time.Second, 1)), preStop(viaExec))))
			r.after(time.Second)
			r.world.Sicken("web-0", "hangs")
			r.after(time.Minute)
			r.want("Running ready restarts=1")
			r.wantDeeds("12s stop web-0", "stop")
		}},
		{"R11", "given a pre_stop, when the daemon restarts while it runs, then the end goes on when it is asked for again", programs{"web": {PreStopTime: 5 * time.Second}}, func(r *rig) {
			s := pod(side("side"), mainc("web", preStop(viaExec)))
			r.create(s)
			r.end(time.Minute, runtime.WhyUpdate)
			r.after(time.Second)
			r.connect()
			r.create(s)
			r.end(time.Minute, runtime.WhyUpdate)
			r.after(6 * time.Second)
			r.want("Stopped (StopRequested)")
			r.wantHooks("0s pre_stop web-0 (update)", "1s pre_stop web-0 (update)")
		}},
	})
}
