package store

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/stsd/stsd/daemon/planner"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/volumes"
)

// A value that does not open, or is no JSON, is noticed before anything is written.
func TestAValueThatIsDamagedIsNoticedAndTheFileLeftAlone(t *testing.T) {
	for _, c := range []struct {
		name  string
		path  []string // of the bucket
		value string   // instead of the first one
		want  string
	}{
		{"a set", []string{"sets"}, "\x01rubbish rubbish rubbish rubbish", `(sets, entry "default/web": it was not sealed with this store's key)`},
		{"a source", []string{"sources"}, "{}", `(sources, entry "default/web": it was not sealed with this store's key)`},
		{"a revision", []string{"revisions", "default/web"}, "", `it was not sealed with this store's key)`},
		{"a secret", []string{"secrets"}, "{}", `(secrets, entry "default/cookie": it was not sealed with this store's key)`},
		{"a registry", []string{"registries", "default/web"}, "{}", `(registries/default/web, entry "ghcr.io": it was not sealed with this store's key)`},
		{"a member", []string{"members", "default/web"}, "{", `it is no JSON)`},
		{"a volume", []string{"volumes", "default/web"}, "data", `(volumes/default/web, entry "data-web-0": it is no JSON)`},
		{"an event", []string{"events"}, "{", `it is no JSON)`},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, dir)
			everything(t, s)
			if err := s.db.Update(func(tx *bolt.Tx) error {
				b := tx.Bucket([]byte(c.path[0]))
				for _, name := range c.path[1:] {
					b = b.Bucket([]byte(name))
				}
				k, _ := b.Cursor().First()
				return b.Put(bytes.Clone(k), []byte(c.value))
			}); err != nil {
				t.Fatal(err)
			}
			s.Close()
			refused(t, dir, c.want)
		})
	}
}

// everything stores something in every bucket.
func everything(t *testing.T, s *Store) {
	t.Helper()
	secretive(t, s)
	if err := s.Learn(web, Facts{Members: map[int]planner.Member{0: {Revision: "web-r1"}}, Volumes: []volumes.Record{{Name: "data-web-0"}}}); err != nil {
		t.Fatal(err)
	}
	if err := s.PutEvents(map[uint64]jobspecs.Event{1: {Reason: "Created"}}); err != nil {
		t.Fatal(err)
	}
}

// refused sees that a folder is not opened, for that reason, and is left as it is.
func refused(t *testing.T, dir, want string) {
	t.Helper()
	before := image(t, dir)
	s, err := Open(dir, Options{NoSync: true})
	if err == nil {
		s.Close()
		t.Fatal("it was opened")
	}
	path := filepath.Join(dir, FileName)
	for _, part := range []string{"state file " + path + " is damaged (", want, "it was left as it is: move it away and start again"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("open = %v, want %q", err, part)
		}
	}
	if !bytes.Equal(image(t, dir), before) {
		t.Error("the file was changed")
	}
}

// Pages that bbolt would take for granted: it would write over what is in use, or
// turn for ever.
func TestAPageThatMakesNoSenseIsNoticedAndTheFileLeftAlone(t *testing.T) {
	whole, dir := manySets(t)
	for _, c := range []struct {
		name string
		harm func(t *testing.T, p *pages, meta []byte)
		want string
	}{
		{"a page in use is said to be free", func(_ *testing.T, p *pages, meta []byte) {
			list := p.file[p.size*int(binary.LittleEndian.Uint64(meta[32:])):]
			binary.LittleEndian.PutUint16(list[10:], 1)
			copy(list[pageHead:], meta[16:24]) // the root of the tree
		}, "is said to be free"},
		{"a branch of the tree leads to its root", func(t *testing.T, p *pages, meta []byte) {
			binary.LittleEndian.PutUint64(branch(t, p)[pageHead+8:], binary.LittleEndian.Uint64(meta[16:]))
		}, "is there twice"},
		{"two branches lead to one page", func(t *testing.T, p *pages, _ []byte) {
			b := branch(t, p)
			copy(b[2*pageHead+8:2*pageHead+16], b[pageHead+8:])
		}, "is there twice"},
		{"a branch leads out of the file", func(t *testing.T, p *pages, _ []byte) {
			binary.LittleEndian.PutUint64(branch(t, p)[pageHead+8:], 1<<40)
		}, "page 1099511627776 is not in the file"},
		{"keys are out of order", func(t *testing.T, p *pages, _ []byte) {
			b := branch(t, p)
			at := pageHead + int(binary.LittleEndian.Uint32(b[pageHead:]))
			b[at] = 0xff
		}, "follows"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &pages{file: bytes.Clone(whole)}
			meta, err := p.meta()
			if err != nil {
				t.Fatal(err)
			}
			c.harm(t, p, meta)
			refused(t, laid(t, p.file, filepath.Join(dir, KeyFileName)), c.want)
		})
	}
	t.Run("and what nobody harmed is read", func(t *testing.T) {
		if _, err := told(laid(t, whole, filepath.Join(dir, KeyFileName))); err != nil {
			t.Error(err)
		}
	})
}

// manySets is the file of a store whose tree has branches.
func manySets(t *testing.T) (file []byte, dir string) {
	t.Helper()
	dir = t.TempDir()
	s := open(t, dir)
	for n := range 60 {
		if err := s.Put(intent(jobspecs.Key{Namespace: "default", Name: fmt.Sprintf("set%02d", n)}, 0)); err != nil {
			t.Fatal(err)
		}
	}
	s.Close()
	return image(t, dir), dir
}

// branch is a page with references to others, of which the tree has one at least.
func branch(t *testing.T, p *pages) []byte {
	t.Helper()
	used := &pages{file: p.file, size: p.size, high: p.high, seen: map[uint64]bool{}}
	meta, err := used.meta()
	if err != nil {
		t.Fatal(err)
	}
	if err := used.walk(binary.LittleEndian.Uint64(meta[16:]), 0); err != nil {
		t.Fatal(err)
	}
	for id := range used.high {
		b := p.file[p.size*int(id):]
		if used.seen[id] && binary.LittleEndian.Uint16(b[8:]) == branchPage && binary.LittleEndian.Uint16(b[10:]) > 1 {
			return b[:p.size]
		}
	}
	t.Fatal("the tree has no branches: it is too small")
	return nil
}

// Damage that comes while a store is open is an error of what meets it, and ends
// neither the process nor hangs it. After a write has met it nothing is written.
func TestDamageThatComesLaterIsAnError(t *testing.T) {
	pages := 2 * os.Getpagesize() // the first two are in memory
	for name, harm := range map[string]func(f *os.File, size int) error{
		"pages are overwritten": func(f *os.File, size int) error {
			for at := pages; at < size; at += os.Getpagesize() {
				if _, err := f.WriteAt(bytes.Repeat([]byte{0xff}, 64), int64(at)); err != nil {
					return err
				}
			}
			return nil
		},
		"the file is cut": func(f *os.File, _ int) error { return f.Truncate(int64(pages)) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, dir)
			everything(t, s)
			f, err := os.OpenFile(filepath.Join(dir, FileName), os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if err := harm(f, len(image(t, dir))); err != nil {
				t.Fatal(err)
			}
			before := image(t, dir)
			_, get := s.Get(web)
			for what, err := range map[string]error{
				"get": get, "put": s.Put(intent(web, 1)), "another put": s.Put(intent(web, 1)), "close": s.Close(),
			} {
				if err == nil || !strings.Contains(err.Error(), "is damaged") {
					t.Errorf("%s = %v, want it to say that the file is damaged", what, err)
				}
			}
			if !bytes.Equal(image(t, dir), before) {
				t.Error("it was written to")
			}
		})
	}
}
