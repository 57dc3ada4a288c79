package docker

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/docker/docker/api/types/mount"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/runtime/pods"
)

// mountsOf are the container's mounts, but for those of tmpfsOf.
func mountsOf(spec pods.ContainerSpec, s surroundings) []mount.Mount {
	var mounts []mount.Mount
	for _, m := range spec.Main.Mounts {
		switch {
		case m.Kind == jobspecs.MountBind:
			mounts = append(mounts, mount.Mount{Type: mount.TypeBind, Source: path.Join(m.Source, m.SubPath), Target: m.Path, ReadOnly: m.ReadOnly})
		case inTmpfs(&spec, m):
		default:
			mounts = append(mounts, volumeMount(&spec, m, s))
		}
	}
	return mounts
}

// volumeMount mounts a claim's volume or that of a scratch folder, whole or a
// folder of it.
func volumeMount(spec *pods.ContainerSpec, m jobspecs.Mount, s surroundings) mount.Mount {
	name := volumeName(spec, m)
	if folder := s.folders[name]; m.SubPath != "" && !s.subpaths {
		return mount.Mount{Type: mount.TypeBind, Source: path.Join(folder, innerPath(m.SubPath)), Target: m.Path, ReadOnly: m.ReadOnly}
	}
	options := wholeVolume(spec, name, s.daemon)
	options.NoCopy = m.Kind == jobspecs.MountScratch
	options.Subpath = innerPath(m.SubPath)
	return mount.Mount{Type: mount.TypeVolume, Source: name, Target: m.Path, ReadOnly: m.ReadOnly, VolumeOptions: options}
}

// innerPath is a sub_path that does not lead out of its volume; "" for the whole.
func innerPath(sub string) string { return strings.TrimPrefix(path.Join("/", sub), "/") }

// cleanMounts has sub_paths that lead somewhere inside, or none.
func cleanMounts(mounts []jobspecs.Mount) []jobspecs.Mount {
	clean := slices.Clone(mounts)
	for i := range clean {
		clean[i].SubPath = innerPath(clean[i].SubPath)
	}
	return clean
}

// wholeVolume carries a mark along: should the volume be gone at this very moment,
// the engine makes one by itself, which is known by it and is none of ours.
func wholeVolume(spec *pods.ContainerSpec, name, daemon string) *mount.VolumeOptions {
	return &mount.VolumeOptions{
		Labels:       map[string]string{jobspecs.LabelUnasked: daemon},
		DriverConfig: driverOf(spec, name),
	}
}

// driverOf is the driver that a mount names: none for a claim's volume, which is
// there and keeps its own, whatever the claim says by now.
func driverOf(spec *pods.ContainerSpec, name string) *mount.Driver {
	for _, s := range spec.Pod.Scratch {
		if s.Volume == name {
			return &mount.Driver{Name: localDriver, Options: scratchOptions(s, groupOf(&spec.Pod))}
		}
	}
	return nil
}

// volumeName is the volume that a mount needs at the engine; "" for a path of the
// host and for a folder in memory that is the container's own.
func volumeName(spec *pods.ContainerSpec, m jobspecs.Mount) string {
	switch {
	case m.Kind == jobspecs.MountBind, inTmpfs(spec, m):
		return ""
	case m.Kind == jobspecs.MountScratch:
		if s := scratchOf(&spec.Pod, m.Claim); s != nil {
			return s.Volume
		}
		return ""
	}
	return m.Volume
}

func isClaim(m jobspecs.Mount) bool {
	return m.Kind != jobspecs.MountScratch && m.Kind != jobspecs.MountBind
}

func scratchOf(pod *jobspecs.PodSpec, name string) *jobspecs.Scratch {
	i := slices.IndexFunc(pod.Scratch, func(s jobspecs.Scratch) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return &pod.Scratch[i]
}

// inTmpfs tells whether a mount is a folder in memory of this container alone:
// nobody is there to share it with, and it is mounted once. Otherwise it is a
// volume, which lives in memory while a container that mounts it runs.
func inTmpfs(spec *pods.ContainerSpec, m jobspecs.Mount) bool {
	return m.Kind == jobspecs.MountScratch && !shared(spec) && inMemory(&spec.Pod, m.Claim) && timesMounted(&spec.Main, m.Claim) == 1
}

func inMemory(pod *jobspecs.PodSpec, scratch string) bool {
	s := scratchOf(pod, scratch)
	return s != nil && s.Medium == jobspecs.MediumMemory
}

func timesMounted(c *jobspecs.Container, scratch string) int {
	n := 0
	for _, m := range c.Mounts {
		if m.Kind == jobspecs.MountScratch && m.Claim == scratch {
			n++
		}
	}
	return n
}

// tmpfsOf are the folders in memory of this container alone, with their options.
// A sub_path of one that begins empty is itself.
func tmpfsOf(spec *pods.ContainerSpec) map[string]string {
	var m map[string]string
	for _, at := range spec.Main.Mounts {
		if !inTmpfs(spec, at) {
			continue
		}
		if m == nil {
			m = map[string]string{}
		}
		options := "exec," + memoryOptions(*scratchOf(&spec.Pod, at.Claim), groupOf(&spec.Pod))
		if at.ReadOnly {
			options += ",ro"
		}
		m[at.Path] = options
	}
	return m
}

// openMode is the mode of every scratch folder: any user may write into it, and
// nobody may remove what another one wrote. With a group, new files are the
// group's.
func openMode(group *int) uint32 {
	if group != nil {
		return 0o3777
	}
	return 0o1777
}

// memoryOptions are those of a tmpfs mount.
func memoryOptions(s jobspecs.Scratch, group *int) string {
	options := "mode=" + strconv.FormatUint(uint64(openMode(group)), 8)
	if s.Size > 0 {
		options = "size=" + strconv.FormatInt(s.Size, 10) + "," + options
	}
	if group != nil {
		options += ",gid=" + strconv.Itoa(*group)
	}
	return options
}

// scratchOptions are those of the volume of a scratch folder; driver "local" has
// no limit on disk.
func scratchOptions(s jobspecs.Scratch, group *int) map[string]string {
	if s.Medium != jobspecs.MediumMemory {
		return nil
	}
	return map[string]string{"type": "tmpfs", "device": "tmpfs", "o": memoryOptions(s, group)}
}

// groupOf is the fs_group of the pod's first container that has one: a scratch
// folder is made once for all of them.
func groupOf(pod *jobspecs.PodSpec) *int {
	for i := range pod.Containers {
		if pod.Containers[i].FSGroup != nil {
			return pod.Containers[i].FSGroup
		}
	}
	return nil
}

// checkMounts finds what the engine could not be asked for.
func checkMounts(spec *pods.ContainerSpec) error {
	for _, m := range spec.Main.Mounts {
		if m.Kind != jobspecs.MountScratch {
			continue
		}
		if scratchOf(&spec.Pod, m.Claim) == nil {
			return problem(runtime.ReasonCreateFailed, nil, "mount %s: the pod has no scratch %s", m.Path, m.Claim)
		}
		if m.SubPath != "" && !shared(spec) && inMemory(&spec.Pod, m.Claim) && timesMounted(&spec.Main, m.Claim) > 1 {
			return problem(runtime.ReasonCreateFailed, nil,
				"mount %s: a sub_path of scratch %s, which is in memory and mounted more than once, needs a pod of several containers", m.Path, m.Claim)
		}
	}
	return nil
}
