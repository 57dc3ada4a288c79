package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/distribution/reference"
	"github.com/docker/docker/api/types/image"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

// Pull brings an image. The spec's credentials win over those of the daemon's
// Docker configuration.
func (h *Host) Pull(ctx context.Context, ref string, auth *jobspecs.RegistryAuth, progress func(string)) error {
	named, err := reference.ParseNormalizedNamed(ref)
	if err != nil {
		return problem(runtime.ReasonImageUnknown, nil, "%q is no image name: %v", ref, err)
	}
	with, err := loginFor(ctx, reference.Domain(named), auth)
	if err != nil {
		return fmt.Errorf("pull %s: %w", ref, err)
	}
	header, err := with.header()
	if err != nil {
		return fmt.Errorf("pull %s: %w", ref, err)
	}
	stream, err := h.cli().ImagePull(ctx, ref, image.PullOptions{RegistryAuth: header})
	if err == nil {
		err = followPull(stream, progress)
		stream.Close()
	}
	if err == nil {
		return nil
	}
	if ctx.Err() != nil { // a cut stream looks like a lost engine
		return fmt.Errorf("pull %s: %w", ref, ctx.Err())
	}
	return h.pullFailed(ctx, ref, with, err)
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

// followPull reads the stream to its end. Meanwhile it tells what is new, at most
// four times a second.
func followPull(stream io.Reader, progress func(string)) error {
	var p pullProgress
	if progress != nil {
		var teller sync.WaitGroup
		defer teller.Wait()
		done := make(chan struct{})
		defer close(done)
		teller.Go(func() { p.tell(progress, done) })
	}
	for dec := json.NewDecoder(stream); ; {
		var m pullMessage
		err := dec.Decode(&m)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w: %w", runtime.ErrUnreachable, err)
		}
		if m.Error != "" {
			return &pullError{m.Error}
		}
		p.note(m)
	}
}

// pullPause is from one text to the next.
const pullPause = 250 * time.Millisecond

// pullProgress adds up the layers.
type pullProgress struct {
	mu     sync.Mutex
	layers map[string]layerProgress
}

func (p *pullProgress) tell(progress func(string), done <-chan struct{}) {
	for last := ""; sleep(pullPause, done); {
		if text := p.text(); text != "" && text != last {
			progress(text)
			last = text
		}
	}
}

type layerProgress struct {
	stage          stage
	current, total int64 // bytes; a total of zero is not known
	retrying       bool
}

// stage is how far a layer is.
type stage int

const (
	waiting stage = iota
	fetched       // and not unpacked
	extracting
	done
)

// note takes what a message says of a layer. Others are about the whole.
func (p *pullProgress) note(m pullMessage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.layers[m.ID]
	l.retrying = false
	switch {
	case m.ID == "":
		return
	case m.Status == "Pulling fs layer", m.Status == "Waiting":
	case strings.HasPrefix(m.Status, "Retrying in "):
		l.retrying = true
	case m.Status == "Downloading":
		l.stage, l.current, l.total = waiting, m.Progress.Current, max(m.Progress.Total, 0)
	case m.Status == "Verifying Checksum":
		l.current = max(l.current, l.total)
	case m.Status == "Download complete":
		l.arrived(fetched)
	case m.Status == "Extracting":
		l.arrived(extracting)
	case m.Status == "Pull complete", m.Status == "Already exists":
		l.arrived(done)
	default:
		return
	}
	if p.layers == nil {
		p.layers = map[string]layerProgress{}
	}
	p.layers[m.ID] = l
}

// arrived notes that all of a layer is here.
func (l *layerProgress) arrived(at stage) {
	l.stage, l.current = at, max(l.current, l.total)
	l.total = l.current
}

// text is "2 of 5 layers, 12 MB of 30 MB", without the sum while a layer's size
// is not known; once all are here "extracting 3 of 5 layers"; "" when there is
// nothing to tell.
func (p *pullProgress) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var here, unpacked, unknown int
	var current, total int64
	suffix := ""
	for _, l := range p.layers {
		if l.stage != waiting {
			here++
		}
		if l.stage == waiting && l.total == 0 {
			unknown++
		}
		if l.stage == done {
			unpacked++
		}
		if l.retrying {
			suffix = ", trying a layer again"
		}
		current, total = current+l.current, total+l.total
	}
	all := len(p.layers)
	switch {
	case unpacked == all:
		return ""
	case here == all:
		return fmt.Sprintf("extracting %d of %d layers", unpacked+1, all)
	case current == 0:
		return fmt.Sprintf("%d of %d layers%s", here, all, suffix)
	case unknown > 0 || current > total:
		return fmt.Sprintf("%d of %d layers, %s%s", here, all, megabytes(current), suffix)
	}
	return fmt.Sprintf("%d of %d layers, %s of %s%s", here, all, megabytes(current), megabytes(total), suffix)
}

func megabytes(n int64) string {
	if n < 10e6 {
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%d MB", n/1e6)
}
