package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stsd/stsd/daemon/planner"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/volumes"
)

// A picture is all that a store tells.
type picture struct {
	ID      string
	Keys    []string
	Sets    map[string]*setPicture
	Subnets map[string]string
	Events  []jobspecs.Event
	Last    uint64
	Secrets map[string]Secret
}

type setPicture struct {
	Record     *Record
	Scope      *Scope
	Revisions  []jobspecs.Revision
	Members    map[int]planner.Member
	Volumes    map[string]volumes.Record // those of a set that is gone too
	Formed     bool                      // what is known of a set that is gone
	Registries map[string]jobspecs.RegistryAuth
	Addresses  map[int]string
}

func (p *picture) String() string {
	text, err := json.MarshalIndent(p, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(text)
}

var (
	modelKeys    = []jobspecs.Key{{Namespace: "default", Name: "web"}, {Namespace: "default", Name: "db"}, {Namespace: "other", Name: "web"}}
	modelSubnets = map[string]netip.Prefix{"default": netip.MustParsePrefix("10.87.0.0/22"), "other": netip.MustParsePrefix("10.87.4.0/27")}
)

// take asks a store everything, most of it in two ways.
func take(s *Store) (*picture, error) {
	p := &picture{ID: s.ID(), Sets: map[string]*setPicture{}, Subnets: map[string]string{}, Secrets: map[string]Secret{}}
	keys, err := s.Keys()
	if err != nil {
		return nil, err
	}
	for _, k := range keys {
		p.Keys = append(p.Keys, k.String())
	}
	records, err := s.Records()
	if err != nil {
		return nil, err
	}
	for i, r := range records {
		if r.Key() != keys[i] {
			return nil, fmt.Errorf("records and keys differ: %s, %s", r.Key(), keys[i])
		}
	}
	for _, k := range modelKeys {
		if p.Sets[k.String()], err = takeSet(s, k); err != nil {
			return nil, err
		}
	}
	subnets, err := s.Subnets()
	if err != nil {
		return nil, err
	}
	for ns, n := range subnets {
		p.Subnets[ns] = n.String()
	}
	if p.Events, p.Last, err = s.Events(); err != nil {
		return nil, err
	}
	secrets, err := s.Secrets()
	for _, x := range secrets {
		one, oneErr := s.Secret(x.Namespace, x.Name)
		if oneErr != nil || one != x {
			return nil, fmt.Errorf("secret = %v, %v, and in the list %v", one, oneErr, x)
		}
		p.Secrets[x.Namespace+"/"+x.Name] = x
	}
	return p, err
}

func takeSet(s *Store, k jobspecs.Key) (*setPicture, error) {
	out := &setPicture{Addresses: map[int]string{}}
	addresses, err := s.Addresses(k)
	if err != nil {
		return nil, err
	}
	for o, a := range addresses {
		out.Addresses[o] = a.String()
	}
	if out.Volumes, out.Formed, err = s.Former(k); err != nil {
		return nil, err
	}
	r, err := s.Get(k)
	if errors.Is(err, ErrNotFound) {
		if _, err := s.Look(k); !errors.Is(err, ErrNotFound) {
			return nil, fmt.Errorf("look at %s = %v, want ErrNotFound", k, err)
		}
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	v, err := s.Look(k)
	if err != nil {
		return nil, err
	}
	scope, err := s.Scope(k)
	if err != nil {
		return nil, err
	}
	revisions, err := s.Revisions(k)
	if err != nil {
		return nil, err
	}
	if text(r) != text(v.Record) || text(revisions) != text(v.Revisions) || text(out.Volumes) != text(v.Volumes) {
		return nil, fmt.Errorf("look at %s and what is read one by one differ", k)
	}
	out.Record, out.Scope, out.Revisions, out.Members, out.Registries = &r, &scope, revisions, v.Members, v.Registries
	return out, nil
}

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// model is what the store is to do, in maps.
type model struct{ picture }

func newModel(id string) *model {
	m := &model{picture{ID: id, Sets: map[string]*setPicture{}, Subnets: map[string]string{}, Secrets: map[string]Secret{}}}
	for _, k := range modelKeys {
		m.Sets[k.String()] = &setPicture{Volumes: map[string]volumes.Record{}, Addresses: map[int]string{}}
	}
	return m
}

// copy is one that shares nothing that may change.
func (m *model) copy() *model {
	var out model
	if err := json.Unmarshal([]byte(text(m.picture)), &out.picture); err != nil {
		panic(err)
	}
	return &out
}

func (m *model) look() *picture {
	m.Keys = nil
	for _, k := range slices.Sorted(maps.Keys(m.Sets)) {
		if m.Sets[k].Record != nil {
			m.Keys = append(m.Keys, k)
		}
	}
	return &m.picture
}

func (m *model) commit(c Commit) error {
	for _, x := range c.Secrets {
		if _, there := m.Secrets[x.Namespace+"/"+x.Name]; there {
			return ErrChanged
		}
		m.Secrets[x.Namespace+"/"+x.Name] = x
	}
	for _, in := range c.Intents {
		if err := m.put(in); err != nil {
			return err
		}
	}
	return nil
}

func (m *model) put(in *Intent) error {
	s := m.Sets[in.Record.Key().String()]
	var had int64
	if s.Record != nil {
		had = s.Record.Generation
	}
	if had != in.Expect {
		return ErrChanged
	}
	r := in.Record
	r.Generation = in.Expect + 1
	if s.Record == nil {
		r.Formed = r.Formed || s.Formed
		s.Members, s.Registries = map[int]planner.Member{}, map[string]jobspecs.RegistryAuth{}
	} else {
		r.Current, r.Formed, r.HooksDone, r.Halted = s.Record.Current, s.Record.Formed, s.Record.HooksDone, s.Record.Halted
		if in.Resume || r.Halted != nil && r.Halted.Revision != r.Update {
			r.Halted = nil
		}
	}
	s.Record = &r
	if in.Scope != nil {
		s.Scope = in.Scope
	}
	if in.Revision != nil {
		s.Revisions = slices.DeleteFunc(s.Revisions, func(o jobspecs.Revision) bool {
			return o.Number == in.Replaces || o.Number == in.Revision.Number
		})
		s.Revisions = append(s.Revisions, *in.Revision)
		slices.SortFunc(s.Revisions, func(a, b jobspecs.Revision) int { return a.Number - b.Number })
	}
	maps.Copy(s.Registries, in.Registries)
	for o, ask := range in.Asks {
		x := s.Members[o]
		if order := []planner.Ask{planner.AskNone, planner.AskTurn, planner.AskNow, planner.AskFresh}; slices.Index(order, ask) > slices.Index(order, x.Ask) {
			x.Ask = ask
		}
		s.Members[o] = x
	}
	for o, stopped := range in.Stopped {
		x := s.Members[o]
		x.Stopped = stopped
		s.Members[o] = x
	}
	return m.reserve(in.Record.Set.Namespace, in.Subnet, in.Reserve)
}

func (m *model) reserve(namespace string, subnet netip.Prefix, members []string) error {
	m.Subnets[namespace] = subnet.String()
	used := map[string]bool{}
	for k, s := range m.Sets {
		for _, a := range s.Addresses {
			used[a] = used[a] || strings.HasPrefix(k, namespace+"/")
		}
	}
	for _, member := range members {
		set, ordinal, _ := jobspecs.ParseMember(member)
		s := m.Sets[namespace+"/"+set]
		if s.Addresses[ordinal] != "" {
			continue
		}
		a := subnet.Addr()
		for range 10 {
			a = a.Next()
		}
		for used[a.String()] {
			a = a.Next()
		}
		size := 1 << (32 - subnet.Bits())
		if b := a.As4(); int(b[2])<<8+int(b[3])-int(subnet.Addr().As4()[2])<<8 >= size/2 {
			return ErrFull
		}
		used[a.String()] = true
		s.Addresses[ordinal] = a.String()
	}
	return nil
}

func (m *model) learn(k jobspecs.Key, f Facts) error {
	s := m.Sets[k.String()]
	if f.Empty() {
		return nil
	}
	if s.Record == nil {
		return ErrNotFound
	}
	r := s.Record
	r.Formed = r.Formed || f.Formed
	if f.Current != "" {
		r.Current = f.Current
	}
	if f.Hooks != nil {
		r.HooksDone = f.Hooks
	}
	if f.Halted != nil && f.Halted.Revision == r.Update {
		r.Halted = f.Halted
	}
	if f.Unhalt {
		r.Halted = nil
	}
	for o, x := range f.Members {
		old := s.Members[o]
		x.Ask, x.Stopped = old.Ask, old.Stopped
		if f.Answered[o] == x.Ask {
			x.Ask = planner.AskNone
		}
		s.Members[o] = x
	}
	for _, o := range f.Forget {
		delete(s.Members, o)
	}
	for _, v := range f.Volumes {
		s.Volumes[v.Name] = v
	}
	for _, name := range f.Drop {
		delete(s.Volumes, name)
	}
	idle := 0
	for i, r := range s.Revisions {
		if ids := f.ImageIDs[r.Name]; len(ids) > 0 {
			all := maps.Clone(r.ImageIDs)
			if all == nil {
				all = map[string]string{}
			}
			maps.Copy(all, ids)
			s.Revisions[i].ImageIDs = all
		}
		if !f.Live[r.Name] {
			idle++
		}
	}
	s.Revisions = slices.DeleteFunc(s.Revisions, func(r jobspecs.Revision) bool {
		if !f.Truncate || f.Keep < 0 || idle <= f.Keep || f.Live[r.Name] {
			return false
		}
		idle--
		return true
	})
	return nil
}

func (m *model) delete(k jobspecs.Key, keep Kept) {
	s := m.Sets[k.String()]
	maps.DeleteFunc(s.Volumes, func(name string, _ volumes.Record) bool { return !slices.Contains(keep.Volumes, name) })
	for name, v := range s.Volumes {
		v.Former = true
		s.Volumes[name] = v
	}
	formed := len(s.Volumes) > 0 && s.Record != nil && s.Record.Formed
	maps.DeleteFunc(s.Addresses, func(o int, _ string) bool { return !slices.Contains(keep.Members, jobspecs.MemberName(k.Name, o)) })
	*s = setPicture{Volumes: s.Volumes, Addresses: s.Addresses, Formed: formed}
}

func (m *model) putEvents(events map[uint64]jobspecs.Event, keep int) {
	byNumber := map[uint64]jobspecs.Event{}
	for i, e := range m.Events {
		byNumber[m.Last-uint64(len(m.Events)-1-i)] = e
	}
	for n, e := range events {
		byNumber[n] = e
		m.Last = max(m.Last, n)
	}
	m.Events = nil
	for _, n := range slices.Sorted(maps.Keys(byNumber)) {
		if int(n) > int(m.Last)-keep {
			m.Events = append(m.Events, byNumber[n])
		}
	}
}

// chooser gives numbers from 0 to n-1.
type chooser func(n int) int

func pick[T any](c chooser, from ...T) T { return from[c(len(from))] }

// subset of names, by chance.
func subset[T any](c chooser, from ...T) (out []T) {
	for _, x := range from {
		if c(2) == 0 {
			out = append(out, x)
		}
	}
	return out
}

// step does one thing to a store and to the model of it, and tells how they
// differ; done is what it did.
func step(c chooser, s *Store, m *model) (next *model, done string, err error) {
	next = m.copy()
	k := pick(c, modelKeys...)
	var got, want error
	switch c(12) {
	case 0, 1, 2, 3:
		x := Commit{Intents: []*Intent{inventIntent(c, k, m)}}
		if other := modelKeys[(slices.Index(modelKeys, k)+1)%len(modelKeys)]; c(4) == 0 {
			x.Intents = append(x.Intents, inventIntent(c, other, m))
		}
		for _, name := range subset(c, "cookie", "password") {
			if c(4) == 0 {
				x.Secrets = append(x.Secrets, Secret{Namespace: k.Namespace, Name: name, Format: "hex", Length: 4, Value: fmt.Sprint(c(1000)), Created: time.Unix(int64(c(1000)), 0).UTC()})
			}
		}
		done, got, want = "commit", s.Commit(x), next.commit(x)
	case 4, 5, 6:
		f := inventFacts(c, k)
		done, got, want = "learn", s.Learn(k, f), next.learn(k, f)
	case 7:
		keep := Kept{Members: subset(c, k.Name+"-0", k.Name+"-1"), Volumes: subset(c, "data-"+k.Name+"-0", "data-"+k.Name+"-1")}
		done, got = "delete", s.Delete(k, keep)
		next.delete(k, keep)
	case 8:
		members := subset(c, k.Name+"-0", k.Name+"-5", k.Name+"-6", k.Name+"-7")
		done, got, want = "reserve", s.Reserve(k.Namespace, modelSubnets[k.Namespace], members), next.reserve(k.Namespace, modelSubnets[k.Namespace], members)
	case 9, 10:
		events := map[uint64]jobspecs.Event{}
		for n := range uint64(c(5)) {
			events[m.Last+1+n] = jobspecs.Event{Reason: fmt.Sprint("R", c(100)), Time: time.Unix(int64(c(1000)), 0).UTC()}
		}
		if len(m.Events) > 0 && c(2) == 0 {
			events[m.Last] = jobspecs.Event{Reason: "Again", Count: 2}
		}
		done, got = "events", s.PutEvents(events)
		next.putEvents(events, s.maxEvents)
	case 11:
		name := pick(c, "cookie", "password")
		if _, there := next.Secrets[k.Namespace+"/"+name]; !there {
			want = ErrNoSecret
		}
		delete(next.Secrets, k.Namespace+"/"+name)
		done, got = "forget a secret", s.DeleteSecret(k.Namespace, name)
	}
	if !errors.Is(got, want) || got != nil && want == nil {
		return nil, done, fmt.Errorf("%s = %v, want %v", done, got, want)
	}
	if want != nil {
		next = m
	}
	return next, done, nil
}

func inventIntent(c chooser, k jobspecs.Key, m *model) *Intent {
	s := m.Sets[k.String()]
	n := 1 + c(4)
	in := &Intent{
		Record: Record{
			Set: jobspecs.Set{Namespace: k.Namespace, Name: k.Name}, Template: jobspecs.Template(fmt.Sprintf(`{"n":%d}`, n)),
			Update: fmt.Sprintf("%s-r%d", k.Name, n), Replicas: c(5), Paused: c(2) == 0, Overrides: jobspecs.Overrides{Images: map[string]string{"main": fmt.Sprint(c(3))}},
		},
		Subnet: modelSubnets[k.Namespace], Reserve: subset(c, k.Name+"-0", k.Name+"-1", k.Name+"-2", k.Name+"-3"), Resume: c(3) == 0,
	}
	if s.Record != nil {
		in.Expect = s.Record.Generation
	}
	if c(8) == 0 {
		in.Expect++
	}
	if s.Record == nil || c(2) == 0 {
		in.Scope = &Scope{Sources: []jobspecs.Source{{Name: "web.hcl", Text: []byte(fmt.Sprint(c(100)))}}}
	}
	if len(s.Revisions) == 0 || c(2) == 0 {
		number := 1
		if len(s.Revisions) > 0 {
			number = s.Revisions[len(s.Revisions)-1].Number + 1
			if c(3) == 0 {
				in.Replaces = s.Revisions[c(len(s.Revisions))].Number
			}
		}
		in.Revision = &jobspecs.Revision{Name: in.Record.Update, Number: number, Template: in.Record.Template, Cause: fmt.Sprint("cause ", c(10))}
	}
	if c(4) == 0 {
		in.Registries = map[string]jobspecs.RegistryAuth{pick(c, "ghcr.io", "quay.io"): {Username: "ci", Password: fmt.Sprint(c(10))}}
	}
	if c(3) == 0 {
		in.Asks = map[int]planner.Ask{c(3): pick(c, planner.AskTurn, planner.AskNow, planner.AskFresh)}
		in.Stopped = map[int]bool{c(3): c(2) == 0}
	}
	return in
}

func inventFacts(c chooser, k jobspecs.Key) Facts {
	revision := fmt.Sprintf("%s-r%d", k.Name, 1+c(4))
	f := Facts{Formed: c(4) == 0, Unhalt: c(6) == 0}
	if c(2) == 0 {
		f.Members = map[int]planner.Member{c(4): {Revision: revision, Once: revision, Used: c(2) == 0}}
		f.Answered = map[int]planner.Ask{c(4): pick(c, planner.AskTurn, planner.AskNow)}
	}
	if c(4) == 0 {
		f.Forget = []int{c(4)}
	}
	for _, o := range subset(c, 0, 1) {
		f.Volumes = append(f.Volumes, volumes.Record{Name: fmt.Sprintf("data-%s-%d", k.Name, o), Claim: "data", Ordinal: o, Used: c(2) == 0})
	}
	if c(5) == 0 {
		f.Drop = []string{fmt.Sprintf("data-%s-%d", k.Name, c(2))}
	}
	if c(3) == 0 {
		f.Current = revision
	}
	if c(5) == 0 {
		f.Hooks = map[string]bool{"form": true}
	}
	if c(5) == 0 {
		f.Halted = &planner.Halt{Revision: revision, Member: k.Name + "-1", Why: "late"}
	}
	if c(3) == 0 {
		f.ImageIDs = map[string]map[string]string{revision: {fmt.Sprint("web:", c(2)): fmt.Sprint("sha256:", c(100))}}
	}
	if c(4) == 0 {
		f.Truncate, f.Keep, f.Live = true, c(3)-1, map[string]bool{revision: true}
	}
	return f
}

// Whatever is done to a store, in any order, it tells what a few maps would; also
// after it was closed and opened again.
func TestAStoreTellsWhatWasPutIntoIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "stsd-model-")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		s, err := Open(dir, Options{NoSync: true, MaxEvents: 10})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { s.Close() }()
		c := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "n") }
		m := newModel(s.ID())
		for range 1 + c(12) {
			next, done, err := step(c, s, m)
			if err != nil {
				t.Fatal(err)
			}
			m = next
			if c(6) == 0 {
				done += ", closed and opened"
				s.Close()
				if s, err = Open(dir, Options{NoSync: true, MaxEvents: 10}); err != nil {
					t.Fatal(err)
				}
			}
			got, err := take(s)
			if err != nil {
				t.Fatalf("after %s: %v", done, err)
			}
			if want := m.look(); got.normal() != want.normal() {
				t.Fatalf("after %s the store tells\n%s\nwant\n%s", done, got.normal(), want.normal())
			}
		}
	})
}

// normal is a picture in which what is empty and what is absent are the same: a
// field that is new changes no old picture.
func (p *picture) normal() string {
	var v any
	if err := json.Unmarshal([]byte(text(p)), &v); err != nil {
		return err.Error()
	}
	out, err := json.MarshalIndent(pruned(v), "", " ")
	if err != nil {
		return err.Error()
	}
	return string(out)
}

func pruned(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			if x = pruned(x); x == nil {
				delete(v, k)
			} else {
				v[k] = x
			}
		}
		if len(v) == 0 {
			return nil
		}
	case []any:
		if len(v) == 0 {
			return nil
		}
		for i := range v {
			v[i] = pruned(v[i])
		}
	case string:
		if v == "" || v == "0001-01-01T00:00:00Z" {
			return nil
		}
	case float64:
		if v == 0 {
			return nil
		}
	case bool:
		if !v {
			return nil
		}
	}
	return v
}

// What was read may be changed by who read it.
func TestWhatAStoreToldIsNotTheStores(t *testing.T) {
	s := open(t, t.TempDir())
	in := intent(web, 0)
	in.Record.Overrides.Images = map[string]string{"main": "web:1"}
	in.Record.HooksDone = map[string]bool{"form": true}
	in.Record.Deleting, in.Record.Halted = &planner.Deleting{Volumes: "retain"}, &planner.Halt{Why: "late"}
	in.Record.Failed = []string{"web-b"}
	in.Record.Rolled = &Rolled{Overrides: jobspecs.Overrides{Images: map[string]string{"main": "web:2"}}}
	in.Revision.ImageIDs = map[string]string{"web:1": "sha256:1"}
	if err := s.Put(in); err != nil {
		t.Fatal(err)
	}
	want, err := s.Look(web)
	if err != nil {
		t.Fatal(err)
	}
	before := text(want)
	for range 2 { // the second time it is told from memory
		v, err := s.Look(web)
		if err != nil {
			t.Fatal(err)
		}
		v.Record.Overrides.Images["main"], v.Record.HooksDone["form"] = "web:9", false
		v.Record.Failed[0] = "web-z"
		v.Record.Deleting.Volumes, v.Record.Halted.Why, v.Record.Rolled.Why, v.Record.Rolled.Overrides.Images["main"] = "delete", "never", "so", "web:9"
		v.Revisions[0].ImageIDs["web:1"] = "sha256:9"
	}
	got, err := s.Look(web)
	if err != nil || text(got) != before {
		t.Errorf("look = %s, %v, want %s", text(got), err, before)
	}
}
