package sim

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
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
	if err := w.allowed(&spec, &im.program); err != nil {
		return "", err
	}
	mounted, err := w.mounts(&spec)
	if err != nil {
		return "", err
	}
	w.networks[spec.Pod.Set.Namespace] = w.subnet(spec.Pod.Set.Namespace, spec.Pod.Subnet)
	b := &box{spec: spec, image: im, volumes: mounted, ports: ports(&spec)}
	b.c = pods.Container{
		ID: w.id("c"), Name: spec.Name, Labels: maps.Clone(spec.Labels), State: "created",
		Image: spec.Main.Image, ImageID: im.id, CreatedAt: w.stamp(),
	}
	for _, p := range b.ports {
		if p.Host != 0 {
			b.c.Published = append(b.c.Published, jobspecs.Port{Container: p.Container, Protocol: p.Protocol, Host: p.Host, HostIP: p.HostIP})
		}
	}
	if spec.Sandbox == "" {
		b.c.Address = spec.Pod.Address
	}
	w.boxes[b.c.ID], w.names[spec.Name] = b, b
	w.changed(b)
	return b.c.ID, nil
}

// allowed is what Docker and its host refuse before anything is made.
func (w *World) allowed(spec *pods.ContainerSpec, p *Program) error {
	if owner, taken := w.foreign["network "+spec.Pod.Network]; taken {
		return problem(runtime.ReasonNetworkTaken, "network %s is not ours (%s)", spec.Pod.Network, owner)
	}
	if err := w.mayJoin(spec); err != nil {
		return err
	}
	if spec.Sandbox != "" && w.boxes[spec.Sandbox] == nil {
		return sandboxGone("no such container: %s", spec.Sandbox)
	}
	if spec.Main.RunAsNonRoot && isRoot(cmp.Or(spec.Main.User, p.User)) {
		return problem(runtime.ReasonRunsAsRoot, "container %s would run as root, and run_as_non_root is set", spec.Main.Name)
	}
	if w.noMemory && slices.ContainsFunc(spec.Main.Files, func(f jobspecs.File) bool { return f.Sensitive }) {
		return problem(runtime.ReasonNoMemoryFolder, "there is no folder in memory for the sensitive files of %s", spec.Name)
	}
	return nil
}

func isRoot(user string) bool {
	user, _, _ = strings.Cut(user, ":")
	return user == "" || user == "root" || user == "0"
}

// ports are those that a container holds on the host: a sandbox holds those of
// the whole pod, and what joined one holds none.
func ports(spec *pods.ContainerSpec) (held []jobspecs.Port) {
	switch {
	case spec.Sandbox != "":
		return nil
	case spec.Main.Kind != jobspecs.KindSandbox:
		return spec.Main.Ports
	}
	for _, c := range spec.Pod.Containers {
		held = append(held, c.Ports...)
	}
	return held
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

// Start implements pods.Host.
func (h host) Start(ctx context.Context, id string) error {
	h.mu.Lock()
	var delay time.Duration
	if b, err := h.box(id); err == nil {
		delay = b.image.program.StartDelay
	}
	h.mu.Unlock()
	if err := sleep(ctx, delay); err != nil {
		return err
	}
	return h.call(ctx, "start", h.name(id), func() error {
		b, err := h.box(id)
		if err != nil || b.c.Running() {
			return err
		}
		if err := h.startable(b); err != nil {
			b.c.Error = err.Error()
			return err
		}
		h.began(b)
		b.beside = false
		for _, o := range h.twins(b) { // now it is we who run two
			o.beside = false
		}
		h.start(b)
		return nil
	})
}

// startable tells why b cannot be started; w.mu is held.
func (w *World) startable(b *box) error {
	p := &b.image.program
	switch {
	case p.StartError != nil:
		return p.StartError
	case p.platform() != platform:
		return problem(runtime.ReasonWrongPlatform, "image %s is for %s, this engine is %s", b.c.Image, p.platform(), platform)
	case b.fileGone:
		return problem(runtime.ReasonCreateFailed, "start %s: a file that is mounted into it is gone", b.c.Name)
	}
	if err := w.joinable(b); err != nil {
		return err
	}
	if err := w.mayJoin(&b.spec); err != nil {
		return err
	}
	return w.free(b)
}

// joinable tells whether the sandbox that b was made for still runs.
func (w *World) joinable(b *box) error {
	if b.spec.Sandbox == "" {
		return nil
	}
	sandbox := w.boxes[b.spec.Sandbox]
	switch {
	case sandbox == nil:
		return sandboxGone("no such container: %s", b.spec.Sandbox)
	case !sandbox.c.Running():
		return sandboxGone("cannot join network of a non running container: %s", b.spec.Sandbox)
	}
	return nil
}

// sandboxGone is the engine's text and what it means.
func sandboxGone(text, id string) error {
	return &pods.Problem{Reason: runtime.ReasonSandbox, Message: "the sandbox to join has ended", Err: fmt.Errorf(text, id)}
}

// free tells whether nobody holds what b wants; w.mu is held.
func (w *World) free(b *box) error {
	self := func(o *box) bool { return o == b }
	for _, p := range b.ports {
		if owner := w.portOwner(self, p); owner != "" && p.Host != 0 {
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

// portOwner is who holds a port of the host, self aside; w.mu is held.
func (w *World) portOwner(self func(*box) bool, p jobspecs.Port) string {
	if owner := w.foreign[portKey(p)]; owner != "" {
		return owner
	}
	for _, id := range slices.Sorted(maps.Keys(w.boxes)) {
		b := w.boxes[id]
		if self(b) || !b.c.Running() {
			continue
		}
		for _, q := range b.ports {
			if q.Host != 0 && portKey(q) == portKey(p) && meet(q.HostIP, p.HostIP) {
				return "container " + b.c.Name
			}
		}
	}
	return ""
}

// meet tells whether listeners at two addresses are in each other's way.
func meet(a, b string) bool {
	x, err1 := netip.ParseAddr(a)
	y, err2 := netip.ParseAddr(b)
	return err1 != nil || err2 != nil || x == y || x.IsUnspecified() || y.IsUnspecified()
}

func portKey(p jobspecs.Port) string { return fmt.Sprintf("port %d/%s", p.Host, p.Protocol) }

// Stop implements pods.Host. As at Docker, what was begun goes on when the caller
// no longer waits.
func (h host) Stop(ctx context.Context, id, signal string, grace time.Duration) error {
	var ended chan struct{}
	err := h.logged(ctx, Call{Verb: "stop", Name: h.name(id), Signal: signal, Grace: grace}, func() error {
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
	p := &b.image.program
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
	w.freed(b)
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
	w.freed(b)
}
