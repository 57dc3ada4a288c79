package main

import (
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
			t.Fatal(err)
		}
		if n := strings.Count(string(text), r.is); n != 1 {
			t.Errorf("%s: %s has %q %d times, want once: write the rule down in rules.go as it stands now", r.says, r.file, r.is, n)
		}
	}
}

// The page names every rule that there is, and no other.
func TestThePageHasEveryRule(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", page))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rules {
		if !strings.Contains(string(text), "| "+r.says+" | "+r.file+" |") {
			t.Errorf("%s has no row for %q: make mutate writes it", page, r.says)
		}
	}
	if n := strings.Count(string(text), "\n| ") - 1; n != len(rules) {
		t.Errorf("%s has %d rules, want %d", page, n, len(rules))
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
