package hostdns

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"io/fs"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Host is the machine to be told. Its zero value is this one, with nothing run
// on it.
type Host struct {
	// Root is the folder that all paths are below. Default "/".
	Root string
	// Run runs a command. Nil: no command is run, neither to look nor to act.
	Run func(ctx context.Context, argv ...string) (output string, err error)
}

// Command is a Run for this machine.
func Command(ctx context.Context, argv ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// commandTime is how long a restart of a resolver may take.
const commandTime = 30 * time.Second

func (h Host) at(name string) string { return filepath.Join(cmp.Or(h.Root, "/"), name) }

// Facts are what the choice of a method stands on.
type Facts struct {
	OS string // as runtime.GOOS says it

	Nameservers []netip.Addr // that programs ask: those of /etc/resolv.conf
	Systemd     bool         // systemd runs the services

	Resolved        bool   // systemd-resolved runs
	ResolvedVersion int    // 0: not known
	ResolvedServers string // the file in which somebody else gave it servers for all links; empty: none
	ResolvedLinks   bool   // a link has servers of its own

	DnsmasqFolders []string // that running dnsmasqs read
}

// Look reads the facts. What cannot be read is as if it were not there.
func Look(ctx context.Context, h Host, goos string) Facts {
	f := Facts{
		OS:          goos,
		Nameservers: nameservers(h.read("/etc/resolv.conf")),
		Systemd:     h.exists("/run/systemd/system"),
	}
	for _, argv := range h.processes() {
		switch path.Base(argv[0]) {
		case "systemd-resolved":
			f.Resolved = true
		case "dnsmasq":
			f.DnsmasqFolders = append(f.DnsmasqFolders, dnsmasqFolders(argv[1:], h.read)...)
		}
	}
	if f.Resolved {
		f.ResolvedVersion = h.resolvedVersion(ctx)
		f.ResolvedServers = h.resolvedServers()
		f.ResolvedLinks = h.resolvedLinks()
	}
	return f
}

func (h Host) read(name string) string {
	text, _ := os.ReadFile(h.at(name)) // as promised by Look
	return string(text)
}

func (h Host) exists(name string) bool {
	_, err := os.Stat(h.at(name))
	return err == nil
}

// list is the names in a folder.
func (h Host) list(folder string) []string {
	entries, _ := os.ReadDir(h.at(folder))
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names
}

// nameservers of a resolv.conf.
func nameservers(text string) []netip.Addr {
	var out []netip.Addr
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) < 2 || words[0] != "nameserver" {
			continue
		}
		if a, err := netip.ParseAddr(words[1]); err == nil {
			out = append(out, a)
		}
	}
	return out
}

// processes are the command lines of all that run.
func (h Host) processes() [][]string {
	var out [][]string
	for _, pid := range h.list("/proc") {
		if _, err := strconv.Atoi(pid); err != nil {
			continue
		}
		line := strings.TrimRight(h.read("/proc/"+pid+"/cmdline"), "\x00")
		if line != "" {
			out = append(out, strings.Split(line, "\x00"))
		}
	}
	return out
}

var systemdVersion = regexp.MustCompile(`^systemd (\d+)`)

func (h Host) resolvedVersion(ctx context.Context) int {
	if h.Run == nil {
		return 0
	}
	said, _ := h.Run(ctx, "resolvectl", "--version") // absent: not known
	m := systemdVersion.FindStringSubmatch(said)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1]) // too large for an int: not known
	return n
}

// resolvedServers is the file that gives systemd-resolved servers for all links,
// other than ours. Later files win, and an empty DNS= forgets earlier ones.
func (h Host) resolvedServers() string {
	found := ""
	for _, name := range h.resolvedFiles() {
		for _, value := range settings(h.read(name), "Resolve", "DNS") {
			found = name
			if value == "" {
				found = ""
			}
		}
	}
	return found
}

// resolvedFiles are its configuration in the order in which it is read: the main
// file, then drop-ins by name, of which one of the same name hides those further
// down in the list of folders.
func (h Host) resolvedFiles() []string {
	var files []string
	folders := []string{"/etc/systemd", "/run/systemd", "/usr/local/lib/systemd", "/usr/lib/systemd"}
	for _, folder := range folders {
		if h.exists(folder + "/resolved.conf") {
			files = append(files, folder+"/resolved.conf")
			break
		}
	}
	dropIns := map[string]string{}
	for _, folder := range slices.Backward(folders) {
		for _, name := range h.list(folder + "/resolved.conf.d") {
			if path.Ext(name) == ".conf" {
				dropIns[name] = folder + "/resolved.conf.d/" + name
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(dropIns)) {
		if dropIns[name] != resolvedFile {
			files = append(files, dropIns[name])
		}
	}
	return files
}

// resolvedLinks: systemd-resolved keeps what it was told of a link in the one
// folder, systemd-networkd in the other.
func (h Host) resolvedLinks() bool {
	for folder, key := range map[string]string{"/run/systemd/resolve/netif": "SERVERS", "/run/systemd/netif/links": "DNS"} {
		for _, link := range h.list(folder) {
			if slices.ContainsFunc(settings(h.read(folder+"/"+link), "", key), func(v string) bool { return v != "" }) {
				return true
			}
		}
	}
	return false
}

// settings are the values of a key in a section of an ini file; "" is what stands
// before the first section.
func settings(text, section, key string) []string {
	var out []string
	in := ""
	lines := bufio.NewScanner(bytes.NewReader([]byte(text)))
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if name, ok := strings.CutPrefix(line, "["); ok {
			in = strings.TrimSuffix(name, "]")
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if ok && in == section && strings.TrimSpace(name) == key {
			out = append(out, strings.TrimSpace(value))
		}
	}
	return out
}

// dnsmasqFolders are the folders of configuration that a dnsmasq reads, from its
// arguments and its main file.
func dnsmasqFolders(args []string, read func(string) string) []string {
	var out []string
	file := "/etc/dnsmasq.conf"
	for i, arg := range args {
		next := ""
		if i+1 < len(args) {
			next = args[i+1]
		}
		if v, ok := option(arg, next, "-C", "--conf-file"); ok {
			file = v
		}
		if v, ok := option(arg, next, "-7", "--conf-dir"); ok {
			out = append(out, folder(v))
		}
	}
	for line := range strings.Lines(read(file)) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "conf-dir="); ok {
			out = append(out, folder(v))
		}
	}
	return out
}

// folder of a conf-dir, which may be followed by what it leaves out.
func folder(confDir string) string {
	name, _, _ := strings.Cut(confDir, ",")
	return path.Clean(name)
}

// option is the value of one option in any of the ways in which getopt takes it.
func option(arg, next, short, long string) (string, bool) {
	switch {
	case arg == short, arg == long:
		return next, true
	case strings.HasPrefix(arg, long+"="):
		return arg[len(long)+1:], true
	case strings.HasPrefix(arg, short):
		return arg[len(short):], true
	}
	return "", false
}

// kindOf is what stands at a path that is ours to write: nothing, or a plain file.
func kindOf(fi fs.FileInfo) string {
	switch {
	case fi.Mode()&fs.ModeSymlink != 0:
		return "a link"
	case fi.IsDir():
		return "a folder"
	}
	return "no plain file"
}
