package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/daemon/planner"
	"github.com/stsd/stsd/daemon/store"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

// hidden is a set whose environment has something sensitive.
func hidden(value string) string {
	return `
variable "password" {
  default   = "x"
  sensitive = true
}
secret "cookie" {}
statefulset "web" {
  replicas = 2
  container "web" {
    image = "web:1"
    env = { WORD = ` + value + ` }
  }
}`
}

// A revision with something sensitive is named with the key file, and a generated
// secret stands in the state file alone.
func TestWhatIsSensitiveAfterALostStateFile(t *testing.T) {
	for _, c := range []struct {
		name, value string
		key         bool // the key file is still there
		same        bool
	}{
		{"a variable, with the key file", "var.password", true, true},
		{"a variable, without it", "var.password", false, false},
		{"a secret, with the key file", "secret.cookie", true, false},
		{"nothing sensitive, without it", `"x"`, false, true},
	} {
		dir, other := t.TempDir(), t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			first, stop := serving(t, dir, "", nil)
			before := first.apply(hidden(c.value))
			ids, id := containers(first), first.store.ID()
			stop()
			if c.key {
				if err := os.Rename(filepath.Join(dir, store.KeyFileName), filepath.Join(other, store.KeyFileName)); err != nil {
					t.Fatal(err)
				}
			}
			s, stop := serving(t, other, id, first.world)
			defer stop()
			again := s.apply(hidden(c.value))
			time.Sleep(time.Minute)
			s.settle()
			if same, left := again.Revision == before.Revision, containers(s) == ids; same != c.same || left != c.same {
				t.Errorf("%s: revision %s, was %s; containers %s, were %s; want them the same: %v", c.name, again.Revision, before.Revision, containers(s), ids, c.same)
			}
			want(t, "members", s.names(), "web-0 Running true, web-1 Running true")
		})
	}
}

func TestAForgottenSetWithSecretsIsTakenOverWithoutARestart(t *testing.T) {
	play(t, func(s *stage) {
		text := hidden(`"${var.password} ${secret.cookie}"`)
		s.apply(text)
		ids := containers(s)
		if _, err := s.Delete(t.Context(), web, client.DeleteRequest{Orphan: true}); err != nil {
			t.Fatal(err)
		}
		s.settle()
		s.apply(text)
		time.Sleep(time.Minute)
		want(t, "containers", containers(s), ids)
	})
}

func TestARenamedMemberIsToldOfAndStaysReady(t *testing.T) {
	play(t, func(s *stage) {
		s.apply(pair(""))
		ids := containers(s)
		s.world.Rename("web-1", "mine")
		s.settle()
		want(t, "containers", containers(s), ids)
		want(t, "members", s.names(), "web-0 Running true, web-1 Running true")
		want(t, "told", s.said("Renamed"), "its container was renamed to mine by hand, and is web-1 again")
	})
}

func TestAMemberWhoseNameIsTakenSaysWhatToType(t *testing.T) {
	m := one(func(m *jobspecs.Member, c *jobspecs.MemberContainer) {
		m.Namespace, m.Available, m.Reason, c.Reason = jobspecs.DefaultNamespace, true, runtime.ReasonRenamed, runtime.ReasonRenamed
		m.Message = "its container was renamed to mine and does not get its name back: container web-0 exists and is not ours"
	})
	e := explain(jobspecs.Status{Members: []jobspecs.Member{m}}, &m, planner.Plan{}, noon)
	want(t, "because", strings.Join(e.Because, "\n"), m.Message+"\nit runs as before; what looks for its container by name at the engine does not find it")
	want(t, "next", strings.Join(e.Next, "\n"), "docker inspect web-0\ndocker rename web-0 ANOTHER-NAME, and it has its name back")
}
