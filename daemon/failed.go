package daemon

import (
	"context"
	"errors"
	"time"

	"github.com/stsd/stsd/daemon/planner"
	"github.com/stsd/stsd/daemon/store"
	"github.com/stsd/stsd/jobspecs"
)

// rollBack takes a rollout that failed back to the revision that the set was complete
// with: members that never left it are not touched. When that one is not stored any
// more, the rollout stands still instead.
func (l *loop) rollBack(ctx context.Context, s *sight, failed *planner.Halt) error {
	d := l.d
	d.write.Lock()
	defer d.write.Unlock()
	v, err := d.load(l.key)
	if err != nil || v == nil || v.Record.Deleting != nil || v.Record.Generation != s.view.Record.Generation {
		return err // it is another matter now
	}
	halt := l.fail(failed, s.world.Now)
	c, err := d.takeBack(ctx, v, halt)
	if err == nil && c.name == halt.Revision {
		err = errors.New("the last good revision is the one that failed")
	}
	if err != nil {
		d.log.Warn("roll back", "set", l.key.String(), "error", err)
		return d.store.Learn(l.key, store.Facts{Halted: halt})
	}
	if err := d.commit([]*change{c}); err != nil {
		return err
	}
	d.events.record(l.key, "", warning, "RolledBack", rolledBack(c.intent.Record.Rolled))
	return nil
}

func (d *Daemon) takeBack(ctx context.Context, v *store.View, halt *planner.Halt) (*change, error) {
	from, to := halt.Revision, v.Record.Current
	rolled := &store.Rolled{From: from, To: to, Why: halt.Why, At: halt.At, Overrides: v.Record.Overrides}
	c, err := d.override(ctx, v, rolledBack(rolled), func(o *jobspecs.Overrides) {
		o.Undo, o.Images, o.Restarted = to, nil, ""
	})
	if err != nil {
		return nil, err
	}
	c.intent.Record.Rolled = rolled
	return c, nil
}

func rolledBack(r *store.Rolled) string {
	return "rolled back from " + r.From + " to " + r.To + ": " + r.Why
}

// tellRolled shows that what runs is not what was wanted last, and why.
func tellRolled(status *jobspecs.Status, r *store.Rolled, typed string) {
	c := jobspecs.Condition{Type: jobspecs.CondRolledBack}
	if r != nil {
		c.Status, c.Reason = true, "DeadlineExceeded"
		c.Message = rolledBack(r) + " (at " + r.At.UTC().Format(time.RFC3339) + "); apply a corrected spec, or stsd rollout resume " + typed + " to try it again"
	}
	status.Conditions = append(status.Conditions, c)
}
