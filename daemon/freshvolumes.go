package daemon

import (
	"slices"

	"github.com/stsd/stsd/daemon/planner"
	"github.com/stsd/stsd/volumes"
)

// freshVolumes marks the volumes of a rendering with which no container has run
// yet. What the store knows nothing of was there before the set, and is not fresh.
// The rendering, which is kept for later looks, stays as it is.
func freshVolumes(r planner.Rendered, records map[string]volumes.Record) planner.Rendered {
	r.Spec.Volumes = slices.Clone(r.Spec.Volumes)
	for i := range r.Spec.Volumes {
		v := &r.Spec.Volumes[i]
		record, known := records[v.Name]
		v.Fresh = known && !record.Used
	}
	return r
}
