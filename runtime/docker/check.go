package docker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime/pods"
)

// Check runs one probe. ctx carries its time-out.
func (h *Host) Check(ctx context.Context, t pods.Target, probe jobspecs.Probe) (said string, err error) {
	switch {
	case probe.HTTP != nil:
		return "", checkHTTP(ctx, t.Address, probe.HTTP)
	case probe.TCP != nil:
		return "", checkTCP(ctx, t.Address, probe.TCP)
	case probe.GRPC != nil:
		return "", checkGRPC(ctx, t.Address, probe.GRPC)
	case probe.Log != nil:
		return "", h.checkLog(ctx, t, probe.Log)
	case len(probe.Exec) > 0:
		return h.checkExec(ctx, t.ID, probe.Exec)
	}
	return "", nil
}

func checkTCP(ctx context.Context, addr netip.Addr, c *jobspecs.TCPCheck) error {
	at := endpoint(addr, c.Port)
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", at)
	if err != nil {
		return fmt.Errorf("tcp %s: %w", at, cause(ctx, err))
	}
	return conn.Close()
}

// endpoint is "10.87.0.11:8080", or "[fd00::1]:8080".
func endpoint(addr netip.Addr, port int) string {
	return netip.AddrPortFrom(addr, uint16(port)).String()
}

// cause is the innermost reason: "connection refused", "timed out".
func cause(ctx context.Context, err error) error {
	var errno syscall.Errno
	var timeout net.Error
	switch {
	case errors.As(err, &errno):
		return errno
	case errors.Is(ctx.Err(), context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return errTimedOut
	}
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return err
}

// errTimedOut reads better than the library's sentence, and is the same error.
var errTimedOut = timedOut{}

type timedOut struct{}

func (timedOut) Error() string        { return "timed out" }
func (timedOut) Is(target error) bool { return target == context.DeadlineExceeded }
