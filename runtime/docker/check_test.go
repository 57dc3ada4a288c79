package docker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpchealth "google.golang.org/grpc/health"
	health "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime/pods"
)

// ask runs one probe against a server of this process, for 300 ms at most; its
// address is ADDR in what it says.
func ask(t *testing.T, at net.Addr, probe func(port int) jobspecs.Probe) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	addr := netip.MustParseAddrPort(at.String())
	_, err := (&Host{}).Check(ctx, pods.Target{Address: addr.Addr()}, probe(int(addr.Port())))
	if err != nil && strings.HasSuffix(err.Error(), "timed out") && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v is no deadline", err)
	}
	return strings.ReplaceAll(errorText(err), at.String(), "ADDR")
}

func TestHTTPProbe(t *testing.T) {
	t.Parallel()
	var seen *http.Request
	mux := http.NewServeMux()
	mux.HandleFunc("/ok", func(w http.ResponseWriter, r *http.Request) { seen = r })
	mux.HandleFunc("/sick", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(503) })
	mux.HandleFunc("/here", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/sick", 302) })
	mux.HandleFunc("/twice", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/ok", 307) })
	mux.HandleFunc("/away", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "http://192.0.2.1/", 302) })
	mux.HandleFunc("/circle", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/circle", 302) })
	mux.HandleFunc("/slow", func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.HandleFunc("/hangup", func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) })
	mux.HandleFunc("/endless", func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			w.Write(make([]byte, 1000))
		}
	})
	plain, secure := httptest.NewServer(mux), httptest.NewTLSServer(mux)
	defer plain.Close()
	defer secure.Close()
	for _, c := range []struct {
		server             *httptest.Server
		scheme, path, want string
	}{
		{plain, "", "ok", ""},
		{plain, "http", "", "http ADDR/: status 404"},
		{secure, "https", "/ok?x=1", ""},
		{plain, "http", "/twice", ""},
		{plain, "http", "/away", ""},
		{plain, "http", "/endless", ""},
		{plain, "http", "/sick", "http ADDR/sick: status 503"},
		{plain, "http", "/here", "http ADDR/here: status 503"},
		{plain, "http", "/circle", "http ADDR/circle: redirected more than 10 times"},
		{plain, "http", "/slow", "http ADDR/slow: timed out"},
		{plain, "http", "/hangup", "http ADDR/hangup: EOF"},
		{plain, "https", "/ok", "https ADDR/ok: http: server gave HTTP response to HTTPS client"},
		{plain, "http", "/\x7f", `http ADDR/` + "\x7f" + `: net/url: invalid control character in URL`},
	} {
		got := ask(t, c.server.Listener.Addr(), func(port int) jobspecs.Probe {
			return jobspecs.Probe{HTTP: &jobspecs.HTTPCheck{Port: port, Path: c.path, Scheme: c.scheme, Headers: map[string]string{"Host": "web", "X-A": "1"}}}
		})
		if got != c.want {
			t.Errorf("%s %s: %q, want %q", c.scheme, c.path, got, c.want)
		}
	}
	if seen.UserAgent() != "stsd" || seen.Host != "web" || seen.Header.Get("X-A") != "1" {
		t.Errorf("request had %v, host %s", seen.Header, seen.Host)
	}
}

func TestProbesOfIPv6(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skipf("no IPv6 on this host: %v", err)
	}
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Listener = l
	s.Start()
	defer s.Close()
	got := ask(t, l.Addr(), func(port int) jobspecs.Probe { return jobspecs.Probe{TCP: &jobspecs.TCPCheck{Port: port}} })
	if got != "" {
		t.Errorf("tcp: %q", got)
	}
	got = ask(t, l.Addr(), func(port int) jobspecs.Probe {
		return jobspecs.Probe{HTTP: &jobspecs.HTTPCheck{Port: port, Path: "/x"}}
	})
	if got != "http ADDR/x: status 404" {
		t.Errorf("http: %q", got)
	}
}

// serveGRPC serves until the test ends.
func serveGRPC(t *testing.T, register func(*grpc.Server)) net.Addr {
	t.Helper()
	l := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	s := grpc.NewServer()
	register(s)
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }()
	t.Cleanup(func() { s.Stop(); <-done })
	return l.Addr()
}

func TestGRPCProbe(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://192.0.2.1:1") // nobody asks it
	healthy := serveGRPC(t, func(s *grpc.Server) {
		h := grpchealth.NewServer()
		h.SetServingStatus("db", health.HealthCheckResponse_NOT_SERVING)
		h.SetServingStatus("api", health.HealthCheckResponse_SERVING)
		health.RegisterHealthServer(s, h)
	})
	without := serveGRPC(t, func(*grpc.Server) {})
	slow := serveGRPC(t, func(s *grpc.Server) { health.RegisterHealthServer(s, slowHealth{}) })
	sick := serveGRPC(t, func(s *grpc.Server) { health.RegisterHealthServer(s, sickHealth{}) })
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	closed := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	closed.Close()
	mute := must(net.Listen("tcp", "127.0.0.1:0"))(t) // takes connections and says nothing
	defer mute.Close()
	for _, c := range []struct {
		name    string
		at      net.Addr
		service string
		want    string
	}{
		{"the server as a whole", healthy, "", ""},
		{"a service", healthy, "api", ""},
		{"a service that does not serve", healthy, "db", "grpc ADDR db: NOT_SERVING"},
		{"a service it does not know", healthy, "nosuch", `grpc ADDR nosuch: the server does not know service "nosuch"`},
		{"no health protocol", without, "", "grpc ADDR: the server does not implement grpc.health.v1.Health"},
		{"a slow server", slow, "", "grpc ADDR: timed out"},
		{"an error of its own", sick, "", "grpc ADDR: Internal: out of disk"},
		{"refused", closed.Addr(), "", "grpc ADDR: connection refused"},
		{"a web server", web.Listener.Addr(), "", "grpc ADDR: no gRPC there: "},
		{"a mute server", mute.Addr(), "", "grpc ADDR: timed out"},
	} {
		got := ask(t, c.at, func(port int) jobspecs.Probe {
			return jobspecs.Probe{GRPC: &jobspecs.GRPCCheck{Port: port, Service: c.service}}
		})
		if got != c.want && !(strings.HasSuffix(c.want, ": ") && strings.HasPrefix(got, c.want)) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

type slowHealth struct {
	health.UnimplementedHealthServer
}

func (slowHealth) Check(ctx context.Context, _ *health.HealthCheckRequest) (*health.HealthCheckResponse, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

type sickHealth struct {
	health.UnimplementedHealthServer
}

func (sickHealth) Check(context.Context, *health.HealthCheckRequest) (*health.HealthCheckResponse, error) {
	return nil, status.Error(codes.Internal, "out of disk")
}

func TestFirstAndLastLineOfOutput(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ output, first, last string }{
		{"", "", ""},
		{"primary\n", "primary", "primary"},
		{"  primary\r\nnot ready yet \r\n\n", "primary", "not ready yet"},
		{"\nsecond", "", "second"},
		{"no end", "no end", "no end"},
		{strings.Repeat("x", 2*tailSize) + "\nend", strings.Repeat("x", headSize), "end"},
	} {
		var first head
		var last tail
		for _, b := range []byte(c.output) {
			fmt.Fprintf(both{&first, &last}, "%c", b)
		}
		if first.line() != c.first || last.lastLine() != c.last {
			t.Errorf("%.20q: first %.20q, last %.20q; want %.20q, %.20q", c.output, first.line(), last.lastLine(), c.first, c.last)
		}
	}
}
