package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/stsd/stsd/jobspecs"
)

type setRow struct{ Name, State string }

// rows are the sets that ls shows, as "web Stray".
func (w *world) rows() string {
	w.t.Helper()
	var out []string
	for _, r := range decode[[]setRow](w, "ls") {
		out = append(out, strings.TrimSpace(r.Name+" "+map[bool]string{true: r.State}[r.State == "Stray"]))
	}
	return strings.Join(out, ", ")
}

func (w *world) lists(want string) {
	w.t.Helper()
	if got := w.rows(); got != want {
		w.t.Errorf("ls shows %q, want %q", got, want)
	}
}

// running tells whether a container runs.
func (w *world) running(id string) bool {
	w.t.Helper()
	c, err := engine().ContainerInspect(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return c.State.Running
}

func TestAnOrphanedSetIsTakenOverWithoutARestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(spec{})
	before, address := w.ids("web"), w.address("web-2")
	w.ok("delete", "web", "--cascade=orphan")
	w.empty()
	w.terminate()
	w.start()
	w.lists("web Stray")
	docker(t, "kill", before["web-2"])
	w.apply(spec{name: "other", replicas: 3}) // it is not given the addresses of those that were left
	if w.running(before["web-2"]) || !w.running(before["web-0"]) || !w.running(before["web-1"]) {
		t.Error("members of a set that was forgotten were touched")
	}
	w.apply(spec{})
	w.lists("other, web")
	w.untouched(before, "web-0", "web-1")
	w.prints(boots("web-1", 1), "exec", "web-1", "--", "/demo", "cat", "/data/log")
	w.prints(boots("web-2", 2), "exec", "web-2", "--", "/demo", "cat", "/data/log")
	if got := w.address("web-2"); got != address {
		t.Errorf("web-2 has address %s, want %s", got, address)
	}
}

func TestAStrayWithOurLabelsIsShownAndLeftAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(spec{replicas: 1})
	c := *idleServer
	c.Labels = map[string]string{
		jobspecs.LabelDaemon: w.id, jobspecs.LabelNamespace: w.ns, jobspecs.LabelSet: "ghost", jobspecs.LabelOrdinal: "0",
		jobspecs.LabelRevision: "ghost-bcdfghjklm", jobspecs.LabelContainer: "web", jobspecs.LabelKind: jobspecs.KindMain,
	}
	id := w.foreign(&c, nil, w.container("ghost-0"))
	if err := engine().ContainerStart(t.Context(), id, container.StartOptions{}); err != nil {
		t.Fatal(err)
	}
	w.terminate() // what another daemon of this id left is met at a connection
	w.start()
	w.await("the stray to be shown", func() error {
		if got := w.rows(); got != "web, ghost Stray" {
			return fmt.Errorf("ls shows %q", got)
		}
		return nil
	})
	w.prints(w.ns+"/ghost-0\n", "ps", "ghost", "-o", "name")
	stray := "its members run as strays"
	w.fails(1, []string{stray, "docker rm -f"}, "status", "ghost")
	w.fails(1, []string{stray}, "explain", "ghost-0")
	w.fails(125, []string{stray}, "exec", "ghost-0", "--", "/demo", "true")
	w.fails(1, []string{"ghost"}, "delete", "ghost", "--yes")
	docker(t, "kill", id)
	w.ok("scale", "web", "2")
	if got := docker(t, "inspect", "-f", "{{.Name}} {{.State.Status}}", id); got != "/"+w.container("ghost-0")+" exited" {
		t.Errorf("the stray is %q, want it as it ended", got)
	}
}

func TestAnotherDaemonsObjectsAreNamedAndLeftAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(spec{replicas: 2})
	before, trace := w.ids("web"), w.trace("web")
	other := newWorld(t)
	other.ns = w.ns
	owner := "of another stsd, " + w.id
	other.fails(3, []string{w.volume("data-web-0"), owner}, "apply", "--timeout", patience.String(), other.spec(spec{replicas: 2}))
	other.fails(3, []string{w.network(), owner, "left alone"}, "apply", "--timeout", patience.String(), other.spec(spec{name: "guest", replicas: 1, noVolume: true}))
	other.explains("guest-0", "NetworkTaken", owner, "docker network inspect "+w.network())
	other.lists("guest, web")
	other.ok("delete", "web", "--volumes=delete", "--yes", "--wait", "--timeout", patience.String())
	w.settled("web", 2)
	w.untouched(before, "web-0", "web-1")
	if now := w.trace("web"); now != trace {
		t.Errorf("web-0 is %+v, was %+v", now, trace)
	}
}

// secretive is a set that holds something sensitive.
const secretive = `
variable "password" {
  type      = string
  sensitive = true
}
secret "cookie" {}

statefulset "keeper" {
  replicas          = 1
  termination_grace = "5s"
  volume "data" {
  }
  container "web" {
    image = "stsd-demo:1"
    mount "data" {
      path = "/data"
    }
    file "/run/secret" {
      content   = "${var.password} ${secret.cookie}"
      sensitive = true
    }
  }
}
`

func TestALostStateFileIsMadeAgainFromLabels(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(spec{replicas: 2})
	keeper := w.file("keeper.hcl", secretive)
	w.ok("apply", "--timeout", patience.String(), "-var", "password=x", keeper)
	web, kept, id, trace := w.ids("web"), w.ids("keeper"), w.id, w.trace("web")
	secret := w.ok("exec", "keeper-0", "--", "/demo", "cat", "/run/secret")
	revision := w.status("web").UpdateRevision
	w.kill()
	if err := os.RemoveAll(w.state()); err != nil {
		t.Fatal(err)
	}
	w.flags = append(w.flags, "--take-over", id)
	w.start()
	if w.id != id {
		t.Fatalf("the daemon is %s, want %s", w.id, id)
	}

	w.await("both sets to be known", func() error {
		if got := w.rows(); got != "keeper, web" {
			return fmt.Errorf("ls shows %q", got)
		}
		return nil
	})
	w.await("web to be put together", func() error {
		s := w.status("web") // before the first look there is only what the store says
		if got := s.condition("Stalled"); !strings.Contains(got, "SpecLost") || s.UpdateRevision != revision || s.Available != 2 {
			return fmt.Errorf("Stalled = %q, status %+v; want SpecLost, %s and 2 available", got, s, revision)
		}
		return nil
	})
	w.fails(1, []string{"its spec was lost", "apply it again"}, "scale", "web", "3")
	docker(t, "kill", web["web-1"])
	w.terminate()
	w.start() // with the same flag
	if w.running(web["web-1"]) {
		t.Error("web-1 was started again without its spec")
	}

	w.apply(spec{replicas: 2})
	w.untouched(web, "web-0")
	if now := w.trace("web"); now != trace {
		t.Errorf("web-0 is %+v, was %+v", now, trace)
	}
	w.prints(boots("web-1", 2), "exec", "web-1", "--", "/demo", "cat", "/data/log")
	if got := w.status("web"); got.UpdateRevision != revision || got.condition("Stalled") != "" {
		t.Errorf("after an equal apply: %+v, want revision %s", got, revision)
	}
	w.ok("scale", "web", "3")

	// What is sensitive was in the file alone: the key that named the revision, and the secret.
	w.ok("apply", "--timeout", patience.String(), "-var", "password=x", keeper)
	w.changedAll(kept, w.ids("keeper"))
	w.prints(boots("keeper-0", 2), "exec", "keeper-0", "--", "/demo", "cat", "/data/log")
	if now := w.ok("exec", "keeper-0", "--", "/demo", "cat", "/run/secret"); now == secret || !strings.HasPrefix(now, "x ") {
		t.Errorf("the file is %q, was %q; want another secret", now, secret)
	}
}

// recovery_wait staggers members that come back: each waits until the one before is
// available, or until that time has passed since it started.
func TestMembersComeBackOneAfterTheOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	health := filepath.Join(w.dir, "health")
	for _, dir := range []string{health, filepath.Join(health, "slow"), filepath.Join(health, "well")} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "ok"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const wait = 3 * time.Second
	staged := func(name, wait string) string {
		s := spec{name: name, replicas: 2, noVolume: true, noProbe: true,
			set:    fmt.Sprintf("  pod_management = \"parallel\"\n  recovery_wait = %q\n  bind \"health\" {\n    source = %q\n  }\n", wait, filepath.Join(health, name)),
			inside: "    mount \"health\" {\n      path = \"/health\"\n    }\n    probe \"readiness\" {\n      exec {\n        command = [\"/demo\", \"cat\", \"/health/ok\"]\n      }\n      period = \"1s\"\n    }\n"}
		return s.String()
	}
	w.ok("apply", "--timeout", patience.String(), w.file("staged.hcl", staged("slow", wait.String())+staged("well", "10m")))
	w.terminate()
	for _, ids := range []map[string]string{w.ids("slow"), w.ids("well")} {
		for _, id := range ids {
			docker(t, "stop", "-t", "1", id)
		}
	}
	if err := os.Remove(filepath.Join(health, "slow", "ok")); err != nil { // none of them gets ready again
		t.Fatal(err)
	}
	w.start()
	w.awaitFor(3*patience, "well members, long before the wait is over", func() error {
		if s := w.status("well"); s.Available != 2 {
			return fmt.Errorf("%+v", s)
		}
		return nil
	})
	w.await("slow members to run", func() error {
		for _, m := range w.status("slow").Members {
			if m.Phase != "Running" || m.Ready {
				return fmt.Errorf("%+v", m)
			}
		}
		return nil
	})
	for _, m := range []string{"slow", "well"} {
		earliest := w.started(m + "-0")
		if m == "slow" {
			earliest = earliest.Add(wait)
		}
		if at := w.created(m + "-1"); at.Before(earliest) {
			t.Errorf("%s-1 was made at %s, want not before %s", m, at, earliest)
		}
	}
}
