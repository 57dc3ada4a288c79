package daemon

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/daemon/planner"
	"github.com/stsd/stsd/daemon/store"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/jobspecs/hcl"
)

// override works out a change of a stored set that leaves its source alone.
func (d *Daemon) override(ctx context.Context, v *store.View, cause string, edit func(*jobspecs.Overrides)) (*change, error) {
	key := v.Record.Key()
	if v.Record.Lost {
		return nil, conflict(key, "its spec was lost; apply it again first")
	}
	scope, err := d.store.Scope(key)
	if err != nil {
		return nil, err
	}
	origin := jobspecs.Origin{Source: scope.Sources, Inputs: scope.Inputs}
	spec := written(origin, key)
	if spec == nil {
		return nil, conflict(key, "this stsd no longer reads the stored source; apply it again")
	}
	spec.Set.Namespace = key.Namespace
	w := wanted{set: spec.Set, origin: origin, replicas: v.Record.Replicas, overrides: v.Record.Overrides}
	w.overrides.Images = maps.Clone(w.overrides.Images)
	edit(&w.overrides)
	if err := w.settle(spec, v); err != nil {
		return nil, invalid(err.Error())
	}
	if err := d.checkSpec(checked(w.set, w.replicas), w.template, nil); err != nil {
		return nil, err
	}
	return d.change(ctx, v, w, nil, cause)
}

func checked(set jobspecs.Set, replicas int) *jobspecs.Set {
	set.Replicas = &replicas
	return &set
}

// Scale changes the number of members, beside the source.
func (d *Daemon) Scale(ctx context.Context, key jobspecs.Key, r client.ScaleRequest) (client.Result, error) {
	d.write.Lock()
	defer d.write.Unlock()
	v, err := d.existing(ctx, key, r.Write)
	if err != nil {
		return client.Result{}, err
	}
	n := r.Replicas
	if r.Relative {
		n += v.Record.Replicas
	}
	if n < 0 || n > jobspecs.MaxReplicas {
		return client.Result{}, invalid(fmt.Sprintf("replicas must be between 0 and %d, not %d", jobspecs.MaxReplicas, n))
	}
	c, err := d.override(ctx, v, r.Cause, func(o *jobspecs.Overrides) { o.Replicas = &n })
	if err != nil {
		return client.Result{}, err
	}
	if w := v.Record.Set.Replicas; w != nil && *w == n { // what the source says is no override
		c.intent.Record.Overrides.Replicas = nil
		c.compare()
	}
	message := fmt.Sprintf("%s scaled from %d to %d", key.Name, v.Record.Replicas, n)
	if n == v.Record.Replicas {
		message = fmt.Sprintf("%s has %d members already", key.Name, n)
	}
	return d.one(ctx, c, r.Write, message)
}

// SetImage makes a revision with other images, beside the source.
func (d *Daemon) SetImage(ctx context.Context, key jobspecs.Key, r client.ImageRequest) (client.Result, error) {
	d.write.Lock()
	defer d.write.Unlock()
	v, err := d.existing(ctx, key, r.Write)
	if err != nil {
		return client.Result{}, err
	}
	images, err := named(v.Record.Template, r.Images)
	if err != nil {
		return client.Result{}, invalid(err.Error())
	}
	c, err := d.override(ctx, v, r.Cause, func(o *jobspecs.Overrides) {
		if o.Images == nil {
			o.Images = map[string]string{}
		}
		maps.Copy(o.Images, images)
	})
	if err != nil {
		return client.Result{}, err
	}
	message := fmt.Sprintf("%s image updated", key.Name)
	if c.name == v.Record.Update {
		message, c.same = fmt.Sprintf("%s runs that image already", key.Name), true
	}
	return d.one(ctx, c, r.Write, message)
}

// named replaces "" and "*" by the containers of the template.
func named(t jobspecs.Template, images map[string]string) (map[string]string, error) {
	out := map[string]string{}
	for name, ref := range images {
		if ref == "" {
			return nil, fmt.Errorf("an image is needed")
		}
		if name != "" && name != "*" {
			out[name] = ref
			continue
		}
		for _, i := range hcl.Images(t) {
			out[i.Container] = ref
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("name the container: CONTAINER=IMAGE")
	}
	_, err := hcl.WithImages(t, out)
	return out, err
}

// Rollout is undo, pause, resume and restart.
func (d *Daemon) Rollout(ctx context.Context, key jobspecs.Key, r client.RolloutRequest) (client.Result, error) {
	d.write.Lock()
	defer d.write.Unlock()
	v, err := d.existing(ctx, key, r.Write)
	if err != nil {
		return client.Result{}, err
	}
	switch r.Do {
	case "undo":
		return d.undo(ctx, v, r)
	case "restart":
		return d.restart(ctx, v, r)
	case "pause", "resume":
		return d.pause(ctx, v, r, r.Do == "pause")
	}
	return client.Result{}, invalid(fmt.Sprintf("%q is no rollout verb: undo, pause, resume or restart", r.Do))
}

// undo goes back to an older template: the one before that did not fail, or the one
// named. Only the template goes back; replicas and the rest stay.
func (d *Daemon) undo(ctx context.Context, v *store.View, r client.RolloutRequest) (client.Result, error) {
	key := v.Record.Key()
	target, err := undoTarget(v, r.To)
	if err != nil {
		return client.Result{}, err
	}
	if target.Name == v.Record.Update {
		return client.Result{Namespace: key.Namespace, Set: key.Name, Generation: v.Record.Generation, Revision: target.Name,
			Message: fmt.Sprintf("skipped: the template is that of revision %d already", target.Number)}, nil
	}
	cause := r.Cause
	if cause == "" {
		cause = fmt.Sprintf("back to revision %d", target.Number)
	}
	c, err := d.override(ctx, v, cause, func(o *jobspecs.Overrides) {
		o.Undo, o.Images, o.Restarted = target.Name, nil, ""
	})
	if err != nil {
		return client.Result{}, err
	}
	return d.one(ctx, c, r.Write, fmt.Sprintf("%s rolled back to revision %d", key.Name, target.Number))
}

// undoTarget is the revision that is named, or the newest other one that was not
// rolled back from.
func undoTarget(v *store.View, to int) (*jobspecs.Revision, error) {
	key := v.Record.Key()
	failed := failures(v)
	var before, skipped *jobspecs.Revision
	for i := range v.Revisions {
		rev := &v.Revisions[i]
		switch {
		case to != 0 && rev.Number == to:
			return rev, nil
		case rev.Name == v.Record.Update:
		case slices.Contains(failed, rev.Name):
			skipped = rev
		default:
			before = rev
		}
	}
	switch {
	case to != 0:
		return nil, conflict(key, fmt.Sprintf("there is no revision %d; stsd rollout history %s shows which there are", to, typed(key.Namespace, key.Name)))
	case before != nil:
		return before, nil
	case skipped != nil:
		return nil, conflict(key, undone(v, skipped))
	}
	return nil, conflict(key, "there is no earlier revision to go back to")
}

// undone says why there is nothing to go back to: what there was before has failed.
func undone(v *store.View, failed *jobspecs.Revision) string {
	name := typed(v.Record.Set.Namespace, v.Record.Set.Name)
	again := fmt.Sprintf("stsd rollout undo %s --to %d", name, failed.Number)
	if r := v.Record.Rolled; r != nil && r.From == failed.Name {
		return fmt.Sprintf("already rolled back from %s to %s; stsd rollout resume %s or %s tries it again", r.From, r.To, name, again)
	}
	return fmt.Sprintf("there is no earlier revision but %s, which was rolled back from; %s tries it again", failed.Name, again)
}

// restart makes a revision of the same template, so that every member is made
// anew by the update block.
func (d *Daemon) restart(ctx context.Context, v *store.View, r client.RolloutRequest) (client.Result, error) {
	stamp := d.now().UTC().Format(time.RFC3339Nano)
	cause := r.Cause
	if cause == "" {
		cause = "restarted"
	}
	c, err := d.override(ctx, v, cause, func(o *jobspecs.Overrides) { o.Restarted = stamp })
	if err != nil {
		return client.Result{}, err
	}
	c.restarts = true
	return d.one(ctx, c, r.Write, v.Record.Set.Name+" restarted")
}

// pause holds the update stage, or lets it go on. To resume a rollout that failed is
// to try it again, also one that was taken back.
func (d *Daemon) pause(ctx context.Context, v *store.View, r client.RolloutRequest, paused bool) (client.Result, error) {
	again := !paused && (v.Record.Halted != nil || v.Record.Rolled != nil)
	c, err := d.override(ctx, v, r.Cause, func(o *jobspecs.Overrides) {
		if again && v.Record.Rolled != nil {
			n := o.Replicas
			*o = v.Record.Rolled.Overrides
			o.Replicas = n // the rollout had no part in it
		}
	})
	if err != nil {
		return client.Result{}, err
	}
	c.intent.Record.Paused = paused
	if again {
		c.intent.Resume, c.intent.Record.Halted, c.intent.Record.Rolled = true, nil, nil
		c.intent.Record.Resumed = d.now().UTC()
	}
	c.compare()
	words := map[bool]string{true: "paused", false: "resumed"}
	message := fmt.Sprintf("%s %s", v.Record.Set.Name, words[paused])
	if again {
		message += ": " + c.name + " is tried again"
	}
	if v.Record.Paused == paused && !again {
		message = fmt.Sprintf("%s is %s already", v.Record.Set.Name, words[paused])
	}
	return d.one(ctx, c, r.Write, message)
}

// Delete ends a set: its members from the top, its volumes as its retention or
// the request says.
func (d *Daemon) Delete(ctx context.Context, key jobspecs.Key, r client.DeleteRequest) (client.Result, error) {
	d.write.Lock()
	defer d.write.Unlock()
	v, err := d.load(key)
	if err != nil {
		return client.Result{}, err
	}
	if v == nil {
		return client.Result{}, d.notFound(ctx, key)
	}
	if err := d.expected(key, v, r.Write); err != nil {
		return client.Result{}, err
	}
	if r.Volumes != "" && r.Volumes != jobspecs.Delete && r.Volumes != jobspecs.Retain {
		return client.Result{}, invalid(fmt.Sprintf(`--volumes is "delete" or "retain", not %q`, r.Volumes))
	}
	if r.Orphan {
		return d.orphan(v, r)
	}
	c := &change{key: key, before: v, name: v.Record.Update, result: client.Result{Namespace: key.Namespace, Set: key.Name}}
	c.intent = store.Intent{Record: v.Record, Expect: v.Record.Generation}
	c.intent.Record.Deleting = &planner.Deleting{Volumes: r.Volumes}
	if c.data, err = d.doomed(ctx, v, r); err != nil && !r.Yes {
		return client.Result{}, err
	}
	message := key.Name + " is being deleted"
	if users := d.usersOf(key); len(users) > 0 {
		message += fmt.Sprintf("; members of %s cannot be made without it: they use sets.%s", strings.Join(users, ", "), key.Name)
	}
	return d.one(ctx, c, r.Write, message)
}

// usersOf are the sets whose expressions name this one: members that are made while it
// is gone have no value for that.
func (d *Daemon) usersOf(key jobspecs.Key) (out []string) {
	all, err := d.store.Records()
	if err != nil {
		return nil
	}
	for i := range all {
		if r := &all[i]; r.Set.Namespace == key.Namespace && r.Key() != key && slices.Contains(hcl.Uses(&r.Set, r.Template), key.Name) {
			out = append(out, r.Set.Name)
		}
	}
	return out
}

// doomed names the volumes that go with the set.
func (d *Daemon) doomed(ctx context.Context, v *store.View, r client.DeleteRequest) ([]string, error) {
	d.first(ctx)
	vols, err := d.parts.Volumes.List(ctx, v.Record.Key())
	if err != nil {
		return nil, engineProblem(err)
	}
	view := *v
	view.Record.Deleting = &planner.Deleting{Volumes: r.Volumes}
	w := d.world(&view, d.now(), nil, vols)
	var out []string
	for _, a := range planner.Next(w).Actions {
		if a.Op == planner.DeleteVolume {
			out = append(out, "data: volume "+a.Volume+" is deleted with the set")
		}
	}
	return out, nil
}

// orphan forgets the set and leaves its pods and volumes.
func (d *Daemon) orphan(v *store.View, r client.DeleteRequest) (client.Result, error) {
	key := v.Record.Key()
	result := client.Result{Namespace: key.Namespace, Set: key.Name, Revision: v.Record.Update, Changed: true,
		Message: key.Name + " forgotten; its members run on, an apply takes them over again"}
	if r.DryRun {
		return result, nil
	}
	keep := store.Kept{Volumes: slices.Collect(maps.Keys(v.Volumes))}
	addresses, err := d.store.Addresses(key)
	if err != nil {
		return result, err
	}
	for o := range addresses {
		keep.Members = append(keep.Members, jobspecs.MemberName(key.Name, o))
	}
	if err := d.store.Delete(key, keep); err != nil {
		return result, err
	}
	d.events.record(key, "", normal, orphaned, "the set is forgotten, its members run on")
	d.Kick(key)
	return result, nil
}
