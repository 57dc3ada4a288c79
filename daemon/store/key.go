package store

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// KeyFileName is the name of the key file in the data folder. Whoever has it and
// the state file reads every secret; without it the state file's sealed values
// are lost.
const KeyFileName = "secret.key"

// keyLength is that of AES-256, in bytes.
const keyLength = 32

// unlock reads the key file. The state file is not written: sealed is what it
// keeps to tell its key from others, nil in one that has none yet, for which a
// key is made where there is no key file.
func unlock(dir string, sealed []byte) (*sealer, error) {
	path := filepath.Join(dir, KeyFileName)
	key, err := readKey(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && sealed == nil:
		key, err = makeKey(path)
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w %s is missing, and the state file's values are sealed with it; put it back, or move the state file away and start again (the containers and volumes keep running)", ErrKey, path)
	}
	if err != nil {
		return nil, err
	}
	s, err := newSealer(key)
	if err != nil {
		return nil, fmt.Errorf("%w %s: %w", ErrKey, path, err)
	}
	if sealed == nil {
		return s, nil
	}
	if _, err := s.open(placeOfSeal, sealed); err != nil {
		return nil, fmt.Errorf("%w %s is not the one that the state file's values are sealed with; put the right one back", ErrKey, path)
	}
	return s, nil
}

// placeOfSeal is where the state file keeps what tells its key from others.
const placeOfSeal = "meta/seal"

func readKey(path string) ([]byte, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKey, err)
	}
	if !fi.Mode().IsRegular() {
		return nil, fmt.Errorf("%w %s is no regular file", ErrKey, path)
	}
	if others := fi.Mode().Perm() & 0o077; others != 0 {
		return nil, fmt.Errorf("%w %s may be read or written by others (mode %04o): chmod 600 %s", ErrKey, path, fi.Mode().Perm(), path)
	}
	key, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKey, err)
	}
	if len(key) != keyLength {
		return nil, fmt.Errorf("%w %s has %d bytes, not %d: it is damaged; put the right one back", ErrKey, path, len(key), keyLength)
	}
	return key, nil
}

// makeKey makes the key file; once it returns, a power cut does not lose it.
func makeKey(path string) ([]byte, error) {
	key := make([]byte, keyLength)
	rand.Read(key) // never fails (crypto/rand)
	half := path + ".new"
	if err := writeSynced(half, key); err != nil {
		return nil, fmt.Errorf("make %w: %w", ErrKey, err)
	}
	if err := os.Rename(half, path); err != nil {
		return nil, fmt.Errorf("make %w: %w", ErrKey, err)
	}
	if err := syncFolder(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("make %w: %w", ErrKey, err)
	}
	return key, nil
}

func writeSynced(path string, b []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Chmod(0o600) // one that was left behind may have had another mode
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
