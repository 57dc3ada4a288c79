package pods

import (
	"fmt"
	"strings"
	"time"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

// Verb is one call of the host.
type Verb string

// The verbs. Look is Inspect, Resolve is Image.
const (
	Look    Verb = "look at"
	Resolve Verb = "resolve"
	Pull    Verb = "pull"
	Create  Verb = "create"
	Start   Verb = "start"
	Stop    Verb = "stop"
	Remove  Verb = "remove"
	Rename  Verb = "rename"
)

// both is the part of a Look that means the main and the previous container.
const both = "both"

// Step is one thing to do now.
type Step struct {
	Verb Verb
	Part string // "": the main container; jobspecs.PartPrevious; both
	Why  string

	ID     string        // of the container; empty where it is made, or found by name
	Name   string        // Rename: the new name
	Grace  time.Duration // Stop
	KillAt time.Time     // Stop: when Grace is over
	Doom   *Doom         // Stop: what it is followed by a restart for
}

func (s Step) doom() *Doom {
	d := *s.Doom
	return &d
}

// PodPlan is what Next decided.
type PodPlan struct {
	Phase   runtime.Phase
	Reason  string
	Message string
	Tries   int

	Step   *Step     // nil: nothing to do now
	Cancel bool      // the step that is being taken has lost its purpose
	Checks []Kind    // to send now
	Wake   time.Time // when to decide again although nothing happened; zero: never
}

// String is the plan as tests and people read it.
func (p PodPlan) String() string {
	var b strings.Builder
	b.WriteString(string(p.Phase))
	if p.Reason != "" {
		b.WriteString(" (" + p.Reason + ")")
	}
	if p.Step != nil {
		part := "main"
		if p.Step.Part != "" {
			part = p.Step.Part
		}
		fmt.Fprintf(&b, ": %s %s (%s)", p.Step.Verb, part, p.Step.Why)
	}
	if p.Cancel {
		b.WriteString(": cancel")
	}
	for _, k := range p.Checks {
		b.WriteString("; check " + string(k))
	}
	return b.String()
}

// Next decides what to do with a pod now. The stages stand in the order in which
// they matter; the first that has something to say says it.
func Next(w PodWorld) PodPlan {
	if w.Offline {
		return PodPlan{Phase: w.Phase, Cancel: w.Doing != nil}
	}
	p := w.decide()
	p = w.lookFirst(p)
	p = w.explained(p)
	p = w.heldBack(p)
	if w.Doing != nil {
		p.Cancel = w.obsolete(p.Step)
		p.Step = nil
	}
	if !w.running() || w.Spec == nil {
		return p
	}
	var wake time.Time
	p.Checks, wake = w.Probes.due(w.Now, w.Probes.kinds(w.Order != nil || w.Doom != nil, w.paused()))
	p.Wake = first(p.Wake, wake)
	return p
}

func (w *PodWorld) decide() PodPlan {
	switch {
	case w.Previous != nil && w.Previous.Running():
		return w.fence()
	case w.Order != nil:
		return w.end()
	case w.Lost != "":
		return PodPlan{Phase: runtime.Stopped, Reason: w.Lost, Message: lostMessage(w.Lost)}
	case w.Spec == nil:
		return w.unmanaged()
	case w.Main == nil:
		return w.make()
	case w.running():
		return w.live()
	case w.Main.State == "created":
		return w.start()
	}
	return w.restart()
}

func lostMessage(reason string) string {
	if reason == runtime.ReasonRemoved {
		return "its container was removed"
	}
	return "it was not running when the engine was connected"
}

// end: somebody asked for the pod's end.
func (w *PodWorld) end() PodPlan {
	p := PodPlan{Phase: runtime.Stopping, Reason: runtime.ReasonStopRequested}
	switch {
	case w.running():
		p.Step = &Step{Verb: Stop, ID: w.Main.ID, Why: "its end was asked for", KillAt: w.Order.killAt(w.Now)}
		p.Step.Grace = p.Step.KillAt.Sub(w.Now)
	case w.Phase == runtime.Stopped, w.Doing == nil && !w.Stale: // late news of its end does not take it back
		p.Phase, p.Message = runtime.Stopped, "its end was asked for"
	}
	return p
}

// unmanaged: without a spec a pod is left alone. One that dies before its spec
// was handed over is the planner's, as if it had been found dead.
func (w *PodWorld) unmanaged() PodPlan {
	if w.running() || w.Stale || w.Doing != nil {
		return w.paint(PodPlan{Phase: runtime.Running})
	}
	return PodPlan{Phase: runtime.Stopped, Reason: runtime.ReasonEngineRestarted, Message: lostMessage(runtime.ReasonEngineRestarted)}
}

// fence: a kept container was started by somebody's hand. Two must never run.
func (w *PodWorld) fence() PodPlan {
	grace := 30 * time.Second
	switch {
	case w.Order != nil:
		grace = w.Order.Grace
	case w.Spec != nil:
		grace = w.Spec.TerminationGrace
	}
	p := PodPlan{
		Phase: runtime.Pending, Reason: runtime.ReasonWaitingForFence,
		Message: "container " + w.Previous.Name + " was started by hand and is being stopped",
		Step: &Step{Verb: Stop, Part: jobspecs.PartPrevious, ID: w.Previous.ID, Why: "it runs beside the pod",
			Grace: grace, KillAt: w.Now.Add(grace)},
	}
	switch {
	case w.Order != nil, w.Lost != "":
		p.Phase = runtime.Stopping
	case w.Spec == nil && w.running():
		p.Phase = runtime.Running
	}
	return p
}

// make: there is no container. One that ended shortly before holds it back.
func (w *PodWorld) make() PodPlan {
	main := w.main()
	if past := w.past(); past != nil {
		until := w.EndedAt.Add(restartDelay(main.Restart, streakOf(past, main.Restart)))
		if w.Now.Before(until) {
			return w.backoff(past, until)
		}
	}
	switch {
	case main.Pull == jobspecs.PullAlways && main.ImageID == "" && !w.Pulled:
		return w.pull("pull is always")
	case w.Absent && w.Image == nil:
		return w.pull("the image is not here")
	case w.Image == nil:
		return PodPlan{Phase: runtime.Pending, Step: &Step{Verb: Resolve, Why: "what " + main.Image + " means now"}}
	}
	return PodPlan{Phase: runtime.Starting, Step: &Step{Verb: Create, Why: "there is none"}}
}

func (w *PodWorld) pull(why string) PodPlan {
	return PodPlan{Phase: runtime.Pulling, Message: w.Said, Step: &Step{Verb: Pull, Why: why}}
}

// start: a container was made and has not run. One that is not known to be whole
// is made again.
func (w *PodWorld) start() PodPlan {
	p := PodPlan{Phase: runtime.Starting}
	if w.Made == w.Main.ID {
		p.Step = &Step{Verb: Start, ID: w.Main.ID, Why: "it was made"}
		return p
	}
	p.Step = &Step{Verb: Remove, ID: w.Main.ID, Why: "it was made and could not be started"}
	return p
}

// live: the container runs.
func (w *PodWorld) live() PodPlan {
	if doom := w.doomed(); doom != nil {
		at := doom.Order.killAt(w.Now)
		return PodPlan{
			Phase: runtime.Stopping, Reason: doom.Reason, Message: doom.Message,
			Step: &Step{Verb: Stop, ID: w.Main.ID, Why: doom.Message, Grace: at.Sub(w.Now), KillAt: at, Doom: doom},
		}
	}
	p := PodPlan{Phase: runtime.Running}
	if w.Probes.ID == "" && w.needsHealth() {
		p.Step = &Step{Verb: Resolve, ID: w.Main.ImageID, Why: "whether the image has a HEALTHCHECK"}
	}
	return w.paint(p)
}

// doomed is the end that a probe wants. Once begun it is not taken back.
func (w *PodWorld) doomed() *Doom {
	order := Order{Grace: w.Spec.TerminationGrace}
	switch {
	case w.Doom != nil && w.Doom.ID == w.Main.ID:
		return w.Doom
	case w.paused() || w.Probes.ID == "":
		return nil
	case w.Probes.gaveUp(w.Now):
		return &Doom{ID: w.Main.ID, Reason: runtime.ReasonStartup, Message: "startup probe gave up: " + w.Probes.Startup.Said, Order: order}
	case w.Probes.Liveness.On && w.Probes.Liveness.lost():
		return &Doom{ID: w.Main.ID, Reason: runtime.ReasonLiveness, Message: "liveness probe failed: " + w.Probes.Liveness.Said, Order: order}
	}
	return nil
}

// paint says how a running container fares.
func (w *PodWorld) paint(p PodPlan) PodPlan {
	pr := &w.Probes
	switch {
	case w.paused():
		p.Reason, p.Message = runtime.ReasonPaused, "its container was paused by hand"
	case pr.ID == "":
	case !pr.Started && !pr.TakenOver:
		p.Phase, p.Reason, p.Message = runtime.Starting, runtime.ReasonStartupPending, saying(Startup, pr.Startup.Said)
	case !pr.Started:
		p.Message = saying(Startup, pr.Startup.Said)
	case !pr.Ready && pr.Known:
		p.Reason, p.Message = runtime.ReasonNotReady, saying(Readiness, pr.Readiness.Said)
	}
	return p
}

func saying(k Kind, said string) string {
	if said == "" {
		return string(k) + " probe has not answered yet"
	}
	return string(k) + " " + said
}

// restart: the container ended. A fresh one takes its place.
func (w *PodWorld) restart() PodPlan {
	until := w.EndedAt.Add(restartDelay(w.main().Restart, streakOf(w.Main, w.main().Restart)))
	p := w.backoff(w.Main, until)
	switch {
	case w.Now.Before(until):
	case w.Main.State != "exited":
		p.Step = &Step{Verb: Remove, ID: w.Main.ID, Why: "it is " + w.Main.State}
	case w.Trouble[tidying].Verb == Rename && w.Trouble[tidying].Reason == runtime.ReasonNameTaken: // its output matters less than its restart
		p.Step = &Step{Verb: Remove, ID: w.Main.ID, Why: "it cannot be kept"}
	case w.Previous != nil:
		p.Step = &Step{Verb: Remove, Part: jobspecs.PartPrevious, ID: w.Previous.ID, Why: "a later one is kept"}
	default:
		p.Step = &Step{Verb: Rename, ID: w.Main.ID, Name: w.containerName(jobspecs.PartPrevious), Why: "kept for its output"}
	}
	return p
}

// backoff: c ended, and its successor waits.
func (w *PodWorld) backoff(c *Container, until time.Time) PodPlan {
	p := PodPlan{Phase: runtime.Backoff, Tries: streakOf(c, w.main().Restart) + 1}
	p.Reason, p.Message = lastWords(c)
	if w.Doom != nil && w.Doom.ID == c.ID {
		p.Reason, p.Message = w.Doom.Reason, w.Doom.Message
	}
	if w.Now.Before(until) {
		p.Wake = until
	}
	return p
}

// lastWords is how c ended.
func lastWords(c *Container) (reason, message string) {
	switch {
	case c.OOMKilled:
		return runtime.ReasonOOMKilled, "it ran out of memory"
	case signal(c.ExitCode) != "":
		return runtime.ReasonExited, fmt.Sprintf("it ended by %s (exit code %d)", signal(c.ExitCode), c.ExitCode)
	}
	return runtime.ReasonExited, fmt.Sprintf("it ended with exit code %d", c.ExitCode)
}

// lookFirst lets nothing be done on old knowledge, but what is right whatever
// happened: the start of a container that was just made, and a first stop.
func (w *PodWorld) lookFirst(p PodPlan) PodPlan {
	if p.Step != nil && (p.Step.Verb == Start || p.Step.Verb == Stop && w.Order != nil && w.Order.Sent.IsZero()) {
		return p
	}
	s := Step{Verb: Look, Why: "something happened to it"}
	switch {
	case w.Stale && w.StalePrev:
		s.Part = both
	case w.StalePrev:
		s.Part = jobspecs.PartPrevious
	case !w.Stale:
		return p
	}
	if w.Main != nil {
		s.ID = w.Main.ID
	}
	p.Step = &s
	return p
}

// explained shows the failures that keep the pod from where it is going.
func (w *PodWorld) explained(p PodPlan) PodPlan {
	show := func(phase runtime.Phase, t *Trouble) PodPlan {
		p.Phase, p.Reason, p.Message, p.Tries = phase, t.Reason, t.Message, t.Tries
		return p
	}
	make, tidy, end := &w.Trouble[making], &w.Trouble[tidying], &w.Trouble[ending]
	switch p.Phase {
	case runtime.Stopping:
		if end.Tries > 0 {
			p.Message, p.Tries = end.Message, end.Tries
		}
	case runtime.Pending, runtime.Pulling, runtime.Starting, runtime.Backoff:
		switch {
		case w.running():
		case w.Doing != nil && w.Doing.Verb == Pull && w.Said != "":
		case make.Tries > 0 && make.Reason == runtime.ReasonWaitingForFence:
			return show(runtime.Pending, make)
		case make.Tries > 0:
			return show(runtime.Failed, make)
		case tidy.Tries > 0:
			return show(runtime.Failed, tidy)
		}
	}
	return p
}

// heldBack lets a step that failed wait for its next try.
func (w *PodWorld) heldBack(p PodPlan) PodPlan {
	if p.Step == nil {
		return p
	}
	t := &w.Trouble[troubleOf(p.Step.Verb)]
	if t.Tries == 0 || !w.Now.Before(t.until()) {
		return p
	}
	p.Step, p.Wake = nil, first(p.Wake, t.until())
	return p
}

// obsolete tells whether the step that is being taken should be cut short: an
// image that nobody waits for, a stop that should be quicker. Others end by
// themselves, and soon; cut short, they might take effect unseen.
func (w *PodWorld) obsolete(wanted *Step) bool {
	switch w.Doing.Verb {
	case Pull, Resolve:
		return w.Order != nil
	case Stop:
		return wanted != nil && wanted.Verb == Stop && wanted.Part == w.Doing.Part && wanted.KillAt.Before(w.Doing.KillAt)
	}
	return false
}
