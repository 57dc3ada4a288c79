// Package apitest is the test kit of the API: a Service that answers what a test
// gave it, served over a real socket.
package apitest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stsd/stsd/daemon/api"
	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

// Start is the moment at which everything of World was made.
var Start = time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)

// Service answers with its fields. Set them before serving.
type Service struct {
	Err      error // of every call, when set
	Plans    []jobspecs.Plan
	Warnings []jobspecs.Diagnostic
	Result   client.Result
	Rows     []jobspecs.SetRow
	Statuses map[jobspecs.Key][]jobspecs.Status // WatchStatus gives each, Status the last
	Gone     bool                               // a watch ends after the last status; else it goes on
	People   []jobspecs.Member
	Rev      []jobspecs.HistoryRow
	Stored   client.StoredSource
	Why      jobspecs.Explanation
	Happened []jobspecs.Event
	Output   map[string][]string // member → lines
	Secret   []client.Secret
	Sealed   []byte // of a plan
	Resolved client.DNS
	Asked    []client.DNSTraced // a trace gives each, then ends
	Loss     []string           // data that a write would lose; refused until confirmed
	Unready  error

	mu  sync.Mutex
	got []any
}

var _ api.Service = (*Service)(nil)

// Got are the requests of writing calls, in their order.
func (s *Service) Got() []any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]any(nil), s.got...)
}

func (s *Service) take(r any, w client.Write, set string) error {
	s.mu.Lock()
	s.got = append(s.got, r)
	s.mu.Unlock()
	if s.Err != nil {
		return s.Err
	}
	if len(s.Loss) > 0 && !w.Yes && len(w.Confirm) == 0 && !w.DryRun {
		return &client.Problem{Type: client.ProblemUnconfirmed, Title: "data would be lost sight of", Set: set, Data: s.Loss}
	}
	return nil
}

func (s *Service) one(r any, w client.Write, set jobspecs.Key) (client.Result, error) {
	if err := s.take(r, w, set.Name); err != nil {
		return client.Result{}, err
	}
	if _, ok := s.Statuses[set]; !ok {
		return client.Result{}, notFound(set)
	}
	out := s.Result
	if w.DryRun && len(s.Plans) > 0 {
		out.Plan = &s.Plans[0]
	}
	return out, nil
}

func notFound(set jobspecs.Key) error {
	return &client.Problem{Type: client.ProblemNotFound, Title: "no set " + set.Name + " in namespace " + set.Namespace, Set: set.Name}
}

func (s *Service) Apply(_ context.Context, r client.ApplyRequest) (client.ApplyResponse, error) {
	err := s.take(r, r.Write, s.Result.Set)
	return client.ApplyResponse{Results: []client.Result{s.Result}, Diagnostics: s.Warnings}, err
}

func (s *Service) Plan(_ context.Context, r client.ApplyRequest) (client.PlanResponse, error) {
	err := s.take(r, client.Write{Yes: true}, "")
	return client.PlanResponse{Plans: s.Plans, Diagnostics: s.Warnings, Sealed: s.Sealed}, err
}

func (s *Service) Scale(_ context.Context, set jobspecs.Key, r client.ScaleRequest) (client.Result, error) {
	return s.one(r, r.Write, set)
}

func (s *Service) SetImage(_ context.Context, set jobspecs.Key, r client.ImageRequest) (client.Result, error) {
	return s.one(r, r.Write, set)
}

func (s *Service) Rollout(_ context.Context, set jobspecs.Key, r client.RolloutRequest) (client.Result, error) {
	return s.one(r, r.Write, set)
}

func (s *Service) ChangeMembers(_ context.Context, set jobspecs.Key, r client.MembersRequest) (client.Result, error) {
	return s.one(r, r.Write, set)
}

func (s *Service) FreshVolume(_ context.Context, set jobspecs.Key, r client.FreshVolumeRequest) (client.Result, error) {
	return s.one(r, r.Write, set)
}

func (s *Service) Delete(_ context.Context, set jobspecs.Key, r client.DeleteRequest) (client.Result, error) {
	return s.one(r, r.Write, set)
}

func (s *Service) Secrets(_ context.Context, namespace string) ([]client.Secret, error) {
	var out []client.Secret
	for _, x := range s.Secret {
		if namespace == "" || x.Namespace == namespace {
			out = append(out, x)
		}
	}
	return out, s.Err
}

func (s *Service) RemoveSecret(_ context.Context, namespace, name string, r client.SecretRequest) (client.SecretResult, error) {
	err := s.take(r, r.Write, name)
	return client.SecretResult{Namespace: namespace, Name: name, Removed: err == nil, Message: "secret " + name + " removed"}, err
}

func (s *Service) DNS(_ context.Context, q client.DNSQuery) (client.DNS, error) {
	out := s.Resolved
	out.Names = nil
	for _, n := range s.Resolved.Names {
		if q.Name == "" || q.Name == n.Name {
			out.Names = append(out.Names, n)
		}
	}
	return out, s.Err
}

func (s *Service) TraceDNS(_ context.Context, name string, start func() error, each func(client.DNSTraced) error) error {
	if s.Err != nil {
		return s.Err
	}
	if err := start(); err != nil {
		return err
	}
	for _, q := range s.Asked {
		if name != "" && name != q.Name {
			continue
		}
		if err := each(q); err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) Sets(_ context.Context, namespace string) ([]jobspecs.SetRow, error) {
	var out []jobspecs.SetRow
	for _, r := range s.Rows {
		if namespace == "" || r.Namespace == namespace {
			out = append(out, r)
		}
	}
	return out, s.Err
}

func (s *Service) Status(_ context.Context, set jobspecs.Key) (jobspecs.Status, error) {
	all, ok := s.Statuses[set]
	if s.Err != nil || !ok {
		return jobspecs.Status{}, orNotFound(s.Err, set)
	}
	return all[len(all)-1], nil
}

func orNotFound(err error, set jobspecs.Key) error {
	if err != nil {
		return err
	}
	return notFound(set)
}

func (s *Service) WatchStatus(ctx context.Context, set jobspecs.Key) (<-chan jobspecs.Status, error) {
	all, ok := s.Statuses[set]
	if s.Err != nil || !ok {
		return nil, orNotFound(s.Err, set)
	}
	out := make(chan jobspecs.Status, len(all))
	for _, st := range all {
		out <- st
	}
	if s.Gone {
		close(out)
		return out, nil
	}
	context.AfterFunc(ctx, func() { close(out) })
	return out, nil
}

func (s *Service) Members(_ context.Context, namespace string) ([]jobspecs.Member, error) {
	var out []jobspecs.Member
	for _, m := range s.People {
		if namespace == "" || m.Namespace == namespace {
			out = append(out, m)
		}
	}
	return out, s.Err
}

func (s *Service) History(_ context.Context, set jobspecs.Key) ([]jobspecs.HistoryRow, error) {
	if _, ok := s.Statuses[set]; !ok || s.Err != nil {
		return nil, orNotFound(s.Err, set)
	}
	return s.Rev, nil
}

func (s *Service) Source(context.Context, jobspecs.Key) (client.StoredSource, error) {
	return s.Stored, s.Err
}

func (s *Service) Explain(_ context.Context, namespace, member string) (jobspecs.Explanation, error) {
	if s.Err == nil && s.Why.Member != member {
		return jobspecs.Explanation{}, notFound(jobspecs.Key{Namespace: namespace, Name: member})
	}
	return s.Why, s.Err
}

func (s *Service) Events(ctx context.Context, q api.EventQuery, each func(jobspecs.Event) error) error {
	for _, e := range s.Happened {
		if q.Set != "" && q.Set != e.Set || e.Time.Before(q.Since) {
			continue
		}
		if err := each(e); err != nil {
			return err
		}
	}
	if q.Follow && s.Err == nil {
		<-ctx.Done()
	}
	return s.Err
}

func (s *Service) Logs(ctx context.Context, name runtime.PodName, o runtime.LogOptions, stdout, stderr io.Writer) error {
	lines, ok := s.Output[name.Name]
	if !ok {
		return runtime.ErrNotFound
	}
	for i, l := range lines {
		if o.Timestamps {
			l = Start.Add(time.Duration(len(name.Name)+i)*time.Second+time.Duration(name.Name[len(name.Name)-1])).Format(time.RFC3339Nano) + " " + l
		}
		fmt.Fprintln(stdout, l)
	}
	if s.Err != nil {
		return s.Err
	}
	if o.Follow {
		<-ctx.Done()
		return ctx.Err()
	}
	fmt.Fprint(stderr, "")
	return nil
}

// Exec knows the commands "exit N", "cat", "size" and "sleep".
func (s *Service) Exec(ctx context.Context, name runtime.PodName, o runtime.ExecOptions) (int, error) {
	if s.Err != nil {
		return 0, s.Err
	}
	switch o.Command[0] {
	case "exit":
		var code int
		_, err := fmt.Sscan(o.Command[1], &code)
		fmt.Fprintln(o.Stderr, name.Name, "exits")
		return code, err
	case "cat":
		_, err := io.Copy(o.Stdout, bufio.NewReader(o.Stdin))
		return 0, err
	case "size":
		size := <-o.Resize
		fmt.Fprintf(o.Stdout, "%d rows, %d columns\n", size[0], size[1])
		return 0, nil
	case "sleep":
		<-ctx.Done()
		return 0, ctx.Err()
	}
	return 0, runtime.ErrNotFound
}

// Metrics implements api.Service.
func (s *Service) Metrics() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		fmt.Fprintln(w, "stsd_sets 1")
	})
}

func (s *Service) Version(context.Context) client.Version {
	return client.Version{Version: "v0", API: "v1", Daemon: "d0", Engine: "sim", Connected: true, DataDir: "/data", PID: 1}
}

func (s *Service) Ready() error { return s.Unready }

// Serve serves s on a socket until the test ends and returns its host.
func Serve(t *testing.T, s api.Service) string {
	t.Helper()
	path := t.TempDir() + "/s"
	ln, err := api.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- (&api.Server{Service: s}).Serve(ctx, ln) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return "unix://" + path
}
