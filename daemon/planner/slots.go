package planner

import (
	"sort"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

// slot is one ordinal of the set and what stands in it.
type slot struct {
	ordinal int
	name    string
	pod     *runtime.Pod // nil: missing
	wanted  bool         // the set has this ordinal
	target  string       // revision that a pod made now gets
	halted  bool         // stopped by the user: it is not made, and nobody waits for it
	staged  bool         // it waits for its predecessor's recovery
	ask     Ask
}

func (s *slot) missing() bool  { return s.pod == nil }
func (s *slot) gone() bool     { return s.pod != nil && s.pod.Gone() }
func (s *slot) stopping() bool { return s.pod != nil && s.pod.Phase == runtime.Stopping }

// slots gives the set's ordinals ascending, and the condemned ones (pods beyond
// them; all of them while the set is being deleted) descending.
func (w *World) slots() (wanted, condemned []*slot) {
	byOrdinal := map[int]*runtime.Pod{}
	for i := range w.Pods {
		byOrdinal[w.Pods[i].Ordinal] = &w.Pods[i]
	}
	if w.Deleting == nil {
		for _, o := range w.Set.Ordinals(w.Replicas) {
			wanted = append(wanted, &slot{
				ordinal: o, name: w.member(o), pod: byOrdinal[o], wanted: true, target: w.target(o),
				halted: w.Members[o].Stopped, ask: w.Members[o].Ask,
			})
			delete(byOrdinal, o)
		}
	}
	for o, p := range byOrdinal {
		condemned = append(condemned, &slot{ordinal: o, name: w.member(o), pod: p})
	}
	sort.Slice(condemned, func(i, j int) bool { return condemned[i].ordinal > condemned[j].ordinal })
	return wanted, condemned
}

func (w *World) member(ordinal int) string { return jobspecs.MemberName(w.Set.Name, ordinal) }

// target is the revision that a pod of this ordinal gets when it is made now. A
// member that is lost comes back as it was, until its turn in the update has come: a
// host that reboots in the middle of a rollout does not spread it, nor does what was
// available leave because others were never. One that never ran is no such member. Below the partition it is not the newest
// one, if there is another. Otherwise it is the newest; while the rollout is held the
// current one, or in a set that never was complete the last one.
func (w *World) target(ordinal int) string {
	m := w.Members[ordinal]
	last := m.Revision
	below := w.Set.Update.Strategy == jobspecs.Rolling && ordinal < w.Set.Update.Partition
	switch {
	case last == "":
	case last == m.Once && last != w.Update, last == w.Current && m.ran(), last == w.Update && !below:
		return last
	}
	switch held := below || w.held(); {
	case held && w.Current != "":
		return w.Current
	case held && last != "":
		return last
	}
	return w.Update
}

// ran tells whether there surely was a pod of it.
func (m *Member) ran() bool { return m.Used || m.Once != "" }

// held tells whether the rollout stands still: the user paused it, or it failed.
func (w *World) held() bool {
	return w.Paused || w.Halted != nil && w.Halted.Revision == w.Update && w.Set.Update.OnFailure != jobspecs.FailWait
}

// available tells whether the pod has been ready for min_ready. A pod that is
// stopping is not.
func (w *World) available(s *slot) bool { return s.pod != nil && w.IsAvailable(s.pod) }

// IsAvailable tells whether a pod has been ready for min_ready.
func (w *World) IsAvailable(p *runtime.Pod) bool {
	return p.Phase == runtime.Running && p.Ready && !w.Now.Before(p.ReadySince.Add(w.Set.Update.MinReady))
}

// outdated tells whether the update stage has to replace the pod.
func (w *World) outdated(s *slot) bool {
	u := w.Set.Update
	return s.wanted && s.pod != nil && s.pod.Revision != w.Update &&
		u.Strategy == jobspecs.Rolling && s.ordinal >= u.Partition && !w.held()
}

// due tells whether the update stage has to end the pod: it is outdated, or the
// user asked for a restart in its turn.
func (w *World) due(s *slot) bool {
	return !s.halted && (w.outdated(s) || s.wanted && s.pod != nil && s.ask == AskTurn)
}

// Needed names the renderings that a plan may hand to the engine: of missing
// members what they would be made of, of present ones their own revision, and of those
// whose turn in the update comes the one that they get.
func (w *World) Needed() []Target {
	wanted, condemned := w.slots()
	var out []Target
	for _, s := range append(wanted, condemned...) {
		switch {
		case s.missing() || s.gone() && s.wanted:
			out = append(out, Target{s.ordinal, s.target})
		case !s.gone():
			out = append(out, Target{s.ordinal, s.pod.Revision})
			if w.due(s) && w.outdated(s) {
				out = append(out, Target{s.ordinal, w.Update})
			}
		}
	}
	return out
}

func ordered(w *World) bool { return w.Set.PodManagement != jobspecs.Parallel }
