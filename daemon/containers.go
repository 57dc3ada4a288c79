package daemon

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

// hasContainer refuses a container that a member is known not to have, and says
// which it has. "" is the first main one.
func (d *Daemon) hasContainer(ctx context.Context, name runtime.PodName, container string) error {
	key, err := d.setOf(name.Namespace, name.Name)
	if err != nil {
		return d.orStray(ctx, name.Namespace, name.Name, nil) // else the engine knows whether there is something of it
	}
	r, err := d.store.Get(key)
	if err != nil {
		return d.notFoundOr(ctx, key, err)
	}
	s := d.statusOf(key, &r)
	for i := range s.Members {
		if s.Members[i].Name == name.Name {
			return lacksContainer(&s.Members[i], container)
		}
	}
	return nil
}

func lacksContainer(m *jobspecs.Member, container string) error {
	if container == "" || len(m.Containers) == 0 || containerNamed(m, container) != nil {
		return nil
	}
	var has []string
	for _, c := range m.Containers {
		text := c.Name
		if c.Kind != jobspecs.KindMain {
			text += " (" + c.Kind + ")"
		}
		has = append(has, text)
	}
	return &client.Problem{
		Type: client.ProblemInvalid, Title: fmt.Sprintf("member %s has no container %s", m.Name, container), Status: http.StatusUnprocessableEntity,
		Detail: "it has " + strings.Join(has, ", "),
	}
}
