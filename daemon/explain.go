package daemon

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/daemon/planner"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

// explain follows a member's state back to its cause, and says what to type.
func explain(s jobspecs.Status, m *jobspecs.Member, plan planner.Plan, now time.Time) jobspecs.Explanation {
	e := jobspecs.Explanation{
		Namespace: m.Namespace, Member: m.Name, State: sentenceOf(m, now),
		Because: []string{}, Next: []string{}, Containers: append([]jobspecs.MemberContainer{}, m.Containers...),
	}
	told := &telling{texts: []string{e.State}}
	culprit := m
	seen := map[string]bool{}
	for at := m; !m.Available && at != nil && !seen[at.Name]; { // what keeps others does not keep an available one
		seen[at.Name], culprit = true, at
		wait := waitOf(plan, at.Name)
		if wait != nil {
			told.say(wait.String())
			if on := memberNamed(s, wait.On, at.Name); on != nil {
				at = on
				continue
			}
		}
		switch {
		case wait == nil && at != m:
			told.say(told.sentenceOf(at, now))
		case wait == nil:
			told.say(at.Message)
		}
		for _, text := range causes(at, now) {
			told.say(text)
		}
		e.Next = append(e.Next, advice(at)...)
		break
	}
	if text := meaning(m.Reason); m.Available && text != "" {
		told.say(m.Message)
		told.say(text)
	}
	if wait := waitOf(plan, m.Name); m.Available && wait != nil && (wait.On == "" || wait.On == m.Name) {
		told.say(wait.String()) // a guard, or its own hook
	}
	told.say(nextTry(culprit, now))
	for _, a := range plan.Actions {
		if a.Member == m.Name {
			told.say("next: " + a.String())
		}
	}
	for _, text := range told.setReasons(s, m) {
		told.say(text)
	}
	e.Because = append(e.Because, told.texts[1:]...)
	if len(e.Next) == 0 {
		e.Next = append(e.Next, advice(m)...)
	}
	e.Next = append(e.Next, wayBack(s, culprit)...)
	if len(e.Next) == 0 {
		e.Next = append(e.Next, "stsd status "+typed(m.Namespace, m.Set))
	}
	return e
}

// culprit is the member that one which is not available waits for in the end: itself,
// when it waits for none.
func culprit(s jobspecs.Status, m *jobspecs.Member, plan planner.Plan) *jobspecs.Member {
	seen := map[string]bool{}
	for at := m; !m.Available; {
		seen[at.Name] = true
		wait := waitOf(plan, at.Name)
		if wait == nil {
			return at
		}
		on := memberNamed(s, wait.On, at.Name)
		if on == nil || seen[on.Name] {
			return at
		}
		at = on
	}
	return m
}

// wayBack is how a rollout that stands still, or whose member fails, goes on, or back to
// the revision before.
func wayBack(s jobspecs.Status, m *jobspecs.Member) []string {
	set := typed(s.Namespace, s.Name)
	switch {
	case s.UpdateRevision == s.CurrentRevision || s.CurrentRevision == "":
		return nil
	case m.Revision == s.UpdateRevision && !m.Available &&
		(holds(s, jobspecs.CondStalled) || m.Phase == string(runtime.Failed) || m.Phase == string(runtime.Backoff)):
		return []string{"stsd rollout undo " + set}
	case m.Revision != s.UpdateRevision && s.Paused:
		return []string{"stsd rollout resume " + set}
	}
	return nil
}

// telling is what an explanation says, outermost first, each once.
type telling struct{ texts []string }

// say adds a text, unless it stands in what was said before.
func (c *telling) say(text string) {
	if text != "" && !c.has(text) {
		c.texts = append(c.texts, text)
	}
}

func (c *telling) has(text string) bool {
	return slices.ContainsFunc(c.texts, func(told string) bool { return strings.Contains(told, text) })
}

// sentenceOf leaves out the message that was said before.
func (c *telling) sentenceOf(m *jobspecs.Member, now time.Time) string {
	short := *m
	if m.Message != "" && c.has(m.Message) {
		short.Message = ""
	}
	return sentenceOf(&short, now)
}

// typed is a set or member as a command line takes it.
func typed(namespace, name string) string {
	if namespace == jobspecs.DefaultNamespace {
		return name
	}
	return namespace + "/" + name
}

func waitOf(p planner.Plan, member string) *planner.Wait {
	for i := range p.Waiting {
		if p.Waiting[i].Member == member {
			return &p.Waiting[i]
		}
	}
	return nil
}

func memberNamed(s jobspecs.Status, name, not string) *jobspecs.Member {
	for i := range s.Members {
		if s.Members[i].Name == name && name != not {
			return &s.Members[i]
		}
	}
	return nil
}

// unmade tells whether nothing of a member exists yet.
func unmade(m *jobspecs.Member) bool {
	return m.Phase == string(runtime.Pending) && len(m.Containers) == 0
}

// sentenceOf says in one sentence how a member is.
func sentenceOf(m *jobspecs.Member, now time.Time) string {
	switch {
	case unmade(m) && m.Reason != "" && m.Reason != planner.ReasonNotCreated:
		return fmt.Sprintf("%s is not created yet (%s)", m.Name, m.Reason)
	case unmade(m):
		return m.Name + " is not created yet"
	case m.Available && m.Phase == string(runtime.Running):
		return fmt.Sprintf("%s is running and available on revision %s", m.Name, m.Revision)
	case m.Ready && m.Phase == string(runtime.Running):
		return fmt.Sprintf("%s is ready, but not yet for min_ready", m.Name)
	case m.Phase == string(runtime.Running):
		return m.Name + " is running but not ready" + after(m.Message)
	}
	text := fmt.Sprintf("%s is %s", m.Name, m.Phase)
	if m.Reason != "" {
		text += " (" + m.Reason + ")"
	}
	if m.Since != nil && now.Sub(*m.Since) >= time.Second {
		text += " for " + lasting(*m.Since, now)
	}
	if m.Reason != "" && m.Message != "" {
		text += ": " + m.Message
	}
	return text
}

// nextTry says when what failed for a member is tried again; "" nothing waits for it.
func nextTry(m *jobspecs.Member, now time.Time) string {
	if m.NextTry == nil || !now.Before(*m.NextTry) {
		return ""
	}
	return m.Name + " is tried again in " + m.NextTry.Sub(now).Round(time.Second).String()
}

// lasting is how long something has gone on, in whole seconds.
func lasting(since, now time.Time) string {
	return max(now.Sub(since), 0).Truncate(time.Second).String()
}

// setReasons are those that lie in the set and not in the member.
func (c *telling) setReasons(s jobspecs.Status, m *jobspecs.Member) []string {
	var out []string
	if !unmade(m) && m.Revision != s.UpdateRevision {
		text := fmt.Sprintf("it runs revision %s, the set wants %s", m.Revision, s.UpdateRevision)
		switch on := s.Waiting; {
		case s.Paused:
			text += "; the rollout is paused"
		case on != nil && on.Member != m.Name:
			text += fmt.Sprintf("; the rollout waits for %s", on.Member)
			if !c.has(on.For) {
				text += after(on.For)
			}
		}
		out = append(out, text)
	}
	for _, v := range s.Volumes {
		if v.Ordinal == m.Ordinal && v.Message != "" {
			out = append(out, "volume "+v.Name+": "+v.Message)
		}
	}
	for _, on := range s.Conditions {
		if on.Type != jobspecs.CondStalled || !on.Status {
			continue
		}
		_, what, _ := strings.Cut(on.Message, ": ") // behind the member's name
		if !c.has(on.Message) && (what == "" || !c.has(what)) {
			out = append(out, "the set is stalled: "+on.Message)
		}
	}
	if m.Stale {
		out = append(out, cmp.Or(m.StaleWhy, "its next start renders self and set anew")+" (stale)")
	}
	return out
}

// memberProblem turns an engine's answer about a pod into one for people.
func memberProblem(name runtime.PodName, err error) error {
	switch {
	case errors.Is(err, runtime.ErrNotFound):
		return &client.Problem{
			Type: client.ProblemNotFound, Title: fmt.Sprintf("member %s has no container", name.Name), Status: http.StatusNotFound,
			Detail: "stsd explain " + typed(name.Namespace, name.Name) + " says why",
		}
	case errors.Is(err, runtime.ErrUnreachable):
		return engineProblem(err)
	}
	return err
}
