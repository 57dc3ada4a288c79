//go:build !unix

package main

import (
	"context"
	"io"
)

// sizes sends the terminal's size once: there is no signal for a change here.
func sizes(_ context.Context, w io.Writer) <-chan [2]uint {
	width, height := size(w)
	out := make(chan [2]uint, 1)
	out <- [2]uint{uint(height), uint(width)}
	return out
}
