package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// following is how long these tests follow: several members are made anew in turn.
const following = "5m"

func (w *world) follow(s spec) {
	w.t.Helper()
	w.ok("apply", "--timeout", following, w.spec(s))
}

// volumes are the rows of status.
func (w *world) volumes() string {
	w.t.Helper()
	var rows []string
	for _, v := range w.status("web").Volumes {
		rows = append(rows, strings.TrimPrefix(v.Name, w.ns+".")+" "+v.State)
	}
	return strings.Join(rows, ", ")
}

func TestAClaimIsAddedAndTakenAwayMemberByMember(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const more, mounted = "  volume \"log\" {\n  }", "    mount \"log\" {\n      path = \"/log\"\n    }"
	w.follow(spec{})
	for _, m := range []string{"web-0", "web-1", "web-2"} {
		w.ok("exec", m, "--", "/demo", "write", "/data/kept", m)
	}

	w.follow(spec{set: more, inside: mounted})
	w.settled("web", 3)
	if w.created("web-1").Before(w.started("web-2")) || w.created("web-0").Before(w.started("web-1")) {
		t.Error("members got their new volume out of turn")
	}
	for _, m := range []string{"web-0", "web-1", "web-2"} {
		w.prints(m+"\n", "exec", m, "--", "/demo", "cat", "/data/kept")
		w.ok("exec", m, "--", "/demo", "write", "/log/new", m)
	}
	if got, want := w.volumes(), "data-web-0 bound, log-web-0 bound, data-web-1 bound, log-web-1 bound, data-web-2 bound, log-web-2 bound"; got != want {
		t.Errorf("volumes = %s, want %s", got, want)
	}

	w.fails(6, []string{"data: claim log is no longer mounted"}, "apply", w.spec(spec{}))
	w.ok("apply", "--yes", "--timeout", following, w.spec(spec{}))
	w.settled("web", 3)
	if got, want := w.volumes(), "data-web-0 bound, log-web-0 retained, data-web-1 bound, log-web-1 retained, data-web-2 bound, log-web-2 retained"; got != want {
		t.Errorf("volumes = %s, want %s", got, want)
	}
	w.ok("rollout", "undo", "web", "--yes", "--timeout", following)
	for _, m := range []string{"web-0", "web-1", "web-2"} {
		w.prints(m+"\n", "exec", m, "--", "/demo", "cat", "/log/new")
	}
}

// sized is a set of one member with a claim of that size; "" none.
func sized(size string) spec {
	claim := "  volume \"data\" {\n  }"
	if size != "" {
		claim = fmt.Sprintf("  volume \"data\" {\n    size = %q\n  }", size)
	}
	return spec{replicas: 1, noVolume: true, set: claim, inside: "    mount \"data\" {\n      path = \"/data\"\n    }"}
}

func TestASizeIsALimitThatIsWatched(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.follow(sized(""))
	before := w.ids("web")
	for i := range 4 {
		w.ok("exec", "web-0", "--", "/demo", "write", fmt.Sprintf("/data/%d", i), strings.Repeat("x", 100<<10))
	}

	w.ok("apply", "--timeout", following, w.spec(sized("300KiB")))
	w.awaitFor(2*time.Minute, "the volume to be known as too full", func() error {
		if got := w.status("web").condition("Degraded"); !strings.HasPrefix(got, "VolumeOverSize: volume "+w.volume("data-web-0")+" holds ") {
			return fmt.Errorf("Degraded = %q", got)
		}
		return nil
	})
	w.explains("web-0", "more than its size 300KiB", "stsd apply FILE, with a larger size")
	if out := w.ok("ps", "web"); !strings.Contains(out, "Running (VolumeOverSize)") {
		t.Errorf("ps says\n%s", out)
	}
	if out := w.ok("plan", w.spec(sized("200KiB"))); !strings.Contains(out, "shrinks from 300KiB to 200KiB") || !strings.Contains(out, "more than its size 200KiB would be") {
		t.Errorf("plan says\n%s", out)
	}

	w.ok("apply", "--timeout", following, w.spec(sized("64MiB")))
	w.await("the larger size to count", func() error {
		s := w.status("web")
		if got := s.condition("Degraded") + s.Members[0].Reason; got != "" {
			return fmt.Errorf("still %s", got)
		}
		return nil
	})
	w.untouched(before, "web-0")
}
