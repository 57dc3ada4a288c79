package sim

import (
	"net/netip"
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

// Restart is `docker start` by hand.
func (w *World) Restart(name string) {
	w.act(name, func(b *box) {
		if !b.c.Running() {
			w.start(b)
		}
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

// Rename is `docker rename`.
func (w *World) Rename(name, to string) { w.act(name, func(b *box) { w.rename(b, to) }) }

// Sicken lets a running container fail every probe, saying text, until Heal or
// its end.
func (w *World) Sicken(name, text string) { w.act(name, func(b *box) { b.sick = text }) }

// Heal ends Sicken.
func (w *World) Heal(name string) { w.Sicken(name, "") }

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
	b := &box{c: pods.Container{ID: w.id("f"), Name: name, Labels: labels, Image: "foreign", Address: address, CreatedAt: time.Now()}}
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
