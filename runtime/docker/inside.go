package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/mount"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/runtime/pods"
)

// inside is a container that is made to reach into volumes and is never started:
// it mounts them whole, and files go in and out as archives. So no tool is needed
// in any image, and a folder of the engine's host is never touched from here.
type inside struct {
	host  *Host
	id    string
	names []string // of the volumes; number n is mounted at /volumes/n
}

// labelInside tells what such a container is, and who made it: it carries no other
// label, and is no member's.
const labelInside = "stsd.inside"

const insideRoot = "/volumes"

// within makes the container, lets do work with it, and removes it.
func (h *Host) within(ctx context.Context, spec *pods.ContainerSpec, names []string, do func(*inside) error) error {
	image, err := h.findSandboxImage(ctx)
	if err != nil {
		return err
	}
	in := &inside{host: h, names: names}
	var mounts []mount.Mount
	for n, name := range names {
		options := wholeVolume(spec, name, h.cfg.Daemon)
		options.NoCopy = true
		mounts = append(mounts, mount.Mount{Type: mount.TypeVolume, Source: name, Target: in.path(n, ""), VolumeOptions: options})
	}
	return h.reach(ctx, spec, image.ID, mounts, func(id string) error {
		in.id = id
		return do(in)
	})
}

// reach is a container that is never started.
func (h *Host) reach(ctx context.Context, spec *pods.ContainerSpec, image string, mounts []mount.Mount, do func(id string) error) (err error) {
	whole, cancel := context.WithTimeout(context.WithoutCancel(ctx), createTime)
	defer cancel()
	made, err := h.cli().ContainerCreate(whole, &container.Config{
		Image:      image,
		Entrypoint: []string{"/never"},
		Labels:     map[string]string{labelInside: h.cfg.Daemon + " " + h.instance},
	}, &container.HostConfig{
		NetworkMode: "none",
		LogConfig:   container.LogConfig{Type: "none"},
		Mounts:      mounts,
	}, nil, nil, "")
	if err == nil {
		defer func() { err = errors.Join(err, h.undo(ctx, made.ID)) }()
		err = do(made.ID)
	}
	if err != nil {
		return known(runtime.ReasonCreateFailed, err, "reach into the volumes and the image of %s", spec.Pod.Name)
	}
	return nil
}

// fill lets the engine copy the image's content into fresh volumes that the
// container mounts whole and by a sub_path: once a folder was made in them they
// are no longer empty, and it would not.
func (h *Host) fill(ctx context.Context, spec *pods.ContainerSpec, image string) error {
	var mounts []mount.Mount
	for _, m := range spec.Main.Mounts {
		parts := slices.ContainsFunc(spec.Main.Mounts, func(p jobspecs.Mount) bool { return isClaim(p) && p.Volume == m.Volume && p.SubPath != "" })
		if isClaim(m) && m.SubPath == "" && parts && slices.Contains(spec.Fresh, m.Volume) {
			mounts = append(mounts, mount.Mount{
				Type: mount.TypeVolume, Source: m.Volume, Target: m.Path, VolumeOptions: wholeVolume(spec, m.Volume, h.cfg.Daemon),
			})
		}
	}
	if len(mounts) == 0 {
		return nil
	}
	return h.reach(ctx, spec, image, mounts, func(string) error { return nil })
}

// sweepInside removes what another run of this daemon left when it was killed: it
// would keep its volumes in use.
func (h *Host) sweepInside(ctx context.Context) error {
	left, err := h.cli().ContainerList(ctx, container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("label", labelInside))})
	if err != nil {
		return fmt.Errorf("list containers: %w", engineError(err))
	}
	var errs []error
	for _, c := range left {
		daemon, instance, _ := strings.Cut(c.Labels[labelInside], " ")
		if daemon == h.cfg.Daemon && instance != h.instance {
			errs = append(errs, h.undo(ctx, c.ID))
		}
	}
	return errors.Join(errs...)
}

func (in *inside) path(volume int, sub string) string {
	return path.Join(insideRoot, strconv.Itoa(volume), innerPath(sub))
}

// put writes entries, whose names are relative to /volumes.
func (in *inside) put(ctx context.Context, archive io.Reader) error {
	err := in.host.cli().CopyToContainer(ctx, in.id, insideRoot, archive, container.CopyToContainerOptions{CopyUIDGID: false})
	if err != nil {
		return fmt.Errorf("write into volumes %s: %w", strings.Join(in.names, ", "), engineError(err))
	}
	return nil
}

// ensureFolder makes a folder of a volume, and those above it, where missing. What
// is there must be folders: no link is followed.
func (in *inside) ensureFolder(ctx context.Context, volume int, sub string, to ownership) error {
	var missing bytes.Buffer
	w := tar.NewWriter(&missing)
	at, there := "", true
	for part := range strings.SplitSeq(innerPath(sub), "/") {
		at = path.Join(at, part)
		stat, err := in.host.cli().ContainerStatPath(ctx, in.id, in.path(volume, at))
		switch {
		case err == nil && stat.Mode&fs.ModeSymlink != 0:
			return problem(runtime.ReasonCreateFailed, nil, "sub_path %s of volume %s: %s is a link, which is not followed", sub, in.names[volume], at)
		case err == nil && !stat.Mode.IsDir():
			return problem(runtime.ReasonCreateFailed, nil, "sub_path %s of volume %s: %s is not a folder", sub, in.names[volume], at)
		case err == nil:
			continue
		case !isNotFound(err):
			return fmt.Errorf("look at %s in volume %s: %w", at, in.names[volume], engineError(err))
		}
		there = false
		head := to.folder()
		head.Name = strings.TrimPrefix(in.path(volume, at), insideRoot+"/") + "/"
		if err := w.WriteHeader(head); err != nil {
			return fmt.Errorf("pack folder %s: %w", at, err)
		}
	}
	if err := w.Close(); err != nil {
		return fmt.Errorf("pack folder %s: %w", sub, err)
	}
	if there {
		return nil
	}
	return in.put(ctx, &missing)
}

// ownership is to whom a fresh volume is given.
type ownership struct {
	user  *identity // nil: root, or nobody knows
	group *int      // fs_group; nil: none
	open  bool      // a scratch folder: anybody may write into its root
}

// folder is the head of a folder that is made for this owner.
func (o ownership) folder() *tar.Header {
	h := &tar.Header{Typeflag: tar.TypeDir, Mode: 0o755, ModTime: time.Now().Truncate(time.Second)}
	o.adapt(h, true)
	return h
}

// adapt gives one entry of a volume to the owner, and tells whether it changed.
// root is the volume's own folder: the only one whose user changes, and only from
// root.
func (o ownership) adapt(h *tar.Header, root bool) (changed bool) {
	before := [3]int64{int64(h.Uid), int64(h.Gid), h.Mode}
	if root && o.user != nil && h.Uid == 0 && h.Gid == 0 {
		h.Uid = o.user.uid
		h.Gid = max(0, o.user.gid)
	}
	if o.group != nil {
		h.Gid = *o.group
		switch h.Typeflag {
		case tar.TypeDir:
			h.Mode |= 0o2070
		case tar.TypeReg:
			h.Mode |= 0o060
		}
	}
	if root && o.open {
		h.Mode = int64(openMode(o.group))
	}
	h.Uname, h.Gname = "", ""
	return before != [3]int64{int64(h.Uid), int64(h.Gid), h.Mode}
}

// give makes a volume the owner's. Without a group only its own folder changes;
// with one, everything in it.
func (in *inside) give(ctx context.Context, volume int, to ownership) error {
	stream, _, err := in.host.cli().CopyFromContainer(ctx, in.id, in.path(volume, ""))
	if err != nil {
		return fmt.Errorf("read volume %s: %w", in.names[volume], engineError(err))
	}
	defer stream.Close()
	// The engine holds the container while it is read: nothing can be written until
	// the stream was closed.
	changes, err := os.CreateTemp("", "stsd-volume-")
	if err != nil {
		return fmt.Errorf("read volume %s: %w", in.names[volume], err)
	}
	defer os.Remove(changes.Name())
	defer changes.Close()
	any, err := rewrite(changes, stream, to)
	if err != nil {
		return fmt.Errorf("read volume %s: %w", in.names[volume], engineError(err))
	}
	stream.Close()
	if !any {
		return nil
	}
	if _, err := changes.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("read volume %s: %w", in.names[volume], err)
	}
	return in.put(ctx, changes)
}

// rewrite copies those entries of an archive that the owner changes. The first one
// is the volume's own folder, and without a group the only one.
func rewrite(to io.Writer, from io.Reader, owner ownership) (any bool, err error) {
	r, w := tar.NewReader(from), tar.NewWriter(to)
	for root := true; root || owner.group != nil; root = false {
		head, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return false, err
		}
		// A link is a name of a file that is written anew: it must be, too.
		if !owner.adapt(head, root) && head.Typeflag != tar.TypeLink {
			continue
		}
		any = true
		if err := w.WriteHeader(head); err != nil {
			return false, err
		}
		if _, err := io.Copy(w, r); err != nil {
			return false, err
		}
	}
	return any, w.Close()
}
