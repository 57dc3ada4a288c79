package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/stsd/stsd/daemon/api"
	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/daemon/planner"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime/sim"
)

const cookieSpec = `
secret "cookie" {
  length = 20
}
statefulset "web" {
  replicas = 2
  container "web" {
    image = "web:1"
    file "/cookie" { content = secret.cookie }
  }
}`

// rendering is what the newest revision makes of member 0.
func (s *stage) rendering(key jobspecs.Key) jobspecs.PodSpec {
	s.t.Helper()
	v, err := s.store.Look(key)
	if err != nil {
		s.t.Fatal(err)
	}
	x := sight{view: v}
	if x.addresses, err = s.store.Addresses(key); err != nil {
		s.t.Fatal(err)
	}
	x.world = s.Daemon.world(&v, time.Now(), nil, nil)
	target := planner.Target{Ordinal: 0, Revision: v.Record.Update}
	r := s.renderings(&v, s.env(&x), []planner.Target{target}, x.subnet)[target]
	if r.Err != nil {
		s.t.Fatal(r.Err)
	}
	return r.Spec
}

func (s *stage) secretRows() []client.Secret {
	s.t.Helper()
	rows, err := s.Secrets(s.t.Context(), "")
	if err != nil {
		s.t.Fatal(err)
	}
	return rows
}

func TestASecretIsMadeOnceAndKept(t *testing.T) {
	play(t, func(s *stage) {
		plan, err := s.Plan(t.Context(), request(cookieSpec))
		if err != nil || len(s.secretRows()) > 0 || !strings.Contains(strings.Join(plan.Plans[0].Warnings, "\n"), "secret cookie is made by the apply") {
			t.Errorf("plan = %+v, %v; secrets %v: a plan makes none and says so", plan, err, s.secretRows())
		}
		first := s.apply(cookieSpec)
		made := string(s.rendering(web).Containers[0].Files[0].Content)
		if !regexp.MustCompile(`^[0-9a-f]{20}$`).MatchString(made) {
			t.Errorf("it is %q, want 20 digits", made)
		}
		if again := s.apply(cookieSpec); again.Changed || again.Revision != first.Revision {
			t.Errorf("applied again: %+v, want no change of revision %s", again, first.Revision)
		}
		rows := s.secretRows()
		created := rows[0].Created
		if want := []client.Secret{{Namespace: "default", Name: "cookie", Format: "hex", Length: 20, Created: created, UsedBy: []string{"web"}}}; !reflect.DeepEqual(rows, want) || created.IsZero() {
			t.Errorf("secrets = %+v, want %+v", rows, want)
		}
		s.apply(strings.Replace(cookieSpec, `"web:1"`, `"web:2"`, 1))
		if now := string(s.rendering(web).Containers[0].Files[0].Content); now != made {
			t.Errorf("another template has %q, want %q", now, made)
		}
		other, err := s.Plan(t.Context(), request(strings.Replace(cookieSpec, "length = 20", "length = 24", 1)))
		if err != nil || !strings.Contains(strings.Join(other.Plans[0].Warnings, "\n"), "secret cookie stays what it is, 20 characters of hex, although the file says 24 of hex") {
			t.Errorf("with another length: %+v, %v", other, err)
		}
	})
}

func TestSetsOfANamespaceShareASecret(t *testing.T) {
	play(t, func(s *stage) {
		second := strings.Replace(cookieSpec, `"web" {
  replicas`, `"db" {
  replicas`, 1)
		s.apply(cookieSpec)
		s.apply(second)
		elsewhere := request(cookieSpec)
		elsewhere.Namespace = "other"
		if _, err := s.Apply(t.Context(), elsewhere); err != nil {
			t.Fatal(err)
		}
		s.settle()
		content := func(ns, name string) string {
			return string(s.rendering(jobspecs.Key{Namespace: ns, Name: name}).Containers[0].Files[0].Content)
		}
		if content("default", "web") != content("default", "db") {
			t.Error("two sets of one namespace have two secrets")
		}
		if content("default", "web") == content("other", "web") {
			t.Error("two namespaces share one")
		}
		var got []string
		for _, r := range s.secretRows() {
			got = append(got, fmt.Sprint(r.Namespace, " ", r.UsedBy))
		}
		if want := []string{"default [db web]", "other [web]"}; !slices.Equal(got, want) {
			t.Errorf("used by %q, want %q", got, want)
		}
	})
}

func TestRemovingASecretIsConfirmedAndMakesANewRevision(t *testing.T) {
	play(t, func(s *stage) {
		first := s.apply(cookieSpec)
		two := 3
		if _, err := s.Scale(t.Context(), web, client.ScaleRequest{Replicas: two}); err != nil {
			t.Fatal(err)
		}
		s.settle()
		old := string(s.rendering(web).Containers[0].Files[0].Content)
		remove := func(w client.Write) (client.SecretResult, error) {
			return s.RemoveSecret(t.Context(), "default", "cookie", client.SecretRequest{Write: w})
		}
		var p *client.Problem
		if _, err := remove(client.Write{}); !errors.As(err, &p) || p.Type != client.ProblemUnconfirmed || p.Set != "cookie" || !strings.Contains(strings.Join(p.Data, ""), "set web uses it") {
			t.Errorf("without consent: %v", err)
		}
		if r, err := remove(client.Write{DryRun: true}); err != nil || r.Removed {
			t.Errorf("dry run = %+v, %v", r, err)
		}
		if r, err := remove(client.Write{Confirm: []string{"cookie"}}); err != nil || !r.Removed || r.Message != "secret cookie removed; the next apply makes another one" {
			t.Errorf("with consent = %+v, %v", r, err)
		}
		if _, err := remove(client.Write{Yes: true}); !errors.As(err, &p) || p.Type != client.ProblemNotFound {
			t.Errorf("a second time: %v", err)
		}
		s.settle()
		if now := string(s.rendering(web).Containers[0].Files[0].Content); now != old {
			t.Error("the set lost its value before an apply")
		}
		again := s.apply(cookieSpec)
		fresh := string(s.rendering(web).Containers[0].Files[0].Content)
		if again.Revision == first.Revision || fresh == old || s.status().Replicas != 3 {
			t.Errorf("the next apply: %+v, value changed %v, %d replicas (the override stays)", again, fresh != old, s.status().Replicas)
		}
	})
}

func TestASecretOfAClientIsNotTaken(t *testing.T) {
	play(t, func(s *stage) {
		r := request(cookieSpec)
		r.Scopes[0].Inputs.Secrets = map[string]string{"default/cookie": "chosen-by-client"}
		if _, err := s.Apply(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		s.settle()
		if got := string(s.rendering(web).Containers[0].Files[0].Content); got == "chosen-by-client" {
			t.Error("a client chose the secret")
		}
	})
}

func TestFormsOfSecrets(t *testing.T) {
	t.Parallel()
	for format, want := range map[string]string{
		"length = 9":           `^[0-9a-f]{9}$`,
		`format = "base64url"`: `^[A-Za-z0-9_-]{32}$`,
		`format = "uuid"`:      `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`,
		"length = 1024":        `^[0-9a-f]{1000}[0-9a-f]{24}$`,
	} {
		play(t, func(s *stage) {
			s.apply(strings.Replace(cookieSpec, "length = 20", format, 1))
			if got := string(s.rendering(web).Containers[0].Files[0].Content); !regexp.MustCompile(want).MatchString(got) {
				t.Errorf("%s: %q, want %s", format, got, want)
			}
		})
	}
}

const hush = `
variable "password" {
  type      = string
  sensitive = true
}
variable "fallback" {
  sensitive = true
  default   = "fallback-of-the-source"
}
variable "fromenv" {
  sensitive = true
  default   = env("TOKEN")
}
secret "cookie" {}
locals {
  url = "redis://:${var.password}@web"
}
statefulset "web" {
  replicas = 2

  volume "data" {
    options = { o = "password=${var.password},member=${self.name}" }
  }
  container "web" {
    image   = "ghcr.io/web:1"
    command = ["web", "-p", var.password]
    args    = ["--url", local.url, "--cookie", secret.cookie]
    env     = { PASSWORD = var.password, FALLBACK = var.fallback, TOKEN = var.fromenv }

    mount "data" {
      path = "/data"
    }
    file "/etc/web.conf" {
      content = "cookie=${secret.cookie} ${self.name} ${var.fallback}"
    }
    file "/etc/tls.key" {
      sensitive = true
      content   = file("tls.key")
    }
    file "/etc/word" {
      sensitive = true
      content   = "written-in-the-source"
    }
    probe "readiness" {
      http {
        port    = 80
        headers = { Authorization = "Bearer ${secret.cookie}" }
      }
    }
    probe "liveness" {
      exec {
        command = ["ping", "-a", var.password]
      }
    }
    log {
      driver  = "splunk"
      options = { splunk-token = var.password }
    }
  }
}`

// hushed are the values of hush that nobody may see.
var hushed = []string{
	"given-password-7f3a", "other-password-9c2b", "fallback-of-the-source", "token-of-environment", "key-of-tls-in-a-file", "written-in-the-source", "sent-registry-password",
}

func hushRequest(password string) client.ApplyRequest {
	r := request(hush, "password="+password)
	r.Scopes[0].Inputs.Env = map[string]string{"TOKEN": "token-of-environment"}
	r.Scopes[0].Inputs.Files = map[string][]byte{"tls.key": []byte("key-of-tls-in-a-file")}
	r.Registries = map[string]jobspecs.RegistryAuth{"ghcr.io": {Username: "ci", Password: "sent-registry-password"}}
	return r
}

// ears hear everything that a daemon says.
type ears struct {
	t     *testing.T
	heard map[string]*bytes.Buffer
}

func (e *ears) hear(what string, v any, err error) {
	e.t.Helper()
	if e.heard[what] == nil {
		e.heard[what] = &bytes.Buffer{}
	}
	if err != nil {
		fmt.Fprintln(e.heard[what], err)
	}
	enc := json.NewEncoder(e.heard[what])
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		e.t.Error(err)
	}
}

func (e *ears) quiet(secrets []string) {
	e.t.Helper()
	for what, text := range e.heard {
		for _, s := range secrets {
			for _, form := range []string{s, encoded(s)} {
				if strings.Contains(text.String(), form) {
					e.t.Errorf("%s tells %q:\n%s", what, s, text)
				}
			}
		}
	}
}

// encoded is how JSON writes bytes.
func encoded(s string) string {
	b, _ := json.Marshal([]byte(s))
	return strings.Trim(string(b), `"=`)
}

func TestNothingSensitiveIsToldByTheDaemonNorStoredInTheClear(t *testing.T) {
	dir := t.TempDir()
	e := &ears{t: t, heard: map[string]*bytes.Buffer{"log": {}}}
	var all []string
	synctest.Test(t, func(t *testing.T) {
		var world *sim.World
		d, err := New(Config{
			DataDir: dir, DNSOff: true, Log: hclog.New(&hclog.LoggerOptions{Level: hclog.Trace, Output: e.heard["log"]}),
			Engine: func(id string, _ Hooks) (Parts, error) {
				world = sim.New(sim.Config{Daemon: id})
				world.Program("ghcr.io/web:1", sim.Program{Remote: true, Password: "sent-registry-password"})
				engine := sim.NewEngine(world)
				return Parts{Engine: engine, Volumes: world.Volumes(), Run: engine.Run, Name: func(context.Context) (string, error) { return "sim", nil }}, nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		s := &stage{Daemon: d, t: t, world: world}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- d.Run(ctx) }()
		s.settle()

		plan, err := s.Plan(t.Context(), hushRequest(hushed[0]))
		e.hear("plan of a new set", plan, err)
		if len(plan.Sealed) == 0 {
			t.Error("the plan is not sealed")
		}
		world.Fail(sim.Fault{Verb: "volume.create", Times: 2, Err: fmt.Errorf("mount data-web-0: o=password=%s: invalid argument", hushed[0])})
		resp, err := s.Apply(t.Context(), hushRequest(hushed[0]))
		e.hear("apply", resp, err)
		if err != nil {
			t.Fatal(err)
		}
		s.settle()
		if st := s.status(); st.ReadyReplicas != 2 {
			t.Errorf("status = %+v: want both ready", st)
		}
		secret, err := d.store.Secret("default", "cookie")
		if err != nil {
			t.Fatal(err)
		}
		all = append(hushed, secret.Value)

		plan, err = s.Plan(t.Context(), hushRequest(hushed[1]))
		e.hear("plan of a change", plan, err)
		if !strings.Contains(e.heard["plan of a change"].String(), "(sensitive, another value)") {
			t.Errorf("the plan does not tell of the change: %s", e.heard["plan of a change"])
		}
		refusal := fmt.Errorf("refused: web -p %s --cookie %s", hushed[1], secret.Value)
		world.Fail(sim.Fault{Verb: "create", Times: 40, Err: refusal})
		sealed, err := s.Apply(t.Context(), client.ApplyRequest{Sealed: plan.Sealed})
		e.hear("apply of a sealed plan", sealed, err)
		s.settle()
		everything(s, e, "while the engine refuses")
		world.Mend()
		s.settle()

		kept := hushRequest("")
		delete(kept.Scopes[0].Inputs.Vars, "password")
		plan, err = s.Plan(t.Context(), kept)
		e.hear("plan that keeps a value", plan, err)
		if !strings.Contains(e.heard["plan that keeps a value"].String(), "variable password was not given and keeps its stored value\"") {
			t.Errorf("the plan does not say what is kept: %s", e.heard["plan that keeps a value"])
		}
		for _, text := range []string{
			strings.Replace(hush, `"-p", var.password`, `"-p", cidrhost(var.password, 1)`, 1), strings.Replace(hush, `"ghcr.io/web:1"`, "var.password", 1),
		} {
			r := hushRequest(hushed[0])
			r.Scopes[0].Sources[0].Text = []byte(text)
			_, err := s.Apply(t.Context(), r)
			var p *client.Problem
			if !errors.As(err, &p) {
				t.Errorf("a wrong spec: %v", err)
			}
			e.hear("apply of a wrong spec", p, err)
		}
		r, err := s.Rollout(t.Context(), web, client.RolloutRequest{Do: "undo"})
		e.hear("undo", r, err)
		s.settle()
		everything(s, e, "in the end")
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	for _, told := range []string{"refused: web -p (sensitive) --cookie (sensitive)", "o=password=(sensitive): invalid argument"} {
		if events := e.heard["while the engine refuses: GET /v1/events"].String(); !strings.Contains(events, told) {
			t.Errorf("%q is missing in %s", told, events)
		}
	}
	onDisk(t, e, dir)
	e.quiet(all)
}

// everything asks every route that reads.
func everything(s *stage, e *ears, when string) {
	handler := (&api.Server{Service: s.Daemon}).Handler()
	for _, path := range []string{
		"/v1/sets", "/v1/sets/default/web", "/v1/sets/default/web/history", "/v1/sets/default/web/source", "/v1/members", "/v1/members/default/web-0/explain",
		"/v1/members/default/web-1/explain", "/v1/secrets", "/v1/events", "/v1/version", "/metrics", "/healthz", "/readyz",
	} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest("GET", path, nil).WithContext(s.t.Context()))
		e.hear(when+": GET "+path, w.Body.String(), nil)
	}
	if !strings.Contains(e.heard[when+": GET /v1/sets/default/web/history"].String(), "$sensitive") {
		s.t.Error("the history shows no template with something hidden")
	}
}

func onDisk(t *testing.T, e *ears, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		b, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		buffer := &bytes.Buffer{}
		buffer.WriteString(strings.ToValidUTF8(string(b), "?"))
		e.heard["file "+entry.Name()] = buffer
	}
}

func TestASealedPlanIsOfItsDaemonAlone(t *testing.T) {
	var sealed []byte
	play(t, func(s *stage) {
		plan, err := s.Plan(t.Context(), hushRequest("given"))
		if err != nil || len(plan.Sealed) == 0 {
			t.Fatalf("plan = %+v, %v", plan, err)
		}
		sealed = plan.Sealed
		if _, err := s.Apply(t.Context(), client.ApplyRequest{Sealed: sealed, Scopes: request(cookieSpec).Scopes}); err == nil {
			t.Error("both a sealed plan and scopes were taken")
		}
		plain, err := s.Plan(t.Context(), request(twoWebs, "image=web:1"))
		if err != nil || plain.Sealed != nil {
			t.Errorf("a plan without anything sensitive is sealed: %v", err)
		}
		made, err := s.Plan(t.Context(), request(cookieSpec))
		if err != nil || made.Sealed != nil {
			t.Errorf("a plan whose secrets are the daemon's own is sealed: %v", err)
		}
	})
	play(t, func(s *stage) {
		var p *client.Problem
		if _, err := s.Apply(t.Context(), client.ApplyRequest{Sealed: sealed}); !errors.As(err, &p) || p.Type != client.ProblemInvalid || !strings.Contains(p.Title, "another daemon") {
			t.Errorf("apply = %v", err)
		}
	})
}

func TestRegistryCredentialsReachAPodThatWaitsForThem(t *testing.T) {
	play(t, func(s *stage) {
		s.world.Program("ghcr.io/web:1", sim.Program{Remote: true, Password: "right"})
		text := strings.Replace(twoWebs, `type = string`, `default = "ghcr.io/web:1"`, 1)
		first := s.apply(text)
		if st := s.status(); st.ReadyReplicas != 0 || st.Members[0].Phase != "Failed" {
			t.Fatalf("without credentials: %+v", st.Members)
		}
		r := request(text)
		r.Registries = map[string]jobspecs.RegistryAuth{"ghcr.io": {Username: "ci", Password: "right"}, "docker.io": {Username: "ci", Password: "other"}}
		resp, err := s.Apply(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		if resp.Results[0].Revision != first.Revision {
			t.Errorf("revision %s, want %s: credentials roll nobody", resp.Results[0].Revision, first.Revision)
		}
		for range 10 {
			s.settle()
		}
		if st := s.status(); st.ReadyReplicas != 2 {
			t.Errorf("with credentials: %+v", st.Members)
		}
		v, err := s.store.Look(web)
		if want := map[string]jobspecs.RegistryAuth{"ghcr.io": {Username: "ci", Password: "right"}}; err != nil || !reflect.DeepEqual(v.Registries, want) {
			t.Errorf("stored = %v, %v; want those that its images need", v.Registries, err)
		}
		if again, err := s.Apply(t.Context(), r); err != nil || again.Results[0].Changed {
			t.Errorf("the same once more: %+v, %v", again, err)
		}
	})
}

func TestTheLabelOfASensitiveRenderingNeedsTheKey(t *testing.T) {
	play(t, func(s *stage) {
		s.apply(cookieSpec)
		spec := s.rendering(web)
		if len(spec.Key) == 0 {
			t.Fatal("the rendering has no key")
		}
		guess := spec
		guess.Key = nil
		if guess.Digest() == spec.Digest() {
			t.Error("whoever guesses the value can tell by the digest")
		}
		with := spec
		with.Containers = slices.Clone(spec.Containers)
		with.Containers[0].Auth = &jobspecs.RegistryAuth{Username: "a", Password: "b"}
		if with.Digest() != spec.Digest() {
			t.Error("credentials make another rendering")
		}
	})
	play(t, func(s *stage) {
		s.apply(twoWebs, "image=web:1")
		if spec := s.rendering(web); spec.Key != nil {
			t.Error("a rendering without anything sensitive has a key")
		}
	})
}

func TestAFileThatSaysLessBringsNoStoredValueToLight(t *testing.T) {
	play(t, func(s *stage) {
		hidden := "variable \"word\" {\n default = \"none\"\n sensitive = true\n}\nstatefulset \"web\" {\n container \"web\" {\n image = \"web:1\"\n env = { WORD = var.word }\n}\n}"
		s.apply(hidden, "word=stored-word-4d1c")
		p, err := s.Plan(t.Context(), request(strings.Replace(hidden, " sensitive = true\n", "", 1)))
		if err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf("%+v", p)
		if strings.Contains(text, "stored-word-4d1c") || !strings.Contains(text, "variable word was sensitive and is not any more") {
			t.Errorf("plan = %s", text)
		}
	})
}
