package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

type execFlags struct {
	stdin     bool
	tty       bool
	container string
	all       bool
}

func newExecCmd(a *app) *cobra.Command {
	var f execFlags
	cmd := &cobra.Command{
		Use:               "exec MEMBER -- COMMAND…",
		Short:             "Run a command in a member; its exit code is passed on",
		Long:              "exec runs a command in a member and passes its exit code on; stsd's own failures are 125.",
		Example:           "  stsd exec -it web-0 -- sh\n  stsd exec --all web -- hostname",
		ValidArgsFunction: first(a.completeTargets),
		RunE: func(cmd *cobra.Command, args []string) error {
			at := cmd.ArgsLenAtDash()
			if at < 0 {
				at = min(1, len(args))
			}
			return a.exec(cmd.Context(), f, args[:at], args[at:])
		},
	}
	cmd.Flags().BoolVarP(&f.stdin, "stdin", "i", false, "pass standard input on")
	cmd.Flags().BoolVarP(&f.tty, "tty", "t", false, "give the command a terminal")
	cmd.Flags().StringVarP(&f.container, "container", "c", "", "container (default: the first main one)")
	cmd.Flags().BoolVar(&f.all, "all", false, "in every member of TARGET, one after the other")
	a.complete(cmd, "container", a.completeContainers)
	return cmd
}

func (a *app) exec(ctx context.Context, f execFlags, targets, command []string) error {
	if len(targets) != 1 || len(command) == 0 {
		return usageNext(fmt.Errorf("exec: want a MEMBER, -- and a COMMAND"), "stsd exec web-0 -- hostname", "stsd exec -it web-0 -- sh")
	}
	if f.all && (f.stdin || f.tty) {
		return usagef("exec: --all goes with neither -i nor -t")
	}
	c, err := a.client()
	if err != nil {
		return err
	}
	members, whole, err := a.members(ctx, c, targets)
	if err != nil {
		return err
	}
	a.sayDefaulted(f.container, members)
	if f.all {
		return a.execAll(ctx, c, f, members, command)
	}
	if whole || len(members) != 1 {
		return a.severalMembers(targets[0], members, command)
	}
	return a.execOne(ctx, c, f, members[0], command)
}

func (a *app) severalMembers(target string, members []jobspecs.Member, command []string) error {
	if t, err := parseTarget(target); err == nil && a.place(&t) == nil {
		target = nameOf(t.namespace, t.name)
	}
	e := &exitError{code: exitExec, err: fmt.Errorf("exec takes one member; %s has %d", target, len(members))}
	if len(members) > 0 {
		e.next = append(e.next, fmt.Sprintf("stsd exec %s -- %s", nameOf(members[0].Namespace, members[0].Name), command[0]))
	}
	e.next = append(e.next, fmt.Sprintf("stsd exec --all %s -- %s", target, command[0]))
	return e
}

// execAll runs the command in each member; the code is the first that is not 0.
func (a *app) execAll(ctx context.Context, c *client.Client, f execFlags, members []jobspecs.Member, command []string) error {
	var first error
	for _, m := range members {
		a.say("%s:", nameOf(m.Namespace, m.Name))
		err := a.execOne(ctx, c, f, m, command)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil && !passedOn(err) {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
		if first == nil {
			first = err
		}
	}
	return first
}

func (a *app) execOne(ctx context.Context, c *client.Client, f execFlags, m jobspecs.Member, command []string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	o := runtime.ExecOptions{Command: command, Container: f.container, TTY: f.tty, Stdout: a.stdout, Stderr: a.stderr}
	if f.stdin {
		o.Stdin = a.stdin
	}
	if f.tty {
		restore, err := a.raw(ctx, &o)
		if err != nil {
			return err
		}
		defer restore()
	}
	code, err := c.Exec(ctx, podName(m), o)
	if err != nil {
		return err
	}
	if code != 0 {
		return &exitError{code: code, passed: true}
	}
	return nil
}

// raw gives the command our terminal and its size.
func (a *app) raw(ctx context.Context, o *runtime.ExecOptions) (restore func(), err error) {
	in, ok := terminal(a.stdin)
	if !ok {
		return nil, usagef("exec -t: standard input is no terminal; leave -t out")
	}
	o.Resize = sizes(ctx, a.stdout)
	if o.Stdin == nil {
		return func() {}, nil
	}
	before, err := term.MakeRaw(in)
	if err != nil {
		return nil, fmt.Errorf("exec -t: %w", err)
	}
	return func() { _ = term.Restore(in, before) }, nil
}
