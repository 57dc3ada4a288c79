package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/stsd/stsd/jobspecs"
)

// display shows updates while following.
type display interface {
	show(u update)
	end()
}

// display chooses by --progress: live rows on a terminal, lines elsewhere.
func (a *app) display(w io.Writer) display {
	mode := a.progress
	if mode == "auto" {
		mode = "plain"
		if _, isTerminal := terminal(w); isTerminal && a.env["TERM"] != "dumb" {
			mode = "tty"
		}
	}
	switch {
	case mode == "json":
		return &jsonDisplay{w}
	case a.quiet:
		return silent{}
	case mode == "tty":
		return &liveDisplay{w: w, sets: map[int]jobspecs.Status{}}
	}
	return newPlainDisplay(w)
}

type silent struct{}

func (silent) show(update) {}
func (silent) end()        {}

// jsonDisplay writes every status as one line.
type jsonDisplay struct{ w io.Writer }

func (d *jsonDisplay) show(u update) {
	if u.deleted || u.lost {
		return
	}
	_ = json.NewEncoder(d.w).Encode(u.status) // nobody is left to tell
}

func (d *jsonDisplay) end() {}

// plainDisplay writes one line per change of a member.
type plainDisplay struct {
	w    io.Writer
	seen map[int]map[string]string // goal → member → how it was last
	said map[string]string         // member → the last line
	lost bool
}

func newPlainDisplay(w io.Writer) *plainDisplay {
	return &plainDisplay{w: w, seen: map[int]map[string]string{}, said: map[string]string{}}
}

func (d *plainDisplay) show(u update) {
	if u.lost || d.lost {
		if u.lost && !d.lost {
			fmt.Fprintln(d.w, lostText)
		}
		d.lost = u.lost
		if u.lost {
			return
		}
	}
	if u.deleted {
		return
	}
	before, first := d.seen[u.goal], d.seen[u.goal] == nil
	now := map[string]string{}
	for _, m := range readyFirst(u.status.Members) {
		name := nameOf(m.Namespace, m.Name)
		now[name] = essence(m)
		if before[name] != now[name] && (!first || !m.Available || u.status.Deleting) {
			d.say(name, memberLine(m))
		}
	}
	var gone []string
	for name := range before {
		if _, ok := now[name]; !ok {
			gone = append(gone, name)
		}
	}
	slices.Sort(gone)
	for _, name := range gone {
		d.say(name, name+"  removed")
	}
	d.seen[u.goal] = now
}

// say writes a line of a member, unless it is the one that was written last.
func (d *plainDisplay) say(member, line string) {
	if d.said[member] != line {
		fmt.Fprintln(d.w, line)
	}
	d.said[member] = line
}

func (d *plainDisplay) end() {}

const lostText = "the daemon does not answer; trying again"

// readyFirst puts members that are available before others: one of these may
// have been stopped because those became so.
func readyFirst(members []jobspecs.Member) []jobspecs.Member {
	out := slices.Clone(members)
	slices.SortStableFunc(out, func(a, b jobspecs.Member) int {
		switch {
		case a.Available == b.Available:
			return 0
		case a.Available:
			return -1
		}
		return 1
	})
	return out
}

// essence is what makes a change worth a line. Messages are not part of it, for
// those of a probe change all the time; that there is a first one is.
func essence(m jobspecs.Member) string {
	silent := strings.HasSuffix(m.Message, "has not answered yet")
	return fmt.Sprint(m.Phase, m.Ready, m.Available, m.Reason, m.Revision, m.Restarts, silent, heldBack(m))
}

// heldBack tells whether an available member waits for somebody to do something, as
// with a guard, and not for its turn.
func heldBack(m jobspecs.Member) bool {
	return m.Available && strings.HasPrefix(m.Waiting, m.Name+" waits: ")
}

// memberLine is "prod/web-1  Running  ready  (available)".
func memberLine(m jobspecs.Member) string {
	line := nameOf(m.Namespace, m.Name) + "  " + m.Phase + "  " + readyWord(m)
	if why := whyOf(m); why != "" {
		line += "  (" + why + ")"
	}
	return line
}

func readyWord(m jobspecs.Member) string {
	if m.Ready {
		return "ready"
	}
	return "not ready"
}

// whyOf is the reason for a member's state, for people who see its name beside it.
func whyOf(m jobspecs.Member) string {
	switch {
	case heldBack(m):
		return "available, waits: " + nameless(m, m.Waiting)
	case m.Available:
		return "available"
	case m.Reason != "" && m.Message != "" && m.Reason != reasonNotCreated:
		return m.Reason + ": " + nameless(m, m.Message)
	case m.Message != "":
		return nameless(m, m.Message)
	case m.Waiting != "":
		return nameless(m, m.Waiting)
	}
	return m.Reason
}

// nameless is the first line of a text without the member's own name before it.
func nameless(m jobspecs.Member, text string) string {
	text = strings.TrimPrefix(firstLine(text), m.Name+" ")
	return strings.TrimPrefix(text, "waits: ")
}

// reasonNotCreated is the reason of a slot that has no pod yet; its message
// says what it waits for.
const reasonNotCreated = "NotCreated"

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return s
}

// liveDisplay redraws rows in place.
type liveDisplay struct {
	w     io.Writer
	sets  map[int]jobspecs.Status
	lost  bool
	drawn int // lines on the screen
}

func (d *liveDisplay) show(u update) {
	d.lost = u.lost
	switch {
	case u.deleted:
		delete(d.sets, u.goal)
	case !u.lost:
		d.sets[u.goal] = u.status
	}
	d.draw()
}

func (d *liveDisplay) draw() {
	width, height := size(d.w)
	var sets []jobspecs.Status
	for i := range len(d.sets) + d.gaps() {
		if st, ok := d.sets[i]; ok {
			sets = append(sets, st)
		}
	}
	rows := liveRows(sets, width, height-1)
	if d.lost {
		rows = append(rows, cut(lostText, width))
	}
	var b strings.Builder
	if d.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\r", d.drawn)
	}
	b.WriteString("\x1b[J") // clear what is below
	for _, r := range rows {
		b.WriteString(r + "\n")
	}
	d.drawn = len(rows)
	_, _ = io.WriteString(d.w, b.String()) // nobody is left to tell
}

// gaps is how far the highest goal lies above the number of sets.
func (d *liveDisplay) gaps() int {
	highest := 0
	for i := range d.sets {
		highest = max(highest, i+1)
	}
	return highest - len(d.sets)
}

func (d *liveDisplay) end() {}

// liveRows are the rows of sets, cut to the screen: where they do not fit,
// members that are available give way first.
func liveRows(sets []jobspecs.Status, width, height int) []string {
	rows := setRows(sets, func(jobspecs.Member) bool { return true })
	if len(rows) > height {
		rows = setRows(sets, func(m jobspecs.Member) bool { return !m.Available })
	}
	if len(rows) > height && height > 1 {
		more := len(rows) - height + 1
		rows = append(rows[:height-1], fmt.Sprintf("… and %d more", more))
	}
	for i := range rows {
		rows[i] = cut(rows[i], width)
	}
	return rows
}

func setRows(sets []jobspecs.Status, shown func(jobspecs.Member) bool) []string {
	var rows []string
	for _, st := range sets {
		rows = append(rows, headline(st))
		var cells [][]string
		for _, m := range st.Members {
			if shown(m) {
				cells = append(cells, []string{m.Name, m.Phase, readyWord(m), whyOf(m)})
			}
		}
		for _, r := range aligned(cells) {
			rows = append(rows, "  "+r)
		}
	}
	return rows
}

func headline(st jobspecs.Status) string {
	s := fmt.Sprintf("%s  %d/%d ready  %d updated", nameOf(st.Namespace, st.Name), st.ReadyReplicas, st.Replicas, st.UpdatedReplicas)
	if st.Deleting {
		return s + "  deleting"
	}
	if st.Waiting != nil {
		s += fmt.Sprintf("  %s: %s", st.Waiting.Member, firstLine(st.Waiting.For))
	}
	return s
}
