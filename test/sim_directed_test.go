package test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime/sim"
)

// inRig runs a directed story; the witness watches it as it watches random ones.
func inRig(t *testing.T, f func(t *testing.T, r *rig)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(dir)
		defer func() {
			r.close()
			if broken := r.witness.complaints; len(broken) > 0 {
				t.Errorf("%s\n\nthe whole story:\n%s", strings.Join(broken, "\n"), strings.Join(r.log, "\n"))
			}
		}()
		f(t, r)
	})
}

// tells runs lines of a story.
func (r *rig) tells(lines ...string) {
	for _, line := range lines {
		r.do(line)
	}
}

// rest waits until everything is as it was asked for.
func (r *rig) rest(t *testing.T, within time.Duration) {
	t.Helper()
	if !r.until(within, func() bool { return len(r.unsettled()) == 0 }) {
		s, _ := r.status("web")
		t.Fatalf("after %s: %s\n\nhost: %s\nstatus: %+v\n\n%s", within, strings.Join(r.unsettled(), "; "), r.world, s, strings.Join(r.log, "\n"))
	}
}

// runs are the running members' containers: name → id.
func (r *rig) runs() map[string]string {
	out := map[string]string{}
	for _, c := range r.world.Containers() {
		if c.Running() {
			out[c.Name] = c.ID
		}
	}
	return out
}

// host is what is there, without what is kept for logs.
func (r *rig) host() string {
	var out []string
	for _, c := range r.world.Containers() {
		if !strings.HasSuffix(c.Name, "_"+jobspecs.PartPrevious) {
			out = append(out, c.Name+" "+c.State+" "+c.Image)
		}
	}
	for _, d := range r.world.Disks() {
		out = append(out, d.Name)
	}
	return strings.Join(out, ", ")
}

func (r *rig) want(t *testing.T, want string) {
	t.Helper()
	if got := r.host(); got != want {
		t.Errorf("host has %q\nwant     %q\n\n%s", got, want, strings.Join(r.log, "\n"))
	}
}

// same checks that members run in the containers they ran in.
func (r *rig) same(t *testing.T, before map[string]string, members ...string) {
	t.Helper()
	now := r.runs()
	for _, m := range members {
		if before[m] == "" || now[m] != before[m] {
			t.Errorf("%s ran in container %q and runs in %q: it was restarted", m, before[m], now[m])
		}
	}
}

// writes are the calls of a verb since the last Forget, as "web-2 web-1".
func (r *rig) writes(verb string) string {
	var out []string
	for _, c := range r.world.Writes() {
		if c.Verb == verb {
			out = append(out, c.Name)
		}
	}
	return strings.Join(out, " ")
}

// A kill -9 at any moment: the same end state, and no healthy member restarted
// (that is for the witness to see).
func TestKillOfTheDaemonAtTwentyMoments(t *testing.T) {
	for _, c := range []struct {
		name, before, verb, want string
		untouched                []string
	}{
		{"apply", "", "apply web image=app:2", "web-0 running app:2, web-1 running app:2, web-2 running app:2, data-web-0, data-web-1, data-web-2", nil},
		{"scale", "apply web image=app:2", "scale web 5",
			"web-0 running app:2, web-1 running app:2, web-2 running app:2, web-3 running app:2, web-4 running app:2, data-web-0, data-web-1, data-web-2, data-web-3, data-web-4",
			[]string{"web-0", "web-1", "web-2"}},
		{"roll", "apply web image=app:2", "image web app:3", "web-0 running app:3, web-1 running app:3, web-2 running app:3, data-web-0, data-web-1, data-web-2", nil},
		{"delete", "apply web image=app:2 claim=data:retain:delete,log:retain:retain", "delete web", "log-web-0, log-web-1, log-web-2", nil},
	} {
		for n := 1; n <= 5; n++ {
			for _, when := range []string{"before", "after"} {
				t.Run(fmt.Sprintf("%s at write %d, %s", c.name, n, when), func(t *testing.T) {
					t.Parallel()
					inRig(t, func(t *testing.T, r *rig) {
						if c.before != "" {
							r.do(c.before)
							r.rest(t, time.Minute)
						}
						before := r.runs()
						r.tells(fmt.Sprintf("crash-at %d when=%s down=3s", n, when), c.verb)
						r.until(time.Minute, func() bool { return r.lives == 2 && r.up() })
						if r.lives != 2 {
							t.Fatalf("the daemon was not killed")
						}
						r.rest(t, 2*time.Minute)
						r.pass(time.Minute)
						r.want(t, c.want)
						r.same(t, before, c.untouched...)
					})
				})
			}
		}
	}
}

func TestAllContainersStoppedThenTheDaemonStarted(t *testing.T) {
	t.Parallel()
	inRig(t, func(t *testing.T, r *rig) {
		r.do("apply web image=app:3")
		r.rest(t, time.Minute)
		disks := r.world.Disks()
		r.do("stop down=1000h")
		for name := range r.runs() {
			r.world.Kill(name)
		}
		r.pass(time.Minute)
		r.down = 0
		r.world.Forget()
		r.pass(time.Second)
		if got, want := len(strings.Fields(r.writes("start"))), 3; got != want {
			t.Errorf("%d members started at once, want %d: recovery waits for nobody", got, want)
		}
		r.rest(t, time.Minute)
		for i, d := range r.world.Disks() {
			if d.Serial != disks[i].Serial {
				t.Errorf("volume %s is another one", d.Name)
			}
		}
	})
}

func TestNoHintIsLostWhenTheDaemonStarts(t *testing.T) {
	t.Parallel()
	inRig(t, func(t *testing.T, r *rig) {
		r.do("apply web")
		r.rest(t, time.Minute)
		r.late = time.Second
		r.tells("crash", "delete web")
		r.rest(t, 20*time.Second)
		r.want(t, "data-web-0, data-web-1, data-web-2")
	})
}

func TestRecoveryWaitStagesThoseThatComeBack(t *testing.T) {
	t.Parallel()
	inRig(t, func(t *testing.T, r *rig) {
		r.do("apply web image=slow:1 recovery=8s")
		r.rest(t, 3*time.Minute)
		r.world.Forget()
		began := time.Now()
		r.do("reboot 0s")
		r.rest(t, 3*time.Minute)
		var starts []string
		for _, c := range r.world.Writes() {
			if c.Verb == "start" {
				starts = append(starts, fmt.Sprintf("%s %s", c.Name, c.At.Sub(began).Round(time.Second)))
			}
		}
		if got, want := strings.Join(starts, ", "), "web-0 0s, web-1 8s, web-2 16s"; got != want {
			t.Errorf("starts = %q, want %q", got, want)
		}
	})
}

func TestADecidedDeletionOfAVolumeIsCarriedOut(t *testing.T) {
	t.Parallel()
	inRig(t, func(t *testing.T, r *rig) {
		r.do("apply web claim=data:delete:retain")
		r.rest(t, time.Minute)
		before, _ := r.world.Disk("data-web-2")
		r.tells("fail volume.delete times=2", "scale web 2", "scale web 3")
		r.rest(t, time.Minute)
		if after, _ := r.world.Disk("data-web-2"); after.Serial == before.Serial {
			t.Errorf("web-2 runs again on the volume that was to be deleted; the host was asked %v", r.world.Writes())
		}
	})
}

func TestADaemonThatComesBackTouchesNobody(t *testing.T) {
	t.Parallel()
	inRig(t, func(t *testing.T, r *rig) {
		r.tells("apply web image=app:2 probe=live minready=10s", "apply db probe=none manage=parallel")
		r.rest(t, 2*time.Minute)
		r.world.Forget()
		for range 5 {
			r.tells("crash down=2s", "pass 1m", "stop down=2s", "pass 1m")
		}
		if w := r.world.Writes(); len(w) > 0 {
			t.Errorf("ten restarts of the daemon wrote %v", w)
		}
	})
}

func TestReadinessHoldsOverARestartOfTheDaemon(t *testing.T) {
	t.Parallel()
	inRig(t, func(t *testing.T, r *rig) {
		r.do("apply web minready=30s")
		r.rest(t, 3*time.Minute)
		r.tells("slow check 4s", "crash", "pass 1s")
		if s, _ := r.status("web"); s.ReadyReplicas != 3 || s.AvailableReplicas != 3 {
			t.Errorf("before the first probe %d are ready and %d available, want 3: no probe has contradicted", s.ReadyReplicas, s.AvailableReplicas)
		}
		r.pass(9 * time.Second)
		if s, _ := r.status("web"); s.ReadyReplicas != 3 || s.AvailableReplicas != 3 {
			t.Errorf("after the first probe %d are ready and %d available, want 3: ready for min_ready since before the restart", s.ReadyReplicas, s.AvailableReplicas)
		}
	})
}

func TestACorrectedSpecRepairsABrokenRolloutAtOnce(t *testing.T) {
	for _, image := range []string{"never:1", "unstart:1", "absent:1", "crash:1 minready=10s"} {
		t.Run(image, func(t *testing.T) {
			t.Parallel()
			inRig(t, func(t *testing.T, r *rig) {
				r.do("apply web image=app:1 minready=10s")
				r.rest(t, time.Minute)
				before := r.runs()
				r.tells("apply web image="+image, "pass 2m")
				r.same(t, before, "web-0", "web-1")
				e, err := r.life.daemon.Explain(context.Background(), "default", "web-2")
				if err != nil || len(e.Next) == 0 || e.State == "" {
					t.Errorf("explain web-2 = %+v, %v; want the cause and what to do", e, err)
				}
				r.do("apply web image=app:9")
				r.rest(t, 10*time.Second)
				r.want(t, "web-0 running app:9, web-1 running app:9, web-2 running app:9, data-web-0, data-web-1, data-web-2")
			})
		})
	}
}

func TestABrokenFirstStartIsRepairedToo(t *testing.T) {
	t.Parallel()
	inRig(t, func(t *testing.T, r *rig) {
		r.tells("apply web image=never:1", "pass 1m", "apply web image=app:1")
		r.rest(t, 10*time.Second)
	})
}

func TestASlowStartSeesNoRestart(t *testing.T) {
	t.Parallel()
	inRig(t, func(t *testing.T, r *rig) {
		r.do("apply web image=slow:1 replicas=1 probe=startup")
		r.until(time.Minute, func() bool { s, _ := r.status("web"); return s.ReadyReplicas == 1 })
		if took := time.Since(r.began); took < 20*time.Second || took > 22*time.Second {
			t.Errorf("ready after %s, want a little more than 20s", took)
		}
		r.rest(t, time.Minute)
		if s, _ := r.status("web"); s.Members[0].Restarts != 0 {
			t.Errorf("%d restarts, want 0", s.Members[0].Restarts)
		}
	})
}

func TestAVolumeRemovedByHandIsHeld(t *testing.T) {
	t.Parallel()
	inRig(t, func(t *testing.T, r *rig) {
		r.do("apply web")
		r.rest(t, time.Minute)
		before := r.runs()
		r.tells("rmvolume data-web-1", "pass 10m")
		r.want(t, "web-0 running app:1, web-2 running app:1, data-web-0, data-web-2")
		r.same(t, before, "web-0", "web-2")
		s, _ := r.status("web")
		if c := condition(s, jobspecs.CondStalled); !c.Status || c.Reason != "VolumeLost" {
			t.Errorf("condition Stalled is %+v, want VolumeLost", c)
		}
		r.tells("crash", "pass 1m", "scale web 1", "scale web 3", "pass 1m")
		if _, there := r.world.Disk("data-web-1"); there {
			t.Errorf("the lost volume was made again after a restart, or after a scale")
		}
		r.restore()
		r.rest(t, time.Minute)
	})
}

func condition(s jobspecs.Status, kind string) jobspecs.Condition {
	for _, c := range s.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return jobspecs.Condition{}
}

func TestMinReadyPacesARollout(t *testing.T) {
	t.Parallel()
	inRig(t, func(t *testing.T, r *rig) {
		r.do("apply web minready=20s")
		r.rest(t, 2*time.Minute)
		r.world.Forget()
		r.do("image web app:2")
		r.rest(t, 3*time.Minute)
		var stops []sim.Call
		for _, c := range r.world.Writes() {
			if c.Verb == "stop" {
				stops = append(stops, c)
			}
		}
		if len(stops) != 3 {
			t.Fatalf("stops = %v, want three", stops)
		}
		for i := range 2 {
			if gap := stops[i+1].At.Sub(stops[i].At); gap < 21*time.Second || gap > 23*time.Second {
				t.Errorf("%s follows %s after %s, want 1s of start and 20s of min_ready", stops[i+1].Name, stops[i].Name, gap)
			}
		}
	})
}

func TestScaleDownWithSickMembers(t *testing.T) {
	t.Parallel()
	for _, manage := range []string{jobspecs.Ordered, jobspecs.Parallel} {
		t.Run(manage, func(t *testing.T) {
			t.Parallel()
			inRig(t, func(t *testing.T, r *rig) {
				r.do("apply web replicas=4 manage=" + manage)
				r.rest(t, time.Minute)
				r.tells("sicken web-0", "sicken web-2", "sicken web-3", "pass 1m", "scale web 1", "pass 10s")
				r.want(t, "web-0 running app:1, data-web-0, data-web-1, data-web-2, data-web-3")
			})
		})
	}
}

func TestPartitionIsACanary(t *testing.T) {
	t.Parallel()
	inRig(t, func(t *testing.T, r *rig) {
		r.do("apply web start=5")
		r.rest(t, time.Minute)
		before := r.runs()
		r.tells("apply web start=5 image=app:2 partition=7", "pass 1m")
		r.want(t, "web-5 running app:1, web-6 running app:1, web-7 running app:2, data-web-5, data-web-6, data-web-7")
		r.same(t, before, "web-5", "web-6")
		r.tells("rm web-5", "rm web-7", "pass 1m")
		r.want(t, "web-5 running app:1, web-6 running app:1, web-7 running app:2, data-web-5, data-web-6, data-web-7")
		r.do("apply web start=5 image=app:2 partition=0")
		r.rest(t, time.Minute)
	})
}

func TestAPartitionHoldsForNewMembersToo(t *testing.T) {
	t.Parallel()
	inRig(t, func(t *testing.T, r *rig) {
		r.do("apply web replicas=1")
		r.rest(t, time.Minute)
		r.tells("apply web replicas=3 image=app:2 partition=2", "pass 1m")
		r.want(t, "web-0 running app:1, web-1 running app:1, web-2 running app:2, data-web-0, data-web-1, data-web-2")
	})
}

func TestAPauseHoldsTheUpdateAndNothingElse(t *testing.T) {
	t.Parallel()
	inRig(t, func(t *testing.T, r *rig) {
		r.do("apply web")
		r.rest(t, time.Minute)
		before := r.runs()
		r.tells("pause web", "image web app:2", "pass 1m")
		r.same(t, before, "web-0", "web-1", "web-2")
		r.tells("rm web-1", "scale web 4", "pass 1m")
		r.want(t, "web-0 running app:1, web-1 running app:1, web-2 running app:1, web-3 running app:1, data-web-0, data-web-1, data-web-2, data-web-3")
		r.do("resume web")
		r.rest(t, time.Minute)
		r.want(t, "web-0 running app:2, web-1 running app:2, web-2 running app:2, web-3 running app:2, data-web-0, data-web-1, data-web-2, data-web-3")
	})
}

func TestUndoRestartsOnlyThoseThatLeft(t *testing.T) {
	t.Parallel()
	inRig(t, func(t *testing.T, r *rig) {
		r.do("apply web")
		r.rest(t, time.Minute)
		before := r.runs()
		r.tells("image web never:1", "pass 1m", "undo web")
		r.rest(t, time.Minute)
		r.same(t, before, "web-0", "web-1")
		if s, _ := r.status("web"); s.Members[2].Revision != s.Members[0].Revision {
			t.Errorf("revisions differ: %s, %s", s.Members[0].Revision, s.Members[2].Revision)
		}
	})
}

func TestOnDeleteReplacesWhoIsRemoved(t *testing.T) {
	t.Parallel()
	inRig(t, func(t *testing.T, r *rig) {
		r.do("apply web strategy=on_delete")
		r.rest(t, time.Minute)
		before := r.runs()
		r.tells("apply web strategy=on_delete image=app:2", "pass 1m")
		r.same(t, before, "web-0", "web-1", "web-2")
		r.tells("rm web-1", "pass 1m", "kill web-0", "pass 1m")
		r.want(t, "web-0 running app:1, web-1 running app:2, web-2 running app:1, data-web-0, data-web-1, data-web-2")
	})
}

func TestTwoSetsOneBadNoneStored(t *testing.T) {
	t.Parallel()
	inRig(t, func(t *testing.T, r *rig) {
		good, bad := setSpec{set: "web"}, setSpec{set: "db"}.with("replicas=-1")
		var p *client.Problem
		if err := r.apply(good, bad); !errors.As(err, &p) || p.Type != client.ProblemInvalid {
			t.Errorf("apply = %v, want a Problem %s", err, client.ProblemInvalid)
		}
		if sets, err := r.life.daemon.Sets(context.Background(), ""); err != nil || len(sets) != 0 {
			t.Errorf("sets = %v, %v; want none", sets, err)
		}
		r.pass(time.Minute)
		r.want(t, "")
	})
}

func TestARenamedClaimIsRefusedWithoutConfirmation(t *testing.T) {
	t.Parallel()
	inRig(t, func(t *testing.T, r *rig) {
		r.do("apply web claim=data:retain:retain")
		r.rest(t, time.Minute)
		r.world.Forget()
		renamed := setSpec{set: "web"}.with("claim=files:retain:retain")
		_, err := r.life.daemon.Apply(context.Background(), request(renamed))
		var p *client.Problem
		if !errors.As(err, &p) || p.Type != client.ProblemUnconfirmed || len(p.Data) == 0 {
			t.Errorf("apply = %v, want a Problem %s that names what would be lost sight of", err, client.ProblemUnconfirmed)
		}
		r.pass(time.Minute)
		if w := r.world.Writes(); len(w) > 0 {
			t.Errorf("a refused apply wrote %v", w)
		}
		r.do("apply " + renamed.String())
		r.rest(t, time.Minute)
	})
}

func request(s setSpec) client.ApplyRequest {
	return client.ApplyRequest{Scopes: []client.Scope{{Sources: []jobspecs.Source{{Name: s.name() + ".hcl", Text: []byte(s.hcl())}}}}}
}

// What plan says is what the apply that follows does, in this order; and plan
// itself writes nothing.
func TestPlanTellsWhatApplyDoes(t *testing.T) {
	for _, c := range []struct{ name, before, after, want string }{
		{"a new set", "", "web replicas=2", "create-volume data-web-0, create web-0, create-volume data-web-1, create web-1"},
		{"a new image and a member more", "web", "web image=app:2 replicas=4", "create-volume data-web-3, create web-3, replace web-2, replace web-1, replace web-0"},
		{"two members less, whose volumes go, and a new image", "web claim=data:delete:retain replicas=3", "web claim=data:delete:retain replicas=1 image=app:2",
			"stop web-2, delete-volume data-web-2, stop web-1, delete-volume data-web-1, replace web-0"},
		{"a partition", "web", "web image=app:2 partition=2", "replace web-2"},
		{"nothing new", "web", "web", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inRig(t, func(t *testing.T, r *rig) {
				if c.before != "" {
					r.do("apply " + c.before)
					r.rest(t, time.Minute)
				}
				r.world.Forget()
				words := strings.Fields(c.after)
				spec := setSpec{set: words[0]}.with(words[1:]...)
				resp, err := r.life.daemon.Plan(context.Background(), request(spec))
				if err != nil || len(resp.Plans) != 1 {
					t.Fatalf("plan = %+v, %v", resp, err)
				}
				r.pass(time.Minute)
				if w := r.world.Writes(); len(w) > 0 {
					t.Errorf("plan wrote %v", w)
				}
				if got := steps(resp.Plans[0]); got != c.want {
					t.Errorf("plan = %q\nwant   %q", got, c.want)
				}
				r.tells("apply "+spec.String(), "pass 1m")
				if got, want := inTurn(r.deeds()), inTurn(c.want); got != want {
					t.Errorf("apply did %q\nplan said %q", got, want)
				}
			})
		})
	}
}

// inTurn puts the deletions of volumes, which go on beside the rest, to the end.
func inTurn(deeds string) string {
	all := strings.Split(deeds, ", ")
	isDelete := func(s string) bool { return strings.HasPrefix(s, "delete-volume") }
	deletions := slices.DeleteFunc(slices.Clone(all), func(s string) bool { return !isDelete(s) })
	slices.Sort(deletions)
	return strings.Join(append(slices.DeleteFunc(all, isDelete), deletions...), ", ")
}

// steps is a plan in one line, without what stays.
func steps(p jobspecs.Plan) string {
	var out []string
	for _, s := range p.Steps {
		switch {
		case s.Op == jobspecs.OpKeep || s.Op == jobspecs.OpKeepVolume:
		case s.Volume != "":
			out = append(out, s.Op+" "+s.Volume)
		default:
			out = append(out, s.Op+" "+s.Member)
		}
	}
	return strings.Join(out, ", ")
}

// deeds are the writes since the last Forget, in a plan's words.
func (r *rig) deeds() string {
	var out []string
	writes := r.world.Writes()
	for i, c := range writes {
		followed := func(verb string) bool {
			return slices.ContainsFunc(writes[i:], func(d sim.Call) bool { return d.Verb == verb && d.Name == c.Name })
		}
		ended := slices.ContainsFunc(writes[:i], func(d sim.Call) bool { return d.Verb == "stop" && d.Name == c.Name })
		switch {
		case c.Verb == "volume.create" && !slices.Contains(out, "create-volume "+c.Name):
			out = append(out, "create-volume "+c.Name)
		case c.Verb == "volume.delete":
			out = append(out, "delete-volume "+c.Name)
		case c.Verb == "create" && !ended:
			out = append(out, "create "+c.Name)
		case c.Verb == "stop" && followed("create"):
			out = append(out, "replace "+c.Name)
		case c.Verb == "stop":
			out = append(out, "stop "+c.Name)
		}
	}
	return strings.Join(out, ", ")
}

func TestForeignObjectsOfAWantedNameAreNamedAndUntouched(t *testing.T) {
	t.Parallel()
	inRig(t, func(t *testing.T, r *rig) {
		r.tells("foreign container web-1 stsd=other", "foreign volume data-web-0 stsd=other", "apply web manage=parallel", "pass 5m")
		s, _ := r.status("web")
		for i, want := range []string{"data-web-0 exists and is not ours (of stsd other)", "container web-1 exists and is not ours"} {
			if !strings.Contains(s.Members[i].Message, want) {
				t.Errorf("%s says %q, want %q in it", s.Members[i].Name, s.Members[i].Message, want)
			}
		}
		if !s.Members[2].Available {
			t.Errorf("web-2 is not available: %s", s.Members[2].Message)
		}
		r.peace()
		r.rest(t, 2*time.Minute)
	})
}

func TestAnIdleDaemonAsksNothing(t *testing.T) {
	t.Parallel()
	inRig(t, func(t *testing.T, r *rig) {
		r.do("apply web probe=none replicas=5")
		r.rest(t, time.Minute)
		r.world.Forget()
		r.pass(time.Hour)
		if n := r.world.Reads() + len(r.world.Writes()); n != 0 {
			t.Errorf("%d requests in an idle hour, want 0", n)
		}
	})
}

// What expressions see must be new when a container is restarted: a member that
// comes back after the set has formed does not form it again.
func TestARestartSeesThatTheSetHasFormed(t *testing.T) {
	t.Parallel()
	inRig(t, func(t *testing.T, r *rig) {
		r.do("apply web")
		r.rest(t, time.Minute)
		rendering := func() string {
			c, _ := r.world.Container("web-0")
			return c.Labels[jobspecs.LabelRendering]
		}
		before := rendering()
		r.tells("kill web-0", "pass 10s")
		if got := rendering(); got == before {
			t.Errorf("web-0 began again with the rendering from before the set had formed")
		}
		s, _ := r.status("web")
		for _, m := range s.Members {
			if m.Stale {
				t.Errorf("%s is stale, for no more than that the set has formed", m.Name)
			}
		}
	})
}
