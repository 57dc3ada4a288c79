package test

import (
	"context"

	"github.com/stsd/stsd/daemon"
)

// A daemon that dies while it is asked for something has stored it or not, and has
// not said. The next one knows: a set has another generation then.

// doubt is something that was asked for, and that may have been stored.
type doubt struct {
	set  string
	note func(revision string) // it was, with that revision
}

// doubt remembers what was asked of a daemon that died over it.
func (r *rig) doubt(set string, note func(revision string)) {
	if !r.up() {
		r.witness.mu.Lock()
		defer r.witness.mu.Unlock()
		r.witness.doubts = append(r.witness.doubts, doubt{set, note})
	}
}

// generations are those of the sets that are stored.
func (r *rig) generations() map[string]int64 {
	out := map[string]int64{}
	for _, set := range []string{"web", "db"} {
		if s, ok := r.status(set); ok {
			out[set] = s.Generation
		}
	}
	return out
}

// settle learns from a daemon that begins what the one before has stored.
func (w *witness) settle(d *daemon.Daemon) {
	w.mu.Lock()
	doubts := w.doubts
	w.mu.Unlock()
	for _, x := range doubts {
		s, err := d.Status(context.Background(), keyOf(x.set))
		if err != nil || s.Generation <= w.before[x.set] {
			continue
		}
		x.note(s.UpdateRevision)
		w.mu.Lock()
		w.reached["stored, and the daemon died before it said so"]++
		w.intent(x.set).at = w.askedAt
		w.mu.Unlock()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.doubts = nil
	w.release()
}

// release judges what waited for the end of a user's call; w.mu is held.
func (w *witness) release() {
	w.asking = false
	for _, verdict := range w.waiting {
		verdict()
	}
	w.waiting = nil
}
