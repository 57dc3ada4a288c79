package api_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stsd/stsd/daemon/api"
	"github.com/stsd/stsd/daemon/api/apitest"
	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/jobspecs"
)

func TestAnotherMethodIsToldWhichAreAllowed(t *testing.T) {
	t.Parallel()
	host := apitest.Serve(t, apitest.World())
	for _, tc := range []struct{ method, path, want string }{
		{"DELETE", "/v1/sets/default/web", "GET, HEAD"},
		{"GET", "/v1/apply", "POST"},
		{"PUT", "/v1/members/default/web-0/exec", "POST"},
		{"POST", "/healthz", "GET, HEAD"},
	} {
		resp := raw(t, host, fmt.Sprintf("%s %s HTTP/1.1\r\nHost: stsd\r\nContent-Length: 0\r\n\r\n", tc.method, tc.path))
		if resp.StatusCode != http.StatusMethodNotAllowed || resp.Header.Get("Allow") != tc.want {
			t.Errorf("%s %s: %s, Allow %q, want 405, %q", tc.method, tc.path, resp.Status, resp.Header.Get("Allow"), tc.want)
		}
		resp.Body.Close()
	}
}

// raw sends text and reads one answer.
func raw(t *testing.T, host, text string) *http.Response {
	t.Helper()
	conn, err := net.Dial("unix", strings.TrimPrefix(host, "unix://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := conn.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// hasty is served by a daemon that waits for a body for a moment only; its Apply
// takes longer than that.
type hasty struct{ *apitest.Service }

const moment = 50 * time.Millisecond

func (h hasty) Apply(ctx context.Context, r client.ApplyRequest) (client.ApplyResponse, error) {
	select {
	case <-ctx.Done():
		return client.ApplyResponse{}, ctx.Err()
	case <-time.After(4 * moment):
		return h.Service.Apply(ctx, r)
	}
}

func serveHasty(t *testing.T) string {
	t.Helper()
	path := t.TempDir() + "/s"
	ln, err := api.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	s := &api.Server{Service: hasty{apitest.World()}}
	s.Within(moment)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, ln) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return "unix://" + path
}

func TestACallerThatSendsNoBodyHoldsNobody(t *testing.T) {
	t.Parallel()
	host := serveHasty(t)
	for _, tc := range []struct{ name, head, body string }{
		{"the rest of the body never comes", "Content-Length: 100", "{"},
		{"nor does the next chunk", "Transfer-Encoding: chunked", "1\r\n{\r\n"},
	} {
		for _, path := range []string{"/v1/apply", "/v1/sets/default/web/scale"} {
			resp := raw(t, host, "POST "+path+" HTTP/1.1\r\nHost: stsd\r\n"+tc.head+"\r\n\r\n"+tc.body)
			if resp.StatusCode != http.StatusRequestTimeout || !resp.Close {
				t.Errorf("%s: %s answers %s, close %v, want 408 and the end", tc.name, path, resp.Status, resp.Close)
			}
			resp.Body.Close()
		}
	}
}

func TestWhatIsDoneWithABodyMayTakeLongerThanItsWay(t *testing.T) {
	t.Parallel()
	c, err := client.New(serveHasty(t))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Apply(t.Context(), client.ApplyRequest{}); err != nil {
		t.Errorf("apply = %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*moment)
	defer cancel()
	err = c.Events(ctx, client.EventQuery{Follow: true}, func(jobspecs.Event) error { return nil })
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("events = %v, want that they go on until the caller leaves", err)
	}
}
