package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/jobspecs"
)

// maxBody is the largest request that is read, in bytes.
const maxBody = 64 << 20

// bodyWithin is how long a caller may take to send the body of a request.
const bodyWithin = time.Minute

// Server serves the API of one Service.
type Server struct {
	Service Service
	Log     hclog.Logger // internal errors; nil: nowhere

	hijacked sync.WaitGroup // connections that net/http no longer counts
	within   time.Duration  // instead of bodyWithin, in tests; zero: none
}

// Handler serves every route of the API.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	methods := map[string][]string{} // by path
	for _, rt := range routes() {
		mux.Handle(rt.method+" "+rt.path, s.serve(rt.handle))
		methods[rt.path] = append(methods[rt.path], rt.method)
	}
	for path, list := range methods {
		mux.Handle(path, s.serve(wrongMethod(list)))
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
		body := s.timed(w, r)
		r.Body = http.MaxBytesReader(w, body, maxBody)
		err := h(s, w, r)
		if body.late {
			w.Header().Set("Connection", "close")
			err = tooSlow()
		}
		if err != nil {
			s.fail(w, r, err)
		}
	})
}

// timed gives the caller a limited time to send the body of a request. What the
// handler does after it has the body takes as long as it takes.
func (s *Server) timed(w http.ResponseWriter, r *http.Request) *timedBody {
	b := &timedBody{ReadCloser: r.Body, limit: func(time.Time) error { return nil }}
	if r.ContentLength == 0 {
		return b
	}
	within := bodyWithin
	if s.within > 0 {
		within = s.within
	}
	b.limit = http.NewResponseController(w).SetReadDeadline
	_ = b.limit(time.Now().Add(within)) // a connection that knows no deadline is a test's
	return b
}

// timedBody lifts the limit once the body has ended, and notes that it was hit.
type timedBody struct {
	io.ReadCloser
	limit func(time.Time) error
	late  bool
}

func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.late = b.late || errors.Is(err, os.ErrDeadlineExceeded)
	if err != nil && !b.late {
		_ = b.limit(time.Time{}) // as above
	}
	return n, err
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

// wrongMethod answers a path that is part of the API, asked by another method.
func wrongMethod(methods []string) handle {
	if slices.Contains(methods, http.MethodGet) {
		methods = append(methods, http.MethodHead)
	}
	allow := strings.Join(methods, ", ")
	return func(_ *Server, w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("Allow", allow)
		return &client.Problem{
			Type: client.ProblemInvalid, Status: http.StatusMethodNotAllowed,
			Title: r.Method + " " + r.URL.Path + " is not part of this API", Detail: "this path takes " + allow,
		}
	}
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

func tooSlow() error {
	return &client.Problem{Type: client.ProblemInvalid, Status: http.StatusRequestTimeout, Title: "the body of the request did not come in time"}
}

func invalid(format string, args ...any) error {
	return &client.Problem{Type: client.ProblemInvalid, Title: fmt.Sprintf(format, args...)}
}
