package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/jobspecs"
)

func newRolloutCmd(a *app) *cobra.Command {
	return group("rollout", "Follow, undo, pause, resume or restart a rollout",
		newRolloutStatusCmd(a), newRolloutHistoryCmd(a), newRolloutUndoCmd(a),
		newRolloutDoCmd(a, "pause", "Stop after the member under way"),
		newRolloutDoCmd(a, "resume", "Go on with a paused rollout"),
		newRolloutDoCmd(a, "restart", "Replace all members by a new revision of the same template"),
	)
}

func newRolloutStatusCmd(a *app) *cobra.Command {
	f := followFlags{}
	watch := true
	cmd := &cobra.Command{
		Use:               "status SET",
		Short:             "Follow a rollout: exit 0 when complete, 3 when it failed, 4 when it is paused or takes too long",
		Args:              args(1, 1, "SET"),
		ValidArgsFunction: first(a.completeSets),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.rolloutStatus(cmd.Context(), args[0], f, watch)
		},
	}
	timeoutVar(cmd.Flags(), &f.timeout, "how long to follow (0: no limit)")
	cmd.Flags().BoolVarP(&watch, "watch", "w", true, "follow; --watch=false looks once")
	return cmd
}

func (a *app) rolloutStatus(ctx context.Context, arg string, f followFlags, watch bool) error {
	key, err := a.setArg("rollout status", arg)
	if err != nil {
		return err
	}
	c, err := a.client()
	if err != nil {
		return err
	}
	st, err := c.Status(ctx, key)
	if err != nil {
		return a.orMember(ctx, c, "rollout status", key, err)
	}
	if watch {
		return a.follow(ctx, c, a.stdout, []goal{{key: key, generation: st.Generation}}, f.timeout)
	}
	v := judge(st, st.Generation)
	if !v.over {
		fmt.Fprintln(a.stdout, headline(st))
		return nil
	}
	return a.settled(a.stdout, []verdict{v})
}

func newRolloutHistoryCmd(a *app) *cobra.Command {
	var number string
	cmd := &cobra.Command{
		Use:   "history SET",
		Short: "List revisions",
		Long: "history lists revisions; of a long cause the table shows the begin, -o wide its first line. --revision shows all\n" +
			"of one, with the source that it was made from. An image that was set beside it stands there in its place.",
		Args:              args(1, 1, "SET"),
		ValidArgsFunction: first(a.completeSets),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.history(cmd.Context(), args[0], number) },
	}
	cmd.Flags().StringVar(&number, "revision", "", "print the template of this one")
	a.complete(cmd, "revision", a.completeRevisions)
	return cmd
}

func (a *app) history(ctx context.Context, arg, number string) error {
	key, err := a.setArg("rollout history", arg)
	if err != nil {
		return err
	}
	c, err := a.client()
	if err != nil {
		return err
	}
	rows, err := c.History(ctx, key)
	if err != nil {
		return a.orMember(ctx, c, "rollout history", key, err)
	}
	if number == "" {
		return a.show(a.historyView(rows))
	}
	row, err := revision(rows, key, number)
	if err != nil {
		return err
	}
	return a.show(view{doc: row, names: []string{row.Name}, table: func(w io.Writer) { writeRevision(w, row) }})
}

func (a *app) historyView(rows []jobspecs.HistoryRow) view {
	list := []jobspecs.HistoryRow{}
	v := view{names: []string{}}
	t := table{}
	t.row("REVISION", "NAME", "CREATED", "CAUSE", "MEMBERS", "CHANGES")
	for _, r := range rows {
		v.names = append(v.names, r.Name)
		t.row(fmt.Sprint(r.Number), r.Name, a.age(&r.Created), orDash(a.causeCell(r.Cause)), orDash(strings.Join(r.Members, ",")), orDash(changesLine(r.Changes)))
		r.Template, r.Source = nil, nil // --revision N has them
		list = append(list, r)
	}
	v.doc, v.table = list, a.tableOr(t, len(rows), "no revisions")
	return v
}

// causeShown is how much of a cause the table has room for, in characters.
const causeShown = 50

// causeCell is the begin of a cause; -o wide and --revision show more.
func (a *app) causeCell(cause string) string {
	line := firstLine(cause)
	if runes := []rune(line); len(runes) > causeShown && !a.format.wide() {
		return strings.TrimRight(string(runes[:causeShown-1]), " ") + "…"
	}
	return line
}

// changesShown is how many changes of a template a line has room for.
const changesShown = 3

// changesLine names what differs from the revision before.
func changesLine(changes []jobspecs.Change) string {
	var out []string
	for i, c := range changes {
		if i == changesShown {
			out = append(out, fmt.Sprintf("%d more", len(changes)-i))
			break
		}
		text := c.Path
		if c.Before != "" && c.After != "" && len(c.Before)+len(c.After) < 60 && !strings.Contains(c.Before+c.After, "\n") {
			text += " " + c.Before + " → " + c.After
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

// writeRevision prints the source that the revision was made from, or the
// template where there is none.
func writeRevision(w io.Writer, r jobspecs.HistoryRow) {
	fmt.Fprintf(w, "# revision %d, %s\n", r.Number, r.Name)
	if r.Cause != "" {
		fmt.Fprintf(w, "# cause: %s\n", strings.ReplaceAll(strings.TrimSpace(r.Cause), "\n", "\n#   "))
	}
	if len(r.Images) > 0 {
		fmt.Fprintf(w, "# images: %s\n", strings.Join(r.Images, ", "))
	}
	for _, c := range r.Changes {
		fmt.Fprintf(w, "# changed: %s\n", changesLine([]jobspecs.Change{c}))
	}
	for _, s := range r.Source {
		fmt.Fprintf(w, "# %s\n%s", s.Name, s.Text)
	}
	if len(r.Source) == 0 && len(r.Template) > 0 {
		_ = writeJSON(w, r.Template) // stdout is gone
	}
}

func newRolloutUndoCmd(a *app) *cobra.Command {
	var f changeFlags
	var to int
	cmd := &cobra.Command{
		Use:               "undo SET",
		Short:             "Go back to an older revision",
		Long:              "undo goes back to the template of the revision before. One that was rolled back from is skipped, unless --to names it.",
		Args:              args(1, 1, "SET"),
		ValidArgsFunction: first(a.completeSets),
		RunE: func(cmd *cobra.Command, args []string) error {
			if to < 0 {
				return usagef("rollout undo --to %d: want the number of a revision; stsd rollout history %s lists them", to, args[0])
			}
			return a.rolloutDo(cmd, args[0], f, client.RolloutRequest{Do: "undo", To: to})
		},
	}
	f.addAll(cmd)
	cmd.Flags().IntVar(&to, "to", 0, "number of the revision (0: the one before that did not fail)")
	a.complete(cmd, "to", a.completeRevisions)
	return cmd
}

func newRolloutDoCmd(a *app, do, short string) *cobra.Command {
	var f changeFlags
	cmd := &cobra.Command{
		Use:               do + " SET",
		Short:             short,
		Args:              args(1, 1, "SET"),
		ValidArgsFunction: first(a.completeSets),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.rolloutDo(cmd, args[0], f, client.RolloutRequest{Do: do})
		},
	}
	f.writeFlags.add(cmd.Flags())
	if do == "pause" {
		f.detach = true // there is nothing to follow
		return cmd
	}
	f.followFlags.add(cmd.Flags())
	return cmd
}

func (a *app) rolloutDo(cmd *cobra.Command, arg string, f changeFlags, req client.RolloutRequest) error {
	return a.change(cmd, "rollout "+req.Do, arg, f, func(ctx context.Context, c *client.Client, key jobspecs.Key, w client.Write) (client.Result, error) {
		req.Write = w
		return c.Rollout(ctx, key, req)
	})
}
