package daemon

import (
	"context"
	"fmt"
	"net/netip"
	"reflect"
	"sort"
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
}

func newNames(d *Daemon) *names {
	n := &names{d: d, sets: map[jobspecs.Key]dns.Set{}, nets: map[string]netip.Prefix{}, down: map[string]string{}}
	n.server = dns.NewServer(dns.Config{
		Log:     n.log,
		Forward: d.cfg.DNSForward, ForwardOff: d.cfg.DNSForwardOff, Domain: d.cfg.Domain,
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

// publish swaps the zone. Before run has read the store nothing is published:
// the server then says that it does not know, not that there is nothing.
func (n *names) publish() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.ready {
		return
	}
	n.serial = max(n.serial+1, uint32(time.Now().Unix()))
	z := dns.Zone{Domain: n.d.cfg.Domain, Serial: n.serial}
	for _, s := range n.sets {
		z.Sets = append(z.Sets, s)
	}
	sort.Slice(z.Sets, func(i, j int) bool {
		a, b := z.Sets[i], z.Sets[j]
		return a.Namespace+"/"+a.Name < b.Namespace+"/"+b.Name
	})
	for ns, p := range n.nets {
		z.Networks = append(z.Networks, dns.Network{Namespace: ns, Subnet: p, Gateway: p.Masked().Addr().Next()})
	}
	sort.Slice(z.Networks, func(i, j int) bool { return z.Networks[i].Namespace < z.Networks[j].Namespace })
	n.server.Publish(dns.Build(z))
}

// run serves names until ctx ends; then members are switched to the engine's
// own resolver, before the sockets close.
func (n *names) run(ctx context.Context) error {
	if err := n.load(); err != nil {
		return err
	}
	serving, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- n.server.Run(serving) }()
	n.listen()
	tick := time.NewTicker(10 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			n.handOver()
			cancel()
			return <-done
		case err := <-done:
			return err
		case <-tick.C:
			n.mind()
		}
	}
}

// load publishes what the store knows, before the engine is asked.
func (n *names) load() error {
	subnets, err := n.d.store.Subnets()
	if err != nil {
		return err
	}
	keys, err := n.d.store.Keys()
	if err != nil {
		return err
	}
	known := map[jobspecs.Key]dns.Set{}
	for _, key := range keys {
		s, err := n.d.remembered(key)
		if err != nil {
			return err
		}
		known[key] = s
	}
	n.mu.Lock()
	for ns, p := range subnets {
		n.nets[ns] = p
	}
	for key, s := range known {
		if _, told := n.sets[key]; !told {
			n.sets[key] = s
		}
	}
	n.ready = true
	n.mu.Unlock()
	n.publish()
	return nil
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
	s.world = d.world(&v, time.Now(), nil, nil)
	env := d.env(&s)
	if needed := s.world.Needed(); len(needed) > 0 { // ports are the same for all
		s.world.Specs = d.renderings(&v, env, needed[:1], s.subnet)
	}
	out := d.staticNames(&s)
	for _, o := range env.Ordinals {
		ready := !v.Members[o].ReadySince.IsZero()
		out.Members = append(out.Members, dns.Member{Name: jobspecs.MemberName(key.Name, o), Address: s.addresses[o], Running: ready, Ready: ready})
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
		addrs = append(addrs, netip.AddrPortFrom(p.Masked().Addr().Next(), dnsPort))
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
		at[p.Masked().Addr().Next()] = ns
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
