package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/daemon/store"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

// notFound tells of a set that is not stored: its members may run all the same.
func (d *Daemon) notFound(ctx context.Context, key jobspecs.Key) error {
	p := &client.Problem{
		Type: client.ProblemNotFound, Title: fmt.Sprintf("no set %s in namespace %s", key.Name, key.Namespace),
		Status: http.StatusNotFound, Set: key.Name, Detail: "stsd ls -A",
	}
	if slices.Contains(d.strays(ctx), key) {
		p.Title, p.Detail = d.strayText(key)
	}
	return p
}

// orStray tells of a set or member that it is a stray; what is none has the error.
func (d *Daemon) orStray(ctx context.Context, namespace, name string, err error) error {
	set, _, ok := jobspecs.ParseMember(name)
	for _, key := range d.strays(ctx) {
		if key.Namespace == namespace && (key.Name == name || ok && key.Name == set) {
			return d.notFound(ctx, key)
		}
	}
	return err
}

func conflict(key jobspecs.Key, why string) error {
	return &client.Problem{Type: client.ProblemConflict, Title: fmt.Sprintf("set %s: %s", key.Name, why), Status: http.StatusConflict, Set: key.Name}
}

func invalid(detail string, ds ...jobspecs.Diagnostic) error {
	return &client.Problem{Type: client.ProblemInvalid, Title: detail, Status: http.StatusUnprocessableEntity, Diagnostics: ds}
}

func changed(key jobspecs.Key, want, have int64) error {
	return &client.Problem{
		Type: client.ProblemChanged, Title: fmt.Sprintf("set %s was changed meanwhile", key.Name), Status: http.StatusConflict, Set: key.Name,
		Detail: fmt.Sprintf("it is at generation %d, not %d; plan again", have, want),
	}
}

// engineProblem tells that the engine does not answer.
func engineProblem(err error) error {
	if !errors.Is(err, runtime.ErrUnreachable) {
		return err
	}
	return &client.Problem{Type: client.ProblemEngine, Title: "the engine does not answer", Status: http.StatusServiceUnavailable, Detail: err.Error()}
}

func storeProblem(err error) error {
	switch {
	case errors.Is(err, store.ErrChanged):
		return &client.Problem{Type: client.ProblemChanged, Title: "the set was changed meanwhile", Status: http.StatusConflict, Detail: err.Error()}
	case errors.Is(err, store.ErrSubnetTaken):
		return &client.Problem{Type: client.ProblemChanged, Title: "another namespace got that network meanwhile; say it again", Status: http.StatusConflict, Detail: err.Error()}
	case errors.Is(err, store.ErrFull):
		return &client.Problem{Type: client.ProblemConflict, Title: "the namespace's network has no address left", Status: http.StatusConflict, Detail: err.Error()}
	case errors.Is(err, store.ErrUnwritable):
		return &client.Problem{Type: client.ProblemInternal, Title: "nothing was stored, and nothing is changed", Status: http.StatusInsufficientStorage, Detail: err.Error()}
	case errors.Is(err, store.ErrNotFound):
		return &client.Problem{Type: client.ProblemNotFound, Title: err.Error(), Status: http.StatusNotFound}
	}
	return err
}
