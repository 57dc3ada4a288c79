package e2e_test

import (
	"strings"
	"testing"
)

// one is a set of one container; the rest is put in.
func one(name, inSet, inContainer string) string {
	return "statefulset \"" + name + "\" {\n" + inSet + "  container \"web\" {\n    image = \"stsd-demo:1\"\n" + inContainer + "  }\n}\n"
}

func TestBadInputIsRefusedWithItsLineAndNothingIsStored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, c := range []struct {
		name, text string
		words      []string
	}{
		{"an empty file", "", []string{"spec.hcl", "statefulset"}},
		{"ten megabytes", strings.Repeat("# "+strings.Repeat("x", 1022)+"\n", 10<<10), []string{"spec.hcl"}},
		{"ten megabytes of one string", "locals {\n  a = \"" + strings.Repeat("x", 10<<20) + "\"\n}\n", []string{"spec.hcl"}},
		{"binary garbage", "\x7fELF\x00\x01\xff\xfe\x80 {{{ \"", []string{"spec.hcl:1"}},
		{"an unknown attribute", one("web", "  replcas = 3\n", ""), []string{"spec.hcl:2", "replcas", "replicas"}},
		{"a wrong type", one("web", "  replicas = [1]\n", ""), []string{"spec.hcl:2", "replicas"}},
		{"another wrong type", one("web", "", "    env = \"A=1\"\n"), []string{"spec.hcl:4", "env"}},
		{"a circle of locals", "locals {\n  a = local.b\n  b = local.a\n}\n" + one("web", "", "    args = [local.a]\n"), []string{"spec.hcl:2", "local.b", "local.a"}},
		{"a set's name of 64 letters", one(strings.Repeat("w", 64), "", ""), []string{"spec.hcl:1", "63"}},
		{"a port that members share", one("web", "  replicas = 2\n", "    port \"http\" {\n      container = 80\n      host = 8080\n    }\n"), []string{"spec.hcl:7", "8080", "web-0", "web-1"}},
		{"two ports of one name", one("web", "", "    port \"http\" {\n      container = 80\n    }\n    port \"http\" {\n      container = 81\n    }\n"), []string{"spec.hcl:7", "http"}},
		{"an undeclared variable", one("web", "", "    args = [var.tag]\n"), []string{"spec.hcl:4", "tag"}},
		{"negative replicas", one("web", "  replicas = -1\n", ""), []string{"spec.hcl:2", "replicas"}},
		{"half a replica", one("web", "  replicas = 1.5\n", ""), []string{"spec.hcl:2", "replicas"}},
		{"two sets of one name", one("web", "", "") + one("web", "", ""), []string{"spec.hcl:6", "web"}},
		{"a shell's expansion", one("web", "", "    args = [\"sh\", \"-c\", \"echo ${HOSTNAME##*-}\"]\n"), []string{"spec.hcl:4", "$${HOSTNAME##*-}"}},
		{"a foreign word", one("web", "  count = 3\n", ""), []string{"spec.hcl:2", "count", "replicas"}},
	} {
		file := w.file("spec.hcl", c.text)
		for _, verb := range []string{"validate", "plan", "apply"} {
			r := w.stsd(verb, file)
			if r.code != 1 {
				t.Errorf("%s: %s: exit code %d, want 1: %s", c.name, verb, r.code, r.err)
			}
			for _, word := range c.words {
				if !strings.Contains(r.err, word) {
					t.Errorf("%s: %s does not say %q: %s", c.name, verb, word, r.err[:min(len(r.err), 2000)])
				}
			}
		}
	}
	// A variable may be stored: only the daemon knows that it is missing.
	w.fails(1, []string{"var.hcl:1", "tag"}, "apply", w.file("var.hcl", "variable \"tag\" {\n  type = string\n}\n"+one("web", "", "    args = [var.tag]\n")))
	w.fails(1, []string{"absent.hcl"}, "apply", "absent.hcl")
	w.fails(64, nil, "apply")
	w.empty()
}
