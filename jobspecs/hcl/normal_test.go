package hcl

import (
	"encoding/json"
	"strings"
	"testing"

	hcl2 "github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/stsd/stsd/jobspecs"
)

func raw(values map[string]string) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for name, v := range values {
		out[name] = json.RawMessage(v)
	}
	return out
}

func template(t *testing.T, text string) jobspecs.Template {
	t.Helper()
	return good(t, text).Specs[0].Template
}

func TestTheNormalFormHoldsWhatWasWritten(t *testing.T) {
	got := string(template(t, `
		variable "base" {
			default = 6000
		}
		variable "tags" {
			default = ["a"]
		}
		locals {
			where = "/data"
		}
		statefulset "web" {
			namespace         = "shop"
			replicas          = 3
			termination_grace = "60s"
			locals {
				me = "${self.name}.${local.where}"
			}
			volume "data" {
				options = { disk = self.ordinal }
			}
			container "web" {
				image = "x"
				args  = [local.where, local.me, join(",", var.tags), "${join(",", var.tags)}${self.ip}"]
				env   = { B = 1, A = self.name, C = null }
				port "http" {
					container = 80
					host      = var.base + self.ordinal
				}
				mount "data" {
					path = local.where
				}
				file "/etc//x" {
					content = <<-EOT
						me: ${local.me}
					EOT
					mode = "644"
				}
				restart {
				}
			}
		}`))
	want := strings.NewReplacer("\n", "", "\t", "").Replace(`{
		"container":{"web":{
			"args":["/data",{"$expr":"\"${self.name}.${\"/data\"}\""},"a",{"$expr":"\"${join(\",\", var.tags)}${self.ip}\""}],
			"env":{"A":{"$expr":"self.name"},"B":"1"},
			"file":{"/etc/x":{"content":{"$expr":"\"me: ${\"${self.name}.${\"/data\"}\"}\\n\""},"mode":"0644"}},
			"image":"x",
			"mount":{"data":[{"path":"/data"}]},
			"port":{"http":{"container":80,"host":{"$expr":"var.base + self.ordinal"}}}
		}},
		"termination_grace":"1m",
		"var":{"base":6000,"tags":{"type":["tuple",["string"]],"value":["a"]}},
		"volume":["data"]
	}`)
	if got != want {
		t.Errorf("template\n%s\nwant\n%s", got, want)
	}
}

func TestWhatMakesNoRevision(t *testing.T) {
	for _, c := range []struct{ rule, a, b string }{
		{"spaces and comments", "args = [self.name,1]", "# why\nargs = [\n  self.name, # who\n  1,\n]"},
		{"quotes", "args = [\"a\"]\nuser = \"${self.name}\"", "args = [<<EOT\na\nEOT\n == \"a\\n\" ? \"a\" : \"b\"]\nuser = self.name"},
		{"a heredoc for a string", "user = \"${self.name}\\nx\\n\"", "user = <<-EOT\n  ${self.name}\n  x\n  EOT"},
		{"parentheses", "user = self.ordinal == 0 ? \"a\" : \"b\"", "user = ((self.ordinal) == (0)) ? \"a\" : (\"b\")"},
		{"a name in quotes", "user = join(\",\", values({ a = self.name }))", "user = join(\",\", values({ \"a\" : self[\"name\"] }))"},
		{"the order of env", "env = { A = 1, B = self.name }", "env = { B = self.name, A = 1 }"},
		{"the order of blocks", "port \"a\" {\ncontainer = 1\n}\nport \"b\" {\ncontainer = 2\n}", "port \"b\" {\ncontainer = 2\n}\nport \"a\" {\ncontainer = 1\n}"},
		{"a number for a string", "env = { A = 1 }\nstop_signal = 15", "env = { A = \"1\" }\nstop_signal = \"15\""},
		{"a number in another shape", "env = { A = 1 }\nresources {\ncpu = 0.50\n}", "env = { A = 1.0 }\nresources {\ncpu = \"0.5\"\n}"},
		{"a duration in other units", "restart {\nmax = \"60s\"\n}", "restart {\nmax = \"1m\"\n}"},
		{"a size in other units", "resources {\nmemory = \"1GiB\"\n}", "resources {\nmemory = 1073741824\n}"},
		{"a constant by another way", "user = \"a-b\"", "user = join(\"-\", [\"a\", \"b\"])"},
		{"null", "", "user = null\nargs = null"},
		{"an empty map or block", "", "env = {}\nrestart {\n}\nresources {\n}"},
		{"a path with a slash too many", "working_dir = \"/a/b\"", "working_dir = \"/a//b/\""},
	} {
		if a, b := template(t, web(c.a)), template(t, web(c.b)); !a.Equal(b) {
			t.Errorf("%s:\n%s\n%s", c.rule, a, b)
		}
	}
}

func TestWhatMakesNoRevisionOutsideOfTheContainer(t *testing.T) {
	plain := template(t, web(""))
	for rule, text := range map[string]string{
		"replicas":       strings.Replace(web(""), "3", "5", 1),
		"start_ordinal":  strings.Replace(web(""), "replicas", "start_ordinal = 5\nreplicas", 1),
		"pod_management": strings.Replace(web(""), "replicas", "pod_management = \"parallel\"\nreplicas", 1),
		"recovery_wait":  strings.Replace(web(""), "replicas", "recovery_wait = \"5s\"\nreplicas", 1),
		"history":        strings.Replace(web(""), "replicas", "revision_history_limit = 5\nreplicas", 1),
		"update":         strings.Replace(web(""), "replicas", "update {\npartition = 1\n}\nreplicas", 1),
		"dns":            strings.Replace(web(""), "replicas", "dns {\nttl = \"1s\"\n}\nreplicas", 1),
		"host_access":    host("loopback", ""),
		"locals":         "locals {\nx = 1\n}\n" + web(""),
	} {
		if got := template(t, text); !got.Equal(plain) {
			t.Errorf("%s: %s", rule, got)
		}
	}
	claim := func(lines string) string {
		return pod("volume \"data\" {\n" + lines + "\n}\ncontainer \"web\" {\nimage = \"x\"\nmount \"data\" {\npath = \"/data\"\n}\n}")
	}
	if a, b := template(t, claim("")), template(t, claim("size = \"1GiB\"\noptions = { a = self.name }\non_delete = \"delete\"")); !a.Equal(b) {
		t.Errorf("a volume's size, options and retention:\n%s\n%s", a, b)
	}
}

func TestWhatMakesARevision(t *testing.T) {
	plain := template(t, web(""))
	for rule, text := range map[string]string{
		"image":             strings.Replace(web(""), `"x"`, `"y"`, 1),
		"the order of args": web("args = [\"a\", self.name]"),
		"an empty command":  web("command = []"),
		"a written default": web("pull = \"missing\""),
		"service":           strings.Replace(web(""), "replicas", "service = \"web\"\nreplicas", 1),
		"termination_grace": strings.Replace(web(""), "replicas", "termination_grace = \"5s\"\nreplicas", 1),
		"labels":            strings.Replace(web(""), "replicas", "labels = { a = 1 }\nreplicas", 1),
		"a volume":          strings.Replace(web(""), "replicas", "volume \"a\" {\n}\nreplicas", 1),
	} {
		if got := template(t, text); got.Equal(plain) {
			t.Errorf("%s: %s", rule, got)
		}
	}
	a := template(t, "variable \"a\" {\ndefault = 1\n}\n"+web("user = var.a + self.ordinal"))
	b := template(t, "variable \"a\" {\ndefault = 2\n}\n"+web("user = var.a + self.ordinal"))
	if a.Equal(b) {
		t.Errorf("a variable's value: %s", a)
	}
}

func TestATemplateSurvivesBeingStored(t *testing.T) {
	before := template(t, web("user = self.ordinal < 2 && self.fresh ? \"<&>\\u2028é\" : self.name"))
	b, err := json.Marshal(struct{ T jobspecs.Template }{before})
	if err != nil {
		t.Fatal(err)
	}
	var after struct{ T jobspecs.Template }
	if err := json.Unmarshal(b, &after); err != nil {
		t.Fatal(err)
	}
	if !before.Equal(after.T) {
		t.Errorf("stored\n%s\nread\n%s", before, after.T)
	}
}

func TestExpressionsArePrintedSoThatTheyMeanTheSame(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`a.b["c"][0].d`, `a.b.c[0].d`},
		{`a["x y"]`, `a["x y"]`},
		{`a[b]`, `a[b]`},
		{`(a[*]).b`, `(a[*]).b`},
		{`a[*].b[0]`, `a[*].b[0]`},
		{`a.*.b[0]`, `(a[*].b)[0]`},
		{`a[*]["b"][c]`, `a[*].b[c]`},
		{`1+2*3`, `1 + (2 * 3)`},
		{`(1+2)*3`, `(1 + 2) * 3`},
		{`-a`, `-a`},
		{`- -1`, `-(-1)`},
		{`!(a||b)&&c`, `(!(a || b)) && c`},
		{`a ? b : c ? d : e`, `a ? b : (c ? d : e)`},
		{`[for x in a:x]`, `[for x in a : x]`},
		{`{for k,v in a:k=>v... if v!=""}`, `{for k, v in a : k => v... if v != ""}`},
		{`{b=1,"a"=2,(c)=3}`, `{"b" = 1, "a" = 2, (c) = 3}`},
		{`{b=1,"a":2}`, `{"a" = 2, "b" = 1}`},
		{`f(a,b...)`, `f(a, b...)`},
		{`"x${a}y"`, `"x${a}y"`},
		{`"${a}"`, `a`},
		{`"$${a} $$ %%{b} $5 %"`, `"$${a} \u0024$ %%{b} $5 %"`},
		{`"$$$${a}"`, `"\u0024\u0024\u0024{a}"`},
		{`"\\ \" \n \t é \u0001"`, `"\\ \" \n \t é \u0001"`},
		{`"%{ if a }x%{ else }y%{ endif }"`, `a ? "x" : "y"`},
		{`"%{ for x in a }${x},%{ endfor }"`, `join("", [for x in a : "${x},"])`},
		{"<<EOT\na ${b}\nEOT\n", `"a ${b}\n"`},
		{`sort(a)`, `sort(a)`},
		{`a ? sort(b ? c : d) : [for x in e : x ? y : z]`, `a ? sort(b ? c : d) : [for x in e : x ? y : z]`},
		{`null`, `null`},
		{`1.50`, `1.5`},
		{`1e3`, `1000`},
	} {
		got := printed(t, c.text)
		if got != c.want {
			t.Errorf("%s: printed %s, want %s", c.text, got, c.want)
		}
		if again := printed(t, got); again != got {
			t.Errorf("%s: printed %s, then %s", c.text, got, again)
		}
	}
}

func printed(t *testing.T, text string) string {
	t.Helper()
	e, ds := hclsyntax.ParseExpression([]byte(text), "", hcl2.InitialPos)
	if ds.HasErrors() {
		t.Fatalf("%s: %v", text, ds)
	}
	plain, paying := &printer{}, &printer{}
	plain.expr(e)
	instrument(e, newMeter(memberWork))
	paying.expr(e)
	if plain.out.String() != paying.out.String() {
		t.Errorf("%s: printed %s, and %s when it pays", text, plain.out.String(), paying.out.String())
	}
	return plain.out.String()
}
