package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/runtime/pods"
)

// host is the World as the pod agent sees it.
type host struct{ *World }

var _ pods.Host = host{}

// Host is what a pods.Engine stands on.
func (w *World) Host() pods.Host { return host{w} }

// watcher is one subscription. Like a slow reader of Docker's events it may be
// told once that everything may have changed.
type watcher struct{ events chan pods.Event }

func (o *watcher) tell(e pods.Event) {
	switch len(o.events) {
	case cap(o.events):
	case cap(o.events) - 1:
		o.events <- pods.Event{}
	default:
		o.events <- e
	}
}

// Watch implements pods.Host.
func (h host) Watch(ctx context.Context) (<-chan pods.Event, error) {
	o := &watcher{make(chan pods.Event, 1024)}
	err := h.call(ctx, "watch", "", func() error {
		h.watchers[o] = true
		return nil
	})
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.hangUp(o)
	})
	return o.events, nil
}

// hangUp ends a subscription; w.mu is held.
func (w *World) hangUp(o *watcher) {
	if w.watchers[o] {
		delete(w.watchers, o)
		close(o.events)
	}
}

// List implements pods.Host.
func (h host) List(ctx context.Context) (list []pods.Container, err error) {
	err = h.call(ctx, "list", "", func() error {
		for _, id := range slices.Sorted(maps.Keys(h.boxes)) {
			if c := h.boxes[id].c; c.Labels[jobspecs.LabelDaemon] == h.daemon {
				list = append(list, c)
			}
		}
		return nil
	})
	return list, err
}

// box finds by id or name; w.mu is held.
func (w *World) box(id string) (*box, error) {
	b := w.boxes[id]
	if b == nil {
		b = w.names[id]
	}
	if b == nil {
		return nil, fmt.Errorf("%s: %w", id, pods.ErrNoContainer)
	}
	return b, nil
}

// name of a container, for the log and for faults.
func (w *World) name(id string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if b := w.boxes[id]; b != nil {
		return b.c.Name
	}
	return id
}

// Inspect implements pods.Host.
func (h host) Inspect(ctx context.Context, id string) (c pods.Container, err error) {
	err = h.call(ctx, "inspect", h.name(id), func() error {
		b, err := h.box(id)
		if err == nil {
			c = b.c
		}
		return err
	})
	return c, err
}

// Create implements pods.Host.
func (h host) Create(ctx context.Context, spec pods.ContainerSpec) (id string, err error) {
	err = h.call(ctx, "create", spec.Name, func() error {
		id, err = h.create(spec)
		return err
	})
	if err != nil {
		return "", err
	}
	return id, nil
}

func (w *World) create(spec pods.ContainerSpec) (string, error) {
	if b := w.names[spec.Name]; b != nil {
		return "", w.nameTaken(b)
	}
	im := w.image(spec.Image.ID)
	if im == nil || !im.local {
		return "", problem(runtime.ReasonImageMissing, "image %s is not on this host", spec.Main.Image)
	}
	if owner, taken := w.foreign["network "+spec.Pod.Network]; taken {
		return "", problem(runtime.ReasonNetworkTaken, "network %s is not ours (%s)", spec.Pod.Network, owner)
	}
	var mounted []string
	for _, m := range spec.Main.Mounts {
		if err := w.mount(spec, m); err != nil {
			return "", err
		}
		if !slices.Contains(mounted, m.Volume) {
			mounted = append(mounted, m.Volume)
		}
	}
	w.networks[spec.Pod.Set.Namespace] = w.subnet(spec.Pod.Set.Namespace, spec.Pod.Subnet)
	b := &box{spec: spec, program: im.program, volumes: mounted, ports: spec.Main.Ports}
	b.c = pods.Container{
		ID: w.id("c"), Name: spec.Name, Labels: maps.Clone(spec.Labels), State: "created",
		Image: spec.Main.Image, ImageID: im.id, Address: spec.Pod.Address, CreatedAt: time.Now(),
	}
	w.boxes[b.c.ID], w.names[spec.Name] = b, b
	w.changed(b)
	return b.c.ID, nil
}

func (w *World) nameTaken(b *box) error {
	if b.c.Labels[jobspecs.LabelDaemon] == w.daemon {
		return problem(runtime.ReasonWaitingForFence, "container %s of ours still has the name", b.c.Name)
	}
	return problem(runtime.ReasonNameTaken, "container %s exists and is not ours (%s)", b.c.Name, ownerOf(b.c.Labels))
}

func ownerOf(labels map[string]string) string {
	if id := labels[jobspecs.LabelDaemon]; id != "" {
		return "of stsd " + id
	}
	return "made by somebody else"
}

// mount brings a volume into being, as Docker does, where the pod wants one that
// is not there.
func (w *World) mount(spec pods.ContainerSpec, m jobspecs.Mount) error {
	d := w.volumes[m.Volume]
	if d == nil {
		w.makeDisk(m.Volume, w.volumeLabels(spec.Pod.Set, spec.Pod.Ordinal, m.Claim))
		return nil
	}
	if d.Labels[jobspecs.LabelDaemon] != w.daemon {
		return problem(runtime.ReasonVolumeForeign, "volume %s exists and is not ours (%s)", m.Volume, ownerOf(d.Labels))
	}
	return nil
}

// Start implements pods.Host.
func (h host) Start(ctx context.Context, id string) error {
	h.mu.Lock()
	var delay time.Duration
	if b, err := h.box(id); err == nil {
		delay = b.program.StartDelay
	}
	h.mu.Unlock()
	if err := sleep(ctx, delay); err != nil {
		return err
	}
	return h.call(ctx, "start", h.name(id), func() error {
		b, err := h.box(id)
		switch {
		case err != nil:
			return err
		case b.c.Running():
			return nil
		case b.program.StartError != nil:
			b.c.Error = b.program.StartError.Error()
			return b.program.StartError
		}
		if err := h.free(b); err != nil {
			return err
		}
		h.start(b)
		return nil
	})
}

// free tells whether nobody holds what b wants; w.mu is held.
func (w *World) free(b *box) error {
	for _, p := range b.ports {
		if owner := w.portOwner(b.c.ID, p); owner != "" && p.Host != 0 {
			return problem(runtime.ReasonPortTaken, "port %d/%s of the host is taken by %s", p.Host, p.Protocol, owner)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(w.boxes)) {
		o := w.boxes[id]
		if o == b || !o.c.Running() || !b.c.Address.IsValid() || o.c.Address != b.c.Address {
			continue
		}
		if o.c.Labels[jobspecs.LabelDaemon] == w.daemon {
			return problem(runtime.ReasonWaitingForFence, "container %s of ours still has the address %s", o.c.Name, o.c.Address)
		}
		return problem(runtime.ReasonAddressTaken, "container %s, which is not ours, has the address %s", o.c.Name, o.c.Address)
	}
	return nil
}

func (w *World) portOwner(self string, p jobspecs.Port) string {
	if owner := w.foreign[portKey(p)]; owner != "" {
		return owner
	}
	for _, id := range slices.Sorted(maps.Keys(w.boxes)) {
		b := w.boxes[id]
		if id == self || !b.c.Running() {
			continue
		}
		for _, q := range b.ports {
			if q.Host != 0 && portKey(q) == portKey(p) {
				return "container " + b.c.Name
			}
		}
	}
	return ""
}

func portKey(p jobspecs.Port) string { return fmt.Sprintf("port %d/%s", p.Host, p.Protocol) }

// Stop implements pods.Host. As at Docker, what was begun goes on when the caller
// no longer waits.
func (h host) Stop(ctx context.Context, id, _ string, grace time.Duration) error {
	var ended chan struct{}
	err := h.call(ctx, "stop", h.name(id), func() error {
		b, err := h.box(id)
		if err != nil || !b.c.Running() {
			return nil
		}
		ended = b.ended
		h.signal(b, grace)
		return nil
	})
	if err != nil || ended == nil {
		return err
	}
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// signal tells b to end, and kills it after grace; w.mu is held.
func (w *World) signal(b *box, grace time.Duration) {
	p := &b.program
	switch {
	case !p.IgnoresTerm && p.TermTime == 0 && grace > 0:
		w.exit(b, p.TermCode, false)
		return
	case grace <= 0:
		w.exit(b, 137, false)
		return
	case !p.IgnoresTerm:
		w.later(b, p.TermTime, p.TermCode, false)
	}
	w.later(b, grace, 137, false)
}

// Remove implements pods.Host.
func (h host) Remove(ctx context.Context, id string) error {
	return h.call(ctx, "remove", h.name(id), func() error {
		b, err := h.box(id)
		if err != nil {
			return nil
		}
		if b.c.Running() {
			return fmt.Errorf("container %s is running", b.c.Name)
		}
		h.drop(b)
		return nil
	})
}

// drop forgets an ended box; w.mu is held.
func (w *World) drop(b *box) {
	delete(w.boxes, b.c.ID)
	delete(w.names, b.c.Name)
	w.changed(b)
}

// Rename implements pods.Host.
func (h host) Rename(ctx context.Context, id, name string) error {
	return h.call(ctx, "rename", h.name(id), func() error {
		b, err := h.box(id)
		if err != nil {
			return err
		}
		if o := h.names[name]; o != nil && o != b {
			return h.nameTaken(o)
		}
		h.rename(b, name)
		return nil
	})
}

func (w *World) rename(b *box, name string) {
	delete(w.names, b.c.Name)
	b.c.Name = name
	w.names[name] = b
	w.changed(b)
}

// Image implements pods.Host.
func (h host) Image(ctx context.Context, ref string) (found pods.Image, err error) {
	err = h.call(ctx, "image", ref, func() error {
		im := h.image(ref)
		if im == nil || !im.local {
			return fmt.Errorf("%s: %w", ref, pods.ErrNoImage)
		}
		found = pods.Image{ID: im.id, Healthcheck: im.program.Healthcheck, Platform: "linux/amd64"}
		return nil
	})
	return found, err
}

// Pull implements pods.Host.
func (h host) Pull(ctx context.Context, ref string, _ *jobspecs.RegistryAuth, progress func(string)) error {
	h.mu.Lock()
	var p Program
	if im := h.images[ref]; im != nil {
		p = im.program
	}
	h.mu.Unlock()
	if p.PullTime > 0 && progress != nil {
		progress("0 of 1 layers")
	}
	if err := sleep(ctx, p.PullTime); err != nil {
		return err
	}
	return h.call(ctx, "pull", ref, func() error {
		im := h.images[ref]
		switch {
		case im == nil:
			return problem(runtime.ReasonImageUnknown, "image %s is not known to the registry", ref)
		case im.program.PullError != nil:
			return im.program.PullError
		}
		im.local = true
		return nil
	})
}

// Check implements pods.Host.
func (h host) Check(ctx context.Context, t pods.Target, probe jobspecs.Probe) (said string, err error) {
	id := t.ID
	h.mu.Lock()
	var takes time.Duration
	if b, err := h.box(id); err == nil {
		takes = b.program.CheckTime
	}
	h.mu.Unlock()
	if err := sleep(ctx, takes); err != nil {
		return "", late(probe, err)
	}
	return "", late(probe, h.call(ctx, "check", h.name(id), func() error {
		b, err := h.box(id)
		switch {
		case err != nil:
			return err
		case b.c.State != "running":
			return fmt.Errorf("%s: container is %s", target(probe), b.c.State)
		}
		return b.program.answer(probe, time.Since(b.c.StartedAt), b.sick)
	}))
}

// late says what a time-out is to a person.
func late(probe jobspecs.Probe, err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s: no answer in time", target(probe))
	}
	return err
}

// SandboxImage implements pods.Host.
func (h host) SandboxImage(ctx context.Context) (pods.Image, error) {
	return pods.Image{}, errors.New("not written yet")
}

// Hook implements pods.Host.
func (h host) Hook(ctx context.Context, t pods.Target, hook pods.Hook) error {
	return errors.New("not written yet")
}

// RemoveScratch implements pods.Host.
func (h host) RemoveScratch(ctx context.Context, pod runtime.PodName) error { return nil }
