package daemon

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/daemon/planner"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime/sim"
)

const oneVolume = `
statefulset "web" {
  replicas = 2
  volume "data" {}
  container "web" {
    image = "web:1"
    mount "data" { path = "/data" }
  }
}`

// end makes the set go, one way or the other, and the pods of an orphan by hand.
func (s *stage) end(r client.DeleteRequest) {
	s.t.Helper()
	r.Yes = true
	if _, err := s.Delete(s.t.Context(), web, r); err != nil {
		s.t.Fatal(err)
	}
	s.settle()
	if r.Orphan {
		s.world.RemoveContainer("web-0")
		s.world.RemoveContainer("web-1")
		s.settle()
	}
	if _, err := s.Status(s.t.Context(), web); err == nil {
		s.t.Fatal("the set is still there")
	}
}

func TestASetThatIsAppliedAgainKnowsItsVolumes(t *testing.T) {
	for name, r := range map[string]client.DeleteRequest{"deleted": {}, "orphaned": {Orphan: true}} {
		t.Run(name, func(t *testing.T) {
			play(t, func(s *stage) {
				s.apply(oneVolume)
				s.end(r)
				s.world.RemoveVolume("data-web-1")
				p, err := s.Plan(t.Context(), request(oneVolume))
				if err != nil || planned(p, "web-1") != "held back: volume data-web-1 held data and is gone" {
					t.Errorf("plan of web-1 = %q, %v", planned(p, "web-1"), err)
				}
				s.apply(oneVolume)
				st := s.status()
				if !st.Members[0].Available || st.Members[1].Reason != planner.ReasonVolumeLost {
					t.Errorf("web-0 available %v, web-1 %s: %s", st.Members[0].Available, st.Members[1].Reason, st.Members[1].Message)
				}
				if rec, err := s.store.Get(web); err != nil || !rec.Formed {
					t.Errorf("formed = %v, %v: it must not bootstrap twice", rec.Formed, err)
				}
			})
		})
	}
}

// What `delete` says is kept is kept by a smaller set of that name too, whatever it
// says of volumes that its own members leave.
func TestASmallerSetOfThatNameKeepsTheVolumesOfTheFormerOne(t *testing.T) {
	text := func(replicas string) string {
		return strings.NewReplacer("replicas = 2", "replicas = "+replicas, `volume "data" {}`, `volume "data" { on_scale_down = "delete" }`).Replace(oneVolume)
	}
	play(t, func(s *stage) {
		there := func(what, want string) {
			t.Helper()
			var names []string
			for _, d := range s.world.Disks() {
				names = append(names, d.Name)
			}
			if got := strings.Join(names, " "); got != want {
				t.Errorf("%s: volumes are %q, want %q", what, got, want)
			}
		}
		four := "data-web-0 data-web-1 data-web-2 data-web-3"
		s.apply(text("4"))
		s.end(client.DeleteRequest{})
		if p, err := s.Plan(t.Context(), request(text("2"))); err != nil || len(p.Plans) != 1 || slices.ContainsFunc(p.Plans[0].Steps, func(step jobspecs.Step) bool { return step.Op == jobspecs.OpDeleteVolume }) {
			t.Errorf("plan = %+v, %v", p.Plans, err)
		}
		s.apply(text("2"))
		there("a smaller one", four)
		s.end(client.DeleteRequest{})
		there("deleted again", four)
		s.apply(text("3"))
		if _, err := s.Scale(t.Context(), web, client.ScaleRequest{Replicas: 2, Write: client.Write{Yes: true}}); err != nil {
			t.Fatal(err)
		}
		s.settle()
		there("a member had it again", "data-web-0 data-web-1 data-web-3")
		s.end(client.DeleteRequest{Volumes: jobspecs.Delete})
		there("deleted with its volumes", "")
	})
}

func planned(p client.PlanResponse, member string) string {
	for _, plan := range p.Plans {
		for _, step := range plan.Steps {
			if step.Member == member && step.Volume == "" {
				return step.Why
			}
		}
	}
	return ""
}

func TestASetWhoseVolumesWentWithItStartsAfresh(t *testing.T) {
	play(t, func(s *stage) {
		s.apply(oneVolume)
		s.end(client.DeleteRequest{Volumes: "delete"})
		if records, formed, err := s.store.Former(web); err != nil || formed || len(records) != 0 {
			t.Errorf("former = %v, %v, %v", records, formed, err)
		}
		s.apply(oneVolume)
		if st := s.status(); st.AvailableReplicas != 2 {
			t.Errorf("status = %+v", st)
		}
	})
}

func TestAVolumeThatIsLostUnderACrashedMemberHoldsItAndCanBeGivenUp(t *testing.T) {
	play(t, func(s *stage) {
		s.apply(oneVolume)
		s.world.RemoveVolume("data-web-1")
		s.world.Fail(sim.Fault{Verb: "create", Name: "web-1", Times: -1, Err: errors.New("volume data-web-1 is gone")})
		s.world.Kill("web-1")
		s.settle()
		m := s.status().Members[1]
		if m.Reason != planner.ReasonVolumeLost || m.Available {
			t.Fatalf("web-1 = %s (%s): %s", m.Phase, m.Reason, m.Message)
		}
		r := client.FreshVolumeRequest{Ordinal: 1, Write: client.Write{Yes: true}}
		s.world.Mend()
		if _, err := s.FreshVolume(t.Context(), web, r); err != nil {
			t.Fatal(err)
		}
		s.settle()
		if st := s.status(); st.AvailableReplicas != 2 {
			t.Errorf("web-1 = %+v", st.Members[1])
		}
		var p *client.Problem
		r.Yes = false
		if _, err := s.FreshVolume(t.Context(), web, r); !errors.As(err, &p) || p.Type != client.ProblemUnconfirmed {
			t.Errorf("what it holds now: %v", err)
		}
	})
}
