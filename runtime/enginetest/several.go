package enginetest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

// pod is ordinal 0 with these containers.
func (b *bench) of(containers ...jobspecs.Container) jobspecs.PodSpec {
	s := b.spec(Wait, 0)
	s.Containers = containers
	return s
}

func (b *bench) init(name, program string) jobspecs.Container {
	return b.container(jobspecs.KindInit, name, program)
}

func (b *bench) sidecar(name, program string, change ...func(*jobspecs.Container)) jobspecs.Container {
	return b.container(jobspecs.KindSidecar, name, program, change...)
}

func (b *bench) main(name, program string, change ...func(*jobspecs.Container)) jobspecs.Container {
	return b.container(jobspecs.KindMain, name, program, change...)
}

// in is a container of a pod; it is empty where there is none of the name.
func in(p runtime.Pod, name string) runtime.Container {
	i := slices.IndexFunc(p.Containers, func(c runtime.Container) bool { return c.Name == name })
	if i < 0 {
		return runtime.Container{}
	}
	return p.Containers[i]
}

// states are a pod's containers in a line: "prepare exited, main running".
func states(p runtime.Pod) string {
	var list []string
	for _, c := range p.Containers {
		list = append(list, c.Name+" "+c.State)
	}
	return strings.Join(list, ", ")
}

// run is one container in one run.
func run(c runtime.Container) string { return fmt.Sprintf("%s %s %v", c.Name, c.ID, c.StartedAt.UTC()) }

func runs(p runtime.Pod, names ...string) (list []string) {
	for _, name := range names {
		list = append(list, run(in(p, name)))
	}
	return list
}

// same fails where a container was made or started again.
func (b *bench) same(before, after runtime.Pod, names ...string) {
	b.Helper()
	if was, is := runs(before, names...), runs(after, names...); !slices.Equal(was, is) {
		b.Errorf("containers were %v and are %v, want the same runs", was, is)
	}
}

// startedInOrder fails where a later container was started before an earlier one.
func (b *bench) startedInOrder(p runtime.Pod) {
	b.Helper()
	for i, c := range p.Containers[1:] {
		if before := p.Containers[i]; c.StartedAt.IsZero() || c.StartedAt.Before(before.StartedAt) {
			b.Errorf("%s was started at %v, %s at %v, want this order", before.Name, before.StartedAt, c.Name, c.StartedAt)
		}
	}
}

// waiting fails where a container was made although it must wait.
func (b *bench) waiting(p runtime.Pod, names ...string) {
	b.Helper()
	for _, name := range names {
		if c := in(p, name); c.State != "waiting" || c.ID != "" {
			b.Errorf("container %s is %s (%s), want it to wait", name, c.State, c.ID)
		}
	}
}

func exec(argv []string, failures int) *jobspecs.Probe {
	return &jobspecs.Probe{Exec: argv, Period: time.Second, Timeout: time.Second, SuccessThreshold: 1, FailureThreshold: failures}
}

// ofSeveral are the sentences of pods that have several containers.
var ofSeveral = []sentence{
	{"a pod of several containers starts them in order and lists them so", func(b *bench) {
		s := b.of(b.init("prepare", Done), b.sidecar("log", Wait), b.main("main", Serve), b.main("second", Wait))
		b.create(s)
		p := b.untilReady(0)
		if got, want := states(p), "prepare exited, log running, main running, second running"; got != want {
			b.Errorf("containers are %q, want %q", got, want)
		}
		b.startedInOrder(p)
		kinds := []string{jobspecs.KindInit, jobspecs.KindSidecar, jobspecs.KindMain, jobspecs.KindMain}
		for i, c := range p.Containers {
			if c.Kind != kinds[i] || c.ID == "" || c.Restarts != 0 || c.Kind != jobspecs.KindInit && !c.Ready {
				b.Errorf("container %+v, want kind %s, ready, never restarted", c, kinds[i])
			}
		}
		if code := in(p, "prepare").ExitCode; code == nil || *code != 0 {
			b.Errorf("exit code of the init container = %v, want 0", code)
		}
		if s.Address.IsValid() && p.Address != s.Address {
			b.Errorf("address = %v, want %v", p.Address, s.Address)
		}
		if p.Image != b.Programs[Serve].Image || p.Started != s.Digest() || !p.StartedAt.Equal(in(p, "main").StartedAt) {
			b.Errorf("pod is %+v, want it to speak of its first main", p)
		}
	}},
	{"init containers run one after the other before a lone main", func(b *bench) {
		b.create(b.of(b.init("one", Done), b.init("two", Done), b.main("main", Serve)))
		p := b.untilReady(0)
		if got, want := states(p), "one exited, two exited, main running"; got != want {
			b.Errorf("containers are %q, want %q", got, want)
		}
		b.startedInOrder(p)
	}},
	{"an init container that fails is tried again with back-off and the rest waits", func(b *bench) {
		b.create(b.of(b.init("bad", Exit), b.init("next", Done), b.main("main", Serve)))
		p := b.until("a second try of the init container", 0, func(p runtime.Pod) bool {
			b.waiting(p, "next", "main")
			return p.Phase == runtime.Backoff && in(p, "bad").Restarts > 0
		})
		c := in(p, "bad")
		if p.Reason != runtime.ReasonExited || p.Tries == 0 || p.Message == "" || c.ExitCode == nil || *c.ExitCode != 3 {
			b.Errorf("pod is %+v, want Exited, and code 3 of its init container", p)
		}
		if p.Ready || p.Restarts != 0 {
			b.Errorf("ready = %t with %d restarts, want false and 0: an init container is not meant to last", p.Ready, p.Restarts)
		}
		b.stop(0, time.Second)
		b.untilStopped(0)
	}},
	{"an init container that runs is named and can be stopped", func(b *bench) {
		b.create(b.of(b.init("long", Wait), b.main("main", Serve)))
		p := b.until("initializing", 0, func(p runtime.Pod) bool {
			return p.Phase == runtime.Initializing && in(p, "long").State == "running"
		})
		if p.Reason != runtime.ReasonInitRunning || !strings.Contains(p.Message, "long") || p.Ready {
			b.Errorf("pod is %+v, want InitRunning that names the container", p)
		}
		b.waiting(p, "main")
		b.stop(0, 10*time.Second)
		p = b.untilStopped(0)
		b.waiting(p, "main")
	}},
	{"a failing init container beside a sidecar keeps the pod initializing", func(b *bench) {
		b.create(b.of(b.sidecar("log", Wait), b.init("bad", Exit), b.main("main", Serve)))
		began := b.until("the sidecar", 0, func(p runtime.Pod) bool { return in(p, "log").State == "running" })
		p := b.until("a third try of the init container", 0, func(p runtime.Pod) bool {
			b.waiting(p, "main")
			return in(p, "bad").Restarts > 1
		})
		b.same(began, p, "log")
	}},
	{"init containers are not repeated when a main is restarted", func(b *bench) {
		b.create(b.of(b.init("prepare", Done), b.main("main", Brief)))
		began := b.until("running", 0, func(p runtime.Pod) bool { return in(p, "main").State == "running" })
		p := b.until("a second restart", 0, func(p runtime.Pod) bool { return p.Restarts > 1 })
		if c := in(p, "prepare"); c.Restarts != 0 || c.State == "running" || !c.StartedAt.Equal(in(began, "prepare").StartedAt) {
			b.Errorf("the init container was %+v and is %+v, want it not repeated", in(began, "prepare"), c)
		}
	}},
	{"what follows a sidecar waits for its startup", func(b *bench) {
		never := func(c *jobspecs.Container) { c.Startup = exec(b.Commands.False, 600) }
		b.create(b.of(b.sidecar("log", Wait, never), b.init("prepare", Done), b.main("main", Serve)))
		p := b.until("a startup that is pending", 0, func(p runtime.Pod) bool {
			return in(p, "log").State == "running" && p.Phase == runtime.Starting && p.Reason == runtime.ReasonStartupPending
		})
		b.waiting(p, "prepare", "main")
		if p.Ready {
			b.Error("it is ready")
		}
	}},
	{"what follows a sidecar does not wait for its readiness", func(b *bench) {
		never := func(c *jobspecs.Container) { c.Readiness = exec(b.Commands.False, 1) }
		b.create(b.of(b.sidecar("log", Wait, never), b.main("main", Serve)))
		p := b.until("a main that is ready", 0, func(p runtime.Pod) bool { return in(p, "main").Ready && p.Reason == runtime.ReasonNotReady })
		if p.Ready || in(p, "log").Ready {
			b.Errorf("pod is %+v, want it not ready because its sidecar is not", p)
		}
	}},
	{"a pod is ready when all its mains are", func(b *bench) {
		never := func(c *jobspecs.Container) { c.Readiness = exec(b.Commands.False, 1) }
		b.create(b.of(b.main("main", Serve), b.main("second", Wait, never)))
		p := b.until("not ready", 0, func(p runtime.Pod) bool { return p.Reason == runtime.ReasonNotReady && in(p, "main").Ready })
		if p.Ready || !p.ReadySince.IsZero() {
			b.Errorf("ready = %t since %v, want it not ready", p.Ready, p.ReadySince)
		}
	}},
	{"the restart of one main leaves the others and the address alone", func(b *bench) {
		b.create(b.of(b.init("prepare", Done), b.sidecar("log", Wait), b.main("main", Serve), b.main("second", Brief)))
		began := b.untilReady(0)
		p := b.until("a restart of the second", 0, func(p runtime.Pod) bool {
			return in(p, "second").Restarts > 0 && in(p, "second").State == "running"
		})
		b.same(began, p, "prepare", "log", "main")
		if run(in(began, "second")) == run(in(p, "second")) || p.Restarts != in(p, "second").Restarts || p.Address != began.Address {
			b.Errorf("pod was %+v and is %+v, want one fresh container at the same address", began, p)
		}
	}},
	{"a sidecar that ends is restarted alone", func(b *bench) {
		b.create(b.of(b.sidecar("log", Brief), b.main("main", Serve)))
		began := b.untilReady(0)
		p := b.until("a restart of the sidecar", 0, func(p runtime.Pod) bool { return in(p, "log").Restarts > in(began, "log").Restarts })
		b.same(began, p, "main")
	}},
	{"a main that is first may restart while the second runs on", func(b *bench) {
		b.create(b.of(b.main("main", Brief), b.main("second", Wait)))
		began := b.untilReady(0)
		p := b.until("back-off of the first", 0, func(p runtime.Pod) bool { return p.Phase == runtime.Backoff && p.Restarts > 0 })
		b.same(began, p, "second")
		if p.Ready || p.Reason != runtime.ReasonExited {
			b.Errorf("pod is %+v, want it not ready: Exited", p)
		}
	}},
	{"stop ends the mains, then the sidecars in reverse order", func(b *bench) {
		b.create(b.of(b.sidecar("a", Wait), b.sidecar("b", Wait), b.main("main", Wait), b.main("second", Wait)))
		b.untilReady(0)
		b.stop(0, 20*time.Second)
		var order []string
		b.until("stopped", 0, func(p runtime.Pod) bool {
			for _, name := range []string{"second", "main", "b", "a"} {
				if in(p, name).State != "running" && !slices.Contains(order, name) {
					order = append(order, name)
				}
			}
			return p.Gone()
		})
		if len(order) != 4 || order[2] != "b" || order[3] != "a" {
			b.Errorf("they ended in the order %v, want the mains, then b, then a", order)
		}
	}},
	{"containers that share their processes run and end", func(b *bench) {
		s := b.of(b.init("prepare", Done), b.main("main", Serve))
		s.ShareProcesses = true
		b.create(s)
		if p := b.untilReady(0); len(p.Containers) != 2 {
			b.Errorf("containers are %q, want prepare and main: the sandbox is none of them", states(p))
		}
		b.stop(0, 10*time.Second)
		b.untilStopped(0)
	}},
	{"a pod that was removed begins anew with its init containers", func(b *bench) {
		s := b.of(b.init("prepare", Done), b.sidecar("log", Wait), b.main("main", Serve))
		b.create(s)
		began := b.untilReady(0)
		b.stop(0, 10*time.Second)
		b.untilStopped(0)
		b.remove(0, true)
		if n := len(b.list()); n != 0 {
			b.Errorf("%d pods are listed, want 0", n)
		}
		b.create(s)
		p := b.untilReady(0)
		if !in(p, "prepare").StartedAt.After(in(began, "main").StartedAt) || p.Address != began.Address {
			b.Errorf("pod was %+v and is %+v, want a new one at the same address", began, p)
		}
		b.startedInOrder(p)
		b.stop(0, 10*time.Second)
		b.untilStopped(0)
		b.remove(0, false)
	}},
	{"a missing image of one container is told of it", func(b *bench) {
		b.create(b.of(b.main("main", Serve), b.main("second", Missing)))
		p := b.until("failed", 0, func(p runtime.Pod) bool { return p.Phase == runtime.Failed && in(p, "main").State == "running" })
		if p.Ready || p.Message == "" || in(p, "second").Reason != p.Reason || in(p, "main").Reason != "" {
			b.Errorf("pod is %+v, want the failure of its second container", p)
		}
		b.stop(0, time.Second)
		b.untilStopped(0)
	}},
	{"the end of the sandbox begins the whole pod again", func(b *bench) {
		if b.Kill == nil {
			b.Skip("nobody can kill a container here")
		}
		b.create(b.of(b.init("prepare", Done), b.sidecar("log", Wait), b.main("main", Serve)))
		began := b.untilReady(0)
		b.Kill(b.T, jobspecs.ContainerName(b.set.Namespace, b.name(0).Name, jobspecs.PartSandbox))
		p := b.until("a fresh main", 0, func(p runtime.Pod) bool {
			return p.Phase == runtime.Running && p.Ready && in(p, "main").ID != in(began, "main").ID
		})
		for _, name := range []string{"prepare", "log", "main"} {
			if run(in(p, name)) == run(in(began, name)) {
				b.Errorf("container %s is the same as before", name)
			}
		}
		b.startedInOrder(p)
		if p.Address != began.Address || p.Restarts == 0 {
			b.Errorf("pod is %+v, want it at %v, restarted", p, began.Address)
		}
	}},
	{"one container that is killed is restarted alone", func(b *bench) {
		if b.Kill == nil {
			b.Skip("nobody can kill a container here")
		}
		b.create(b.of(b.sidecar("log", Wait), b.main("main", Serve), b.main("second", Wait)))
		began := b.untilReady(0)
		b.Kill(b.T, jobspecs.ContainerName(b.set.Namespace, b.name(0).Name, "second"))
		p := b.until("ready again", 0, func(p runtime.Pod) bool { return p.Ready && in(p, "second").Restarts == 1 })
		b.same(began, p, "log", "main")
		if c := in(p, "second"); c.Signal != "SIGKILL" || c.ExitCode == nil || *c.ExitCode != 137 {
			b.Errorf("container is %+v, want it to tell how the one before ended", c)
		}
	}},
	{"a new engine takes a running pod over as it is", func(b *bench) {
		if b.Again == nil {
			b.Skip("there is no second engine here")
		}
		s := b.of(b.init("prepare", Done), b.sidecar("log", Wait), b.main("main", Serve), b.main("second", Wait))
		b.create(s)
		began := b.untilReady(0)
		b.Engine = b.Again(b.T)
		p := b.until("listed", 0, func(p runtime.Pod) bool { return p.Name == "et-0" })
		if p.Managed || p.Ready || p.ReadyKnown || p.Revision != "et-1" {
			b.Errorf("pod is %+v, want it unmanaged, and its readiness unknown", p)
		}
		b.same(began, p, "log", "main", "second")
		b.create(s)
		p = b.until("ready and known", 0, func(p runtime.Pod) bool { return p.Managed && p.Ready && p.ReadyKnown })
		b.same(began, p, "log", "main", "second")
		if p.Restarts != 0 || in(p, "prepare").State == "running" || p.Started != s.Digest() || p.Address != began.Address {
			b.Errorf("pod was %+v and is %+v, want nothing restarted", began, p)
		}
	}},
	{"a new engine goes on with an init container that runs", func(b *bench) {
		if b.Again == nil {
			b.Skip("there is no second engine here")
		}
		s := b.of(b.init("long", Wait), b.main("main", Serve))
		b.create(s)
		began := b.until("initializing", 0, func(p runtime.Pod) bool { return in(p, "long").State == "running" })
		b.Engine = b.Again(b.T)
		b.create(s)
		p := b.until("initializing", 0, func(p runtime.Pod) bool { return p.Phase == runtime.Initializing })
		b.same(began, p, "long")
		b.waiting(p, "main")
		b.stop(0, 10*time.Second)
		b.untilStopped(0)
	}},
	{"a scratch folder is made with the pod and goes with it", func(b *bench) {
		if b.Scratch == nil {
			b.Skip("nobody can list scratch folders here")
		}
		s := b.of(b.sidecar("log", Wait), b.main("main", Brief))
		s.Scratch = []jobspecs.Scratch{{Name: "tmp", Volume: jobspecs.ScratchName(b.set.Namespace, "tmp", b.set.Name, 0), Medium: jobspecs.MediumDisk}}
		for i := range s.Containers {
			s.Containers[i].Mounts = []jobspecs.Mount{{Kind: jobspecs.MountScratch, Claim: "tmp", Path: "/scratch"}}
		}
		want := []string{s.Scratch[0].Volume}
		b.create(s)
		b.until("a restart", 0, func(p runtime.Pod) bool { return in(p, "main").Restarts > 0 && in(p, "main").State == "running" })
		if got := b.Scratch(b.T); !slices.Equal(got, want) {
			b.Errorf("scratch folders = %v, want %v", got, want)
		}
		b.stop(0, time.Second)
		b.untilStopped(0)
		b.remove(0, true)
		if got := b.Scratch(b.T); len(got) != 0 {
			b.Errorf("scratch folders = %v, want none after the pod", got)
		}
	}},
}
