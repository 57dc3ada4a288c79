package sim_test

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime/pods"
	"github.com/stsd/stsd/runtime/sim"
	"github.com/stsd/stsd/volumes"
)

var web = jobspecs.Key{Namespace: "default", Name: "web"}

// onPort answers probes of one port.
func onPort(port int) func(jobspecs.Probe, time.Duration) error {
	return func(p jobspecs.Probe, _ time.Duration) error {
		if p.TCP != nil && p.TCP.Port == port {
			return nil
		}
		return errors.New("tcp: connection refused")
	}
}

// container is a spec of one of web's, labelled as it has to be; its volume is
// there.
func container(t *testing.T, w *sim.World, name string, ordinal int) pods.ContainerSpec {
	t.Helper()
	volume := jobspecs.VolumeName("default", "data", "web", ordinal)
	if err := w.Volumes().Create(t.Context(), web, ordinal, jobspecs.VolumeSpec{Claim: "data", Name: volume}); err != nil {
		t.Fatal(err)
	}
	main := jobspecs.Container{
		Kind: jobspecs.KindMain, Name: "web", Image: "web:1",
		Mounts: []jobspecs.Mount{{Kind: jobspecs.MountVolume, Claim: "data", Volume: volume, Path: "/data"}},
	}
	return pods.ContainerSpec{
		Name: name, Image: pods.Image{ID: "web:1"}, Main: main,
		Pod: jobspecs.PodSpec{
			Set: web, Ordinal: ordinal, Network: "stsd", Address: netip.AddrFrom4([4]byte{10, 87, 0, byte(10 + ordinal)}),
			Containers: []jobspecs.Container{main},
		},
		Labels: map[string]string{
			jobspecs.LabelDaemon: w.Daemon(), jobspecs.LabelNamespace: "default", jobspecs.LabelSet: "web", jobspecs.LabelOrdinal: fmt.Sprint(ordinal),
		},
	}
}

func start(t *testing.T, w *sim.World, spec pods.ContainerSpec) error {
	t.Helper()
	id, err := w.Host().Create(t.Context(), spec)
	if err != nil {
		return err
	}
	return w.Host().Start(t.Context(), id)
}

func TestTwoOfOnePodAreAViolation(t *testing.T) {
	w := sim.New(sim.Config{})
	w.Program("web:1", sim.Program{})
	one, two := container(t, w, "web-0", 0), container(t, w, "web-0-again", 0)
	two.Pod.Address = netip.Addr{}
	if err := errors.Join(start(t, w, one), start(t, w, two)); err != nil {
		t.Fatal(err)
	}
	wantViolations(t, w, "web-0 and web-0-again both run on container web of pod default/web-0")
}

func TestTheNameAndTheAddressAreFences(t *testing.T) {
	w := sim.New(sim.Config{})
	w.Program("web:1", sim.Program{})
	if err := start(t, w, container(t, w, "web-0", 0)); err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(start(t, w, container(t, w, "web-0", 0)))
	if want := "container web-0 of ours still has the name"; got != want {
		t.Errorf("create = %q, want %q", got, want)
	}
	got = fmt.Sprint(start(t, w, container(t, w, "other", 0)))
	if want := "container web-0 of ours still has the address 10.87.0.10"; got != want {
		t.Errorf("start = %q, want %q", got, want)
	}
}

func TestAVolumeRemembersWhoWroteIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := sim.New(sim.Config{})
		w.Program("web:1", sim.Program{})
		ctx, store := t.Context(), w.Volumes()
		if err := start(t, w, container(t, w, "web-0", 0)); err != nil {
			t.Fatal(err)
		}
		first, _ := w.Disk("data-web-0")
		if got, want := fmt.Sprint(first.Writers), "[web-0]"; got != want {
			t.Errorf("writers = %s, want %s", got, want)
		}
		if err := store.Delete(ctx, "data-web-0"); !errors.Is(err, volumes.ErrInUse) {
			t.Errorf("delete of a used volume: %v, want ErrInUse", err)
		}
		w.RemoveContainer("web-0")
		if err := errors.Join(store.Delete(ctx, "data-web-0"), store.Delete(ctx, "data-web-0"), start(t, w, container(t, w, "web-0", 0))); err != nil {
			t.Fatal(err)
		}
		second, _ := w.Disk("data-web-0")
		if first.Serial == second.Serial {
			t.Error("the second volume cannot be told from the first")
		}
	})
}

func TestAForeignVolumeIsNotTouched(t *testing.T) {
	w := sim.New(sim.Config{})
	w.ForeignVolume("data-web-0", map[string]string{jobspecs.LabelDaemon: "another"})
	create := w.Volumes().Create(t.Context(), web, 0, jobspecs.VolumeSpec{Claim: "data", Name: "data-web-0"})
	remove := w.Volumes().Delete(t.Context(), "data-web-0")
	for _, err := range []error{create, remove} {
		var foreign *volumes.ForeignError
		if !errors.As(err, &foreign) || foreign.Owner != "of stsd another" {
			t.Errorf("err = %v, want a ForeignError that names stsd another", err)
		}
	}
	if list, err := w.Volumes().List(t.Context(), web); err != nil || len(list) != 0 {
		t.Errorf("list = %v, %v, want nothing", list, err)
	}
}

func TestFaultsStrikeBeforeOrAfterTheEffect(t *testing.T) {
	w := sim.New(sim.Config{})
	w.Program("web:1", sim.Program{})
	spec := container(t, w, "web-0", 0)
	w.Forget()
	w.Fail(sim.Fault{Verb: "create", When: sim.Before})
	if err := start(t, w, spec); err == nil || w.String() != "" {
		t.Errorf("before: %v, host has %q", err, w)
	}
	w.Fail(sim.Fault{Verb: "create", When: sim.After})
	if err := start(t, w, spec); err == nil || w.String() != "web-0 created" {
		t.Errorf("after: %v, host has %q", err, w)
	}
	if got, want := fmt.Sprint(w.Writes()), "[create web-0 create web-0]"; got != want {
		t.Errorf("writes = %s, want %s", got, want)
	}
}

func TestAnEngineThatRestartsEndsEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := sim.New(sim.Config{})
		w.Program("web:1", sim.Program{})
		events, err := w.Host().Watch(t.Context())
		if err = errors.Join(err, start(t, w, container(t, w, "web-0", 0))); err != nil {
			t.Fatal(err)
		}
		w.RestartEngine(time.Second)
		n := 0
		for range events {
			n++
		}
		if n != 2 {
			t.Errorf("%d events before the end, want 2", n)
		}
		if _, err := w.Host().List(t.Context()); err == nil {
			t.Error("list succeeds while the engine is down")
		}
		time.Sleep(2 * time.Second)
		if list, err := w.Host().List(t.Context()); err != nil || len(list) != 1 || list[0].State != "exited" {
			t.Errorf("list = %v, %v, want web-0, exited", list, err)
		}
	})
}

func TestSubnetsAreGivenInOrderAndKept(t *testing.T) {
	w := sim.New(sim.Config{})
	first, err := w.Subnet("a", nil)
	second, err2 := w.Subnet("b", []netip.Prefix{first})
	if err = errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(first, second), "10.87.0.0/22 10.87.4.0/22"; got != want {
		t.Errorf("subnets = %s, want %s", got, want)
	}
}

func TestAPortOfTheHostIsTakenAtItsAddress(t *testing.T) {
	w := sim.New(sim.Config{})
	w.Program("web:1", sim.Program{})
	at := func(ordinal int, ip string) error {
		spec := container(t, w, fmt.Sprintf("web-%d", ordinal), ordinal)
		spec.Main.Ports = []jobspecs.Port{{Name: "http", Container: 80, Protocol: "tcp", Host: 80, HostIP: ip}}
		return start(t, w, spec)
	}
	if err := errors.Join(at(0, "127.87.0.10"), at(1, "127.87.0.11")); err != nil {
		t.Fatal(err)
	}
	for ordinal, ip := range map[int]string{2: "127.87.0.11", 3: "0.0.0.0"} {
		if got, want := fmt.Sprint(at(ordinal, ip)), "port 80/tcp of the host is taken by container web-"; !strings.HasPrefix(got, want) {
			t.Errorf("at %s: %s, want …%s…", ip, got, want)
		}
	}
}
