package hostdns

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"slices"
	"strings"
)

// A block of the hosts file is ours from the line that begins with beginMark and
// the daemon's id to the one of endMark. What is outside is never touched.
const (
	beginMark = "# BEGIN stsd "
	endMark   = "# END stsd "
	remark    = `: kept by its daemon; "stsd dns uninstall" takes it away`
	// glued says in the first line that the file did not end in a newline, and that
	// the one before the block goes with it.
	glued = " (with the newline before)"
)

// Entry is one line of the block.
type Entry struct {
	Address netip.Addr
	Names   []string
}

// Lines are the entries as lines of a hosts file, in a stable order.
func Lines(entries []Entry) []string {
	var lines []string
	for _, e := range entries {
		if e.Address.IsValid() && len(e.Names) > 0 {
			lines = append(lines, e.Address.String()+"\t"+strings.Join(e.Names, " "))
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// span is where a block stands in a text: its first line begins at start, its
// last ends at end; body is between the two.
type span struct{ start, body, tail, end int }

// find looks for a block. ok is false when there is none; a damaged one is an error.
func find(text []byte, id string) (s span, ok bool, err error) {
	s.start = -1
	for at := 0; at < len(text); {
		next := at + len(text[at:])
		if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
			next = at + i + 1
		}
		line := strings.TrimRight(string(text[at:next]), "\r\n")
		switch {
		case begins(line, id) && s.start >= 0:
			return s, false, fmt.Errorf("line %d: the block of stsd %s begins twice", 1+bytes.Count(text[:at], newline), id)
		case begins(line, id):
			s.start, s.body = at, next
		case line == endMark+id && s.start < 0:
			return s, false, fmt.Errorf("line %d: the block of stsd %s ends before it begins", 1+bytes.Count(text[:at], newline), id)
		case line == endMark+id && s.end == 0:
			s.tail, s.end = at, next
		case line == endMark+id:
			return s, false, fmt.Errorf("line %d: the block of stsd %s ends twice", 1+bytes.Count(text[:at], newline), id)
		}
		at = next
	}
	if s.start >= 0 && s.end == 0 {
		return s, false, fmt.Errorf("the block of stsd %s does not end: write the line %q where it should, or remove it by hand", id, endMark+id)
	}
	return s, s.start >= 0, nil
}

var newline = []byte("\n")

func begins(line, id string) bool {
	rest, ok := strings.CutPrefix(line, beginMark+id)
	return ok && (rest == "" || rest[0] == ':' || rest[0] == ' ')
}

// putBlock gives the block of a text these lines; it is appended where there is none.
func putBlock(text []byte, id string, lines []string) ([]byte, error) {
	s, ok, err := find(text, id)
	if err != nil {
		return nil, err
	}
	body := strings.Join(lines, "\n")
	if body != "" {
		body += "\n"
	}
	if ok {
		return slices.Concat(text[:s.body], []byte(body), text[s.tail:]), nil
	}
	head := beginMark + id + remark
	if n := len(text); n > 0 && text[n-1] != '\n' {
		head = "\n" + head + glued
	}
	return slices.Concat(text, []byte(head+"\n"+body+endMark+id+"\n")), nil
}

// takeBlock removes the block. What putBlock appended it removes to the byte.
func takeBlock(text []byte, id string) ([]byte, error) {
	s, ok, err := find(text, id)
	if err != nil || !ok {
		return text, err
	}
	first := strings.TrimRight(string(text[s.start:s.body]), "\r\n")
	if strings.HasSuffix(first, glued) && s.start > 0 && s.end == len(text) {
		s.start--
	}
	return slices.Concat(text[:s.start], text[s.end:]), nil
}

// KeepBlock gives the daemon's block of a hosts file its lines, which are asked for
// only where there is one. A file without it is left alone: it is "stsd dns
// install" that asks for the block.
func KeepBlock(path, id string, lines func() []string) (changed bool, err error) {
	err = locked(path, func() error {
		changed, err = keepBlock(path, id, lines)
		return err
	})
	return changed, err
}

func keepBlock(path, id string, lines func() []string) (changed bool, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	_, ok, err := find(text, id)
	if err != nil {
		return false, fmt.Errorf("%s: %w", path, err)
	}
	if !ok {
		return false, nil
	}
	fresh, err := putBlock(text, id, lines())
	if err != nil || bytes.Equal(fresh, text) {
		return false, err
	}
	return true, overwrite(path, fresh)
}
