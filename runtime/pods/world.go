package pods

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

// PodWorld is everything that is known of one pod at one moment. It is a value:
// what its pointers point to is replaced, never changed, and clone gives it parts
// of its own.
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

	// Parts are the pod's containers: its sandbox if it has one, then those of the
	// spec in the order in which they begin. Before the spec was handed over they
	// are what was found.
	Parts []Part

	// Begun is the sandbox in which every init container has ended well and every
	// sidecar has begun; noSandbox where there is none. Within it they are done:
	// neither the end of a main nor a cleared away container repeats them.
	Begun string

	// Afresh is set when the pod before was stopped because somebody asked for
	// it: what it counted does not go on.
	Afresh bool

	Mounted []string // volumes that a container of this pod was made with
	Notes   []runtime.Note

	Phase runtime.Phase // as of the last turn
	Since time.Time     // of Phase
}

// noSandbox is the generation of containers that join none.
const noSandbox = "-"

// Order is a wanted end of the pod.
type Order struct {
	Grace time.Duration // from Began to the kill
	Why   string        // runtime.Why…
	Began time.Time     // when the first of its containers was told; zero: none was
}

// spot is one part in its pod.
type spot struct {
	*PodWorld
	*Part
}

// clone may be kept while the world goes on changing.
func (w *PodWorld) clone() *PodWorld {
	c := *w
	c.Parts = slices.Clone(w.Parts)
	return &c
}

func (w *PodWorld) at(i int) spot { return spot{w, &w.Parts[i]} }

// part is the one of that block; false when there is none.
func (w *PodWorld) part(block string) (spot, bool) {
	for i := range w.Parts { // they are large: none is copied
		if w.Parts[i].Block == block {
			return w.at(i), true
		}
	}
	return spot{}, false
}

// each calls f for every part.
func (w *PodWorld) each(f func(spot)) {
	for i := range w.Parts {
		f(w.at(i))
	}
}

// sandbox is the part that the others join; false when they join none.
func (w *PodWorld) sandbox() (spot, bool) {
	if len(w.Parts) == 0 || w.Parts[0].Kind != jobspecs.KindSandbox {
		return spot{}, false
	}
	return w.at(0), true
}

// generation names what the next container joins: this run of the sandbox, "" while
// it does not run, noSandbox where there is none. A sandbox that was started again
// is another one: what had joined it is cut off.
func (w *PodWorld) generation() string {
	s, ok := w.sandbox()
	switch {
	case !ok:
		return noSandbox
	case s.running():
		return s.Main.ID + "@" + strconv.FormatInt(s.Main.StartedAt.UnixNano(), 36)
	}
	return ""
}

// sandboxOf is the container's id in a generation; "" for none.
func sandboxOf(generation string) string {
	id, _, _ := strings.Cut(generation, "@")
	if generation == noSandbox {
		return ""
	}
	return id
}

// alive tells whether any container of the pod runs.
func (w *PodWorld) alive() bool {
	for i := range w.Parts {
		if w.Parts[i].running() {
			return true
		}
	}
	return false
}

// first is the part that the pod's own name belongs to; false before any is known.
func (w *PodWorld) first() (spot, bool) {
	for i := range w.Parts {
		if w.Parts[i].Suffix == "" {
			return w.at(i), true
		}
	}
	return spot{}, false
}

// address is where the pod answers.
func (w *PodWorld) address() (a netip.Addr) {
	if s, ok := w.sandbox(); ok && s.running() {
		return s.Main.Address // none, when somebody took it off the network
	}
	if f, ok := w.first(); ok && (f.running() || f.Main != nil && f.Main.Address.IsValid()) {
		return f.Main.Address
	}
	for i := range w.Parts {
		if p := &w.Parts[i]; p.running() && p.Main.Address.IsValid() {
			return p.Main.Address
		}
	}
	if w.Spec != nil {
		return w.Spec.Address
	}
	return a
}

// attached is the running container that holds the pod's networks; nil: none.
func (w *PodWorld) attached() *Container {
	if s, ok := w.sandbox(); ok {
		if s.running() {
			return s.Main
		}
		return nil
	}
	for i := range w.Parts {
		if p := &w.Parts[i]; p.running() {
			return p.Main
		}
	}
	return nil
}

// revision is the one of a container that is there, else of the spec.
func (w *PodWorld) revision() string {
	if f, ok := w.first(); ok && f.Main != nil {
		return f.Main.Labels[jobspecs.LabelRevision]
	}
	for i := range w.Parts {
		if m := w.Parts[i].Main; m != nil {
			return m.Labels[jobspecs.LabelRevision]
		}
	}
	if w.Spec != nil {
		return w.Spec.Revision
	}
	return ""
}

// handOver takes a rendering for the next container start. One that differs is
// tried at once: it may mend what failed.
func (w *PodWorld) handOver(spec jobspecs.PodSpec) {
	digest := spec.Digest()
	news, differs := w.Spec == nil, w.Rendering != digest
	w.Spec, w.Rendering = &spec, digest
	w.lay()
	w.each(func(s spot) {
		if differs {
			s.Trouble[making].At = time.Time{}
		}
		if news {
			s.Image = nil
		}
		s.probe(true)
	})
}

// release takes the spec back: the pod is as one that was found.
func (w *PodWorld) release() {
	w.Spec, w.Rendering = nil, ""
	w.each(func(s spot) { s.Probes = Probes{} })
}

// lay puts the parts into the order of the spec. What was found and is not in it
// stays at the end.
func (w *PodWorld) lay() {
	old := w.Parts
	w.Parts = nil
	take := func(block, kind, suffix string) {
		p := Part{Block: block, Kind: kind, Afresh: w.Afresh, Stale: len(old) == 0, StalePrev: len(old) == 0}
		if i := slices.IndexFunc(old, func(p Part) bool { return p.Block == block }); i >= 0 {
			p = old[i]
			old = slices.Delete(slices.Clone(old), i, i+1)
		}
		p.Kind, p.Suffix = kind, suffix
		w.Parts = append(w.Parts, p)
	}
	if w.Spec.Sandboxed() {
		take(jobspecs.PartSandbox, jobspecs.KindSandbox, jobspecs.PartSandbox)
	}
	first := w.Spec.First()
	for i := range w.Spec.Containers {
		c := &w.Spec.Containers[i]
		suffix := c.Name
		if c == first {
			suffix = ""
		}
		take(c.Name, kindOf(c.Kind), suffix)
	}
	w.Parts = append(w.Parts, old...)
}

func kindOf(kind string) string {
	if kind == "" {
		return jobspecs.KindMain
	}
	return kind
}

// begun tells whether init containers and sidecars are behind it.
func (w *PodWorld) begun() bool {
	g := w.generation()
	return g != "" && w.Begun == g
}

// settle notes what follows from what was seen: that the beginning is over, or
// takes long.
func (w *PodWorld) settle() {
	w.each(func(s spot) { s.settleSlow() })
	generation := w.generation()
	if w.Spec == nil || generation == "" || w.begun() {
		return
	}
	w.settleInits(generation)
	begun := true
	for i := range w.Parts {
		s := w.at(i)
		switch {
		case s.Kind == jobspecs.KindMain && s.running() && s.current(): // it was begun after them
			w.Begun = generation
			return
		case !s.passed():
			begun = false
		}
	}
	if begun {
		w.Begun = generation
	}
}

// slowAfter is how long an init container or a post_start hook runs before it is
// told, once: it may never end.
const slowAfter = 30 * time.Second

// slowAt is when what the pod waits for here is slow; zero: it waits for nothing of
// the kind.
func (w spot) slowAt() time.Time {
	switch {
	case w.Spec == nil || !w.running() || w.Slow || w.Order != nil:
	case w.Kind == jobspecs.KindInit:
		return w.Main.StartedAt.Add(slowAfter)
	case w.Hook == PostStart:
		return w.HookAt.Add(slowAfter)
	}
	return time.Time{}
}

func (w spot) settleSlow() {
	at := w.slowAt()
	if at.IsZero() || w.Now.Before(at) {
		return
	}
	w.Slow = true
	what := "init " + w.Block
	if w.Hook == PostStart {
		what = "the post_start hook of " + w.Block
	}
	w.note(w.Block, true, "Slow", what+" has been running for "+slowAfter.String())
}

// settleInits notes the init containers that must have ended well, since a part
// after them was started: their own containers may have been cleared away.
func (w *PodWorld) settleInits(generation string) {
	later := false
	for i := range w.Parts {
		s := w.at(len(w.Parts) - 1 - i)
		if later && s.Kind == jobspecs.KindInit && !s.running() {
			s.Over = generation
		}
		later = later || s.Kind != jobspecs.KindSandbox && s.Main != nil && !s.Main.StartedAt.IsZero() && s.current()
	}
}

// ordered takes the order to end. A later one can only shorten the grace.
func (w *PodWorld) ordered(o Order) {
	if o.Why == "" {
		o.Why = runtime.WhyDelete
	}
	if w.Order == nil {
		w.Order = &o
		return
	}
	first := *w.Order
	if !first.Began.IsZero() {
		o.Grace += w.Now.Sub(first.Began)
	}
	first.Grace = min(first.Grace, o.Grace)
	w.Order = &first
}

// told notes that a part begins to end.
func (w spot) told() {
	w.EndBegan = or(w.EndBegan, w.Now)
	if w.Order != nil && w.Order.Began.IsZero() {
		o := *w.Order
		o.Began = w.Now
		w.Order = &o
	}
}

// disconnected notes that nothing is known any more.
func (w *PodWorld) disconnected() {
	w.Offline = true
	w.each(func(s spot) { s.unend() })
}

// reconnected compares with what the host has. A pod of which nothing runs now is
// the planner's, whoever ended it.
func (w *PodWorld) reconnected(g group) {
	w.Offline = false
	if len(w.Parts) == 0 {
		w.found(g)
	}
	before := 0
	w.each(func(s spot) {
		f := g.parts[s.Block]
		if s.Main != nil || f.main != nil {
			before++
		}
		s.sawPrevious(f.previous)
		s.sawMain(f.main, s.Main == nil)
		s.Stale, s.StalePrev = s.Doing != nil, s.Doing != nil
		s.Beside = f.beside
	})
	w.meetOthers(g)
	if before > 0 && !w.alive() {
		w.Lost = runtime.ReasonEngineRestarted
	}
}

// meetOthers notes what runs of blocks that the pod does not have.
func (w *PodWorld) meetOthers(g group) {
	for _, block := range g.blocks() {
		if _, ok := w.part(block); ok {
			continue
		}
		f := g.parts[block]
		for _, c := range f.all() {
			if c.Running() {
				w.met(&c)
			}
		}
	}
}

// found lays out a pod of which only containers are known.
func (w *PodWorld) found(g group) {
	for _, block := range g.blocks() {
		f := g.parts[block]
		w.Parts = append(w.Parts, Part{Block: block, Kind: f.kind, Suffix: f.suffix, Afresh: w.Afresh})
		if f.main != nil && (w.CreatedAt.IsZero() || f.main.CreatedAt.Before(w.CreatedAt)) {
			w.CreatedAt = f.main.CreatedAt
		}
	}
}

// happened notes an event of a container; empty: of any.
func (w *PodWorld) happened(id string) {
	for i := range w.Parts {
		p := &w.Parts[i]
		p.StalePrev = p.StalePrev || p.Previous != nil && (id == "" || id == p.Previous.ID)
		p.Stale = p.Stale || p.Main != nil && (id == "" || id == p.Main.ID)
	}
}

// freed lets what waits for a name, an address or a port of others try at once.
func (w *PodWorld) freed() {
	w.each(func(s spot) {
		if s.heldByOthers() {
			s.Trouble[making].At, s.Trouble[naming].At = time.Time{}, time.Time{}
		}
	})
}

func (w *PodWorld) knows(id string) bool {
	return slices.ContainsFunc(w.Parts, func(p Part) bool {
		return p.Main != nil && p.Main.ID == id || p.Previous != nil && p.Previous.ID == id
	})
}

// keptNotes is how many notes a pod shows.
const keptNotes = 20

// note adds to what happened.
func (w *PodWorld) note(container string, warning bool, reason, message string) {
	n := 1
	if len(w.Notes) > 0 {
		n = w.Notes[len(w.Notes)-1].N + 1
	}
	notes := append(slices.Clone(w.Notes), runtime.Note{N: n, Time: w.Now, Container: container, Warning: warning, Reason: reason, Message: message})
	w.Notes = notes[max(0, len(notes)-keptNotes):]
}

// ours tells whether c belongs to this pod and this daemon.
func (w *PodWorld) ours(c *Container) bool {
	return c != nil && c.Labels[jobspecs.LabelDaemon] == w.Daemon &&
		c.Labels[jobspecs.LabelNamespace] == w.Set.Namespace &&
		c.Labels[jobspecs.LabelSet] == w.Set.Name &&
		c.Labels[jobspecs.LabelOrdinal] == strconv.Itoa(w.Ordinal)
}
