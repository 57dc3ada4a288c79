package pods

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

// sendHook notes that a hook begins.
func (w spot) sendHook(kind string) {
	w.Hook, w.HookAt = kind, w.Now
	if kind == PreStop {
		w.told()
	}
}

// hooked notes that a hook is over; cut says that it lost its purpose.
func (w spot) hooked(kind string, cut bool, err error) {
	took := w.Now.Sub(w.HookAt).Round(time.Millisecond)
	w.Hook = ""
	switch {
	case kind == PreStop:
		w.PreDone = true
		if err != nil && !cut {
			w.note(w.Block, true, "FailedPreStopHook", fmt.Sprintf("pre_stop: %v (after %s); its end goes on", err, took))
		}
	case cut:
	case err != nil && w.running():
		message := fmt.Sprintf("post_start: %v (after %s)", err, took)
		w.note(w.Block, true, "FailedPostStartHook", message)
		w.Doom = &Doom{ID: w.Main.ID, Reason: runtime.ReasonPostStartFailed, Message: message}
	case err == nil:
		w.PostDone = true
		w.probe(false)
	}
}

// hookCall is the hook as the host runs it.
func (w spot) hookCall(kind string) Hook {
	h := Hook{Kind: kind, Env: map[string]string{
		"STSD_REASON":    w.why(kind),
		"STSD_MEMBER":    w.PodWorld.Name,
		"STSD_ORDINAL":   strconv.Itoa(w.Ordinal),
		"STSD_SET":       w.Set.Name,
		"STSD_NAMESPACE": w.Set.Namespace,
	}}
	handler := w.block().PreStop
	if kind == PostStart {
		handler = w.block().PostStart
	}
	if handler != nil {
		h.Handler = *handler
	}
	return h
}

// why is what a hook is told: why its container ends, or began.
func (w spot) why(kind string) string {
	switch {
	case kind == PreStop && w.Order != nil:
		return w.Order.Why
	case kind == PostStart && number(w.Main.Labels[jobspecs.LabelRestarts]) == 0:
		return runtime.WhyStart
	}
	return runtime.WhyRestart
}

// hook runs one hook and notes how it ended. life ends with the run of the
// container.
func (p *pod) hook(life context.Context, world *PodWorld, block, kind string, until time.Time) {
	s, ok := world.part(block)
	if !ok {
		return
	}
	ctx := life
	if kind == PreStop {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(life, until.Sub(p.clock.Now()))
		defer cancel()
	}
	err := p.host.Hook(ctx, s.target(), s.hookCall(kind))
	cut := life.Err() != nil
	p.change(func(w *PodWorld) {
		now, ok := w.part(block)
		if ok && now.Hook == kind && now.HookAt.Equal(s.HookAt) {
			now.hooked(kind, cut, err)
		}
	})
}
