package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/daemon/store"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/jobspecs/hcl"
)

// Apply stores every set of the request in one step, or none. It returns once
// that is on disk.
func (d *Daemon) Apply(ctx context.Context, r client.ApplyRequest) (client.ApplyResponse, error) {
	d.write.Lock()
	defer d.write.Unlock()
	r, err := d.opened(r)
	if err != nil {
		return client.ApplyResponse{}, err
	}
	changes, ds, err := d.prepare(ctx, r, newMaking(r.DryRun))
	resp := client.ApplyResponse{Results: []client.Result{}, Diagnostics: ds}
	if err != nil {
		return resp, err
	}
	for _, c := range changes {
		c.force(r.Write)
		if err := d.spare(ctx, c, r.Write); err != nil {
			return resp, err
		}
		if err := c.confirmed(r.Write); err != nil {
			return resp, err
		}
	}
	if r.DryRun {
		return resp, d.planAll(ctx, changes, &resp)
	}
	for _, c := range changes {
		for _, note := range c.notes {
			resp.Diagnostics = append(resp.Diagnostics, jobspecs.Diagnostic{Severity: "warning", Summary: note})
		}
		resp.Diagnostics = append(resp.Diagnostics, d.warnings(ctx, c)...)
	}
	if err := d.commit(changes); err != nil {
		return resp, err
	}
	for _, c := range changes {
		c.result.Message = applied(c)
		resp.Results = append(resp.Results, c.result)
	}
	return resp, nil
}

func applied(c *change) string {
	overrides := ""
	if c.overrides != "" {
		overrides = "; " + c.overrides
	}
	switch {
	case c.result.Created:
		return c.key.Name + " created"
	case c.same:
		return c.key.Name + " unchanged" + overrides
	}
	return c.key.Name + " configured" + overrides
}

func (d *Daemon) planAll(ctx context.Context, changes []*change, resp *client.ApplyResponse) error {
	for _, c := range changes {
		p, err := d.plan(ctx, c)
		if err != nil {
			return err
		}
		c.result.Plan, c.result.Changed, c.result.Revision, c.result.Generation = &p, p.Changes, c.name, c.intent.Expect
		resp.Results = append(resp.Results, c.result)
	}
	return nil
}

// Plan says what Apply would do. It writes nothing anywhere.
func (d *Daemon) Plan(ctx context.Context, r client.ApplyRequest) (client.PlanResponse, error) {
	d.write.Lock()
	defer d.write.Unlock()
	r, err := d.opened(r)
	if err != nil {
		return client.PlanResponse{}, err
	}
	changes, ds, err := d.prepare(ctx, r, newMaking(true))
	resp := client.PlanResponse{Plans: []jobspecs.Plan{}, Diagnostics: ds}
	if err != nil {
		return resp, err
	}
	for _, c := range changes {
		c.force(r.Write)
		p, err := d.plan(ctx, c)
		if err != nil {
			return resp, err
		}
		var refused *client.Problem
		if errors.As(d.spare(ctx, c, r.Write), &refused) {
			p.Warnings = append(p.Warnings, "apply will be refused by the guard: "+refused.Detail)
		}
		resp.Plans = append(resp.Plans, p)
	}
	resp.Sealed, err = d.parcelOf(r)
	return resp, err
}

// prepare reads, checks and works out everything before anything is stored.
func (d *Daemon) prepare(ctx context.Context, r client.ApplyRequest, m *making) ([]*change, []jobspecs.Diagnostic, error) {
	var changes []*change
	warnings := []jobspecs.Diagnostic{}
	seen := map[jobspecs.Key]string{}
	known, err := d.known(r)
	if err != nil {
		return nil, nil, err
	}
	for _, scope := range r.Scopes {
		f, kept, ds, err := d.read(scope, r.Namespace, known, m)
		if err != nil {
			return nil, nil, err
		}
		if f == nil || hcl.HasErrors(ds) {
			return nil, nil, invalid("the spec is wrong", ds...)
		}
		warnings = append(warnings, ds...)
		for i := range f.Specs {
			spec := &f.Specs[i]
			if err := namespaced(spec, r.Namespace); err != nil {
				return nil, nil, err
			}
			key := spec.Set.Key()
			place := fmt.Sprintf("%s:%d", spec.File, spec.Line)
			if first, ok := seen[key]; ok {
				return nil, nil, invalid(fmt.Sprintf("set %s is written twice: %s and %s", key, first, place))
			}
			seen[key] = place
			c, err := d.prepareOne(ctx, spec, store.Scope{Sources: scope.Sources, Inputs: f.Inputs}, known, r, changes)
			if err != nil {
				return nil, nil, err
			}
			c.notes, c.known = append(c.notes, kept...), known
			changes = append(changes, c)
		}
	}
	if len(changes) == 0 {
		return nil, nil, invalid("there is no statefulset block")
	}
	changes[0].secrets = m.fresh // stored together, whatever each of them comes to
	if err := d.circles(changes); err != nil {
		return nil, nil, err
	}
	return changes, warnings, d.clash(changes)
}

// read parses one scope. Variables that were not given keep the value that is
// stored with one of the scope's sets; secrets are those of m, whatever was sent.
// notes says which, and what else is to be known.
func (d *Daemon) read(scope client.Scope, namespace string, known func(string) map[string]hcl.Other, m *making) (f *hcl.File, notes []string, ds []jobspecs.Diagnostic, err error) {
	in := scope.Inputs
	in.Secrets = nil
	if !hcl.Declares(scope.Sources) {
		f, ds = parseSource(scope.Sources, in, known)
		return f, nil, ds, nil
	}
	draft, ds := hcl.Parse(scope.Sources, in, hcl.Options{AllowMissing: true, Draft: true})
	if draft == nil {
		return nil, nil, ds, nil
	}
	in.Vars, notes = d.keptVars(draft, in, namespace)
	values, said, err := d.secrets(draft, namespace, m)
	if err != nil {
		return nil, nil, nil, err
	}
	in.Secrets = values
	f, ds = parseSource(scope.Sources, in, known)
	return f, append(notes, said...), ds, nil
}

// keptVars are the values of a scope's variables: those that were given, and of others
// those that are stored with one of its sets. notes says which.
func (d *Daemon) keptVars(draft *hcl.File, in jobspecs.Inputs, namespace string) (vars map[string]json.RawMessage, notes []string) {
	vars = maps.Clone(in.Vars)
	if vars == nil {
		vars = map[string]json.RawMessage{}
	}
	for i := range draft.Specs {
		old, err := d.store.Scope(inNamespace(&draft.Specs[i], namespace))
		if err != nil {
			continue
		}
		var hidden []string
		if len(old.Inputs.Vars) > 0 {
			hidden = hcl.SensitiveVariables(old.Sources)
		}
		for _, v := range draft.Vars {
			value, ok := old.Inputs.Vars[v.Name]
			switch {
			case !ok || v.Given || vars[v.Name] != nil:
			case !v.Sensitive && slices.Contains(hidden, v.Name): // a file that says less does not bring it to light
				notes = append(notes, fmt.Sprintf("variable %s was sensitive and is not any more: its stored value is not taken", v.Name))
			default:
				vars[v.Name] = value
				notes = append(notes, keeps(v, value))
			}
		}
	}
	return vars, notes
}

func keeps(v hcl.Variable, value json.RawMessage) string {
	text := fmt.Sprintf("variable %s was not given and keeps its stored value", v.Name)
	if v.Sensitive {
		return text
	}
	return text + " " + string(value)
}

// namespaced puts a set that names no namespace into the one that was asked for.
func namespaced(spec *jobspecs.Spec, namespace string) error {
	if namespace == "" || spec.Set.Namespace == namespace {
		return nil
	}
	if spec.Placed {
		return invalid(fmt.Sprintf("%s:%d: set %s is written for namespace %s, and -n says %s", spec.File, spec.Line, spec.Set.Name, spec.Set.Namespace, namespace))
	}
	spec.Set.Namespace = namespace
	return nil
}

// prepareOne works out the change of one set.
func (d *Daemon) prepareOne(ctx context.Context, spec *jobspecs.Spec, scope store.Scope, known func(string) map[string]hcl.Other, r client.ApplyRequest, beside []*change) (*change, error) {
	key := spec.Set.Key()
	v, err := d.load(key)
	if err != nil {
		return nil, err
	}
	if v != nil && v.Record.Deleting != nil {
		return nil, conflict(key, "it is being deleted; wait until it is gone: stsd wait "+typed(key.Namespace, key.Name)+" --for=deleted")
	}
	if err := d.expected(key, v, r.Write); err != nil {
		return nil, err
	}
	want := wanted{set: spec.Set, origin: jobspecs.Origin{Source: scope.Sources, Inputs: scope.Inputs}, replicas: 1}
	if v != nil {
		want.replicas = v.Record.Replicas
		want.overrides = d.keptOverrides(v, spec, scope.Inputs.Secrets)
	}
	if err := want.settle(spec, v); err != nil {
		return nil, invalid(err.Error())
	}
	if !want.overrides.None() || !spec.Placed && r.Namespace != "" { // it is not what was read
		if err := d.checkSpec(&want.set, want.template, known); err != nil {
			return nil, err
		}
	}
	c, err := d.change(ctx, v, want, &scope, r.Cause, beside...)
	if err != nil {
		return nil, err
	}
	c.trust(credentials(want.template, r.Registries))
	c.overrides = want.overrides.Kept()
	if c.overrides == "" && v != nil {
		c.overrides = v.Record.Overrides.Dropped()
	}
	return c, nil
}

// keptOverrides are those that stay: all of them when the source says what it
// said before; only the restart mark, which is no content, when it differs.
// Another value of a secret is no other source.
func (d *Daemon) keptOverrides(v *store.View, spec *jobspecs.Spec, secrets map[string]string) jobspecs.Overrides {
	scope, err := d.store.Scope(v.Record.Key())
	if err != nil {
		return v.Record.Overrides
	}
	scope.Inputs.Secrets = secrets
	return keptOf(v, spec, scope)
}

// keptOf is keptOverrides, of a source with inputs that count.
func keptOf(v *store.View, spec *jobspecs.Spec, scope store.Scope) jobspecs.Overrides {
	o := v.Record.Overrides
	old := written(jobspecs.Origin{Source: scope.Sources, Inputs: scope.Inputs}, v.Record.Key())
	if old != nil {
		old.Set.Namespace = spec.Set.Namespace
		if old.Template.Equal(spec.Template) && reflect.DeepEqual(old.Set, spec.Set) {
			return o
		}
	}
	return jobspecs.Overrides{Restarted: o.Restarted}
}

// settle applies the overrides to what is written.
func (w *wanted) settle(spec *jobspecs.Spec, v *store.View) error {
	if spec.Set.Replicas != nil {
		w.replicas = *spec.Set.Replicas
	}
	if w.overrides.Replicas != nil {
		w.replicas = *w.overrides.Replicas
	}
	base := spec.Template
	images, restarted := w.overrides.Images, w.overrides.Restarted
	if w.overrides.Undo != "" {
		target := revisionNamed(v, w.overrides.Undo)
		if target == nil {
			return fmt.Errorf("revision %s, to which the set was rolled back, is no longer stored", w.overrides.Undo)
		}
		base = templateOf(target, spec.Set.Key())
		w.set.Claims = withClaims(w.set.Claims, base, written(target.Origin, spec.Set.Key()))
		if len(images) == 0 && restarted == "" {
			w.exact = target.Name
		}
		w.origin = target.Origin
		if restarted == "" {
			restarted = target.Origin.Restarted
		}
		images = onTop(target.Origin.Images, images)
	}
	w.origin.Images, w.origin.Restarted = images, restarted
	t, err := dressed(base, images, restarted)
	w.template = t
	return err
}

// onTop are the images of a revision with others in their place.
func onTop(images, others map[string]string) map[string]string {
	if len(images) == 0 {
		return others
	}
	out := maps.Clone(images)
	maps.Copy(out, others)
	return out
}

// withClaims adds the claims that a template mounts and that are written only in its
// own source: there is nothing else to make their volumes by. They are kept: what the
// set says now does not tell that they may go.
func withClaims(claims []jobspecs.Claim, t jobspecs.Template, source *jobspecs.Spec) []jobspecs.Claim {
	if source == nil {
		return claims
	}
	mounted := hcl.MountedClaims(t)
	out := slices.Clone(claims)
	for _, c := range source.Set.Claims {
		known := slices.ContainsFunc(claims, func(o jobspecs.Claim) bool { return o.Name == c.Name })
		if !known && slices.Contains(mounted, c.Name) {
			c.OnScaleDown, c.OnDelete = jobspecs.Retain, jobspecs.Retain
			out = append(out, c)
		}
	}
	return out
}

func revisionNamed(v *store.View, name string) *jobspecs.Revision {
	if v == nil {
		return nil
	}
	for i := range v.Revisions {
		if v.Revisions[i].Name == name {
			return &v.Revisions[i]
		}
	}
	return nil
}

// clash refuses sets that cannot live beside each other or beside a stored one.
func (d *Daemon) clash(changes []*change) error {
	records, err := d.store.Records()
	if err != nil {
		return err
	}
	all := map[jobspecs.Key]*jobspecs.Set{}
	for i := range records {
		all[records[i].Key()] = &records[i].Set
	}
	for _, c := range changes {
		all[c.key] = &c.intent.Record.Set
	}
	for _, c := range changes {
		for key, other := range all {
			if key == c.key {
				continue
			}
			if err := jobspecs.Clash(&c.intent.Record.Set, other); err != nil {
				return conflict(c.key, err.Error())
			}
		}
	}
	return nil
}
