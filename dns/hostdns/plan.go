package hostdns

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// Options are what is to be told. Server and Zones must be set; for Hosts Daemon.
type Options struct {
	Server netip.AddrPort // where stsd answers
	Zones  []string       // that it answers: "svc", "cluster.local"
	Daemon string         // whose block of the hosts file it is
}

// Plan is what an installation changes.
type Plan struct {
	Choice
	Options
	Files    []File
	Commands [][]string // that make the resolver read the files; after taking them away too
}

// File is one file to write, or with Block the block of a file.
type File struct {
	Path  string
	Text  string
	Block string // the daemon whose block it is
}

// Paths of what is written.
const (
	resolvedFile       = "/etc/systemd/resolved.conf.d/stsd.conf"
	delegateFile       = "/etc/systemd/dns-delegate.d/stsd.dns-delegate"
	networkManagerFile = "/etc/NetworkManager/dnsmasq.d/stsd.conf"
	dnsmasqFile        = "/etc/dnsmasq.d/stsd.conf"
	macFolder          = "/etc/resolver/"
	hostsFile          = "/etc/hosts"
)

const header = "# Made by \"stsd dns install\"; \"stsd dns uninstall\" takes it away.\n"

// NewPlan decides what to write.
func NewPlan(f Facts, c Choice, o Options) (Plan, error) {
	if err := o.check(c.Method); err != nil {
		return Plan{}, err
	}
	p := Plan{Choice: c, Options: o}
	switch c.Method {
	case Resolved:
		p.Files = []File{{Path: resolvedFile, Text: header + "[Resolve]\n" + o.route()}}
		p.Commands = [][]string{restart(f, "systemd-resolved")}
	case Delegate:
		p.Files = []File{{Path: delegateFile, Text: header + "[Delegate]\n" + o.route()}}
		p.Commands = [][]string{restart(f, "systemd-resolved")}
	case NetworkManager:
		p.Files = []File{{Path: networkManagerFile, Text: header + o.dnsmasq()}}
		p.Commands = [][]string{{"nmcli", "general", "reload", "dns-full"}}
	case Dnsmasq:
		p.Files = []File{{Path: dnsmasqFile, Text: header + o.dnsmasq()}}
		p.Commands = [][]string{restart(f, "dnsmasq")}
	case MacOS:
		p.Files = o.mac()
		p.Commands = [][]string{{"dscacheutil", "-flushcache"}, {"killall", "-HUP", "mDNSResponder"}}
	case Hosts:
		p.Files = []File{{Path: hostsFile, Block: o.Daemon}}
	default:
		return Plan{}, fmt.Errorf("no method %q: there are %s", c.Method, words(Methods()))
	}
	return p, nil
}

var (
	zoneName = regexp.MustCompile(`^[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*$`)
	daemonID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
)

func (o Options) check(m Method) error {
	if m == Hosts {
		if !daemonID.MatchString(o.Daemon) {
			return fmt.Errorf("%q is no name of a daemon, whose block of %s it would be", o.Daemon, hostsFile)
		}
		return nil
	}
	if !o.Server.IsValid() || o.Server.Addr().IsUnspecified() || o.Server.Port() == 0 {
		return fmt.Errorf("%s is no address of a DNS server", o.Server)
	}
	if o.Server.Addr().Zone() != "" {
		return fmt.Errorf("%s is an address of one link only", o.Server)
	}
	if len(o.Zones) == 0 {
		return fmt.Errorf("there is no zone to answer")
	}
	for i, z := range o.Zones {
		if len(z) > 253 || !zoneName.MatchString(z) {
			return fmt.Errorf("%q is no zone: want a name as in svc or cluster.local, in lower case", z)
		}
		if slices.Contains(o.Zones[:i], z) {
			return fmt.Errorf("zone %s is named twice", z)
		}
	}
	return nil
}

// route is how systemd-resolved takes a server and the zones to ask it for; ~
// keeps it from searching in them.
func (o Options) route() string {
	return fmt.Sprintf("DNS=%s\nDomains=~%s\n", o.Server, strings.Join(o.Zones, " ~"))
}

// dnsmasq: it drops private addresses that come from a server, where it is told
// to stop rebinding, unless the zone may have them.
func (o Options) dnsmasq() string {
	var b strings.Builder
	for _, z := range o.Zones {
		fmt.Fprintf(&b, "server=/%s/%s#%d\nrebind-domain-ok=/%s/\n", z, o.Server.Addr(), o.Server.Port(), z)
	}
	return b.String()
}

func (o Options) mac() []File {
	var files []File
	for _, z := range o.Zones {
		files = append(files, File{
			Path: macFolder + z,
			Text: fmt.Sprintf("%snameserver %s\nport %d\n", header, o.Server.Addr(), o.Server.Port()),
		})
	}
	return files
}

func restart(f Facts, service string) []string {
	if f.Systemd {
		return []string{"systemctl", "restart", service + ".service"}
	}
	return []string{"service", service, "restart"}
}
