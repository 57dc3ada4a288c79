package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/jobspecs"
)

// changeFlags are those of verbs that change one set and follow it.
type changeFlags struct {
	writeFlags
	followFlags
}

func (f *changeFlags) addAll(cmd *cobra.Command) {
	f.writeFlags.add(cmd.Flags())
	f.followFlags.add(cmd.Flags())
}

func newScaleCmd(a *app) *cobra.Command {
	var f changeFlags
	var by string
	cmd := &cobra.Command{
		Use:     "scale SET N",
		Short:   "Set the number of replicas, beside the spec",
		Long:    "scale sets the number of replicas beside the stored spec; the next apply that differs drops it.\nN is a number, +N for more or -N for fewer.",
		Example: "  stsd scale web 5\n  stsd scale web +1\n  stsd scale web -1",
		Args:    args(1, 2, "SET"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if by != "" {
				args = append(args, by)
			}
			return a.scale(cmd, f, args)
		},
		ValidArgsFunction: first(a.completeSets),
	}
	f.addAll(cmd)
	cmd.Flags().StringVar(&by, "by", "", "")
	_ = cmd.Flags().MarkHidden("by") // how rewrite passes -1
	return cmd
}

func (a *app) scale(cmd *cobra.Command, f changeFlags, args []string) error {
	if len(args) != 2 {
		return usageNext(fmt.Errorf("scale: want a SET and a number"), "stsd scale web 5", "stsd scale web +1")
	}
	req, err := scaleRequest(args[1])
	if err != nil {
		return err
	}
	return a.change(cmd, "scale", args[0], f, func(ctx context.Context, c *client.Client, key jobspecs.Key, w client.Write) (client.Result, error) {
		req.Write = w
		return c.Scale(ctx, key, req)
	})
}

func scaleRequest(s string) (client.ScaleRequest, error) {
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil {
		return client.ScaleRequest{}, usageNext(fmt.Errorf("scale: %q is no number of replicas", s), "stsd scale web 5", "stsd scale web +1")
	}
	return client.ScaleRequest{Replicas: int(n), Relative: strings.HasPrefix(s, "+") || n < 0}, nil
}

// change is one verb that changes a set: sent, confirmed where data is at
// stake, shown and followed.
func (a *app) change(cmd *cobra.Command, verb, arg string, f changeFlags, send func(context.Context, *client.Client, jobspecs.Key, client.Write) (client.Result, error)) error {
	ctx := cmd.Context()
	key, err := a.setArg(verb, arg)
	if err != nil {
		return err
	}
	c, err := a.client()
	if err != nil {
		return err
	}
	r, err := confirmed(ctx, a, f.write(), func(ctx context.Context, w client.Write) (client.Result, error) {
		return send(ctx, c, key, w)
	})
	if err != nil {
		return a.orMember(ctx, c, verb, key, err)
	}
	if f.dryRun {
		return a.show(dryView(r, a.format.wide()))
	}
	if err := a.show(oneResult(r)); err != nil || f.detach {
		return err
	}
	return a.follow(ctx, c, a.stderr, goalsOf(r), f.timeout)
}

func oneResult(r client.Result) view {
	v := results(r)
	v.doc = r
	return v
}

// dryView is the plan of a write that was not done.
func dryView(r client.Result, all bool) view {
	if r.Plan == nil {
		return oneResult(r)
	}
	return dryViews([]client.Result{r}, all)
}
