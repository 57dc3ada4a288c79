package main

import (
	"os"
	"path/filepath"
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
