//go:build !linux

package docker

import (
	"errors"
	"io/fs"
)

// mountpoint is a file system that is mounted somewhere.
type mountpoint struct {
	kind  string
	whole bool
}

func (mountpoint) distant() bool { return true }

// mounts fails: only Linux has volumes on the machine where it runs.
func mounts() (map[string]mountpoint, error) {
	return nil, errors.New("volumes are measured on Linux only")
}

func usedOn(string) (int64, error) { return 0, errors.ErrUnsupported }

func taken(info fs.FileInfo, _ map[uint64]bool) int64 { return info.Size() }
