package pods

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

// PodWorld is everything that is known of one pod at one moment. It is a value:
// what its pointers point to is replaced, never changed.
//
// A pod has one container now. Init containers, sidecars and a sandbox become
// further parts beside Main, each with its own Probes.
type PodWorld struct {
	Now    time.Time
	Daemon string
	Set    jobspecs.Key
	Name   string

	Ordinal   int
	Spec      *jobspecs.PodSpec // for the next container start; nil: not handed over
	Rendering string            // digest of Spec
	CreatedAt time.Time

	Offline bool // the host is not connected: nothing is known, nothing is done
	Order   *Order
	Lost    string // runtime.ReasonEngineRestarted, ReasonRemoved: ended, and the planner's

	Main      *Container // nil: none
	Previous  *Container // the last ended one, renamed; nil: none
	Last      *Container // the last ended one, where it could not be kept; nil: see Previous
	Stale     bool       // something happened to Main: look at it
	StalePrev bool       // the same for Previous
	Made      string     // id of a created container that is whole and may be started
	Moving    Verb       // Rename, Remove: Main was asked to go; "": it was not
	EndedAt   time.Time  // of Main, by our clock

	Image  *Image // resolved for the next container; nil: not yet
	Absent bool   // the image is not here and has to be pulled
	Pulled bool   // it was pulled for the next container

	// Afresh is set when the pod before was stopped because somebody asked for
	// it: what it counted does not go on, until a container was made.
	Afresh bool

	Probes  Probes
	Doom    *Doom
	Doing   *Step  // the step that is being taken
	Said    string // progress of it, for people
	Trouble [troubles]Trouble

	Phase runtime.Phase // as of the last turn
	Since time.Time     // of Phase
}

// Order is a wanted end.
type Order struct {
	Grace time.Duration // from the stop signal to the kill
	Sent  time.Time     // of the stop signal; zero: not yet
}

// killAt is when the container is killed if it was told to stop by now.
func (o *Order) killAt(now time.Time) time.Time {
	if o.Sent.IsZero() {
		return now.Add(o.Grace)
	}
	return later(o.Sent.Add(o.Grace), now)
}

// Doom is the end of a container that a probe gave up; it is followed by a
// restart.
type Doom struct {
	ID      string
	Reason  string // runtime.ReasonLiveness, ReasonStartup
	Message string
	Order   Order
}

// Trouble is a row of failures of one kind of step. They are kept apart by kind:
// a start that fails is followed by a removal that does not.
type Trouble struct {
	Verb    Verb
	Reason  string
	Message string
	Tries   int // zero: none
	At      time.Time
}

// Kinds of steps that fail together.
const (
	making = iota // Resolve, Pull, Create, Start
	ending        // Stop
	tidying
	looking
	troubles
)

func troubleOf(v Verb) int {
	switch v {
	case Stop:
		return ending
	case Remove, Rename:
		return tidying
	case Look:
		return looking
	}
	return making
}

// until is when the failed step may be taken again.
func (t *Trouble) until() time.Time { return t.At.Add(retryDelay(t.Verb, t.Tries)) }

// ours tells whether c belongs to this pod and this daemon.
func (w *PodWorld) ours(c *Container) bool {
	return c != nil && c.Labels[jobspecs.LabelDaemon] == w.Daemon &&
		c.Labels[jobspecs.LabelNamespace] == w.Set.Namespace &&
		c.Labels[jobspecs.LabelSet] == w.Set.Name &&
		c.Labels[jobspecs.LabelOrdinal] == strconv.Itoa(w.Ordinal)
}

func (w *PodWorld) running() bool { return w.Main != nil && w.Main.Running() }
func (w *PodWorld) paused() bool  { return w.Main != nil && w.Main.State == "paused" }

// main is the container block that is run.
func (w *PodWorld) main() *jobspecs.Container { return &w.Spec.Containers[0] }

// revision is the one of the container that is there, else of the spec.
func (w *PodWorld) revision() string {
	if w.Main != nil {
		return w.Main.Labels[jobspecs.LabelRevision]
	}
	if w.Spec != nil {
		return w.Spec.Revision
	}
	return ""
}

// past is the ended container that the next one follows: its counts go on.
func (w *PodWorld) past() *Container {
	if w.Main != nil {
		return w.Main
	}
	if w.Afresh {
		return nil
	}
	last := w.Previous
	if w.Last != nil {
		last = w.Last
	}
	if last != nil && w.Spec != nil && last.Labels[jobspecs.LabelRevision] == w.Spec.Revision {
		return last
	}
	return nil
}

// handOver takes a rendering for the next container start. One that differs is
// tried at once: it may mend what failed.
func (w *PodWorld) handOver(spec jobspecs.PodSpec) {
	digest := spec.Digest()
	if w.Rendering != digest {
		w.Trouble[making].At = time.Time{}
	}
	if w.Spec == nil {
		w.Image = nil
	}
	w.Spec, w.Rendering = &spec, digest
	w.probe(true)
}

// ordered takes the order to end. A later one can only shorten the grace.
func (w *PodWorld) ordered(grace time.Duration) {
	switch {
	case w.Order == nil:
		w.Order = &Order{Grace: grace}
	case w.Order.Sent.IsZero():
		w.Order = &Order{Grace: min(w.Order.Grace, grace)}
	default:
		o := *w.Order
		o.Grace = min(o.Grace, w.Now.Sub(o.Sent)+grace)
		w.Order = &o
	}
}

// sawMain notes how the container is now; nil is none of ours. found says that
// it was not this agent that followed it to where it is.
func (w *PodWorld) sawMain(c *Container, found bool) {
	if !w.ours(c) {
		c = nil
	}
	old := w.Main
	w.Main = c
	switch {
	case c == nil && old != nil && w.Moving == "" && old.State != "created":
		w.Lost = runtime.ReasonRemoved
	case c == nil:
	case c.Name == w.containerName(jobspecs.PartPrevious): // the rename did happen
		w.Main = nil
		w.StalePrev = w.Previous == nil || w.Previous.ID != c.ID
	case c.Running():
		w.Moving = ""
		w.sawRunning(found)
	default:
		w.Moving = ""
		w.sawEnded(old, found)
	}
}

func (w *PodWorld) sawRunning(found bool) {
	w.Lost, w.EndedAt, w.Last = "", time.Time{}, nil
	w.Trouble[making], w.Trouble[tidying] = Trouble{}, Trouble{}
	if w.Spec != nil && w.Spec.Revision != w.revision() {
		w.Spec, w.Rendering = nil, ""
	}
	if w.Probes.ID != w.Main.ID || !w.Probes.RunAt.Equal(w.Main.StartedAt) {
		w.Probes, w.Doom = Probes{}, nil
	}
	w.probe(found)
	if w.Probes.ID != "" && w.Probes.Started && !w.Probes.Readiness.On {
		w.Probes.ready(!w.paused(), w.Now)
	}
}

func (w *PodWorld) sawEnded(old *Container, found bool) {
	c := w.Main
	if c.StartedAt.IsZero() {
		return
	}
	w.Trouble[making] = Trouble{} // it did start
	if old != nil && old.ID == c.ID && old.State == c.State && !w.EndedAt.IsZero() {
		return
	}
	w.EndedAt = w.Now
	if (found || old == nil || old.ID != c.ID) && !c.FinishedAt.IsZero() {
		w.EndedAt = sooner(c.FinishedAt, w.Now)
	}
}

// probe begins to probe a running container once all is known that it takes.
func (w *PodWorld) probe(found bool) {
	if w.Spec == nil || !w.running() || w.Probes.ID != "" || w.needsHealth() {
		return
	}
	var health []string
	if w.Image != nil {
		health = w.Image.Healthcheck
	}
	w.Probes = newProbes(w.Main, w.main(), health, found, w.Now)
	if w.paused() && !w.Probes.Readiness.On {
		w.Probes.ready(false, w.Now)
	}
}

// needsHealth tells whether the image has to be asked for its HEALTHCHECK.
func (w *PodWorld) needsHealth() bool { return w.main().Readiness == nil && w.Image == nil }

// sawPrevious notes the kept container; nil is none of ours.
func (w *PodWorld) sawPrevious(c *Container) {
	if !w.ours(c) {
		c = nil
	}
	w.Previous = c
	if c == nil {
		return
	}
	if w.Main != nil && w.Main.ID == c.ID {
		w.Main = nil // the rename did happen
	}
	if w.EndedAt.IsZero() {
		w.EndedAt = sooner(c.FinishedAt, w.Now)
	}
}

// disconnected notes that nothing is known any more.
func (w *PodWorld) disconnected() {
	w.Offline = true
	if w.Order != nil {
		w.Order = &Order{Grace: w.Order.Grace}
	}
}

// reconnected compares with what the host has. What does not run now is the
// planner's, whoever ended it.
func (w *PodWorld) reconnected(main, previous *Container) {
	w.Offline = false
	if main != nil && w.Spec == nil && w.Main == nil {
		w.CreatedAt = main.CreatedAt
	}
	w.sawPrevious(previous)
	w.sawMain(main, w.Main == nil)
	w.Stale, w.StalePrev = w.Doing != nil, w.Doing != nil
	if w.Main != nil && !w.running() {
		w.Lost = runtime.ReasonEngineRestarted
	}
}

// happened notes an event of a container; empty: of any.
func (w *PodWorld) happened(id string) {
	if w.Previous != nil && (id == "" || id == w.Previous.ID) {
		w.StalePrev = true
	}
	if w.Main != nil && (id == "" || id == w.Main.ID) {
		w.Stale = true
	}
}

// begun notes that a step is being taken.
func (w *PodWorld) begun(s Step) {
	w.Doing, w.Said = &s, ""
	switch {
	case s.Verb == Look: // what happens from now on has not been looked at
		w.Stale = w.Stale && s.Part == jobspecs.PartPrevious
		w.StalePrev = w.StalePrev && s.Part == ""
	case s.Verb == Stop && s.Part != "":
	case s.Verb == Stop && w.Order != nil:
		w.Order = sent(*w.Order, w.Now)
	case s.Verb == Stop:
		w.Doom = s.doom()
		w.Doom.Order = *sent(w.Doom.Order, w.Now)
	case s.Part == "" && (s.Verb == Rename || s.Verb == Remove):
		w.Moving = s.Verb
	}
}

func sent(o Order, now time.Time) *Order {
	if o.Sent.IsZero() {
		o.Sent = now
	}
	return &o
}

// Result is what came of a step.
type Result struct {
	Main, Previous *Container // Look
	Image          Image      // Resolve
	ID             string     // Create
	Cancelled      bool       // by us: its failure means nothing
	Err            error
}

// done notes what came of the step that was being taken. After a failure
// nothing is believed: it may have taken effect, so the pod looks again.
func (w *PodWorld) done(r Result) {
	s := *w.Doing
	w.Doing, w.Said = nil, ""
	if r.Err != nil {
		w.failed(s, r)
		return
	}
	w.recovered(s.Verb)
	if (s.Verb == Rename || s.Verb == Remove) && s.Part == "" && (w.Main == nil || w.Main.ID != s.ID) {
		w.Stale, w.StalePrev = true, true // a reconnect came between
		return
	}
	switch s.Verb {
	case Look:
		w.looked(s, r)
	case Resolve:
		w.Image, w.Absent = &r.Image, false
		w.probe(true)
	case Pull:
		w.Pulled, w.Absent = true, false
	case Create:
		w.Made, w.Pulled, w.Afresh = r.ID, false, false
		w.Main = w.justMade(r.ID)
	case Start, Stop:
		if s.Verb == Start {
			w.Made = "" // it was started: what it is now has to be looked at
		}
		w.Stale = w.Stale || s.Part == ""
		w.StalePrev = w.StalePrev || s.Part != ""
	case Rename:
		kept := *w.Main
		kept.Name = s.Name
		w.Main, w.Previous, w.Last, w.Image, w.Doom, w.Moving = nil, &kept, nil, nil, nil, ""
	case Remove:
		w.removed(s)
	}
}

func (w *PodWorld) looked(s Step, r Result) {
	old := w.Main
	if s.Part != jobspecs.PartPrevious {
		w.sawMain(r.Main, false)
	}
	if s.Part != "" {
		w.sawPrevious(r.Previous)
	}
	if w.Moving == Rename && w.Main == nil && s.Part == both && old != nil && (w.Previous == nil || w.Previous.ID != old.ID) {
		w.Lost = runtime.ReasonRemoved // it went before it could be renamed
	}
}

func (w *PodWorld) removed(s Step) {
	if s.Part != "" {
		w.Previous = nil
		return
	}
	if !w.Main.StartedAt.IsZero() {
		w.Last = w.Main
	}
	w.Main, w.Made, w.Image, w.Doom, w.Moving = nil, "", nil, nil, ""
}

// justMade is the container that Create made, as far as it is known without
// looking.
func (w *PodWorld) justMade(id string) *Container {
	return &Container{
		ID: id, Name: w.containerName(""), Labels: w.labels(), State: "created",
		Image: w.main().Image, ImageID: w.Image.ID, Address: w.Spec.Address, CreatedAt: w.Now,
	}
}

// recovered forgets the failures that a success of v disproves.
func (w *PodWorld) recovered(v Verb) {
	t := &w.Trouble[troubleOf(v)]
	if troubleOf(v) != making || order[v] >= order[t.Verb] {
		*t = Trouble{}
	}
}

var order = map[Verb]int{Resolve: 1, Pull: 1, Create: 2, Start: 3}

func (w *PodWorld) failed(s Step, r Result) {
	switch s.Verb {
	case Look:
		w.Stale = w.Stale || s.Part != jobspecs.PartPrevious
		w.StalePrev = w.StalePrev || s.Part != ""
	case Resolve, Pull:
		w.Absent = false
		if errors.Is(r.Err, ErrNoImage) {
			w.noImage(s, r)
			return
		}
	default:
		w.Stale, w.StalePrev = true, true
		if s.Verb == Create || s.Verb == Start {
			w.Made, w.Image = "", nil // the image may have gone since it was resolved
		}
	}
	if r.Cancelled || w.Offline {
		return
	}
	w.unsend(s)
	reason, message := explain(s, r.Err)
	w.trouble(s.Verb, reason, message)
}

// unsend forgets the moment of a stop signal that may not have been sent: the
// container gets its whole grace.
func (w *PodWorld) unsend(s Step) {
	if s.Verb != Stop || s.Part != "" {
		return
	}
	if w.Order != nil {
		w.Order = &Order{Grace: w.Order.Grace}
	}
	if w.Doom != nil {
		d := *w.Doom
		d.Order.Sent = time.Time{}
		w.Doom = &d
	}
}

// noImage decides what the absence of an image means.
func (w *PodWorld) noImage(s Step, r Result) {
	switch {
	case w.running(): // taken over, and its image is gone: no HEALTHCHECK
		w.Image = &Image{}
		w.probe(true)
	case w.Spec == nil:
	case w.main().Pull == jobspecs.PullNever:
		w.trouble(Resolve, runtime.ReasonImageMissing, "image "+w.main().Image+" is not on this host, and pull is never")
	case w.Pulled:
		w.Pulled = false
		w.trouble(Pull, runtime.ReasonImageMissing, w.gone())
	default:
		w.Absent = true
	}
}

// gone says what is missing after a pull.
func (w *PodWorld) gone() string {
	if id := w.main().ImageID; id != "" {
		return "image " + w.main().Image + " is another one now: " + id + ", which this revision runs, is not on this host"
	}
	return "image " + w.main().Image + " was pulled and removed again"
}

func (w *PodWorld) trouble(v Verb, reason, message string) {
	t := &w.Trouble[troubleOf(v)]
	*t = Trouble{Verb: v, Reason: reason, Message: message, Tries: t.Tries + 1, At: w.Now}
}

// explain names a failure with one of runtime's reasons.
func explain(s Step, err error) (reason, message string) {
	var p *Problem
	if errors.As(err, &p) && p.Message != "" {
		if p.Reason == runtime.ReasonPullFailed || p.Reason == runtime.ReasonCreateFailed || p.Reason == runtime.ReasonPortTaken {
			return p.Reason, p.Error() // the reason says little
		}
		return p.Reason, p.Message
	}
	reason = runtime.ReasonCreateFailed
	if p != nil {
		reason = p.Reason
	} else if s.Verb == Pull {
		reason = runtime.ReasonPullFailed
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return reason, string(s.Verb) + ": the engine did not answer in time"
	}
	return reason, err.Error()
}

// containerName is the name of a part of the pod at the engine.
func (w *PodWorld) containerName(part string) string {
	return jobspecs.ContainerName(w.Set.Namespace, w.Name, part)
}

// labels are stsd's own on the next container.
func (w *PodWorld) labels() map[string]string {
	restarts, streak := w.counts()
	return map[string]string{
		jobspecs.LabelDaemon:    w.Daemon,
		jobspecs.LabelNamespace: w.Set.Namespace,
		jobspecs.LabelSet:       w.Set.Name,
		jobspecs.LabelOrdinal:   strconv.Itoa(w.Ordinal),
		jobspecs.LabelRevision:  w.Spec.Revision,
		jobspecs.LabelContainer: w.main().Name,
		jobspecs.LabelService:   w.Spec.Service,
		jobspecs.LabelRendering: w.Rendering,
		jobspecs.LabelRestarts:  strconv.Itoa(restarts),
		labelStreak:             strconv.Itoa(streak),
	}
}

// counts are the restarts of the next container, ever and in its crash loop.
func (w *PodWorld) counts() (restarts, streak int) {
	past := w.past()
	if past == nil {
		return 0, 0
	}
	return number(past.Labels[jobspecs.LabelRestarts]) + 1, streakOf(past, w.main().Restart) + 1
}
