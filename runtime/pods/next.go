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
	Recall  Verb = "give its name back to" // a Rename too, of one that somebody renamed
)

// both is the Which of a Look that means the main and the previous container.
const both = "both"

// Step is one thing to do now with a container of a part.
type Step struct {
	Verb  Verb
	Which string // "": the one that counts; jobspecs.PartPrevious; both
	Why   string

	ID     string        // of the container; empty where it is made, or found by name
	Name   string        // Rename, Recall: the new name
	Joins  string        // Create: the generation that it joins; empty: none
	Grace  time.Duration // Stop
	KillAt time.Time     // Stop: when Grace is over
	Run    time.Time     // Stop of one that runs beside the part's own: when this run of it began
	Doom   *Doom         // Stop: what it is followed by a restart for; nil: it is not
}

// PartPlan is what was decided for one part.
type PartPlan struct {
	Phase   runtime.Phase
	Reason  string
	Message string
	Tries   int

	Step    *Step     // nil: nothing to do now
	Cancel  bool      // the step that is being taken has lost its purpose
	Checks  []Kind    // to send now
	Hook    string    // to send now: PostStart, PreStop
	CutHook bool      // the hook that runs has lost its purpose
	Wake    time.Time // when to decide again although nothing happened; zero: never
	Retry   time.Time // when what failed, or ended, is tried again; zero: it does not wait
}

// PodPlan is what Next decided.
type PodPlan struct {
	Phase   runtime.Phase
	Reason  string
	Message string
	Tries   int
	Parts   []PartPlan // as PodWorld.Parts
	Wake    time.Time
	Retry   time.Time

	names []string // of the parts, for String
}

// String is the plan as tests and people read it: how the pod is, and what is
// done. The parts of a pod of several are named.
func (p PodPlan) String() string {
	var b strings.Builder
	b.WriteString(state(p.Phase, p.Reason))
	for i, part := range p.Parts {
		prefix := ""
		if len(p.Parts) > 1 {
			prefix = p.names[i] + " "
		}
		if s := part.Step; s != nil {
			fmt.Fprintf(&b, ": %s%s %s (%s)", prefix, s.Verb, or(s.Which, "main"), s.Why)
		}
		if part.Cancel {
			b.WriteString(": " + prefix + "cancel")
		}
		if part.Hook != "" {
			b.WriteString("; " + prefix + "hook " + part.Hook)
		}
		if part.CutHook {
			b.WriteString("; " + prefix + "cut its hook")
		}
		for _, k := range part.Checks {
			b.WriteString("; " + prefix + "check " + string(k))
		}
	}
	return b.String()
}

func state(phase runtime.Phase, reason string) string {
	if reason == "" {
		return string(phase)
	}
	return string(phase) + " (" + reason + ")"
}

// Next decides what to do with a pod now: for every part the stages stand in the
// order in which they matter, and the first that has something to say says it.
func Next(w PodWorld) PodPlan {
	n := len(w.Parts)
	p := PodPlan{Phase: w.Phase, Parts: make([]PartPlan, 0, n), names: make([]string, 0, n)}
	for i := range w.Parts {
		s := w.at(i)
		p.Parts = append(p.Parts, s.next())
		p.names = append(p.names, s.Block)
		p.Wake = first(p.Wake, p.Parts[i].Wake)
	}
	if !w.Offline {
		w.sum(&p)
	}
	return p
}

func (w spot) next() PartPlan {
	if w.Offline {
		return PartPlan{Cancel: w.Doing != nil}
	}
	p := w.decide()
	p = w.recalled(p)
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
	p.Checks, wake = w.Probes.due(w.Now, w.Probes.kinds(w.Order != nil || w.Doom != nil || !w.EndBegan.IsZero(), w.paused()))
	p.Wake = first(p.Wake, wake)
	return p
}

func (w spot) decide() PartPlan {
	switch {
	case w.besides() != nil:
		return w.fence()
	case w.Order != nil:
		return w.end()
	case w.Lost != "":
		return PartPlan{Phase: runtime.Stopped, Reason: w.Lost, Message: lostMessage(w.Lost)}
	case w.Spec == nil:
		return w.unmanaged()
	case w.running() && !w.current():
		return w.leave()
	case w.running() && w.Kind == jobspecs.KindInit && w.begun():
		return w.repeated()
	case w.over() && !w.running():
		return w.finished()
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

// recalled: somebody renamed its container. It gets its name back when there is
// nothing else to do; while that does not work it says so.
func (w spot) recalled(p PartPlan) PartPlan {
	ends := w.Order != nil || p.Phase == runtime.Stopping
	if w.Spec == nil || ends || p.Step != nil || w.Main == nil || !w.running() && !w.over() || w.Main.Name == w.containerName() {
		return p
	}
	p.Step = &Step{Verb: Recall, ID: w.Main.ID, Name: w.containerName(), Why: "it was renamed by hand"}
	if t := &w.Trouble[naming]; t.Tries > 0 && p.Phase == runtime.Running && p.Reason == "" {
		p.Reason, p.Tries = runtime.ReasonRenamed, t.Tries
		p.Message = fmt.Sprintf("its container was renamed to %s and does not get its name back: %s", w.Main.Name, t.Message)
	}
	return p
}

// finished: an init container ended well, and stays for its output.
func (w spot) finished() PartPlan { return PartPlan{Phase: runtime.Running, Message: "it ended well"} }

// unmanaged: without a spec a pod is left alone. One that dies before its spec
// was handed over is the planner's, as if it had been found dead.
func (w spot) unmanaged() PartPlan {
	if w.alive() || w.Stale || w.Doing != nil {
		return w.paint(PartPlan{Phase: runtime.Running})
	}
	return PartPlan{Phase: runtime.Stopped, Reason: runtime.ReasonEngineRestarted, Message: lostMessage(runtime.ReasonEngineRestarted)}
}

// fence: a kept container was started by somebody's hand, or another one made. Two
// must never run.
func (w spot) fence() PartPlan {
	grace, c := w.grace(), w.besides()
	p := PartPlan{
		Phase: runtime.Pending, Reason: runtime.ReasonWaitingForFence,
		Message: "container " + c.Name + " was started by hand and is being stopped",
		Step: &Step{Verb: Stop, Which: jobspecs.PartPrevious, ID: c.ID, Why: "it runs beside the pod",
			Grace: grace, KillAt: w.Now.Add(grace), Run: c.StartedAt},
	}
	switch {
	case w.Order != nil, w.Lost != "":
		p.Phase = runtime.Stopping
	case w.Spec == nil && w.running():
		p.Phase = runtime.Running
	}
	return p
}

// repeated: somebody started an init container again, beside the mains that it was
// to prepare for.
func (w spot) repeated() PartPlan {
	why := "init " + w.Block + " was started by hand beside the mains and is being stopped"
	p := w.finish(PartPlan{}, why, nil)
	p.Phase, p.Reason, p.Message = runtime.Running, runtime.ReasonWaitingForFence, why
	return p
}

// make: there is no container. One that ended shortly before holds it back, and
// so does what has to begin before it.
func (w spot) make() PartPlan {
	block := w.block()
	if past := w.past(); past != nil {
		until := w.EndedAt.Add(restartDelay(block.Restart, streakOf(past, block.Restart)))
		if w.Now.Before(until) {
			return w.backoff(past, until)
		}
	}
	switch {
	case block.Pull == jobspecs.PullAlways && block.ImageID == "" && !w.Pulled:
		return w.pull("pull is always")
	case w.Absent && w.Image == nil:
		return w.pull("the image is not here")
	case w.Image == nil:
		return PartPlan{Phase: runtime.Pending, Step: &Step{Verb: Resolve, Why: "what " + block.Image + " means now"}}
	}
	if what := w.gate(); what != "" {
		return PartPlan{Phase: runtime.Pending, Message: "waiting for " + what}
	}
	joins := w.generation()
	if joins == noSandbox || w.Kind == jobspecs.KindSandbox {
		joins = ""
	}
	return PartPlan{Phase: runtime.Starting, Step: &Step{Verb: Create, Why: "there is none", Joins: joins}}
}

// gate is what the part has to wait for before its container is made; "" nothing.
func (w spot) gate() string {
	if w.Kind == jobspecs.KindSandbox {
		return w.oldOnes()
	}
	if w.generation() == "" {
		return "its sandbox"
	}
	for i := range w.Parts {
		e := w.at(i)
		switch {
		case e.Block == w.Block:
			return ""
		case !w.begun() && !e.passed():
			return e.Kind + " " + e.Block
		case e.Kind == jobspecs.KindMain && e.starting():
			return "the start of " + e.Block
		}
	}
	return ""
}

// oldOnes are the containers that joined a sandbox that ended: there is no new one
// while any of them runs.
func (w spot) oldOnes() string {
	for i := range w.Parts {
		if e := w.at(i); e.Kind != jobspecs.KindSandbox && e.running() && !e.current() {
			return "the end of " + e.Block
		}
	}
	return ""
}

// starting tells whether a main is on its way from its image to the end of its
// post_start hook: the next one waits for that, as at a kubelet. One that fails, or
// waits for its restart, holds up nobody.
func (w spot) starting() bool {
	switch {
	case w.running():
		return w.current() && !w.posted()
	case w.Main != nil && w.Main.State != "created", w.Trouble[making].Tries > 0:
		return false
	}
	past := w.past()
	return past == nil || past == w.Main || !w.Now.Before(w.EndedAt.Add(restartDelay(w.block().Restart, streakOf(past, w.block().Restart))))
}

func (w spot) pull(why string) PartPlan {
	return PartPlan{Phase: runtime.Pulling, Message: w.Said, Step: &Step{Verb: Pull, Why: why}}
}

// start: a container was made and has not run. One that is not known to be whole
// is made again.
func (w spot) start() PartPlan {
	p := PartPlan{Phase: runtime.Starting}
	if w.Made == w.Main.ID && w.current() {
		p.Step = &Step{Verb: Start, ID: w.Main.ID, Why: "it was made"}
		return p
	}
	p.Step = &Step{Verb: Remove, ID: w.Main.ID, Why: "it was made and could not be started"}
	return p
}

// live: the container runs.
func (w spot) live() PartPlan {
	if doom := w.doomed(); doom != nil {
		return w.finish(PartPlan{Phase: runtime.Stopping, Reason: doom.Reason, Message: doom.Message}, doom.Message, doom)
	}
	switch {
	case w.Kind == jobspecs.KindInit:
		return PartPlan{Phase: runtime.Initializing, Reason: runtime.ReasonInitRunning, Message: "init " + w.Block + " runs", Wake: w.slowAt()}
	case w.Kind == jobspecs.KindSandbox:
		return PartPlan{Phase: runtime.Running}
	case !w.posted():
		return w.postStart()
	}
	p := PartPlan{Phase: runtime.Running}
	if w.Probes.ID == "" && w.needsHealth() {
		p.Step = &Step{Verb: Resolve, ID: w.Main.ImageID, Why: "whether the image has a HEALTHCHECK"}
	}
	return w.paint(p)
}

// postStart: nothing is asked of a container before its hook is over.
func (w spot) postStart() PartPlan {
	p := PartPlan{Phase: runtime.Starting, Reason: runtime.ReasonPostStart, Message: "its post_start hook runs", Wake: w.slowAt()}
	if w.Hook == "" && !w.paused() {
		p.Hook, p.Wake = PostStart, w.Now.Add(slowAfter)
	}
	return p
}

// doomed is the end that a probe or a hook wants. Once begun it is not taken back.
func (w spot) doomed() *Doom {
	pr := &w.Probes
	switch {
	case w.Doom != nil && w.Doom.ID == w.Main.ID:
		return w.Doom
	case w.paused() || pr.ID == "":
		return nil
	case pr.gaveUp(w.Now):
		return &Doom{ID: w.Main.ID, Reason: runtime.ReasonStartup, Message: "startup probe gave up: " + pr.Startup.Said}
	case pr.Liveness.On && pr.Liveness.lost():
		return &Doom{ID: w.Main.ID, Reason: runtime.ReasonLiveness, Message: "liveness probe failed: " + pr.Liveness.Said}
	}
	return nil
}

// paint says how a running container fares.
func (w spot) paint(p PartPlan) PartPlan {
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
func (w spot) restart() PartPlan {
	until := w.EndedAt.Add(restartDelay(w.block().Restart, streakOf(w.Main, w.block().Restart)))
	p := w.backoff(w.Main, until)
	switch {
	case w.Now.Before(until):
	case w.Kind == jobspecs.KindSandbox:
		p.Step = &Step{Verb: Remove, ID: w.Main.ID, Why: "it ended"}
	case w.Main.State != "exited":
		p.Step = &Step{Verb: Remove, ID: w.Main.ID, Why: "it is " + w.Main.State}
	case w.Trouble[tidying].Verb == Rename && w.Trouble[tidying].Reason == runtime.ReasonNameTaken: // its output matters less than its restart
		p.Step = &Step{Verb: Remove, ID: w.Main.ID, Why: "it cannot be kept"}
	case w.Previous != nil:
		p.Step = &Step{Verb: Remove, Which: jobspecs.PartPrevious, ID: w.Previous.ID, Why: "a later one is kept"}
	default:
		p.Step = &Step{Verb: Rename, ID: w.Main.ID, Name: w.previousName(), Why: "kept for its output"}
	}
	return p
}

// backoff: c ended, and its successor waits.
func (w spot) backoff(c *Container, until time.Time) PartPlan {
	p := PartPlan{Phase: runtime.Backoff, Tries: streakOf(c, w.block().Restart) + 1}
	p.Reason, p.Message = lastWords(c)
	switch {
	case w.Doom != nil && w.Doom.ID == c.ID:
		p.Reason, p.Message = w.Doom.Reason, w.Doom.Message
	case w.Kind == jobspecs.KindSandbox, c.Labels[jobspecs.LabelSandbox] != "" && c.Labels[jobspecs.LabelSandbox] != w.generation():
		p.Reason, p.Message = runtime.ReasonSandbox, sandboxEnded
	case c.State == "running": // it was removed by hand while it ran
		p.Reason, p.Message = runtime.ReasonExited, "its container was removed"
	}
	if w.Now.Before(until) {
		p.Wake, p.Retry = until, until
	}
	return p
}

const sandboxEnded = "its sandbox ended; the whole pod begins again"

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
func (w spot) lookFirst(p PartPlan) PartPlan {
	if p.Step != nil && (p.Step.Verb == Start && !w.StalePrev || p.Step.Verb == Stop && w.Order != nil && w.Sent.IsZero()) {
		return p
	}
	if !w.Stale && !w.StalePrev {
		return p
	}
	s := Step{Verb: Look, Why: "something happened to it"}
	switch {
	case w.Stale && w.StalePrev:
		s.Which = both
	case w.StalePrev:
		s.Which = jobspecs.PartPrevious
	}
	if w.Main != nil {
		s.ID = w.Main.ID
	}
	p.Step = &s
	return p
}

// explained shows the failures that keep the part from where it is going.
func (w spot) explained(p PartPlan) PartPlan {
	show := func(phase runtime.Phase, t *Trouble) PartPlan {
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
func (w spot) heldBack(p PartPlan) PartPlan {
	if p.Step == nil {
		return p
	}
	t := &w.Trouble[troubleOf(p.Step.Verb)]
	if t.Tries == 0 || !w.Now.Before(t.until()) {
		return p
	}
	p.Step, p.Wake, p.Retry = nil, first(p.Wake, t.until()), t.until()
	return p
}

// obsolete tells whether the step that is being taken should be cut short: an
// image that nobody waits for, a stop that should be quicker. Others end by
// themselves, and soon; cut short, they might take effect unseen.
func (w spot) obsolete(wanted *Step) bool {
	switch w.Doing.Verb {
	case Pull, Resolve:
		return w.Order != nil
	case Stop:
		return wanted != nil && wanted.Verb == Stop && wanted.Which == w.Doing.Which && wanted.KillAt.Before(w.Doing.KillAt)
	}
	return false
}
