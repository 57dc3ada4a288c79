package docker

import (
	"context"
	"errors"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/runtime/pods"
)

// ensureFolders makes the folders of volumes that the container mounts by their
// sub_path, and returns where the volumes are on the engine's host, if it cannot
// mount a folder of a volume by itself: that began with Engine 26 (API 1.45).
func (h *Host) ensureFolders(ctx context.Context, spec *pods.ContainerSpec, around *surroundings) (folders map[string]string, err error) {
	names := partlyMounted(spec)
	if len(names) == 0 {
		return nil, nil
	}
	if folders, err = h.mountpoints(ctx, spec, names, around.subpaths); err != nil {
		return nil, err
	}
	if h.seesFolders(spec, folders) {
		return folders, nil
	}
	who, ok, err := h.identifyEarly(ctx, spec, around.image)
	if err != nil {
		return nil, err
	}
	to := ownership{group: spec.Main.FSGroup}
	if ok && who.uid != 0 {
		to.user = &who
	}
	return folders, h.within(ctx, spec, names, func(in *inside) error {
		for _, m := range spec.Main.Mounts {
			n := slices.Index(names, volumeName(spec, m))
			if m.SubPath == "" || n < 0 {
				continue
			}
			if err := in.ensureFolder(ctx, n, m.SubPath, to); err != nil {
				return err
			}
		}
		return nil
	})
}

// partlyMounted are the volumes of which the container mounts a folder.
func partlyMounted(spec *pods.ContainerSpec) []string {
	var names []string
	for _, m := range spec.Main.Mounts {
		name := volumeName(spec, m)
		if m.SubPath != "" && name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// mountpoints are where the engine has the volumes. A folder of one can be bound
// only where it lies on a disk of its host: what a driver mounts is there only
// while a container has the volume, as a sandbox has those in memory.
func (h *Host) mountpoints(ctx context.Context, spec *pods.ContainerSpec, names []string, subpaths bool) (map[string]string, error) {
	folders := map[string]string{}
	for _, name := range names {
		found, err := h.cli().VolumeInspect(ctx, name)
		if err != nil {
			return nil, known(runtime.ReasonCreateFailed, err, "inspect volume %s", name)
		}
		held := spec.Sandbox != "" && isScratch(found.Labels)
		if !subpaths && (found.Driver != localDriver || len(found.Options) > 0 && !held) {
			return nil, problem(runtime.ReasonCreateFailed, nil,
				"sub_path of volume %s: this engine can mount a folder only of a volume of driver local without options; Engine 26 can of any", name)
		}
		folders[name] = found.Mountpoint
	}
	return folders, nil
}

// seesFolders tells whether all folders are seen to be there: then no container
// has to be made to look. Where this process cannot see them, that says nothing.
func (h *Host) seesFolders(spec *pods.ContainerSpec, volumes map[string]string) bool {
	if h.remote || h.blind.Load() {
		return false
	}
	return !slices.ContainsFunc(spec.Main.Mounts, func(m jobspecs.Mount) bool {
		volume, ok := volumes[volumeName(spec, m)]
		return ok && m.SubPath != "" && !isFolder(volume, m.SubPath)
	})
}

// isFolder tells whether sub and all above it are folders, and none of them a link.
func isFolder(volume, sub string) bool {
	root, err := os.OpenRoot(volume)
	if err != nil {
		return false
	}
	defer root.Close()
	at := ""
	for part := range strings.SplitSeq(sub, "/") {
		at = path.Join(at, part)
		if stat, err := root.Lstat(at); err != nil || !stat.IsDir() {
			return false
		}
	}
	return true
}

// boundFolder is a folder of a volume that a container mounts by its path on the
// engine's host, since the engine is too old to mount it by itself.
type boundFolder struct {
	volume string // where the volume is
	sub    string // inside it
	path   string // in the container
}

// watchFolders notes what Start has to look at.
func (h *Host) watchFolders(id string, spec *pods.ContainerSpec, folders map[string]string) {
	var bound []boundFolder
	for _, m := range spec.Main.Mounts {
		if volume := folders[volumeName(spec, m)]; volume != "" && m.SubPath != "" {
			bound = append(bound, boundFolder{volume, innerPath(m.SubPath), m.Path})
		}
	}
	if bound != nil {
		h.folders.Store(id, bound)
	}
}

// checkFolders looks at what a container that was just started mounts for its
// sub_paths. Between our look at the folder and the engine's mount another
// container of the pod, which has the volume too, may have put a link in its
// place; then it is a folder of the host that was mounted, and the container is
// killed at once. What it does in the milliseconds before is not undone: only an
// engine that mounts folders by itself (26.0 or newer) closes that gap. It is
// looked at only where this process may, as root on the engine's machine, and not
// when it began anew between create and start.
func (h *Host) checkFolders(ctx context.Context, id string) error {
	noted, ok := h.folders.LoadAndDelete(id)
	if !ok || h.remote || h.blind.Load() || os.Geteuid() != 0 {
		return nil
	}
	c, err := h.cli().ContainerInspect(ctx, id)
	if err != nil || c.State.Pid == 0 {
		return nil // it ended; there is nothing to look at
	}
	for _, f := range noted.([]boundFolder) {
		if f.isMounted(c.State.Pid) {
			continue
		}
		swapped := problem(runtime.ReasonCreateFailed, nil,
			"sub_path %s: another folder was mounted at %s than that of the volume; was it replaced by a link?", f.sub, f.path)
		return errors.Join(swapped, h.kill(ctx, id))
	}
	return nil
}

// isMounted compares the folder in the volume with what the process has. A process
// that ended meanwhile is no contradiction.
func (f boundFolder) isMounted(pid int) bool {
	has, err := os.Stat(path.Join("/proc", strconv.Itoa(pid), "root", f.path))
	if err != nil {
		return true
	}
	root, err := os.OpenRoot(f.volume)
	if err != nil {
		return true
	}
	defer root.Close()
	want, err := root.Lstat(f.sub)
	return err == nil && os.SameFile(has, want)
}
