package docker

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/volume"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/runtime/pods"
	"github.com/stsd/stsd/volumes"
)

// ensureScratch makes the volumes of the scratch folders that the container
// mounts, and returns those on disk that have to be opened to every user: no
// container has them yet.
func (h *Host) ensureScratch(ctx context.Context, spec *pods.ContainerSpec) (fresh []string, err error) {
	for _, s := range spec.Pod.Scratch {
		mounted := slices.ContainsFunc(spec.Main.Mounts, func(m jobspecs.Mount) bool {
			return m.Kind == jobspecs.MountScratch && m.Claim == s.Name && !inTmpfs(spec, m)
		})
		if !mounted {
			continue
		}
		if err := h.createScratch(ctx, spec, s); err != nil {
			return nil, err
		}
		if s.Medium == jobspecs.MediumMemory { // its options open it
			continue
		}
		used, err := h.cli().ContainerList(ctx, container.ListOptions{All: true, Limit: 1, Filters: filters.NewArgs(filters.Arg("volume", s.Volume))})
		if err != nil {
			return nil, fmt.Errorf("look who has volume %s: %w", s.Volume, engineError(err))
		}
		if len(used) == 0 {
			fresh = append(fresh, s.Volume)
		}
	}
	return fresh, nil
}

func (h *Host) createScratch(ctx context.Context, spec *pods.ContainerSpec, s jobspecs.Scratch) error {
	labels := objectLabels(h.cfg.Daemon, spec.Pod.Set, spec.Pod.Ordinal)
	labels[jobspecs.LabelScratch] = s.Name
	made, err := h.cli().VolumeCreate(ctx, volume.CreateOptions{
		Name:       s.Volume,
		Driver:     localDriver,
		DriverOpts: scratchOptions(s, groupOf(&spec.Pod)),
		Labels:     labels,
	})
	if isConflict(err) { // it is there, with another driver
		made, err = h.cli().VolumeInspect(ctx, s.Volume)
	}
	if err != nil {
		return known(runtime.ReasonCreateFailed, err, "create volume %s", s.Volume)
	}
	for k, v := range labels {
		if made.Labels[k] != v {
			foreign := &volumes.ForeignError{Name: s.Volume, Owner: h.owner(made.Labels)}
			return problem(runtime.ReasonVolumeForeign, nil, "%s", foreign.Error())
		}
	}
	h.volumes.changed(func() { h.volumes.mine[s.Volume] = &made })
	return nil
}

// RemoveScratch removes the volumes of a pod's scratch folders.
func (h *Host) RemoveScratch(ctx context.Context, pod runtime.PodName) error {
	set, ordinal, ok := jobspecs.ParseMember(pod.Name)
	if !ok {
		return fmt.Errorf("remove scratch folders of %q: no member's name", pod.Name)
	}
	done, err := h.slot(ctx)
	if err != nil {
		return err
	}
	defer done()
	mine := filters.NewArgs(filters.Arg("label", jobspecs.LabelScratch), filters.Arg("driver", localDriver))
	for k, v := range objectLabels(h.cfg.Daemon, jobspecs.Key{Namespace: pod.Namespace, Name: set}, ordinal) {
		mine.Add("label", k+"="+v)
	}
	found, err := h.cli().VolumeList(ctx, volume.ListOptions{Filters: mine})
	if err != nil {
		return fmt.Errorf("list scratch folders of %s: %w", pod.Name, engineError(err))
	}
	var errs []error
	for _, v := range found.Volumes {
		errs = append(errs, h.removeScratch(ctx, v.Name))
	}
	return errors.Join(errs...)
}

func (h *Host) removeScratch(ctx context.Context, name string) error {
	err := h.cli().VolumeRemove(ctx, name, false)
	if isConflict(err) {
		return fmt.Errorf("remove scratch volume %s: %w", name, pods.ErrScratchInUse)
	}
	if err != nil && !isNotFound(err) {
		return fmt.Errorf("remove scratch volume %s: %w", name, engineError(err))
	}
	h.volumes.changed(func() { delete(h.volumes.mine, name) })
	return nil
}

// openScratch lets every user write into scratch folders on disk.
func (h *Host) openScratch(ctx context.Context, spec *pods.ContainerSpec, names []string) error {
	if len(names) == 0 {
		return nil
	}
	return h.within(ctx, spec, names, func(in *inside) error {
		for n := range names {
			if err := in.give(ctx, n, ownership{group: groupOf(&spec.Pod), open: true}); err != nil {
				return err
			}
		}
		return nil
	})
}
