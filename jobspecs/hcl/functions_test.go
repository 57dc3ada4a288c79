package hcl

import (
	"strings"
	"testing"

	"github.com/stsd/stsd/jobspecs"
)

func TestFunctions(t *testing.T) {
	files := disk(map[string]string{"a.txt": "A", "t.tmpl": "%{ for x in list }${upper(x)} %{ endfor }", "nested.tmpl": "${file(\"a.txt\")}"})
	for _, c := range []struct{ expr, want string }{
		{`length("é")`, "1"},
		{`length([1, 2])`, "2"},
		{`length({ a = 1 })`, "1"},
		{`floor(3 / 2)`, "1"},
		{`cidrhost("10.1.2.0/24", 5)`, "10.1.2.5"},
		{`cidrhost("10.1.2.0/24", -1)`, "10.1.2.255"},
		{`cidrhost("fd00::/64", 1)`, "fd00::1"},
		{`cidrnetmask("10.0.0.0/22")`, "255.255.252.0"},
		{`base64decode(base64encode("é"))`, "é"},
		{`sha256("a")`, "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"},
		{`startswith("ab", "a") && endswith("ab", "b")`, "true"},
		{`jsonencode({ b = 1, a = [true] })`, `{"a":[true],"b":1}`},
		{`yamlencode({ a = 1 })`, "\"a\": 1\n"},
		{`try(jsondecode("{"), "no")`, "no"},
		{`file("a.txt")`, "A"},
		{`fileexists("a.txt")`, "true"},
		{`fileexists("b.txt")`, "false"},
		{`templatefile("t.tmpl", { list = ["x", "y"] })`, "X Y "},
		{`file("b.txt")`, `error in function call: Call to function "file" failed: there is no file "b.txt" (paths are relative to the spec's file).`},
		{`cidrhost("10.0.0.0/30", 4)`, `invalid function argument: Invalid value for "host" parameter: 10.0.0.0/30 has no such host.`},
		{`jsondecode("` + strings.Repeat("[", 500000) + `")`, `invalid function argument: Invalid value for "str" parameter: this is nested more than 100 deep.`},
		{`yamldecode("` + strings.Repeat("{a: ", 100000) + `")`, `invalid function argument: Invalid value for "src" parameter: this is nested more than 100 deep.`},
		{`format("%999999999d", 1)`, `invalid function argument: Invalid value for "format" parameter: a width above 9999 is not possible.`},
		{`format("%00012345d", 1)`, `invalid function argument: Invalid value for "format" parameter: a width above 9999 is not possible.`},
		{`length(format("%01000d", 1))`, "1000"},
		{`format("%s-%05.1f", "a", 2)`, "a-002.0"},
		{`indent(999999999, "a")`, `invalid function argument: Invalid value for "spaces" parameter: want 0 to 1000 spaces.`},
		{`indent(2, "a\nb")`, "a\n  b"},
		{`1/0`, "this takes a string, not an infinite number: "},
		{`flooor(1)`, `call to unknown function: There is no function named "flooor". Did you mean "floor"?`},
	} {
		f, ds := Parse([]jobspecs.Source{{Name: "a.hcl", Text: []byte(web("file \"/a\" {\ncontent = " + c.expr + "\n}"))}}, jobspecs.Inputs{}, Options{ReadFile: files})
		got := ""
		if f == nil {
			got = ds[0].Summary + ": " + ds[0].Detail
		} else if pod, err := Render(&f.Specs[0].Set, f.Specs[0].Template, envOf(0)); err == nil {
			got = string(pod.Containers[0].Files[0].Content)
		}
		if got != c.want {
			t.Errorf("%.80s = %q, want %q", c.expr, got, c.want)
		}
	}
}
