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

func secretive() *apitest.Service {
	s := apitest.World()
	s.Secret = []client.Secret{
		{Namespace: "default", Name: "cookie", Format: "hex", Length: 32, Created: apitest.Start, UsedBy: []string{"web", "db"}},
		{Namespace: "other", Name: "cookie", Format: "uuid", Length: 36, Created: apitest.Start},
	}
	return s
}

func TestSecretsAreListed(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"secret ls":                           "NAME     FORMAT   LENGTH   CREATED   USED BY\ncookie   hex      32       1h        web,db\n",
		"secret ls -A":                        "NAMESPACE   NAME     FORMAT   LENGTH   CREATED   USED BY\ndefault     cookie   hex      32       1h        web,db\nother       cookie   uuid     36       1h        -\n",
		"secret ls -n none":                   "no secrets\n",
		"secret ls -A -o name":                "cookie\nother/cookie\n",
		"secret show other/cookie -o name":    "other/cookie\n",
		"secret show cookie -n other -o name": "other/cookie\n",
	} {
		got := against(t, secretive()).run(strings.Fields(args)...)
		if got.code != exitOK || got.stdout+got.stderr != want {
			t.Errorf("stsd %s: exit %d\n%s%swant\n%s", args, got.code, got.stdout, got.stderr, want)
		}
	}
	got := against(t, secretive()).run("secret", "show", "cookie", "-o", "json")
	var doc map[string]any
	if err := json.Unmarshal([]byte(got.stdout), &doc); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"namespace": "default", "name": "cookie", "format": "hex", "length": 32.0, "created": "2026-01-02T15:04:05Z", "used_by": []any{"web", "db"}}
	if !reflect.DeepEqual(doc, want) {
		t.Errorf("show = %v, want %v", doc, want)
	}
	if got := against(t, secretive()).run("secret", "show", "cookie"); !strings.Contains(got.stdout, "value       (sensitive)\n") {
		t.Errorf("show = %s", got.stdout)
	}
	if got := against(t, secretive()).run("secret", "show", "none"); got.code != exitFailure || !strings.Contains(got.stderr, "no secret none in namespace default\n  try: stsd secret ls -A") {
		t.Errorf("exit %d: %s", got.code, got.stderr)
	}
	if got := against(t, secretive()).run("secret", "show", "a/cookie", "-n", "b"); got.code != exitUsage {
		t.Errorf("exit %d: %s", got.code, got.stderr)
	}
}

func TestSecretsAreRemoved(t *testing.T) {
	t.Parallel()
	s := secretive()
	got := against(t, s).run("secret", "rm", "cookie", "other/cookie", "--yes")
	if want := "secret cookie removed\nsecret cookie removed\n"; got.code != exitOK || got.stdout != want {
		t.Errorf("exit %d: %s%s", got.code, got.stdout, got.stderr)
	}
	if want := []any{client.SecretRequest{Write: client.Write{Yes: true}}, client.SecretRequest{Write: client.Write{Yes: true}}}; !reflect.DeepEqual(s.Got(), want) {
		t.Errorf("sent %+v, want %+v", s.Got(), want)
	}
	s = secretive()
	s.Loss = []string{"value: set web uses it"}
	got = against(t, s).run("secret", "rm", "cookie")
	if got.code != exitRefused || !strings.HasPrefix(got.stderr, "value: set web uses it\n") || !strings.Contains(got.stderr, "--yes, when the value may go") || got.stdout != "" {
		t.Errorf("exit %d: %s%s", got.code, got.stdout, got.stderr)
	}
	if got := against(t, s).run("secret", "rm"); got.code != exitUsage {
		t.Errorf("without a name: exit %d", got.code)
	}
}

func TestAPlanIsKeptAsTheDaemonSealedIt(t *testing.T) {
	t.Parallel()
	s := apitest.World()
	s.Sealed = []byte("sealed-by-the-daemon")
	text := "variable \"password\" {\n  sensitive = true\n}\n" + strings.Replace(spec, "image = \"web:1\"", "image = \"ghcr.io/web:1\"\n    args  = [var.password]", 1)
	file := write(t, "web.hcl", text)
	plan := filepath.Join(t.TempDir(), "web.plan")
	c := against(t, s)
	if got := c.run("plan", file, "--var", "password=not-for-a-file", "--out", plan); got.code != exitOK {
		t.Fatalf("exit %d: %s", got.code, got.stderr)
	}
	kept, err := os.ReadFile(plan)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(kept), "not-for-a-file") || !strings.Contains(string(kept), `"ghcr.io"`) {
		t.Errorf("the plan holds\n%s", kept)
	}
	if got := c.run("apply", plan, "--detach"); got.code != exitOK {
		t.Fatalf("exit %d: %s", got.code, got.stderr)
	}
	sent := s.Got()
	last, ok := sent[len(sent)-1].(client.ApplyRequest)
	if !ok || string(last.Sealed) != "sealed-by-the-daemon" || last.Scopes != nil || last.Expect["default/web"] != s.Plans[0].Generation {
		t.Errorf("sent %+v", last)
	}
}

func TestAnApplySendsTheClientsRegistryCredentials(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("DOCKER_CONFIG", dir)
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	helper := "#!/bin/sh\nread server\ncase \"$server\" in\nhelped.example) echo '{\"Username\": \"<token>\", \"Secret\": \"tok\"}' ;;\n*) echo 'credentials not found in native keychain'; exit 1 ;;\nesac\n"
	for name, text := range map[string]string{
		"config.json":             `{"auths": {"ghcr.io": {"auth": "Y2k6czNjcmV0"}, "unused.example": {"auth": "Y2k6czNjcmV0"}}, "credHelpers": {"helped.example": "story"}}`,
		"docker-credential-story": helper,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	set := func(name, image string) string {
		return strings.ReplaceAll(strings.Replace(spec, "web:1", image, 1), `"web"`, `"`+name+`"`)
	}
	file := write(t, "web.hcl", set("a", "ghcr.io/web:1")+set("b", "helped.example/web:1")+set("c", "nobody.example/web:1"))
	s := apitest.World()
	got := against(t, s).run("apply", file, "--with-registry-auth", "--detach")
	if got.code != exitOK || !strings.Contains(got.stderr, "no credentials for nobody.example") {
		t.Fatalf("exit %d: %s", got.code, got.stderr)
	}
	want := map[string]jobspecs.RegistryAuth{"ghcr.io": {Username: "ci", Password: "s3cret"}, "helped.example": {Username: "<token>", Password: "tok"}}
	if sent := s.Got()[0].(client.ApplyRequest).Registries; !reflect.DeepEqual(sent, want) {
		t.Errorf("sent %v, want %v", sent, want)
	}
	if strings.Contains(got.stdout+got.stderr, "s3cret") {
		t.Errorf("shown: %s%s", got.stdout, got.stderr)
	}
	plain := apitest.World()
	if got := against(t, plain).run("apply", file, "--detach"); got.code != exitOK || plain.Got()[0].(client.ApplyRequest).Registries != nil {
		t.Errorf("without the flag: exit %d, sent %+v", got.code, plain.Got())
	}
}
