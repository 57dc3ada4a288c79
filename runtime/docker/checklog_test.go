package docker

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/runtime/pods"
)

// target is a running container as the agent asks it.
func (e *env) target(t *testing.T, id string) pods.Target {
	t.Helper()
	c := must(e.Inspect(t.Context(), id))(t)
	return pods.Target{ID: id, Address: c.Address, Run: c.StartedAt}
}

func (e *env) logSays(t *testing.T, at pods.Target, pattern string) string {
	t.Helper()
	_, err := e.Check(t.Context(), at, jobspecs.Probe{Log: &jobspecs.LogCheck{Pattern: pattern}})
	return errorText(err)
}

func TestLogProbe(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	id := e.run(e.spec("web", 0, args("say", "starting up", "!a warning")))
	e.hears(t, "web-0", "starting up")
	e.hears(t, "web-0", "a warning")
	at := e.target(t, id)
	notYet := func(pattern string) string { return fmt.Sprintf("log %q: no line matches yet", pattern) }
	for _, c := range []struct{ pattern, want string }{
		{"starting", ""},
		{"^starting up$", ""},
		{"^a warning$", ""}, // on stderr
		{"^starting$", notYet("^starting$")},
		{"up\na", notYet("up\na")}, // a line ends there
		{"(", "log \"(\": error parsing regexp: missing closing ): `(`"},
		{"later", notYet("later")},
	} {
		if got := e.logSays(t, at, c.pattern); got != c.want {
			t.Errorf("%s: %q, want %q", c.pattern, got, c.want)
		}
	}

	check(t, raw().ContainerKill(t.Context(), id, "USR1"))
	e.hears(t, "web-0", "later")
	if got := e.logSays(t, at, "later"); got != "" {
		t.Errorf("a line that came since the last check: %q", got)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Check(over, at, jobspecs.Probe{Log: &jobspecs.LogCheck{Pattern: "later"}}); err != nil {
		t.Errorf("what was found once is read again: %v", err)
	}

	check(t, raw().ContainerStop(t.Context(), id, container.StopOptions{}))
	check(t, raw().ContainerStart(t.Context(), id, container.StartOptions{}))
	if got := e.logSays(t, e.target(t, id), "later"); got != notYet("later") {
		t.Errorf("a line of the run before: %q", got)
	}
}

// hears waits for a line in a member's output.
func (e *env) hears(t *testing.T, member, line string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	w := &lineMatcher{pattern: regexp.MustCompile("^" + regexp.QuoteMeta(line) + "$")}
	err := e.Logs(ctx, e.pod(member), runtime.LogOptions{Follow: true}, w, w)
	if err == nil || !strings.Contains(err.Error(), errLineFound.Error()) {
		t.Fatalf("%s did not say %q: %v", member, line, err)
	}
}

func TestLogProbeOfATerminal(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	made := must(raw().ContainerCreate(t.Context(), &container.Config{
		Image: e.image, Cmd: []string{"say", "ready"}, Tty: true, Labels: map[string]string{jobspecs.LabelDaemon: e.cfg.Daemon},
	}, nil, nil, nil, ""))(t)
	check(t, raw().ContainerStart(t.Context(), made.ID, container.StartOptions{}))
	at := e.target(t, made.ID)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	got := "never asked"
	for got != "" && ctx.Err() == nil { // a real process on a real clock
		got = e.logSays(t, at, "^ready$")
	}
	if got != "" {
		t.Error(got)
	}
}

func TestLogProbeOfADriverThatOnlyWrites(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	id := e.run(e.spec("web", 0, func(s *pods.ContainerSpec) { s.Main.Log = &jobspecs.Log{Driver: "none"} }))
	if got, want := e.logSays(t, e.target(t, id), "x"), `log "x": the log driver "none" cannot be read`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	err := e.Logs(t.Context(), e.pod("web-0"), runtime.LogOptions{}, nil, nil)
	if got, want := errorText(err), `read logs of web-0: the log driver "none" cannot be read`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLinesAreMatchedWhole(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 2*maxLogLine)
	for _, c := range []struct {
		name    string
		writes  []string
		pattern string
		want    bool
	}{
		{"in one write", []string{"a\nready\nb\n"}, "^ready$", true},
		{"over two writes", []string{"a\nrea", "dy\n"}, "^ready$", true},
		{"a terminal's line", []string{"ready\r\n"}, "^ready$", true},
		{"not ended yet", []string{"a\nready"}, "ready", false},
		{"an empty line", []string{"a\n\n"}, "^$", true},
		{"the end of a long line", []string{long, "ready\n"}, "ready", false},
		{"after a long line", []string{long, "\nready\n"}, "^ready$", true},
		{"the beginning of a long line", []string{"ready" + long + "\n"}, "^ready", true},
	} {
		m := &lineMatcher{pattern: regexp.MustCompile(c.pattern)}
		var err error
		for _, w := range c.writes {
			if err == nil {
				_, err = m.Write([]byte(w))
			}
		}
		if got := err == errLineFound; got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
		if cap(m.line) > 2*maxLogLine {
			t.Errorf("%s: holds %d bytes", c.name, cap(m.line))
		}
	}
}

func TestWhereReadingOfALogBegins(t *testing.T) {
	t.Parallel()
	at := func(s int) time.Time { return time.Unix(int64(1000+s), 0) }
	never := time.Time{}
	for _, c := range []struct {
		name             string
		run, from, ended time.Time
		want             time.Time
	}{
		{"the first time: a little before the engine noted the run", at(0), never, never, at(-2)},
		{"never before the end of the run before", at(0), never, at(-1), at(-1).Add(1)},
		{"further: a little of what was read", at(0), at(50), at(-1), at(48)},
		{"a run that is not known: all", never, never, never, never},
		{"an end that is noted after the begin, as engines do by mistake", at(0), never, at(1), at(-2)},
	} {
		if got := logStart(c.run, c.from, c.ended, logOverlap); !got.Equal(c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestLogChecksOfGoneContainersAreForgotten(t *testing.T) {
	t.Parallel()
	var l logChecks
	run := time.Unix(1, 0)
	for i := range manyLogChecks - 1 {
		l.put(logKey{fmt.Sprint(i), "x"}, logSeen{run: run, matched: true})
	}
	for k := range l.used {
		l.used[k] = time.Now().Add(-2 * oldLogCheck)
	}
	l.get(logKey{"7", "x"}, run) // is asked for
	l.put(logKey{"new", "x"}, logSeen{run: run})
	if len(l.seen) != 2 || !l.get(logKey{"7", "x"}, run).matched {
		t.Errorf("%d are left, want those of 7 and of the new one", len(l.seen))
	}
	if l.get(logKey{"7", "x"}, run.Add(1)).matched {
		t.Error("another run has matched")
	}
}
