package conformance

import (
	"strings"
	"testing"
	"time"

	"github.com/stsd/stsd/daemon/planner"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/volumes"
)

var now = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// option changes a world under construction.
type option func(*planner.World)

// world is what the planner decides on: a set "web" of three, ordered, complete
// with revision r1, without volumes, and nothing running.
func world(options ...option) planner.World {
	w := planner.World{
		Now: now, Replicas: 3, Current: "r1", Update: "r1",
		Set: &jobspecs.Set{
			Namespace: "default", Name: "web", Service: "web", PodManagement: jobspecs.Ordered,
			Update: jobspecs.Update{Strategy: jobspecs.Rolling, MaxUnavailable: "1"},
		},
		Volumes: map[string]volumes.Volume{}, Records: map[string]volumes.Record{},
		Members: map[int]planner.Member{}, Specs: map[planner.Target]planner.Rendered{},
	}
	for _, o := range options {
		o(&w)
	}
	for _, r := range []string{"r1", "r2", "r3"} {
		for o := range max(12, w.Set.StartOrdinal+w.Replicas+len(w.Set.Reserve)) {
			spec := specOf(&w, o, r)
			w.Specs[planner.Target{Ordinal: o, Revision: r}] = planner.Rendered{Spec: spec, Digest: spec.Digest()}
		}
	}
	for i := range w.Pods {
		w.Pods[i].Rendering = w.Specs[planner.Target{Ordinal: w.Pods[i].Ordinal, Revision: w.Pods[i].Revision}].Digest
	}
	return w
}

func specOf(w *planner.World, ordinal int, revision string) jobspecs.PodSpec {
	s := jobspecs.PodSpec{Name: jobspecs.MemberName("web", ordinal), Ordinal: ordinal, Revision: revision, Domain: "web.default.svc.cluster.local"}
	for _, c := range w.Set.Claims {
		s.Volumes = append(s.Volumes, jobspecs.VolumeSpec{Claim: c.Name, Name: jobspecs.VolumeName("default", c.Name, "web", ordinal)})
	}
	return s
}

func replicas(n int) option          { return func(w *planner.World) { w.Replicas = n } }
func parallel(w *planner.World)      { w.Set.PodManagement = jobspecs.Parallel }
func onDelete(w *planner.World)      { w.Set.Update.Strategy = jobspecs.OnDelete }
func paused(w *planner.World)        { w.Paused = true }
func neverComplete(w *planner.World) { w.Current = "" }
func to(rev string) option           { return func(w *planner.World) { w.Update = rev } }
func partition(n int) option         { return func(w *planner.World) { w.Set.Update.Partition = n } }
func maxUnavailable(s string) option {
	return func(w *planner.World) { w.Set.Update.MaxUnavailable = s }
}
func minReady(d time.Duration) option     { return func(w *planner.World) { w.Set.Update.MinReady = d } }
func start(n int) option                  { return func(w *planner.World) { w.Set.StartOrdinal = n } }
func reserve(ordinals ...int) option      { return func(w *planner.World) { w.Set.Reserve = ordinals } }
func minAvailable(n int) option           { return func(w *planner.World) { w.MinAvailable = n } }
func formed(w *planner.World)             { w.Formed = true }
func startAfter(sets ...string) option    { return func(w *planner.World) { w.After = sets } }
func deadline(d time.Duration) option     { return func(w *planner.World) { w.Set.Update.Deadline = d } }
func recoveryWait(d time.Duration) option { return func(w *planner.World) { w.Set.RecoveryWait = d } }
func deleting(volumes string) option {
	return func(w *planner.World) { w.Deleting = &planner.Deleting{Volumes: volumes} }
}

// claims gives the set volume blocks of these names and one retention.
func claims(onScaleDown, onDelete string, names ...string) option {
	return func(w *planner.World) {
		for _, n := range names {
			w.Set.Claims = append(w.Set.Claims, jobspecs.Claim{Name: n, OnScaleDown: onScaleDown, OnDelete: onDelete})
		}
	}
}

// pod is one that is available, but for the change.
func pod(ordinal int, rev string, change func(*runtime.Pod)) option {
	return func(w *planner.World) {
		p := runtime.Pod{
			Name: jobspecs.MemberName("web", ordinal), Ordinal: ordinal, Revision: rev, Managed: true, ReadyKnown: true,
			Phase: runtime.Running, Ready: true, ReadySince: now.Add(-2 * time.Hour), StartedAt: now.Add(-2 * time.Hour), Since: now.Add(-2 * time.Hour),
		}
		change(&p)
		w.Pods = append(w.Pods, p)
	}
}

// running gives available pods of r1; "web-1:r2" names another revision.
func running(names ...string) option {
	return func(w *planner.World) {
		for _, s := range names {
			name, rev, ok := strings.Cut(s, ":")
			if !ok {
				rev = "r1"
			}
			_, o, _ := jobspecs.ParseMember(name)
			pod(o, rev, func(*runtime.Pod) {})(w)
		}
	}
}

// full gives available pods of r1 from one ordinal to another.
func full(from, to int) option {
	return func(w *planner.World) {
		for o := from; o <= to; o++ {
			running(jobspecs.MemberName("web", o))(w)
		}
	}
}

func unready(ordinal int, rev string) option {
	return pod(ordinal, rev, func(p *runtime.Pod) {
		p.Ready, p.ReadySince, p.Reason, p.Message = false, time.Time{}, runtime.ReasonNotReady, "connection refused"
	})
}

func phase(ordinal int, rev string, ph runtime.Phase, reason string) option {
	return pod(ordinal, rev, func(p *runtime.Pod) { p.Phase, p.Reason, p.Ready = ph, reason, false })
}

// stopping gives pods of r1 that are on their way out.
func stopping(ordinals ...int) option {
	return func(w *planner.World) {
		for _, o := range ordinals {
			phase(o, "r1", runtime.Stopping, "")(w)
		}
	}
}

func ended(ordinal int, reason string) option { return phase(ordinal, "r1", runtime.Stopped, reason) }

// failed is a pod that cannot be made.
func failed(ordinal int, rev string) option {
	return phase(ordinal, rev, runtime.Failed, runtime.ReasonImageUnknown)
}

func readyFor(ordinal int, rev string, d time.Duration) option {
	return pod(ordinal, rev, func(p *runtime.Pod) { p.ReadySince = now.Add(-d) })
}

// once says that members were available with a revision.
func once(rev string, ordinals ...int) option {
	return func(w *planner.World) {
		for _, o := range ordinals {
			w.Members[o] = planner.Member{Revision: rev, Once: rev, Used: true}
		}
	}
}

// left says that members were stopped for an update to r2.
func left(ordinals ...int) option {
	return func(w *planner.World) {
		for _, o := range ordinals {
			w.Members[o] = planner.Member{Revision: "r2", Once: "r1", Used: true}
		}
	}
}

// remembers changes what the store holds of members.
func remembers(change func(*planner.Member), ordinals ...int) option {
	return func(w *planner.World) {
		for _, o := range ordinals {
			m := w.Members[o]
			change(&m)
			w.Members[o] = m
		}
	}
}

func volume(claim string, ordinals ...int) option {
	return func(w *planner.World) {
		for _, o := range ordinals {
			name := jobspecs.VolumeName("default", claim, "web", o)
			w.Volumes[name] = volumes.Volume{Name: name, Claim: claim, Ordinal: o}
			if _, ok := w.Records[name]; !ok {
				w.Records[name] = volumes.Record{Name: name, Claim: claim, Ordinal: o, Used: true}
			}
		}
	}
}

func record(claim string, ordinal int, used, deleting bool) option {
	return func(w *planner.World) {
		name := jobspecs.VolumeName("default", claim, "web", ordinal)
		w.Records[name] = volumes.Record{Name: name, Claim: claim, Ordinal: ordinal, Used: used, Deleting: deleting}
	}
}

// plans checks what the planner allows now, "" nothing.
func plans(w planner.World, want string) func(*testing.T) {
	return func(t *testing.T) {
		t.Helper()
		if got := planner.Next(w).String(); got != want {
			t.Errorf("plan = %q, want %q; waiting %v", got, want, planner.Next(w).Waiting)
		}
	}
}

// waits checks the first pause of a plan that does nothing.
func waits(w planner.World, want string) func(*testing.T) {
	return func(t *testing.T) {
		t.Helper()
		p := planner.Next(w)
		if len(p.Actions) > 0 || len(p.Waiting) == 0 || p.Waiting[0].String() != want {
			t.Errorf("plan = %q, waiting %v, want %q", p, p.Waiting, want)
		}
	}
}

// makes checks with which revision a member is made.
func makes(w planner.World, member, revision string) func(*testing.T) {
	return func(t *testing.T) {
		t.Helper()
		for _, a := range planner.Next(w).Actions {
			if a.Op == planner.Create && a.Member == member {
				if a.Target != revision {
					t.Errorf("%s is made of %s, want %s", member, a.Target, revision)
				}
				return
			}
		}
		t.Errorf("plan = %q does not make %s", planner.Next(w), member)
	}
}

// counts checks a counter of the status.
func counts(w planner.World, of func(jobspecs.Status) int, want int) func(*testing.T) {
	return func(t *testing.T) {
		t.Helper()
		if got := of(planner.Status(w, planner.Next(w))); got != want {
			t.Errorf("count = %d, want %d", got, want)
		}
	}
}

func availableOf(s jobspecs.Status) int { return s.AvailableReplicas }
func readyOf(s jobspecs.Status) int     { return s.ReadyReplicas }
func currentOf(s jobspecs.Status) int   { return s.CurrentReplicas }
func updatedOf(s jobspecs.Status) int   { return s.UpdatedReplicas }

// completes checks whether a rollout is over.
func completes(w planner.World, want bool) func(*testing.T) {
	return func(t *testing.T) {
		t.Helper()
		if got := planner.Next(w).Complete; got != want {
			t.Errorf("complete = %v, want %v", got, want)
		}
	}
}

// wakes checks when the planner wants to look again.
func wakes(w planner.World, after time.Duration) func(*testing.T) {
	return func(t *testing.T) {
		t.Helper()
		if got := planner.Next(w).Wake; !got.Equal(now.Add(after)) {
			t.Errorf("wake = %v, want %v", got, now.Add(after))
		}
	}
}
