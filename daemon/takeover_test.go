package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/daemon/planner"
	"github.com/stsd/stsd/daemon/store"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/runtime/sim"
)

// serving runs a daemon on a folder and a simulated host until the function that it
// gives is called. world is made with the first one.
func serving(t *testing.T, dir, takeOver string, world *sim.World) (*stage, func()) {
	t.Helper()
	s := &stage{t: t, world: world}
	d, err := New(Config{
		DataDir: dir, TakeOver: takeOver, DNSOff: true, Store: store.Options{NoSync: true},
		Engine: func(id string, _ Hooks) (Parts, error) {
			if s.world == nil {
				s.world = sim.New(sim.Config{Daemon: id})
				s.world.Program("web:1", sim.Program{})
				s.world.Program("web:2", sim.Program{})
			}
			e := sim.NewEngine(s.world)
			return Parts{Engine: e, Volumes: s.world.Volumes(), Run: e.Run, Name: func(context.Context) (string, error) { return "sim", nil }}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Daemon = d
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	s.settle()
	return s, func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestALostStoreIsPutTogetherFromLabels(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		first, stop := serving(t, dir, "", nil)
		before := first.apply(oneVolume)
		ids, id, where := containers(first), first.store.ID(), network(first)
		stop()

		s, stop := serving(t, other, id, first.world)
		defer stop()
		want(t, "members", s.names(), "web-0 Running true, web-1 Running true")
		want(t, "network", network(s), where)
		want(t, "revision", s.status().UpdateRevision, before.Revision)
		stalled := s.condition(jobspecs.CondStalled)
		want(t, "stalled", fmt.Sprint(stalled.Status, " ", stalled.Reason), "true SpecLost")
		_, err := s.Scale(t.Context(), web, client.ScaleRequest{Replicas: 3})
		want(t, "a scale", problemType(err), client.ProblemConflict)

		s.world.Kill("web-1")
		s.settle()
		want(t, "members after a kill", s.names()[:18], "web-0 Running true")
		want(t, "containers after a kill", containers(s), ids) // labels are all that is known

		again := s.apply(oneVolume)
		want(t, "revision after an equal apply", again.Revision, before.Revision)
		want(t, "members after it", s.names(), "web-0 Running true, web-1 Running true")
		if got := containers(s); !strings.HasPrefix(got, strings.Split(ids, " ")[0]) {
			t.Errorf("containers = %s, were %s: web-0 was restarted", got, ids)
		}
		if s.condition(jobspecs.CondStalled).Status {
			t.Error("the spec was applied, and is still said to be lost")
		}
	})
}

// network is that of the namespace, and where the members are in it, as stored.
func network(s *stage) string {
	s.t.Helper()
	nets, err := s.store.Subnets()
	if err != nil {
		s.t.Fatal(err)
	}
	addresses, err := s.store.Addresses(web)
	if err != nil || len(nets) != 1 || len(addresses) != 2 {
		s.t.Fatalf("networks %v, addresses %v, %v", nets, addresses, err)
	}
	return fmt.Sprint(nets, addresses)
}

func TestAnEqualApplyToALostSetRestartsNobody(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		first, stop := serving(t, dir, "", nil)
		first.apply(oneVolume)
		ids, id := containers(first), first.store.ID()
		stop()
		s, stop := serving(t, other, id, first.world)
		defer stop()
		s.apply(oneVolume)
		want(t, "containers", containers(s), ids)
		want(t, "members", s.names(), "web-0 Running true, web-1 Running true")
	})
}

func TestAStateFileOfItsOwnTakesNothingOver(t *testing.T) {
	dir := t.TempDir()
	st, err := store.Open(dir, store.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	st.Close()
	if _, err := store.Open(dir, store.Options{NoSync: true, TakeOver: "feed"}); !errors.Is(err, store.ErrOther) {
		t.Errorf("open = %v, want %v", err, store.ErrOther)
	}
}

func TestWhatPodsTellOfTheirSet(t *testing.T) {
	key := jobspecs.Key{Namespace: "shop", Name: "db"}
	f := foundSet(key, []runtime.Pod{
		{Set: key, Ordinal: 5, Revision: "db-new", Service: "nodes", Phase: runtime.Running, StartedAt: noon, Address: netip.MustParseAddr("10.87.0.15")},
		{Set: key, Ordinal: 2, Revision: "db-old", Phase: runtime.Backoff},
		{Set: key, Ordinal: 3, Revision: "db-old", Phase: runtime.Running, StartedAt: noon},
	}, noon)
	r := f.Record
	got := fmt.Sprint(r.Set.StartOrdinal, r.Set.Reserve, r.Set.Ordinals(r.Replicas), r.Set.Service, " ", r.Current, " ", r.Update, " ", r.Lost)
	want(t, "set", got, "2 [4] [2 3 5]nodes db-old db-new true")
	members := map[int]planner.Member{
		2: {Revision: "db-old", Once: "db-old", Used: true, Joined: true},
		3: {Revision: "db-old", Once: "db-old", Used: true, Joined: true, ReadySince: noon},
		5: {Revision: "db-new", Once: "db-new", Used: true, Joined: true, ReadySince: noon},
	}
	if !reflect.DeepEqual(f.Members, members) {
		t.Errorf("members = %+v, want %+v", f.Members, members)
	}
	if want := map[int]netip.Addr{5: netip.MustParseAddr("10.87.0.15")}; !reflect.DeepEqual(f.Addresses, want) {
		t.Errorf("addresses = %v, want %v", f.Addresses, want)
	}
}

func TestAStrayIsShownAndLeftAlone(t *testing.T) {
	play(t, func(s *stage) {
		s.apply(pair(""))
		ids := containers(s)
		if _, err := s.Delete(t.Context(), web, client.DeleteRequest{Orphan: true}); err != nil {
			t.Fatal(err)
		}
		s.settle()
		rows, err := s.Sets(t.Context(), "")
		if err != nil || len(rows) != 1 || rows[0].State != stateStray || rows[0].Replicas != 2 || rows[0].Ready != 2 {
			t.Errorf("rows = %+v, %v", rows, err)
		}
		time.Sleep(time.Hour)
		want(t, "containers", containers(s), ids)
	})
}
