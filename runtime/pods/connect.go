package pods

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

// How long to wait between two tries to connect.
const (
	reconnectFirst = 100 * time.Millisecond
	reconnectMax   = 5 * time.Second
)

var errLost = errors.New("the connection to the engine was lost")

// Run connects to the host, and again whenever the connection is lost, until ctx
// ends. It owns every goroutine of the engine and returns after they ended. It
// never stops a container.
func (e *Engine) Run(ctx context.Context) error {
	var pods sync.WaitGroup
	defer pods.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	e.open(ctx, &pods)
	defer e.close()
	for tries := 0; ; tries++ {
		worked, err := e.session(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if e.disconnected(err); worked {
			tries = 0
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(doubled(reconnectFirst, reconnectMax, tries)):
		}
	}
}

// open lets pods begin: those that an earlier Run left, and new ones.
func (e *Engine) open(ctx context.Context, pods *sync.WaitGroup) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.spawn = func(run func(context.Context)) func() {
		ctx, cancel := context.WithCancel(ctx)
		pods.Go(func() {
			defer cancel()
			run(ctx)
		})
		return cancel
	}
	for _, p := range e.pods {
		e.begin(p)
	}
}

func (e *Engine) close() {
	e.disconnected(errors.New("not connected any more"))
	e.mu.Lock()
	defer e.mu.Unlock()
	e.spawn = nil
}

// session is one connection: subscribe, then list, so that nothing is missed.
func (e *Engine) session(ctx context.Context) (worked bool, err error) {
	var meetings sync.WaitGroup
	defer meetings.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events, err := e.host.Watch(ctx)
	if err != nil {
		return false, fmt.Errorf("watch the engine: %w", err)
	}
	list, err := e.host.List(ctx)
	if err != nil {
		return false, fmt.Errorf("list containers: %w", err)
	}
	e.connected(list)
	for event := range events {
		if e.happened(event) {
			continue
		}
		meetings.Go(func() { e.meet(ctx, event.ID) })
	}
	return true, errLost
}

// connected compares what is known with what is there, and opens the gate.
func (e *Engine) connected(list []Container) {
	e.mu.Lock()
	defer e.mu.Unlock()
	found := grouped(list)
	for name, g := range found {
		if e.pods[name] != nil || !g.any() {
			e.left[name] = g.kept()
			continue
		}
		e.add(name, PodWorld{Set: g.set, Name: name.Name, Ordinal: g.ordinal, Offline: true})
	}
	for name, p := range e.pods {
		g := found[name]
		p.change(func(w *PodWorld) { w.reconnected(g) })
		if e.stops[p] == nil {
			e.begin(p)
		}
	}
	e.up, e.last = true, nil
	e.hints.hint(jobspecs.Key{})
}

func (e *Engine) disconnected(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.up, e.last = false, err
	for _, p := range e.pods {
		p.change((*PodWorld).disconnected)
	}
	e.hints.hint(jobspecs.Key{})
}

// happened passes an event on to the pods that know the container, or that wait for
// what it gave up. It tells whether that was all: a container that was started
// unknown to every pod, or to one that is about to be forgotten, has to be met.
func (e *Engine) happened(event Event) (all bool) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	all = event.Freed || event.ID != "" && !event.Started
	for _, p := range e.pods {
		switch {
		case event.Freed && p.wantsSomething():
			p.change((*PodWorld).freed)
		case event.Freed:
		case event.ID == "" || p.knows(event.ID):
			all = all || event.ID != "" && p.seen.Load().Phase != runtime.Stopped
			p.change(func(w *PodWorld) { w.happened(event.ID) })
		}
	}
	return all
}

func (p *pod) wantsSomething() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.world.Parts, func(part Part) bool { return part.heldByOthers() })
}

func (p *pod) knows(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.world.knows(id)
}

// add makes a pod; e.mu is held.
func (e *Engine) add(name runtime.PodName, w PodWorld) *pod {
	w.Daemon = e.daemon
	p := newPod(e.host, e.clock, &e.limits, func() { e.hints.hint(w.Set) }, w)
	e.pods[name] = p
	return p
}

// begin starts the pod's goroutine; e.mu is held.
func (e *Engine) begin(p *pod) { e.stops[p] = e.spawn(p.run) }

// forget drops a pod whose containers are gone. One that got another meanwhile is
// ErrRunning.
func (e *Engine) forget(name runtime.PodName, p *pod) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.pods[name] != p {
		return nil
	}
	if p.seen.Load().Phase != runtime.Stopped {
		return runtime.ErrRunning
	}
	delete(e.pods, name)
	e.stops[p]()
	delete(e.stops, p)
	p.hint()
	return nil
}

// group is the containers of one pod, by block.
type group struct {
	set     jobspecs.Key
	ordinal int
	parts   map[string]found
}

// found is the containers of one part.
type found struct {
	kind, suffix   string
	main, previous *Container
	beside         []Container // further ones
}

// all are its containers.
func (f found) all() []Container {
	list := slices.Clone(f.beside)
	for _, c := range []*Container{f.main, f.previous} {
		if c != nil {
			list = append(list, *c)
		}
	}
	return list
}

// any tells whether there is a container that is not just kept for its output.
func (g group) any() bool {
	for _, f := range g.parts {
		if f.main != nil {
			return true
		}
	}
	return false
}

// kept are the names of the containers that are just kept, sorted.
func (g group) kept() []string {
	var names []string
	for _, f := range g.parts {
		if f.previous != nil {
			names = append(names, f.previous.Name)
		}
		for i := range f.beside {
			names = append(names, f.beside[i].Name)
		}
	}
	slices.Sort(names)
	return names
}

// blocks are the parts, the sandbox first, then by kind and name: the order in
// which they begin is the spec's to say.
func (g group) blocks() []string {
	ranks := map[string]int{jobspecs.KindSandbox: 0, jobspecs.KindInit: 1, jobspecs.KindSidecar: 2, jobspecs.KindMain: 3}
	return slices.SortedFunc(maps.Keys(g.parts), func(a, b string) int {
		return cmp.Or(ranks[g.parts[a].kind]-ranks[g.parts[b].kind], strings.Compare(a, b))
	})
}

// owner is the pod that a container's labels name.
type owner struct {
	name    runtime.PodName
	set     jobspecs.Key
	ordinal int
}

func podOf(c *Container) (owner, bool) {
	ordinal, err := strconv.Atoi(c.Labels[jobspecs.LabelOrdinal])
	set := jobspecs.Key{Namespace: c.Labels[jobspecs.LabelNamespace], Name: c.Labels[jobspecs.LabelSet]}
	if err != nil || set.Name == "" {
		return owner{}, false
	}
	return owner{runtime.PodName{Namespace: set.Namespace, Name: jobspecs.MemberName(set.Name, ordinal)}, set, ordinal}, true
}

// grouped sorts containers to their pods and parts by label: a name can be changed
// by hand. A pod has its own name in common with one of its containers.
func grouped(list []Container) map[runtime.PodName]group {
	groups := map[runtime.PodName]group{}
	for _, c := range list {
		o, ok := podOf(&c)
		if !ok {
			continue
		}
		g, ok := groups[o.name]
		if !ok {
			g = group{set: o.set, ordinal: o.ordinal, parts: map[string]found{}}
			groups[o.name] = g
		}
		block := c.Labels[jobspecs.LabelContainer]
		f := g.parts[block]
		f.kind = kindOf(c.Labels[jobspecs.LabelKind])
		f.add(&c, o.name, block)
		g.parts[block] = f
	}
	for name, g := range groups {
		g.promote()
		g.name(name)
	}
	return groups
}

// add sorts a container in by its name.
func (f *found) add(c *Container, pod runtime.PodName, block string) {
	name := func(part string) string { return jobspecs.ContainerName(pod.Namespace, pod.Name, part) }
	switch c.Name {
	case name(jobspecs.PreviousPart("")), name(jobspecs.PreviousPart(block)):
		f.keep(c, true)
		return
	}
	other := f.main
	switch {
	case other == nil:
		f.main = c
		return
	case preferred(c, other, name(block)):
		f.main, c = c, other
	}
	f.keep(c, false) // somebody renamed a kept one, or made a second
}

// keep sorts in a container that does not count. Of several the kept one is that
// which runs, then that which has the name.
func (f *found) keep(c *Container, named bool) {
	other := f.previous
	if other == nil || c.Running() && !other.Running() || named && c.Running() == other.Running() {
		f.previous, c = c, other
	}
	if c != nil {
		f.beside = append(f.beside, *c)
	}
}

// promote lets a kept container that runs count, where there is no other one: its
// name was changed by hand.
func (g group) promote() {
	for block, f := range g.parts {
		if f.main == nil && f.previous != nil && f.previous.Running() {
			f.main, f.previous = f.previous, nil
			g.parts[block] = f
		}
	}
}

// name finds out what the parts are called: the one with the pod's own name, or
// the only main, needs no suffix.
func (g group) name(pod runtime.PodName) {
	mains := 0
	for _, f := range g.parts {
		if f.kind == jobspecs.KindMain {
			mains++
		}
	}
	for block, f := range g.parts {
		f.suffix = block
		for _, own := range []string{jobspecs.ContainerName(pod.Namespace, pod.Name, ""), jobspecs.ContainerName(pod.Namespace, pod.Name, jobspecs.PartPrevious)} {
			if f.kind == jobspecs.KindMain && (mains == 1 || f.main != nil && f.main.Name == own || f.previous != nil && f.previous.Name == own) {
				f.suffix = ""
			}
		}
		g.parts[block] = f
	}
}

// preferred tells which of two containers of one part counts: what runs, then
// what has the name.
func preferred(c, than *Container, name string) bool {
	if c.Running() != than.Running() {
		return c.Running()
	}
	return c.Name == name || strings.HasPrefix(name, c.Name+"_")
}
