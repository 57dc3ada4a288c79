package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"

	bolt "go.etcd.io/bbolt"
)

// inspect reads every value of a file before anything is written to it, as far as it
// can be told whether it is whole.
func (s *Store) inspect(version int) error {
	return s.view(func(tx *bolt.Tx) error {
		return tx.ForEach(func(name []byte, b *bolt.Bucket) error { return s.walk(box{b, s.sealer, string(name)}, name, version) })
	})
}

func (s *Store) walk(b box, top []byte, version int) error {
	return b.ForEach(func(k, v []byte) error {
		if v == nil { // a bucket inside
			return s.walk(box{b.Bucket.Bucket(k), s.sealer, b.place(k)}, top, version)
		}
		if err := s.sound(b, top, k, v, version); err != nil {
			return fmt.Errorf("%s, entry %q: %w", b.name, k, err)
		}
		return nil
	})
}

var (
	sealedBuckets = []string{string(bucketSets), string(bucketSources), string(bucketRevisions), string(bucketSecrets), string(bucketRegistries)}
	jsonBuckets   = []string{string(bucketMembers), string(bucketVolumes), string(bucketEvents)}
)

// sound tells what is wrong with a value.
func (s *Store) sound(b box, top, k, v []byte, version int) error {
	switch {
	case version > 1 && slices.Contains(sealedBuckets, string(top)):
		_, err := b.sealer.open(b.place(k), v)
		return err
	case slices.Contains(jsonBuckets, string(top)) && !json.Valid(v):
		return errors.New("it is no JSON")
	}
	return nil
}

// smallest is what the two first pages of a state file take at least, in bytes.
const smallest = 2 * 4096

// examine says what is wrong with a state file before it is opened for writing. One
// that is not there, or was never written, is a new one.
func examine(dir, path string, o bolt.Options) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("state file: %w", err)
	case info.IsDir():
		return fmt.Errorf("state file %s is a folder; move it away", path)
	case info.Size() >= smallest:
		return examinePages(path, o)
	case info.Size() > 0:
		return damaged(path, fmt.Errorf("it has %d bytes", info.Size()))
	}
	if _, err := os.Stat(filepath.Join(dir, KeyFileName)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return damaged(path, errors.New("it is empty, and its key is there"))
}

func examinePages(path string, o bolt.Options) error {
	o.ReadOnly = true // nobody writes meanwhile, and the list of free pages is not read
	db, err := openFile(path, &o)
	if err != nil {
		return err
	}
	defer db.Close()
	if err := checkPages(path); err != nil {
		return damaged(path, err)
	}
	return nil
}

// view is one transaction that reads.
func (s *Store) view(f func(*bolt.Tx) error) error {
	return s.guarded(func() error { return s.db.View(f) })
}

// guarded turns bbolt's panic at a page that was damaged later into an error, and
// the fault at one that is not there any more.
func (s *Store) guarded(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = damaged(s.db.Path(), fmt.Errorf("%v", r))
		}
	}()
	return f()
}

// commit is one transaction that writes. Once one has met damage nothing is written
// any more: bbolt may hold its lock for ever, and who waits for it would not end.
func (s *Store) commit(f func(*bolt.Tx) error) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.broken != nil {
		return s.broken
	}
	err := s.guarded(func() error { return s.db.Update(f) })
	errors.As(err, &s.broken)
	return err
}

// Close waits for transactions under way and closes the file. One that was found
// damaged is left to the end of the process.
func (s *Store) Close() error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.broken != nil {
		return s.broken
	}
	return s.db.Close()
}
