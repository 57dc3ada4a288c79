package hostdns

import (
	"context"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func addrs(texts ...string) []netip.Addr {
	var out []netip.Addr
	for _, t := range texts {
		out = append(out, netip.MustParseAddr(t))
	}
	return out
}

func TestChoose(t *testing.T) {
	t.Parallel()
	resolved := Facts{OS: "linux", Nameservers: addrs("127.0.0.53"), Systemd: true, Resolved: true, ResolvedVersion: 252, ResolvedLinks: true}
	with := func(change func(*Facts)) Facts {
		f := resolved
		change(&f)
		return f
	}
	tests := []struct {
		name   string
		facts  Facts
		wanted Method
		want   Method
		why    string // a part of the reason
		not    string // a part of why another was passed over
	}{
		{"systemd-resolved at the stub takes a drop-in", resolved, "", Resolved, "/etc/resolv.conf names it", "systemd 252 cannot give a zone servers"},
		{"from 258 zones have servers of their own", with(func(f *Facts) { f.ResolvedVersion = 258 }), "", Delegate, "version 258", ""},
		{"an unknown version takes a drop-in", with(func(f *Facts) { f.ResolvedVersion = 0 }), "", Resolved, "", "not known"},
		{"programs that ask other servers are not helped by systemd-resolved", with(func(f *Facts) { f.Nameservers = addrs("192.0.2.1") }), "", Hosts, "", "programs do not ask it"},
		{"servers that a person set for all links would be asked for members", with(func(f *Facts) { f.ResolvedServers = "/etc/systemd/resolved.conf" }), "", Hosts, "", "resolved: /etc/systemd/resolved.conf gives"},
		{"with a delegate they are not", with(func(f *Facts) { f.ResolvedServers, f.ResolvedVersion = "/etc/systemd/resolved.conf", 259 }), "", Delegate, "", ""},
		{"without servers of a link the built-in ones would be lost", with(func(f *Facts) { f.ResolvedLinks = false }), "", Hosts, "", "nobody left"},
		{"dnsmasq of NetworkManager", Facts{OS: "linux", Nameservers: addrs("127.0.0.1"), DnsmasqFolders: []string{"/etc/NetworkManager/dnsmasq.d"}}, "", NetworkManager, "NetworkManager's dnsmasq runs", "systemd-resolved does not run"},
		{"dnsmasq alone", Facts{OS: "linux", Nameservers: addrs("::1"), DnsmasqFolders: []string{"/etc/dnsmasq.d"}}, "", Dnsmasq, "dnsmasq runs, reads /etc/dnsmasq.d", ""},
		{"dnsmasq for virtual machines is nobody's resolver", Facts{OS: "linux", Nameservers: addrs("192.0.2.1"), DnsmasqFolders: []string{"/etc/dnsmasq.d"}}, "", Hosts, "", "names no server of this machine"},
		{"dnsmasq that reads no folder", Facts{OS: "linux", Nameservers: addrs("127.0.0.1"), DnsmasqFolders: []string{"/srv/dnsmasq"}}, "", Hosts, "", "no dnsmasq runs that reads /etc/dnsmasq.d"},
		{"macOS", Facts{OS: "darwin", Nameservers: addrs("192.0.2.1")}, "", MacOS, "/etc/resolver", ""},
		{"nothing but a resolv.conf", Facts{OS: "linux", Nameservers: addrs("192.0.2.1")}, "", Hosts, "every program reads the hosts file", "systemd-resolved does not run"},
		{"the hosts file by choice", resolved, Hosts, Hosts, "every program", ""},
		{"dnsmasq by choice, though none runs", resolved, Dnsmasq, Dnsmasq, "asked for", "no dnsmasq runs"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := Choose(tt.facts, tt.wanted)
			if err != nil {
				t.Fatal(err)
			}
			if got.Method != tt.want || !strings.Contains(got.Why, tt.why) {
				t.Errorf("chose %s because %q, want %s because …%q…", got.Method, got.Why, tt.want, tt.why)
			}
			if !strings.Contains(strings.Join(got.Not, "\n"), tt.not) {
				t.Errorf("passed over %q, want …%q…", got.Not, tt.not)
			}
		})
	}
}

func TestChooseRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, system string
		wanted       Method
		want         string
	}{
		{"Windows", "windows", "", "the resolver of windows cannot be told by stsd"},
		{"the hosts file of Windows", "windows", Hosts, "there is no method hosts on windows"},
		{"the method of another system", "linux", MacOS, "there is no method macos on linux"},
		{"an unknown method", "linux", "bind", `no method "bind": there are macos, delegate, resolved, networkmanager, dnsmasq, hosts`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if _, err := Choose(Facts{OS: tt.system}, tt.wanted); err == nil || err.Error() != tt.want {
				t.Errorf("error %v, want %s", err, tt.want)
			}
		})
	}
}

func TestLook(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		files map[string]string
		said  string // by resolvectl --version
		want  Facts
	}{
		{"an empty system", nil, "", Facts{OS: "linux"}},
		{"a resolv.conf as people write it", map[string]string{
			"etc/resolv.conf": "# nameserver 192.0.2.9\nsearch lan\nnameserver\t192.0.2.1 \nnameserver fe80::1%eth0\nnameserver nonsense\nnameserver\n",
		}, "", Facts{OS: "linux", Nameservers: addrs("192.0.2.1", "fe80::1%eth0")}},
		{"systemd-resolved with links of NetworkManager", map[string]string{
			"etc/resolv.conf":               "nameserver 127.0.0.53\n",
			"run/systemd/system/x":          "",
			"proc/71/cmdline":               "/lib/systemd/systemd-resolved\x00",
			"proc/self/cmdline":             "/usr/sbin/dnsmasq\x00",
			"run/systemd/resolve/netif/2":   "# state\nSERVERS=192.0.2.1\n",
			"etc/systemd/resolved.conf":     "[Resolve]\n#DNS=192.0.2.7\nDNSSEC=no\n",
			resolvedFile[1:]:                "[Resolve]\nDNS=127.0.0.1:5300\n",
			"run/systemd/netif/links/3":     "DNS=\n",
			"etc/systemd/resolved.conf.d/x": "[Resolve]\nDNS=192.0.2.8\n",
		}, "systemd 252 (252.39-1~deb12u1)\n+PAM", Facts{OS: "linux", Nameservers: addrs("127.0.0.53"), Systemd: true, Resolved: true, ResolvedVersion: 252, ResolvedLinks: true}},
		{"a person gave it servers", map[string]string{
			"proc/71/cmdline":           "/usr/lib/systemd/systemd-resolved\x00",
			"etc/systemd/resolved.conf": "[Resolve]\nDNS = 192.0.2.7\n",
		}, "", Facts{OS: "linux", Resolved: true, ResolvedServers: "/etc/systemd/resolved.conf"}},
		{"a drop-in takes them away", map[string]string{
			"proc/71/cmdline":                        "systemd-resolved\x00",
			"etc/systemd/resolved.conf":              "[Resolve]\nDNS=192.0.2.7\n",
			"usr/lib/systemd/resolved.conf.d/a.conf": "[Resolve]\nDNS=\n",
		}, "", Facts{OS: "linux", Resolved: true}},
		{"a drop-in hides another of its name", map[string]string{
			"proc/71/cmdline":                        "systemd-resolved\x00",
			"etc/systemd/resolved.conf.d/a.conf":     "[Resolve]\nCache=no\n",
			"usr/lib/systemd/resolved.conf.d/a.conf": "[Resolve]\nDNS=192.0.2.7\n",
		}, "", Facts{OS: "linux", Resolved: true}},
		{"dnsmasq as Debian starts it", map[string]string{
			"proc/9/cmdline": "/usr/sbin/dnsmasq\x00-x\x00/run/dnsmasq/dnsmasq.pid\x00-7\x00/etc/dnsmasq.d,.dpkg-dist,.dpkg-old\x00--local-service\x00",
		}, "", Facts{OS: "linux", DnsmasqFolders: []string{"/etc/dnsmasq.d"}}},
		{"dnsmasq as NetworkManager starts it", map[string]string{
			"proc/9/cmdline": "dnsmasq\x00--no-resolv\x00--conf-file=/dev/null\x00--conf-dir=/etc/NetworkManager/dnsmasq.d\x00",
		}, "", Facts{OS: "linux", DnsmasqFolders: []string{"/etc/NetworkManager/dnsmasq.d"}}},
		{"dnsmasq with a folder in its file", map[string]string{
			"proc/9/cmdline":   "/usr/sbin/dnsmasq\x00-k\x00",
			"etc/dnsmasq.conf": "#conf-dir=/etc/other\nconf-dir=/etc/dnsmasq.d/,*.conf\n",
		}, "", Facts{OS: "linux", DnsmasqFolders: []string{"/etc/dnsmasq.d"}}},
		{"dnsmasq of virtual machines", map[string]string{
			"proc/9/cmdline":   "/usr/sbin/dnsmasq\x00-C/var/lib/libvirt/default.conf\x00",
			"etc/dnsmasq.conf": "conf-dir=/etc/dnsmasq.d\n",
		}, "", Facts{OS: "linux"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := Host{Root: tree(t, tt.files), Run: func(_ context.Context, argv ...string) (string, error) {
				if want := []string{"resolvectl", "--version"}; !slices.Equal(argv, want) {
					t.Errorf("ran %q", argv)
				}
				return tt.said, nil
			}}
			if got := Look(t.Context(), h, "linux"); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("facts:\n got %+v\nwant %+v", got, tt.want)
			}
		})
	}
}

var server = netip.MustParseAddrPort("127.0.0.1:5300")

func TestNewPlan(t *testing.T) {
	t.Parallel()
	o := Options{Server: server, Zones: []string{"svc", "cluster.local"}, Daemon: "d1"}
	six := Options{Server: netip.MustParseAddrPort("[::1]:53"), Zones: []string{"svc"}}
	tests := []struct {
		name     string
		method   Method
		options  Options
		systemd  bool
		files    []File
		commands [][]string
	}{
		{"systemd-resolved", Resolved, o, true,
			[]File{{Path: "/etc/systemd/resolved.conf.d/stsd.conf", Text: header + "[Resolve]\nDNS=127.0.0.1:5300\nDomains=~svc ~cluster.local\n"}},
			[][]string{{"systemctl", "restart", "systemd-resolved.service"}}},
		{"a delegate, over IPv6", Delegate, six, true,
			[]File{{Path: "/etc/systemd/dns-delegate.d/stsd.dns-delegate", Text: header + "[Delegate]\nDNS=[::1]:53\nDomains=~svc\n"}},
			[][]string{{"systemctl", "restart", "systemd-resolved.service"}}},
		{"NetworkManager", NetworkManager, o, true,
			[]File{{Path: "/etc/NetworkManager/dnsmasq.d/stsd.conf", Text: header + "server=/svc/127.0.0.1#5300\nrebind-domain-ok=/svc/\nserver=/cluster.local/127.0.0.1#5300\nrebind-domain-ok=/cluster.local/\n"}},
			[][]string{{"nmcli", "general", "reload", "dns-full"}}},
		{"dnsmasq without systemd, over IPv6", Dnsmasq, six, false,
			[]File{{Path: "/etc/dnsmasq.d/stsd.conf", Text: header + "server=/svc/::1#53\nrebind-domain-ok=/svc/\n"}},
			[][]string{{"service", "dnsmasq", "restart"}}},
		{"macOS", MacOS, o, false,
			[]File{
				{Path: "/etc/resolver/svc", Text: header + "nameserver 127.0.0.1\nport 5300\n"},
				{Path: "/etc/resolver/cluster.local", Text: header + "nameserver 127.0.0.1\nport 5300\n"},
			},
			[][]string{{"dscacheutil", "-flushcache"}, {"killall", "-HUP", "mDNSResponder"}}},
		{"the hosts file", Hosts, o, true, []File{{Path: "/etc/hosts", Block: "d1"}}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := NewPlan(Facts{Systemd: tt.systemd}, Choice{Method: tt.method}, tt.options)
			if err != nil {
				t.Fatal(err)
			}
			want := Plan{Choice: Choice{Method: tt.method}, Options: tt.options, Files: tt.files, Commands: tt.commands}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("plan:\n got %+v\nwant %+v", got, want)
			}
		})
	}
}

func TestNewPlanRefuses(t *testing.T) {
	t.Parallel()
	zones := func(z ...string) Options { return Options{Server: server, Zones: z} }
	tests := []struct {
		name    string
		method  Method
		options Options
		want    string
	}{
		{"no zone", Resolved, zones(), "there is no zone to answer"},
		{"the root", Resolved, zones("."), `"." is no zone`},
		{"everything", Dnsmasq, zones("#"), `"#" is no zone`},
		{"a zone that writes a line of its own", Dnsmasq, zones("svc/\nserver=192.0.2.1"), "is no zone"},
		{"a path", MacOS, zones("../hosts"), "is no zone"},
		{"a zone twice", MacOS, zones("svc", "svc"), "zone svc is named twice"},
		{"upper case", Resolved, zones("SVC"), "in lower case"},
		{"no server", Resolved, Options{Zones: []string{"svc"}}, "is no address of a DNS server"},
		{"every address", Resolved, Options{Server: netip.MustParseAddrPort("0.0.0.0:53"), Zones: []string{"svc"}}, "0.0.0.0:53 is no address of a DNS server"},
		{"an address of one link", Resolved, Options{Server: netip.MustParseAddrPort("[fe80::1%eth0]:53"), Zones: []string{"svc"}}, "of one link only"},
		{"no daemon", Hosts, Options{}, `"" is no name of a daemon`},
		{"a daemon that writes a line of its own", Hosts, Options{Daemon: "a\n192.0.2.1 x"}, "is no name of a daemon"},
		{"no method", "", zones("svc"), `no method ""`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := NewPlan(Facts{}, Choice{Method: tt.method}, tt.options)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want …%s…", err, tt.want)
			}
		})
	}
}
