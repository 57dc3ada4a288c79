package daemon

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/daemon/store"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

func notFound(key jobspecs.Key) error {
	return &client.Problem{
		Type: client.ProblemNotFound, Title: fmt.Sprintf("no set %s in namespace %s", key.Name, key.Namespace),
		Status: http.StatusNotFound, Set: key.Name, Detail: "stsd ls -A shows what there is",
	}
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
	case errors.Is(err, store.ErrFull):
		return &client.Problem{Type: client.ProblemConflict, Title: "the namespace's network has no address left", Status: http.StatusConflict, Detail: err.Error()}
	case errors.Is(err, store.ErrNotFound):
		return &client.Problem{Type: client.ProblemNotFound, Title: err.Error(), Status: http.StatusNotFound}
	}
	return err
}
