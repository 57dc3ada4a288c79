package hostdns

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Before is a file as it was.
type Before struct {
	Text []byte `json:"text"`
	Mode uint32 `json:"mode"` // permission bits
	UID  int    `json:"uid"`
	GID  int    `json:"gid"`
}

// before reads a file; nil: there is none. What is no plain file is an error: it
// could not be given back.
func before(name string) (*Before, error) {
	fi, err := os.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is %s: it is not touched", name, kindOf(fi))
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	b := &Before{Text: text, Mode: uint32(fi.Mode().Perm())}
	b.UID, b.GID = owner(fi)
	return b, nil
}

// overwrite gives an existing file another text, and leaves mode and owner.
func overwrite(name string, text []byte) error {
	b, err := before(name)
	if err != nil {
		return err
	}
	if b == nil {
		return fmt.Errorf("write %s: %w", name, fs.ErrNotExist)
	}
	b.Text = text
	return put(name, *b)
}

// put makes a file what b says, at once: readers see the old text or the new one.
// Only where the file is mounted, as it is in containers, it is written in place.
func put(name string, b Before) error {
	temp := tempName(name)
	if err := writeNew(temp, b, name); err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", name, err), gone(temp))
	}
	err := os.Rename(temp, name)
	if err == nil {
		return syncFolder(filepath.Dir(name))
	}
	if gone := gone(temp); gone != nil || !mounted(err) {
		return errors.Join(fmt.Errorf("write %s: %w", name, err), gone)
	}
	return writeInPlace(name, b.Text)
}

// tempName is one that resolvers do not read, and always the same, so that what a
// crash left behind goes with the next write.
func tempName(name string) string {
	return filepath.Join(filepath.Dir(name), "."+filepath.Base(name)+".stsd-new")
}

// writeNew writes a file that bears what the old one has beside its text.
func writeNew(name string, b Before, old string) error {
	if err := gone(name); err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b.Text)
	return errors.Join(err, setOwner(f, b), f.Chmod(fs.FileMode(b.Mode)), keepLabel(name, old), f.Sync(), f.Close())
}

// setOwner does nothing where the owner is right, so that a user may write files of
// his own.
func setOwner(f *os.File, b Before) error {
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	if uid, gid := owner(fi); uid == b.UID && gid == b.GID {
		return nil
	}
	return f.Chown(b.UID, b.GID)
}

func writeInPlace(name string, text []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Truncate(int64(len(text)))
	}
	return errors.Join(err, f.Sync(), f.Close())
}

// gone removes a file; one that is not there is as good.
func gone(name string) error {
	if err := os.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func syncFolder(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// makeFolders makes a folder and those above it, and returns what it made, the
// outermost first.
func makeFolders(name string) ([]string, error) {
	var missing []string
	for at := name; ; at = filepath.Dir(at) {
		fi, err := os.Stat(at)
		if err == nil && !fi.IsDir() {
			return nil, fmt.Errorf("%s is no folder", at)
		}
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		missing = append([]string{at}, missing...)
	}
	for _, folder := range missing {
		if err := os.Mkdir(folder, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	return missing, nil
}
