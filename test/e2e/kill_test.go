package e2e_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// kills is how often the daemon is killed, one act at a time.
const kills = 20

// act is something that a user asks for, and what the set is to be in the end.
type act struct {
	args    []string
	members int
	anew    int // members that the act makes or makes anew, from the top
}

// TestTheEndIsTheSameWhereverTheDaemonIsKilled kills -9 the daemon at random
// moments. The log on a member's volume has a line for every start of its
// process, so that one start too many shows.
//
// STSD_TEST_SEED repeats a run, as far as time can be repeated.
func TestTheEndIsTheSameWhereverTheDaemonIsKilled(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("STSD_TEST_SEED"); text != "" {
		seed, _ = strconv.ParseUint(text, 10, 64)
	}
	t.Logf("STSD_TEST_SEED=%d", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	w := newWorld(t)
	acts := []act{
		{[]string{"apply", "--detach", w.spec(spec{replicas: 2})}, 2, 2},
		{[]string{"scale", "--detach", "web", "3"}, 3, 1},
		{[]string{"set", "image", "--detach", "web", "stsd-demo:2"}, 3, 3},
		{[]string{"scale", "--detach", "web", "1"}, 1, 0},
		{[]string{"delete", "web"}, 0, 0},
	}
	starts := map[string]int{}
	took := make([]time.Duration, len(acts)) // the act's last time: any moment of it will do
	for round := range kills {
		i := round % len(acts)
		moment := time.Duration(dice.Int64N(int64(cmp.Or(took[i], 3*time.Second))))
		begin := time.Now()
		w.round(fmt.Sprintf("round %d, %v killed after %v", round, acts[i].args, moment), acts[i], moment, starts)
		took[i] = min(time.Since(begin), 6*time.Second)
	}
}

// round does one act, kills the daemon in the middle of it, and compares the end.
func (w *world) round(what string, a act, moment time.Duration, starts map[string]int) {
	w.t.Helper()
	before := w.ids("web")
	cmd := w.command(a.args...)
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	time.Sleep(moment) // the random moment
	w.kill()
	stored := cmd.Wait() == nil
	w.start()
	if !stored { // nobody said that it was: the user asks again
		if r := w.stsd(a.args...); r.code != 0 && a.members > 0 {
			w.t.Fatalf("%s: %v", what, r)
		}
	}
	w.ends(what, a, before, starts)
}

// ends waits for the end of an act and counts what was started for it.
func (w *world) ends(what string, a act, before map[string]string, starts map[string]int) {
	w.t.Helper()
	if a.members == 0 {
		w.ok("wait", "web", "--for=deleted", "--timeout", patience.String())
	} else {
		w.settled("web", a.members)
	}
	after := w.ids("web")
	if len(after) != a.members {
		w.t.Errorf("%s: members %v, want %d", what, after, a.members)
	}
	for i := range a.members {
		m := fmt.Sprintf("web-%d", i)
		if i >= a.members-a.anew {
			starts[m]++
		} else if after[m] != before[m] {
			w.t.Errorf("%s: %s was made anew", what, m)
		}
		if got := w.startsOf(m); got != starts[m] {
			w.t.Errorf("%s: %s was started %d times, want %d", what, m, got, starts[m])
			starts[m] = got
		}
	}
}

// startsOf counts the starts that a member's volume has seen.
func (w *world) startsOf(member string) int {
	w.t.Helper()
	return strings.Count(w.ok("exec", member, "--", "/demo", "cat", "/data/log"), "boot ")
}
