package pods_test

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/runtime/pods"
	"github.com/stsd/stsd/runtime/sim"
)

// listening notes the order in which a host is asked.
type listening struct {
	pods.Host
	mu    sync.Mutex
	asked []string
}

func (h *listening) note(what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked = append(h.asked, what)
}

func (h *listening) Watch(ctx context.Context) (<-chan pods.Event, error) {
	h.note("watch")
	return h.Host.Watch(ctx)
}

func (h *listening) List(ctx context.Context) ([]pods.Container, error) {
	h.note("list")
	return h.Host.List(ctx)
}

// What happens between the two is in the list, or is heard.
func TestEventsAreHeardBeforeContainersAreListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world := sim.New(sim.Config{})
		host := &listening{Host: world.Host()}
		engine := pods.New(pods.Config{Host: host, Daemon: world.Daemon()})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- engine.Run(ctx) }()
		synctest.Wait()
		world.Disconnect(time.Second)
		time.Sleep(time.Minute)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		last := host.asked[max(0, len(host.asked)-2):]
		if want := []string{"watch", "list"}; !slices.Equal(host.asked[:2], want) || !slices.Equal(last, want) {
			t.Errorf("asked %v, want each connection to begin with %v", host.asked, want)
		}
	})
}

// Nor is what it will go on with: its counts are on the container that ended.
func TestAPodThatIsOnItsWayIsNotRemoved(t *testing.T) {
	onHost(t, sim.Program{}, func(r *rig) {
		r.create(spec(func(c *jobspecs.Container) { c.Restart.First = time.Minute }))
		r.world.Kill("web-0")
		r.after(time.Second)
		if p := r.pod(); p.Phase != runtime.Backoff {
			t.Fatalf("pod is %q, want it to wait for its restart", show(p))
		}
		if err := r.Remove(r.Context(), web0, false); !errors.Is(err, runtime.ErrRunning) {
			t.Errorf("remove = %v, want %v: nobody asked for its end", err, runtime.ErrRunning)
		}
		r.wantHost("web-0 exited")
		r.after(time.Minute)
		r.want("Running ready restarts=1")
	})
}

// Another stsd may have had the same set: what it kept is its own.
func TestWhatAnotherStsdKeptIsNotClearedAway(t *testing.T) {
	onHost(t, sim.Program{}, func(r *rig) {
		r.world.ForeignContainer("web-0_previous", netip.Addr{}, map[string]string{
			jobspecs.LabelDaemon: "another", jobspecs.LabelNamespace: "default", jobspecs.LabelSet: "web", jobspecs.LabelOrdinal: "0", jobspecs.LabelContainer: "web",
		})
		r.world.Kill("web-0_previous")
		r.create(spec())
		r.must(r.Stop(r.Context(), web0, runtime.StopOptions{Grace: time.Second}))
		r.after(time.Second)
		r.must(r.Remove(r.Context(), web0, false))
		r.wantHost("web-0_previous exited")
	})
}
