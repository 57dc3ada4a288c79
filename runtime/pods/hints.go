package pods

import (
	"context"
	"sync"

	"github.com/stsd/stsd/jobspecs"
)

// hints tells watchers which sets changed. It never blocks and never loses the
// last hint: when a watcher is slow, its queue ends in the zero Key, "look at
// everything", which stands for all that follow.
type hints struct {
	mu   sync.Mutex
	subs map[chan jobspecs.Key]bool
}

// watch subscribes until ctx ends; then the channel closes.
func (h *hints) watch(ctx context.Context) <-chan jobspecs.Key {
	c := make(chan jobspecs.Key, 256)
	h.mu.Lock()
	if h.subs == nil {
		h.subs = map[chan jobspecs.Key]bool{}
	}
	h.subs[c] = true
	h.mu.Unlock()
	context.AfterFunc(ctx, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.subs, c)
		close(c)
	})
	return c
}

func (h *hints) hint(key jobspecs.Key) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.subs {
		switch len(c) { // only readers change it meanwhile, and they make room
		case cap(c):
		case cap(c) - 1:
			c <- jobspecs.Key{}
		default:
			c <- key
		}
	}
}
