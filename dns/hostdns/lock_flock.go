//go:build linux || darwin

package hostdns

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// locked does f while nobody else of us writes blocks in that file's folder: a
// daemon that keeps its block must not write back what "uninstall" just took out.
// It is the folder that is locked, since the file is replaced, and since a file for
// the lock would be left behind.
func locked(name string, f func() error) error {
	folder, err := os.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	defer folder.Close() // and so the lock is gone
	if err := syscall.Flock(int(folder.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", folder.Name(), err)
	}
	return f()
}
