package test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stsd/stsd/daemon/planner"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

// What a long simulation has to reach, or it proves less than it says.

// ops are all verbs of a plan.
var ops = []planner.Op{planner.CreateVolume, planner.DeleteVolume, planner.Create, planner.Refresh, planner.Stop, planner.Remove, planner.RunHook, planner.Forget}

// verbs are all of a story.
var verbs = []string{
	"apply", "scale", "image", "undo", "pause", "resume", "restart", "delete", "force", "restart-now", "stop-member", "start-member", "fresh",
	"pass", "fail", "slow", "mend", "kill", "rm", "start", "freeze", "thaw", "sicken", "heal", "rmvolume", "retag", "clock", "reboot", "disconnect",
	"crash", "crash-at", "stop", "foreign",
}

// conds are all conditions of a set.
var conds = []string{jobspecs.CondAvailable, jobspecs.CondProgressing, jobspecs.CondStalled, jobspecs.CondPaused, jobspecs.CondRolledBack, jobspecs.CondDegraded}

var phases = []runtime.Phase{
	runtime.Pending, runtime.Pulling, runtime.Initializing, runtime.Starting, runtime.Running, runtime.Stopping, runtime.Stopped,
	runtime.Failed, runtime.Backoff, runtime.Unknown,
}

var reasons = []string{
	runtime.ReasonEngineRestarted, runtime.ReasonRemoved, runtime.ReasonStopRequested, runtime.ReasonImageMissing, runtime.ReasonImageUnknown,
	runtime.ReasonPullFailed, runtime.ReasonNameTaken, runtime.ReasonVolumeForeign, runtime.ReasonCreateFailed,
	runtime.ReasonInitRunning, runtime.ReasonPostStart, runtime.ReasonPostStartFailed, runtime.ReasonPreStop, runtime.ReasonSandbox,
	runtime.ReasonExited, runtime.ReasonOOMKilled, runtime.ReasonLiveness, runtime.ReasonStartup, runtime.ReasonNotReady,
	runtime.ReasonStartupPending, runtime.ReasonPaused, runtime.ReasonUnreachable, runtime.ReasonLookFailed,
	planner.ReasonNotCreated, planner.ReasonVolumeLost, planner.ReasonMayNeedPeers, planner.ReasonByUser, planner.ReasonHookFailed,
}

// elsewhere are those that stories do not reach, and where they are reached.
var elsewhere = map[string]string{
	runtime.ReasonBadCommand:       "what cannot be started says CreateFailed in stories: runtime/docker, test/e2e",
	runtime.ReasonAccessDenied:     "the simulator's registry asks for no password in stories: runtime/sim, TestPull",
	runtime.ReasonWrongPlatform:    "all images are of the host's platform: runtime/sim",
	runtime.ReasonRunsAsRoot:       "no story says run_as_non_root: runtime/sim",
	runtime.ReasonNoMemoryFolder:   "the folder is never taken away: runtime/sim",
	runtime.ReasonPortTaken:        "no set of a story publishes a port: runtime/sim",
	planner.ReasonStray:            "stories lose no set: daemon/strays_test.go, test/e2e/ownership_test.go",
	runtime.ReasonAddressTaken:     "foreign containers of stories have no address: runtime/sim",
	runtime.ReasonNetworkTaken:     "no story makes a foreign network: runtime/sim",
	runtime.ReasonNetworkMissing:   "no set of a story joins a network: runtime/pods",
	runtime.ReasonWaitingForFence:  "the simulator ends a container before its name is asked for again, so it lasts no moment that is looked at",
	runtime.ReasonNoAddress:        "six members never fill a network: runtime/docker",
	runtime.ReasonRenamed:          "no story renames a container: runtime/pods",
	planner.ReasonVolumeNearlyFull: "no volume of a story has a size: test/conformance",
	planner.ReasonVolumeOverSize:   "no volume of a story has a size: test/conformance",
	planner.ReasonDisconnected:     "no story takes a container off its network: daemon/planner",
}

// waits are what a member that waits says: a word of each sentence, in the order in
// which they are looked for.
var waits = []string{
	"start_after", "guard", "hook", "recovery_wait", "held data and is gone", "is being deleted first", "it stays until", "not created yet", "min_ready",
	"pulling", "failed", "backoff", "initializing", "starting", "stopping", "stopped", "not ready", "pending",
}

func kindOfWait(text string) string {
	for _, k := range waits {
		if strings.Contains(text, k) {
			return k
		}
	}
	return text
}

// needed is all that a long run reaches at least once.
func needed() (out []string) {
	for _, verb := range verbs {
		out = append(out, "step: "+verb)
	}
	for _, op := range ops {
		out = append(out, "op: "+string(op))
	}
	for _, k := range waits {
		out = append(out, "wait: "+k)
	}
	for _, c := range conds {
		out = append(out, "true: "+c)
	}
	for _, p := range phases {
		out = append(out, "phase: "+string(p))
	}
	for _, r := range reasons {
		out = append(out, "reason: "+r)
	}
	for _, k := range []string{jobspecs.KindInit, jobspecs.KindSidecar, jobspecs.KindMain, jobspecs.KindSandbox} {
		out = append(out, "container: "+k)
	}
	return out
}

// Every reason that an engine or the planner gives is in one of the lists.
func TestEveryReasonIsReachedOrSaidWhyNot(t *testing.T) {
	for _, r := range reasons {
		if elsewhere[r] != "" {
			t.Errorf("%s stands in both lists", r)
		}
	}
	known := append(slices.Clone(reasons), slices.Collect(maps.Keys(elsewhere))...)
	for _, r := range declared(t, "../runtime/engine.go", "../daemon/planner/status.go") {
		if !slices.Contains(known, r) {
			t.Errorf("reason %s stands in neither list: reached in stories, or why not", r)
		}
	}
}

// reach counts what the status of a member shows.
func (w *witness) reach(m *jobspecs.Member) {
	w.reached["phase: "+m.Phase]++
	if m.Reason != "" {
		w.reached["reason: "+m.Reason]++
	}
	for _, c := range m.Containers {
		if c.Reason != "" && c.Reason != m.Reason {
			w.reached["reason: "+c.Reason]++
		}
	}
}

// tally sums what histories reached.
type tally struct {
	mu   sync.Mutex
	all  map[string]int
	told int // histories
	bad  int // that broke a promise
}

func (s *tally) add(m map[string]int, broken bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, n := range m {
		s.all[k] += n
	}
	s.told++
	if broken {
		s.bad++
	}
}

func (s *tally) broken() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bad
}

// tell says something at once, where STSD_SIM_TELL asks for it.
func (s *tally) tell(format string, args ...any) {
	if os.Getenv("STSD_SIM_TELL") != "" {
		fmt.Printf(format+"\n", args...)
	}
}

// progress tells every minute how far it is, where STSD_SIM_TELL asks for it.
func (s *tally) progress(n int) (stop func()) {
	if os.Getenv("STSD_SIM_TELL") == "" {
		return func() {}
	}
	done, ended := make(chan struct{}), make(chan struct{})
	began := time.Now()
	go func() {
		defer close(ended)
		tick := time.NewTicker(time.Minute)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				s.mu.Lock()
				told, bad := s.told, s.bad
				s.mu.Unlock()
				took := time.Since(began)
				left := time.Duration(float64(took) / float64(max(told, 1)) * float64(n-told))
				fmt.Printf("%d of %d histories, %d broken, %s, about %s left\n", told, n, bad, took.Round(time.Second), left.Round(time.Minute))
			}
		}
	}()
	return func() { close(done); <-ended; fmt.Printf("%d histories reached:\n%s", n, s) }
}

// declared are the values of the Reason constants of some files.
func declared(t *testing.T, files ...string) (out []string) {
	t.Helper()
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range reasonConstant.FindAllSubmatch(text, -1) {
			out = append(out, string(m[1]))
		}
	}
	return out
}

var reasonConstant = regexp.MustCompile(`(?m)^\tReason\w+ += "(\w+)"`)

func (s *tally) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(s.all)) {
		fmt.Fprintf(&b, "%10d  %s\n", s.all[k], k)
	}
	return b.String()
}

// missed is what was needed and not reached.
func (s *tally) missed() (out []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range needed() {
		if s.all[k] == 0 {
			out = append(out, k)
		}
	}
	return out
}

// A history is long enough to prove something: at least 30 events, 3 faults and a
// crash of the daemon.
func TestAHistoryIsLongEnough(t *testing.T) {
	for seed := range uint64(2000) {
		faults, crashes := 0, 0
		s := invent(seed)
		for _, line := range s {
			switch verb, _, _ := strings.Cut(line, " "); verb {
			case "fail", "slow", "kill", "rm", "start", "freeze", "sicken", "rmvolume", "retag", "reboot", "disconnect", "foreign", "stop":
				faults++
			case "crash", "crash-at":
				crashes++
			}
		}
		if len(s) < 30 || faults < 3 || crashes < 1 {
			t.Errorf("seed %d: %d lines, %d faults, %d crashes; want at least 30, 3 and 1", seed, len(s), faults, crashes)
		}
	}
}
