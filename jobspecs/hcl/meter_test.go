package hcl

import (
	"strings"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/stsd/stsd/jobspecs"
)

// bigLocals are texts and lists near to what a local may hold.
const bigLocals = `
locals {
	k    = join("", [for x in range(1000) : "x"])
	text = join("", [for x in range(1000) : local.k])
	list = [for x in range(1000) : x]
	long = concat(local.list, local.list, local.list, local.list, local.list, local.list, local.list, local.list, local.list, local.list)
	wide = [for x in range(20) : local.long]
}
`

// readWith is what is found in a text by a reader that may work less than usual.
func readWith(work int, text string, opt Options) []jobspecs.Diagnostic {
	r := &report{meter: newMeter(work)}
	source := []jobspecs.Source{{Name: "a.hcl", Text: []byte(text)}}
	r.evaluate(r.parse(source), source, jobspecs.Inputs{}, opt)
	return r.done()
}

func TestAValueFromOutsideMayBeTooLarge(t *testing.T) {
	for rule, value := range map[string]string{
		"a long list":   "[" + strings.Repeat("0,", 100000) + "0]",
		"a long number": "1e99999999",
	} {
		text := "variable \"v\" {\n}\n" + web("args = [\"${jsonencode(var.v)}\"]")
		_, ds := Parse([]jobspecs.Source{{Name: "a.hcl", Text: []byte(text)}}, jobspecs.Inputs{Vars: raw(map[string]string{"v": value})}, Options{})
		if len(ds) != 1 || ds[0].Summary != `the value of variable "v" does not fit` || ds[0].Detail != tooMuchWork {
			t.Errorf("%s: found %.300s", rule, reportOf(ds))
		}
	}
}

func TestOneExpressionMayTakeAPartOfTheWorkOnly(t *testing.T) {
	atLeisure(t)
	heavy := "length([for a in range(1000) : a if length([for b in range(1000) : b]) < 0])"
	if got, want := found(web("args = ["+heavy+"]\nuser = "+heavy)), tooMuchWork+"\n"+tooMuchWork; got != want {
		t.Errorf("found %q, want %q", got, want)
	}
}

func TestWhatTakesTooMuchIsRefusedInTime(t *testing.T) {
	atLeisure(t)
	repeat := func(s string, n int) string { return strings.Repeat(s, n) }
	for i, c := range []struct{ rule, expr string }{
		{"loops in loops", "[for a in range(1000) : [for b in range(1000) : [for c in range(1000) : a]]][0][0]"},
		{"loops in loops that keep nothing", "[for a in range(1000) : a if length([for b in range(1000) : b if length([for c in range(1000) : c]) < 0]) < 0]"},
		{"loops over a local in loops", "[for a in local.long : [for b in local.long : b]][0]"},
		{"loops in a key", "keys({for a in local.long : join(\"\", [for b in local.long : b]) => a...})"},
		{"loops in a template", "\"%{ for a in local.long }%{ for b in local.long }x%{ endfor }%{ endfor }\""},
		{"a long text at every turn", "[for a in range(1000) : \"${local.text}${a}\"]"},
		{"a long text compared at every turn", "[for a in local.long : a if \"${local.text}${local.text}\" == \"\"]"},
		{"a wide list at every turn", "[for a in range(1000) : [for b in range(1000) : local.wide]][0][0][0]"},
		{"a wide list of a loop's variable", "[for a in [local.wide, local.wide] : [for b in local.long : [a, a, a] == [a, a]]][0]"},
		{"a splat of loops", "local.long[*][[for b in local.long : 0][0]]"},
		{"a text put in many times", "\"" + repeat("${local.text}", 1000) + "\""},
		{"a list put in many times", "length([" + repeat("local.wide, ", 1000) + "])"},
		{"all pairs, thrice", "length(setproduct(local.list, local.list, local.list))"},
		{"a long text between many", "join(local.text, local.long)"},
		{"a long text for every letter", "replace(local.text, \"x\", local.text)"},
		{"a long text for every place", "replace(local.text, \"\", local.k)"},
		{"a long text for every match", "regexreplace(local.text, \"x\", local.k)"},
		{"every match many times", "regexreplace(local.text, \"(.*)\", \"" + repeat("$1", 1000) + "\")"},
		{"a hard pattern", "regex(\"(x{0,30}){0,30}y\", local.text)"},
		{"many groups", "regexall(\"" + repeat("()", 500) + "x\", local.text)"},
		{"one argument many times", "format(\"" + repeat("%[1]s", 1000) + "\", local.text)"},
		{"wide verbs", "format(\"" + repeat("%9999d", 9000) + "\"" + repeat(", 1", 9000) + ")"},
		{"a list of long texts", "formatlist(\"%s%s\", local.text, local.long)"},
		{"indented lines", "indent(1000, replace(local.text, \"x\", \"\\n\"))"},
		{"letters", "split(\"\", local.text)"},
		{"many separate", "distinct(concat(local.long, local.long, local.long, local.long, [for x in local.long : \"${x}y\"]))"},
		{"a long cut", "trim(local.text, \"é${local.text}\")"},
		{"a wide list in text", "[for a in range(1000) : jsonencode(local.wide)]"},
		{"a wide list in YAML", "[for a in range(100) : yamlencode(local.wide)]"},
		{"a wide list read", "[for a in range(100) : jsondecode(jsonencode(local.wide))]"},
		{"a long template at every turn", "[for a in range(1000) : templatefile(\"long.tmpl\", {})]"},
		{"loops in a template file", "templatefile(\"loops.tmpl\", { list = local.long })"},
		{"a text many times in a template file", "templatefile(\"many.tmpl\", { text = local.text })"},
		{"loops behind try", "try([for a in local.long : [for b in local.long : b]][0], \"x\")"},
		{"loops behind can", "can([for a in local.long : [for b in local.long : b]][0])"},
	} {
		for _, symbolic := range []bool{false, true}[:1+(i+1)%2] { // every second one for members too
			lines := "env = { A = jsonencode(" + c.expr + ") }"
			if symbolic {
				lines = "env = { A = \"${self.name}${jsonencode(" + c.expr + ")}\" }"
			}
			files := disk(map[string]string{
				"long.tmpl":  repeat("x", 1<<20),
				"loops.tmpl": "%{ for a in list }%{ for b in list }x%{ endfor }%{ endfor }",
				"many.tmpl":  repeat("${text}", 1000),
			})
			start := processorTime(t)
			ds := readWith(1<<19, bigLocals+web(lines), Options{ReadFile: files})
			if took := processorTime(t) - start; took > time.Minute {
				t.Errorf("%s: took %s", c.rule, took)
			}
			if !HasErrors(ds) || !strings.Contains(reportOf(ds), tooMuchWork) {
				t.Errorf("%s (symbolic %v): found %.300s", c.rule, symbolic, reportOf(ds))
			}
		}
	}
}

func TestNumbersDoNotGrowWithoutEnd(t *testing.T) {
	for _, c := range []struct{ rule, expr, want string }{
		{"a number in quotes", "\"1e99999999\" * 1", "operation failed"},
		{"a number in quotes, negated", "-\"1e99999999\"", "operation failed"},
		{"a product", "1e999 * 1e999 * 1e999 * 1e999", "operation failed"},
		{"a function's argument", "floor(\"1e99999999\")", "invalid function argument"},
		{"a function's value", "jsondecode(\"1e99999999\")", "this takes too much time or memory"},
		{"an element of a list", "max([\"1e99999999\"]...)", "invalid function argument"},
	} {
		if got := found(web("args = [\"${" + c.expr + "}\"]")); got != c.want {
			t.Errorf("%s: found %q, want %q", c.rule, got, c.want)
		}
	}
	if got := found(web("args = [1e999 * 1e999]")); got != "" {
		t.Errorf("a number of 2000 digits: found %q", got)
	}
}

func TestAFileOfHeavyExpressionsIsGivenUpOnce(t *testing.T) {
	heavy := "length([for a in range(1000) : a if length([for b in range(100) : b]) < 0])\n"
	var lines []string
	for i := range 200 {
		lines = append(lines, "a"+strings.Repeat("x", i)+" = "+heavy)
	}
	ds := readWith(expressionWork, "locals {\n"+strings.Join(lines, "")+"}\n"+web(""), Options{})
	if len(ds) != 1 || ds[0].Summary != tooMuchWork || ds[0].Line != 3 { // the second one
		t.Errorf("found %+v", ds)
	}
}

func TestOrdinaryLoopsOfLongSetsAreNotTooMuch(t *testing.T) {
	text := strings.Replace(web(`
		args = [join(",", [for m in set.members : "${m.name}=http://${m.fqdn}:2380"]), join(",", set.peers[*].fqdn)]
		file "/servers" {
			content = <<-EOT
				%{ for m in set.members ~}
				server.${m.ordinal}=${m.fqdn}:2888:3888
				%{ endfor ~}
			EOT
		}`), "replicas = 3", "replicas = 1000", 1)
	spec := good(t, text).Specs[0]
	pod, err := Render(&spec.Set, spec.Template, sampleOf(&spec.Set, 999, nil))
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(string(pod.Containers[0].Files[0].Content), "\n"); lines != 1000 {
		t.Errorf("%d lines", lines)
	}
}

func TestRenderingAMemberThatTakesTooMuchIsRefused(t *testing.T) {
	spec := good(t, strings.Replace(web(`args = [length([for a in range(1000) : [for b in set.members : [for c in set.members : c.ordinal]]])]`), "replicas = 3", "replicas = 2", 1)).Specs[0]
	env := envOf(0)
	env.Ordinals = nil
	for o := range 1000 {
		env.Ordinals = append(env.Ordinals, o)
	}
	_, err := Render(&spec.Set, spec.Template, env)
	if err == nil || !strings.Contains(err.Error(), "render web-0: container.web.args[0]: ") || !strings.Contains(err.Error(), tooMuchWork) {
		t.Errorf("%v", err)
	}
}

func TestWeigh(t *testing.T) {
	for _, c := range []struct {
		rule string
		v    cty.Value
		want int
	}{
		{"a short text", cty.StringVal("x"), 1},
		{"a text", cty.StringVal(strings.Repeat("x", 320)), 11},
		{"nothing", cty.NullVal(cty.String), 1},
		{"what is not known", cty.UnknownVal(cty.List(cty.String)), 1},
		{"a number", cty.NumberIntVal(5), 1},
		{"a list", cty.ListVal([]cty.Value{cty.True, cty.False}), 3},
		{"a map", cty.MapVal(map[string]cty.Value{"a": cty.StringVal(strings.Repeat("x", 320))}), 12},
		{"a marked value", cty.TupleVal([]cty.Value{cty.True.Mark("m")}).Mark("n"), 2},
	} {
		if got := weigh(c.v, 1000); got != c.want {
			t.Errorf("%s weighs %d, want %d", c.rule, got, c.want)
		}
	}
}
