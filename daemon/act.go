package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/stsd/stsd/daemon/planner"
	"github.com/stsd/stsd/daemon/store"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/volumes"
)

// act does every action of the plan once, side by side. An action that failed
// is left out until its back-off has passed. It reports whether something was
// done, and when the next left-out action is due.
func (l *loop) act(ctx context.Context, s sight, plan planner.Plan) (did bool, retry time.Time) {
	l.log(plan)
	var due []planner.Action
	for _, a := range plan.Actions {
		if a.Op == planner.RunHook && l.hooks[keyOfHook(s.world.Set, a)] != nil {
			continue
		}
		if f, ok := l.failing[keyOf(a)]; ok && s.world.Now.Before(f.until) {
			retry = earliest(retry, f.until)
			continue
		}
		if a.Op == planner.RunHook {
			l.startHook(ctx, &s, a)
			did = true // that it goes on is to be told
			continue
		}
		due = append(due, a)
	}
	errs := make([]error, len(due))
	var wg sync.WaitGroup
	for i, a := range due {
		wg.Go(func() {
			if !l.d.acquire(ctx) {
				errs[i] = ctx.Err()
				return
			}
			defer l.d.release()
			errs[i] = scrubError(l.do(ctx, &s, a), l.unsaid)
		})
	}
	wg.Wait()
	for i, a := range due {
		if at := l.note(a, errs[i]); !at.IsZero() {
			retry = earliest(retry, at)
		}
		did = did || errs[i] == nil
	}
	return did, retry
}

// failureKey is one action that may fail again and again.
type failureKey struct {
	op             planner.Op
	member, volume string
	hook           string
	of             int // ordinal that a hook is about
}

func keyOf(a planner.Action) failureKey {
	return failureKey{a.Op, a.Member, a.Volume, a.Hook, a.For}
}

func (k failureKey) compare(o failureKey) int {
	return cmp.Or(cmp.Compare(k.op, o.op), cmp.Compare(k.member, o.member), cmp.Compare(k.volume, o.volume), cmp.Compare(k.hook, o.hook), cmp.Compare(k.of, o.of))
}

// about tells whether a failure is the member's: that of a hook is of the one that
// joins or leaves, wherever it runs.
func (k failureKey) about(m *jobspecs.Member) bool {
	if k.op == planner.RunHook {
		return k.of == m.Ordinal
	}
	return k.member == m.Name
}

// note remembers a failure, or forgets it, and tells about both once. It gives
// the time of the next try.
func (l *loop) note(a planner.Action, err error) time.Time {
	key := keyOf(a)
	l.d.metrics.acted(a.Op, err)
	if err == nil {
		delete(l.failing, key)
		if a.Op != planner.Refresh && a.Op != planner.Forget {
			l.d.events.record(l.key, a.Member, normal, actionReason(a), sentence(a))
		}
		return time.Time{}
	}
	f := l.failing[key]
	f.err, f.tries = err, f.tries+1
	f.until = l.d.now().Add(backoff(f.tries))
	l.failing[key] = f
	if errors.Is(err, context.Canceled) {
		return f.until
	}
	l.d.events.record(l.key, a.Member, warning, "Failed", fmt.Sprintf("%s: %v", a, err))
	if f.tries == 1 {
		l.d.log.Warn("act", "set", l.key.String(), "action", a.String(), "error", err)
	}
	return f.until
}

// log says once what is decided; the same plan again is not news.
func (l *loop) log(plan planner.Plan) {
	text := plan.String()
	if text == l.logged {
		return
	}
	l.logged = text
	if text == "" {
		return
	}
	l.d.log.Info("plan", "set", l.key.String(), "actions", text, "waiting", fmt.Sprint(plan.Waiting))
}

func actionReason(a planner.Action) string {
	switch a.Op {
	case planner.CreateVolume:
		return "VolumeCreated"
	case planner.DeleteVolume:
		return "VolumeDeleted"
	case planner.Create:
		return "Created"
	case planner.Stop:
		return "Stopping"
	case planner.RunHook:
		return "HookRan"
	}
	return "Removed"
}

func sentence(a planner.Action) string {
	if a.Target != "" && a.Op == planner.Create {
		return a.String() + ", revision " + a.Target
	}
	return a.String()
}

// do carries out one action.
func (l *loop) do(ctx context.Context, s *sight, a planner.Action) error {
	name := runtime.PodName{Namespace: l.key.Namespace, Name: a.Member}
	switch a.Op {
	case planner.CreateVolume:
		defer l.d.usage.renewed(a.Volume)
		return l.d.parts.Volumes.Create(ctx, l.key, a.Ordinal, volumeSpec(s, a))
	case planner.DeleteVolume:
		return l.deleteVolume(ctx, a)
	case planner.Create, planner.Refresh:
		return l.d.parts.Engine.Create(ctx, s.world.Specs[planner.Target{Ordinal: a.Ordinal, Revision: a.Target}].Spec)
	case planner.Stop:
		return l.d.parts.Engine.Stop(ctx, name, runtime.StopOptions{Grace: l.grace(s, a), Why: a.Reason})
	case planner.Remove:
		return l.d.parts.Engine.Remove(ctx, name, a.Keep)
	case planner.Forget:
		return l.forget(ctx, name, a)
	}
	return fmt.Errorf("unknown action %q", a.Op)
}

// forget clears away the ended container that was kept for its logs, then what
// the store remembers of the ordinal.
func (l *loop) forget(ctx context.Context, name runtime.PodName, a planner.Action) error {
	if err := l.d.parts.Engine.Remove(ctx, name, false); err != nil {
		return err
	}
	return l.d.store.Learn(l.key, store.Facts{Forget: []int{a.Ordinal}})
}

// deleteVolume also clears the ended container that was kept for its logs: it
// would hold the volume.
func (l *loop) deleteVolume(ctx context.Context, a planner.Action) error {
	err := l.d.parts.Engine.Remove(ctx, runtime.PodName{Namespace: l.key.Namespace, Name: a.Member}, false)
	if err != nil {
		return err
	}
	return l.d.parts.Volumes.Delete(ctx, a.Volume)
}

// grace is what the pod's own revision says.
func (l *loop) grace(s *sight, a planner.Action) time.Duration {
	for i := range s.world.Pods {
		p := &s.world.Pods[i]
		if p.Ordinal != a.Ordinal {
			continue
		}
		t := planner.Target{Ordinal: p.Ordinal, Revision: p.Revision}
		if r, ok := s.world.Specs[t]; ok && r.Err == nil {
			return r.Spec.TerminationGrace
		}
		if r := l.d.renderings(&s.view, l.d.env(s), []planner.Target{t}, s.subnet)[t]; r.Err == nil {
			return r.Spec.TerminationGrace
		}
	}
	return 30 * time.Second
}

func volumeSpec(s *sight, a planner.Action) jobspecs.VolumeSpec {
	for _, v := range s.world.Specs[planner.Target{Ordinal: a.Ordinal, Revision: a.Target}].Spec.Volumes {
		if v.Name == a.Volume {
			return v
		}
	}
	return jobspecs.VolumeSpec{Name: a.Volume}
}

func stored(revisions []jobspecs.Revision, name string) bool {
	for i := range revisions {
		if revisions[i].Name == name {
			return true
		}
	}
	return false
}

// permanent tells whether an engine error is one that somebody has to mend.
func permanent(err error) (reason string, ok bool) {
	var foreign *volumes.ForeignError
	switch {
	case errors.As(err, &foreign):
		return runtime.ReasonVolumeForeign, true
	case errors.As(err, new(*hookError)):
		return planner.ReasonHookFailed, true
	case errors.Is(err, store.ErrFull):
		return runtime.ReasonNoAddress, true
	}
	return "", false
}
