package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/jobspecs"
)

func newExplainCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:               "explain MEMBER",
		Short:             "Say why a member is in its state, and what to type next",
		Args:              args(1, 1, "MEMBER"),
		ValidArgsFunction: first(a.completeTargets),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.explain(cmd.Context(), args[0]) },
	}
}

func (a *app) explain(ctx context.Context, arg string) error {
	t, err := parseTarget(arg)
	if err != nil {
		return err
	}
	if err := a.place(&t); err != nil {
		return err
	}
	if t.listed {
		return usagef("explain takes one member; %s are several", t.name)
	}
	c, err := a.client()
	if err != nil {
		return err
	}
	e, err := c.Explain(ctx, t.namespace, t.name)
	if err != nil {
		return a.orSet(ctx, c, t, err)
	}
	return a.show(view{doc: e, names: []string{nameOf(e.Namespace, e.Member)}, table: func(w io.Writer) { a.writeExplanation(w, e) }})
}

// orSet turns "no such member", or "that is a set", into the better answer when the name is a set's.
func (a *app) orSet(ctx context.Context, c *client.Client, t target, err error) error {
	var p *client.Problem
	if !errors.As(err, &p) || p.Type != client.ProblemNotFound && p.Type != client.ProblemInvalid {
		return err
	}
	st, statusErr := c.Status(ctx, jobspecs.Key{Namespace: t.namespace, Name: t.name})
	if statusErr != nil {
		return err
	}
	e := &exitError{code: exitUsage, err: fmt.Errorf("explain takes a member; %s is a set", t.name)}
	if m, ok := culprit(st); ok {
		e.next = append(e.next, "stsd explain "+nameOf(t.namespace, m.Name))
	}
	e.next = append(e.next, "stsd status "+nameOf(t.namespace, t.name))
	return e
}

func (a *app) writeExplanation(w io.Writer, e jobspecs.Explanation) {
	fmt.Fprintln(w, e.State)
	for i, b := range e.Because {
		fmt.Fprintf(w, "%sbecause %s\n", strings.Repeat("  ", i+1), b)
	}
	section(w, "Containers", a.containerRows("", e.Containers))
	section(w, "Events", a.eventRows(e.Events, false))
	if len(e.Next) == 0 {
		return
	}
	fmt.Fprintln(w, "\nNext")
	for _, n := range e.Next {
		fmt.Fprintln(w, "  "+n)
	}
}
