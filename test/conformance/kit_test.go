// Package conformance holds stsd against every behaviour that is known of
// Kubernetes' StatefulSet, its controller's tests, kubectl, the kubelet and
// OpenKruise's Advanced StatefulSet. Each has an id; each id is a row of a table:
// a sentence and the test that shows it, or the reason why it has no meaning
// here. docs/conformance.md is made from the tables:
//
//	go test ./test/conformance -update
package conformance

import (
	"fmt"
	"strings"
	"testing"
)

// verdict is how stsd does beside Kubernetes.
type verdict string

const (
	same   verdict = "same"
	better verdict = "better" // on purpose another behaviour; Why says what it is good for
	absent verdict = "not applicable"
	later  verdict = "not applicable yet"
)

// row is one scenario, or several that read alike.
type row struct {
	ID                string // "A1", "B24-B26", "H1 H2"
	Given, When, Then string
	Verdict           verdict
	Why               string // of better, absent and later
	Run               func(t *testing.T)
	In                cite // the test that shows it, where that is another package's
}

// cite is a test elsewhere and a text inside of it; an empty Case is the row's id.
type cite struct{ Package, Test, Case string }

// family is one table.
type family struct {
	Title string
	Rows  []row
}

// families are all tables, in the order of the document.
func families() []family {
	return []family{
		{"Invariants of the controller (A)", invariants()},
		{"The control loop (B)", controlLoop()},
		{"Queue, adoption, races (C)", adoption()},
		{"Pods and claims (D)", podControl()},
		{"Status (E)", statusWrites()},
		{"Names, storage, owners (F)", helpers()},
		{"Revisions of other versions (G)", upgrades()},
		{"The store of revisions (H)", revisionStore()},
		{"Validation (I)", validation()},
		{"Defaults (J)", defaults()},
		{"Integration (K)", integration()},
		{"End to end (L)", endToEnd()},
		{"kubectl (M)", kubectl()},
		{"Probes end to end (N)", probes()},
		{"The probe worker (O)", probeWorker()},
		{"Hooks (P)", hooks()},
		{"Init containers (Q)", initContainers()},
		{"The life of a pod (R)", lifecycle()},
		{"Environment and configuration (S)", environment()},
		{"Names in DNS (T)", names()},
		{"Security (U)", security()},
		{"OpenKruise (V)", kruise()},
		{"What users complain of (6)", complaints()},
		{"Worked timelines (2.15)", timelines()},
		{"Rules that are easily wrong (8)", rules()},
		{"Ownership on one host (X): of it Kubernetes has no scenario", ownership()},
	}
}

func TestConformance(t *testing.T) {
	for _, f := range families() {
		for _, r := range f.Rows {
			if r.Run != nil {
				t.Run(r.ID, func(t *testing.T) {
					t.Parallel()
					r.Run(t)
				})
			}
		}
	}
}

// all runs several checks, each as a test of its own.
func all(checks ...func(*testing.T)) func(*testing.T) {
	return func(t *testing.T) {
		for i, c := range checks {
			t.Run(fmt.Sprint(i), c)
		}
	}
}

// ids are those that a row stands for: "B24-B26 B30" is four.
func ids(text string) []string {
	var out []string
	for _, word := range strings.Fields(text) {
		from, to, ok := strings.Cut(word, "-")
		if !ok {
			out = append(out, word)
			continue
		}
		prefix, first := split(from)
		_, last := split(to)
		for n := first; n <= last; n++ {
			out = append(out, fmt.Sprint(prefix, n))
		}
	}
	return out
}

// split is "B24" as "B" and 24, and "2.15.3" as "2.15." and 3.
func split(id string) (prefix string, n int) {
	i := len(id)
	for i > 0 && id[i-1] >= '0' && id[i-1] <= '9' {
		i--
	}
	fmt.Sscan(id[i:], &n)
	return id[:i], n
}

// is a scenario in which stsd does what Kubernetes does.
func is(id, given, when, then string, run func(*testing.T)) row {
	return row{ID: id, Given: given, When: when, Then: then, Verdict: same, Run: run}
}

// differs is one in which it does something else on purpose, and why.
func differs(id, given, when, then, why string, run func(*testing.T)) row {
	return row{ID: id, Given: given, When: when, Then: then, Verdict: better, Why: why, Run: run}
}

// in moves the test of a scenario to another package; text is what it mentions,
// empty the id.
func (r row) in(pkg, test, text string) row {
	r.In = cite{pkg, test, text}
	return r
}

// none are scenarios without a meaning here.
func none(ids, why string) row { return row{ID: ids, Verdict: absent, Why: why} }

// notYet are those of a later version.
func notYet(ids, why string) row { return row{ID: ids, Verdict: later, Why: why} }
