package sim

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/runtime/pods"
)

// mounts are the volumes that a new container has; w.mu is held.
func (w *World) mounts(spec *pods.ContainerSpec) (names []string, err error) {
	for _, m := range spec.Main.Mounts {
		name, err := w.mount(spec, m)
		if err != nil {
			return nil, err
		}
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if spec.Main.Kind == jobspecs.KindSandbox { // it keeps what is in memory alive
		for _, s := range spec.Pod.Scratch {
			if s.Medium != jobspecs.MediumMemory {
				continue
			}
			if err := w.makeScratch(spec, s); err != nil {
				return nil, err
			}
			names = append(names, s.Volume)
		}
	}
	for _, name := range spec.Fresh {
		if d := w.volumes[name]; d != nil && slices.Contains(names, name) {
			d.Prepared = append(d.Prepared, spec.Name)
		}
	}
	return names, nil
}

// mount is the volume that a mount stands for, "" where there is none.
func (w *World) mount(spec *pods.ContainerSpec, m jobspecs.Mount) (name string, err error) {
	switch m.Kind {
	case jobspecs.MountBind:
		return "", nil
	case jobspecs.MountScratch:
		return w.mountScratch(spec, m)
	}
	if w.volumes[m.Volume] == nil {
		return "", problem(runtime.ReasonCreateFailed, "volume %s is gone", m.Volume)
	}
	return m.Volume, w.mine(m.Volume)
}

func (w *World) mine(volume string) error {
	if err := w.owned(w.volumes[volume]); err != nil {
		return problem(runtime.ReasonVolumeForeign, "%s", err)
	}
	return nil
}

func (w *World) mountScratch(spec *pods.ContainerSpec, m jobspecs.Mount) (name string, err error) {
	for _, s := range spec.Pod.Scratch {
		if s.Name != m.Claim {
			continue
		}
		if s.Medium == jobspecs.MediumMemory && spec.Sandbox == "" && spec.Main.Kind != jobspecs.KindSandbox {
			return "", nil // it is the container's alone, and ends with it
		}
		return s.Volume, w.makeScratch(spec, s)
	}
	return "", problem(runtime.ReasonCreateFailed, "pod %s has no scratch folder %s", spec.Pod.Name, m.Claim)
}

// makeScratch makes the volume of a scratch folder where it is missing.
func (w *World) makeScratch(spec *pods.ContainerSpec, s jobspecs.Scratch) error {
	if w.volumes[s.Volume] == nil {
		labels := w.volumeLabels(spec.Pod.Set, spec.Pod.Ordinal, "")
		delete(labels, jobspecs.LabelClaim)
		labels[jobspecs.LabelScratch] = s.Name
		w.makeDisk(s.Volume, labels)
	}
	return w.mine(s.Volume)
}

// RemoveScratch implements pods.Host. It is also the end of the pod as far as the
// order of its containers goes: what follows begins anew.
func (h host) RemoveScratch(ctx context.Context, pod runtime.PodName) error {
	return h.call(ctx, "scratch.remove", pod.Name, func() error {
		for _, name := range slices.Sorted(maps.Keys(h.volumes)) {
			d := h.volumes[name]
			if d.Labels[jobspecs.LabelDaemon] != h.daemon || d.Labels[jobspecs.LabelScratch] == "" || podOf(d.Labels) != pod {
				continue
			}
			if h.used(name) {
				return fmt.Errorf("remove scratch volume %s: %w", name, pods.ErrScratchInUse)
			}
			delete(h.volumes, name)
		}
		h.forget(pod)
		return nil
	})
}

// used tells whether a container has a volume; w.mu is held.
func (w *World) used(volume string) bool {
	for _, b := range w.boxes {
		if slices.Contains(b.volumes, volume) {
			return true
		}
	}
	return false
}
