package planner

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

// Next says what may be done now. It is called again after every action and
// every change of the world; nothing is remembered between two calls.
func Next(w World) Plan {
	var p Plan
	wanted, condemned := w.slots()
	busy := w.fill(&p, wanted)
	busy = w.asked(&p, wanted) || busy
	if !busy {
		busy = w.shrink(&p, wanted, condemned)
	}
	if !busy {
		w.update(&p, wanted)
	}
	w.reclaim(&p)
	w.facts(&p, wanted, condemned)
	w.join(&p, wanted)
	w.deadline(&p, wanted)
	w.introduce(&p)
	p.settle()
	return p
}

// introduce hands over the spec of a pod that is to be stopped and whose hooks nobody
// knows since the daemon was restarted; it is stopped in the next turn.
func (w *World) introduce(p *Plan) {
	strangers := map[int]Target{}
	for i := range w.Pods {
		pod := &w.Pods[i]
		own := Target{pod.Ordinal, pod.Revision}
		if r, ok := w.Specs[own]; ok && r.Err == nil && !pod.Managed && !pod.Gone() && pod.Phase != runtime.Stopping {
			strangers[own.Ordinal] = own
		}
	}
	if len(strangers) == 0 {
		return
	}
	p.Actions = slices.DeleteFunc(p.Actions, func(a Action) bool {
		own, ok := strangers[a.Ordinal]
		return ok && (a.Op == Stop || a.Op == Refresh && a.Target == own.Revision)
	})
	for _, own := range strangers {
		p.act(Action{Op: Refresh, Ordinal: own.Ordinal, Member: w.member(own.Ordinal), Target: own.Revision, Why: takenOver})
	}
}

// takenOver is why a pod gets its spec after a restart of the daemon.
const takenOver = "taken over after a restart"

// settle drops what the plan makes pointless (a new rendering for a pod that is
// stopped) and gives the actions one order, by ordinal.
func (p *Plan) settle() {
	stopped := map[int]bool{}
	for _, a := range p.Actions {
		stopped[a.Ordinal] = stopped[a.Ordinal] || a.Op == Stop
	}
	p.Actions = slices.DeleteFunc(p.Actions, func(a Action) bool { return a.Op == Refresh && stopped[a.Ordinal] })
	sort.SliceStable(p.Actions, func(i, j int) bool { return p.Actions[i].Ordinal < p.Actions[j].Ordinal })
}

// facts says what the plan tells beside its actions.
func (w *World) facts(p *Plan, wanted, condemned []*slot) {
	ready, updated := 0, 0
	present := 0 // the user stopped the others
	for _, s := range wanted {
		if !s.halted {
			present++
		}
		if s.pod == nil || s.halted {
			continue
		}
		if s.pod.Ready && s.pod.Phase == runtime.Running {
			ready++
			if open := s.pod.ReadySince.Add(w.Set.Update.MinReady); w.Now.Before(open) {
				p.wakeAt(open)
			}
		}
		if s.pod.Revision == w.Update && w.available(s) {
			updated++
		}
	}
	all := w.Deleting == nil && len(condemned) == 0
	p.Formed = all && ready == len(wanted) && ready > 0
	p.Complete = all && updated == present && (present > 0 || len(wanted) == 0)
	p.Gone = w.Deleting != nil && len(condemned) == 0 && !p.has(DeleteVolume) && !p.has(Forget)
}

func (p *Plan) has(op Op) bool {
	for _, a := range p.Actions {
		if a.Op == op {
			return true
		}
	}
	return false
}

// String is the plan in one line, for logs and tests.
func (p Plan) String() string {
	var parts []string
	for _, a := range p.Actions {
		parts = append(parts, a.String())
	}
	return strings.Join(parts, ", ")
}

// describe says what keeps a member from being available.
func (w *World) describe(s *slot) string {
	p := s.pod
	switch {
	case p == nil:
		return "not created yet"
	case w.disconnected(s) && w.unreachable(s):
		return w.disconnection(s)
	case p.Phase == runtime.Running && p.Ready:
		return fmt.Sprintf("ready for %s of min_ready %s", round(w.Now.Sub(p.ReadySince)), w.Set.Update.MinReady)
	}
	text := strings.ToLower(string(p.Phase))
	if p.Phase == runtime.Running {
		text = "not ready"
	}
	if p.Message != "" {
		return text + ": " + p.Message
	}
	if p.Reason != "" && p.Reason != runtime.ReasonNotReady && p.Reason != runtime.ReasonStopRequested {
		return text + ": " + p.Reason
	}
	return text
}

// sinceOf is when a member came into the state it is in.
func (w *World) sinceOf(s *slot) time.Time {
	if s.pod == nil || s.pod.Since.IsZero() {
		return w.Now
	}
	return s.pod.Since
}

func round(d time.Duration) time.Duration { return max(d, 0).Truncate(100 * time.Millisecond) }

// Verdict is what has to become of one slot in the end.
type Verdict struct {
	Member  string
	Ordinal int
	Op      string // jobspecs.OpCreate, OpKeep, OpReplace, OpStop, OpRemove
	Why     string
}

// Classify gives the verdict of every slot in the order in which Next would
// come to them: what is kept, what is made (ascending), what is ended
// (descending), what is replaced (descending).
func Classify(w World) []Verdict {
	wanted, condemned := w.slots()
	var kept, made, ended_, replaced []Verdict
	for _, s := range wanted {
		v := Verdict{Member: s.name, Ordinal: s.ordinal}
		switch {
		case s.halted && s.missing():
			v.Op, v.Why = jobspecs.OpKeep, "stopped by the user"
			kept = append(kept, v)
		case s.missing():
			v.Op, v.Why = jobspecs.OpCreate, w.whyMissing(s)
			if lost := w.lostVolume(s); lost != "" {
				v.Why = heldBack(lost)
			}
			made = append(made, v)
		case s.gone():
			v.Op, v.Why = jobspecs.OpCreate, "ended: "+ended(s.pod)
			if lost := w.lostVolume(s); lost != "" {
				v.Why = heldBack(lost)
			}
			made = append(made, v)
		case s.halted && s.stopping():
			v.Op, v.Why = jobspecs.OpKeep, "stopped by the user"
			kept = append(kept, v)
		case s.halted:
			v.Op, v.Why = jobspecs.OpStop, "stopped by the user"
			ended_ = append(ended_, v)
		case s.ask == AskFresh:
			v.Op, v.Why = jobspecs.OpReplace, "with fresh volumes"
			replaced = append([]Verdict{v}, replaced...)
		case s.ask == AskNow && !w.outdated(s):
			v.Op, v.Why = jobspecs.OpRestart, "its restart was asked for"
			replaced = append([]Verdict{v}, replaced...)
		case w.due(s):
			v.Op, v.Why = jobspecs.OpReplace, "outdated"
			if !w.outdated(s) {
				v.Op, v.Why = jobspecs.OpRestart, "its restart was asked for"
			}
			replaced = append([]Verdict{v}, replaced...)
		default:
			v.Op, v.Why = jobspecs.OpKeep, w.whyKept(s)
			kept = append(kept, v)
		}
	}
	for _, s := range condemned {
		v := Verdict{Member: s.name, Ordinal: s.ordinal, Op: jobspecs.OpStop, Why: w.whyCondemned()}
		if s.gone() {
			v.Op = jobspecs.OpRemove
		}
		ended_ = append(ended_, v)
	}
	out := append(kept, made...)
	out = append(out, ended_...)
	return append(out, replaced...)
}

func heldBack(lost string) string { return "held back: volume " + lost + " held data and is gone" }

func (w *World) whyKept(s *slot) string {
	if s.pod.Revision == w.Update {
		return "up to date"
	}
	switch {
	case w.Paused:
		return "outdated, rollout paused"
	case w.Set.Update.Strategy == jobspecs.OnDelete:
		return "outdated, replaced when it is removed (on_delete)"
	}
	return fmt.Sprintf("outdated, below partition %d", w.Set.Update.Partition)
}

// Steps turns the verdicts into the steps that a person reads, volumes
// included, and marks those that would happen now.
func Steps(w World) []jobspecs.Step {
	next := Next(w)
	doomed := w.reclaimSteps()
	var out []jobspecs.Step
	for _, v := range Classify(w) {
		if v.Op == jobspecs.OpCreate {
			out = append(out, w.volumeSteps(v, next)...)
		}
		out = append(out, jobspecs.Step{Op: v.Op, Member: v.Member, Why: v.Why, Now: next.touches(v.Member)})
		out = append(out, doomed[v.Member]...)
		delete(doomed, v.Member)
	}
	for _, member := range sortedNames(doomed) {
		out = append(out, doomed[member]...)
	}
	return out
}

func (p *Plan) touches(member string) bool {
	for _, a := range p.Actions {
		if a.Member == member && a.Op != Refresh && a.Op != Forget {
			return true
		}
	}
	return false
}

// volumeSteps are the volumes that a member to be made needs. One that is lost
// gives no step: it is not made anew.
func (w *World) volumeSteps(v Verdict, next Plan) []jobspecs.Step {
	var out []jobspecs.Step
	for _, spec := range w.Specs[Target{v.Ordinal, w.target(v.Ordinal)}].Spec.Volumes {
		step := jobspecs.Step{Op: jobspecs.OpCreateVolume, Member: v.Member, Volume: spec.Name, Why: "needed by " + v.Member}
		if _, exists := w.Volumes[spec.Name]; exists {
			step.Op, step.Why = jobspecs.OpKeepVolume, "bound again"
		}
		step.Now = slices.ContainsFunc(next.Actions, func(a Action) bool { return a.Op == CreateVolume && a.Volume == spec.Name })
		if !w.isLost(spec.Name) {
			out = append(out, step)
		}
	}
	return out
}

// isLost tells whether a volume held data and is gone.
func (w *World) isLost(name string) bool {
	_, exists := w.Volumes[name]
	r := w.Records[name]
	return !exists && r.Used && !r.Deleting
}

// reclaimSteps are the volumes, by member, that will go once their pods are gone:
// what reclaim decides in a world without the condemned pods.
func (w *World) reclaimSteps() map[string][]jobspecs.Step {
	after := *w
	after.Pods = nil
	for _, p := range w.Pods {
		if w.Deleting == nil && w.Fits(p.Ordinal) {
			after.Pods = append(after.Pods, p)
		}
	}
	var p Plan
	after.reclaim(&p)
	out := map[string][]jobspecs.Step{}
	for _, a := range p.Actions {
		if a.Op == DeleteVolume {
			out[a.Member] = append(out[a.Member], jobspecs.Step{Op: jobspecs.OpDeleteVolume, Member: a.Member, Volume: a.Volume, Why: a.Why})
		}
	}
	return out
}
