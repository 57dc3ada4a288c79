package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

// merger prints the output of several members, each line with a prefix.
type merger struct {
	app     *app
	client  *client.Client
	options runtime.LogOptions

	mu    sync.Mutex // of the writers of app
	width int        // of the prefixes
}

// logLine is one line of a member.
type logLine struct {
	member string
	at     time.Time
	stderr bool
	text   []byte // with its end
}

// once merges by time what was written until now. Timestamps are asked for
// whether the user wants them or not.
func (m *merger) once(ctx context.Context, members []jobspecs.Member) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	m.widen(members)
	o := m.options
	o.Timestamps = true
	errs := make([]error, len(members))
	heads := make([]chan logLine, len(members))
	for i, member := range members {
		heads[i] = make(chan logLine, 64)
		wg.Go(func() {
			defer close(heads[i])
			errs[i] = m.read(ctx, member, o, heads[i])
		})
	}
	m.drain(heads)
	if err := ctx.Err(); err != nil {
		return err
	}
	return m.joined(members, errs)
}

// read sends a member's lines.
func (m *merger) read(ctx context.Context, member jobspecs.Member, o runtime.LogOptions, out chan<- logLine) error {
	var last time.Time
	each := func(stderr bool) *lineWriter {
		return &lineWriter{each: func(text []byte) error {
			l := logLine{member: nameOf(member.Namespace, member.Name), stderr: stderr, text: slices.Clone(text)}
			if at, rest, ok := stamped(l.text); ok {
				last = at
				if !m.options.Timestamps {
					l.text = rest
				}
			}
			l.at = last
			select {
			case out <- l:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}}
	}
	stdout, stderr := each(false), each(true)
	err := m.client.Logs(ctx, podName(member), o, stdout, stderr)
	return errors.Join(err, stdout.flush(), stderr.flush())
}

// stamped splits "2026-01-02T15:04:05.123456789Z text".
func stamped(line []byte) (at time.Time, rest []byte, ok bool) {
	stamp, rest, ok := bytes.Cut(line, []byte(" "))
	if !ok {
		return at, nil, false
	}
	at, err := time.Parse(time.RFC3339Nano, string(stamp))
	return at, rest, err == nil
}

// drain prints the earliest line of all until every channel is closed.
func (m *merger) drain(heads []chan logLine) {
	next := make([]*logLine, len(heads))
	take := func(i int) {
		next[i] = nil
		if l, ok := <-heads[i]; ok {
			next[i] = &l
		}
	}
	for i := range heads {
		take(i)
	}
	for {
		first := -1
		for i, l := range next {
			if l != nil && (first < 0 || l.at.Before(next[first].at)) {
				first = i
			}
		}
		if first < 0 {
			return
		}
		m.print(*next[first])
		take(first)
	}
}

// joined says which members' logs could not be read; a slot that was never
// created has none and that is no error, unless it is so for all.
func (m *merger) joined(members []jobspecs.Member, errs []error) error {
	var out []error
	absent := 0
	for i, err := range errs {
		if err == nil {
			continue
		}
		if isGone(err) {
			absent++
			if absent < len(members) {
				continue
			}
		}
		out = append(out, fmt.Errorf("%s: %w", members[i].Name, err))
	}
	return errors.Join(out...)
}

// followEvery is how often new members are looked for.
const followEvery = time.Second

// stream is what is followed of one member.
type stream struct {
	key     string
	started time.Time // of the container it is of
	running bool
	lostAt  time.Time // when the daemon went away; zero: it ended by itself
}

// follow prints lines as they come, also of members that come later and of
// those that come back.
func (m *merger) follow(ctx context.Context, args []string) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	ended := make(chan *stream)
	streams := map[string]*stream{}
	for first := true; ; first = false {
		members, _, err := m.app.members(ctx, m.client, args)
		if err != nil && (first || !isLost(err)) {
			return err
		}
		m.widen(members)
		for _, member := range members {
			key := member.Namespace + "/" + member.Name
			o, due := m.due(streams[key], member)
			if !due {
				continue
			}
			s := &stream{key: key, started: *begun(member, o.Container), running: true}
			streams[key] = s
			wg.Go(func() { m.followOne(ctx, member, o, s, ended) })
		}
		if !m.pause(ctx, ended) {
			return context.Cause(ctx)
		}
	}
}

// due tells whether a member's output is to be opened, and from where: the
// first time as the user said, after a restart of the daemon where it broke off,
// and of a new container from its start.
func (m *merger) due(s *stream, member jobspecs.Member) (runtime.LogOptions, bool) {
	o := m.options
	started := begun(member, o.Container)
	switch {
	case started == nil, s != nil && s.running:
		return o, false
	case s == nil:
		return o, true
	case !s.lostAt.IsZero():
		o.Since, o.Tail = s.lostAt, "all"
		return o, true
	}
	o.Since, o.Tail = *started, "all"
	return o, !started.Equal(s.started)
}

// pause waits for the next look and notes the streams that ended meanwhile.
func (m *merger) pause(ctx context.Context, ended <-chan *stream) bool {
	t := time.NewTimer(followEvery)
	defer t.Stop()
	for {
		select {
		case s := <-ended:
			s.running = false
		case <-t.C:
			return true
		case <-ctx.Done():
			return false
		}
	}
}

// followOne prints a member's lines until the stream ends.
func (m *merger) followOne(ctx context.Context, member jobspecs.Member, o runtime.LogOptions, s *stream, ended chan<- *stream) {
	each := func(stderr bool) *lineWriter {
		return &lineWriter{each: func(text []byte) error {
			m.print(logLine{member: nameOf(member.Namespace, member.Name), stderr: stderr, text: text})
			return nil
		}}
	}
	stdout, stderr := each(false), each(true)
	err := m.client.Logs(ctx, podName(member), o, stdout, stderr)
	_, _ = stdout.flush(), stderr.flush() // print does not fail
	switch {
	case err == nil, ctx.Err() != nil, isGone(err):
	case isLost(err):
		s.lostAt = m.app.now()
	default:
		m.app.say("%s: %v", member.Name, err)
	}
	select {
	case ended <- s: // hands s back
	case <-ctx.Done():
	}
}

func (m *merger) widen(members []jobspecs.Member) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, member := range members {
		m.width = max(m.width, len(nameOf(member.Namespace, member.Name)))
	}
}

// colours of the prefixes, in the order of ordinals.
var colours = []string{"\x1b[36m", "\x1b[33m", "\x1b[32m", "\x1b[35m", "\x1b[34m", "\x1b[31m"}

func (m *merger) print(l logLine) {
	m.mu.Lock()
	defer m.mu.Unlock()
	w := m.app.stdout
	if l.stderr {
		w = m.app.stderr
	}
	fmt.Fprintf(w, "%s %s", m.prefix(w, l.member), l.text)
	if !bytes.HasSuffix(l.text, []byte("\n")) {
		fmt.Fprintln(w)
	}
}

func (m *merger) prefix(w io.Writer, member string) string {
	text := member + strings.Repeat(" ", max(m.width-len(member), 0)) + " |"
	if !m.app.colour(w) {
		return text
	}
	_, ordinal, _ := jobspecs.ParseMember(member)
	return colours[ordinal%len(colours)] + text + "\x1b[0m"
}

// lineWriter cuts what is written into lines.
type lineWriter struct {
	each func(line []byte) error
	rest []byte
}

func (l *lineWriter) Write(p []byte) (int, error) {
	l.rest = append(l.rest, p...)
	for {
		i := bytes.IndexByte(l.rest, '\n')
		if i < 0 {
			return len(p), nil
		}
		if err := l.each(l.rest[:i+1]); err != nil {
			return 0, err
		}
		l.rest = l.rest[i+1:]
	}
}

// flush passes on a last line without an end.
func (l *lineWriter) flush() error {
	if len(l.rest) == 0 {
		return nil
	}
	rest := l.rest
	l.rest = nil
	return l.each(rest)
}
