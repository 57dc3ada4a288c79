// Package store keeps what must survive the daemon: intent, revisions,
// addresses and the facts that no engine can tell. It is the only user of
// bbolt. Every exported method is one transaction; what it returned without an
// error is on disk.
package store

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/stsd/stsd/daemon/planner"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/volumes"
)

// Errors that a caller branches on.
var (
	// ErrNotFound is returned when the set is not stored.
	ErrNotFound = errors.New("no such set")
	// ErrInUse is returned by Open when another daemon has the folder.
	ErrInUse = errors.New("in use by another stsd daemon")
	// ErrNewer is returned by Open for a store written by a newer stsd.
	ErrNewer = errors.New("written by a newer stsd")
	// ErrOther is returned by Open for a store that cannot take over the one that was
	// asked for.
	ErrOther = errors.New("another stsd's state")
	// ErrSubnetTaken is returned where a namespace would get a subnet that another one
	// has: two asked at once. Whoever asks again finds a free one.
	ErrSubnetTaken = errors.New("another namespace has it")
	// ErrChanged is returned by Put when the generation moved on.
	ErrChanged = errors.New("the set was changed meanwhile")
	// ErrFull is returned by Put when the network has no address left.
	ErrFull = errors.New("no free address")
	// ErrUnwritable is returned by every method that writes while the file system of
	// the data folder is full or read-only. Nothing was stored.
	ErrUnwritable = errors.New("cannot be written")
)

// Record is one set: what is wanted, and how far it has come.
type Record struct {
	Set        jobspecs.Set       `json:"set"`
	Template   jobspecs.Template  `json:"template"`   // wanted, overrides applied
	Generation int64              `json:"generation"` // counts changes of intent, from 1
	Created    time.Time          `json:"created"`
	Replicas   int                `json:"replicas"`
	Overrides  jobspecs.Overrides `json:"overrides"`
	Update     string             `json:"update"`  // revision that is wanted
	Current    string             `json:"current"` // revision that was last complete; "" none yet
	Paused     bool               `json:"paused"`
	Deleting   *planner.Deleting  `json:"deleting,omitempty"`
	Formed     bool               `json:"formed"`                // all members were ready at once, at least once
	HooksDone  map[string]bool    `json:"hooks_done,omitempty"`  // set_ready hooks that have run, by planner.World.DoneKey
	Halted     *planner.Halt      `json:"halted,omitempty"`      // the rollout of Update that failed
	Resumed    time.Time          `json:"resumed,omitzero"`      // deadlines count from then at the earliest
	Rolled     *Rolled            `json:"rolled_back,omitempty"` // why Update is an older one, until it is another
	Failed     []string           `json:"failed,omitempty"`      // revisions that were rolled back from before, and not complete since
	Lost       bool               `json:"lost,omitempty"`        // what the user wrote is not known: it was put together from labels
	Forced     bool               `json:"forced,omitempty"`      // guard and vetoes do not hold in this generation
}

// Rolled tells that a rollout failed and was taken back.
type Rolled struct {
	From string    `json:"from"` // revision
	To   string    `json:"to"`
	Why  string    `json:"why"`
	At   time.Time `json:"at"`
	// Overrides are those that it failed with.
	Overrides jobspecs.Overrides `json:"overrides"`
}

// Key names the set.
func (r *Record) Key() jobspecs.Key { return r.Set.Key() }

// Scope is what the user wrote and what it was evaluated with.
type Scope struct {
	Sources []jobspecs.Source `json:"sources"`
	Inputs  jobspecs.Inputs   `json:"inputs"`
}

// Options of Open; the zero value is right for a daemon.
type Options struct {
	// NoSync skips fsync: a power cut may lose commits. For tests.
	NoSync bool
	// TakeOver is the id of a store that was lost: a new one is made with it, so that
	// what carries its label is ours. One that is there and has another id is refused.
	TakeOver string
	// MaxEvents is how many events are kept; zero is 5000.
	MaxEvents int
	// Around stands around every commit: it calls commit, or fails without it. For
	// tests that end a daemon there. Nil: nothing does.
	Around func(commit func() error) error
}

// Store is an open state file.
type Store struct {
	*sealer
	db        *bolt.DB
	id        string
	takeOver  string // Options.TakeOver
	maxEvents int
	around    func(commit func() error) error

	members texts[planner.Member]
	volumes texts[volumes.Record]

	writing sync.Mutex
	broken  *damage // what a write has met; nil: nothing. Under writing
}

// FileName is the state file's name in the data folder.
const FileName = "stsd.db"

// Open opens or makes the state file in dir, which is made with mode 0700.
func Open(dir string, o Options) (store *Store, err error) {
	path := filepath.Join(dir, FileName)
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // a cut file faults when it is read
	defer func() {
		if r := recover(); r != nil {
			store, err = nil, damaged(path, fmt.Errorf("%v", r))
		}
	}()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	options := bolt.Options{Timeout: 300 * time.Millisecond, NoSync: o.NoSync, NoGrowSync: o.NoSync}
	if err := examine(dir, path, options); err != nil {
		return nil, err
	}
	db, err := openFile(path, &options)
	if err != nil {
		return nil, err
	}
	s := &Store{db: db, takeOver: o.TakeOver, maxEvents: o.MaxEvents, around: o.Around}
	if s.maxEvents == 0 {
		s.maxEvents = 5000
	}
	if err := s.prepare(dir); err != nil {
		if s.broken != nil {
			return nil, s.broken
		}
		return nil, errors.Join(refusal(path, err), db.Close())
	}
	return s, nil
}

// refusal says why a file that bbolt opens is not used.
func refusal(path string, err error) error {
	if d := (*damage)(nil); errors.As(err, &d) {
		return d
	}
	return fmt.Errorf("state file %s: %w", path, err)
}

// openFile turns bbolt's complaints, some of which are panics on a damaged
// file, into errors that say what to do.
func openFile(path string, o *bolt.Options) (db *bolt.DB, err error) {
	defer func() {
		if r := recover(); r != nil {
			db, err = nil, damaged(path, fmt.Errorf("%v", r))
		}
	}()
	db, err = bolt.Open(path, 0o600, o)
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, fmt.Errorf("state file %s: %w; stop it, or start this one with another --data-dir", path, ErrInUse)
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrChecksum), errors.Is(err, bolterrors.ErrVersionMismatch):
		return nil, damaged(path, err)
	case err != nil:
		return nil, fmt.Errorf("state file %s: %w", path, err)
	}
	return db, nil
}

// damage is what is wrong with a state file.
type damage struct {
	path string
	err  error
}

func (d *damage) Error() string {
	return fmt.Sprintf("state file %s is damaged (%v); it was left as it is: move it away and start again, the containers and volumes keep running meanwhile", d.path, d.err)
}

func (d *damage) Unwrap() error { return d.err }

func damaged(path string, err error) error {
	if d := (*damage)(nil); errors.As(err, &d) {
		return d
	}
	return &damage{path, err}
}

// prepare makes the file fit for use: its buckets, its id, its key, the newest
// schema. Nothing is written before the version and the key are known to be right.
func (s *Store) prepare(dir string) error {
	var version int
	var seal []byte
	if err := s.view(func(tx *bolt.Tx) (err error) {
		meta := tx.Bucket(bucketMeta)
		if meta == nil {
			return nil
		}
		seal = append(seal, meta.Get(keySeal)...)
		version, err = versionOf(meta)
		return err
	}); err != nil {
		return err
	}
	var err error
	if s.sealer, err = unlock(dir, seal); err != nil {
		return err
	}
	if err := s.inspect(version); err != nil {
		return damaged(s.db.Path(), err)
	}
	if version == 0 && !s.db.NoSync { // a file that is new; making the key did the same, where there was none
		if err := syncFolder(dir); err != nil {
			return err
		}
	}
	return s.update(func(tx *bolt.Tx) error {
		for _, b := range buckets {
			if _, err := tx.CreateBucketIfNotExists(b); err != nil {
				return err
			}
		}
		if version < schemaVersion {
			if err := s.raise(tx, version); err != nil {
				return err
			}
		}
		meta := tx.Bucket(bucketMeta)
		if id := meta.Get(keyID); id != nil {
			s.id = string(id)
			if s.takeOver != "" && s.takeOver != s.id {
				return fmt.Errorf("%w: it is %s, not %s; take over with a --data-dir that is empty", ErrOther, s.id, s.takeOver)
			}
			return nil
		}
		if s.id = s.takeOver; s.id == "" {
			s.id = newID()
		}
		return meta.Put(keyID, []byte(s.id))
	})
}

// raise brings a file to the newest schema; version 0 is a new one.
func (s *Store) raise(tx *bolt.Tx, version int) error {
	if version == 1 {
		if err := s.upgrade(tx); err != nil {
			return fmt.Errorf("upgrade from schema 1: %w", err)
		}
	}
	meta := tx.Bucket(bucketMeta)
	if err := meta.Put(keySeal, s.seal(placeOfSeal, []byte("stsd"))); err != nil {
		return err
	}
	return meta.Put(keyVersion, []byte(strconv.Itoa(schemaVersion)))
}

// versionOf is the file's schema; 0 in a new one. ErrNewer.
func versionOf(meta *bolt.Bucket) (int, error) {
	v := meta.Get(keyVersion)
	if v == nil {
		return 0, nil
	}
	n, err := strconv.Atoi(string(v))
	if err != nil || n < 1 {
		return 0, fmt.Errorf("schema version %q makes no sense", v)
	}
	if n > schemaVersion {
		return 0, fmt.Errorf("%w: schema %d, this one knows %d; start the newer stsd again", ErrNewer, n, schemaVersion)
	}
	return n, nil
}

func newID() string {
	b := make([]byte, 8)
	rand.Read(b) // never fails (crypto/rand)
	return hex.EncodeToString(b)
}

// update is one transaction that writes.
func (s *Store) update(f func(*bolt.Tx) error) error {
	commit := func() error { return s.commit(f) }
	if s.around == nil {
		return unwritable(s.db.Path(), commit())
	}
	return unwritable(s.db.Path(), s.around(commit))
}

// unwritable says of a disk that takes nothing more what to do about it.
func unwritable(path string, err error) error {
	dir := filepath.Dir(path)
	switch {
	case isErrno(err, syscall.ENOSPC), isErrno(err, syscall.EDQUOT):
		return fmt.Errorf("state file %s %w: %w; make room in %s (df -h %s)", path, ErrUnwritable, err, dir, dir)
	case isErrno(err, syscall.EROFS):
		return fmt.Errorf("state file %s %w: %w; mount the file system of %s for writing (dmesg may say why it is not)", path, ErrUnwritable, err, dir)
	}
	return err
}

// isErrno also knows the errors that bbolt passes on as text alone.
func isErrno(err error, n syscall.Errno) bool {
	return err != nil && (errors.Is(err, n) || strings.HasSuffix(err.Error(), n.Error()))
}

// ID is this store's id, made once.
func (s *Store) ID() string { return s.id }

// Keys lists the stored sets, sorted.
func (s *Store) Keys() ([]jobspecs.Key, error) {
	var out []jobspecs.Key
	err := s.view(func(tx *bolt.Tx) error {
		return tx.Bucket(bucketSets).ForEach(func(k, _ []byte) error {
			key, err := jobspecs.ParseKey(string(k))
			out = append(out, key)
			return err
		})
	})
	return out, err
}

// Records lists the stored sets, sorted by key.
func (s *Store) Records() ([]Record, error) {
	var out []Record
	err := s.view(func(tx *bolt.Tx) error {
		return forEach(s.box(tx, bucketSets), func(_ []byte, r Record) { out = append(out, r) })
	})
	return out, err
}

// Get is one set. ErrNotFound.
func (s *Store) Get(key jobspecs.Key) (Record, error) {
	var r Record
	err := s.view(func(tx *bolt.Tx) error {
		return s.get(tx, key, &r)
	})
	return r, err
}

func (s *Store) get(tx *bolt.Tx, key jobspecs.Key, r *Record) error {
	return s.need(tx, bucketSets, key, r)
}

// need reads a set's entry. ErrNotFound.
func (s *Store) need(tx *bolt.Tx, bucket []byte, key jobspecs.Key, into any) error {
	ok, err := s.box(tx, bucket).get([]byte(key.String()), into)
	if err == nil && !ok {
		err = fmt.Errorf("%s: %w", key, ErrNotFound)
	}
	return err
}

// Scope is what the user wrote last. ErrNotFound.
func (s *Store) Scope(key jobspecs.Key) (Scope, error) {
	var out Scope
	err := s.view(func(tx *bolt.Tx) error { return s.need(tx, bucketSources, key, &out) })
	return out, err
}

// Intent is one set to store.
type Intent struct {
	Record   Record
	Scope    *Scope             // nil: as stored
	Revision *jobspecs.Revision // to add, or to store again under a new number; nil: none
	Replaces int                // number that Revision had before; zero: it is new
	Expect   int64              // generation that must be stored now; zero: none is
	Reserve  []string           // members that need an address
	Subnet   netip.Prefix       // where from; zero: none are reserved

	// Asks are made of members; a stronger one that is there stays. Stopped says
	// which members are to stay down, and which are not any more.
	Asks    map[int]planner.Ask
	Stopped map[int]bool
	// Resume tries a rollout that failed again.
	Resume bool

	// Registries are credentials to keep for the set, beside those that are.
	Registries map[string]jobspecs.RegistryAuth
}

// Put stores several sets in one commit, all or none: spec, revision and
// addresses. Record.Generation is set to Expect+1. ErrChanged, ErrFull.
func (s *Store) Put(intents ...*Intent) error { return s.Commit(Commit{Intents: intents}) }

// Commit is what is stored at once, all or none.
type Commit struct {
	Intents []*Intent
	Secrets []Secret // new ones
}

// Commit stores c as Put does.
func (s *Store) Commit(c Commit) error {
	if len(c.Intents) == 0 && len(c.Secrets) == 0 {
		return nil
	}
	return s.update(func(tx *bolt.Tx) error {
		for _, x := range c.Secrets {
			if err := s.putSecret(tx, x); err != nil {
				return err
			}
		}
		for _, in := range c.Intents {
			if err := s.put(tx, in); err != nil {
				return fmt.Errorf("%s: %w", in.Record.Key(), err)
			}
		}
		return nil
	})
}

func (s *Store) put(tx *bolt.Tx, in *Intent) error {
	key := in.Record.Key()
	var stored Record
	if err := s.get(tx, key, &stored); err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	if stored.Generation != in.Expect {
		return fmt.Errorf("%w: generation %d, not %d", ErrChanged, stored.Generation, in.Expect)
	}
	in.Record.Generation = in.Expect + 1
	switch {
	case in.Expect > 0: // what the loop learned meanwhile stays
		in.Record.Current, in.Record.Formed, in.Record.HooksDone = stored.Current, stored.Formed, stored.HooksDone
		in.Record.Halted = stillHalted(&stored, in)
	case formedOnce(tx, key):
		in.Record.Formed = true
	}
	if err := s.box(tx, bucketSets).put([]byte(key.String()), in.Record); err != nil {
		return err
	}
	if in.Scope != nil {
		if err := s.box(tx, bucketSources).put([]byte(key.String()), in.Scope); err != nil {
			return err
		}
	}
	if err := s.putRevision(tx, key, in); err != nil {
		return err
	}
	if err := s.putRegistries(tx, key, in.Registries); err != nil {
		return err
	}
	if err := putAsks(tx, key, in); err != nil {
		return err
	}
	return reserve(tx, key.Namespace, in)
}

// stillHalted is the failed rollout that is one still: of the same revision, and
// not to be tried again.
func stillHalted(stored *Record, in *Intent) *planner.Halt {
	if in.Resume || stored.Halted == nil || stored.Halted.Revision != in.Record.Update {
		return nil
	}
	return stored.Halted
}

func (s *Store) putRevision(tx *bolt.Tx, key jobspecs.Key, in *Intent) error {
	if in.Revision == nil {
		return nil
	}
	b, err := s.boxIn(tx, bucketRevisions, []byte(key.String()))
	if err != nil {
		return err
	}
	if in.Replaces > 0 {
		if err := b.Delete(number(in.Replaces)); err != nil {
			return err
		}
	}
	return b.put(number(in.Revision.Number), in.Revision)
}

// Revisions lists a set's revisions by number.
func (s *Store) Revisions(key jobspecs.Key) ([]jobspecs.Revision, error) {
	var out []jobspecs.Revision
	err := s.view(func(tx *bolt.Tx) error {
		return forEach(s.box(tx, bucketRevisions, []byte(key.String())), func(_ []byte, r jobspecs.Revision) {
			out = append(out, r)
		})
	})
	return out, err
}

// Delete forgets a set, its revisions and facts, but for what is kept.
func (s *Store) Delete(key jobspecs.Key, keep Kept) error {
	return s.update(func(tx *bolt.Tx) error {
		k := []byte(key.String())
		if err := s.keepVolumes(tx, key, keep.Volumes); err != nil {
			return err
		}
		for _, b := range [][]byte{bucketSets, bucketSources} {
			if err := tx.Bucket(b).Delete(k); err != nil {
				return err
			}
		}
		for _, b := range [][]byte{bucketRevisions, bucketMembers, bucketRegistries} {
			if err := tx.Bucket(b).DeleteBucket(k); err != nil && !errors.Is(err, bolterrors.ErrBucketNotFound) {
				return err
			}
		}
		return release(tx, key, keep.Members)
	})
}

func number(n int) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

func putJSON(b *bolt.Bucket, key []byte, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return b.Put(key, text)
}

// forEachJSON reads a bucket in key order; a nil bucket is empty.
func forEachJSON[T any](b *bolt.Bucket, each func(key []byte, v T)) error {
	return forEachFact(nil, b, each)
}

// forEachFact is forEachJSON for what a loop reads at every turn.
func forEachFact[T any](known *texts[T], b *bolt.Bucket, each func(key []byte, v T)) error {
	if b == nil {
		return nil
	}
	return b.ForEach(func(k, text []byte) error {
		v, err := known.read(text)
		if err != nil {
			return fmt.Errorf("entry %q: %w", k, err)
		}
		each(k, v)
		return nil
	})
}
