package daemon

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sort"
	"strings"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/daemon/planner"
	"github.com/stsd/stsd/daemon/store"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/jobspecs/hcl"
	"github.com/stsd/stsd/runtime"
)

// change is one set on its way from what is stored to what is wanted. It is
// worked out before anything is written; a plan shows it, an apply stores it.
type change struct {
	key    jobspecs.Key
	before *store.View // nil: a new set
	intent store.Intent
	diff   []jobspecs.Change
	data   []string // what would be lost sight of
	equal  int      // number of the older revision that it goes back to
	name   string   // of the revision that is wanted
	result client.Result
	notes  []string // warnings
	// overrides says which stay on top of the source, or were dropped with it; "" none.
	overrides string
	// secrets are made by the request; they are stored even when all else is the same.
	secrets []store.Secret
	// restarts tells that members are restarted one by one.
	restarts bool
	// same tells that nothing would be stored.
	same bool
	// known are the sets that expressions see, those of the same request included; nil:
	// those that are stored.
	known func(namespace string) map[string]hcl.Other
	// seen is what foresee saw; nil before it looked.
	seen *sight
}

// load reads what is stored of a set; nil when it is new.
func (d *Daemon) load(key jobspecs.Key) (*store.View, error) {
	v, err := d.store.Look(key)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	return &v, err
}

// existing is load for verbs that need the set, with the checks of every write.
func (d *Daemon) existing(ctx context.Context, key jobspecs.Key, w client.Write) (*store.View, error) {
	v, err := d.load(key)
	if err != nil {
		return nil, err
	}
	if v == nil {
		return nil, d.notFound(ctx, key)
	}
	if v.Record.Deleting != nil {
		return nil, conflict(key, "it is being deleted")
	}
	return v, d.expected(key, v, w)
}

// expected checks the generation that the caller saw.
func (d *Daemon) expected(key jobspecs.Key, v *store.View, w client.Write) error {
	want, ok := w.Expect[key.String()]
	if !ok {
		return nil
	}
	var have int64
	if v != nil {
		have = v.Record.Generation
	}
	if have != want {
		return changed(key, want, have)
	}
	return nil
}

// written is the spec of a set as its stored source says, read by the running
// binary; nil when this one no longer reads it.
func written(o jobspecs.Origin, key jobspecs.Key) *jobspecs.Spec {
	var anywhere *jobspecs.Spec
	for _, spec := range readSource(o) {
		switch {
		case spec.Set.Name != key.Name:
		case spec.Set.Namespace == key.Namespace:
			return &spec
		case !spec.Placed: // it was applied with -n
			anywhere = &spec
		}
	}
	return anywhere
}

// templateOf is a revision's template in the running binary's normal form.
func templateOf(r *jobspecs.Revision, key jobspecs.Key) jobspecs.Template {
	spec := written(r.Origin, key)
	if spec == nil {
		return r.Template
	}
	t, err := dressed(spec.Template, r.Origin.Images, r.Origin.Restarted)
	if err != nil {
		return r.Template
	}
	return t
}

// dressed puts the overrides on a template.
func dressed(t jobspecs.Template, images map[string]string, restarted string) (jobspecs.Template, error) {
	var err error
	if len(images) > 0 {
		if t, err = hcl.WithImages(t, images); err != nil {
			return nil, err
		}
	}
	if restarted != "" {
		t = hcl.WithRestart(t, restarted)
	}
	return t, nil
}

// wanted is what a set's source and overrides come to.
type wanted struct {
	set       jobspecs.Set
	template  jobspecs.Template
	origin    jobspecs.Origin
	overrides jobspecs.Overrides
	replicas  int
	// exact is the revision that it is, whatever the names of its images mean now.
	exact string
}

// change works out what it takes to get from v to w; beside are the other changes of
// its request so far, which are not stored yet.
func (d *Daemon) change(ctx context.Context, v *store.View, w wanted, scope *store.Scope, cause string, beside ...*change) (*change, error) {
	key := w.set.Key()
	c := &change{key: key, before: v}
	c.result = client.Result{Namespace: key.Namespace, Set: key.Name, Created: v == nil}
	r := store.Record{Set: w.set, Template: w.template, Replicas: w.replicas, Overrides: w.overrides, Created: d.now().UTC()}
	if v != nil {
		old := v.Record
		r.Created, r.Current, r.Formed, r.Paused = old.Created, old.Current, old.Formed, old.Paused
		r.HooksDone, r.Resumed, r.Rolled, r.Halted = old.HooksDone, old.Resumed, old.Rolled, old.Halted
		r.Failed = failures(v)
		c.intent.Expect = old.Generation
	}
	c.intent.Record, c.intent.Scope = r, scope
	d.revise(ctx, c, w, cause)
	c.forget()
	if err := d.reserve(ctx, c, beside); err != nil {
		return nil, err
	}
	c.compare()
	return c, nil
}

// failures are the stored revisions that were rolled back from. One that was complete
// since, when it was tried again, is none.
func failures(v *store.View) []string {
	all := slices.Clone(v.Record.Failed)
	if r := v.Record.Rolled; r != nil && !slices.Contains(all, r.From) {
		all = append(all, r.From)
	}
	var out []string
	for _, name := range all {
		if name != v.Record.Current && revisionNamed(v, name) != nil {
			out = append(out, name)
		}
	}
	return out
}

// forget drops what is true of a revision that is not wanted any more.
func (c *change) forget() {
	r := &c.intent.Record
	if r.Rolled != nil && (r.Rolled.To != r.Update || r.Overrides.Undo != r.Rolled.To) {
		r.Rolled = nil
	}
	if r.Halted != nil && r.Halted.Revision != r.Update {
		r.Halted = nil
	}
}

// revise finds the revision that the wanted template is: the newest, an older
// one that it goes back to, or a new one.
func (d *Daemon) revise(ctx context.Context, c *change, w wanted, cause string) {
	var all []jobspecs.Revision
	if c.before != nil {
		all = c.before.Revisions
	}
	moved := d.moved(ctx, w.template)
	for i := len(all) - 1; i >= 0; i-- {
		if !w.is(&all[i], c.key, moved) {
			continue
		}
		c.name = all[i].Name
		if all[i].Name != c.before.Record.Update && i < len(all)-1 {
			again := all[i]
			again.Number = all[len(all)-1].Number + 1
			c.equal = all[i].Number
			c.intent.Revision, c.intent.Replaces = &again, all[i].Number
			again.Cause = cause
		}
		c.intent.Record.Update = c.name
		return
	}
	next := jobspecs.Revision{Number: 1, Template: w.template, Origin: w.origin, Cause: cause, Created: d.now().UTC()}
	if len(all) > 0 {
		next.Number = all[len(all)-1].Number + 1
	}
	salt := ""
	for next.Name = d.revisionName(c.key, w.template, salt); stored(all, next.Name); next.Name = d.revisionName(c.key, w.template, salt) {
		salt += "+"
	}
	c.name, c.intent.Revision = next.Name, &next
	c.intent.Record.Update = next.Name
}

// is tells whether a revision is the wanted one.
func (w *wanted) is(r *jobspecs.Revision, key jobspecs.Key, moved func(*jobspecs.Revision) bool) bool {
	if w.exact != "" {
		return r.Name == w.exact
	}
	return templateOf(r, key).Equal(w.template) && !moved(r)
}

func (d *Daemon) revisionName(key jobspecs.Key, t jobspecs.Template, salt string) string {
	return jobspecs.RevisionName(key.Name, hcl.Hash(t, salt, d.store.HashKey()))
}

// moved tells of a revision whether one of its images means another image now
// than the one its members were made from.
func (d *Daemon) moved(ctx context.Context, t jobspecs.Template) func(*jobspecs.Revision) bool {
	images, ok := d.parts.Engine.(runtime.Images)
	if !ok {
		return func(*jobspecs.Revision) bool { return false }
	}
	now := map[string]string{}
	for _, i := range hcl.Images(t) {
		if id, err := images.ImageID(ctx, i.Ref); err == nil && id != "" {
			now[i.Ref] = id
		}
	}
	return func(r *jobspecs.Revision) bool {
		for ref, id := range now {
			if pinned := r.ImageIDs[ref]; pinned != "" && pinned != id {
				return true
			}
		}
		return false
	}
}

// reserve works out which members need an address, and from where: not from a subnet
// that is stored, or that a change beside it has, for another namespace. While the
// engine is out of reach the loop does it later.
func (d *Daemon) reserve(ctx context.Context, c *change, beside []*change) error {
	nets, ok := d.parts.Engine.(runtime.Networks)
	if !ok {
		return nil
	}
	subnets, err := d.store.Subnets()
	if err != nil {
		return err
	}
	for _, o := range beside {
		if o.intent.Subnet.IsValid() {
			subnets[o.key.Namespace] = o.intent.Subnet
		}
	}
	r := &c.intent.Record
	have, err := d.store.Addresses(c.key)
	if err != nil {
		return err
	}
	c.intent.Reserve = lacking(r, have)
	subnet := subnets[c.key.Namespace]
	if !subnet.IsValid() {
		if subnet, err = d.freeSubnet(ctx, nets, c.key.Namespace, subnets); err != nil {
			c.notes = append(c.notes, fmt.Sprintf("addresses are reserved later: %v", err))
			return nil
		}
	}
	c.intent.Subnet = subnet
	return nil
}

// compare says what differs, and which data would be lost sight of.
func (c *change) compare() {
	now := &c.intent.Record
	if c.before == nil {
		c.diff = hcl.Diff(nil, now.Template)
		return
	}
	old := &c.before.Record
	oldSet, newSet := old.Set, now.Set
	oldSet.Replicas, newSet.Replicas = &old.Replicas, &now.Replicas
	if old.Lost { // what it said is not known
		oldSet.Service, oldSet.Claims = newSet.Service, newSet.Claims
	}
	c.diff = slices.Concat(hcl.DiffSets(&oldSet, &newSet), hcl.Diff(old.Template, now.Template))
	c.data = hcl.DataChanges(&oldSet, &newSet, old.Template, now.Template)
	c.same = !old.Lost && c.intent.Revision == nil && old.Update == now.Update && old.Replicas == now.Replicas &&
		old.Paused == now.Paused && (old.Forced || !now.Forced) && !c.intent.Resume && len(c.intent.Asks)+len(c.intent.Stopped) == 0 && reflect.DeepEqual(old.Overrides, now.Overrides) && sameSet(&old.Set, &now.Set)
}

func sameSet(a, b *jobspecs.Set) bool { return reflect.DeepEqual(a, b) }

// warned is what a plan says beside its steps.
func (c *change) warned() []string {
	if c.overrides == "" {
		return c.notes
	}
	return append([]string{c.overrides}, c.notes...)
}

// plan shows a change: the steps that the loop would take, in their order.
func (d *Daemon) plan(ctx context.Context, c *change) (jobspecs.Plan, error) {
	p := jobspecs.Plan{
		Namespace: c.key.Namespace, Set: c.key.Name, Generation: c.intent.Expect,
		Diff: c.diff, Data: c.data, Warnings: c.warned(),
		Revision: jobspecs.PlanRevision{To: c.name, EqualTo: c.equal},
	}
	if c.before != nil {
		p.Revision.From = c.before.Record.Update
	}
	s, err := d.foresee(ctx, c)
	if err != nil {
		return p, err
	}
	p.Steps = planner.Steps(s.world)
	p.Steps = append(p.Steps, staying(&s.world, p.Steps)...)
	p.Warnings = append(p.Warnings, held(&c.intent.Record)...)
	p.Warnings = append(p.Warnings, d.volumeNotes(ctx, c, &s)...)
	p.Warnings = append(p.Warnings, pendingAccesses(c, &s, p.Steps)...)
	p.Warnings = append(p.Warnings, d.forebodings(ctx, s, made(p.Steps, c.name))...)
	for _, step := range p.Steps {
		if step.Op != jobspecs.OpKeep && step.Op != jobspecs.OpKeepVolume {
			p.Changes = true
		}
	}
	p.Changes = p.Changes || !c.same && (c.before == nil || c.intent.Record.Deleting != nil || len(c.diff) > 0 || c.intent.Revision != nil)
	fillEmpty(&p)
	return p, nil
}

// held says that the rollout stands still, so that nobody wonders why all are kept.
func held(r *store.Record) []string {
	name := typed(r.Set.Namespace, r.Set.Name)
	switch {
	case r.Deleting != nil:
		return nil
	case r.Paused:
		return []string{"the rollout is paused: no outdated member is replaced until stsd rollout resume " + name}
	case r.Halted != nil && r.Halted.Revision == r.Update && r.Set.Update.OnFailure != jobspecs.FailWait:
		return []string{"the rollout failed and stands still: no outdated member is replaced until stsd rollout resume " + name + ", or another template"}
	}
	return nil
}

// staying are the volumes that outlive a set that is being deleted, or members that go.
func staying(w *planner.World, steps []jobspecs.Step) []jobspecs.Step {
	deleted, leaves := map[string]bool{}, map[string]bool{}
	for _, s := range steps {
		switch s.Op {
		case jobspecs.OpDeleteVolume:
			deleted[s.Volume] = true
		case jobspecs.OpStop, jobspecs.OpRemove:
			leaves[s.Member] = true
		}
	}
	why := `stays: on_scale_down = "retain"`
	if w.Deleting != nil {
		why = "stays when the set is gone"
	}
	stay := w.Set.Ordinals(w.Replicas)
	var out []jobspecs.Step
	for _, name := range slices.Sorted(maps.Keys(w.Volumes)) {
		ordinal := w.Volumes[name].Ordinal
		member := jobspecs.MemberName(w.Set.Name, ordinal)
		if !deleted[name] && (w.Deleting != nil || leaves[member] && !slices.Contains(stay, ordinal)) {
			out = append(out, jobspecs.Step{Op: jobspecs.OpKeepVolume, Member: member, Volume: name, Why: why})
		}
	}
	return out
}

// foresee is a look at the world as it would be if the change were stored, with what a
// plan may need.
func (d *Daemon) foresee(ctx context.Context, c *change) (sight, error) {
	s, err := d.unrendered(ctx, c)
	if err != nil {
		return sight{}, err
	}
	if len(s.world.Specs) == 0 {
		maps.Copy(s.world.Specs, d.renderings(&s.view, s.env, s.world.Needed(), s.subnet))
	}
	return *s, nil
}

// unrendered is foresee without renderings. One look is enough for a request.
func (d *Daemon) unrendered(ctx context.Context, c *change) (*sight, error) {
	if c.seen != nil {
		return c.seen, nil
	}
	view := store.View{Record: c.intent.Record, Members: map[int]planner.Member{}}
	if c.before != nil {
		view = *c.before
		view.Record = c.intent.Record
		view.Members = c.members()
	}
	if c.before == nil {
		var err error
		if view.Volumes, view.Record.Formed, err = d.store.Former(c.key); err != nil {
			return nil, err
		}
	}
	view.Revisions = c.revisions()
	s, err := d.sightOf(ctx, c, view)
	if err != nil {
		return nil, err
	}
	c.seen = &s
	return c.seen, nil
}

// members are those stored, with what the change asks of them.
func (c *change) members() map[int]planner.Member {
	out := maps.Clone(c.before.Members)
	if out == nil {
		out = map[int]planner.Member{}
	}
	for o, ask := range c.intent.Asks {
		m := out[o]
		m.Ask = ask
		out[o] = m
	}
	for o, stopped := range c.intent.Stopped {
		m := out[o]
		m.Stopped = stopped
		out[o] = m
	}
	return out
}

// fillEmpty makes lists of JSON lists.
func fillEmpty(p *jobspecs.Plan) {
	if p.Steps == nil {
		p.Steps = []jobspecs.Step{}
	}
	if p.Diff == nil {
		p.Diff = []jobspecs.Change{}
	}
	if p.Warnings == nil {
		p.Warnings = []string{}
	}
	if p.Data == nil {
		p.Data = []string{}
	}
}

// revisions are those stored and the one that would be.
func (c *change) revisions() []jobspecs.Revision {
	var out []jobspecs.Revision
	if c.before != nil {
		out = append(out, c.before.Revisions...)
	}
	if c.intent.Revision != nil {
		out = slices.DeleteFunc(out, func(r jobspecs.Revision) bool { return r.Number == c.intent.Replaces })
		out = append(out, *c.intent.Revision)
	}
	return out
}

// sightOf is a look at the world as it would be if the change were stored, without
// renderings. It writes nothing.
func (d *Daemon) sightOf(ctx context.Context, c *change, view store.View) (sight, error) {
	s := sight{view: view, subnet: c.intent.Subnet}
	d.first(ctx)
	pods, err := d.parts.Engine.List(ctx, c.key)
	if err != nil {
		return s, engineProblem(err)
	}
	vols, err := d.parts.Volumes.List(ctx, c.key)
	if err != nil {
		return s, engineProblem(err)
	}
	if s.addresses, err = d.store.Addresses(c.key); err != nil {
		return s, err
	}
	pods = scrubPods(pods, d.unsaid(&s.view))
	s.world = d.world(&s.view, d.now(), knownReadiness(pods, view.Members), vols)
	s.env = d.env(&s)
	if names := uses(&s.view); c.known != nil && len(names) > 0 {
		s.env.Sets = map[string]hcl.Other{}
		for _, name := range names {
			if o, ok := c.known(c.key.Namespace)[name]; ok {
				s.env.Sets[name] = o
			}
		}
		s.env = s.env.Without(momentOf(&s.view))
	}
	s.world.After, s.world.MinAvailable = d.unavailable(s.world.Set), guard(&s)
	return s, nil
}

// rendered are renderings for a sight, which has some of them.
func (d *Daemon) rendered(s *sight, targets []planner.Target) map[planner.Target]planner.Rendered {
	var fresh []planner.Target
	out := map[planner.Target]planner.Rendered{}
	for _, t := range targets {
		if r, ok := s.world.Specs[t]; ok {
			out[t] = r
			continue
		}
		fresh = append(fresh, t)
	}
	maps.Copy(out, d.renderings(&s.view, s.env, fresh, s.subnet))
	return out
}

// knownReadiness is overlay for a look that is no loop's.
func knownReadiness(pods []runtime.Pod, members map[int]planner.Member) []runtime.Pod {
	out := slices.Clone(pods)
	for i := range out {
		if !out[i].ReadyKnown {
			assume(&out[i], members[out[i].Ordinal].ReadySince)
		}
	}
	return out
}

// forebodings are what would keep new members from starting: images that are
// not here, host ports in use.
func (d *Daemon) forebodings(ctx context.Context, s sight, targets []planner.Target) []string {
	specs := d.rendered(&s, targets)
	out := d.missingNetworks(ctx, targets, specs)
	images, _ := d.parts.Engine.(runtime.Images)
	ports, _ := d.parts.Engine.(runtime.Ports)
	seen := map[string]bool{}
	say := func(text string) {
		if !seen[text] {
			seen[text] = true
			out = append(out, text)
		}
	}
	for _, t := range targets {
		r := specs[t]
		if r.Err != nil {
			say(r.Err.Error())
			continue
		}
		for _, c := range r.Spec.Containers {
			if images != nil {
				if id, err := images.ImageID(ctx, c.Image); err == nil && id == "" {
					say(absentImage(c))
				}
			}
			for _, p := range c.Ports {
				if ports == nil || p.Host == 0 {
					continue
				}
				pod := runtime.PodName{Namespace: r.Spec.Set.Namespace, Name: r.Spec.Name}
				if owner := ports.PortOwner(ctx, pod, p); owner != "" {
					say(fmt.Sprintf("%s: host port %s:%d is in use by %s", r.Spec.Name, p.HostIP, p.Host, owner))
				}
			}
		}
	}
	return out
}

// missingNetworks are the networks that members are to join and that are not there.
func (d *Daemon) missingNetworks(ctx context.Context, targets []planner.Target, specs map[planner.Target]planner.Rendered) []string {
	engine, ok := d.parts.Engine.(runtime.Joins)
	if !ok {
		return nil
	}
	members := map[string][]string{}
	for _, t := range targets {
		spec := specs[t].Spec
		for _, network := range spec.Networks {
			members[network] = append(members[network], spec.Name)
		}
	}
	var out []string
	for _, network := range slices.Sorted(maps.Keys(members)) {
		if missing := engine.MissingNetwork(ctx, network); missing != "" {
			out = append(out, strings.Join(members[network], ", ")+": "+missing)
		}
	}
	return out
}

// warnings are what a plan would say of a change that is about to be stored, where it
// is of weight: members that will not start for want of a network, and what stays as
// it is. What cannot be looked at now keeps nobody from changing it.
func (d *Daemon) warnings(ctx context.Context, c *change) []jobspecs.Diagnostic {
	if c.same {
		return nil
	}
	s, err := d.foresee(ctx, c)
	if err != nil {
		return nil
	}
	steps := planner.Steps(s.world)
	notes := pendingAccesses(c, &s, steps)
	if c.before != nil && c.claimsChange() {
		notes = append(notes, d.volumeNotes(ctx, c, &s)...)
	}
	targets := made(steps, c.name)
	notes = append(notes, d.missingNetworks(ctx, targets, d.rendered(&s, targets))...)
	var out []jobspecs.Diagnostic
	for _, note := range notes {
		out = append(out, jobspecs.Diagnostic{Severity: "warning", Summary: c.key.Name + ": " + note})
	}
	return out
}

// made are the members that a plan makes, of the revision that is wanted.
func made(steps []jobspecs.Step, revision string) []planner.Target {
	var out []planner.Target
	for _, s := range steps {
		if s.Op != jobspecs.OpCreate && s.Op != jobspecs.OpReplace {
			continue
		}
		if _, o, ok := jobspecs.ParseMember(s.Member); ok {
			out = append(out, planner.Target{Ordinal: o, Revision: revision})
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Ordinal < out[j].Ordinal })
	return out
}

func absentImage(c jobspecs.Container) string {
	if c.Pull == jobspecs.PullNever {
		return fmt.Sprintf(`image %s is not here and pull = "never": make or load it first`, c.Image)
	}
	return fmt.Sprintf("image %s is not here and will be pulled", c.Image)
}

// confirmed refuses a change that loses sight of data unless the caller knows.
func (c *change) confirmed(w client.Write) error {
	if len(c.data) == 0 || w.Yes || slices.Contains(w.Confirm, c.key.Name) || slices.Contains(w.Confirm, c.key.String()) {
		return nil
	}
	return &client.Problem{
		Type: client.ProblemUnconfirmed, Title: "data would be lost sight of", Status: 403, Set: c.key.Name, Data: c.data,
		Detail: "confirm with the set's name, or --yes",
	}
}

// commit stores changes, all or none, and wakes their loops.
func (d *Daemon) commit(changes []*change) error {
	var all store.Commit
	for _, c := range changes {
		all.Secrets = append(all.Secrets, c.secrets...)
		if !c.same {
			all.Intents = append(all.Intents, &c.intent)
		}
	}
	if err := d.store.Commit(all); err != nil {
		return storeProblem(err)
	}
	for _, c := range changes {
		c.result.Generation = c.intent.Expect
		c.result.Revision = c.name
		if c.same {
			continue
		}
		c.result.Changed = true
		c.result.Generation = c.intent.Record.Generation
		if c.intent.Revision != nil {
			d.events.record(c.key, "", normal, "Revision", revisionMessage(c))
		}
		d.log.Info("stored", "set", c.key.String(), "generation", c.result.Generation, "revision", c.name, "replicas", c.intent.Record.Replicas)
	}
	for _, c := range changes {
		if !c.same {
			d.Kick(c.key)
			d.kickFollowers(c.key)
		}
	}
	return nil
}

func revisionMessage(c *change) string {
	text := fmt.Sprintf("revision %d is %s", c.intent.Revision.Number, c.name)
	if c.equal > 0 {
		text += fmt.Sprintf(", again what revision %d was", c.equal)
	}
	if cause := c.intent.Revision.Cause; cause != "" {
		text += ": " + cause
	}
	return text
}

// one finishes a verb that changes one set: plan, or confirm and store.
func (d *Daemon) one(ctx context.Context, c *change, w client.Write, message string) (client.Result, error) {
	c.result.Message = message
	c.force(w)
	if err := d.spare(ctx, c, w); err != nil {
		return c.result, err
	}
	if w.DryRun {
		p, err := d.plan(ctx, c)
		c.result.Plan, c.result.Revision, c.result.Generation = &p, c.name, c.intent.Expect
		c.result.Changed = p.Changes
		return c.result, err
	}
	if err := c.confirmed(w); err != nil {
		return c.result, err
	}
	err := d.commit([]*change{c}) // it fills in the result
	return c.result, err
}
