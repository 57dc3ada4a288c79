package e2e_test

import (
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestMembersStartInOrderEachAfterTheOneBeforeIsReady(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const delay = 400 * time.Millisecond
	w.apply(spec{env: "READY_DELAY=" + delay.String()})
	for i := 1; i < 3; i++ {
		before, m := fmt.Sprintf("web-%d", i-1), fmt.Sprintf("web-%d", i)
		// An engine writes down that a container has started a while after its program has.
		if ready := w.started(before).Add(delay / 2); w.created(m).Before(ready) {
			t.Errorf("%s was made at %v, and %s, which needs %s, was started at %v", m, w.created(m), before, delay, w.started(before))
		}
	}
	for i := range 3 {
		m := fmt.Sprintf("web-%d", i)
		w.prints(m+"\n", "exec", m, "--", "/demo", "hostname")
		w.prints(fmt.Sprintf("%s.web.%s.svc.cluster.local\n", m, w.ns), "exec", m, "--", "/demo", "hostname", "-f")
		w.prints(boots(m, 1), "exec", m, "--", "/demo", "cat", "/data/log")
	}
}

// boots are the lines that a member's volume has after n starts of version 1.
func boots(member string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "boot %d %s v1\n", i+1, member)
	}
	return b.String()
}

// prints compares what a command prints.
func (w *world) prints(want string, args ...string) {
	w.t.Helper()
	if got := w.ok(args...); got != want {
		w.t.Errorf("stsd %v prints %q, want %q", args, got, want)
	}
}

func TestARemovedContainerComesBackWithItsNameAddressAndData(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(spec{})
	ids, address := w.ids("web"), w.address("web-1")
	w.remove("web-1")
	w.comesBack("web-1", ids["web-1"])
	w.settled("web", 3)

	if got := w.address("web-1"); got != address {
		t.Errorf("address %s, want %s", got, address)
	}
	w.prints("web-1\n", "exec", "web-1", "--", "/demo", "hostname")
	w.prints(boots("web-1", 2), "exec", "web-1", "--", "/demo", "cat", "/data/log")
	w.untouched(ids, "web-0", "web-2")
}

// comesBack waits until a member has another container than old.
func (w *world) comesBack(member, old string) {
	w.t.Helper()
	set, _, _ := strings.Cut(member, "-")
	w.await(member+" to come back", func() error {
		if id := w.ids(set)[member]; id == "" || id == old {
			return fmt.Errorf("its container is %q", id)
		}
		return nil
	})
}

// untouched compares members' containers with those they had.
func (w *world) untouched(before map[string]string, members ...string) {
	w.t.Helper()
	now := w.ids(setOf(before))
	for _, m := range members {
		if now[m] != before[m] {
			w.t.Errorf("%s was made anew", m)
		}
	}
}

func setOf(ids map[string]string) string {
	for m := range ids {
		return m[:strings.LastIndexByte(m, '-')]
	}
	return ""
}

func TestAKilledProcessIsStartedAgainAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(spec{replicas: 2})
	ids := w.ids("web")
	if err := engine().ContainerKill(t.Context(), w.container("web-0"), "KILL"); err != nil {
		t.Fatal(err)
	}
	w.comesBack("web-0", ids["web-0"])
	w.await("the restart to be counted", func() error {
		if m := w.settled("web", 2).Members[0]; m.Restarts != 1 {
			return fmt.Errorf("%+v", m)
		}
		return nil
	})
	w.prints(boots("web-0", 2), "exec", "web-0", "--", "/demo", "cat", "/data/log")
	w.untouched(ids, "web-1")
}

func TestAScaledSetFindsItsDataAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(spec{})
	ids, address := w.ids("web"), w.address("web-2")

	w.ok("scale", "web", "1")
	if got := slices.Sorted(maps.Keys(w.ids("web"))); !slices.Equal(got, []string{"web-0"}) {
		t.Errorf("members of a set of 1: %v", got)
	}
	w.ok("scale", "web", "3")

	w.untouched(ids, "web-0")
	if got := w.address("web-2"); got != address {
		t.Errorf("web-2 has address %s, want %s", got, address)
	}
	for _, m := range []string{"web-1", "web-2"} {
		w.prints(boots(m, 2), "exec", m, "--", "/demo", "cat", "/data/log")
	}
}

func TestANewImageRollsFromTheTopAndUndoGoesBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(spec{})
	first := w.ids("web")

	w.ok("set", "image", "web", "stsd-demo:2")
	second := w.ids("web")
	w.changedAll(first, second)
	if !w.created("web-2").Before(w.created("web-1")) || !w.created("web-1").Before(w.created("web-0")) {
		t.Errorf("the order was not 2, 1, 0: %v, %v, %v", w.created("web-2"), w.created("web-1"), w.created("web-0"))
	}
	w.version("web-0", "2")

	w.ok("rollout", "undo", "web")
	w.changedAll(second, w.ids("web"))
	w.version("web-0", "1")

	history := decode[[]struct{ Number int }](w, "rollout", "history", "web")
	if len(history) != 2 || history[1].Number != 3 {
		t.Errorf("history = %+v, want two revisions, the older one again as number 3", history)
	}
}

func (w *world) changedAll(before, after map[string]string) {
	w.t.Helper()
	for m, id := range before {
		if after[m] == id {
			w.t.Errorf("%s was not made anew", m)
		}
	}
}

func (w *world) version(member, want string) {
	w.t.Helper()
	if out := w.ok("exec", member, "--", "/demo", "get", "http://127.0.0.1:8080/"); !strings.Contains(out, "version "+want+"\n") {
		w.t.Errorf("%s runs %q, want version %s", member, out, want)
	}
}

func TestUndoInTheMiddleOfARolloutRestartsOnlyThoseThatLeft(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(spec{})
	before := w.ids("web")
	w.ok("set", "image", "web", "stsd-demo:broken", "--detach")
	w.await("the rollout to be stuck at web-2", func() error {
		if m := w.status("web").Members[2]; m.Restarts < 1 {
			return fmt.Errorf("%+v", m)
		}
		return nil
	})
	w.ok("rollout", "undo", "web", "--timeout", patience.String())
	w.untouched(before, "web-0", "web-1")
	w.settled("web", 3)
	w.version("web-2", "1")
}

func TestARolloutCanBePausedAndResumed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(spec{replicas: 2})
	before := w.ids("web")
	w.ok("rollout", "pause", "web")
	w.fails(4, []string{"paused", "stsd rollout resume"}, "set", "image", "web", "stsd-demo:2")
	w.untouched(before, "web-0", "web-1")
	w.ok("rollout", "resume", "web")
	w.version("web-0", "2")
	w.fails(0, []string{"skipped"}, "rollout", "undo", "web", "--to", "2")
}

func TestAPartitionKeepsTheLowerMembersBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(spec{})
	before := w.ids("web")
	canary := spec{image: "stsd-demo:2", set: "  update {\n    partition = 2\n  }\n"}
	w.apply(canary)
	w.untouched(before, "web-0", "web-1")
	w.version("web-2", "2")
}

func TestNamesAnswerInsideMembersAndAtTheGateway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(spec{})
	addresses := []string{w.address("web-0"), w.address("web-1"), w.address("web-2")}
	slices.Sort(addresses)
	long := "web." + w.ns + ".svc.cluster.local"
	for name, want := range map[string][]string{
		"web-1.web":            {w.address("web-1")},
		"web-1.web." + w.ns:    {w.address("web-1")},
		"web-1." + long:        {w.address("web-1")},
		"web-1.svc":            {w.address("web-1")},
		"web":                  addresses,
		"web.svc":              addresses,
		long:                   addresses,
		"web." + w.ns + ".svc": addresses,
	} {
		if got, err := w.lookup("web-0", name); err != nil || !slices.Equal(got, want) {
			t.Errorf("inside web-0 %s is %v, %v, want %v", name, got, err, want)
		}
	}
	for name, want := range map[string][]string{
		"web-1." + w.ns + ".svc": {w.address("web-1")},
		"web." + w.ns + ".svc":   addresses,
		"web-1." + long:          {w.address("web-1")},
		long:                     addresses,
	} {
		if got, err := w.resolve(name); err != nil || !slices.Equal(got, want) {
			t.Errorf("at the gateway %s is %v, %v, want %v", name, got, err, want)
		}
	}
	if got, err := w.resolve("web-3." + long); err == nil {
		t.Errorf("a member that does not exist is %v", got)
	}
}

func TestTheSameNameInTwoNamespacesIsTwoSets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(spec{replicas: 1})
	other := *w
	other.ns = w.ns + "-b"
	other.apply(spec{replicas: 1, image: "stsd-demo:2"})

	w.version("web-0", "1")
	other.version("web-0", "2")
	got, err := w.lookup("web-0", "web-0.web."+other.ns+".svc.cluster.local")
	if want := []string{other.address("web-0")}; err != nil || !slices.Equal(got, want) {
		t.Errorf("the other namespace's member is %v, %v, want %v", got, err, want)
	}
	other.ok("delete", "web", "--wait")
	if got := w.settled("web", 1).Members[0]; got.Restarts != 0 {
		t.Errorf("web-0 of the first namespace: %+v", got)
	}
}

func TestRecoveredMembersHaveTheirDataAfterTheMachineWasDown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(spec{})
	addresses := []string{w.address("web-0"), w.address("web-1"), w.address("web-2")}
	w.terminate()
	for m := range w.ids("web") {
		if err := exec.Command("docker", "stop", "-t", "1", w.container(m)).Run(); err != nil {
			t.Fatal(err)
		}
	}
	w.start()
	w.settled("web", 3)
	for i := range 3 {
		m := fmt.Sprintf("web-%d", i)
		w.prints(boots(m, 2), "exec", m, "--", "/demo", "cat", "/data/log")
		if got := w.address(m); got != addresses[i] {
			t.Errorf("%s has address %s, want %s", m, got, addresses[i])
		}
	}
}
