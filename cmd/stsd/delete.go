package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/jobspecs"
)

type deleteFlags struct {
	specFlags
	writeFlags
	followFlags
	volumes string
	cascade string
	wait    bool
}

func newDeleteCmd(a *app) *cobra.Command {
	var f deleteFlags
	cmd := &cobra.Command{
		Use:     "delete SET… | delete -f FILE…",
		Short:   "Stop the members of a set from the top down and forget it; volumes are kept",
		Example: "  stsd delete web\n  stsd delete web --volumes=delete --yes\n  stsd delete -f web.hcl",
		RunE:    func(cmd *cobra.Command, args []string) error { return a.delete(cmd.Context(), &f, args) },
	}
	f.specFlags.add(cmd)
	cmd.ValidArgsFunction = a.completeSets
	f.writeFlags.add(cmd.Flags())
	cmd.Flags().StringVar(&f.volumes, "volumes", "", "delete or retain, whatever the spec says")
	cmd.Flags().StringVar(&f.cascade, "cascade", "", "orphan: forget the set, leave its members and volumes")
	cmd.Flags().BoolVar(&f.wait, "wait", false, "follow until it is gone")
	timeoutVar(cmd.Flags(), &f.timeout, "how long to follow with --wait (0: no limit)")
	cmd.Flags().BoolVar(&f.detach, "detach", false, "do not follow (as without --wait)")
	a.complete(cmd, "volumes", words("delete", "retain"))
	a.complete(cmd, "cascade", words("orphan"))
	return cmd
}

func (f *deleteFlags) request(w client.Write) client.DeleteRequest {
	return client.DeleteRequest{Write: w, Volumes: f.volumes, Orphan: f.cascade == "orphan"}
}

func (f *deleteFlags) check() error {
	if f.volumes != "" && f.volumes != jobspecs.Delete && f.volumes != jobspecs.Retain {
		return usagef("delete --volumes %q: want delete or retain", f.volumes)
	}
	if f.cascade != "" && f.cascade != "orphan" {
		return usagef("delete --cascade %q: want orphan, or leave it out", f.cascade)
	}
	return nil
}

func (a *app) delete(ctx context.Context, f *deleteFlags, args []string) error {
	if err := f.check(); err != nil {
		return err
	}
	keys, err := a.doomed(f, args)
	if err != nil {
		return err
	}
	c, err := a.client()
	if err != nil {
		return err
	}
	var done []client.Result
	for _, key := range keys {
		r, err := confirmed(ctx, a, f.write(), func(ctx context.Context, w client.Write) (client.Result, error) {
			return c.Delete(ctx, key, f.request(w))
		})
		if err != nil {
			return a.orMember(ctx, c, "delete", key, err)
		}
		done = append(done, r)
	}
	if f.dryRun {
		return a.show(dryViews(done, true)) // with the volumes that stay
	}
	if err := a.show(deleted(done, f.wait)); err != nil || !f.wait || f.detach {
		return err
	}
	var goals []goal
	for _, key := range keys {
		goals = append(goals, goal{key: key, gone: true})
	}
	return a.follow(ctx, c, a.stderr, goals, f.timeout)
}

// doomed are the sets to delete; those of files go backwards, so that what
// others start after goes last.
func (a *app) doomed(f *deleteFlags, args []string) ([]jobspecs.Key, error) {
	if len(f.files) == 0 {
		if len(args) == 0 {
			return nil, usageNext(fmt.Errorf("delete: missing SET"), "stsd delete web", "stsd delete -f web.hcl")
		}
		return a.setArgs("delete", args)
	}
	s, err := a.readSpecs(&f.specFlags, args)
	if err != nil {
		return nil, err
	}
	if err := a.check(s, false); err != nil {
		return nil, err
	}
	var keys []jobspecs.Key
	for _, k := range startOrder(&s) {
		keys = append(keys, a.placed(k))
	}
	slices.Reverse(keys)
	return keys, nil
}

// startOrder are the sets of the specs in the order in which they start: as written,
// each after those of start_after.
func startOrder(s *specs) []jobspecs.Key {
	var names []string
	after, keys := map[string][]string{}, map[string]jobspecs.Key{}
	for _, sp := range s.sets {
		name := sp.Set.Key().String()
		names, keys[name] = append(names, name), sp.Set.Key()
		for _, other := range sp.Set.StartAfter {
			after[name] = append(after[name], jobspecs.Key{Namespace: sp.Set.Namespace, Name: other}.String())
		}
	}
	var out []jobspecs.Key
	for _, name := range jobspecs.StartOrder(names, after) {
		out = append(out, keys[name])
	}
	return out
}

func deleted(done []client.Result, waits bool) view {
	v := results(done...)
	v.doc = orEmpty(done)
	var lines []string
	for _, r := range done {
		switch {
		case r.Message != "":
			lines = append(lines, r.Message)
		case waits:
			lines = append(lines, nameOf(r.Namespace, r.Set)+" is being deleted")
		default:
			lines = append(lines, nameOf(r.Namespace, r.Set)+" is being deleted; the daemon carries on")
		}
	}
	v.table = linesOf(lines...)
	return v
}

// dryViews are the plans of writes to sets that were not done.
func dryViews(rs []client.Result, all bool) view {
	plans := []jobspecs.Plan{}
	for _, r := range rs {
		if r.Plan != nil {
			plans = append(plans, *r.Plan)
		}
	}
	if len(plans) == 0 {
		return results(rs...)
	}
	return headedPlans(plans, setHeadline, all)
}
