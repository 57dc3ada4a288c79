package pods

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

// Part is what is known of one container of a pod, over its restarts.
type Part struct {
	Block  string // the block's name; jobspecs.PartSandbox
	Kind   string // jobspecs.Kind…
	Suffix string // of its name at the engine; "" has the pod's own

	Main      *Container  // nil: none
	Previous  *Container  // the last ended one, renamed; nil: none
	Beside    []Container // further ones that somebody made or started by hand: each that runs is stopped
	Last      *Container  // the last ended one, where it could not be kept; nil: see Previous
	Stale     bool        // something happened to Main: look at it
	StalePrev bool        // the same for Previous
	Made      string      // id of a created container that is whole and may be started
	Moving    Verb        // Rename, Remove: Main was asked to go; "": it was not
	EndedAt   time.Time   // of Main, by our clock

	Image  *Image // resolved for the next container; nil: not yet
	Absent bool   // the image is not here and has to be pulled
	Pulled bool   // it was pulled for the next container
	Afresh bool   // what the pod before counted does not go on, until a container was made

	Probes  Probes
	Doom    *Doom
	Doing   *Step  // the step that is being taken
	Said    string // progress of it, for people
	Trouble [troubles]Trouble

	Hook     string    // the hook that runs: PostStart, PreStop; "": none
	HookAt   time.Time // since when
	PostDone bool      // post_start is over, for this run of Main
	PreDone  bool      // pre_stop is over, for this end of Main
	Run      life      // of Main, as far as it was seen running
	Found    bool      // this run was not begun by this agent
	Slow     bool      // it was noted that its init, or its post_start hook, takes long
	Over     string    // init: the generation in which it has ended well
	EndBegan time.Time // when Main was told to end: pre_stop or signal; zero: it was not
	Sent     time.Time // of the stop signal; zero: not yet
}

// Doom is the end of a container that is followed by its restart.
type Doom struct {
	ID      string
	Reason  string // runtime.ReasonLiveness, ReasonStartup, ReasonPostStartFailed
	Message string
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
	naming // Recall
	looking
	troubles
)

func troubleOf(v Verb) int {
	switch v {
	case Stop:
		return ending
	case Remove, Rename:
		return tidying
	case Recall:
		return naming
	case Look:
		return looking
	}
	return making
}

// until is when the failed step may be taken again.
func (t *Trouble) until() time.Time { return t.At.Add(retryDelay(t.Verb, t.Tries)) }

func (p *Part) running() bool { return p.Main != nil && p.Main.Running() }
func (p *Part) paused() bool  { return p.Main != nil && p.Main.State == "paused" }

// heldByOthers tells whether the part could not be made, or named, because of
// something that belongs to others, or is theirs to make.
func (p *Part) heldByOthers() bool {
	return p.Trouble[making].byOthers() || p.Trouble[naming].byOthers()
}

func (t *Trouble) byOthers() bool {
	switch t.Reason {
	case runtime.ReasonNameTaken, runtime.ReasonAddressTaken, runtime.ReasonPortTaken, runtime.ReasonNetworkTaken, runtime.ReasonNetworkMissing:
		return t.Tries > 0
	}
	return false
}

// lasting tells whether the part is meant to go on running.
func (p *Part) lasting() bool { return p.Kind == jobspecs.KindMain || p.Kind == jobspecs.KindSidecar }

// alone tells whether the pod is this container: its end is the pod's.
func (w spot) alone() bool {
	_, sandboxed := w.sandbox()
	return !sandboxed && w.Kind == jobspecs.KindMain
}

// block is the container block that is run; of the sandbox, one of our own.
func (w spot) block() *jobspecs.Container {
	for i := range w.Spec.Containers {
		if w.Spec.Containers[i].Name == w.Block {
			return &w.Spec.Containers[i]
		}
	}
	return &jobspecs.Container{Kind: w.Kind, Name: w.Block, Image: "the sandbox"}
}

// current tells whether Main belongs to what the pod is now: it joined the
// sandbox that runs.
func (w spot) current() bool {
	if w.Main == nil || w.Kind == jobspecs.KindSandbox {
		return true
	}
	joined := w.Main.Labels[jobspecs.LabelSandbox]
	return joined == "" || joined == w.generation()
}

// passed tells whether what comes after it may begin: the sandbox runs, an init
// container has ended well, a sidecar is past its startup. Nothing waits for a main
// like this.
func (w spot) passed() bool {
	switch w.Kind {
	case jobspecs.KindSandbox:
		return w.running()
	case jobspecs.KindInit:
		return w.over()
	case jobspecs.KindSidecar:
		return w.begun() || w.running() && w.current() && w.posted() && w.Probes.ID != "" && w.Probes.Started
	}
	return true
}

// over tells whether an init container has ended well and has not to run again.
func (w spot) over() bool {
	if w.Kind != jobspecs.KindInit {
		return false
	}
	g := w.generation()
	return w.begun() || g != "" && (w.Over == g || w.endedWell())
}

// endedWell tells whether Main ran for the pod as it is now, and ended with 0.
func (w spot) endedWell() bool {
	m := w.Main
	return m != nil && m.State == "exited" && m.ExitCode == 0 && !m.StartedAt.IsZero() && w.current()
}

// posted tells whether the post_start hook of the running container is over, or
// there is none.
func (w spot) posted() bool {
	return w.Spec == nil || w.PostDone || w.Kind == jobspecs.KindInit || w.block().PostStart == nil
}

// past is the ended container that the next one follows: its counts go on.
func (w spot) past() *Container {
	if w.Main != nil {
		return w.Main
	}
	if w.Part.Afresh {
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

// sawMain notes how the container is now; nil is none of ours. found says that
// it was not this agent that followed it to where it is.
func (w spot) sawMain(c *Container, found bool) {
	if !w.ours(c) {
		c = nil
	}
	old := w.Main
	w.Main = c
	w.sawName(old)
	switch {
	case c == nil && old != nil && w.Moving == "" && old.State != "created":
		w.disappeared(old)
	case c == nil:
	case c.Name == w.previousName() && (w.Moving == Rename || !c.Running()): // the rename did happen
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

// sawName notes for people that a container that was renamed by hand has its name
// again, whoever gave it back.
func (w spot) sawName(old *Container) {
	if w.Main != nil && w.Main.Name != w.containerName() {
		return
	}
	w.Trouble[naming] = Trouble{}
	if w.Main != nil && old != nil && w.Main.ID == old.ID && w.Main.Name != old.Name {
		w.note(w.Block, true, "Renamed", "its container was renamed to "+old.Name+" by hand, and is "+w.Main.Name+" again")
	}
}

// disappeared notes that somebody took the container away. The planner makes a
// pod of one container again; in a pod of several the others go on.
func (w spot) disappeared(old *Container) {
	w.forgetRun()
	if w.alone() || !w.alive() && w.Kind != jobspecs.KindInit {
		w.Lost = runtime.ReasonRemoved
		return
	}
	if w.over() && !old.Running() { // a cleared away init container has still run
		return
	}
	w.note(w.Block, true, "Removed", "its container was removed")
	gone := *old
	gone.FinishedAt = w.Now
	w.Last, w.EndedAt = &gone, w.Now
}

func (w spot) sawRunning(found bool) {
	w.Lost, w.EndedAt, w.Last = "", time.Time{}, nil
	w.Trouble[making], w.Trouble[tidying] = Trouble{}, Trouble{}
	if w.Spec != nil && w.Spec.Revision != w.Main.Labels[jobspecs.LabelRevision] {
		w.Spec, w.Rendering = nil, ""
	}
	if run := (life{w.Main.ID, w.Main.StartedAt}); !run.equal(w.Run) {
		w.forgetRun()
		w.Run, w.Found = run, found
	}
	w.PostDone = w.PostDone || w.Main.PostStarted
	w.probe(found)
	if w.Probes.ID != "" && w.Probes.Started && !w.Probes.Readiness.On {
		w.Probes.ready(!w.paused(), w.Now)
	}
}

// forgetRun drops what was known of a run that is over.
func (w spot) forgetRun() {
	w.Probes, w.Doom, w.PostDone, w.PreDone, w.Slow = Probes{}, nil, false, false, false
	w.EndBegan, w.Sent = time.Time{}, time.Time{}
}

func (w spot) sawEnded(old *Container, found bool) {
	c := w.Main
	if c.StartedAt.IsZero() {
		return
	}
	if w.Trouble[making].Reason != runtime.ReasonWrongPlatform {
		w.Trouble[making] = Trouble{} // it did start
	}
	if old != nil && old.ID == c.ID && old.State == c.State && !w.EndedAt.IsZero() {
		return
	}
	w.EndedAt = w.Now
	if (found || old == nil || old.ID != c.ID) && !c.FinishedAt.IsZero() {
		w.EndedAt = sooner(c.FinishedAt, w.Now)
	}
	if w.Kind == jobspecs.KindInit && c.ExitCode == 0 && w.current() {
		w.Over = w.generation()
	}
	w.tellEnd()
	if w.Order == nil {
		w.PreDone, w.EndBegan, w.Sent = false, time.Time{}, time.Time{}
	}
}

// tellEnd notes an end that somebody should know of.
func (w spot) tellEnd() {
	switch {
	case w.Kind == jobspecs.KindSandbox && w.Order == nil:
		w.note("", true, runtime.ReasonSandbox, sandboxEnded)
	case !w.Sent.IsZero() && w.Main.ExitCode == 137 && !w.Main.OOMKilled && w.killed():
		w.note(w.Block, true, "Killed", fmt.Sprintf("it did not end within its grace of %s and was killed", w.grace()))
	}
}

// killed tells whether the grace was over when it ended.
func (w spot) killed() bool {
	if w.Kind == jobspecs.KindSandbox || w.grace() <= 0 {
		return false
	}
	return !w.Now.Before(w.killAt().Add(-100 * time.Millisecond))
}

// grace is what the end that was told last gives.
func (w spot) grace() time.Duration {
	if w.Order != nil {
		return w.Order.Grace
	}
	if w.Spec != nil {
		return w.Spec.TerminationGrace
	}
	return defaultGrace
}

const (
	defaultGrace = 30 * time.Second
	// leastGrace is between the stop signal and the kill whatever a hook took, but
	// for a grace that is shorter (kubelet's minimumGracePeriodInSeconds).
	leastGrace = 2 * time.Second
)

// killAt is when the container is killed if it is told to stop now, or was.
func (w spot) killAt() time.Time {
	least := or(w.Sent, w.Now).Add(min(w.grace(), leastGrace))
	return later(later(w.graceOver(), least), w.Now)
}

// graceOver is when the grace is over that began with the end of this container, or
// of the pod.
func (w spot) graceOver() time.Time {
	began := w.EndBegan
	if w.Order != nil {
		began = w.Order.Began
	}
	return or(began, w.Now).Add(w.grace())
}

// probe begins to probe a running container once all is known that it takes, and
// its post_start hook is over.
func (w spot) probe(found bool) {
	if w.Spec == nil || !w.lasting() || !w.running() || w.Probes.ID != "" || !w.posted() || w.needsHealth() {
		return
	}
	var health []string
	if w.Image != nil {
		health = w.Image.Healthcheck
	}
	w.Probes = newProbes(w.Main, w.block(), health, found, w.Now)
	if w.paused() && !w.Probes.Readiness.On {
		w.Probes.ready(false, w.Now)
	}
}

// needsHealth tells whether the image has to be asked for its HEALTHCHECK.
func (w spot) needsHealth() bool { return w.block().Readiness == nil && w.Image == nil }

// sawPrevious notes the kept container; nil is none of ours.
func (w spot) sawPrevious(c *Container) {
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

// begin notes that a step is being taken.
func (w spot) begin(s Step) {
	w.Doing, w.Said = &s, ""
	switch {
	case s.Verb == Look: // what happens from now on has not been looked at
		w.Stale = w.Stale && s.Which == jobspecs.PartPrevious
		w.StalePrev = w.StalePrev && s.Which == ""
	case s.Verb == Stop && s.Which == "":
		w.Doom = s.Doom
		w.Sent = or(w.Sent, w.Now)
		w.told()
	case s.Which == "" && (s.Verb == Rename || s.Verb == Remove):
		w.Moving = s.Verb
	}
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
func (w spot) done(r Result) {
	s := *w.Doing
	w.Doing, w.Said = nil, ""
	if r.Err != nil {
		w.failed(s, r)
		return
	}
	w.recovered(s.Verb)
	if (s.Verb == Rename || s.Verb == Remove) && s.Which == "" && (w.Main == nil || w.Main.ID != s.ID) {
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
		w.created(r.ID, s.Joins)
	case Start, Stop, Recall:
		if s.Verb == Start {
			w.Made = "" // it was started: what it is now has to be looked at
		}
		w.Stale = w.Stale || s.Which == ""
		w.StalePrev = w.StalePrev || s.Which != ""
		if s.Which != "" {
			w.fenced(s)
		}
	case Rename:
		kept := *w.Main
		kept.Name = s.Name
		w.StalePrev = w.StalePrev || w.Stale // what happened, happened to the kept one
		w.Main, w.Previous, w.Last, w.Image, w.Doom, w.Moving = nil, &kept, nil, nil, nil, ""
	case Remove:
		w.removed(s)
	}
}

func (w spot) looked(s Step, r Result) {
	old := w.Main
	if s.Which != jobspecs.PartPrevious {
		w.sawMain(r.Main, false)
	}
	if s.Which != "" {
		w.sawPrevious(r.Previous)
	}
	if w.Moving == Rename && w.Main == nil && s.Which == both && old != nil && (w.Previous == nil || w.Previous.ID != old.ID) {
		w.disappeared(old) // it went before it could be renamed
		w.Moving = ""
	}
}

func (w spot) removed(s Step) {
	if s.Which != "" {
		w.Previous = nil
		return
	}
	if !w.Main.StartedAt.IsZero() {
		w.Last = w.Main
	}
	w.Main, w.Made, w.Image, w.Doom, w.Moving = nil, "", nil, nil, ""
}

// created is the container that Create made, as far as it is known without
// looking.
func (w spot) created(id, joins string) {
	w.Main = &Container{
		ID: id, Name: w.containerName(), Labels: w.labels(joins), State: "created",
		Image: w.block().Image, ImageID: w.Image.ID, Address: w.Spec.Address, CreatedAt: w.Now,
	}
	w.forgetRun()
	w.Made, w.Pulled, w.Part.Afresh = id, false, false
	w.Mounted = sortedUnion(w.Mounted, mountedBy(w.block()))
}

// mountedBy are the claims' volumes of a container.
func mountedBy(c *jobspecs.Container) []string {
	var names []string
	for _, m := range c.Mounts {
		if m.Volume != "" {
			names = append(names, m.Volume)
		}
	}
	return names
}

func sortedUnion(a, b []string) []string {
	all := append(slices.Clone(a), b...)
	slices.Sort(all)
	return slices.Compact(all)
}

// recovered forgets the failures that a success of v disproves.
func (w spot) recovered(v Verb) {
	t := &w.Trouble[troubleOf(v)]
	if troubleOf(v) != making || order[v] >= order[t.Verb] {
		*t = Trouble{}
	}
}

var order = map[Verb]int{Resolve: 1, Pull: 1, Create: 2, Start: 3}

func (w spot) failed(s Step, r Result) {
	switch s.Verb {
	case Look:
		w.Stale = w.Stale || s.Which != jobspecs.PartPrevious
		w.StalePrev = w.StalePrev || s.Which != ""
	case Resolve, Pull:
		w.Absent = false
		if errors.Is(r.Err, ErrNoImage) {
			w.noImage()
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
	if s.Verb == Stop && s.Which == "" {
		w.unend()
	}
	reason, message := explain(s, r.Err)
	w.trouble(s.Verb, reason, message)
}

// unend forgets the moment of a stop signal that may not have been sent: the
// container gets its whole grace.
func (w spot) unend() {
	w.Sent = time.Time{}
	if w.PreDone || w.Hook == PreStop {
		return
	}
	w.EndBegan = time.Time{}
	told := func(p Part) bool { return !p.EndBegan.IsZero() }
	if w.Order != nil && !slices.ContainsFunc(w.Parts, told) {
		o := *w.Order
		o.Began = time.Time{}
		w.Order = &o
	}
}

// noImage decides what the absence of an image means.
func (w spot) noImage() {
	switch {
	case w.running(): // taken over, and its image is gone: no HEALTHCHECK
		w.Image = &Image{}
		w.probe(true)
	case w.Spec == nil:
	case w.block().Pull == jobspecs.PullNever:
		w.trouble(Resolve, runtime.ReasonImageMissing, "image "+w.block().Image+" is not on this host, and pull is never")
	case w.Pulled:
		w.Pulled = false
		w.trouble(Pull, runtime.ReasonImageMissing, w.gone())
	default:
		w.Absent = true
	}
}

// gone says what is missing after a pull.
func (w spot) gone() string {
	if id := w.block().ImageID; id != "" {
		return "image " + w.block().Image + " is another one now: " + id + ", which this revision runs, is not on this host"
	}
	return "image " + w.block().Image + " was pulled and removed again"
}

func (w spot) trouble(v Verb, reason, message string) {
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

// containerName is the name of the part's container at the engine.
func (w spot) containerName() string {
	return jobspecs.ContainerName(w.Set.Namespace, w.PodWorld.Name, w.Suffix)
}

// previousName is the one under which its last ended container is kept.
func (w spot) previousName() string {
	return jobspecs.ContainerName(w.Set.Namespace, w.PodWorld.Name, jobspecs.PreviousPart(w.Suffix))
}

// labels are stsd's own on the next container.
func (w spot) labels(joins string) map[string]string {
	restarts, streak := w.counts()
	labels := map[string]string{
		jobspecs.LabelDaemon:    w.Daemon,
		jobspecs.LabelNamespace: w.Set.Namespace,
		jobspecs.LabelSet:       w.Set.Name,
		jobspecs.LabelOrdinal:   strconv.Itoa(w.Ordinal),
		jobspecs.LabelRevision:  w.Spec.Revision,
		jobspecs.LabelContainer: w.Block,
		jobspecs.LabelKind:      w.Kind,
		jobspecs.LabelService:   w.Spec.Service,
		jobspecs.LabelRendering: w.Rendering,
		jobspecs.LabelRestarts:  strconv.Itoa(restarts),
		labelStreak:             strconv.Itoa(streak),
	}
	if w.Spec.Steady != "" {
		labels[jobspecs.LabelSteady] = w.Spec.Steady
	}
	if joins != "" {
		labels[jobspecs.LabelSandbox] = joins
	}
	return labels
}

// counts are the restarts of the next container, ever and in its crash loop.
func (w spot) counts() (restarts, streak int) {
	past := w.past()
	if past == nil {
		return 0, 0
	}
	return number(past.Labels[jobspecs.LabelRestarts]) + 1, streakOf(past, w.block().Restart) + 1
}

// imageRef is what is asked for: the image of a running container, else the one
// that the revision is pinned to, else the one of the container that ended, else
// what its name means.
func (w spot) imageRef() string {
	switch {
	case w.running():
		return w.Main.ImageID
	case w.block().ImageID != "":
		return w.block().ImageID
	}
	if past := w.past(); past != nil && past.Labels[jobspecs.LabelRevision] == w.Spec.Revision && past.ImageID != "" && !w.Pulled {
		return past.ImageID // a tag that moved meanwhile is no reason to run another image
	}
	return w.block().Image
}

func (w spot) stopSignal() string {
	if w.Spec == nil {
		return ""
	}
	return w.block().StopSignal
}

func (w spot) containerSpec(joins string) ContainerSpec {
	c := ContainerSpec{
		Name: w.containerName(), Labels: w.labels(joins), Image: *w.Image, Pod: *w.Spec, Main: *w.block(), Sandbox: sandboxOf(joins),
	}
	for _, v := range w.Spec.Volumes {
		if v.Fresh && slices.Contains(mountedBy(w.block()), v.Name) && !slices.Contains(w.Mounted, v.Name) {
			c.Fresh = append(c.Fresh, v.Name)
		}
	}
	return c
}

// target is the running container as something to ask.
func (w spot) target() Target {
	return Target{ID: w.Main.ID, Address: w.address(), Run: w.Main.StartedAt}
}
