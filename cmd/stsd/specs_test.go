package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stsd/stsd/daemon/api/apitest"
	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/jobspecs"
)

// folder makes a folder of files and goes there in spirit: names are joined.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func named(name, image, more string) string {
	return strings.NewReplacer(`"web"`, `"`+name+`"`, `"web:1"`, image).Replace(spec) + more
}

func lastApply(t *testing.T, s *apitest.Service) client.ApplyRequest {
	t.Helper()
	got := s.Got()
	if len(got) == 0 {
		t.Fatal("nothing was sent")
	}
	return got[len(got)-1].(client.ApplyRequest)
}

func TestEachFileIsAScopeOfItsOwn(t *testing.T) {
	t.Parallel()
	s := apitest.World()
	c := against(t, s)
	dir := folder(t, map[string]string{
		"a.hcl":          named("a", "var.image", "variable \"image\" {}\n"),
		"both/b.hcl":     named("b", "var.other", ""),
		"both/v.hcl":     "variable \"other\" {}\n",
		"both/README.md": "# not a spec\n",
	})
	got := c.run("apply", "--detach", filepath.Join(dir, "a.hcl"), "-f", filepath.Join(dir, "both"), "-var", "image=web:3", "--var=other=web:4", "-m", "why")
	if got.code != exitOK {
		t.Fatalf("exit %d: %s", got.code, got.stderr)
	}
	req := lastApply(t, s)
	var sources, vars []string
	for _, scope := range req.Scopes {
		for _, src := range scope.Sources {
			sources = append(sources, strings.TrimPrefix(src.Name, dir+"/"))
		}
		b, err := json.Marshal(scope.Inputs.Vars)
		if err != nil {
			t.Fatal(err)
		}
		vars = append(vars, string(b))
	}
	if want := []string{"both/b.hcl", "both/v.hcl", "a.hcl"}; !reflect.DeepEqual(sources, want) {
		t.Errorf("sources = %v, want %v", sources, want)
	}
	if want := []string{`{"other":"web:4"}`, `{"image":"web:3"}`}; !reflect.DeepEqual(vars, want) {
		t.Errorf("vars = %v, want %v", vars, want)
	}
	if req.Cause != "why" {
		t.Errorf("cause = %q", req.Cause)
	}
	if got := c.run("validate", filepath.Join(dir, "a.hcl"), filepath.Join(dir, "both"), "-var", "nobody=1"); got.code != exitFailure || !strings.Contains(got.stderr, "nobody") {
		t.Errorf("a variable that no file declares: exit %d: %s", got.code, got.stderr)
	}
}

func TestFilesAreReadBesideTheSpec(t *testing.T) {
	t.Parallel()
	s := apitest.World()
	dir := folder(t, map[string]string{
		"web.hcl":   strings.Replace(spec, `image = "web:1"`, `image = trimspace(file("image.txt"))`, 1),
		"image.txt": "web:7\n",
	})
	if got := against(t, s).run("plan", filepath.Join(dir, "web.hcl")); got.code != exitOK {
		t.Fatalf("exit %d: %s", got.code, got.stderr)
	}
	if got := lastApply(t, s).Scopes[0].Inputs.Files["image.txt"]; string(got) != "web:7\n" {
		t.Errorf("image.txt = %q", got)
	}
}

func TestASpecFromStandardInput(t *testing.T) {
	t.Parallel()
	s := apitest.World()
	c := against(t, s)
	c.stdin = strings.NewReader(spec)
	if got := c.run("apply", "-", "--detach", "--image", "web:1=web:9", "--pull", "never", "-n", "prod"); got.code != exitOK {
		t.Fatalf("exit %d: %s", got.code, got.stderr)
	}
	req := lastApply(t, s)
	want := client.ApplyRequest{Namespace: "prod", Scopes: []client.Scope{{
		Sources: []jobspecs.Source{{Name: "stdin", Text: []byte(spec)}},
		Inputs:  jobspecs.Inputs{Images: map[string]string{"web:1": "web:9"}, Pull: "never"},
	}}}
	if !reflect.DeepEqual(req, want) {
		t.Errorf("sent %+v, want %+v", req, want)
	}
	c.stdin = strings.NewReader(spec)
	if got := c.run("validate", "-", "--image", "nginx=web:9"); !strings.Contains(got.stderr, "no container has that image") {
		t.Errorf("an --image that matches nothing: %s", got.stderr)
	}
}

func TestAnotherNamespaceThanTheFileSaysIsAnError(t *testing.T) {
	t.Parallel()
	file := write(t, "web.hcl", strings.Replace(spec, "{\n", "{\n  namespace = \"test\"\n", 1))
	for _, verb := range []string{"validate", "plan", "apply", "diff"} {
		got := against(t, apitest.World()).run(verb, file, "-n", "prod")
		if got.code != exitFailure || !strings.Contains(got.stderr, "web is in namespace test, not in prod of -n") {
			t.Errorf("%s: exit %d: %s", verb, got.code, got.stderr)
		}
	}
}

func TestExpectGenerationNamesTheSet(t *testing.T) {
	t.Parallel()
	s := apitest.World()
	if got := against(t, s).run("apply", write(t, "web.hcl", spec), "--detach", "-n", "prod", "--expect-generation", "0"); got.code != exitOK {
		t.Fatalf("exit %d: %s", got.code, got.stderr)
	}
	if got, want := lastApply(t, s).Expect, map[string]int64{"prod/web": 0}; !reflect.DeepEqual(got, want) {
		t.Errorf("expect = %v, want %v", got, want)
	}
}

func TestASavedPlanIsAppliedAsItWas(t *testing.T) {
	t.Parallel()
	s := apitest.World()
	c := against(t, s)
	file, out := write(t, "web.hcl", spec), filepath.Join(t.TempDir(), "plan")
	if got := c.run("plan", file, "--out", out, "--pull", "never"); got.code != exitOK {
		t.Fatalf("exit %d: %s", got.code, got.stderr)
	}
	fi, err := os.Stat(out)
	if err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("mode = %v, %v, want 0600: it may hold secrets", fi.Mode(), err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if got := c.run("apply", "--detach", out, "-m", "planned"); got.code != exitOK {
		t.Fatalf("exit %d: %s", got.code, got.stderr)
	}
	want := s.Got()[0].(client.ApplyRequest)
	want.Expect, want.Cause = map[string]int64{"default/web": 1}, "planned"
	if got := lastApply(t, s); !reflect.DeepEqual(got, want) {
		t.Errorf("sent %+v, want %+v", got, want)
	}
	if got := c.run("apply", out, "-var", "a=b"); got.code != exitUsage {
		t.Errorf("a saved plan with -var: exit %d", got.code)
	}
}

func TestDeleteOfFilesNamesTheirSetsBackwards(t *testing.T) {
	t.Parallel()
	s := apitest.World()
	other := jobspecs.Key{Namespace: "default", Name: "app"}
	s.Statuses[other] = s.Statuses[apitest.Web]
	c := against(t, s)
	file := write(t, "two.hcl", spec+named("app", `var.image`, "variable \"image\" {}\n"))
	if got := c.run("delete", "-f", file, "--cascade=orphan"); got.code != exitOK {
		t.Fatalf("exit %d: %s", got.code, got.stderr)
	}
	if got := s.Got(); len(got) != 2 || !got[0].(client.DeleteRequest).Orphan {
		t.Errorf("sent %+v", got)
	}
}

func TestFmt(t *testing.T) {
	t.Parallel()
	ugly := strings.ReplaceAll(spec, "  ", "      ")
	dir := folder(t, map[string]string{"ugly.hcl": ugly, "good.hcl": spec})
	c := against(t, apitest.World())
	c.stdin = strings.NewReader(ugly)
	if got := c.run("fmt", "-"); got.stdout != spec {
		t.Errorf("fmt - = %q", got.stdout)
	}
	if got := c.run("fmt", "--check", dir); got.code != exitDiffers || got.stdout != filepath.Join(dir, "ugly.hcl")+"\n" {
		t.Errorf("--check: exit %d, %q", got.code, got.stdout)
	}
	if got := c.run("fmt", "-w", dir); got.code != exitOK || got.stdout != filepath.Join(dir, "ugly.hcl")+"\n" {
		t.Errorf("-w: exit %d, %q", got.code, got.stdout)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "ugly.hcl")); err != nil || string(b) != spec {
		t.Errorf("written %q, %v", b, err)
	}
	if got := c.run("fmt", "--check", dir); got.code != exitOK || got.stdout != "" {
		t.Errorf("a second time: exit %d, %q", got.code, got.stdout)
	}
}

func TestExamplesAreValid(t *testing.T) {
	t.Parallel()
	c := against(t, apitest.World())
	for _, name := range strings.Fields(c.run("example").stdout) {
		c.stdin = strings.NewReader(c.run("example", name).stdout)
		if got := c.run("validate", "-"); got.code != exitOK || got.stderr != "" {
			t.Errorf("%s: exit %d: %s", name, got.code, got.stderr)
		}
	}
}

func TestValidateSaysWhichValuesItDidWithout(t *testing.T) {
	t.Parallel()
	file := write(t, "web.hcl", "variable \"password\" {\n  sensitive = true\n}\nvariable \"picture\" {}\nstatefulset \"web\" {\n  container \"web\" {\n    image = var.picture\n\n    file \"/pw\" {\n      content = var.password\n    }\n  }\n}\n")
	c := against(t, apitest.World())
	if got := c.run("validate", file); got.code != exitOK || got.stdout != "valid: 1 set; what depends on password, picture was not checked\n" {
		t.Errorf("exit %d: %s%s", got.code, got.stdout, got.stderr)
	}
	if got := c.run("validate", file, "-var", "picture=web:1", "-var", "password=secret"); got.stdout != "valid: 1 set\n" {
		t.Errorf("exit %d: %s%s", got.code, got.stdout, got.stderr)
	}
}
