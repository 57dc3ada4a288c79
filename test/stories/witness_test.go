package stories_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// patience is how long an account may lag behind what happened, or a member take
// to come back.
const patience = 3 * time.Minute

// witness writes down what Docker says of the containers of a namespace: who was
// started and who ended, in that order. It is for members of one container.
type witness struct {
	cmd  *exec.Cmd
	read sync.WaitGroup

	mu      sync.Mutex
	account []string // "start web-0", "die web-0"
	told    int      // how much of it was compared by saw
}

const eachEvent = `{{.Action}} {{index .Actor.Attributes "stsd.set"}}-{{index .Actor.Attributes "stsd.ordinal"}}`

func watch(ns string) (*witness, error) {
	w := &witness{cmd: exec.Command("docker", "events", "--since", fmt.Sprint(time.Now().Unix()), "--filter", "label=stsd.namespace="+ns,
		"--filter", "event=start", "--filter", "event=die", "--format", eachEvent)}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := w.cmd.Start(); err != nil {
		return nil, fmt.Errorf("docker events: %w", err)
	}
	w.read.Go(func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			w.mu.Lock()
			w.account = append(w.account, lines.Text())
			w.mu.Unlock()
		}
	})
	return w, nil
}

func (w *witness) end() {
	if w == nil {
		return
	}
	_ = w.cmd.Process.Kill()
	w.read.Wait()
	_ = w.cmd.Wait() // killed is what it is meant to be
}

func (w *witness) so() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.account)
}

// lives counts the starts of a member; each must come after its end.
func (w *witness) lives(member string) (n int, err error) {
	running := false
	for i, line := range w.so() {
		switch line {
		case "start " + member:
			if running {
				return n, fmt.Errorf("two of %s ran at once: %q", member, w.so()[:i+1])
			}
			n, running = n+1, true
		case "die " + member:
			running = false
		}
	}
	return n, nil
}

// lives is the command `lives MEMBER N`: the member was started N times by now, and
// never while another one of it ran. On the simulator, which watches that itself, the
// starts are counted by their events.
func (s *stage) lives(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("usage: lives MEMBER N")
	}
	want, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	count := func() (int, error) { return s.told(args[0]) }
	if s.engine == "docker" {
		count = func() (int, error) { return s.witness.lives(args[0]) }
	}
	return eventually(func() error {
		got, err := count()
		if err != nil {
			return err
		}
		if got != want {
			return fmt.Errorf("%s had %d lives, want %d", args[0], got, want)
		}
		return nil
	})
}

// told counts the starts of a member that stsd tells of.
func (s *stage) told(member string) (n int, err error) {
	cmd := exec.Command(filepath.Join(binary, "stsd"), "-n", s.ns, "-H", "unix://"+s.socket, "events", member, "-o", "json")
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("stsd events %s: %w", member, err)
	}
	for lines := json.NewDecoder(strings.NewReader(string(out))); lines.More(); {
		var e struct {
			Reason string
			Count  int
		}
		if err := lines.Decode(&e); err != nil {
			return 0, err
		}
		if e.Reason == "Created" || e.Reason == "Restarted" {
			n += max(1, e.Count)
		}
	}
	return n, nil
}

// saw is the command `saw start web-0, die web-0`: that is what Docker told since the
// last one, in this order, as far as it goes.
func (s *stage) saw(args []string) error {
	want := strings.Split(strings.Join(args, " "), ", ")
	err := eventually(func() error {
		got := s.witness.so()[s.witness.told:]
		if len(got) < len(want) || !slices.Equal(got[:len(want)], want) {
			return fmt.Errorf("docker told %q, want %q", got, want)
		}
		return nil
	})
	s.witness.told += len(want)
	return err
}

// until is the command `until PATTERN COMMAND…`: it is run again and again until it
// prints what the pattern matches.
func until(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: until PATTERN COMMAND…")
	}
	pattern, err := regexp.Compile(args[0])
	ts.Check(err)
	ts.Check(eventually(func() error {
		err := ts.Exec(args[1], args[2:]...)
		if !pattern.MatchString(ts.ReadFile("stdout")) {
			return fmt.Errorf("%s never printed %q: %v", args[1], args[0], err)
		}
		return err
	}))
}

// eventually tries until it holds.
func eventually(holds func() error) (err error) {
	for start := time.Now(); time.Since(start) < patience; time.Sleep(100 * time.Millisecond) {
		if err = holds(); err == nil {
			return nil
		}
	}
	return err
}

func TestTheWitnessSeesTwoAtOnce(t *testing.T) {
	apart := &witness{account: []string{"start web-0", "start web-1", "die web-0", "start web-0"}}
	if n, err := apart.lives("web-0"); n != 2 || err != nil {
		t.Errorf("lives = %d, %v; want 2", n, err)
	}
	meeting := &witness{account: []string{"start web-0", "start web-1", "start web-0", "die web-0"}}
	if _, err := meeting.lives("web-0"); err == nil {
		t.Error("two of web-0 at once are not seen")
	}
}
