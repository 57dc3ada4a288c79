//go:build unix

package hostdns

import (
	"errors"
	"io/fs"
	"syscall"
)

// owner of a file.
func owner(fi fs.FileInfo) (uid, gid int) {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return -1, -1
	}
	return int(st.Uid), int(st.Gid)
}

// mounted tells whether a rename failed because something is mounted at the path.
func mounted(err error) bool { return errors.Is(err, syscall.EBUSY) || errors.Is(err, syscall.EXDEV) }
