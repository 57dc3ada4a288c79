package sim_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/runtime/pods"
	"github.com/stsd/stsd/runtime/sim"
)

func wantViolations(t *testing.T, w *sim.World, want ...string) {
	t.Helper()
	if got := w.Violations(); !slices.Equal(got, want) {
		t.Errorf("violations = %q, want %q", got, want)
	}
}

var web0 = runtime.PodName{Namespace: "default", Name: "web-0"}

// pod is web-0 with a sandbox, an init container, a sidecar and a main, each made
// by hand where a test wants it.
type pod struct {
	*testing.T
	world *sim.World
	host  pods.Host
	spec  jobspecs.PodSpec
	ids   map[string]string // by part
}

// onPod runs f in a bubble. Each container runs the image of its own name.
func onPod(t *testing.T, programs map[string]sim.Program, f func(p *pod)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := &pod{T: t, world: sim.New(sim.Config{}), ids: map[string]string{}}
		p.host = p.world.Host()
		p.spec = jobspecs.PodSpec{
			Set: web, Name: "web-0", Revision: "web-1", Network: "stsd", Address: netip.MustParseAddr("10.87.0.10"),
			Scratch: []jobspecs.Scratch{
				{Name: "tmp", Volume: "tmp-web-0_scratch", Medium: jobspecs.MediumDisk},
				{Name: "shm", Volume: "shm-web-0_scratch", Medium: jobspecs.MediumMemory},
			},
			Containers: []jobspecs.Container{
				{Kind: jobspecs.KindInit, Name: "prepare", Image: "prepare"},
				{Kind: jobspecs.KindSidecar, Name: "log", Image: "log"},
				{Kind: jobspecs.KindMain, Name: "web", Image: "web", Ports: []jobspecs.Port{{Container: 80, Host: 8080, Protocol: "tcp"}}},
			},
		}
		for _, c := range p.spec.Containers {
			p.world.Program(c.Image, programs[c.Name])
		}
		f(p)
	})
}

// make makes a part of the pod, joined to the sandbox where there is one.
func (p *pod) make(part string, change ...func(*pods.ContainerSpec)) error {
	p.Helper()
	image, err := p.host.SandboxImage(p.Context())
	if err != nil {
		p.Fatal(err)
	}
	main := jobspecs.Container{Kind: jobspecs.KindSandbox}
	if i := slices.IndexFunc(p.spec.Containers, func(c jobspecs.Container) bool { return c.Name == part }); i >= 0 {
		main = p.spec.Containers[i]
		image = pods.Image{ID: main.Image}
	}
	name := part
	if part == "web" {
		name = ""
	}
	s := pods.ContainerSpec{
		Name: jobspecs.ContainerName("default", "web-0", name), Image: image, Pod: p.spec, Main: main, Sandbox: p.ids[jobspecs.PartSandbox],
		Labels: map[string]string{
			jobspecs.LabelDaemon: p.world.Daemon(), jobspecs.LabelNamespace: "default", jobspecs.LabelSet: "web", jobspecs.LabelOrdinal: "0",
			jobspecs.LabelRevision: "web-1", jobspecs.LabelContainer: part,
		},
	}
	if part == jobspecs.PartSandbox {
		s.Sandbox = ""
	}
	for _, f := range change {
		f(&s)
	}
	id, err := p.host.Create(p.Context(), s)
	p.ids[part] = id
	return err
}

func (p *pod) start(part string) error { return p.host.Start(p.Context(), p.ids[part]) }

// run makes parts and starts them, one after the other.
func (p *pod) run(parts ...string) {
	p.Helper()
	for _, part := range parts {
		if err := errors.Join(p.make(part), p.start(part)); err != nil {
			p.Fatalf("run %s: %v", part, err)
		}
		time.Sleep(time.Millisecond)
	}
}

func (p *pod) target(part string) pods.Target {
	c, err := p.host.Inspect(p.Context(), p.ids[part])
	if err != nil {
		p.Fatal(err)
	}
	return pods.Target{ID: c.ID, Address: p.spec.Address, Run: c.StartedAt}
}

func (p *pod) check(part string, probe jobspecs.Probe) string {
	said, err := p.host.Check(p.Context(), p.target(part), probe)
	return strings.TrimSpace(fmt.Sprint(said, " ", err))
}

func (p *pod) wantCheck(part string, probe jobspecs.Probe, want string) {
	p.Helper()
	if got := p.check(part, probe); got != want {
		p.Errorf("check of %s = %q, want %q", part, got, want)
	}
}

func (p *pod) want(host string) {
	p.Helper()
	if got := p.world.String(); got != host {
		p.Errorf("host has %q, want %q", got, host)
	}
}

func wantError(t *testing.T, err error, reason, message string) {
	t.Helper()
	var p *pods.Problem
	if !errors.As(err, &p) || p.Reason != reason || p.Error() != message {
		t.Errorf("error = %v, want %s: %s", err, reason, message)
	}
}

const sandbox = jobspecs.PartSandbox

var (
	done  = map[string]sim.Program{"prepare": {ExitAfter: 1}}
	tcp80 = jobspecs.Probe{TCP: &jobspecs.TCPCheck{Port: 80}}
)

func TestContainersOfAPodShareTheSandboxsNetwork(t *testing.T) {
	onPod(t, done, func(p *pod) {
		p.run(sandbox, "prepare", "log", "web")
		p.want("web-0 running, web-0_log running, web-0_prepare exited, web-0_sandbox running")
		var addresses []string
		for _, c := range p.world.Containers() {
			addresses = append(addresses, c.Address.String())
		}
		if got, want := strings.Join(addresses, " "), "invalid IP invalid IP invalid IP 10.87.0.10"; got != want {
			t.Errorf("addresses = %s, want %s", got, want)
		}
		port := p.spec.Containers[2].Ports[0]
		engine := sim.NewEngine(p.world)
		owners := fmt.Sprintf("%q %q", engine.PortOwner(p.Context(), web0, port), engine.PortOwner(p.Context(), runtime.PodName{Name: "web-1"}, port))
		if want := `"" "container web-0_sandbox"`; owners != want {
			t.Errorf("owners of the port = %s, want %s", owners, want)
		}
		wantViolations(t, p.world)
	})
}

func TestWhatJoinsASandboxNeedsItRunning(t *testing.T) {
	onPod(t, done, func(p *pod) {
		p.run(sandbox, "prepare", "log")
		if err := p.make("web"); err != nil {
			t.Fatal(err)
		}
		id := p.ids[sandbox]
		p.world.Kill("web-0_sandbox")
		wantError(t, p.start("web"), runtime.ReasonSandbox, "the sandbox to join has ended: cannot join network of a non running container: "+id)
		p.world.RemoveContainer("web-0_sandbox")
		wantError(t, p.start("web"), runtime.ReasonSandbox, "the sandbox to join has ended: no such container: "+id)
		p.run(sandbox)
		wantError(t, p.start("web"), runtime.ReasonSandbox, "the sandbox to join has ended: no such container: "+id)
		p.world.Restart("web-0")
		p.want("web-0 created, web-0_log running, web-0_prepare exited, web-0_sandbox running")
		p.ids[sandbox] = id
		p.world.RemoveContainer("web-0")
		wantError(t, p.make("web"), runtime.ReasonSandbox, "the sandbox to join has ended: no such container: "+id)
	})
}

func TestADeadSandboxTakesTheNetworkAway(t *testing.T) {
	onPod(t, done, func(p *pod) {
		p.run(sandbox, "prepare", "log", "web")
		p.wantCheck("web", tcp80, "<nil>")
		p.world.Kill("web-0_sandbox")
		p.want("web-0 running, web-0_log running, web-0_prepare exited, web-0_sandbox exited")
		p.wantCheck("web", tcp80, "tcp :80: no route to host")
		p.wantCheck("web", jobspecs.Probe{Exec: []string{"true"}}, "<nil>")
		p.world.Restart("web-0_sandbox") // another network, which nobody joined
		p.wantCheck("web", tcp80, "tcp :80: no route to host")
	})
}

func TestProcessesThatAreSharedEndWithTheSandbox(t *testing.T) {
	onPod(t, done, func(p *pod) {
		p.spec.ShareProcesses = true
		p.run(sandbox, "prepare", "log", "web")
		p.world.Kill("web-0_sandbox")
		p.want("web-0 exited, web-0_log exited, web-0_prepare exited, web-0_sandbox exited")
	})
}

func TestContainersThatRunBeforeTheirTimeAreViolations(t *testing.T) {
	failed := map[string]sim.Program{"prepare": {ExitAfter: 1, ExitCode: 1}}
	for _, c := range []struct {
		name     string
		programs map[string]sim.Program
		parts    []string
		want     []string
	}{
		{"in order", done, []string{sandbox, "prepare", "log", "web"}, nil},
		{"no init", done, []string{sandbox, "log"}, []string{"web-0_log runs before init container prepare ended with 0"}},
		{"init runs", nil, []string{sandbox, "prepare", "log"}, []string{"web-0_log runs before init container prepare ended with 0"}},
		{"init failed", failed, []string{sandbox, "prepare", "log"}, []string{"web-0_log runs before init container prepare ended with 0"}},
		{"no sidecar", done, []string{sandbox, "prepare", "web"}, []string{"web-0 runs before sidecar log was started"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			onPod(t, c.programs, func(p *pod) {
				p.run(c.parts...)
				wantViolations(p.T, p.world, c.want...)
			})
		})
	}
}

func TestANewLifeOfAPodBeginsWithItsInits(t *testing.T) {
	onPod(t, done, func(p *pod) {
		p.run(sandbox, "prepare", "log", "web")
		p.world.RestartEngine(0)
		p.world.RemoveContainer("web-0_sandbox")
		p.world.RemoveContainer("web-0")
		p.run(sandbox, "web")
		wantViolations(t, p.world, "web-0 runs before init container prepare ended with 0", "web-0 runs before sidecar log was started")
	})
	onPod(t, done, func(p *pod) { // without a sandbox it is the removal that ends a life
		p.spec.Containers = slices.Delete(p.spec.Containers, 1, 2)
		p.run("prepare", "web")
		p.world.RemoveContainer("web-0")
		p.run("web")
		wantViolations(t, p.world)
		p.world.RemoveContainer("web-0")
		if err := p.host.RemoveScratch(p.Context(), web0); err != nil {
			t.Fatal(err)
		}
		p.run("web")
		wantViolations(t, p.world, "web-0 runs before init container prepare ended with 0")
	})
}

func TestTwoLivesOfOnePodAtOnceAreAViolation(t *testing.T) {
	onPod(t, done, func(p *pod) {
		p.run(sandbox, "prepare", "log")
		p.world.Kill("web-0_sandbox")
		p.world.RemoveContainer("web-0_sandbox")
		p.run(sandbox)
		wantViolations(t, p.world, "web-0_sandbox runs beside web-0_log and does not share its network")
	})
	onPod(t, done, func(p *pod) {
		p.run(sandbox, "prepare", "log")
		if err := p.make("web", func(s *pods.ContainerSpec) { s.Labels[jobspecs.LabelRevision] = "web-2" }); err != nil {
			t.Fatal(err)
		}
		if err := p.start("web"); err != nil {
			t.Fatal(err)
		}
		wantViolations(t, p.world,
			"web-0 of revision web-2 runs beside web-0_sandbox of revision web-1",
			"web-0 of revision web-2 runs beside web-0_log of revision web-1",
			"web-0 runs before init container prepare ended with 0",
			"web-0 runs before sidecar log was started")
	})
}

func TestContainersOfOnePodShareAVolumeTwoPodsNever(t *testing.T) {
	onPod(t, done, func(p *pod) {
		mine := container(t, p.world, "", 0).Main.Mounts
		for i := range p.spec.Containers {
			p.spec.Containers[i].Mounts = mine
		}
		p.run(sandbox, "prepare", "log", "web")
		wantViolations(t, p.world)
		disk, _ := p.world.Disk("data-web-0")
		if got, want := fmt.Sprint(disk.Writers), "[web-0_prepare web-0_log web-0]"; got != want {
			t.Errorf("writers = %s, want %s", got, want)
		}
		thief := container(t, p.world, "web-1", 1)
		thief.Main.Mounts = mine
		p.world.Program("web:1", sim.Program{})
		if err := start(t, p.world, thief); err != nil {
			t.Fatal(err)
		}
		wantViolations(t, p.world, "web-0 and web-1 both run on volume data-web-0")
	})
}

func TestAVolumeThatIsGoneIsNotReplaced(t *testing.T) {
	w := sim.New(sim.Config{})
	w.Program("web:1", sim.Program{})
	spec := container(t, w, "web-0", 0)
	w.RemoveVolume("data-web-0")
	wantError(t, start(t, w, spec), runtime.ReasonCreateFailed, "volume data-web-0 is gone")
	w.ForeignVolume("data-web-0", nil)
	wantError(t, start(t, w, spec), runtime.ReasonVolumeForeign, "volume data-web-0 exists and is not ours (made by somebody else)")
	if got := len(w.Disks()); got != 1 || w.String() != "" {
		t.Errorf("%d volumes and containers %q, want the foreign one alone", got, w)
	}
}

func TestAFreshVolumeRemembersWhoPreparedIt(t *testing.T) {
	w := sim.New(sim.Config{})
	w.Program("web:1", sim.Program{})
	spec := container(t, w, "web-0", 0)
	spec.Fresh = []string{"data-web-0", "other-web-0"}
	if err := start(t, w, spec); err != nil {
		t.Fatal(err)
	}
	if d, _ := w.Disk("data-web-0"); !slices.Equal(d.Prepared, []string{"web-0"}) {
		t.Errorf("prepared by %v, want web-0", d.Prepared)
	}
}

func TestScratchLivesAsLongAsThePod(t *testing.T) {
	onPod(t, done, func(p *pod) {
		for i := range p.spec.Containers {
			p.spec.Containers[i].Mounts = []jobspecs.Mount{
				{Kind: jobspecs.MountScratch, Claim: "tmp", Path: "/tmp"}, {Kind: jobspecs.MountScratch, Claim: "shm", Path: "/shm"},
				{Kind: jobspecs.MountBind, Claim: "certs", Source: "/etc/ssl", Path: "/certs"},
			}
		}
		p.run(sandbox, "prepare", "log", "web")
		before := p.world.Scratches()
		p.world.RemoveContainer("web-0")
		p.run("web")
		after := p.world.Scratches()
		show := func(list []sim.Disk) (s string) {
			for _, d := range list {
				s += fmt.Sprintf("%s %v; ", d.Name, d.Writers)
			}
			return s
		}
		want := "shm-web-0_scratch [web-0_sandbox web-0_prepare web-0_log web-0]; tmp-web-0_scratch [web-0_prepare web-0_log web-0]; "
		if show(before) != want || show(after) != want || before[0].Serial != after[0].Serial || before[1].Serial != after[1].Serial {
			t.Errorf("scratch = %s, then %s, want the same %s", show(before), show(after), want)
		}
		if list, err := p.world.Volumes().List(p.Context(), web); err != nil || len(list) != 0 || len(p.world.Disks()) != 0 {
			t.Errorf("the volumes of claims are %v, %v, want none", list, err)
		}
		wantError := "remove scratch volume shm-web-0_scratch: it is in use"
		if err := p.host.RemoveScratch(p.Context(), web0); err == nil || err.Error() != wantError {
			t.Errorf("remove scratch = %v, want %s", err, wantError)
		}
		for _, name := range []string{"web-0", "web-0_log", "web-0_prepare", "web-0_sandbox"} {
			p.world.RemoveContainer(name)
		}
		if err := errors.Join(p.host.RemoveScratch(p.Context(), web0), p.host.RemoveScratch(p.Context(), web0)); err != nil || len(p.world.Scratches()) != 0 {
			t.Errorf("remove scratch = %v, and %v stay", err, p.world.Scratches())
		}
	})
}

func TestScratchThatCannotBe(t *testing.T) {
	onPod(t, nil, func(p *pod) {
		p.world.ForeignVolume("tmp-web-0_scratch", nil)
		mount := func(claim string) func(*pods.ContainerSpec) {
			return func(s *pods.ContainerSpec) {
				s.Main.Mounts = []jobspecs.Mount{{Kind: jobspecs.MountScratch, Claim: claim}}
			}
		}
		wantError(t, p.make("web", mount("tmp")), runtime.ReasonVolumeForeign, "volume tmp-web-0_scratch exists and is not ours (made by somebody else)")
		wantError(t, p.make("web", mount("nope")), runtime.ReasonCreateFailed, "pod web-0 has no scratch folder nope")
		if err := p.make("web", mount("shm")); err != nil || len(p.world.Scratches()) != 0 {
			t.Errorf("memory of a lone container: %v, %v, want no volume", err, p.world.Scratches())
		}
	})
}

func TestChecks(t *testing.T) {
	programs := map[string]sim.Program{
		"prepare": {ExitAfter: 1},
		"log":     {NeverReady: true, Says: "replica"},
		"web":     {Says: "primary", LogLine: "ready to accept connections", LogAfter: time.Minute},
	}
	grpc := jobspecs.Probe{GRPC: &jobspecs.GRPCCheck{Port: 9000, Service: "db"}}
	role := jobspecs.Probe{Exec: []string{"role"}}
	log := jobspecs.Probe{Log: &jobspecs.LogCheck{Pattern: "^ready to"}}
	onPod(t, programs, func(p *pod) {
		p.run(sandbox, "prepare", "log", "web")
		p.wantCheck("web", grpc, "<nil>")
		p.wantCheck("log", grpc, "grpc :9000 db: connection refused")
		p.wantCheck("web", role, "primary <nil>")
		p.wantCheck("log", role, "replica exec role: connection refused")
		p.world.Say("web-0", "replica")
		p.wantCheck("web", role, "replica <nil>")
		p.wantCheck("web", log, "log ^ready to: no line matches")
		time.Sleep(time.Minute)
		p.wantCheck("web", log, "<nil>")
		p.world.Sicken("web-0", "503")
		p.wantCheck("web", log, "<nil>")
		p.wantCheck("web", tcp80, "tcp :80: 503")
		at := p.target("web")
		at.Since = time.Now()
		if _, err := p.host.Check(p.Context(), at, log); err == nil {
			t.Error("a log probe reads what was there at its last look")
		}
		p.world.Print("web-0", "ready to begin")
		if _, err := p.host.Check(p.Context(), at, log); err != nil {
			t.Errorf("a log probe does not see a new line: %v", err)
		}
		p.wantCheck("web", jobspecs.Probe{Log: &jobspecs.LogCheck{Pattern: "("}}, "log (: error parsing regexp: missing closing ): `(`")
		at.Address = netip.MustParseAddr("10.87.0.11")
		if _, err := p.host.Check(p.Context(), at, tcp80); fmt.Sprint(err) != "tcp :80: no route to host" {
			t.Errorf("check at another address: %v", err)
		}
	})
}

func TestHooks(t *testing.T) {
	post := pods.Hook{Kind: pods.PostStart, Handler: jobspecs.Handler{Exec: []string{"join"}}, Env: map[string]string{"STSD_REASON": "start"}}
	pre := pods.Hook{Kind: pods.PreStop, Handler: jobspecs.Handler{HTTP: &jobspecs.HTTPCheck{Port: 80, Path: "/drain"}}}
	sleep := pods.Hook{Kind: pods.PreStop, Handler: jobspecs.Handler{Sleep: 5 * time.Second}}
	for _, c := range []struct {
		name    string
		program sim.Program
		hook    pods.Hook
		meet    func(p *pod) // while the hook goes on, after a second
		takes   time.Duration
		err     string
		posted  bool
	}{
		{"a post_start is remembered", sim.Program{PostStartTime: 3 * time.Second}, post, nil, 3 * time.Second, "<nil>", true},
		{"a post_start that fails is not", sim.Program{PostStartError: errors.New("exit code 1")}, post, nil, 0, "exec join: exit code 1", false},
		{"a pre_stop", sim.Program{PreStopTime: 2 * time.Second}, pre, nil, 2 * time.Second, "<nil>", false},
		{"a pre_stop that fails", sim.Program{PreStopError: errors.New("404 Not Found")}, pre, nil, 0, "http :80/drain: 404 Not Found", false},
		{"a sleep", sim.Program{PreStopTime: time.Hour}, sleep, nil, 5 * time.Second, "<nil>", false},
		{"one that hangs ends with ctx", sim.Program{PostStartTime: -1}, post, nil, 10 * time.Second, "exec join: it did not end in time", false},
		{"one that runs in a container ends with it", sim.Program{PostStartTime: -1}, post, func(p *pod) { p.world.Kill("web-0") }, time.Second, "exec join: the container ended", false},
		{"a sleep does not", sim.Program{}, sleep, func(p *pod) { p.world.Kill("web-0") }, 5 * time.Second, "<nil>", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			onPod(t, map[string]sim.Program{"prepare": {ExitAfter: 1}, "web": c.program}, func(p *pod) {
				p.run(sandbox, "prepare", "log", "web")
				ctx, cancel := context.WithTimeout(p.Context(), 10*time.Second)
				defer cancel()
				if c.meet != nil {
					time.AfterFunc(time.Second, func() { c.meet(p) })
				}
				began := time.Now()
				err := p.host.Hook(ctx, p.target("web"), c.hook)
				main, _ := p.world.Container("web-0")
				if fmt.Sprint(err) != c.err || time.Since(began) != c.takes || main.PostStarted != c.posted {
					p.Errorf("hook = %v after %v, remembered %t, want %s after %v, %t", err, time.Since(began), main.PostStarted, c.err, c.takes, c.posted)
				}
				calls := p.world.Hooks()
				if len(calls) != 1 || calls[0].String() != c.hook.Kind+" web-0 ("+c.hook.Env["STSD_REASON"]+")" || calls[0].Ended.Sub(calls[0].Began) != c.takes {
					p.Errorf("hooks = %v", calls)
				}
				synctest.Wait()
			})
		})
	}
}

func TestAHookAndItsFaults(t *testing.T) {
	hook := pods.Hook{Kind: pods.PostStart, Handler: jobspecs.Handler{Exec: []string{"join"}}}
	onPod(t, done, func(p *pod) {
		p.run(sandbox, "prepare", "log", "web")
		p.world.Fail(sim.Fault{Verb: "hook", When: sim.Before})
		before := p.host.Hook(p.Context(), p.target("web"), hook)
		none := len(p.world.Hooks())
		p.world.Fail(sim.Fault{Verb: "hook", When: sim.After})
		after := p.host.Hook(p.Context(), p.target("web"), hook)
		c, _ := p.world.Container("web-0")
		if got, want := fmt.Sprint(before, none, after, c.PostStarted), "injected fault 0 injected fault true"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		p.world.EmptyRun()
		if c, _ = p.world.Container("web-0"); c.PostStarted {
			t.Error("the hook is remembered although /run was emptied")
		}
		p.world.Kill("web-0")
		if err := p.host.Hook(p.Context(), p.target("web"), hook); fmt.Sprint(err) != "exec join: container is exited" {
			t.Errorf("hook of an ended container: %v", err)
		}
		if got, want := fmt.Sprint(p.world.Writes()[len(p.world.Writes())-3:]), "[hook web-0 hook web-0 hook web-0]"; got != want {
			t.Errorf("writes = %s, want %s", got, want)
		}
	})
}

func TestSensitiveFilesLiveInMemory(t *testing.T) {
	secret := func(s *pods.ContainerSpec) {
		s.Main.Files = []jobspecs.File{{Path: "/key", Content: []byte("x"), Sensitive: true}}
	}
	onPod(t, done, func(p *pod) {
		p.run(sandbox, "prepare", "log")
		p.world.NoMemoryFolder(true)
		wantError(t, p.make("web", secret), runtime.ReasonNoMemoryFolder, "there is no folder in memory for the sensitive files of web-0")
		p.world.NoMemoryFolder(false)
		if err := errors.Join(p.make("web", secret), p.start("web")); err != nil {
			t.Fatal(err)
		}
		p.world.EmptyRun()
		p.want("web-0 running, web-0_log running, web-0_prepare exited, web-0_sandbox running")
		p.world.Kill("web-0")
		wantError(t, p.start("web"), runtime.ReasonCreateFailed, "start web-0: a file that is mounted into it is gone")
		p.world.RemoveContainer("web-0")
		if err := errors.Join(p.make("web", secret), p.start("web")); err != nil {
			t.Errorf("a new one: %v", err)
		}
	})
}

func TestImages(t *testing.T) {
	w := sim.New(sim.Config{})
	ctx, host := t.Context(), w.Host()
	w.Program("arm:1", sim.Program{Platform: "linux/arm64", User: "999"})
	w.Program("own:1", sim.Program{Remote: true, Password: "secret"})
	arm, err := host.Image(ctx, "arm:1")
	if want := (pods.Image{ID: "sha256:arm:1@1", Platform: "linux/arm64", User: "999"}); err != nil || arm.ID != want.ID || arm.Platform != want.Platform || arm.User != want.User {
		t.Errorf("image = %+v, %v, want %+v", arm, err, want)
	}
	spec := container(t, w, "web-0", 0)
	spec.Image, spec.Main.Image = arm, "arm:1"
	wantError(t, start(t, w, spec), runtime.ReasonWrongPlatform, "image arm:1 is for linux/arm64, this engine is linux/amd64")
	for _, auth := range []*jobspecs.RegistryAuth{nil, {Username: "ci", Password: "guess"}} {
		wantError(t, host.Pull(ctx, "own:1", auth, nil), runtime.ReasonAccessDenied, "the registry refuses to give image own:1 to us")
	}
	if err := host.Pull(ctx, "own:1", &jobspecs.RegistryAuth{Username: "ci", Password: "secret"}, nil); err != nil {
		t.Error(err)
	}
}

func TestWhoMustNotRunAsRoot(t *testing.T) {
	for _, c := range []struct {
		user, image string
		root        bool
	}{
		{"", "", true}, {"0", "", true}, {"root:999", "", true}, {"", "0:0", true}, {"0", "999", true},
		{"999", "", false}, {"redis", "root", false}, {"", "999", false},
	} {
		w := sim.New(sim.Config{})
		w.Program("web:1", sim.Program{User: c.image})
		spec := container(t, w, "web-0", 0)
		spec.Main.RunAsNonRoot, spec.Main.User = true, c.user
		err := start(t, w, spec)
		if !c.root && err != nil {
			t.Errorf("user %q of image %q: %v", c.user, c.image, err)
		}
		if c.root {
			wantError(t, err, runtime.ReasonRunsAsRoot, "container web would run as root, and run_as_non_root is set")
		}
	}
}

func TestTheSandboxsImageIsMadeWhereItIsMissing(t *testing.T) {
	onPod(t, nil, func(p *pod) {
		p.world.Fail(sim.Fault{Verb: "sandbox.image"})
		if _, err := p.host.SandboxImage(p.Context()); err == nil {
			t.Error("the fault did not strike")
		}
		p.run(sandbox)
		p.world.RemoveImage(sim.SandboxImage)
		p.world.RemoveContainer("web-0_sandbox")
		p.run(sandbox)
		p.want("web-0_sandbox running")
	})
}

func TestAProgramThatFailsAFewTimes(t *testing.T) {
	onPod(t, map[string]sim.Program{"prepare": {ExitAfter: 1, ExitCode: 4, Failures: 2}}, func(p *pod) {
		p.run(sandbox)
		var codes []int
		for range 3 {
			p.run("prepare")
			c, _ := p.world.Container("web-0_prepare")
			codes = append(codes, c.ExitCode)
			p.world.RemoveContainer("web-0_prepare")
		}
		if want := []int{4, 4, 0}; !slices.Equal(codes, want) {
			t.Errorf("exit codes = %v, want %v", codes, want)
		}
	})
}

func TestAPodIsLookedInto(t *testing.T) {
	onPod(t, map[string]sim.Program{"prepare": {ExitAfter: 1}, "web": {LogLine: "hello", LogAfter: time.Second}}, func(p *pod) {
		p.run(sandbox, "prepare", "log", "web")
		engine := sim.NewEngine(p.world)
		logs := func(o runtime.LogOptions) string {
			var out strings.Builder
			if err := engine.Logs(p.Context(), web0, o, &out, nil); err != nil {
				return err.Error()
			}
			return strings.ReplaceAll(strings.TrimSpace(out.String()), "\n", ", ")
		}
		ended := time.Now()
		time.AfterFunc(10*time.Second, func() { p.world.Kill("web-0") })
		for _, c := range []struct {
			what string
			o    runtime.LogOptions
			want string
		}{
			{"the main one", runtime.LogOptions{}, "web-0 started"},
			{"an init that ended", runtime.LogOptions{Container: "prepare"}, "web-0_prepare started, web-0_prepare ended with 0"},
			{"its last line", runtime.LogOptions{Container: "prepare", Tail: "1"}, "web-0_prepare ended with 0"},
			{"since", runtime.LogOptions{Container: "prepare", Since: ended}, ""},
			{"with times", runtime.LogOptions{Timestamps: true}, p.target("web").Run.UTC().Format(time.RFC3339Nano) + " web-0 started"},
			{"unknown", runtime.LogOptions{Container: "nope"}, "pod web-0 has no container nope, but web, log, prepare: no such pod"},
			{"none kept", runtime.LogOptions{Previous: true}, "no such pod"},
			{"followed to its end", runtime.LogOptions{Follow: true}, "web-0 started, hello, web-0 ended with 137"},
		} {
			if got := logs(c.o); got != c.want {
				t.Errorf("%s: %q, want %q", c.what, got, c.want)
			}
		}
		p.world.Rename("web-0_prepare", "web-0_prepare_previous")
		if got, want := logs(runtime.LogOptions{Container: "prepare", Previous: true, Tail: "1"}), "web-0_prepare ended with 0"; got != want {
			t.Errorf("kept: %q, want %q", got, want)
		}
		var out strings.Builder
		code, err := engine.Exec(p.Context(), web0, runtime.ExecOptions{Container: "log", Command: []string{"echo", "hi"}, Stdout: &out})
		_, ended2 := engine.Exec(p.Context(), web0, runtime.ExecOptions{Command: []string{"true"}})
		if got, want := fmt.Sprintf("%d %v %q %v", code, err, out.String(), ended2), `0 <nil> "hi\n" container web-0 is exited: no such pod`; got != want {
			t.Errorf("exec = %q, want %q", got, want)
		}
		ctx, cancel := context.WithCancel(p.Context())
		time.AfterFunc(time.Second, cancel)
		if err := engine.Logs(ctx, web0, runtime.LogOptions{Container: "log", Follow: true}, &out, nil); err != nil {
			t.Errorf("a follower that had enough: %v", err)
		}
	})
}

func TestAStopRemembersHowItWasAsked(t *testing.T) {
	onPod(t, done, func(p *pod) {
		p.run(sandbox)
		p.world.Forget()
		if err := p.host.Stop(p.Context(), p.ids[sandbox], "SIGQUIT", time.Minute); err != nil {
			t.Fatal(err)
		}
		if c := p.world.Writes()[0]; c.Signal != "SIGQUIT" || c.Grace != time.Minute || c.String() != "stop web-0_sandbox" {
			t.Errorf("stop = %+v", c)
		}
	})
}
