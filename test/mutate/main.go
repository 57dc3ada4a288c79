// Mutate breaks the rules of the project on purpose, one by one, and sees that a
// test fails. The checkout stays as it is: the broken file is laid over it by
// `go test -overlay`.
//
//	go run ./test/mutate [WORD…]     only rules that contain a WORD
//
// It prints a table, rule → what caught it, and fails when a rule can be broken
// without a test that fails. docs/mutations.md takes over every row at once, so that
// a run that was cut short is not lost.
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
	var survived []string
	table, err := readPage(page)
	if err != nil {
		return err
	}
	chosen := slices.DeleteFunc(slices.Clone(rules), func(r rule) bool {
		return len(words) > 0 && !slices.ContainsFunc(words, func(w string) bool { return strings.Contains(r.says, w) })
	})
	if err := whole(dir, chosen); err != nil {
		return err
	}
	for _, r := range chosen {
		caught, err := r.broken(dir)
		switch {
		case err != nil:
			survived, caught = append(survived, r.says), err.Error()
		case caught == "":
			survived, caught = append(survived, r.says), "NOTHING"
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

// broken names the first test that fails without the rule; "" when none does. The
// tests of its own package are asked first, then the conformance table, then the
// simulation.
func (r rule) broken(dir string) (caught string, err error) {
	overlay, err := r.overlay(dir)
	if err != nil {
		return "", err
	}
	return r.first(overlay)
}

func (r rule) first(overlay string) (caught string, err error) {
	for _, where := range append([][]string{r.own()}, shared...) {
		if caught, err = failing(overlay, where[0], where[1:]...); err != nil || caught != "" {
			return caught, err
		}
	}
	return "", nil
}

// own are the tests of the package that the rule stands in.
func (r rule) own() []string { return []string{"./" + filepath.Dir(r.file), "-run", "."} }

// shared are those that know the rules from outside.
var shared = [][]string{{"./test/conformance", "-run", "."}, {"./test", "-run", simulation}}

// whole sees that all tests pass as long as nothing is broken: else each of them
// would seem to catch something.
func whole(dir string, chosen []rule) error {
	nothing := filepath.Join(dir, "nothing.json")
	if err := os.WriteFile(nothing, []byte("{}"), 0o600); err != nil {
		return err
	}
	all := slices.Clone(shared)
	for _, r := range chosen {
		if !slices.ContainsFunc(all, func(where []string) bool { return where[0] == r.own()[0] }) {
			all = append(all, r.own())
		}
	}
	for _, where := range all {
		if fails, err := failing(nothing, where[0], where[1:]...); err != nil || fails != "" {
			return errors.Join(fmt.Errorf("nothing is broken yet, and a test fails: %s", fails), err)
		}
	}
	return nil
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
	if n := strings.Count(string(text), r.is); n != 1 {
		return "", fmt.Errorf("%s has %q %d times, not once: the rule moved; write it down here anew", r.file, r.is, n)
	}
	broken := filepath.Join(dir, "broken.go")
	if err := os.WriteFile(broken, []byte(strings.Replace(string(text), r.is, r.becomes, 1)), 0o600); err != nil {
		return "", err
	}
	description, err := json.Marshal(map[string]any{"Replace": map[string]string{path: broken}})
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, "overlay.json")
	return name, os.WriteFile(name, description, 0o600)
}

var (
	failedTest = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)
	hung       = regexp.MustCompile(`(?m)^\s+(Test\S+) \(`)
)

// failing is the innermost first test that fails; "" when all pass.
func failing(overlay, pkg string, args ...string) (string, error) {
	cmd := exec.Command("go", append([]string{"test", "-overlay", overlay, "-vet=off", "-count=1", "-failfast", "-timeout", "120s", pkg}, args...)...)
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
	all := failedTest.FindAllStringSubmatch(string(out), -1)
	if len(all) == 0 {
		all = hung.FindAllStringSubmatch(string(out), -1)
	}
	if len(all) == 0 {
		return pkg, nil
	}
	first := all[0][1]
	for _, m := range all { // the first leaf below the first name
		if strings.HasPrefix(m[1], first+"/") {
			first = m[1]
		}
	}
	return strings.TrimPrefix(pkg, "./") + " " + first, nil
}

// histories is how many random ones each broken rule has to survive.
func histories() string {
	if n := os.Getenv("STSD_SIM_HISTORIES"); n != "" {
		return n
	}
	return "40"
}
