package hcl

import (
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stsd/stsd/jobspecs"
)

func TestDiff(t *testing.T) {
	for _, c := range []struct {
		rule, a, b string
		want       []jobspecs.Change
	}{
		{"nothing", web(""), web(""), nil},
		{"a value", web("user = \"a\""), web("user = \"b\""), []jobspecs.Change{{Path: "container.web.user", Before: `"a"`, After: `"b"`}}},
		{"an expression", web("user = \"a\""), web("user = self.name"), []jobspecs.Change{{Path: "container.web.user", Before: `"a"`, After: "self.name"}}},
		{"what is new", web(""), web("port \"a\" {\ncontainer = 80\n}"), []jobspecs.Change{{Path: "container.web.port.a.container", After: "80"}}},
		{"what is gone", web("env = { A = \"1\" }"), web(""), []jobspecs.Change{{Path: "container.web.env.A", Before: `"1"`}}},
		{"a list", web("args = [\"a\"]"), web("args = [\"a\", self.name]"), []jobspecs.Change{{Path: "container.web.args", Before: `["a"]`, After: `["a", self.name]`}}},
		{"a flag", web("file \"/a\" {\ncontent = \"\"\nmode = \"0600\"\n}"), web("file \"/a\" {\ncontent = \"\"\n}"), []jobspecs.Change{{Path: "container.web.file./a.mode", Before: `"0600"`}}},
		{"lines of a text", web("file \"/a\" {\ncontent = \"a\\nb\\nc\\n\"\n}"), web("file \"/a\" {\ncontent = \"a\\nB\\nc\\nd\\n\"\n}"), []jobspecs.Change{{Path: "container.web.file./a.content", Before: "- b", After: "+ B\n+ d"}}},
		{"a mount's path", pod("volume \"d\" {\n}\ncontainer \"web\" {\nimage = \"x\"\nmount \"d\" {\npath = \"/a\"\n}\n}"), pod("volume \"d\" {\n}\ncontainer \"web\" {\nimage = \"x\"\nmount \"d\" {\npath = \"/b\"\n}\n}"), []jobspecs.Change{{Path: "container.web.mount.d.path", Before: `"/a"`, After: `"/b"`}}},
		{"a variable", "variable \"v\" {\ndefault = 1\n}\n" + web("user = var.v + self.ordinal"), "variable \"v\" {\ndefault = 2\n}\n" + web("user = var.v + self.ordinal"), []jobspecs.Change{{Path: "var.v", Before: "1", After: "2"}}},
	} {
		if got := Diff(template(t, c.a), template(t, c.b)); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %q, want %q", c.rule, got, c.want)
		}
	}
}

func TestDiffOfALongTextIsCut(t *testing.T) {
	long := strings.Repeat("x\n", 100)
	before, after := lineDiff(long, long+strings.Repeat("y\n", 30))
	if before != "" || after != "  x (line 100)\n"+strings.Repeat("+ y\n", 10)+"+ … 20 more lines" {
		t.Errorf("%q %q", before, after)
	}
}

func TestDiffSets(t *testing.T) {
	a := good(t, pod("volume \"d\" {\n}\ncontainer \"web\" {\nimage = \"x\"\n}")).Specs[0].Set
	b := good(t, strings.Replace(pod("volume \"d\" {\nsize = \"1GiB\"\non_delete = \"delete\"\n}\nupdate {\npartition = 2\n}\ncontainer \"web\" {\nimage = \"y\"\n}"), "3", "5", 1)).Specs[0].Set
	want := []jobspecs.Change{
		{Path: "replicas", Before: "3", After: "5"},
		{Path: "update.partition", Before: "0", After: "2"},
		{Path: "volume.d.on_delete", Before: `"retain"`, After: `"delete"`},
		{Path: "volume.d.size", After: `"1GiB"`},
	}
	if got := DiffSets(&a, &b); !reflect.DeepEqual(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}

func TestDataChanges(t *testing.T) {
	claim := func(name, path string) string {
		return pod("volume \"" + name + "\" {\non_scale_down = \"delete\"\n}\ncontainer \"web\" {\nimage = \"x\"\nmount \"" + name + "\" {\npath = \"" + path + "\"\n}\n}")
	}
	base := claim("data", "/data")
	for _, c := range []struct {
		rule, after string
		want        []string
	}{
		{"nothing", base, nil},
		{"another image", strings.Replace(base, `"x"`, `"y"`, 1), nil},
		{"more replicas", strings.Replace(base, "3", "5", 1), nil},
		{"a claim unmounted", pod("volume \"data\" {\n}\ncontainer \"web\" {\nimage = \"x\"\n}"), []string{"data: claim data is no longer mounted"}},
		{"a claim removed", pod("container \"web\" {\nimage = \"x\"\n}"), []string{"data: claim data is no longer mounted"}},
		{"a claim renamed", claim("store", "/data"), []string{"data: claim data is renamed to store; members get new volumes and the old ones are not mounted"}},
		{"another path", claim("data", "/var"), []string{"data: claim data is mounted at /var instead of /data"}},
		{"another service", strings.Replace(base, "replicas", "service = \"b\"\nreplicas", 1), []string{"data: the service changes from web to b; members that wrote each other's names down will not find them"}},
		{"another first ordinal", strings.Replace(base, "replicas", "start_ordinal = 1\nreplicas", 1), []string{
			"data: the first ordinal changes from 0 to 1; volumes of ordinals that go are not used by the others",
			`data: fewer members and on_scale_down = "delete": data-web-0 would be deleted`,
		}},
		{"fewer replicas", strings.Replace(base, "3", "1", 1), []string{`data: fewer members and on_scale_down = "delete": data-web-1, data-web-2 would be deleted`}},
		{"fewer replicas whose volumes stay", strings.Replace(strings.Replace(base, "3", "1", 1), "delete", "retain", 1), nil},
	} {
		a, b := good(t, base).Specs[0], good(t, c.after).Specs[0]
		if got := DataChanges(&a.Set, &b.Set, a.Template, b.Template); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %q\nwant %q", c.rule, got, c.want)
		}
	}
}

func TestWithImages(t *testing.T) {
	for name, want := range map[string]string{
		"web": "y", "": "y", "*": "y",
	} {
		got, err := WithImages(template(t, web("")), map[string]string{name: "y"})
		if err != nil || Images(got)[0].Ref != want {
			t.Errorf("%q: %s %v", name, got, err)
		}
	}
	if got, err := WithImages(template(t, web("")), map[string]string{"web": "x"}); err != nil || !got.Equal(template(t, web(""))) {
		t.Errorf("the same image: %s %v", got, err)
	}
	_, err := WithImages(template(t, web("")), map[string]string{"wbe": "y"})
	if want := `there is no container "wbe"; there is web`; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if _, err := WithImages(template(t, web("")), map[string]string{"": "a b"}); err == nil {
		t.Error("an image with a blank was taken")
	}
}

func TestWithRestartMakesAnotherTemplateOfTheSameContent(t *testing.T) {
	spec := good(t, web("")).Specs[0]
	again := WithRestart(spec.Template, "2026-01-01T00:00:00Z")
	if again.Equal(spec.Template) {
		t.Error("equal")
	}
	want, _ := Render(&spec.Set, spec.Template, envOf(0))
	got, err := Render(&spec.Set, again, envOf(0))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v %v", got, err)
	}
}

func TestImagesThatDependOnTheMemberAreNotListedButReplaced(t *testing.T) {
	text := web("")
	text = strings.Replace(text, `"x"`, `"x:${self.ordinal}"`, 1)
	f, ds := Parse([]jobspecs.Source{{Name: "a.hcl", Text: []byte(text)}}, jobspecs.Inputs{}, Options{Images: map[string]string{"x:1": "y"}})
	if f == nil {
		t.Fatal(reportOf(ds))
	}
	spec := f.Specs[0]
	var got []string
	for _, o := range []int{0, 1, 2} {
		pod, err := Render(&spec.Set, spec.Template, envOf(o))
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, pod.Containers[0].Image)
	}
	if want := []string{"x:0", "y", "x:2"}; !reflect.DeepEqual(got, want) || spec.Images != nil {
		t.Errorf("images %v, listed %v", got, spec.Images)
	}
}

func TestHash(t *testing.T) {
	a, b := Hash([]byte("x"), "", nil), Hash([]byte("x"), "1", nil)
	if a == b || a != Hash([]byte("x"), "", nil) || !regexp.MustCompile(`^[a-z0-9]{10}$`).MatchString(a) {
		t.Errorf("%s %s", a, b)
	}
}

func TestALongValueIsCut(t *testing.T) {
	big := strings.Repeat("0123456789", 500)
	got := Diff(template(t, web("user = \"a\"")), template(t, web("env = { BIG = \""+big+"\" }\nuser = \"a\"")))
	want := []jobspecs.Change{{Path: "container.web.env.BIG", After: `"` + big[:399] + "… (5.0 kB)"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("diff = %+v\nwant   %+v", got, want)
	}
	line := "x\n" + strings.Repeat("é", 300) + "\n"
	before, _ := lineDiff(line, "x\n")
	if shown := capped(before, len(line)); shown != "- "+strings.Repeat("é", 199)+"… (603 bytes)" {
		t.Errorf("a long line: %q", shown)
	}
}
