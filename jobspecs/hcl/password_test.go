package hcl

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/stsd/stsd/jobspecs"
)

// login is a set that asks its registry with a password.
func login(before, password string) string {
	return before + web("registry_auth {\nusername = \"ci\"\npassword = "+password+"\n}")
}

func TestAPasswordIsSensitiveWhateverItIsMadeOf(t *testing.T) {
	const clear = "password is written in the clear"
	files := Options{ReadFile: disk(map[string]string{"pw": "hunter2-one"})}
	for _, c := range []struct{ rule, before, password, value, warning string }{
		{"a text", "", `"hunter2-one"`, "hunter2-one", clear},
		{"a text put together", "", `join("-", ["hunter2", "one"])`, "hunter2-one", clear},
		{"a text with the member", "", `"hunter2-${self.name}"`, "hunter2-web-0", clear},
		{"a local", "locals {\n pw = \"hunter2-one\"\n}\n", "local.pw", "hunter2-one", clear},
		{"a local of a local", "locals {\n a = \"hunter2-one\"\n pw = local.a\n}\n", "local.pw", "hunter2-one", clear},
		{"a variable that is not sensitive", "variable \"pw\" {\n default = \"hunter2-one\"\n}\n", "var.pw", "hunter2-one", clear},
		{"such a variable with the member", "variable \"pw\" {\n default = \"hunter2\"\n}\n", `"${var.pw}-${self.name}"`, "hunter2-web-0", clear},
		{"a file with the member", "", `"${file("pw")}-${self.name}"`, "hunter2-one-web-0", clear},
		{"a sensitive variable", "variable \"pw\" {\n default = \"hunter2-one\"\n sensitive = true\n}\n", "var.pw", "hunter2-one", ""},
	} {
		text := login(c.before, c.password)
		sources := []jobspecs.Source{{Name: "a.hcl", Text: []byte(text)}}
		f, ds := Parse(sources, jobspecs.Inputs{}, files)
		if f == nil {
			t.Errorf("%s: %s", c.rule, reportOf(ds))
			continue
		}
		if (len(ds) == 1 && ds[0].Summary != c.warning) || (len(ds) > 0) != (c.warning != "") || len(ds) > 1 {
			t.Errorf("%s: found %q, want %q", c.rule, reportOf(ds), c.warning)
		}
		spec := f.Specs[0]
		pod, err := Render(&spec.Set, spec.Template, envOf(0))
		if want := (&jobspecs.RegistryAuth{Username: "ci", Password: c.value}); err != nil || !reflect.DeepEqual(pod.Containers[0].Auth, want) {
			t.Errorf("%s: rendered %+v, %v", c.rule, pod.Containers[0].Auth, err)
		}
		if Hash(spec.Template, "", []byte("a")) == Hash(spec.Template, "", []byte("b")) {
			t.Errorf("%s: its hash can be computed without the key", c.rule)
		}
		shown, in := RedactedScope(sources, f.Inputs)
		said, err := json.Marshal([]any{Diff(nil, spec.Template), json.RawMessage(Redacted(spec.Template, []byte("k"))), in, reportOf(ds), string(shown[0].Text)})
		if err != nil || strings.Contains(string(said), "hunter2") {
			t.Errorf("%s: it is shown: %s, %v", c.rule, said, err)
		}
		if _, ds := Format("a.hcl", shown[0].Text); len(ds) > 0 {
			t.Errorf("%s: what is shown is no spec any more: %s\n%s", c.rule, reportOf(ds), shown[0].Text)
		}
	}
}

func TestAPasswordOfAnOldTemplateIsNotShownInADiff(t *testing.T) {
	now := good(t, login("", `"hunter2-one"`)).Specs[0].Template
	old := jobspecs.Template(strings.Replace(string(now), `{"$sensitive":"hunter2-one"}`, `"hunter2-old"`, 1))
	want := []jobspecs.Change{{Path: "container.web.registry_auth.password", Before: hidden, After: hiddenOther}}
	if got := Diff(old, now); !reflect.DeepEqual(got, want) {
		t.Errorf("diff = %+v, want %+v", got, want)
	}
}

func TestNamesThatNoToolCanShowAreRefused(t *testing.T) {
	label := func(name string) string {
		return pod("labels = { \"" + name + "\" = \"x\" }\ncontainer \"web\" {\nimage = \"x\"\n}")
	}
	sysctl := func(name string) string {
		return pod("sysctls = { \"" + name + "\" = \"1\" }\ncontainer \"web\" {\nimage = \"x\"\n}")
	}
	option := func(name string) string {
		return pod("volume \"data\" {\noptions = { \"" + name + "\" = \"x\" }\n}\ncontainer \"web\" {\nimage = \"x\"\nmount \"data\" {\npath = \"/d\"\n}\n}")
	}
	env := func(name string) string { return web("env = { \"" + name + "\" = \"x\" }") }
	log := func(name string) string {
		return web("log {\ndriver = \"x\"\noptions = { \"" + name + "\" = \"x\" }\n}")
	}
	header := func(name, value string) string {
		return web("probe \"readiness\" {\nhttp {\nport = 80\nheaders = { \"" + name + "\" = \"" + value + "\" }\n}\n}")
	}
	for _, c := range []struct{ rule, text, want string }{
		{"a label with a zero byte", label(`a\u0000`), `"a\x00" cannot be the name of a label`},
		{"a label with an escape", label(`a\u001b[31m`), `"a\x1b[31m" cannot be the name of a label`},
		{"a label beyond ASCII", label("é"), `"é" cannot be the name of a label`},
		{"a label written from right to left", label(`a\u202eb`), `"a\u202eb" cannot be the name of a label`},
		{"a label for each member", label(`a\u0000${self.name}`), `"a\x00web-0" cannot be the name of a label`},
		{"a label as Docker's tools write it", label("com.example/some-name_1"), ""},
		{"a variable with a new line", env(`A\nB`), `"A\nB" cannot be the name of an environment variable`},
		{"a variable with a zero byte", env(`A\u0000`), `"A\x00" cannot be the name of an environment variable`},
		{"a variable with an equals sign", env(`A=B`), `"A=B" cannot be the name of an environment variable`},
		{"a variable with an invisible letter", env(`A\u200b`), `"A\u200b" cannot be the name of an environment variable`},
		{"a variable with dots", env(`a.b-c`), ""},
		{"a header with a new line", header(`A\n`, "x"), `"A\n" is no name of a header`},
		{"a header beyond ASCII", header("é", "x"), `"é" is no name of a header`},
		{"a header's value with a control character", header("A", `\u0007`), "a header's value has no control characters"},
		{"a kernel setting with a new line", sysctl(`net.core\n`), `"net.core\n" is no sysctl: want names and dots, as in net.core.somaxconn`},
		{"a kernel setting that leads out", sysctl("net...kernel.hostname"), `"net...kernel.hostname" is no sysctl: want names and dots, as in net.core.somaxconn`},
		{"a kernel setting with a slash", sysctl("net./../kernel"), `"net./../kernel" is no sysctl: want names and dots, as in net.core.somaxconn`},
		{"a kernel setting of a device", sysctl("net.ipv4.conf.br-0.rp_filter"), ""},
		{"an option of a volume with a control character", option(`o\u0001`), `"o\x01" cannot be a name here`},
		{"an option of a volume beyond ASCII", option("ö"), `"ö" cannot be a name here`},
		{"an option of a log with a new line", log(`a\n`), `"a\n" cannot be a name here`},
		{"an option of a log", log("max-size"), ""},
	} {
		if got := found(c.text); got != c.want {
			t.Errorf("%s: found %q, want %q", c.rule, got, c.want)
		}
	}
}
