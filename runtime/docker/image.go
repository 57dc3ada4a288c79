package docker

import (
	"context"
	"errors"
	"fmt"
	"path"

	"github.com/docker/docker/api/types/image"

	"github.com/stsd/stsd/runtime/pods"
)

// Image is the local image that ref means.
func (h *Host) Image(ctx context.Context, ref string) (pods.Image, error) {
	done, err := h.slot(ctx)
	if err != nil {
		return pods.Image{}, err
	}
	defer done()
	found, err := h.cli().ImageInspect(ctx, ref)
	if isNotFound(err) {
		return pods.Image{}, fmt.Errorf("image %s: %w", ref, pods.ErrNoImage)
	}
	if err != nil {
		return pods.Image{}, fmt.Errorf("inspect image %s: %w", ref, engineError(err))
	}
	h.noteAlien(ctx, &found)
	return imageOf(&found), nil
}

// ImageID is the id of the local image that ref means; "" when it is not here.
func (h *Host) ImageID(ctx context.Context, ref string) (string, error) {
	found, err := h.Image(ctx, ref)
	if errors.Is(err, pods.ErrNoImage) {
		return "", nil
	}
	return found.ID, err
}

func imageOf(i *image.InspectResponse) pods.Image {
	found := pods.Image{ID: i.ID, Platform: path.Join(i.Os, i.Architecture, i.Variant)}
	if i.Config == nil {
		return found
	}
	found.User = i.Config.User
	if i.Config.Healthcheck != nil {
		found.Healthcheck = healthcheck(i.Config.Healthcheck.Test, i.Config.Shell)
	}
	return found
}

// healthcheck is an image's HEALTHCHECK as an argv; nil when it has none.
func healthcheck(test, shell []string) []string {
	if len(test) < 2 {
		return nil
	}
	switch test[0] {
	case "CMD":
		return test[1:]
	case "CMD-SHELL":
		if len(shell) == 0 {
			shell = []string{"/bin/sh", "-c"}
		}
		return append(shell[:len(shell):len(shell)], test[1])
	}
	return nil
}
