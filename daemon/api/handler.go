package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/hashicorp/go-hclog"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/jobspecs"
)

// maxBody is the largest request that is read, in bytes.
const maxBody = 64 << 20

// Server serves the API of one Service.
type Server struct {
	Service Service
	Log     hclog.Logger // internal errors; nil: nowhere

	hijacked sync.WaitGroup // connections that net/http no longer counts
}

// Handler serves every route of the API.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	for _, rt := range routes() {
		mux.Handle(rt.method+" "+rt.path, s.serve(rt.handle))
	}
	mux.Handle("/", s.serve(noRoute))
	return mux
}

// handle answers a request, or returns the error to answer with; after the
// first byte of an answer it returns nil.
type handle func(s *Server, w http.ResponseWriter, r *http.Request) error

func (s *Server) serve(h handle) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength > maxBody {
			w.Header().Set("Connection", "close") // else net/http waits for the body first
			s.fail(w, r, tooLarge())
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		if err := h(s, w, r); err != nil {
			s.fail(w, r, err)
		}
	})
}

func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	p := problemOf(err)
	if p.Type == client.ProblemInternal && s.Log != nil && r.Context().Err() == nil {
		s.Log.Error("request", "method", r.Method, "path", r.URL.Path, "error", err)
	}
	w.Header().Set("Content-Type", problemType)
	w.WriteHeader(p.Status)
	_ = writeJSON(w, p) // nobody is left to tell
}

func noRoute(_ *Server, _ http.ResponseWriter, r *http.Request) error {
	return &client.Problem{Type: client.ProblemNotFound, Title: r.Method + " " + r.URL.Path + " is not part of this API", Detail: "/v1/openapi.json describes it"}
}

// answer writes one document.
func answer(w http.ResponseWriter, v any) error {
	w.Header().Set("Content-Type", "application/json")
	_ = writeJSON(w, v) // the caller went away
	return nil
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(filled(v))
}

// body reads a request. Fields that this daemon does not know are refused: a
// newer client must not believe that its dry_run was obeyed.
func body(r *http.Request, into any) error {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil && d.More() {
		err = errors.New("more than one JSON value")
	}
	var over *http.MaxBytesError
	if errors.As(err, &over) {
		return tooLarge()
	}
	if err != nil {
		return invalid("read the request: %v", err)
	}
	return nil
}

// setOf is the set that the path names.
func setOf(r *http.Request) (jobspecs.Key, error) {
	k := jobspecs.Key{Namespace: r.PathValue("namespace"), Name: r.PathValue("set")}
	if !jobspecs.IsLabel(k.Namespace) || !jobspecs.IsLabel(k.Name) {
		return k, invalid("%q is no set name", k)
	}
	return k, nil
}

func memberOf(r *http.Request) (namespace, member string, err error) {
	namespace, member = r.PathValue("namespace"), r.PathValue("member")
	if !jobspecs.IsLabel(namespace) || !jobspecs.IsLabel(member) {
		return "", "", invalid("%q is no member name", namespace+"/"+member)
	}
	return namespace, member, nil
}

func tooLarge() error { return invalid("the request is larger than %d MiB", maxBody>>20) }

func invalid(format string, args ...any) error {
	return &client.Problem{Type: client.ProblemInvalid, Title: fmt.Sprintf(format, args...)}
}
