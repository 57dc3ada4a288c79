//go:build unix

package api_test

import (
	"os"
	"os/user"
	"strconv"
	"syscall"
	"testing"
)

func groupOf(t *testing.T, path string) string {
	t.Helper()
	fi, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	g, err := user.LookupGroupId(strconv.Itoa(int(fi.Sys().(*syscall.Stat_t).Gid)))
	if err != nil {
		t.Fatal(err)
	}
	return g.Name
}
