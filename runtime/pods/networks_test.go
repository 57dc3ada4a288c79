package pods_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/runtime/sim"
)

func joining(networks ...string) jobspecs.PodSpec {
	s := spec()
	s.Networks = networks
	return s
}

// on are the networks that a pod shows, those it was taken off marked.
func on(p runtime.Pod) (names []string) {
	for _, e := range p.Joined {
		if len(e.Addresses) > 0 {
			names = append(names, e.Network)
		}
	}
	for _, d := range p.Detached {
		names = append(names, "no "+d)
	}
	return names
}

func (r *rig) wantOn(want ...string) {
	r.Helper()
	if got := on(r.pod()); !reflect.DeepEqual(got, want) {
		r.Errorf("networks = %q, want %q", got, want)
	}
}

func TestAPodWaitsForANetworkAndIsMadeWhenThereIsOne(t *testing.T) {
	onHost(t, sim.Program{}, func(r *rig) {
		r.world.NoNetwork("edge")
		r.create(joining("edge", "shop"))
		r.after(time.Minute)
		p := r.pod()
		if p.Phase != runtime.Failed || p.Reason != runtime.ReasonNetworkMissing || p.Tries < 3 || !runtime.Permanent(p.Reason) {
			t.Errorf("pod = %s (%s) after %d tries", p.Phase, p.Reason, p.Tries)
		}
		if want := "network edge is not there: start what makes it, or make it (docker network create edge)"; p.Message != want {
			t.Errorf("message = %q, want %q", p.Message, want)
		}
		r.wantHost("")
		r.world.Network("edge")
		r.after(0) // at once, whatever the back-off
		r.want("Running ready")
		r.wantOn("edge", "shop")
	})
}

func TestAPodShowsWhereItIsAndWhatItWasTakenOff(t *testing.T) {
	onHost(t, sim.Program{}, func(r *rig) {
		r.create(joining("edge", "shop"))
		r.wantOn("edge", "shop")
		before := r.pod().Joined

		r.world.TakeOff("web-0", "edge")
		r.after(time.Minute)
		r.want("Running ready") // it goes on, and is not joined again
		r.wantOn("shop", "no edge")

		r.connect() // another agent finds it as it is
		r.create(joining("edge", "shop"))
		r.wantOn("shop", "no edge")

		r.world.Kill("web-0") // its next container is on both again, somewhere else
		r.after(time.Second)
		r.wantOn("edge", "shop")
		if now := r.pod().Joined; reflect.DeepEqual(now, before) {
			t.Errorf("a fresh container has the addresses of the old one: %v", now)
		}
	})
}

func TestTheSandboxJoinsForItsPod(t *testing.T) {
	onHost(t, sim.Program{}, func(r *rig) {
		s := joining("edge")
		side := s.Containers[0]
		side.Name, side.Kind, side.Mounts = "side", jobspecs.KindSidecar, nil
		s.Containers = append([]jobspecs.Container{side}, s.Containers...)
		r.create(s)
		r.after(time.Second)
		r.wantOn("edge")
		for _, c := range r.world.Containers() {
			if got, want := len(c.Joined) == 1, c.Name == "web-0_sandbox"; got != want {
				t.Errorf("%s is on %v", c.Name, c.Joined)
			}
		}
	})
}
