package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/jobspecs"
)

func newStatusCmd(a *app) *cobra.Command {
	var watch bool
	cmd := &cobra.Command{
		Use:   "status SET",
		Short: "Show counts, revisions, what a set waits for, conditions, volumes, names and events",
		Long: "status shows a set as a whole. With -o wide it lists the containers of members that have several, too.\n" +
			"Of a volume that has a size it shows what it holds, as measured in the last minutes.",
		Args:              args(1, 1, "SET"),
		ValidArgsFunction: first(a.completeSets),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.status(cmd.Context(), args[0], watch) },
	}
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "show again after each change")
	return cmd
}

func (a *app) status(ctx context.Context, arg string, watch bool) error {
	key, err := a.setArg("status", arg)
	if err != nil {
		return err
	}
	c, err := a.client()
	if err != nil {
		return err
	}
	if watch {
		last := ""
		err := c.WatchStatus(ctx, key, func(st jobspecs.Status) error {
			return a.showChanged(&last, a.statusView(st, a.lastEvents(ctx, c, key)))
		})
		return a.orMember(ctx, c, "status", key, err)
	}
	st, err := c.Status(ctx, key)
	if err != nil {
		return a.orMember(ctx, c, "status", key, err)
	}
	return a.show(a.statusView(st, a.lastEvents(ctx, c, key)))
}

// eventsShown is how many events status shows.
const eventsShown = 5

// lastEvents are read for people only; status is whole without them.
func (a *app) lastEvents(ctx context.Context, c *client.Client, key jobspecs.Key) []jobspecs.Event {
	if !a.format.table() {
		return nil
	}
	var last []jobspecs.Event
	err := c.Events(ctx, client.EventQuery{Namespace: key.Namespace, Set: key.Name}, func(e jobspecs.Event) error {
		last = append(last, e)
		return nil
	})
	if err != nil && !errors.Is(err, context.Canceled) {
		a.say("events: %v", err)
	}
	return last[max(len(last)-eventsShown, 0):]
}

func (a *app) statusView(st jobspecs.Status, events []jobspecs.Event) view {
	return view{doc: st, names: []string{nameOf(st.Namespace, st.Name)}, table: func(w io.Writer) { a.writeStatus(w, st, events) }}
}

func (a *app) writeStatus(w io.Writer, st jobspecs.Status, events []jobspecs.Event) {
	facts := table{}
	facts.row("Set", st.Name)
	facts.row("Namespace", st.Namespace)
	facts.row("Created", a.age(&st.Created)+" ago")
	facts.row("Replicas", fmt.Sprintf("%d wanted, %d ready, %d available, %d updated", st.Replicas, st.ReadyReplicas, st.AvailableReplicas, st.UpdatedReplicas))
	facts.row("Revision", revisionLine(st))
	facts.row("Generation", generationLine(st))
	facts.row("Rollout", a.rolloutLine(st))
	if o := overridesLine(st.Overrides); o != "" {
		facts.row("Overrides", o)
	}
	facts.write(w)
	section(w, "Conditions", a.conditionRows(st))
	section(w, "Members", a.memberRows(st))
	section(w, "Containers", a.allContainerRows(st))
	section(w, "Volumes", volumeRows(st))
	section(w, "Names", endpointRows(st))
	section(w, "Events", a.eventRows(events, false))
}

func section(w io.Writer, title string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s\n", title)
	t := table{indent: "  ", rows: rows}
	t.write(w)
}

func revisionLine(st jobspecs.Status) string {
	if st.CurrentRevision == st.UpdateRevision {
		return st.UpdateRevision
	}
	return fmt.Sprintf("%s → %s", st.CurrentRevision, st.UpdateRevision)
}

func generationLine(st jobspecs.Status) string {
	if st.ObservedGeneration >= st.Generation {
		return fmt.Sprint(st.Generation)
	}
	return fmt.Sprintf("%d (seen: %d)", st.Generation, st.ObservedGeneration)
}

// reasonDeadline is the reason of Paused while a rollout that missed its deadline stands
// still.
const reasonDeadline = "DeadlineExceeded"

// rolloutLine is how the rollout stands and what it waits for.
func (a *app) rolloutLine(st jobspecs.Status) string {
	progressing, _ := condition(st, jobspecs.CondProgressing)
	s := progressing.Reason
	switch {
	case st.Deleting:
		s = "deleting"
	case st.Paused:
		s = "paused; stsd rollout resume " + nameOf(st.Namespace, st.Name)
	case progressing.Reason == reasonComplete:
		return "complete"
	}
	if paused, _ := condition(st, jobspecs.CondPaused); paused.Status && paused.Reason == reasonDeadline {
		return "failed; stsd rollout resume " + nameOf(st.Namespace, st.Name) + " tries again"
	}
	if st.Waiting == nil {
		return orDash(s)
	}
	return strings.TrimPrefix(fmt.Sprintf("%s, waiting for %s since %s: %s", s, st.Waiting.Member, a.age(&st.Waiting.Since), firstLine(st.Waiting.For)), ", ")
}

func overridesLine(o *jobspecs.Overrides) string {
	if o == nil {
		return ""
	}
	var parts []string
	if kept := o.Kept(); kept != "" {
		parts = append(parts, kept)
	}
	if o.Restarted != "" {
		parts = append(parts, "restarted "+o.Restarted)
	}
	return strings.Join(parts, "; ")
}

// conditionRows are the conditions that hold, and the two that always matter.
func (a *app) conditionRows(st jobspecs.Status) [][]string {
	var rows [][]string
	for _, c := range st.Conditions {
		if !c.Status && c.Type != jobspecs.CondAvailable && c.Type != jobspecs.CondProgressing {
			continue
		}
		rows = append(rows, []string{c.Type, map[bool]string{true: "yes", false: "no"}[c.Status], orDash(c.Reason), a.age(&c.Since), orDash(firstLine(c.Message))})
	}
	return rows
}

func (a *app) memberRows(st jobspecs.Status) [][]string {
	var rows [][]string
	for _, m := range st.Members {
		rows = append(rows, []string{m.Name, readyCount(m), a.stateOf(m), orDash(shortRevision(m.Set, m.Revision)), a.age(m.StartedAt), orDash(m.IP), whyCell(m)})
	}
	return rows
}

// allContainerRows are the containers of members that have several; with -o wide.
func (a *app) allContainerRows(st jobspecs.Status) [][]string {
	var rows [][]string
	for _, m := range st.Members {
		if a.format.wide() {
			rows = append(rows, a.containerRows(m.Name, m.Containers)...)
		}
	}
	return rows
}

func volumeRows(st jobspecs.Status) [][]string {
	var rows [][]string
	for _, v := range st.Volumes {
		row := []string{v.Name, v.State, orDash(v.Driver)}
		if v.Size > 0 || v.Message != "" {
			row = append(row, usageOf(v), v.Message)
		}
		rows = append(rows, row)
	}
	return rows
}

// usageOf is what a volume holds of its size: "950.3MiB of 1GiB (93%)".
func usageOf(v jobspecs.VolumeStatus) string {
	size := jobspecs.FormatSize(v.Size)
	switch {
	case v.Size == 0:
		return "-"
	case v.Used == nil:
		return "? of " + size
	}
	return fmt.Sprintf("%s of %s (%.0f%%)", jobspecs.FormatSize(*v.Used), size, float64(*v.Used)*100/float64(v.Size))
}

func endpointRows(st jobspecs.Status) [][]string {
	var rows [][]string
	for _, e := range st.Endpoints {
		rows = append(rows, []string{e.Name, orDash(strings.Join(e.Addresses, ", "))})
	}
	return rows
}
