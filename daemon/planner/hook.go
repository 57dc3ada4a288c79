package planner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

// GuardUnknown is a MinAvailable that could not be worked out: nothing may go.
const GuardUnknown = jobspecs.MaxReplicas + 1

func guardSentence(available, least int) string {
	if least == GuardUnknown {
		return "guard: min_available cannot be worked out"
	}
	return fmt.Sprintf("guard: %d members are available and min_available is %d", available, least)
}

// join runs the hooks of members that join and of the set that is formed.
func (w *World) join(p *Plan, wanted []*slot) {
	if w.Deleting != nil {
		return
	}
	if w.Formed {
		for _, s := range wanted {
			if !w.Members[s.ordinal].Joined && w.available(s) {
				w.runHooks(p, jobspecs.OnJoin, s, wanted, s.name+" joins")
			}
		}
	}
	if !p.Formed {
		return
	}
	for i := range w.Set.Hooks {
		h := &w.Set.Hooks[i]
		if h.On == jobspecs.OnSetReady && !w.HooksDone[w.DoneKey(h)] {
			w.runHook(p, h, wanted[0], wanted, "all members are ready")
			return // one after the other
		}
	}
}

// DoneKey names a set_ready hook that has run: for good, or for these members.
func (w *World) DoneKey(h *jobspecs.Hook) string {
	if h.Once {
		return h.Name
	}
	return h.Name + strings.ReplaceAll(fmt.Sprint(w.Set.Ordinals(w.Replicas)), " ", ",")
}

// leaves tells whether the member may be stopped as far as its leave hooks go: they
// have run, or there are none, or none of them can run.
func (w *World) leaves(p *Plan, s *slot, wanted []*slot) bool {
	if w.Forced || w.Members[s.ordinal].Left || !w.has(jobspecs.OnLeave) {
		return true
	}
	return !w.runHooks(p, jobspecs.OnLeave, s, wanted, s.name+" leaves")
}

func (w *World) has(on string) bool {
	return slices.ContainsFunc(w.Set.Hooks, func(h jobspecs.Hook) bool { return h.On == on })
}

// HookRuns tells whether a hook can run for a member at all. One that leaves and does
// not run, or that never was available, can do nothing itself. One that runs is asked
// even though it is not available now: it may have what nobody else has.
func (w *World) HookRuns(h *jobspecs.Hook, of int) bool {
	if h.On != jobspecs.OnLeave || h.Ordinal != nil && *h.Ordinal != of {
		return true
	}
	i := slices.IndexFunc(w.Pods, func(p runtime.Pod) bool { return p.Ordinal == of })
	if i < 0 {
		return false
	}
	p := &w.Pods[i]
	runs := !p.StartedAt.IsZero() && (p.Phase == runtime.Running || p.Phase == runtime.Starting)
	return w.IsAvailable(p) || runs && w.Members[of].Once != ""
}

// unasked says of a member that leaves why its leave hooks, or some of them, do not
// run; "" all do, or there is nothing to say.
func (w *World) unasked(s *slot) string {
	if w.Deleting != nil || w.Forced || w.Members[s.ordinal].Once == "" {
		return ""
	}
	for i := range w.Set.Hooks {
		if h := &w.Set.Hooks[i]; h.On == jobspecs.OnLeave && !w.HookRuns(h, s.ordinal) {
			return ", without hook " + h.Name + ": it does not run"
		}
	}
	return ""
}

// runHooks asks for the hooks of one kind for a member: one action, which runs those
// that can run, in their order. It reports whether there is something to run or to
// wait for.
func (w *World) runHooks(p *Plan, on string, s *slot, wanted []*slot, why string) bool {
	for i := range w.Set.Hooks {
		if h := &w.Set.Hooks[i]; h.On == on && w.HookRuns(h, s.ordinal) {
			return w.runHook(p, h, s, wanted, why)
		}
	}
	return false
}

// runHook plans a hook where it has to run. A member that is not available is waited
// for, but not the one that leaves.
func (w *World) runHook(p *Plan, h *jobspecs.Hook, s *slot, wanted []*slot, why string) bool {
	in := s
	if h.Ordinal != nil {
		i := slices.IndexFunc(wanted, func(o *slot) bool { return o.ordinal == *h.Ordinal })
		if i < 0 {
			p.wait(Wait{Member: s.name, For: fmt.Sprintf("hook %s has to run in ordinal %d, which the set does not have", h.Name, *h.Ordinal), Since: w.Now})
			return true
		}
		in = wanted[i]
	}
	if !w.available(in) && (in != s || h.On != jobspecs.OnLeave) {
		p.wait(Wait{Member: s.name, On: in.name, For: "hook " + h.Name + " runs there: " + w.describe(in), Since: w.sinceOf(in)})
		return true
	}
	p.act(Action{Op: RunHook, Ordinal: in.ordinal, Member: in.name, Hook: h.Name, For: s.ordinal, Target: in.pod.Revision, Why: why})
	return true
}
