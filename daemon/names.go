package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"reflect"
	"sync"
	"time"

	"github.com/stsd/stsd/dns"
	"github.com/stsd/stsd/jobspecs"
)

// names keeps what DNS serves: the sets as their loops tell them, and the
// networks on whose gateways it answers.
type names struct {
	d      *Daemon
	server *dns.Server

	mu     sync.Mutex
	sets   map[jobspecs.Key]dns.Set
	nets   map[string]netip.Prefix // by namespace
	ready  bool                    // a snapshot may be published
	down   map[string]string       // namespace → why nothing answers there
	closed bool
	serial uint32

	found     []Network // as the engine has them
	netsKnown bool      // found has been seen since the start
	loaded    bool      // what is stored was read
	version   uint64    // of the changes so far

	build sync.Mutex // held while a snapshot is made
	built uint64     // version of the latest; under build

	netBell   chan struct{} // look at the networks again
	saveError string        // said already; run's alone

	published  chan struct{} // after each snapshot; holds one
	hostsError string        // of the hosts file, said already; run's alone
}

func newNames(d *Daemon) *names {
	n := &names{d: d, sets: map[jobspecs.Key]dns.Set{}, nets: map[string]netip.Prefix{}, down: map[string]string{}, published: make(chan struct{}, 1), netBell: make(chan struct{}, 1)}
	sockets, err := dns.Inherited(os.Getenv)
	if err != nil {
		d.log.Warn("sockets that were handed over are not used", "error", err)
	}
	n.server = dns.NewServer(dns.Config{
		Log:     n.log,
		Forward: d.cfg.DNSForward, ForwardOff: d.cfg.DNSForwardOff, Domain: d.cfg.Domain,
		AllowFrom: d.cfg.DNSAllowFrom, Sockets: sockets,
	})
	return n
}

// log tells what the server has to say; what names an error is a warning.
func (n *names) log(msg string, kv ...any) {
	for i := 0; i+1 < len(kv); i += 2 {
		if kv[i] == "error" || kv[i] == "panic" {
			n.d.log.Warn(msg, kv...)
			return
		}
	}
	n.d.log.Info(msg, kv...)
}

// dnsPort is where a resolver is asked.
const dnsPort = 53

// networkReady is called by the engine before a container starts on a network:
// its gateway exists now.
func (n *names) networkReady(namespace string, gateway netip.Addr, subnet netip.Prefix) {
	n.mu.Lock()
	known := n.nets[namespace] == subnet && n.down[namespace] == ""
	n.nets[namespace] = subnet
	n.mu.Unlock()
	if known {
		return
	}
	n.publish()
	n.listen()
}

// put takes the names of a set.
func (n *names) put(key jobspecs.Key, s dns.Set) {
	n.mu.Lock()
	same := reflect.DeepEqual(n.sets[key], s)
	n.sets[key] = s
	n.mu.Unlock()
	if !same {
		n.publish()
	}
}

func (n *names) drop(key jobspecs.Key) {
	n.mu.Lock()
	delete(n.sets, key)
	n.mu.Unlock()
	n.publish()
}

// publish swaps the snapshot: when it returns, every change that was made before is
// answered. Changes that come side by side share one snapshot. Before run has read
// what is stored nothing is published: the server then says that it does not know,
// not that there is nothing.
func (n *names) publish() {
	since := time.Now()
	n.mu.Lock()
	n.version++
	mine := n.version
	n.mu.Unlock()

	n.build.Lock()
	defer n.build.Unlock()
	n.mu.Lock()
	if !n.ready || n.built >= mine {
		n.mu.Unlock()
		return
	}
	n.serial = max(n.serial+1, uint32(time.Now().Unix()))
	z := n.zone()
	n.built = n.version
	n.mu.Unlock()
	n.server.Publish(dns.Build(z))
	n.server.Propagated(time.Since(since))
	select {
	case n.published <- struct{}{}:
	default: // what waits there will see this one too
	}
}

// run serves names until ctx ends; then members are switched to the engine's
// own resolver, before the sockets close.
func (n *names) run(ctx context.Context) error {
	serving, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	done := make(chan error, 1)
	n.recall()
	go func() { done <- n.server.Run(serving) }()
	n.listen()
	if err := n.load(); err != nil {
		cancel()
		return errors.Join(err, <-done)
	}
	n.listen()
	watching.Go(func() { n.watchNetworks(serving) })
	tick := time.NewTicker(10 * time.Second)
	defer tick.Stop()
	var soon <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			n.save()
			n.handOver()
			n.answerTheLast()
			cancel()
			return <-done
		case err := <-done:
			return err
		case <-n.published:
			if soon == nil { // changes that never cease are written all the same
				soon = time.After(hostsDelay)
			}
		case <-soon:
			soon = nil
			n.save()
			n.keepHosts()
		case <-tick.C:
			n.mind()
			n.keepHosts() // somebody may have asked for the block, or replaced the file
		}
	}
}

// remembered are the names of a set as the store knows it: members that were
// ready are taken to be so until the engine says otherwise.
func (d *Daemon) remembered(key jobspecs.Key) (dns.Set, error) {
	v, err := d.store.Look(key)
	if err != nil {
		return dns.Set{}, err
	}
	s := sight{view: v}
	if s.addresses, err = d.store.Addresses(key); err != nil {
		return dns.Set{}, err
	}
	s.world = d.world(&v, d.now(), nil, nil)
	env := d.env(&s)
	if needed := s.world.Needed(); len(needed) > 0 { // ports are the same for all
		s.world.Specs = d.renderings(&v, env, needed[:1], s.subnet)
	}
	out := d.staticNames(&s)
	for _, o := range env.Ordinals {
		ready := !v.Members[o].ReadySince.IsZero()
		m := dns.Member{Name: jobspecs.MemberName(key.Name, o), Address: s.addresses[o], Running: ready, Ready: ready}
		s.toHost(&m, nil, o)
		out.Members = append(out.Members, m)
	}
	return out, nil
}

// listen opens the sockets that are missing and tells the engine where DNS
// answers.
func (n *names) listen() {
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return
	}
	addrs := append([]netip.AddrPort(nil), n.d.cfg.DNSListen...)
	for _, p := range n.nets {
		addrs = append(addrs, netip.AddrPortFrom(gatewayOf(p), dnsPort))
	}
	n.mu.Unlock()
	n.server.SetListeners(addrs)
	n.mind()
}

// mind compares the sockets with the namespaces and switches resolvers where
// that changed.
func (n *names) mind() {
	down := map[string]string{}
	up := map[string]bool{}
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return
	}
	at := map[netip.Addr]string{}
	for ns, p := range n.nets {
		at[gatewayOf(p)] = ns
	}
	n.mu.Unlock()
	for _, l := range n.server.Status() {
		ns, ok := at[l.Addr.Addr()]
		if !ok {
			continue
		}
		up[ns] = l.Err == nil
		if l.Err != nil {
			down[ns] = fmt.Sprintf("no DNS at %s: %v; members use the engine's resolver", l.Addr, l.Err)
		}
	}
	n.mu.Lock()
	changed := !reflect.DeepEqual(n.down, down)
	n.down = down
	n.mu.Unlock()
	n.resolve(up)
	if changed {
		n.d.hint(jobspecs.Key{})
	}
}

// handOver switches members to the engine's own resolver.
func (n *names) handOver() {
	n.mu.Lock()
	n.closed = true
	up := map[string]bool{}
	for ns := range n.nets {
		up[ns] = false
	}
	n.mu.Unlock()
	n.resolve(up)
}

// lastLookUps is for who read the old file and has not asked yet.
const lastLookUps = 200 * time.Millisecond

// answerTheLast goes on serving for a moment after members were told to ask
// elsewhere: none of their questions is lost.
func (n *names) answerTheLast() {
	if n.d.parts.Resolve != nil {
		time.Sleep(lastLookUps)
	}
}

// resolve switches the members' resolvers.
func (n *names) resolve(up map[string]bool) {
	if n.d.parts.Resolve == nil {
		return
	}
	if err := n.d.parts.Resolve(up); err != nil {
		n.d.log.Warn("resolver files", "error", err)
	}
}

// degraded tells whether nothing answers in the namespace; why says the reason.
func (n *names) degraded(namespace string) bool { return n.why(namespace) != "" }

func (n *names) why(namespace string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.down[namespace]
}
