package docker

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// markPostStarted remembers that the post_start hook of one run of a container
// succeeded: in a file of its pod's folder, which lives as long as the container
// or until the host starts again; without such a folder, as long as we do.
func (h *Host) markPostStarted(id string, run time.Time) error {
	h.started.Store(id, run)
	dir := h.startedFolder(id)
	if dir == "" {
		return nil
	}
	if err := h.markFolder(dir); err != nil {
		return fmt.Errorf("remember the post_start hook: %w", err)
	}
	name := filepath.Join(dir, id)
	if err := os.WriteFile(name+".new", []byte(run.UTC().Format(time.RFC3339Nano)), 0o600); err != nil {
		return fmt.Errorf("remember the post_start hook: %w", errors.Join(err, os.Remove(name+".new")))
	}
	return os.Rename(name+".new", name)
}

// markFolder makes the folder of a pod's marks.
func (h *Host) markFolder(dir string) error {
	return errors.Join(markOwner(filepath.Dir(dir), h.cfg.Daemon), os.MkdirAll(dir, 0o755))
}

// postStarted tells whether that run's hook is known to have succeeded.
func (h *Host) postStarted(id string, run time.Time) bool {
	if run.IsZero() {
		return false
	}
	if at, ok := h.started.Load(id); ok && at.(time.Time).Equal(run) {
		return true
	}
	dir := h.startedFolder(id)
	if dir == "" {
		return false
	}
	text, err := os.ReadFile(filepath.Join(dir, id))
	if err != nil {
		return false
	}
	at, err := time.Parse(time.RFC3339Nano, string(text))
	return err == nil && at.Equal(run)
}

// forgetContainers drops all that is known of containers that are gone; with the
// last one of a pod its folder goes.
func (h *Host) forgetContainers(ids ...string) {
	for _, id := range ids {
		h.started.Delete(id)
		h.folders.Delete(id)
		if dir := h.startedFolder(id); dir != "" {
			marks, _ := filepath.Glob(filepath.Join(dir, id+"*"))
			for _, mark := range marks {
				_ = os.Remove(mark) // one that stays goes with the pod's folder
			}
		}
	}
	h.resolvers.drop(ids...)
}

// startedFolder is where the marks of a container's pod are; "" when there is no
// folder that outlives us, or the container is nobody's.
func (h *Host) startedFolder(id string) string {
	if h.remote {
		return ""
	}
	key, ok := h.resolvers.pod(id)
	if !ok {
		return ""
	}
	return filepath.Join(h.resolvers.folder(key), "started")
}
