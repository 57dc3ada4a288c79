package store

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"
)

// sector is what a disk writes whole, in bytes.
const sector = 512

// A power cut during a commit: bbolt makes the file longer where it has to, writes
// the changed pages, waits for the disk, writes one meta page, waits again. The file
// is copied after each of these writes, and as the disk may have it that was not
// waited for: some pages, half a page. Every copy is opened: it must tell what was
// told before the commit, or after it.
func TestAPowerCutLosesAtMostTheCommitUnderWay(t *testing.T) {
	rounds := 60
	if testing.Short() {
		rounds = 15
	}
	r := rand.New(rand.NewPCG(1, 2))
	dir := t.TempDir()
	s := open(t, dir)
	m := newModel(s.ID())
	before := image(t, dir)
	cut, whole := 0, 0
	for range rounds {
		next, done, err := step(r.IntN, s, m)
		if err != nil {
			t.Fatal(err)
		}
		after := image(t, dir)
		for _, half := range halves(r, before, after, os.Getpagesize()) {
			got := reopened(t, dir, half)
			switch got.normal() {
			case next.look().normal():
				whole++
			case m.look().normal():
				cut++
			default:
				t.Fatalf("cut during %s it tells\n%s\nbefore it told\n%s", done, got.normal(), m.look().normal())
			}
		}
		if got := reopened(t, dir, after); got.normal() != next.look().normal() {
			t.Fatalf("cut after %s it tells\n%s\nwant\n%s", done, got.normal(), next.look().normal())
		}
		m, before = next, after
	}
	if cut == 0 || whole == 0 {
		t.Errorf("%d cuts lost the commit and %d did not: both must happen, or nothing was cut", cut, whole)
	}
}

// A power cut during an upgrade: the file is of the old schema or of the new one,
// and tells the same.
func TestAPowerCutDuringAnUpgradeLosesNothing(t *testing.T) {
	dir := schema1(t)
	before := image(t, dir)
	s := open(t, dir)
	want, err := take(s)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(7, 8))
	cuts := append(halves(r, before, image(t, dir), os.Getpagesize()), before, image(t, dir))
	for i, half := range cuts {
		if got := reopened(t, dir, half); got.normal() != want.normal() {
			t.Fatalf("cut %d of %d: it tells\n%s\nwant\n%s", i, len(cuts), got.normal(), want.normal())
		}
	}
	for name, left := range map[string][]byte{"no key yet": nil, "half a key": []byte("half")} {
		other := laid(t, before, "")
		if left != nil {
			if err := os.WriteFile(filepath.Join(other, KeyFileName+".new"), left, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := told(other); err != nil || got.normal() != want.normal() {
			t.Errorf("%s: it tells\n%s\n%v, want\n%s", name, got.normal(), err, want.normal())
		}
	}
}

// A power cut during the first start: what is there is a new store, or is refused in
// words and left alone.
func TestAPowerCutDuringTheFirstStart(t *testing.T) {
	dir := t.TempDir()
	db, err := bolt.Open(filepath.Join(dir, FileName), 0o600, &bolt.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	db.Close()
	first := image(t, dir)
	open(t, dir)
	key := filepath.Join(dir, KeyFileName)

	type cut struct {
		name, key string
		file      []byte
	}
	cuts := []cut{{"no key yet", "", first}, {"nothing stored yet", key, first}}
	for n := 0; n < len(first); n += sector {
		cuts = append(cuts, cut{fmt.Sprintf("%d bytes", n), "", first[:n]})
		torn := append(bytes.Clone(first[:n]), make([]byte, len(first)-n)...)
		cuts = append(cuts, cut{fmt.Sprintf("%d bytes of its length", n), "", torn})
	}
	r := rand.New(rand.NewPCG(9, 10))
	for i, half := range halves(r, first, image(t, dir), os.Getpagesize()) {
		cuts = append(cuts, cut{fmt.Sprintf("first commit, cut %d", i), key, half})
	}
	opened := 0
	for _, c := range cuts {
		other := laid(t, c.file, c.key)
		p, err := told(other)
		switch {
		case err == nil && len(p.Keys) == 0 && p.ID != "":
			opened++
		case err == nil:
			t.Errorf("%s: it tells %s, want a new store", c.name, p.normal())
		case c.key != "" || !strings.Contains(err.Error(), "is damaged") || !bytes.Equal(image(t, other), c.file):
			t.Errorf("%s: open = %v; the file was changed: %v", c.name, err, !bytes.Equal(image(t, other), c.file))
		}
	}
	if opened < 3 || opened == len(cuts) {
		t.Errorf("%d of %d were opened: both must happen, or nothing was cut", opened, len(cuts))
	}
}

// Only tests may leave out to wait for the disk.
func TestWhatIsStoredIsOnTheDisk(t *testing.T) {
	s, err := Open(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if s.db.NoSync || s.db.NoGrowSync || s.db.NoFreelistSync {
		t.Errorf("no sync %v, no sync of its length %v, no list of free pages %v; want none of it", s.db.NoSync, s.db.NoGrowSync, s.db.NoFreelistSync)
	}
}

func image(t *testing.T, dir string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, FileName))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// halves are what the disk may hold when the power fails between two images of the
// file.
func halves(r *rand.Rand, before, after []byte, page int) (out [][]byte) {
	metas, pages := changed(before, after, page)
	if len(after) > len(before) { // longer, and nothing is written to it
		out = append(out, append(bytes.Clone(before), make([]byte, len(after)-len(before))...))
	}
	all := bytes.Clone(before)
	for _, at := range pages { // after each write
		all = write(all, after, at, page)
		out = append(out, bytes.Clone(all))
	}
	for range 3 { // some of the pages, and of one a part
		half := bytes.Clone(before)
		for _, at := range pages {
			if r.IntN(2) == 0 {
				half = write(half, after, at, page)
			}
		}
		if len(pages) > 0 {
			half = write(half, after, pages[r.IntN(len(pages))], sector*(1+r.IntN(page/sector)))
		}
		out = append(out, half)
	}
	for _, at := range metas { // a meta page, whole and torn
		out = append(out, write(bytes.Clone(all), after, at, page))
		for _, n := range []int{20, 40, 70} {
			out = append(out, write(bytes.Clone(all), after, at, n))
		}
	}
	return out
}

// changed are the places of the pages that two images of the file do not share.
func changed(before, after []byte, page int) (metas, pages []int) {
	for at := 0; at < len(after); at += page {
		switch same := at+page <= len(before) && bytes.Equal(before[at:at+page], after[at:at+page]); {
		case same:
		case at < 2*page:
			metas = append(metas, at)
		default:
			pages = append(pages, at)
		}
	}
	return metas, pages
}

// write puts n bytes of another image at their place; the file grows.
func write(file, from []byte, at, n int) []byte {
	end := min(at+n, len(from))
	if len(file) < end {
		file = append(file, make([]byte, end-len(file))...)
	}
	copy(file[at:end], from[at:end])
	return file
}

// reopened is what a file tells that is opened beside the key of dir.
func reopened(t *testing.T, dir string, file []byte) *picture {
	t.Helper()
	other := laid(t, file, filepath.Join(dir, KeyFileName))
	defer os.RemoveAll(other)
	s, err := Open(other, Options{NoSync: true, MaxEvents: 10})
	if err != nil {
		t.Fatalf("open after a power cut: %v", err)
	}
	defer s.Close()
	p, err := take(s)
	if err != nil {
		t.Fatalf("read after a power cut: %v", err)
	}
	return p
}

// laid is a folder with that state file, and a copy of that key where there is one.
func laid(t *testing.T, file []byte, key string) string {
	t.Helper()
	dir, err := os.MkdirTemp(t.TempDir(), "laid")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, FileName), file, 0o600); err != nil {
		t.Fatal(err)
	}
	if key == "" {
		return dir
	}
	b, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, KeyFileName), b, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// filled is a closed store that was used for a while.
func filled(t *testing.T) (dir string, m *model) {
	t.Helper()
	r := rand.New(rand.NewPCG(3, 4))
	dir = t.TempDir()
	s, err := Open(dir, Options{NoSync: true, MaxEvents: 10})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	m = newModel(s.ID())
	for range 80 {
		if m, _, err = step(r.IntN, s, m); err != nil {
			t.Fatal(err)
		}
	}
	return dir, m
}

// Bytes that flipped are noticed, or were not needed: what is sealed is never told
// wrong, nothing panics, and a file that is refused stays as it is.
func TestFlippedBytesAreNoticedAndAreLeftAlone(t *testing.T) {
	dir, m := filled(t)
	whole := image(t, dir)
	want := m.look().normal()
	r := rand.New(rand.NewPCG(5, 6))
	refused, wrong := 0, 0
	for n := range 300 {
		file := bytes.Clone(whole)
		page := os.Getpagesize()
		for range 1 + r.IntN(30) {
			at := r.IntN(len(file))
			switch n % 3 {
			case 0: // the heads of pages, and the metas
				at = at/page*page + r.IntN(64)
			case 1:
				at = r.IntN(2 * page)
			}
			file[at] ^= byte(1 + r.IntN(255))
		}
		other := laid(t, file, filepath.Join(dir, KeyFileName))
		got, err := told(other)
		switch {
		case err != nil:
			refused++
			if len(err.Error()) < 20 || !bytes.Contains([]byte(err.Error()), []byte("state file")) && got == nil {
				t.Errorf("the complaint is %q", err)
			}
		case got.normal() != want:
			wrong++
		}
		if err != nil && got == nil && !bytes.Equal(image(t, other), file) {
			t.Fatalf("refused (%v), and the file was changed", err)
		}
		os.RemoveAll(other)
	}
	if refused == 0 {
		t.Error("no damage was noticed")
	}
	t.Logf("%d refused, %d told something else (of what is not sealed)", refused, wrong)
}

// told opens a folder and reads everything; without a picture it was refused at
// Open.
func told(dir string) (p *picture, err error) {
	s, err := Open(dir, Options{NoSync: true, MaxEvents: 10})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	p, err = take(s)
	if p == nil {
		p = &picture{}
	}
	return p, err
}

func TestAFileThatIsNoStateFileIsRefusedInWordsAndLeftAlone(t *testing.T) {
	dir, _ := filled(t)
	whole := image(t, dir)
	page := os.Getpagesize()
	for name, file := range map[string][]byte{
		"cut inside the metas":  whole[:page+100],
		"cut after the metas":   whole[:2*page],
		"cut in the middle":     whole[:len(whole)/2],
		"a few bytes":           whole[:100],
		"empty":                 {},
		"another kind of file":  bytes.Repeat([]byte("no bbolt file "), 1000),
		"zeros":                 make([]byte, 4*page),
		"metas of another kind": append(bytes.Repeat([]byte{0xff}, 2*page), whole[2*page:]...),
	} {
		t.Run(name, func(t *testing.T) {
			other := laid(t, file, filepath.Join(dir, KeyFileName))
			p, err := told(other)
			if err == nil {
				t.Fatalf("it was read: %s", p.normal())
			}
			if p != nil {
				t.Fatalf("it was opened, and then: %v", err)
			}
			if want := fmt.Sprintf("state file %s is damaged", filepath.Join(other, FileName)); !bytes.HasPrefix([]byte(err.Error()), []byte(want)) {
				t.Errorf("open = %q, want it to begin with %q", err, want)
			}
			if !bytes.Equal(image(t, other), file) {
				t.Error("the file was changed")
			}
		})
	}
}

func TestWhatIsNoFileIsRefusedInWords(t *testing.T) {
	for name, tc := range map[string]struct {
		make func(dir string) (path string, err error)
		want string
	}{
		"a folder of the state file's name": {func(dir string) (string, error) {
			return dir, os.Mkdir(filepath.Join(dir, FileName), 0o700)
		}, "is a folder; move it away"},
		"a file of the data folder's name": {func(dir string) (string, error) {
			path := filepath.Join(dir, "data")
			return path, os.WriteFile(path, nil, 0o600)
		}, "data folder: mkdir"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := tc.make(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Open(dir, Options{}); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("open = %v, want %q", err, tc.want)
			}
		})
	}
}

func TestAFileThatMayNotBeReadIsLeftAlone(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root reads every file")
	}
	dir, _ := filled(t)
	path := filepath.Join(dir, FileName)
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, Options{}); !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), path) {
		t.Errorf("open = %v, want it to say that %s may not be read", err, path)
	}
}

// A store of a newer stsd, and one whose version makes no sense, are not touched.
func TestAVersionThatIsNotKnownIsRefusedAndLeftAlone(t *testing.T) {
	for version, want := range map[string]string{
		"3":   "written by a newer stsd: schema 3, this one knows 2; start the newer stsd again",
		"0":   `schema version "0" makes no sense`,
		"two": `schema version "two" makes no sense`,
	} {
		t.Run(version, func(t *testing.T) {
			dir, _ := filled(t)
			s := open(t, dir)
			if err := s.db.Update(func(tx *bolt.Tx) error { return tx.Bucket(bucketMeta).Put(keyVersion, []byte(version)) }); err != nil {
				t.Fatal(err)
			}
			s.Close()
			before := image(t, dir)
			if _, err := Open(dir, Options{}); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("open = %v, want %q", err, want)
			}
			if !bytes.Equal(image(t, dir), before) {
				t.Error("the file was changed")
			}
		})
	}
}

// A schema that is new needs a file of the one before it in testdata, and a test of
// what that one tells.
func TestEverySchemaHasAFile(t *testing.T) {
	for n := 1; n <= schemaVersion; n++ {
		dir := t.TempDir()
		for from, to := range map[string]string{"schema%d.db.gz": FileName, "schema%d.key.gz": KeyFileName} {
			from = fmt.Sprintf(from, n)
			if n == 1 && to == KeyFileName { // it had none
				continue
			}
			if err := os.WriteFile(filepath.Join(dir, to), unzipped(t, from), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := versionIn(t, dir); got != strconv.Itoa(n) {
			t.Errorf("the file of schema %d is of schema %q", n, got)
		}
		open(t, dir).Close()
		if got := versionIn(t, dir); got != strconv.Itoa(schemaVersion) {
			t.Errorf("the file of schema %d was brought to schema %q, want %d", n, got, schemaVersion)
		}
	}
}

// versionIn is the schema that a state file says it has.
func versionIn(t *testing.T, dir string) (version string) {
	t.Helper()
	db, err := bolt.Open(filepath.Join(dir, FileName), 0o600, &bolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.View(func(tx *bolt.Tx) error {
		version = string(tx.Bucket(bucketMeta).Get(keyVersion))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return version
}

// Every schema that was ever written is read, as it was told then: schema2.json is
// what the stsd that wrote schema2.db told of it.
func TestASchema2FileIsRead(t *testing.T) {
	dir := t.TempDir()
	for from, to := range map[string]string{"schema2.db.gz": FileName, "schema2.key.gz": KeyFileName} {
		if err := os.WriteFile(filepath.Join(dir, to), unzipped(t, from), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := string(unzipped(t, "schema2.json.gz"))
	for range 2 { // the second time it is of the newest schema
		s := open(t, dir)
		got, err := take(s)
		if err != nil {
			t.Fatal(err)
		}
		if got.normal() != want {
			t.Errorf("it tells\n%s\nwant\n%s", got.normal(), want)
		}
		s.Close()
	}
}

func unzipped(t *testing.T, name string) []byte {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
