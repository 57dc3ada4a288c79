package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stsd/stsd/jobspecs"
)

// sayDefaulted tells which container is meant where members have several and none
// was named, once for members that are alike.
func (a *app) sayDefaulted(container string, members []jobspecs.Member) {
	if container != "" {
		return
	}
	var said []string
	for _, m := range members {
		text := defaulted(m)
		if text != "" && !slices.Contains(said, text) {
			said = append(said, text)
			a.say("%s", text)
		}
	}
}

// defaulted is "Defaulted container web out of: web, exporter (sidecar), prepare
// (init)"; "" where there is nothing to choose from.
func defaulted(m jobspecs.Member) string {
	if len(m.Containers) < 2 {
		return ""
	}
	var mains, others []string
	for _, c := range m.Containers {
		if c.Kind == jobspecs.KindMain {
			mains = append(mains, c.Name)
			continue
		}
		others = append(others, fmt.Sprintf("%s (%s)", c.Name, c.Kind))
	}
	if mains == nil {
		return ""
	}
	return fmt.Sprintf("Defaulted container %s out of: %s", mains[0], strings.Join(append(mains, others...), ", "))
}

// begun is when what runs of a member began: of one container, or "" of the member.
func begun(m jobspecs.Member, container string) *time.Time {
	for _, c := range m.Containers {
		if c.Name == container {
			return c.StartedAt
		}
	}
	return m.StartedAt
}

// containerRows are the containers of a member, as the last part of status and
// explain: where there are several, or the one is not well.
func (a *app) containerRows(member string, containers []jobspecs.MemberContainer) [][]string {
	if len(containers) == 1 && containers[0].Ready {
		return nil
	}
	var rows [][]string
	for _, c := range containers {
		row := []string{c.Name, c.Kind, orDash(c.State), readyCell(c), fmt.Sprint(c.Restarts), a.age(c.StartedAt), orDash(c.Image), orDash(whyContainer(c))}
		if member != "" {
			row = append([]string{member}, row...)
		}
		rows = append(rows, row)
	}
	return rows
}

// readyCell is "-" for an init container, which is never ready.
func readyCell(c jobspecs.MemberContainer) string {
	if c.Kind == jobspecs.KindInit {
		return "-"
	}
	return map[bool]string{true: "ready", false: "not ready"}[c.Ready]
}

// whyContainer is the reason for a container's state, else how it ended last.
func whyContainer(c jobspecs.MemberContainer) string {
	switch {
	case c.Reason != "" && c.Message != "":
		return c.Reason + ": " + firstLine(c.Message)
	case c.Reason != "":
		return c.Reason
	}
	last := ""
	if c.State == "running" {
		last = "last "
	}
	switch {
	case c.OOMKilled:
		return last + "out of memory"
	case c.Signal != "":
		return last + "ended by " + c.Signal
	case c.ExitCode != nil:
		return fmt.Sprintf("%sexit code %d", last, *c.ExitCode)
	}
	return ""
}
