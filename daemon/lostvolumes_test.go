package daemon

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/daemon/planner"
	"github.com/stsd/stsd/jobspecs"
)

// loses is a set whose web-1 has neither container nor volume any more.
func (s *stage) loses() {
	s.t.Helper()
	s.apply(oneVolume)
	s.world.RemoveContainer("web-1")
	s.world.RemoveVolume("data-web-1")
	s.settle()
	if m := s.status().Members[1]; m.Reason != planner.ReasonVolumeLost {
		s.t.Fatalf("web-1 = %+v, want VolumeLost", m)
	}
}

func (s *stage) explains(member string) jobspecs.Explanation {
	s.t.Helper()
	e, err := s.Explain(s.t.Context(), jobspecs.DefaultNamespace, member)
	if err != nil {
		s.t.Fatal(err)
	}
	return e
}

// labelsOf are those that a docker command line gives.
func labelsOf(line string) map[string]string {
	labels := map[string]string{}
	words := strings.Fields(line)
	for i, w := range words {
		if w == "--label" {
			k, v, _ := strings.Cut(words[i+1], "=")
			labels[k] = v
		}
	}
	return labels
}

func TestALostVolumeComesBackAsExplainSays(t *testing.T) {
	play(t, func(s *stage) {
		s.loses()
		e := s.explains("web-1")
		want(t, "state", e.State, "web-1 is not created yet (VolumeLost)")
		i := slices.IndexFunc(e.Next, func(n string) bool { return strings.HasPrefix(n, "docker volume create ") })
		if i != 1 || !strings.Contains(e.Next[i], " data-web-1, and restore") {
			t.Fatalf("next: %q", e.Next)
		}
		if err := s.members("stop", client.Write{}, 1); err != nil {
			t.Fatal(err)
		}
		s.world.ForeignVolume("data-web-1", labelsOf(e.Next[i]))
		s.settle()
		want(t, "while it is restored", s.names(), "web-0 Running true, web-1 Stopped false")
		if err := s.members("start", client.Write{}, 1); err != nil {
			t.Fatal(err)
		}
		want(t, "then", s.names(), "web-0 Running true, web-1 Running true")
	})
}

func TestAForeignVolumeInThePlaceOfALostOneIsNamed(t *testing.T) {
	play(t, func(s *stage) {
		s.loses()
		s.world.ForeignVolume("data-web-1", nil)
		s.settle()
		e := s.explains("web-1")
		if because := strings.Join(e.Because, "\n"); !strings.Contains(because, "volume data-web-1 exists but is not stsd's (made by somebody else)") {
			t.Errorf("because: %s", because)
		}
		if next := strings.Join(e.Next, "\n"); !strings.Contains(next, "docker volume rm data-web-1, when what it holds is saved") {
			t.Errorf("next: %s", next)
		}
		before := s.status()
		var p *client.Problem
		_, err := s.FreshVolume(t.Context(), web, client.FreshVolumeRequest{Ordinal: 1, Write: client.Write{Yes: true}})
		if !errors.As(err, &p) || p.Type != client.ProblemConflict || !strings.HasPrefix(p.Detail, "docker volume rm data-web-1") {
			t.Fatalf("fresh volume: %v", err)
		}
		s.settle()
		if st := s.status(); st.Generation != before.Generation || st.Members[1].Reason != planner.ReasonVolumeLost {
			t.Errorf("generation %d, was %d; web-1 %s", st.Generation, before.Generation, st.Members[1].Reason)
		}
		s.world.RemoveVolume("data-web-1")
		if _, err := s.FreshVolume(t.Context(), web, client.FreshVolumeRequest{Ordinal: 1, Write: client.Write{Yes: true}}); err != nil {
			t.Fatal(err)
		}
		s.settle()
		want(t, "members", s.names(), "web-0 Running true, web-1 Running true")
	})
}

func TestALostVolumeIsSaidOnce(t *testing.T) {
	play(t, func(s *stage) {
		s.loses()
		m, c := s.status().Members[1], s.condition(jobspecs.CondStalled)
		for _, text := range []string{m.Message, c.Message} {
			if strings.Contains(text, m.Reason) || !strings.Contains(text, "volume data-web-1 held data and is gone") {
				t.Errorf("%q repeats its reason, or does not say it", text)
			}
		}
	})
}
