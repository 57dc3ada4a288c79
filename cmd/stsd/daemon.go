package main

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"github.com/stsd/stsd/daemon"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/runtime/docker"
	"github.com/stsd/stsd/runtime/pods"
)

// daemonFlags are those of `stsd daemon`.
type daemonFlags struct {
	dataDir, socket, dockerHost, runDir string
	takeOver, metrics                   string
	subnetPool, domain, engine          string
	dnsListen, dnsForward, dnsAllow     []string
	logLevel, logFormat                 string
}

// unsupportedDaemonFlags are known by name.
var unsupportedDaemonFlags = []string{"listen", "config"}

func newDaemonCmd(a *app) *cobra.Command {
	var f daemonFlags
	cmd := &cobra.Command{
		Use:   "daemon",
		Short: "Run the daemon in the foreground",
		Long: "Run the daemon in the foreground. Stopping it stops no member: containers go on,\n" +
			"and the next start finds them as they are.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, name := range unsupportedDaemonFlags {
				if cmd.Flags().Changed(name) {
					return notYet("--" + name)
				}
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, os.Interrupt)
			defer stop()
			return a.daemon(ctx, f)
		},
	}
	dataDir, socket := defaultPaths(a)
	fl := cmd.Flags()
	fl.StringVar(&f.dataDir, "data-dir", dataDir, "folder of the state file")
	fl.StringVar(&f.takeOver, "take-over", "", "id of a state file that was lost (label stsd.daemon of its containers): its sets are put together from labels, nobody is restarted")
	fl.StringVar(&f.socket, "socket", socket, "unix socket to serve on")
	fl.StringVar(&f.dockerHost, "docker-host", "", "address of the Docker engine (default: DOCKER_HOST, else the local socket)")
	fl.StringVar(&f.runDir, "run-dir", "", "folder of the members' resolver files (default /run/stsd, or $XDG_RUNTIME_DIR/stsd)")
	fl.StringVar(&f.subnetPool, "subnet-pool", docker.DefaultPool.String(), "where the namespaces' networks are cut from")
	fl.StringVar(&f.domain, "domain", "cluster.local", "cluster domain")
	fl.StringSliceVar(&f.dnsListen, "dns-listen", []string{defaultDNSListen}, "addresses to answer this machine's programs on, beside the gateways for members; \"off\" serves no DNS")
	fl.StringSliceVar(&f.dnsForward, "dns-forward", nil, "servers that foreign names go to (default: the host's); \"off\" refuses them")
	fl.StringSliceVar(&f.dnsAllow, "dns-allow-from", nil, "networks, as in 192.168.0.0/16, whose machines may ask for members' names too; nothing is forwarded for them")
	fl.StringVar(&f.engine, "engine", "docker", "what runs the members: docker, or sim (in memory, to try specs and commands on)")
	fl.StringVar(&f.metrics, "metrics", "", "TCP address for Prometheus, as in :9187, on loopback where it names no host; whoever reaches it may read it. The socket has /metrics in any case")
	fl.StringVar(&f.logLevel, "log-level", "info", "trace, debug, info, warn, error")
	fl.StringVar(&f.logFormat, "log-format", "text", "text or json")
	for _, name := range unsupportedDaemonFlags {
		fl.String(name, "", "not supported yet")
		_ = fl.MarkHidden(name) // the flag was made in the line above
	}
	return cmd
}

// defaultPaths are those of root, or of the user.
func defaultPaths(a *app) (dataDir, socket string) {
	if os.Geteuid() == 0 {
		return "/var/lib/stsd", "/run/stsd/stsd.sock"
	}
	state, run := a.env["XDG_STATE_HOME"], a.env["XDG_RUNTIME_DIR"]
	if state == "" {
		state = filepath.Join(a.env["HOME"], ".local", "state")
	}
	if run == "" {
		run = filepath.Join(os.TempDir(), fmt.Sprintf("stsd-%d", os.Getuid()))
	}
	return filepath.Join(state, "stsd"), filepath.Join(run, "stsd.sock")
}

func (a *app) daemon(ctx context.Context, f daemonFlags) error {
	cfg, err := f.config(a.stderr)
	if err != nil {
		return usagef("%w", err)
	}
	d, err := daemon.New(cfg)
	if err != nil {
		return err
	}
	return d.Run(ctx)
}

// config turns flags into a daemon's configuration.
func (f daemonFlags) config(logs io.Writer) (daemon.Config, error) {
	level := hclog.LevelFromString(f.logLevel)
	if level == hclog.NoLevel {
		return daemon.Config{}, fmt.Errorf("--log-level %q is none of trace, debug, info, warn, error", f.logLevel)
	}
	if f.logFormat != "text" && f.logFormat != "json" {
		return daemon.Config{}, fmt.Errorf("--log-format %q is neither text nor json", f.logFormat)
	}
	if f.engine != "docker" && f.engine != "sim" {
		return daemon.Config{}, fmt.Errorf("--engine %q is not supported yet; docker and sim are", f.engine)
	}
	pool, err := netip.ParsePrefix(f.subnetPool)
	if err != nil || !pool.Addr().Is4() || pool.Bits() > 22 {
		return daemon.Config{}, fmt.Errorf("--subnet-pool %q: want an IPv4 prefix of /22 or larger, as in %s", f.subnetPool, docker.DefaultPool)
	}
	cfg := daemon.Config{
		DataDir: f.dataDir, TakeOver: f.takeOver, Socket: f.socket, Domain: f.domain, Version: stsdVersion(), Metrics: f.metrics,
		Log:    hclog.New(&hclog.LoggerOptions{Name: "stsd", Level: level, Output: logs, JSONFormat: f.logFormat == "json"}),
		DNSOff: f.engine == "sim",
		Engine: func(id string, h daemon.Hooks) (daemon.Parts, error) {
			if f.engine == "sim" {
				return simParts(id), nil
			}
			return dockerParts(docker.Config{Host: f.dockerHost, Daemon: id, Pool: pool, RunDir: f.runDir, NetworkReady: h.NetworkReady, Changed: h.Changed, Called: h.Called})
		},
	}
	return cfg, f.dns(&cfg)
}

// dns reads the DNS flags.
func (f daemonFlags) dns(cfg *daemon.Config) error {
	for _, s := range f.dnsListen {
		if s == "off" {
			cfg.DNSOff = true
			continue
		}
		a, err := netip.ParseAddrPort(s)
		if err != nil {
			return fmt.Errorf("--dns-listen %q: want ADDRESS:PORT or off", s)
		}
		cfg.DNSListen = append(cfg.DNSListen, a)
	}
	for _, s := range f.dnsAllow {
		p, err := netip.ParsePrefix(s)
		if err != nil {
			return fmt.Errorf("--dns-allow-from %q: want a network, as in 192.168.0.0/16", s)
		}
		cfg.DNSAllowFrom = append(cfg.DNSAllowFrom, p.Masked())
	}
	for _, s := range f.dnsForward {
		if s == "off" {
			cfg.DNSForwardOff = true
			continue
		}
		if _, err := netip.ParseAddrPort(s); err != nil {
			if _, err := netip.ParseAddr(s); err != nil {
				return fmt.Errorf("--dns-forward %q: want ADDRESS, ADDRESS:PORT or off", s)
			}
			s = netip.AddrPortFrom(netip.MustParseAddr(s), 53).String()
		}
		cfg.DNSForward = append(cfg.DNSForward, s)
	}
	return nil
}

// dockerEngine is the pod agent over Docker, with what only Docker can do.
type dockerEngine struct {
	*pods.Engine
	host *docker.Host
}

var (
	_ runtime.Engine   = (*dockerEngine)(nil)
	_ runtime.Networks = (*dockerEngine)(nil)
	_ runtime.Images   = (*dockerEngine)(nil)
	_ runtime.Ports    = (*dockerEngine)(nil)
	_ runtime.Logs     = (*dockerEngine)(nil)
	_ runtime.Execs    = (*dockerEngine)(nil)
)

// dockerParts makes the engine.
func dockerParts(cfg docker.Config) (daemon.Parts, error) {
	host, err := docker.New(cfg)
	if err != nil {
		return daemon.Parts{}, err
	}
	agent := pods.New(pods.Config{Host: host, Daemon: cfg.Daemon})
	return daemon.Parts{
		Engine:  &dockerEngine{agent, host},
		Volumes: host.Volumes(),
		Run: func(ctx context.Context) error {
			err := agent.Run(ctx)
			return joinClose(err, host)
		},
		Name: func(ctx context.Context) (string, error) {
			v, err := host.Ping(ctx)
			return "docker " + v, err
		},
		Resolve: host.SetResolver,
		Networks: func(ctx context.Context) ([]daemon.Network, error) {
			found, err := host.Networks(ctx)
			out := make([]daemon.Network, len(found))
			for i, n := range found {
				out[i] = daemon.Network{Namespace: n.Namespace, Name: n.Name, Subnet: n.Subnet, More: n.More, Gateway: n.Gateway, Internal: n.Internal, Others: n.Others}
			}
			return out, err
		},
	}, nil
}

func joinClose(err error, c io.Closer) error {
	if closeErr := c.Close(); err == nil {
		return closeErr
	}
	return err
}

func (e *dockerEngine) Subnet(ctx context.Context, namespace string, taken []netip.Prefix) (netip.Prefix, error) {
	return e.host.Subnet(ctx, namespace, taken)
}

func (e *dockerEngine) ImageID(ctx context.Context, ref string) (string, error) {
	return e.host.ImageID(ctx, ref)
}

func (e *dockerEngine) PortOwner(ctx context.Context, pod runtime.PodName, p jobspecs.Port) string {
	return e.host.PortOwner(ctx, pod, p)
}

func (e *dockerEngine) Logs(ctx context.Context, name runtime.PodName, o runtime.LogOptions, stdout, stderr io.Writer) error {
	return e.host.Logs(ctx, name, o, stdout, stderr)
}

func (e *dockerEngine) Exec(ctx context.Context, name runtime.PodName, o runtime.ExecOptions) (int, error) {
	return e.host.Exec(ctx, name, o)
}
