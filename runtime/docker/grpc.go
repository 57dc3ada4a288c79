package docker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	health "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/stsd/stsd/jobspecs"
)

// checkGRPC asks the health service over a connection of its own, in plain text.
func checkGRPC(ctx context.Context, addr netip.Addr, c *jobspecs.GRPCCheck) error {
	title := "grpc " + endpoint(addr, c.Port)
	if c.Service != "" {
		title += " " + c.Service
	}
	var dial dialing
	conn, err := grpc.NewClient("passthrough:///"+endpoint(addr, c.Port),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(dial.dial), // with it no proxy is asked
		grpc.WithDisableServiceConfig(),
		grpc.WithUserAgent("stsd"))
	if err != nil {
		return fmt.Errorf("%s: %w", title, err)
	}
	defer conn.Close()
	answer, err := health.NewHealthClient(conn).Check(ctx, &health.HealthCheckRequest{Service: c.Service})
	if err != nil {
		return fmt.Errorf("%s: %w", title, dial.cause(ctx, c.Service, err))
	}
	if answer.Status != health.HealthCheckResponse_SERVING {
		return fmt.Errorf("%s: %s", title, answer.Status)
	}
	return nil
}

// dialing keeps why a connection did not open: the library tells it as a text
// inside other texts.
type dialing struct {
	mu  sync.Mutex
	err error
}

func (d *dialing) dial(ctx context.Context, at string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", at)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err = err
	return conn, err
}

func (d *dialing) cause(ctx context.Context, service string, err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if ctx.Err() != nil {
		return cause(ctx, ctx.Err())
	}
	if d.err != nil {
		return cause(ctx, d.err)
	}
	s := status.Convert(err)
	switch s.Code() {
	case codes.DeadlineExceeded: // the server heard of the end of our time before we looked
		return errTimedOut
	case codes.Unimplemented:
		return errors.New("the server does not implement grpc.health.v1.Health")
	case codes.NotFound:
		return fmt.Errorf("the server does not know service %q", service)
	case codes.Unavailable: // the connection opened, and speaks something else or ended
		return errors.New("no gRPC there: " + innermost(s.Message()))
	}
	return fmt.Errorf("%s: %s", s.Code(), shorten(s.Message(), 200))
}

// innermost cuts what the library wraps around a reason:
// `connection error: desc = "error reading server preface: EOF"`.
func innermost(text string) string {
	if _, inner, ok := strings.Cut(text, `desc = "`); ok {
		text = strings.TrimSuffix(inner, `"`)
	}
	return shorten(strings.TrimPrefix(text, "transport: "), 200)
}
