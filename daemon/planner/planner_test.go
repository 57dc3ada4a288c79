package planner

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/volumes"
)

var now = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// option changes a world under construction.
type option func(*World)

// world is a set "web" of three, ordered, complete with revision "r1", no
// volumes, and nothing running.
func world(options ...option) World {
	w := World{
		Now: now, Replicas: 3, Current: "r1", Update: "r1",
		Set: &jobspecs.Set{
			Namespace: "default", Name: "web", Service: "web", PodManagement: jobspecs.Ordered,
			Update: jobspecs.Update{Strategy: jobspecs.Rolling, MaxUnavailable: "1"},
		},
		Volumes: map[string]volumes.Volume{}, Records: map[string]volumes.Record{},
		Members: map[int]Member{}, Specs: map[Target]Rendered{},
	}
	for _, o := range options {
		o(&w)
	}
	for _, r := range []string{"r0", "r1", "r2", "r3"} {
		for o := range 12 {
			if w.Specs[Target{o, r}].Err != nil {
				continue
			}
			w.Specs[Target{o, r}] = Rendered{Spec: w.spec(o, r), Digest: digest(w.spec(o, r))}
		}
	}
	for i := range w.Pods {
		if w.Pods[i].Managed && w.Pods[i].Rendering == "" {
			w.Pods[i].Rendering = digest(w.spec(w.Pods[i].Ordinal, w.Pods[i].Revision))
		}
	}
	return w
}

func digest(s jobspecs.PodSpec) string { return s.Digest() }

func (w *World) spec(ordinal int, revision string) jobspecs.PodSpec {
	spec := jobspecs.PodSpec{Name: w.member(ordinal), Ordinal: ordinal, Revision: revision, Domain: "web.default.svc.cluster.local"}
	for _, c := range w.Set.Claims {
		spec.Volumes = append(spec.Volumes, jobspecs.VolumeSpec{Claim: c.Name, Name: jobspecs.VolumeName("default", c.Name, "web", ordinal)})
	}
	return spec
}

func replicas(n int) option               { return func(w *World) { w.Replicas = n } }
func parallel(w *World)                   { w.Set.PodManagement = jobspecs.Parallel }
func onDelete(w *World)                   { w.Set.Update.Strategy = jobspecs.OnDelete }
func paused(w *World)                     { w.Paused = true }
func neverComplete(w *World)              { w.Current = "" }
func update(rev string) option            { return func(w *World) { w.Update = rev } }
func partition(n int) option              { return func(w *World) { w.Set.Update.Partition = n } }
func maxUnavailable(s string) option      { return func(w *World) { w.Set.Update.MaxUnavailable = s } }
func minReady(d time.Duration) option     { return func(w *World) { w.Set.Update.MinReady = d } }
func recoveryWait(d time.Duration) option { return func(w *World) { w.Set.RecoveryWait = d } }
func start(n int) option                  { return func(w *World) { w.Set.StartOrdinal = n } }
func deleting(policy string) option {
	return func(w *World) { w.Deleting = &Deleting{Volumes: policy} }
}
func claims(onScaleDown, onDelete string) option {
	return func(w *World) {
		w.Set.Claims = []jobspecs.Claim{{Name: "data", OnScaleDown: onScaleDown, OnDelete: onDelete}}
	}
}

func pod(ordinal int, rev string, change func(*runtime.Pod)) option {
	return func(w *World) {
		p := runtime.Pod{
			Name: jobspecs.MemberName("web", ordinal), Ordinal: ordinal, Revision: rev, Managed: true, ReadyKnown: true,
			Phase: runtime.Running, Ready: true, ReadySince: now.Add(-time.Hour), StartedAt: now.Add(-time.Hour), Since: now.Add(-time.Hour),
		}
		if change != nil {
			change(&p)
		}
		w.Pods = append(w.Pods, p)
	}
}

// running gives available pods of r1; "web-1:r2" names another revision.
func running(ordinals ...string) option {
	return func(w *World) {
		for _, s := range ordinals {
			name, rev, ok := strings.Cut(s, ":")
			if !ok {
				rev = "r1"
			}
			_, o, _ := jobspecs.ParseMember(name)
			pod(o, rev, nil)(w)
		}
	}
}

func unready(ordinal int, rev string) option {
	return pod(ordinal, rev, func(p *runtime.Pod) {
		p.Ready, p.ReadySince, p.Reason, p.Message = false, time.Time{}, runtime.ReasonNotReady, "http 10.87.0.10:8080/healthz: connection refused"
	})
}
func phase(ordinal int, rev string, ph runtime.Phase, reason string) option {
	return pod(ordinal, rev, func(p *runtime.Pod) { p.Phase, p.Reason, p.Ready = ph, reason, false })
}

func neverStarted(ordinal int, ph runtime.Phase) option {
	return pod(ordinal, "r1", func(p *runtime.Pod) { p.Phase, p.Ready, p.StartedAt = ph, false, time.Time{} })
}

// found is a pod of which the daemon knows no spec since it was restarted.
func found(ordinal int) option {
	return pod(ordinal, "r1", func(p *runtime.Pod) { p.Managed, p.Rendering = false, "" })
}
func stopping(ordinal int, rev string) option { return phase(ordinal, rev, runtime.Stopping, "") }
func stopped(ordinal int, rev, reason string) option {
	return phase(ordinal, rev, runtime.Stopped, reason)
}
func readyFor(ordinal int, rev string, d time.Duration) option {
	return pod(ordinal, rev, func(p *runtime.Pod) { p.ReadySince = now.Add(-d) })
}
func member(ordinal int, m Member) option { return func(w *World) { w.Members[ordinal] = m } }
func once(rev string, ordinals ...int) option {
	return func(w *World) {
		for _, o := range ordinals {
			w.Members[o] = Member{Revision: rev, Once: rev}
		}
	}
}
func volume(ordinals ...int) option {
	return func(w *World) {
		for _, o := range ordinals {
			name := jobspecs.VolumeName("default", "data", "web", o)
			w.Volumes[name] = volumes.Volume{Name: name, Claim: "data", Ordinal: o}
			if _, ok := w.Records[name]; !ok {
				w.Records[name] = volumes.Record{Name: name, Claim: "data", Ordinal: o, Used: true}
			}
		}
	}
}
func former(ordinal int) option {
	return func(w *World) {
		name := jobspecs.VolumeName("default", "data", "web", ordinal)
		w.Records[name] = volumes.Record{Name: name, Claim: "data", Ordinal: ordinal, Used: true, Former: true}
	}
}
func unknown(ordinal int) option {
	return func(w *World) { delete(w.Records, jobspecs.VolumeName("default", "data", "web", ordinal)) }
}
func record(ordinal int, used, deleting bool) option {
	return func(w *World) {
		name := jobspecs.VolumeName("default", "data", "web", ordinal)
		w.Records[name] = volumes.Record{Name: name, Claim: "data", Ordinal: ordinal, Used: used, Deleting: deleting}
	}
}

func TestNext(t *testing.T) {
	all := running("web-0", "web-1", "web-2")
	for _, c := range []struct {
		name  string
		world World
		want  string
	}{
		// Creation.
		{"an empty ordered set starts with its first member", world(neverComplete), "create web-0 (missing)"},
		{"a member waits until the one before is available", world(neverComplete, unready(0, "r1")), ""},
		{"a member is made once the one before is available", world(neverComplete, running("web-0")), "create web-1 (missing)"},
		{"ready is not yet available under min_ready", world(neverComplete, minReady(10*time.Second), readyFor(0, "r1", 9*time.Second)), ""},
		{"available after min_ready", world(neverComplete, minReady(10*time.Second), readyFor(0, "r1", 10*time.Second)), "create web-1 (missing)"},
		{"a parallel set starts all at once", world(neverComplete, parallel), "create web-0 (missing), create web-1 (missing), create web-2 (missing)"},
		{"start_ordinal moves the range", world(neverComplete, start(5)), "create web-5 (missing)"},
		{"volumes come before their member", world(neverComplete, claims("retain", "retain")), "create volume data-web-0 (needed by web-0)"},
		{"a member is made when its volume is there", world(neverComplete, claims("retain", "retain"), volume(0)), "create web-0 (missing)"},
		{"a volume that held data and is gone holds its member", world(claims("retain", "retain"), record(0, true, false), once("r1", 0)), ""},
		{"a volume that never held data is made again", world(claims("retain", "retain"), record(0, false, false), once("r1", 0)), "create volume data-web-0 (needed by web-0)"},
		{"nothing to do", world(all), ""},

		// Recovery.
		{"a lost member is made at once though a lower one is sick", world(unready(0, "r1"), running("web-1"), once("r1", 2)), "create web-2 (recovery)"},
		{"after a reboot all come back without waiting", world(once("r1", 0, 1, 2)), "create web-0 (recovery), create web-1 (recovery), create web-2 (recovery)"},
		{"ended pods are cleared away all at once",
			world(once("r1", 0, 1, 2), stopped(0, "r1", runtime.ReasonEngineRestarted), stopped(1, "r1", runtime.ReasonEngineRestarted), running("web-2")),
			"remove web-0 (ended: found stopped when the engine was connected), remove web-1 (ended: found stopped when the engine was connected)"},
		{"recovery_wait stages them", world(once("r1", 0, 1, 2), recoveryWait(time.Minute)), "create web-0 (recovery)"},
		{"recovery_wait stages those of a parallel set too", world(parallel, once("r1", 0, 1, 2), recoveryWait(time.Minute)), "create web-0 (recovery)"},
		{"and not the first start of one", world(parallel, neverComplete, recoveryWait(time.Minute)), "create web-0 (missing), create web-1 (missing), create web-2 (missing)"},
		{"recovery_wait is over", world(once("r1", 0, 1, 2), recoveryWait(time.Minute), unready(0, "r1")), "create web-1 (recovery)"},
		{"a member that was never available waits its turn", world(unready(0, "r1"), running("web-1")), ""},
		{"in the middle of a rollout a lost member comes back as it was",
			world(update("r2"), running("web-0"), unready(2, "r2"), once("r1", 1)), "create web-1 (recovery)"},

		{"so does one of a set that never was complete",
			world(neverComplete, update("r2"), parallel, running("web-0"), unready(2, "r1"), once("r1", 1)), "create web-1 (recovery)"},
		{"and of one that is paused", world(neverComplete, update("r2"), parallel, paused, running("web-0"), unready(2, "r1"), once("r1", 1)), "create web-1 (recovery)"},
		{"paused, also one that never was available", world(neverComplete, update("r2"), parallel, paused, running("web-0"), unready(2, "r1"), member(1, Member{Revision: "r1"})), "create web-1 (missing)"},
		{"a third revision does not take back a second one",
			world(update("r3"), halted("r3"), running("web-0"), unready(1, "r3"), member(2, Member{Revision: "r2", Once: "r2"})), "create web-2 (recovery)"},
		{"nor spreads while it is not its turn",
			world(update("r3"), running("web-0"), unready(1, "r3"), member(2, Member{Revision: "r2", Once: "r2"})), "create web-2 (recovery)"},
		{"recovery_wait: one that cannot be made holds up nobody",
			world(claims("retain", "retain"), volume(1, 2), record(0, true, false), once("r1", 0, 1, 2), recoveryWait(time.Minute)), "create web-1 (recovery)"},
		{"nor one that cannot start", world(once("r1", 0, 1, 2), neverStarted(0, runtime.Failed), recoveryWait(time.Minute)), "create web-1 (recovery)"},
		{"the next is staged behind the one before that", world(claims("retain", "retain"), volume(0, 2), record(1, true, false), once("r1", 0, 1, 2), recoveryWait(time.Minute)),
			"create web-0 (recovery)"},
		{"nor one that waits for its first start", world(once("r1", 0, 2), recoveryWait(time.Minute), unready(0, "r1")), "create web-2 (recovery)"},
		{"a pod of before the reboot has not run since", world(once("r1", 0, 1, 2), stopped(0, "r1", runtime.ReasonEngineRestarted), recoveryWait(time.Minute)),
			"remove web-0 (ended: found stopped when the engine was connected)"},
		{"those behind it are staged still", world(once("r1", 0, 1, 2), neverStarted(0, runtime.Pulling), recoveryWait(time.Minute)), ""},

		// Scale-down.
		{"scale-down stops from the top", world(replicas(1), all), "stop web-2 (scaled down)"},
		{"scale-down waits until a stopping one is gone", world(replicas(1), running("web-0", "web-1"), stopping(2, "r1")), ""},
		{"scale-down removes a gone one", world(replicas(1), running("web-0", "web-1"), stopped(2, "r1", runtime.ReasonStopRequested)), "remove web-2 (scaled down)"},
		{"scale-down is not blocked by sick members (k8s 2.15 timeline 5)", world(replicas(1), running("web-0"), unready(1, "r1"), unready(2, "r1")), "stop web-2 (scaled down)"},
		{"scale-down is not blocked by a sick lower member (timeline 6)", world(replicas(1), unready(0, "r1"), running("web-1", "web-2")), "stop web-2 (scaled down)"},
		{"a parallel set shrinks at once", world(replicas(1), parallel, all), "stop web-1 (scaled down), stop web-2 (scaled down)"},
		{"retention delete takes the volume once its pod is gone", world(replicas(2), claims("delete", "retain"), running("web-0", "web-1"), volume(0, 1, 2)), `delete volume data-web-2 (on_scale_down = "delete")`},
		{"not before its pod is gone", world(replicas(2), claims("delete", "retain"), running("web-0", "web-1"), stopping(2, "r1"), volume(0, 1, 2)), ""},
		{"not one of a set of this name that was deleted", world(replicas(2), claims("delete", "delete"), running("web-0", "web-1"), volume(0, 1, 2), former(2)), ""},
		{"nor one that nobody knows", world(replicas(2), claims("delete", "retain"), running("web-0", "web-1"), volume(0, 1, 2), unknown(2)), ""},
		{"retention retain keeps it", world(replicas(2), claims("retain", "delete"), running("web-0", "web-1"), volume(0, 1, 2)), ""},
		{"a deletion that was decided is carried out before the volume is used again (timeline 10)",
			world(claims("delete", "retain"), running("web-0", "web-1"), volume(0, 1, 2), record(2, true, true)), `delete volume data-web-2 (on_scale_down = "delete")`},
		{"a moved start makes the new members first (timeline 11)", world(start(2), running("web-0", "web-1", "web-2")), "create web-3 (missing)"},
		{"and keeps the old ones while one is missing", world(start(2), running("web-0", "web-1", "web-2"), unready(3, "r1")), ""},
		{"then removes the old ones from the top", world(start(2), running("web-0", "web-1", "web-2", "web-3", "web-4")), "stop web-1 (scaled down)"},
		{"a moved set whose new members wait for a broken one repairs it", world(update("r2"), start(1), running("web-0"), unready(1, "r1")), "stop web-1 (outdated and not available)"},
		{"scaling comes before updating", world(replicas(2), update("r2"), all), "stop web-2 (scaled down)"},

		// Update.
		{"an update begins at the top", world(update("r2"), all), "stop web-2 (outdated)"},
		{"it waits while one is on its way out", world(update("r2"), running("web-0", "web-1"), stopping(2, "r1")), ""},
		{"the stopped one is removed and kept for its logs", world(update("r2"), running("web-0", "web-1"), stopped(2, "r1", runtime.ReasonStopRequested), member(2, Member{Revision: "r2", Once: "r1"})), "remove web-2 (ended: stopped)"},
		{"and made anew", world(update("r2"), running("web-0", "web-1"), member(2, Member{Revision: "r2", Once: "r1"})), "create web-2 (missing)"},
		{"the next waits until it is available", world(update("r2"), running("web-0", "web-1"), unready(2, "r2")), ""},
		{"then the next", world(update("r2"), running("web-0", "web-1", "web-2:r2")), "stop web-1 (outdated)"},
		{"partition keeps ordinals below it", world(update("r2"), partition(2), running("web-0", "web-1", "web-2:r2")), ""},
		{"partition is compared with the real ordinal", world(update("r2"), start(5), partition(6), running("web-5", "web-6", "web-7:r2")), "stop web-6 (outdated)"},
		{"below the partition one of a set that never was complete comes back as it was",
			world(neverComplete, update("r2"), parallel, partition(2), running("web-1", "web-2:r2"), once("r1", 0)), "create web-0 (recovery)"},
		{"below the partition a lost member comes back old", world(update("r2"), partition(2), running("web-1", "web-2:r2"), member(0, Member{Revision: "r2"})), "create web-0 (missing)"},
		{"max_unavailable 2 takes two", world(update("r2"), maxUnavailable("2"), all), "stop web-1 (outdated), stop web-2 (outdated)"},
		{"percent rounds down", world(update("r2"), maxUnavailable("70%"), all), "stop web-1 (outdated), stop web-2 (outdated)"},
		{"percent is never below one", world(update("r2"), maxUnavailable("10%"), all), "stop web-2 (outdated)"},
		{"parallel does not mean parallel update", world(update("r2"), parallel, all), "stop web-2 (outdated)"},
		{"max_unavailable counts every slot", world(update("r2"), partition(1), maxUnavailable("2"), unready(0, "r1"), running("web-1", "web-2")), "stop web-2 (outdated)"},
		{"on_delete waits for somebody to remove members", world(update("r2"), onDelete, all), ""},
		{"on_delete: a removed member comes back new", world(update("r2"), onDelete, running("web-0", "web-1"), stopped(2, "r1", runtime.ReasonRemoved)), "remove web-2 (ended: its container was removed)"},
		{"a pause holds the update", world(update("r2"), paused, all), ""},
		{"a pause does not hold a recovery", world(update("r2"), paused, running("web-0", "web-1"), once("r1", 2)), "create web-2 (recovery)"},
		{"a corrected spec replaces a broken new member at once (k8s#67250)", world(update("r3"), running("web-0", "web-1"), unready(2, "r2")), "stop web-2 (outdated and not available)"},
		{"also one that cannot be made at all", world(update("r3"), running("web-0", "web-1"), phase(2, "r2", runtime.Failed, runtime.ReasonImageUnknown)), "stop web-2 (outdated and not available)"},
		{"also on first start", world(neverComplete, update("r2"), unready(0, "r1")), "stop web-0 (outdated and not available)"},
		{"a broken new member is not joined by a second", world(update("r2"), unready(0, "r1"), running("web-1"), unready(2, "r2")), ""},
		{"a sick old member goes first", world(update("r2"), unready(0, "r1"), running("web-1", "web-2")), "stop web-0 (outdated and not available)"},
		{"one that waits at the gate for a sick old one does not deadlock it", world(update("r2"), unready(0, "r1"), running("web-1"), member(2, Member{Revision: "r2", Once: "r1"})), "stop web-0 (outdated and not available)"},
		{"but it may only miss the one that waits: it was ready a moment ago, and runs", world(update("r2"), unready(0, "r1"), running("web-1"),
			member(0, Member{Revision: "r1", Once: "r1", Unready: now.Add(-29 * time.Second)}), member(2, Member{Revision: "r2", Once: "r1"})), ""},
		{"that it was ready is known though nobody has written down yet that it is not", world(update("r2"), unready(0, "r1"), running("web-1"),
			member(0, Member{Revision: "r1", Once: "r1", ReadySince: now.Add(-time.Hour)}), member(2, Member{Revision: "r2", Once: "r1"})), ""},
		{"for a while", world(update("r2"), unready(0, "r1"), running("web-1"),
			member(0, Member{Revision: "r1", Once: "r1", Unready: now.Add(-30 * time.Second)}), member(2, Member{Revision: "r2", Once: "r1"})), "stop web-0 (outdated and not available)"},
		{"one that ended does not find itself", world(update("r2"), phase(0, "r1", runtime.Backoff, runtime.ReasonExited), running("web-1"),
			member(0, Member{Revision: "r1", Once: "r1", ReadySince: now.Add(-time.Hour)}), member(2, Member{Revision: "r2", Once: "r1"})), "stop web-0 (outdated and not available)"},
		{"nor does one that only was ready under another revision", world(update("r3"), unready(0, "r2"), running("web-1"),
			member(0, Member{Revision: "r2", Once: "r1", Unready: now.Add(-time.Second)}), member(2, Member{Revision: "r3", Once: "r1"})), "stop web-0 (outdated and not available)"},
		{"going back restarts only those that left", world(update("r1"), running("web-0", "web-1", "web-2:r2")), "stop web-2 (outdated)"},

		// Deletion.
		{"deletion goes from the top", world(deleting(""), all), "stop web-2 (set is being deleted)"},
		{"one by one", world(deleting(""), running("web-0"), stopping(1, "r1")), ""},
		{"parallel at once", world(deleting(""), parallel, running("web-0", "web-1")), "stop web-0 (set is being deleted), stop web-1 (set is being deleted)"},
		{"volumes stay by default", world(deleting(""), claims("delete", "retain"), volume(0, 1)), ""},
		{"retention on delete", world(deleting(""), claims("retain", "delete"), volume(0)), "delete volume data-web-0 (set is being deleted, and its volumes with it)"},
		{"on_delete is not said of a volume of a set that was deleted before", world(deleting(""), claims("delete", "delete"), volume(0, 5), former(5)), "delete volume data-web-0 (set is being deleted, and its volumes with it)"},
		{"--volumes=delete is said of all", world(deleting("delete"), claims("retain", "retain"), volume(5), former(5)), "delete volume data-web-5 (set is being deleted, and its volumes with it)"},
		{"--volumes=retain wins", world(deleting("retain"), claims("retain", "delete"), volume(0)), ""},
		{"what is kept of an ordinal goes before the ordinal is forgotten", world(replicas(1), running("web-0"), once("r1", 0, 1)), "forget web-1 (no longer of the set)"},
		{"--volumes=delete wins", world(deleting("delete"), claims("retain", "retain"), volume(0)), "delete volume data-web-0 (set is being deleted, and its volumes with it)"},

		// A pod that lost its volume.
		{"a pod that cannot run again without its lost volume waits for its owner",
			world(claims("retain", "retain"), running("web-0", "web-1"), volume(0, 1), record(2, true, false), phase(2, "r1", runtime.Failed, runtime.ReasonCreateFailed)), ""},
		{"once the volume was given up it is made anew with a fresh one",
			world(claims("retain", "retain"), running("web-0", "web-1"), volume(0, 1), record(2, false, false), phase(2, "r1", runtime.Failed, runtime.ReasonCreateFailed)), "stop web-2 (volume data-web-2 is made anew)"},
		{"one that runs without its volume goes on",
			world(claims("retain", "retain"), running("web-0", "web-1", "web-2"), volume(0, 1), record(2, false, false)), ""},

		// Hand-over.
		{"it is taken over before it is stopped", world(update("r2"), running("web-0", "web-1"), found(2)), "refresh web-2 (taken over after a restart)"},
		{"though its ordinal goes", world(replicas(2), running("web-0", "web-1"), found(2)), "refresh web-2 (taken over after a restart)"},
		{"though the set goes", world(deleting(""), running("web-0", "web-1"), found(2)), "refresh web-2 (taken over after a restart)"},
		{"though the user stopped it", world(running("web-0", "web-1"), found(2), each(down, 2)), "refresh web-2 (taken over after a restart)"},
		{"one that was found dead is not", world(running("web-0", "web-1"), pod(2, "r1", func(p *runtime.Pod) {
			p.Managed, p.Phase, p.Reason = false, runtime.Stopped, runtime.ReasonEngineRestarted
		})), "remove web-2 (ended: found stopped when the engine was connected)"},
		{"a pod found running is taken over", world(running("web-0", "web-1"), pod(2, "r1", func(p *runtime.Pod) { p.Managed, p.Rendering = false, "" })), "refresh web-2 (taken over after a restart)"},
		{"a newer rendering is handed over", world(running("web-0", "web-1"), pod(2, "r1", func(p *runtime.Pod) { p.Rendering = "old" })), "refresh web-2 (newer rendering for its next start)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Next(c.world).String(); got != c.want {
				t.Errorf("plan = %q\nwant   %q\nwaiting %v", got, c.want, Next(c.world).Waiting)
			}
		})
	}
}

func TestEveryStopSaysWhy(t *testing.T) {
	all := running("web-0", "web-1", "web-2")
	again := func(revs ...string) option {
		return func(w *World) {
			w.Again = map[string]bool{}
			for _, r := range revs {
				w.Again[r] = true
			}
		}
	}
	for _, c := range []struct {
		name  string
		world World
		want  string
	}{
		{"an outdated member comes back with another revision", world(update("r2"), all), runtime.WhyUpdate},
		{"so does one that is sick", world(update("r2"), unready(2, "r1"), running("web-0", "web-1")), runtime.WhyUpdate},
		{"a rollout that restarts brings a member back as it was", world(update("r2"), again("r1"), all), runtime.WhyRestart},
		{"but not one of a still older template", world(update("r2"), again("r1"), running("web-0", "web-1", "web-2:r0")), runtime.WhyUpdate},
		{"an ordinal beyond the replicas goes", world(replicas(2), all), runtime.WhyScaleDown},
		{"an ordinal below a moved start goes", world(start(1), replicas(2), all), runtime.WhyScaleDown},
		{"the set goes", world(deleting(""), all), runtime.WhyDelete},
		{"the set goes in the middle of an update", world(deleting(""), update("r2"), all), runtime.WhyDelete},
		{"a member comes back with a fresh volume",
			world(claims("retain", "retain"), volume(0, 1), record(2, false, false), running("web-0", "web-1"), phase(2, "r1", runtime.Backoff, runtime.ReasonExited)), runtime.WhyReplace},
	} {
		p := Next(c.world)
		if len(p.Actions) != 1 || p.Actions[0].Op != Stop || p.Actions[0].Reason != c.want {
			t.Errorf("%s: %+v, want one stop with reason %s", c.name, p.Actions, c.want)
		}
	}
}

func TestTheStatusOfAMemberOfSeveralContainers(t *testing.T) {
	three := 3
	begun := now.Add(-time.Minute)
	w := world(replicas(1), pod(0, "r1", func(p *runtime.Pod) {
		p.Phase, p.Ready, p.Reason, p.Message, p.Role = runtime.Backoff, false, runtime.ReasonExited, "exporter: exit code 3", "primary"
		p.StartedAt = begun
		p.Containers = []runtime.Container{
			{Name: "prepare", Kind: jobspecs.KindInit, Image: "prepare:1", State: "exited", ExitCode: new(int)},
			{Name: "exporter", Kind: jobspecs.KindSidecar, Image: "exporter:1", State: "exited", ExitCode: &three, Restarts: 2, Reason: runtime.ReasonExited, Message: "exit code 3"},
			{Name: "web", Image: "web:1", ImageID: "sha256:1", State: "running", Ready: true, StartedAt: begun},
		}
	}))
	got := Status(w, Next(w)).Members[0]
	since := now.Add(-time.Hour)
	want := jobspecs.Member{
		Namespace: "default", Set: "web", Name: "web-0", Phase: "Backoff", Reason: "Exited", Message: "exporter: exit code 3", Revision: "r1",
		FQDN: "web-0.web.default.svc.cluster.local", Role: "primary", StartedAt: &begun, Since: &since,
		Ports: []jobspecs.MemberPort{}, Volumes: []string{},
		Containers: []jobspecs.MemberContainer{
			{Name: "prepare", Kind: "init", Image: "prepare:1", State: "exited", ExitCode: new(int)},
			{Name: "exporter", Kind: "sidecar", Image: "exporter:1", State: "exited", ExitCode: &three, Restarts: 2, Reason: "Exited", Message: "exit code 3"},
			{Name: "web", Kind: "container", Image: "web:1", ImageID: "sha256:1", State: "running", Ready: true, StartedAt: &begun},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("member = %+v\nwant     %+v", got, want)
	}
}

func TestTheStatusTellsALostVolumeOfAPodThatCannotRun(t *testing.T) {
	w := world(replicas(1), claims("retain", "retain"), record(0, true, false), pod(0, "r1", func(p *runtime.Pod) {
		p.Phase, p.Ready, p.Reason, p.Message = runtime.Failed, false, runtime.ReasonCreateFailed, "volume data-web-0 is gone"
	}))
	s := Status(w, Next(w))
	if m := s.Members[0]; m.Phase != "Failed" || m.Reason != ReasonVolumeLost || !strings.Contains(m.Message, "stsd replace web-0 --fresh-volume") {
		t.Errorf("member = %s (%s): %s", m.Phase, m.Reason, m.Message)
	}
	if c := s.Conditions[2]; c.Type != jobspecs.CondStalled || !c.Status || c.Reason != ReasonVolumeLost {
		t.Errorf("condition = %+v", c)
	}
}

func TestAMemberTakenOffItsNetworkIsReported(t *testing.T) {
	address := netip.MustParseAddr("10.87.0.10")
	at := func(a netip.Addr) World {
		w := world(replicas(1), pod(0, "r1", func(p *runtime.Pod) { p.Address, p.Rendering = a, "x" }))
		spec := w.spec(0, "r1")
		spec.Address, spec.Network = address, "stsd"
		w.Specs[Target{0, "r1"}] = Rendered{Spec: spec, Digest: "x"}
		return w
	}
	w := at(address)
	if s := Status(w, Next(w)); s.Members[0].Reason != "" || s.Conditions[4].Status {
		t.Errorf("connected: %+v, %+v", s.Members[0], s.Conditions[4])
	}
	w = at(netip.Addr{})
	s := Status(w, Next(w))
	text := "container web-0 was taken off network stsd; docker network connect --ip 10.87.0.10 stsd web-0 brings it back"
	if m := s.Members[0]; m.Reason != ReasonDisconnected || m.Message != text {
		t.Errorf("member = (%s) %s", m.Reason, m.Message)
	}
	want := jobspecs.Condition{Type: jobspecs.CondDegraded, Status: true, Reason: ReasonDisconnected, Message: "web-0: " + text}
	if s.Conditions[4] != want {
		t.Errorf("condition = %+v, want %+v", s.Conditions[4], want)
	}
}

func TestAMemberAtAnotherAddressThanItsOwnIsReported(t *testing.T) {
	w := world(replicas(1), pod(0, "r1", func(p *runtime.Pod) { p.Address, p.Rendering = netip.MustParseAddr("10.87.0.77"), "x" }))
	spec := w.spec(0, "r1")
	spec.Address, spec.Network = netip.MustParseAddr("10.87.0.10"), "stsd"
	w.Specs[Target{0, "r1"}] = Rendered{Spec: spec, Digest: "x"}
	s := Status(w, Next(w))
	text := "container web-0 was put on network stsd at 10.87.0.77, and its own address is 10.87.0.10; " +
		"docker network disconnect stsd web-0 && docker network connect --ip 10.87.0.10 stsd web-0 brings it back"
	if m := s.Members[0]; m.Reason != ReasonDisconnected || m.Message != text || m.IP != "10.87.0.77" || !m.Available {
		t.Errorf("member = (%s) %s, at %s, available %t", m.Reason, m.Message, m.IP, m.Available)
	}
	want := jobspecs.Condition{Type: jobspecs.CondDegraded, Status: true, Reason: ReasonDisconnected, Message: "web-0: " + text}
	if s.Conditions[4] != want {
		t.Errorf("condition = %+v, want %+v", s.Conditions[4], want)
	}
}

func TestAMemberTakenOffANetworkThatItJoinedIsReported(t *testing.T) {
	address := netip.MustParseAddr("10.87.0.10")
	w := world(replicas(1), pod(0, "r1", func(p *runtime.Pod) { p.Address, p.Rendering, p.Detached = address, "x", []string{"edge", "shop"} }))
	spec := w.spec(0, "r1")
	spec.Address, spec.Network, spec.Service = address, "stsd", "front"
	w.Specs[Target{0, "r1"}] = Rendered{Spec: spec, Digest: "x"}
	s := Status(w, Next(w))
	text := "container web-0 was taken off network edge; docker network connect --alias web-0 --alias front --alias web-0.front edge web-0 brings it back"
	if m := s.Members[0]; m.Reason != ReasonDisconnected || m.Message != text || !m.Ready || !m.Available {
		t.Errorf("member = (%s) %s, ready %t, available %t", m.Reason, m.Message, m.Ready, m.Available)
	}
	want := jobspecs.Condition{Type: jobspecs.CondDegraded, Status: true, Reason: ReasonDisconnected, Message: "web-0: " + text}
	if s.Conditions[4] != want {
		t.Errorf("condition = %+v, want %+v", s.Conditions[4], want)
	}
}

func TestWhichRevisionAMemberIsMadeOf(t *testing.T) {
	lost := running("web-0", "web-1")
	for _, c := range []struct {
		name  string
		world World
		want  string
	}{
		{"a new one: the wanted one", world(update("r2"), lost), "r2"},
		{"on first start: the wanted one", world(neverComplete, update("r2"), lost, member(2, Member{Revision: "r1"})), "r2"},
		{"paused before it ever was complete: what it was", world(neverComplete, update("r2"), paused, lost, member(2, Member{Revision: "r1"})), "r1"},
		{"below the partition: the current one", world(update("r2"), partition(3), lost), "r1"},
		{"below the partition, whatever it was before", world(update("r2"), partition(3), lost, member(2, Member{Revision: "r2"})), "r1"},
		{"a lost one: what it was", world(update("r2"), lost, once("r1", 2)), "r1"},
		{"a lost one of an older update: what it was too", world(update("r3"), lost, once("r2", 2)), "r2"},
		{"if it ever was available", world(update("r3"), lost, member(2, Member{Revision: "r2"})), "r3"},
		{"a new one under a pause: the current one", world(update("r2"), paused, lost), "r1"},
		{"stopped for the update: the wanted one", world(update("r2"), lost, member(2, Member{Revision: "r2", Once: "r1"})), "r2"},
	} {
		p := Next(c.world)
		if len(p.Actions) != 1 || p.Actions[0].Op != Create || p.Actions[0].Target != c.want {
			t.Errorf("%s: %s of %v, want a creation of %s", c.name, p, p.Actions, c.want)
		}
	}
}

func TestNextSaysWhatItWaitsFor(t *testing.T) {
	young := func(w *World) { w.Pods[0].StartedAt = now }
	got := fmt.Sprint(Next(world(neverComplete, unready(0, "r1"), young)).Waiting)
	want := "[web-1 waits for web-0: not ready: http 10.87.0.10:8080/healthz: connection refused web-2 waits for web-0: not ready: http 10.87.0.10:8080/healthz: connection refused]"
	if got != want {
		t.Errorf("waiting = %s\nwant      %s", got, want)
	}
}

func TestAPlanDoesNotMakeALostVolumeAnew(t *testing.T) {
	w := world(claims("retain", "retain"), running("web-0", "web-1"), volume(0, 1), record(2, true, false), once("r1", 2))
	for _, s := range Steps(w) {
		if s.Volume != "" || s.Member == "web-2" && !strings.Contains(s.Why, "data-web-2 held data and is gone") {
			t.Errorf("step %+v", s)
		}
	}
}

func TestAPodThatIsStoppedIsNotRefreshed(t *testing.T) {
	w := world(update("r2"), running("web-0", "web-1"), pod(2, "r1", func(p *runtime.Pod) { p.Rendering = "old" }))
	if got, want := Next(w).String(), "stop web-2 (outdated)"; got != want {
		t.Errorf("plan = %q, want %q", got, want)
	}
}

func TestAnOrderedSetThatMayNeedItsPeersSaysSo(t *testing.T) {
	stuck := world(neverComplete, pod(0, "r1", func(p *runtime.Pod) { p.Ready, p.StartedAt = false, now.Add(-patience) }))
	if got := Next(stuck).Waiting[0]; !got.NeedsPeers || !strings.Contains(got.For, `pod_management = "parallel"`) {
		t.Errorf("after %s unready: %+v", patience, got)
	}
	fresh := world(neverComplete, pod(0, "r1", func(p *runtime.Pod) { p.Ready, p.StartedAt = false, now }))
	if got := Next(fresh); got.Waiting[0].NeedsPeers || !got.Wake.Equal(now.Add(patience)) {
		t.Errorf("at once: %+v, wake %v", got.Waiting[0], got.Wake)
	}
}

func TestNextWakesWhenTheFirstMemberBecomesAvailable(t *testing.T) {
	w := world(minReady(5*time.Second), readyFor(0, "r1", 0), readyFor(1, "r1", 2*time.Second), readyFor(2, "r1", 4300*time.Millisecond))
	if got, want := Next(w).Wake, now.Add(700*time.Millisecond); !got.Equal(want) {
		t.Errorf("wake = %v, want %v", got, want)
	}
}

func TestARolloutIsCompleteWhenAllAreAvailable(t *testing.T) {
	for _, c := range []struct {
		name  string
		world World
		want  bool
	}{
		{"all available and new", world(update("r2"), running("web-0:r2", "web-1:r2", "web-2:r2")), true},
		{"ready but not for min_ready", world(update("r2"), minReady(time.Minute), running("web-1:r2", "web-2:r2"), readyFor(0, "r2", time.Second)), false},
		{"one old", world(update("r2"), running("web-0", "web-1:r2", "web-2:r2")), false},
		{"one too many", world(update("r2"), replicas(2), running("web-0:r2", "web-1:r2", "web-2:r2")), false},
		{"an empty set", world(update("r2"), replicas(0)), true},
	} {
		if got := Next(c.world).Complete; got != c.want {
			t.Errorf("%s: complete = %v, want %v", c.name, got, c.want)
		}
	}
}

func TestAPodThatStopsIsNotAvailableThoughItIsReady(t *testing.T) {
	ending := pod(2, "r1", func(p *runtime.Pod) { p.Phase = runtime.Stopping }) // it answers as long as it can
	w := world(running("web-0", "web-1"), ending)
	if s := Status(w, Next(w)); s.AvailableReplicas != 2 || s.Conditions[0].Status {
		t.Errorf("%d available, %+v", s.AvailableReplicas, s.Conditions[0])
	}
	if p := Next(world(update("r2"), running("web-0", "web-1"), ending)); p.String() != "" {
		t.Errorf("plan = %q beside one that stops, want none", p)
	}
}

func TestASetIsFormedWhenAllAreReadyAtOnce(t *testing.T) {
	for _, c := range []struct {
		name  string
		world World
		want  bool
	}{
		{"all are", world(running("web-0", "web-1", "web-2")), true},
		{"one is not", world(running("web-0", "web-1"), unready(2, "r1")), false},
		{"one is missing", world(running("web-0", "web-1")), false},
		{"one is stopped by the user", world(running("web-0", "web-1", "web-2"), each(down, 2)), false},
		{"one too many", world(replicas(2), running("web-0", "web-1", "web-2")), false},
		{"an empty set", world(replicas(0)), false},
		{"one that ends", world(deleting(""), running("web-0", "web-1", "web-2")), false},
	} {
		if got := Next(c.world).Formed; got != c.want {
			t.Errorf("%s: formed = %v, want %v", c.name, got, c.want)
		}
	}
}

func TestASetIsGoneAfterAllThatIsIts(t *testing.T) {
	for _, c := range []struct {
		name  string
		world World
		want  bool
	}{
		{"a member is left", world(deleting(""), stopping(0, "r1")), false},
		{"a volume has to go", world(deleting("delete"), claims("retain", "retain"), volume(0)), false},
		{"a volume stays", world(deleting(""), claims("retain", "retain"), volume(0)), true},
		{"something is kept of an ordinal", world(deleting(""), once("r1", 0)), false},
		{"nothing is left", world(deleting("")), true},
		{"it is not to go", world(replicas(0)), false},
	} {
		if got := Next(c.world).Gone; got != c.want {
			t.Errorf("%s: gone = %v, want %v", c.name, got, c.want)
		}
	}
}

func TestTheRecordOfAVolumeIsDroppedWhenItIsGone(t *testing.T) {
	for _, c := range []struct {
		name  string
		world World
		want  []string
	}{
		{"it is there still", world(replicas(2), claims("delete", "retain"), running("web-0", "web-1"), volume(0, 1, 2), record(2, true, true)), nil},
		{"it is gone", world(replicas(2), claims("delete", "retain"), running("web-0", "web-1"), volume(0, 1), record(2, true, true)), []string{"data-web-2"}},
		{"it is gone, and nobody decided that", world(replicas(2), claims("delete", "retain"), running("web-0", "web-1"), volume(0, 1), record(2, true, false)), nil},
	} {
		if got := Next(c.world).Drop; !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: dropped %v, want %v", c.name, got, c.want)
		}
	}
}

// The last output of a member that comes back is kept for `logs --previous`; of one
// that leaves nothing is.
func TestWhatEndedIsKeptWhileItsMemberStays(t *testing.T) {
	for _, c := range []struct {
		name  string
		world World
		want  bool
	}{
		{"one that comes back", world(running("web-0", "web-1"), stopped(2, "r1", runtime.ReasonRemoved)), true},
		{"one that the user stopped", world(running("web-0", "web-1"), stopped(2, "r1", runtime.ReasonStopRequested), each(down, 2)), true},
		{"one that leaves", world(replicas(2), running("web-0", "web-1"), stopped(2, "r1", runtime.ReasonStopRequested)), false},
		{"one of a set that ends", world(deleting(""), stopped(2, "r1", runtime.ReasonStopRequested)), false},
	} {
		a := Next(c.world).Actions
		if len(a) != 1 || a[0].Op != Remove || a[0].Keep != c.want {
			t.Errorf("%s: %+v, want one removal that keeps: %v", c.name, a, c.want)
		}
	}
}

func TestClassifyListsStepsInTheOrderTheyHappen(t *testing.T) {
	w := world(update("r2"), replicas(4), claims("delete", "retain"), running("web-0", "web-1", "web-5"), volume(0, 1, 5))
	var got []string
	for _, s := range Steps(w) {
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %s now=%v", s.Op, s.Member, s.Volume, s.Now)))
	}
	want := []string{
		"create-volume web-2 data-web-2 now=true", "create web-2  now=true",
		"create-volume web-3 data-web-3 now=false", "create web-3  now=false",
		"stop web-5  now=false", "delete-volume web-5 data-web-5 now=false",
		"replace web-1  now=false", "replace web-0  now=false",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("steps:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func BenchmarkNext10000(b *testing.B) {
	w := world(replicas(10000))
	for o := range 10000 {
		pod(o, "r1", func(p *runtime.Pod) { p.Rendering = "x" })(&w)
		w.Specs[Target{o, "r1"}] = Rendered{Digest: "x"}
	}
	for b.Loop() {
		Next(w)
	}
}

// An update stops nobody that could not be made of the new revision, and goes no
// further.
func TestAnUpdateLeavesAMemberThatCouldNotBeMade(t *testing.T) {
	w := world(update("r2"), running("web-0", "web-1"), unready(2, "r1"))
	w.Specs = map[Target]Rendered{{1, "r2"}: {Err: errors.New("invalid index")}}
	if got, want := Next(w).String(), "stop web-2 (outdated and not available)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	w = world(update("r2"), running("web-0", "web-1", "web-2:r2"))
	w.Specs = map[Target]Rendered{{1, "r2"}: {Err: errors.New("invalid index")}}
	plan := Next(w)
	if len(plan.Actions) != 0 || len(plan.Waiting) == 0 || !strings.Contains(plan.Waiting[0].For, "it could not be made again: invalid index") {
		t.Errorf("got %q, waiting %v", plan, plan.Waiting)
	}
	if !slices.Contains(w.Needed(), Target{1, "r2"}) {
		t.Error("it is not looked whether it could")
	}
}

// recovery_wait ends with a predecessor whose start lies in the future: the clock was
// set back since.
func TestRecoveryWaitDoesNotWaitForAClock(t *testing.T) {
	for at, want := range map[time.Duration]string{-time.Second: "", time.Hour: "create web-1 (recovery)"} {
		before := pod(0, "r1", func(p *runtime.Pod) { p.Ready, p.StartedAt = false, now.Add(at) })
		if got := Next(world(once("r1", 0, 1, 2), recoveryWait(time.Minute), before)).String(); got != want {
			t.Errorf("started in %s: %q, want %q", at, got, want)
		}
	}
}

// A member that was to be made with an older revision, and never was, is made with the
// new one; one that was comes back as it was.
func TestWhatAMemberThatIsMissingIsMadeOf(t *testing.T) {
	for name, c := range map[string]struct {
		member Member
		want   string
	}{
		"never made":     {Member{Revision: "r1"}, "r2"},
		"was available":  {Member{Revision: "r1", Once: "r1"}, "r1"},
		"ran":            {Member{Revision: "r1", Used: true}, "r1"},
		"nothing stored": {Member{}, "r2"},
	} {
		w := world(update("r2"), running("web-0", "web-1"), member(2, c.member))
		if got := Next(w).Actions; len(got) != 1 || got[0].Op != Create || got[0].Target != c.want {
			t.Errorf("%s: %+v, want it made of %s", name, got, c.want)
		}
	}
}
