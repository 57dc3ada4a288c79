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
}

// World is one container host.
type World struct {
	daemon string
	pool   netip.Prefix

	mu         sync.Mutex
	boxes      map[string]*box // by id
	names      map[string]*box // by name
	volumes    map[string]*Disk
	images     map[string]*image // by name
	ids        map[string]*image // by id
	networks   map[string]netip.Prefix
	foreign    map[string]string // network or port → owner
	watchers   map[*watcher]bool
	faults     []*Fault
	latency    map[string]time.Duration
	downUntil  time.Time
	down       bool
	serial     int
	calls      []Call
	reads      int
	violations []string
}

// box is one container.
type box struct {
	c       pods.Container
	spec    pods.ContainerSpec
	program Program
	run     int           // counts its starts
	ended   chan struct{} // of this run
	sick    string
	ports   []jobspecs.Port
	volumes []string
	lines   []string
}

// Disk is a volume and what has happened to it.
type Disk struct {
	Name    string
	Labels  map[string]string
	Serial  int      // another one of the same name has another
	Writers []string // the containers that ran with it, in order; a repeated one once
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
		daemon: c.Daemon, pool: c.Pool,
		boxes: map[string]*box{}, names: map[string]*box{}, volumes: map[string]*Disk{},
		images: map[string]*image{}, ids: map[string]*image{}, networks: map[string]netip.Prefix{},
		foreign: map[string]string{}, watchers: map[*watcher]bool{}, latency: map[string]time.Duration{},
	}
}

// Daemon is the id whose objects are ours.
func (w *World) Daemon() string { return w.daemon }

func (w *World) id(kind string) string {
	w.serial++
	return fmt.Sprintf("%s%06d", kind, w.serial)
}

// start runs a box; w.mu is held.
func (w *World) start(b *box) {
	now := time.Now()
	b.run++
	b.ended = make(chan struct{})
	b.sick = ""
	b.c.State, b.c.StartedAt, b.c.FinishedAt, b.c.ExitCode, b.c.OOMKilled = "running", now, time.Time{}, 0, false
	b.say("started")
	for _, v := range b.volumes {
		d := w.volumes[v]
		if d != nil && !slices.Contains(d.Writers, b.c.Name) {
			d.Writers = append(d.Writers, b.c.Name)
		}
	}
	if b.program.ExitAfter > 0 {
		w.later(b, b.program.ExitAfter, b.program.ExitCode, b.program.OOM)
	}
	w.changed(b)
}

// later ends this run of b after d.
func (w *World) later(b *box, d time.Duration, code int, oom bool) {
	run := b.run
	time.AfterFunc(d, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if b.run == run && b.c.Running() {
			w.exit(b, code, oom)
		}
	})
}

// exit ends a running box; w.mu is held.
func (w *World) exit(b *box, code int, oom bool) {
	b.c.State, b.c.ExitCode, b.c.OOMKilled, b.c.FinishedAt = "exited", code, oom, time.Now()
	b.say(fmt.Sprintf("ended with %d", code))
	close(b.ended)
	w.changed(b)
}

func (b *box) say(line string) { b.lines = append(b.lines, b.c.Name+" "+line) }

// changed tells the watchers, and checks what must never be.
func (w *World) changed(b *box) {
	for o := range w.watchers {
		o.tell(pods.Event{ID: b.c.ID})
	}
	w.check()
}

// check notes what the design promises never happens.
func (w *World) check() {
	holder := map[string]string{}
	for _, id := range slices.Sorted(maps.Keys(w.boxes)) {
		b := w.boxes[id]
		if !b.c.Running() {
			continue
		}
		for _, what := range b.holds() {
			other, taken := holder[what]
			if taken {
				w.violation("%s and %s both run on %s", other, b.c.Name, what)
			}
			holder[what] = b.c.Name
		}
	}
}

// holds are the things that only one running container may have.
func (b *box) holds() []string {
	var held []string
	if set := b.c.Labels[jobspecs.LabelSet]; set != "" {
		held = append(held, "pod "+b.c.Labels[jobspecs.LabelNamespace]+"/"+set+"-"+b.c.Labels[jobspecs.LabelOrdinal])
	}
	for _, v := range b.volumes {
		held = append(held, "volume "+v)
	}
	if b.c.Address.IsValid() {
		held = append(held, "address "+b.c.Address.String())
	}
	return held
}

func (w *World) violation(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !slices.Contains(w.violations, text) {
		w.violations = append(w.violations, text)
	}
}

// Violations are the promises that were broken so far, each once.
func (w *World) Violations() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.violations)
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

// String is one line for each container: "web-0 running".
func (w *World) String() string {
	var lines []string
	for _, c := range w.Containers() {
		lines = append(lines, c.Name+" "+c.State)
	}
	return strings.Join(lines, ", ")
}

// Disks shows every volume, ours or not, by name.
func (w *World) Disks() []Disk {
	w.mu.Lock()
	defer w.mu.Unlock()
	var list []Disk
	for _, name := range slices.Sorted(maps.Keys(w.volumes)) {
		d := *w.volumes[name]
		d.Writers = slices.Clone(d.Writers)
		list = append(list, d)
	}
	return list
}

// Disk is the volume of that name; ok is false when there is none.
func (w *World) Disk(name string) (Disk, bool) {
	for _, d := range w.Disks() {
		if d.Name == name {
			return d, true
		}
	}
	return Disk{}, false
}

var errDown = errors.New("cannot connect to the engine: connection refused")
