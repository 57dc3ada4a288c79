package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/jobspecs/hcl"
)

// documents are the pages whose examples must hold.
func documents(t *testing.T) map[string]string {
	t.Helper()
	paths, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, p := range append(paths, "../README.md", "../CHANGELOG.md") {
		text, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		out[filepath.Base(p)] = string(text)
	}
	return out
}

var fence = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$")

func TestEverySpecInTheDocumentsParses(t *testing.T) {
	specs := 0
	for name, text := range documents(t) {
		for _, m := range fence.FindAllStringSubmatch(text, -1) {
			if m[1] != "hcl" || !strings.Contains(m[2], "statefulset ") {
				continue
			}
			specs++
			_, ds := hcl.Parse([]jobspecs.Source{{Name: name + ".hcl", Text: []byte(m[2])}}, jobspecs.Inputs{}, hcl.Options{AllowMissing: true})
			if hcl.HasErrors(ds) {
				t.Errorf("%s: %v\n%s", name, ds, m[2])
			}
			if got, _ := hcl.Format(name, []byte(m[2])); string(got) != m[2] {
				t.Errorf("%s: an example is not formatted:\n%s\nwant:\n%s", name, m[2], got)
			}
		}
	}
	if specs == 0 {
		t.Error("no example was found")
	}
}

func TestEveryCommandInTheReadmeExists(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "stsd")
	if out, err := exec.Command("go", "build", "-o", bin, "../cmd/stsd").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	commands := 0
	for _, m := range fence.FindAllStringSubmatch(documents(t)["README.md"], -1) {
		if m[1] != "sh" {
			continue
		}
		for line := range strings.Lines(m[2]) {
			line, _, _ = strings.Cut(strings.TrimSpace(line), "#")
			words := strings.Fields(line)
			if len(words) < 2 || words[0] != "stsd" {
				continue
			}
			commands++
			verb := words[1:2]
			if words[1] == "set" || words[1] == "rollout" {
				verb = words[1:3]
			}
			out, err := exec.Command(bin, append(slices.Clone(verb), "--help")...).CombinedOutput()
			if err != nil || !strings.Contains(string(out), "stsd "+strings.Join(verb, " ")) {
				t.Errorf("%q: no such verb (%v)\n%s", line, err, out)
			}
		}
	}
	if commands == 0 {
		t.Error("no command was found")
	}
}

// TestEveryDependencyHasItsReason holds go.mod against the table in the README.
func TestEveryDependencyHasItsReason(t *testing.T) {
	mod, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(documents(t)["README.md"], "\n## Dependencies\n")
	if !ok {
		t.Fatal("README has no table of dependencies")
	}
	direct := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^\t(\S+) v\S+$`).FindAllStringSubmatch(string(mod), -1) {
		direct[m[1]] = true
		if !strings.Contains(table, "| "+m[1]+" |") {
			t.Errorf("%s has no line of reason in the README", m[1])
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^\| (\S+\.\S+/\S+) \|`).FindAllStringSubmatch(table, -1) {
		if !direct[m[1]] {
			t.Errorf("%s stands in the README and not in go.mod", m[1])
		}
	}
}

// outside are paths of somebody's machine, hosts of package registries, and work
// that is not done.
var outside = regexp.MustCompile(`/(work|home|root)/|\b(proxy|deb|registry)\.[a-z-]+\.(org|com|io)\b|TODO`)

func TestNoDocumentSpeaksOfPlacesOutsideTheProject(t *testing.T) {
	for name, text := range documents(t) {
		if found := outside.FindString(text); found != "" {
			t.Errorf("%s names %q", name, found)
		}
	}
}
