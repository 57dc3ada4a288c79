//go:build unix

package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// sizes sends the terminal's size now and after each change (rows, columns),
// until ctx ends.
func sizes(ctx context.Context, w io.Writer) <-chan [2]uint {
	out := make(chan [2]uint, 1)
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, syscall.SIGWINCH)
	go func() { // ends with ctx, which its caller cancels
		defer signal.Stop(changed)
		for {
			width, height := size(w)
			select {
			case out <- [2]uint{uint(height), uint(width)}:
			case <-ctx.Done():
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}
