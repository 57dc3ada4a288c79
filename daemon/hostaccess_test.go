package daemon

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stsd/stsd/daemon/client"
)

func reached(mode, env string) string {
	return fmt.Sprintf(`
statefulset "web" {
  replicas = 2
  host_access { mode = %q }
  container "web" {
    image = "web:1"
    env   = { V = %s }
    port "http" { container = 8080 }
  }
}`, mode, env)
}

// published are the ports of members on the host, and who is stale.
func (s *stage) published() string {
	var out []string
	for _, m := range s.status().Members {
		text := m.Name
		for _, p := range m.Ports {
			text += fmt.Sprintf(" %s:%d", p.HostIP, p.Host)
		}
		if m.Stale {
			text += " stale"
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

func (s *stage) summaries(r client.ApplyRequest) (planned, said string) {
	s.t.Helper()
	p, err := s.Plan(s.t.Context(), r)
	if err != nil {
		s.t.Fatal(err)
	}
	a, err := s.Apply(s.t.Context(), r)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, d := range a.Diagnostics {
		said += d.Severity + ": " + d.Summary + "\n"
	}
	s.settle()
	return strings.Join(p.Plans[0].Warnings, "\n"), said
}

func TestAnotherHostAccessIsShownAsPendingUntilTheNextStart(t *testing.T) {
	t.Parallel()
	play(t, func(s *stage) {
		members := `join(",", set.members[*].name)`
		s.apply(reached("direct", members))
		s.settle()
		want(t, "at first", s.published(), "web-0 :0, web-1 :0")

		pending := `host_access = "ports" takes effect at its next start: stsd restart web`
		planned, said := s.summaries(request(reached("ports", members)))
		want(t, "the plan warns", planned, "web-0, web-1: "+pending)
		want(t, "apply warns", said, "warning: web: web-0, web-1: "+pending+"\n")
		want(t, "what runs is shown", s.published(), "web-0 :0 stale, web-1 :0 stale")
		want(t, "why", s.status().Members[1].StaleWhy, pending+"-1")
		e, err := s.Explain(t.Context(), "default", "web-1")
		if err != nil || !strings.Contains(fmt.Sprint(e), pending+"-1 (stale)") {
			t.Errorf("explain says %+v, %v", e, err)
		}

		if err := s.scale(3, client.Write{}); err != nil {
			t.Fatal(err)
		}
		want(t, "published beside another reason", s.published(), "web-0 :0 stale, web-1 :0 stale, web-2 127.0.0.1:8082")
		if why := s.status().Members[0].StaleWhy; !strings.Contains(why, pending+"-0; what its expressions say") {
			t.Errorf("it is stale for %q", why)
		}

		if err := s.members("restart", client.Write{}); err != nil {
			t.Fatal(err)
		}
		want(t, "restarted", s.published(), "web-0 127.0.0.1:8080, web-1 127.0.0.1:8081, web-2 127.0.0.1:8082")

		planned, said = s.summaries(request(reached("loopback", `"changed"`)))
		want(t, "nobody waits who is replaced", planned+said, "dropped, since the file changed: replicas = 3")
		if got := s.published(); strings.Contains(got, "stale") || !strings.Contains(got, "web-1 127.87.") {
			t.Errorf("replaced: %s", got)
		}
		planned, said = s.summaries(request(reached("none", `"changed"`)))
		if !strings.HasPrefix(planned, "web-0, web-1") || said == "" {
			t.Errorf("what is published stays so: plan %q, apply %q", planned, said)
		}
		if err := s.members("restart", client.Write{}); err != nil {
			t.Fatal(err)
		}
		planned, said = s.summaries(request(reached("direct", `"changed"`)))
		want(t, "none publishes as direct does", planned+said+s.published(), "web-0 :0, web-1 :0")
	})
}

// A member that starts before the set has formed is not stale because it has.
func TestNobodyIsStaleBecauseTheSetHasFormed(t *testing.T) {
	t.Parallel()
	play(t, func(s *stage) {
		text := `
statefulset "web" {
  replicas = 2
  container "web" {
    image = "web:1"
    env   = { STATE = set.formed ? "existing" : "new", DATA = self.fresh ? "init" : "go", WHO = join(",", set.members[*].name) }
    mount "data" { path = "/data" }
  }
  volume "data" {}
}`
		s.apply(text)
		s.settle()
		want(t, "formed", s.published(), "web-0, web-1")
		if err := s.scale(3, client.Write{}); err != nil {
			t.Fatal(err)
		}
		want(t, "grown", s.published(), "web-0 stale, web-1 stale, web-2")
		want(t, "why", s.status().Members[0].StaleWhy, "what its expressions say of the set (members, addresses, other sets) changed since it started; a restart gives it the new values: stsd restart web-0")
		s.world.Kill("web-0")
		s.settle()
		want(t, "a start sees the set as it is", s.published(), "web-0, web-1 stale, web-2")
		if env := s.rendering(web).Containers[0].Env; env["STATE"] != "existing" || env["DATA"] != "go" {
			t.Errorf("the next start has %v", env)
		}
	})
}

func TestAPlanAndAnApplyWarnOfAnAbsentNetwork(t *testing.T) {
	t.Parallel()
	play(t, func(s *stage) {
		spec := func(lines string) client.ApplyRequest {
			return request("statefulset \"web\" {\n" + lines + "\ncontainer \"web\" {\nimage = \"web:1\"\n}\n}")
		}
		s.world.NoNetwork("shop")
		missing := "network shop is not there: start what makes it, or make it (docker network create shop)"
		planned, said := s.summaries(spec("replicas = 2"))
		want(t, "no network", planned+said, "")
		planned, said = s.summaries(spec("replicas = 2\nnetworks = [\"shop\", \"there\"]"))
		want(t, "the plan of an update", planned, "web-0, web-1: "+missing)
		want(t, "its apply", said, "warning: web: web-0, web-1: "+missing+"\n")
		s.world.Network("shop")
		s.settle()
		want(t, "it is made", s.names(), "web-0 Running true, web-1 Running true")
		planned, said = s.summaries(spec("replicas = 3\nnetworks = [\"shop\", \"there\"]"))
		want(t, "it is there", planned+said, "")
		s.world.NoNetwork("shop")
		planned, _ = s.summaries(client.ApplyRequest{Namespace: "other", Scopes: spec("networks = [\"shop\"]").Scopes})
		want(t, "a new set of another namespace", planned, "web-0: "+missing)
	})
}
