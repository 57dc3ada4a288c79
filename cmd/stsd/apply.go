package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/jobspecs"
)

type applyFlags struct {
	specFlags
	writeFlags
	followFlags
	expect       int64
	registryAuth bool
}

func newApplyCmd(a *app) *cobra.Command {
	var f applyFlags
	cmd := &cobra.Command{
		Use:   "apply FILE…",
		Short: "Store sets and follow until they run",
		Long: "apply stores the sets of its files, all of them or none, and follows until they run.\n" +
			"A FILE is a .hcl file, a folder, - or what `stsd plan --out` wrote. Each is a scope of its own.",
		Example: "  stsd apply web.hcl\n  stsd apply web.hcl -var image=web:2 -m 'new release'\n  stsd plan web.hcl --out web.plan && stsd apply web.plan",
		RunE:    func(cmd *cobra.Command, args []string) error { return a.apply(cmd, &f, args) },
	}
	f.specFlags.add(cmd)
	f.addImages(cmd)
	f.writeFlags.add(cmd.Flags())
	f.followFlags.add(cmd.Flags())
	cmd.Flags().Int64Var(&f.expect, "expect-generation", -1, "refuse (exit 5) when the stored generation is another; 0: when the set exists")
	cmd.Flags().BoolVar(&f.registryAuth, "with-registry-auth", false, "send this client's credentials for the images' registries; the daemon keeps them sealed")
	return cmd
}

func (a *app) apply(cmd *cobra.Command, f *applyFlags, args []string) error {
	ctx := cmd.Context()
	req, said, err := a.applyRequest(ctx, f, args)
	if err != nil {
		return err
	}
	c, err := a.client()
	if err != nil {
		return err
	}
	if f.dryRun {
		return a.dryApply(ctx, c, req, said)
	}
	resp, err := confirmed(ctx, a, req.Write, func(ctx context.Context, w client.Write) (client.ApplyResponse, error) {
		req.Write = w
		return c.Apply(ctx, req)
	})
	if err != nil {
		return err
	}
	a.warn(resp.Diagnostics, said)
	if err := a.show(applied(resp)); err != nil {
		return err
	}
	if f.detach {
		return nil
	}
	return a.follow(ctx, c, a.stderr, goalsOf(resp.Results...), f.timeout)
}

// applyRequest is what the arguments ask for; said are the diagnostics printed
// already.
func (a *app) applyRequest(ctx context.Context, f *applyFlags, args []string) (req client.ApplyRequest, said []jobspecs.Diagnostic, err error) {
	names := append(slices.Clone(f.files), args...)
	plan, ok, err := a.savedPlan(names)
	if err != nil {
		return req, nil, err
	}
	if ok {
		if req, said, err = f.fromPlan(plan.Request); err == nil && f.registryAuth {
			req.Registries, err = a.registryAuths(ctx, plan.Registries)
		}
		return req, said, err
	}
	s, err := a.readSpecs(&f.specFlags, args)
	if err != nil {
		return req, nil, err
	}
	if err := a.check(s, f.strict); err != nil {
		return req, nil, err
	}
	req = client.ApplyRequest{Write: f.write(), Scopes: s.scopes, Namespace: a.namespace}
	if f.expect >= 0 {
		keys := s.keys()
		if len(keys) != 1 {
			return req, nil, usagef("--expect-generation is about one set; these files have %d", len(keys))
		}
		req.Expect = map[string]int64{a.placed(keys[0]).String(): f.expect}
	}
	if f.registryAuth {
		if req.Registries, err = a.registryAuths(ctx, s.registries()); err != nil {
			return req, nil, err
		}
	}
	return req, s.found, nil
}

// placed is the key that the daemon will store: -n is for sets that name no
// namespace.
func (a *app) placed(k jobspecs.Key) jobspecs.Key {
	if a.namespace != "" && k.Namespace == jobspecs.DefaultNamespace {
		k.Namespace = a.namespace
	}
	return k
}

// fromPlan takes a saved request; what would change it is refused.
func (f *applyFlags) fromPlan(req client.ApplyRequest) (client.ApplyRequest, []jobspecs.Diagnostic, error) {
	if len(f.vars)+len(f.varFiles)+len(f.images) > 0 || f.pull != "" || f.expect >= 0 {
		return req, nil, usagef("a saved plan is applied as it is: variables, --image, --pull and --expect-generation belong to stsd plan")
	}
	expect := req.Expect
	req.Write = f.write()
	req.Expect = expect
	return req, nil, nil
}

// warn prints the daemon's diagnostics that were not said before.
func (a *app) warn(found, said []jobspecs.Diagnostic) {
	var fresh []jobspecs.Diagnostic
	for _, d := range found {
		if !slices.Contains(said, d) {
			fresh = append(fresh, d)
		}
	}
	a.diagnose(fresh)
}

func applied(resp client.ApplyResponse) view {
	v := results(resp.Results...)
	v.doc = resp
	return v
}

// results shows what writes did.
func results(rs ...client.Result) view {
	v := view{doc: rs, names: []string{}}
	var lines []string
	for _, r := range rs {
		v.names = append(v.names, nameOf(r.Namespace, r.Set))
		lines = append(lines, resultLine(r))
	}
	v.table = linesOf(lines...)
	return v
}

func resultLine(r client.Result) string {
	name := nameOf(r.Namespace, r.Set)
	switch {
	case r.Message != "":
		return r.Message
	case r.Created:
		return fmt.Sprintf("%s created at revision %s", name, r.Revision)
	case r.Changed:
		return fmt.Sprintf("%s changed to revision %s", name, r.Revision)
	}
	return name + " unchanged"
}

func goalsOf(rs ...client.Result) []goal {
	var out []goal
	for _, r := range rs {
		out = append(out, goal{key: jobspecs.Key{Namespace: r.Namespace, Name: r.Set}, generation: r.Generation, revision: r.Revision})
	}
	return out
}
