package e2e_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/volume"
)

// A container of ours that somebody starts, or makes with our labels, does not run
// beside a member, nor for one that is to stay down, and does not keep what goes
// from going. What is not ours is left alone.
func TestWhatIsStartedByHandIsStopped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(spec{replicas: 2})
	foreign := w.foreign(idleServer, nil, w.container("theirs"))
	docker(t, "start", foreign)
	before := w.trace("web")

	w.ok("stop", "web-1", "--timeout", patience.String())
	kept := w.inspect("web-1_previous").ID // while it runs it has the member's name again
	docker(t, "start", kept)
	w.ended(kept)
	if events := w.events("web-1"); !slices.Contains(events, "StartedByHand") {
		t.Errorf("events of web-1 are %v", events)
	}
	w.await("web-1 to stay down", func() error {
		if m := w.status("web").Members; len(m) != 2 || m[1].Phase != "Stopped" {
			return fmt.Errorf("%+v", m)
		}
		return nil
	})

	twin := w.duplicate("web-0")
	w.ended(twin)
	w.await("web-0 to be ready", func() error {
		if m := w.status("web").Members; !m[0].Ready {
			return fmt.Errorf("%+v", m)
		}
		return nil
	})
	if now := w.inspect("web-0"); now.ID != before.id || now.State.StartedAt != before.started {
		t.Errorf("container %s started at %s, was %s started at %s", now.ID, now.State.StartedAt, before.id, before.started)
	}

	docker(t, "start", kept)
	w.ok("delete", "web", "--volumes=delete", "--yes", "--wait", "--timeout", patience.String())
	left, err := engine().ContainerList(t.Context(), container.ListOptions{All: true, Filters: labelled(w.id)})
	if err != nil || len(left) > 0 {
		t.Errorf("containers %v are left, %v", left, err)
	}
	data, err := engine().VolumeList(t.Context(), volume.ListOptions{Filters: labelled(w.id)})
	if err != nil || len(data.Volumes) > 0 {
		t.Errorf("volumes %v are left, %v", data.Volumes, err)
	}
	if !w.running(foreign) {
		t.Error("a container that is not ours was stopped")
	}
}

// duplicate runs another container as the member's is, as a tool does that copies
// its labels and volumes.
func (w *world) duplicate(m string) (id string) {
	w.t.Helper()
	args := []string{"run", "-d", "-v", w.volume("data-"+m) + ":/data"}
	for k, v := range w.inspect(m).Config.Labels {
		args = append(args, "--label", k+"="+v)
	}
	return docker(w.t, append(args, "stsd-demo:1", "serve")...)
}

// ended waits until a container has ended.
func (w *world) ended(id string) {
	w.t.Helper()
	w.await("container "+id+" to end", func() error {
		if w.running(id) {
			return fmt.Errorf("it runs")
		}
		return nil
	})
}
