package store

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/stsd/stsd/daemon/planner"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/volumes"
)

func open(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(dir, Options{NoSync: true, MaxEvents: 10})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

var (
	web    = jobspecs.Key{Namespace: "default", Name: "web"}
	subnet = netip.MustParsePrefix("10.87.0.0/22")
)

func intent(key jobspecs.Key, expect int64, members ...string) *Intent {
	return &Intent{
		Record:   Record{Set: jobspecs.Set{Namespace: key.Namespace, Name: key.Name}, Template: jobspecs.Template(`{"a":1}`), Update: key.Name + "-r1"},
		Scope:    &Scope{Sources: []jobspecs.Source{{Name: "web.hcl", Text: []byte("x")}}},
		Revision: &jobspecs.Revision{Name: key.Name + "-r1", Number: 1, Template: jobspecs.Template(`{"a":1}`)},
		Expect:   expect, Reserve: members, Subnet: subnet,
	}
}

func TestPutStoresSpecRevisionAndAddressesInOneCommit(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	id := s.ID()
	if err := s.Put(intent(web, 0, "web-0", "web-1")); err != nil {
		t.Fatal(err)
	}
	s.Close()

	s = open(t, dir)
	if s.ID() != id {
		t.Errorf("id = %q after reopening, want %q", s.ID(), id)
	}
	v, err := s.Look(web)
	if err != nil {
		t.Fatal(err)
	}
	if v.Record.Generation != 1 || v.Record.Update != "web-r1" || len(v.Revisions) != 1 || string(v.Revisions[0].Template) != `{"a":1}` {
		t.Errorf("look = %+v", v)
	}
	got, err := s.Addresses(web)
	if err != nil {
		t.Fatal(err)
	}
	want := map[int]netip.Addr{0: netip.MustParseAddr("10.87.0.10"), 1: netip.MustParseAddr("10.87.0.11")}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("addresses = %v, want %v", got, want)
	}
}

func TestPutOfTwoSetsIsAllOrNone(t *testing.T) {
	s := open(t, t.TempDir())
	bad := intent(jobspecs.Key{Namespace: "default", Name: "db"}, 7)
	if err := s.Put(intent(web, 0, "web-0"), bad); !errors.Is(err, ErrChanged) {
		t.Fatalf("put = %v, want ErrChanged", err)
	}
	if _, err := s.Get(web); !errors.Is(err, ErrNotFound) {
		t.Errorf("get = %v, want ErrNotFound: nothing may be stored", err)
	}
	if a, _ := s.Addresses(web); len(a) != 0 {
		t.Errorf("addresses = %v, want none", a)
	}
}

func TestPutRefusesAnOldGeneration(t *testing.T) {
	s := open(t, t.TempDir())
	for expect := range int64(2) {
		if err := s.Put(intent(web, expect)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Put(intent(web, 1)); !errors.Is(err, ErrChanged) {
		t.Errorf("put = %v, want ErrChanged", err)
	}
}

func TestPutKeepsWhatTheLoopLearned(t *testing.T) {
	s := open(t, t.TempDir())
	if err := s.Put(intent(web, 0)); err != nil {
		t.Fatal(err)
	}
	if err := s.Learn(web, Facts{Current: "web-r1", Formed: true}); err != nil {
		t.Fatal(err)
	}
	if err := s.Put(intent(web, 1)); err != nil { // worked out before the loop learned
		t.Fatal(err)
	}
	r, err := s.Get(web)
	if err != nil {
		t.Fatal(err)
	}
	if r.Current != "web-r1" || !r.Formed {
		t.Errorf("current = %q, formed = %v; both must survive", r.Current, r.Formed)
	}
}

func TestAddressesAreNeverGivenToAnotherMember(t *testing.T) {
	s := open(t, t.TempDir())
	if err := s.Put(intent(web, 0, "web-0", "web-1", "web-2")); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(web, Kept{Members: []string{"web-1"}}); err != nil { // its volume still exists
		t.Fatal(err)
	}
	if err := s.Put(intent(jobspecs.Key{Namespace: "default", Name: "db"}, 0, "db-0", "db-1", "db-2")); err != nil {
		t.Fatal(err)
	}
	db, _ := s.Addresses(jobspecs.Key{Namespace: "default", Name: "db"})
	want := map[int]netip.Addr{0: netip.MustParseAddr("10.87.0.10"), 1: netip.MustParseAddr("10.87.0.12"), 2: netip.MustParseAddr("10.87.0.13")}
	if !reflect.DeepEqual(db, want) {
		t.Errorf("addresses = %v, want %v", db, want)
	}
	if err := s.Put(intent(web, 0, "web-0", "web-1")); err != nil {
		t.Fatal(err)
	}
	if got, _ := s.Addresses(web); got[1] != netip.MustParseAddr("10.87.0.11") {
		t.Errorf("web-1 = %v, want the address it had", got[1])
	}
}

func TestASubnetCanRunFull(t *testing.T) {
	s := open(t, t.TempDir())
	in := intent(web, 0)
	in.Subnet = netip.MustParsePrefix("10.87.0.0/27") // .10 to .15
	for i := range 7 {
		in.Reserve = append(in.Reserve, fmt.Sprintf("web-%d", i))
	}
	if err := s.Put(in); !errors.Is(err, ErrFull) {
		t.Errorf("put = %v, want ErrFull", err)
	}
}

func TestLearnForgetsAndCutsTheHistory(t *testing.T) {
	s := open(t, t.TempDir())
	for n := range 5 {
		in := intent(web, int64(n))
		in.Revision.Number = n + 1
		in.Revision.Name = fmt.Sprintf("web-r%d", n+1)
		if err := s.Put(in); err != nil {
			t.Fatal(err)
		}
	}
	facts := Facts{
		Members:  map[int]planner.Member{0: {Revision: "web-r5", Once: "web-r5"}, 1: {Revision: "web-r4"}},
		Volumes:  []volumes.Record{{Name: "data-web-0", Used: true}, {Name: "data-web-1"}},
		ImageIDs: map[string]map[string]string{"web-r5": {"web:1": "sha256:1"}},
	}
	if err := s.Learn(web, facts); err != nil {
		t.Fatal(err)
	}
	if err := s.Learn(web, Facts{Forget: []int{1}, Drop: []string{"data-web-1"}, Truncate: true, Keep: 1, Live: map[string]bool{"web-r1": true, "web-r5": true}}); err != nil {
		t.Fatal(err)
	}
	v, err := s.Look(web)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range v.Revisions {
		names = append(names, r.Name)
	}
	if want := []string{"web-r1", "web-r4", "web-r5"}; !reflect.DeepEqual(names, want) {
		t.Errorf("revisions = %v, want %v", names, want)
	}
	if want := map[int]planner.Member{0: {Revision: "web-r5", Once: "web-r5"}}; !reflect.DeepEqual(v.Members, want) {
		t.Errorf("members = %+v, want %+v", v.Members, want)
	}
	if want := map[string]volumes.Record{"data-web-0": {Name: "data-web-0", Used: true}}; !reflect.DeepEqual(v.Volumes, want) {
		t.Errorf("volumes = %+v, want %+v", v.Volumes, want)
	}
	if got := v.Revisions[2].ImageIDs["web:1"]; got != "sha256:1" {
		t.Errorf("pinned image = %q", got)
	}
}

func TestEventsAreKeptInOrderAndTrimmed(t *testing.T) {
	s := open(t, t.TempDir())
	for n := uint64(1); n <= 15; n++ {
		if err := s.PutEvents(map[uint64]jobspecs.Event{n: {Reason: fmt.Sprint(n), Time: time.Unix(int64(n), 0)}}); err != nil {
			t.Fatal(err)
		}
	}
	events, last, err := s.Events()
	if err != nil || last != 15 || len(events) != 10 || events[0].Reason != "6" || events[9].Reason != "15" {
		t.Errorf("events = %v, last %d, %v", events, last, err)
	}
}

func TestASecondDaemonIsRefused(t *testing.T) {
	dir := t.TempDir()
	open(t, dir)
	if _, err := Open(dir, Options{}); !errors.Is(err, ErrInUse) {
		t.Errorf("open = %v, want ErrInUse", err)
	}
}

func TestANewerStoreIsRefusedAndLeftAlone(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	if err := s.db.Update(func(tx *bolt.Tx) error { return tx.Bucket(bucketMeta).Put(keyVersion, []byte("99")) }); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if _, err := Open(dir, Options{}); !errors.Is(err, ErrNewer) {
		t.Errorf("open = %v, want ErrNewer", err)
	}
}

func TestACutFileIsRefusedAndLeftAlone(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	for i := range int64(50) {
		if err := s.Put(intent(web, i)); err != nil {
			t.Fatal(err)
		}
	}
	s.Close()
	path := filepath.Join(dir, FileName)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{10000, len(whole) / 2, 100} {
		if err := os.WriteFile(path, whole[:size], 0o600); err != nil {
			t.Fatal(err)
		}
		if s, err := Open(dir, Options{NoSync: true}); err == nil {
			s.Close() // what is missing was not needed
		} else if left, _ := os.ReadFile(path); len(left) != size {
			t.Errorf("cut to %d bytes: %v, and it has %d now", size, err, len(left))
		}
	}
}

func TestADamagedFileIsRefusedAndLeftAlone(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, FileName)
	garbage := bytes.Repeat([]byte("no bbolt file "), 1000)
	if err := os.WriteFile(path, garbage, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, Options{}); err == nil {
		t.Fatal("open accepted garbage")
	}
	if left, _ := os.ReadFile(path); !bytes.Equal(left, garbage) {
		t.Error("the damaged file was changed")
	}
}

func TestTwoNamespacesNeverHaveOneSubnet(t *testing.T) {
	s, err := Open(t.TempDir(), Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	subnet := netip.MustParsePrefix("10.87.0.0/22")
	for _, namespace := range []string{"one", "one"} {
		if err := s.Reserve(namespace, subnet, []string{"web-0"}); err != nil {
			t.Fatalf("its own: %v", err)
		}
	}
	for _, other := range []string{"10.87.0.0/22", "10.87.1.0/24", "10.0.0.0/8"} {
		if err := s.Reserve("two", netip.MustParsePrefix(other), nil); !errors.Is(err, ErrSubnetTaken) {
			t.Errorf("%s: %v", other, err)
		}
	}
	if err := s.Reserve("two", netip.MustParsePrefix("10.87.4.0/22"), nil); err != nil {
		t.Errorf("a free one: %v", err)
	}
}
