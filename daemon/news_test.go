package daemon

import (
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stsd/stsd/daemon/planner"
	"github.com/stsd/stsd/daemon/store"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

// one is a member of a single container that runs.
func one(change func(m *jobspecs.Member, c *jobspecs.MemberContainer)) jobspecs.Member {
	m := jobspecs.Member{
		Name: "web-0", Phase: "Running", Ready: true, Image: "web:1",
		Containers: []jobspecs.MemberContainer{{Name: "web", Kind: jobspecs.KindMain, State: "running", Ready: true, StartedAt: ago(time.Hour)}},
	}
	change(&m, &m.Containers[0])
	return m
}

func TestNewsOfAMember(t *testing.T) {
	type container = jobspecs.MemberContainer
	same := one(func(*jobspecs.Member, *container) {})
	all := several(func(m *jobspecs.Member, _, _, _ *container) { m.Phase, m.Ready = "Running", true })
	for _, c := range []struct {
		name        string
		before, now jobspecs.Member
		want        []news
	}{
		{"nothing happened", same, same, nil},
		{"it ended with an exit code", same, one(func(m *jobspecs.Member, c *container) {
			m.Phase, m.Ready, m.Reason, m.Message = "Backoff", false, runtime.ReasonExited, "it ended with exit code 3"
			c.State, c.Ready, c.ExitCode = "exited", false, code(3)
		}), []news{{warning, "Exited", "it ended with exit code 3"}}},
		{"it was restarted at once after an exit code", same, one(func(m *jobspecs.Member, c *container) {
			m.Restarts, c.Restarts, c.ExitCode = 1, 1, code(3)
		}), []news{{warning, "Restarted", "restarted: it ended with exit code 3"}}},
		{"after a signal", same, one(func(m *jobspecs.Member, c *container) {
			m.Restarts, c.Restarts, c.ExitCode, c.Signal = 1, 1, code(139), "SIGSEGV"
		}), []news{{warning, "Restarted", "restarted: it ended by signal SIGSEGV"}}},
		{"after it ran out of memory", same, one(func(m *jobspecs.Member, c *container) {
			m.Restarts, c.Restarts, c.ExitCode, c.Signal, c.OOMKilled = 1, 1, code(137), "SIGKILL", true
		}), []news{{warning, "Restarted", "restarted: it ran out of memory"}}},
		{"its liveness probe ends it", same, one(func(m *jobspecs.Member, c *container) {
			m.Phase, m.Ready, m.Reason, m.Message = "Stopping", false, runtime.ReasonLiveness, "liveness probe failed: exec false: exit code 1"
			c.Reason = runtime.ReasonLiveness
		}), []news{{warning, "LivenessFailed", "liveness probe failed: exec false: exit code 1"}}},
		{"and it was restarted for it", one(func(m *jobspecs.Member, c *container) {
			m.Phase, m.Ready, m.Reason = "Backoff", false, runtime.ReasonLiveness
			c.Reason, c.Message = runtime.ReasonLiveness, "liveness probe failed: exec false: exit code 1"
		}), one(func(m *jobspecs.Member, c *container) {
			m.Restarts, c.Restarts, c.ExitCode, c.Signal = 1, 1, code(143), "SIGTERM"
		}), []news{{warning, "Restarted", "restarted: liveness probe failed: exec false: exit code 1"}, {normal, "Ready", "is ready"}}},
		{"a trouble goes on in another phase", one(func(m *jobspecs.Member, _ *container) {
			m.Phase, m.Ready, m.Reason = "Stopping", false, runtime.ReasonLiveness
		}),
			one(func(m *jobspecs.Member, _ *container) {
				m.Phase, m.Ready, m.Reason = "Backoff", false, runtime.ReasonLiveness
			}), nil},
		{"its image begins to come", one(func(m *jobspecs.Member, _ *container) { m.Phase, m.Ready = "Pending", false }),
			one(func(m *jobspecs.Member, _ *container) { m.Phase, m.Ready = "Pulling", false }), []news{{normal, "Pulling", "pulls the image web:1"}}},
		{"its image is here", one(func(m *jobspecs.Member, _ *container) { m.Phase, m.Ready = "Pulling", false }),
			one(func(m *jobspecs.Member, _ *container) { m.Phase, m.Ready = "Starting", false }), []news{{normal, "Pulled", "the image web:1 is here"}}},
		{"its image did not come", one(func(m *jobspecs.Member, _ *container) { m.Phase, m.Ready = "Pulling", false }),
			one(func(m *jobspecs.Member, _ *container) {
				m.Phase, m.Ready, m.Reason, m.Message = "Failed", false, runtime.ReasonPullFailed, "no route to host"
			}), []news{{warning, "PullFailed", "no route to host"}}},
		{"it is unready", same, one(func(m *jobspecs.Member, _ *container) {
			m.Ready, m.Reason, m.Message = false, runtime.ReasonNotReady, "tcp: connection refused"
		}), []news{{warning, "Unready", "tcp: connection refused"}}},
		{"it was renamed and its name is taken", same, one(func(m *jobspecs.Member, _ *container) {
			m.Reason, m.Message = runtime.ReasonRenamed, "its container was renamed to mine"
		}), []news{{warning, "ContainerRenamed", "its container was renamed to mine"}}},
		{"its sandbox ended, of which the engine has a note", all, several(func(m *jobspecs.Member, _, _, _ *container) {
			m.Phase, m.Reason, m.Message = "Stopping", runtime.ReasonSandbox, "its sandbox ended"
		}), nil},
		{"an init container failed", several(func(m *jobspecs.Member, prepare, _, _ *container) {
			m.Phase = "Initializing"
			*prepare = container{Name: "prepare", Kind: jobspecs.KindInit, State: "running", StartedAt: ago(2 * time.Minute)}
		}), several(func(m *jobspecs.Member, prepare, _, _ *container) {
			m.Phase, m.Reason, m.Message = "Backoff", runtime.ReasonExited, "prepare: it ended with exit code 1"
			prepare.ExitCode, prepare.StartedAt, prepare.Reason = code(1), ago(2*time.Minute), runtime.ReasonExited
		}), []news{{warning, "InitFailed", "init prepare failed: it ended with exit code 1"}}},
		{"an init container failed once more", several(func(m *jobspecs.Member, prepare, _, _ *container) {
			m.Phase = "Initializing"
			*prepare = container{Name: "prepare", Kind: jobspecs.KindInit, State: "running", StartedAt: ago(time.Minute), ExitCode: code(1), Restarts: 1}
		}), several(func(m *jobspecs.Member, prepare, _, _ *container) {
			m.Phase, m.Reason = "Backoff", runtime.ReasonExited
			prepare.ExitCode, prepare.StartedAt, prepare.Restarts, prepare.Reason = code(1), ago(time.Minute), 1, runtime.ReasonExited
		}), []news{{warning, "InitFailed", "init prepare failed: it ended with exit code 1"}}},
		{"its next run began", several(func(m *jobspecs.Member, prepare, _, _ *container) {
			m.Phase, m.Reason = "Backoff", runtime.ReasonExited
			prepare.ExitCode, prepare.StartedAt, prepare.Reason = code(1), ago(time.Minute), runtime.ReasonExited
		}), several(func(m *jobspecs.Member, prepare, _, _ *container) {
			m.Phase = "Initializing"
			*prepare = container{Name: "prepare", Kind: jobspecs.KindInit, State: "running", StartedAt: ago(time.Second), ExitCode: code(1), Restarts: 1}
		}), nil},
		{"it failed and its next run began, between two looks", several(func(m *jobspecs.Member, prepare, _, _ *container) {
			m.Phase = "Initializing"
			*prepare = container{Name: "prepare", Kind: jobspecs.KindInit, State: "running", StartedAt: ago(time.Minute)}
		}), several(func(m *jobspecs.Member, prepare, _, _ *container) {
			m.Phase = "Initializing"
			*prepare = container{Name: "prepare", Kind: jobspecs.KindInit, State: "running", StartedAt: ago(time.Second), ExitCode: code(1), Restarts: 1}
		}), []news{{warning, "InitFailed", "init prepare failed: it ended with exit code 1"}}},
		{"a sidecar ended while the member goes on", all, several(func(m *jobspecs.Member, _, exporter, _ *container) {
			m.Phase, m.Ready = "Running", true
			exporter.State, exporter.Reason, exporter.Message = "exited", runtime.ReasonExited, "it ended with exit code 2"
		}), []news{{warning, "Exited", "sidecar exporter: it ended with exit code 2"}}},
		{"a sidecar was restarted", all, several(func(m *jobspecs.Member, _, exporter, _ *container) {
			m.Phase, m.Ready, m.Restarts = "Running", true, 1
			exporter.Restarts, exporter.ExitCode = 1, code(2)
		}), []news{{warning, "Restarted", "sidecar exporter: restarted: it ended with exit code 2"}}},
	} {
		if got := newsOf(&c.before, &c.now); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestWhatTheStoreAloneKnewIsNoNews(t *testing.T) {
	s, err := store.Open(t.TempDir(), store.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r, err := newRecorder(s, nil, func(error) {})
	if err != nil {
		t.Fatal(err)
	}
	l := newLoop(&Daemon{events: r}, web)
	status := func(phase string, ready bool) jobspecs.Status {
		return jobspecs.Status{Members: []jobspecs.Member{{Name: "web-0", Phase: phase, Ready: ready, Message: "no answer"}}}
	}
	reasons := func() (out []string) {
		all, _ := r.list()
		for _, e := range all {
			out = append(out, e.Reason)
		}
		return out
	}
	l.publish(status("Unknown", false), planner.Plan{}) // the engine did not answer yet
	l.publish(status("Running", true), planner.Plan{})
	if got := reasons(); got != nil {
		t.Errorf("after the first look: %v, want nothing", got)
	}
	l.met = true
	l.publish(status("Running", false), planner.Plan{})
	if got := reasons(); !reflect.DeepEqual(got, []string{"Unready"}) {
		t.Errorf("after the second look: %v, want Unready", got)
	}
}

func TestANoteIsRecordedOnce(t *testing.T) {
	note := func(n int, after time.Duration) runtime.Note { return runtime.Note{N: n, Time: noon.Add(after)} }
	a, b, c := note(1, 0), note(2, time.Second), note(3, 2*time.Second)
	later := note(1, time.Hour)
	for _, tc := range []struct {
		name  string
		notes []runtime.Note
		last  runtime.Note
		want  []runtime.Note
	}{
		{"none", nil, runtime.Note{}, nil},
		{"none any more", nil, b, nil},
		{"the first ones", []runtime.Note{a, b}, runtime.Note{}, []runtime.Note{a, b}},
		{"nothing new", []runtime.Note{a, b}, b, []runtime.Note{}},
		{"one more", []runtime.Note{a, b, c}, b, []runtime.Note{c}},
		{"the last one is no longer kept", []runtime.Note{b, c}, a, []runtime.Note{b, c}},
		{"another pod of that name", []runtime.Note{later}, b, []runtime.Note{later}},
		{"another pod of that name with as many", []runtime.Note{later, note(2, time.Hour)}, b, []runtime.Note{later, note(2, time.Hour)}},
	} {
		if got := unnoted(tc.notes, tc.last); !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}

func TestNotesBecomeEvents(t *testing.T) {
	s, err := store.Open(t.TempDir(), store.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	synctest.Test(t, func(t *testing.T) {
		r, err := newRecorder(s, nil, func(error) {})
		if err != nil {
			t.Fatal(err)
		}
		l := &loop{d: &Daemon{events: r}, key: web}
		pod := runtime.Pod{Name: "web-0", Containers: make([]runtime.Container, 2), Notes: []runtime.Note{
			{N: 1, Time: noon, Container: "web", Warning: true, Reason: "PreStopFailed", Message: "exec false: exit code 1"},
		}}
		first := time.Now().UTC()
		l.tellNotes([]runtime.Pod{pod})
		l.tellNotes([]runtime.Pod{pod})
		time.Sleep(time.Minute)
		pod.Notes = append(pod.Notes,
			runtime.Note{N: 2, Time: noon, Container: "web", Warning: true, Reason: "PreStopFailed", Message: "exec false: exit code 1"},
			runtime.Note{N: 3, Time: noon, Reason: "Killed", Message: "after its grace of 30s"})
		l.tellNotes([]runtime.Pod{pod})
		var got []jobspecs.Event
		all, _ := r.list()
		for _, e := range all {
			got = append(got, e.Event)
		}
		want := []jobspecs.Event{
			{Time: first.Add(time.Minute), FirstTime: first, Namespace: "default", Set: "web", Member: "web-0", Type: warning, Reason: "PreStopFailed", Message: "container web: exec false: exit code 1", Count: 2},
			{Time: first.Add(time.Minute), FirstTime: first.Add(time.Minute), Namespace: "default", Set: "web", Member: "web-0", Type: normal, Reason: "Killed", Message: "after its grace of 30s", Count: 1},
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("events = %+v\nwant     %+v", got, want)
		}
	})
}

func TestTheEventsOfADeletedSetOfTheSameNameAreNotCounted(t *testing.T) {
	play(t, func(s *stage) {
		for range 2 {
			s.events.record(web, "web-0", warning, "Exited", "it ended with exit code 1")
		}
		s.events.record(web, "", normal, deleted, "the set is deleted")
		s.events.record(web, "web-0", warning, "Exited", "it ended with exit code 1")
		all, _ := s.events.list()
		var counts []int
		for _, e := range all {
			if e.Reason == "Exited" {
				counts = append(counts, e.Count)
			}
		}
		if want := []int{2, 1}; !slices.Equal(counts, want) {
			t.Errorf("counts = %v, want %v", counts, want)
		}
	})
}
