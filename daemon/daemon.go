// Package daemon wires the parts of stsd together and owns the loops: one
// goroutine per set that looks, decides and acts, again and again.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/stsd/stsd/daemon/api"
	"github.com/stsd/stsd/daemon/store"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/volumes"
)

// Parts is the engine a daemon stands on; cmd/stsd chooses it.
type Parts struct {
	Engine  runtime.Engine
	Volumes volumes.Store
	// Run serves the engine until ctx ends.
	Run func(ctx context.Context) error
	// Name says what the engine is and whether it answers ("docker 20.10.24").
	Name func(ctx context.Context) (string, error)
	// Resolve tells the engine in which namespaces DNS answers at the gateway;
	// members elsewhere are switched to the engine's own resolver. May be nil.
	Resolve func(up map[string]bool) error
	// Networks are those of members as they are now, for the names of other
	// containers on them. Hooks.Changed says when to look again. May be nil.
	Networks func(ctx context.Context) ([]Network, error)
}

// Hooks are what the engine calls back; they may be used before Run.
type Hooks struct {
	// NetworkReady is called when a namespace's network exists, before a
	// container on it starts.
	NetworkReady func(namespace string, gateway netip.Addr, subnet netip.Prefix)
	// Changed is called when something that is no pod may have changed: volumes,
	// networks. It does not block.
	Changed func()
	// Called is told of every request to the engine: what was asked ("POST
	// /containers/{id}/start"), how long its answer took to begin, and whether it was an
	// error.
	Called func(call string, took time.Duration, failed bool)
}

// Config of a daemon. Engine and DataDir must be set.
type Config struct {
	DataDir string
	// Socket is the path of the unix socket; empty serves none.
	Socket string
	// Metrics is a TCP address that answers GET /metrics and nothing else, without
	// asking who it is; ":9187" is on loopback. Empty: the unix socket alone.
	Metrics string
	// Engine makes the engine; id is the store's, the value of its labels.
	Engine func(id string, h Hooks) (Parts, error)
	// Domain is the cluster domain; empty is "cluster.local".
	Domain string
	// DNSOff serves no DNS; members use the engine's resolver.
	DNSOff bool
	// DNSListen are further addresses to answer on, beside the gateways.
	DNSListen []netip.AddrPort
	// DNSForward are the servers that foreign names go to; nil follows the host.
	DNSForward []string
	// DNSForwardOff refuses foreign names.
	DNSForwardOff bool
	// DNSAllowFrom are further sources that are answered our own names.
	DNSAllowFrom []netip.Prefix
	// HostsFile is where this daemon's block is kept up to date, if "stsd dns
	// install" has put one; empty is /etc/hosts.
	HostsFile string
	// Parallel is how many engine calls run at once; zero is 32.
	Parallel int
	Version  string
	// TakeOver is the id of a store that was lost, whose sets are put together again
	// from labels. The folder must be empty, or made so before.
	TakeOver string
	Log      hclog.Logger  // nil logs nothing
	Store    store.Options // for tests
	Clock    runtime.Clock // the host's; nil: time.Now
}

// Daemon is one running stsd.
type Daemon struct {
	cfg    Config
	log    hclog.Logger
	store  *store.Store
	parts  Parts
	names  *names // nil when DNS is off
	events *recorder
	engine chan struct{} // limits engine calls

	metrics *metrics
	usage   *usage

	// patience ends the wait for the engine's first answer; see first.
	patience atomic.Pointer[time.Time]

	mu    sync.Mutex
	loops map[jobspecs.Key]*loop
	wg    sync.WaitGroup
	run   context.Context // of the loops; nil before Run

	// write serializes changes of intent, so that what was checked is what is stored.
	write lock
}

// New opens the store and makes the engine. Nothing runs before Run.
func New(cfg Config) (*Daemon, error) {
	if cfg.Log == nil {
		cfg.Log = hclog.NewNullLogger()
	}
	if cfg.Domain == "" {
		cfg.Domain = "cluster.local"
	}
	if cfg.Parallel == 0 {
		cfg.Parallel = 32
	}
	cfg.Store.TakeOver = cfg.TakeOver
	d := &Daemon{cfg: cfg, write: newLock(), log: cfg.Log, loops: map[jobspecs.Key]*loop{}, engine: make(chan struct{}, cfg.Parallel)}
	d.metrics = newMetrics(d)
	cfg.Store.Around = d.metrics.around(cfg.Store.Around)
	st, err := store.Open(cfg.DataDir, cfg.Store)
	if err != nil {
		return nil, err
	}
	d.store = st
	if d.events, err = newRecorder(st, cfg.Clock, func(err error) { cfg.Log.Warn("events are not stored, and kept in memory", "error", err) }); err != nil {
		return nil, errors.Join(err, st.Close())
	}
	d.events.counted = d.metrics.happened
	hooks := Hooks{
		NetworkReady: func(string, netip.Addr, netip.Prefix) {},
		Changed:      func() { d.hint(jobspecs.Key{}) },
		Called:       d.metrics.called,
	}
	if !cfg.DNSOff {
		d.names = newNames(d)
		hooks.NetworkReady = d.names.networkReady
		hooks.Changed = func() {
			d.hint(jobspecs.Key{})
			d.names.networksChanged()
		}
	}
	if d.parts, err = cfg.Engine(st.ID(), hooks); err != nil {
		return nil, errors.Join(err, st.Close())
	}
	d.usage = newUsage(d.parts.Volumes, d.hint)
	return d, nil
}

// Run serves until ctx ends. Stopping never stops a member: containers go on,
// and their look-ups are switched to the engine's own resolver.
func (d *Daemon) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var serve func(context.Context) error
	if d.cfg.Socket != "" {
		l, err := api.Listen(d.cfg.Socket)
		if err != nil {
			return errors.Join(err, d.store.Close())
		}
		server := &api.Server{Service: d, Log: d.log}
		serve = func(ctx context.Context) error { return server.Serve(ctx, l) }
	}
	err := d.serve(ctx, cancel, serve)
	return errors.Join(err, d.store.Close())
}

// serve starts everything in order and waits for its end in the other.
func (d *Daemon) serve(ctx context.Context, cancel func(), serve func(context.Context) error) error {
	patience := d.now().Add(firstAnswer)
	d.patience.Store(&patience)
	d.log.Info("start", "version", d.cfg.Version, "daemon", d.store.ID(), "data", d.cfg.DataDir, "socket", d.cfg.Socket)
	var parts sync.WaitGroup
	errs := make(chan error, 8)
	start := func(name string, run func(context.Context) error) {
		parts.Go(func() {
			if err := run(ctx); err != nil && ctx.Err() == nil {
				errs <- fmt.Errorf("%s: %w", name, err)
				cancel()
			}
		})
	}
	hints, err := d.parts.Engine.Watch(ctx) // before anything can happen: a hint that is lost is a loop that sleeps
	if err != nil {
		return err
	}
	if err := d.startLoops(ctx); err != nil {
		return err
	}
	if d.names != nil {
		start("dns", d.names.run)
	}
	start("engine", d.parts.Run)
	if d.cfg.TakeOver != "" {
		start("take over", d.takeOver)
	}
	start("watch", func(ctx context.Context) error { return d.watch(ctx, hints) })
	start("events", d.events.run)
	start("usage", d.usage.run)
	if d.cfg.Metrics != "" {
		start("metrics", d.serveMetrics)
	}
	if serve != nil {
		start("api", serve)
	}
	<-ctx.Done()
	parts.Wait()
	d.wg.Wait()
	d.log.Info("stopped; members go on without it")
	select {
	case err := <-errs:
		return err
	default:
		return nil
	}
}

// firstAnswer is how long after its start the daemon lets a request wait for the
// engine's first answer, which takes some milliseconds where there is an engine.
const firstAnswer = 3 * time.Second

// first waits until the engine has answered, or until it can be said that it
// does not.
func (d *Daemon) first(ctx context.Context) {
	for d.Ready() != nil && d.now().Before(d.patientUntil()) && ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond) // an engine tells nobody that it is connected but by answering
	}
}

// now is what the host's clock shows.
func (d *Daemon) now() time.Time { return d.cfg.Clock.Now() }

// patientUntil is when the wait for the engine's first answer ends; zero: the daemon
// was not started.
func (d *Daemon) patientUntil() time.Time {
	if t := d.patience.Load(); t != nil {
		return *t
	}
	return time.Time{}
}

// startLoops starts one loop per stored set.
func (d *Daemon) startLoops(ctx context.Context) error {
	keys, err := d.store.Keys()
	if err != nil {
		return err
	}
	d.mu.Lock()
	d.run = ctx
	d.mu.Unlock()
	for _, key := range keys {
		d.Kick(key)
	}
	if d.names != nil {
		d.names.publish()
	}
	return nil
}

// Kick makes the loop of a set look again, and starts it where there is none.
func (d *Daemon) Kick(key jobspecs.Key) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.run == nil || d.run.Err() != nil {
		return
	}
	l, ok := d.loops[key]
	if !ok {
		l = newLoop(d, key)
		d.loops[key] = l
		d.wg.Go(func() { l.run(d.run) })
	}
	l.kick()
}

// forget drops the loop of a set that is no longer stored.
func (d *Daemon) forget(l *loop) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.loops[l.key] == l {
		delete(d.loops, l.key)
	}
}

// revive starts the loop again if the set was stored anew while it ended.
func (d *Daemon) revive(key jobspecs.Key) {
	if _, err := d.store.Get(key); err == nil {
		d.Kick(key)
	}
}

func (d *Daemon) loop(key jobspecs.Key) *loop {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.loops[key]
}

// watch turns the engine's hints into kicks of the loops that exist.
func (d *Daemon) watch(ctx context.Context, hints <-chan jobspecs.Key) error {
	for key := range hints {
		d.hint(key)
	}
	<-ctx.Done()
	return nil
}

func (d *Daemon) hint(key jobspecs.Key) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for k, l := range d.loops {
		if key == (jobspecs.Key{}) || k == key {
			l.kick()
		}
	}
}

// acquire takes one of the engine's places. It reports false when ctx ended.
func (d *Daemon) acquire(ctx context.Context) bool {
	select {
	case d.engine <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (d *Daemon) release() { <-d.engine }

// timer is a timer that may be unset.
func timer(at, now time.Time) (<-chan time.Time, func() bool) {
	if at.IsZero() {
		return nil, func() bool { return true }
	}
	t := time.NewTimer(max(at.Sub(now), time.Millisecond))
	return t.C, t.Stop
}
