package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/jobspecs"
)

type planFlags struct {
	specFlags
	exitCode bool
	out      string
	verbose  bool
	cause    string
}

func newPlanCmd(a *app) *cobra.Command {
	var f planFlags
	cmd := &cobra.Command{
		Use:   "plan FILE…",
		Short: "Show what apply would do, member by member; writes nothing",
		Long: "plan shows what apply would do, member by member and volume by volume, and why; it writes nothing.\n" +
			"Marks: + create, -/+ replace, ~ restart, - stop or remove, = keep. Steps marked \"now\" would happen at\n" +
			"once, the others wait for those before them. Lines with data: tell what would be lost sight of.",
		RunE: func(cmd *cobra.Command, args []string) error { return a.plan(cmd, &f, args) },
	}
	f.specFlags.add(cmd)
	f.addImages(cmd)
	cmd.Flags().BoolVar(&f.exitCode, "exit-code", false, "exit 2 when there are changes")
	cmd.Flags().StringVar(&f.out, "out", "", "write the plan to this file, for stsd apply")
	cmd.Flags().BoolVarP(&f.verbose, "verbose", "v", false, "show members and volumes that are kept, too")
	return cmd
}

func (a *app) plan(cmd *cobra.Command, f *planFlags, args []string) error {
	s, req, resp, err := a.planSpecs(cmd.Context(), &f.specFlags, args)
	if err != nil {
		return err
	}
	if f.out != "" {
		if err := writePlan(f.out, savedPlan{Request: sealed(req, resp), Registries: s.registries(), Plans: resp.Plans}); err != nil {
			return err
		}
		a.say("written to %s; to do it: stsd apply %s", f.out, f.out)
	}
	if err := a.show(plansView(resp.Plans, f.verbose || a.format.wide())); err != nil {
		return err
	}
	if f.exitCode && anyChanges(resp.Plans) {
		return quietly(exitDiffers)
	}
	return nil
}

// planSpecs asks the daemon for the plan of files.
func (a *app) planSpecs(ctx context.Context, f *specFlags, args []string) (s specs, req client.ApplyRequest, resp client.PlanResponse, err error) {
	if s, err = a.readSpecs(f, args); err != nil {
		return s, req, resp, err
	}
	if err := a.check(s, f.strict); err != nil {
		return s, req, resp, err
	}
	req = client.ApplyRequest{Scopes: s.scopes, Namespace: a.namespace}
	c, err := a.client()
	if err != nil {
		return s, req, resp, err
	}
	if resp, err = c.Plan(ctx, req); err != nil {
		return s, req, resp, err
	}
	a.warn(resp.Diagnostics, s.found)
	return s, req, resp, nil
}

// sealed is a request fit for a file: what is sensitive in it only the daemon
// that planned it can read.
func sealed(req client.ApplyRequest, resp client.PlanResponse) client.ApplyRequest {
	if len(resp.Sealed) > 0 {
		req.Scopes, req.Sealed = nil, resp.Sealed
	}
	return req
}

// dryApply is apply --dry-run.
func (a *app) dryApply(ctx context.Context, c *client.Client, req client.ApplyRequest, said []jobspecs.Diagnostic) error {
	resp, err := c.Plan(ctx, req)
	if err != nil {
		return err
	}
	a.warn(resp.Diagnostics, said)
	return a.show(plansView(resp.Plans, a.format.wide()))
}

func anyChanges(plans []jobspecs.Plan) bool {
	return slices.ContainsFunc(plans, func(p jobspecs.Plan) bool { return p.Changes })
}

// savedPlan is the file of plan --out.
type savedPlan struct {
	Version int                 `json:"stsd_plan"`
	Request client.ApplyRequest `json:"request"` // with the generations that the plan saw
	Plans   []jobspecs.Plan     `json:"plans"`   // for people
	// Registries are those of the images, for apply --with-registry-auth.
	Registries []string `json:"registries,omitempty"`
}

const savedPlanVersion = 1

func writePlan(file string, p savedPlan) error {
	p.Version = savedPlanVersion
	p.Request.Expect = map[string]int64{}
	for _, one := range p.Plans {
		p.Request.Expect[jobspecs.Key{Namespace: one.Namespace, Name: one.Set}.String()] = one.Generation
	}
	var b bytes.Buffer
	if err := writeJSON(&b, p); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600) // it holds the variables' values
	if err != nil {
		return err
	}
	if err := out.Chmod(0o600); err != nil {
		out.Close()
		return fmt.Errorf("write %s: %w", file, err)
	}
	if _, err := out.Write(b.Bytes()); err != nil {
		out.Close()
		return fmt.Errorf("write %s: %w", file, err)
	}
	return out.Close()
}

// savedPlan reads the one file that names has when its content is a plan's.
func (a *app) savedPlan(names []string) (savedPlan, bool, error) {
	var p savedPlan
	if len(names) != 1 || names[0] == "-" {
		return p, false, nil
	}
	fi, err := os.Stat(names[0])
	if err != nil || !fi.Mode().IsRegular() {
		return p, false, nil // said when it is read as a spec
	}
	b, err := os.ReadFile(names[0])
	if err != nil {
		return p, false, readError(names[0], err)
	}
	if !bytes.HasPrefix(bytes.TrimSpace(b), []byte("{")) || !bytes.Contains(b, []byte(`"stsd_plan"`)) {
		return p, false, nil
	}
	if err := json.Unmarshal(b, &p); err != nil {
		return p, false, fmt.Errorf("read the plan %s: %w", names[0], err)
	}
	if p.Version != savedPlanVersion {
		return p, false, fmt.Errorf("read the plan %s: version %d is not one of this stsd; make it anew", names[0], p.Version)
	}
	return p, true, nil
}

func plansView(plans []jobspecs.Plan, all bool) view {
	return headedPlans(plans, planHeadline, all)
}

func headedPlans(plans []jobspecs.Plan, headline func(jobspecs.Plan) string, all bool) view {
	v := view{doc: plans, names: []string{}}
	for _, p := range plans {
		v.names = append(v.names, nameOf(p.Namespace, p.Set))
	}
	v.table = func(w io.Writer) {
		for i, p := range plans {
			if i > 0 {
				fmt.Fprintln(w)
			}
			writePlanTable(w, p, headline(p), all)
		}
	}
	return v
}

// marks of the ops, in the words of the table.
var marks = map[string]struct{ mark, word string }{
	jobspecs.OpCreate:       {"+", "create"},
	jobspecs.OpKeep:         {"=", "keep"},
	jobspecs.OpReplace:      {"-/+", "replace"},
	jobspecs.OpRestart:      {"~", "restart"},
	jobspecs.OpStop:         {"-", "stop"},
	jobspecs.OpRemove:       {"-", "remove"},
	jobspecs.OpCreateVolume: {"+", "create volume"},
	jobspecs.OpKeepVolume:   {"=", "keep volume"},
	jobspecs.OpDeleteVolume: {"-", "delete volume"},
}

func writePlanTable(w io.Writer, p jobspecs.Plan, headline string, all bool) {
	fmt.Fprintln(w, headline)
	t := table{indent: "  "}
	for _, s := range p.Steps {
		m := marks[s.Op]
		if m.mark == "=" && !all {
			continue
		}
		t.row(m.mark, m.word, stepObject(s), orDash(s.Why), map[bool]string{true: "now"}[s.Now])
	}
	t.write(w)
	if len(p.Diff) > 0 && (p.Generation > 0 || all) { // of a new set it is the whole spec
		fmt.Fprintln(w, "  what differs:")
		writeDiff(w, "    ", p.Diff)
	}
	for _, text := range p.Warnings {
		fmt.Fprintf(w, "  warning: %s\n", text)
	}
	for _, d := range p.Data {
		fmt.Fprintf(w, "  %s\n", dataLine(d))
	}
	fmt.Fprintln(w, "  "+planCounts(p))
}

func stepObject(s jobspecs.Step) string {
	if s.Volume != "" {
		return s.Volume
	}
	return s.Member
}

func planHeadline(p jobspecs.Plan) string {
	name := nameOf(p.Namespace, p.Set)
	switch r := p.Revision; {
	case p.Generation == 0:
		return fmt.Sprintf("%s: a new set at revision %s", name, r.To)
	case !p.Changes:
		return name + ": no changes"
	case r.From != r.To && r.EqualTo > 0:
		return fmt.Sprintf("%s: revision %s → %s (the template of revision %d)", name, r.From, r.To, r.EqualTo)
	case r.From != r.To:
		return fmt.Sprintf("%s: revision %s → %s", name, r.From, r.To)
	default:
		return fmt.Sprintf("%s: revision %s stays", name, r.From)
	}
}

// setHeadline is planHeadline for verbs that need no file: it tells of revisions only
// when there is another one.
func setHeadline(p jobspecs.Plan) string {
	if p.Changes && p.Generation > 0 && p.Revision.From == p.Revision.To {
		return nameOf(p.Namespace, p.Set) + ":"
	}
	return planHeadline(p)
}

// planCounts is "2 to create, 1 to replace, 3 kept; volumes: 2 to create".
func planCounts(p jobspecs.Plan) string {
	n := map[string]int{}
	for _, s := range p.Steps {
		n[s.Op]++
	}
	members := tallied(n, jobspecs.OpCreate, jobspecs.OpReplace, jobspecs.OpRestart, jobspecs.OpStop, jobspecs.OpRemove, jobspecs.OpKeep)
	volumes := tallied(n, jobspecs.OpCreateVolume, jobspecs.OpDeleteVolume, jobspecs.OpKeepVolume)
	switch {
	case members == "" && volumes == "":
		return "nothing to do"
	case members == "":
		return "volumes: " + volumes
	case volumes == "":
		return members
	}
	return members + "; volumes: " + volumes
}

func tallied(n map[string]int, ops ...string) string {
	var parts []string
	for _, op := range ops {
		word, _, _ := strings.Cut(marks[op].word, " ")
		switch {
		case n[op] == 0:
		case word == "keep":
			parts = append(parts, fmt.Sprintf("%d kept", n[op]))
		default:
			parts = append(parts, fmt.Sprintf("%d to %s", n[op], word))
		}
	}
	return strings.Join(parts, ", ")
}
