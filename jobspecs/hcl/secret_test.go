package hcl

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	hcl2 "github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/stsd/stsd/jobspecs"
)

const (
	passphrase = "correct-horse"
	cookie     = "battery-staple-0123456789abcdef0"
)

// hiding is a spec with a sensitive variable and a secret, around the lines of a
// container.
func hiding(container string) string {
	return `
variable "password" {
  type      = string
  sensitive = true
}
variable "login" {
  type      = object({ user = string, password = string })
  sensitive = true
  default   = { user = "root-user", password = "correct-horse" }
}
secret "cookie" {}
locals {
  url  = "redis://:${var.password}@web"
  both = "${secret.cookie}/${var.password}"
}
statefulset "web" {
  volume "data" {}
  container "web" {
    image = "web:1"
    mount "data" { path = "/data" }
` + container + `
  }
}`
}

func hidingInputs() jobspecs.Inputs {
	return jobspecs.Inputs{
		Vars:    map[string]json.RawMessage{"password": json.RawMessage(`"` + passphrase + `"`)},
		Secrets: map[string]string{"default/cookie": cookie},
	}
}

func read(t *testing.T, text string, in jobspecs.Inputs) (*File, []jobspecs.Diagnostic) {
	t.Helper()
	return Parse([]jobspecs.Source{{Name: "web.hcl", Text: []byte(text)}}, in, Options{})
}

func rendered(t *testing.T, f *File) jobspecs.PodSpec {
	t.Helper()
	spec := &f.Specs[0]
	pod, err := Render(&spec.Set, spec.Template, sampleOf(&spec.Set, 0, nil))
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

func TestSensitiveValuesStayHiddenWhereTheyMayStand(t *testing.T) {
	file := `file "/etc/web.conf" { content = `
	for name, tc := range map[string]struct {
		lines string
		warns string
		want  func(*jobspecs.PodSpec) any
		value any
	}{
		"a variable in a file": {
			file + `var.password }`, "",
			func(p *jobspecs.PodSpec) any { return string(p.Containers[0].Files[0].Content) }, passphrase,
		},
		"a template around it": {
			file + `"password=${var.password}\n" }`, "",
			func(p *jobspecs.PodSpec) any { return string(p.Containers[0].Files[0].Content) }, "password=" + passphrase + "\n",
		},
		"a local made of it": {
			file + `local.url }`, "",
			func(p *jobspecs.PodSpec) any { return string(p.Containers[0].Files[0].Content) }, "redis://:" + passphrase + "@web",
		},
		"a local made of a secret": {
			file + `local.both }`, "",
			func(p *jobspecs.PodSpec) any { return string(p.Containers[0].Files[0].Content) }, cookie + "/" + passphrase,
		},
		"with the member's name": {
			file + `"${self.name}:${secret.cookie}:${var.password}" }`, "",
			func(p *jobspecs.PodSpec) any { return string(p.Containers[0].Files[0].Content) }, "web-0:" + cookie + ":" + passphrase,
		},
		"what functions make of it": {
			file + `jsonencode({ p = upper(var.password), h = base64encode(secret.cookie) }) }`, "",
			func(p *jobspecs.PodSpec) any {
				return strings.Contains(string(p.Containers[0].Files[0].Content), "CORRECT-HORSE")
			}, true,
		},
		"a directive of a template": {
			file + `"%{ if var.password != "" }x=${var.password}%{ endif }" }`, "",
			func(p *jobspecs.PodSpec) any { return string(p.Containers[0].Files[0].Content) }, "x=" + passphrase,
		},
		"an attribute of an object": {
			file + `var.login.password }`, "",
			func(p *jobspecs.PodSpec) any { return string(p.Containers[0].Files[0].Content) }, passphrase,
		},
		"env": {
			`env = { PLAIN = "plain", PASSWORD = var.password }`, "docker inspect shows it",
			func(p *jobspecs.PodSpec) any { return p.Containers[0].Env }, map[string]string{"PLAIN": "plain", "PASSWORD": passphrase},
		},
		"env with the member's name": {
			`env = { NAME = self.name, PASSWORD = var.password, COOKIE = "${self.name}${secret.cookie}" }`, "docker inspect shows it",
			func(p *jobspecs.PodSpec) any { return p.Containers[0].Env["COOKIE"] }, "web-0" + cookie,
		},
		"a whole map": {
			`env = merge({ A = "a" }, { B = var.password })`, "docker inspect shows it",
			func(p *jobspecs.PodSpec) any { return p.Containers[0].Env }, map[string]string{"A": "a", "B": passphrase},
		},
		"args": {
			`args = ["serve", "--password", var.password]`, "docker inspect shows it",
			func(p *jobspecs.PodSpec) any { return p.Containers[0].Args }, []string{"serve", "--password", passphrase},
		},
		"command": {
			`command = ["serve", secret.cookie]`, "docker inspect shows it",
			func(p *jobspecs.PodSpec) any { return p.Containers[0].Command }, []string{"serve", cookie},
		},
		"the command of a probe": {
			`probe "readiness" {
			   exec { command = ["ping", "-a", var.password] }
			 }`, "docker events",
			func(p *jobspecs.PodSpec) any { return p.Containers[0].Readiness.Exec }, []string{"ping", "-a", passphrase},
		},
		"the headers of a probe": {
			`probe "readiness" {
			   http {
			     port    = 80
			     headers = { Authorization = "Bearer ${secret.cookie}" }
			   }
			 }`, "members' network",
			func(p *jobspecs.PodSpec) any { return p.Containers[0].Readiness.HTTP.Headers }, map[string]string{"Authorization": "Bearer " + cookie},
		},
		"registry_auth": {
			"registry_auth {\n username = \"ci\"\n password = var.password\n}", "",
			func(p *jobspecs.PodSpec) any { return p.Containers[0].Auth }, &jobspecs.RegistryAuth{Username: "ci", Password: passphrase},
		},
		"the command of a lifecycle hook": {
			"lifecycle {\n pre_stop {\n exec {\n command = [\"bye\", secret.cookie]\n }\n }\n}", "docker events",
			func(p *jobspecs.PodSpec) any { return p.Containers[0].PreStop.Exec }, []string{"bye", cookie},
		},
		"the options of a log driver": {
			`log {
			   driver  = "splunk"
			   options = { splunk-token = var.password }
			 }`, "docker inspect shows it",
			func(p *jobspecs.PodSpec) any { return p.Containers[0].Log.Options }, map[string]string{"splunk-token": passphrase},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, found := read(t, hiding(tc.lines), hidingInputs())
			if f == nil {
				t.Fatal(reportOf(found))
			}
			pod := rendered(t, f)
			if got := tc.want(&pod); !reflect.DeepEqual(got, tc.value) {
				t.Errorf("rendered = %v, want %v", got, tc.value)
			}
			for _, file := range pod.Containers[0].Files {
				if !file.Sensitive {
					t.Errorf("file %s is not sensitive", file.Path)
				}
			}
			if said := reportOf(withoutUnused(found)); tc.warns == "" && said != "" || !strings.Contains(said, tc.warns) {
				t.Errorf("found %q, want %q", said, tc.warns)
			}
			spec := &f.Specs[0]
			if !Sensitive(spec.Template) {
				t.Errorf("the template does not tell that it holds something sensitive: %s", spec.Template)
			}
			shown := []string{reportOf(found), string(Redacted(spec.Template, []byte("k")))}
			for _, c := range Diff(nil, spec.Template) {
				shown = append(shown, c.Path+c.Before+c.After)
			}
			silent(t, strings.Join(shown, "\n"))
		})
	}
}

// withoutUnused leaves the warning about the secret out that the table's other
// cases do not use.
func withoutUnused(found []jobspecs.Diagnostic) []jobspecs.Diagnostic {
	return slices.DeleteFunc(slices.Clone(found), func(d jobspecs.Diagnostic) bool { return strings.Contains(d.Summary, "is used nowhere") })
}

// silent wants none of the values in a text.
func silent(t *testing.T, text string) {
	t.Helper()
	for _, s := range []string{passphrase, strings.ToUpper(passphrase), cookie, "root-user"} {
		if strings.Contains(text, s) {
			t.Errorf("%q is shown in:\n%s", s, text)
		}
	}
}

func TestSensitiveValuesAreRefusedWhereTheyAreShown(t *testing.T) {
	for _, lines := range []string{
		`image = var.password`, `user = var.password`, `working_dir = "/${var.password}"`,
		`port "http" { container = var.password }`,
		`stop_signal = secret.cookie`,
		`probe "readiness" {
		   http {
		     port = 80
		     path = "/${var.password}"
		   }
		 }`,
		`file "/x" {
		   content = "x"
		   owner   = var.password
		 }`,
		`resources { cpu = length(secret.cookie) }`,
		`mount "data" { path = "/x/${self.name}/${secret.cookie}" }`,
	} {
		text := hiding(lines)
		if strings.HasPrefix(lines, "image") {
			text = strings.Replace(text, `image = "web:1"`, "", 1)
		}
		f, found := read(t, text, hidingInputs())
		if said := reportOf(found); f != nil || !strings.Contains(said, "a sensitive value is shown here") {
			t.Errorf("%s: found %q", lines, said)
		}
		silent(t, reportOf(found))
	}
	for _, set := range []string{`replicas = var.count`, `labels = { a = var.count }`, `service = "web${var.count}"`, `extra_hosts = { a = var.count }`} {
		f, found := read(t, "variable \"count\" {\n sensitive = true\n default = 3\n}\nstatefulset \"web\" {\n"+set+"\ncontainer \"web\" { image = \"web:1\" }\n}", jobspecs.Inputs{})
		if said := reportOf(found); f != nil || !strings.Contains(said, "a sensitive value is shown here") {
			t.Errorf("%s: found %q", set, said)
		}
	}
}

func TestFindingsDoNotQuoteSensitiveValues(t *testing.T) {
	bad := func(lines string) string { return hiding(lines) }
	for name, text := range map[string]string{
		"a function that quotes its argument": bad(`args = [cidrhost(var.password, 1)]`),
		"the same with the member":            bad(`args = [cidrhost("${self.name}${var.password}", 1)]`),
		"the same of a secret":                bad(`args = [cidrhost(secret.cookie, 1)]`),
		"a number that is none":               bad(`args = [tonumber(var.password)]`),
		"a number in a base":                  bad(`args = [parseint(var.password, 10)]`),
		"a key that is not there":             bad(`args = [{ a = 1 }[var.password]]`),
		"a map where a text stands":           bad(`args = [var.login]`),
		"a path of a file":                    bad(`args = [file(var.password)]`),
		"a path with the member":              bad(`args = ["${self.name}${file(var.password)}"]`),
		"a local":                             strings.Replace(bad(""), "locals {", "locals {\n bad = cidrhost(var.password, 1)", 1),
		"a template":                          bad(`args = [templatefile("x", { p = jsondecode(var.password) })]`),
		"a condition": strings.Replace(bad(""), "sensitive = true\n}\nvariable \"login\"", `sensitive = true
  validation {
    condition     = var.password == "other"
    error_message = "not ${var.password}"
  }
}
variable "login"`, 1),
		"a default of the wrong type":        strings.Replace(bad(""), "object({ user = string, password = string })", "number", 1),
		"a default that cannot be evaluated": strings.Replace(bad(""), `password = "correct-horse" }`, `password = jsondecode("correct-horse") }`, 1),
		"a sensitive file":                   bad("file \"/x\" {\n sensitive = true\n content = \"correct-horse ${var.none}\"\n}"),
	} {
		f, found := read(t, text, hidingInputs())
		if f != nil {
			t.Errorf("%s: no error found", name)
		}
		silent(t, name+": "+reportOf(found))
	}
}

func TestAFileThatSaysItIsSensitiveIsOne(t *testing.T) {
	in := hidingInputs()
	in.Files = map[string][]byte{"tls.key": []byte("correct-horse key")}
	for _, content := range []string{`"correct-horse"`, `"${self.name} correct-horse"`, `"${self.name} ${file("tls.key")}"`} {
		f, found := read(t, hiding("file \"/x\" {\n sensitive = true\n content = "+content+"\n}"), in)
		if f == nil {
			t.Fatal(reportOf(found))
		}
		pod := rendered(t, f)
		if x := pod.Containers[0].Files[0]; !x.Sensitive || !strings.Contains(string(x.Content), passphrase) {
			t.Errorf("%s: file = %+v", content, x)
		}
		silent(t, string(Redacted(f.Specs[0].Template, nil)))
		for _, c := range Diff(nil, f.Specs[0].Template) {
			silent(t, c.Path+" "+c.After)
		}
	}
	f, found := read(t, hiding("file \"/x\" {\n sensitive = false\n content = var.password\n}"), in)
	if said := reportOf(found); f != nil || !strings.Contains(said, "the content of this file is sensitive") {
		t.Errorf("found %q", said)
	}
	plain, _ := read(t, hiding("file \"/x\" {\n sensitive = false\n content = \"x\"\n}"), in)
	if same, _ := read(t, hiding("file \"/x\" {\n content = \"x\"\n}"), in); !plain.Specs[0].Template.Equal(same.Specs[0].Template) {
		t.Error("sensitive = false is not the same as nothing")
	}
}

func TestEveryFunctionHandsTheMarkOn(t *testing.T) {
	marked := cty.StringVal("abc").Mark(sensitive)
	all := maps.Clone(functions(storedFiles{}, nil, newMeter(memberWork)))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		f := all[name]
		if name == "can" || name == "try" || readsFiles[name] || name == "env" || len(f.Params()) > 1 || len(f.Params()) == 0 && f.VarParam() == nil {
			continue
		}
		for _, v := range []cty.Value{marked, cty.ListVal([]cty.Value{marked}), cty.ObjectVal(map[string]cty.Value{"a": marked}), cty.NumberIntVal(5).Mark(sensitive)} {
			out, err := f.Call([]cty.Value{v})
			if name == "length" || name == "keys" || name == "tolist" && !v.IsMarked() || name == "tomap" && !v.IsMarked() || err != nil {
				continue // the marks of elements stay with them
			}
			if !out.ContainsMarked() {
				t.Errorf("%s(%#v) = %#v, which is not marked", name, v, out)
			}
		}
	}
	ds := []string{`format("%s", x)`, `join(",", [x])`, `merge({ a = x }, {})`, `replace(x, "a", "b")`, `coalesce(x, "b")`, `concat([x], ["b"])`,
		`lookup({ a = x }, "a", "b")`, `try(x, "b")`, `element([x], 0)`, `substr(x, 0, 1)`, `indent(2, x)`, `flatten([[x]])`, `zipmap(["a"], [x])`,
		`[for i in [x] : upper(i)]`, `{ for k, v in { a = x } : k => v }`, `x == "" ? "a" : "b"`, `"%{ for i in [x] }${i}%{ endfor }"`, `[x][*]`, `trimsuffix(x, "c")`,
		`yamlencode({ a = [x] })`, `split("b", x)`, `regexreplace(x, "a", "b")`, `cidrhost("10.0.0.0/8", strlen(x))`, `formatlist("%s", [x])`}
	for _, text := range ds {
		v, err := tried(text, map[string]cty.Value{"x": marked})
		if err != nil || !v.ContainsMarked() {
			t.Errorf("%s = %#v, %v", text, v, err)
		}
	}
}

func TestASecretIsOneForEachNamespace(t *testing.T) {
	text := `
secret "cookie" { length = 16 }
locals { line = "cookie=${secret.cookie}" }
statefulset "a" {
  namespace = "one"
  container "a" {
    image = "a:1"
    file "/c" { content = local.line }
  }
}
statefulset "b" {
  namespace = "two"
  container "b" {
    image = "b:1"
    file "/c" { content = "${local.line} ${self.name}" }
  }
}`
	in := jobspecs.Inputs{Secrets: map[string]string{"one/cookie": "value-of-one", "two/cookie": "value-of-two"}}
	f, found := read(t, text, in)
	if f == nil || len(found) > 0 {
		t.Fatal(reportOf(found))
	}
	if want := []Secret{{"cookie", FormatHex, 16}}; !reflect.DeepEqual(f.Secrets, want) {
		t.Errorf("secrets = %v, want %v", f.Secrets, want)
	}
	var got []string
	for i := range f.Specs {
		spec := &f.Specs[i]
		pod, err := Render(&spec.Set, spec.Template, sampleOf(&spec.Set, 0, nil))
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(pod.Containers[0].Files[0].Content))
	}
	if want := []string{"cookie=value-of-one", "cookie=value-of-two b-0"}; !reflect.DeepEqual(got, want) {
		t.Errorf("contents = %q, want %q", got, want)
	}
	if !reflect.DeepEqual(f.Inputs.Secrets, in.Secrets) {
		t.Errorf("inputs = %v, want those that were read", f.Inputs.Secrets)
	}
	if names := SecretNames(&f.Specs[0].Set, f.Specs[0].Template); !reflect.DeepEqual(names, []string{"cookie"}) {
		t.Errorf("it reads %v", names)
	}
	again := in
	again.Secrets = map[string]string{"one/cookie": "another-value", "two/cookie": "value-of-two"}
	other, _ := read(t, text, again)
	if f.Specs[0].Template.Equal(other.Specs[0].Template) || !f.Specs[1].Template.Equal(other.Specs[1].Template) {
		t.Error("a new value is a new template of that namespace's set alone")
	}
	if diff := Diff(f.Specs[0].Template, other.Specs[0].Template); !reflect.DeepEqual(diff, []jobspecs.Change{{Path: "secret.cookie", Before: hidden, After: hiddenOther}}) {
		t.Errorf("diff = %+v", diff)
	}
	a, b := Redacted(f.Specs[0].Template, []byte("k")), Redacted(other.Specs[0].Template, []byte("k"))
	if diff := Diff(a, b); len(diff) != 1 || diff[0].After != hiddenOther {
		t.Errorf("diff of what may be shown = %+v", diff)
	}
}

func TestSecretsThatAreWrong(t *testing.T) {
	for lines, want := range map[string]string{
		`secret "a" { length = 4 }`:                              "4 is not a whole number from 8 to 1024",
		`secret "a" { format = "octal" }`:                        `"octal" is none of "hex", "base64url", "uuid"`,
		"secret \"a\" {\n format = \"uuid\"\n length = 9\n}":     "a uuid has a length of its own",
		"secret \"a\" {}\nsecret \"a\" {}":                       `secret "a" is declared twice`,
		`secret {}`:                                              "secret needs a label",
		`secret "a" { size = 3 }`:                                `the secret block has no attribute "size"`,
		"secret \"a\" {}\nvariable \"v\" { default = secret.a }": "may use no names",
		"secret \"a\" {}\nlocals { v = secret.b }":               `there is no secret "b"`,
		"secret \"a\" {}\nlocals { v = secret.a.b }":             "secret.a is a string",
	} {
		f, found := Parse([]jobspecs.Source{{Name: "web.hcl", Text: []byte(lines + "\nstatefulset \"web\" {\n container \"web\" { image = \"web:1\" }\n}")}}, jobspecs.Inputs{}, Options{AllowMissing: true})
		if said := reportOf(found); f != nil || !strings.Contains(said, want) {
			t.Errorf("%s: found %q, want %q", lines, said, want)
		}
	}
	f, found := read(t, hiding(`args = [secret.cookie]`), jobspecs.Inputs{Vars: hidingInputs().Vars})
	if said := reportOf(found); f != nil || !strings.Contains(said, `secret "cookie" has no value in namespace default`) {
		t.Errorf("found %q", said)
	}
}

func TestHashesOfSensitiveTemplatesNeedTheKey(t *testing.T) {
	f, _ := read(t, hiding(`args = [var.password]`), hidingInputs())
	sensitiveT := f.Specs[0].Template
	if Hash(sensitiveT, "", []byte("one")) == Hash(sensitiveT, "", []byte("two")) {
		t.Error("the hash of a sensitive template does not depend on the key")
	}
	plain := jobspecs.Template(`{"a":1}`)
	if Hash(plain, "", []byte("one")) != Hash(plain, "", nil) {
		t.Error("the hash of a template without anything sensitive depends on the key")
	}
}

func TestWhatIsShownOfASource(t *testing.T) {
	text := hiding("file \"/a\" {\n sensitive = true\n content = <<-EOT\n correct-horse\n EOT\n}\nfile \"/b\" { content = \"b\" }")
	in := hidingInputs()
	in.Env, in.Files = map[string]string{"PASSWORD": passphrase}, map[string][]byte{"key": []byte(passphrase)}
	sources, inputs := RedactedScope([]jobspecs.Source{{Name: "web.hcl", Text: []byte(text)}}, in)
	shown, err := json.Marshal([]any{sources, inputs})
	if err != nil {
		t.Fatal(err)
	}
	silent(t, string(sources[0].Text)+string(shown))
	for _, part := range []string{`default   = "(sensitive)"`, "content = \"(sensitive)\"\n}\nfile \"/b\"", `content = "b"`, `args`} {
		if part != "args" && !strings.Contains(string(sources[0].Text), part) {
			t.Errorf("%q is missing in:\n%s", part, sources[0].Text)
		}
	}
	if _, ds := Format("web.hcl", sources[0].Text); len(ds) > 0 {
		t.Errorf("what is shown is no spec any more: %v", ds)
	}
	plain := []jobspecs.Source{{Name: "web.hcl", Text: []byte("statefulset \"web\" {}\n")}}
	same, sameIn := RedactedScope(plain, jobspecs.Inputs{Env: map[string]string{"A": "b"}})
	if !reflect.DeepEqual(same, plain) || sameIn.Env["A"] != "b" {
		t.Errorf("without anything sensitive = %v, %v", same, sameIn)
	}
}

func TestScrubTakesOutWhatASpecHides(t *testing.T) {
	f, _ := read(t, hiding(`args = ["${self.name}${secret.cookie}", "x${var.password}y"]`), hidingInputs())
	texts := SensitiveTexts(&f.Specs[0].Set, f.Specs[0].Template)
	got := Scrub("exec x"+passphrase+"y: "+cookie+" not found", texts)
	if want := "exec (sensitive): (sensitive) not found"; got != want {
		t.Errorf("scrubbed = %q, want %q", got, want)
	}
}

// tried evaluates a text.
func tried(text string, variables map[string]cty.Value) (cty.Value, error) {
	e, ds := hclsyntax.ParseExpression([]byte(text), "", hcl2.InitialPos)
	if ds.HasErrors() {
		return cty.NilVal, ds
	}
	v, ds := e.Value(&hcl2.EvalContext{Variables: variables, Functions: pure})
	if ds.HasErrors() {
		return cty.NilVal, ds
	}
	return v, nil
}

func TestSensitiveValuesInOtherContainersAndVolumes(t *testing.T) {
	text := strings.Replace(hiding(`args = [var.password]`), `volume "data" {}`, `volume "data" {
    options = {
      o      = "password=${var.password}"
      device = "/mnt/${self.ordinal}/${secret.cookie}"
      type   = "cifs"
    }
  }
  init "prepare" {
    image = "web:1"
    env   = { COOKIE = secret.cookie }
    file "/x" { content = var.password }
  }`, 1)
	f, found := read(t, text, hidingInputs())
	if f == nil {
		t.Fatal(reportOf(found))
	}
	silent(t, reportOf(found))
	if said := reportOf(found); !strings.Contains(said, "docker volume inspect shows it") {
		t.Errorf("found %s", said)
	}
	pod := rendered(t, f)
	want := map[string]string{"o": "password=" + passphrase, "device": "/mnt/0/" + cookie, "type": "cifs"}
	if got := pod.Volumes[0].Options; !reflect.DeepEqual(got, want) {
		t.Errorf("options = %v, want %v", got, want)
	}
	first := pod.Containers[0]
	if first.Name != "prepare" || first.Env["COOKIE"] != cookie || !first.Files[0].Sensitive || string(first.Files[0].Content) != passphrase {
		t.Errorf("the init container = %+v", first)
	}
	set := &f.Specs[0].Set
	if !SensitiveSet(set) || !slices.Contains(SensitiveTexts(set, nil), cookie) || !slices.Contains(SecretNames(set, nil), "cookie") {
		t.Error("the set does not tell that its claims hold something sensitive")
	}
	for _, c := range DiffSets(nil, set) {
		silent(t, c.Path+" "+c.After)
	}
}

func TestAValueThatIsNotKnownYetIsHeldAgainstItsPlace(t *testing.T) {
	for lines, want := range map[string]string{
		`user = var.password`:                   "a sensitive value is shown here",
		`env = { A = var.password }`:            "docker inspect shows it",
		`file "/x" { content = var.password }`:  "",
		`user = "${secret.cookie}${self.name}"`: "a sensitive value is shown here",
	} {
		_, found := Parse([]jobspecs.Source{{Name: "web.hcl", Text: []byte(hiding(lines))}}, jobspecs.Inputs{}, Options{AllowMissing: true})
		if said := reportOf(withoutUnused(found)); want == "" && said != "" || !strings.Contains(said, want) {
			t.Errorf("%s: found %q, want %q", lines, said, want)
		}
	}
}

func TestAnotherSensitiveValueIsADifference(t *testing.T) {
	for lines, want := range map[string][]jobspecs.Change{
		`args = ["-p", var.password]`:                  {{Path: "container.web.args", Before: `["-p", (sensitive)]`, After: `["-p", (sensitive, another value)]`}},
		`args = ["-p", "${self.name}${var.password}"]`: {{Path: "var.password", Before: hidden, After: hiddenOther}},
		`env = { A = "a", P = var.password }`:          {{Path: "container.web.env.P", Before: hidden, After: hiddenOther}},
		`env = { A = "a" }`:                            nil,
	} {
		before, _ := read(t, hiding(lines), hidingInputs())
		in := hidingInputs()
		in.Vars["password"] = json.RawMessage(`"another-password"`)
		after, _ := read(t, hiding(lines), in)
		for _, key := range [][]byte{nil, []byte("k")} {
			a, b := before.Specs[0].Template, after.Specs[0].Template
			if key != nil { // as the API shows them
				a, b = Redacted(a, key), Redacted(b, key)
			}
			if got := Diff(a, b); !reflect.DeepEqual(got, want) {
				t.Errorf("%s: diff = %+v, want %+v", lines, got, want)
			}
		}
	}
}

func TestASourceThatIsCutAnywhereShowsNothing(t *testing.T) {
	text := hiding("file \"/a\" {\n sensitive = true\n content = <<-EOT\n correct-horse\n EOT\n}")
	for i := range text {
		for _, cut := range []string{text[:i], strings.ReplaceAll(text[:i], "\n", "\r\n"), "\xef\xbb\xbf" + text[:i]} {
			sources, _ := RedactedScope([]jobspecs.Source{{Name: "web.hcl", Text: []byte(cut)}}, jobspecs.Inputs{})
			if strings.Contains(string(sources[0].Text), passphrase) {
				t.Fatalf("cut at %d:\n%s", i, sources[0].Text)
			}
		}
	}
}
