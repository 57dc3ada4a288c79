package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/jobspecs"
)

func newReplaceCmd(a *app) *cobra.Command {
	var f changeFlags
	var fresh bool
	cmd := &cobra.Command{
		Use:   "replace MEMBER --fresh-volume",
		Short: "Let a member whose volume is lost start with an empty one",
		Long: "A member whose volume held data and is gone is held back (VolumeLost). Bring the volume back under its\n" +
			"name and labels, or give up what it held: replace takes exactly one member and asks.",
		Example:           "  stsd replace web-2 --fresh-volume",
		Args:              args(1, 1, "MEMBER"),
		ValidArgsFunction: a.completeTargets,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !fresh {
				return notYet("replace without --fresh-volume", "stsd rollout restart SET")
			}
			return a.replace(cmd, f, args[0])
		},
	}
	f.addAll(cmd)
	cmd.Flags().BoolVar(&fresh, "fresh-volume", false, "start with an empty volume in place of one that is gone")
	return cmd
}

func (a *app) replace(cmd *cobra.Command, f changeFlags, arg string) error {
	t, err := parseTarget(arg)
	if err != nil {
		return err
	}
	if err := a.place(&t); err != nil {
		return err
	}
	set, ordinal, ok := jobspecs.ParseMember(t.name)
	if !ok {
		return usageNext(fmt.Errorf("replace takes exactly one member; %s is none", arg), "stsd replace "+arg+"-0 --fresh-volume")
	}
	return a.change(cmd, "replace", t.namespace+"/"+set, f, func(ctx context.Context, c *client.Client, key jobspecs.Key, w client.Write) (client.Result, error) {
		return c.FreshVolume(ctx, key, client.FreshVolumeRequest{Write: w, Ordinal: ordinal})
	})
}
