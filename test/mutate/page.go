package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// page is where the table stands.
const page = "docs/mutations.md"

// row is one rule and what caught its absence.
type row struct {
	rule
	caught, date string
}

// pageOf is the table as people read it: every rule, with what was seen of it.
func pageOf(all []rule, seen map[string]row) string {
	var b strings.Builder
	fmt.Fprintf(&b, `# Rules that were broken on purpose

`+"`make mutate`"+` breaks each of these %d rules, one at a time and in a copy of its file, and sees a test fail. It
writes this page. A rule without a test that fails would be one that nobody would miss.

| rule | stands in | a test that fails without it | seen on |
|---|---|---|---|
`, len(all))
	for _, r := range all {
		x := seen[r.says]
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", r.says, r.file, or(oneCell(x.caught), "not tried yet"), or(x.date, "-"))
	}
	return b.String()
}

// oneCell is a text without what ends a cell of the table.
func oneCell(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return strings.ReplaceAll(line, "|", "/")
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// readPage gives what was seen of rules before; no page is an empty one.
func readPage(path string) (map[string]row, error) {
	seen := map[string]row{}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return seen, nil
	}
	for _, line := range strings.Split(string(text), "\n") {
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if len(cells) == 4 && cells[3] != "-" {
			seen[cells[0]] = row{rule{says: cells[0], file: cells[1]}, cells[2], cells[3]}
		}
	}
	return seen, err
}
