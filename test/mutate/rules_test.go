package main

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// A rule that moved is written down anew when it moves, not when `make mutate`
// is run the next time.
func TestRulesStandWhereTheyAreSaidTo(t *testing.T) {
	for _, r := range rules {
		text, err := os.ReadFile(filepath.Join("..", "..", r.file))
		if err != nil {
			t.Errorf("%s: %v: the file moved; %s", r.says, err, mend(r))
			continue
		}
		broken, err := r.broke(string(text))
		if err != nil {
			t.Errorf("%s: %v", r.says, err)
			continue
		}
		if _, err := parser.ParseFile(token.NewFileSet(), r.file, broken, parser.SkipObjectResolution); err != nil {
			t.Errorf("%s: broken, it is no Go any more: %v; %s", r.says, err, mend(r))
		}
	}
}

// One name for one rule: the page and the command line find it by that.
func TestRulesAreToldApart(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range rules {
		if seen[r.says] || strings.ContainsAny(r.says, "|\n") || r.is == r.becomes {
			t.Errorf("%q is there twice, or has what a table cannot show, or breaks nothing", r.says)
		}
		seen[r.says] = true
	}
}

// The page names every rule that there is, and no other, and what catches it.
func TestThePageHasEveryRule(t *testing.T) {
	seen, err := readPage(filepath.Join("..", "..", page))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rules {
		switch got, ok := seen[r.says]; {
		case !ok, got.file != r.file:
			t.Errorf("%s does not have %q of %s as tried: %s", page, r.says, r.file, try(r))
		case got.caught == nothing || !strings.Contains(got.caught, " Test"):
			t.Errorf("%s says of %q: %s; write the test that catches it, then %s", page, r.says, got.caught, try(r))
		}
		delete(seen, r.says)
	}
	for says := range seen {
		if says != "rule" { // the head of the table
			t.Errorf("%s has %q, which is no rule any more: make mutate writes it anew", page, says)
		}
	}
}

func TestThePageIsReadAsItWasWritten(t *testing.T) {
	all := []rule{{says: "a rule", file: "a.go"}, {says: "another", file: "b.go"}}
	seen := map[string]row{"a rule": {rule{says: "a rule", file: "a.go"}, "daemon TestA", "2026-01-02"}}
	path := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(path, []byte(pageOf(all, seen)), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := readPage(path)
	delete(got, "rule") // the head of the table
	if err != nil || !reflect.DeepEqual(got, seen) {
		t.Errorf("page = %v, %v, want %v", got, err, seen)
	}
}

// What is said of a rule that moved can be followed as it stands.
func TestWhatToDoAboutARuleThatMoved(t *testing.T) {
	r := rule{says: "a rule", file: "a.go", is: "x > 0", becomes: "true"}
	if got, err := r.broke("if x > 0 {"); err != nil || got != "if true {" {
		t.Errorf("broken = %q, %v", got, err)
	}
	for text, times := range map[string]string{"if x >= 0 {": "0 times", "if x > 0 && x > 0 {": "2 times"} {
		_, err := r.broke(text)
		for _, want := range []string{"a.go", `"x > 0"`, times, "test/mutate/rules.go", `go run ./test/mutate "a rule"`} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("of %q: %v, want it to say %s", text, err, want)
			}
		}
	}
}

func TestWhichTestFailed(t *testing.T) {
	for _, c := range []struct{ name, said, want string }{
		{"one", "--- FAIL: TestA (0.00s)\n    a_test.go:1: no", "TestA"},
		{"a case of it", "--- FAIL: TestA (0.00s)\n    --- FAIL: TestA/x (0.00s)\n        --- FAIL: TestA/x/y (0.00s)\n--- FAIL: TestB (0.00s)", "TestA/x/y"},
		{"one that hangs", "panic: test timed out after 2m0s\n\trunning tests:\n\t\tTestA (2m0s)\n", "TestA"},
		{"one that ends the process", "fatal error: fault\ngoroutine 7 [running]:\nruntime.throw()\ngithub.com/stsd/stsd/daemon/store.TestA(0xc0)\ntesting.tRunner()", "TestA"},
		{"none that is named", "exit status 2", ""},
	} {
		if got := failedIn(c.said); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestTheTestThatCaughtARuleBeforeIsAskedFirst(t *testing.T) {
	for before, want := range map[string]string{
		"daemon/store TestA":                     "./daemon/store -run ^TestA$",
		"test TestHistories/all/1":               "./test -run ^TestHistories$",
		"daemon/store":                           "",
		"":                                       "",
		nothing:                                  "",
		"a.go has \"Test x\" 0 times, want once": "",
	} {
		got := ""
		if tests := usual(before); tests != nil {
			got = tests[0].String()
		}
		if got != want {
			t.Errorf("after %q: %q, want %q", before, got, want)
		}
	}
}
