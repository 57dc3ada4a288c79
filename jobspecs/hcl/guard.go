package hcl

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	hcl2 "github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/stsd/stsd/jobspecs"
)

// maxFile is the longest source, and the longest file that a spec may read.
const maxFile = 1 << 20

// open makes a source ready for the parser: text in UTF-8 with plain line ends,
// not too long, not too deep, shell's ${…} put out of the way. The text given
// back has every remaining character where the user wrote it; ok is false when
// the parser must not see it.
func (r *report) open(s jobspecs.Source) (text []byte, ok bool) {
	top := hcl2.Range{Filename: s.Name}
	if len(s.Text) > maxFile {
		r.error(top, fmt.Sprintf("the file has %d bytes; %d (1 MiB) is the most", len(s.Text), maxFile), "")
		return nil, false
	}
	text = plainText(s.Text)
	r.read(s.Name, text)
	if line := notText(text); line > 0 {
		at := top
		at.Start.Line, at.End.Line = line, line
		r.error(at, "this is not a text file", "A spec is UTF-8 text.")
		return nil, false
	}
	text, tokens := r.maskShell(s.Name, text)
	if at, problem := tooMuch(tokens); problem != "" {
		r.error(at, problem, "")
		return nil, false
	}
	r.warnDollarParen(s.Name, tokens)
	return text, true
}

var lineEnd = regexp.MustCompile(`\r+\n`)

// plainText is a source without a byte order mark and with plain line ends.
func plainText(text []byte) []byte {
	return lineEnd.ReplaceAll(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")), []byte("\n"))
}

// notText is the first line with a byte that no text has, 0 when there is none.
func notText(text []byte) int {
	for i, line := range bytes.Split(text, []byte("\n")) {
		if !utf8.Valid(line) || bytes.IndexByte(line, 0) >= 0 {
			return i + 1
		}
	}
	return 0
}

// shellForm is what follows "${" in a shell's parameter expansion and never in
// HCL: ${HOSTNAME##*-}, ${PORT:-80}, ${#LIST}, ${NAME%.*}, ${A//b/c}, ${@}.
var shellForm = regexp.MustCompile(`^(#|[@*?$]\}|[A-Za-z_][A-Za-z0-9_]*(#|%%|%[.*/-]|//|/[#%]|:[-=?+]|\^|,))`)

// maskShell reports each shell expansion at its own place and makes it plain text
// of the same length, since its # would swallow the rest of the line and the
// parser would then complain about everything that follows. It gives the tokens too.
func (r *report) maskShell(name string, text []byte) ([]byte, hclsyntax.Tokens) {
	for n := 0; ; n++ {
		tokens, _ := hclsyntax.LexConfig(text, name, hcl2.InitialPos)
		i := shellToken(tokens, text)
		if i < 0 || n == maxFindings {
			return text, tokens
		}
		at := tokens[i].Range
		end := at.Start.Byte + shellEnd(text[at.Start.Byte:])
		at.End = at.Start
		at.End.Byte = end
		at.End.Column += utf8.RuneCount(text[at.Start.Byte:end])
		expansion := string(text[at.Start.Byte:end])
		r.error(at, "this looks like shell, but ${…} is HCL's own", fmt.Sprintf("Write $%s to leave it to the shell.", expansion))
		text = bytes.Clone(text)
		copy(text[at.Start.Byte:], "__")
	}
}

func shellToken(tokens hclsyntax.Tokens, text []byte) int {
	for i, t := range tokens {
		if t.Type == hclsyntax.TokenTemplateInterp && shellForm.Match(text[t.Range.End.Byte:]) {
			return i
		}
	}
	return -1
}

// shellEnd is the length of an expansion, to its closing brace or the line's end.
func shellEnd(text []byte) int {
	depth := 0
	for i, c := range text {
		switch c {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i + 1
			}
		case '\n':
			return i
		}
	}
	return len(text)
}

// kubeForm is Kubernetes' reference to an environment variable.
var kubeForm = regexp.MustCompile(`\$\(([A-Z_][A-Z0-9_]*)\)`)

func (r *report) warnDollarParen(name string, tokens hclsyntax.Tokens) {
	for _, text := range literals(tokens) {
		for _, m := range kubeForm.FindAllSubmatchIndex(text.bytes, -1) {
			variable := string(text.bytes[m[2]:m[3]])
			r.warn(within(name, text, m[0], m[1]), fmt.Sprintf("$(%s) is Kubernetes' way and stays as it is here", variable),
				fmt.Sprintf("For a value known to the spec write ${self.name}, ${var.…}; for the shell's variable write $${%s} inside sh -c.", variable))
		}
	}
}

// A piece is text between quotes or in a heredoc.
type piece struct {
	bytes []byte
	start hcl2.Pos
}

// literals are the pieces of text, joined where the scanner splits them.
func literals(tokens hclsyntax.Tokens) []piece {
	var list []piece
	joined := false
	for _, t := range tokens {
		if t.Type != hclsyntax.TokenQuotedLit && t.Type != hclsyntax.TokenStringLit {
			joined = false
			continue
		}
		if !joined {
			list = append(list, piece{start: t.Range.Start})
		}
		last := &list[len(list)-1]
		last.bytes = append(last.bytes, t.Bytes...)
		joined = true
	}
	return list
}

// within is the range of a part of a piece.
func within(name string, text piece, from, to int) hcl2.Range {
	before := string(text.bytes[:from])
	at := hcl2.Range{Filename: name, Start: text.start}
	at.Start.Byte += from
	at.Start.Line += strings.Count(before, "\n")
	if i := strings.LastIndexByte(before, '\n'); i >= 0 {
		at.Start.Column = 1 + utf8.RuneCountInString(before[i+1:])
	} else {
		at.Start.Column += utf8.RuneCountInString(before)
	}
	at.End = at.Start
	at.End.Byte += to - from
	at.End.Column += utf8.RuneCount(text.bytes[from:to])
	return at
}

const (
	maxDepth     = 100  // open brackets, braces, quotes and interpolations
	maxOperators = 1000 // in the expressions that are open at one place
)

var bigExponent = regexp.MustCompile(`[eE][+-]?0*[0-9]{4,}$`)

// tooMuch finds what would overflow the stack of a parser that works by
// recursion (a Go program cannot survive that), and numbers that take gigabytes
// when written out.
func tooMuch(tokens hclsyntax.Tokens) (hcl2.Range, string) {
	type group struct {
		lines     bool // a new line ends an expression here
		operators int
	}
	groups, total := []group{{lines: true}}, 0
	for _, t := range tokens {
		top := &groups[len(groups)-1]
		switch t.Type {
		case hclsyntax.TokenOBrace, hclsyntax.TokenOParen, hclsyntax.TokenOBrack, hclsyntax.TokenOQuote,
			hclsyntax.TokenOHeredoc, hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl:
			if t.Type == hclsyntax.TokenOBrack || t.Type == hclsyntax.TokenTemplateControl {
				top.operators++
				total++
			}
			groups = append(groups, group{lines: t.Type == hclsyntax.TokenOBrace})
		case hclsyntax.TokenCBrace, hclsyntax.TokenCParen, hclsyntax.TokenCBrack, hclsyntax.TokenCQuote,
			hclsyntax.TokenCHeredoc, hclsyntax.TokenTemplateSeqEnd:
			if len(groups) > 1 {
				total -= top.operators
				groups = groups[:len(groups)-1]
			}
		case hclsyntax.TokenNewline:
			if top.lines {
				total -= top.operators
				top.operators = 0
			}
		case hclsyntax.TokenComma:
			total -= top.operators
			top.operators = 0
		case hclsyntax.TokenIdent, hclsyntax.TokenStringLit, hclsyntax.TokenQuotedLit, hclsyntax.TokenComment, hclsyntax.TokenEOF:
		case hclsyntax.TokenNumberLit:
			if bigExponent.Match(t.Bytes) {
				return t.Range, "this number is too large"
			}
		default:
			top.operators++
			total++
		}
		if len(groups) > maxDepth {
			return t.Range, fmt.Sprintf("this is nested more than %d deep", maxDepth)
		}
		if total > maxOperators {
			return t.Range, fmt.Sprintf("this expression has more than %d operators", maxOperators)
		}
	}
	return hcl2.Range{}, ""
}
