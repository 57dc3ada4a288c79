package jobspecs

import (
	"strings"
	"unicode"
)

// Shown is what a program printed, for a terminal that is to do nothing but show it: other
// control characters than tabs and ends of lines, as those that begin an escape sequence,
// are "?".
func Shown(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\t' && r != '\n' {
			return '?'
		}
		return r
	}, text)
}
