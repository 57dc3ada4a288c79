package planner

import (
	"testing"
	"time"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

func TestRestartsOfInitsCountUntilThePodIsPastThem(t *testing.T) {
	began, failed, well := time.Unix(1, 0), 1, 0
	initial := runtime.Container{Kind: jobspecs.KindInit, Restarts: 3, ExitCode: &failed}
	passed := runtime.Container{Kind: jobspecs.KindInit, Restarts: 3, ExitCode: &well}
	for name, c := range map[string]struct {
		pod  runtime.Pod
		want int
	}{
		"an init fails again and again": {runtime.Pod{Containers: []runtime.Container{initial, {Kind: jobspecs.KindMain, State: "waiting"}}}, 3},
		"the main has begun":            {runtime.Pod{Restarts: 1, Containers: []runtime.Container{passed, {Kind: jobspecs.KindMain, Restarts: 1, StartedAt: began}}}, 1},
		"the main waits for a restart":  {runtime.Pod{Restarts: 2, Containers: []runtime.Container{passed, {Kind: jobspecs.KindMain, Restarts: 2, ExitCode: &failed}}}, 2},
	} {
		if got := restarts(&c.pod); got != c.want {
			t.Errorf("%s: %d restarts, want %d", name, got, c.want)
		}
	}
}
