package test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing/synctest"
	"time"

	"github.com/stsd/stsd/daemon"
	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/daemon/store"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime/sim"
)

// rig is a simulated host with a real daemon on it: its own loops and planner,
// bbolt on disk, the pod agent. The daemon may be killed and started again; the
// host, its clock and the witness that watches the promises go on.
type rig struct {
	dir     string
	world   *sim.World
	witness *witness
	began   time.Time
	clock   hostClock

	life  *life // of the daemon; nil before the first
	lives int
	down  time.Duration // how long it stays dead after a crash

	late time.Duration // how long the daemon takes to subscribe to the engine

	slow     time.Time // calls take long until then
	restless time.Time // faults, latency or an engine out of reach until then
	log      []string  // the story so far, with what came of each step
}

// forever is longer than any story.
const forever = 1000 * time.Hour

// newRig is a host with the images of images, and a daemon that runs.
func newRig(dir string) *rig {
	r := &rig{dir: dir}
	r.began = r.clock.now()
	r.witness = newWitness(r)
	r.start()
	return r
}

// images are what the programs of stories do.
var images = map[string]sim.Program{
	"app:1":      {Exec: answer},
	"app:2":      {ReadyAfter: time.Second, Exec: answer},
	"app:3":      {ReadyAfter: 3 * time.Second, TermTime: 2 * time.Second, Exec: answer, ExecTime: 7 * time.Second},
	"app:9":      {Exec: answer},
	"slow:1":     {ReadyAfter: 20 * time.Second, Exec: answer},
	"remote:1":   {Remote: true, PullTime: 4 * time.Second},
	"stubborn:1": {IgnoresTerm: true},
	"never:1":    {NeverReady: true},
	"crash:1":    {ExitAfter: 3 * time.Second, ExitCode: 1},
	"unstart:1":  {StartError: errors.New("exec: no such file or directory")},
}

// answer is what hooks do: as they are told.
func answer(_ string, argv []string) (string, int) {
	if argv[0] == "no" {
		return "not now\n", 1
	}
	return "", 0
}

// start runs the daemon, on the store and the host that are there.
func (r *rig) start() {
	l := &life{rig: r, began: r.clock.now(), done: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.WithValue(context.Background(), loopMark{}, true))
	l.cancel = cancel
	cfg := daemon.Config{DataDir: r.dir, DNSOff: true, Clock: r.clock.now, Engine: l.engine, Store: store.Options{NoSync: true, Around: l.commit}}
	d, err := daemon.New(cfg)
	for tries := 0; errors.Is(err, store.ErrInUse) && tries < 500; tries++ {
		// A child that another test has just forked has the file open, and locked, until it
		// runs its program. That takes no time of the bubble.
		_ = syscall.Nanosleep(&syscall.Timespec{Nsec: int64(10 * time.Millisecond)}, nil)
		d, err = daemon.New(cfg)
	}
	if err != nil {
		panic(err) // the folder is ours
	}
	l.daemon = d
	r.life = l
	r.witness.settle(d)
	r.lives++
	go func() {
		defer close(l.done)
		if err := d.Run(ctx); err != nil && !l.dead() {
			r.witness.complain("the daemon ended: %v", err)
		}
	}()
	synctest.Wait()
}

// stop ends the daemon in order.
func (r *rig) stop() {
	r.life.cancel()
	<-r.life.done
}

// kill is kill -9: from this moment no call of the daemon reaches the host.
func (r *rig) kill() {
	r.life.die()
	<-r.life.done
}

func (r *rig) up() bool { return !r.life.dead() }

// revive starts a killed daemon again.
func (r *rig) revive() {
	if !r.up() {
		<-r.life.done
		r.start()
	}
}

// pass lets time pass, in ticks short enough that every state is looked at, and
// lets a dead daemon rise.
func (r *rig) pass(d time.Duration) {
	r.until(d, func() bool { return false })
}

// until lets time pass, at most d, until done; it tells whether it is.
func (r *rig) until(d time.Duration, done func() bool) bool {
	r.settle()
	for end := r.clock.now().Add(d); r.clock.now().Before(end); {
		if done() {
			return true
		}
		time.Sleep(min(500*time.Millisecond, end.Sub(r.clock.now())))
		r.settle()
	}
	return done()
}

// settle waits until nothing happens any more at this moment, and looks.
func (r *rig) settle() {
	synctest.Wait()
	if died := r.life.died(); !died.IsZero() && r.clock.now().Sub(died) >= r.down && !r.witness.restless() {
		r.revive()
		synctest.Wait()
	}
	r.witness.look()
}

// note adds a line to the story.
func (r *rig) note(format string, args ...any) {
	r.log = append(r.log, fmt.Sprintf("%9.3fs  ", r.clock.now().Sub(r.began).Seconds())+fmt.Sprintf(format, args...))
}

// unrest says that the daemon need not keep up for a while.
func (r *rig) unrest(d time.Duration) {
	if until := r.clock.now().Add(d + 15*time.Second); until.After(r.restless) {
		r.restless = until
	}
}

// calm tells whether nothing has disturbed the daemon lately.
func (r *rig) calm() bool {
	return r.up() && r.clock.now().After(r.restless) && r.clock.now().Sub(r.life.began) > 15*time.Second
}

// The verbs of a user. What is refused is told, not a failure; an error that is
// no Problem is one.

func (r *rig) apply(specs ...setSpec) error {
	defer r.witness.hold()()
	var sources []jobspecs.Source
	for _, s := range specs {
		sources = append(sources, jobspecs.Source{Name: s.name() + ".hcl", Text: []byte(s.hcl())})
	}
	req := client.ApplyRequest{Write: client.Write{Yes: true}}
	for _, s := range sources {
		req.Scopes = append(req.Scopes, client.Scope{Sources: []jobspecs.Source{s}})
	}
	resp, err := r.life.daemon.Apply(context.Background(), req)
	if err != nil {
		for _, s := range specs {
			r.doubt(s.name(), func(revision string) { r.witness.applied(s, client.Result{Revision: revision}) })
		}
		return r.refused(err)
	}
	for i, result := range resp.Results {
		r.witness.applied(specs[i], result)
	}
	return nil
}

func (r *rig) scale(set string, n int, force bool) error {
	defer r.witness.hold()()
	res, err := r.life.daemon.Scale(context.Background(), keyOf(set), client.ScaleRequest{Replicas: n, Write: client.Write{Yes: true, Force: force}})
	return r.changed(set, res, err, func(i *intent) { i.replicas, i.forced = n, force })
}

// members is what a user asks of some members, or of all.
func (r *rig) members(set, do string, ordinals []int) error {
	defer r.witness.hold()()
	whole, begun := ordinals == nil, r.clock.now()
	res, err := r.life.daemon.ChangeMembers(context.Background(), keyOf(set), client.MembersRequest{Do: do, Ordinals: ordinals})
	at := r.moment(begun, err)
	return r.changed(set, res, err, func(i *intent) {
		if whole {
			ordinals = i.ordinals()
		}
		r.witness.wish(i, do, ordinals, !whole, at)
	})
}

func (r *rig) fresh(set string, ordinal int) error {
	defer r.witness.hold()()
	begun := r.clock.now()
	res, err := r.life.daemon.FreshVolume(context.Background(), keyOf(set), client.FreshVolumeRequest{Ordinal: ordinal, Write: client.Write{Yes: true}})
	at := r.moment(begun, err)
	return r.changed(set, res, err, func(i *intent) { r.witness.wish(i, "fresh", []int{ordinal}, true, at) })
}

// moment is when something that was asked for is stored: when the call returned, or,
// where the daemon died over it, at the earliest when it began.
func (r *rig) moment(begun time.Time, err error) time.Time {
	if err != nil {
		return begun
	}
	return r.clock.now()
}

func (r *rig) setImage(set, image string) error {
	defer r.witness.hold()()
	res, err := r.life.daemon.SetImage(context.Background(), keyOf(set), client.ImageRequest{Images: map[string]string{"main": image}})
	return r.changed(set, res, err, func(*intent) {})
}

func (r *rig) rollout(set, do string, to int) error {
	defer r.witness.hold()()
	req := client.RolloutRequest{Do: do, To: to, Write: client.Write{Yes: true}}
	res, err := r.life.daemon.Rollout(context.Background(), keyOf(set), req)
	return r.changed(set, res, err, func(i *intent) {
		switch do {
		case "pause":
			i.paused = true
		case "resume":
			i.paused = false
		}
	})
}

func (r *rig) remove(set, volumes string) error {
	defer r.witness.hold()()
	res, err := r.life.daemon.Delete(context.Background(), keyOf(set), client.DeleteRequest{Volumes: volumes, Write: client.Write{Yes: true}})
	return r.changed(set, res, err, func(i *intent) { i.deleting, i.policy = true, volumes })
}

// changed tells the witness of a write that was accepted.
func (r *rig) changed(set string, res client.Result, err error, edit func(*intent)) error {
	if err != nil {
		r.doubt(set, func(revision string) { r.witness.changed(set, revision, edit) })
		return r.refused(err)
	}
	r.witness.changed(set, res.Revision, func(i *intent) {
		if last := r.witness.intent(set); !res.Changed { // what was forced is so still
			i.forced = last.forced
		}
		edit(i)
	})
	return nil
}

func (r *rig) refused(err error) error {
	var p *client.Problem
	if !errors.As(err, &p) && r.up() {
		r.witness.complain("an error of the API is no Problem: %v", err)
	}
	return err
}

// status is the snapshot of a set; ok is false when there is no such set.
func (r *rig) status(set string) (s jobspecs.Status, ok bool) {
	if !r.up() {
		return s, false
	}
	s, err := r.life.daemon.Status(context.Background(), keyOf(set))
	return s, err == nil
}

// removeVolume is what a user can do by hand: a volume goes only after every
// container that holds it.
func (r *rig) removeVolume(name string) {
	d, ok := r.world.Disk(name)
	if !ok {
		return
	}
	set, ordinal := d.Labels[jobspecs.LabelSet], d.Labels[jobspecs.LabelOrdinal]
	for _, c := range r.world.Containers() {
		if set != "" && c.Labels[jobspecs.LabelDaemon] == r.world.Daemon() && c.Labels[jobspecs.LabelSet] == set && c.Labels[jobspecs.LabelOrdinal] == ordinal {
			r.world.RemoveContainer(c.Name)
		}
	}
	r.witness.removed(name, set, d.Labels[jobspecs.LabelClaim], number(ordinal))
	r.world.RemoveVolume(name)
	r.life.volumesChanged()
}

// restoreVolume brings back a volume that was lost, as a user does who has a copy.
func (r *rig) restoreVolume(set, claim, name string, ordinal int) {
	r.world.ForeignVolume(name, map[string]string{
		jobspecs.LabelDaemon: r.world.Daemon(), jobspecs.LabelNamespace: jobspecs.DefaultNamespace, jobspecs.LabelSet: set,
		jobspecs.LabelOrdinal: fmt.Sprint(ordinal), jobspecs.LabelClaim: claim,
	})
	r.life.volumesChanged()
}

func keyOf(set string) jobspecs.Key {
	return jobspecs.Key{Namespace: jobspecs.DefaultNamespace, Name: set}
}

// setSpec is a set as a line of a story says it: "web image=app:1 replicas=3 …".
type setSpec struct {
	set  string
	opts map[string]string
}

// defaults of a set in a story.
var defaults = map[string]string{
	"image": "app:1", "replicas": "3", "start": "0", "manage": jobspecs.Ordered, "recovery": "0s", "strategy": jobspecs.Rolling,
	"partition": "0", "max": "1", "minready": "0s", "claim": "data:retain:retain", "probe": "tcp", "args": "", "grace": "5s", "pull": jobspecs.PullMissing,
	"reserve": "", "after": "", "guard": "0", "leave": "", "join": "", "deadline": "10m", "failure": jobspecs.FailPause,
}

func (s setSpec) name() string { return s.set }

func (s setSpec) get(k string) string {
	if v, ok := s.opts[k]; ok {
		return v
	}
	v, ok := defaults[k]
	if !ok {
		panic("no such option of a set: " + k)
	}
	return v
}

// with is the same set with other options: "image=app:2".
func (s setSpec) with(opts ...string) setSpec {
	out := setSpec{s.set, maps.Clone(s.opts)}
	if out.opts == nil {
		out.opts = map[string]string{}
	}
	for _, o := range opts {
		k, v, _ := strings.Cut(o, "=")
		out.opts[k] = v
		out.get(k)
	}
	return out
}

func (s setSpec) String() string {
	words := []string{s.set}
	for _, k := range slices.Sorted(maps.Keys(s.opts)) {
		words = append(words, k+"="+s.opts[k])
	}
	return strings.Join(words, " ")
}

// claim is a volume block of a story: NAME:ON_SCALE_DOWN:ON_DELETE.
type claim struct{ name, down, del string }

func (s setSpec) claims() []claim {
	var out []claim
	for _, text := range strings.Split(s.get("claim"), ",") {
		if p := strings.Split(text, ":"); len(p) == 3 {
			out = append(out, claim{p[0], p[1], p[2]})
		}
	}
	return out
}

// probes are the blocks that stand for one word.
var probes = map[string]string{
	"none": "",
	"tcp":  probe("readiness", "tcp {\n port = \"http\"\n }", "2s", 3),
	"exec": probe("readiness", "exec {\n command = [\"check\"]\n }", "3s", 2),
	"startup": probe("startup", "tcp {\n port = \"http\"\n }", "1s", 60) +
		probe("readiness", "tcp {\n port = \"http\"\n }", "2s", 3),
	"live": probe("readiness", "http {\n port = \"http\"\n }", "2s", 2) +
		probe("liveness", "tcp {\n port = \"http\"\n }", "5s", 3),
}

func probe(kind, check, period string, failures int) string {
	return fmt.Sprintf("probe %q {\n %s\n period = %q\n failure_threshold = %d\n}\n", kind, check, period, failures)
}

// hcl is the set as its user writes it.
func (s setSpec) hcl() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	b.WriteString(s.first())
	line("statefulset %q {", s.set)
	line("replicas = %s\nstart_ordinal = %s\npod_management = %q", s.get("replicas"), s.get("start"), s.get("manage"))
	line("recovery_wait = %q\ntermination_grace = %q", s.get("recovery"), s.get("grace"))
	line("update {\nstrategy = %q\npartition = %s\nmax_unavailable = %q\nmin_ready = %q\ndeadline = %q\non_failure = %q\n}",
		s.get("strategy"), s.get("partition"), s.get("max"), s.get("minready"), s.get("deadline"), s.get("failure"))
	line("reserve = [%s]\nguard {\nmin_available = min(%s, set.replicas)\n}", s.get("reserve"), s.get("guard"))
	if after := s.get("after"); after != "" {
		line("start_after = [%q]", after)
	}
	for _, on := range []string{jobspecs.OnLeave, jobspecs.OnJoin} {
		if word := s.get(on); word != "" {
			line("hook %q {\non = %q\ncommand = [%q]\n}", on, on, word)
		}
	}
	for _, c := range s.claims() {
		line("volume %q {\non_scale_down = %q\non_delete = %q\n}", c.name, c.down, c.del)
	}
	b.WriteString(s.others())
	line("container \"main\" {\nimage = %q\npull = %q\nargs = [%q]", s.get("image"), s.get("pull"), s.get("args"))
	line("env = {\nMEMBER = self.name\nPEERS = join(\",\", set.members[*].fqdn)\nFORMED = \"${set.formed}\"\n%s}", s.cookie())
	line("port \"http\" {\ncontainer = 80\n}")
	for _, c := range s.claims() {
		line("mount %q {\npath = \"/%s\"\n}", c.name, c.name)
	}
	line("%s%s}\n%s}", probes[s.get("probe")], s.inside(), s.second())
	return b.String()
}

// life is one run of the daemon's process.
type life struct {
	rig    *rig
	daemon *daemon.Daemon
	hooks  daemon.Hooks
	cancel func()
	done   chan struct{}
	began  time.Time

	mu    sync.Mutex
	at    time.Time // of its death
	host  doors     // calls that change something at the host
	store doors     // commits of its state file
}

// doors counts what goes through it; one of them is the daemon's last.
type doors struct {
	writes int
	doomAt int  // it dies at that write; zero: never
	after  bool // the write it dies at takes effect
}

func (l *life) writes() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.host.writes + l.store.writes
}

// doom lets the daemon die at the n-th write from now.
func (l *life) doom(d *doors, n int, after bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	d.doomAt, d.after = d.writes+n, after
}

// spare takes doom back.
func (l *life) spare() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.host.doomAt, l.store.doomAt = 0, 0
}

func (l *life) die() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.at.IsZero() {
		l.at = l.rig.clock.now()
	}
	l.cancel()
}

func (l *life) died() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.at
}

func (l *life) dead() bool { return !l.died().IsZero() }

func (l *life) volumesChanged() {
	if !l.dead() {
		l.hooks.Changed()
	}
}

var errDead = errors.New("the daemon was killed")

// write is the way of every call that changes something at the host.
func (l *life) write(f func() error) error { return l.through(&l.host, f) }

// commit is the way of every change of the state file.
func (l *life) commit(f func() error) error { return l.through(&l.store, f) }

func (l *life) through(d *doors, f func() error) error {
	l.mu.Lock()
	if !l.at.IsZero() {
		l.mu.Unlock()
		return errDead
	}
	d.writes++
	doomed, after := d.writes == d.doomAt, d.after
	l.mu.Unlock()
	if doomed && !after {
		l.die()
		return errDead
	}
	err := f()
	if doomed {
		l.die()
	}
	if l.dead() {
		return errDead
	}
	return err
}

// read is the way of the others.
func (l *life) read(f func() error) error {
	if l.dead() {
		return errDead
	}
	return f()
}
