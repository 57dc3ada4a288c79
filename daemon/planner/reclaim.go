package planner

import (
	"slices"
	"sort"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/volumes"
)

// reclaim deletes the volumes whose retention says so and whose pod is gone,
// and forgets what the store holds of ordinals that are no longer the set's.
// That a volume goes is on disk (Record.Deleting) before the engine is asked:
// once decided it is carried out, even if the set grows again meanwhile.
func (w *World) reclaim(p *Plan) {
	hasPod := map[int]bool{}
	for i := range w.Pods {
		hasPod[w.Pods[i].Ordinal] = true
	}
	for _, name := range sortedNames(w.Volumes) {
		v := w.Volumes[name]
		verdict := volumes.Decide(volumes.Case{
			Claim: w.claim(v.Claim), InRange: w.Fits(v.Ordinal), Deleting: w.Deleting != nil,
			Policy: w.policy(), PodGone: !hasPod[v.Ordinal], Former: w.former(name, v.Ordinal),
		})
		if verdict == volumes.Reclaimed || w.Records[name].Deleting && !hasPod[v.Ordinal] {
			p.act(Action{Op: DeleteVolume, Ordinal: v.Ordinal, Member: w.member(v.Ordinal), Volume: name, Why: w.whyReclaimed()})
		}
	}
	for _, name := range sortedNames(w.Records) {
		if _, exists := w.Volumes[name]; w.Records[name].Deleting && !exists {
			p.Drop = append(p.Drop, name)
		}
	}
	for o := range w.Members {
		if (w.Deleting != nil || !w.Fits(o)) && !hasPod[o] {
			p.act(Action{Op: Forget, Ordinal: o, Member: w.member(o), Why: "no longer of the set"})
		}
	}
}

// former tells whether no member of this set has had the volume: it was there before,
// and stays whatever happens to members. What was never written down was not looked at
// by this set either.
func (w *World) former(name string, ordinal int) bool {
	r, known := w.Records[name]
	return !w.Fits(ordinal) && (!known || r.Former)
}

// Fits tells whether the ordinal is one of the set's, deleting or not.
func (w *World) Fits(ordinal int) bool {
	if len(w.Set.Reserve) == 0 {
		return ordinal >= w.Set.StartOrdinal && ordinal < w.Set.StartOrdinal+w.Replicas
	}
	return slices.Contains(w.Set.Ordinals(w.Replicas), ordinal)
}

func (w *World) policy() string {
	if w.Deleting == nil {
		return ""
	}
	return w.Deleting.Volumes
}

func (w *World) whyReclaimed() string {
	if w.Deleting != nil {
		return "set is being deleted, and its volumes with it"
	}
	return `on_scale_down = "delete"`
}

func (w *World) claim(name string) *jobspecs.Claim {
	for i := range w.Set.Claims {
		if w.Set.Claims[i].Name == name {
			return &w.Set.Claims[i]
		}
	}
	return nil
}

func sortedNames[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for name := range m {
		out = append(out, name)
	}
	sort.Strings(out)
	return out
}
