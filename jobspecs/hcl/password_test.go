package hcl

import (
	"encoding/json"
	"reflect"
	"slices"
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

func TestPasswordsOfASourceAreTakenOutOfMessages(t *testing.T) {
	text := login("locals {\n a = \"hunter2-local\"\n}\nvariable \"v\" {\n default = \"hunter2-default\"\n}\n", `"${local.a}${var.v}"`) + "\n" +
		strings.Replace(login("", `"hunter2-written"`), `"web" {`, `"other" {`, 1)
	got := SensitiveInputs([]jobspecs.Source{{Name: "a.hcl", Text: []byte(text)}}, jobspecs.Inputs{Vars: map[string]json.RawMessage{"v": json.RawMessage(`"hunter2-given"`)}})
	slices.Sort(got)
	if want := []string{"hunter2-given", "hunter2-local", "hunter2-written"}; !slices.Equal(got, want) {
		t.Errorf("texts = %q, want %q", got, want)
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
