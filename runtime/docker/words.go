package docker

import (
	"bytes"
	"io"
	"strings"
	"sync"

	"github.com/stsd/stsd/jobspecs"
)

// head keeps the first line of what is written to it.
type head struct {
	mu   sync.Mutex
	b    []byte
	full bool
}

// headSize is how much of a first line is kept, in bytes.
const headSize = 1 << 10

func (h *head) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.full {
		return len(p), nil
	}
	h.b = append(h.b, p[:min(len(p), headSize-len(h.b))]...)
	if i := bytes.IndexByte(h.b, '\n'); i >= 0 {
		h.b, h.full = h.b[:i], true
	}
	h.full = h.full || len(h.b) == headSize
	return len(p), nil
}

// line is without its end, and without the spaces around it.
func (h *head) line() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return jobspecs.Shown(strings.TrimSpace(strings.ToValidUTF8(string(h.b), "")))
}

// tail keeps the end of what is written to it.
type tail struct {
	mu sync.Mutex
	b  []byte
}

const tailSize = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	if n := len(t.b) - tailSize; n > 0 {
		t.b = append(t.b[:0], t.b[n:]...)
	}
	return len(p), nil
}

func (t *tail) lastLine() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := bytes.TrimSpace(t.b)
	return shorten(jobspecs.Shown(strings.TrimSpace(string(text[bytes.LastIndexByte(text, '\n')+1:]))), 2000)
}

// both writes to two that never fail.
type both struct{ a, b io.Writer }

func (w both) Write(p []byte) (int, error) {
	_, _ = w.a.Write(p)
	return w.b.Write(p)
}

func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
