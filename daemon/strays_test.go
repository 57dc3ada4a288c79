package daemon

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

func TestStraysAreListedAndEveryVerbSaysWhatTheyAre(t *testing.T) {
	play(t, func(s *stage) {
		s.apply(pair(""))
		if _, err := s.Delete(t.Context(), web, client.DeleteRequest{Orphan: true}); err != nil {
			t.Fatal(err)
		}
		s.settle()
		list, err := s.Members(t.Context(), jobspecs.DefaultNamespace)
		if err != nil || len(list) != 2 {
			t.Fatalf("members: %+v, %v", list, err)
		}
		for i, m := range list {
			if m.Name != jobspecs.MemberName("web", i) || m.Phase != string(runtime.Running) || m.Reason != stateStray || m.Ready || m.Available { // nobody asks it whether it is ready
				t.Errorf("stray %+v", m)
			}
		}
		if other, err := s.Members(t.Context(), "elsewhere"); err != nil || len(other) != 0 {
			t.Errorf("strays of another namespace: %+v, %v", other, err)
		}
		pod := runtime.PodName{Namespace: jobspecs.DefaultNamespace, Name: "web-0"}
		for verb, do := range map[string]func() error{
			"status":      func() error { _, err := s.Status(t.Context(), web); return err },
			"watch":       func() error { _, err := s.WatchStatus(t.Context(), web); return err },
			"history":     func() error { _, err := s.History(t.Context(), web); return err },
			"source":      func() error { _, err := s.Source(t.Context(), web); return err },
			"delete":      func() error { _, err := s.Delete(t.Context(), web, client.DeleteRequest{}); return err },
			"scale":       func() error { return s.scale(3, client.Write{}) },
			"restart":     func() error { return s.members("restart", client.Write{}, 0) },
			"explain":     func() error { _, err := s.Explain(t.Context(), pod.Namespace, "web-0"); return err },
			"explain set": func() error { _, err := s.Explain(t.Context(), pod.Namespace, "web"); return err },
			"logs":        func() error { return s.Logs(t.Context(), pod, runtime.LogOptions{}, io.Discard, io.Discard) },
			"exec": func() error {
				_, err := s.Exec(t.Context(), pod, runtime.ExecOptions{Command: []string{"true"}})
				return err
			},
		} {
			var p *client.Problem
			err := do()
			if !errors.As(err, &p) || p.Type != client.ProblemNotFound || p.Title != "web is not stored; its members run as strays" ||
				!strings.HasPrefix(p.Detail, "stsd apply FILE") || !strings.Contains(p.Detail, "docker rm -f ") {
				t.Errorf("%s: %v", verb, err)
			}
		}
		s.apply(pair(""))
		want(t, "taken over", s.names(), "web-0 Running true, web-1 Running true")
		if list, err := s.Members(t.Context(), ""); err != nil || len(list) != 2 || list[0].Reason == stateStray {
			t.Errorf("members after the take-over: %+v, %v", list, err)
		}
	})
}

func TestHintsNameTheNamespace(t *testing.T) {
	play(t, func(s *stage) {
		s.apply(strings.Replace(pair(""), "replicas = 2", "replicas = 2\nnamespace = \"prod\"", 1))
		for member, hint := range map[string]string{"web-7": "stsd ps prod/web", "web": "stsd explain prod/web-0, or stsd status prod/web for the set"} {
			var p *client.Problem
			if _, err := s.Explain(t.Context(), "prod", member); !errors.As(err, &p) || p.Detail != hint {
				t.Errorf("explain %s: %v, want %s", member, err, hint)
			}
		}
		var p *client.Problem
		key := jobspecs.Key{Namespace: "prod", Name: "web"}
		if _, err := s.ChangeMembers(t.Context(), key, client.MembersRequest{Do: "restart", Ordinals: []int{7}}); !errors.As(err, &p) || p.Detail != "stsd ps prod/web" {
			t.Errorf("restart web-7: %v", err)
		}
	})
}

func TestAHookThatBeginsAgainIsCounted(t *testing.T) {
	play(t, func(s *stage) {
		for range 5 {
			s.events.record(web, "web-0", normal, hookRuns, "run hook prepare")
		}
		s.events.record(web, "web-0", normal, "Ready", "is ready")
		s.events.record(web, "web-0", normal, "Ready", "is ready")
		all, _ := s.events.list()
		if len(all) != 3 || all[0].Reason != hookRuns || all[0].Count != 5 {
			t.Errorf("events: %+v", all)
		}
	})
}
