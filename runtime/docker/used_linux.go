package docker

import (
	"bufio"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// mountpoint is a file system, or a folder of one, that is mounted somewhere.
type mountpoint struct {
	kind  string // "ext4"
	whole bool   // it is the file system's root
}

// distant tells whether another machine or a process answers for it, which may take
// for ever.
func (m mountpoint) distant() bool {
	switch kind, _, _ := strings.Cut(m.kind, "."); kind {
	case "nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "ceph", "fuse", "fuseblk", "glusterfs", "lustre", "afs", "virtiofs", "ncpfs", "ocfs2", "gfs2":
		return true
	}
	return false
}

// mounts are those that this process sees, by path.
func mounts() (map[string]mountpoint, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readMounts(f)
}

// readMounts reads mountinfo (proc(5)): "36 35 98:0 /root /path opts … - type source
// opts". The last of several at one path is the one that is seen.
func readMounts(r io.Reader) (map[string]mountpoint, error) {
	found := map[string]mountpoint{}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		before, after, ok := strings.Cut(lines.Text(), " - ")
		place, kind := strings.Fields(before), strings.Fields(after)
		if !ok || len(place) < 5 || len(kind) == 0 {
			return nil, fmt.Errorf("read mountinfo: line %q", lines.Text())
		}
		found[unescape.Replace(place[4])] = mountpoint{kind: kind[0], whole: place[3] == "/"}
	}
	return found, lines.Err()
}

var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// usedOn is what is in use of the file system that is mounted at dir.
func usedOn(dir string) (int64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	return int64(s.Blocks-s.Bfree) * int64(s.Frsize), nil
}

// taken is what a file takes on its disk; 0 where it was counted under another name.
func taken(info fs.FileInfo, counted map[uint64]bool) int64 {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return info.Size()
	}
	if !info.IsDir() && s.Nlink > 1 {
		if counted[s.Ino] {
			return 0
		}
		counted[s.Ino] = true
	}
	return s.Blocks * 512
}
