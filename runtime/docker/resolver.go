package docker

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/stsd/stsd/jobspecs"
)

// engineResolver is where the engine answers inside every container on a network
// of its own, even one whose resolv.conf is not the engine's.
const engineResolver = "127.0.0.11"

// podKey names a pod's folder.
type podKey struct{ namespace, pod string }

// resolvConf is what one member's resolv.conf says, and to whom it belongs.
type resolvConf struct {
	daemon  string
	gateway netip.Addr
	search  []string
}

// text is a resolv.conf as a kubelet writes it while our DNS answers at the
// gateway (up), else one that asks the engine, where the network aliases answer.
// They answer every short form as it is written; ndots:5 would first send each of
// them, lengthened, to the host's servers, which costs 5 s apiece without a net.
func (c resolvConf) text(up bool) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# stsd %s gateway %s\n", c.daemon, c.gateway)
	if len(c.search) > 0 {
		fmt.Fprintf(&b, "search %s\n", strings.Join(c.search, " "))
	}
	if up {
		fmt.Fprintf(&b, "nameserver %s\noptions ndots:5\n", c.gateway)
		return b.Bytes()
	}
	fmt.Fprintf(&b, "nameserver %s\noptions ndots:1\n", engineResolver)
	return b.Bytes()
}

// parseResolvConf reads text back; ok is false when we did not write it.
func parseResolvConf(text []byte) (c resolvConf, ok bool) {
	first, rest, _ := strings.Cut(string(text), "\n")
	f := strings.Fields(first)
	if len(f) != 5 || f[0] != "#" || f[1] != "stsd" || f[3] != "gateway" {
		return c, false
	}
	gateway, err := netip.ParseAddr(f[4])
	if err != nil {
		return c, false
	}
	c = resolvConf{daemon: f[2], gateway: gateway}
	for line := range strings.Lines(rest) {
		if w := strings.Fields(line); len(w) > 1 && w[0] == "search" {
			c.search = w[1:]
		}
	}
	return c, true
}

// resolvers keeps the members' resolv.conf and knows which containers need them.
type resolvers struct {
	dir    string // RunDir/pods
	daemon string
	memory memory

	mu    sync.Mutex
	up    map[string]bool   // namespace → our DNS answers there
	users map[string]podKey // container id → its pod
	busy  map[podKey]int    // pods whose container is being made

	looks int             // under way: what they found may be gone before they note it
	gone  map[string]bool // containers that went during them
}

func (r *resolvers) init(runDir, daemon string) {
	r.dir = filepath.Join(runDir, "pods")
	r.daemon = daemon
	r.memory.run, r.memory.shm = runDir, "/dev/shm"
	r.up = map[string]bool{}
	r.users = map[string]podKey{}
	r.busy = map[podKey]int{}
	r.gone = map[string]bool{}
}

// look says that containers are looked for, or made, and noted after that; done
// must follow. One that went in between is not noted: it would hold its pod's
// folder for ever.
func (r *resolvers) look() (done func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.looks++
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.looks--; r.looks == 0 {
			clear(r.gone)
		}
	}
}

// SetResolver says in which namespaces our DNS answers at the gateway. The
// members' files follow at once, in place: a running container sees it at its next
// look-up. Namespaces that are not named have the engine's resolver.
func (h *Host) SetResolver(up map[string]bool) error {
	return h.resolvers.set(up)
}

func (r *resolvers) set(up map[string]bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.up = map[string]bool{}
	for ns, ok := range up {
		r.up[ns] = ok
	}
	files, err := filepath.Glob(filepath.Join(r.dir, "*", "*", "resolv.conf"))
	if err != nil {
		return fmt.Errorf("find resolv.conf files: %w", err)
	}
	var errs []error
	for _, path := range files {
		ns := filepath.Base(filepath.Dir(filepath.Dir(path)))
		errs = append(errs, r.rewrite(path, r.up[ns]))
	}
	return errors.Join(errs...)
}

func (r *resolvers) rewrite(path string, up bool) error {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read resolv.conf: %w", err)
	}
	conf, ok := parseResolvConf(text)
	if !ok || conf.daemon != r.daemon {
		return nil
	}
	return writeInPlace(path, conf.text(up))
}

// begin writes the file of a pod whose container is about to be made and returns
// its path; end must follow.
func (r *resolvers) begin(pod *jobspecs.PodSpec) (path string, err error) {
	key := podKey{pod.Set.Namespace, pod.Name}
	r.mu.Lock()
	defer r.mu.Unlock()
	dir := r.folder(key)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("make the pod's folder: %w", err)
	}
	path = filepath.Join(dir, "resolv.conf")
	conf := resolvConf{daemon: r.daemon, gateway: pod.Gateway, search: pod.Search}
	if err := writeInPlace(path, conf.text(r.up[key.namespace])); err != nil {
		return "", err
	}
	r.busy[key]++
	return path, nil
}

// end says that the container was made; an empty id, that it was not.
func (r *resolvers) end(pod *jobspecs.PodSpec, id string) {
	key := podKey{pod.Set.Namespace, pod.Name}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.busy[key]--; r.busy[key] <= 0 {
		delete(r.busy, key)
	}
	if id != "" && !r.gone[id] {
		r.users[id] = key
		return
	}
	r.sweep(key)
}

// use notes a container that was found.
func (r *resolvers) use(id string, labels map[string]string) {
	key, ok := podOf(labels)
	if !ok {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.gone[id] {
		r.users[id] = key
	}
}

// pod is whose container it is, as far as it was noted.
func (r *resolvers) pod(id string) (_ podKey, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key, ok := r.users[id]
	return key, ok
}

// podOf reads whose container it is. Labels that are no names, and would lead out
// of our folder, are nobody's.
func podOf(labels map[string]string) (_ podKey, ok bool) {
	ns, set := labels[jobspecs.LabelNamespace], labels[jobspecs.LabelSet]
	ordinal, err := strconv.Atoi(labels[jobspecs.LabelOrdinal])
	if err != nil || !jobspecs.IsLabel(ns) || !jobspecs.IsLabel(set) {
		return podKey{}, false
	}
	return podKey{ns, jobspecs.MemberName(set, ordinal)}, true
}

// ids are the containers that are noted now.
func (r *resolvers) ids() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]string, 0, len(r.users))
	for id := range r.users {
		list = append(list, id)
	}
	return list
}

// drop says that containers are gone; with the last one of a pod its folder goes.
func (r *resolvers) drop(ids ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range ids {
		if r.looks > 0 {
			r.gone[id] = true
		}
		key, ok := r.users[id]
		if !ok {
			continue
		}
		delete(r.users, id)
		r.sweep(key)
	}
}

func (r *resolvers) sweep(key podKey) {
	if r.inUse(key) {
		return
	}
	removeFolder(r.folder(key))
	r.memory.sweep(key)
}

// inUse tells whether a container of the pod is there, or being made.
func (r *resolvers) inUse(key podKey) bool {
	if r.busy[key] > 0 {
		return true
	}
	for _, used := range r.users {
		if used == key {
			return true
		}
	}
	return false
}

func (r *resolvers) folder(key podKey) string {
	return filepath.Join(r.dir, key.namespace, key.pod)
}

// writeInPlace changes a file that containers have bound: the same inode, and no
// moment at which a reader finds it empty or half of it missing. What an older,
// longer text leaves is blanked in the same write and cut off after it.
func writeInPlace(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("write resolv.conf: %w", err)
	}
	defer f.Close()
	stat, err := f.Stat()
	if err != nil {
		return fmt.Errorf("write resolv.conf: %w", err)
	}
	padded := text
	if n := int(stat.Size()) - len(text); n > 0 {
		padded = append(bytes.Clone(text), bytes.Repeat([]byte("\n"), n)...)
	}
	if _, err := f.WriteAt(padded, 0); err != nil {
		return fmt.Errorf("write resolv.conf: %w", err)
	}
	if err := f.Truncate(int64(len(text))); err != nil {
		return fmt.Errorf("write resolv.conf: %w", err)
	}
	return f.Chmod(0o644) // whatever our umask is: members run as anybody
}
