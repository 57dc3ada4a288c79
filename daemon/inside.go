package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

// asked is what a user wants to see of a member from inside.
type asked struct {
	name      runtime.PodName
	container string // empty: the first main
	previous  bool   // the output of the last one that ended
}

// insideProblem turns an engine's answer about the inside of a pod into one for
// people: which container it is, what it does, and what to type.
func (d *Daemon) insideProblem(ctx context.Context, q asked, err error) error {
	if err == nil || !notThere(err) {
		return memberProblem(q.name, err)
	}
	pod := d.podNamed(ctx, q.name)
	if pod == nil {
		return d.unmadeProblem(q.name)
	}
	c := q.of(pod)
	if c == nil {
		return memberProblem(q.name, runtime.ErrNotFound)
	}
	title, next := q.absence(pod, c)
	return &client.Problem{Type: client.ProblemConflict, Title: title, Status: http.StatusConflict, Detail: next}
}

// notThere tells whether an engine's error is that the container does not run, or
// is not there now.
func notThere(err error) bool {
	if errors.Is(err, runtime.ErrNotFound) {
		return true
	}
	text := err.Error()
	for _, said := range []string{"is not running", "is paused", "is restarting", "stopped container", goes} {
		if strings.Contains(text, said) {
			return true
		}
	}
	return false
}

// goes is what Docker says of a container that is being removed.
const goes = "dead or marked for removal"

func (d *Daemon) podNamed(ctx context.Context, name runtime.PodName) *runtime.Pod {
	set, _, ok := jobspecs.ParseMember(name.Name)
	if !ok {
		return nil
	}
	list, err := d.parts.Engine.List(ctx, jobspecs.Key{Namespace: name.Namespace, Name: set})
	if err != nil {
		return nil
	}
	for i := range list {
		if list[i].Name == name.Name {
			return &list[i]
		}
	}
	return nil
}

// unmadeProblem tells of a member that the engine does not have.
func (d *Daemon) unmadeProblem(name runtime.PodName) error {
	p := memberProblem(name, runtime.ErrNotFound).(*client.Problem)
	key, err := d.setOf(name.Namespace, name.Name)
	if err != nil {
		return p
	}
	r, err := d.store.Get(key)
	if err != nil {
		return p
	}
	s := d.statusOf(key, &r)
	if m := memberNamed(s, name.Name, ""); m != nil {
		p.Title = fmt.Sprintf("member %s has no container: it is not created yet", name.Name) + after(firstOf(m.Waiting, m.Message))
	}
	return p
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

// of is the container that is meant.
func (q asked) of(p *runtime.Pod) *runtime.Container {
	for i := range p.Containers {
		c := &p.Containers[i]
		if c.Name == q.container || q.container == "" && c.Kind == jobspecs.KindMain {
			return c
		}
	}
	return nil
}

// absence says why there is nothing to see, and what to type.
func (q asked) absence(p *runtime.Pod, c *runtime.Container) (title, next string) {
	member := typed(q.name.Namespace, q.name.Name)
	logs := "stsd logs " + member
	if len(p.Containers) > 1 {
		logs = "stsd logs -c " + c.Name + " " + member
	}
	who := kindNamed(c.Kind, c.Name) + " of " + q.name.Name
	switch {
	case q.previous && c.StartedAt.IsZero() && c.ExitCode == nil:
		return who + " has not begun yet: there are no previous logs", "stsd explain " + member
	case q.previous && over(c.State):
		return who + " has ended for the first time: there are no logs of an earlier one", logs
	case q.previous:
		return who + " has not ended yet: there are no previous logs", logs
	case c.State == "paused":
		return who + " is paused", "docker unpause " + jobspecs.ContainerName(q.name.Namespace, q.name.Name, partOf(p, c))
	case c.State == "running":
		return who + " has just ended or is being replaced; try again", logs + " --previous"
	case c.Kind == jobspecs.KindInit && c.ExitCode != nil && *c.ExitCode == 0:
		return who + " is not running: it did its work and ended", logs
	case strings.HasPrefix(c.Message, "waiting for "):
		return who + " waits for " + strings.TrimPrefix(c.Message, "waiting for "), "stsd explain " + member
	}
	seen := jobspecs.MemberContainer{ExitCode: c.ExitCode, Signal: c.Signal, OOMKilled: c.OOMKilled}
	how := howEnded(&seen)
	switch {
	case how == "":
		return who + " is not running" + after(firstOf(c.Message, p.Message, strings.ToLower(string(p.Phase)))), "stsd explain " + member
	case p.Phase == runtime.Stopping || p.Phase == runtime.Stopped:
		return who + " is not running: " + how + ", and the member ends", "stsd explain " + member
	case c.State == "waiting":
		logs += " --previous"
	}
	return who + " is not running: " + how + ", and is started again with back-off", logs
}

// kindNamed is a container of a pod as every text calls it.
func kindNamed(kind, name string) string {
	switch kind {
	case jobspecs.KindInit, jobspecs.KindSidecar:
		return kind + " " + name
	}
	return "container " + name
}

// partOf is what a container's name at the engine ends in: the first main has the
// member's own name.
func partOf(p *runtime.Pod, c *runtime.Container) string {
	for i := range p.Containers {
		if p.Containers[i].Kind == jobspecs.KindMain {
			if &p.Containers[i] == c {
				return ""
			}
			break
		}
	}
	return c.Name
}
