package hostdns

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tree is a system's root with these files.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, name, text, 0o644)
	}
	return root
}

func write(t *testing.T, name, text string, mode fs.FileMode) {
	t.Helper()
	if err := errors.Join(os.WriteFile(name, []byte(text), mode), os.Chmod(name, mode)); err != nil {
		t.Fatal(err)
	}
}

// picture is everything below a root: names, modes and texts.
func picture(t *testing.T, root string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s %s", strings.TrimPrefix(name, root), fi.Mode())
		if fi.Mode().IsRegular() {
			text, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, " %q", text)
		}
		b.WriteByte('\n')
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// machine is a Host that notes what is run.
type machine struct {
	Host
	ran  []string
	fail string // a command that fails
}

func newMachine(t *testing.T, files map[string]string) *machine {
	m := &machine{Host: Host{Root: tree(t, files)}}
	m.Run = func(_ context.Context, argv ...string) (string, error) {
		m.ran = append(m.ran, strings.Join(argv, " "))
		if m.fail != "" && strings.Contains(strings.Join(argv, " "), m.fail) {
			return "Unit not found.", errors.New("exit status 5")
		}
		return "", nil
	}
	return m
}

func plan(t *testing.T, m Method, zones ...string) Plan {
	t.Helper()
	p, err := NewPlan(Facts{Systemd: true}, Choice{Method: m}, Options{Server: server, Zones: zones, Daemon: "d1"})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (m *machine) install(t *testing.T, p Plan) {
	t.Helper()
	if err := Install(t.Context(), m.Host, p); err != nil {
		t.Fatal(err)
	}
}

func (m *machine) uninstall(t *testing.T) {
	t.Helper()
	if err := Uninstall(t.Context(), m.Host); err != nil {
		t.Fatal(err)
	}
}

// systems are what an installation may find, by what is special about them.
var systems = map[string]map[string]string{
	"an empty system": nil,
	"folders that are there": {
		"etc/systemd/resolved.conf.d/other.conf": "[Resolve]\nCache=no\n", "etc/dnsmasq.d/README": "", "etc/resolver/lan": "",
		"etc/systemd/dns-delegate.d/x": "", "etc/NetworkManager/dnsmasq.d/x": "", "var/lib/stsd/state.db": "x", "etc/hosts": "127.0.0.1 localhost\n",
	},
	"foreign files of the same names": {
		"etc/systemd/resolved.conf.d/stsd.conf": "[Resolve]\nCache=no\n", "etc/dnsmasq.d/stsd.conf": "no-hosts", "etc/resolver/svc": "nameserver 192.0.2.1\n",
		"etc/systemd/dns-delegate.d/stsd.dns-delegate": "", "etc/NetworkManager/dnsmasq.d/stsd.conf": "\x00\xff", "etc/hosts": "127.0.0.1 localhost",
	},
}

func TestUninstallRestoresToTheByte(t *testing.T) {
	t.Parallel()
	for name, files := range systems {
		for _, method := range Methods() {
			t.Run(fmt.Sprintf("%s on %s", method, name), func(t *testing.T) {
				t.Parallel()
				m := newMachine(t, files)
				before := picture(t, m.Root)
				p := plan(t, method, "svc", "cluster.local")
				m.install(t, p)
				for _, f := range p.Files {
					text := m.read(f.Path)
					if f.Block == "" && text != f.Text || f.Block != "" && !strings.Contains(text, beginMark+f.Block) {
						t.Errorf("%s holds %q", f.Path, text)
					}
				}
				if method == Hosts { // and the daemon fills it
					if _, err := KeepBlock(m.at(hostsFile), "d1", func() []string { return []string{"10.0.0.1\tweb-0.svc"} }); err != nil {
						t.Fatal(err)
					}
				}
				m.uninstall(t)
				if after := picture(t, m.Root); after != before {
					t.Errorf("after uninstall:\n%s\nbefore install:\n%s", after, before)
				}
				if n := 2 * len(p.Commands); len(m.ran) != n {
					t.Errorf("ran %q, want the commands once for install and once for uninstall", m.ran)
				}
			})
		}
	}
}

func TestInstallTwiceDoesNothing(t *testing.T) {
	t.Parallel()
	m := newMachine(t, nil)
	p := plan(t, Resolved, "svc")
	m.install(t, p)
	before := picture(t, m.Root)
	m.ran = nil
	steps, err := Installing(m.Host, p)
	if err != nil || steps != nil {
		t.Errorf("steps %v, %v, want none", steps, err)
	}
	m.install(t, p)
	if after := picture(t, m.Root); after != before || m.ran != nil {
		t.Errorf("ran %q and made\n%s\nof\n%s", m.ran, after, before)
	}
}

func TestInstallReplacesAnEarlierOne(t *testing.T) {
	t.Parallel()
	m := newMachine(t, systems["folders that are there"])
	before := picture(t, m.Root)
	m.install(t, plan(t, Resolved, "svc"))
	next := plan(t, Dnsmasq, "svc", "cluster.local")
	steps, err := Installing(m.Host, next)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"remove /etc/systemd/resolved.conf.d/stsd.conf", "run systemctl restart systemd-resolved.service",
		"write /etc/dnsmasq.d/stsd.conf", "run systemctl restart dnsmasq.service",
	}
	if got := sentences(steps); !slices.Equal(got, want) {
		t.Errorf("steps %q, want %q", got, want)
	}
	m.install(t, next)
	if m.exists(resolvedFile) || m.read(dnsmasqFile) != next.Files[0].Text {
		t.Errorf("both are installed:\n%s", picture(t, m.Root))
	}
	m.uninstall(t)
	if after := picture(t, m.Root); after != before {
		t.Errorf("after uninstall:\n%s\nbefore install:\n%s", after, before)
	}
}

func sentences(steps []Step) []string {
	var out []string
	for _, s := range steps {
		out = append(out, s.String())
	}
	return out
}

func TestAFailedRestartIsTakenBack(t *testing.T) {
	t.Parallel()
	m := newMachine(t, systems["foreign files of the same names"])
	before := picture(t, m.Root)
	m.fail = "systemd-resolved"
	err := Install(t.Context(), m.Host, plan(t, Resolved, "svc"))
	if want := "systemctl restart systemd-resolved.service: Unit not found.: exit status 5"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want …%s…", err, want)
	}
	if after := picture(t, m.Root); after != before {
		t.Errorf("left behind:\n%s\nbefore:\n%s", after, before)
	}
}

// Killed at any moment: what is on disk then can be taken back.
func TestAnInstallationCutShortIsTakenBack(t *testing.T) {
	t.Parallel()
	for name, files := range systems {
		for _, method := range []Method{MacOS, Hosts} {
			for done := range 3 {
				t.Run(fmt.Sprintf("%s on %s after %d files", method, name, done), func(t *testing.T) {
					t.Parallel()
					m := newMachine(t, files)
					before := picture(t, m.Root)
					p := plan(t, method, "svc", "cluster.local")
					r, err := m.prepare(p)
					if err != nil {
						t.Fatal(err)
					}
					for _, k := range r.Files[:min(done, len(r.Files))] {
						if err := m.write(k); err != nil {
							t.Fatal(err)
						}
					}
					if done < len(r.Files) {
						write(t, tempName(m.at(r.Files[done].Path)), "half a te", 0o600)
					}
					m.uninstall(t)
					if after := picture(t, m.Root); after != before {
						t.Errorf("after uninstall:\n%s\nbefore install:\n%s", after, before)
					}
				})
			}
		}
	}
}

func TestWhatOthersChangedIsLeftAlone(t *testing.T) {
	t.Parallel()
	m := newMachine(t, nil)
	m.install(t, plan(t, Resolved, "svc"))
	write(t, m.at(resolvedFile), "[Resolve]\nDNS=192.0.2.1\n", 0o644)
	before := picture(t, m.Root)
	for verb, do := range map[string]func() error{
		"uninstall": func() error { return Uninstall(t.Context(), m.Host) },
		"install":   func() error { return Install(t.Context(), m.Host, plan(t, Resolved, "svc", "cluster.local")) },
	} {
		if err := do(); err == nil || !strings.Contains(err.Error(), "was changed since it was installed") {
			t.Errorf("%s: error %v", verb, err)
		}
	}
	if after := picture(t, m.Root); after != before {
		t.Errorf("changed:\n%s\nbefore:\n%s", after, before)
	}
	if err := os.Remove(m.at(resolvedFile)); err != nil {
		t.Fatal(err)
	}
	m.uninstall(t)
	if r, err := Installed(m.Host); r != nil || err != nil {
		t.Errorf("still installed: %v, %v", r, err)
	}
}

func TestALinkIsNotTouched(t *testing.T) {
	t.Parallel()
	m := newMachine(t, map[string]string{"srv/hosts": "127.0.0.1 localhost\n", "etc/x": ""})
	if err := os.Symlink("../srv/hosts", m.at(hostsFile)); err != nil {
		t.Fatal(err)
	}
	before := picture(t, m.Root)
	err := Install(t.Context(), m.Host, plan(t, Hosts))
	if err == nil || !strings.HasSuffix(err.Error(), "/etc/hosts is a link: it is not touched") {
		t.Errorf("error %v", err)
	}
	if after := picture(t, m.Root); after != before {
		t.Errorf("changed:\n%s\nbefore:\n%s", after, before)
	}
}

func TestHostsBlockKeepsWhatOthersWroteAround(t *testing.T) {
	t.Parallel()
	m := newMachine(t, map[string]string{"etc/hosts": "127.0.0.1 localhost\n"})
	m.install(t, plan(t, Hosts))
	write(t, m.at(hostsFile), "192.0.2.1 printer\n"+m.read(hostsFile)+"192.0.2.2 scanner\n", 0o644)
	m.uninstall(t)
	if got, want := m.read(hostsFile), "192.0.2.1 printer\n127.0.0.1 localhost\n192.0.2.2 scanner\n"; got != want {
		t.Errorf("hosts %q, want %q", got, want)
	}
}

func TestStates(t *testing.T) {
	t.Parallel()
	m := newMachine(t, nil)
	m.install(t, plan(t, MacOS, "a", "b", "c"))
	if err := os.Remove(m.at(macFolder + "b")); err != nil {
		t.Fatal(err)
	}
	write(t, m.at(macFolder+"c"), "x", 0o644)
	r, err := Installed(m.Host)
	if err != nil {
		t.Fatal(err)
	}
	want := []FileState{{Path: "/etc/resolver/a", State: Intact}, {Path: "/etc/resolver/b", State: Missing}, {Path: "/etc/resolver/c", State: Changed}}
	if got := States(m.Host, r); !slices.Equal(got, want) {
		t.Errorf("states %v, want %v", got, want)
	}
}

func TestWithoutRunNothingIsRun(t *testing.T) {
	t.Parallel()
	m := newMachine(t, nil)
	quiet := Host{Root: m.Root}
	steps, err := Installing(quiet, plan(t, Resolved, "svc"))
	if want := []string{"write " + resolvedFile}; err != nil || !slices.Equal(sentences(steps), want) {
		t.Errorf("steps %q, %v, want %q", sentences(steps), err, want)
	}
	if err := Install(t.Context(), quiet, plan(t, Resolved, "svc")); err != nil || m.ran != nil {
		t.Errorf("ran %q, error %v", m.ran, err)
	}
}

func TestAReceiptThatCannotBeReadStopsEverything(t *testing.T) {
	t.Parallel()
	m := newMachine(t, map[string]string{receiptFile[1:]: "{"})
	for verb, err := range map[string]error{
		"install":   Install(t.Context(), m.Host, plan(t, Resolved, "svc")),
		"uninstall": Uninstall(t.Context(), m.Host),
	} {
		if err == nil || !strings.Contains(err.Error(), "dns-install.json: unexpected end") {
			t.Errorf("%s: error %v", verb, err)
		}
	}
}

func TestAliases(t *testing.T) {
	t.Parallel()
	wanted := addrs("127.87.0.10", "127.87.0.11", "10.87.0.12")
	got := Aliases("darwin", wanted, addrs("127.0.0.1", "127.87.0.10"))
	if len(got) != 1 || strings.Join(got[0], " ") != "sudo ifconfig lo0 alias 127.87.0.11 up" {
		t.Errorf("aliases %q", got)
	}
	if got := Aliases("linux", wanted, nil); got != nil {
		t.Errorf("aliases on Linux: %q", got)
	}
}
