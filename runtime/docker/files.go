package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/runtime/pods"
)

// always are folders that every container has before its image: Docker's own
// mounts live there. Others are asked for.
var always = map[string]bool{"/": true, "/etc": true, "/dev": true, "/proc": true, "/sys": true}

// placement is how a container's files come into it.
type placement struct {
	bound []mount.Mount   // read-only, one by one, from files of ours
	put   []jobspecs.File // copied into the created container
}

// placeFiles binds what cannot be copied: sensitive files, since a copy lands on a
// disk; those of a container whose root is read-only; and those inside a mount,
// where a copy would end in the volume, or be hidden by what is mounted there. An
// engine that does not see our files gets copies wherever that comes to the same.
func (h *Host) placeFiles(spec *pods.ContainerSpec, user identity, seen bool) (p placement, err error) {
	for _, f := range spec.Main.Files {
		if isCopied(&spec.Main, f) {
			p.put = append(p.put, f)
			continue
		}
		uid, gid, err := ownerOf(f, user)
		if err != nil {
			return p, fmt.Errorf("write file %s: %w", f.Path, err)
		}
		if why := unbindable(f, identity{uid, gid}, identity{os.Geteuid(), os.Getegid()}, seen); why != "" {
			if err := copyable(spec, f, why); err != nil {
				return p, err
			}
			p.put = append(p.put, f)
			continue
		}
		source, err := h.bindable(spec, f, uid, gid)
		if err != nil {
			return p, known(runtime.ReasonCreateFailed, err, "write file %s", f.Path)
		}
		p.bound = append(p.bound, mount.Mount{Type: mount.TypeBind, Source: source, Target: path.Clean(f.Path), ReadOnly: true})
	}
	return p, nil
}

// isCopied tells whether a file is copied into its container as a matter of course.
func isCopied(c *jobspecs.Container, f jobspecs.File) bool {
	return !f.Sensitive && !c.ReadOnlyRoot && !insideMount(f.Path, c.Mounts)
}

// unbindable tells why a file cannot be bound; "" when it can. A file that anybody
// may read, and whose owner nobody asked for, can stay ours.
func unbindable(f jobspecs.File, owner, self identity, seen bool) string {
	switch {
	case !seen:
		return "the engine does not see the files of this machine"
	case self.uid != 0 && owner != self && (f.Owner != "" || f.Mode&0o004 == 0):
		return "only root may give a file to its owner"
	}
	return ""
}

// copyable tells whether a file that cannot be bound may be copied instead.
func copyable(spec *pods.ContainerSpec, f jobspecs.File, why string) error {
	switch {
	case f.Sensitive:
		return problem(runtime.ReasonNoMemoryFolder, nil, "file %s is sensitive and cannot be mounted from memory: %s", f.Path, why)
	case spec.Main.ReadOnlyRoot:
		return problem(runtime.ReasonCreateFailed, nil, "file %s cannot be put into a container with read_only_root: %s", f.Path, why)
	case hiddenByMemory(spec, f.Path):
		return problem(runtime.ReasonCreateFailed, nil, "file %s cannot be put into a scratch folder in memory: %s", f.Path, why)
	}
	return nil
}

func hiddenByMemory(spec *pods.ContainerSpec, file string) bool {
	var memory []jobspecs.Mount
	for _, m := range spec.Main.Mounts {
		if m.Kind == jobspecs.MountScratch && inMemory(&spec.Pod, m.Claim) {
			memory = append(memory, m)
		}
	}
	return insideMount(file, memory)
}

// bindable writes a file where it can be bound from, and returns its path.
func (h *Host) bindable(spec *pods.ContainerSpec, f jobspecs.File, uid, gid int) (string, error) {
	runs := f.Mode&0o111 != 0
	base := h.resolvers.dir
	if f.Sensitive || runs && fits(base, true) != nil {
		h.resolvers.memory.mu.Lock()
		defer h.resolvers.memory.mu.Unlock()
		dir, err := h.resolvers.memory.find(runs)
		if err != nil && f.Sensitive {
			return "", err
		}
		if err == nil {
			base = dir
		}
	}
	dir := filepath.Join(base, spec.Pod.Set.Namespace, spec.Pod.Name)
	if err := markOwner(dir, h.cfg.Daemon); err != nil {
		return "", err
	}
	return writeBound(filepath.Join(dir, "files"), spec.Main.Name, f, uid, gid)
}

func insideMount(file string, mounts []jobspecs.Mount) bool {
	return slices.ContainsFunc(mounts, func(m jobspecs.Mount) bool {
		dir := path.Clean(m.Path)
		return dir == "/" || strings.HasPrefix(path.Clean(file), dir+"/")
	})
}

// writeBound makes a new file each time: a container that still runs keeps the
// one it was started with. Nobody but root and the containers reads it, whatever
// its mode.
func writeBound(dir, owner string, f jobspecs.File, uid, gid int) (name string, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return "", err
	}
	name = filepath.Join(dir, owner+"_"+sum([]byte(path.Clean(f.Path)))[:16])
	fresh := name + ".new"
	if err := writeFile(fresh, f, uid, gid); err != nil {
		return "", errors.Join(err, os.Remove(fresh))
	}
	return name, os.Rename(fresh, name)
}

// writeFile writes sensitive content only into what is open in memory: a folder
// that was looked at before may be another one now.
func writeFile(name string, f jobspecs.File, uid, gid int) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	if f.Sensitive {
		if inMemory, _, err := fileSystemOf(file); err != nil || !inMemory {
			return errors.Join(err, fmt.Errorf("%s is not in memory", name))
		}
	}
	if _, err := file.Write(f.Content); err != nil {
		return err
	}
	return errors.Join(chown(file, uid, gid), file.Chmod(fileMode(f.Mode)))
}

// chown leaves alone what is right already: who is not root may not ask.
func chown(f *os.File, uid, gid int) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return f.Chown(uid, gid)
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
func (h *Host) putFiles(ctx context.Context, id string, files []jobspecs.File, user identity) error {
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

// tarFiles packs the missing folders, then the files. user is whom the container
// runs as.
func tarFiles(files []jobspecs.File, folders []string, user identity) ([]byte, error) {
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

func tarFile(w *tar.Writer, f jobspecs.File, user identity) error {
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

// ownerOf is the file's owner, else the container's user.
func ownerOf(f jobspecs.File, user identity) (uid, gid int, err error) {
	if f.Owner == "" {
		return user.uid, user.gid, nil
	}
	owner, ok := numbersOf(f.Owner)
	if !ok {
		return 0, 0, fmt.Errorf("owner %q: want numbers, UID or UID:GID", f.Owner)
	}
	return owner.uid, owner.gid, nil
}
