package docker

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/docker/docker/client"

	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/runtime/pods"
)

var (
	_ pods.Host        = (*Host)(nil)
	_ runtime.Networks = (*Host)(nil)
	_ runtime.Images   = (*Host)(nil)
	_ runtime.Ports    = (*Host)(nil)
	_ runtime.Logs     = (*Host)(nil)
	_ runtime.Execs    = (*Host)(nil)
)

// DefaultPool is where subnets are cut from.
var DefaultPool = netip.MustParsePrefix("10.87.0.0/16")

// Config says which engine, and what is ours on it. The zero value works where
// one daemon uses the engine of this machine.
type Config struct {
	// Host is the engine's address, "unix:///…" or "tcp://…". Empty: what the
	// environment says (DOCKER_HOST and its TLS variables), else the default socket.
	Host string
	// Daemon is the id of the store, the value of the label stsd.daemon.
	Daemon string
	// Pool is where a /22 per namespace is cut from; zero: DefaultPool.
	Pool netip.Prefix
	// RunDir holds the members' resolv.conf and the files that are bound into them.
	// Empty: /run/stsd for root, else $XDG_RUNTIME_DIR/stsd. The engine must see it
	// under the same path. Where it is not in memory, a tmpfs is mounted at
	// RunDir/memory for sensitive files, if we may.
	RunDir string
	// NetworkReady is called after a network of ours was made or found and before
	// a container on it starts, so that DNS can listen at its gateway. Several
	// calls may run at once and may repeat. May be nil.
	NetworkReady func(namespace string, gateway netip.Addr, subnet netip.Prefix)
	// Changed is called when volumes or networks may have changed: what List of
	// the volumes and Networks say may be new. It must not block. May be nil.
	Changed func()
	// Called is told of every request to the engine: what was asked ("POST
	// /containers/{id}/start"), how long its answer took to begin, and whether it was an
	// error. May be nil.
	Called func(call string, took time.Duration, failed bool)
	// Parallel is how many short calls the engine gets at once; zero: 64. Stops,
	// pulls, logs and execs wait for something else and are not counted.
	Parallel int
}

// Host runs containers on one engine. It is safe for concurrent use.
type Host struct {
	cfg    Config
	remote bool        // the engine is on another machine
	blind  atomic.Bool // it is on this one, but does not see our files
	slots  chan struct{}

	client   atomic.Pointer[client.Client]
	watching atomic.Int32 // live subscriptions
	meeting  sync.Mutex
	met      string // the engine's API when it was last asked

	instance string // tells this run of the daemon from another one
	swept    atomic.Bool
	started  sync.Map // container id → start of the run whose post_start hook succeeded
	folders  sync.Map // container id → []boundFolder, from its create to its start
	accounts sync.Map // account → identity: an image's id fixes what its names mean

	logs      defaultLog
	logChecks logChecks
	alien     aliens
	sandboxes sandboxes
	networks  networks
	endpoints endpoints
	resolvers resolvers
	volumes   *Volumes
}

// New makes a Host; it does not connect.
func New(cfg Config) (*Host, error) {
	cfg.Pool = cmp.Or(cfg.Pool, DefaultPool)
	cfg.Parallel = cmp.Or(cfg.Parallel, 64)
	cfg.RunDir = cmp.Or(cfg.RunDir, defaultRunDir())
	h := &Host{
		cfg:      cfg,
		instance: rand.Text(),
		slots:    make(chan struct{}, cfg.Parallel),
	}
	c, err := newClient(cfg.Host, cfg.Called)
	if err != nil {
		return nil, err
	}
	h.client.Store(c)
	h.remote = !strings.HasPrefix(c.DaemonHost(), "unix://")
	h.sandboxes.name = sandboxImage
	h.resolvers.init(cfg.RunDir, cfg.Daemon)
	h.volumes = &Volumes{host: h}
	return h, nil
}

// Close drops idle connections. Calls under way are not disturbed.
func (h *Host) Close() error { return h.cli().Close() }

// Volumes is the store of volumes on the same engine.
func (h *Host) Volumes() *Volumes { return h.volumes }

// Ping tells whether the engine answers, and its version ("20.10.24"). An engine
// older than 20.10 is an error.
func (h *Host) Ping(ctx context.Context) (version string, err error) {
	if err := h.meet(ctx); err != nil {
		return "", fmt.Errorf("ask for the engine's version: %w", engineError(err))
	}
	v, err := h.cli().ServerVersion(ctx)
	if err != nil {
		return "", fmt.Errorf("ask for the engine's version: %w", engineError(err))
	}
	return v.Version, nil
}

func (h *Host) cli() *client.Client { return h.client.Load() }

// slot waits for one of cfg.Parallel places; done gives it back.
func (h *Host) slot(ctx context.Context) (done func(), err error) {
	select {
	case h.slots <- struct{}{}:
		return func() { <-h.slots }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func defaultRunDir() string {
	if os.Getuid() == 0 {
		return "/run/stsd"
	}
	dir := os.Getenv("XDG_RUNTIME_DIR")
	if dir == "" {
		dir = os.TempDir()
	}
	return filepath.Join(dir, "stsd")
}
