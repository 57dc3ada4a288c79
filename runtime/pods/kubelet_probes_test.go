package pods_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/runtime/sim"
)

// A probe has the same effect on a main and on a sidecar.
func TestProbesAsAKubeletHasThem(t *testing.T) {
	sick := errors.New("exit code 1")
	fails := func(jobspecs.Probe, time.Duration) error { return sick }
	late := sim.Program{CheckTime: 3 * time.Second}
	only := func(service string) func(jobspecs.Probe, time.Duration) error {
		return func(p jobspecs.Probe, _ time.Duration) error {
			if p.GRPC != nil && p.GRPC.Service == service {
				return nil
			}
			return errors.New("grpc: NOT_SERVING")
		}
	}
	delayed := tcp(time.Second, 3)
	delayed.InitialDelay = 10 * time.Second
	for _, c := range []struct {
		id, says string
		program  sim.Program
		change   func(*jobspecs.Container)
		after    time.Duration
		ready    bool
		restarts int
	}{
		{"N1", "before the initial delay of its readiness it is not ready", sim.Program{}, readiness(delayed), 9 * time.Second, false, 0},
		{"N1", "after the initial delay of its readiness it is ready", sim.Program{}, readiness(delayed), 11 * time.Second, true, 0},
		{"N2", "failing readiness makes it never ready, and restarts nothing", sim.Program{NeverReady: true}, readiness(tcp(time.Second, 3)), time.Hour, false, 0},
		{"N3", "a failing exec liveness restarts it", sim.Program{Answer: fails}, liveness(command(10*time.Second, 1)), 15 * time.Second, true, 1},
		{"N4", "an exec liveness that succeeds does not", sim.Program{}, liveness(command(10*time.Second, 1)), time.Hour, true, 0},
		{"N5", "a failing http liveness restarts it", sim.Program{NeverReady: true}, liveness(httpGet(10*time.Second, 1)), 15 * time.Second, true, 1},
		{"N6", "a tcp liveness that succeeds does not", sim.Program{}, liveness(tcp(10*time.Second, 1)), time.Hour, true, 0},
		{"N8", "an http liveness that succeeds does not", sim.Program{}, liveness(httpGet(10*time.Second, 1)), time.Hour, true, 0},
		{"N9", "an exec liveness that takes too long restarts it", late, liveness(command(10*time.Second, 1)), 15 * time.Second, true, 1},
		{"N10", "an exec readiness that takes too long makes it not ready", late, readiness(command(10*time.Second, 1)), time.Hour, false, 0},
		{"N11", "a failing exec that takes too long restarts it", sim.Program{CheckTime: 3 * time.Second, Answer: fails}, liveness(command(10*time.Second, 1)), 15 * time.Second, true, 1},
		{"N14", "a startup that gives up restarts it", sim.Program{NeverReady: true}, startup(tcp(time.Second, 5)), 6 * time.Second, false, 1},
		{"N20", "a grpc liveness that serves does not restart it", sim.Program{Answer: only("")}, liveness(grpc("", 10*time.Second, 1)), time.Hour, true, 0},
		{"N21", "a grpc liveness of another service restarts it", sim.Program{Answer: only("")}, liveness(grpc("other", 10*time.Second, 1)), 15 * time.Second, true, 1},
		{"O17", "a closed tcp port restarts it", sim.Program{NeverReady: true}, liveness(tcp(10*time.Second, 1)), 15 * time.Second, true, 1},
	} {
		for name, s := range both(c.change) {
			t.Run(c.id+" "+c.says+" as "+name, func(t *testing.T) {
				onHost(t, sim.Program{}, func(r *rig) {
					r.world.Program("web", c.program)
					r.world.Program("db", sim.Program{})
					r.create(s)
					r.after(c.after)
					i := slices.IndexFunc(r.pod().Containers, func(c runtime.Container) bool { return c.Name == "web" })
					web := r.pod().Containers[i]
					if web.Ready != c.ready || web.Restarts != c.restarts || web.State != "running" {
						r.Errorf("container is %+v, want ready %t after %d restarts", web, c.ready, c.restarts)
					}
				})
			})
		}
	}
}

func TestProbesInTimeAsAKubeletHasThem(t *testing.T) {
	playAll(t, []scenario{
		{"N7", "given failing liveness, when time passes, then the restart count only grows", programs{"web": {NeverReady: true}}, func(r *rig) {
			r.create(pod(mainc("web", liveness(tcp(time.Second, 1)))))
			last := 0
			for range 120 {
				r.after(time.Second)
				if n := r.pod().Restarts; n < last {
					r.Fatalf("restarts fell from %d to %d", last, n)
				} else {
					last = n
				}
			}
			if last < 4 {
				r.Errorf("%d restarts in two minutes, want more", last)
			}
		}},
		{"N15", "given a startup that is pending, when liveness would fail, then nothing is restarted", programs{"web": {ReadyAfter: time.Minute}}, func(r *rig) {
			r.create(pod(mainc("web", startup(tcp(time.Second, 120)), liveness(tcp(time.Second, 1)))))
			r.after(59 * time.Second)
			r.want("Starting (StartupPending)")
			r.after(time.Minute)
			r.want("Running ready")
		}},
		{"N16", "given a startup that succeeded, when liveness fails, then it is restarted", programs{"web": {ReadyAfter: 5 * time.Second}}, func(r *rig) {
			r.create(pod(mainc("web", startup(tcp(time.Second, 120)), liveness(tcp(time.Second, 1)))))
			r.after(10 * time.Second)
			r.want("Running ready")
			r.world.Sicken("web-0", "hangs")
			r.after(2 * time.Second)
			r.want("Starting (StartupPending) restarts=1")
		}},
		{"N17", "given a slow readiness period, when the startup succeeds, then it is ready promptly", programs{"web": {ReadyAfter: 5 * time.Second}}, func(r *rig) {
			r.create(pod(mainc("web", startup(tcp(time.Second, 120)), readiness(tcp(time.Hour, 1)))))
			r.after(7 * time.Second)
			r.want("Running ready")
		}},
		{"N22", "given a ready pod, when it ends and its process shuts down, then it is not ready any more", programs{"web": {TermTime: time.Minute}}, func(r *rig) {
			r.create(pod(mainc("web", readiness(tcp(time.Second, 1)))))
			r.after(time.Second)
			r.end(2*time.Minute, "")
			r.want("Stopping (StopRequested) ready")
			r.world.Sicken("web-0", "closed")
			r.after(2 * time.Second)
			r.want("Stopping (StopRequested)")
		}},
		{"N22", "given a sidecar that is ready, when the pod ends, then the sidecar's readiness counts", programs{"web": {TermTime: time.Minute}}, func(r *rig) {
			r.create(pod(side("side", readiness(tcp(time.Second, 1))), mainc("web")))
			r.after(time.Second)
			r.end(2*time.Minute, "")
			r.want("Stopping (StopRequested) ready")
			r.world.Sicken("web-0_side", "closed")
			r.after(2 * time.Second)
			r.want("Stopping (StopRequested)")
		}},
		{"N23", "given liveness, when it fails while the pod ends, then nothing is restarted", programs{"web": {IgnoresTerm: true}}, func(r *rig) {
			r.create(pod(side("side", liveness(tcp(time.Second, 1))), mainc("web", liveness(tcp(time.Second, 1)))))
			r.after(time.Second)
			r.end(time.Minute, "")
			r.world.Sicken("web-0", "closed")
			r.world.Sicken("web-0_side", "closed")
			r.after(59 * time.Second)
			r.wantDeeds("1s stop web-0", "stop")
			r.wantParts("side running*, web running*")
			r.after(time.Second)
			r.want("Stopped (StopRequested)")
		}},
		{"O1", "given probes that were not asked yet, when a pod starts, then it is starting, not ready, and not restarted", programs{"web": {CheckTime: time.Second}}, func(r *rig) {
			r.create(pod(mainc("web", startup(command(10*time.Second, 3)), readiness(command(10*time.Second, 3)), liveness(command(10*time.Second, 1)))))
			r.want("Starting (StartupPending)")
		}},
		{"O1", "given no startup probe, when readiness was not asked yet, then it runs and is not ready", nil, func(r *rig) {
			r.create(pod(mainc("web", readiness(command(10*time.Second, 3)))))
			r.want("Running (NotReady)")
		}},
		{"O2", "given a failure threshold of 3, when two checks fail, then it stays ready; the third flips it; one success flips it back", nil, func(r *rig) {
			r.create(pod(mainc("web", readiness(tcp(10*time.Second, 3)))))
			r.after(time.Second)
			r.world.Sicken("web-0", "503")
			r.after(28 * time.Second)
			r.want("Running ready")
			r.after(2 * time.Second)
			r.want("Running (NotReady)")
			r.world.Heal("web-0")
			r.after(10 * time.Second)
			r.want("Running ready")
		}},
		{"O3", "given a success threshold of 3, when two checks succeed, then it stays not ready; the third flips it; one failure flips it back", nil, func(r *rig) {
			p := tcp(10*time.Second, 1)
			p.SuccessThreshold = 3
			r.create(pod(mainc("web", readiness(p))))
			r.after(19 * time.Second)
			r.want("Running (NotReady)")
			r.after(2 * time.Second)
			r.want("Running ready")
			r.world.Sicken("web-0", "503")
			r.after(10 * time.Second)
			r.want("Running (NotReady)")
		}},
		{"O4", "given a startup that succeeded, when the same check would fail, then it is not asked again before the container changes", nil, func(r *rig) {
			r.create(pod(mainc("web", startup(tcp(time.Second, 3)))))
			r.after(time.Second)
			r.want("Running ready")
			r.world.Forget()
			r.world.Sicken("web-0", "503")
			r.after(time.Hour)
			r.want("Running ready")
			if n := r.world.Reads(); n != 0 {
				r.Errorf("%d reads, want no check", n)
			}
			r.world.Program("web", sim.Program{})
			r.world.Kill("web-0")
			r.want("Starting (StartupPending) restarts=1")
		}},
		{"O5", "given a startup threshold of 3, when all checks fail, then it is pending until the third, and given up then", programs{"web": {NeverReady: true}}, func(r *rig) {
			r.create(pod(mainc("web", startup(tcp(10*time.Second, 3)))))
			r.after(29 * time.Second)
			r.want("Starting (StartupPending)")
			r.wantDeeds("", "stop")
			r.after(time.Second)
			r.wantDeeds("30s stop web-0", "stop")
		}},
		{"O6", "given liveness that failed, when the container is slow to end, then it is not asked again; the new one begins to count anew", programs{"web": {TermTime: 5 * time.Second}}, func(r *rig) {
			r.create(pod(mainc("web", liveness(tcp(time.Second, 3)))))
			r.after(10 * time.Second)
			r.world.Sicken("web-0", "hangs")
			r.after(3 * time.Second)
			r.want("Stopping (LivenessFailed) ready")
			r.world.Forget()
			r.after(4900 * time.Millisecond)
			if n := r.world.Reads(); n != 0 {
				r.Errorf("%d reads while it ends, want no check", n)
			}
			r.after(200 * time.Millisecond)
			r.world.Sicken("web-0", "hangs")
			r.after(2800 * time.Millisecond)
			r.want("Running ready restarts=1")
		}},
		{"O7", "given two failures, when the container is replaced, then they do not count for the new one", nil, func(r *rig) {
			r.create(pod(mainc("web", liveness(tcp(time.Second, 3)))))
			r.world.Sicken("web-0", "hangs")
			r.after(2500 * time.Millisecond)
			r.world.Kill("web-0")
			r.after(0)
			r.world.Sicken("web-0", "hangs")
			r.after(2500 * time.Millisecond)
			r.want("Running ready restarts=1")
			r.world.Heal("web-0")
			r.after(time.Minute)
			r.want("Running ready restarts=1")
		}},
		{"O8", "given all three probes, when the startup is pending, then only it is asked; afterwards only the others", nil, func(r *rig) {
			var mu sync.Mutex // of both: the host asks while the test goes on
			var asked []string
			ready := false
			r.world.Program("web", sim.Program{Answer: func(p jobspecs.Probe, _ time.Duration) error {
				mu.Lock()
				defer mu.Unlock()
				if len(asked) == 0 || asked[len(asked)-1] != p.Exec[0] {
					asked = append(asked, p.Exec[0])
				}
				if !ready {
					return errors.New("not yet")
				}
				return nil
			}})
			named := func(name string, period time.Duration) jobspecs.Probe {
				p := command(period, 100)
				p.Exec = []string{name}
				return p
			}
			r.create(pod(mainc("web", startup(named("startup", time.Second)), readiness(named("readiness", time.Minute)), liveness(named("liveness", time.Second)))))
			r.after(10 * time.Second)
			mu.Lock()
			ready = true
			mu.Unlock()
			r.after(10 * time.Second)
			mu.Lock()
			defer mu.Unlock()
			if got, want := strings.Join(asked, " "), "startup readiness liveness"; got != want {
				r.Errorf("asked %s, want %s", got, want)
			}
		}},
		{"O9", "given a ready pod, when the daemon restarts, then the first answer restores what it was, and its startup is over", programs{"web": {ReadyAfter: time.Second}}, func(r *rig) {
			s := pod(mainc("web", startup(tcp(time.Second, 30)), readiness(tcp(10*time.Second, 1)), liveness(tcp(time.Second, 1))))
			r.create(s)
			r.after(time.Minute)
			r.want("Running ready")
			r.connect()
			r.create(s)
			r.want("Running ready")
		}},
		{"O10", "given a pod that was stopped, when time passes, then it is not asked any more; one that is restarted is", nil, func(r *rig) {
			s := pod(mainc("web", readiness(tcp(time.Second, 1))), mainc("db", liveness(tcp(time.Second, 1))))
			r.create(s)
			r.after(5 * time.Second)
			r.world.Kill("web-0")
			r.after(5 * time.Second)
			r.want("Running ready restarts=1")
			r.end(time.Second, "")
			r.world.Forget()
			r.after(time.Hour)
			if n := r.world.Reads(); n != 0 {
				r.Errorf("%d reads of a stopped pod, want none", n)
			}
		}},
		{"O11", "given a check that is out, when the connection is lost, then its verdict is dropped", programs{"web": {CheckTime: 500 * time.Millisecond}}, func(r *rig) {
			r.create(pod(mainc("web", liveness(tcp(10*time.Second, 1)))))
			r.after(10100 * time.Millisecond)
			r.world.Disconnect(5 * time.Second)
			r.after(time.Minute)
			r.want("Running ready")
			r.wantDeeds("", "stop")
		}},
		{"O12", "given containers that are probed, when the pod is removed, then nothing is asked any more", nil, func(r *rig) {
			r.create(pod(side("side", readiness(tcp(time.Second, 1))), mainc("web", readiness(tcp(time.Second, 1)), liveness(tcp(time.Second, 1)))))
			r.after(time.Minute)
			if n := r.world.Reads(); n < 170 {
				r.Errorf("%d reads in a minute, want three probes a second", n)
			}
			r.again()
			r.world.Forget()
			r.after(time.Hour)
			if n := r.world.Reads(); n != 0 {
				r.Errorf("%d reads of a removed pod, want none", n)
			}
			r.wantHost("")
		}},
		{"O13", "given no readiness probe, when a container is started, then it is ready; one that waits or ended is not", nil, func(r *rig) {
			r.world.Program("init", sim.Program{ExitAfter: time.Second})
			r.create(pod(initc("init"), mainc("web"), mainc("db")))
			r.wantParts("init running, web waiting, db waiting")
			r.after(time.Second)
			r.wantParts("init exited, web running*, db running*")
			r.end(0, "")
			r.wantParts("init exited, web exited, db exited")
		}},
	})
}
