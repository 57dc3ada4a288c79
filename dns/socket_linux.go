package dns

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// spreads: sockets that share a port get each client's packets in turn.
const spreads = true

// sharePort lets several sockets of this user have one port.
func sharePort(_, _ string, c syscall.RawConn) error {
	var err error
	if control := c.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
	}); control != nil {
		return control
	}
	return err
}
