package test

import (
	"fmt"
	"slices"
	"time"

	"github.com/stsd/stsd/jobspecs"
)

// What a user asks of members, from the user's side: it happens, once; a member that
// was stopped stays so; no voluntary stop goes below the guard; a member that wants to
// leave has asked first.

// wish is something that was asked of a member and has not happened yet.
type wish struct {
	at     time.Time
	now    bool      // not in its turn
	fresh  bool      // with fresh volumes
	unsure bool      // the ordinal was gone meanwhile: perhaps it is forgotten
	again  time.Time // asked once more before it happened; zero: no
}

// ordinals are those of the set that is wanted.
func (i *intent) ordinals() []int {
	set := jobspecs.Set{StartOrdinal: i.start}
	for _, c := range i.spec.get("reserve") {
		if c != ',' {
			set.Reserve = append(set.Reserve, int(c-'0'))
		}
	}
	return set.Ordinals(i.replicas)
}

// down tells whether the user stopped a member, or perhaps did.
func (i *intent) down(o int) bool {
	_, known := i.stopped[o]
	return known
}

// wish notes what was asked of members. The witness is locked.
func (w *witness) wish(i *intent, do string, ordinals []int, now bool, at time.Time) {
	if i.stopped == nil {
		i.stopped = map[int]bool{}
	}
	for _, o := range ordinals {
		member := jobspecs.MemberName(i.spec.set, o)
		switch do {
		case "stop":
			i.stopped[o] = true
		case "start":
			delete(i.stopped, o)
		case "fresh":
			w.asks[member] = wish{at: at, now: true, fresh: true}
		default:
			old, asked := w.asks[member]
			switch {
			case i.stopped[o]:
			case !asked || now && !old.now:
				w.asks[member] = wish{at: at, now: now}
			default:
				old.again = at
				w.asks[member] = old
			}
		}
	}
}

// drop makes unsure what was known of ordinals that a set does not have any more.
func (w *witness) drop(set string, i *intent) {
	for o := range i.stopped {
		if !slices.Contains(i.ordinals(), o) {
			i.stopped[o] = false
		}
	}
	for member, x := range w.asks {
		if name, o, _ := jobspecs.ParseMember(member); name == set && !slices.Contains(i.ordinals(), o) {
			x.unsure = true
			w.asks[member] = x
		}
	}
}

// wished tells whether the user asked for a member's end, and it comes back.
func (w *witness) wished(t *turn, o int) bool {
	x, ok := w.asks[jobspecs.MemberName(t.set, o)]
	return ok && !x.at.After(t.at)
}

// wishedNow is wished without waiting for a turn.
func (w *witness) wishedNow(t *turn, o int) bool {
	return w.wished(t, o) && w.asks[jobspecs.MemberName(t.set, o)].now
}

// answered takes off the wishes that a turn has done: the member was made anew.
func (w *witness) answered(t *turn) {
	for _, d := range t.deeds {
		member := jobspecs.MemberName(t.set, d.ordinal)
		if _, listed := t.pods[d.ordinal]; d.verb != "create" || listed || !w.wished(t, d.ordinal) {
			continue
		}
		x := w.asks[member]
		if x.at.Equal(t.at) { // asked before the turn looked, or after
			x.unsure = true
			w.asks[member] = x
			continue
		}
		w.reached["ask answered"]++
		delete(w.asks, member)
		if !x.again.Before(t.at) { // so was this
			w.asks[member] = wish{at: x.again, now: x.now, unsure: true}
		}
	}
}

// unanswered is a wish that did not come true.
func (w *witness) unanswered(set string, i *intent) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	for member, x := range w.asks {
		if name, o, _ := jobspecs.ParseMember(member); name == set && i.fits(o) && !x.unsure && !i.down(o) {
			return fmt.Sprintf("%s was to be restarted at %s and is not", member, x.at.Sub(w.rig.began))
		}
	}
	return ""
}

// judgeStart: what was stopped stays down, and a first start waits for other sets.
func (w *witness) judgeStart(i *intent, d deed, say func(int, string, ...any)) {
	if i.stopped[d.ordinal] {
		say(3, "%d is made, and the user stopped it", d.ordinal)
	}
	after := w.intent(i.spec.get("after"))
	if i.spec.get("after") != "" && (after == nil || after.gone) && len(w.past[i.spec.set].once[d.ordinal]) == 0 && w.past[i.spec.set].last[d.ordinal] == "" {
		say(3, "%d is made for the first time, and the set that it starts after is not there", d.ordinal)
	}
}

// standsStill tells whether status says that the rollout does, or was taken back.
func (w *witness) standsStill(set string) bool {
	s, ok := w.rig.status(set)
	return ok && slices.ContainsFunc(s.Conditions, func(c jobspecs.Condition) bool {
		return c.Status && (c.Type == jobspecs.CondPaused || c.Type == jobspecs.CondRolledBack)
	})
}

// noteRollback takes over that the daemon took a rollout back by itself, which status
// has to say; unsure tells that there may have been one, and that something else was
// stored since.
func (w *witness) noteRollback(t *turn) (unsure bool) {
	last := w.intent(t.set)
	s, ok := w.rig.status(t.set)
	if last == nil || last.gone || !ok {
		return false
	}
	if s.ObservedGeneration < s.Generation {
		return w.mayHaveFailed(t.set)
	}
	if s.UpdateRevision == last.update {
		return false
	}
	for _, c := range s.Conditions {
		if c.Type == jobspecs.CondRolledBack && c.Status && last.spec.get("failure") == jobspecs.FailRollback {
			w.reached["rolled back"]++
			next := *last
			next.at, next.update = t.at, s.UpdateRevision
			w.intents[t.set] = append(w.intents[t.set], next)
		}
	}
	return false
}

// mayHaveFailed tells whether the wanted revision may have missed a deadline that it
// had, and may be taken back for it.
func (w *witness) mayHaveFailed(set string) bool {
	all := w.intents[set]
	update, now := all[len(all)-1].update, w.rig.clock.now()
	rolls, late := false, w.rig.clock.set()
	for n := len(all) - 1; n >= 0 && all[n].update == update; n-- {
		rolls = rolls || all[n].spec.get("failure") == jobspecs.FailRollback
		for _, i := range all[n:] {
			d := i.duration("deadline")
			late = late || d > 0 && now.Sub(all[n].at) >= d
		}
	}
	return rolls && late
}

// judgeGuard: no voluntary stop takes the set below its guard.
func (w *witness) judgeGuard(t *turn, i *intent, say func(int, string, ...any)) {
	if i.deleting || i.gone || i.forced {
		return
	}
	left, gone := 0, 0
	for _, p := range t.pods {
		if maybeAvailable(t, &p, i) {
			left++
		}
	}
	for _, d := range t.deeds {
		if p, ok := t.pods[d.ordinal]; ok && d.verb == "stop" && surelyAvailable(t, &p, i) {
			gone++
		}
	}
	if least := min(number(i.spec.get("guard")), i.replicas); gone > 0 && left-gone < least {
		say(9, "%d of %d available members are stopped, and the guard wants %d", gone, left, least)
	}
}

// judgeLeaving: an available member whose ordinal goes has run its hook before.
func (w *witness) judgeLeaving(t *turn, i *intent, say func(int, string, ...any)) {
	if i.deleting || i.gone || i.forced || i.spec.get("leave") == "" {
		return
	}
	for _, d := range t.deeds {
		p, ok := t.pods[d.ordinal]
		if d.verb != "stop" || !ok || i.fits(d.ordinal) || !surelyAvailable(t, &p, i) {
			continue
		}
		said := false
		for _, e := range w.rig.world.Execs() {
			said = said || e.Env["STSD_REASON"] == jobspecs.OnLeave && e.Env["STSD_MEMBER"] == p.Name && e.Code == 0 && (!e.At.Before(p.CreatedAt) || w.rig.clock.set())
		}
		w.reached["leave hook asked"]++
		if !said {
			say(9, "%d leaves, and its hook did not say yes", d.ordinal)
		}
	}
}
