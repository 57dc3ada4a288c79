// Package enginetest states the contract of runtime.Engine as sentences and
// proves them on any engine: the simulator's in microseconds, Docker's and
// Nomad's in their own time.
package enginetest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

// Programs that a Fixture has to name.
const (
	Serve    = "serve"    // runs until it is stopped, and accepts connections on tcp port 8080
	Wait     = "wait"     // runs until it is stopped
	Done     = "done"     // ends at once with exit code 0
	Exit     = "exit"     // ends at once with exit code 3
	Brief    = "brief"    // runs for a second, then ends with exit code 3
	Stubborn = "stubborn" // runs, and ignores its stop signal
	Missing  = "missing"  // its image is neither on the host nor in a registry
)

// Program is how the engine runs one of them.
type Program struct {
	Image         string
	Command, Args []string // as in a jobspecs.Container
}

// Commands are what can be run inside a container of Serve, Wait, Brief and
// Stubborn.
type Commands struct {
	True  []string // succeeds
	False []string // fails
	Hang  []string // does not end by itself
	Role  []string // prints "primary"
	// Reason succeeds where STSD_REASON is the wanted one, and fails elsewhere.
	Reason func(want string) []string
}

// Fixture is one engine to prove, connected and without pods of the set's name.
// What is nil or empty skips the sentences that need it.
type Fixture struct {
	Engine runtime.Engine
	// Programs are the engine's, by the names above.
	Programs map[string]Program
	// Commands run inside them.
	Commands Commands
	// Line is a regular expression (RE2) for a line that Serve writes soon.
	Line string
	// Namespace of the test's pods. Default: jobspecs.DefaultNamespace.
	Namespace string
	// Complete fills in what only the engine's owner knows: network, subnet,
	// address, gateway. Nil: nothing.
	Complete func(*jobspecs.PodSpec)
	// Patience is how long to wait for what must happen. Default: 1 minute.
	Patience time.Duration

	// Kill ends the container of that name at the engine, as a user does by hand.
	Kill func(t *testing.T, name string)
	// Rename gives the container of that name another one, as a user does by hand.
	Rename func(t *testing.T, name, to string)
	// Foreign makes a container of that name that is none of the engine's, and gives
	// what removes it.
	Foreign func(t *testing.T, name string) (remove func())
	// Again ends Engine and gives another one on the same host, connected, as a
	// restarted daemon does.
	Again func(t *testing.T) runtime.Engine
	// Scratch names the volumes of scratch folders that the engine has made and
	// not removed.
	Scratch func(t *testing.T) []string
}

// Run proves the contract on the engines that fixture makes, one for each sentence.
func Run(t *testing.T, fixture func(t *testing.T) Fixture) {
	RunIn(t, func(t *testing.T, f func(*testing.T)) { f(t) }, fixture)
}

// RunIn is Run where every sentence is proved inside in: synctest.Test, for an
// engine that lives by package time alone.
func RunIn(t *testing.T, in func(*testing.T, func(*testing.T)), fixture func(t *testing.T) Fixture) {
	for _, s := range slices.Concat(sentences, ofSeveral, ofHooks, ofNames) {
		t.Run(strings.ReplaceAll(s.says, " ", "_"), func(t *testing.T) {
			in(t, func(t *testing.T) { s.prove(begin(t, fixture(t))) })
		})
	}
}

type sentence struct {
	says  string
	prove func(*bench)
}

// bench is what a sentence is proved on.
type bench struct {
	*testing.T
	Fixture
	set jobspecs.Key
}

func begin(t *testing.T, f Fixture) *bench {
	if f.Namespace == "" {
		f.Namespace = jobspecs.DefaultNamespace
	}
	if f.Patience == 0 {
		f.Patience = time.Minute
	}
	return &bench{t, f, jobspecs.Key{Namespace: f.Namespace, Name: "et"}}
}

// spec is one pod of revision et-1 that runs a program.
func (b *bench) spec(program string, ordinal int) jobspecs.PodSpec {
	s := jobspecs.PodSpec{
		Set: b.set, Ordinal: ordinal, Name: jobspecs.MemberName(b.set.Name, ordinal),
		Revision: "et-1", Service: b.set.Name, Domain: jobspecs.ServiceDomain(b.set.Name, b.set.Namespace, "cluster.local"),
		TerminationGrace: 10 * time.Second,
		Containers:       []jobspecs.Container{b.container(jobspecs.KindMain, "main", program)},
	}
	if b.Complete != nil {
		b.Complete(&s)
	}
	return s
}

// container is one of a pod that runs a program.
func (b *bench) container(kind, name, program string, change ...func(*jobspecs.Container)) jobspecs.Container {
	p := b.Programs[program]
	c := jobspecs.Container{
		Kind: kind, Name: name, Image: p.Image, Command: p.Command, Args: p.Args, Pull: jobspecs.PullNever,
		Restart: jobspecs.Restart{Initial: time.Second, Max: time.Minute, Reset: 5 * time.Minute},
	}
	if program == Missing {
		c.Pull = jobspecs.PullMissing
	}
	for _, f := range change {
		f(&c)
	}
	return c
}

func (b *bench) name(ordinal int) runtime.PodName {
	return runtime.PodName{Namespace: b.set.Namespace, Name: jobspecs.MemberName(b.set.Name, ordinal)}
}

func (b *bench) ok(what string, err error) {
	b.Helper()
	if err != nil {
		b.Fatalf("%s: %v", what, err)
	}
}

func (b *bench) is(what string, err, want error) {
	b.Helper()
	if !errors.Is(err, want) {
		b.Fatalf("%s: %v, want %v", what, err, want)
	}
}

func (b *bench) create(s jobspecs.PodSpec) {
	b.Helper()
	b.ok("create "+s.Name, b.Engine.Create(b.Context(), s))
}

func (b *bench) stop(ordinal int, grace time.Duration) {
	b.Helper()
	b.ok("stop", b.Engine.Stop(b.Context(), b.name(ordinal), runtime.StopOptions{Grace: grace}))
}

func (b *bench) remove(ordinal int, keep bool) {
	b.Helper()
	b.ok("remove", b.Engine.Remove(b.Context(), b.name(ordinal), keep))
}

func (b *bench) list() []runtime.Pod {
	b.Helper()
	list, err := b.Engine.List(b.Context(), b.set)
	b.ok("list", err)
	return list
}

// pod is the listed one; its Phase is empty when it is not listed.
func (b *bench) pod(ordinal int) runtime.Pod {
	b.Helper()
	for _, p := range b.list() {
		if p.Ordinal == ordinal {
			return p
		}
	}
	return runtime.Pod{}
}

// until waits for what must happen.
func (b *bench) until(want string, ordinal int, is func(runtime.Pod) bool) runtime.Pod {
	b.Helper()
	deadline := time.Now().Add(b.Patience)
	for {
		p := b.pod(ordinal)
		if is(p) {
			return p
		}
		if time.Now().After(deadline) {
			b.Fatalf("pod %d is %s (%s: %s), want %s", ordinal, p.Phase, p.Reason, p.Message, want)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (b *bench) untilReady(ordinal int) runtime.Pod {
	b.Helper()
	return b.until("ready", ordinal, func(p runtime.Pod) bool { return p.Phase == runtime.Running && p.Ready })
}

func (b *bench) untilStopped(ordinal int) runtime.Pod {
	b.Helper()
	return b.until("stopped", ordinal, func(p runtime.Pod) bool { return p.Gone() })
}

var sentences = []sentence{
	{"a created pod is listed at once and comes to run", func(b *bench) {
		s := b.spec(Serve, 0)
		b.create(s)
		if p := b.pod(0); p.Name != "et-0" || p.Revision != "et-1" || !p.Managed || p.Rendering != s.Digest() {
			b.Errorf("listed as %+v, want et-0 of et-1, managed, with its rendering", p)
		}
		p := b.untilReady(0)
		if !p.ReadyKnown || p.Started != s.Digest() || p.StartedAt.IsZero() || len(p.Containers) == 0 || p.Containers[0].State != "running" {
			b.Errorf("runs as %+v", p)
		}
		if s.Address.IsValid() && p.Address != s.Address {
			b.Errorf("address = %v, want %v", p.Address, s.Address)
		}
	}},
	{"create of the same revision again is nil and keeps the rendering", func(b *bench) {
		s := b.spec(Serve, 0)
		b.create(s)
		b.create(s)
		began := b.untilReady(0)
		s.Containers[0].Env = map[string]string{"MORE": "1"}
		b.create(s)
		p := b.pod(0)
		if p.Rendering != s.Digest() || p.Started == s.Digest() || !p.StartedAt.Equal(began.StartedAt) {
			b.Errorf("rendering %s of %s, started from %s at %v, want the new one kept and nothing restarted", p.Rendering, s.Digest(), p.Started, p.StartedAt)
		}
	}},
	{"create of another revision is ErrConflict and changes nothing", func(b *bench) {
		s := b.spec(Serve, 0)
		b.create(s)
		other := b.spec(Serve, 0)
		other.Revision = "et-2"
		b.is("create", b.Engine.Create(b.Context(), other), runtime.ErrConflict)
		if p := b.untilReady(0); p.Revision != "et-1" || p.Rendering != s.Digest() {
			b.Errorf("pod is %s with rendering %s", p.Revision, p.Rendering)
		}
	}},
	{"list shows one set, sorted by ordinal", func(b *bench) {
		for _, n := range []int{10, 2, 0} {
			b.create(b.spec(Serve, n))
		}
		other := b.spec(Serve, 1)
		other.Set.Name, other.Name = "et-other", "et-other-1"
		b.create(other)
		var got []int
		for _, p := range b.list() {
			got = append(got, p.Ordinal)
		}
		if want := []int{0, 2, 10}; !slices.Equal(got, want) {
			b.Errorf("ordinals = %v, want %v", got, want)
		}
		b.ok("stop", b.Engine.Stop(b.Context(), runtime.PodName{Namespace: b.set.Namespace, Name: other.Name}, runtime.StopOptions{}))
	}},
	{"stop is accepted at once and ends as Stopped", func(b *bench) {
		b.create(b.spec(Serve, 0))
		b.untilReady(0)
		b.stop(0, 10*time.Second)
		if p := b.pod(0); p.Phase != runtime.Stopping && p.Phase != runtime.Stopped {
			b.Errorf("phase = %s, want Stopping or Stopped", p.Phase)
		}
		b.stop(0, 10*time.Second)
		if p := b.untilStopped(0); p.Reason != runtime.ReasonStopRequested {
			b.Errorf("reason = %s, want StopRequested", p.Reason)
		}
		b.stop(0, 10*time.Second)
	}},
	{"stop of an absent pod is nil", func(b *bench) { b.stop(7, time.Second) }},
	{"stop cancels a creation that does not succeed", func(b *bench) {
		b.create(b.spec(Missing, 0))
		b.stop(0, time.Second)
		b.untilStopped(0)
	}},
	{"a stop with a shorter grace shortens one under way", func(b *bench) {
		b.create(b.spec(Stubborn, 0))
		b.untilReady(0)
		began := time.Now()
		b.stop(0, 10*b.Patience)
		b.stop(0, time.Second)
		b.untilStopped(0)
		if took := time.Since(began); took < 900*time.Millisecond {
			b.Errorf("ended after %v, want its grace of a second", took)
		}
	}},
	{"a pod that is stopping or ended is ErrConflict for create until it is removed", func(b *bench) {
		b.create(b.spec(Serve, 0))
		b.untilReady(0)
		b.stop(0, 10*time.Second)
		b.is("create", b.Engine.Create(b.Context(), b.spec(Serve, 0)), runtime.ErrConflict)
		b.untilStopped(0)
		b.is("create", b.Engine.Create(b.Context(), b.spec(Serve, 0)), runtime.ErrConflict)
		b.remove(0, true)
		b.create(b.spec(Serve, 0))
		b.untilReady(0)
	}},
	{"remove of a running pod is ErrRunning", func(b *bench) {
		b.create(b.spec(Serve, 0))
		b.untilReady(0)
		b.is("remove", b.Engine.Remove(b.Context(), b.name(0), false), runtime.ErrRunning)
		b.is("remove", b.Engine.Remove(b.Context(), b.name(0), true), runtime.ErrRunning)
	}},
	{"remove forgets an ended pod and is nil for an absent one", func(b *bench) {
		b.create(b.spec(Serve, 0))
		b.untilReady(0)
		b.stop(0, 10*time.Second)
		b.untilStopped(0)
		for range 2 {
			b.remove(0, true)
			if n := len(b.list()); n != 0 {
				b.Errorf("%d pods are listed, want 0", n)
			}
		}
		b.remove(0, false)
		b.remove(0, false)
	}},
	{"a process that ends is restarted with back-off and counted", func(b *bench) {
		b.create(b.spec(Exit, 0))
		p := b.until("back-off after a restart", 0, func(p runtime.Pod) bool {
			return p.Phase == runtime.Backoff && p.Restarts > 0
		})
		c := p.Containers[0]
		if p.Reason != runtime.ReasonExited || p.Tries == 0 || c.ExitCode == nil || *c.ExitCode != 3 || p.Ready {
			b.Errorf("pod is %+v, want Exited with code 3", p)
		}
		b.until("third run", 0, func(p runtime.Pod) bool { return p.Restarts > 1 })
	}},
	{"a pod that cannot be made says why and goes on trying", func(b *bench) {
		b.create(b.spec(Missing, 0))
		p := b.until("failed", 0, func(p runtime.Pod) bool { return p.Phase == runtime.Failed })
		if p.Message == "" || p.Tries == 0 || p.Ready || p.Reason == "" {
			b.Errorf("pod is %+v, want a reason, a message and tries", p)
		}
	}},
	{"a readiness probe decides what is ready", func(b *bench) {
		probe := func(port int) *jobspecs.Probe {
			return &jobspecs.Probe{TCP: &jobspecs.TCPCheck{Port: port}, Period: time.Second, Timeout: time.Second, SuccessThreshold: 1, FailureThreshold: 3}
		}
		s := b.spec(Serve, 0)
		s.Containers[0].Readiness = probe(8080)
		b.create(s)
		p := b.untilReady(0)
		if p.ReadySince.IsZero() {
			b.Error("ready since never")
		}
		s = b.spec(Serve, 1)
		s.Containers[0].Readiness = probe(8081)
		b.create(s)
		p = b.until("not ready, with the probe's words", 1, func(p runtime.Pod) bool {
			return p.Phase == runtime.Running && p.Reason == runtime.ReasonNotReady && p.Message != ""
		})
		if p.Ready || !p.ReadyKnown {
			b.Errorf("ready, known = %t, %t, want false, true", p.Ready, p.ReadyKnown)
		}
	}},
	{"namespaces do not mix", func(b *bench) {
		b.create(b.spec(Serve, 0))
		list, err := b.Engine.List(b.Context(), jobspecs.Key{Namespace: b.set.Namespace + "-x", Name: b.set.Name})
		if err != nil || len(list) != 0 {
			b.Errorf("list = %v, %v, want nothing", list, err)
		}
	}},
	{"watch hints at the set that changed and closes with its context", func(b *bench) {
		ctx, cancel := context.WithCancel(b.Context())
		defer cancel()
		hints, err := b.Engine.Watch(ctx)
		b.ok("watch", err)
		b.create(b.spec(Serve, 0))
		b.hinted(hints)
		b.untilReady(0)
		cancel()
		b.closed(hints)
	}},
}

func (b *bench) hinted(hints <-chan jobspecs.Key) {
	b.Helper()
	timeout := time.After(b.Patience)
	for {
		select {
		case key := <-hints:
			if key == b.set || key == (jobspecs.Key{}) {
				return
			}
		case <-timeout:
			b.Fatal("no hint came")
		}
	}
}

func (b *bench) closed(hints <-chan jobspecs.Key) {
	b.Helper()
	timeout := time.After(b.Patience)
	for {
		select {
		case _, open := <-hints:
			if !open {
				return
			}
		case <-timeout:
			b.Fatal("the channel did not close")
		}
	}
}
