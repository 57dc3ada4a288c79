package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"time"

	"github.com/docker/docker/api/types/image"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
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
	if i.Config != nil && i.Config.Healthcheck != nil {
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

// Pull brings an image, with the credentials of this user's Docker configuration.
func (h *Host) Pull(ctx context.Context, ref string, auth *jobspecs.RegistryAuth, progress func(string)) error {
	stream, err := h.cli().ImagePull(ctx, ref, image.PullOptions{RegistryAuth: registryAuth(ref)})
	if err != nil {
		return known(pullReason(err.Error()), err, "pull %s", ref)
	}
	defer stream.Close()
	err = followPull(stream, progress)
	if ctx.Err() != nil { // a cut stream looks like a lost engine
		return fmt.Errorf("pull %s: %w", ref, ctx.Err())
	}
	var refused *pullError
	if errors.As(err, &refused) {
		return problem(pullReason(refused.Error()), refused, "pull %s", ref)
	}
	if err != nil {
		return fmt.Errorf("pull %s: %w: %w", ref, runtime.ErrUnreachable, err)
	}
	return nil
}

// pullError is what the engine says in the middle of a pull.
type pullError struct{ text string }

func (e *pullError) Error() string { return e.text }

// pullMessage is one line of the stream.
type pullMessage struct {
	ID       string `json:"id"`
	Status   string `json:"status"`
	Progress struct {
		Current int64 `json:"current"`
		Total   int64 `json:"total"`
	} `json:"progressDetail"`
	Error string `json:"error"`
}

// followPull reads the stream to its end.
func followPull(stream io.Reader, progress func(string)) error {
	var p pullProgress
	for dec := json.NewDecoder(stream); ; {
		var m pullMessage
		err := dec.Decode(&m)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if m.Error != "" {
			return &pullError{m.Error}
		}
		if text := p.add(m); text != "" && progress != nil {
			progress(text)
		}
	}
}

// pullProgress adds up the layers.
type pullProgress struct {
	layers map[string][2]int64 // current, total
	told   time.Time
}

// add takes a message and returns a text when it is time for one: not more than
// four in a second.
func (p *pullProgress) add(m pullMessage) string {
	if m.ID == "" || m.Progress.Total == 0 || m.Status != "Downloading" && m.Status != "Download complete" {
		return ""
	}
	if p.layers == nil {
		p.layers = map[string][2]int64{}
	}
	p.layers[m.ID] = [2]int64{m.Progress.Current, m.Progress.Total}
	if time.Since(p.told) < 250*time.Millisecond {
		return ""
	}
	p.told = time.Now()
	var current, total int64
	for _, l := range p.layers {
		current, total = current+l[0], total+l[1]
	}
	return fmt.Sprintf("%s of %s", megabytes(current), megabytes(total))
}

func megabytes(n int64) string {
	if n < 10e6 {
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%d MB", n/1e6)
}
