package docker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime/pods"
)

// A check reads again a little of what the last one read: a line is stamped when
// it is written, and can be read a moment later. An engine on another machine has
// a clock of its own.
const (
	logOverlap       = 2 * time.Second
	logOverlapRemote = 5 * time.Minute
)

// maxLogLine is how much of a line a pattern sees, in bytes.
const maxLogLine = 64 << 10

// checkLog looks for a line in the output of this run. It remembers how far it has
// read, and a line that it found: from then on nothing is read.
func (h *Host) checkLog(ctx context.Context, t pods.Target, c *jobspecs.LogCheck) error {
	title := fmt.Sprintf("log %q", shorten(c.Pattern, 60))
	pattern, err := regexp.Compile(c.Pattern)
	if err != nil {
		return fmt.Errorf("%s: %w", title, err)
	}
	key := logKey{t.ID, c.Pattern}
	seen := h.logChecks.get(key, t.Run)
	if seen.matched {
		return nil
	}
	began := time.Now()
	seen.matched, err = h.findLine(ctx, t, seen.readTo, pattern)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", title, cause(ctx, ctx.Err()))
	case err != nil:
		return fmt.Errorf("%s: %w", title, err)
	}
	seen.readTo = began
	h.logChecks.put(key, seen)
	if !seen.matched {
		return fmt.Errorf("%s: no line matches yet", title)
	}
	return nil
}

// findLine reads the output from a moment on; zero: from the beginning of the run.
func (h *Host) findLine(ctx context.Context, t pods.Target, from time.Time, pattern *regexp.Regexp) (bool, error) {
	c, err := h.cli().ContainerInspect(ctx, t.ID)
	if err != nil {
		return false, engineError(err)
	}
	overlap := logOverlap
	if h.remote {
		overlap = logOverlapRemote
	}
	stream, err := h.cli().ContainerLogs(ctx, t.ID, container.LogsOptions{
		ShowStdout: true, ShowStderr: true, Since: since(logStart(t.Run, from, moment(c.State.FinishedAt), overlap)),
	})
	if err != nil {
		return false, logsError(err, &c)
	}
	defer stream.Close()
	stdout, stderr := &lineMatcher{pattern: pattern}, &lineMatcher{pattern: pattern}
	err = copyOutput(stream, c.Config.Tty, streams{stdout: stdout, stderr: stderr})
	if errors.Is(err, errLineFound) {
		return true, nil
	}
	if err != nil {
		return false, logsError(err, &c)
	}
	return false, nil
}

// logStart is where reading begins. A process may write before its engine has
// noted that it runs; what was written before the end of an earlier run of the
// same container is not of this run.
func logStart(run, from, ended time.Time, overlap time.Duration) time.Time {
	start := later(run, from)
	if start.IsZero() {
		return start
	}
	start = start.Add(-overlap)
	if ended.Before(run) {
		return later(start, ended.Add(1)) // a nanosecond
	}
	return start
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// lineMatcher takes output and fails with errLineFound at the first whole line
// that matches. It holds one line.
type lineMatcher struct {
	pattern *regexp.Regexp
	line    []byte
}

var errLineFound = errors.New("a line matches")

func (m *lineMatcher) Write(p []byte) (int, error) {
	n := len(p)
	for {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			m.keep(p)
			return n, nil
		}
		m.keep(p[:end])
		if m.pattern.Match(bytes.TrimSuffix(m.line, []byte("\r"))) {
			return n, errLineFound
		}
		m.line, p = m.line[:0], p[end+1:]
	}
}

func (m *lineMatcher) keep(p []byte) {
	m.line = append(m.line, p[:min(len(p), maxLogLine-len(m.line))]...)
}

// logKey is one pattern that is looked for in one container.
type logKey struct{ id, pattern string }

// logSeen is what is known of it.
type logSeen struct {
	run     time.Time // of the container
	readTo  time.Time // what was written before has been read; zero: nothing
	matched bool
}

// logChecks remembers log checks. One that was forgotten reads again from the
// beginning.
type logChecks struct {
	mu   sync.Mutex
	seen map[logKey]logSeen
	used map[logKey]time.Time // when it was asked for
}

// Checks of containers that are gone are forgotten when there are many.
const (
	manyLogChecks = 1000
	oldLogCheck   = 24 * time.Hour
)

func (l *logChecks) get(key logKey, run time.Time) logSeen {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, ok := l.seen[key]
	if !ok || !s.run.Equal(run) {
		return logSeen{run: run}
	}
	l.used[key] = time.Now()
	return s
}

func (l *logChecks) put(key logKey, s logSeen) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen == nil {
		l.seen, l.used = map[logKey]logSeen{}, map[logKey]time.Time{}
	}
	l.seen[key], l.used[key] = s, time.Now()
	if len(l.seen) < manyLogChecks {
		return
	}
	for k, at := range l.used {
		if time.Since(at) > oldLogCheck {
			delete(l.seen, k)
			delete(l.used, k)
		}
	}
}
