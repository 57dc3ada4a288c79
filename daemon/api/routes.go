package api

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

// route is one operation of the API: what serves it and what describes it.
type route struct {
	method, path string
	summary      string
	query        []param
	in           any    // the body it reads; nil: none
	out          any    // the document it answers with; nil: none
	stream       string // what else it answers with, from the list below
	handle       handle
}

// Ways to answer that are not one document.
const (
	streamLines  = "lines"   // always one document a line
	streamWatch  = "watch"   // one document, or with ?watch=true one a line
	streamFrames = "frames"  // client.FramesType
	streamExec   = "upgrade" // client.ExecProtocol
	streamText   = "text"    // plain text
)

// param is one query parameter.
type param struct {
	name, kind string // kind: "string", "boolean", "date-time", "strings"
	about      string
}

var namespaceParam = param{"namespace", "string", "one namespace; absent: all"}

// routes lists the API in the order of its document.
func routes() []route {
	return []route{
		{method: "POST", path: "/v1/apply", summary: "Store sets, all of them or none", in: client.ApplyRequest{}, out: client.ApplyResponse{}, handle: whole(Service.Apply)},
		{method: "POST", path: "/v1/plan", summary: "What an apply would do; writes nothing", in: client.ApplyRequest{}, out: client.PlanResponse{}, handle: whole(Service.Plan)},
		{method: "GET", path: "/v1/sets", summary: "List sets", query: []param{namespaceParam}, out: []jobspecs.SetRow{}, handle: list(Service.Sets)},
		{method: "GET", path: "/v1/sets/{namespace}/{set}", summary: "Status of a set, once or now and after each change", query: []param{watchParam}, out: jobspecs.Status{}, stream: streamWatch, handle: status},
		{method: "GET", path: "/v1/sets/{namespace}/{set}/history", summary: "Revisions, oldest first", out: []jobspecs.HistoryRow{}, handle: ofSet(Service.History)},
		{method: "GET", path: "/v1/sets/{namespace}/{set}/source", summary: "What was last applied", out: client.StoredSource{}, handle: ofSet(Service.Source)},
		{method: "POST", path: "/v1/sets/{namespace}/{set}/scale", summary: "Override the number of replicas", in: client.ScaleRequest{}, out: client.Result{}, handle: needing("replicas", change(Service.Scale))},
		{method: "POST", path: "/v1/sets/{namespace}/{set}/image", summary: "Override images", in: client.ImageRequest{}, out: client.Result{}, handle: change(Service.SetImage)},
		{method: "POST", path: "/v1/sets/{namespace}/{set}/rollout", summary: "Undo, pause, resume or restart a rollout", in: client.RolloutRequest{}, out: client.Result{}, handle: change(Service.Rollout)},
		{method: "POST", path: "/v1/sets/{namespace}/{set}/members", summary: "Restart, replace, stop or start members", in: client.MembersRequest{}, out: client.Result{}, handle: needing("do", change(Service.ChangeMembers))},
		{method: "POST", path: "/v1/sets/{namespace}/{set}/fresh-volume", summary: "Replace a member and give up its data: it starts with empty volumes", in: client.FreshVolumeRequest{}, out: client.Result{}, handle: needing("ordinal", change(Service.FreshVolume))},
		{method: "POST", path: "/v1/sets/{namespace}/{set}/delete", summary: "Accept the end of a set; it is gone when its status is 404", in: client.DeleteRequest{}, out: client.Result{}, handle: change(Service.Delete)},
		{method: "GET", path: "/v1/members", summary: "List members, those not created yet too", query: []param{namespaceParam}, out: []jobspecs.Member{}, handle: list(Service.Members)},
		{method: "GET", path: "/v1/members/{namespace}/{member}/explain", summary: "Why a member is in its state", out: jobspecs.Explanation{}, handle: explain},
		{method: "GET", path: "/v1/members/{namespace}/{member}/logs", summary: "Output of a member, as frames", query: logParams, stream: streamFrames, handle: logs},
		{method: "POST", path: "/v1/members/{namespace}/{member}/exec", summary: "Run a command in a member: the connection is upgraded to frames both ways", query: execParams, stream: streamExec, handle: exec},
		{method: "GET", path: "/v1/secrets", summary: "List generated secrets, without their values", query: []param{namespaceParam}, out: []client.Secret{}, handle: list(Service.Secrets)},
		{method: "POST", path: "/v1/secrets/{namespace}/{secret}/delete", summary: "Forget a generated secret; the next apply makes another one", in: client.SecretRequest{}, out: client.SecretResult{}, handle: removeSecret},
		{method: "GET", path: "/v1/events", summary: "Events, oldest first, one a line", query: eventParams, out: jobspecs.Event{}, stream: streamLines, handle: events},
		{method: "GET", path: "/v1/dns", summary: "What DNS answers now, to whom and why", query: dnsParams, out: client.DNS{}, handle: dnsNames},
		{method: "GET", path: "/v1/dns/trace", summary: "Questions to DNS from now on, one a line", query: dnsTraceParams, out: client.DNSTraced{}, stream: streamLines, handle: dnsTrace},
		{method: "GET", path: "/v1/version", summary: "Which daemon answers", out: client.Version{}, handle: version},
		{method: "GET", path: "/v1/openapi.json", summary: "This document", out: map[string]any{}, handle: document},
		{method: "GET", path: "/metrics", summary: "What is counted, for Prometheus", stream: streamText, handle: metrics},
		{method: "GET", path: "/healthz", summary: "200 while the daemon runs", stream: streamText, handle: healthz},
		{method: "GET", path: "/readyz", summary: "200 while the engine answers, else 503", stream: streamText, handle: readyz},
	}
}

var watchParam = param{"watch", "boolean", "one document a line, now and after each change, until the set is gone: then the last line is a problem of type " + client.ProblemNotFound + ". Every line is whole: to resume, open it again"}

// whole serves a call that is about no single set.
func whole[In, Out any](call func(Service, context.Context, In) (Out, error)) handle {
	return func(s *Server, w http.ResponseWriter, r *http.Request) error {
		var in In
		if err := body(r, &in); err != nil {
			return err
		}
		out, err := call(s.Service, r.Context(), in)
		if err != nil {
			return err
		}
		return answer(w, out)
	}
}

// needing refuses a body without a field whose zero would do harm.
func needing(field string, next handle) handle {
	return func(s *Server, w http.ResponseWriter, r *http.Request) error {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return invalid("read the request: %v", err)
		}
		var fields map[string]json.RawMessage
		if json.Unmarshal(text, &fields) == nil && (fields[field] == nil || string(fields[field]) == "null") {
			return invalid("%q has to be given", field)
		}
		r.Body = io.NopCloser(bytes.NewReader(text))
		return next(s, w, r)
	}
}

// change serves a call that writes one set.
func change[In, Out any](call func(Service, context.Context, jobspecs.Key, In) (Out, error)) handle {
	return func(s *Server, w http.ResponseWriter, r *http.Request) error {
		set, err := setOf(r)
		if err != nil {
			return err
		}
		return whole(func(svc Service, ctx context.Context, in In) (Out, error) {
			return call(svc, ctx, set, in)
		})(s, w, r)
	}
}

// ofSet serves a call that reads one set.
func ofSet[Out any](call func(Service, context.Context, jobspecs.Key) (Out, error)) handle {
	return func(s *Server, w http.ResponseWriter, r *http.Request) error {
		set, err := setOf(r)
		if err != nil {
			return err
		}
		out, err := call(s.Service, r.Context(), set)
		if err != nil {
			return err
		}
		return answer(w, out)
	}
}

// list serves a call that reads a namespace.
func list[Row any](call func(Service, context.Context, string) ([]Row, error)) handle {
	return func(s *Server, w http.ResponseWriter, r *http.Request) error {
		rows, err := call(s.Service, r.Context(), r.URL.Query().Get("namespace"))
		if err != nil {
			return err
		}
		return answer(w, rows)
	}
}

func explain(s *Server, w http.ResponseWriter, r *http.Request) error {
	ns, member, err := memberOf(r)
	if err != nil {
		return err
	}
	e, err := s.Service.Explain(r.Context(), ns, member)
	if err != nil {
		return err
	}
	return answer(w, e)
}

func removeSecret(s *Server, w http.ResponseWriter, r *http.Request) error {
	ns, name := r.PathValue("namespace"), r.PathValue("secret")
	if !jobspecs.IsLabel(ns) {
		return invalid("%q is no name of a namespace", ns)
	}
	return whole(func(svc Service, ctx context.Context, in client.SecretRequest) (client.SecretResult, error) {
		return svc.RemoveSecret(ctx, ns, name, in)
	})(s, w, r)
}

func version(s *Server, w http.ResponseWriter, r *http.Request) error {
	return answer(w, s.Service.Version(r.Context()))
}

func document(_ *Server, w http.ResponseWriter, _ *http.Request) error { return answer(w, Document()) }

func metrics(s *Server, w http.ResponseWriter, r *http.Request) error {
	s.Service.Metrics().ServeHTTP(w, r)
	return nil
}

func healthz(_ *Server, w http.ResponseWriter, _ *http.Request) error { return text(w, "ok\n") }

func readyz(s *Server, w http.ResponseWriter, _ *http.Request) error {
	if err := s.Service.Ready(); err != nil {
		return &client.Problem{Type: client.ProblemEngine, Detail: err.Error()}
	}
	return text(w, "ready\n")
}

func text(w http.ResponseWriter, s string) error {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte(s)) // the caller went away
	return nil
}

// flag reads a boolean parameter; absent is false.
func flag(r *http.Request, name string) (bool, error) {
	s := r.URL.Query().Get(name)
	if s == "" {
		return false, nil
	}
	on, err := strconv.ParseBool(s)
	if err != nil {
		return false, invalid("%s=%q is neither true nor false", name, s)
	}
	return on, nil
}

// moment reads a time; absent is the zero one.
func moment(r *http.Request, name string) (time.Time, error) {
	s := r.URL.Query().Get(name)
	if s == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return t, invalid("%s=%q is no time: want RFC 3339", name, s)
	}
	return t, nil
}

// podOf is the member that the path names, as engines know it.
func podOf(r *http.Request) (runtime.PodName, error) {
	ns, member, err := memberOf(r)
	return runtime.PodName{Namespace: ns, Name: member}, err
}
