package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/stsd/stsd/daemon/client"
)

// writeFlags are those of every verb that writes.
type writeFlags struct {
	dryRun bool
	yes    bool
	cause  string
	force  bool
}

func (w *writeFlags) add(f *pflag.FlagSet) {
	f.BoolVar(&w.dryRun, "dry-run", false, "show the plan and write nothing")
	f.BoolVar(&w.yes, "yes", false, "go on where data would be lost sight of")
	f.BoolVar(&w.force, "force", false, "go past the set's guard and the vetoes of its hooks")
	f.StringVarP(&w.cause, "message", "m", "", "cause of the change, kept with the revision")
}

func (w *writeFlags) write() client.Write {
	return client.Write{DryRun: w.dryRun, Yes: w.yes, Cause: w.cause, Force: w.force}
}

// confirmed sends a write, and again with the user's consent where the daemon
// asks for it: on a terminal by the set's name, elsewhere not at all.
func confirmed[Out any](ctx context.Context, a *app, w client.Write, send func(context.Context, client.Write) (Out, error)) (Out, error) {
	return confirmedThing(ctx, a, "set", w, send)
}

// confirmedThing is confirmed for something else than a set.
func confirmedThing[Out any](ctx context.Context, a *app, thing string, w client.Write, send func(context.Context, client.Write) (Out, error)) (Out, error) {
	for {
		out, err := send(ctx, w)
		var p *client.Problem
		if !errors.As(err, &p) || p.Type != client.ProblemUnconfirmed {
			return out, err
		}
		a.showData(p)
		if !a.asks() || p.Set == "" || slices.Contains(w.Confirm, p.Set) {
			return out, err
		}
		if err := a.ask(ctx, thing, shortName(p.Set)); err != nil {
			return out, err
		}
		w.Confirm = append(w.Confirm, p.Set)
	}
}

func (a *app) showData(p *client.Problem) {
	for _, d := range p.Data {
		fmt.Fprintln(a.stderr, dataLine(d))
	}
}

// dataLine marks what would be lost sight of; the daemon may have done so, or
// said what else it is.
func dataLine(d string) string {
	if strings.HasPrefix(d, "data:") || strings.HasPrefix(d, "value:") {
		return d
	}
	return "data: " + d
}

// ask wants the name of a set, or of another thing, typed.
func (a *app) ask(ctx context.Context, thing, name string) error {
	fmt.Fprintf(a.stderr, "Type the name of the %s (%s) to go on: ", thing, name)
	typed := make(chan string, 1)
	go func() { // not waited for: nothing interrupts a Read of a terminal
		line, _ := bufio.NewReader(a.stdin).ReadString('\n') // an end is no consent
		typed <- strings.TrimSpace(line)
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(a.stderr)
		return context.Cause(ctx)
	case got := <-typed:
		if got != name {
			return &exitError{code: exitRefused, err: fmt.Errorf("not confirmed; nothing was changed")}
		}
		return nil
	}
}

// shortName is a key's name without its namespace.
func shortName(key string) string { return key[strings.LastIndexByte(key, '/')+1:] }
