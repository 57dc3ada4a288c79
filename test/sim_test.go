package test

import (
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// tell runs a story in a bubble of its own and gives the promises it broke.
func tell(t *testing.T, dir string, lines story) (broken, log []string, reached map[string]int) {
	synctest.Test(t, func(*testing.T) {
		r := newRig(dir)
		for _, line := range lines {
			if len(r.witness.complaints) == 0 {
				r.do(line)
			}
		}
		if len(r.witness.complaints) == 0 {
			r.finale()
		}
		r.close()
		broken, log, reached = r.witness.complaints, r.log, r.witness.reached
	})
	return broken, log, reached
}

// Histories are random, and the same every time: STSD_SIM_SEED is the first
// one's seed, STSD_SIM_HISTORIES how many there are. STSD_SIM_TELL prints every
// minute how far it has come.
func TestHistories(t *testing.T) {
	n, first := setting("STSD_SIM_HISTORIES", 150), setting("STSD_SIM_SEED", 1)
	if testing.Short() {
		n = min(n, 40)
	}
	defer debug.SetGCPercent(debug.SetGCPercent(800)) // there is little to keep, and a third of the time goes into looking for it
	sum := &tally{all: map[string]int{}}
	var next atomic.Int64
	stop := sum.progress(n)
	t.Run("all", func(t *testing.T) {
		for worker := range runtime.GOMAXPROCS(0) {
			t.Run(strconv.Itoa(worker), func(t *testing.T) {
				t.Parallel()
				for i := next.Add(1) - 1; i < int64(n) && sum.broken() < enough; i = next.Add(1) - 1 {
					history(t, first+int(i), sum)
				}
			})
		}
	})
	stop()
	t.Logf("%d histories reached:\n%s", n, sum)
	if missed := sum.missed(); n >= many && len(missed) > 0 && !t.Failed() {
		t.Errorf("%d histories never reached %s", n, strings.Join(missed, ", "))
	}
}

// many histories have to reach everything; after enough broken ones no more are told.
const (
	many   = 5000
	enough = 5
)

func history(t *testing.T, seed int, sum *tally) {
	dir, remove := memory(t)
	defer remove()
	lines := invent(uint64(seed))
	broken, log, reached := tell(t, dir, lines)
	sum.add(reached, len(broken) > 0)
	if len(broken) > 0 {
		sum.tell("seed %d breaks a promise: %s", seed, broken[0])
		report(t, seed, lines, broken, log)
	}
}

func setting(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}

// report tells a broken history, and a shorter one that breaks a promise too.
func report(t *testing.T, seed int, lines story, broken, log []string) {
	t.Errorf("seed %d breaks a promise; STSD_SIM_SEED=%d STSD_SIM_HISTORIES=1 go test ./test -run TestHistories tells it again:\n%s\n\nthe whole story:\n%s",
		seed, seed, strings.Join(broken, "\n"), strings.Join(log, "\n"))
	if os.Getenv("STSD_SIM_SHRINK") == "" {
		t.Log("STSD_SIM_SHRINK=1 looks for a shorter story")
		return
	}
	short, broken, log := shrink(t, lines)
	if short == nil {
		t.Log("told again it broke no promise: it depends on which goroutine came first")
		return
	}
	t.Logf("a shorter story, for testdata/stories:\n%s\n\nit breaks:\n%s\n\nand goes:\n%s", strings.Join(short, "\n"), strings.Join(broken, "\n"), strings.Join(log, "\n"))
}

// shrink leaves out lines as long as the story breaks a promise.
func shrink(t *testing.T, lines story) (short story, broken, log []string) {
	try := func(s story) bool {
		for range 3 {
			dir, remove := memory(t)
			b, l, _ := tell(t, dir, s)
			remove()
			if len(b) > 0 {
				short, broken, log = slices.Clone(s), b, l
				return true
			}
		}
		return false
	}
	if !try(lines) {
		return nil, nil, nil
	}
	for size := len(short) / 2; size > 0; size /= 2 {
		for at := 0; at+size <= len(short); {
			if !try(slices.Delete(slices.Clone(short), at, at+size)) {
				at += size
			}
		}
	}
	return short, broken, log
}

// Stories that once broke a promise stay.
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/stories/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var lines story
			for _, line := range strings.Split(string(text), "\n") {
				if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
					lines = append(lines, line)
				}
			}
			for range 5 { // which goroutine comes first is not ours to say
				dir, remove := memory(t)
				broken, log, _ := tell(t, dir, lines)
				remove()
				if len(broken) > 0 {
					t.Fatalf("%s\n\nthe whole story:\n%s", strings.Join(broken, "\n"), strings.Join(log, "\n"))
				}
			}
		})
	}
}
