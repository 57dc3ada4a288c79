package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestLogsAreThoseOfTheMemberAndOfItsLastCrash(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(spec{replicas: 2})
	w.fails(0, []string{"demo: boot 1 web-0 v1"}, "logs", "web-0")
	w.fails(0, []string{"web-0", "web-1", "demo: boot 1 web-1 v1"}, "logs", "web")
	before := w.ids("web")
	w.stsd("exec", "web-1", "--", "/demo", "get", "http://127.0.0.1:8080/exit?code=7") // dies before it answers
	w.comesBack("web-1", before["web-1"])
	w.settled("web", 2)
	w.fails(0, []string{"demo: boot 1 web-1 v1", "exit 7"}, "logs", "--previous", "web-1")
	w.fails(0, []string{"demo: boot 2 web-1 v1"}, "logs", "--tail", "2", "web-1")
	w.fails(1, []string{"web-0"}, "logs", "--previous", "web-0")
}

func TestExecPassesTheExitCodeOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(spec{replicas: 1, image: "busybox:1", noProbe: true, inside: `    command = ["sh", "-c", "sleep 1000"]` + "\n"})
	w.fails(0, []string{"hello"}, "exec", "web-0", "--", "echo", "hello")
	w.fails(7, nil, "exec", "web-0", "--", "sh", "-c", "exit 7")
	w.fails(125, []string{"web-9"}, "exec", "web-9", "--", "true")
	w.fails(125, nil, "exec", "web-0")
	if r := w.stsd("exec", "web-0", "--", "no-such-command"); r.code != 126 && r.code != 127 { // engines differ
		t.Errorf("want 126 or 127: %v", r)
	}
	cmd := w.command("exec", "-i", "web-0", "--", "cat")
	cmd.Stdin = strings.NewReader("through\n")
	if out, err := cmd.Output(); err != nil || string(out) != "through\n" {
		t.Errorf("exec -i prints %q, %v", out, err)
	}
}

func TestEventsTellWhatHappened(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(spec{replicas: 1})
	w.await("the events", func() error {
		r := w.stsd("-o", "json", "events")
		for _, reason := range []string{"VolumeCreated", "Created", "Ready", "RolloutComplete"} {
			if !strings.Contains(r.out, `"reason":"`+reason+`"`) {
				return fmt.Errorf("no %s: %v", reason, r)
			}
		}
		return nil
	})
}

func TestWaitEndsWithWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ok("apply", "--detach", w.spec(spec{replicas: 1, env: "READY_DELAY=3s"}))
	w.fails(4, []string{"time-out"}, "wait", "web", "--for=ready", "--timeout", "1s")
	w.ok("wait", "web", "--for=available", "--timeout", patience.String())
	w.ok("wait", "web", "--for=rollout", "--timeout", patience.String())
	w.ok("delete", "web")
	w.ok("wait", "web", "--for=deleted", "--timeout", patience.String())
	w.empty()
}

func TestDeleteKeepsTheVolumesUnlessTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(spec{replicas: 2})
	w.ok("delete", "web", "--wait", "--timeout", patience.String())
	if ids := w.ids("web"); len(ids) > 0 || !w.hasVolume("data-web-1") {
		t.Errorf("members %v, volume %v; want none, and it", ids, w.hasVolume("data-web-1"))
	}
	w.apply(spec{replicas: 2})
	w.prints(boots("web-1", 2), "exec", "web-1", "--", "/demo", "cat", "/data/log")

	w.fails(6, []string{"data-web-1", "--yes"}, "delete", "web", "--volumes=delete")
	w.settled("web", 2)
	w.ok("delete", "web", "--volumes=delete", "--yes", "--wait", "--timeout", patience.String())
	if ids := w.ids("web"); len(ids) > 0 || w.hasVolume("data-web-0") || w.hasVolume("data-web-1") {
		t.Errorf("members %v, or volumes are left", ids)
	}
}

func TestAMemberNamedWhereASetIsDueNamesTheRightVerb(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(spec{replicas: 1})
	w.fails(64, []string{"web-0"}, "delete", "web-0")
	w.settled("web", 1)
}

func TestMembersResolveTheirPeersWhileTheDaemonIsDown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(spec{})
	gateway, want := w.gateway().String(), []string{w.address("web-1")}
	w.terminate()
	w.resolver("web-0", "127.0.0.11")
	for _, name := range []string{"web-1", "web-1.web", "web-1.svc", "web-1.web." + w.ns + ".svc.cluster.local"} {
		if got, err := w.lookup("web-0", name); err != nil || !slices.Equal(got, want) {
			t.Errorf("without a daemon %s is %v, %v, want %v", name, got, err, want)
		}
	}
	w.start()
	w.await("the daemon's names", func() error {
		conf, err := w.inside("web-0", "/demo", "cat", "/etc/resolv.conf")
		if err != nil || !strings.Contains(conf, "nameserver "+gateway+"\n") {
			return fmt.Errorf("%q, %v", conf, err)
		}
		return nil
	})
	if got, err := w.lookup("web-0", "web-1.svc"); err != nil || !slices.Equal(got, want) {
		t.Errorf("with the daemon again web-1.svc is %v, %v, want %v", got, err, want)
	}
}

// resolver checks which server a member asks.
func (w *world) resolver(member, want string) {
	w.t.Helper()
	conf, err := w.inside(member, "/demo", "cat", "/etc/resolv.conf")
	if err != nil || !strings.Contains(conf, "nameserver "+want+"\n") {
		w.t.Errorf("resolv.conf of %s is %q, %v, want server %s", member, conf, err, want)
	}
}
