package daemon

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/stsd/stsd/daemon/api"
	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/daemon/planner"
	"github.com/stsd/stsd/daemon/store"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/jobspecs/hcl"
	"github.com/stsd/stsd/runtime"
)

var _ api.Service = (*Daemon)(nil)

// Status is the newest snapshot of a set, with the stored generation: a reader
// sees by observed_generation whether it is of what was stored last.
func (d *Daemon) Status(ctx context.Context, key jobspecs.Key) (jobspecs.Status, error) {
	r, err := d.store.Get(key)
	if err != nil {
		return jobspecs.Status{}, d.notFoundOr(ctx, key, err)
	}
	return d.statusOf(key, &r), nil
}

func (d *Daemon) notFoundOr(ctx context.Context, key jobspecs.Key, err error) error {
	if p, ok := storeProblem(err).(*client.Problem); ok && p.Type == client.ProblemNotFound {
		return d.notFound(ctx, key)
	}
	return err
}

func (d *Daemon) statusOf(key jobspecs.Key, r *store.Record) jobspecs.Status {
	if l := d.loop(key); l != nil {
		if s := l.seen.get(); s != nil {
			out := s.status
			out.Generation = max(out.Generation, r.Generation)
			return out
		}
	}
	v, err := d.store.Look(key)
	if err != nil {
		v.Record = *r
	}
	return d.unseen(&v, reasonUnseen, "not looked at yet")
}

// WatchStatus gives the status now and at every change, the newest only.
func (d *Daemon) WatchStatus(ctx context.Context, key jobspecs.Key) (<-chan jobspecs.Status, error) {
	if _, err := d.store.Get(key); err != nil {
		return nil, d.notFoundOr(ctx, key, err)
	}
	out := make(chan jobspecs.Status)
	go func() { // ends with ctx or with the set; the caller ends ctx
		defer close(out)
		for ctx.Err() == nil {
			bell := d.bell(key)
			r, err := d.store.Get(key)
			if err != nil {
				return
			}
			select {
			case out <- d.statusOf(key, &r):
			case <-ctx.Done():
				return
			}
			select {
			case <-bell:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out, nil
}

// bell rings at the next change of a set's snapshot.
func (d *Daemon) bell(key jobspecs.Key) <-chan struct{} {
	l := d.loop(key)
	if l == nil { // it ended, or has not started: ask the store again soon
		soon := make(chan struct{})
		time.AfterFunc(50*time.Millisecond, func() { close(soon) })
		return soon
	}
	bell, _ := l.seen.changed()
	return bell
}

// Sets lists what is stored.
func (d *Daemon) Sets(ctx context.Context, namespace string) ([]jobspecs.SetRow, error) {
	records, err := d.store.Records()
	if err != nil {
		return nil, err
	}
	out := []jobspecs.SetRow{}
	for i := range records {
		r := &records[i]
		if namespace != "" && r.Set.Namespace != namespace {
			continue
		}
		s := d.statusOf(r.Key(), r)
		row := jobspecs.SetRow{
			Namespace: s.Namespace, Name: s.Name, Replicas: r.Replicas, Ready: s.ReadyReplicas, Available: s.AvailableReplicas,
			Updated: s.UpdatedReplicas, UpdateRevision: r.Update, State: stateWord(s), Images: []string{}, Created: r.Created,
		}
		if s.Waiting != nil {
			row.Waiting = s.Waiting.Member + ": " + s.Waiting.For
		}
		for _, img := range hcl.Images(r.Template) {
			row.Images = append(row.Images, img.Ref)
		}
		out = append(out, row)
	}
	return append(out, d.strayRows(ctx, namespace)...), nil
}

// stateWord is the condition that matters most.
func stateWord(s jobspecs.Status) string {
	is := map[string]jobspecs.Condition{}
	for _, c := range s.Conditions {
		is[c.Type] = c
	}
	switch {
	case s.Deleting:
		return "Deleting"
	case is[jobspecs.CondAvailable].Reason == runtime.ReasonUnreachable, is[jobspecs.CondAvailable].Reason == reasonUnseen:
		return "Unknown"
	case is[jobspecs.CondStalled].Status:
		return "Stalled"
	case is[jobspecs.CondPaused].Status:
		return "Paused"
	case is[jobspecs.CondDegraded].Status:
		return "Degraded"
	case is[jobspecs.CondProgressing].Status:
		return "Progressing"
	case len(s.Members) > 0 && !slices.ContainsFunc(s.Members, func(m jobspecs.Member) bool { return m.Reason != planner.ReasonByUser }):
		return "Stopped"
	}
	return "Available"
}

// Members lists the members of all sets of a namespace, or of all.
func (d *Daemon) Members(ctx context.Context, namespace string) ([]jobspecs.Member, error) {
	records, err := d.store.Records()
	if err != nil {
		return nil, err
	}
	out := []jobspecs.Member{}
	for i := range records {
		if namespace == "" || records[i].Set.Namespace == namespace {
			out = append(out, d.statusOf(records[i].Key(), &records[i]).Members...)
		}
	}
	return append(out, d.strayMembers(ctx, namespace)...), nil
}

// History lists the revisions of a set by number.
func (d *Daemon) History(ctx context.Context, key jobspecs.Key) ([]jobspecs.HistoryRow, error) {
	v, err := d.store.Look(key)
	if err != nil {
		return nil, d.notFoundOr(ctx, key, err)
	}
	running := map[string][]string{}
	for _, m := range d.statusOf(key, &v.Record).Members {
		if !unmade(&m) {
			running[m.Revision] = append(running[m.Revision], m.Name)
		}
	}
	out := []jobspecs.HistoryRow{}
	var before jobspecs.Template // what went before the first is not known
	for _, r := range v.Revisions {
		row := jobspecs.HistoryRow{
			Number: r.Number, Name: r.Name, Created: r.Created, Cause: r.Cause, Members: running[r.Name],
			Current: r.Name == v.Record.Current, Update: r.Name == v.Record.Update, Images: []string{}, Changes: []jobspecs.Change{},
		}
		if before != nil {
			row.Changes = append(row.Changes, hcl.Diff(before, r.Template)...)
		}
		before = r.Template
		row.Template, row.Source = d.shown(key.Name, &r)
		if row.Members == nil {
			row.Members = []string{}
		}
		for _, i := range hcl.Images(r.Template) {
			row.Images = append(row.Images, i.Ref)
		}
		out = append(out, row)
	}
	return out, nil
}

// Source is what the user wrote last.
func (d *Daemon) Source(ctx context.Context, key jobspecs.Key) (client.StoredSource, error) {
	r, err := d.store.Get(key)
	if err != nil {
		return client.StoredSource{}, d.notFoundOr(ctx, key, err)
	}
	if r.Lost {
		return client.StoredSource{}, conflict(key, "its spec was lost; apply it again")
	}
	s, err := d.store.Scope(key)
	sources, inputs := hcl.RedactedScope(s.Sources, s.Inputs)
	return client.StoredSource{Generation: r.Generation, Scope: client.Scope{Sources: sources, Inputs: inputs}, Overrides: r.Overrides}, err
}

// Events gives the stored ones, then follows.
func (d *Daemon) Events(ctx context.Context, q api.EventQuery, each func(jobspecs.Event) error) error {
	given := map[uint64]int{} // number → count that was given
	for {
		all, bell := d.events.list()
		for _, e := range all {
			if !matches(q, e.Event) || given[e.n] >= e.Count {
				continue
			}
			given[e.n] = e.Count
			if err := each(e.Event); err != nil {
				return err
			}
		}
		if !q.Follow {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-bell:
		}
	}
}

// Logs copies a member's output.
func (d *Daemon) Logs(ctx context.Context, name runtime.PodName, o runtime.LogOptions, stdout, stderr io.Writer) error {
	logs, ok := d.parts.Engine.(runtime.Logs)
	if !ok {
		return unsupported("logs")
	}
	if err := d.hasContainer(ctx, name, o.Container); err != nil {
		return err
	}
	err := logs.Logs(ctx, name, o, stdout, stderr)
	if err != nil && strings.Contains(err.Error(), goes) { // the one that follows may be there
		err = logs.Logs(ctx, name, o, stdout, stderr)
	}
	return d.insideProblem(ctx, asked{name, o.Container, o.Previous}, err)
}

// Exec runs a command in a member.
func (d *Daemon) Exec(ctx context.Context, name runtime.PodName, o runtime.ExecOptions) (int, error) {
	execs, ok := d.parts.Engine.(runtime.Execs)
	if !ok {
		return 0, unsupported("exec")
	}
	if err := d.hasContainer(ctx, name, o.Container); err != nil {
		return 0, err
	}
	code, err := execs.Exec(ctx, name, o)
	return code, d.insideProblem(ctx, asked{name: name, container: o.Container}, err)
}

func unsupported(what string) error {
	return &client.Problem{Type: client.ProblemConflict, Title: "this engine has no " + what, Status: http.StatusNotImplemented}
}

// Version says who this is.
func (d *Daemon) Version(ctx context.Context) client.Version {
	v := client.Version{Version: d.cfg.Version, API: "v1", Daemon: d.store.ID(), DataDir: d.cfg.DataDir, PID: os.Getpid(), DNS: []string{}}
	name, err := d.parts.Name(ctx)
	v.Engine, v.Connected = name, err == nil
	if err != nil {
		v.EngineError = err.Error()
	}
	if d.names == nil {
		return v
	}
	for _, l := range d.names.server.Status() {
		text := l.Addr.String()
		if l.Err != nil {
			text += ": " + l.Err.Error()
		}
		v.DNS = append(v.DNS, text)
	}
	sort.Strings(v.DNS)
	return v
}

// Ready tells whether the engine answers.
func (d *Daemon) Ready() error {
	_, err := d.parts.Engine.List(context.Background(), jobspecs.Key{})
	return err
}

// Explain gives the chain of reasons for a member's state.
func (d *Daemon) Explain(ctx context.Context, namespace, member string) (jobspecs.Explanation, error) {
	key, err := d.setOf(namespace, member)
	if err != nil {
		return jobspecs.Explanation{}, d.orStray(ctx, namespace, member, err)
	}
	s, err := d.Status(ctx, key)
	if err != nil {
		return jobspecs.Explanation{}, err
	}
	var plan planner.Plan
	if l := d.loop(key); l != nil {
		if snap := l.seen.get(); snap != nil {
			plan = snap.plan
		}
	}
	for i := range s.Members {
		if s.Members[i].Name == member {
			e := explain(s, &s.Members[i], plan, d.now())
			d.explainLost(ctx, s, culprit(s, &s.Members[i], plan), &e)
			e.Events = d.lastEvents(key, member, s.Created, 10)
			return e, nil
		}
	}
	return jobspecs.Explanation{}, &client.Problem{
		Type: client.ProblemNotFound, Title: fmt.Sprintf("set %s has no member %s", key.Name, member), Status: http.StatusNotFound,
		Detail: "stsd ps " + typed(key.Namespace, key.Name),
	}
}

// setOf is the stored set of a member.
func (d *Daemon) setOf(namespace, member string) (jobspecs.Key, error) {
	set, _, ok := jobspecs.ParseMember(member)
	if ok {
		if _, err := d.store.Get(jobspecs.Key{Namespace: namespace, Name: set}); err == nil {
			return jobspecs.Key{Namespace: namespace, Name: set}, nil
		}
	}
	if _, err := d.store.Get(jobspecs.Key{Namespace: namespace, Name: member}); err == nil {
		return jobspecs.Key{}, &client.Problem{
			Type: client.ProblemInvalid, Title: fmt.Sprintf("%s is a set; name one of its members", member), Status: http.StatusUnprocessableEntity,
			Detail: fmt.Sprintf("stsd explain %s-0, or stsd status %s for the set", typed(namespace, member), typed(namespace, member)),
		}
	}
	return jobspecs.Key{}, &client.Problem{
		Type: client.ProblemNotFound, Title: fmt.Sprintf("no member %s in namespace %s", member, namespace), Status: http.StatusNotFound, Detail: "stsd ps -A",
	}
}

// lastEvents are the newest of a member and of its set, since that was made.
func (d *Daemon) lastEvents(key jobspecs.Key, member string, since time.Time, n int) []jobspecs.Event {
	all, _ := d.events.list()
	out := []jobspecs.Event{}
	for _, e := range all {
		if e.Namespace == key.Namespace && e.Set == key.Name && (e.Member == member || e.Member == "") && !e.Time.Before(since) {
			out = append(out, e.Event)
		}
	}
	return out[max(0, len(out)-n):]
}

func matches(q api.EventQuery, e jobspecs.Event) bool {
	return (q.Namespace == "" || q.Namespace == e.Namespace) && (q.Set == "" || q.Set == e.Set) &&
		(q.Member == "" || q.Member == e.Member) && !e.Time.Before(q.Since)
}
