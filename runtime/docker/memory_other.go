//go:build !linux

package docker

import (
	"errors"
	"os"
)

// errNoMemory says that only Linux can tell what lies in memory.
var errNoMemory = errors.New("files in memory need Linux")

func fileSystemOf(*os.File) (inMemory, noexec bool, err error) { return false, false, errNoMemory }

func mountMemory(string) error { return errNoMemory }

func unmountMemory(string) {}

func isOurs(os.FileInfo) bool { return false }
