package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/jobspecs"
)

// followFlags are those of every verb that follows what it started.
type followFlags struct {
	detach  bool
	timeout time.Duration
}

func (f *followFlags) add(flags *pflag.FlagSet) {
	flags.BoolVar(&f.detach, "detach", false, "do not follow")
	timeoutVar(flags, &f.timeout, "how long to follow (0: no limit)")
}

// timeoutVar adds the flag --timeout.
func timeoutVar(flags *pflag.FlagSet, into *time.Duration, usage string) {
	flags.Var((*timeoutValue)(into), "timeout", usage)
}

// timeoutValue is a duration that is not negative.
type timeoutValue time.Duration

func (v *timeoutValue) String() string { return time.Duration(*v).String() }
func (v *timeoutValue) Type() string   { return "duration" }

// Set implements pflag.Value.
func (v *timeoutValue) Set(s string) error {
	d, err := time.ParseDuration(s)
	if err == nil && d < 0 {
		err = errors.New("it cannot be negative")
	}
	*v = timeoutValue(d)
	return err
}

// goal is a set that is followed until it is settled or, with gone, until it is
// no more.
type goal struct {
	key        jobspecs.Key
	generation int64
	revision   string // that was written; "": not to be held against the status
	gone       bool
}

// judge is judge, and ends when somebody else wrote another revision meanwhile.
func (g goal) judge(st jobspecs.Status) verdict {
	v := judge(st, g.generation)
	back, _ := condition(st, jobspecs.CondRolledBack)
	if g.revision == "" || st.Generation <= g.generation || st.UpdateRevision == g.revision || st.Deleting || back.Status {
		return v
	}
	name := nameOf(st.Namespace, st.Name)
	return verdict{over: true, code: exitChanged, say: fmt.Sprintf("%s was changed meanwhile: generation %d wants revision %s, this was %s", name, st.Generation, st.UpdateRevision, g.revision),
		next: []string{"stsd rollout history " + name}}
}

// update is what a watch saw of one goal.
type update struct {
	goal    int
	status  jobspecs.Status
	deleted bool
	lost    bool // the daemon does not answer for the moment
	err     error
	verdict verdict
}

// errTimeout is the cause of a context that --timeout ended.
var errTimeout = errors.New("time-out")

// follow watches goals until each is settled; w shows progress. The error has
// the worst exit code and what to type next.
func (a *app) follow(ctx context.Context, c *client.Client, w io.Writer, goals []goal, timeout time.Duration) error {
	ctx, cancel := limited(ctx, timeout)
	updates := make(chan update)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	for i, g := range goals {
		wg.Go(func() { watchGoal(ctx, c, i, g, updates) })
	}
	shown := a.display(w)
	verdicts, last := make([]verdict, len(goals)), make([]jobspecs.Status, len(goals))
	for open := len(goals); open > 0; {
		select {
		case <-ctx.Done():
			shown.end()
			return unfinished(context.Cause(ctx), goals, verdicts, last)
		case u := <-updates:
			if u.err != nil {
				shown.end()
				return u.err
			}
			shown.show(u)
			last[u.goal] = u.status
			if u.verdict.over {
				verdicts[u.goal] = u.verdict
				open--
			}
		}
	}
	shown.end()
	return a.settled(w, verdicts)
}

// limited ends with errTimeout after d; 0 is no limit.
func limited(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if d <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, d, errTimeout)
}

// patience is how long a daemon that went away is waited for while following,
// and pause how long between two tries.
const (
	patience = 30 * time.Second
	pause    = 500 * time.Millisecond
)

// watchGoal sends updates until the goal is settled. A daemon that restarts is
// waited for: what it does is on its disk.
func watchGoal(ctx context.Context, c *client.Client, i int, g goal, out chan<- update) {
	var lastSeen time.Time
	for {
		err := c.WatchStatus(ctx, g.key, func(st jobspecs.Status) error {
			lastSeen = time.Now()
			u := update{goal: i, status: st}
			if !g.gone {
				u.verdict = g.judge(st)
			}
			if !send(ctx, out, u) {
				return context.Cause(ctx)
			}
			if u.verdict.over {
				return errOver
			}
			return nil
		})
		switch {
		case errors.Is(err, errOver), ctx.Err() != nil:
			return
		case isGone(err):
			send(ctx, out, g.goneUpdate(i))
			return
		case !isLost(err) || lastSeen.IsZero() || time.Since(lastSeen) > patience:
			send(ctx, out, update{goal: i, err: err})
			return
		}
		if !send(ctx, out, update{goal: i, lost: true}) || !sleep(ctx, pause) {
			return
		}
	}
}

// errOver ends a watch from within.
var errOver = errors.New("over")

func (g goal) goneUpdate(i int) update {
	u := update{goal: i, deleted: true, verdict: verdict{over: true}}
	name := nameOf(g.key.Namespace, g.key.Name)
	if g.gone {
		u.verdict.say = name + "  deleted"
		return u
	}
	u.verdict.code, u.verdict.say = exitRollout, name+" was deleted"
	u.verdict.next = []string{"stsd ls -A"}
	return u
}

func isGone(err error) bool {
	var p *client.Problem
	return errors.As(err, &p) && p.Type == client.ProblemNotFound
}

func isLost(err error) bool {
	var u *client.Unreachable
	return errors.Is(err, client.ErrStreamEnded) || errors.As(err, &u)
}

func send(ctx context.Context, out chan<- update, u update) bool {
	select {
	case out <- u:
		return true
	case <-ctx.Done():
		return false
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// unfinished is the end of following before all is settled.
func unfinished(cause error, goals []goal, verdicts []verdict, last []jobspecs.Status) error {
	var names []string
	for i, g := range goals {
		if !verdicts[i].over {
			names = append(names, nameOf(g.key.Namespace, g.key.Name))
		}
	}
	e := &exitError{code: exitInterrupted, err: fmt.Errorf("interrupted; the daemon carries on with %s", strings.Join(names, ", "))}
	if errors.Is(cause, errTimeout) {
		e.code, e.err = exitGoing, fmt.Errorf("%s: still going; the daemon carries on", strings.Join(names, ", "))
	}
	for i, g := range goals {
		name := nameOf(g.key.Namespace, g.key.Name)
		switch {
		case verdicts[i].over:
		case g.gone:
			e.next = append(e.next, "stsd wait "+name+" --for=deleted")
		case last[i].Name == "" || e.code == exitInterrupted:
			e.next = append(e.next, "stsd rollout status "+name)
		default:
			e.next = append(e.next, explainNext(last[i])...)
		}
	}
	return e
}

// settled prints the good news and returns the bad.
func (a *app) settled(w io.Writer, verdicts []verdict) error {
	bad := &exitError{}
	var said []string
	for _, v := range verdicts {
		if v.code == exitOK {
			if !a.quiet && a.progress != "json" {
				fmt.Fprintln(w, v.say)
			}
			continue
		}
		said = append(said, v.say)
		bad.next = append(bad.next, v.next...)
		if bad.code == exitOK || v.code == exitRollout {
			bad.code = v.code
		}
	}
	if said == nil {
		return nil
	}
	bad.err = errors.New(strings.Join(said, "\n      "))
	return bad
}
