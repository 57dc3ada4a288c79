package sim

import (
	"net/netip"
	"slices"
	"time"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime/pods"
)

// act does something to the container of that name, if there is one.
func (w *World) act(name string, f func(*box)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if b := w.names[name]; b != nil {
		f(b)
	}
}

// Kill ends a running container as `docker kill` does.
func (w *World) Kill(name string) {
	w.act(name, func(b *box) {
		if b.c.Running() {
			w.exit(b, 137, false)
		}
	})
}

// Restart is `docker start` by hand. What cannot be started stays as it is. An
// init container that has ended well has done so, whoever starts it again.
func (w *World) Restart(name string) {
	w.act(name, func(b *box) {
		if b.c.Running() || w.startable(b) != nil {
			return
		}
		if !w.over(b) {
			w.began(b)
		}
		b.beside = len(w.twins(b)) > 0
		w.start(b)
	})
}

// Duplicate is `docker run` of a second container as name is, by a tool that copies
// its labels and volumes: it has an address of its own.
func (w *World) Duplicate(name, as string) {
	w.act(name, func(b *box) {
		if w.names[as] != nil {
			return
		}
		c := b.c
		c.ID, c.Name, c.Address, c.Address6, c.Published, c.CreatedAt = w.id("c"), as, netip.Addr{}, netip.Addr{}, nil, w.stamp()
		d := &box{c: c, spec: b.spec, image: b.image, volumes: b.volumes}
		d.beside = len(w.twins(d)) > 0
		w.boxes[c.ID], w.names[as] = d, d
		w.start(d)
	})
}

// Pause is `docker pause`.
func (w *World) Pause(name string) { w.state(name, "running", "paused") }

// Unpause is `docker unpause`.
func (w *World) Unpause(name string) { w.state(name, "paused", "running") }

func (w *World) state(name, from, to string) {
	w.act(name, func(b *box) {
		if b.c.State == from {
			b.c.State = to
			w.changed(b)
		}
	})
}

// Rename is `docker rename`; a name that is taken stays where it is.
func (w *World) Rename(name, to string) {
	w.act(name, func(b *box) {
		if w.names[to] == nil {
			w.rename(b, to)
		}
	})
}

// Sicken lets a running container fail every probe but those of its log, saying
// text, until Heal or its end.
func (w *World) Sicken(name, text string) { w.act(name, func(b *box) { b.sick = text }) }

// Heal ends Sicken.
func (w *World) Heal(name string) { w.Sicken(name, "") }

// Say changes what the exec probes of a running container print: another role, as
// after a failover.
func (w *World) Say(name, text string) { w.act(name, func(b *box) { b.says = text }) }

// Print adds a line to the output of a container.
func (w *World) Print(name, text string) { w.act(name, func(b *box) { b.print(text) }) }

// EmptyRun empties /run: what is remembered of hooks is lost, and what was made
// with sensitive files or a read-only root cannot be started again. What runs
// keeps its files.
func (w *World) EmptyRun() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, b := range w.boxes {
		b.c.PostStarted = false
		b.fileGone = b.fileGone || b.binds()
	}
}

// binds tells whether files of the host are mounted into b.
func (b *box) binds() bool {
	return slices.ContainsFunc(b.spec.Main.Files, func(f jobspecs.File) bool { return f.Sensitive || b.spec.Main.ReadOnlyRoot })
}

// NoMemoryFolder takes away, or gives back, the folder in memory where sensitive
// files are kept.
func (w *World) NoMemoryFolder(missing bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.noMemory = missing
}

// RemoveContainer is `docker rm -f`.
func (w *World) RemoveContainer(name string) {
	w.act(name, func(b *box) {
		if b.c.Running() {
			w.exit(b, 137, false)
		}
		w.drop(b)
	})
}

// RemoveVolume takes a volume away, whoever uses it.
func (w *World) RemoveVolume(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.volumes, name)
}

// ForeignContainer runs a container that is not ours, with an address or none.
func (w *World) ForeignContainer(name string, address netip.Addr, labels map[string]string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	b := &box{image: &image{runs: map[string]int{}}, c: pods.Container{ID: w.id("f"), Name: name, Labels: labels, Image: "foreign", Address: address, CreatedAt: w.stamp()}}
	w.boxes[b.c.ID], w.names[name] = b, b
	w.start(b)
}

// ForeignVolume makes a volume that is not ours.
func (w *World) ForeignVolume(name string, labels map[string]string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.makeDisk(name, labels)
}

// ForeignNetwork makes a network that is not ours.
func (w *World) ForeignNetwork(name, owner string) { w.hold("network "+name, owner) }

// ForeignPort lets a process of the host hold a port; owner "" ends it.
func (w *World) ForeignPort(p jobspecs.Port, owner string) { w.hold(portKey(p), owner) }

func (w *World) hold(what, owner string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if owner == "" {
		delete(w.foreign, what)
		return
	}
	w.foreign[what] = owner
}

// RestartEngine ends every container and is out of reach for that long, as a
// Docker daemon without live restore, or a host that boots.
func (w *World) RestartEngine(down time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hangUpAll(down)
	for _, b := range w.boxes {
		if b.c.Running() {
			w.exit(b, 137, false)
		}
	}
}

// Disconnect is out of reach for that long while the containers run on.
func (w *World) Disconnect(down time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hangUpAll(down)
}

// hangUpAll ends every subscription; w.mu is held.
func (w *World) hangUpAll(down time.Duration) {
	for o := range w.watchers {
		w.hangUp(o)
	}
	if down <= 0 {
		return
	}
	until := time.Now().Add(down)
	w.down, w.downUntil = true, until
	time.AfterFunc(down, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.downUntil.Equal(until) {
			w.down = false
		}
	})
}
