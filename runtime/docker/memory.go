package docker

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/stsd/stsd/runtime"
)

// memory finds a folder in memory for files that must never reach a disk. Its
// lock is held from the look for the folder until the files are in it, so that a
// tmpfs of ours is not taken away in between.
type memory struct {
	mu  sync.Mutex
	run string // RunDir
	shm string // where a user may have a folder in memory without being root
}

// folders are those in memory in which files of a pod may be beside RunDir/pods.
func (m *memory) folders() []string {
	if !oursAlone(m.shared()) {
		return []string{m.own()}
	}
	return []string{m.own(), m.shared()}
}

func (m *memory) own() string { return filepath.Join(m.run, "memory") }

func (m *memory) shared() string {
	return filepath.Join(m.shm, "stsd-"+strconv.Itoa(os.Geteuid()))
}

// find is a folder in memory. With runs, programs in it can be started.
func (m *memory) find(runs bool) (string, error) {
	var errs []error
	for _, try := range []func() (string, error){m.runDir, m.mounted, m.ofUser} {
		dir, err := try()
		if err == nil {
			err = fits(dir, runs)
		}
		if err == nil {
			return dir, nil
		}
		errs = append(errs, err)
	}
	return "", problem(runtime.ReasonNoMemoryFolder, errors.Join(errs...), "no folder in memory for sensitive files")
}

func (m *memory) runDir() (string, error) {
	dir := filepath.Join(m.run, "pods")
	return dir, os.MkdirAll(dir, 0o755)
}

// mounted is a tmpfs of our own in the run folder. Nothing is hidden by it: the
// folder must be empty.
func (m *memory) mounted() (string, error) {
	dir := m.own()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	if fits(dir, false) == nil {
		return dir, nil
	}
	list, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	if len(list) > 0 {
		return "", fmt.Errorf("%s is in use: no tmpfs is mounted over it", dir)
	}
	return dir, mountMemory(dir)
}

// ofUser is a folder under /dev/shm, where anybody could have made one before us.
func (m *memory) ofUser() (string, error) {
	dir := m.shared()
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	if !oursAlone(dir) {
		return "", fmt.Errorf("%s is not ours alone", dir)
	}
	return dir, nil
}

// oursAlone tells whether it is a folder, no link, into which nobody else may write.
func oursAlone(dir string) bool {
	stat, err := os.Lstat(dir)
	return err == nil && stat.IsDir() && stat.Mode().Perm() == 0o700 && isOurs(stat)
}

// fits tells whether a folder is in memory, and whether programs in it can be
// started.
func fits(dir string, runs bool) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	inMemory, noexec, err := fileSystemOf(f)
	switch {
	case err != nil:
		return fmt.Errorf("look at the file system of %s: %w", dir, err)
	case !inMemory:
		return fmt.Errorf("%s is not in memory", dir)
	case runs && noexec:
		return fmt.Errorf("%s is mounted noexec", dir)
	}
	return nil
}

// sweep removes what a pod had in memory, and the tmpfs of ours with the last one.
func (m *memory) sweep(key podKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, dir := range m.folders() {
		removeFolder(filepath.Join(dir, key.namespace, key.pod))
	}
	m.tidy()
}

// tidy takes away what a pod's folders were in, where nothing is left there.
func (m *memory) tidy() {
	_ = os.Remove(m.shared())
	if left, err := os.ReadDir(m.own()); err == nil && len(left) == 0 {
		unmountMemory(m.own())
		_ = os.Remove(m.own())
	}
}
