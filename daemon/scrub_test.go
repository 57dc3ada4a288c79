package daemon

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stsd/stsd/daemon/api"
	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/daemon/planner"
	"github.com/stsd/stsd/daemon/store"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/runtime/pods"
	"github.com/stsd/stsd/runtime/sim"
)

const leaky = `
variable "s" {
  sensitive = true
}
secret "cookie" {}
statefulset "web" {
  container "web" {
    image = "web:1"

    file "/x" {
      content = "pw=${var.s}\ncookie=${secret.cookie}\nof=${self.name}-${md5(var.s)}\n"
    }
    probe "readiness" {
      exec {
        command = ["sh", "-c", "sed s/pw=// /x; exit 1"]
      }
    }
    lifecycle {
      pre_stop {
        exec {
          command = ["sh", "-c", "sed s/pw=// /x; exit 1"]
        }
      }
    }
  }
}`

// toldOf is everything that can be read of a set.
func (s *stage) toldOf(key jobspecs.Key) string {
	s.t.Helper()
	out := &bytes.Buffer{}
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	status, err := s.Status(s.t.Context(), key)
	if err == nil {
		_ = enc.Encode(status)
	}
	for _, m := range status.Members {
		e, err := s.Explain(s.t.Context(), key.Namespace, m.Name)
		if err != nil {
			s.t.Error(err)
		}
		_ = enc.Encode(e)
	}
	_ = s.Events(s.t.Context(), api.EventQuery{}, func(e jobspecs.Event) error { return enc.Encode(e) })
	return out.String()
}

func TestWhatAProbeOrAHookPrintsOfASecretIsNotTold(t *testing.T) {
	const password = "Tr0ub4dor&3"
	play(t, func(s *stage) {
		var printed atomic.Value // the host asks while the test goes on
		printed.Store("")
		s.world.Program("web:1", sim.Program{
			Answer: func(jobspecs.Probe, time.Duration) error {
				return errors.New("exec sed s/pw=// /x: exit code 1: " + printed.Load().(string))
			},
			Hook: func(pods.Hook) (time.Duration, error) {
				return 0, errors.New("exec sed s/pw=// /x: exit code 1: " + printed.Load().(string))
			},
		})
		if _, err := s.Apply(t.Context(), request(leaky, "s="+password)); err != nil {
			t.Fatal(err)
		}
		content := func() string { return string(s.rendering(web).Containers[0].Files[0].Content) }
		cookie := strings.TrimPrefix(strings.Split(content(), "\n")[1], "cookie=")
		for name, c := range map[string]struct {
			prints func() string
			bare   string // what must not be read
		}{
			"the value":                  {func() string { return password }, password},
			"a line of the file":         {func() string { return strings.Split(content(), "\n")[0] }, password},
			"a secret":                   {func() string { return "<" + cookie + ">" }, cookie},
			"in base64":                  {func() string { return base64.StdEncoding.EncodeToString([]byte(password)) }, base64.RawStdEncoding.EncodeToString([]byte(password))},
			"in base64, with a line end": {func() string { return base64.StdEncoding.EncodeToString([]byte(password + "\n")) }, base64.RawStdEncoding.EncodeToString([]byte(password))},
			"in hexadecimal":             {func() string { return hex.EncodeToString([]byte(cookie)) }, hex.EncodeToString([]byte(cookie))},
			"made of it for a member":    {func() string { return strings.Split(content(), "\n")[2] }, strings.Split(content(), "\n")[2]},
			"cut in the middle":          {func() string { return cookie[:20] + "…" }, cookie[:20]},
		} {
			printed.Store(c.prints())
			time.Sleep(2 * time.Minute)
			if said := s.toldOf(web); strings.Contains(said, c.bare) || !strings.Contains(said, "exit code 1: ") || !strings.Contains(said, "(sensitive)") {
				t.Errorf("%s: %q is told, or nothing:\n%s", name, c.bare, said)
			}
		}
		printed.Store(password)
		if _, err := s.Rollout(t.Context(), web, client.RolloutRequest{Do: "restart"}); err != nil {
			t.Fatal(err)
		}
		s.settle()
		said := s.toldOf(web)
		if !strings.Contains(said, "PreStopFailed") && !strings.Contains(said, "pre_stop") {
			t.Errorf("the hook that failed is not told:\n%s", said)
		}
		if strings.Contains(said, password) || strings.Contains(said, cookie) {
			t.Errorf("a secret is told:\n%s", said)
		}
		state, err := os.ReadFile(s.cfg.DataDir + "/stsd.db")
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{password, cookie, base64.RawStdEncoding.EncodeToString([]byte(password))} {
			if bytes.Contains(state, []byte(text)) {
				t.Errorf("the state file holds %q", text)
			}
		}
	})
}

func TestArgumentsOfAProbeAreNotTold(t *testing.T) {
	play(t, func(s *stage) {
		s.world.Program("web:1", sim.Program{Answer: func(p jobspecs.Probe, _ time.Duration) error {
			return fmt.Errorf("exec %q: exit code 1: hunter42", p.Exec)
		}})
		text := strings.Replace(leaky, `"sed s/pw=// /x; exit 1"`, `"echo ${var.s}; exit 1"`, 1)
		if _, err := s.Apply(t.Context(), request(text, "s=hunter42")); err != nil {
			t.Fatal(err)
		}
		s.settle()
		if said := s.toldOf(web); strings.Contains(said, "hunter42") || !strings.Contains(said, "exit code 1: (sensitive)") {
			t.Errorf("told:\n%s", said)
		}
	})
}

// A text that is cut before it is scrubbed shows the first half of a secret.
func TestWhatAnEngineSaysIsCutAfterItIsScrubbed(t *testing.T) {
	long := strings.Repeat("x", 390) + "TopSecretPassword0123456789"
	l := &loop{unsaid: []string{"TopSecretPassword0123456789"}}
	w := planner.World{Pods: []runtime.Pod{{
		Message: long, Containers: []runtime.Container{{Message: long}}, Notes: []runtime.Note{{Message: long}},
	}}}
	l.hush(&w)
	pods := w.Pods
	want := strings.Repeat("x", 390) + "(sensitive"
	for _, got := range []string{pods[0].Message, pods[0].Containers[0].Message, pods[0].Notes[0].Message} {
		if got != want+"…" {
			t.Errorf("message = %q, want %q", got, want+"…")
		}
	}
}

// What was given before is in the files of members that run still, and what is given
// to others of the namespace may be in theirs.
func TestAllThatMustNotBeToldOfASetIsKnown(t *testing.T) {
	play(t, func(s *stage) {
		text := strings.Replace(leaky, `"web:1"`, `"ghcr.io/web:1"`, 1)
		for _, value := range []string{"the-first-value", "the-second-value"} {
			r := request(text, "s="+value)
			r.Registries = map[string]jobspecs.RegistryAuth{"ghcr.io": {Username: "ci", Password: "the-registrys"}}
			if _, err := s.Apply(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		other := store.Secret{Namespace: "other", Name: "cookie", Value: "anothers-secret"}
		beside := store.Secret{Namespace: "default", Name: "beside", Value: "of-a-set-beside"}
		if err := s.store.Commit(store.Commit{Secrets: []store.Secret{other, beside}}); err != nil {
			t.Fatal(err)
		}
		cookie, err := s.store.Secret("default", "cookie")
		if err != nil {
			t.Fatal(err)
		}
		v, err := s.store.Look(web)
		if err != nil {
			t.Fatal(err)
		}
		got := s.sensitiveTexts(&v)
		for _, want := range []string{"the-first-value", "the-second-value", "the-registrys", cookie.Value, beside.Value} {
			if !slices.Contains(got, want) {
				t.Errorf("texts = %q, want %q among them", got, want)
			}
		}
		if slices.Contains(got, other.Value) {
			t.Errorf("texts = %q: one is of another namespace", got)
		}
		v.Registries, v.Revisions = nil, nil
		if got := s.sensitiveTexts(&v); slices.Contains(got, "the-first-value") || !slices.Contains(got, cookie.Value) {
			t.Errorf("of a set without a history: %q", got)
		}
	})
}
