package store

import (
	"encoding/binary"
	"errors"
	"slices"

	bolt "go.etcd.io/bbolt"

	"github.com/stsd/stsd/daemon/planner"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/volumes"
)

// Facts are what a set's loop learned or decided, stored in one commit.
type Facts struct {
	Members  map[int]planner.Member
	Forget   []int // ordinals
	Volumes  []volumes.Record
	Drop     []string                     // volumes
	Current  string                       // "" leaves it
	Formed   bool                         // false leaves it
	Hooks    map[string]bool              // Record.HooksDone from now on; nil leaves them
	Answered map[int]planner.Ask          // asks that are over; another one that was made meanwhile is not
	Halted   *planner.Halt                // the rollout of its revision failed; nil leaves it
	Unhalt   bool                         // it has become complete all the same
	ImageIDs map[string]map[string]string // revision → image → id, added
	Keep     int                          // revision_history_limit, applied when Truncate
	Live     map[string]bool
	Truncate bool
}

// Empty tells whether there is nothing to store.
func (f *Facts) Empty() bool {
	return len(f.Members) == 0 && len(f.Forget) == 0 && len(f.Volumes) == 0 && len(f.Drop) == 0 &&
		f.Current == "" && !f.Formed && len(f.ImageIDs) == 0 && !f.Truncate &&
		f.Hooks == nil && len(f.Answered) == 0 && f.Halted == nil && !f.Unhalt
}

// Learn stores facts of a set. ErrNotFound.
func (s *Store) Learn(key jobspecs.Key, f Facts) error {
	if f.Empty() {
		return nil
	}
	return s.update(func(tx *bolt.Tx) error {
		var r Record
		if err := s.get(tx, key, &r); err != nil {
			return err
		}
		if f.changes(&r) {
			if err := s.box(tx, bucketSets).put([]byte(key.String()), r); err != nil {
				return err
			}
		}
		if err := learnMembers(tx, key, f); err != nil {
			return err
		}
		if err := learnVolumes(tx, key, f); err != nil {
			return err
		}
		return s.learnRevisions(tx, key, f)
	})
}

// changes puts facts about the set as a whole into its record, and tells whether
// there were any. What is about another revision than the one that is wanted now
// came too late.
func (f *Facts) changes(r *Record) bool {
	before := *r
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
	return r.Formed != before.Formed || r.Current != before.Current || f.Hooks != nil || r.Halted != before.Halted
}

func learnMembers(tx *bolt.Tx, key jobspecs.Key, f Facts) error {
	b, err := tx.Bucket(bucketMembers).CreateBucketIfNotExists([]byte(key.String()))
	if err != nil {
		return err
	}
	for o, m := range f.Members {
		var stored planner.Member
		if err := getJSON(b, number(o), &stored); err != nil {
			return err
		}
		m.Stopped, m.Ask = stored.Stopped, stored.Ask // the user's
		if f.Answered[o] == m.Ask {
			m.Ask = planner.AskNone
		}
		if err := putJSON(b, number(o), m); err != nil {
			return err
		}
	}
	for _, o := range f.Forget {
		if err := b.Delete(number(o)); err != nil {
			return err
		}
	}
	return nil
}

func learnVolumes(tx *bolt.Tx, key jobspecs.Key, f Facts) error {
	b, err := tx.Bucket(bucketVolumes).CreateBucketIfNotExists([]byte(key.String()))
	if err != nil {
		return err
	}
	for _, v := range f.Volumes {
		if err := putJSON(b, []byte(v.Name), v); err != nil {
			return err
		}
	}
	for _, name := range f.Drop {
		if err := b.Delete([]byte(name)); err != nil {
			return err
		}
	}
	return nil
}

// Kept is what outlives a set that is forgotten while its volumes exist, so that
// a set of that name that is applied later knows them again.
type Kept struct {
	Members []string // whose addresses stay reserved
	Volumes []string // whose records stay; with one of them it stays known that the set was formed
}

// keepVolumes drops the volume records of a set that is being forgotten, but for
// those kept, and remembers with them that the set was formed.
func (s *Store) keepVolumes(tx *bolt.Tx, key jobspecs.Key, keep []string) error {
	var f Facts
	left := 0
	err := forEachJSON(tx.Bucket(bucketVolumes).Bucket([]byte(key.String())), func(name []byte, v volumes.Record) {
		if slices.Contains(keep, string(name)) {
			left++
			v.Former = true
			f.Volumes = append(f.Volumes, v)
			return
		}
		f.Drop = append(f.Drop, string(name))
	})
	if err != nil {
		return err
	}
	var r Record
	if err := s.get(tx, key, &r); err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	if err := learnVolumes(tx, key, f); err != nil {
		return err
	}
	if left > 0 && r.Formed {
		return tx.Bucket(bucketFormed).Put([]byte(key.String()), []byte("1"))
	}
	return tx.Bucket(bucketFormed).Delete([]byte(key.String()))
}

// formedOnce tells whether a set of that name that was forgotten was formed.
func formedOnce(tx *bolt.Tx, key jobspecs.Key) bool {
	return tx.Bucket(bucketFormed).Get([]byte(key.String())) != nil
}

// Former is what is known of a set that is not stored, from one of that name that
// was forgotten: the records of its volumes, and whether it was formed.
func (s *Store) Former(key jobspecs.Key) (records map[string]volumes.Record, formed bool, err error) {
	records = map[string]volumes.Record{}
	err = s.view(func(tx *bolt.Tx) error {
		formed = formedOnce(tx, key)
		return forEachJSON(tx.Bucket(bucketVolumes).Bucket([]byte(key.String())), func(name []byte, r volumes.Record) { records[string(name)] = r })
	})
	return records, formed, err
}

// learnRevisions pins image ids and cuts the history: revisions that are not
// live go, oldest first, until f.Keep of them are left. Negative keeps all.
func (s *Store) learnRevisions(tx *bolt.Tx, key jobspecs.Key, f Facts) error {
	b := s.box(tx, bucketRevisions, []byte(key.String()))
	var all []jobspecs.Revision
	if err := forEach(b, func(_ []byte, r jobspecs.Revision) { all = append(all, r) }); err != nil {
		return err
	}
	var idle []int
	for _, r := range all {
		if !f.Live[r.Name] {
			idle = append(idle, r.Number)
		}
		ids := f.ImageIDs[r.Name]
		if len(ids) == 0 {
			continue
		}
		if r.ImageIDs == nil {
			r.ImageIDs = map[string]string{}
		}
		for image, id := range ids {
			r.ImageIDs[image] = id
		}
		if err := b.put(number(r.Number), r); err != nil {
			return err
		}
	}
	for f.Truncate && f.Keep >= 0 && len(idle) > f.Keep {
		if err := b.Delete(number(idle[0])); err != nil {
			return err
		}
		idle = idle[1:]
	}
	return nil
}

// View is all that a set's loop reads, from one moment.
type View struct {
	Record    Record
	Revisions []jobspecs.Revision // by number
	Members   map[int]planner.Member
	Volumes   map[string]volumes.Record

	// Registries are the credentials that were sent for the set, by registry.
	Registries map[string]jobspecs.RegistryAuth
}

// Look reads a set and its facts. ErrNotFound.
func (s *Store) Look(key jobspecs.Key) (View, error) {
	v := View{Members: map[int]planner.Member{}, Volumes: map[string]volumes.Record{}, Registries: map[string]jobspecs.RegistryAuth{}}
	err := s.view(func(tx *bolt.Tx) error {
		k := []byte(key.String())
		if err := s.get(tx, key, &v.Record); err != nil {
			return err
		}
		if err := s.registries(tx, key, v.Registries); err != nil {
			return err
		}
		if err := forEach(s.box(tx, bucketRevisions, k), func(_ []byte, r jobspecs.Revision) { v.Revisions = append(v.Revisions, r) }); err != nil {
			return err
		}
		if err := forEachFact(&s.members, tx.Bucket(bucketMembers).Bucket(k), func(o []byte, m planner.Member) {
			v.Members[int(binary.BigEndian.Uint64(o))] = m
		}); err != nil {
			return err
		}
		return forEachFact(&s.volumes, tx.Bucket(bucketVolumes).Bucket(k), func(name []byte, r volumes.Record) { v.Volumes[string(name)] = r })
	})
	return v, err
}

// PutEvents stores events under their sequence numbers in one commit, and drops
// the oldest beyond the limit. Storing a number again replaces its event.
func (s *Store) PutEvents(events map[uint64]jobspecs.Event) error {
	if len(events) == 0 {
		return nil
	}
	return s.update(func(tx *bolt.Tx) error {
		b := tx.Bucket(bucketEvents)
		for n, e := range events {
			if err := putJSON(b, number(int(n)), e); err != nil {
				return err
			}
			if n > b.Sequence() {
				if err := b.SetSequence(n); err != nil {
					return err
				}
			}
		}
		return trim(b, s.maxEvents)
	})
}

// trim keeps the newest entries. Sequences have no gaps, so that the oldest one
// to keep is known.
func trim(b *bolt.Bucket, keep int) error {
	oldest := int(b.Sequence()) - keep
	c := b.Cursor()
	for k, _ := c.First(); k != nil && int(binary.BigEndian.Uint64(k)) <= oldest; k, _ = c.First() {
		if err := b.Delete(append([]byte(nil), k...)); err != nil {
			return err
		}
	}
	return nil
}

// Events lists the stored events, oldest first, and the highest sequence number.
func (s *Store) Events() (events []jobspecs.Event, last uint64, err error) {
	err = s.view(func(tx *bolt.Tx) error {
		last = tx.Bucket(bucketEvents).Sequence()
		return forEachJSON(tx.Bucket(bucketEvents), func(_ []byte, e jobspecs.Event) { events = append(events, e) })
	})
	return events, last, err
}
