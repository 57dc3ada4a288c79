package daemon

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/daemon/planner"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

// explain follows a member's state back to its cause, and says what to type.
func explain(s jobspecs.Status, m *jobspecs.Member, plan planner.Plan) jobspecs.Explanation {
	e := jobspecs.Explanation{Namespace: m.Namespace, Member: m.Name, State: sentenceOf(m), Because: []string{}, Next: []string{}}
	seen := map[string]bool{}
	for at := m; !m.Available && at != nil && !seen[at.Name]; { // what keeps others does not keep an available one
		seen[at.Name] = true
		wait := waitOf(plan, at.Name)
		switch {
		case wait != nil:
			e.Because = append(e.Because, wait.String())
			at = memberNamed(s, wait.On, at.Name)
			continue
		case at != m:
			e.Because = append(e.Because, sentenceOf(at))
		case at.Message != "":
			e.Because = append(e.Because, at.Message)
		}
		e.Because = append(e.Because, exits(at)...)
		e.Next = append(e.Next, advice(at)...)
		break
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
func sentenceOf(m *jobspecs.Member) string {
	switch {
	case unmade(m):
		return m.Name + " is not created yet"
	case m.Available:
		return fmt.Sprintf("%s is running and available on revision %s", m.Name, m.Revision)
	case m.Ready:
		return fmt.Sprintf("%s is ready, but not yet for min_ready", m.Name)
	case m.Phase == string(runtime.Running):
		return fmt.Sprintf("%s is running but not ready: %s", m.Name, m.Message)
	case m.Reason != "" && m.Message != "":
		return fmt.Sprintf("%s is %s (%s): %s", m.Name, m.Phase, m.Reason, m.Message)
	case m.Reason != "":
		return fmt.Sprintf("%s is %s (%s)", m.Name, m.Phase, m.Reason)
	}
	return fmt.Sprintf("%s is %s", m.Name, m.Phase)
}

// exits tells how the member's last container ended.
func exits(m *jobspecs.Member) []string {
	var out []string
	for _, c := range m.Containers {
		switch {
		case c.OOMKilled:
			out = append(out, fmt.Sprintf("container %s was killed because it ran out of memory", c.Name))
		case c.Signal != "":
			out = append(out, fmt.Sprintf("container %s ended by signal %s", c.Name, c.Signal))
		case c.ExitCode != nil:
			out = append(out, fmt.Sprintf("container %s last ended with exit code %d, %d restarts", c.Name, *c.ExitCode, c.Restarts))
		}
	}
	return out
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

// advice is what to type next.
func advice(m *jobspecs.Member) []string {
	switch m.Reason {
	case runtime.ReasonImageMissing, runtime.ReasonImageUnknown:
		return []string{"docker image ls", fmt.Sprintf("stsd set image %s IMAGE", typed(m.Namespace, m.Set))}
	case runtime.ReasonPullFailed, runtime.ReasonAccessDenied:
		return []string{"docker pull " + m.Image}
	case runtime.ReasonNameTaken:
		return []string{"docker inspect " + jobspecs.ContainerName(m.Namespace, m.Name, "")}
	case runtime.ReasonPortTaken:
		return []string{"ss -ltnp"}
	case runtime.ReasonVolumeForeign:
		return []string{"docker volume ls"}
	case runtime.ReasonExited, runtime.ReasonOOMKilled, runtime.ReasonLiveness, runtime.ReasonStartup, runtime.ReasonBadCommand:
		return []string{"stsd logs --previous " + typed(m.Namespace, m.Name), "stsd events"}
	case runtime.ReasonNotReady, runtime.ReasonStartupPending:
		return []string{"stsd logs " + typed(m.Namespace, m.Name)}
	}
	return nil
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
