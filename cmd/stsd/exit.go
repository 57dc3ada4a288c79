package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/jobspecs/hcl"
)

// The exit codes. exec passes the command's code on.
const (
	exitOK          = 0   // done, or nothing to do
	exitFailure     = 1   // any other error
	exitDiffers     = 2   // plan --exit-code, diff --exit-code, fmt --check
	exitRollout     = 3   // the rollout failed or was rolled back
	exitGoing       = 4   // time-out or paused: still going
	exitChanged     = 5   // changed since the plan, or by somebody else while it was followed
	exitRefused     = 6   // refused by a guard, or loss of data not confirmed
	exitUnreachable = 7   // no daemon answers
	exitUsage       = 64  // wrong usage, or not supported yet
	exitExec        = 125 // exec: stsd's own failure
	exitInterrupted = 130 // Ctrl-C
)

// exitError is an error with its exit code and what to type next. Without err
// nothing is printed.
type exitError struct {
	code   int
	err    error
	next   []string
	passed bool // the code is that of a command, not ours
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// quietly ends with a code and says nothing more.
func quietly(code int) error { return &exitError{code: code} }

func usagef(format string, args ...any) error {
	return &exitError{code: exitUsage, err: fmt.Errorf(format, args...)}
}

func usageNext(err error, next ...string) error {
	return &exitError{code: exitUsage, err: err, next: next}
}

func notYet(what string, next ...string) error {
	return usageNext(fmt.Errorf("%s is not supported yet", what), next...)
}

// usageError is wrong usage with nothing to add.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func passedOn(err error) bool {
	var e *exitError
	return errors.As(err, &e) && e.passed
}

// exitCode is the table of exit codes. ctx is done when the user interrupted.
func exitCode(ctx context.Context, err error) int {
	var own *exitError
	var usage usageError
	var gone *client.Unreachable
	var problem *client.Problem
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &own):
		return own.code
	case errors.As(err, &usage):
		return exitUsage
	case ctx.Err() != nil, errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.As(err, &gone):
		return exitUnreachable
	case errors.As(err, &problem):
		return problemCode(problem)
	}
	return exitFailure
}

func problemCode(p *client.Problem) int {
	switch p.Type {
	case client.ProblemChanged:
		return exitChanged
	case client.ProblemUnconfirmed, client.ProblemGuard:
		return exitRefused
	}
	return exitFailure
}

// report prints err: what failed first, what to type next last.
func (a *app) report(cmd *cobra.Command, err error) {
	var own *exitError
	isOwn := errors.As(err, &own)
	if err == nil || isOwn && own.err == nil {
		return
	}
	var problem *client.Problem
	if errors.As(err, &problem) && len(problem.Diagnostics) > 0 {
		hcl.WriteDiagnostics(a.stderr, problem.Diagnostics, a.colour(a.stderr))
	}
	fmt.Fprintf(a.stderr, "stsd: %s\n", strings.TrimSpace(message(err, problem)))
	if problem != nil && problem.Detail != "" {
		fmt.Fprintln(a.stderr, "  "+hint(strings.TrimSpace(problem.Detail)))
	}
	next := a.next(cmd, err)
	if isOwn {
		next = append(own.next, next...)
	}
	for _, n := range next {
		fmt.Fprintf(a.stderr, "  try: %s\n", n)
	}
}

// hint marks a detail that is a command to type as one.
func hint(detail string) string {
	if strings.HasPrefix(detail, "stsd ") || strings.HasPrefix(detail, "docker ") {
		return "try: " + detail
	}
	return detail
}

// message is err in one sentence; a problem's detail stands on its own line.
func message(err error, p *client.Problem) string {
	switch {
	case errors.Is(err, context.Canceled) && !errors.As(err, new(*exitError)):
		return "interrupted"
	case p != nil && p.Detail != "":
		return strings.TrimSuffix(err.Error(), p.Error()) + p.Title
	}
	return err.Error()
}

// next is what to type after errors that are the same for every verb.
func (a *app) next(cmd *cobra.Command, err error) []string {
	var gone *client.Unreachable
	if errors.As(err, &gone) {
		return startOne(gone)
	}
	var p *client.Problem
	if errors.As(err, &p) && p.Type == client.ProblemUnconfirmed {
		if verbOf(cmd) == "secret rm" {
			return []string{fmt.Sprintf("stsd secret rm %s --yes, when the value may go", asGiven(cmd, p.Set))}
		}
		return []string{fmt.Sprintf("stsd %s … --yes, when the data may go", verbOf(cmd))}
	}
	if errors.As(err, &p) && p.Type == client.ProblemGuard {
		return []string{fmt.Sprintf("stsd %s … --force, when fewer may run", verbOf(cmd))}
	}
	if errors.As(err, &p) && p.Type == client.ProblemEngine {
		return []string{"stsd version, which shows what the daemon sees of the engine"}
	}
	return nil
}

// asGiven is a name as the command line has it, with its namespace where it was typed.
func asGiven(cmd *cobra.Command, name string) string {
	for _, arg := range cmd.Flags().Args() {
		if strings.HasSuffix(arg, "/"+name) {
			return arg
		}
	}
	return name
}

// startOne says how to get a daemon.
func startOne(u *client.Unreachable) []string {
	if errors.Is(u, fs.ErrPermission) {
		return []string{"sudo usermod -aG docker " + userName() + ", log in again (the socket belongs to group docker)"}
	}
	return []string{
		"stsd daemon, in another terminal, as a user who may use Docker",
		"stsd -H unix:///path/to/stsd.sock …, or STSD_HOST, when it listens elsewhere",
	}
}

func userName() string {
	if u := os.Getenv("USER"); u != "" {
		return u
	}
	return "$USER"
}
