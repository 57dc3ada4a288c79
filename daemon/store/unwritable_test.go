package store

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
)

func TestADiskThatTakesNothingIsNamedWithTheCure(t *testing.T) {
	for _, c := range []struct {
		err  error
		says string // "": it is not the disk
	}{
		{&osError{syscall.ENOSPC}, "make room in "},
		{fmt.Errorf("file sync error: %s", syscall.ENOSPC), "make room in "},
		{syscall.EDQUOT, "make room in "},
		{syscall.EROFS, "for writing"},
		{ErrChanged, ""},
		{nil, ""},
	} {
		got := unwritable("/data/"+FileName, c.err)
		if c.says == "" {
			if got != c.err {
				t.Errorf("%v became %v", c.err, got)
			}
			continue
		}
		if !errors.Is(got, ErrUnwritable) || !errors.Is(got, c.err) || !strings.Contains(got.Error(), "/data/"+FileName) || !strings.Contains(got.Error(), c.says) {
			t.Errorf("%v became %v, want %q", c.err, got, c.says)
		}
	}
}

// osError is an error of the system inside another.
type osError struct{ n syscall.Errno }

func (e *osError) Error() string { return "write /data: " + e.n.Error() }
func (e *osError) Unwrap() error { return e.n }
