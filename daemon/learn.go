package daemon

import (
	"time"

	"github.com/stsd/stsd/daemon/planner"
	"github.com/stsd/stsd/daemon/store"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/volumes"
)

// learn stores what the look showed and what the plan is about to do, before
// anything is done: a crash at any point later finds the intent on disk. It tells
// whether there was anything new: status and renderings depend on it.
func (l *loop) learn(s sight, plan planner.Plan) (news bool, err error) {
	f := store.Facts{Members: map[int]planner.Member{}, Drop: plan.Drop}
	l.learnPods(&f, &s)
	l.learnActions(&f, &s, plan)
	for o, m := range f.Members {
		if same(m, s.view.Members[o]) {
			delete(f.Members, o)
		}
	}
	r := &s.view.Record
	if plan.Complete && r.Current != r.Update {
		f.Current = r.Update
		l.d.events.record(l.key, "", normal, "RolloutComplete", "all members run "+r.Update)
	}
	f.Formed = plan.Formed && !r.Formed
	f.Live = live(&s)
	f.Keep = r.Set.RevisionHistoryLimit
	f.Truncate = f.Keep >= 0 && len(s.view.Revisions)-len(f.Live) > f.Keep
	return !f.Empty(), l.d.store.Learn(l.key, f)
}

// learnPods takes over what the pods show.
func (l *loop) learnPods(f *store.Facts, s *sight) {
	for i := range s.world.Pods {
		p := &s.world.Pods[i]
		m := s.view.Members[p.Ordinal]
		if m.Revision == "" {
			m.Revision = p.Revision
		}
		m.ReadySince = time.Time{}
		if p.Ready {
			m.ReadySince = p.ReadySince
		}
		if s.world.IsAvailable(p) {
			m.Once = p.Revision
		}
		if !p.StartedAt.IsZero() {
			m.Used = true
			l.learnVolumes(f, s, p)
			l.learnImage(f, s, p)
		}
		f.Members[p.Ordinal] = m
	}
	for name, v := range s.world.Volumes {
		if _, ok := s.view.Volumes[name]; !ok { // it was there before the set
			f.Volumes = append(f.Volumes, volumes.Record{Name: name, Claim: v.Claim, Ordinal: v.Ordinal, Used: true})
		}
	}
}

// learnVolumes notes that a container has run with the pod's volumes.
func (l *loop) learnVolumes(f *store.Facts, s *sight, p *runtime.Pod) {
	for _, v := range s.world.Specs[planner.Target{Ordinal: p.Ordinal, Revision: p.Revision}].Spec.Volumes {
		r, ok := s.view.Volumes[v.Name]
		if ok && !r.Used {
			r.Used = true
			f.Volumes = append(f.Volumes, r)
		}
	}
}

// learnImage pins the image that the first member of a revision was made from.
func (l *loop) learnImage(f *store.Facts, s *sight, p *runtime.Pod) {
	if p.Image == "" || p.ImageID == "" {
		return
	}
	for _, r := range s.view.Revisions {
		if r.Name != p.Revision || r.ImageIDs[p.Image] != "" {
			continue
		}
		if f.ImageIDs == nil {
			f.ImageIDs = map[string]map[string]string{}
		}
		if f.ImageIDs[r.Name] == nil {
			f.ImageIDs[r.Name] = map[string]string{}
		}
		if f.ImageIDs[r.Name][p.Image] == "" {
			f.ImageIDs[r.Name][p.Image] = p.ImageID
		}
	}
}

// learnActions writes down what is about to happen.
func (l *loop) learnActions(f *store.Facts, s *sight, plan planner.Plan) {
	for _, a := range plan.Actions {
		switch a.Op {
		case planner.Create, planner.Stop, planner.Remove, planner.CreateVolume:
			l.learnTarget(f, s, a)
		}
		switch a.Op {
		case planner.CreateVolume:
			if _, ok := s.view.Volumes[a.Volume]; !ok {
				f.Volumes = append(f.Volumes, volumes.Record{Name: a.Volume, Claim: claimOf(s, a), Ordinal: a.Ordinal})
			}
		case planner.DeleteVolume:
			r := s.view.Volumes[a.Volume]
			v := s.world.Volumes[a.Volume]
			if !r.Deleting {
				f.Volumes = append(f.Volumes, volumes.Record{Name: a.Volume, Claim: v.Claim, Ordinal: v.Ordinal, Used: true, Deleting: true})
			}
		}
	}
}

// learnTarget notes the revision that a member is made with next.
func (l *loop) learnTarget(f *store.Facts, s *sight, a planner.Action) {
	if a.Target == "" {
		return
	}
	m, ok := f.Members[a.Ordinal]
	if !ok {
		m = s.view.Members[a.Ordinal]
	}
	m.Revision = a.Target
	f.Members[a.Ordinal] = m
}

func claimOf(s *sight, a planner.Action) string { return volumeSpec(s, a).Claim }

// live are the revisions that the history may not lose.
func live(s *sight) map[string]bool {
	out := map[string]bool{}
	for _, name := range []string{s.view.Record.Update, s.view.Record.Current} {
		if name != "" {
			out[name] = true
		}
	}
	for i := range s.world.Pods {
		out[s.world.Pods[i].Revision] = true
	}
	for _, m := range s.view.Members {
		if m.Revision != "" {
			out[m.Revision] = true
		}
	}
	for name := range out {
		if !stored(s.view.Revisions, name) {
			delete(out, name)
		}
	}
	return out
}

// same compares without the monotonic clock, which the store does not keep.
func same(a, b planner.Member) bool {
	equal := a.ReadySince.Equal(b.ReadySince)
	a.ReadySince, b.ReadySince = time.Time{}, time.Time{}
	return equal && a == b
}
