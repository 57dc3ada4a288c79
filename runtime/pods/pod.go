package pods

import (
	"context"
	"errors"
	"reflect"
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
	limits *limits
	hint   func() // the pod's set changed

	kick chan struct{} // decide again
	seen atomic.Pointer[runtime.Pod]

	mu     sync.Mutex
	world  PodWorld
	cancel context.CancelFunc // of the step that is being taken; nil: none
	said   time.Time          // of the last progress shown
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

// newPod is a pod of which nothing is known yet but its name.
func newPod(host Host, l *limits, hint func(), w PodWorld) *pod {
	w.CreatedAt = time.Now()
	return &pod{host: host, limits: l, hint: hint, kick: make(chan struct{}, 1), world: w}
}

// change notes something and shows it: when it returns, List shows it too.
func (p *pod) change(f func(*PodWorld)) {
	p.mu.Lock()
	p.world.Now = time.Now()
	f(&p.world)
	plan := p.world.turn(p.world.Now)
	cancel := p.cancel
	p.show(plan)
	p.mu.Unlock()
	if plan.Cancel && cancel != nil {
		cancel()
	}
	select {
	case p.kick <- struct{}{}:
	default:
	}
}

// show publishes what List shows; p.mu is held.
func (p *pod) show(plan PodPlan) {
	now := view(&p.world, plan)
	if old := p.seen.Load(); old != nil && reflect.DeepEqual(*old, now) {
		return
	}
	p.seen.Store(&now)
	p.hint()
}

// run is the pod's goroutine.
func (p *pod) run(ctx context.Context) {
	var work sync.WaitGroup
	defer work.Wait()
	alarm := time.NewTimer(time.Hour)
	defer alarm.Stop()
	var checked life
	checks, endChecks := ctx, context.CancelFunc(func() {})
	defer func() { endChecks() }()
	for {
		world, plan := p.turn(ctx, &work)
		if now := lifeOf(&world); now != checked {
			endChecks()
			ctx, cancel := context.WithCancel(ctx)
			checked, checks, endChecks = now, ctx, cancel
		}
		for _, k := range plan.Checks {
			ctx := checks
			work.Go(func() { p.check(ctx, world, k) })
		}
		alarm.Stop()
		if !plan.Wake.IsZero() {
			alarm.Reset(time.Until(plan.Wake))
		}
		select {
		case <-ctx.Done():
			return
		case <-p.kick:
		case <-alarm.C:
		}
	}
}

// turn decides, and takes the step that was decided on.
func (p *pod) turn(ctx context.Context, work *sync.WaitGroup) (PodWorld, PodPlan) {
	p.mu.Lock()
	defer p.mu.Unlock()
	plan := p.world.turn(time.Now())
	for _, k := range plan.Checks {
		p.world.Probes.of(k).sent(p.world.Now)
	}
	if step := plan.Step; step != nil {
		p.world.begun(*step)
		ctx, cancel := context.WithCancel(ctx)
		p.cancel = cancel
		world := p.world
		work.Go(func() {
			defer cancel()
			result := p.take(ctx, &world, *step)
			result.Cancelled = ctx.Err() != nil
			p.change(func(w *PodWorld) {
				p.cancel = nil
				w.done(result)
			})
		})
	}
	p.show(p.world.turn(p.world.Now))
	return p.world, plan
}

// take is the only place where a pod changes something at the host.
func (p *pod) take(ctx context.Context, w *PodWorld, s Step) (r Result) {
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
		r.Image, r.Err = p.host.Image(ctx, w.imageRef())
	case Pull:
		r.Err = p.host.Pull(ctx, w.main().Image, w.main().Auth, p.progress)
	case Create:
		r.ID, r.Err = p.host.Create(ctx, w.containerSpec())
	case Start:
		r.Err = p.host.Start(ctx, s.ID)
	case Stop:
		r.Err = p.host.Stop(ctx, s.ID, w.stopSignal(), s.Grace)
	case Remove:
		r.Err = p.host.Remove(ctx, s.ID)
	case Rename:
		r.Err = p.host.Rename(ctx, s.ID, s.Name)
	}
	return r
}

func (p *pod) look(ctx context.Context, w *PodWorld, s Step) (r Result) {
	if s.Part != jobspecs.PartPrevious {
		id := s.ID
		if id == "" {
			id = w.containerName("")
		}
		r.Main, r.Err = p.inspect(ctx, id)
	}
	if s.Part != "" && r.Err == nil {
		r.Previous, r.Err = p.inspect(ctx, w.containerName(jobspecs.PartPrevious))
	}
	return r
}

func (p *pod) inspect(ctx context.Context, id string) (*Container, error) {
	c, err := p.host.Inspect(ctx, id)
	if errors.Is(err, ErrNoContainer) {
		return nil, nil
	}
	return &c, err
}

// progress shows how a pull fares, twice a second at most.
func (p *pod) progress(said string) {
	p.mu.Lock()
	now := time.Now()
	quiet := now.Sub(p.said) < 500*time.Millisecond
	if !quiet {
		p.said = now
	}
	p.mu.Unlock()
	if quiet {
		return
	}
	p.change(func(w *PodWorld) {
		if w.Doing != nil && w.Doing.Verb == Pull {
			w.Said = said
		}
	})
}

// check sends one check and notes its verdict. One that is cut short has none.
func (p *pod) check(ctx context.Context, world PodWorld, k Kind) {
	id, probe := world.Probes.ID, world.Probes.of(k).Probe
	err := p.verdict(ctx, world.Main, probe)
	cut := ctx.Err() != nil
	p.change(func(w *PodWorld) {
		switch {
		case w.Probes.ID != id || !w.Probes.RunAt.Equal(world.Probes.RunAt):
		case cut:
			w.Probes.of(k).dropped(w.Now)
		default:
			w.Probes.heard(k, err, w.Now)
		}
	})
}

func (p *pod) verdict(ctx context.Context, c *Container, probe jobspecs.Probe) error {
	if len(probe.Exec) > 0 {
		if err := p.limits.enter(ctx, p.limits.execs); err != nil {
			return err
		}
		defer func() { <-p.limits.execs }()
	}
	ctx, cancel := context.WithTimeout(ctx, probe.Timeout)
	defer cancel()
	_, err := p.host.Check(ctx, Target{ID: c.ID, Address: c.Address, Run: c.StartedAt}, probe)
	return err
}

// life is one run of one container, as far as its checks go: they end with it.
type life struct {
	id  string
	run time.Time
}

func lifeOf(w *PodWorld) life {
	if !w.running() || w.Offline {
		return life{}
	}
	return life{w.Probes.ID, w.Probes.RunAt}
}

// imageRef is what is asked for: the image of a running container, else the one
// that the revision is pinned to, else the one of the container that ended, else
// what its name means.
func (w *PodWorld) imageRef() string {
	switch {
	case w.running():
		return w.Main.ImageID
	case w.main().ImageID != "":
		return w.main().ImageID
	}
	if past := w.past(); past != nil && past.Labels[jobspecs.LabelRevision] == w.Spec.Revision && past.ImageID != "" && !w.Pulled {
		return past.ImageID // a tag that moved meanwhile is no reason to run another image
	}
	return w.main().Image
}

func (w *PodWorld) stopSignal() string {
	if w.Spec == nil {
		return ""
	}
	return w.main().StopSignal
}

func (w *PodWorld) containerSpec() ContainerSpec {
	return ContainerSpec{
		Name: w.containerName(""), Labels: w.labels(), Image: *w.Image, Pod: *w.Spec, Main: *w.main(),
	}
}
