//go:build !linux

package dns

import "syscall"

const spreads = false

func sharePort(string, string, syscall.RawConn) error { return nil }
