package store

import (
	"reflect"
	"testing"
	"time"

	"github.com/stsd/stsd/daemon/planner"
	"github.com/stsd/stsd/jobspecs"
)

// askStore is a store with one set of three members.
func askStore(t *testing.T) (*Store, jobspecs.Key, *Intent) {
	t.Helper()
	s, err := Open(t.TempDir(), Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	in := &Intent{Record: Record{Set: jobspecs.Set{Namespace: "default", Name: "web"}, Replicas: 3, Update: "r2", Current: "r1"}}
	if err := s.Put(in); err != nil {
		t.Fatal(err)
	}
	in.Expect = in.Record.Generation
	return s, in.Record.Key(), in
}

func members(t *testing.T, s *Store, key jobspecs.Key) map[int]planner.Member {
	t.Helper()
	v, err := s.Look(key)
	if err != nil {
		t.Fatal(err)
	}
	return v.Members
}

func TestWhatTheUserAsksIsNotOverwrittenByWhatTheLoopLearns(t *testing.T) {
	s, key, in := askStore(t)
	in.Asks, in.Stopped = map[int]planner.Ask{0: planner.AskNow}, map[int]bool{1: true}
	if err := s.Put(in); err != nil {
		t.Fatal(err)
	}
	old := planner.Member{Revision: "r1"} // from a look before that
	if err := s.Learn(key, Facts{Members: map[int]planner.Member{0: old, 1: old, 2: old}}); err != nil {
		t.Fatal(err)
	}
	want := map[int]planner.Member{
		0: {Revision: "r1", Ask: planner.AskNow}, 1: {Revision: "r1", Stopped: true}, 2: {Revision: "r1"},
	}
	if got := members(t, s, key); !reflect.DeepEqual(got, want) {
		t.Errorf("members = %+v, want %+v", got, want)
	}
}

func TestAnAskIsOverOnceAndOnlyTheOneThatWasSeen(t *testing.T) {
	for _, c := range []struct {
		name              string
		asked, seen, left planner.Ask
	}{
		{"the one that was seen", planner.AskNow, planner.AskNow, planner.AskNone},
		{"another one that came meanwhile", planner.AskFresh, planner.AskNow, planner.AskFresh},
		{"none was seen", planner.AskNow, planner.AskNone, planner.AskNow},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, key, in := askStore(t)
			in.Asks = map[int]planner.Ask{0: c.asked}
			if err := s.Put(in); err != nil {
				t.Fatal(err)
			}
			f := Facts{Members: map[int]planner.Member{0: {Revision: "r2"}}, Answered: map[int]planner.Ask{0: c.seen}}
			if err := s.Learn(key, f); err != nil {
				t.Fatal(err)
			}
			if got := members(t, s, key)[0].Ask; got != c.left {
				t.Errorf("ask = %q, want %q", got, c.left)
			}
		})
	}
}

func TestAWeakerAskDoesNotReplaceAStrongerOne(t *testing.T) {
	s, key, in := askStore(t)
	for _, ask := range []planner.Ask{planner.AskTurn, planner.AskFresh, planner.AskNow} {
		in.Asks, in.Expect = map[int]planner.Ask{0: ask}, in.Record.Generation
		if err := s.Put(in); err != nil {
			t.Fatal(err)
		}
	}
	if got := members(t, s, key)[0].Ask; got != planner.AskFresh {
		t.Errorf("ask = %q, want %q", got, planner.AskFresh)
	}
}

func TestAFailedRolloutIsRememberedUntilItIsAnotherOrTriedAgain(t *testing.T) {
	halt := &planner.Halt{Revision: "r2", Member: "web-2", Why: "late", At: time.Unix(9, 0).UTC()}
	for _, c := range []struct {
		name string
		halt *planner.Halt
		edit func(*Intent)
		want *planner.Halt
	}{
		{"over another number of members", halt, func(in *Intent) { in.Record.Replicas = 5 }, halt},
		{"not over another revision", halt, func(in *Intent) { in.Record.Update = "r3" }, nil},
		{"not when it is tried again", halt, func(in *Intent) { in.Resume = true }, nil},
		{"one of another revision came too late", &planner.Halt{Revision: "r1"}, func(*Intent) {}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, key, in := askStore(t)
			if err := s.Learn(key, Facts{Halted: c.halt}); err != nil {
				t.Fatal(err)
			}
			c.edit(in)
			if err := s.Put(in); err != nil {
				t.Fatal(err)
			}
			r, err := s.Get(key)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(r.Halted, c.want) {
				t.Errorf("halted = %+v, want %+v", r.Halted, c.want)
			}
		})
	}
}
