package daemon

import (
	"errors"
	"io"
	"testing"
	"time"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/runtime/sim"
)

func TestWhatIsSaidOfAContainerThatDoesNotRun(t *testing.T) {
	name := runtime.PodName{Namespace: "default", Name: "big-0"}
	one, zero, began := 1, 0, noon
	for _, c := range []struct {
		about     string
		phase     runtime.Phase
		container runtime.Container
		previous  bool
		title     string
		next      string
	}{
		{"it ended and waits for its restart", runtime.Backoff, runtime.Container{Name: "second", Kind: jobspecs.KindMain, State: "exited", ExitCode: &one, StartedAt: began}, false,
			"container second of big-0 is not running: it ended with exit code 1, and is started again with back-off", "stsd logs -c second big-0"},
		{"the ended one is put aside", runtime.Backoff, runtime.Container{Name: "second", Kind: jobspecs.KindMain, State: "waiting", ExitCode: &one}, false,
			"container second of big-0 is not running: it ended with exit code 1, and is started again with back-off", "stsd logs -c second big-0 --previous"},
		{"a sidecar has not ended", runtime.Running, runtime.Container{Name: "side", Kind: jobspecs.KindSidecar, State: "running", StartedAt: began}, true,
			"sidecar side of big-0 has not ended yet: there are no previous logs", "stsd logs -c side big-0"},
		{"it ended for the first time", runtime.Backoff, runtime.Container{Name: "b", Kind: jobspecs.KindMain, State: "exited", ExitCode: &one, StartedAt: began}, true,
			"container b of big-0 has ended for the first time: there are no logs of an earlier one", "stsd logs -c b big-0"},
		{"one has not begun", runtime.Initializing, runtime.Container{Name: "b", Kind: jobspecs.KindMain, State: "waiting"}, true,
			"container b of big-0 has not begun yet: there are no previous logs", "stsd explain big-0"},
		{"it waits for another", runtime.Initializing, runtime.Container{Name: "b", Kind: jobspecs.KindMain, State: "waiting", Message: "waiting for init a"}, false,
			"container b of big-0 waits for init a", "stsd explain big-0"},
		{"an init did its work", runtime.Running, runtime.Container{Name: "prepare", Kind: jobspecs.KindInit, State: "exited", ExitCode: &zero, StartedAt: began}, false,
			"init prepare of big-0 is not running: it did its work and ended", "stsd logs -c prepare big-0"},
		{"it is paused", runtime.Running, runtime.Container{Name: "side", Kind: jobspecs.KindSidecar, State: "paused", StartedAt: began}, false,
			"sidecar side of big-0 is paused", "docker unpause big-0_side"},
		{"its image comes", runtime.Pulling, runtime.Container{Name: "b", Kind: jobspecs.KindMain, State: "waiting", Message: "12 MB of 30 MB"}, false,
			"container b of big-0 is not running: 12 MB of 30 MB", "stsd explain big-0"},
		{"the member ends", runtime.Stopping, runtime.Container{Name: "b", Kind: jobspecs.KindMain, State: "exited", ExitCode: &zero, StartedAt: began}, false,
			"container b of big-0 is not running: it ended with exit code 0, and the member ends", "stsd explain big-0"},
		{"it ended this moment", runtime.Running, runtime.Container{Name: "b", Kind: jobspecs.KindMain, State: "running", StartedAt: began}, false,
			"container b of big-0 has just ended or is being replaced; try again", "stsd logs -c b big-0 --previous"},
	} {
		p := runtime.Pod{Name: "big-0", Phase: c.phase, Containers: []runtime.Container{{Name: "first", Kind: jobspecs.KindMain}, c.container}}
		q := asked{name, c.container.Name, c.previous}
		title, next := q.absence(&p, q.of(&p))
		if title != c.title || next != c.next {
			t.Errorf("%s: %q, %q\nwant %q, %q", c.about, title, next, c.title, c.next)
		}
	}
}

func TestExecAndLogsOfAMemberThatDoesNotRunSayWhy(t *testing.T) {
	play(t, func(s *stage) {
		s.world.Program("web:1", sim.Program{ExitAfter: time.Nanosecond, ExitCode: 7})
		s.apply(`statefulset "web" {
  container "web" {
    image = "web:1"
  }
}`)
		name := runtime.PodName{Namespace: "default", Name: "web-0"}
		_, err := s.Exec(t.Context(), name, runtime.ExecOptions{Command: []string{"true"}, Stdout: io.Discard})
		var p *client.Problem
		if !errors.As(err, &p) || p.Type != client.ProblemConflict || p.Title != "container web of web-0 is not running: it ended with exit code 7, and is started again with back-off" {
			t.Errorf("exec: %+v, %v", p, err)
		}
		none := runtime.PodName{Namespace: "default", Name: "web-7"}
		if err := s.Logs(t.Context(), none, runtime.LogOptions{}, io.Discard, io.Discard); !errors.As(err, &p) || p.Type != client.ProblemNotFound {
			t.Errorf("logs of a member that the set has not: %v", err)
		}
	})
}

// An engine's words about a container that is not there are told from others.
func TestWhichErrorsAreOfAContainerThatIsNotThere(t *testing.T) {
	for text, want := range map[string]bool{
		"Error response from daemon: Container 3f is not running":                               true,
		"Error response from daemon: Container 3f is paused, unpause the container before exec": true,
		"can not get logs from container which is dead or marked for removal":                   true,
		"cannot exec in a stopped container: unknown":                                           true,
		`OCI runtime exec failed: exec: "nope": executable file not found in $PATH`:             false,
		"read logs of web-0: the log driver \"none\" cannot be read":                            false,
	} {
		if got := notThere(errors.New(text)); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}
