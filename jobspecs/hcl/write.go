package hcl

import (
	"fmt"
	"io"
	"strings"

	"github.com/stsd/stsd/jobspecs"
)

// colours of a terminal.
const (
	bold   = "\x1b[1m"
	red    = "\x1b[1;31m"
	yellow = "\x1b[1;33m"
	plainC = "\x1b[0m"
)

// WriteDiagnostics prints findings for people: place and summary, the source
// line, what is meant underlined, then what to do.
//
//	web.hcl:3:3: error: the statefulset block has no attribute "replica"
//	  replica = 3
//	  ^^^^^^^
//	  Did you mean "replicas"?
func WriteDiagnostics(w io.Writer, ds []jobspecs.Diagnostic, colour bool) {
	for i, d := range ds {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintln(w, headline(d, colour))
		if d.Snippet != "" {
			source, marks := underlined(d)
			fmt.Fprintf(w, "  %s\n", source)
			if marks != "" {
				fmt.Fprintf(w, "  %s\n", marks)
			}
		}
		for _, line := range strings.Split(d.Detail, "\n") {
			if line != "" {
				fmt.Fprintf(w, "  %s\n", line)
			}
		}
	}
}

func headline(d jobspecs.Diagnostic, colour bool) string {
	place := ""
	switch {
	case d.File != "" && d.Line > 0:
		place = fmt.Sprintf("%s:%d:%d: ", d.File, d.Line, max(d.Column, 1))
	case d.File != "":
		place = d.File + ": "
	}
	if !colour {
		return place + d.Severity + ": " + d.Summary
	}
	paint := red
	if d.Severity == severityWarning {
		paint = yellow
	}
	return place + paint + d.Severity + ": " + plainC + bold + d.Summary + plainC
}

// underlined is the source line without its indentation, and the marks below it;
// of a long line, the part around the marks.
func underlined(d jobspecs.Diagnostic) (source, marks string) {
	const width = 100
	line := []rune(strings.ReplaceAll(d.Snippet, "\t", " "))
	from := min(max(d.Column-1, 0), len(line))
	to := len(line)
	if d.EndLine == d.Line || d.EndLine == 0 {
		to = min(max(d.EndCol-1, from), len(line))
	}
	cut := 0
	for cut < from && line[cut] == ' ' {
		cut++
	}
	if to-cut > width {
		cut = max(cut, from-width/2)
	}
	end := min(len(line), cut+width)
	source = strings.TrimRight(string(line[cut:end]), " ")
	if d.Column == 0 {
		return strings.TrimSpace(source), ""
	}
	return source, strings.Repeat(" ", from-cut) + strings.Repeat("^", max(min(to, end)-from, 1))
}
