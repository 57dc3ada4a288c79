package pods_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

func TestHooksAsAKubeletHasThem(t *testing.T) {
	takes := programs{"web": {PostStartTime: 2 * time.Second, PreStopTime: 3 * time.Second}}
	runs := func(h jobspecs.Handler) func(*rig) {
		return func(r *rig) {
			r.create(pod(mainc("web", postStart(h), preStop(h))))
			r.want("Starting (PostStartPending)")
			r.after(2 * time.Second)
			r.want("Running ready")
			r.end(10*time.Second, runtime.WhyUpdate)
			r.want("Stopping (PreStopRunning) ready")
			r.after(3 * time.Second)
			r.want("Stopped (StopRequested)")
			r.wantHooks("0s post_start web-0 (start)", "2s pre_stop web-0 (update)")
			r.wantDeeds("5s stop web-0", "stop")
			for _, c := range r.world.Hooks() {
				if fmt.Sprint(c.Handler) != fmt.Sprint(h) {
					r.Errorf("%s does %v, want %v", c, c.Handler, h)
				}
			}
		}
	}
	playAll(t, []scenario{
		{"P1 P4", "given exec hooks, when a pod starts and ends, then they run", takes, runs(viaExec)},
		{"P2 P5", "given http hooks, when a pod starts and ends, then they run", takes, runs(viaHTTP)},
		{"P3 P6", "given https hooks, when a pod starts and ends, then they run", takes, runs(viaTLS)},
		{"P7", "given a pre_stop that sleeps, when the pod ends, then it lasts that long", nil, func(r *rig) {
			r.create(pod(mainc("web", preStop(jobspecs.Handler{Sleep: 5 * time.Second}))))
			r.end(30*time.Second, "")
			r.after(5 * time.Second)
			r.want("Stopped (StopRequested)")
			r.wantDeeds("5s stop web-0", "stop")
		}},
		{"P8", "given a pre_stop that sleeps, when the grace is smaller, then it is cut short", nil, func(r *rig) {
			r.create(pod(mainc("web", preStop(jobspecs.Handler{Sleep: time.Hour}))))
			r.end(5*time.Second, "")
			r.after(4999 * time.Millisecond)
			r.want("Stopping (PreStopRunning) ready")
			r.after(time.Millisecond)
			r.want("Stopped (StopRequested)")
		}},
		{"P8", "given a pre_stop that sleeps, when a later stop shortens the grace, then it is cut short", nil, func(r *rig) {
			r.create(pod(mainc("web", preStop(jobspecs.Handler{Sleep: time.Hour}))))
			r.end(time.Hour, "")
			r.after(time.Second)
			r.end(time.Second, "")
			r.after(time.Second)
			r.want("Stopped (StopRequested)")
		}},
		{"P9", "given a pre_stop that sleeps, when the container ends, then the sleep ends", nil, func(r *rig) {
			r.create(pod(mainc("web", preStop(jobspecs.Handler{Sleep: time.Hour}))))
			r.end(2*time.Hour, "")
			r.after(time.Second)
			r.world.Kill("web-0")
			r.want("Stopped (StopRequested)")
			r.wantNotes()
		}},
		{"P10", "given a pre_stop that sleeps for no time, when the pod ends, then it does not wait", nil, func(r *rig) {
			r.create(pod(mainc("web", preStop(jobspecs.Handler{}))))
			r.end(time.Hour, "")
			r.want("Stopped (StopRequested)")
			r.wantNotes()
		}},
		{"P12", "given a stop signal of its own, when the pod ends, then the container gets it", nil, func(r *rig) {
			r.create(pod(mainc("web", func(c *jobspecs.Container) { c.StopSignal = "SIGQUIT" })))
			r.end(7*time.Second, "")
			w := r.world.Writes()
			if last := w[len(w)-1]; last.Verb != "stop" || last.Signal != "SIGQUIT" || last.Grace != 7*time.Second {
				r.Errorf("the last write is %+v, want a stop by SIGQUIT with 7 s", last)
			}
		}},
	})
}
