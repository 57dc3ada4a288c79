//go:build !unix

package hostdns

import "io/fs"

func owner(fs.FileInfo) (uid, gid int) { return -1, -1 }

func mounted(error) bool { return false }
