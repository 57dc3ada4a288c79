package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"sort"
	"time"

	"github.com/stsd/stsd/daemon/planner"
	"github.com/stsd/stsd/daemon/store"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/jobspecs/hcl"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/volumes"
)

// sight is one look at a set: the planner's world, and what it was made from.
type sight struct {
	world     planner.World
	view      store.View
	addresses map[int]netip.Addr
	subnet    netip.Prefix
	env       hcl.Env // for expressions of the set
}

// look reads everything that is known of the set. What may take time comes first,
// so that neither intent nor pods are old when the plan is made: pods are listed
// from memory, and how long one has been ready is said of that moment.
func (l *loop) look(ctx context.Context) (sight, error) {
	var s sight
	if err := l.d.Ready(); err != nil { // nothing is asked that would wait for it
		return s, err
	}
	vols, err := l.listVolumes(ctx)
	if err != nil {
		return s, err
	}
	if s.view, err = l.d.store.Look(l.key); err != nil {
		return s, err
	}
	l.heed(&s.view)
	if s.addresses, s.subnet, err = l.d.addresses(ctx, &s.view.Record); err != nil {
		return s, err
	}
	pods, err := l.d.parts.Engine.List(ctx, l.key)
	if err != nil {
		return s, err
	}
	now := l.d.now()
	if err := l.inTime(&s.view, now); err != nil {
		return s, err
	}
	s.world = l.d.world(&s.view, now, l.overlay(pods, s.view.Members), vols)
	s.env = l.d.env(&s)
	l.heedOthers(uses(&s.view), s.world.Set.StartAfter)
	s.world.After = l.d.unavailable(s.world.Set)
	l.render(&s)
	l.hush(&s.world)
	return s, l.holdPorts(&s)
}

// lookTime is how long the engine has to answer a look.
const lookTime = 30 * time.Second

// listVolumes are those of the set; an engine that does not say is out of reach.
func (l *loop) listVolumes(ctx context.Context) ([]volumes.Volume, error) {
	within, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	vols, err := l.d.parts.Volumes.List(within, l.key)
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		return nil, fmt.Errorf("%w: it does not list volumes within %s", runtime.ErrUnreachable, lookTime)
	}
	return vols, err
}

// guard is what the guard of a set comes to. One that cannot be worked out lets
// nobody go.
func guard(s *sight) int {
	n, err := hcl.RenderGuard(s.world.Set, s.env)
	if err != nil {
		return planner.GuardUnknown
	}
	return n
}

// heed forgets failures when the user changed the set: what was wrong may be
// right now.
func (l *loop) heed(v *store.View) {
	if v.Record.Generation != l.gen {
		l.gen = v.Record.Generation
		l.owes = len(v.Registries) > 0
		l.given, l.unsaid = l.d.sensitiveTexts(v), nil
		clear(l.failing)
	}
}

// world puts together what the planner decides on, without renderings.
func (d *Daemon) world(v *store.View, now time.Time, pods []runtime.Pod, vols []volumes.Volume) planner.World {
	r := &v.Record
	w := planner.World{
		Now: now, Set: &r.Set, Replicas: r.Replicas, Current: r.Current, Update: r.Update,
		Paused: r.Paused || r.Lost, Deleting: r.Deleting, Pods: pods, Members: counting(v), Again: again(v, pods),
		Forced: r.Forced, Formed: r.Formed && joined(v.Members), HooksDone: r.HooksDone, Halted: r.Halted,
		Volumes: map[string]volumes.Volume{}, Records: v.Volumes, Specs: map[planner.Target]planner.Rendered{},
		PortHeld: map[int]planner.PortHeld{},
	}
	for _, vol := range vols {
		w.Volumes[vol.Name] = vol
	}
	return w
}

// joined tells whether some member has joined the set: that it was formed in this
// life of it, and not in that of a former set whose volumes it has.
func joined(members map[int]planner.Member) bool {
	for _, m := range members {
		if m.Joined {
			return true
		}
	}
	return false
}

// counting are the members, whose deadlines begin anew when a rollout that failed is
// tried again.
func counting(v *store.View) map[int]planner.Member {
	resumed := v.Record.Resumed
	if resumed.IsZero() {
		return v.Members
	}
	out := maps.Clone(v.Members)
	for o, m := range out {
		if !m.Trying.IsZero() && m.Trying.Before(resumed) {
			m.Trying, m.Resting = resumed, time.Time{}
			out[o] = m
		}
	}
	return out
}

// readiness ties what the engine says after a restart of the daemon to what was
// stored before: a pod that was ready all the time has been so since then.
type readiness struct{ engine, stored time.Time }

// overlay gives pods whose readiness the engine does not know yet the one that
// is stored; it holds until a probe contradicts.
func (l *loop) overlay(pods []runtime.Pod, members map[int]planner.Member) []runtime.Pod {
	out := make([]runtime.Pod, len(pods))
	copy(out, pods)
	for i := range out {
		p := &out[i]
		stored := members[p.Ordinal].ReadySince
		known, met := l.since[p.Ordinal]
		switch {
		case !p.ReadyKnown:
			assume(p, stored)
			l.since[p.Ordinal] = readiness{stored: stored}
		case !p.Ready:
			delete(l.since, p.Ordinal)
		case met && !known.stored.IsZero() && (known.engine.IsZero() || known.engine.Equal(p.ReadySince)):
			l.since[p.Ordinal] = readiness{engine: p.ReadySince, stored: known.stored}
			p.ReadySince = known.stored
		}
	}
	return out
}

// assume gives a pod whose readiness the engine does not know the one that is
// stored.
func assume(p *runtime.Pod, stored time.Time) {
	p.Ready = p.Phase == runtime.Running && !stored.IsZero()
	p.ReadySince = stored
}

// addresses are the reserved ones of a set. What could not be reserved when the
// set was accepted, because the engine was out of reach, is reserved here.
func (d *Daemon) addresses(ctx context.Context, r *store.Record) (map[int]netip.Addr, netip.Prefix, error) {
	nets, ok := d.parts.Engine.(runtime.Networks)
	have, err := d.store.Addresses(r.Key())
	if err != nil || !ok {
		return have, netip.Prefix{}, err
	}
	subnets, err := d.store.Subnets()
	if err != nil {
		return nil, netip.Prefix{}, err
	}
	subnet := subnets[r.Set.Namespace]
	missing := lacking(r, have)
	if len(missing) == 0 || r.Deleting != nil {
		return have, subnet, nil
	}
	if !subnet.IsValid() {
		if subnet, err = d.freeSubnet(ctx, nets, r.Set.Namespace, subnets); err != nil {
			return nil, netip.Prefix{}, err
		}
	}
	if err := d.store.Reserve(r.Set.Namespace, subnet, missing); err != nil {
		return nil, netip.Prefix{}, fmt.Errorf("reserve addresses in %s: %w", subnet, err)
	}
	have, err = d.store.Addresses(r.Key())
	return have, subnet, err
}

func (d *Daemon) freeSubnet(ctx context.Context, nets runtime.Networks, namespace string, subnets map[string]netip.Prefix) (netip.Prefix, error) {
	var taken []netip.Prefix
	for ns, p := range subnets {
		if ns != namespace {
			taken = append(taken, p)
		}
	}
	sort.Slice(taken, func(i, j int) bool { return taken[i].Addr().Less(taken[j].Addr()) })
	p, err := nets.Subnet(ctx, namespace, taken)
	if err != nil {
		return p, fmt.Errorf("network of namespace %s: %w", namespace, err)
	}
	return p, nil
}

func lacking(r *store.Record, have map[int]netip.Addr) []string {
	var out []string
	for _, o := range r.Set.Ordinals(r.Replicas) {
		if !have[o].IsValid() {
			out = append(out, jobspecs.MemberName(r.Set.Name, o))
		}
	}
	return out
}

// renderings are kept while nothing they depend on changes.
type renderings struct {
	key   string
	specs map[planner.Target]planner.Rendered
	guard int

	// What a steady set would have stays when a member's volumes are used for the
	// first time, or the set has formed: everything else does not.
	steadyKey string
	steady    map[planner.Target]planner.Rendered
}

// render adds what is made of expressions: the guard, and the pod specs that a plan
// may need.
func (l *loop) render(s *sight) {
	env := s.env
	if key := envKey(&s.view, env); key != l.cache.key {
		l.cache.key, l.cache.specs, l.cache.guard = key, map[planner.Target]planner.Rendered{}, guard(s)
		if key = envKey(&s.view, env.Steady()); key != l.cache.steadyKey {
			l.cache.steadyKey, l.cache.steady = key, map[planner.Target]planner.Rendered{}
		}
	}
	s.world.MinAvailable = l.cache.guard
	needed := s.world.Needed()
	var fresh []planner.Target
	for _, t := range needed {
		if _, ok := l.cache.specs[t]; !ok {
			fresh = append(fresh, t)
		}
	}
	maps.Copy(l.cache.specs, l.d.renderMore(&s.view, env, fresh, s.subnet, l.cache.steady))
	if l.unsaid == nil || len(fresh) > 0 {
		l.unsaid = hcl.Disguises(append(renderedTexts(l.cache.specs), l.given...))
	}
	for _, t := range needed {
		s.world.Specs[t] = freshVolumes(l.cache.specs[t], s.view.Volumes)
	}
}

// env is what expressions over self and set see.
func (d *Daemon) env(s *sight) hcl.Env {
	r := &s.view.Record
	env := hcl.Env{
		Domain: d.cfg.Domain, Ordinals: r.Set.Ordinals(r.Replicas),
		Addresses: s.addresses, Fresh: map[int]bool{}, Formed: r.Formed,
	}
	if s.subnet.IsValid() {
		env.HostIP = s.subnet.Masked().Addr().Next()
	}
	for _, o := range env.Ordinals {
		env.Fresh[o] = isFresh(&s.view, o)
	}
	if names := uses(&s.view); len(names) > 0 {
		var err error
		if env.Sets, err = d.others(s.view.Record.Set.Namespace, names); err != nil {
			env.Sets = map[string]hcl.Other{} // whoever needs one says so
		}
	}
	return env.Without(momentOf(&s.view))
}

// momentOf is what the set's expressions, those of its stored revisions too, look at.
func momentOf(v *store.View) hcl.Moment {
	m := momentsOf(v.Record.Template)
	for _, part := range hcl.Beside(&v.Record.Set) {
		m = m.And(momentsOf(part))
	}
	for i := range v.Revisions {
		m = m.And(momentsOf(v.Revisions[i].Template))
	}
	return m
}

func usedVolume(v *store.View, ordinal int) bool {
	for _, r := range v.Volumes {
		if r.Ordinal == ordinal && r.Used {
			return true
		}
	}
	return false
}

// envKey changes when a rendering may.
func envKey(v *store.View, env hcl.Env) string {
	ids := map[string]map[string]string{}
	for _, r := range v.Revisions {
		ids[r.Name] = r.ImageIDs
	}
	b, err := json.Marshal(struct {
		Env hcl.Env
		Gen int64
		IDs map[string]map[string]string
	}{env, v.Record.Generation, ids})
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// renderings makes pod specs from stored revisions.
func (d *Daemon) renderings(v *store.View, env hcl.Env, targets []planner.Target, subnet netip.Prefix) map[planner.Target]planner.Rendered {
	return d.renderMore(v, env, targets, subnet, map[planner.Target]planner.Rendered{})
}

// renderMore does not render again what steady has; what it lacks is added.
func (d *Daemon) renderMore(v *store.View, env hcl.Env, targets []planner.Target, subnet netip.Prefix, steady map[planner.Target]planner.Rendered) map[planner.Target]planner.Rendered {
	byRevision := map[string][]int{}
	for _, t := range targets {
		byRevision[t.Revision] = append(byRevision[t.Revision], t.Ordinal)
	}
	out := map[planner.Target]planner.Rendered{}
	for name, ordinals := range byRevision {
		for i, r := range d.renderRevision(v, env, name, ordinals, subnet, steady) {
			out[planner.Target{Ordinal: ordinals[i], Revision: name}] = r
		}
	}
	return out
}

// renderRevision renders members of one revision; a member that cannot be
// rendered does not keep the others from it.
func (d *Daemon) renderRevision(v *store.View, env hcl.Env, name string, ordinals []int, subnet netip.Prefix, known map[planner.Target]planner.Rendered) []planner.Rendered {
	out := make([]planner.Rendered, len(ordinals))
	rev := revisionNamed(v, name)
	if rev == nil {
		for i := range out {
			out[i].Err = fmt.Errorf("revision %s is not stored", name)
		}
		return out
	}
	env.Revision, env.ImageIDs = rev.Name, rev.ImageIDs
	steady := d.renderSteady(v, rev, env, ordinals, subnet, known)
	if env.IsSteady() {
		copy(out, steady)
	} else {
		out = d.renderAs(v, rev, env, ordinals, subnet)
	}
	for i := range out {
		if steady[i].Err == nil {
			out[i].Steady, out[i].Spec.Steady = steady[i].Spec, steady[i].Digest
		}
	}
	return out
}

func (d *Daemon) renderSteady(v *store.View, rev *jobspecs.Revision, env hcl.Env, ordinals []int, subnet netip.Prefix, known map[planner.Target]planner.Rendered) []planner.Rendered {
	var fresh []int
	for _, o := range ordinals {
		if _, ok := known[planner.Target{Ordinal: o, Revision: rev.Name}]; !ok {
			fresh = append(fresh, o)
		}
	}
	rendered := d.renderAs(v, rev, env.Steady(), fresh, subnet)
	out := make([]planner.Rendered, len(ordinals))
	for i, o := range ordinals {
		t := planner.Target{Ordinal: o, Revision: rev.Name}
		if len(fresh) > 0 && fresh[0] == o {
			known[t], fresh, rendered = rendered[0], fresh[1:], rendered[1:]
		}
		out[i] = known[t]
	}
	return out
}

// renderAs renders members of a stored revision as env has it.
func (d *Daemon) renderAs(v *store.View, rev *jobspecs.Revision, env hcl.Env, ordinals []int, subnet netip.Prefix) []planner.Rendered {
	out := make([]planner.Rendered, len(ordinals))
	var key []byte
	if hcl.Sensitive(rev.Template) || hcl.SensitiveSet(&v.Record.Set) {
		key = d.store.HashKey()
	}
	specs, err := hcl.RenderAll(&v.Record.Set, rev.Template, env, ordinals)
	for i, o := range ordinals {
		var spec jobspecs.PodSpec
		if err == nil {
			spec = specs[i]
		} else {
			env.Ordinal = o
			spec, out[i].Err = hcl.Render(&v.Record.Set, rev.Template, env)
		}
		spec.Subnet, spec.Gateway, spec.Key = subnet, env.HostIP, key
		spec.Publish(hostAccess(&v.Record.Set))
		entrusted(&spec, v.Registries)
		out[i].Spec, out[i].Digest = spec, spec.Digest()
	}
	return out
}
