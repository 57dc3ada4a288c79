package docker

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"

	"github.com/stsd/stsd/runtime"
)

// execFormat is what the kernel says of a program that is none for it.
const execFormat = "exec format error"

// aliens are the images here that were made for another platform than the
// engine's. Some run all the same, in an emulator.
type aliens struct {
	mu     sync.Mutex
	engine string // "linux/amd64"; empty: not asked yet
	images map[string]bool
}

func (a *aliens) any() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.images) > 0
}

func (a *aliens) has(id string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.images[id]
}

func (a *aliens) add(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.images == nil {
		a.images = map[string]bool{}
	}
	a.images[id] = true
}

// platform is the engine's, "linux/amd64"; "" where it does not say.
func (h *Host) platform(ctx context.Context) string {
	h.alien.mu.Lock()
	known := h.alien.engine
	h.alien.mu.Unlock()
	if known != "" {
		return known
	}
	v, err := h.cli().ServerVersion(ctx)
	if err != nil || v.Os == "" || v.Arch == "" {
		return ""
	}
	h.alien.mu.Lock()
	defer h.alien.mu.Unlock()
	h.alien.engine = v.Os + "/" + v.Arch
	return h.alien.engine
}

// noteAlien remembers an image for another platform.
func (h *Host) noteAlien(ctx context.Context, i *image.InspectResponse) {
	if engine := h.platform(ctx); engine != "" && i.Architecture != "" && engine != i.Os+"/"+i.Architecture {
		h.alien.add(i.ID)
	}
}

// alienTime is how long a program of another platform has to end at once.
const alienTime = time.Second

// startedHere makes sure of a container that was just started. One whose image is
// for another platform starts and ends at once on most engines, with a word in
// its output. Others cost nothing.
func (h *Host) startedHere(ctx context.Context, id string) error {
	if !h.alien.any() {
		return nil
	}
	c, err := h.cli().ContainerInspect(ctx, id)
	if err != nil || !h.alien.has(c.Image) {
		return nil // what the next look finds counts
	}
	soon, cancel := context.WithTimeout(ctx, alienTime)
	defer cancel()
	if h.waitEnded(soon, id) != nil || !contains(h.lastWords(ctx, &c), execFormat) {
		return nil
	}
	return h.wrongPlatform(ctx, &c)
}

// lastWords is the end of a container's output; "" where it cannot be read.
func (h *Host) lastWords(ctx context.Context, c *container.InspectResponse) string {
	stream, err := h.cli().ContainerLogs(ctx, c.ID, container.LogsOptions{ShowStdout: true, ShowStderr: true, Tail: "5"})
	if err != nil {
		return ""
	}
	defer stream.Close()
	var out tail
	_ = copyOutput(stream, c.Config.Tty, streams{stdout: &out, stderr: &out})
	return string(bytes.TrimSpace(out.b))
}

// explainCommand says in the spec's words why a process could not be started.
func (h *Host) explainCommand(ctx context.Context, id string, cause error) error {
	text := cause.Error()
	if contains(text, execFormat) {
		if c, err := h.cli().ContainerInspect(ctx, id); err == nil {
			if wrong := h.wrongPlatform(ctx, &c); wrong != nil {
				return wrong
			}
		}
	}
	return problem(runtime.ReasonBadCommand, nil, "%s", commandSentence(text))
}

// wrongPlatform is nil where the image is for the engine's platform.
func (h *Host) wrongPlatform(ctx context.Context, c *container.InspectResponse) error {
	found, err := h.cli().ImageInspect(ctx, c.Image)
	if err != nil {
		return nil
	}
	engine, made := h.platform(ctx), imageOf(&found).Platform
	if engine == "" || made == engine || strings.HasPrefix(made, engine+"/") {
		return nil
	}
	return problem(runtime.ReasonWrongPlatform, nil, "image %s is for %s, this engine is %s", c.Config.Image, made, engine)
}
