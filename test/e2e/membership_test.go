package e2e_test

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// shell is a set of busybox members that sleep, each with a volume at /data. hooks are
// further lines of the set.
func shell(replicas int, hooks string) spec {
	return spec{
		replicas: replicas, image: "busybox:1", noProbe: true,
		inside: "    args = [\"sh\", \"-c\", \"[ ! -e /data/crash ] && exec sleep 10000\"]\n    stop_signal = \"SIGKILL\"\n",
		set:    "  pod_management = \"parallel\"\n" + hooks,
	}
}

// hook is a hook block that runs a line of shell; more are further lines of it.
func hook(name, on, more, line string) string {
	return fmt.Sprintf("  hook %q {\n    on = %q\n%s\n    command = [\"sh\", \"-c\", %q]\n  }\n", name, on, more, line)
}

// applySlow is apply for a machine that runs other tests as well.
func (w *world) applySlow(s spec) {
	w.t.Helper()
	w.ok("apply", "--timeout", (3 * patience).String(), w.spec(s))
}

// in runs a line of shell in a member.
func (w *world) in(member, line string) string {
	w.t.Helper()
	return w.ok("exec", member, "--", "sh", "-c", line)
}

// boot is what a restart of the machine does: every container has ended, and the
// daemon begins.
func (w *world) boot(sets ...string) {
	w.t.Helper()
	w.terminate()
	for _, set := range sets {
		for _, id := range w.ids(set) {
			if out, err := exec.Command("docker", "stop", "-t", "1", id).CombinedOutput(); err != nil {
				w.t.Fatalf("%v: %s", err, out)
			}
		}
	}
	w.start()
}

// only waits until a set has these members and no others.
func (w *world) only(set string, members ...string) {
	w.t.Helper()
	w.awaitFor(2*patience, fmt.Sprintf("%s to have %v", set, members), func() error {
		ids := w.ids(set)
		for _, m := range members {
			if ids[m] == "" {
				return fmt.Errorf("it has %v", ids)
			}
		}
		if len(ids) != len(members) {
			return fmt.Errorf("it has %v", ids)
		}
		return nil
	})
}

// V25-V30: hooks run when the membership changes, once for each change, and for
// nothing else.
func TestHooksOfTheMembershipRunOncePerChangeAndAreToldWhich(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const tell = `echo "$STSD_REASON $STSD_MEMBER $STSD_ORDINAL $STSD_SET $STSD_NAMESPACE" >> /data/told`
	w.applySlow(shell(2, hook("form", "set_ready", "    once = true", tell)+hook("add", "join", "    ordinal = 0", tell)+hook("forget", "leave", "    ordinal = 0", tell)))
	var want []string
	told := func(when string, lines ...string) {
		t.Helper()
		for _, line := range lines {
			want = append(want, line+" web "+w.ns)
		}
		w.awaitFor(2*patience, "the hooks after "+when, func() error {
			got := strings.TrimSpace(w.in("web-0", "cat /data/told"))
			if got != strings.Join(want, "\n") {
				return fmt.Errorf("they were told %q, want %q", got, want)
			}
			return nil
		})
	}
	told("the first start", "set_ready web-0 0")
	w.ok("scale", "web", "3")
	told("a scale-up", "join web-2 2")
	before := w.ids("web")
	w.ok("restart", "web-2")
	w.ok("rollout", "restart", "web", "--timeout", (3 * patience).String())
	w.changedAll(before, w.ids("web"))
	told("a restart and an update")
	w.remove("web-2")
	w.comesBack("web-2", before["web-2"])
	w.settled("web", 3)
	told("a repair")
	w.ok("scale", "web", "2")
	told("a scale-down", "leave web-2 2")
	w.ok("scale", "web", "3")
	told("a scale-up with its old volume", "join web-2 2")
	w.ok("replace", "web-2", "--fresh-volume", "--yes")
	told("a fresh volume", "join web-2 2")
	w.ok("delete", "web", "--wait", "--timeout", patience.String())
}

func TestALeaveHookKeepsItsMemberAsLongAsItSaysNo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.applySlow(shell(2, hook("drain", "leave", "", `if [ -e /data/stay ]; then echo "$STSD_MEMBER still has shards"; exit 3; fi`)))
	w.in("web-1", "touch /data/stay")
	no := "hook drain says no: exit code 3: web-1 still has shards"
	w.fails(3, []string{no, "stsd explain"}, "scale", "web", "1", "--timeout", patience.String())
	w.only("web", "web-0", "web-1")
	w.explains("web-1", no, "is tried again in", "--force")
	w.await("ps to say when it is tried again", func() error {
		if out := w.ok("ps", "web-1"); !strings.Contains(out, "Running (HookFailed), next try in ") {
			return errors.New(out)
		}
		return nil
	})
	w.fails(0, []string{no}, "events", "web-1")
	w.await("the time of the next try", func() error {
		m := decode[[]struct {
			Reason, Message string
			NextTry         *time.Time `json:"next_try"`
		}](w, "ps", "web-1")[0]
		if m.Reason != "HookFailed" || m.Message != no || m.NextTry == nil {
			return fmt.Errorf("%+v", m)
		}
		return nil
	})

	w.in("web-1", "rm /data/stay") // nobody has to ask again
	w.only("web", "web-0")
}

func TestAHookThatHangsIsEndedAndForceGoesPastIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.applySlow(shell(2, hook("drain", "leave", "    timeout = \"2s\"", `echo >> /data/tries; sleep 20000`)))
	w.ok("scale", "web", "1", "--detach")
	w.explains("web-1", "hook drain says no: it did not end within 2s")
	w.await("a second try", func() error {
		if n := strings.Count(w.in("web-1", "cat /data/tries"), "\n"); n < 2 {
			return fmt.Errorf("%d tries", n)
		}
		return nil
	})
	if n := strings.Count(w.in("web-1", "ps"), "sleep 20000\n"); n > 1 {
		t.Errorf("%d commands run side by side", n)
	}
	w.ok("scale", "web", "1", "--force", "--timeout", patience.String())
	w.only("web", "web-0")
}

// A member that ended has nothing to say; what others have to do for it is done. One
// that runs is asked, ready or not.
func TestHowSickMembersLeave(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := shell(3, hook("out", "leave", "", `echo "out $STSD_MEMBER"; exit 4`)+hook("forget", "leave", "    ordinal = 0", `echo "forget $STSD_MEMBER" >> /data/told`))
	s.inside += `    restart {
      first   = "10m"
      initial = "10m"
      max     = "10m"
    }
    probe "readiness" {
      exec {
        command = ["sh", "-c", "[ ! -e /data/sick ]"]
      }
      period            = "1s"
      failure_threshold = 1
    }
`
	w.applySlow(s)
	w.in("web-1", "touch /data/sick")
	w.in("web-2", "touch /data/crash; kill -9 1 || true")
	if err := engine().ContainerKill(t.Context(), w.container("web-2"), "KILL"); err != nil {
		t.Log(err) // it has ended already
	}
	w.explains("web-2", "Backoff", "is tried again in")
	w.explains("web-1", "not ready")

	w.ok("scale", "web", "1", "--detach")
	w.only("web", "web-0", "web-1")
	w.fails(0, []string{"without hook out: it does not run"}, "events", "web-2")
	w.explains("web-1", "hook out says no: exit code 4: out web-1")
	w.stays(2*time.Second, func() error {
		if w.ids("web")["web-1"] == "" {
			return errors.New("web-1 left although its hook said no")
		}
		return nil
	})
	if got, want := w.in("web-0", "cat /data/told"), "forget web-2\n"; got != want {
		t.Errorf("web-0 was told %q, want %q", got, want)
	}
	w.ok("scale", "web", "1", "--force", "--timeout", patience.String())
	w.only("web", "web-0")
}

// A command that runs when the daemon is killed is waited for, and not begun again.
func TestHooksGoOnWhenTheDaemonIsKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const wait = `echo begun >> /data/told; until [ -e /data/go ]; do sleep 0.1; done`
	s := shell(2, hook("drain", "leave", "    timeout = \"10m\"", wait))
	s.set += "  termination_grace = \"10m\"\n"
	s.inside += fmt.Sprintf("    lifecycle {\n      pre_stop {\n        exec {\n          command = [\"sh\", \"-c\", %q]\n        }\n      }\n    }\n", wait)
	text := strings.Replace(s.String(), "  termination_grace = \"5s\"\n", "", 1)
	w.ok("apply", "--timeout", (2 * patience).String(), w.file("web.hcl", text))
	begun := func(member, what string) {
		t.Helper()
		w.await(what+" to begin", func() error {
			_, err := w.inside(member, "grep", "begun", "/data/told")
			return err
		})
		w.kill()
		w.start()
		w.explains(member, what)
		w.stays(3*time.Second, func() error {
			if out, err := w.inside(member, "cat", "/data/told"); err != nil || out != "begun" {
				return fmt.Errorf("%s: %q, %v", what, out, err)
			}
			return nil
		})
	}
	w.ok("restart", "web-0", "--detach")
	before := w.ids("web")
	begun("web-0", "its pre_stop hook runs")
	if _, err := w.inside("web-0", "touch", "/data/go"); err != nil {
		t.Fatal(err)
	}
	w.comesBack("web-0", before["web-0"])

	w.ok("scale", "web", "1", "--detach")
	begun("web-1", "hook drain runs there")
	if _, err := w.inside("web-1", "touch", "/data/go"); err != nil {
		t.Fatal(err)
	}
	w.only("web", "web-0")
}

func TestAGuardKeepsAnUpdateWaitingForASickMember(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.applySlow(spec{set: "  guard {\n    min_available = 2\n  }\n  update {\n    partition       = 1\n    max_unavailable = 2\n  }\n"})
	before := w.ids("web")
	w.get("web-0", "fail")
	w.explains("web-0", "not ready")
	w.ok("set", "image", "web", "stsd-demo:2", "--detach")
	w.explains("web-2", "guard: 2 members are available and min_available is 2")
	w.fails(6, []string{"refused by its guard", "--force"}, "stop", "web-2")
	w.untouched(before, "web-0", "web-1", "web-2")
	w.get("web-0", "ok")
	w.ok("rollout", "status", "web", "--timeout", (3 * patience).String())
	w.untouched(before, "web-0")
	delete(before, "web-0")
	w.changedAll(before, w.ids("web"))
}

// get asks a demo server for something.
func (w *world) get(member, path string) {
	w.t.Helper()
	w.ok("exec", member, "--", "/demo", "get", "http://127.0.0.1:8080/"+path)
}

func TestWhatWasAskedOutlivesTheDaemonAndTheHost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.applySlow(spec{set: "  pod_management = \"parallel\"\n"})
	w.ok("stop", "web-1", "--timeout", patience.String())
	w.ok("restart", "web-2", "--detach")
	w.kill()
	w.start()
	rest := func(when string, starts int) {
		t.Helper()
		w.awaitFor(2*patience, "web to rest "+when, func() error {
			s := w.status("web")
			if s.Available != 2 || s.condition("Progressing") != "" {
				return fmt.Errorf("%+v", s)
			}
			return nil
		})
		if m := w.status("web").Members[1]; m.Phase != "Stopped" || m.Reason != "ByUser" {
			t.Errorf("%s web-1 is %+v", when, m)
		}
		if got := w.startsOf("web-2"); got != starts {
			t.Errorf("%s web-2 was started %d times, want %d", when, got, starts)
		}
	}
	rest("after the daemon was killed", 2)
	w.boot("web")
	rest("after a boot", 3)
	w.ok("start", "web-1", "--timeout", patience.String())
	w.settled("web", 3)
	if got := w.startsOf("web-1"); got != 2 {
		t.Errorf("web-1 was started %d times, want 2", got)
	}
	before := w.ids("web")
	w.ok("replace", "web-1", "--timeout", patience.String())
	w.untouched(before, "web-0", "web-2")
	if got := w.startsOf("web-1"); got != 3 {
		t.Errorf("web-1, replaced with its volume, was started %d times, want 3", got)
	}
}
