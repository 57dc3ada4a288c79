package test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stsd/stsd/daemon/planner"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/runtime/pods"
)

// The promises of DESIGN section 5, from the user's side. Where the daemon knows
// more than the witness (what it stored before it was killed), the benefit of
// the doubt is its.

// surelyAvailable and maybeAvailable bound what the loop may take a pod for.
func surelyAvailable(t *turn, p *runtime.Pod, i *intent) bool {
	return p != nil && p.Phase == runtime.Running && p.Ready && p.ReadyKnown && !t.at.Before(p.ReadySince.Add(i.minReady()))
}

func maybeAvailable(t *turn, p *runtime.Pod, i *intent) bool {
	switch {
	case p == nil || p.Phase != runtime.Running:
		return false
	case !p.ReadyKnown: // the stored readiness holds
		return true
	case p.Ready && (p.StartedAt.Before(t.life.began) || t.life.rig.clock.set()): // ready since before the daemon was, perhaps
		return true
	}
	return p.Ready && !t.at.Before(p.ReadySince.Add(i.minReady()))
}

func (i *intent) minReady() time.Duration {
	if i == nil {
		return 0
	}
	return i.duration("minready")
}

func (i *intent) duration(option string) time.Duration {
	d, err := time.ParseDuration(i.spec.get(option))
	if err != nil {
		panic(err) // stories are ours
	}
	return d
}

func (i *intent) partition() int { return number(i.spec.get("partition")) }

// maxUnavailable is the number that the option stands for.
func (i *intent) maxUnavailable() int {
	text, percent := strings.CutSuffix(i.spec.get("max"), "%")
	n := number(text)
	if percent {
		n = i.replicas * n / 100
	}
	return max(n, 1)
}

// reclaims tells whether the user allows a volume of a pod that is gone to be
// deleted.
func (i *intent) reclaims(claimName string, ordinal int) bool {
	for _, c := range i.spec.claims() {
		if c.name != claimName {
			continue
		}
		inRange := slices.Contains(i.ordinals(), ordinal)
		if !i.deleting {
			return !i.gone && !inRange && c.down == jobspecs.Delete
		}
		return i.policy == jobspecs.Delete || i.policy == "" && (c.del == jobspecs.Delete || !inRange && c.down == jobspecs.Delete)
	}
	return i.deleting && i.policy == jobspecs.Delete
}

// judge holds a turn against the promises. A turn that fits one of the intents
// in force when it looked is right.
func (w *witness) judge(t *turn) {
	var wrong []string
	if w.noteRollback(t) {
		w.reached["turn that is not judged: a rollback may be under it"]++
		w.tally(t)
		return
	}
	for _, i := range w.inForce(t.set, t.at) {
		if wrong = w.wrongs(t, &i); len(wrong) == 0 {
			break
		}
	}
	for _, text := range wrong {
		w.say("%s", text)
	}
	w.tally(t)
}

func (w *witness) wrongs(t *turn, i *intent) (wrong []string) {
	say := func(promise int, format string, args ...any) {
		wrong = append(wrong, fmt.Sprintf("promise %d: ", promise)+fmt.Sprintf(format, args...)+": "+t.String())
	}
	for _, d := range t.deeds {
		switch d.verb {
		case "create":
			w.judgeCreate(t, i, d, say)
		case "create volume":
			if !i.fits(d.ordinal) {
				say(2, "%s is made for a member that the set does not have", d.volume)
			}
			if d.gone {
				say(2, "%s held data, is gone, and is made again empty", d.volume)
			}
		case "stop":
			w.judgeStop(t, i, d.ordinal, say)
		}
	}
	w.judgeStops(t, i, say)
	w.judgeGuard(t, i, say)
	w.judgeLeaving(t, i, say)
	w.judgeFilling(t, i, say)
	return wrong
}

func (w *witness) judgeCreate(t *turn, i *intent, d deed, say func(int, string, ...any)) {
	if p, ok := t.pods[d.ordinal]; ok {
		if p.Revision != d.revision {
			say(1, "%d is made beside a pod of another revision", d.ordinal)
		}
		return // a newer rendering is handed over
	}
	if !i.fits(d.ordinal) {
		say(3, "%d is made, and the set does not have it", d.ordinal)
		return
	}
	past := w.past[t.set]
	recovers := past.once[d.ordinal][d.revision]
	w.judgeStart(i, d, say)
	if d.revision != i.update && d.ordinal >= i.partition() && !i.paused && !w.standsStill(t.set) && past.last[d.ordinal] != d.revision && !past.meant[d.ordinal][d.revision] {
		say(3, "%d is made of %s, an old revision that it did not have", d.ordinal, d.revision)
	}
	if !i.orderly() {
		return
	}
	for _, o := range i.ordinals() {
		if o >= d.ordinal {
			break
		}
		p, ok := t.pods[o]
		if i.down(o) {
			continue
		}
		if ok && maybeAvailable(t, &p, i) {
			continue
		}
		if !recovers {
			say(3, "%d is made before %d is available", d.ordinal, o)
			return
		}
		wait := i.duration("recovery")
		staged := !p.StartedAt.IsZero() && (!t.at.Before(p.StartedAt.Add(wait)) || w.rig.clock.set()) // who set the clock knows how long it is
		if o == d.ordinal-1 && wait > 0 && !staged && t.comes(o) {
			say(3, "%d comes back before recovery_wait has passed for %d", d.ordinal, o)
		}
	}
}

// comes tells whether a member surely is on its way: it runs or can start, or is made
// in this turn.
func (t *turn) comes(ordinal int) bool {
	if p, ok := t.pods[ordinal]; ok && p.Phase != runtime.Stopped {
		return !p.StartedAt.IsZero() || p.Phase != runtime.Failed && p.Phase != runtime.Backoff
	}
	return slices.ContainsFunc(t.deeds, func(d deed) bool { return d.ordinal == ordinal })
}

// judgeStop asks whether the member may be stopped at all.
func (w *witness) judgeStop(t *turn, i *intent, ordinal int, say func(int, string, ...any)) {
	p, ok := t.pods[ordinal]
	switch {
	case !ok:
	case i.fits(ordinal) && (w.wished(t, ordinal) || i.down(ordinal)): // the user asked for it
	case i.fits(ordinal) && w.bereft(t, i, &p): // nothing can be made from it any more
	case !i.fits(ordinal):
		for o, q := range t.pods {
			if i.orderly() && o > ordinal && !i.fits(o) && !(q.Phase == runtime.Stopped && !i.orderly()) {
				say(3, "%d is ended before %d is gone", ordinal, o)
			}
		}
		for _, o := range i.ordinals() {
			if _, there := t.pods[o]; !there && !i.deleting && ordinal < i.start {
				say(3, "%d is ended while its successor %d does not exist", ordinal, o)
			}
		}
	case p.Revision == i.update:
		say(3, "%d runs the wanted revision and is stopped", ordinal)
	case i.spec.get("strategy") == jobspecs.OnDelete:
		say(3, "%d is stopped for an update under on_delete", ordinal)
	case i.paused:
		say(3, "%d is stopped for an update under a pause", ordinal)
	case ordinal < i.partition():
		say(3, "%d is below the partition and is stopped", ordinal)
	}
}

// bereft tells whether a volume of a pod is gone, while none of its containers
// runs. It has the claims of the specs that had its revision, one that was undone
// too.
func (w *witness) bereft(t *turn, i *intent, p *runtime.Pod) bool {
	if p.Phase != runtime.Failed && p.Phase != runtime.Backoff {
		return false
	}
	claims := i.spec.claims()
	for _, other := range w.intents[t.set] {
		if other.update == p.Revision {
			claims = append(claims, other.spec.claims()...)
		}
	}
	return slices.ContainsFunc(claims, func(c claim) bool {
		return !t.disks[jobspecs.VolumeName(jobspecs.DefaultNamespace, c.name, t.set, p.Ordinal)]
	})
}

// judgeStops counts what is stopped in one turn.
func (w *witness) judgeStops(t *turn, i *intent, say func(int, string, ...any)) {
	stops := map[int]bool{}
	ended, healthy, sick := 0, 0, 0
	for _, d := range t.deeds {
		p, ok := t.pods[d.ordinal]
		if d.verb != "stop" || !ok {
			continue
		}
		stops[d.ordinal] = true
		if i.fits(d.ordinal) && (i.down(d.ordinal) || w.wishedNow(t, d.ordinal) || w.bereft(t, i, &p)) {
			continue
		}
		switch {
		case !i.fits(d.ordinal):
			ended++
		case surelyAvailable(t, &p, i):
			healthy++
		default:
			sick++
		}
	}
	if i.orderly() && ended > 1 {
		say(3, "%d members are ended at once", ended)
	}
	unavailable, leaving, unmade := 0, 0, true
	for _, o := range i.ordinals() {
		p, ok := t.pods[o]
		if i.down(o) || ok && maybeAvailable(t, &p, i) {
			continue
		}
		unavailable++
		if !stops[o] && ok && (p.Revision == i.update || p.Phase == runtime.Stopping || p.Phase == runtime.Stopped) {
			leaving++
			unmade = unmade && (p.Phase == runtime.Stopping || p.Phase == runtime.Stopped)
		}
	}
	if healthy > 0 && unavailable+healthy > i.maxUnavailable() {
		say(3, "%d available members are stopped, %d are unavailable already, and max_unavailable is %d", healthy, unavailable, i.maxUnavailable())
	}
	if sick > 0 && sick+leaving > i.maxUnavailable()+1 && !(sick == 1 && unmade) { // one may go to make room for those
		say(3, "%d members are stopped and %d are on their way, and max_unavailable is %d", sick, leaving, i.maxUnavailable())
	}
	w.judgeOrder(t, i, stops, say)
}

// judgeOrder: an update takes available members from the top. One that the user let go
// has its own moment.
func (w *witness) judgeOrder(t *turn, i *intent, stops map[int]bool, say func(int, string, ...any)) {
	if t.life.dead() { // it did not come to all that it meant to do
		return
	}
	for o := range stops {
		p := t.pods[o]
		if !i.fits(o) || i.down(o) || w.wished(t, o) || !surelyAvailable(t, &p, i) {
			continue
		}
		for above, q := range t.pods {
			if above > o && i.fits(above) && !i.down(above) && !w.wishedNow(t, above) && above >= i.partition() && q.Revision != i.update && surelyAvailable(t, &q, i) && !stops[above] {
				say(3, "%d is updated before %d", o, above)
			}
		}
	}
}

// judgeFilling: nothing is stopped while a member that may be made is not.
func (w *witness) judgeFilling(t *turn, i *intent, say func(int, string, ...any)) {
	if t.life.dead() {
		return
	}
	made, stopped := map[int]bool{}, false
	for _, d := range t.deeds {
		p, there := t.pods[d.ordinal]
		switch {
		case d.verb == "stop" && i.fits(d.ordinal) && (i.down(d.ordinal) || w.wishedNow(t, d.ordinal) || w.bereft(t, i, &p)):
		case d.verb == "stop":
			stopped = true
		case !there && strings.HasPrefix(d.verb, "create"):
			made[d.ordinal] = true
		}
	}
	if !stopped || i.gone || i.deleting || i.spec.get("after") != "" {
		return
	}
	if len(made) > 0 {
		say(4, "members are stopped while others are only being made")
	}
	waits := i.orderly() || i.duration("recovery") > 0 // perhaps, for those below
	for _, o := range i.ordinals() {
		p, ok := t.pods[o]
		switch {
		case i.down(o) && ok && waits: // perhaps it is not, and the next one waits for it
			return
		case i.down(o):
			continue
		}
		if !ok && !made[o] && w.provided(t, i, o) {
			say(4, "members are stopped while %d, which may be made, is missing", o)
		}
		if waits && (!ok || !surelyAvailable(t, &p, i)) {
			return
		}
	}
}

// provided tells whether the member's volumes are there and nothing is wrong with
// them.
func (w *witness) provided(t *turn, i *intent, ordinal int) bool {
	for _, claim := range []string{"data", "log"} { // it may come back as it was, with a claim that the spec has no more
		if w.lost(jobspecs.VolumeName(jobspecs.DefaultNamespace, claim, t.set, ordinal)) {
			return false
		}
	}
	for _, c := range i.spec.claims() {
		name := jobspecs.VolumeName(jobspecs.DefaultNamespace, c.name, t.set, ordinal)
		if _, here := w.rig.world.Disk(name); !here || !t.disks[name] || w.doomed[name] || w.foreign["volume "+name] != "" {
			return false
		}
	}
	return true
}

func (t *turn) String() string {
	var seen, done []string
	for o := range slices.Max([]int{0, len(t.pods) + 20}) {
		if p, ok := t.pods[o]; ok {
			ready := ""
			if p.Ready {
				ready = " ready"
			}
			seen = append(seen, fmt.Sprintf("%s %s%s %s %s", p.Name, p.Phase, ready, p.Revision, p.Reason))
		}
	}
	for _, d := range t.deeds {
		done = append(done, d.String())
	}
	return "saw [" + strings.Join(seen, ", ") + "], did [" + strings.Join(done, ", ") + "]"
}

// tally counts what was reached.
func (w *witness) tally(t *turn) {
	for _, d := range t.deeds {
		p, listed := t.pods[d.ordinal]
		word := d.verb
		switch {
		case d.verb == "create" && listed:
			word = "hand over"
		case d.verb == "create" && w.past[t.set] != nil && w.past[t.set].once[d.ordinal][d.revision]:
			word = "create (recovery)"
		case d.verb == "stop" && w.intent(t.set).fits(d.ordinal) && !p.Ready:
			word = "stop (outdated, sick)"
		case d.verb == "stop" && w.intent(t.set).fits(d.ordinal):
			word = "stop (outdated)"
		case d.verb == "stop" && w.intent(t.set).deleting:
			word = "stop (deleting)"
		case d.verb == "stop":
			word = "stop (scaled down)"
		case d.verb == "remove" && d.forget:
			word = "forget"
		}
		w.reached["action: "+word]++
		w.reached["op: "+string(opOf(d, listed))]++
	}
}

// opOf is the verb of the plan that a deed was.
func opOf(d deed, listed bool) planner.Op {
	switch {
	case d.verb == "create" && listed:
		return planner.Refresh
	case d.verb == "remove" && d.forget:
		return planner.Forget
	}
	return planner.Op(d.verb)
}

// look holds the state of the world against the promises. It is called when
// nothing happens at this moment.
func (w *witness) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, v := range w.rig.world.Violations() {
		w.say("promise 1: %s", v)
	}
	w.lookAtForeign()
	w.lookAtRate()
	if !w.rig.up() || w.quiet() {
		return
	}
	for set, all := range w.intents {
		i := all[len(all)-1]
		s, ok := w.rig.status(set)
		switch {
		case !ok && i.deleting && !i.gone:
			w.close(set, false)
			w.lookAtRemains(set, &i)
			w.forget(set)
		case !ok && !i.gone:
			w.say("promise 5: set %s was accepted and is not stored", set)
		case ok:
			w.lookAtStatus(&i, s)
		}
	}
}

// quiet tells that neither the daemon nor anybody else has done anything since the
// status was looked at: then it is looked at at every fifth moment only.
func (w *witness) quiet() bool {
	done := w.steps + w.rig.life.writes()
	if w.quietFor++; done != w.stepsSeen || w.quietFor >= 5 {
		w.stepsSeen, w.quietFor = done, 0
		return false
	}
	return true
}

// lookAtForeign: what is not ours is as it was.
func (w *witness) lookAtForeign() {
	for what, id := range w.foreign {
		kind, name, _ := strings.Cut(what, " ")
		now := ""
		if kind == "volume" {
			if d, ok := w.rig.world.Disk(name); ok {
				now = strconv.Itoa(d.Serial)
			}
		} else if c, ok := w.rig.world.Container(name); ok {
			now = c.ID
		}
		if now != id {
			w.say("promise 6: foreign %s was %s and is %q", what, id, now)
		}
	}
}

// Most writes that a host sees in a minute: a crash loop is four for each of at
// most eight restarts.
const writesPerMinute = 1200

func (w *witness) lookAtRate() {
	if n := w.rig.world.WritesSince(time.Now().Add(-time.Minute)); n > writesPerMinute {
		w.say("promise 8: %d writes in a minute", n)
	}
}

// lookAtRemains: of a deleted set only retained volumes stay.
func (w *witness) lookAtRemains(set string, i *intent) {
	for _, c := range w.rig.world.Containers() {
		if c.Labels[jobspecs.LabelSet] == set && c.Labels[jobspecs.LabelDaemon] == w.rig.world.Daemon() {
			w.say("set %s is deleted and container %s is left", set, c.Name)
		}
	}
	w.lookAtScratch(set)
	for _, d := range w.rig.world.Disks() {
		if d.Labels[jobspecs.LabelSet] == set && d.Labels[jobspecs.LabelDaemon] == w.rig.world.Daemon() &&
			i.reclaims(d.Labels[jobspecs.LabelClaim], number(d.Labels[jobspecs.LabelOrdinal])) && (w.former[d.Name] == itsMembers || i.policy == jobspecs.Delete) {
			w.say("set %s is deleted and volume %s, which was to go, is left", set, d.Name)
		}
	}
}

// lookAtStatus: the counts are those of the members, and members are what the
// host shows, but for the moments that news takes.
func (w *witness) lookAtStatus(i *intent, s jobspecs.Status) {
	ready, available := 0, 0
	for _, m := range s.Members {
		if m.Ready {
			ready++
		}
		if m.Available {
			available++
		}
		if m.Available && !m.Ready {
			w.say("promise 7: %s is available and not ready", m.Name)
		}
		if m.Waiting != "" {
			w.reached["wait: "+kindOfWait(m.Waiting)]++
		}
		w.reach(&m)
		w.lookAtMember(i, &m)
	}
	if ready != s.ReadyReplicas || available != s.AvailableReplicas {
		w.say("promise 7: status of %s says %d ready, %d available, and has %d and %d", s.Name, s.ReadyReplicas, s.AvailableReplicas, ready, available)
	}
	for _, c := range s.Conditions {
		if c.Status {
			w.reached["true: "+c.Type]++
		}
		if c.Status || c.Type == jobspecs.CondProgressing {
			w.reached["condition: "+c.Type+"="+fmt.Sprint(c.Status)+" "+c.Reason]++
		}
	}
}

// lie is how long a status may be wrong while nothing disturbs the daemon.
const lie = 60 * time.Second

func (w *witness) lookAtMember(i *intent, m *jobspecs.Member) {
	c, _ := w.rig.world.Container(m.Name)
	runs, sound := w.runsWhole(m)
	wrong := m.Ready && !runs || m.Ready && !sound && w.specOf(i, m.Revision).get("probe") != "none" || !m.Ready && sound && images[c.Image].PostStartError == nil && i.fits(m.Ordinal) && m.Phase != string(runtime.Stopping)
	if !wrong || !w.rig.calm() || m.Phase == string(runtime.Unknown) {
		delete(w.false_, m.Name)
		return
	}
	since, known := w.false_[m.Name]
	if !known {
		w.false_[m.Name] = w.rig.clock.now()
		return
	}
	bound := lie
	if m.Ready && !runs {
		bound = 5 * time.Second
	}
	if w.rig.clock.now().Sub(since) > bound {
		w.say("promise 7: for more than %s status says of %s: %s, ready %v; its container is %s, and it answers: %v", bound, m.Name, m.Phase, m.Ready, c.State, sound)
	}
}

// specOf is what the user wrote when a set had that revision; as it is now where
// nobody knows.
func (w *witness) specOf(i *intent, revision string) setSpec {
	all := w.intents[i.spec.set]
	for n := len(all) - 1; n >= 0; n-- {
		if all[n].update == revision {
			return all[n].spec
		}
	}
	return i.spec
}

// sound tells whether a running container answers its probes.
func (w *witness) sound(c *pods.Container) bool {
	p := images[c.Image]
	return !p.NeverReady && w.rig.world.Ran(c.ID) >= p.ReadyAfter && p.ExitAfter == 0 && !w.sick[runOf(c)]
}

// runOf names one run of a container.
func runOf(c *pods.Container) string { return c.ID + " " + c.StartedAt.String() }
