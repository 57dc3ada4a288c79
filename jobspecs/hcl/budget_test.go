package hcl

import (
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"
)

// aliases is YAML of some levels, each ten times the one before.
func aliases(levels int) string {
	var s strings.Builder
	s.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n")
	for i := 1; i < levels; i++ {
		fmt.Fprintf(&s, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 10), ","))
	}
	return s.String()
}

// merged is YAML of maps that each take the keys of the first one.
func merged(keys, maps int, merge string) string {
	var s strings.Builder
	s.WriteString("a: &a\n")
	for i := range keys {
		fmt.Fprintf(&s, "  k%d: 1\n", i)
	}
	for i := range maps {
		fmt.Fprintf(&s, "m%d:\n  %s: *a\n", i, merge)
	}
	return s.String()
}

// chained is YAML whose values hold each the one before.
func chained(levels int) string {
	var s strings.Builder
	s.WriteString("a0: &a0 [x]\n")
	for i := 1; i < levels; i++ {
		fmt.Fprintf(&s, "a%d: &a%d [*a%d]\n", i, i, i-1)
	}
	return s.String()
}

const nestedTooDeep = "this is nested more than 100 deep"

// maxAllocated is what reading a spec with a hostile file may allocate, in bytes,
// all its garbage counted.
const maxAllocated = 256 << 20

func TestWhatIsMeantToFillTheMemoryIsRefusedBeforeTheWork(t *testing.T) {
	repeat := strings.Repeat
	nest := func(n int, call string, inner string) string {
		return repeat(call, n) + inner + repeat(")", n)
	}
	for _, c := range []struct{ rule, expr, file, want string }{
		{"aliases of aliases", `yamldecode(file("f"))`, aliases(8), "too many values"},
		{"more of them", `yamldecode(file("f"))`, aliases(11), "too many values"},
		{"as many as there can be", `yamldecode(file("f"))`, aliases(1000), "too many values"},
		{"aliases for each member", `"${self.name}${length(yamldecode(file("f")))}"`, aliases(11), "too many values"},
		{"aliases behind try", `try(yamldecode(file("f")), "refused too")`, aliases(11), ""},
		{"aliases in a template", `templatefile("t", { f = file("f") })`, aliases(11), "too many values"},
		{"a chain of aliases", `yamldecode(file("f"))`, chained(9000), nestedTooDeep},
		{"maps merged into maps", `yamldecode(file("f"))`, merged(4000, 4000, "<<"), tooMuchWork},
		{"maps merged by a tag", `yamldecode(file("f"))`, merged(4000, 4000, "!!merge x"), tooMuchWork},
		{"maps merged by an escaped key", `yamldecode(file("f"))`, merged(4000, 4000, `!<tag:yaml.org,2002:%6Derge> x`), tooMuchWork},
		{"YAML of many values", `yamldecode(file("f"))`, "[" + repeat("a,", 500000) + "a]", tooMuchWork},
		{"YAML nested by brackets", `yamldecode(file("f"))`, repeat("[", 500000), nestedTooDeep},
		{"YAML nested by lines", `yamldecode(file("f"))`, indented(700), nestedTooDeep},
		{"YAML nested by dashes", `yamldecode(file("f"))`, repeat("- ", 900), nestedTooDeep},
		{"JSON of many values", `jsondecode(file("f"))`, "[" + repeat("0,", 500000) + "0]", tooMuchWork},
		{"CSV of many lines", `csvdecode(file("f"))`, "a\n" + repeat("1\n", 500000), tooMuchWork},
		{"CSV of many fields", `csvdecode(file("f"))`, "a,b\n" + repeat(",\n", 500000), tooMuchWork},
		{"searches that look to the end", `regexall("x*y|x", file("f"))`, repeat("x", 20000), tooMuchWork},
		{"the same for empty matches", `regexall("(x*y)?", file("f"))`, repeat("x", 20000), tooMuchWork},
		{"the same behind the first letter", `regexall("^x|x*y|x", file("f"))`, repeat("x", 20000), tooMuchWork},
		{"the same in a replacement", `regexreplace(file("f"), "x*y|x", "")`, repeat("x", 20000), tooMuchWork},
		{"a pattern of repetitions", `regexall(file("f"), "")`, repeat("x{1000}", 580), tooMuchWork},
		{"a longer one", `regex(file("f"), "")`, repeat("x{1000}", 3000), tooMuchWork},
		{"a pattern of all letters", `regex(file("f"), "")`, repeat(`\pL`, 20000), tooMuchWork},
		{"lines behind indentation", `yamlencode(` + repeat("[", 90) + `file("f")` + repeat("]", 90) + `)`, repeat("x\n", 500000), tooMuchWork},
		{"words behind indentation", `yamlencode(` + repeat("[", 90) + `file("f")` + repeat("]", 90) + `)`, repeat("x ", 500000), tooMuchWork},
		{"escapes of escapes", nest(40, "jsonencode(", `"\""`), "", tooMuchWork},
		{"characters that are escaped", nest(3, "jsonencode(", `file("f")`), repeat("<", 1000000), tooMuchWork},
		{"a text that doubles", nest(40, `format("%[1]s%[1]s", `, `"xxxxxxxx"`), "", tooMuchWork},
		{"a long number in JSON", `"${jsondecode("[1e9999999]")[0]}"`, "", tooMuchWork},
		{"a long number in YAML", `"${yamldecode("[1e9999999]")[0]}"`, "", tooMuchWork},
		{"a number of a million digits", `"${parseint(file("f"), 16)}"`, repeat("f", 1000000), tooMuchWork},
		{"a set of many", `toset(split(",", file("f")))`, repeat("x,", 200000), tooMuchWork},
		{"a set of many as an argument", `setunion(split(",", file("f")), [])`, repeat("x,", 200000), tooMuchWork},
		{"a file looked for often", `[for x in range(1000) : fileexists("f")]`, repeat("x", 1<<20), ""},
		{"a file read under many names", `[for x in range(1000) : fileexists("${x}/f")]`, repeat("x", 1<<20), "more than 16 MiB"},
	} {
		read := func(path string) ([]byte, error) {
			if path == "t" {
				return []byte(`${length(yamldecode(f))}`), nil
			}
			return []byte(c.file), nil
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := processorTime(t)
		said := reportOf(readWith(readWork, web("args = [length(jsonencode("+c.expr+"))]"), Options{ReadFile: read}))
		runtime.ReadMemStats(&after)
		if took := processorTime(t) - start; took > time.Minute {
			t.Errorf("%s: took %s", c.rule, took)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > maxAllocated {
			t.Errorf("%s: allocated %d MiB", c.rule, n>>20)
		}
		if c.want == "" && said != "" || !strings.Contains(said, c.want) {
			t.Errorf("%s: found %.400q, want %q", c.rule, said, c.want)
		}
	}
}

// indented is YAML of maps in maps, a blank deeper at every line.
func indented(levels int) string {
	var s strings.Builder
	for i := range levels {
		s.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return s.String()
}

func TestLocalsThatDoubleEachOtherAreRefused(t *testing.T) {
	atLeisure(t)
	for rule, form := range map[string]string{
		"lists": "[LAST, LAST]", "flattened": "flatten([LAST, LAST])",
		"merged": "{ x = LAST, y = merge({ z = LAST }, {}) }", "texts": "\"${LAST}${LAST}\"",
		"pairs": "setproduct([LAST], [LAST])",
	} {
		lines := []string{"a0 = \"xxxxxxxx\""}
		for i := range 40 {
			lines = append(lines, fmt.Sprintf("a%d = %s", i+1, strings.ReplaceAll(form, "LAST", fmt.Sprintf("local.a%d", i))))
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		said := found("locals {\n" + strings.Join(lines, "\n") + "\n}\n" + web("args = [length(local.a40)]"))
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 6*maxAllocated { // most is the garbage of weighing each of them
			t.Errorf("%s: allocated %d MiB", rule, n>>20)
		}
		if !strings.Contains(said, "larger than 4 MiB") && !strings.Contains(said, tooMuchWork) {
			t.Errorf("%s: found %.300q", rule, said)
		}
	}
}

func TestOrdinaryFilesAreDecoded(t *testing.T) {
	for _, c := range []struct{ rule, expr, file string }{
		{"anchors", `yamldecode(file("f"))`, "base: &b { image: x, env: [a, b] }\nweb:\n  <<: *b\n  port: 80\napi: *b\n"},
		{"a compose file", `yamldecode(file("f"))`, merged(50, 50, "<<")},
		{"a long YAML file", `yamldecode(file("f"))`, strings.Repeat("- name: some name\n  value: some longer value\n", 5000)},
		{"a long JSON file", `jsondecode(file("f"))`, "[" + strings.Repeat(`{"name": "some name", "value": 5},`, 8000) + "0]"},
		{"a long CSV file", `csvdecode(file("f"))`, "a,b,c\n" + strings.Repeat("some,longer,text\n", 8000)},
		{"replacing in a long file", `regexreplace(file("f"), "(?m)^#.*\n", "")`, strings.Repeat("# comment\nsetting = value\n", 2000)},
		{"the words of a file", `regexall("[a-z]+", file("f"))`, strings.Repeat("some words ", 3000)},
		{"a file in JSON", `jsonencode(file("f"))`, strings.Repeat("some words ", 30000)},
		{"a file in YAML", `yamlencode({ a = { b = file("f") } })`, strings.Repeat("some words\n", 30000)},
	} {
		if said := reportOf(readWith(readWork, web("args = [length(jsonencode("+c.expr+"))]"), Options{ReadFile: disk(map[string]string{"f": c.file})})); said != "" {
			t.Errorf("%s: found %.400q", c.rule, said)
		}
	}
}

func TestSearchesAreThoseOfFindAll(t *testing.T) {
	for _, c := range []struct{ pattern, text string }{
		{"x", "axbxxc"}, {"x*", "axbxxc"}, {"^x", "xx"}, {`\bx`, "xx xé x"}, {`(?m)^`, "a\nb\n"}, {"x*y|x", "xxxé"}, {`\Bé`, "éaé"}, {`(?P<n>a)|\z`, "ba"}, {"$", ""},
	} {
		form, size, _ := measured(c.pattern)
		_, got := searches(form, c.text, size, expressionWork)
		want := len(regexp.MustCompile(c.pattern).FindAllStringIndex(c.text, -1))
		if got < want || got > want+strings.Count(c.text, "")/2+1 {
			t.Errorf("%q in %q: %d searches that match, FindAll has %d", c.pattern, c.text, got, want)
		}
	}
}

// atLeisure skips what takes long in a hurried run, as under the race detector.
func atLeisure(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long: not with -short")
	}
}
