package main

import (
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stsd/stsd/daemon/api/apitest"
	"github.com/stsd/stsd/daemon/client"
)

// user is a machine below a folder on which dnsmasq runs.
func user(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{
		"etc/resolv.conf": "nameserver 127.0.0.1\n", "etc/hosts": "127.0.0.1 localhost\n",
		"proc/9/cmdline": "/usr/sbin/dnsmasq\x00-7\x00/etc/dnsmasq.d\x00",
	} {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func files(t *testing.T, root string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(root, func(name string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			out = append(out, strings.TrimPrefix(name, root))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestDNSInstallShowsThenDoesThenTakesBack(t *testing.T) {
	t.Parallel()
	c, root := against(t, apitest.World()), user(t)
	before := files(t, root)
	steps := "write /etc/dnsmasq.d/stsd.conf\n" +
		"  | # Made by \"stsd dns install\"; \"stsd dns uninstall\" takes it away.\n" +
		"  | server=/svc/127.0.0.1#5300\n  | rebind-domain-ok=/svc/\n" +
		"  | server=/cluster.local/127.0.0.1#5300\n  | rebind-domain-ok=/cluster.local/\n"
	why := "method dnsmasq: dnsmasq runs, reads /etc/dnsmasq.d, and /etc/resolv.conf names this machine\n" +
		"  not delegate: systemd-resolved does not run\n  not resolved: systemd-resolved does not run\n" +
		"  not networkmanager: no dnsmasq runs that reads /etc/NetworkManager/dnsmasq.d\n"
	tests := []struct {
		args           string
		code           int
		stdout, stderr string
		file           bool // is there afterwards
	}{
		{"install --dry-run", exitOK, why + steps, "", false},
		{"install", exitRefused, "", "stsd: dns install changes this machine: not confirmed; nothing was changed\n  try: stsd dns install --dry-run\n  try: stsd dns install --yes\n", false},
		{"install --yes", exitOK, why + steps, "installed for the system in " + root + "\nundo: stsd dns uninstall\n", true},
		{"install --yes", exitOK, why + "installed already\n", "", true},
		{"uninstall --dry-run", exitOK, "method dnsmasq: what is installed\nremove /etc/dnsmasq.d/stsd.conf\n", "", true},
		{"uninstall", exitRefused, "", "stsd: dns uninstall changes this machine: not confirmed; nothing was changed\n  try: stsd dns uninstall --dry-run\n  try: stsd dns uninstall --yes\n", true},
		{"uninstall --yes", exitOK, "method dnsmasq: what is installed\nremove /etc/dnsmasq.d/stsd.conf\n", "uninstalled: the resolver is as it was\n", false},
		{"uninstall --yes", exitOK, "nothing is installed\n", "", false},
	}
	for _, tt := range tests {
		got := c.run(append([]string{"dns", "--root", root}, strings.Fields(tt.args)...)...)
		if want := (ran{tt.code, tt.stdout, tt.stderr}); got != want {
			t.Errorf("dns %s:\n got %+v\nwant %+v", tt.args, got, want)
		}
		if there := slices.Contains(files(t, root), "/etc/dnsmasq.d/stsd.conf"); there != tt.file {
			t.Errorf("after dns %s the file is there: %v", tt.args, there)
		}
	}
	if after := files(t, root); !slices.Equal(after, before) {
		t.Errorf("left behind %v, before %v", after, before)
	}
}

func TestDNSInstallRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, args string
		code       int
		want       string
	}{
		{"an unknown method", "install --method bind", exitUsage, `no method "bind": there are macos, delegate`},
		{"a server without a port", "install --server 127.0.0.1", exitUsage, `--server "127.0.0.1": want ADDRESS:PORT`},
		{"a zone that is none", "install --zone a/b", exitUsage, `"a/b" is no zone`},
		{"arguments", "install svc", exitUsage, "dns install"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := against(t, apitest.World()).run(append([]string{"dns"}, append(strings.Fields(tt.args), "--root", user(t))...)...)
			if got.code != tt.code || !strings.Contains(got.stderr, tt.want) {
				t.Errorf("got %+v, want %d and …%s…", got, tt.code, tt.want)
			}
		})
	}
}

// A block of the hosts file needs a daemon that keeps it.
func TestDNSInstallOfAHostsBlock(t *testing.T) {
	t.Parallel()
	c, root := against(t, apitest.World()), user(t)
	got := c.run("dns", "install", "--root", root, "--method", "hosts", "--yes")
	text, err := os.ReadFile(filepath.Join(root, "etc/hosts"))
	if got.code != exitOK || err != nil || !strings.HasPrefix(string(text), "127.0.0.1 localhost\n# BEGIN stsd ") {
		t.Errorf("%+v, %v: hosts file %q", got, err, text)
	}
	c.env = []string{"STSD_HOST=unix://" + filepath.Join(root, "none.sock")}
	got = c.run("dns", "install", "--root", user(t), "--method", "hosts", "--yes")
	if got.code != exitUnreachable || !strings.Contains(got.stderr, "a block of the hosts file is the daemon's to keep: no daemon answers") {
		t.Errorf("without a daemon: %+v", got)
	}
}

func TestDNSStatus(t *testing.T) {
	t.Parallel()
	c, root := against(t, apitest.World()), user(t)
	status := func() hostStatus {
		t.Helper()
		got := c.run("dns", "status", "--root", root, "--server", "127.0.0.1:1", "-o", "json")
		var s hostStatus
		if err := json.Unmarshal([]byte(got.stdout), &s); err != nil || got.code != exitOK {
			t.Fatalf("%+v: %v", got, err)
		}
		return s
	}
	if s := status(); s.Installed || s.Method != "dnsmasq" || s.ServerAnswers || !strings.Contains(s.ServerError, "the daemon does not listen there") {
		t.Errorf("before install: %+v", s)
	}
	c.run("dns", "install", "--root", root, "--yes")
	if s := status(); !s.Installed || len(s.Files) != 1 || s.Files[0].State != "intact" || s.Server != "127.0.0.1:5300" {
		t.Errorf("after install: %+v", s)
	}
	if err := os.WriteFile(filepath.Join(root, "etc/dnsmasq.d/stsd.conf"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if s := status(); s.Files[0].State != "changed" {
		t.Errorf("after somebody wrote into it: %+v", s)
	}
}

func TestWhyNothingAnswers(t *testing.T) {
	t.Parallel()
	server := netip.MustParseAddrPort("127.0.0.1:53")
	tests := []struct {
		name string
		dns  []string
		want string
	}{
		{"the daemon could not listen", []string{"127.0.0.1:53: permission denied"}, "permission denied (a port below 1024 needs root or CAP_NET_BIND_SERVICE; 127.0.0.1:5300 does not)"},
		{"the daemon listens elsewhere", []string{"10.87.0.1:53"}, "no answer (the daemon does not listen there: see --dns-listen)"},
		{"the daemon listens", []string{"127.0.0.1:53"}, "no answer"},
	}
	for _, tt := range tests {
		if got := why(server, errNoAnswer{}, &client.Version{DNS: tt.dns}, nil); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	if got := why(server, errNoAnswer{}, nil, errNoAnswer{}); got != "no answer (no answer)" {
		t.Errorf("without a daemon: %q", got)
	}
}

type errNoAnswer struct{}

func (errNoAnswer) Error() string { return "no answer" }

func TestTheServerIsTheDaemonsLoopback(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		v    *client.Version
		want string
	}{
		{"no daemon", nil, defaultDNSListen},
		{"a daemon on gateways alone", &client.Version{DNS: []string{"10.87.0.1:53"}}, defaultDNSListen},
		{"a daemon on loopback", &client.Version{DNS: []string{"10.87.0.1:53", "127.0.0.2:53"}}, "127.0.0.2:53"},
		{"a daemon that cannot listen there", &client.Version{DNS: []string{"127.0.0.2:53: permission denied"}}, defaultDNSListen},
	}
	for _, tt := range tests {
		if got := hostView(tt.v); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}
