package docker

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/registry"

	"github.com/stsd/stsd/jobspecs"
)

// dockerConfigured makes this the process's Docker configuration.
func dockerConfigured(t *testing.T, text string) (file string) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("DOCKER_CONFIG", dir)
	file = filepath.Join(dir, "config.json")
	if text != "" {
		check(t, os.WriteFile(file, []byte(text), 0o600))
	}
	return file
}

// helperOnPath makes a credential helper docker-credential-NAME of a shell script.
func helperOnPath(t *testing.T, name, script string) {
	t.Helper()
	dir := t.TempDir()
	check(t, os.WriteFile(filepath.Join(dir, helperPrefix+name), []byte("#!/bin/sh\n"+script), 0o755))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

// knower is a helper that knows one registry, r.example, and docker.io's token.
const knower = `
read server
case "$1 $server" in
"get r.example") echo '{"ServerURL": "r.example", "Username": "u", "Secret": "p"}' ;;
"get https://index.docker.io/v1/") echo '{"Username": "<token>", "Secret": "tok"}' ;;
*) echo "credentials not found in native keychain"; exit 1 ;;
esac
`

func TestCredentialsOfARegistry(t *testing.T) {
	helperOnPath(t, "x", knower)
	const auths = `"auths": {
		"https://index.docker.io/v1/": {"auth": "aHViOnNlY3JldA=="},
		"r.example:5000": {"auth": "dTpwOnE="},
		"https://t.example": {"identitytoken": "tok"},
		"e.example": {}
	}`
	nobody := ""
	for _, c := range []struct {
		name, config, domain string
		want                 string // user, password, token, from
	}{
		{"no configuration", "", "docker.io", nobody},
		{"the hub's", `{` + auths + `}`, "docker.io", "hub secret  FILE"},
		{"a port is part of the name", `{` + auths + `}`, "r.example:5000", "u p:q  FILE"},
		{"another port", `{` + auths + `}`, "r.example:5001", nobody},
		{"a token", `{` + auths + `}`, "t.example", "  tok FILE"},
		{"an empty entry", `{` + auths + `}`, "e.example", nobody},
		{"the store of all knows it", `{"credsStore": "x"}`, "r.example", "u p  docker-credential-x"},
		{"the store gives a token", `{"credsStore": "x"}`, "docker.io", "  tok docker-credential-x"},
		{"the store does not know it", `{"credsStore": "x"}`, "no.example", nobody},
		{"the store does not know it, the file does", `{"credsStore": "x", ` + auths + `}`, "t.example", "  tok FILE"},
		{"a helper of this registry", `{"credHelpers": {"r.example": "x"}, "credsStore": "none"}`, "r.example", "u p  docker-credential-x"},
		{"a helper of another", `{"credHelpers": {"r.example": "none"}}`, "docker.io", nobody},
		{"a helper of the hub by its short name", `{"credHelpers": {"docker.io": "x"}}`, "docker.io", "  tok docker-credential-x"},
	} {
		file := dockerConfigured(t, c.config)
		l, err := loginFor(t.Context(), c.domain, nil)
		if err != nil || l.wrong != nil {
			t.Errorf("%s: %v, %v", c.name, err, l.wrong)
		}
		got := nobody
		if l.from != "" {
			got = strings.ReplaceAll(fmt.Sprintf("%s %s %s %s", l.auth.Username, l.auth.Password, l.auth.IdentityToken, l.from), file, "FILE")
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestTheSpecsCredentialsWin(t *testing.T) {
	dockerConfigured(t, `{"auths": {"r.example": {"auth": "dTpwOnE="}}}`)
	l, err := loginFor(t.Context(), "r.example", &jobspecs.RegistryAuth{Username: "ci", Password: "pw"})
	want := registry.AuthConfig{Username: "ci", Password: "pw", ServerAddress: "r.example"}
	if err != nil || l.auth != want || l.from != "registry_auth" {
		t.Errorf("login = %+v from %s, %v; want %+v", l.auth, l.from, err, want)
	}
}

func TestBrokenConfigurationIsNobodyAndSaysWhy(t *testing.T) {
	for _, c := range []struct{ name, config, script, want string }{
		{"no JSON", `{"auths": {"r.example": {"auth": "c2VjcmV0`, "", "FILE is no JSON of a Docker configuration"},
		{"a helper that is not there", `{"credsStore": "nosuch"}`, "", "docker-credential-nosuch is not in PATH"},
		{"a helper that fails", `{"credsStore": "x"}`, "echo s3cret; echo s3cret >&2; exit 3", "docker-credential-x: exit status 3"},
		{"a helper that talks", `{"credsStore": "x"}`, "echo s3cret", "docker-credential-x did not answer in JSON"},
		{"a helper that never ends talking", `{"credsStore": "x"}`, "while echo s3cret; do :; done", "docker-credential-x: "},
		{"a path", `{"credsStore": "../x"}`, "", `"../x" is no name of a credential helper`},
	} {
		file := dockerConfigured(t, c.config)
		helperOnPath(t, "x", c.script)
		l, err := loginFor(t.Context(), "r.example", nil)
		got := strings.ReplaceAll(errorText(l.wrong), file, "FILE")
		if err != nil || l.from != "" || !strings.HasPrefix(got, c.want) || strings.Contains(got, "s3cret") {
			t.Errorf("%s: %q from %q, %v; want %q", c.name, got, l.from, err, c.want)
		}
	}
}

func TestHangingHelperIsKilledWithItsChildren(t *testing.T) {
	restore := helperTime
	helperTime = 300 * time.Millisecond
	t.Cleanup(func() { helperTime = restore })
	pid := filepath.Join(t.TempDir(), "pid")
	helperOnPath(t, "x", "sleep 60 & echo $! >"+pid+"; wait")
	dockerConfigured(t, `{"credsStore": "x"}`)
	l, err := loginFor(t.Context(), "r.example", nil)
	if got := errorText(l.wrong); err != nil || got != "docker-credential-x did not answer within 300ms" {
		t.Errorf("wrong = %q, %v", got, err)
	}
	child := must(strconv.Atoi(strings.TrimSpace(string(must(os.ReadFile(pid))(t)))))(t)
	for late := time.Now().Add(5 * time.Second); lives(child); time.Sleep(5 * time.Millisecond) { // a killed process ends on a real clock
		if time.Now().After(late) {
			t.Fatalf("its child %d still runs", child)
		}
	}
}

func TestAdviceNamesWhereCredentialsCameFrom(t *testing.T) {
	t.Parallel()
	named := registry.AuthConfig{Username: "ci", Password: "s3cret"}
	for _, c := range []struct {
		login login
		want  string
	}{
		{login{domain: "r.example"}, "no credentials were sent; they come from registry_auth in the container, or docker login r.example as the user that runs stsd (F)"},
		{login{domain: "docker.io"}, "no credentials were sent; they come from registry_auth in the container, or docker login as the user that runs stsd (F)"},
		{login{domain: "r.example", from: "registry_auth", auth: named}, "user ci of registry_auth was refused; credentials come from registry_auth in the container, or docker login r.example as the user that runs stsd (F)"},
		{login{domain: "r.example", from: "F", auth: registry.AuthConfig{IdentityToken: "s3cret"}}, "the token of F was refused; credentials come from registry_auth in the container, or docker login r.example as the user that runs stsd (F)"},
		{login{domain: "r.example", wrong: fmt.Errorf("docker-credential-x is not in PATH")}, "no credentials were sent, since docker-credential-x is not in PATH; they come from registry_auth in the container, or docker login r.example as the user that runs stsd (F)"},
	} {
		c.login.file = "F"
		if got := c.login.advice(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}
