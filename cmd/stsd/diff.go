package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/jobspecs/hcl"
)

type diffFlags struct {
	specFlags
	revision string
	exitCode bool
}

func newDiffCmd(a *app) *cobra.Command {
	var f diffFlags
	cmd := &cobra.Command{
		Use:     "diff FILE… | diff SET --revision A..B",
		Short:   "Compare a spec with what is stored, or two revisions",
		Example: "  stsd diff web.hcl\n  stsd diff web --revision 1..2",
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.revision != "" {
				return a.diffRevisions(cmd, &f, args)
			}
			return a.diffFiles(cmd, &f, args)
		},
	}
	f.specFlags.add(cmd)
	f.addImages(cmd)
	cmd.Flags().StringVar(&f.revision, "revision", "", "A..B: numbers or names of two revisions")
	cmd.Flags().BoolVar(&f.exitCode, "exit-code", false, "exit 2 when there are differences")
	a.complete(cmd, "revision", a.completeRevisions)
	return cmd
}

// difference is what one set's spec and another differ in.
type difference struct {
	Namespace string            `json:"namespace"`
	Set       string            `json:"set"`
	From      string            `json:"from"`
	To        string            `json:"to"`
	Diff      []jobspecs.Change `json:"diff"`
}

func (a *app) diffFiles(cmd *cobra.Command, f *diffFlags, args []string) error {
	_, _, resp, err := a.planSpecs(cmd.Context(), &f.specFlags, args)
	if err != nil {
		return err
	}
	list := []difference{}
	for _, p := range resp.Plans {
		from := fmt.Sprintf("stored, generation %d", p.Generation)
		if p.Generation == 0 {
			from = "nothing stored"
		}
		list = append(list, difference{p.Namespace, p.Set, from, "the files", orEmpty(p.Diff)})
	}
	return a.showDiff(list, f.exitCode)
}

func (a *app) diffRevisions(cmd *cobra.Command, f *diffFlags, args []string) error {
	if len(args) != 1 || len(f.files) > 0 {
		return usageNext(fmt.Errorf("diff --revision: want one SET"), "stsd diff web --revision 1..2")
	}
	from, to, ok := strings.Cut(f.revision, "..")
	if !ok || from == "" || to == "" {
		return usageNext(fmt.Errorf("--revision %q: want A..B", f.revision), "stsd diff "+args[0]+" --revision 1..2")
	}
	key, err := a.setArg("diff", args[0])
	if err != nil {
		return err
	}
	c, err := a.client()
	if err != nil {
		return err
	}
	before, after, err := a.twoRevisions(cmd.Context(), c, key, from, to)
	if err != nil {
		return err
	}
	d := difference{key.Namespace, key.Name, revisionText(before), revisionText(after), orEmpty(hcl.Diff(before.Template, after.Template))}
	return a.showDiff([]difference{d}, f.exitCode)
}

func (a *app) twoRevisions(ctx context.Context, c *client.Client, key jobspecs.Key, from, to string) (before, after jobspecs.HistoryRow, err error) {
	rows, err := c.History(ctx, key)
	if err != nil {
		return before, after, a.orMember(ctx, c, "diff", key, err)
	}
	if before, err = revision(rows, key, from); err != nil {
		return before, after, err
	}
	after, err = revision(rows, key, to)
	return before, after, err
}

// revision finds one by number or name.
func revision(rows []jobspecs.HistoryRow, key jobspecs.Key, want string) (jobspecs.HistoryRow, error) {
	for _, r := range rows {
		if r.Name == want || strconv.Itoa(r.Number) == want {
			return r, nil
		}
	}
	return jobspecs.HistoryRow{}, &exitError{
		code: exitFailure, err: fmt.Errorf("%s has no revision %s", nameOf(key.Namespace, key.Name), want),
		next: []string{"stsd rollout history " + nameOf(key.Namespace, key.Name)},
	}
}

func revisionText(r jobspecs.HistoryRow) string {
	return fmt.Sprintf("revision %d, %s", r.Number, r.Name)
}

func (a *app) showDiff(list []difference, exitCode bool) error {
	differs := false
	for _, d := range list {
		differs = differs || len(d.Diff) > 0
	}
	err := a.show(view{doc: list, table: func(w io.Writer) {
		for _, d := range list {
			if len(d.Diff) == 0 {
				continue
			}
			name := nameOf(d.Namespace, d.Set)
			fmt.Fprintf(w, "--- %s (%s)\n+++ %s (%s)\n", name, d.From, name, d.To)
			writeDiff(w, "", d.Diff)
		}
	}})
	if err == nil && differs && exitCode {
		return quietly(exitDiffers)
	}
	return err
}

// writeDiff shows each attribute that differs.
func writeDiff(w io.Writer, indent string, diff []jobspecs.Change) {
	for _, d := range diff {
		if d.Before != "" {
			fmt.Fprintf(w, "%s- %s = %s\n", indent, d.Path, d.Before)
		}
		if d.After != "" {
			fmt.Fprintf(w, "%s+ %s = %s\n", indent, d.Path, d.After)
		}
	}
}

// orEmpty makes a list of nil: in JSON a list is a list.
func orEmpty[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}
