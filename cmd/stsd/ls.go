package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stsd/stsd/jobspecs"
)

// listFlags are those of ls and ps.
type listFlags struct {
	watch         bool
	all           bool
	allNamespaces bool
}

func (l *listFlags) add(f *pflag.FlagSet) {
	f.BoolVarP(&l.watch, "watch", "w", false, "show again after each change")
	f.BoolVarP(&l.all, "all", "a", false, "accepted for docker's hands: everything is always shown")
	f.BoolVarP(&l.allNamespaces, "all-namespaces", "A", false, "of all namespaces")
}

func newLsCmd(a *app) *cobra.Command {
	var f listFlags
	cmd := &cobra.Command{
		Use:               "ls [SET…]",
		Short:             "List sets",
		ValidArgsFunction: a.completeSets,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.ls(cmd.Context(), f, args) },
	}
	f.add(cmd.Flags())
	return cmd
}

func (a *app) ls(ctx context.Context, f listFlags, args []string) error {
	c, err := a.client()
	if err != nil {
		return err
	}
	wanted, err := a.setArgs("ls", args)
	if err != nil {
		return err
	}
	return a.again(ctx, f.watch, func() (view, error) {
		rows, err := c.Sets(ctx, a.listed(f, wanted))
		if err != nil {
			return view{}, err
		}
		rows, err = onlySets(rows, wanted)
		v := a.setsView(rows, f.allNamespaces)
		if err != nil || len(rows) > 0 || len(wanted) > 0 {
			return v, err
		}
		return a.orElsewhere(v, "sets", f, func() (int, error) {
			all, err := c.Sets(ctx, "")
			return len(all), err
		})
	})
}

// orElsewhere is an empty view that says so when other namespaces are not empty.
func (a *app) orElsewhere(v view, what string, f listFlags, count func() (int, error)) (view, error) {
	if f.allNamespaces {
		return v, nil
	}
	n, err := count()
	if n > 0 {
		nothing := fmt.Sprintf("no %s in namespace %s; -A shows all", what, a.inNamespace())
		v.table = func(io.Writer) { a.say("%s", nothing) }
	}
	return v, err
}

// listed is the namespace to list; "" is all.
func (a *app) listed(f listFlags, wanted []jobspecs.Key) string {
	if f.allNamespaces || len(wanted) > 0 {
		return ""
	}
	return a.inNamespace()
}

func (a *app) setArgs(verb string, args []string) ([]jobspecs.Key, error) {
	var keys []jobspecs.Key
	for _, arg := range args {
		k, err := a.setArg(verb, arg)
		if err != nil {
			return nil, err
		}
		keys = append(keys, k)
	}
	return keys, nil
}

func onlySets(rows []jobspecs.SetRow, wanted []jobspecs.Key) ([]jobspecs.SetRow, error) {
	if len(wanted) == 0 {
		return orEmpty(rows), nil
	}
	byKey := map[jobspecs.Key]jobspecs.SetRow{}
	for _, r := range rows {
		byKey[jobspecs.Key{Namespace: r.Namespace, Name: r.Name}] = r
	}
	out := []jobspecs.SetRow{}
	for _, k := range wanted {
		r, ok := byKey[k]
		if !ok {
			return nil, &exitError{code: exitFailure, err: fmt.Errorf("no set %s in namespace %s", k.Name, k.Namespace), next: []string{"stsd ls -A"}}
		}
		out = append(out, r)
	}
	return out, nil
}

func (a *app) setsView(rows []jobspecs.SetRow, namespaces bool) view {
	v := view{doc: rows, names: []string{}}
	t := table{}
	t.row(a.head(namespaces, []string{"NAME", "READY", "STATE", "REV", "AGE"}, []string{"UPDATED", "AVAILABLE", "IMAGES", "WAITING"})...)
	for _, r := range rows {
		v.names = append(v.names, nameOf(r.Namespace, r.Name))
		cells := []string{r.Name, fmt.Sprintf("%d/%d", r.Ready, r.Replicas), orDash(r.State), orDash(shortRevision(r.Name, r.UpdateRevision)), a.age(&r.Created)}
		more := []string{fmt.Sprint(r.Updated), fmt.Sprint(r.Available), orDash(strings.Join(r.Images, ",")), orDash(firstLine(r.Waiting))}
		t.row(a.cells(namespaces, r.Namespace, cells, more)...)
	}
	v.table = a.tableOr(t, len(rows), "no sets; stsd example web prints a spec to begin with")
	return v
}

// head are the titles of a table: with a namespace first, and more where wide.
func (a *app) head(namespaces bool, titles, more []string) []string {
	return a.cells(namespaces, "NAMESPACE", titles, more)
}

func (a *app) cells(namespaces bool, namespace string, cells, more []string) []string {
	if namespaces {
		cells = append([]string{namespace}, cells...)
	}
	if a.format.wide() {
		cells = append(cells, more...)
	}
	return cells
}

// tableOr says on stderr that there is nothing to show.
func (a *app) tableOr(t table, rows int, nothing string) func(io.Writer) {
	return func(w io.Writer) {
		if rows == 0 {
			a.say("%s", nothing)
			return
		}
		t.write(w)
	}
}

func linesOf(lines ...string) func(io.Writer) {
	return func(w io.Writer) {
		for _, l := range lines {
			fmt.Fprintln(w, l)
		}
	}
}

// shortRevision drops the set's name: "web-6f5d8c7b9a" is "6f5d8c7b9a".
func shortRevision(set, revision string) string { return strings.TrimPrefix(revision, set+"-") }

// watchEvery is how often lists are looked at again.
const watchEvery = time.Second

// again shows a view once or, watching, after every change until interrupted.
func (a *app) again(ctx context.Context, watch bool, look func() (view, error)) error {
	var last string
	for {
		v, err := look()
		if err != nil {
			return err
		}
		if !watch {
			return a.show(v)
		}
		if err := a.showChanged(&last, v); err != nil {
			return err
		}
		if !sleep(ctx, watchEvery) {
			return context.Cause(ctx)
		}
	}
}

// showChanged shows v when it looks different from the last time: in place on
// a terminal, one below the other elsewhere.
func (a *app) showChanged(last *string, v view) error {
	var b strings.Builder
	inner := *a
	inner.stdout = &b
	if err := inner.show(v); err != nil {
		return err
	}
	if b.String() == *last {
		return nil
	}
	if _, isTerminal := terminal(a.stdout); isTerminal && a.format.table() {
		fmt.Fprint(a.stdout, "\x1b[H\x1b[2J")
	} else if *last != "" && a.format.table() {
		fmt.Fprintln(a.stdout)
	}
	*last = b.String()
	_, err := io.WriteString(a.stdout, *last)
	return err
}
