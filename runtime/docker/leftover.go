package docker

import (
	"os"
	"path/filepath"
	"strings"
)

// A pod's folders carry whose they are, since several daemons may share a run
// folder: in the first line of their resolv.conf, and in a file of its own where
// bound files are.
const ownerFile = "daemon"

// markOwner writes whose a pod's folder is, before anything else is in it.
func markOwner(dir, daemon string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, ownerFile), []byte(daemon+"\n"), 0o600)
}

// folderOwner is the daemon whose a pod's folder is; "" when nothing says so.
func folderOwner(dir string) string {
	if text, err := os.ReadFile(filepath.Join(dir, ownerFile)); err == nil {
		return strings.TrimSpace(string(text))
	}
	text, err := os.ReadFile(filepath.Join(dir, "resolv.conf"))
	if err != nil {
		return ""
	}
	conf, _ := parseResolvConf(text)
	return conf.daemon
}

// removeFolder removes a pod's folder, and its namespace's with the last one. What
// stays is written anew by the next pod of the name.
func removeFolder(dir string) {
	_ = os.RemoveAll(dir)
	_ = os.Remove(filepath.Dir(dir))
}

// sweepLeft removes the folders of ours whose pods have no container: it went
// while nobody looked, as while the daemon was down. Every container of ours must
// have been noted.
func (r *resolvers) sweepLeft() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.memory.mu.Lock()
	defer r.memory.mu.Unlock()
	for _, base := range append(r.memory.folders(), r.dir) {
		found, _ := filepath.Glob(filepath.Join(base, "*", "*")) // an error is of the pattern
		for _, dir := range found {
			key := podKey{filepath.Base(filepath.Dir(dir)), filepath.Base(dir)}
			if r.daemon != "" && !r.inUse(key) && folderOwner(dir) == r.daemon {
				removeFolder(dir)
			}
		}
	}
	r.memory.tidy()
}
