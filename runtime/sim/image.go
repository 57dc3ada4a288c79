package sim

import (
	"cmp"
	"context"
	"fmt"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/runtime/pods"
)

// platform is the host's.
const platform = "linux/amd64"

// SandboxImage is the name of the image of sandboxes. RemoveImage prunes it, and
// Program gives it another program than one that waits for its end.
const SandboxImage = "stsd/sandbox:1"

// image is one name in the local store or the registry.
type image struct {
	id      string
	program Program
	local   bool
	version int
	runs    map[string]int // starts so far, by the container's name
}

// Program registers an image, and moves its name when it has one already.
func (w *World) Program(ref string, p Program) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.register(ref, p)
}

func (w *World) register(ref string, p Program) *image {
	version := 1
	if old := w.images[ref]; old != nil {
		version = old.version + 1
	}
	im := &image{id: fmt.Sprintf("sha256:%s@%d", ref, version), program: p, local: !p.Remote, version: version, runs: map[string]int{}}
	w.images[ref] = im
	w.ids[im.id] = im
	return im
}

// RemoveImage takes an image from the local store; the registry keeps it.
func (w *World) RemoveImage(ref string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if im := w.images[ref]; im != nil {
		im.local = false
	}
}

func (w *World) image(ref string) *image {
	if im := w.images[ref]; im != nil {
		return im
	}
	return w.ids[ref]
}

func (im *image) found() pods.Image {
	p := &im.program
	return pods.Image{ID: im.id, Healthcheck: p.Healthcheck, Platform: p.platform(), User: p.User}
}

func (p *Program) platform() string { return cmp.Or(p.Platform, platform) }

// Image implements pods.Host.
func (h host) Image(ctx context.Context, ref string) (found pods.Image, err error) {
	err = h.call(ctx, "image", ref, func() error {
		im := h.image(ref)
		if im == nil || !im.local {
			return fmt.Errorf("%s: %w", ref, pods.ErrNoImage)
		}
		found = im.found()
		return nil
	})
	return found, err
}

// SandboxImage implements pods.Host.
func (h host) SandboxImage(ctx context.Context) (found pods.Image, err error) {
	err = h.call(ctx, "sandbox.image", SandboxImage, func() error {
		im := h.images[SandboxImage]
		if im == nil {
			im = h.register(SandboxImage, Program{})
		}
		im.local = true
		found = im.found()
		return nil
	})
	return found, err
}

// Pull implements pods.Host.
func (h host) Pull(ctx context.Context, ref string, auth *jobspecs.RegistryAuth, progress func(string)) error {
	h.mu.Lock()
	var p Program
	if im := h.images[ref]; im != nil {
		p = im.program
	}
	h.mu.Unlock()
	if p.PullTime > 0 && progress != nil {
		progress("0 of 1 layers")
	}
	if err := sleep(ctx, p.PullTime); err != nil {
		return err
	}
	return h.call(ctx, "pull", ref, func() error {
		im := h.images[ref]
		switch {
		case im == nil:
			return problem(runtime.ReasonImageUnknown, "image %s is not known to the registry", ref)
		case im.program.Password != "" && (auth == nil || auth.Password != im.program.Password):
			return problem(runtime.ReasonAccessDenied, "the registry refuses to give image %s to us", ref)
		case im.program.PullError != nil:
			return im.program.PullError
		}
		im.local = true
		return nil
	})
}
