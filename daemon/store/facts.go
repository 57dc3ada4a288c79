package store

import (
	"encoding/binary"

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
	ImageIDs map[string]map[string]string // revision → image → id, added
	Keep     int                          // revision_history_limit, applied when Truncate
	Live     map[string]bool
	Truncate bool
}

// Empty tells whether there is nothing to store.
func (f *Facts) Empty() bool {
	return len(f.Members) == 0 && len(f.Forget) == 0 && len(f.Volumes) == 0 && len(f.Drop) == 0 &&
		f.Current == "" && !f.Formed && len(f.ImageIDs) == 0 && !f.Truncate
}

// Learn stores facts of a set. ErrNotFound.
func (s *Store) Learn(key jobspecs.Key, f Facts) error {
	if f.Empty() {
		return nil
	}
	return s.db.Update(func(tx *bolt.Tx) error {
		var r Record
		if err := get(tx, key, &r); err != nil {
			return err
		}
		if f.Current != "" && f.Current != r.Current || f.Formed && !r.Formed {
			r.Formed = r.Formed || f.Formed
			if f.Current != "" {
				r.Current = f.Current
			}
			if err := putJSON(tx.Bucket(bucketSets), []byte(key.String()), r); err != nil {
				return err
			}
		}
		if err := learnMembers(tx, key, f); err != nil {
			return err
		}
		if err := learnVolumes(tx, key, f); err != nil {
			return err
		}
		return learnRevisions(tx, key, f)
	})
}

func learnMembers(tx *bolt.Tx, key jobspecs.Key, f Facts) error {
	b, err := tx.Bucket(bucketMembers).CreateBucketIfNotExists([]byte(key.String()))
	if err != nil {
		return err
	}
	for o, m := range f.Members {
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

// learnRevisions pins image ids and cuts the history: revisions that are not
// live go, oldest first, until f.Keep of them are left. Negative keeps all.
func learnRevisions(tx *bolt.Tx, key jobspecs.Key, f Facts) error {
	b := tx.Bucket(bucketRevisions).Bucket([]byte(key.String()))
	var all []jobspecs.Revision
	if err := forEachJSON(b, func(_ []byte, r jobspecs.Revision) { all = append(all, r) }); err != nil {
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
		if err := putJSON(b, number(r.Number), r); err != nil {
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
}

// Look reads a set and its facts. ErrNotFound.
func (s *Store) Look(key jobspecs.Key) (View, error) {
	v := View{Members: map[int]planner.Member{}, Volumes: map[string]volumes.Record{}}
	err := s.db.View(func(tx *bolt.Tx) error {
		k := []byte(key.String())
		if err := get(tx, key, &v.Record); err != nil {
			return err
		}
		if err := forEachJSON(tx.Bucket(bucketRevisions).Bucket(k), func(_ []byte, r jobspecs.Revision) { v.Revisions = append(v.Revisions, r) }); err != nil {
			return err
		}
		if err := forEachJSON(tx.Bucket(bucketMembers).Bucket(k), func(o []byte, m planner.Member) {
			v.Members[int(binary.BigEndian.Uint64(o))] = m
		}); err != nil {
			return err
		}
		return forEachJSON(tx.Bucket(bucketVolumes).Bucket(k), func(name []byte, r volumes.Record) { v.Volumes[string(name)] = r })
	})
	return v, err
}

// PutEvents stores events under their sequence numbers in one commit, and drops
// the oldest beyond the limit. Storing a number again replaces its event.
func (s *Store) PutEvents(events map[uint64]jobspecs.Event) error {
	if len(events) == 0 {
		return nil
	}
	return s.db.Update(func(tx *bolt.Tx) error {
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
	err = s.db.View(func(tx *bolt.Tx) error {
		last = tx.Bucket(bucketEvents).Sequence()
		return forEachJSON(tx.Bucket(bucketEvents), func(_ []byte, e jobspecs.Event) { events = append(events, e) })
	})
	return events, last, err
}
