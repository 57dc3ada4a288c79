package main

import (
	"io"
	"os"

	"golang.org/x/term"
)

// terminal is the descriptor of v when v is a terminal.
func terminal(v any) (fd int, ok bool) {
	f, isFile := v.(*os.File)
	if !isFile || f == nil {
		return 0, false
	}
	return int(f.Fd()), term.IsTerminal(int(f.Fd()))
}

// colour tells whether w shows colours.
func (a *app) colour(w io.Writer) bool {
	_, isTerminal := terminal(w)
	return isTerminal && !a.noColor && a.env["NO_COLOR"] == "" && a.env["TERM"] != "dumb"
}

// size of a terminal; a common one when it does not say.
func size(w io.Writer) (width, height int) {
	if fd, ok := terminal(w); ok {
		if width, height, err := term.GetSize(fd); err == nil && width > 0 && height > 0 {
			return width, height
		}
	}
	return 80, 24
}

// asks tells whether somebody sits there to answer a question.
func (a *app) asks() bool {
	_, in := terminal(a.stdin)
	_, out := terminal(a.stderr)
	return in && out
}

// cut shortens a line to width runes.
func cut(s string, width int) string {
	r := []rune(s)
	if len(r) <= width {
		return s
	}
	return string(r[:max(width-1, 0)]) + "…"
}
