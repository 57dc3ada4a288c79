package conformance

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/conformance.md")

const (
	root     = "../.."
	document = root + "/docs/conformance.md"
)

func TestEveryIDStandsOnce(t *testing.T) {
	text, err := os.ReadFile("testdata/ids.txt")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, id := range strings.Fields(string(text)) {
		known[id] = true
	}
	seen := map[string]int{}
	for _, f := range families() {
		for _, r := range f.Rows {
			for _, id := range ids(r.ID) {
				seen[id]++
				if !known[id] {
					t.Errorf("%s is no id", id)
				}
			}
		}
	}
	for id := range known {
		if seen[id] != 1 {
			t.Errorf("%s stands %d times, want once", id, seen[id])
		}
	}
}

func TestEveryRowIsWhole(t *testing.T) {
	for _, f := range families() {
		for _, r := range f.Rows {
			if err := r.whole(); err != nil {
				t.Errorf("%s: %v", r.ID, err)
			}
		}
	}
}

// whole tells what a row lacks.
func (r *row) whole() error {
	cites := r.In != cite{}
	switch r.Verdict {
	case same, better:
		if r.When == "" || r.Then == "" {
			return fmt.Errorf("it has no sentence")
		}
		if (r.Run != nil) == cites {
			return fmt.Errorf("it needs a test, here or elsewhere")
		}
	case absent, later:
		if r.Why == "" || r.Run != nil || cites {
			return fmt.Errorf("it needs a reason and no test")
		}
	default:
		return fmt.Errorf("verdict %q", r.Verdict)
	}
	if r.Verdict == better && r.Why == "" {
		return fmt.Errorf("it does not say why that is better")
	}
	return nil
}

func TestCitedTestsExist(t *testing.T) {
	sources := map[string]map[string]source{}
	for _, f := range families() {
		for _, r := range f.Rows {
			if r.In == (cite{}) {
				continue
			}
			if sources[r.In.Package] == nil {
				sources[r.In.Package] = testsOf(t, filepath.Join(root, r.In.Package))
			}
			found, ok := sources[r.In.Package][r.In.Test]
			if !ok {
				t.Errorf("%s: %s has no %s", r.ID, r.In.Package, r.In.Test)
				continue
			}
			for _, what := range r.named() {
				if !mentions(r.where(found), what) {
					t.Errorf("%s: %s in %s does not mention %q", r.ID, r.In.Test, r.In.Package, what)
				}
			}
		}
	}
}

// named is what the cited test must mention.
func (r *row) named() []string {
	if r.In.Case != "" {
		return []string{r.In.Case}
	}
	return ids(r.ID)
}

// source is a test's own text, and that of its file, where its table may stand.
type source struct{ body, file string }

// where an id is looked for is the test itself.
func (r *row) where(s source) string {
	if r.In.Case == "" {
		return s.body
	}
	return s.file
}

func mentions(body, what string) bool {
	return regexp.MustCompile(`(^|\W)` + regexp.QuoteMeta(what) + `(\W|$)`).MatchString(body)
}

// testsOf gives every test of a folder by name. A script is a test too.
func testsOf(t *testing.T, dir string) map[string]source {
	t.Helper()
	out := map[string]source{}
	scripts, _ := filepath.Glob(dir + "/*.txtar")
	for _, path := range scripts {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		out[filepath.Base(path)] = source{string(text), string(text)}
	}
	files, _ := filepath.Glob(dir + "/*.go")
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, text, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				out[f.Name.Name] = source{string(text[f.Pos()-1 : f.End()-1]), string(text)}
			}
		}
	}
	return out
}

func TestTheDocumentIsUpToDate(t *testing.T) {
	want := markdown()
	if *update {
		if err := os.WriteFile(document, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("docs/conformance.md is old; go test ./test/conformance -update writes it")
	}
}

const preface = `# Conformance

What is known of Kubernetes' StatefulSet, its controller, kubectl, the kubelet and OpenKruise's Advanced StatefulSet, scenario
by scenario, and what stsd does. Ids are those of the tables in test/conformance, from which this page is made
(` + "`go test ./test/conformance -update`" + `). A test without a package is a sub-test of TestConformance there.

*same*: stsd does what Kubernetes does. *better*: it does something else on purpose; the text says what that is good for.
*not applicable*: it has no meaning on a Docker host, or stsd has no such thing; the text says why.
*not applicable yet*: a later version will have it.

`

func markdown() []byte {
	var b bytes.Buffer
	b.WriteString(preface)
	total := map[verdict]int{}
	var body bytes.Buffer
	for _, f := range families() {
		fmt.Fprintf(&body, "## %s\n\n| id | given | when | then | verdict | test |\n|---|---|---|---|---|---|\n", f.Title)
		for _, r := range f.Rows {
			total[r.Verdict] += len(ids(r.ID))
			body.WriteString(r.line())
		}
		body.WriteString("\n")
	}
	b.WriteString("| verdict | scenarios |\n|---|---|\n")
	for _, v := range []verdict{same, better, absent, later} {
		fmt.Fprintf(&b, "| %s | %d |\n", v, total[v])
	}
	b.WriteString("\n")
	b.Write(bytes.TrimRight(body.Bytes(), "\n"))
	b.WriteString("\n")
	return b.Bytes()
}

// line is the row of the document.
func (r *row) line() string {
	if r.Verdict == absent || r.Verdict == later {
		return fmt.Sprintf("| %s | | | %s | %s | |\n", r.ID, cell(r.Why), r.Verdict)
	}
	then := r.Then
	if r.Why != "" {
		then += ". " + r.Why
	}
	where := strings.ReplaceAll(r.ID, " ", "_")
	if r.Run == nil {
		where = r.In.Package + " " + r.In.Test
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s |\n", r.ID, cell(r.Given), cell(r.When), cell(then), r.Verdict, where)
}

func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

func TestIDsAreRead(t *testing.T) {
	got := ids("A1 B24-B26 2.15.3-2.15.4")
	want := []string{"A1", "B24", "B25", "B26", "2.15.3", "2.15.4"}
	if !slices.Equal(got, want) {
		t.Errorf("ids = %v, want %v", got, want)
	}
}
