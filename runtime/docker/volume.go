package docker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/volume"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/runtime/pods"
	"github.com/stsd/stsd/volumes"
)

var (
	_ volumes.Store  = (*Volumes)(nil)
	_ volumes.Owners = (*Volumes)(nil)
)

// Volumes is the store of volumes on a Host's engine. It answers List from memory
// while a Watch of the Host is live, and asks the engine otherwise.
type Volumes struct {
	host *Host

	mu    sync.Mutex
	gen   int // counts changes: a list that was begun before one is not kept
	valid bool
	mine  map[string]*volume.Volume // ours, by name
	// drivers are those that a volume of ours may have; nil: any. An engine waits 15 s
	// for a plugin that died, whoever uses it, when it lists volumes of any driver.
	drivers map[string]bool
}

// localDriver is the engine's own.
const localDriver = "local"

// List shows the set's volumes, by name. Those of scratch folders are none of them.
func (v *Volumes) List(ctx context.Context, set jobspecs.Key) ([]volumes.Volume, error) {
	mine, err := v.all(ctx)
	if err != nil {
		return nil, err
	}
	var list []volumes.Volume
	for _, name := range slices.Sorted(maps.Keys(mine)) {
		if found := volumeOf(mine[name]); found.Set == set && !isScratch(mine[name].Labels) {
			list = append(list, found)
		}
	}
	return list, nil
}

// Create makes the volume, or finds that it is there.
func (v *Volumes) Create(ctx context.Context, set jobspecs.Key, ordinal int, spec jobspecs.VolumeSpec) error {
	if v.remembers(spec.Name) {
		return nil
	}
	done, err := v.host.slot(ctx)
	if err != nil {
		return err
	}
	defer done()
	made, err := v.host.cli().VolumeCreate(ctx, volume.CreateOptions{
		Name:       spec.Name,
		Driver:     spec.Driver,
		DriverOpts: volumes.Options(spec),
		Labels:     volumeLabels(v.host.cfg.Daemon, set, ordinal, spec.Claim),
	})
	if err == nil && v.unasked(made.Labels) { // left by a crash; nothing ever ran with it
		if err := v.host.cli().VolumeRemove(ctx, spec.Name, false); err != nil {
			return fmt.Errorf("remove volume %s, which the engine made by itself: %w", spec.Name, engineError(err))
		}
		return v.Create(ctx, set, ordinal, spec)
	}
	if isConflict(err) { // it is there, with another driver
		made, err = v.host.cli().VolumeInspect(ctx, spec.Name)
	}
	if err != nil {
		return fmt.Errorf("create volume %s: %w", spec.Name, engineError(err))
	}
	if err := v.foreign(&made, set); err != nil {
		return err
	}
	v.changed(func() { v.mine[spec.Name] = &made })
	v.meet(made.Driver)
	return nil
}

// Foreign implements volumes.Owners.
func (v *Volumes) Foreign(ctx context.Context, set jobspecs.Key, name string) error {
	done, err := v.host.slot(ctx)
	if err != nil {
		return err
	}
	defer done()
	found, err := v.host.cli().VolumeInspect(ctx, name)
	switch {
	case isNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("inspect volume %s: %w", name, engineError(err))
	}
	return v.foreign(&found, set)
}

// foreign is a *volumes.ForeignError unless the volume is the set's.
func (v *Volumes) foreign(found *volume.Volume, set jobspecs.Key) error {
	if v.host.ours(found.Labels) && volumeOf(found).Set == set && !isScratch(found.Labels) {
		return nil
	}
	return &volumes.ForeignError{Name: found.Name, Owner: v.host.owner(found.Labels)}
}

func isScratch(labels map[string]string) bool { return labels[jobspecs.LabelScratch] != "" }

// unasked tells whether the engine made a volume by itself for a container of
// ours.
func (v *Volumes) unasked(labels map[string]string) bool {
	return labels[jobspecs.LabelUnasked] == v.host.cfg.Daemon
}

// whole makes sure that a container that was just made mounts the volumes that
// were there, and not ones that the engine made because they went meanwhile: those
// go again, with the container, before anything ran with them.
func (v *Volumes) whole(ctx context.Context, id string, spec *pods.ContainerSpec) error {
	ctx = context.WithoutCancel(ctx)
	for _, m := range spec.Main.Mounts {
		name := volumeName(spec, m)
		if name == "" {
			continue
		}
		found, err := v.host.cli().VolumeInspect(ctx, name)
		if err == nil && !v.unasked(found.Labels) {
			continue
		}
		lost := problem(runtime.ReasonCreateFailed, err, "volume %s went while its container was made", name)
		if err := v.host.undo(ctx, id); err != nil {
			return errors.Join(lost, err)
		}
		if err == nil {
			err = v.host.cli().VolumeRemove(ctx, name, false)
		}
		v.changed(func() { delete(v.mine, name) })
		if err != nil && !isNotFound(err) {
			return errors.Join(lost, engineError(err))
		}
		return lost
	}
	return nil
}

// Delete deletes one of ours.
func (v *Volumes) Delete(ctx context.Context, name string) error {
	done, err := v.host.slot(ctx)
	if err != nil {
		return err
	}
	defer done()
	found, err := v.host.cli().VolumeInspect(ctx, name)
	if isNotFound(err) {
		v.changed(func() { delete(v.mine, name) })
		return nil
	}
	if err != nil {
		return fmt.Errorf("inspect volume %s: %w", name, engineError(err))
	}
	if !v.host.ours(found.Labels) {
		return &volumes.ForeignError{Name: name, Owner: v.host.owner(found.Labels)}
	}
	err = v.host.cli().VolumeRemove(ctx, name, false)
	if isConflict(err) {
		return fmt.Errorf("delete volume %s: %w", name, volumes.ErrInUse)
	}
	if err != nil && !isNotFound(err) {
		return fmt.Errorf("delete volume %s: %w", name, engineError(err))
	}
	v.changed(func() { delete(v.mine, name) })
	return nil
}

// mountable tells whether the pod may mount the volume: it must be there, since an
// empty one in the place of one that held data is never made in silence, and ours.
func (v *Volumes) mountable(ctx context.Context, name string) error {
	if v.remembers(name) {
		return nil
	}
	found, err := v.host.cli().VolumeInspect(ctx, name)
	if isNotFound(err) {
		return problem(runtime.ReasonCreateFailed, nil, "volume %s is gone", name)
	}
	if err != nil {
		return fmt.Errorf("inspect volume %s: %w", name, engineError(err))
	}
	if !v.host.ours(found.Labels) {
		foreign := &volumes.ForeignError{Name: name, Owner: v.host.owner(found.Labels)}
		return problem(runtime.ReasonVolumeForeign, nil, "%s", foreign.Error())
	}
	return nil
}

// all is every volume of ours. The map must not be changed.
func (v *Volumes) all(ctx context.Context) (map[string]*volume.Volume, error) {
	v.mu.Lock()
	if v.valid {
		defer v.mu.Unlock()
		return maps.Clone(v.mine), nil
	}
	gen, live, drivers := v.gen, v.host.watched(), slices.Sorted(maps.Keys(v.drivers))
	v.mu.Unlock()

	list, err := v.listOf(ctx, drivers)
	if err != nil && len(drivers) > 0 && ctx.Err() == nil { // a driver that is gone; of any, the others are listed
		list, err = v.listOf(ctx, nil)
	}
	if err != nil {
		return nil, fmt.Errorf("list volumes: %w", engineError(err))
	}
	mine, met := map[string]*volume.Volume{}, map[string]bool{localDriver: true}
	for _, found := range list {
		mine[found.Name] = found
		met[found.Driver] = true
	}

	v.mu.Lock()
	defer v.mu.Unlock()
	if v.drivers == nil {
		v.drivers = map[string]bool{}
	}
	maps.Copy(v.drivers, met)
	if v.gen == gen && live {
		v.mine, v.valid = mine, true
		return maps.Clone(mine), nil
	}
	return mine, nil
}

// listOf asks for the volumes of ours of some drivers; none: of any.
func (v *Volumes) listOf(ctx context.Context, drivers []string) ([]*volume.Volume, error) {
	mine := filters.NewArgs(filters.Arg("label", jobspecs.LabelDaemon+"="+v.host.cfg.Daemon))
	for _, d := range drivers {
		mine.Add("driver", d)
	}
	list, err := v.host.cli().VolumeList(ctx, volume.ListOptions{Filters: mine})
	return list.Volumes, err
}

// meet notes that a volume of ours may have this driver.
func (v *Volumes) meet(driver string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.drivers != nil && driver != "" {
		v.drivers[driver] = true
	}
}

func (v *Volumes) remembers(name string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.valid && v.mine[name] != nil
}

// changed applies a write of our own to what is remembered.
func (v *Volumes) changed(apply func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.gen++
	if v.valid {
		apply()
	}
}

// note takes an event. Those of our own writes come after the writes and say
// nothing new. A destroyed volume is not just taken off: the event may be an old
// one, of a volume that was made again since.
func (v *Volumes) note(action, name string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	known := v.mine[name] != nil
	if action == "create" && !known || action == "destroy" && known {
		v.gen++
		v.valid = false
	}
}

func (v *Volumes) forget() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.gen++
	v.valid, v.mine, v.drivers = false, nil, nil
}

func volumeOf(v *volume.Volume) volumes.Volume {
	ordinal, _ := strconv.Atoi(v.Labels[jobspecs.LabelOrdinal])
	return volumes.Volume{
		Set:     jobspecs.Key{Namespace: v.Labels[jobspecs.LabelNamespace], Name: v.Labels[jobspecs.LabelSet]},
		Name:    v.Name,
		Claim:   v.Labels[jobspecs.LabelClaim],
		Ordinal: ordinal,
		Driver:  v.Driver,
		Options: v.Options,
	}
}
