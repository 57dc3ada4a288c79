package store

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/stsd/stsd/daemon/planner"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/volumes"
)

const hushed = "correct-horse-battery-staple"

// secretive stores hushed wherever something sensitive may be.
func secretive(t *testing.T, s *Store) {
	t.Helper()
	in := intent(web, 0, "web-0")
	in.Record.Template = jobspecs.Template(`{"a":{"$sensitive":"` + hushed + `"}}`)
	in.Record.Set.Claims = []jobspecs.Claim{{Name: "data", Spec: []byte(`{"options":{"o":{"$sensitive":"` + hushed + `"}}}`)}}
	in.Revision.Template = in.Record.Template
	in.Revision.Origin.Inputs.Vars = map[string]json.RawMessage{"password": json.RawMessage(`"` + hushed + `"`)}
	in.Scope.Inputs.Secrets = map[string]string{"default/cookie": hushed}
	in.Scope.Sources[0].Text = []byte("default = " + hushed)
	in.Registries = map[string]jobspecs.RegistryAuth{"ghcr.io": {Username: "ci", Password: hushed}}
	if err := s.Commit(Commit{Intents: []*Intent{in}, Secrets: []Secret{cookie}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Learn(web, Facts{ImageIDs: map[string]map[string]string{"web-r1": {"web:1": "sha256:1"}}, Current: "web-r1", Formed: true}); err != nil {
		t.Fatal(err)
	}
}

var cookie = Secret{Namespace: "default", Name: "cookie", Format: "hex", Length: 28, Value: hushed, Created: time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)}

func TestNothingSensitiveIsOnDiskInTheClear(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	secretive(t, s)
	s.Close()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(b, []byte(hushed)) {
			t.Errorf("%s holds it", e.Name())
		}
		if fi, _ := e.Info(); fi.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, want 0600", e.Name(), fi.Mode())
		}
	}

	s = open(t, dir)
	v, err := s.Look(web)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(v.Record.Template), hushed) || !strings.Contains(string(v.Revisions[0].Template), hushed) || v.Revisions[0].ImageIDs["web:1"] != "sha256:1" {
		t.Errorf("look = %+v", v)
	}
	if want := map[string]jobspecs.RegistryAuth{"ghcr.io": {Username: "ci", Password: hushed}}; !reflect.DeepEqual(v.Registries, want) {
		t.Errorf("registries = %v, want %v", v.Registries, want)
	}
	if got, err := s.Secret("default", "cookie"); err != nil || got != cookie {
		t.Errorf("secret = %+v, %v", got, err)
	}
	if got, err := s.Secrets(); err != nil || !reflect.DeepEqual(got, []Secret{cookie}) {
		t.Errorf("secrets = %+v, %v", got, err)
	}
}

func TestASecretIsMadeOnceAndForgottenOnce(t *testing.T) {
	s := open(t, t.TempDir())
	if err := s.Commit(Commit{Secrets: []Secret{cookie}}); err != nil {
		t.Fatal(err)
	}
	other := cookie
	other.Value = "another"
	if err := s.Commit(Commit{Secrets: []Secret{other}, Intents: []*Intent{intent(web, 0)}}); !errors.Is(err, ErrChanged) {
		t.Errorf("commit = %v, want ErrChanged", err)
	}
	if _, err := s.Get(web); !errors.Is(err, ErrNotFound) {
		t.Errorf("get = %v: the set must not be stored without its secret", err)
	}
	if err := s.DeleteSecret("default", "cookie"); err != nil {
		t.Fatal(err)
	}
	if err := s.DeleteSecret("default", "cookie"); !errors.Is(err, ErrNoSecret) {
		t.Errorf("delete = %v, want ErrNoSecret", err)
	}
	if _, err := s.Secret("default", "cookie"); !errors.Is(err, ErrNoSecret) {
		t.Errorf("secret = %v, want ErrNoSecret", err)
	}
}

func TestASetTakesItsRegistriesAlong(t *testing.T) {
	s := open(t, t.TempDir())
	secretive(t, s)
	if err := s.Delete(web, Kept{}); err != nil {
		t.Fatal(err)
	}
	if err := s.Put(intent(web, 0)); err != nil {
		t.Fatal(err)
	}
	if v, err := s.Look(web); err != nil || len(v.Registries) != 0 {
		t.Errorf("registries = %v, %v; want none of the set that is gone", v.Registries, err)
	}
}

// checksum tells whether the state file was written.
func checksum(t *testing.T, dir string) [32]byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, FileName))
	if err != nil {
		t.Fatal(err)
	}
	return sha256.Sum256(b)
}

func TestOpenWithoutTheRightKeyLeavesTheFileAlone(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil func(key string) error
		want  string
	}{
		"the key file is missing":     {os.Remove, "is missing, and the state file's values are sealed with it; put it back"},
		"another key":                 {func(key string) error { return os.WriteFile(key, bytes.Repeat([]byte{7}, 32), 0o600) }, "is not the one that the state file's values are sealed with"},
		"a damaged key":               {func(key string) error { return os.Truncate(key, 5) }, "has 5 bytes, not 32"},
		"others may read it":          {func(key string) error { return os.Chmod(key, 0o640) }, "may be read or written by others (mode 0640): chmod 600"},
		"a folder instead of the key": {func(key string) error { return errors.Join(os.Remove(key), os.Mkdir(key, 0o700)) }, "is no regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, dir)
			secretive(t, s)
			s.Close()
			before := checksum(t, dir)
			if err := tc.spoil(filepath.Join(dir, KeyFileName)); err != nil {
				t.Fatal(err)
			}
			s, err := Open(dir, Options{NoSync: true})
			if err == nil {
				s.Close()
				t.Fatal("open succeeded")
			}
			if !errors.Is(err, ErrKey) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("open = %v, want %q", err, tc.want)
			}
			if checksum(t, dir) != before {
				t.Error("the state file was written")
			}
		})
	}
}

func TestAKeyThatIsThereIsTakenByANewStateFile(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	hash := s.HashKey()
	s.Close()
	if err := os.Remove(filepath.Join(dir, FileName)); err != nil {
		t.Fatal(err)
	}
	if s = open(t, dir); !bytes.Equal(s.HashKey(), hash) {
		t.Error("the key was made anew")
	}
}

func TestAValueThatWasMovedDoesNotOpen(t *testing.T) {
	s := open(t, t.TempDir())
	secretive(t, s)
	err := s.db.Update(func(tx *bolt.Tx) error {
		b := tx.Bucket(bucketSecrets)
		return b.Put([]byte("default/other"), append([]byte(nil), b.Get([]byte("default/cookie"))...))
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.Secret("default", "other"); !errors.Is(err, ErrNotSealed) {
		t.Errorf("secret = %v, %v; want ErrNotSealed", got, err)
	}
}

func TestAParcelIsReadByItsStoreAlone(t *testing.T) {
	s, other := open(t, t.TempDir()), open(t, t.TempDir())
	sealed, err := s.Seal([]string{hushed})
	if err != nil || bytes.Contains(sealed, []byte(hushed)) {
		t.Fatalf("seal = %q, %v", sealed, err)
	}
	var got []string
	if err := s.Unseal(sealed, &got); err != nil || !reflect.DeepEqual(got, []string{hushed}) {
		t.Errorf("unseal = %q, %v", got, err)
	}
	for name, b := range map[string][]byte{"another store": sealed, "nothing": nil, "rubbish": []byte("rubbish rubbish rubbish rubbish")} {
		if err := other.Unseal(b, &got); !errors.Is(err, ErrNotSealed) {
			t.Errorf("%s: unseal = %v, want ErrNotSealed", name, err)
		}
	}
}

// schema1 is a folder with a state file as the first schema wrote it.
func schema1(t *testing.T) string {
	t.Helper()
	f, err := os.Open("testdata/schema1.db.gz")
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
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, FileName), b, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestASchema1FileIsReadAndSealed(t *testing.T) {
	dir := schema1(t)
	for range 2 { // the second time it is of the newest schema
		s := open(t, dir)
		if s.ID() != "bd09c95c93c959fa" {
			t.Errorf("id = %s", s.ID())
		}
		v, err := s.Look(web)
		if err != nil {
			t.Fatal(err)
		}
		at := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
		r := v.Record
		if r.Generation != 1 || r.Replicas != 2 || r.Update != "web-bcdfghjklm" || r.Current != r.Update || !r.Formed || len(r.Set.Claims) != 1 {
			t.Errorf("record = %+v", r)
		}
		if len(v.Revisions) != 1 || v.Revisions[0].Name != r.Update || !v.Revisions[0].Template.Equal(r.Template) || len(v.Revisions[0].Origin.Source) != 1 {
			t.Errorf("revisions = %+v", v.Revisions)
		}
		wantMembers := map[int]planner.Member{0: {Revision: r.Update, ReadySince: at, Once: r.Update, Used: true}}
		if !reflect.DeepEqual(v.Members, wantMembers) {
			t.Errorf("members = %+v, want %+v", v.Members, wantMembers)
		}
		if want := map[string]volumes.Record{"data-web-0": {Name: "data-web-0", Claim: "data", Used: true}}; !reflect.DeepEqual(v.Volumes, want) {
			t.Errorf("volumes = %+v, want %+v", v.Volumes, want)
		}
		if scope, err := s.Scope(web); err != nil || len(scope.Sources) != 1 || !strings.Contains(string(scope.Sources[0].Text), `statefulset "web"`) {
			t.Errorf("scope = %+v, %v", scope, err)
		}
		addresses, err := s.Addresses(web)
		if want := map[int]netip.Addr{0: netip.MustParseAddr("10.87.0.10"), 1: netip.MustParseAddr("10.87.0.11")}; err != nil || !reflect.DeepEqual(addresses, want) {
			t.Errorf("addresses = %v, %v", addresses, err)
		}
		if events, last, err := s.Events(); err != nil || last != 1 || len(events) != 1 || events[0].Reason != "Revision" {
			t.Errorf("events = %v, %d, %v", events, last, err)
		}
		if err := s.db.View(func(tx *bolt.Tx) error {
			for _, b := range [][]byte{tx.Bucket(bucketSets).Get([]byte("default/web")), tx.Bucket(bucketSources).Get([]byte("default/web"))} {
				if len(b) == 0 || b[0] != sealVersion {
					t.Errorf("it begins with %q: it is not sealed", b[:1])
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		s.Close()
	}
}

func TestAnUpgradeThatCannotMakeItsKeyLeavesTheFileAlone(t *testing.T) {
	dir := schema1(t)
	before := checksum(t, dir)
	if err := os.Mkdir(filepath.Join(dir, KeyFileName), 0o700); err != nil {
		t.Fatal(err)
	}
	if s, err := Open(dir, Options{NoSync: true}); err == nil {
		s.Close()
		t.Fatal("open succeeded")
	}
	if checksum(t, dir) != before {
		t.Error("the state file was written")
	}
}
