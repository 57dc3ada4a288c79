package hcl

import (
	"syscall"
	"testing"
	"time"
)

// processorTime is what this process has used: what else the machine does is no
// matter of a budget.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
