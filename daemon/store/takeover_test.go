package store

import (
	"errors"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"github.com/stsd/stsd/daemon/planner"
	"github.com/stsd/stsd/jobspecs"
)

func TestATakeOverLeavesWhatIsStored(t *testing.T) {
	s := open(t, t.TempDir())
	if err := s.Put(intent(web, 0, "web-0")); err != nil {
		t.Fatal(err)
	}
	before, err := take(s)
	if err != nil {
		t.Fatal(err)
	}
	taken, err := s.TakeOver([]Found{{
		Record:    Record{Set: jobspecs.Set{Namespace: "default", Name: "web"}, Update: "web-other", Lost: true},
		Members:   map[int]planner.Member{0: {Revision: "web-other"}},
		Addresses: map[int]netip.Addr{0: netip.MustParseAddr("10.87.0.77")},
		Subnet:    netip.MustParsePrefix("10.99.0.0/22"),
	}})
	if err != nil || len(taken) != 0 {
		t.Errorf("taken = %v, %v, want none", taken, err)
	}
	if after, err := take(s); err != nil || after.normal() != before.normal() {
		t.Errorf("it tells\n%s\n%v, told\n%s", after.normal(), err, before.normal())
	}
}

func TestATakeOverStoresWhatWasFound(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	if err := s.Put(intent(web, 0, "web-0")); err != nil {
		t.Fatal(err)
	}
	db := jobspecs.Key{Namespace: "other", Name: "db"}
	found := Found{
		Record:    Record{Set: jobspecs.Set{Namespace: "other", Name: "db"}, Replicas: 2, Update: "db-r2", Current: "db-r1", Lost: true, Formed: true},
		Members:   map[int]planner.Member{1: {Revision: "db-r1", Once: "db-r1", Used: true, ReadySince: time.Unix(9, 0).UTC()}},
		Addresses: map[int]netip.Addr{1: netip.MustParseAddr("10.87.4.11")},
		Subnet:    netip.MustParsePrefix("10.87.4.0/22"),
	}
	again := found
	again.Record.Set.Name = "web"
	again.Record.Set.Namespace = "default"
	taken, err := s.TakeOver([]Found{again, found})
	if err != nil || !reflect.DeepEqual(taken, []jobspecs.Key{db}) {
		t.Fatalf("taken = %v, %v, want %v", taken, err, db)
	}
	s.Close()

	s = open(t, dir)
	v, err := s.Look(db)
	if err != nil {
		t.Fatal(err)
	}
	want := found.Record
	want.Generation = 1
	if text(v.Record) != text(want) || !reflect.DeepEqual(v.Members, found.Members) {
		t.Errorf("look = %s, %+v\nwant   %s, %+v", text(v.Record), v.Members, text(want), found.Members)
	}
	if got, err := s.Addresses(db); err != nil || !reflect.DeepEqual(got, found.Addresses) {
		t.Errorf("addresses = %v, %v, want %v", got, err, found.Addresses)
	}
	nets, err := s.Subnets()
	if want := map[string]netip.Prefix{"default": subnet, "other": found.Subnet}; err != nil || !reflect.DeepEqual(nets, want) {
		t.Errorf("networks = %v, %v, want %v", nets, err, want)
	}
	if err := s.Reserve("other", found.Subnet, []string{"web-0", "web-1"}); err != nil { // nobody gets the same
		t.Fatal(err)
	}
	got, err := s.Addresses(jobspecs.Key{Namespace: "other", Name: "web"})
	if want := map[int]netip.Addr{0: netip.MustParseAddr("10.87.4.10"), 1: netip.MustParseAddr("10.87.4.12")}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("addresses = %v, %v, want %v", got, err, want)
	}
}

func TestAStoreTakesOverUnderOneIDForLife(t *testing.T) {
	dir := t.TempDir()
	for range 2 { // the second time it has it
		s, err := Open(dir, Options{NoSync: true, TakeOver: "feed"})
		if err != nil {
			t.Fatal(err)
		}
		if s.ID() != "feed" {
			t.Errorf("id = %s, want that of the store that was lost", s.ID())
		}
		s.Close()
	}
	before := checksum(t, dir)
	if s, err := Open(dir, Options{NoSync: true, TakeOver: "beef"}); !errors.Is(err, ErrOther) {
		s.Close()
		t.Errorf("open = %v, want ErrOther", err)
	}
	if checksum(t, dir) != before {
		t.Error("the state file was written")
	}
	if s := open(t, dir); s.ID() != "feed" {
		t.Errorf("id = %s, want feed", s.ID())
	}
}
