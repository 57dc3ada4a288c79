package pods

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

// pod is one pod's agent. Its goroutine (run) takes every step and sends every
// check; whoever learns something notes it in world through change.
type pod struct {
	host   Host
	clock  runtime.Clock
	limits *limits
	hint   func() // the pod's set changed

	kick chan struct{} // decide again
	seen atomic.Pointer[runtime.Pod]

	mu     sync.Mutex
	world  PodWorld
	cancel map[string]context.CancelFunc // of the steps that are being taken, by part
	hooks  map[string]context.CancelFunc // of the hooks that run, by part
	said   time.Time                     // of the last progress shown
}

// limits bound what all pods together ask of the host.
type limits struct {
	calls chan struct{} // but Stop and Pull: they take their time and little else
	execs chan struct{}
}

func (l *limits) enter(ctx context.Context, c chan struct{}) error {
	select {
	case c <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// execShare is how long an exec keeps others of the host from beginning: what it
// costs is its begin, and one that hangs must not hold up the probes of all.
const execShare = time.Second

// enterExec waits for a place among the execs; leave gives it back, and so does time.
func (l *limits) enterExec(ctx context.Context) (leave func(), err error) {
	if err := l.enter(ctx, l.execs); err != nil {
		return nil, err
	}
	give := sync.OnceFunc(func() { <-l.execs })
	timer := time.AfterFunc(execShare, give)
	return func() {
		timer.Stop()
		give()
	}, nil
}

// newPod is a pod of which nothing is known yet but its name.
func newPod(host Host, clock runtime.Clock, l *limits, hint func(), w PodWorld) *pod {
	w.CreatedAt = clock.Now()
	return &pod{
		host: host, clock: clock, limits: l, hint: hint, kick: make(chan struct{}, 1), world: w,
		cancel: map[string]context.CancelFunc{}, hooks: map[string]context.CancelFunc{},
	}
}

// change notes something and shows it: when it returns, List shows it too.
func (p *pod) change(f func(*PodWorld)) {
	p.mu.Lock()
	p.world.Now = p.clock.Now()
	f(&p.world)
	plan := p.world.turn(p.world.Now)
	obsolete := p.obsolete(plan)
	p.show(plan)
	p.mu.Unlock()
	for _, cancel := range obsolete {
		cancel()
	}
	select {
	case p.kick <- struct{}{}:
	default:
	}
}

// obsolete are the steps and hooks that lost their purpose; p.mu is held.
func (p *pod) obsolete(plan PodPlan) (list []context.CancelFunc) {
	for i, part := range plan.Parts {
		block := p.world.Parts[i].Block
		if cancel := p.cancel[block]; cancel != nil && part.Cancel {
			list = append(list, cancel)
		}
		if cancel := p.hooks[block]; cancel != nil && part.CutHook {
			list = append(list, cancel)
		}
	}
	return list
}

// show publishes what List shows; p.mu is held.
func (p *pod) show(plan PodPlan) {
	now := view(&p.world, plan)
	if old := p.seen.Load(); old != nil && old.Equal(&now) {
		return
	}
	seen := now // only what is new is put on the heap
	p.seen.Store(&seen)
	p.hint()
}

// run is the pod's goroutine.
func (p *pod) run(ctx context.Context) {
	var work sync.WaitGroup
	defer work.Wait()
	alarm := time.NewTimer(time.Hour)
	defer alarm.Stop()
	lives := lives{}
	defer lives.end()
	for {
		world, plan, fresh := p.turn(ctx, lives, &work)
		for _, block := range fresh {
			p.listen(lives[block].ctx, world, block, &work)
		}
		p.ask(lives, world, plan, &work)
		alarm.Stop()
		if !plan.Wake.IsZero() {
			alarm.Reset(plan.Wake.Sub(p.clock.Now()))
		}
		select {
		case <-ctx.Done():
			return
		case <-p.kick:
		case <-alarm.C:
		}
	}
}

// listen waits beside the clock for the ports of a fresh run, where the host can
// tell when they open.
func (p *pod) listen(ctx context.Context, world *PodWorld, block string, work *sync.WaitGroup) {
	host, ok := p.host.(Listener)
	s, known := world.part(block)
	if !ok || !known || world.Spec == nil || !s.lasting() {
		return
	}
	c := s.block()
	for _, port := range hurriedPorts(c.Startup, c.Readiness) {
		work.Go(func() {
			if host.Listening(ctx, s.target(), port) != nil {
				return
			}
			p.change(func(w *PodWorld) {
				if s, ok := w.part(block); ok && ctx.Err() == nil {
					s.Probes.opened(port, w.Now)
				}
			})
		})
	}
}

// ask sends the checks and hooks that were decided on. They end with the run of
// their container.
func (p *pod) ask(lives lives, world *PodWorld, plan PodPlan, work *sync.WaitGroup) {
	for i, part := range plan.Parts {
		if !asks(part) {
			continue
		}
		block := world.Parts[i].Block
		ctx := lives[block].ctx
		for _, k := range part.Checks {
			work.Go(func() { p.check(ctx, world, block, k) })
		}
		if part.Hook == "" {
			continue
		}
		hook, cancel := context.WithCancel(ctx)
		p.mu.Lock()
		p.hooks[block] = cancel
		p.mu.Unlock()
		until := world.at(i).graceOver()
		work.Go(func() {
			defer cancel()
			p.hook(hook, world, block, part.Hook, until)
		})
	}
}

// life is one run of one container: its checks and hooks end with it.
type life struct {
	id  string
	run time.Time
}

func (l life) equal(o life) bool { return l.id == o.id && l.run.Equal(o.run) }

// lives are the runs of a pod's containers, by part.
type lives map[string]lived

type lived struct {
	life
	ctx context.Context
	end context.CancelFunc
}

// follow ends what belongs to runs that are over, and gives the parts that run anew.
func (l lives) follow(ctx context.Context, w *PodWorld) (fresh []string) {
	w.each(func(s spot) {
		var now life
		if s.running() && !w.Offline {
			now = life{s.Main.ID, s.Main.StartedAt}
		}
		old, ok := l[s.Block]
		if ok && old.equal(now) {
			return
		}
		if ok {
			old.end()
		}
		ctx, cancel := context.WithCancel(ctx)
		l[s.Block] = lived{now, ctx, cancel}
		if now != (life{}) && !s.Found {
			fresh = append(fresh, s.Block)
		}
	})
	return fresh
}

func (l lives) end() {
	for _, one := range l {
		one.end()
	}
}

// turn decides, and takes the steps that were decided on. It gives the parts that run
// anew; the world that it returns has checks and hooks noted as sent, and is nil when
// nobody is to be asked anything.
func (p *pod) turn(ctx context.Context, lives lives, work *sync.WaitGroup) (world *PodWorld, plan PodPlan, fresh []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	plan = p.world.turn(p.clock.Now())
	for i, part := range plan.Parts {
		s := p.world.at(i)
		for _, k := range part.Checks {
			s.Probes.of(k).sent(p.world.Now)
		}
		if part.Hook != "" {
			s.sendHook(part.Hook)
		}
		if part.Step != nil {
			p.begin(ctx, work, s, *part.Step)
		}
	}
	fresh = lives.follow(ctx, &p.world)
	if does(plan) {
		p.show(p.world.turn(p.world.Now))
	} else {
		p.show(plan)
	}
	if len(fresh) > 0 || slices.ContainsFunc(plan.Parts, asks) {
		world = p.world.clone()
	}
	return world, plan, fresh
}

// does tells whether a plan asks for anything, so that the next one is another.
func does(plan PodPlan) bool {
	return slices.ContainsFunc(plan.Parts, func(p PartPlan) bool { return p.Step != nil || asks(p) })
}

func asks(p PartPlan) bool { return len(p.Checks) > 0 || p.Hook != "" }

// begin takes one step beside this turn; p.mu is held.
func (p *pod) begin(ctx context.Context, work *sync.WaitGroup, s spot, step Step) {
	s.begin(step)
	block := s.Block
	ctx, cancel := context.WithCancel(ctx)
	p.cancel[block] = cancel
	world := p.world.clone()
	work.Go(func() {
		defer cancel()
		now, _ := world.part(block)
		result := p.take(ctx, now, step)
		result.Cancelled = ctx.Err() != nil
		p.change(func(w *PodWorld) {
			delete(p.cancel, block)
			if s, ok := w.part(block); ok && s.Doing != nil {
				s.done(result)
			}
		})
	})
}

// take is the only place where a pod changes something at the host.
func (p *pod) take(ctx context.Context, w spot, s Step) (r Result) {
	if s.Verb != Stop && s.Verb != Pull {
		if r.Err = p.limits.enter(ctx, p.limits.calls); r.Err != nil {
			return r
		}
		defer func() { <-p.limits.calls }()
	}
	switch s.Verb {
	case Look:
		return p.look(ctx, w, s)
	case Resolve:
		r.Image, r.Err = p.resolve(ctx, w)
	case Pull:
		r.Err = p.host.Pull(ctx, w.block().Image, w.block().Auth, func(said string) { p.progress(w.Block, said) })
	case Create:
		r.ID, r.Err = p.host.Create(ctx, w.containerSpec(s.Joins))
	case Start:
		r.Err = p.host.Start(ctx, s.ID)
	case Stop:
		r.Err = p.host.Stop(ctx, s.ID, w.stopSignal(), s.Grace)
	case Remove:
		r.Err = p.host.Remove(ctx, s.ID)
	case Rename, Recall:
		r.Err = p.host.Rename(ctx, s.ID, s.Name)
	}
	return r
}

func (p *pod) resolve(ctx context.Context, w spot) (Image, error) {
	if w.Kind == jobspecs.KindSandbox {
		return p.host.SandboxImage(ctx)
	}
	return p.host.Image(ctx, w.imageRef())
}

func (p *pod) look(ctx context.Context, w spot, s Step) (r Result) {
	if s.Which != jobspecs.PartPrevious {
		r.Main, r.Err = p.inspect(ctx, or(s.ID, w.containerName()))
	}
	if s.Which != "" && r.Err == nil {
		r.Previous, r.Err = p.lookPrevious(ctx, w)
	}
	return r
}

// lookPrevious finds the kept container by its id, since a name can be changed by
// hand, and by its name where it is not known.
func (p *pod) lookPrevious(ctx context.Context, w spot) (*Container, error) {
	if w.Previous != nil {
		if c, err := p.inspect(ctx, w.Previous.ID); c != nil || err != nil {
			return c, err
		}
	}
	return p.inspect(ctx, w.previousName())
}

func (p *pod) inspect(ctx context.Context, id string) (*Container, error) {
	c, err := p.host.Inspect(ctx, id)
	if errors.Is(err, ErrNoContainer) {
		return nil, nil
	}
	return &c, err
}

// progress shows how a pull fares, twice a second at most.
func (p *pod) progress(block, said string) {
	p.mu.Lock()
	now := p.clock.Now()
	quiet := now.Sub(p.said) < 500*time.Millisecond
	if !quiet {
		p.said = now
	}
	p.mu.Unlock()
	if quiet {
		return
	}
	p.change(func(w *PodWorld) {
		if s, ok := w.part(block); ok && s.Doing != nil && s.Doing.Verb == Pull {
			s.Said = said
		}
	})
}

// check sends one check and notes its verdict. One that is cut short has none.
func (p *pod) check(ctx context.Context, world *PodWorld, block string, k Kind) {
	s, ok := world.part(block)
	if !ok {
		return
	}
	said, err := p.verdict(ctx, s, s.Probes.of(k))
	cut := ctx.Err() != nil
	p.change(func(w *PodWorld) {
		now, ok := w.part(block)
		switch {
		case !ok || now.Probes.ID != s.Probes.ID || !now.Probes.RunAt.Equal(s.Probes.RunAt):
		case cut:
			now.Probes.of(k).dropped(w.Now)
		default:
			now.heard(k, err)
			if k == Role && err == nil {
				now.Probes.Said = said
			}
		}
	})
}

// heard notes the verdict of a check, and for people that a probe has failed as
// often as counts (k8s event Unhealthy).
func (w spot) heard(k Kind, err error) {
	r := w.Probes.of(k)
	before := r.Fails
	w.Probes.heard(k, err, w.Now)
	if err != nil && k != Role && before < r.Probe.FailureThreshold && r.lost() {
		w.note(w.Block, true, "Unhealthy", fmt.Sprintf("%s probe failed: %v", k, err))
	}
}

func (p *pod) verdict(ctx context.Context, s spot, r *Prober) (said string, err error) {
	if len(r.Probe.Exec) > 0 {
		leave, err := p.limits.enterExec(ctx)
		if err != nil {
			return "", err
		}
		defer leave()
	}
	ctx, cancel := context.WithTimeout(ctx, r.Probe.Timeout)
	defer cancel()
	t := s.target()
	t.Since = r.Since
	return p.host.Check(ctx, t, r.Probe)
}
