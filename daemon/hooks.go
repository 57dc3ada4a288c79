package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/stsd/stsd/daemon/planner"
	"github.com/stsd/stsd/daemon/store"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/jobspecs/hcl"
	"github.com/stsd/stsd/runtime"
)

// Hooks of the membership may take minutes. They run beside the loop, which goes on
// looking after the other members meanwhile; what came of one is taken over by the
// loop, which is kicked when it ends.

// hookKey is one hook action: what runs for whom.
type hookKey struct {
	on string // jobspecs.OnJoin …; of set_ready the hook's name
	of int    // ordinal that joins or leaves
}

// hookRun is a hook action that goes on, or that has ended and is not taken over yet.
type hookRun struct {
	action planner.Action
	mu     sync.Mutex
	ended  bool
	err    error
	passed []error // failures that do not count (on_failure = "continue")
}

func (r *hookRun) end(passed []error, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended, r.passed, r.err = true, passed, err
}

func (r *hookRun) over() (passed []error, err error, ended bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.passed, r.err, r.ended
}

// hookError is a hook that failed.
type hookError struct {
	hook *jobspecs.Hook
	why  string
}

func (e *hookError) Error() string {
	if e.hook.On == jobspecs.OnLeave {
		return fmt.Sprintf("hook %s says no: %s", e.hook.Name, e.why)
	}
	return fmt.Sprintf("hook %s failed: %s", e.hook.Name, e.why)
}

func keyOfHook(set *jobspecs.Set, a planner.Action) hookKey {
	h := hookNamed(set, a.Hook)
	if h == nil || h.On == jobspecs.OnSetReady {
		return hookKey{on: a.Hook}
	}
	return hookKey{on: h.On, of: a.For}
}

func hookNamed(set *jobspecs.Set, name string) *jobspecs.Hook {
	for i := range set.Hooks {
		if set.Hooks[i].Name == name {
			return &set.Hooks[i]
		}
	}
	return nil
}

// hooksOf are those that an action runs: all of a kind for a member, in the order of
// the file; one by one when the set is ready.
func hooksOf(set *jobspecs.Set, a planner.Action) []*jobspecs.Hook {
	first := hookNamed(set, a.Hook)
	if first == nil || first.On == jobspecs.OnSetReady {
		return []*jobspecs.Hook{first}
	}
	var out []*jobspecs.Hook
	for i := range set.Hooks {
		if set.Hooks[i].On == first.On {
			out = append(out, &set.Hooks[i])
		}
	}
	return out
}

// startHook begins a hook action unless it goes on already.
func (l *loop) startHook(ctx context.Context, s *sight, a planner.Action) {
	key := keyOfHook(s.world.Set, a)
	if l.hooks[key] != nil {
		return
	}
	run := &hookRun{action: a}
	l.hooks[key] = run
	view := *s // the loop makes another one for its next turn
	l.d.events.record(l.key, l.memberOf(a.For), normal, hookRuns, a.String())
	l.hooking.Go(func() {
		defer l.kick()
		run.end(l.runHooks(ctx, &view, a))
	})
}

func (l *loop) memberOf(ordinal int) string { return jobspecs.MemberName(l.key.Name, ordinal) }

// runHooks runs the hooks of an action one after the other, up to the first that
// fails and counts. One that cannot run in a member that leaves is left out.
func (l *loop) runHooks(ctx context.Context, s *sight, a planner.Action) (passed []error, err error) {
	for _, h := range hooksOf(s.world.Set, a) {
		if !s.world.HookRuns(h, a.For) {
			continue
		}
		err := l.runHook(ctx, s, h, a)
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return passed, ctx.Err()
		case h.OnFailure == jobspecs.FailContinue && errors.As(err, new(*hookError)):
			passed = append(passed, err)
		default:
			return passed, err
		}
	}
	return passed, nil
}

// runHook runs one hook's command where it has to run.
func (l *loop) runHook(ctx context.Context, s *sight, h *jobspecs.Hook, a planner.Action) error {
	execs, ok := l.d.parts.Engine.(runtime.Execs)
	if !ok {
		return fmt.Errorf("hook %s: this engine runs no commands", h.Name)
	}
	in, of := a.For, a.For
	if h.Ordinal != nil {
		in = *h.Ordinal
	}
	if h.On == jobspecs.OnSetReady { // it is about no member but the one that it runs in
		of = in
	}
	env := s.env
	env.Ordinal = of
	command, err := hcl.RenderHook(s.world.Set, h, env)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, h.Timeout)
	defer cancel()
	var said tail
	code, err := execs.Exec(ctx, runtime.PodName{Namespace: l.key.Namespace, Name: l.memberOf(in)}, runtime.ExecOptions{
		Command: command, Container: h.Container, Stdout: &said, Stderr: &said,
		Once: strings.Join([]string{"hook", h.On, h.Name, l.memberOf(of)}, " "),
		Env: map[string]string{
			"STSD_REASON": h.On, "STSD_MEMBER": l.memberOf(of), "STSD_ORDINAL": strconv.Itoa(of),
			"STSD_SET": l.key.Name, "STSD_NAMESPACE": l.key.Namespace,
		},
	})
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &hookError{h, "it did not end within " + h.Timeout.String()}
	case err != nil:
		return fmt.Errorf("hook %s in %s: %w", h.Name, l.memberOf(in), err)
	case code != 0:
		return &hookError{h, ending(code, said.lastLine())}
	}
	return nil
}

func ending(code int, line string) string {
	text := fmt.Sprintf("exit code %d", code)
	if line != "" {
		text += ": " + line
	}
	return text
}

// tail keeps the end of what a command says.
type tail struct {
	mu   sync.Mutex
	text []byte
}

// tailLimit is about how much of it, in bytes.
const tailLimit = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if len(t.text) > 2*tailLimit {
		t.text = bytes.Clone(t.text[len(t.text)-tailLimit:])
	}
	return len(p), nil
}

// lastLine is the last line that says something.
func (t *tail) lastLine() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := strings.Split(strings.ToValidUTF8(string(t.text), "?"), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		if line := strings.TrimSpace(lines[i]); line != "" {
			return jobspecs.Shown(line[:min(len(line), 200)])
		}
	}
	return ""
}

// harvest takes over what came of hooks that have ended. It tells whether there was
// anything.
func (l *loop) harvest(s *sight) (news bool, err error) {
	for key, run := range l.hooks {
		passed, failure, ended := run.over()
		if !ended {
			continue
		}
		if errors.Is(failure, context.Canceled) { // the daemon stops, or the loop ends
			delete(l.hooks, key)
			continue
		}
		if failure == nil {
			if err := l.d.store.Learn(l.key, hookFacts(s, run.action)); err != nil {
				return news, err
			}
		}
		delete(l.hooks, key)
		news = true
		for _, e := range passed {
			l.d.events.record(l.key, l.memberOf(run.action.For), warning, planner.ReasonHookFailed, scrubError(e, l.unsaid).Error()+"; it goes on all the same")
		}
		l.note(run.action, scrubError(failure, l.unsaid))
	}
	return news, nil
}

// hookFacts are what is true once a hook action has succeeded.
func hookFacts(s *sight, a planner.Action) store.Facts {
	h := hookNamed(s.world.Set, a.Hook)
	m := s.view.Members[a.For]
	switch {
	case h == nil: // the user took it out of the spec meanwhile
		return store.Facts{}
	case h.On == jobspecs.OnSetReady:
		return store.Facts{Hooks: hookDone(&s.world, h)}
	case h.On == jobspecs.OnJoin:
		m.Joined = true
	default:
		m.Left = true
	}
	return store.Facts{Members: map[int]planner.Member{a.For: m}}
}

// hookDone adds a set_ready hook to those that have run, for the members that the
// set has now.
func hookDone(w *planner.World, h *jobspecs.Hook) map[string]bool {
	out := map[string]bool{w.DoneKey(h): true}
	for key := range w.HooksDone {
		if name, _, _ := strings.Cut(key, "["); name != h.Name {
			out[key] = true
		}
	}
	return out
}

// tellHooks puts the hooks that go on into a plan, as what is waited for, and drops
// failures of hooks that nobody asks for any more.
func (l *loop) tellHooks(s *sight, plan *planner.Plan) {
	asked := map[failureKey]bool{}
	for _, a := range plan.Actions {
		if a.Op != planner.RunHook {
			continue
		}
		asked[keyOf(a)] = true
		if l.hooks[keyOfHook(s.world.Set, a)] != nil {
			plan.Waiting = append(plan.Waiting, planner.Wait{
				Member: l.memberOf(a.For), On: a.Member, For: "hook " + a.Hook + " runs there", Since: l.d.now(),
			})
		}
	}
	for k := range l.failing {
		if k.op == planner.RunHook && !asked[k] {
			delete(l.failing, k)
		}
	}
}
