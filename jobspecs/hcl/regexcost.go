package hcl

import (
	"io"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"

	"github.com/zclconf/go-cty/cty"
)

// regexCost is that of a pattern, and of every part of it for every character.
func regexCost(args []cty.Value) int {
	_, size, cost := measured(textAt(args, 0))
	return cost + product(size, 1+len(textAt(args, 1)))/8
}

// regexAllCost is that of a pattern and of looking for all its matches.
func regexAllCost(args []cty.Value) int {
	form, size, cost := measured(textAt(args, 0))
	work, _ := searches(form, textAt(args, 1), size, expressionWork-cost)
	return cost + work
}

// regexReplaceCost is regexAllCost and what each match may put in.
func regexReplaceCost(args []cty.Value) int {
	text, other := textAt(args, 0), textAt(args, 2)
	form, size, cost := measured(textAt(args, 1))
	work, matches := searches(form, text, size, expressionWork-cost)
	return cost + work + product(matches, 1+len(other)/textUnit) + product(strings.Count(other, "$"), 1+len(text)/textUnit)
}

// measured is a pattern in plain form, how many parts it has with its repetitions
// written out, and what it costs to compile it: more than anybody has where it is
// too long. What is no pattern costs its length, and has no form.
func measured(pattern string) (form string, size, cost int) {
	if len(pattern) > maxPattern {
		return "", 0, expressionWork + 1
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return "", 0, len(pattern)
	}
	size = partsOfPattern(parsed)
	return parsed.String(), size, len(pattern) + 4*size
}

func partsOfPattern(re *syntax.Regexp) int {
	size := 1 + len(re.Rune)
	for _, sub := range re.Sub {
		size += partsOfPattern(sub)
	}
	if re.Op == syntax.OpRepeat {
		size = product(size, max(re.Min+1, re.Max, 1))
	}
	return size
}

// searches is the work of looking for all matches of a pattern in a text, up to
// limit, and how many there are. A search may look far beyond the match that it
// finds, and the next one begins at its end: only searching tells. Every search
// sees the character before its begin, as one in the whole text does.
func searches(form, text string, size, limit int) (work, matches int) {
	if form == "" || limit < 0 {
		return 0, 0
	}
	first, err := regexp.Compile("(" + form + ")")
	if err != nil {
		return expressionWork + 1, 0
	}
	later, err := regexp.Compile(`\A(?s:.)(?s:.*?)(` + form + ")")
	if err != nil {
		return expressionWork + 1, 0
	}
	for from, re := 0, first; from <= len(text) && work <= limit; re = later {
		_, width := utf8.DecodeLastRuneInString(text[:from])
		begin := from - width
		r := &runeCounter{RuneReader: strings.NewReader(text[begin:])}
		at := re.FindReaderSubmatchIndex(r)
		work += 1 + product(size, r.runes)/8
		if at == nil {
			break
		}
		matches++
		from = next(text, from, begin+at[3])
	}
	return work, matches
}

// next is where the search begins that follows a match: behind it, and always
// further on.
func next(text string, from, end int) int {
	if end > from {
		return end
	}
	_, width := utf8.DecodeRuneInString(text[from:])
	return from + max(width, 1)
}

// A runeCounter counts what is read through it.
type runeCounter struct {
	io.RuneReader
	runes int
}

// ReadRune is that of io.RuneReader.
func (r *runeCounter) ReadRune() (rune, int, error) {
	r.runes++
	return r.RuneReader.ReadRune()
}
