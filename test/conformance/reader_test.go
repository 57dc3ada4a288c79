package conformance

import (
	"strings"
	"testing"

	"github.com/stsd/stsd/jobspecs"
	reader "github.com/stsd/stsd/jobspecs/hcl"
)

// parse reads one file as `stsd validate` does.
func parse(text string) (*reader.File, []jobspecs.Diagnostic) {
	return reader.Parse([]jobspecs.Source{{Name: "web.hcl", Text: []byte(text)}}, jobspecs.Inputs{}, reader.Options{})
}

// set is a set "web" with further lines; box its container.
func set(lines string) string { return block("web", lines+"\n"+box("")) }

func block(name, lines string) string { return "statefulset \"" + name + "\" {\n" + lines + "\n}\n" }

func box(lines string) string { return "container \"web\" {\nimage = \"app:1\"\n" + lines + "\n}" }

// updates is a set with lines in its update block.
func updates(lines string) string { return set("update {\n" + lines + "\n}") }

// takes checks that a file is read without a finding.
func takes(text string) func(*testing.T) {
	return func(t *testing.T) {
		t.Helper()
		if _, ds := parse(text); len(ds) > 0 {
			t.Errorf("found %q in\n%s", summaries(ds), text)
		}
	}
}

// refuses checks the only finding of a file that is not read.
func refuses(text, want string) func(*testing.T) {
	return func(t *testing.T) {
		t.Helper()
		f, ds := parse(text)
		if got := summaries(ds); got != want || f != nil {
			t.Errorf("found %q, want %q in\n%s", got, want, text)
		}
		if len(ds) > 0 && ds[0].Line == 0 {
			t.Errorf("%q has no place", ds[0].Summary)
		}
	}
}

// renders checks something of the only container of each of a set's two members.
func renders(text string, of func(jobspecs.Container) string, want ...string) func(*testing.T) {
	return func(t *testing.T) {
		t.Helper()
		f, ds := parse(text)
		if f == nil {
			t.Fatalf("found %q in\n%s", summaries(ds), text)
		}
		for ordinal, want := range want {
			env := reader.Env{Domain: "cluster.local", Ordinals: []int{0, 1}, Ordinal: ordinal}
			pod, err := reader.Render(&f.Specs[0].Set, f.Specs[0].Template, env)
			if err != nil || of(pod.Containers[0]) != want {
				t.Errorf("web-%d has %q, %v; want %q", ordinal, of(pod.Containers[0]), err, want)
			}
		}
	}
}

func summaries(ds []jobspecs.Diagnostic) string {
	var out []string
	for _, d := range ds {
		out = append(out, d.Summary)
	}
	return strings.Join(out, "\n")
}

// reads checks something of the one set of a file.
func reads(text string, check func(jobspecs.Spec) bool) func(*testing.T) {
	return func(t *testing.T) {
		t.Helper()
		f, ds := parse(text)
		if f == nil || len(f.Specs) != 1 || !check(f.Specs[0]) {
			t.Errorf("it is not read so: %q\n%s", summaries(ds), text)
		}
	}
}
