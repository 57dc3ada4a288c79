package hcl

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stsd/stsd/jobspecs"
)

var update = flag.Bool("update", false, "write golden files and the tables of docs/spec.md")

const docs = "../../docs/spec.md"

func TestDocsHoldTheTablesOfTheCode(t *testing.T) {
	text, err := os.ReadFile(docs)
	if err != nil {
		t.Fatal(err)
	}
	want := string(text)
	want = section(want, "functions", functionTable())
	want = section(want, "blocks", blockTables(fileSchema, "", map[*block]bool{}))
	if *update {
		if err := os.WriteFile(docs, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if string(text) != want && !*update {
		t.Errorf("%s is not what the code says; run go test ./jobspecs/hcl -run TestDocs -update", docs)
	}
}

func TestDocsExplainEveryNameOfSelfAndSet(t *testing.T) {
	text, err := os.ReadFile(docs)
	if err != nil {
		t.Fatal(err)
	}
	for root, fields := range map[string][]string{"self": selfFields, "set": setFields, "sets.NAME": otherFields} {
		for _, f := range fields {
			if !strings.Contains(string(text), "`"+root+"."+f+"`") {
				t.Errorf("%s.%s is not explained", root, f)
			}
		}
	}
}

func TestEverySpecInTheDocsIsGoodAndFormatted(t *testing.T) {
	text, err := os.ReadFile(docs)
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```hcl\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(blocks) == 0 {
		t.Fatal("no ```hcl block found")
	}
	for _, b := range blocks {
		_, ds := Parse([]jobspecs.Source{{Name: "spec.md.hcl", Text: []byte(b[1])}}, jobspecs.Inputs{}, Options{})
		if len(ds) > 0 {
			t.Error(reportOf(ds))
		}
		if got, _ := Format("spec.md.hcl", []byte(b[1])); string(got) != b[1] {
			t.Errorf("not formatted:\n%s", b[1])
		}
	}
}

// section replaces what stands between <!-- name --> and the next <!-- end -->.
func section(text, name, content string) string {
	start := "<!-- " + name + " -->\n"
	before, rest, _ := strings.Cut(text, start)
	_, after, _ := strings.Cut(rest, "<!-- end -->")
	return before + start + content + "<!-- end -->" + after
}

func functionTable() string {
	var names []string
	for _, n := range sortedKeys(pure) {
		names = append(names, "`"+n+"`")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\nFunctions, as in Terraform: %s; and\n\n| function | gives |\n|---|---|\n", strings.Join(names, ", "))
	for _, n := range sortedKeys(impure) {
		fmt.Fprintf(&b, "| `%s` | %s |\n", n, impure[n])
	}
	return b.String() + "\n"
}

// blockTables describes the blocks of a block. One that stands in several is
// described where it is met first.
func blockTables(s *block, path string, seen map[*block]bool) string {
	var b strings.Builder
	for _, c := range s.blocks {
		if c.later || seen[c] {
			continue
		}
		seen[c] = true
		title := strings.TrimSpace(path + " " + c.name)
		if c.label != "" {
			title += ` "` + c.label + `"`
		}
		if c.like != nil {
			fmt.Fprintf(&b, "\n### %s\n\n%s %s\n", title, sentence(c.doc), likeness(c))
			continue
		}
		fmt.Fprintf(&b, "\n### %s\n\n%s\n%s", title, sentence(c.doc), attributeTable(c))
		if later := laterNames(c); later != "" {
			fmt.Fprintf(&b, "\nNot supported yet: %s.\n", later)
		}
		inner := ""
		if c != setSchema {
			inner = title
		}
		b.WriteString(blockTables(c, inner, seen))
	}
	if later := laterNames(s); s == fileSchema && later != "" {
		fmt.Fprintf(&b, "\n### At the top level\n\nNot supported yet: %s.\n", later)
	}
	if s == fileSchema {
		b.WriteString("\n")
	}
	return b.String()
}

// likeness says what a block takes that is like another one.
func likeness(c *block) string {
	var never []string
	for _, n := range sortedKeys(c.never) {
		never = append(never, "`"+n+"`")
	}
	if len(never) == 0 {
		return fmt.Sprintf("It takes what a `%s` block takes.", c.like.name)
	}
	return fmt.Sprintf("It takes what a `%s` block takes, except %s.", c.like.name, strings.Join(never, ", "))
}

func attributeTable(c *block) string {
	var b strings.Builder
	for _, a := range c.attrs {
		if a.later {
			continue
		}
		if b.Len() == 0 {
			b.WriteString("\n| attribute | takes | default | meaning |\n|---|---|---|---|\n")
		}
		takes, def := "", a.def
		if a.kind != nil {
			takes = a.kind.word
		}
		if a.member {
			takes += " · member"
		}
		if a.required {
			def = "required"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", a.name, strings.ReplaceAll(takes, "|", "\\|"), def, a.doc)
	}
	return b.String()
}

func laterNames(c *block) string {
	var names []string
	for _, a := range c.attrs {
		if a.later {
			names = append(names, "`"+a.name+"`")
		}
	}
	for _, i := range c.blocks {
		if i.later {
			names = append(names, "`"+i.name+"`")
		}
	}
	return strings.Join(names, ", ")
}

func sentence(s string) string { return strings.ToUpper(s[:1]) + s[1:] + "." }

// reportOf is what was found, as a user sees it.
func reportOf(ds []jobspecs.Diagnostic) string {
	var b strings.Builder
	WriteDiagnostics(&b, ds, false)
	return b.String()
}
