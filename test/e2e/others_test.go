package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// start_after is for first starts: members that ran come back after a boot without
// waiting (8.1), those that never did wait on.
func TestAFirstStartWaitsForAnotherSetOverABootToo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const delay = 2 * time.Second
	after := "  start_after = [\"db\"]\n"
	w.applySlow(spec{name: "db", replicas: 2, env: "READY_DELAY=" + delay.String()})
	w.applySlow(spec{name: "web", replicas: 1, noVolume: true, set: after})
	w.ok("exec", "db-0", "--", "/demo", "get", "http://127.0.0.1:8080/fail")
	w.explains("db-0", "not ready")

	late := spec{name: "late", replicas: 1, noVolume: true, set: after, inside: `    args = ["serve", "-ready-delay=${sets.db.replicas}ms"]
    env = {
      DB    = join(",", sets.db.members[*].fqdn)
      DB_IP = sets.db.members[1].ip
      NAME  = sets.db.fqdn
    }
`}
	w.ok("apply", "--detach", w.spec(late))
	w.explains("late-0", "start_after: db is not available yet")
	w.fails(1, []string{"these sets wait for each other to start", "db → late → db"}, "apply", w.spec(spec{name: "db", replicas: 2, set: "  start_after = [\"late\"]\n"}))

	db := w.ids("db")
	w.boot("db", "web")
	w.comesBack("db-0", db["db-0"])
	w.settled("late", 1)
	w.settled("web", 1)
	for _, m := range []string{"db-0", "db-1"} {
		if ready := w.started(m).Add(delay); w.created("late-0").Before(ready) {
			t.Errorf("late-0 was made at %v, before %s was ready at %v", w.created("late-0"), m, ready)
		}
		if ready := w.started(m).Add(delay); m == "db-1" && !w.created("web-0").Before(ready) {
			t.Errorf("web-0 was made at %v: it waited until %s was ready at %v", w.created("web-0"), m, ready)
		}
	}

	domain := "db." + w.ns + ".svc.cluster.local"
	env := w.ok("exec", "late-0", "--", "/demo", "env")
	for _, want := range []string{"DB=db-0." + domain + ",db-1." + domain, "DB_IP=" + w.address("db-1"), "NAME=" + domain} {
		if !strings.Contains(env, want+"\n") {
			t.Errorf("%q is not in the environment of late-0:\n%s", want, env)
		}
	}
	if got, want := fmt.Sprint(w.inspect("late-0").Args), "[serve -ready-delay=2ms]"; !strings.HasSuffix(got, want) {
		t.Errorf("args of late-0 are %s, want %s", got, want)
	}
}

// Whoever never ran does not take a port from one that is down for a moment.
func TestAPublishedPortStaysWithItsMemberOverABoot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	port := freePorts(t, 1)
	publish := fmt.Sprintf("    port \"out\" {\n      container = 8080\n      host      = %d\n    }\n", port)
	w.applySlow(spec{name: "zz", replicas: 1, noVolume: true, inside: publish})
	taken := fmt.Sprintf("port 127.0.0.1:%d is taken by member zz-0 (ours, of %s/zz)", port, w.ns)
	w.fails(3, []string{taken}, "apply", "--timeout", patience.String(), w.spec(spec{name: "aa", replicas: 1, noVolume: true, inside: publish}))
	w.explains("aa-0", taken, "stsd status "+w.ns+"/zz")
	before := w.ids("zz")
	w.boot("zz")
	w.comesBack("zz-0", before["zz-0"])
	w.settled("zz", 1)
	w.explains("aa-0", taken)
	if ids := w.ids("aa"); len(ids) > 0 {
		t.Errorf("containers of aa: %v", ids)
	}
	w.ok("delete", "zz", "--wait", "--timeout", patience.String())
	w.settled("aa", 1)
}
