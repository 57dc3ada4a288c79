package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// proxy stands between a daemon and the engine. It writes down every request,
// and can go away as an engine does that is restarted.
type proxy struct {
	w       *world
	path    string
	handler http.Handler

	mu       sync.Mutex
	requests []string // "POST /containers/create?name=web-0"
	server   *http.Server
	open     map[net.Conn]bool
}

// newProxy is a proxy that nobody can reach before start.
func newProxy(t testing.TB) *proxy {
	t.Helper()
	if reason := noDocker(); reason != "" {
		t.Skip(reason)
	}
	p := &proxy{path: filepath.Join(t.TempDir(), "d"), open: map[net.Conn]bool{}}
	relay := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = "http", "docker"
		},
		Transport:      &http.Transport{DialContext: dialEngine, DisableCompression: true},
		FlushInterval:  -1,
		ModifyResponse: p.ownEvents,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, err.Error(), http.StatusBadGateway)
		},
	}
	p.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.note(r)
		relay.ServeHTTP(w, r)
	})
	t.Cleanup(p.stop)
	return p
}

func dialEngine(ctx context.Context, _, _ string) (net.Conn, error) {
	path := strings.TrimPrefix(engine().DaemonHost(), "unix://")
	return (&net.Dialer{}).DialContext(ctx, "unix", path)
}

func (p *proxy) host() string { return "unix://" + p.path }

// behind makes the daemon use the proxy.
func behind(p *proxy) option {
	return func(w *world) {
		p.w = w
		dockerHost(p.host())(w)
	}
}

var apiVersion = regexp.MustCompile(`^/v1\.[0-9]+`)

func (p *proxy) note(r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := r.Method + " " + apiVersion.ReplaceAllString(r.URL.Path, "")
	if name := r.URL.Query().Get("name"); name != "" {
		text += " " + name
	}
	p.requests = append(p.requests, text)
}

// ownEvents keeps what happens to others on this engine from the daemon, so
// that it is as idle as on a machine of its own.
func (p *proxy) ownEvents(r *http.Response) error {
	if !strings.HasSuffix(r.Request.URL.Path, "/events") {
		return nil
	}
	in, body := r.Body, bufio.NewReader(r.Body)
	out, pipe := io.Pipe()
	go func() {
		for {
			line, err := body.ReadBytes('\n')
			if err == nil && bytes.Contains(line, []byte(p.w.ns)) {
				_, err = pipe.Write(line)
			}
			if err != nil {
				pipe.CloseWithError(err)
				return
			}
		}
	}()
	r.Body = struct {
		io.Reader
		io.Closer
	}{out, closers{in, out}}
	return nil
}

type closers []io.Closer

func (c closers) Close() error {
	for _, one := range c {
		_ = one.Close() // ends the copy above
	}
	return nil
}

// start makes the engine reachable.
func (p *proxy) start() {
	p.w.t.Helper()
	l, err := net.Listen("unix", p.path)
	if err != nil {
		p.w.t.Fatal(err)
	}
	server := &http.Server{Handler: p.handler, ConnState: p.keep}
	p.mu.Lock()
	p.server = server
	p.mu.Unlock()
	go func() { _ = server.Serve(l) }() // ends with stop
}

// keep remembers connections, also those that left the server (exec).
func (p *proxy) keep(c net.Conn, s http.ConnState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch s {
	case http.StateNew:
		p.open[c] = true
	case http.StateClosed:
		delete(p.open, c)
	}
}

// stop cuts every connection; the socket is gone.
func (p *proxy) stop() {
	p.mu.Lock()
	server := p.server
	p.server = nil
	p.mu.Unlock()
	if server == nil {
		return
	}
	_ = server.Close() // nothing to save
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.open {
		_ = c.Close() // cut on purpose
	}
	clear(p.open)
}

// record gives what was asked of the engine while do ran.
func (p *proxy) record(do func()) []string {
	p.mu.Lock()
	from := len(p.requests)
	p.mu.Unlock()
	do()
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.requests[from:]...)
}

// writes are the requests that are no mere questions.
func writes(requests []string) []string {
	var out []string
	for _, r := range requests {
		if !strings.HasPrefix(r, "GET ") && !strings.HasPrefix(r, "HEAD ") {
			out = append(out, r)
		}
	}
	return out
}

// steps are the writes in the words of a plan: what became of members and volumes.
func (p *proxy) steps(requests []string) []string {
	var out []string
	for _, r := range writes(requests) {
		verb, name, _ := strings.Cut(r, " ")
		switch {
		case strings.HasPrefix(r, "POST /containers/create "):
			out = append(out, "create "+p.short(r))
		case r == "POST /volumes/create":
			out = append(out, "create-volume")
		case verb == "DELETE" && strings.HasPrefix(name, "/volumes/"):
			out = append(out, "delete-volume")
		case strings.HasSuffix(r, "/stop"), strings.HasSuffix(r, "/kill"):
			out = append(out, "stop")
		}
	}
	return out
}

// short is the member that a request names.
func (p *proxy) short(request string) string {
	return strings.TrimPrefix(request[strings.LastIndexByte(request, ' ')+1:], p.w.ns+".")
}

// nothing is an error that lists the requests, if there are any.
func nothing(requests []string) error {
	if len(requests) > 0 {
		return fmt.Errorf("asked for %v", requests)
	}
	return nil
}
