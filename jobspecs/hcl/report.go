package hcl

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	hcl2 "github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/stsd/stsd/jobspecs"
)

const (
	severityError   = "error"
	severityWarning = "warning"

	// maxFindings is how many a user is shown; more than that repeats itself.
	maxFindings = 20
)

// HasErrors tells whether one of ds is an error.
func HasErrors(ds []jobspecs.Diagnostic) bool {
	return slices.ContainsFunc(ds, func(d jobspecs.Diagnostic) bool { return d.Severity == severityError })
}

// A report collects what is found in the sources of one scope.
type report struct {
	texts map[string][][]byte // lines, by file
	meter *meter              // of what is evaluated in the files
	found []jobspecs.Diagnostic

	filesRead int // bytes of the files that were read

	secretLines map[string]map[int]bool // lines that are not shown, by file
	unsaid      []string                // texts that are not shown
}

// hideLines keeps the lines of a range out of what is found, before and after.
func (r *report) hideLines(at hcl2.Range) {
	if r.secretLines == nil {
		r.secretLines = map[string]map[int]bool{}
	}
	if r.secretLines[at.Filename] == nil {
		r.secretLines[at.Filename] = map[int]bool{}
	}
	for n := at.Start.Line; n <= at.End.Line; n++ {
		r.secretLines[at.Filename][n] = true
	}
}

// keepUnsaid keeps the texts of a value out of what is found.
func (r *report) keepUnsaid(v cty.Value) {
	_ = cty.Walk(v, func(_ cty.Path, e cty.Value) (bool, error) {
		e, _ = e.Unmark()
		if !e.IsKnown() || e.IsNull() {
			return true, nil
		}
		text := ""
		switch e.Type() {
		case cty.String:
			text = e.AsString()
		case cty.Number:
			text = e.AsBigFloat().Text('f', -1)
		}
		if len(text) >= minScrubbed {
			r.unsaid = append(r.unsaid, text)
		}
		return true, nil
	})
}

// hush takes what is sensitive out of what was found.
func (r *report) hush() {
	unsaid := Disguises(r.unsaid)
	for i := range r.found {
		d := &r.found[i]
		if r.secretLines[d.File][d.Line] {
			d.Snippet = ""
		}
		for _, text := range []*string{&d.Summary, &d.Detail, &d.Snippet} {
			*text = Scrub(*text, unsaid)
		}
	}
}

func (r *report) error(at hcl2.Range, summary, detail string) {
	r.add(severityError, at, summary, detail)
}

func (r *report) warn(at hcl2.Range, summary, detail string) {
	r.add(severityWarning, at, summary, detail)
}

func (r *report) add(severity string, at hcl2.Range, summary, detail string) {
	d := jobspecs.Diagnostic{
		Severity: severity, Summary: summary, Detail: detail,
		File: at.Filename, Line: at.Start.Line, Column: at.Start.Column,
		EndLine: at.End.Line, EndCol: at.End.Column,
		Snippet: r.line(at.Filename, at.Start.Line, at.Start.Column),
	}
	if !slices.Contains(r.found, d) {
		r.found = append(r.found, d)
	}
}

func (r *report) failed() bool { return HasErrors(r.found) }

// read keeps the lines of a file for snippets.
func (r *report) read(name string, text []byte) {
	if r.texts == nil {
		r.texts = map[string][][]byte{}
	}
	r.texts[name] = bytes.Split(text, []byte("\n"))
}

// maxSnippet is the longest source line that a finding carries.
const maxSnippet = 2000

func (r *report) line(file string, n, column int) string {
	lines := r.texts[file]
	if n < 1 || n > len(lines) || column > maxSnippet {
		return ""
	}
	line := lines[n-1][:min(len(lines[n-1]), maxSnippet)]
	return strings.Map(printable, strings.ToValidUTF8(string(line), ""))
}

// printable keeps what may reach a terminal.
func printable(r rune) rune {
	if r == '\t' || unicode.IsPrint(r) {
		return r
	}
	return unicode.ReplacementChar
}

// add findings of the HCL library, in our words where those are better.
func (r *report) hcl(ds hcl2.Diagnostics) {
	for _, d := range ds {
		if _, repeated := d.Extra.(alreadySaid); repeated {
			continue
		}
		at := hcl2.Range{}
		if d.Subject != nil {
			at = *d.Subject
		}
		severity := severityError
		if d.Severity == hcl2.DiagWarning {
			severity = severityWarning
		}
		summary, detail := plain(d)
		r.add(severity, at, summary, detail)
	}
}

// plain rewords the library's findings that do not say what to do.
func plain(d *hcl2.Diagnostic) (summary, detail string) {
	switch {
	case d.Summary == "Argument definition required" && strings.Contains(d.Detail, "single-line block"):
		return "a block on one line cannot hold another block", "Break the line: write the inner block on lines of its own."
	case d.Summary == "Invalid single-argument block definition":
		return "one line for more than one argument", "Break the line: a block on one line may hold one argument only.\nWrite each argument on a line of its own, and the closing brace too."
	case d.Summary == "Call to unknown function" && strings.Contains(d.Detail, `"env"`):
		return "env() may stand in a variable's default only", ""
	case d.Summary == "Attribute redefined":
		return lowerFirst(d.Summary), strings.ReplaceAll(d.Detail, "argument", "attribute")
	}
	return lowerFirst(d.Summary), d.Detail
}

func lowerFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToLower(s[:1]) + s[1:]
}

// done gives what was found in the order of the source, cut where it gets long:
// errors before warnings are never cut for their sake.
func (r *report) done() []jobspecs.Diagnostic {
	r.hush()
	slices.SortStableFunc(r.found, func(a, b jobspecs.Diagnostic) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	if len(r.found) <= maxFindings {
		return r.found
	}
	slices.SortStableFunc(r.found, func(a, b jobspecs.Diagnostic) int { return cmp.Compare(a.Severity, b.Severity) })
	rest := len(r.found) - maxFindings
	severity := r.found[maxFindings].Severity
	return append(r.found[:maxFindings:maxFindings], jobspecs.Diagnostic{
		Severity: severity, Summary: fmt.Sprintf("and %d more", rest),
	})
}
