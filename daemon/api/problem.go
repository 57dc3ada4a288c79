package api

import (
	"errors"
	"net/http"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/runtime"
)

// problemType is the media type of a problem (RFC 9457 section 6.1).
const problemType = "application/problem+json"

// kinds gives each type of problem its status and title.
var kinds = map[string]struct {
	status int
	title  string
}{
	client.ProblemInvalid:     {http.StatusUnprocessableEntity, "invalid"},
	client.ProblemNotFound:    {http.StatusNotFound, "not found"},
	client.ProblemChanged:     {http.StatusConflict, "changed since"},
	client.ProblemUnconfirmed: {http.StatusForbidden, "not confirmed"},
	client.ProblemConflict:    {http.StatusConflict, "conflict"},
	client.ProblemGuard:       {http.StatusConflict, "refused by the guard"},
	client.ProblemEngine:      {http.StatusServiceUnavailable, "engine not reachable"},
	client.ProblemInternal:    {http.StatusInternalServerError, "internal error"},
}

// problemOf is err as the API tells it, with status and title filled in.
func problemOf(err error) client.Problem {
	p := client.Problem{Type: client.ProblemInternal, Detail: err.Error()}
	var told *client.Problem
	switch {
	case errors.As(err, &told):
		p = *told
	case errors.Is(err, runtime.ErrUnreachable):
		p.Type = client.ProblemEngine
	case errors.Is(err, runtime.ErrNotFound):
		p.Type = client.ProblemNotFound
	}
	kind, ok := kinds[p.Type]
	if !ok {
		kind = kinds[client.ProblemInternal]
	}
	if p.Status < 400 || p.Status > 599 {
		p.Status = kind.status
	}
	if p.Title == "" {
		p.Title = kind.title
	}
	return p
}
