package dns

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Config has a working zero value.
type Config struct {
	// Log takes a constant message and pairs of key and value. Default: silence.
	Log func(msg string, kv ...any)
	// Forward are the servers for foreign names, "ip" or "ip:port", asked in this order. Default: those of ResolvConf.
	Forward []string
	// ForwardOff refuses foreign names instead.
	ForwardOff bool
	// ResolvConf is read again whenever it changes. Default "/etc/resolv.conf".
	ResolvConf string
	// Domain is never forwarded, whatever the snapshot calls its own. Default "cluster.local".
	Domain string
	// AllowFrom are further sources that are served: our own names only, as the default namespace sees them.
	AllowFrom []netip.Prefix
	// Rate is how many questions a source may ask in a second, twice as many at once; what is over is told to come over
	// TCP or gets silence. Default 1000; negative: no limit.
	Rate int
	// Sockets that were handed over are served instead of new ones. Default: none.
	Sockets *Sockets
}

// Listener is one address to be served, on UDP and TCP.
type Listener struct {
	Addr netip.AddrPort // as bound; port 0 has become a real one
	Err  error          // nil: serving
}

// Server answers on sockets what the latest snapshot says.
type Server struct {
	cfg      Config
	made     time.Time
	domain   []string
	forward  *forwarder
	forwards turnstile
	conns    turnstile
	meter    meter

	snapshot atomic.Pointer[Snapshot]
	host     atomic.Pointer[map[netip.Addr]bool]     // the host's addresses
	bound    atomic.Pointer[map[netip.AddrPort]bool] // our listeners

	tally    tally
	watching atomic.Int32
	watchers sync.Map // of *watcher

	mu        sync.Mutex
	wanted    []netip.AddrPort
	listeners map[netip.AddrPort]*listener // by the address that was wanted
	serve     func(*listener)              // nil unless Run is going
}

type watcher struct {
	queries chan Query
	missed  atomic.Int64
}

// NewServer makes a server that listens nowhere and knows nothing yet.
func NewServer(cfg Config) *Server {
	if cfg.Log == nil {
		cfg.Log = func(string, ...any) {}
	}
	if cfg.Domain == "" {
		cfg.Domain = defaultDomain
	}
	if cfg.Rate == 0 {
		cfg.Rate = defaultRate
	}
	s := &Server{
		cfg:       cfg,
		made:      time.Now(),
		domain:    splitName(cfg.Domain),
		forward:   newForwarder(cfg),
		forwards:  turnstile{max: maxForwards, maxEach: maxForwardsEach},
		conns:     turnstile{max: maxConns, maxEach: maxConnsEach},
		meter:     meter{rate: float64(cfg.Rate)},
		listeners: map[netip.AddrPort]*listener{},
	}
	s.tally.latency.bounds, s.tally.propagation.bounds = latencyBounds, propagationBounds
	s.bound.Store(&map[netip.AddrPort]bool{})
	s.lookAtHost()
	return s
}

// Publish replaces the snapshot for all queries from now on.
func (s *Server) Publish(snap *Snapshot) {
	s.snapshot.Store(snap)
	s.tally.published.Store(time.Now().UnixNano())
}

// Propagated counts how long a change took from the moment it was seen to the snapshot that shows it.
func (s *Server) Propagated(took time.Duration) { s.tally.propagation.add(took) }

// Snapshot is the one that answers now; nil: none yet.
func (s *Server) Snapshot() *Snapshot { return s.snapshot.Load() }

// SetListeners says where to serve. While Run is going each new address is bound, or its error is in Status, when it
// returns; before, Run does it first. Calling it again with the same addresses retries those that failed.
func (s *Server) SetListeners(addrs []netip.AddrPort) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wanted = slices.Clone(addrs)
	s.lookAtHost()
	s.reconcile()
}

// Status lists the wanted listeners in the order they were given. Before Run, none of them serves.
func (s *Server) Status() []Listener {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Listener
	for _, addr := range s.wanted {
		l := s.listeners[addr]
		if l == nil {
			out = append(out, Listener{Addr: addr, Err: errNotRunning})
			continue
		}
		out = append(out, l.status())
	}
	return out
}

var errNotRunning = errors.New("dns server is not running")

// Run serves until ctx ends. Everything it started has ended when it returns, and the sockets are closed.
func (s *Server) Run(ctx context.Context) error {
	var serving sync.WaitGroup
	s.start(func(l *listener) { s.serveListener(ctx, &serving, l) })
	defer serving.Wait()
	defer s.stop()

	upkeep := time.NewTicker(upkeepEvery)
	defer upkeep.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-upkeep.C:
			s.upkeep()
		}
	}
}

func (s *Server) start(serve func(*listener)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serve = serve
	s.reconcile()
}

func (s *Server) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serve = nil
	for _, l := range s.listeners {
		l.close()
	}
	clear(s.listeners)
	s.noteBound()
}

func (s *Server) upkeep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lookAtHost()
	s.reconcile()
}

// reconcile closes what is no longer wanted and opens what is not open. The caller holds mu.
func (s *Server) reconcile() {
	if s.serve == nil {
		return
	}
	for addr, l := range s.listeners {
		if !slices.Contains(s.wanted, addr) {
			l.close()
			s.cfg.Sockets.forget(l.addr)
			delete(s.listeners, addr)
		}
	}
	for _, addr := range s.wanted {
		s.open(addr)
	}
	s.noteBound()
}

func (s *Server) open(addr netip.AddrPort) {
	before := s.listeners[addr]
	if before != nil && before.status().Err == nil {
		return
	}
	l := s.cfg.Sockets.listen(addr)
	s.listeners[addr] = l
	if l.err != nil {
		if before == nil || before.status().Err.Error() != l.err.Error() {
			s.cfg.Log("dns listener failed", "addr", addr, "error", l.err)
		}
		return
	}
	s.cfg.Log("dns listener open", "addr", l.addr, "handed over", l.handed)
	if err := s.cfg.Sockets.keep(l); err != nil {
		s.cfg.Log("dns sockets are not kept over a restart", "addr", l.addr, "error", err)
	}
	s.serve(l)
}

func (s *Server) noteBound() {
	bound := map[netip.AddrPort]bool{}
	for _, l := range s.listeners {
		bound[l.addr] = true
	}
	s.bound.Store(&bound)
}

func (s *Server) lookAtHost() {
	addrs, err := net.InterfaceAddrs()
	if err != nil && s.host.Load() != nil {
		return // keep what we knew
	}
	host := map[netip.Addr]bool{}
	for _, a := range addrs {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil {
			host[prefix.Addr().Unmap()] = true
		}
	}
	s.host.Store(&host)
}

func (s *Server) ours(addr netip.AddrPort) bool { return (*s.bound.Load())[addr] }

// listensAt: is one of our listeners at this address?
func (s *Server) listensAt(addr netip.Addr) bool {
	for at := range *s.bound.Load() {
		if at.Addr() == addr {
			return true
		}
	}
	return false
}
