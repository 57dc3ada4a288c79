package docker

import (
	"os"
	"syscall"
)

// Magic numbers of file systems in memory, and a flag (statfs(2)).
const (
	magicTmpfs = 0x01021994
	magicRamfs = 0x858458f6
	flagNoexec = 0x8
)

// fileSystemOf tells what an open file lies on.
func fileSystemOf(f *os.File) (inMemory, noexec bool, err error) {
	var s syscall.Statfs_t
	if err := syscall.Fstatfs(int(f.Fd()), &s); err != nil {
		return false, false, err
	}
	magic := uint32(s.Type)
	return magic == magicTmpfs || magic == magicRamfs, s.Flags&flagNoexec != 0, nil
}

// mountMemory is for root alone; programs may be started from files that are bound
// from it.
func mountMemory(dir string) error {
	if err := syscall.Mount("stsd", dir, "tmpfs", syscall.MS_NOSUID|syscall.MS_NODEV, "mode=0700"); err != nil {
		return &os.PathError{Op: "mount tmpfs", Path: dir, Err: err}
	}
	return nil
}

func unmountMemory(dir string) { _ = syscall.Unmount(dir, 0) }

func isOurs(stat os.FileInfo) bool {
	s, ok := stat.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == os.Geteuid()
}
