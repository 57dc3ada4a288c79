package daemon

import (
	"fmt"
	"slices"
	"time"

	"github.com/stsd/stsd/daemon/planner"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

// news is an event of a member that is not recorded yet.
type news struct{ kind, reason, message string }

// tellNews records what happened to members between two snapshots.
func (l *loop) tellNews(old, now jobspecs.Status) {
	before := map[string]*jobspecs.Member{}
	for i := range old.Members {
		before[old.Members[i].Name] = &old.Members[i]
	}
	for i := range now.Members {
		m := &now.Members[i]
		if b := before[m.Name]; b != nil {
			for _, n := range newsOf(b, m) {
				l.d.events.record(l.key, m.Name, n.kind, n.reason, n.message)
			}
		}
	}
}

// newsOf compares a member with what it was before.
func newsOf(before, now *jobspecs.Member) []news {
	out := pullNews(before, now)
	out = append(out, restartNews(before, now)...)
	out = append(out, initNews(before, now)...)
	out = append(out, troubleNews(before, now)...)
	return append(out, readyNews(before, now)...)
}

// Reasons of events that are no reason of a pod.
const (
	initFailed = "InitFailed"
	restarted  = "Restarted"
)

// pullNews tells when images begin to come, and that they are here.
func pullNews(before, now *jobspecs.Member) []news {
	pulls, pulled := now.Phase == string(runtime.Pulling), before.Phase == string(runtime.Pulling)
	what := "image " + now.Image
	if len(now.Containers) > 1 {
		what = "images of its containers"
	}
	switch {
	case pulls && !pulled:
		return []news{{normal, "Pulling", "pulls the " + what}}
	case !pulled:
		return nil
	}
	switch runtime.Phase(now.Phase) {
	case runtime.Pending, runtime.Initializing, runtime.Starting, runtime.Running:
		return []news{{normal, "Pulled", "the " + what + map[bool]string{true: " are here", false: " is here"}[len(now.Containers) > 1]}}
	}
	return nil
}

// restartNews tells which containers were started anew, and how they had ended.
func restartNews(before, now *jobspecs.Member) []news {
	var out []news
	for i := range now.Containers {
		c := &now.Containers[i]
		b := containerNamed(before, c.Name)
		if b != nil && c.Kind != jobspecs.KindInit && c.Restarts > b.Restarts {
			out = append(out, news{warning, restarted, subject(now, c) + "restarted" + after(whyEnded(b, c))})
		}
	}
	if out == nil && len(now.Containers) == 0 && now.Restarts > before.Restarts {
		out = append(out, news{warning, restarted, "restarted" + after(now.Message)})
	}
	return out
}

// initNews tells of init containers that failed since.
func initNews(before, now *jobspecs.Member) []news {
	var out []news
	for i := range now.Containers {
		c := &now.Containers[i]
		b := containerNamed(before, c.Name)
		if c.Kind != jobspecs.KindInit || c.ExitCode == nil || *c.ExitCode == 0 || b == nil || !endedSince(b, c) {
			continue
		}
		out = append(out, news{warning, initFailed, kindNamed(c.Kind, c.Name) + " failed" + after(howEnded(c))})
	}
	return out
}

// endedSince tells whether a container ended between two looks: it is ended and
// was not, or is another run's end, or was started anew without being seen ended.
func endedSince(before, now *jobspecs.MemberContainer) bool {
	was, is := over(before.State), over(now.State)
	if is {
		return !was || !sameTime(before.StartedAt, now.StartedAt)
	}
	return !was && now.Restarts > before.Restarts
}

func over(state string) bool { return state == "exited" || state == "dead" }

// troubleNews tells of a trouble that a member came into, or one of several
// containers alone.
func troubleNews(before, now *jobspecs.Member) []news {
	var out []news
	if troubled(now) && (now.Reason != before.Reason || !troubled(before)) && !byInit(now) && !noted(now.Reason) {
		out = append(out, news{warning, now.Reason, now.Message})
	}
	for i := range now.Containers {
		c := &now.Containers[i]
		b := containerNamed(before, c.Name)
		if len(now.Containers) == 1 || b == nil || c.Kind == jobspecs.KindInit || c.Reason == b.Reason || c.Reason == now.Reason || !grave(c.Reason) || noted(c.Reason) {
			continue
		}
		out = append(out, news{warning, c.Reason, subject(now, c) + c.Message})
	}
	return out
}

// troubled tells whether a member is in a state that somebody wants to know of.
func troubled(m *jobspecs.Member) bool {
	return m.Phase == string(runtime.Failed) || m.Phase == string(runtime.Backoff) || grave(m.Reason)
}

// grave tells whether a reason is one of an end that nobody asked for.
func grave(reason string) bool {
	switch reason {
	case runtime.ReasonExited, runtime.ReasonOOMKilled, runtime.ReasonLiveness, runtime.ReasonStartup,
		runtime.ReasonPostStartFailed, runtime.ReasonSandbox, runtime.ReasonRenamed, planner.ReasonDisconnected:
		return true
	}
	return false
}

// byInit tells whether an init container ended, and nothing else: initNews tells.
func byInit(m *jobspecs.Member) bool {
	return m.Reason == runtime.ReasonExited && slices.ContainsFunc(m.Containers, func(c jobspecs.MemberContainer) bool {
		return c.Kind == jobspecs.KindInit && c.Reason == m.Reason
	})
}

// noted tells whether the engine's notes tell of a reason.
func noted(reason string) bool {
	return reason == runtime.ReasonSandbox || reason == runtime.ReasonPostStartFailed
}

func readyNews(before, now *jobspecs.Member) []news {
	switch {
	case now.Ready && !before.Ready:
		return []news{{normal, "Ready", "is ready"}}
	case !now.Ready && before.Ready && now.Phase == string(runtime.Running):
		return []news{{warning, "Unready", now.Message}}
	}
	return nil
}

func containerNamed(m *jobspecs.Member, name string) *jobspecs.MemberContainer {
	for i := range m.Containers {
		if m.Containers[i].Name == name {
			return &m.Containers[i]
		}
	}
	return nil
}

// subject names the container where a member has several.
func subject(m *jobspecs.Member, c *jobspecs.MemberContainer) string {
	if len(m.Containers) < 2 {
		return ""
	}
	return kindNamed(c.Kind, c.Name) + ": "
}

// whyEnded is why a container that was started anew had ended: stsd's own reason,
// else how it ended.
func whyEnded(before, now *jobspecs.MemberContainer) string {
	switch before.Reason {
	case runtime.ReasonLiveness, runtime.ReasonStartup, runtime.ReasonPostStartFailed, runtime.ReasonSandbox:
		return before.Message
	}
	return howEnded(now)
}

// howEnded is how a container ended last; "" it never did.
func howEnded(c *jobspecs.MemberContainer) string {
	switch {
	case c.OOMKilled:
		return "it ran out of memory"
	case c.Signal != "":
		return "it ended by signal " + c.Signal
	case c.ExitCode != nil:
		return fmt.Sprintf("it ended with exit code %d", *c.ExitCode)
	}
	return ""
}

// after puts a reason behind what happened.
func after(why string) string {
	if why == "" {
		return ""
	}
	return ": " + why
}

func sameTime(a, b *time.Time) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Equal(*b)
}

// tellNotes records the notes of pods, each once: noted is the last one that was
// recorded, by ordinal. A pod that the engine knows anew counts its notes anew.
func (l *loop) tellNotes(pods []runtime.Pod) {
	noted := map[int]runtime.Note{}
	for i := range pods {
		p := &pods[i]
		for _, n := range unnoted(p.Notes, l.noted[p.Ordinal]) {
			message := n.Message
			if n.Container != "" && len(p.Containers) > 1 {
				message = kindNamed(kindOf(p, n.Container), n.Container) + ": " + message
			}
			l.d.events.record(l.key, p.Name, map[bool]string{true: warning, false: normal}[n.Warning], n.Reason, message)
		}
		if last := len(p.Notes) - 1; last >= 0 {
			noted[p.Ordinal] = p.Notes[last]
		}
	}
	l.noted = noted
}

// unnoted are the notes after last; all of them when they were counted anew.
func unnoted(notes []runtime.Note, last runtime.Note) []runtime.Note {
	if len(notes) == 0 || notes[len(notes)-1].N < last.N {
		return notes
	}
	for i, n := range notes {
		switch {
		case n.N == last.N && n.Time.Equal(last.Time):
			return notes[i+1:]
		case n.N == last.N: // another one of that number
			return notes
		case n.N > last.N:
			return notes[i:]
		}
	}
	return nil
}

func kindOf(p *runtime.Pod, container string) string {
	for _, c := range p.Containers {
		if c.Name == container {
			return c.Kind
		}
	}
	return jobspecs.KindMain
}
