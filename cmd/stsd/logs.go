package main

import (
	"context"
	"fmt"
	"regexp"
	"time"

	"github.com/spf13/cobra"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

type logFlags struct {
	follow     bool
	tail       string
	since      string
	timestamps bool
	previous   bool
	container  string
}

func newLogsCmd(a *app) *cobra.Command {
	var f logFlags
	cmd := &cobra.Command{
		Use:   "logs TARGET…",
		Short: "Print the output of members, merged",
		Long: "logs prints the output of members. That of several is merged by time, each line with its member's name;\n" +
			"that of one member named alone is printed as it is.",
		Example:           "  stsd logs web-0\n  stsd logs -f web --tail 20\n  stsd logs web-1 --previous",
		Args:              args(1, -1, "TARGET"),
		ValidArgsFunction: a.completeTargets,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.logs(cmd.Context(), f, args) },
	}
	flags := cmd.Flags()
	flags.BoolVarP(&f.follow, "follow", "f", false, "go on with what is written from now, also by members that come later")
	flags.StringVar(&f.tail, "tail", "all", "number of lines from the end, or all")
	flags.StringVar(&f.since, "since", "", "lines younger than this (10m) or since a time (2026-01-02T15:04:05Z)")
	flags.BoolVarP(&f.timestamps, "timestamps", "t", false, "put the time before each line")
	flags.BoolVarP(&f.previous, "previous", "p", false, "of the last ended container")
	flags.StringVarP(&f.container, "container", "c", "", "container (default: the first main one)")
	a.complete(cmd, "container", a.completeContainers)
	return cmd
}

var tailText = regexp.MustCompile(`^([0-9]{1,9}|all)$`)

func (a *app) logs(ctx context.Context, f logFlags, args []string) error {
	o, err := a.logOptions(f)
	if err != nil {
		return err
	}
	c, err := a.client()
	if err != nil {
		return err
	}
	members, whole, err := a.members(ctx, c, args)
	if err != nil {
		return err
	}
	a.sayDefaulted(f.container, members)
	if len(members) == 1 && !whole {
		return c.Logs(ctx, podName(members[0]), o, a.stdout, a.stderr)
	}
	m := merger{app: a, client: c, options: o}
	if o.Follow {
		return m.follow(ctx, args)
	}
	return m.once(ctx, members)
}

func (a *app) logOptions(f logFlags) (runtime.LogOptions, error) {
	o := runtime.LogOptions{Follow: f.follow, Tail: f.tail, Timestamps: f.timestamps, Previous: f.previous, Container: f.container}
	if f.tail == "-1" {
		o.Tail = "all" // kubectl's way to write it
	}
	if !tailText.MatchString(o.Tail) {
		return o, usagef("logs --tail %q: want a number of lines, or all", f.tail)
	}
	if f.previous && f.follow {
		return o, usagef("logs: --previous has ended; there is nothing to follow")
	}
	var err error
	o.Since, err = a.since(f.since)
	return o, err
}

// since reads a moment: how long ago, or when.
func (a *app) since(s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return a.now().Add(-d), nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return t, usageNext(fmt.Errorf("--since %q: want a duration (10m) or a time (2026-01-02T15:04:05Z)", s))
	}
	return t, nil
}

func podName(m jobspecs.Member) runtime.PodName {
	return runtime.PodName{Namespace: m.Namespace, Name: m.Name}
}
