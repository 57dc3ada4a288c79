package sim

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/volumes"
)

type store struct{ *World }

var (
	_ volumes.Store  = store{}
	_ volumes.Meter  = store{}
	_ volumes.Owners = store{}
)

// Volumes is the host's volumes.
func (w *World) Volumes() volumes.Store { return store{w} }

func (w *World) volumeLabels(set jobspecs.Key, ordinal int, claim string) map[string]string {
	return map[string]string{
		jobspecs.LabelDaemon: w.daemon, jobspecs.LabelNamespace: set.Namespace, jobspecs.LabelSet: set.Name,
		jobspecs.LabelOrdinal: strconv.Itoa(ordinal), jobspecs.LabelClaim: claim,
	}
}

// makeDisk makes an empty volume; w.mu is held.
func (w *World) makeDisk(name string, labels map[string]string) {
	w.serial++
	w.volumes[name] = &Disk{Name: name, Labels: labels, Serial: w.serial}
}

// Fill lets a volume hold that many bytes.
func (w *World) Fill(name string, bytes int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if d := w.volumes[name]; d != nil {
		d.Used = bytes
	}
}

// Used implements volumes.Meter. The engine is not asked.
func (s store) Used(_ context.Context, name string) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.volumes[name]
	if d == nil {
		return 0, fmt.Errorf("volume %s is not there", name)
	}
	return d.Used, nil
}

// List implements volumes.Store.
func (s store) List(ctx context.Context, set jobspecs.Key) (list []volumes.Volume, err error) {
	err = s.call(ctx, "volume.list", "", func() error {
		for _, name := range slices.Sorted(maps.Keys(s.volumes)) {
			d := s.volumes[name]
			l := d.Labels
			if l[jobspecs.LabelScratch] != "" || l[jobspecs.LabelDaemon] != s.daemon || l[jobspecs.LabelNamespace] != set.Namespace || l[jobspecs.LabelSet] != set.Name {
				continue
			}
			ordinal, _ := strconv.Atoi(l[jobspecs.LabelOrdinal])
			list = append(list, volumes.Volume{Set: set, Name: name, Claim: l[jobspecs.LabelClaim], Ordinal: ordinal, Driver: cmp.Or(d.Driver, "local"), Options: maps.Clone(d.Options)})
		}
		return nil
	})
	return list, err
}

// Create implements volumes.Store.
func (s store) Create(ctx context.Context, set jobspecs.Key, ordinal int, v jobspecs.VolumeSpec) error {
	return s.call(ctx, "volume.create", v.Name, func() error {
		if d := s.volumes[v.Name]; d != nil {
			return s.owned(d)
		}
		s.makeDisk(v.Name, s.volumeLabels(set, ordinal, v.Claim))
		d := s.volumes[v.Name]
		d.Driver, d.Options = v.Driver, maps.Clone(volumes.Options(v))
		return nil
	})
}

// Foreign implements volumes.Owners.
func (s store) Foreign(ctx context.Context, _ jobspecs.Key, name string) error {
	return s.call(ctx, "volume.inspect", name, func() error {
		if d := s.volumes[name]; d != nil {
			return s.owned(d)
		}
		return nil
	})
}

func (w *World) owned(d *Disk) error {
	if d.Labels[jobspecs.LabelDaemon] == w.daemon {
		return nil
	}
	return &volumes.ForeignError{Name: d.Name, Owner: ownerOf(d.Labels)}
}

// Delete implements volumes.Store.
func (s store) Delete(ctx context.Context, name string) error {
	return s.call(ctx, "volume.delete", name, func() error {
		d := s.volumes[name]
		if d == nil {
			return nil
		}
		if err := s.owned(d); err != nil {
			return err
		}
		if s.used(name) {
			return volumes.ErrInUse
		}
		delete(s.volumes, name)
		return nil
	})
}
