package test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/daemon/planner"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/volumes"
)

// witness knows what the user wants, sees every call between the daemon and the
// host, and complains when a promise of DESIGN section 5 is broken. It has no
// part of the planner in it: the rules stand here a second time, from the other
// side, in sim_promises_test.go.
type witness struct {
	rig *rig

	mu         sync.Mutex
	intents    map[string][]intent         // of a set, oldest first
	turns      map[string]*turn            // of a set: the one under way
	disks      map[string][]volumes.Volume // of a set: as the loop saw them last
	spins      bool                        // a loop turned without end and was killed: it stays dead
	asking     bool                        // a user's call is under way: intents may be stored and not yet known here
	askedAt    time.Time                   // when it began
	before     map[string]int64            // the generations of sets then
	doubts     []doubt                     // the daemon died over it, and may have stored it
	waiting    []func()                    // judgements that wait for its end
	past       map[string]*ordinals
	held       map[string]int       // volume that held data, as the daemon saw → serial
	condemned  map[string]int       // volume whose deletion a turn may have decided, which is then carried out → serial
	deleted    map[int]bool         // serials of volumes that the daemon deleted
	former     map[string]whose     // volume of a set that was deleted
	doomed     map[string]bool      // volume whose deletion was allowed once
	foreign    map[string]string    // "container NAME", "volume NAME" → what it is
	sick       map[string]bool      // runs of containers that were made to fail their probes
	ordered    map[string]bool      // member whose end the daemon asked for
	false_     map[string]time.Time // member whose status lies since then
	busy       map[string]time.Time // set whose loop turns since then without end
	count      map[string]int       // turns at that moment
	asks       map[string]wish      // of members: what was asked and has not happened yet
	party      party
	steps      int // turns of loops
	stepsSeen  int // and calls that changed something, when status was looked at last
	quietFor   int // moments since then
	complaints []string
	reached    map[string]int // how often what was reached
}

// intent is what the user wants of a set, from a moment on.
type intent struct {
	at       time.Time
	spec     setSpec
	replicas int
	start    int
	update   string // revision
	paused   bool
	deleting bool
	policy   string // delete --volumes
	gone     bool   // nothing is stored
	forced   bool
	stopped  map[int]bool // by the user; false: it was, and is perhaps still
}

func (i *intent) fits(o int) bool {
	return !i.gone && !i.deleting && slices.Contains(i.ordinals(), o)
}

func (i *intent) orderly() bool { return i.spec.get("manage") == jobspecs.Ordered }

// turn is one turn of a set's loop: what it saw, and what it asked for.
type turn struct {
	set   string
	at    time.Time
	life  *life
	pods  map[int]runtime.Pod
	deeds []deed
	data  map[string]int  // volumes that held data when it looked → serial
	disks map[string]bool // volumes that it saw
}

// deed is one call.
type deed struct {
	verb     string // create, stop, remove, create volume, delete volume
	ordinal  int
	revision string
	volume   string
	claim    string
	gone     bool // create volume: data was there before
	forget   bool // remove: nothing is kept for logs
}

func (d deed) String() string {
	if d.volume != "" {
		return d.verb + " " + d.volume
	}
	return d.verb + " " + strconv.Itoa(d.ordinal) + " " + d.revision
}

// ordinals is what happened to the members of a set so far.
type ordinals struct {
	once map[int]map[string]bool // revisions with which it was available
	last map[int]string          // the revision it was seen with last
	// meant are the revisions that it was stopped for, and may be made of in its turn.
	meant map[int]map[string]bool
}

func newWitness(r *rig) *witness {
	return &witness{
		rig: r, intents: map[string][]intent{}, turns: map[string]*turn{}, disks: map[string][]volumes.Volume{}, past: map[string]*ordinals{}, held: map[string]int{}, condemned: map[string]int{}, deleted: map[int]bool{}, former: map[string]whose{},
		doomed: map[string]bool{}, foreign: map[string]string{}, sick: map[string]bool{}, ordered: map[string]bool{}, false_: map[string]time.Time{},
		asks: map[string]wish{}, busy: map[string]time.Time{}, count: map[string]int{}, reached: map[string]int{},
	}
}

func (w *witness) complain(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.say(format, args...)
}

func (w *witness) say(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !slices.Contains(w.complaints, text) {
		w.complaints = append(w.complaints, text)
		w.rig.log = append(w.rig.log, fmt.Sprintf("%9.3fs  BROKEN: %s", w.rig.clock.now().Sub(w.rig.began).Seconds(), text))
	}
}

func (w *witness) restless() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.spins
}

// What the user wants.

// applied notes a spec that was stored. Overrides live on when it says what the
// last one said.
func (w *witness) applied(s setSpec, res client.Result) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, _ := strconv.Atoi(s.get("replicas"))
	start, _ := strconv.Atoi(s.get("start"))
	next := intent{at: w.rig.clock.now(), spec: s, replicas: n, start: start, update: res.Revision}
	if last := w.intent(s.set); last != nil && !last.gone {
		next.paused, next.stopped = last.paused, maps.Clone(last.stopped)
		if last.spec.hcl() == s.hcl() {
			next.replicas = last.replicas
		}
	}
	if w.past[s.set] == nil {
		w.past[s.set] = &ordinals{once: map[int]map[string]bool{}, last: map[int]string{}, meant: map[int]map[string]bool{}}
	}
	w.drop(s.set, &next)
	w.intents[s.set] = append(w.intents[s.set], next)
}

func (w *witness) changed(set, revision string, edit func(*intent)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	next := *w.intent(set)
	next.at, next.forced, next.stopped = w.rig.clock.now(), false, maps.Clone(next.stopped)
	if revision != "" {
		next.update = revision
	}
	edit(&next)
	w.drop(set, &next)
	w.intents[set] = append(w.intents[set], next)
}

// intent is the newest of a set; nil: it was never stored.
func (w *witness) intent(set string) *intent {
	if all := w.intents[set]; len(all) > 0 {
		return &all[len(all)-1]
	}
	return nil
}

// wanted is intent for readers outside.
func (w *witness) wanted(set string) *intent {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.intent(set)
}

// inForce are the intents of a set that held at that moment; at the moment of a
// change both do, and so they do for a loop that looks slowly.
func (w *witness) inForce(set string, at time.Time) []intent {
	var out []intent
	all := w.intents[set]
	for i := range all {
		begun := !all[i].at.After(at)
		over := i+1 < len(all) && all[i+1].at.Before(at.Add(-w.rig.lag(at)))
		if begun && !over {
			out = append(out, all[i])
		}
	}
	return out
}

// deletions are the intents of a deletion under way: what an earlier one decided is
// carried out.
func (w *witness) deletions(set string) []intent {
	all := w.intents[set]
	first := len(all)
	for first > 0 && all[first-1].deleting {
		first--
	}
	return all[first:]
}

// forget notes that a set and what was remembered of it is gone.
func (w *witness) forget(set string) {
	last := w.intent(set)
	if last == nil || last.gone {
		return
	}
	next := *last
	next.at, next.gone = w.rig.clock.now(), true
	w.intents[set] = append(w.intents[set], next)
	for _, d := range w.rig.world.Disks() {
		if d.Labels[jobspecs.LabelSet] == set && d.Labels[jobspecs.LabelDaemon] == w.rig.world.Daemon() &&
			!last.reclaims(d.Labels[jobspecs.LabelClaim], number(d.Labels[jobspecs.LabelOrdinal])) {
			w.former[d.Name] = nobodys
		}
	}
	delete(w.past, set)
	for member := range w.false_ {
		if name, _, _ := jobspecs.ParseMember(member); name == set {
			delete(w.false_, member)
		}
	}
	for member := range w.asks {
		if name, _, _ := jobspecs.ParseMember(member); name == set {
			delete(w.asks, member)
		}
	}
	for name := range w.held {
		if strings.Contains(name, "-"+set+"-") {
			delete(w.held, name)
		}
	}
}

// What the daemon does.

// turn begins a turn of a set's loop, and judges the one before.
func (w *witness) turn(l *life, key jobspecs.Key, list []runtime.Pod, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.steps++
	w.close(key.Name, err == nil)
	if !w.busy[key.Name].Equal(w.rig.clock.now()) {
		w.busy[key.Name], w.count[key.Name] = w.rig.clock.now(), 0
	}
	if w.count[key.Name]++; w.count[key.Name] > 500 && !w.spins {
		w.say("promise 8: the loop of %s looks again and again and no time passes", key.Name)
		w.spins = true
		go l.die()
	}
	if err != nil {
		return
	}
	t := &turn{set: key.Name, at: w.rig.clock.now(), life: l, pods: map[int]runtime.Pod{}, data: map[string]int{}, disks: map[string]bool{}}
	for _, p := range list {
		t.pods[p.Ordinal] = p
	}
	for _, v := range w.disks[key.Name] {
		t.disks[v.Name] = true
		d, ok := w.rig.world.Disk(v.Name)
		if ok && len(d.Writers) > 0 && !t.pods[v.Ordinal].StartedAt.IsZero() {
			t.data[v.Name] = d.Serial
		}
	}
	w.turns[key.Name] = t
}

// close judges the turn that ended; it learned what it saw when it was whole.
func (w *witness) close(set string, whole bool) {
	t := w.turns[set]
	if t == nil {
		return
	}
	delete(w.turns, set)
	whole = whole && !t.life.dead()
	w.decide(func() {
		w.judge(t)
		w.learn(t, whole)
	})
}

// decide judges now, or once the intent of the user's call under way is known.
func (w *witness) decide(verdict func()) {
	if w.asking {
		w.waiting = append(w.waiting, verdict)
		return
	}
	verdict()
}

// hold puts judgement off until the intent of a user's call is known.
func (w *witness) hold() (release func()) {
	w.before = w.rig.generations()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asking, w.askedAt = true, w.rig.clock.now()
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(w.doubts) == 0 {
			w.release()
		}
	}
}

// learn takes over what a turn saw. That data is there the daemon must have
// stored when the turn was whole; that a member was available it may have.
func (w *witness) learn(t *turn, whole bool) {
	p := w.past[t.set]
	if p == nil {
		return
	}
	w.hasAgain(t)
	w.condemn(t)
	for o, pod := range t.pods {
		if pod.Revision != "" { // unknown: found without a container
			p.last[o] = pod.Revision
		}
		if maybeAvailable(t, &pod, nil) {
			if p.once[o] == nil {
				p.once[o] = map[string]bool{}
			}
			p.once[o][pod.Revision] = true
		}
	}
	for _, d := range t.deeds {
		for _, i := range w.inForce(t.set, t.at) {
			if p.meant[d.ordinal] == nil {
				p.meant[d.ordinal] = map[string]bool{}
			}
			p.meant[d.ordinal][i.update] = true
		}
	}
	w.answered(t)
	for name, serial := range t.data {
		if whole && !w.deleted[serial] { // it may have been judged late
			w.held[name] = serial
		}
	}
}

// whose a volume of a set that was deleted is, since there is one of that name again.
type whose int

const (
	itsMembers whose = iota // or it never was of another
	nobodys                 // no member has had it
	perhaps                 // a member may have it, by one of the intents in force
)

// hasAgain notes which volumes of a former set are those of members again.
func (w *witness) hasAgain(t *turn) {
	for name := range t.disks {
		d, ok := w.rig.world.Disk(name)
		if !ok || w.former[name] == itsMembers {
			continue
		}
		all, some := true, false
		for _, i := range w.inForce(t.set, t.at) {
			has := !i.gone && !i.deleting && slices.Contains(i.ordinals(), number(d.Labels[jobspecs.LabelOrdinal]))
			all, some = all && has, some || has
		}
		switch {
		case all && some:
			delete(w.former, name)
		case some:
			w.former[name] = perhaps
		}
	}
}

// condemn notes of which volumes the turn may have decided that they go. One with which
// its member runs still is not among them.
func (w *witness) condemn(t *turn) {
	for name := range t.disks {
		d, ok := w.rig.world.Disk(name)
		if !ok {
			continue
		}
		ordinal := number(d.Labels[jobspecs.LabelOrdinal])
		goes := func(i intent) bool { return i.reclaims(d.Labels[jobspecs.LabelClaim], ordinal) }
		switch {
		case slices.ContainsFunc(w.inForce(t.set, t.at), goes):
			w.condemned[name] = d.Serial
		case !t.pods[ordinal].StartedAt.IsZero():
			delete(w.condemned, name)
		}
	}
}

func (w *witness) sawVolumes(key jobspecs.Key, list []volumes.Volume) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.disks[key.Name] = list
}

// asked notes what a loop asks of the engine.
func (w *witness) asked(key jobspecs.Key, d deed) {
	w.mu.Lock()
	defer w.mu.Unlock()
	member := jobspecs.MemberName(key.Name, d.ordinal)
	switch d.verb {
	case "create":
		delete(w.ordered, member)
		if t := w.turns[key.Name]; t != nil && t.pods[d.ordinal].Name == "" { // none is there: another life begins
			w.endLife(member)
		}
	case "remove":
		w.endLife(member)
	case "stop":
		w.ordered[member] = true
	case "create volume":
		d.gone = w.lost(d.volume) && !w.asks[member].fresh
	}
	if t := w.turns[key.Name]; t != nil {
		t.deeds = append(t.deeds, d)
	}
}

// lost tells whether a volume held data and is not there.
func (w *witness) lost(name string) bool {
	_, held := w.held[name]
	_, here := w.rig.world.Disk(name)
	return held && !here
}

// deletes judges the deletion of a volume at the moment it happens.
func (w *witness) deletes(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	disk, ok := w.rig.world.Disk(name)
	if !ok {
		return
	}
	if disk.Labels[jobspecs.LabelDaemon] != w.rig.world.Daemon() {
		w.say("promise 6: foreign volume %s is deleted", name)
		return
	}
	set := disk.Labels[jobspecs.LabelSet]
	ordinal, _ := strconv.Atoi(disk.Labels[jobspecs.LabelOrdinal])
	for _, c := range w.rig.world.Containers() {
		if c.Running() && c.Labels[jobspecs.LabelDaemon] == w.rig.world.Daemon() && c.Labels[jobspecs.LabelSet] == set && c.Labels[jobspecs.LabelOrdinal] == disk.Labels[jobspecs.LabelOrdinal] {
			w.say("promise 2: volume %s is deleted while %s runs", name, c.Name)
		}
	}
	at := w.rig.clock.now()
	if t := w.turns[set]; t != nil {
		at = t.at
	}
	allowed := w.doomed[name] || w.condemned[name] == disk.Serial || w.asks[jobspecs.MemberName(set, ordinal)].fresh
	w.reached["action: delete volume"]++
	w.reached["op: "+string(planner.DeleteVolume)]++
	w.doomed[name] = true
	delete(w.held, name)
	w.deleted[disk.Serial] = true
	w.decide(func() {
		defer delete(w.former, name)
		for _, i := range append(w.inForce(set, at), w.deletions(set)...) {
			allowed = allowed || i.reclaims(disk.Labels[jobspecs.LabelClaim], ordinal) && (w.former[name] != nobodys || i.deleting && i.policy == jobspecs.Delete)
		}
		if !allowed {
			w.say("promise 2: volume %s is deleted, and no retention says so", name)
		}
	})
}

// removed notes that the user removed a volume. One that was to go anyway is not lost.
func (w *witness) removed(name, set, claim string, ordinal int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := w.intent(set); i != nil && i.reclaims(claim, ordinal) {
		delete(w.held, name)
	}
}

// touches judges what the pod agent does to a container.
func (w *witness) touches(verb, id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.rig.world.Containers() {
		if c.ID != id {
			continue
		}
		if c.Labels[jobspecs.LabelDaemon] != w.rig.world.Daemon() {
			w.say("promise 6: foreign container %s: %s", c.Name, verb)
			continue
		}
		member := jobspecs.MemberName(c.Labels[jobspecs.LabelSet], number(c.Labels[jobspecs.LabelOrdinal]))
		if verb == "stop" && c.Running() && partOf(&c, member) && !w.ordered[member] && w.healthy(c.Labels[jobspecs.LabelSet], c.Image) {
			w.say("promise 3: the agent stops %s, which is healthy, and nobody asked for it", c.Name)
		}
	}
}

// healthy tells whether a container of this image has no reason to fail a probe.
// After a disturbance it may.
func (w *witness) healthy(set, image string) bool {
	if !w.rig.calm() {
		return false
	}
	i := w.intent(set)
	return i != nil && i.spec.get("probe") != "live" && image != "never:1" && images[image].PostStartError == nil
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return -1
	}
	return n
}
