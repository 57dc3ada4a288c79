package hcl

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/stsd/stsd/jobspecs"
)

// SensitiveInputs are the texts that a scope was given and that must not be
// shown: those inside the values of sensitive variables, written or defaulted,
// and of secrets. Of sources that cannot be read, every variable is sensitive.
func SensitiveInputs(sources []jobspecs.Source, in jobspecs.Inputs) (texts []string) {
	if !given(sources, in) {
		return nil
	}
	r := &report{}
	defer func() { // whatever was stored, the daemon lives on
		if recover() != nil {
			texts = allInputs(in)
		}
	}()
	bodies := r.parse(sources)
	if bodies == nil {
		return allInputs(in)
	}
	s := r.scope(in, Options{AllowMissing: true}, &jobspecs.Inputs{})
	for _, b := range s.topLevel(bodies)["variable"] {
		s.declareVariable(b)
	}
	s.assign()
	s.keepPasswords(passwordsOf(bodies))
	for _, key := range sortedKeys(in.Secrets) {
		if v := in.Secrets[key]; len(v) >= minScrubbed {
			r.unsaid = append(r.unsaid, v)
		}
	}
	return r.unsaid
}

// Declares tells whether sources may declare variables or secrets: most need not be
// read to know that they do not.
func Declares(sources []jobspecs.Source) bool {
	return slices.ContainsFunc(sources, func(s jobspecs.Source) bool {
		return bytes.Contains(s.Text, []byte("variable")) || bytes.Contains(s.Text, []byte("secret"))
	})
}

// given tells whether there may be anything sensitive: most sources need not be
// read to know that there is not.
func given(sources []jobspecs.Source, in jobspecs.Inputs) bool {
	return len(in.Vars)+len(in.Secrets) > 0 || slices.ContainsFunc(sources, func(s jobspecs.Source) bool {
		return bytes.Contains(s.Text, []byte("variable")) || bytes.Contains(s.Text, []byte(authSchema.name))
	})
}

func allInputs(in jobspecs.Inputs) []string {
	r := &report{}
	for _, name := range sortedKeys(in.Vars) {
		if v, err := fromJSON(in.Vars[name]); err == nil {
			r.keepUnsaid(v)
		}
	}
	for _, key := range sortedKeys(in.Secrets) {
		r.unsaid = append(r.unsaid, in.Secrets[key])
	}
	return r.unsaid
}

const (
	// maxDisguised is how long a text may be whose other spellings are looked for,
	// in bytes: what is told of a member is much shorter.
	maxDisguised = 16 << 10
	// maxLined is how long a text may be whose lines are looked for one by one.
	maxLined = 256 << 10
	// minLine is how long a line of a longer text must be to be looked for.
	minLine = 8
)

// Disguises are sensitive texts and the ways in which a program may print them:
// their lines, and each in base64, in hexadecimal, quoted and escaped for a URL.
// Longest first; what is shorter than four characters is no secret.
func Disguises(texts []string) []string {
	out := []string{}
	add := func(s string) {
		if len(s) >= minScrubbed {
			out = append(out, s)
		}
	}
	for _, text := range linesToo(texts) {
		add(text)
		if len(text) <= maxDisguised {
			for _, s := range spellings(text) {
				add(s)
			}
		}
	}
	slices.SortFunc(out, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	return slices.Compact(out)
}

// linesToo adds the lines of texts, without the blanks around them.
func linesToo(texts []string) []string {
	var out []string
	for _, text := range texts {
		if len(text) < minScrubbed {
			continue
		}
		out = append(out, text, strings.TrimSpace(text))
		if len(text) > maxLined || !strings.Contains(strings.TrimSpace(text), "\n") {
			continue
		}
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); len(line) >= minLine {
				out = append(out, line)
			}
		}
	}
	return out
}

// spellings are other ways to write a text.
func spellings(text string) []string {
	if len(text) < minScrubbed {
		return nil
	}
	out := []string{url.QueryEscape(text), url.PathEscape(text)}
	quoted := strconv.Quote(text)
	out = append(out, quoted[1:len(quoted)-1])
	for _, b := range [][]byte{[]byte(text), []byte(text + "\n")} { // as echo writes it
		out = append(out,
			base64.StdEncoding.EncodeToString(b), base64.RawStdEncoding.EncodeToString(b),
			base64.URLEncoding.EncodeToString(b), base64.RawURLEncoding.EncodeToString(b))
	}
	digits := hex.EncodeToString([]byte(text))
	return append(out, digits, strings.ToUpper(digits))
}

// minCut is how much of a sensitive text, from its begin or before its end, is
// taken for it: messages are cut.
const minCut = 16

// Scrub puts (sensitive) wherever a text holds one of the sensitive ones, or a
// long part of one from its begin or up to its end.
func Scrub(text string, sensitive []string) string {
	var cuts [][2]int
	for _, s := range sensitive {
		head, tail := s, s
		if len(s) > minCut {
			head, tail = s[:minCut], s[len(s)-minCut:]
		}
		each(text, head, func(at int) { cuts = append(cuts, [2]int{at, at + alike(text[at:], s)}) })
		if len(s) > minCut {
			each(text, tail, func(at int) {
				end := at + len(tail)
				cuts = append(cuts, [2]int{end - alikeBackwards(text[:end], s), end})
			})
		}
	}
	return without(text, cuts)
}

// each calls f with every place where part stands in text.
func each(text, part string, f func(at int)) {
	for from := 0; part != ""; {
		at := strings.Index(text[from:], part)
		if at < 0 {
			return
		}
		f(from + at)
		from += at + 1
	}
}

// alike is how many bytes a and b have in common at their begin.
func alike(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

func alikeBackwards(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return n
}

// without replaces parts of a text, those that touch or overlap by one.
func without(text string, cuts [][2]int) string {
	if len(cuts) == 0 {
		return text
	}
	slices.SortFunc(cuts, func(a, b [2]int) int { return cmp.Or(a[0]-b[0], a[1]-b[1]) })
	var out strings.Builder
	done, begin, end := 0, cuts[0][0], cuts[0][1]
	for _, c := range append(cuts[1:], [2]int{len(text) + 1, 0}) {
		if c[0] <= end {
			end = max(end, c[1])
			continue
		}
		out.WriteString(text[done:begin] + hidden)
		done, begin, end = end, c[0], c[1]
	}
	out.WriteString(text[done:])
	return out.String()
}
