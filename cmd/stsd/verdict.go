package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

// verdict is what one status means to somebody who waits for a rollout.
type verdict struct {
	over bool
	code int
	say  string   // one sentence
	next []string // what to type
}

// judge decides whether following a set ends with this status. generation is
// the one that was written; a status that has not observed it yet tells nothing.
func judge(st jobspecs.Status, generation int64) verdict {
	progressing, known := condition(st, jobspecs.CondProgressing)
	stalled, _ := condition(st, jobspecs.CondStalled)
	paused, _ := condition(st, jobspecs.CondPaused)
	back, _ := condition(st, jobspecs.CondRolledBack)
	name := nameOf(st.Namespace, st.Name)
	switch {
	case st.ObservedGeneration < generation:
		return verdict{}
	case st.Deleting:
		return verdict{over: true, code: exitRollout, say: name + " is being deleted", next: []string{"stsd wait " + name + " --for=deleted"}}
	case back.Status:
		return verdict{over: true, code: exitRollout, say: rolledBack(name, back), next: explainNext(st)}
	case known && !progressing.Status && progressing.Reason == reasonComplete:
		return verdict{over: true, say: summary(st)}
	case stalled.Status && !maySoonPass(stalled):
		return verdict{over: true, code: exitRollout, say: fmt.Sprintf("%s is stalled: %s; the daemon goes on trying", name, reasonOf(stalled)), next: explainNext(st)}
	case paused.Status:
		return verdict{over: true, code: exitGoing, say: name + " is paused", next: []string{"stsd rollout resume " + name}}
	}
	return verdict{}
}

// refusals is how long a hook may say no before following ends: what it waits for is often
// a matter of seconds.
const refusals = 30 * time.Second

// reasonHookFailed is the reason of Stalled while a hook says no.
const reasonHookFailed = "HookFailed"

func maySoonPass(stalled jobspecs.Condition) bool {
	return stalled.Reason == reasonHookFailed && time.Since(stalled.Since) < refusals
}

// rolledBack says that a rollout was, and why; the message of the condition may say
// both.
func rolledBack(name string, back jobspecs.Condition) string {
	text := reasonOf(back)
	if rest, said := strings.CutPrefix(text, "rolled back "); said {
		return name + " was rolled back " + rest
	}
	return name + " was rolled back: " + text
}

// reasonComplete is the reason of Progressing=false when there is nothing left
// to do.
const reasonComplete = "Complete"

func condition(st jobspecs.Status, kind string) (jobspecs.Condition, bool) {
	for _, c := range st.Conditions {
		if c.Type == kind {
			return c, true
		}
	}
	return jobspecs.Condition{}, false
}

func reasonOf(c jobspecs.Condition) string {
	switch {
	case c.Message == "":
		return c.Reason
	case c.Reason == "":
		return c.Message
	}
	return fmt.Sprintf("%s (%s)", c.Message, c.Reason)
}

// summary is one sentence about a set that is complete.
func summary(st jobspecs.Status) string {
	text := fmt.Sprintf("%s  %d/%d available  revision %s", nameOf(st.Namespace, st.Name), st.AvailableReplicas, st.Replicas, st.UpdateRevision)
	if c, _ := condition(st, jobspecs.CondProgressing); st.UpdatedReplicas < st.Replicas && c.Reason == reasonComplete && c.Message != "" {
		text += ": " + c.Message
	}
	return text
}

// explainNext names the member that holds the set up.
func explainNext(st jobspecs.Status) []string {
	m, ok := culprit(st)
	if !ok {
		return []string{"stsd status " + nameOf(st.Namespace, st.Name)}
	}
	return []string{"stsd explain " + nameOf(st.Namespace, m.Name)}
}

// culprit is the first member with an error that no retry mends, else the one
// that is waited for, else the first that is not available.
func culprit(st jobspecs.Status) (jobspecs.Member, bool) {
	for _, want := range []func(jobspecs.Member) bool{
		func(m jobspecs.Member) bool { return runtime.Permanent(m.Reason) },
		func(m jobspecs.Member) bool { return st.Waiting != nil && m.Name == st.Waiting.Member },
		func(m jobspecs.Member) bool { return !m.Available },
	} {
		for _, m := range st.Members {
			if want(m) {
				return m, true
			}
		}
	}
	return jobspecs.Member{}, false
}
