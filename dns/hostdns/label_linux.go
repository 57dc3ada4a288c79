package hostdns

import (
	"errors"
	"syscall"
)

// keepLabel gives a file the SELinux label of another, without which services may
// not read it. Where there is no such label, or no such file, it does nothing.
func keepLabel(name, old string) error {
	const label = "security.selinux"
	value := make([]byte, 256) // a label is much shorter
	n, err := syscall.Getxattr(old, label, value)
	if err != nil {
		return nil
	}
	if err := syscall.Setxattr(name, label, value[:n], 0); err != nil && !errors.Is(err, syscall.ENOTSUP) {
		return err
	}
	return nil
}
