package hcl

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stsd/stsd/jobspecs"
)

const variables = `
variable "plain" {
}
variable "text" {
	type = string
}
variable "count" {
	type = number
}
variable "list" {
	type = list(string)
}
variable "object" {
	type = object({ a = string, b = optional(number, 5) })
}
`

func vars(assignments []string, files map[string]string, env map[string]string) (values map[string]string, said string) {
	var sources []jobspecs.Source
	for _, name := range sortedKeys(files) {
		sources = append(sources, jobspecs.Source{Name: name, Text: []byte(files[name])})
	}
	lookup := func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	got, ds := Vars(assignments, sources, []jobspecs.Source{{Name: "a.hcl", Text: []byte(variables)}}, lookup)
	values = map[string]string{}
	for name, v := range got {
		values[name] = string(v)
	}
	var lines []string
	for _, d := range ds {
		lines = append(lines, d.Severity+": "+d.Summary)
	}
	return values, strings.Join(lines, "\n")
}

func TestVarsTakesValues(t *testing.T) {
	for _, c := range []struct {
		rule        string
		assignments []string
		files, env  map[string]string
		want        map[string]string
	}{
		{"nothing", nil, nil, nil, map[string]string{}},
		{"text as it stands", []string{"plain=1 + 1", "text=a=b"}, nil, nil, map[string]string{"plain": `"1 + 1"`, "text": `"a=b"`}},
		{"a number", []string{"count=3"}, nil, nil, map[string]string{"count": "3"}},
		{"other types as HCL", []string{`list=["a", 1]`, `object={ a = "x" }`}, nil, nil, map[string]string{"list": `["a","1"]`, "object": `{"a":"x","b":5}`}},
		{"the later assignment", []string{"text=a", "text=b"}, nil, nil, map[string]string{"text": `"b"`}},
		{"a file", nil, map[string]string{"v.hcl": "text = \"f\"\ncount = 2"}, nil, map[string]string{"text": `"f"`, "count": "2"}},
		{"a JSON file", nil, map[string]string{"v.json": `{"list":["a"]}`}, nil, map[string]string{"list": `["a"]`}},
		{"the later file", nil, map[string]string{"1.hcl": "text = 1", "2.hcl": "text = 2"}, nil, map[string]string{"text": `"2"`}},
		{"the environment", nil, nil, map[string]string{"STSD_VAR_text": "e", "STSD_VAR_other": "x", "text": "y"}, map[string]string{"text": `"e"`}},
		{"a file before the environment", nil, map[string]string{"v.hcl": "text = \"f\""}, map[string]string{"STSD_VAR_text": "e"}, map[string]string{"text": `"f"`}},
		{"an assignment before all", []string{"text=a"}, map[string]string{"v.hcl": "text = \"f\""}, map[string]string{"STSD_VAR_text": "e"}, map[string]string{"text": `"a"`}},
	} {
		got, said := vars(c.assignments, c.files, c.env)
		if said != "" || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, %q; want %v", c.rule, got, said, c.want)
		}
	}
}

func TestVarsRefuses(t *testing.T) {
	for _, c := range []struct {
		rule        string
		assignments []string
		files       map[string]string
		want        string
	}{
		{"what is not declared", []string{"tetx=1"}, nil, `error: -var tetx: there is no variable "tetx"; did you mean "text"?`},
		{"an assignment without a value", []string{"text"}, nil, "error: -var text: want NAME=VALUE"},
		{"words for a number", []string{"count=x"}, nil, "error: -var count: the value does not fit"},
		{"no HCL", []string{"list=[a b]"}, nil, "error: -var list: missing item separator: Expected a comma to mark the beginning of the next item."},
		{"names in a value", []string{"list=[a]"}, nil, "error: -var list: variables not allowed: Variables may not be used here."},
		{"a file that does not fit", nil, map[string]string{"v.hcl": "count = \"x\""}, "error: count: the value does not fit"},
		{"a file with a block", nil, map[string]string{"v.hcl": "variable \"x\" {\n}"}, "error: a var file holds NAME = VALUE only"},
		{"a file of garbage", nil, map[string]string{"v.json": "["}, "error: this is no JSON object of variables"},
		{"and only warns of a file's other names", nil, map[string]string{"v.hcl": "other = 1"}, `warning: there is no variable "other"`},
	} {
		if _, said := vars(c.assignments, c.files, nil); said != c.want {
			t.Errorf("%s: %q, want %q", c.rule, said, c.want)
		}
	}
}

func TestVarsLeavesABrokenSpecToParse(t *testing.T) {
	got, ds := Vars([]string{"a=1"}, nil, []jobspecs.Source{{Name: "a.hcl", Text: []byte("{")}}, nil)
	if got != nil || ds != nil {
		t.Errorf("%v %v", got, ds)
	}
}

func TestAGivenValueIsOfTheDeclaredType(t *testing.T) {
	text := variables + web("args = concat(var.list, [var.plain, var.text, tostring(var.count + 1), tostring(var.object.b), self.name])")
	in := jobspecs.Inputs{Vars: raw(map[string]string{"plain": `"p"`, "text": `"t"`, "count": `1`, "list": `["l"]`, "object": `{"a":"x"}`})}
	f, ds := Parse([]jobspecs.Source{{Name: "a.hcl", Text: []byte(text)}}, in, Options{})
	if f == nil {
		t.Fatal(reportOf(ds))
	}
	spec := f.Specs[0]
	pod, err := Render(&spec.Set, spec.Template, envOf(0))
	if want := []string{"l", "p", "t", "2", "5", "web-0"}; err != nil || !reflect.DeepEqual(pod.Containers[0].Args, want) {
		t.Errorf("args %v, %v; want %v", pod.Containers[0].Args, err, want)
	}
	in.Vars["count"] = []byte(`"x"`)
	if _, ds := Parse([]jobspecs.Source{{Name: "a.hcl", Text: []byte(text)}}, in, Options{}); !HasErrors(ds) || ds[0].Summary != `the value of variable "count" does not fit` {
		t.Errorf("found %v", ds)
	}
}
