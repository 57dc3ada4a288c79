package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/jobspecs"
)

func newRestartCmd(a *app) *cobra.Command {
	return newMembersCmd(a, "restart", "Restart members: a set one by one, as its update block says; members that are named at once",
		"restart gives members new containers of the same revision. rollout restart makes a new revision of it.",
		"  stsd restart web\n  stsd restart web-1\n  stsd restart 'web-[0-2]'")
}

func newStopCmd(a *app) *cobra.Command {
	return newMembersCmd(a, "stop", "Stop members until they are started again",
		"A member that was stopped stays so over updates and restarts of the daemon. Nobody waits for it.",
		"  stsd stop web-2\n  stsd stop web")
}

func newStartCmd(a *app) *cobra.Command {
	return newMembersCmd(a, "start", "Start members that were stopped", "", "  stsd start web-2\n  stsd start web")
}

// newMembersCmd is a verb that takes sets and members.
func newMembersCmd(a *app, do, short, long, example string) *cobra.Command {
	var f changeFlags
	cmd := &cobra.Command{
		Use: do + " TARGET…", Short: short, Long: long, Example: example,
		Args:              args(1, -1, "TARGET"),
		ValidArgsFunction: a.completeTargets,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.changeMembers(cmd.Context(), do, f, args) },
	}
	f.addAll(cmd)
	return cmd
}

// chosen are members of one set that a command line names; nil: all.
type chosen struct {
	key      jobspecs.Key
	ordinals []int
}

// changeMembers sends one request for each set that is named, and follows all.
func (a *app) changeMembers(ctx context.Context, do string, f changeFlags, args []string) error {
	c, err := a.client()
	if err != nil {
		return err
	}
	sets, err := a.chosen(ctx, c, args)
	if err != nil {
		return err
	}
	var done []client.Result
	for _, set := range sets {
		if do == "replace" && set.ordinals == nil {
			return usageNext(fmt.Errorf("replace takes members; %s is a set", set.key.Name), "stsd restart "+nameOf(set.key.Namespace, set.key.Name))
		}
		r, err := confirmed(ctx, a, f.write(), func(ctx context.Context, w client.Write) (client.Result, error) {
			return c.ChangeMembers(ctx, set.key, client.MembersRequest{Write: w, Do: do, Ordinals: set.ordinals})
		})
		if err != nil {
			return err
		}
		done = append(done, r)
	}
	if f.dryRun {
		return a.show(dryViews(done, a.format.wide()))
	}
	if err := a.show(results(done...)); err != nil || f.detach {
		return err
	}
	return a.follow(ctx, c, a.stderr, goalsOf(done...), f.timeout)
}

// chosen groups the members that the arguments name by their sets.
func (a *app) chosen(ctx context.Context, c *client.Client, args []string) ([]chosen, error) {
	var out []chosen
	lists := map[string][]jobspecs.Member{}
	for _, arg := range args {
		t, err := parseTarget(arg)
		if err != nil {
			return nil, err
		}
		if err := a.place(&t); err != nil {
			return nil, err
		}
		if lists[t.namespace] == nil {
			if lists[t.namespace], err = c.Members(ctx, t.namespace); err != nil {
				return nil, err
			}
		}
		picked, whole := pick(t, lists[t.namespace])
		if len(picked) == 0 {
			if err := noMember(ctx, c, t); err != nil {
				return nil, err
			}
			whole = true
		}
		out = choose(out, t, picked, whole)
	}
	return out, nil
}

// choose adds members of a set to those that are chosen; all of it stays all.
func choose(to []chosen, t target, picked []jobspecs.Member, whole bool) []chosen {
	key := jobspecs.Key{Namespace: t.namespace, Name: t.name}
	if !whole {
		key.Name = picked[0].Set
	}
	i := slices.IndexFunc(to, func(x chosen) bool { return x.key == key })
	if i < 0 {
		to = append(to, chosen{key: key, ordinals: []int{}})
		i = len(to) - 1
	}
	switch {
	case whole:
		to[i].ordinals = nil
	case to[i].ordinals != nil:
		for _, m := range picked {
			if !slices.Contains(to[i].ordinals, m.Ordinal) {
				to[i].ordinals = append(to[i].ordinals, m.Ordinal)
			}
		}
	}
	return to
}

func newReplaceCmd(a *app) *cobra.Command {
	var f changeFlags
	var fresh bool
	cmd := &cobra.Command{
		Use:   "replace MEMBER…",
		Short: "Give members new containers, or one a new container and fresh volumes",
		Long: "replace gives members new containers at once. With --fresh-volume it takes exactly one member, asks, and\n" +
			"lets it start with empty volumes: what they held is deleted. That is also the way to give up a volume that\n" +
			"held data and is gone (VolumeLost), unless it comes back under its name and labels.",
		Example:           "  stsd replace web-2\n  stsd replace web-2 --fresh-volume",
		Args:              args(1, -1, "MEMBER"),
		ValidArgsFunction: a.completeTargets,
		RunE: func(cmd *cobra.Command, args []string) error {
			if fresh {
				return a.replaceFresh(cmd, f, args)
			}
			return a.changeMembers(cmd.Context(), "replace", f, args)
		},
	}
	f.addAll(cmd)
	cmd.Flags().BoolVar(&fresh, "fresh-volume", false, "start with empty volumes; what they held is deleted")
	return cmd
}

func (a *app) replaceFresh(cmd *cobra.Command, f changeFlags, args []string) error {
	t, err := parseTarget(args[0])
	if err != nil {
		return err
	}
	if err := a.place(&t); err != nil {
		return err
	}
	set, ordinal, ok := jobspecs.ParseMember(t.name)
	if !ok || len(args) > 1 {
		return usageNext(fmt.Errorf("replace --fresh-volume takes exactly one member, not %s", strings.Join(args, " ")), "stsd replace web-0 --fresh-volume")
	}
	return a.change(cmd, "replace", t.namespace+"/"+set, f, func(ctx context.Context, c *client.Client, key jobspecs.Key, w client.Write) (client.Result, error) {
		return c.FreshVolume(ctx, key, client.FreshVolumeRequest{Write: w, Ordinal: ordinal})
	})
}
