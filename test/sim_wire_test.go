package test

import (
	"context"
	"time"

	"github.com/stsd/stsd/daemon"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/runtime/pods"
	"github.com/stsd/stsd/runtime/sim"
	"github.com/stsd/stsd/volumes"
)

// The wires between the daemon and the host. They hand everything through, tell
// the witness, and are cut when the daemon is killed.

// loopMark marks the context of the daemon's loops, so that their calls are told
// from those of the API.
type loopMark struct{}

func ofLoop(ctx context.Context) bool { return ctx.Value(loopMark{}) != nil }

// engine is daemon.Config.Engine.
func (l *life) engine(id string, h daemon.Hooks) (daemon.Parts, error) {
	l.hooks = h
	r := l.rig
	if r.world == nil {
		r.world = sim.New(sim.Config{Daemon: id, Clock: r.clock.now})
		for ref, p := range images {
			r.world.Program(ref, p)
		}
	}
	agent := pods.New(pods.Config{Host: wire{r.world.Host(), l}, Daemon: id, Probes: 2, Clock: r.clock.now})
	return daemon.Parts{
		Engine: desk{sim.Engine{Engine: agent, World: r.world}, l}, Volumes: shelf{r.world.Volumes(), l}, Run: agent.Run,
		Name: func(context.Context) (string, error) { return "sim", nil },
	}, nil
}

// desk is between a loop and the engine: what the loop saw, and what it asked for,
// though it may be killed before all of it is heard.
type desk struct {
	sim.Engine
	life *life
}

func (d desk) List(ctx context.Context, set jobspecs.Key) (list []runtime.Pod, err error) {
	err = d.life.read(func() error {
		list, err = d.Engine.List(ctx, set)
		return err
	})
	if ofLoop(ctx) {
		d.life.rig.witness.turn(d.life, set, list, err)
	}
	return list, err
}

func (d desk) Watch(ctx context.Context) (<-chan jobspecs.Key, error) {
	time.Sleep(d.life.rig.late)
	return d.Engine.Watch(ctx)
}

func (d desk) Create(ctx context.Context, spec jobspecs.PodSpec) error {
	d.life.rig.witness.asked(spec.Set, deed{verb: "create", ordinal: spec.Ordinal, revision: spec.Revision})
	return d.life.read(func() error { return d.Engine.Create(ctx, spec) })
}

func (d desk) Stop(ctx context.Context, name runtime.PodName, o runtime.StopOptions) error {
	set, ordinal, _ := jobspecs.ParseMember(name.Name)
	d.life.rig.witness.asked(keyOf(set), deed{verb: "stop", ordinal: ordinal})
	return d.life.read(func() error { return d.Engine.Stop(ctx, name, o) })
}

func (d desk) Remove(ctx context.Context, name runtime.PodName, keep bool) error {
	set, ordinal, _ := jobspecs.ParseMember(name.Name)
	d.life.rig.witness.asked(keyOf(set), deed{verb: "remove", ordinal: ordinal, forget: !keep})
	return d.life.read(func() error { return d.Engine.Remove(ctx, name, keep) })
}

func (d desk) Exec(ctx context.Context, name runtime.PodName, o runtime.ExecOptions) (code int, err error) {
	if ofLoop(ctx) {
		d.life.rig.witness.hooked()
	}
	err = d.life.write(func() error {
		code, err = d.Engine.Exec(ctx, name, o)
		return err
	})
	return code, err
}

// shelf is between a loop and the volumes.
type shelf struct {
	volumes.Store
	life *life
}

func (s shelf) List(ctx context.Context, set jobspecs.Key) (list []volumes.Volume, err error) {
	err = s.life.read(func() error {
		list, err = s.Store.List(ctx, set)
		return err
	})
	if ofLoop(ctx) && err == nil {
		s.life.rig.witness.sawVolumes(set, list)
	}
	return list, err
}

func (s shelf) Create(ctx context.Context, set jobspecs.Key, ordinal int, v jobspecs.VolumeSpec) error {
	return s.life.write(func() error {
		s.life.rig.witness.asked(set, deed{verb: "create volume", ordinal: ordinal, volume: v.Name, claim: v.Claim})
		return s.Store.Create(ctx, set, ordinal, v)
	})
}

func (s shelf) Delete(ctx context.Context, name string) error {
	return s.life.write(func() error {
		s.life.rig.witness.deletes(name)
		return s.Store.Delete(ctx, name)
	})
}

// wire is between the pod agent and the host.
type wire struct {
	pods.Host
	life *life
}

func (w wire) Watch(ctx context.Context) (events <-chan pods.Event, err error) {
	err = w.life.read(func() error {
		events, err = w.Host.Watch(ctx)
		return err
	})
	return events, err
}

func (w wire) List(ctx context.Context) (list []pods.Container, err error) {
	err = w.life.read(func() error {
		list, err = w.Host.List(ctx)
		return err
	})
	return list, err
}

func (w wire) Inspect(ctx context.Context, id string) (c pods.Container, err error) {
	err = w.life.read(func() error {
		c, err = w.Host.Inspect(ctx, id)
		return err
	})
	return c, err
}

// Create refuses a volume that is gone, as the host of Docker does.
func (w wire) Create(ctx context.Context, spec pods.ContainerSpec) (id string, err error) {
	w.life.rig.witness.made(&spec)
	for _, m := range spec.Main.Mounts {
		if m.Kind != jobspecs.MountVolume && m.Kind != "" {
			continue
		}
		if _, ok := w.life.rig.world.Disk(m.Volume); !ok {
			return "", &pods.Problem{Reason: runtime.ReasonCreateFailed, Message: "volume " + m.Volume + " is gone"}
		}
	}
	err = w.life.write(func() error {
		id, err = w.Host.Create(ctx, spec)
		return err
	})
	return id, err
}

func (w wire) Start(ctx context.Context, id string) error {
	return w.life.write(func() error { return w.Host.Start(ctx, id) })
}

func (w wire) Stop(ctx context.Context, id, signal string, grace time.Duration) error {
	return w.life.write(func() error {
		w.life.rig.witness.touches("stop", id)
		return w.Host.Stop(ctx, id, signal, grace)
	})
}

func (w wire) Remove(ctx context.Context, id string) error {
	return w.life.write(func() error {
		w.life.rig.witness.touches("remove", id)
		w.life.rig.witness.unmade(id)
		return w.Host.Remove(ctx, id)
	})
}

func (w wire) Rename(ctx context.Context, id, name string) error {
	return w.life.write(func() error {
		w.life.rig.witness.touches("rename", id)
		return w.Host.Rename(ctx, id, name)
	})
}

func (w wire) Image(ctx context.Context, ref string) (i pods.Image, err error) {
	err = w.life.read(func() error {
		i, err = w.Host.Image(ctx, ref)
		return err
	})
	return i, err
}

func (w wire) Pull(ctx context.Context, ref string, auth *jobspecs.RegistryAuth, progress func(string)) error {
	return w.life.write(func() error { return w.Host.Pull(ctx, ref, auth, progress) })
}

func (w wire) Check(ctx context.Context, t pods.Target, p jobspecs.Probe) (said string, err error) {
	err = w.life.read(func() error {
		said, err = w.Host.Check(ctx, t, p)
		return err
	})
	return said, err
}

func (w wire) Hook(ctx context.Context, t pods.Target, h pods.Hook) error {
	return w.life.write(func() error { return w.Host.Hook(ctx, t, h) })
}

func (w wire) SandboxImage(ctx context.Context) (i pods.Image, err error) {
	err = w.life.write(func() error {
		i, err = w.Host.SandboxImage(ctx)
		return err
	})
	return i, err
}

func (w wire) RemoveScratch(ctx context.Context, pod runtime.PodName) error {
	return w.life.write(func() error {
		w.life.rig.witness.ended(pod)
		return w.Host.RemoveScratch(ctx, pod)
	})
}
