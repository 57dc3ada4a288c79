package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/jobspecs"
)

type eventFlags struct {
	follow        bool
	since         string
	allNamespaces bool
}

func newEventsCmd(a *app) *cobra.Command {
	var f eventFlags
	cmd := &cobra.Command{
		Use:               "events [TARGET]",
		Short:             "Show what happened",
		Long:              "events shows what happened, oldest first. -o json writes one object a line.",
		Args:              args(0, 1, "TARGET"),
		ValidArgsFunction: first(a.completeTargets),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.events(cmd.Context(), f, args) },
	}
	cmd.Flags().BoolVarP(&f.follow, "follow", "f", false, "go on with those that happen from now")
	cmd.Flags().StringVar(&f.since, "since", "", "younger than this (10m) or since a time (2026-01-02T15:04:05Z)")
	cmd.Flags().BoolVarP(&f.allNamespaces, "all-namespaces", "A", false, "of all namespaces")
	return cmd
}

func (a *app) events(ctx context.Context, f eventFlags, args []string) error {
	q, wanted, err := a.eventQuery(f, args)
	if err != nil {
		return err
	}
	c, err := a.client()
	if err != nil {
		return err
	}
	if err := a.known(ctx, c, args); err != nil {
		return err
	}
	show, end, err := a.eventWriter(f)
	if err != nil {
		return err
	}
	each := func(e jobspecs.Event) error {
		q.Since = e.Time
		if !wanted(e) {
			return nil
		}
		return show(e)
	}
	for {
		err := c.Events(ctx, q, each)
		switch {
		case err == nil:
			return end()
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !f.follow || !errors.Is(err, client.ErrStreamEnded):
			return err
		}
		a.say("%s", lostText)
		q.Since = q.Since.Add(1) // what was shown is not shown again
		if !sleep(ctx, pause) {
			return context.Cause(ctx)
		}
	}
}

// known is nil when what the arguments name exists, or existed: events outlive
// members.
func (a *app) known(ctx context.Context, c *client.Client, args []string) error {
	if len(args) == 0 {
		return nil
	}
	_, _, err := a.members(ctx, c, args)
	var own *exitError
	if errors.As(err, &own) && own.code == exitFailure {
		a.say("%v; its events, if any:", err)
		return nil
	}
	return err
}

func (a *app) eventQuery(f eventFlags, args []string) (client.EventQuery, func(jobspecs.Event) bool, error) {
	all := func(jobspecs.Event) bool { return true }
	q := client.EventQuery{Namespace: a.listed(listFlags{allNamespaces: f.allNamespaces}, nil), Follow: f.follow}
	var err error
	if q.Since, err = a.since(f.since); err != nil || len(args) == 0 {
		return q, all, err
	}
	t, err := parseTarget(args[0])
	if err != nil {
		return q, all, err
	}
	if err := a.place(&t); err != nil {
		return q, all, err
	}
	q.Namespace = t.namespace
	return q, t.about, nil
}

// about tells whether an event is about what the target names.
func (t target) about(e jobspecs.Event) bool {
	if e.Set == t.name || e.Member == t.name {
		return true
	}
	set, n, ok := jobspecs.ParseMember(e.Member)
	return ok && t.picks(jobspecs.Member{Set: set, Ordinal: n})
}

// eventWriter gives the way to show one event, and to end.
func (a *app) eventWriter(f eventFlags) (each func(jobspecs.Event) error, end func() error, err error) {
	nothing := func() error { return nil }
	switch a.format.kind {
	case "json":
		enc := json.NewEncoder(a.stdout)
		enc.SetEscapeHTML(false)
		return func(e jobspecs.Event) error { return enc.Encode(e) }, nothing, nil
	case "yaml":
		return func(e jobspecs.Event) error {
			fmt.Fprintln(a.stdout, "---")
			return writeYAML(a.stdout, e)
		}, nothing, nil
	case "go-template":
		return func(e jobspecs.Event) error { return writeTemplate(a.stdout, a.format.template, e) }, nothing, nil
	case "name":
		return nil, nil, usagef("-o name: events have no names")
	}
	if f.follow {
		return a.eventLine, nothing, nil
	}
	var list []jobspecs.Event
	return func(e jobspecs.Event) error {
			list = append(list, e)
			return nil
		}, func() error {
			return a.show(a.eventsView(list, f.allNamespaces))
		}, nil
}

func (a *app) eventsView(list []jobspecs.Event, namespaces bool) view {
	t := table{}
	head := []string{"AGE", "TYPE", "REASON", "OBJECT", "MESSAGE"}
	if namespaces {
		head = append([]string{"NAMESPACE"}, head...)
	}
	t.row(head...)
	t.rows = append(t.rows, a.eventRows(list, namespaces)...)
	return view{doc: orEmpty(list), table: a.tableOr(t, len(list), "no events")}
}

func (a *app) eventRows(list []jobspecs.Event, namespaces bool) [][]string {
	var rows [][]string
	for _, e := range list {
		row := []string{a.age(&e.Time), e.Type, e.Reason, objectOf(e), a.eventText(e)}
		if namespaces {
			row = append([]string{e.Namespace}, row...)
		}
		rows = append(rows, row)
	}
	return rows
}

// eventLine shows one event while following.
func (a *app) eventLine(e jobspecs.Event) error {
	_, err := io.WriteString(a.stdout, fmt.Sprintf("%s  %s  %s  %s  %s\n", e.Time.Local().Format(time.TimeOnly), e.Type, e.Reason, objectOf(e), a.eventText(e)))
	return err
}

func objectOf(e jobspecs.Event) string {
	if e.Member != "" {
		return e.Member
	}
	return orDash(e.Set)
}

// eventText is the message, with how often it was given and since when.
func (a *app) eventText(e jobspecs.Event) string {
	switch {
	case e.Count > 1 && e.FirstTime.IsZero():
		return fmt.Sprintf("%s (%d times)", firstLine(e.Message), e.Count)
	case e.Count > 1:
		return fmt.Sprintf("%s (%d times, first %s ago)", firstLine(e.Message), e.Count, a.age(&e.FirstTime))
	}
	return firstLine(e.Message)
}
