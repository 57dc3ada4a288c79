package pods_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/runtime/sim"
)

// What a kubelet's tests assert of one pod, scenario by scenario, where it means
// something on one host. The ids are those of the project's list of Kubernetes
// scenarios: N probes, O their counting, P hooks, Q and R the order of a pod's
// life, S what it is given, U whom it runs as.

type programs map[string]sim.Program

// scenario is one of them. Every container runs the image of its own name; images
// that programs does not name run until they are stopped.
type scenario struct {
	id       string
	says     string // given …, when …, then …
	programs programs
	play     func(r *rig)
}

func playAll(t *testing.T, list []scenario) {
	t.Helper()
	for _, s := range list {
		t.Run(s.id+" "+s.says, func(t *testing.T) {
			onHost(t, sim.Program{}, func(r *rig) {
				for _, name := range []string{"init", "init2", "side", "side2", "web", "db"} {
					r.world.Program(name, s.programs[name])
				}
				s.play(r)
			})
		})
	}
}

// one is a container that runs the image of its name.
func one(kind, name string, change ...func(*jobspecs.Container)) jobspecs.Container {
	c := jobspecs.Container{
		Kind: kind, Name: name, Image: name, Pull: jobspecs.PullMissing,
		Restart: jobspecs.Restart{Initial: time.Second, Max: time.Minute, Reset: 5 * time.Minute},
	}
	for _, f := range change {
		f(&c)
	}
	return c
}

func initc(name string, change ...func(*jobspecs.Container)) jobspecs.Container {
	return one(jobspecs.KindInit, name, change...)
}

func side(name string, change ...func(*jobspecs.Container)) jobspecs.Container {
	return one(jobspecs.KindSidecar, name, change...)
}

func mainc(name string, change ...func(*jobspecs.Container)) jobspecs.Container {
	return one(jobspecs.KindMain, name, change...)
}

// pod is web-0 with these containers.
func pod(containers ...jobspecs.Container) jobspecs.PodSpec {
	s := spec()
	s.Containers = containers
	return s
}

// both are a lone main, and a sidecar beside a main, that are changed alike.
func both(change ...func(*jobspecs.Container)) map[string]jobspecs.PodSpec {
	return map[string]jobspecs.PodSpec{"web-0": pod(mainc("web", change...)), "web-0_web": pod(side("web", change...), mainc("db"))}
}

func command(period time.Duration, failures int) jobspecs.Probe {
	return jobspecs.Probe{Exec: []string{"ping"}, Period: period, Timeout: time.Second, SuccessThreshold: 1, FailureThreshold: failures}
}

func httpGet(period time.Duration, failures int) jobspecs.Probe {
	return jobspecs.Probe{HTTP: &jobspecs.HTTPCheck{Port: 80, Path: "/healthz"}, Period: period, Timeout: time.Second, SuccessThreshold: 1, FailureThreshold: failures}
}

func grpc(service string, period time.Duration, failures int) jobspecs.Probe {
	return jobspecs.Probe{GRPC: &jobspecs.GRPCCheck{Port: 80, Service: service}, Period: period, Timeout: time.Second, SuccessThreshold: 1, FailureThreshold: failures}
}

func postStart(h jobspecs.Handler) func(*jobspecs.Container) {
	return func(c *jobspecs.Container) { c.PostStart = &h }
}

func preStop(h jobspecs.Handler) func(*jobspecs.Container) {
	return func(c *jobspecs.Container) { c.PreStop = &h }
}

var (
	viaExec = jobspecs.Handler{Exec: []string{"do"}}
	viaHTTP = jobspecs.Handler{HTTP: &jobspecs.HTTPCheck{Port: 80, Path: "/do", Scheme: "http"}}
	viaTLS  = jobspecs.Handler{HTTP: &jobspecs.HTTPCheck{Port: 443, Path: "/do", Scheme: "https"}}
)

// at is when something was done, with its name: "1s start web-0".
func (r *rig) at(t time.Time, what string) string { return t.Sub(r.began).String() + " " + what }

// deeds are the writes of these verbs so far.
func (r *rig) deeds(verbs ...string) string {
	var list []string
	for _, c := range r.world.Writes() {
		if slices.Contains(verbs, c.Verb) {
			list = append(list, r.at(c.At, c.String()))
		}
	}
	return strings.Join(list, ", ")
}

func (r *rig) wantDeeds(want string, verbs ...string) {
	r.Helper()
	if got := r.deeds(verbs...); got != want {
		r.Errorf("deeds = %q, want %q", got, want)
	}
}

// wantSomeOrder is wantDeeds where some are done at the same moment.
func (r *rig) wantSomeOrder(want string, verbs ...string) {
	r.Helper()
	sorted := func(s string) string {
		list := strings.Split(s, ", ")
		slices.Sort(list)
		return strings.Join(list, ", ")
	}
	if got := r.deeds(verbs...); sorted(got) != sorted(want) {
		r.Errorf("deeds = %q, want %q", got, want)
	}
}

// wantHooks compares the hooks so far: "1s pre_stop web-0 (update)".
func (r *rig) wantHooks(want ...string) {
	r.Helper()
	var got []string
	for _, c := range r.world.Hooks() {
		got = append(got, r.at(c.Began, c.String()))
	}
	if !slices.Equal(got, want) {
		r.Errorf("hooks = %q, want %q", got, want)
	}
}

// wantParts compares the pod's containers: "init exited, web running" where * is
// ready and +2 are two restarts.
func (r *rig) wantParts(want string) {
	r.Helper()
	var list []string
	for _, c := range r.pod().Containers {
		s := c.Name + " " + c.State
		if c.Ready && c.Kind != jobspecs.KindInit {
			s += "*"
		}
		if c.Restarts > 0 {
			s += fmt.Sprintf(" +%d", c.Restarts)
		}
		list = append(list, s)
	}
	if got := strings.Join(list, ", "); got != want {
		r.Errorf("after %v containers are %q, want %q (host: %s)", time.Since(r.began), got, want, r.world)
	}
}

// wantNotes compares the warnings of a pod: "web: FailedPreStopHook".
func (r *rig) wantNotes(want ...string) {
	r.Helper()
	var got []string
	for _, n := range r.pod().Notes {
		if n.Warning {
			got = append(got, n.Container+": "+n.Reason)
		}
	}
	if !slices.Equal(got, want) {
		r.Errorf("notes = %q, want %q", got, want)
	}
}

func (r *rig) end(grace time.Duration, why string) {
	r.Helper()
	r.must(r.Stop(r.Context(), web0, runtime.StopOptions{Grace: grace, Why: why}))
	r.after(0)
}

func (r *rig) forget(keep bool) {
	r.Helper()
	r.must(r.Remove(r.Context(), web0, keep))
}

// again lets the pod end, and go.
func (r *rig) again() {
	r.Helper()
	r.end(0, "")
	r.forget(false)
}
