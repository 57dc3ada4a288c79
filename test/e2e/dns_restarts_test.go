package e2e_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// lookingMember is a member whose process looks names up from its first moment to its last, in each way that programs
// have: its own, those of its peers, which lead to the addresses that they have for life, and the set's, which is never
// empty. It is ready after the first round. Rounds, and what went wrong, stand on its volume.
const lookingMember = `
    command = ["/bin/sh", "/looks.sh"]
    env = {
      ME      = self.name
      MEMBERS = join(" ", [for m in set.members : "${m.name} ${m.ip}"])
      UPDATE  = "%d"
    }
    file "/looks.sh" {
      content = <<-EOT
        trap 'exit 0' TERM
        check() { # WANT COMMAND…
          want=$1
          shift
          got=$("$@" 2>&1)
          [ "$got" = "$want" ] || echo "$(date) $ME: $*: $got, want $want" >>/data/failed
        }
        there() { "$@" >/dev/null && echo yes; }
        nl='
        '
        names= addresses=
        set -- $MEMBERS
        while [ $# -gt 0 ]; do
          names="$names $1 $1.web $1.svc $1.web.%s.svc.cluster.local"
          addresses="$addresses$2$nl$2$nl$2$nl$2$nl"
          shift 2
        done
        addresses=$(echo "$addresses") # without the newline at the end
        while :; do
          for looker in /lookup-glibc /lookup-musl; do
            check yes there $looker web.svc
            check "$addresses" $looker $names
          done
          set -- $MEMBERS
          while [ $# -gt 0 ]; do
            check $2 /demo lookup $1.svc
            shift 2
          done
          echo round >>/data/rounds
          if [ -z "$served" ]; then
            /demo serve & # ready only now
            served=yes
          fi
          sleep 0.2
        done
      EOT
    }
`

// looksInARound is how many look-ups a round is: the set's name and four of each member by two C libraries, one of each
// member by Go.
func looksInARound(members int) int { return 2*(1+4*members) + members }

// Members are restarted one by one, all in turn, and by rolling updates, while all of them look names up.
func TestRestartsFailNoLookUp(t *testing.T) {
	t.Parallel()
	restarts, err := strconv.Atoi(os.Getenv("STSD_TEST_RESTARTS"))
	if err != nil {
		t.Skip("make restarts runs it: it takes long")
	}
	const members, patience = 3, "10m" // for all members in turn
	w := newWorld(t, func(w *world) { w.flags = append(w.flags, "--dns-listen", "127.0.0.1:0") })
	needs(t, resolversImage)
	update := 0
	apply := func() {
		t.Helper()
		w.ok("apply", "--timeout", patience, w.spec(spec{replicas: members, image: resolversImage, inside: fmt.Sprintf(lookingMember, update, w.ns)}))
		update++
	}
	apply()
	ways := []struct {
		restart func()
		members int
	}{
		{func() { w.ok("restart", "web-2", "--timeout", patience) }, 1},
		{func() { w.ok("restart", "web-0", "--timeout", patience) }, 1},
		{func() { w.ok("restart", "web-1", "--timeout", patience) }, 1},
		{func() { w.ok("rollout", "restart", "web", "--timeout", patience) }, members},
		{apply, members},
	}
	done := 0
	for i := 0; done < restarts; i++ {
		way := ways[i%len(ways)]
		way.restart()
		done += way.members
		if failed := w.failedLooks(members); failed != "" {
			t.Fatalf("after %d restarts:\n%s", done, failed)
		}
	}
	rounds, boots := 0, 0
	for i := range members {
		name := fmt.Sprintf("web-%d", i)
		starts := w.startsOf(name)
		if of := w.roundsOf(name); of < starts {
			t.Errorf("%s made %d rounds of look-ups in %d starts", name, of, starts)
		}
		rounds += w.roundsOf(name)
		boots += starts
	}
	if boots != members+done {
		t.Errorf("%d starts of %d members, want %d more than they are", boots, members, done)
	}
	t.Logf("%d restarts, %d look-ups, none failed", done, rounds*looksInARound(members))
}

func (w *world) roundsOf(member string) int {
	w.t.Helper()
	out, err := w.inside(member, "/bin/sh", "-c", "cat /data/rounds || true")
	if err != nil {
		w.t.Fatal(err)
	}
	return strings.Count(out, "round")
}

// failedLooks is what members say of look-ups that failed.
func (w *world) failedLooks(members int) (said string) {
	w.t.Helper()
	for i := range members {
		out, err := w.inside(fmt.Sprintf("web-%d", i), "/bin/sh", "-c", "[ ! -e /data/failed ] || cat /data/failed")
		if err != nil {
			w.t.Fatal(err)
		}
		said += out
	}
	return said
}
