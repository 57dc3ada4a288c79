package daemon

import (
	"errors"
	"fmt"
	"net/http"
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
	seen := map[string]bool{}
	for at := m; !m.Available && at != nil && !seen[at.Name]; { // what keeps others does not keep an available one
		seen[at.Name] = true
		wait := waitOf(plan, at.Name)
		switch {
		case wait != nil:
			e.Because = append(e.Because, wait.String())
			if on := memberNamed(s, wait.On, at.Name); on != nil {
				at = on
				continue
			}
			e.Because = append(e.Because, causes(at, now)...)
			e.Next = append(e.Next, advice(at)...)
			at = nil
			continue
		case at != m:
			e.Because = append(e.Because, sentenceOf(at, now))
		case at.Message != "":
			e.Because = append(e.Because, at.Message)
		}
		e.Because = append(e.Because, causes(at, now)...)
		e.Next = append(e.Next, advice(at)...)
		break
	}
	if text := meaning(m.Reason); m.Available && text != "" {
		e.Because = append(e.Because, m.Message, text)
	}
	for _, a := range plan.Actions {
		if a.Member == m.Name {
			e.Because = append(e.Because, "next: "+a.String())
		}
	}
	e.Because = append(e.Because, setReasons(s, m)...)
	if len(e.Next) == 0 {
		e.Next = append(e.Next, advice(m)...)
	}
	if len(e.Next) == 0 {
		e.Next = append(e.Next, "stsd status "+typed(m.Namespace, m.Set))
	}
	return e
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
	case unmade(m):
		return m.Name + " is not created yet"
	case m.Available:
		return fmt.Sprintf("%s is running and available on revision %s", m.Name, m.Revision)
	case m.Ready:
		return fmt.Sprintf("%s is ready, but not yet for min_ready", m.Name)
	case m.Phase == string(runtime.Running):
		return fmt.Sprintf("%s is running but not ready: %s", m.Name, m.Message)
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

// lasting is how long something has gone on, in whole seconds.
func lasting(since, now time.Time) string {
	return max(now.Sub(since), 0).Truncate(time.Second).String()
}

// setReasons are those that lie in the set and not in the member.
func setReasons(s jobspecs.Status, m *jobspecs.Member) []string {
	var out []string
	if !unmade(m) && m.Revision != s.UpdateRevision {
		text := fmt.Sprintf("it runs revision %s, the set wants %s", m.Revision, s.UpdateRevision)
		switch on := s.Waiting; {
		case s.Paused:
			text += "; the rollout is paused"
		case on != nil && on.Member != m.Name:
			text += fmt.Sprintf("; the rollout waits for %s: %s", on.Member, on.For)
		}
		out = append(out, text)
	}
	for _, c := range s.Conditions {
		if c.Type == jobspecs.CondStalled && c.Status {
			out = append(out, "the set is stalled: "+c.Message)
		}
	}
	if m.Stale {
		out = append(out, "its next start renders self and set anew (stale)")
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
