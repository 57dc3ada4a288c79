package daemon

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stsd/stsd/daemon/api"
	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/volumes"
)

const sizedWebs = `
statefulset "web" {
  replicas = 2
  volume "data" {
    size = "1GiB"
  }
  scratch "tmp" { size = "1MiB" }
  container "web" {
    image = "web:1"
    mount "data" { path = "/data" }
    mount "tmp" { path = "/tmp" }
  }
}`

// gauged is a store that measures; it tells when it was asked.
type gauged struct {
	volumes.Store
	takes time.Duration

	mu    sync.Mutex
	used  map[string]int64
	asked []string
}

func (g *gauged) Used(ctx context.Context, name string) (int64, error) {
	g.mu.Lock()
	g.asked = append(g.asked, name)
	used := g.used[name]
	g.mu.Unlock()
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(g.takes):
	}
	return used, nil
}

func (g *gauged) asks() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := strings.Join(g.asked, " ")
	g.asked = nil
	return out
}

// measuring runs f with a usage on g; news are the sets that were woken.
func measuring(t *testing.T, g *gauged, f func(u *usage, news func() int)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		woken := 0
		u := newUsage(g, func(jobspecs.Key) { mu.Lock(); defer mu.Unlock(); woken++ })
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _ = u.run(ctx) })
		f(u, func() int { mu.Lock(); defer mu.Unlock(); n := woken; woken = 0; return n })
		cancel()
		wg.Wait()
	})
}

func lapse(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestVolumesAreMeasuredOnceAMinuteAndOnlyThoseThatAreWatched(t *testing.T) {
	t.Parallel()
	g := &gauged{used: map[string]int64{"a": 1, "b": 2}}
	measuring(t, g, func(u *usage, news func() int) {
		lapse(time.Hour)
		if got := g.asks(); got != "" {
			t.Errorf("measured %q, and nothing is watched", got)
		}
		u.watch(web, []string{"a", "b"})
		lapse(time.Second)
		if got, n := g.asks(), news(); got != "a b" || n != 2 {
			t.Errorf("measured %q, %d news, want both at once", got, n)
		}
		lapse(2 * time.Minute)
		if got, n := g.asks(), news(); got != "a b a b" || n != 0 {
			t.Errorf("measured %q in two minutes, %d news, want each twice and nothing new", got, n)
		}
		g.mu.Lock()
		g.used["b"] = 3
		g.mu.Unlock()
		lapse(time.Minute)
		if n := news(); n != 1 {
			t.Errorf("%d news, want one", n)
		}
		g.asks()
		u.renewed("a")
		lapse(time.Second)
		if got := g.asks(); got != "a" {
			t.Errorf("measured %q, want the one that was made anew", got)
		}
		u.watch(web, nil)
		lapse(time.Hour)
		if got := g.asks(); got != "" {
			t.Errorf("measured %q, and nothing is watched any more", got)
		}
		if _, known := u.of("a"); known {
			t.Error("what is not watched is remembered")
		}
	})
}

func TestMeasuringTakesATwentiethOfTheTimeAtMost(t *testing.T) {
	t.Parallel()
	g := &gauged{takes: 15 * time.Second}
	measuring(t, g, func(u *usage, news func() int) {
		u.watch(web, []string{"a", "b"})
		lapse(10*time.Minute + 30*time.Second) // 315 s for each
		if got := g.asks(); got != "a b a" {
			t.Errorf("measured %q in ten minutes, want three times", got)
		}
	})
}

func TestACountThatTakesTooLongIsGivenUp(t *testing.T) {
	t.Parallel()
	g := &gauged{takes: time.Hour}
	measuring(t, g, func(u *usage, news func() int) {
		u.watch(web, []string{"a"})
		lapse(time.Minute)
		if r, _ := u.of("a"); !errors.Is(r.err, errUncounted) {
			t.Errorf("error = %v, want %v", r.err, errUncounted)
		}
	})
}

func TestAStoreThatCannotMeasureIsNotAsked(t *testing.T) {
	t.Parallel()
	u := newUsage(struct{ volumes.Store }{}, func(jobspecs.Key) { t.Error("news") })
	u.watch(web, []string{"a"})
	if next := u.round(t.Context()); !next.IsZero() {
		t.Errorf("it measures at %v", next)
	}
	if _, ok := u.now(t.Context(), "a"); ok {
		t.Error("it knows what nobody can tell")
	}
}

// events are those of a reason, by member and message.
func (s *stage) told(reason string) string {
	var out []string
	_ = s.Events(s.t.Context(), api.EventQuery{Set: "web"}, func(e jobspecs.Event) error {
		if e.Reason == reason {
			out = append(out, e.Member+": "+e.Message)
		}
		return nil
	})
	return strings.Join(out, "\n")
}

func TestAScratchFolderOnDiskIsWatchedToo(t *testing.T) {
	play(t, func(s *stage) {
		s.apply(sizedWebs)
		scratch := s.world.Scratches()
		if len(scratch) != 2 {
			t.Fatalf("scratches = %v", scratch)
		}
		s.world.Fill(scratch[1].Name, 2<<20)
		s.settle()
		s.settle()
		if got, want := s.told("VolumeOverSize"), "web-1: scratch tmp of web-1 is above its size 1MiB"; got != want {
			t.Errorf("events = %q, want %q", got, want)
		}
		if got, want := s.status().Members[1].Message, "scratch tmp of web-1 holds 2MiB, more than its size 1MiB"; got != want {
			t.Errorf("web-1: %q, want %q", got, want)
		}
	})
}

func TestAVolumeThatWasMadeAnewIsNotTakenForTheFullOne(t *testing.T) {
	play(t, func(s *stage) {
		s.apply(sizedWebs)
		s.world.Fill("data-web-1", 2<<30)
		s.settle()
		s.settle()
		if m := s.status().Members[1]; m.Reason != "VolumeOverSize" {
			t.Fatalf("web-1 = %s: %s", m.Reason, m.Message)
		}
		if _, err := s.FreshVolume(s.t.Context(), web, client.FreshVolumeRequest{Ordinal: 1, Write: client.Write{Yes: true}}); err != nil {
			s.t.Fatal(err)
		}
		time.Sleep(20 * time.Second)
		synctest.Wait()
		st := s.status()
		if used := st.Volumes[1].Used; used == nil || *used != 0 || st.Members[1].Reason != "" {
			t.Errorf("volume = %+v, web-1 %s: %s", st.Volumes[1], st.Members[1].Reason, st.Members[1].Message)
		}
	})
}

func TestAChangedClaimSaysWhatItDoesNotDo(t *testing.T) {
	play(t, func(s *stage) {
		s.apply(sizedWebs)
		other := strings.Replace(sizedWebs, `size = "1GiB"`, "size = \"1GiB\"\ndriver = \"other\"\noptions = { o = \"password=hidden\" }", 1)
		r, err := s.Apply(s.t.Context(), request(other))
		if err != nil {
			s.t.Fatal(err)
		}
		if len(r.Diagnostics) != 1 || r.Diagnostics[0].Severity != "warning" {
			t.Fatalf("diagnostics = %+v", r.Diagnostics)
		}
		want := `web: volume "data" of web-0, web-1 was made with driver local, not other; no option o; no option size and stays so; ` +
			"what changes holds for volumes made from now on. stsd replace web-0 --fresh-volume makes one anew, empty"
		if got := r.Diagnostics[0].Summary; got != want {
			t.Errorf("warning = %q, want %q", got, want)
		}
		s.settle()
		r, err = s.Apply(s.t.Context(), request(other))
		if err != nil || len(r.Diagnostics) != 0 {
			t.Errorf("the same again: %+v, %v", r.Diagnostics, err)
		}
	})
}

// What a revision mounts and the file no longer has is made and kept as its own
// source says.
func TestUndoBringsBackTheClaimThatItsRevisionMounts(t *testing.T) {
	play(t, func(s *stage) {
		s.apply(strings.Replace(sizedWebs, `size = "1GiB"`, "size = \"1GiB\"\ndriver = \"other\"\non_scale_down = \"delete\"", 1))
		without := strings.NewReplacer("volume \"data\" {\n    size = \"1GiB\"\n  }", "", "mount \"data\" { path = \"/data\" }", "").Replace(sizedWebs)
		if _, err := s.Apply(s.t.Context(), func() client.ApplyRequest { r := request(without); r.Yes = true; return r }()); err != nil {
			s.t.Fatal(err)
		}
		s.settle()
		if st := s.status(); len(st.Volumes) != 2 || st.Volumes[0].State != "retained" {
			t.Errorf("volumes = %+v, want both kept", st.Volumes)
		}
		if _, err := s.Rollout(s.t.Context(), web, client.RolloutRequest{Do: "undo", Write: client.Write{Yes: true}}); err != nil {
			s.t.Fatal(err)
		}
		s.settle()
		if _, err := s.Scale(s.t.Context(), web, client.ScaleRequest{Replicas: 3, Write: client.Write{Yes: true}}); err != nil {
			s.t.Fatal(err)
		}
		s.settle()
		for _, v := range s.status().Volumes {
			if v.State != "bound" || v.Driver != "other" || v.Size != 1<<30 {
				t.Errorf("%+v, want it bound, of driver other and 1 GiB", v)
			}
		}
		if _, err := s.Scale(s.t.Context(), web, client.ScaleRequest{Replicas: 2, Write: client.Write{Yes: true}}); err != nil {
			s.t.Fatal(err)
		}
		s.settle()
		if n := len(s.world.Disks()); n != 3 { // the file says nothing of them now
			t.Errorf("%d volumes, want that of web-2 kept", n)
		}
	})
}
