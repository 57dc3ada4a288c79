package docker

import (
	"context"
	"fmt"

	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/filters"

	"github.com/stsd/stsd/runtime/pods"
)

// maxQueue is how many hints wait for a slow reader; beyond it they become one:
// look at everything.
const maxQueue = 1024

// wanted are the events that change something we show. Naming them keeps out
// exec_*, of which every probe makes three, and health and archive events.
var wanted = filters.NewArgs(
	filters.Arg("type", string(events.ContainerEventType)),
	filters.Arg("type", string(events.VolumeEventType)),
	filters.Arg("type", string(events.NetworkEventType)),
	filters.Arg("event", string(events.ActionCreate)),
	filters.Arg("event", string(events.ActionStart)),
	filters.Arg("event", string(events.ActionDie)),
	filters.Arg("event", string(events.ActionOOM)),
	filters.Arg("event", string(events.ActionStop)),
	filters.Arg("event", string(events.ActionDestroy)),
	filters.Arg("event", string(events.ActionRename)),
	filters.Arg("event", string(events.ActionPause)),
	filters.Arg("event", string(events.ActionUnPause)),
	filters.Arg("event", string(events.ActionConnect)),
	filters.Arg("event", string(events.ActionDisconnect)),
)

// Watch subscribes to the engine's events. While one subscription is live, the
// volumes and networks are answered from memory.
//
// The engine confirms a subscription before it makes it, some microseconds
// apart; the Ping in between outlasts them.
func (h *Host) Watch(ctx context.Context) (<-chan pods.Event, error) {
	ctx, cancel := context.WithCancel(ctx)
	messages, errs := h.cli().Events(ctx, events.ListOptions{Filters: wanted})
	if _, err := h.Ping(ctx); err != nil {
		cancel()
		return nil, err
	}
	select {
	case err := <-errs:
		cancel()
		return nil, fmt.Errorf("subscribe to events: %w", engineError(err))
	default:
	}
	h.forget()
	h.watching.Add(1)
	out := make(chan pods.Event)
	go func() {
		defer close(out)
		defer cancel()
		h.forward(ctx, messages, errs, out)
		h.watching.Add(-1)
		h.forget()
	}()
	return out, nil
}

func (h *Host) forward(ctx context.Context, messages <-chan events.Message, errs <-chan error, out chan<- pods.Event) {
	var queue []pods.Event
	for {
		var ready chan<- pods.Event
		var next pods.Event
		if len(queue) > 0 {
			ready, next = out, queue[0]
		}
		select {
		case m := <-messages:
			queue = enqueue(queue, h.note(m)...)
		case ready <- next:
			queue = queue[1:]
		case <-errs:
			return
		case <-ctx.Done():
			return
		}
	}
}

func enqueue(queue []pods.Event, more ...pods.Event) []pods.Event {
	if len(queue)+len(more) > maxQueue {
		return []pods.Event{{}}
	}
	return append(queue, more...)
}

// note brings the caches up to date and returns the hint for the pods, if the
// event is about a container of ours or about what one may wait for.
func (h *Host) note(m events.Message) []pods.Event {
	switch m.Type {
	case events.VolumeEventType:
		h.volumes.meet(m.Actor.Attributes["driver"])
		h.volumes.note(string(m.Action), m.Actor.ID)
		h.changed()
	case events.NetworkEventType:
		if m.Action == events.ActionDestroy {
			h.networks.forget()
		}
		h.changed()
		if m.Action == events.ActionCreate || m.Action == events.ActionDestroy { // a name, a subnet, or what somebody wants to join
			return []pods.Event{{Freed: true}}
		}
		if id := m.Actor.Attributes["container"]; id != "" { // connected or disconnected, maybe by hand
			return []pods.Event{{ID: id}}
		}
	case events.ContainerEventType:
		if !h.ours(m.Actor.Attributes) {
			return freed(m.Action)
		}
		if m.Action == events.ActionDestroy {
			h.forgetContainers(m.Actor.ID)
		}
		return []pods.Event{{ID: m.Actor.ID, Started: m.Action == events.ActionStart}}
	}
	return nil
}

// freed hints that somebody else's container gave up what ours may wait for.
func freed(a events.Action) []pods.Event {
	switch a {
	case events.ActionDie, events.ActionDestroy, events.ActionRename:
		return []pods.Event{{Freed: true}}
	}
	return nil
}

func (h *Host) changed() {
	if h.cfg.Changed != nil {
		h.cfg.Changed()
	}
}

// watched tells whether a subscription is live, so that memory may be trusted.
func (h *Host) watched() bool { return h.watching.Load() > 0 }

// forget drops what was remembered.
func (h *Host) forget() {
	h.networks.forget()
	h.volumes.forget()
	h.logs.forget()
}
