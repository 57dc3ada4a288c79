package daemon

import (
	"slices"
	"time"

	"github.com/stsd/stsd/daemon/planner"
	"github.com/stsd/stsd/daemon/store"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/volumes"
)

// learn stores what the look showed and what the plan is about to do, before
// anything is done: a crash at any point later finds the intent on disk. It tells
// whether there was anything new: status and renderings depend on it.
func (l *loop) learn(s sight, plan planner.Plan) (news bool, err error) {
	f := store.Facts{Members: map[int]planner.Member{}, Drop: plan.Drop}
	l.learnPods(&f, &s)
	l.learnMembership(&f, &s, plan)
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
	f.Unhalt = plan.Complete && r.Halted != nil && r.Halted.Revision == r.Update
	if plan.Failed != nil {
		f.Halted = l.fail(plan.Failed, s.world.Now)
	}
	f.Live = live(&s)
	f.Keep = r.Set.RevisionHistoryLimit
	f.Truncate = f.Keep >= 0 && len(s.view.Revisions)-len(f.Live) > f.Keep
	l.keep(f.Members)
	return !f.Empty(), l.d.store.Learn(l.key, f)
}

// learnPods takes over what the pods show.
func (l *loop) learnPods(f *store.Facts, s *sight) {
	for i := range s.world.Pods {
		p := &s.world.Pods[i]
		m := s.world.Members[p.Ordinal]
		if m.Revision == "" {
			m.Revision = p.Revision
		}
		m = planner.Readiness(m, p, s.world.Now)
		if s.world.IsAvailable(p) {
			m.Once = p.Revision
		}
		m = s.world.Clock(m, p)
		if hasRun(p) {
			l.learnImages(f, s, p)
		}
		if hasRun(p) && hasVolumes(s, p) {
			m.Used = true
			l.learnVolumes(f, s, p)
		}
		f.Members[p.Ordinal] = m
	}
	for name, v := range s.world.Volumes {
		r, ok := s.view.Volumes[name]
		if !ok { // it was there before the set
			r = volumes.Record{Name: name, Claim: v.Claim, Ordinal: v.Ordinal, Used: true, Former: true}
		}
		ours := r.Former && s.world.Fits(v.Ordinal)
		if r.Former = r.Former && !ours; !ok || ours {
			f.Volumes = append(f.Volumes, r)
		}
	}
}

// hasRun tells whether a container of the pod runs or has run: an init container
// is the first to write to its volumes.
func hasRun(p *runtime.Pod) bool {
	return !p.StartedAt.IsZero() || slices.ContainsFunc(p.Containers, ran)
}

// hasVolumes tells whether the pod's volumes are there. One that is gone may have
// been given up: that the pod ran with it says nothing of the one that follows.
func hasVolumes(s *sight, p *runtime.Pod) bool {
	for _, v := range s.world.Specs[planner.Target{Ordinal: p.Ordinal, Revision: p.Revision}].Spec.Volumes {
		if _, exists := s.world.Volumes[v.Name]; !exists {
			return false
		}
	}
	return true
}

// learnVolumes notes that a container has run with the pod's volumes.
func (l *loop) learnVolumes(f *store.Facts, s *sight, p *runtime.Pod) {
	spec := s.world.Specs[planner.Target{Ordinal: p.Ordinal, Revision: p.Revision}].Spec
	for _, v := range spec.Volumes {
		r, ok := s.view.Volumes[v.Name]
		if ok && !r.Used && ranWith(p, &spec, v.Name) {
			r.Used = true
			f.Volumes = append(f.Volumes, r)
		}
	}
}

// ranWith tells whether a container that mounts the volume runs or has run.
func ranWith(p *runtime.Pod, spec *jobspecs.PodSpec, volume string) bool {
	return slices.ContainsFunc(p.Containers, func(c runtime.Container) bool {
		return ran(c) && slices.ContainsFunc(spec.Containers, func(block jobspecs.Container) bool {
			return block.Name == c.Name && slices.ContainsFunc(block.Mounts, func(m jobspecs.Mount) bool { return m.Volume == volume })
		})
	})
}

func ran(c runtime.Container) bool { return !c.StartedAt.IsZero() || c.ExitCode != nil }

// learnImages pins the images that the first member of a revision was made from,
// those of all its containers.
func (l *loop) learnImages(f *store.Facts, s *sight, p *runtime.Pod) {
	r := revisionNamed(&s.view, p.Revision)
	if r == nil {
		return
	}
	pin := func(image, id string) {
		if image == "" || id == "" || r.ImageIDs[image] != "" || f.ImageIDs[r.Name][image] != "" {
			return
		}
		if f.ImageIDs == nil {
			f.ImageIDs = map[string]map[string]string{}
		}
		if f.ImageIDs[r.Name] == nil {
			f.ImageIDs[r.Name] = map[string]string{}
		}
		f.ImageIDs[r.Name][image] = id
	}
	pin(p.Image, p.ImageID)
	for i := range p.Containers {
		pin(p.Containers[i].Image, p.Containers[i].ImageID)
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
		case planner.Create:
			learnMade(f, s, a)
		case planner.CreateVolume:
			r, ok := s.view.Volumes[a.Volume]
			if !ok || r.Used {
				f.Volumes = append(f.Volumes, volumes.Record{Name: a.Volume, Claim: claimOf(s, a), Ordinal: a.Ordinal})
			}
			if r.Used { // it is lost, and given up
				unused(f, s, a.Ordinal)
			}
		case planner.DeleteVolume:
			r := s.view.Volumes[a.Volume]
			v := s.world.Volumes[a.Volume]
			if !r.Deleting {
				f.Volumes = append(f.Volumes, volumes.Record{Name: a.Volume, Claim: v.Claim, Ordinal: v.Ordinal, Used: true, Deleting: true})
			}
			if s.view.Members[a.Ordinal].Ask == planner.AskFresh {
				unused(f, s, a.Ordinal)
			}
		}
	}
}

// learnTarget notes the revision that a member is made with next.
func (l *loop) learnTarget(f *store.Facts, s *sight, a planner.Action) {
	if a.Target == "" {
		return
	}
	m := known(f, s, a.Ordinal)
	m.Revision = a.Target
	f.Members[a.Ordinal] = m
}

// known is what is stored of an ordinal, with what was learned already.
func known(f *store.Facts, s *sight, ordinal int) planner.Member {
	if m, ok := f.Members[ordinal]; ok {
		return m
	}
	return s.view.Members[ordinal]
}

// unused notes that a member's volumes are fresh ones from now on.
func unused(f *store.Facts, s *sight, ordinal int) {
	m := known(f, s, ordinal)
	m.Used = false
	f.Members[ordinal] = m
}

// learnMade notes that a member's next pod is made: what was asked of it is done, and
// its deadline has not begun. With fresh volumes it joins anew.
func learnMade(f *store.Facts, s *sight, a planner.Action) {
	m := known(f, s, a.Ordinal)
	m.Trying, m.Resting = time.Time{}, time.Time{}
	if m.Ask != planner.AskNone {
		if f.Answered == nil {
			f.Answered = map[int]planner.Ask{}
		}
		f.Answered[a.Ordinal] = m.Ask
	}
	if m.Ask == planner.AskFresh {
		m.Used, m.Joined = false, false
	}
	m.Ask = planner.AskNone
	f.Members[a.Ordinal] = m
}

// learnMembership notes who belongs to the set. All that are there when it forms do.
// One whose leave hooks have run, and that is to stay after all, joins again.
func (l *loop) learnMembership(f *store.Facts, s *sight, plan planner.Plan) {
	forms := plan.Formed && !s.world.Formed
	for _, o := range s.env.Ordinals {
		m := known(f, s, o)
		switch {
		case forms && !m.Joined:
			m.Joined, m.Left = true, false
		case m.Left && s.world.Deleting == nil:
			m.Joined, m.Left = false, false
		default:
			continue
		}
		f.Members[o] = m
	}
}

// fail is a rollout that failed, as it is stored.
func (l *loop) fail(failed *planner.Halt, now time.Time) *planner.Halt {
	h := *failed
	h.At = now.UTC()
	l.d.events.record(l.key, h.Member, warning, "RolloutFailed", h.Why)
	l.d.log.Warn("rollout failed", "set", l.key.String(), "revision", h.Revision, "why", h.Why)
	return &h
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
	equal = equal && a.Trying.Equal(b.Trying) && a.Resting.Equal(b.Resting)
	equal = equal && a.Unready.Equal(b.Unready)
	a.ReadySince, b.ReadySince = time.Time{}, time.Time{}
	a.Unready, b.Unready = time.Time{}, time.Time{}
	a.Trying, b.Trying = time.Time{}, time.Time{}
	a.Resting, b.Resting = time.Time{}, time.Time{}
	return equal && a == b
}
