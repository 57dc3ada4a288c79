package pods_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/runtime/sim"
)

// gone is web-0 stopped and removed, its last container kept.
func (r *rig) gone() {
	r.Helper()
	r.create(spec())
	r.must(r.Stop(r.Context(), web0, runtime.StopOptions{Grace: time.Second, Why: runtime.WhyStop}))
	r.after(0)
	r.must(r.Remove(r.Context(), web0, true))
	r.want("absent")
	r.wantHost("web-0_previous exited")
}

func TestAKeptContainerOfAnAbsentPodThatIsStartedByHandIsAPod(t *testing.T) {
	onHost(t, sim.Program{}, func(r *rig) {
		r.gone()
		r.world.Restart("web-0_previous")
		r.want("Running ready? unmanaged")
		r.wantNotes("web: StartedByHand")
		if err := r.Remove(r.Context(), web0, false); !errors.Is(err, runtime.ErrRunning) {
			r.Errorf("remove = %v, want ErrRunning", err)
		}
		r.must(r.Stop(r.Context(), web0, runtime.StopOptions{Grace: time.Second}))
		r.want("Stopped (StopRequested) unmanaged")
		r.must(r.Remove(r.Context(), web0, true))
		r.wantHost("web-0_previous exited")
		r.must(r.Remove(r.Context(), web0, false))
		r.wantHost("")
		if _, ok := r.world.Disk("data-web-0"); !ok {
			r.Error("the volume is gone")
		}
	})
}

func TestWhatIsStartedByHandIsMetOnceTheHostAnswers(t *testing.T) {
	onHost(t, sim.Program{}, func(r *rig) {
		r.gone()
		r.world.Fail(sim.Fault{Verb: "inspect", Name: "web-0_previous", Err: errors.New("too busy"), Times: 3})
		r.world.Restart("web-0_previous")
		r.want("absent")
		r.after(time.Minute)
		r.want("Running ready? unmanaged")
	})
}

func TestADuplicateOfAContainerIsStoppedAndNothingElse(t *testing.T) {
	for _, names := range [][]string{{"evil"}, {"evil", "mine", "next"}} {
		t.Run(strings.Join(names, " "), func(t *testing.T) {
			onHost(t, sim.Program{}, func(r *rig) {
				r.create(spec())
				before, _ := r.world.Container("web-0")
				r.world.ForeignContainer("theirs", before.Address.Next(), map[string]string{jobspecs.LabelDaemon: "another", jobspecs.LabelSet: "web", jobspecs.LabelOrdinal: "0"})
				for _, name := range names {
					r.world.Duplicate("web-0", name)
				}
				r.after(time.Minute)
				r.want("Running ready")
				r.wantHost(strings.Join(names, " exited, ") + " exited, theirs running, web-0 running")
				r.world.Restart("evil") // again, and again
				r.after(time.Minute)
				r.wantState("evil", "exited")
				if now, _ := r.world.Container("web-0"); now.ID != before.ID || !now.StartedAt.Equal(before.StartedAt) {
					r.Errorf("container = %+v, was %+v", now, before)
				}
				r.must(r.Stop(r.Context(), web0, runtime.StopOptions{Grace: time.Second}))
				r.after(0)
				r.must(r.Remove(r.Context(), web0, false))
				r.wantHost("theirs running")
			})
		})
	}
}

func (r *rig) wantState(name, want string) {
	r.Helper()
	synctest.Wait()
	if c, _ := r.world.Container(name); c.State != want {
		r.Errorf("%s is %q, want %q", name, c.State, want)
	}
}

func TestADuplicateThatIsStartedAgainWhileItStopsIsStoppedAgain(t *testing.T) {
	onHost(t, sim.Program{}, func(r *rig) {
		r.create(spec())
		r.world.Latency("stop", 2*time.Second)
		r.world.Duplicate("web-0", "evil")
		r.after(time.Second)
		r.world.Kill("evil")
		r.world.Restart("evil")
		r.after(time.Minute)
		r.wantState("evil", "exited")
		r.want("Running ready")
	})
}

func TestDuplicatesOfAPodThatWaitsAreStoppedBeforeItIsMade(t *testing.T) {
	onHost(t, sim.Program{ExitAfter: time.Second, TermTime: 10 * time.Second}, func(r *rig) {
		r.create(spec())
		r.after(2100 * time.Millisecond) // the second has ended, and waits
		r.world.Duplicate("web-0_previous", "evil")
		r.want("Pending (WaitingForFence) restarts=1")
		r.after(950 * time.Millisecond) // its time has come
		r.want("Pending (WaitingForFence) restarts=1")
		r.wantHost("evil running, web-0 exited, web-0_previous exited")
		r.after(100 * time.Millisecond)
		r.wantHost("evil exited, web-0 running, web-0_previous exited")
	})
}

func TestThreeOfOneContainerAreFoundWhenTheHostIsConnected(t *testing.T) {
	onHost(t, sim.Program{}, func(r *rig) {
		r.create(spec())
		r.stop()
		r.world.Duplicate("web-0", "a")
		r.world.Duplicate("web-0", "b")
		r.world.Duplicate("web-0", "c")
		r.connect()
		r.after(2 * time.Minute)
		r.wantHost("a exited, b exited, c exited, web-0 running")
		r.must(r.Stop(r.Context(), web0, runtime.StopOptions{Grace: time.Second}))
		r.after(0)
		r.must(r.Remove(r.Context(), web0, false))
		r.wantHost("")
	})
}

func TestARemovalNamesTheContainerThatRuns(t *testing.T) {
	onHost(t, sim.Program{}, func(r *rig) {
		r.gone()
		r.world.Fail(sim.Fault{Verb: "inspect", Name: "web-0_previous", Err: errors.New("too busy"), Times: 1})
		r.world.Restart("web-0_previous")
		synctest.Wait() // it is not met yet
		err := r.Remove(r.Context(), web0, false)
		if !errors.Is(err, runtime.ErrRunning) || !strings.Contains(err.Error(), "docker stop web-0_previous") {
			r.Errorf("remove = %v, want ErrRunning and what ends it", err)
		}
	})
}
