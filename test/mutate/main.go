// Mutate breaks the rules of the project on purpose, one by one, and sees that a
// test fails. The checkout stays as it is: the broken file is laid over it by
// `go test -overlay`.
//
//	go run ./test/mutate [WORD…]     only rules that contain a WORD
//
// It prints a table, rule → what caught it, and fails when a rule can be broken
// without a test that fails. docs/mutations.md takes over every row at once, so that
// a run that was cut short is not lost; the test that it names is asked first, all
// others when that one does not fail.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// nothing is what catches a rule that nobody would miss.
const nothing = "NOTHING"

// A rule is a place where one is written down, and how it is broken there.
type rule struct{ says, file, is, becomes string }

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func run(words []string) error {
	dir, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	table, err := readPage(page)
	if err != nil {
		return err
	}
	chosen := slices.DeleteFunc(slices.Clone(rules), func(r rule) bool {
		return len(words) > 0 && !slices.ContainsFunc(words, func(w string) bool { return strings.Contains(r.says, w) })
	})
	var survived []string
	t := trial{dir: dir, took: map[string]time.Duration{}}
	for _, r := range chosen {
		caught, err := t.caught(r, table[r.says].caught)
		switch {
		case err != nil:
			survived, caught = append(survived, r.says), err.Error()
		case caught == "":
			survived, caught = append(survived, r.says), nothing
		}
		fmt.Printf("%-62s  %s\n", r.says, caught)
		table[r.says] = row{r, caught, time.Now().Format(time.DateOnly)}
		if err := os.WriteFile(page, []byte(pageOf(rules, table)), 0o644); err != nil {
			return err
		}
	}
	if len(survived) > 0 {
		return fmt.Errorf("%d of %d rules can be broken and no test fails: %s", len(survived), len(chosen), strings.Join(survived, "; "))
	}
	fmt.Printf("%d rules broken, all caught\n", len(chosen))
	return nil
}

// A trial breaks rules and asks tests.
type trial struct {
	dir string
	// took is how long tests take, by how they are asked, that pass while nothing is
	// broken.
	took map[string]time.Duration
}

// asked are the arguments of `go test`, the package first.
type asked []string

// caught names a test that fails without the rule; "" when none does. The one that
// caught it before is asked first, then the tests of its own package, then those that
// know the rules from outside.
func (t *trial) caught(r rule, before string) (string, error) {
	overlay, err := r.overlay(t.dir)
	if err != nil {
		return "", err
	}
	for _, tests := range append(usual(before), append([]asked{r.own()}, shared...)...) {
		if err := t.whole(tests); err != nil {
			return "", err
		}
		if caught, err := failingTwice(overlay, patience(t.took[tests.String()]), tests); err != nil || caught != "" {
			return caught, err
		}
	}
	return "", nil
}

func (a asked) String() string { return strings.Join(a, " ") }

// usual is the test that caught a rule before; none when that is not known.
func usual(before string) []asked {
	pkg, test, ok := strings.Cut(before, " ")
	test, _, _ = strings.Cut(test, "/")
	if !ok || !strings.HasPrefix(test, "Test") || strings.Contains(test, " ") {
		return nil
	}
	return []asked{{"./" + pkg, "-run", "^" + test + "$"}}
}

// own are the tests of the package that the rule stands in.
func (r rule) own() asked { return asked{"./" + filepath.Dir(r.file), "-run", "."} }

// shared are those that know the rules from outside: the conformance table, and the
// simulation.
var shared = []asked{{"./test/conformance", "-run", "."}, {"./test", "-run", simulation}}

// whole sees that tests pass as long as nothing is broken: else they would seem to
// catch something.
func (t *trial) whole(tests asked) error {
	if _, done := t.took[tests.String()]; done {
		return nil
	}
	unbroken := filepath.Join(t.dir, "nothing.json")
	if err := os.WriteFile(unbroken, []byte("{}"), 0o600); err != nil {
		return err
	}
	since := time.Now()
	if fails, err := failingTwice(unbroken, longest, tests); err != nil || fails != "" {
		return errors.Join(fmt.Errorf("nothing is broken yet, and a test fails: %s", fails), err)
	}
	t.took[tests.String()] = time.Since(since)
	return nil
}

// longest is how long tests may take while nothing is broken.
const longest = 10 * time.Minute

// patience is after how long tests hang, which took so long before: a slow machine
// catches nothing.
func patience(took time.Duration) time.Duration {
	return max(time.Minute, 4*took).Round(time.Second)
}

// failingTwice is failing, but for tests that pass when they are run again by
// themselves: they failed of something else.
func failingTwice(overlay string, timeout time.Duration, tests asked) (string, error) {
	passing := "^$"
	for {
		caught, err := failing(overlay, timeout, append(slices.Clone(tests), "-skip", passing))
		again := usual(caught)
		if err != nil || again == nil {
			return caught, err
		}
		if still, err := failing(overlay, timeout, again[0]); err != nil || still != "" {
			return caught, err
		}
		passing += "|" + again[0][2]
	}
}

// simulation are the tests of package test that need no Docker.
const simulation = "TestHistories|TestStories|TestKill|TestAll|TestA|TestScaleDown|TestRe|TestMinReady|TestPartition|TestUndo|TestOnDelete|TestTwo|TestPlan|TestForeign"

// overlay writes the broken file and the description that -overlay wants.
func (r rule) overlay(dir string) (string, error) {
	path, err := filepath.Abs(r.file)
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	code, err := r.broke(string(text))
	if err != nil {
		return "", err
	}
	broken := filepath.Join(dir, "broken.go")
	if err := os.WriteFile(broken, []byte(code), 0o600); err != nil {
		return "", err
	}
	description, err := json.Marshal(map[string]any{"Replace": map[string]string{path: broken}})
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, "overlay.json")
	return name, os.WriteFile(name, description, 0o600)
}

// broke is the text of the rule's file without the rule.
func (r rule) broke(text string) (string, error) {
	if n := strings.Count(text, r.is); n != 1 {
		return "", fmt.Errorf("%s has %q %d times, want once: the code moved; %s", r.file, r.is, n, mend(r))
	}
	return strings.Replace(text, r.is, r.becomes, 1), nil
}

// mend says what to do about a rule that does not stand where it is said to.
func mend(r rule) string {
	return "find where the code does this now, put that text into the rule in test/mutate/rules.go (or delete the rule, if it holds no longer), then " + try(r)
}

// try says how to try one rule.
func try(r rule) string {
	return fmt.Sprintf("run: go run ./test/mutate %q, which breaks it, sees a test fail, and writes %s", r.says, page)
}

var (
	failedTest = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)
	hung       = regexp.MustCompile(`(?m)^\s+(Test\S+) \(`)
	ended      = regexp.MustCompile(`(?m)^\S+\.(Test\w+)\(`) // in a stack, of what ended the process
)

// failing is the innermost first test that fails, or hangs for longer than the
// timeout; "" when all pass.
func failing(overlay string, timeout time.Duration, tests asked) (string, error) {
	cmd := exec.Command("go", append([]string{"test", "-overlay", overlay, "-vet=off", "-count=1", "-failfast", "-timeout", timeout.String()}, tests...)...)
	cmd.Env = append(os.Environ(), "STSD_SIM_HISTORIES="+histories())
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return "", nil
	case !errors.As(err, &exit):
		return "", err
	case strings.Contains(string(out), "[build failed]"), strings.Contains(string(out), "[setup failed]"):
		return "", fmt.Errorf("the broken code does not compile:\n%s", out)
	}
	pkg := strings.TrimPrefix(tests[0], "./")
	if test := failedIn(string(out)); test != "" {
		return pkg + " " + test, nil
	}
	return pkg, nil
}

// failedIn is the innermost first test that failed, as `go test` said; "" none is
// named.
func failedIn(said string) string {
	all := failedTest.FindAllStringSubmatch(said, -1)
	for _, other := range []*regexp.Regexp{hung, ended} {
		if len(all) == 0 {
			all = other.FindAllStringSubmatch(said, -1)
		}
	}
	if len(all) == 0 {
		return ""
	}
	first := all[0][1]
	for _, m := range all { // the first leaf below the first name
		if strings.HasPrefix(m[1], first+"/") {
			first = m[1]
		}
	}
	return first
}

// histories is how many random ones each broken rule has to survive.
func histories() string {
	if n := os.Getenv("STSD_SIM_HISTORIES"); n != "" {
		return n
	}
	return "40"
}
