package pods

import (
	"slices"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

// end: somebody asked for the pod's end. Mains and init containers end first, then
// sidecars in reverse order, then the sandbox, all within one grace.
func (w spot) end() PartPlan {
	p := PartPlan{Phase: runtime.Stopping, Reason: runtime.ReasonStopRequested}
	switch {
	case w.running() && w.turn():
		p = w.finish(p, "its end was asked for", nil)
	case w.running():
		p.Message = "waiting for the end of the others"
		if !w.Order.Began.IsZero() && w.Kind != jobspecs.KindSandbox {
			p.Wake = w.graceOver()
		}
	case w.Hook != "":
		p.CutHook = true
	case w.PodWorld.Phase == runtime.Stopped, w.Doing == nil && !w.Stale: // late news of its end does not take it back
		p.Phase, p.Message = runtime.Stopped, "its end was asked for"
	}
	return p
}

// turn tells whether all have ended that end before it. When the grace is over
// nobody waits any more.
func (w spot) turn() bool {
	if w.Order != nil && !w.Order.Began.IsZero() && !w.Now.Before(w.graceOver()) && w.Kind != jobspecs.KindSandbox {
		return true
	}
	self := slices.IndexFunc(w.Parts, func(p Part) bool { return p.Block == w.Block })
	for i := range w.Parts {
		if e := w.at(i); i != self && e.endsBefore(i, w, self) && e.lingers() {
			return false
		}
	}
	return true
}

// lingers tells whether its container runs, or may before long.
func (w spot) lingers() bool {
	begins := w.Doing != nil && (w.Doing.Verb == Create || w.Doing.Verb == Start)
	return w.running() || begins || w.Stale
}

// endsBefore tells whether the part e, at i, ends before w, at self.
func (e spot) endsBefore(i int, w spot, self int) bool {
	switch rank, other := endRank(e.Kind), endRank(w.Kind); {
	case rank != other:
		return rank < other
	case e.Kind == jobspecs.KindSidecar:
		return i > self
	}
	return false
}

func endRank(kind string) int {
	switch kind {
	case jobspecs.KindSidecar:
		return 1
	case jobspecs.KindSandbox:
		return 2
	}
	return 0
}

// leave: the sandbox that it joined ended, and the whole pod begins again.
func (w spot) leave() PartPlan {
	p := PartPlan{Phase: runtime.Stopping, Reason: runtime.ReasonSandbox, Message: sandboxEnded}
	if !w.turn() {
		return p
	}
	return w.finish(p, sandboxEnded, &Doom{ID: w.Main.ID, Reason: runtime.ReasonSandbox, Message: sandboxEnded})
}

// finish ends a running container: pre_stop, then the signal, then, when the
// grace is over, the kill.
func (w spot) finish(p PartPlan, why string, doom *Doom) PartPlan {
	at := w.killAt()
	switch {
	case w.Hook == PostStart: // it may take for ever
		p.CutHook = true
	case w.Hook == PreStop && w.Now.Before(w.graceOver()):
		p.Reason, p.Message, p.Wake = or(preStopReason(doom), p.Reason), "its pre_stop hook runs", w.graceOver()
		return p
	case w.Hook == PreStop:
		p.CutHook = true
	case w.wantsPreStop():
		p.Hook = PreStop
		p.Reason, p.Message = or(preStopReason(doom), p.Reason), "its pre_stop hook runs"
		return p
	}
	p.Step = &Step{Verb: Stop, ID: w.Main.ID, Why: why, Grace: at.Sub(w.Now), KillAt: at, Doom: doom}
	return p
}

// preStopReason: an end that a probe wanted keeps its own reason.
func preStopReason(doom *Doom) string {
	if doom != nil {
		return ""
	}
	return runtime.ReasonPreStop
}

func (w spot) wantsPreStop() bool {
	return w.Spec != nil && w.lasting() && !w.PreDone && w.Sent.IsZero() && !w.paused() &&
		w.block().PreStop != nil && w.grace() > 0
}

// sum says of the pod what its parts say: of one that ends, whether all have; of
// one that begins, how the part fares that the others wait for; else the worst.
func (w *PodWorld) sum(p *PodPlan) {
	if len(w.Parts) == 0 {
		p.Phase = runtime.Pending
		if w.Order != nil {
			p.Phase, p.Reason, p.Message = runtime.Stopped, runtime.ReasonStopRequested, "its end was asked for"
		}
		return
	}
	i := w.speaker(p.Parts)
	part := &p.Parts[i]
	p.Phase, p.Reason, p.Message, p.Tries, p.Retry = part.Phase, part.Reason, part.Message, part.Tries, part.Retry
	s := w.at(i)
	if p.Message != "" && w.Lost == "" && p.Phase != runtime.Stopped && w.named(s, p.Phase) {
		p.Message = s.Kind + " " + s.Block + ": " + p.Message
	}
}

// named tells whether what a part says has to say whose it is.
func (w *PodWorld) named(s spot, phase runtime.Phase) bool {
	switch s.Kind {
	case jobspecs.KindSandbox:
		return false // it is the pod's own
	case jobspecs.KindInit:
		return phase != runtime.Initializing // there it says so
	}
	return len(w.Parts) > 1 && s.Suffix != ""
}

// speaker is the part that matters most now; among equals the first main, which
// the pod is named after, then the first.
func (w *PodWorld) speaker(parts []PartPlan) int {
	best := -1
	for i := range parts {
		s := w.at(i)
		if w.Order == nil && w.Lost == "" && w.Spec != nil && !w.begun() && !s.passed() {
			return i
		}
		switch {
		case best < 0, severity(&parts[i]) > severity(&parts[best]):
			best = i
		case severity(&parts[i]) == severity(&parts[best]) && weight(&parts[i], s) > weight(&parts[best], w.at(best)):
			best = i
		}
	}
	return best
}

func weight(p *PartPlan, s spot) int {
	n := 0
	if p.Reason != "" {
		n += 4
	}
	if s.Suffix == "" {
		n += 2
	}
	if s.Kind == jobspecs.KindMain {
		n++
	}
	return n
}

func severity(p *PartPlan) int {
	switch p.Phase {
	case runtime.Stopped:
		return 0
	case runtime.Running:
		return 1
	case runtime.Pending:
		if p.Reason != "" {
			return 4
		}
		return 2 // it waits for one that says more
	case runtime.Starting:
		return 3
	case runtime.Initializing:
		return 4
	case runtime.Pulling:
		return 5
	case runtime.Stopping:
		return 6
	case runtime.Backoff:
		return 7
	case runtime.Failed:
		return 8
	}
	return 9
}
