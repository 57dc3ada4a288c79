package docker

import (
	"context"
	"fmt"
	"time"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime/pods"
)

// Hook runs a lifecycle hook. It waits for nobody: the host-wide limit of probes'
// execs is not for it, since it may take minutes. A post_start that succeeded is
// success even where it cannot be remembered; then it may run again. A command that
// was begun before a restart of stsd is waited for, or has run already.
func (h *Host) Hook(ctx context.Context, t pods.Target, hook pods.Hook) error {
	if err := h.runHook(ctx, t, hook); err != nil {
		return err
	}
	if hook.Kind == pods.PostStart {
		_ = h.markPostStarted(t.ID, t.Run)
	}
	return nil
}

func (h *Host) runHook(ctx context.Context, t pods.Target, hook pods.Hook) error {
	switch do := hook.Handler; {
	case len(do.Exec) > 0:
		_, err := h.runExec(ctx, t.ID, once{name: hookName(hook.Kind, t.Run), lasts: true}, do.Exec, hook.Env)
		return err
	case do.HTTP != nil:
		return checkHTTP(ctx, t.Address, do.HTTP)
	case do.Sleep > 0:
		return pause(ctx, do)
	}
	return nil
}

// hookName tells the hooks of one run of a container from those of others.
func hookName(kind string, run time.Time) string {
	return kind + " " + run.UTC().Format(time.RFC3339Nano)
}

// pause is a hook that sleeps.
func pause(ctx context.Context, do jobspecs.Handler) error {
	timer := time.NewTimer(do.Sleep)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("sleep %s: %w", do.Sleep, cause(ctx, ctx.Err()))
	}
}
