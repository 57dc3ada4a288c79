package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"github.com/stsd/stsd/jobspecs"
)

// always are folders that every container has before its image: Docker's own
// mounts live there. Others are asked for.
var always = map[string]bool{"/": true, "/etc": true, "/dev": true, "/proc": true, "/sys": true}

// bindFiles writes the files that lie inside a volume's mount under folder, to be
// bound over it, read-only: put into the container they would end in the volume.
// The rest is returned.
func bindFiles(c *jobspecs.Container, folder, user string) (bound []mount.Mount, rest []jobspecs.File, err error) {
	for _, f := range c.Files {
		if !insideMount(f.Path, c.Mounts) {
			rest = append(rest, f)
			continue
		}
		source, err := writeBound(filepath.Join(folder, "files"), c.Name, f, user)
		if err != nil {
			return nil, nil, fmt.Errorf("write file %s: %w", f.Path, err)
		}
		bound = append(bound, mount.Mount{Type: mount.TypeBind, Source: source, Target: path.Clean(f.Path), ReadOnly: true})
	}
	return bound, rest, nil
}

func insideMount(file string, mounts []jobspecs.Mount) bool {
	return slices.ContainsFunc(mounts, func(m jobspecs.Mount) bool {
		dir := path.Clean(m.Path)
		return dir == "/" || strings.HasPrefix(path.Clean(file), dir+"/")
	})
}

// writeBound makes a new file each time: a container that still runs keeps the
// one it was started with.
func writeBound(dir, owner string, f jobspecs.File, user string) (name string, err error) {
	uid, gid, err := ownerOf(f, user)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(path.Clean(f.Path)))
	name = filepath.Join(dir, owner+"_"+hex.EncodeToString(sum[:8]))
	fresh := name + ".new"
	err = errors.Join(
		os.WriteFile(fresh, f.Content, 0o600),
		os.Chown(fresh, uid, gid),
		os.Chmod(fresh, fileMode(f.Mode)),
	)
	if err != nil {
		return "", errors.Join(err, os.Remove(fresh))
	}
	return name, os.Rename(fresh, name)
}

// fileMode is a Unix mode in Go's bits.
func fileMode(mode uint32) fs.FileMode {
	m := fs.FileMode(mode & 0o777)
	for bit, of := range map[uint32]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if mode&bit != 0 {
			m |= of
		}
	}
	return m
}

// putFiles copies all files into a created container in one archive.
func (h *Host) putFiles(ctx context.Context, id string, files []jobspecs.File, user string) error {
	if len(files) == 0 {
		return nil
	}
	missing, err := h.missingFolders(ctx, id, files)
	if err != nil {
		return err
	}
	archive, err := tarFiles(files, missing, user)
	if err != nil {
		return err
	}
	err = h.cli().CopyToContainer(ctx, id, "/", bytes.NewReader(archive), container.CopyToContainerOptions{})
	if err != nil {
		return fmt.Errorf("copy files into the container: %w", engineError(err))
	}
	return nil
}

// missingFolders are the parents that are not there, outermost first. One that is
// there must not be in the archive: that would set its mode and owner.
func (h *Host) missingFolders(ctx context.Context, id string, files []jobspecs.File) ([]string, error) {
	there := map[string]bool{}
	missing := map[string]bool{}
	for _, f := range files {
		for dir := path.Dir(path.Clean(f.Path)); !always[dir] && !there[dir] && !missing[dir]; dir = path.Dir(dir) {
			_, err := h.cli().ContainerStatPath(ctx, id, dir)
			if err == nil {
				there[dir] = true
				break
			}
			if !isNotFound(err) {
				return nil, fmt.Errorf("look for folder %s: %w", dir, engineError(err))
			}
			missing[dir] = true
		}
	}
	list := make([]string, 0, len(missing))
	for dir := range missing {
		list = append(list, dir)
	}
	slices.Sort(list)
	return list, nil
}

// tarFiles packs the missing folders, then the files. user is the container's.
func tarFiles(files []jobspecs.File, folders []string, user string) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, dir := range folders {
		h := &tar.Header{Typeflag: tar.TypeDir, Name: strings.TrimPrefix(dir, "/") + "/", Mode: 0o755, ModTime: time.Unix(0, 0)}
		if err := w.WriteHeader(h); err != nil {
			return nil, fmt.Errorf("pack folder %s: %w", dir, err)
		}
	}
	for _, f := range files {
		if err := tarFile(w, f, user); err != nil {
			return nil, fmt.Errorf("pack file %s: %w", f.Path, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("pack files: %w", err)
	}
	return b.Bytes(), nil
}

func tarFile(w *tar.Writer, f jobspecs.File, user string) error {
	uid, gid, err := ownerOf(f, user)
	if err != nil {
		return err
	}
	h := &tar.Header{
		Typeflag: tar.TypeReg,
		Name:     strings.TrimPrefix(path.Clean(f.Path), "/"),
		Mode:     int64(f.Mode & 0o7777),
		Uid:      uid,
		Gid:      gid,
		Size:     int64(len(f.Content)),
		ModTime:  time.Unix(0, 0), // the same file each time
	}
	if err := w.WriteHeader(h); err != nil {
		return err
	}
	_, err = w.Write(f.Content)
	return err
}

// ownerOf is the file's owner, else the container's user where that is a number,
// else root.
func ownerOf(f jobspecs.File, user string) (uid, gid int, err error) {
	if f.Owner != "" {
		uid, gid, ok := numericUser(f.Owner)
		if !ok {
			return 0, 0, fmt.Errorf("owner %q: want numbers, UID or UID:GID", f.Owner)
		}
		return uid, gid, nil
	}
	uid, gid, ok := numericUser(user)
	if !ok {
		return 0, 0, nil
	}
	return uid, gid, nil
}

// numericUser reads "UID" (group 0, as the engine does) or "UID:GID".
func numericUser(s string) (uid, gid int, ok bool) {
	u, g, both := strings.Cut(s, ":")
	uid, err := strconv.Atoi(u)
	if err != nil || uid < 0 {
		return 0, 0, false
	}
	if !both {
		return uid, 0, true
	}
	gid, err = strconv.Atoi(g)
	return uid, gid, err == nil && gid >= 0
}
