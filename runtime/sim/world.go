package sim

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/runtime/pods"
)

// Config makes a World. The zero one works.
type Config struct {
	// Daemon is the id whose containers and volumes Host and Volumes list.
	// Default: "sim".
	Daemon string
	// Pool is where the networks of namespaces are cut from, in /22. Default:
	// 10.87.0.0/16.
	Pool netip.Prefix
	// Clock is the host's, for what an engine says of times. nil: time.Now. How long
	// something takes is not measured by it.
	Clock runtime.Clock
}

// World is one container host.
type World struct {
	daemon string
	pool   netip.Prefix
	clock  runtime.Clock

	mu         sync.Mutex
	boxes      map[string]*box // by id
	names      map[string]*box // by name
	volumes    map[string]*Disk
	images     map[string]*image // by name
	ids        map[string]*image // by id
	networks   map[string]netip.Prefix
	foreign    map[string]string // network or port → owner
	missing    map[string]bool   // networks of others that are not there
	joined     []string          // those that were joined, in their order
	watchers   map[*watcher]bool
	faults     []*Fault
	latency    map[string]time.Duration
	downUntil  time.Time
	down       bool
	serial     int
	calls      []Call
	reads      int
	violations []string
	hooks      []*HookCall
	execs      []ExecCall
	steps      map[step]bool // containers that were started in the lives of our pods; true: they ended with 0
	noMemory   bool
}

// box is one container.
type box struct {
	c        pods.Container
	spec     pods.ContainerSpec
	image    *image
	run      int           // counts its starts
	joined   int           // the run of its sandbox that it joined
	ended    chan struct{} // of this run
	began    time.Time     // when it did, whatever the host's clock was set to
	sick     string
	says     string
	ports    []jobspecs.Port
	volumes  []string
	lines    []line
	grown    chan struct{} // closed by the next line
	beside   bool          // somebody's hand began this run beside another of its part: no promise of ours
	fileGone bool          // a file of the host that is mounted into it
}

// line is one of a container's output.
type line struct {
	at   time.Time
	text string
}

// Disk is a volume and what has happened to it.
type Disk struct {
	Name    string
	Driver  string // empty: "local"
	Options map[string]string
	Labels  map[string]string
	Used    int64    // bytes; see Fill
	Serial  int      // another one of the same name has another
	Writers []string // the containers that ran with it, in order; a repeated one once

	// Prepared are the containers that it was fresh for: it was given to the group
	// and user of each.
	Prepared []string
}

// New is a host without containers.
func New(c Config) *World {
	if c.Daemon == "" {
		c.Daemon = "sim"
	}
	if !c.Pool.IsValid() {
		c.Pool = netip.MustParsePrefix("10.87.0.0/16")
	}
	return &World{
		daemon: c.Daemon, pool: c.Pool, clock: c.Clock,
		boxes: map[string]*box{}, names: map[string]*box{}, volumes: map[string]*Disk{},
		images: map[string]*image{}, ids: map[string]*image{}, networks: map[string]netip.Prefix{},
		foreign: map[string]string{}, missing: map[string]bool{}, watchers: map[*watcher]bool{}, latency: map[string]time.Duration{}, steps: map[step]bool{},
	}
}

// Daemon is the id whose objects are ours.
func (w *World) Daemon() string { return w.daemon }

// stamp is a time as an engine says it: by its wall clock alone.
func (w *World) stamp() time.Time { return w.clock.Now().Round(0) }

func (w *World) id(kind string) string {
	w.serial++
	return fmt.Sprintf("%s%06d", kind, w.serial)
}

// start runs a box; w.mu is held.
func (w *World) start(b *box) {
	p := &b.image.program
	b.run++
	b.began = time.Now()
	b.ended = make(chan struct{})
	b.sick, b.says = "", p.Says
	b.c.State, b.c.StartedAt, b.c.FinishedAt, b.c.ExitCode, b.c.OOMKilled = "running", w.stamp(), time.Time{}, 0, false
	b.c.PostStarted, b.c.Error = false, ""
	if sandbox := w.boxes[b.spec.Sandbox]; sandbox != nil {
		b.joined = sandbox.run
	}
	w.join(b)
	b.say("started")
	for _, v := range b.volumes {
		d := w.volumes[v]
		if d != nil && !slices.Contains(d.Writers, b.c.Name) {
			d.Writers = append(d.Writers, b.c.Name)
		}
	}
	w.live(b)
	w.tell(pods.Event{ID: b.c.ID, Started: true})
	w.check()
}

// live plans what the program does by itself.
func (w *World) live(b *box) {
	p := &b.image.program
	b.image.runs[b.c.Name]++
	if p.ExitAfter > 0 {
		w.later(b, p.ExitAfter, p.exitCode(b.image.runs[b.c.Name]), p.OOM)
	}
	if p.LogLine == "" {
		return
	}
	if p.LogAfter <= 0 {
		b.print(p.LogLine)
		return
	}
	w.during(b, p.LogAfter, func() { b.print(p.LogLine) })
}

// during does something after d if this run of b lasts as long.
func (w *World) during(b *box, d time.Duration, f func()) {
	run := b.run
	time.AfterFunc(d, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if b.run == run && b.c.Running() {
			f()
		}
	})
}

// later ends this run of b after d.
func (w *World) later(b *box, d time.Duration, code int, oom bool) {
	w.during(b, d, func() { w.exit(b, code, oom) })
}

// exit ends a running box; w.mu is held.
func (w *World) exit(b *box, code int, oom bool) {
	b.c.State, b.c.ExitCode, b.c.OOMKilled, b.c.FinishedAt = "exited", code, oom, w.stamp()
	b.c.PostStarted, b.c.Joined = false, nil
	b.say(fmt.Sprintf("ended with %d", code))
	close(b.ended)
	w.ended(b)
	w.freed(b)
	if b.spec.Main.Kind != jobspecs.KindSandbox || !b.spec.Pod.ShareProcesses {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(w.boxes)) { // they lose their process 1
		if o := w.boxes[id]; o.spec.Sandbox == b.c.ID && o.c.Running() {
			w.exit(o, 137, false)
		}
	}
}

func (b *box) say(text string) { b.print(b.c.Name + " " + text) }

// print adds a line to the output.
func (b *box) print(text string) {
	b.lines = append(b.lines, line{time.Now(), text})
	if b.grown != nil {
		close(b.grown)
		b.grown = nil
	}
}

// changed tells the watchers, and checks what must never be.
func (w *World) changed(b *box) {
	w.tell(pods.Event{ID: b.c.ID})
	w.check()
}

// freed is changed of b that gave up a name, an address or ports: where it is not
// ours, one of ours may wait for them.
func (w *World) freed(b *box) {
	w.changed(b)
	if b.c.Labels[jobspecs.LabelDaemon] != w.daemon {
		w.tell(pods.Event{Freed: true})
	}
}

// tell passes an event to the watchers; w.mu is held.
func (w *World) tell(e pods.Event) {
	for o := range w.watchers {
		o.tell(e)
	}
}

// Containers shows every container, ours or not, by name.
func (w *World) Containers() []pods.Container {
	w.mu.Lock()
	defer w.mu.Unlock()
	var list []pods.Container
	for _, name := range slices.Sorted(maps.Keys(w.names)) {
		list = append(list, w.names[name].c)
	}
	return list
}

// Container is the one of that name; ok is false when there is none.
func (w *World) Container(name string) (c pods.Container, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	b := w.names[name]
	if b == nil {
		return c, false
	}
	return b.c, true
}

// Ran is how long the current run of a container has lasted, or the last one since it
// began, whatever the host's clock was set to; zero where there is no such container.
func (w *World) Ran(id string) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if b := w.boxes[id]; b != nil && !b.began.IsZero() {
		return time.Since(b.began)
	}
	return 0
}

// String is one line for each container: "web-0 running".
func (w *World) String() string {
	var lines []string
	for _, c := range w.Containers() {
		lines = append(lines, c.Name+" "+c.State)
	}
	return strings.Join(lines, ", ")
}

// Disks shows every volume, ours or not, by name, but those of Scratches.
func (w *World) Disks() []Disk { return w.disks(false) }

// Scratches shows the volumes of our pods' scratch folders, by name.
func (w *World) Scratches() []Disk { return w.disks(true) }

func (w *World) disks(scratch bool) (list []Disk) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(w.volumes)) {
		if d := w.volumes[name]; (d.Labels[jobspecs.LabelScratch] != "") == scratch {
			list = append(list, d.clone())
		}
	}
	return list
}

func (d Disk) clone() Disk {
	d.Writers, d.Prepared = slices.Clone(d.Writers), slices.Clone(d.Prepared)
	return d
}

// Disk is the volume of that name; ok is false when there is none.
func (w *World) Disk(name string) (Disk, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	d, ok := w.volumes[name]
	if !ok {
		return Disk{}, false
	}
	return d.clone(), true
}

var errDown = errors.New("cannot connect to the engine: connection refused")
