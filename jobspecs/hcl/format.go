package hcl

import (
	"bytes"

	hcl2 "github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"

	"github.com/stsd/stsd/jobspecs"
)

// Format gives a source its canonical layout: HashiCorp's alignment, no blank
// line twice, none at the edges of a block, nothing at the end of a line. What
// is formatted already stays as it is; a source with a syntax error too.
func Format(name string, src []byte) ([]byte, []jobspecs.Diagnostic) {
	r := &report{}
	if bodies := r.parse([]jobspecs.Source{{Name: name, Text: src}}); bodies == nil || r.failed() {
		return src, r.done()
	}
	text := plainText(src)
	for range 3 { // a removed line can change an alignment
		next := tidy(name, hclwrite.Format(text))
		if bytes.Equal(next, text) {
			break
		}
		text = next
	}
	return text, nil
}

// tidy takes out blank lines that say nothing and blanks at the ends of lines,
// except where they belong to a string or a comment of several lines.
func tidy(name string, text []byte) []byte {
	lines := bytes.Split(text, []byte("\n"))
	untouchable := untouchableLines(name, text)
	var out [][]byte
	for i, line := range lines {
		if untouchable[i+1] {
			out = append(out, line)
			continue
		}
		line = bytes.TrimRight(line, " \t\r")
		if len(line) == 0 && (len(out) == 0 || opensOrBlank(out[len(out)-1], untouchable[i])) {
			continue
		}
		if closes(line) {
			out = withoutBlankEnd(out)
		}
		out = append(out, line)
	}
	out = withoutBlankEnd(out)
	if len(out) == 0 {
		return nil
	}
	return append(bytes.Join(out, []byte("\n")), '\n')
}

func opensOrBlank(line []byte, untouchable bool) bool {
	return !untouchable && (len(line) == 0 || line[len(line)-1] == '{' && !bytes.Contains(line, []byte("#")) && !bytes.Contains(line, []byte("//")))
}

func closes(line []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(line, " \t"), []byte("}"))
}

func withoutBlankEnd(lines [][]byte) [][]byte {
	for len(lines) > 0 && len(lines[len(lines)-1]) == 0 {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// untouchableLines are those inside heredocs and comments of several lines.
func untouchableLines(name string, text []byte) map[int]bool {
	lines := map[int]bool{}
	tokens, _ := hclsyntax.LexConfig(text, name, hcl2.InitialPos)
	start := 0
	for _, t := range tokens {
		switch t.Type {
		case hclsyntax.TokenOHeredoc:
			start = t.Range.Start.Line
		case hclsyntax.TokenCHeredoc:
			mark(lines, start+1, t.Range.End.Line)
		case hclsyntax.TokenComment:
			if bytes.HasPrefix(t.Bytes, []byte("/*")) {
				mark(lines, t.Range.Start.Line, t.Range.End.Line)
			}
		}
	}
	return lines
}

func mark(lines map[int]bool, from, to int) {
	for i := from; i <= to; i++ {
		lines[i] = true
	}
}
