package pods

import (
	"context"
	"fmt"
	goruntime "runtime"
	"slices"
	"sync"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

// Config makes an Engine.
type Config struct {
	// Host runs the containers. It is the one field that has no default.
	Host Host
	// Daemon is the id of the state store; it is a label on everything that is
	// made, and what does not carry it is never changed.
	Daemon string
	// Probes is how many exec probes run at once on the host. Default: half the
	// number of cores, at least 1.
	Probes int
	// Parallel is how many short calls the host gets at once. Default: 32.
	Parallel int
	// Clock is the host's. nil: time.Now.
	Clock runtime.Clock
}

// Engine is a runtime.Engine on one Host.
type Engine struct {
	host   Host
	daemon string
	clock  runtime.Clock
	limits limits
	hints  hints

	mu    sync.RWMutex
	pods  map[runtime.PodName]*pod
	asked map[runtime.PodName]bool     // see note
	left  map[runtime.PodName][]string // names of containers that were kept of pods that are gone
	up    bool                         // connected, and every container looked at
	last  error                        // why it is not up
	spawn func(run func(context.Context)) (stop func())
	stops map[*pod]func()
}

var _ runtime.Engine = (*Engine)(nil)

// New makes an engine that is not connected yet: Run does that.
func New(c Config) *Engine {
	return &Engine{
		host: c.Host, daemon: c.Daemon, clock: c.Clock,
		limits: limits{
			calls: make(chan struct{}, or(c.Parallel, 32)),
			execs: make(chan struct{}, or(c.Probes, max(1, goruntime.NumCPU()/2))),
		},
		pods:  map[runtime.PodName]*pod{},
		asked: map[runtime.PodName]bool{},
		left:  map[runtime.PodName][]string{},
		stops: map[*pod]func(){},
		last:  runtime.ErrConnecting,
	}
}

// Connected tells whether the host answers and everything on it is known.
func (e *Engine) Connected() bool {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.up
}

// LastError is why the engine is not connected; nil while it is.
func (e *Engine) LastError() error {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.last
}

// reachable is nil while the engine is connected; e.mu is held.
func (e *Engine) reachable() error {
	if e.up {
		return nil
	}
	return fmt.Errorf("%w: %w", runtime.ErrUnreachable, e.last)
}

// List implements runtime.Engine.
func (e *Engine) List(_ context.Context, set jobspecs.Key) ([]runtime.Pod, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if err := e.reachable(); err != nil {
		return nil, err
	}
	var list []runtime.Pod
	for _, p := range e.pods {
		if pod := p.seen.Load(); pod.Set == set {
			list = append(list, *pod)
		}
	}
	slices.SortFunc(list, func(a, b runtime.Pod) int { return a.Ordinal - b.Ordinal })
	return list, nil
}

// Create implements runtime.Engine.
func (e *Engine) Create(_ context.Context, spec jobspecs.PodSpec) error {
	if len(spec.Containers) == 0 {
		return fmt.Errorf("create pod %s: it has no container", spec.Name)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.reachable(); err != nil {
		return err
	}
	name := runtime.PodName{Namespace: spec.Set.Namespace, Name: spec.Name}
	p, ok := e.pods[name]
	if !ok {
		p = e.add(name, PodWorld{Set: spec.Set, Name: spec.Name, Ordinal: spec.Ordinal, Afresh: e.asked[name]})
		delete(e.asked, name)
		p.change(func(w *PodWorld) { w.handOver(spec) })
		e.begin(p)
		return nil
	}
	var err error
	p.change(func(w *PodWorld) {
		if w.revision() != spec.Revision || w.Order != nil || w.Phase == runtime.Stopped {
			err = fmt.Errorf("create pod %s: %w", spec.Name, runtime.ErrConflict)
			return
		}
		w.handOver(spec)
	})
	return err
}

// Stop implements runtime.Engine.
func (e *Engine) Stop(_ context.Context, name runtime.PodName, o runtime.StopOptions) error {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if err := e.reachable(); err != nil {
		return err
	}
	p, ok := e.pods[name]
	if !ok {
		return nil
	}
	p.change(func(w *PodWorld) {
		if w.Phase != runtime.Stopped {
			w.ordered(Order{Grace: o.Grace, Why: o.Why})
		}
	})
	return nil
}

// Remove implements runtime.Engine.
func (e *Engine) Remove(ctx context.Context, name runtime.PodName, keep bool) error {
	e.mu.RLock()
	p, err := e.pods[name], e.reachable()
	e.mu.RUnlock()
	switch {
	case err != nil:
		return err
	case p != nil && p.seen.Load().Phase != runtime.Stopped:
		return fmt.Errorf("remove pod %s: %w", name.Name, runtime.ErrRunning)
	}
	if err := e.clear(ctx, name, p, keep); err != nil {
		return fmt.Errorf("remove pod %s: %w", name.Name, err)
	}
	e.keep(name, p, keep)
	if p != nil {
		if err := e.forget(name, p); err != nil {
			return fmt.Errorf("remove pod %s: %w", name.Name, err)
		}
		e.note(name, keep && p.seen.Load().Reason == runtime.ReasonStopRequested)
	}
	return nil
}

// Release implements runtime.Engine.
func (e *Engine) Release(set jobspecs.Key) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	for _, p := range e.pods {
		if p.seen.Load().Set == set {
			p.change((*PodWorld).release)
		}
	}
}

// keep remembers which containers of a pod that is gone were kept.
func (e *Engine) keep(name runtime.PodName, p *pod, keep bool) {
	var names []string
	if p != nil && keep {
		world := p.snapshot()
		world.each(func(s spot) {
			names = append(names, s.previousName())
			for i := range s.Beside {
				names = append(names, s.Beside[i].ID)
			}
		})
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if !keep {
		delete(e.left, name)
	}
	if len(names) > 0 { // of a pod that was started by hand not every part is known
		e.left[name] = sortedUnion(e.left[name], names)
	}
}

// note remembers, until the name is used again, that its pod was stopped because
// somebody asked for it. A restart of the daemon forgets it: the next container
// then counts one restart that was none.
func (e *Engine) note(name runtime.PodName, asked bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.asked, name)
	if asked {
		e.asked[name] = true
	}
}

// Watch implements runtime.Engine.
func (e *Engine) Watch(ctx context.Context) (<-chan jobspecs.Key, error) {
	return e.hints.watch(ctx), nil
}
