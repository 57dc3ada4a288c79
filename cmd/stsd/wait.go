package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/jobspecs"
)

// waits are what wait can wait for.
var waits = []string{"ready", "available", "deleted", "rollout"}

func newWaitCmd(a *app) *cobra.Command {
	var what string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "wait SET",
		Short: "Wait until a set is ready, available, deleted or rolled out",
		Long: "wait waits until a set is as --for says:\n" +
			"  ready      all wanted members are ready; those of stsd stop are not wanted\n" +
			"  available  all wanted members are available (ready for min_ready)\n" +
			"  deleted    the set is gone\n" +
			"  rollout    as rollout status: exit 3 when it failed, 4 when it is paused\n" +
			"It exits 4 when the time-out ends it.",
		Args:              args(1, 1, "SET"),
		ValidArgsFunction: first(a.completeSets),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.wait(cmd.Context(), args[0], what, timeout) },
	}
	cmd.Flags().StringVar(&what, "for", "available", "ready, available, deleted or rollout")
	timeoutVar(cmd.Flags(), &timeout, "how long to wait (0: no limit)")
	a.complete(cmd, "for", words(waits...))
	return cmd
}

// waited is what -o json of wait shows.
type waited struct {
	Namespace string `json:"namespace"`
	Set       string `json:"set"`
	For       string `json:"for"`
	Met       bool   `json:"met"`
	Message   string `json:"message"`
}

func (a *app) wait(ctx context.Context, arg, what string, timeout time.Duration) error {
	reached, ok := reachedBy(what)
	if !ok {
		return usagef("wait --for %q: want ready, available, deleted or rollout", what)
	}
	key, err := a.setArg("wait", arg)
	if err != nil {
		return err
	}
	c, err := a.client()
	if err != nil {
		return err
	}
	v, err := a.waitFor(ctx, c, key, what, reached, timeout)
	if err != nil {
		return err
	}
	w := waited{key.Namespace, key.Name, what, v.code == exitOK, v.say}
	if err := a.show(view{doc: w, names: []string{nameOf(key.Namespace, key.Name)}, table: linesOf(v.say)}); err != nil || w.Met {
		return err
	}
	return &exitError{code: v.code, err: errors.New(v.say), next: v.next}
}

// byUser is the reason of a member that somebody stopped.
const byUser = "ByUser"

// wantedUp is how many members are to run: those that somebody stopped are not.
func wantedUp(st jobspecs.Status) int {
	n := st.Replicas
	for _, m := range st.Members {
		if m.Reason == byUser {
			n--
		}
	}
	return n
}

// reachedBy decides by one status whether waiting ends.
func reachedBy(what string) (func(jobspecs.Status) verdict, bool) {
	seen := func(st jobspecs.Status) bool { return st.ObservedGeneration >= st.Generation && !st.Deleting }
	switch what {
	case "ready":
		return func(st jobspecs.Status) verdict {
			return verdict{over: seen(st) && st.ReadyReplicas >= wantedUp(st), say: summary(st)}
		}, true
	case "available":
		return func(st jobspecs.Status) verdict {
			return verdict{over: seen(st) && st.AvailableReplicas >= wantedUp(st), say: summary(st)}
		}, true
	case "deleted":
		return func(jobspecs.Status) verdict { return verdict{} }, true
	case "rollout":
		return func(st jobspecs.Status) verdict { return judge(st, st.Generation) }, true
	}
	return nil, false
}

func (a *app) waitFor(ctx context.Context, c *client.Client, key jobspecs.Key, what string, reached func(jobspecs.Status) verdict, timeout time.Duration) (verdict, error) {
	ctx, cancel := limited(ctx, timeout)
	defer cancel()
	g := goal{key: key, gone: what == "deleted"}
	first := true
	for {
		var end verdict
		err := c.WatchStatus(ctx, key, func(st jobspecs.Status) error {
			first = false
			if end = reached(st); end.over {
				return errOver
			}
			return nil
		})
		switch {
		case errors.Is(err, errOver):
			return end, nil
		case ctx.Err() != nil:
			return end, unfinishedWait(context.Cause(ctx), key, what)
		case isGone(err) && (g.gone || !first):
			return g.goneUpdate(0).verdict, nil
		case first || !isLost(err):
			return end, a.orMember(ctx, c, "wait", key, err)
		}
		if !sleep(ctx, pause) {
			return end, unfinishedWait(context.Cause(ctx), key, what)
		}
	}
}

func unfinishedWait(cause error, key jobspecs.Key, what string) error {
	name := nameOf(key.Namespace, key.Name)
	if !errors.Is(cause, errTimeout) {
		return cause
	}
	return &exitError{code: exitGoing, err: fmt.Errorf("time-out: %s is not %s yet", name, map[string]string{"rollout": "complete"}[what]+map[bool]string{true: what}[what != "rollout"]), next: []string{"stsd status " + name}}
}
