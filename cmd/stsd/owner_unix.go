//go:build unix

package main

import (
	"os"
	"syscall"
)

// ours tells whether this user made the file or folder: anybody may make
// folders in /tmp, and a socket there is believed what it says.
func ours(path string) bool {
	fi, err := os.Lstat(path)
	if err != nil {
		return false
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Getuid()
}
