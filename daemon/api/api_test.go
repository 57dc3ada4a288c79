package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/stsd/stsd/daemon/api"
	"github.com/stsd/stsd/daemon/api/apitest"
	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

var update = flag.Bool("update", false, "write golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func serve(t *testing.T, s api.Service) *client.Client {
	t.Helper()
	c, err := client.New(apitest.Serve(t, s))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestWritesReachTheServiceWhole(t *testing.T) {
	t.Parallel()
	s := apitest.World()
	c, ctx := serve(t, s), t.Context()
	apply := client.ApplyRequest{
		Write:     client.Write{Expect: map[string]int64{"default/web": 3}, Cause: "why"},
		Scopes:    []client.Scope{{Sources: []jobspecs.Source{{Name: "web.hcl", Text: []byte("x\x00<>")}}, Inputs: jobspecs.Inputs{Vars: map[string]json.RawMessage{"image": json.RawMessage(`"web:1"`)}}}},
		Namespace: "default",
	}
	scale := client.ScaleRequest{Replicas: -1, Relative: true, Write: client.Write{DryRun: true}}
	image := client.ImageRequest{Images: map[string]string{"": "web:2"}}
	rollout := client.RolloutRequest{Do: "undo", To: 2}
	remove := client.DeleteRequest{Volumes: "delete", Orphan: true, Write: client.Write{Yes: true}}
	resp, err1 := c.Apply(ctx, apply)
	_, err2 := c.Plan(ctx, apply)
	_, err3 := c.Scale(ctx, apitest.Web, scale)
	_, err4 := c.SetImage(ctx, apitest.Web, image)
	_, err5 := c.Rollout(ctx, apitest.Web, rollout)
	_, err6 := c.Delete(ctx, apitest.Web, remove)
	if err := errors.Join(err1, err2, err3, err4, err5, err6); err != nil {
		t.Fatal(err)
	}
	want := []any{apply, apply, scale, image, rollout, remove}
	if got := s.Got(); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if got := resp.Results[0]; got != s.Result {
		t.Errorf("result = %+v, want %+v", got, s.Result)
	}
}

func TestAListIsAListInJSON(t *testing.T) {
	t.Parallel()
	host := apitest.Serve(t, &apitest.Service{People: []jobspecs.Member{{Name: "web-0"}}})
	for path, want := range map[string]string{
		"/v1/sets":    "[]\n",
		"/v1/members": `"ports":[]`,
	} {
		got := fetch(t, host, "GET", path, "")
		if !strings.Contains(got.body, want) {
			t.Errorf("%s = %s, want %s in it", path, got.body, want)
		}
	}
}

func TestErrorsBecomeProblems(t *testing.T) {
	t.Parallel()
	told := &client.Problem{Type: client.ProblemInvalid, Title: "bad", Status: 422, Diagnostics: []jobspecs.Diagnostic{{Severity: "error", Summary: "no", File: "web.hcl", Line: 3}}}
	for _, tc := range []struct {
		name   string
		err    error
		typ    string
		status int
	}{
		{"a problem stays as it is", told, client.ProblemInvalid, 422},
		{"the status follows from the type", &client.Problem{Type: client.ProblemChanged, Title: "x"}, client.ProblemChanged, 409},
		{"unconfirmed is forbidden", &client.Problem{Type: client.ProblemUnconfirmed, Set: "web", Data: []string{"data: x"}}, client.ProblemUnconfirmed, 403},
		{"an unreachable engine is 503", runtime.ErrUnreachable, client.ProblemEngine, 503},
		{"an absent pod is 404", runtime.ErrNotFound, client.ProblemNotFound, 404},
		{"anything else is internal", errors.New("disk full"), client.ProblemInternal, 500},
		{"an unknown type is internal", &client.Problem{Type: "urn:stsd:new"}, "urn:stsd:new", 500},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := apitest.World()
			s.Err = tc.err
			_, err := serve(t, s).Scale(t.Context(), apitest.Web, client.ScaleRequest{})
			var p *client.Problem
			if !errors.As(err, &p) {
				t.Fatalf("error = %v, want a problem", err)
			}
			if p.Type != tc.typ || p.Status != tc.status || p.Title == "" {
				t.Errorf("problem = %+v, want %s %d with a title", p, tc.typ, tc.status)
			}
			if tc.err == told && !reflect.DeepEqual(p, told) {
				t.Errorf("problem = %+v, want %+v", p, told)
			}
		})
	}
}

func TestBadRequestsAreRefused(t *testing.T) {
	t.Parallel()
	host := apitest.Serve(t, apitest.World())
	for _, tc := range []struct {
		name, method, path, body string
		status                   int
	}{
		{"no such route", "GET", "/v1/nothing", "", 404},
		{"the wrong method", "DELETE", "/v1/sets/default/web", "", 405},
		{"no JSON", "POST", "/v1/apply", "nonsense", 422},
		{"an empty body", "POST", "/v1/apply", "", 422},
		{"two values", "POST", "/v1/apply", "{}{}", 422},
		{"a field that is not known", "POST", "/v1/sets/default/web/scale", `{"replicas":1,"dryrun":true}`, 422},
		{"a scale to nothing", "POST", "/v1/sets/default/web/scale", `{}`, 422},
		{"a scale to null", "POST", "/v1/sets/default/web/scale", `{"replicas":null}`, 422},
		{"a wrong type", "POST", "/v1/sets/default/web/scale", `{"replicas":"one"}`, 422},
		{"a name that is none", "GET", "/v1/sets/default/..%2f..%2fetc", "", 422},
		{"a flag that is none", "GET", "/v1/sets/default/web?watch=perhaps", "", 422},
		{"a time that is none", "GET", "/v1/events?since=yesterday", "", 422},
		{"a tail that is none", "GET", "/v1/members/default/web-0/logs?tail=-3", "", 422},
		{"exec without a command", "POST", "/v1/members/default/web-0/exec", "", 422},
		{"exec without an upgrade", "POST", "/v1/members/default/web-0/exec?command=ls", "", 422},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := fetch(t, host, tc.method, tc.path, tc.body)
			var p client.Problem
			if err := json.Unmarshal([]byte(got.body), &p); err != nil || got.status != tc.status || p.Status != tc.status || p.Title == "" {
				t.Errorf("answer = %d %s, want a problem of %d", got.status, got.body, tc.status)
			}
			if got.kind != "application/problem+json" {
				t.Errorf("content type = %s", got.kind)
			}
		})
	}
}

func TestTooLargeARequestIsRefused(t *testing.T) {
	t.Parallel()
	conn, err := net.Dial("unix", strings.TrimPrefix(apitest.Serve(t, apitest.World()), "unix://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "POST /v1/apply HTTP/1.1\r\nHost: stsd\r\nContent-Length: 99999999\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 1024)
	n, err := conn.Read(answer)
	if got := string(answer[:n]); err != nil || !strings.HasPrefix(got, "HTTP/1.1 422") || !strings.Contains(got, "larger than 64 MiB") {
		t.Errorf("answer = %s, %v, want a problem that tells the limit", got, err)
	}
}

func TestHealthAndReadiness(t *testing.T) {
	t.Parallel()
	s := apitest.World()
	c := serve(t, s)
	if err := c.Ready(t.Context()); err != nil {
		t.Errorf("ready = %v, want nil", err)
	}
	s = apitest.World()
	s.Unready = runtime.ErrUnreachable
	host := apitest.Serve(t, s)
	if got := fetch(t, host, "GET", "/readyz", ""); got.status != 503 {
		t.Errorf("readyz = %d, want 503", got.status)
	}
	if got := fetch(t, host, "GET", "/healthz", ""); got.status != 200 {
		t.Errorf("healthz = %d, want 200", got.status)
	}
}

func TestAWatchGivesEachStatusThenThatTheSetIsGone(t *testing.T) {
	t.Parallel()
	s := apitest.World()
	st := s.Statuses[apitest.Web][0]
	st.ReadyReplicas = 3
	s.Statuses[apitest.Web] = append(s.Statuses[apitest.Web], st)
	s.Gone = true
	var ready []int
	err := serve(t, s).WatchStatus(t.Context(), apitest.Web, func(st jobspecs.Status) error {
		ready = append(ready, st.ReadyReplicas)
		return nil
	})
	var p *client.Problem
	if !errors.As(err, &p) || p.Type != client.ProblemNotFound {
		t.Errorf("error = %v, want not-found", err)
	}
	if want := []int{1, 3}; !reflect.DeepEqual(ready, want) {
		t.Errorf("ready = %v, want %v", ready, want)
	}
}

func TestAStoppingDaemonEndsWatchesAtOnceAndSaysNothingElse(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/s"
	ln, err := api.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- (&api.Server{Service: apitest.World()}).Serve(ctx, ln) }()
	c, err := client.New("unix://" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	before := time.Now()
	err = c.WatchStatus(t.Context(), apitest.Web, func(jobspecs.Status) error {
		stop()
		return nil
	})
	if !errors.Is(err, client.ErrStreamEnded) {
		t.Errorf("error = %v, want %v", err, client.ErrStreamEnded)
	}
	if err := <-ended; err != nil || time.Since(before) > 4*time.Second {
		t.Errorf("serve = %v after %s", err, time.Since(before))
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
}

func TestAWatchEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	c := serve(t, apitest.World())
	ctx, cancel := context.WithCancel(t.Context())
	err := c.WatchStatus(ctx, apitest.Web, func(jobspecs.Status) error {
		cancel()
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want canceled", err)
	}
}

func TestEventsAreLinesAndResume(t *testing.T) {
	t.Parallel()
	s := apitest.World()
	c := serve(t, s)
	var reasons []string
	each := func(e jobspecs.Event) error {
		reasons = append(reasons, e.Reason)
		return nil
	}
	if err := c.Events(t.Context(), client.EventQuery{}, each); err != nil {
		t.Fatal(err)
	}
	if err := c.Events(t.Context(), client.EventQuery{Set: "web", Since: s.Happened[1].Time}, each); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := c.Events(ctx, client.EventQuery{Follow: true}, each); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("following ended with %v", err)
	}
	want := []string{"Applied", "Exited", "Exited", "Applied", "Exited"}
	if !reflect.DeepEqual(reasons, want) {
		t.Errorf("events = %v, want %v", reasons, want)
	}
}

func TestLogs(t *testing.T) {
	t.Parallel()
	s := apitest.World()
	s.Output["web-1"] = []string{strings.Repeat("x", 100<<10)}
	c := serve(t, s)
	var out, errs bytes.Buffer
	for _, name := range []string{"web-0", "web-1"} {
		if err := c.Logs(t.Context(), runtime.PodName{Namespace: "default", Name: name}, runtime.LogOptions{}, &out, &errs); err != nil {
			t.Fatal(err)
		}
	}
	if want := "zero a\nzero b\n" + s.Output["web-1"][0] + "\n"; out.String() != want {
		t.Errorf("%d bytes of logs, want %d", out.Len(), len(want))
	}
	err := c.Logs(t.Context(), runtime.PodName{Namespace: "default", Name: "web-9"}, runtime.LogOptions{}, &out, &errs)
	var p *client.Problem
	if !errors.As(err, &p) || p.Type != client.ProblemNotFound {
		t.Errorf("logs of an absent member = %v, want not-found", err)
	}
	s = apitest.World()
	s.Err = errors.New("disk gone")
	err = serve(t, s).Logs(t.Context(), runtime.PodName{Namespace: "default", Name: "web-0"}, runtime.LogOptions{}, &out, &errs)
	if !errors.As(err, &p) || p.Detail != "disk gone" {
		t.Errorf("logs that break = %v, want the reason", err)
	}
}

func TestExec(t *testing.T) {
	t.Parallel()
	c := serve(t, apitest.World())
	name := runtime.PodName{Namespace: "default", Name: "web-0"}
	var out, errs bytes.Buffer
	run := func(o runtime.ExecOptions) (int, error) {
		o.Stdout, o.Stderr = &out, &errs
		return c.Exec(t.Context(), name, o)
	}
	if code, err := run(runtime.ExecOptions{Command: []string{"exit", "42"}}); code != 42 || err != nil {
		t.Errorf("exit = %d, %v", code, err)
	}
	long := strings.Repeat("abc\n", 50_000)
	if code, err := run(runtime.ExecOptions{Command: []string{"cat"}, Stdin: strings.NewReader(long)}); code != 0 || err != nil {
		t.Errorf("cat = %d, %v", code, err)
	}
	sizes := make(chan [2]uint, 1)
	sizes <- [2]uint{24, 80}
	if code, err := run(runtime.ExecOptions{Command: []string{"size"}, TTY: true, Resize: sizes}); code != 0 || err != nil {
		t.Errorf("size = %d, %v", code, err)
	}
	if got, want := out.String(), long+"24 rows, 80 columns\n"; got != want {
		t.Errorf("output of %d bytes, want %d", len(got), len(want))
	}
	if got, want := errs.String(), "web-0 exits\n"; got != want {
		t.Errorf("stderr = %q, want %q", got, want)
	}
	_, err := run(runtime.ExecOptions{Command: []string{"nothing"}})
	var p *client.Problem
	if !errors.As(err, &p) || p.Type != client.ProblemNotFound {
		t.Errorf("a command that fails = %v, want a problem", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := c.Exec(ctx, name, runtime.ExecOptions{Command: []string{"sleep"}}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a command that is cut = %v", err)
	}
}

func TestOnlyAStaleSocketIsReplaced(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "d", "s")
	first, err := api.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	fi, err := os.Stat(path)
	if err != nil || fi.Mode().Perm() != 0o660 {
		t.Errorf("mode = %v, %v, want 0660", fi.Mode(), err)
	}
	if _, err := api.Listen(path); !errors.Is(err, api.ErrInUse) {
		t.Errorf("a second daemon = %v, want %v", err, api.ErrInUse)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	stale, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	stale.(*net.UnixListener).SetUnlinkOnClose(false)
	stale.Close()
	second, err := api.Listen(path)
	if err != nil {
		t.Fatalf("a stale socket is not replaced: %v", err)
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := api.Listen(path); err == nil {
		t.Error("a plain file was replaced by a socket")
	}
}

func TestTheSocketBelongsToGroupDocker(t *testing.T) {
	t.Parallel()
	if _, err := user.LookupGroup(api.Group); err != nil || os.Geteuid() != 0 {
		t.Skip("no group docker here, or not root")
	}
	path := t.TempDir() + "/s"
	ln, err := api.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if got := groupOf(t, path); got != api.Group {
		t.Errorf("group = %s, want %s", got, api.Group)
	}
}

func TestTheDocumentIsTheGoldenOne(t *testing.T) {
	t.Parallel()
	host := apitest.Serve(t, apitest.World())
	var b bytes.Buffer
	if err := json.Indent(&b, []byte(fetch(t, host, "GET", "/v1/openapi.json", "").body), "", "  "); err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/openapi.json", b.Bytes())
}

// TestTheReferenceIsCurrent holds docs/api.md against the table of routes.
func TestTheReferenceIsCurrent(t *testing.T) {
	t.Parallel()
	golden(t, "../../docs/api.md", []byte(api.Reference()))
}

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is out of date; look at the change, then go test -update\ngot:\n%s", file, got)
	}
}

type reply struct {
	status int
	kind   string
	body   string
}

// fetch asks as a foreign client would.
func fetch(t *testing.T, host, method, path, body string) reply {
	t.Helper()
	resp := open(t, host, method, path, body)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{resp.StatusCode, resp.Header.Get("Content-Type"), string(b)}
}

func open(t *testing.T, host, method, path, body string) *http.Response {
	t.Helper()
	tr := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", strings.TrimPrefix(host, "unix://"))
	}}
	req, err := http.NewRequestWithContext(t.Context(), method, "http://stsd"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Client{Transport: tr}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}
