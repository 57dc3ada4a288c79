package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/daemon/store"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime/sim"
)

// stage is a daemon on the simulator.
type stage struct {
	*Daemon
	t     *testing.T
	world *sim.World
}

// play runs f against a daemon, in a bubble of its own time.
func play(t *testing.T, f func(*stage)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := &stage{t: t}
		d, err := New(Config{
			DataDir: dir, DNSOff: true, Store: store.Options{NoSync: true},
			Engine: func(id string, _ Hooks) (Parts, error) {
				s.world = sim.New(sim.Config{Daemon: id})
				for _, ref := range []string{"web:1", "web:2"} {
					s.world.Program(ref, sim.Program{})
				}
				e := sim.NewEngine(s.world)
				return Parts{Engine: e, Volumes: s.world.Volumes(), Run: e.Run, Name: func(context.Context) (string, error) { return "sim", nil }}, nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		s.Daemon = d
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- d.Run(ctx) }()
		s.settle()
		f(s)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// settle lets a minute pass.
func (s *stage) settle() {
	time.Sleep(time.Minute)
	synctest.Wait()
}

var web = jobspecs.Key{Namespace: "default", Name: "web"}

func request(text string, vars ...string) client.ApplyRequest {
	in := jobspecs.Inputs{Vars: map[string]json.RawMessage{}}
	for _, v := range vars {
		name, value, _ := strings.Cut(v, "=")
		in.Vars[name], _ = json.Marshal(value)
	}
	return client.ApplyRequest{Scopes: []client.Scope{{Sources: []jobspecs.Source{{Name: "web.hcl", Text: []byte(text)}}, Inputs: in}}}
}

func (s *stage) apply(text string, vars ...string) client.Result {
	s.t.Helper()
	r, err := s.Apply(s.t.Context(), request(text, vars...))
	if err != nil {
		s.t.Fatalf("apply: %v", err)
	}
	s.settle()
	return r.Results[0]
}

func (s *stage) status() jobspecs.Status {
	s.t.Helper()
	st, err := s.Status(s.t.Context(), web)
	if err != nil {
		s.t.Fatal(err)
	}
	return st
}

func (s *stage) images() string {
	var out []string
	for _, m := range s.status().Members {
		out = append(out, m.Image)
	}
	return strings.Join(out, " ")
}

const twoWebs = `
variable "image" { type = string }
statefulset "web" {
  replicas = 2
  container "web" { image = var.image }
}`

func TestAVariableThatIsNotGivenAgainKeepsItsValue(t *testing.T) {
	play(t, func(s *stage) {
		s.apply(twoWebs, "image=web:2")
		r := s.apply(twoWebs)
		if r.Changed || s.images() != "web:2 web:2" {
			t.Errorf("changed = %v, images = %s", r.Changed, s.images())
		}
		p, err := s.Plan(t.Context(), request(twoWebs))
		if err != nil || len(p.Plans[0].Warnings) == 0 || !strings.Contains(p.Plans[0].Warnings[0], "image") {
			t.Errorf("plan = %+v, %v: it must say that the value is kept", p, err)
		}
	})
}

func TestAMissingVariableOfANewSetIsAnError(t *testing.T) {
	play(t, func(s *stage) {
		var p *client.Problem
		if _, err := s.Apply(t.Context(), request(twoWebs)); !errors.As(err, &p) || p.Type != client.ProblemInvalid || len(p.Diagnostics) == 0 {
			t.Errorf("apply = %v", err)
		}
	})
}

func TestOverridesLastUntilAnApplyThatDiffers(t *testing.T) {
	play(t, func(s *stage) {
		s.apply(twoWebs, "image=web:1")
		if _, err := s.Scale(t.Context(), web, client.ScaleRequest{Replicas: 3}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.SetImage(t.Context(), web, client.ImageRequest{Images: map[string]string{"": "web:2"}}); err != nil {
			t.Fatal(err)
		}
		s.settle()
		if s.images() != "web:2 web:2 web:2" || s.status().Overrides == nil {
			t.Errorf("images = %s, overrides = %v", s.images(), s.status().Overrides)
		}
		if r := s.apply(strings.ReplaceAll(twoWebs, "\n", "\n\n"), "image=web:1"); r.Changed {
			t.Error("an apply of the same content changed something")
		}
		s.apply(strings.Replace(twoWebs, "replicas = 2", "replicas = 2\n  termination_grace = \"5s\"", 1), "image=web:1")
		if s.images() != "web:1 web:1" || s.status().Overrides != nil {
			t.Errorf("images = %s, overrides = %v", s.images(), s.status().Overrides)
		}
	})
}

func TestUndoGoesBackAndForth(t *testing.T) {
	play(t, func(s *stage) {
		s.apply(twoWebs, "image=web:1")
		s.apply(twoWebs, "image=web:2")
		for _, want := range []string{"web:1 web:1", "web:2 web:2"} {
			if _, err := s.Rollout(t.Context(), web, client.RolloutRequest{Do: "undo"}); err != nil {
				t.Fatal(err)
			}
			s.settle()
			if s.images() != want {
				t.Errorf("images = %s, want %s", s.images(), want)
			}
		}
		h, err := s.History(t.Context(), web)
		if err != nil || len(h) != 2 || h[0].Number != 3 || h[1].Number != 4 {
			t.Errorf("history = %+v, %v: going back renumbers, and makes no revision", h, err)
		}
	})
}

func TestAnUpdateThatIsTakenBackCountsNoRestart(t *testing.T) {
	play(t, func(s *stage) {
		s.apply(twoWebs, "image=web:1")
		s.apply(twoWebs, "image=nowhere:1")
		s.apply(twoWebs, "image=web:1")
		for _, m := range s.status().Members {
			if m.Restarts != 0 || !m.Available {
				t.Errorf("%s: %d restarts, available %v", m.Name, m.Restarts, m.Available)
			}
		}
	})
}

func TestAPlanWarnsOfTheImageThatIsComing(t *testing.T) {
	play(t, func(s *stage) {
		s.apply(twoWebs, "image=web:1")
		p, err := s.Plan(t.Context(), request(twoWebs, "image=nowhere:1"))
		if err != nil || !strings.Contains(strings.Join(p.Plans[0].Warnings, "\n"), "nowhere:1") {
			t.Errorf("warnings = %q, %v", p.Plans[0].Warnings, err)
		}
		s.apply(twoWebs, "image=nowhere:1")
		p, err = s.Plan(t.Context(), request(twoWebs, "image=web:1"))
		if err != nil || strings.Contains(strings.Join(p.Plans[0].Warnings, "\n"), "nowhere:1") {
			t.Errorf("warnings = %q, %v", p.Plans[0].Warnings, err)
		}
	})
}

func TestKeptOverridesAreSaid(t *testing.T) {
	play(t, func(s *stage) {
		s.apply(twoWebs, "image=web:1")
		if _, err := s.Scale(t.Context(), web, client.ScaleRequest{Replicas: 3}); err != nil {
			t.Fatal(err)
		}
		p, err := s.Plan(t.Context(), request(twoWebs, "image=web:1"))
		if err != nil || !strings.Contains(strings.Join(p.Plans[0].Warnings, "\n"), "replicas = 3") {
			t.Errorf("warnings = %q, %v", p.Plans[0].Warnings, err)
		}
		if r := s.apply(twoWebs, "image=web:1"); !strings.Contains(r.Message, "replicas = 3") {
			t.Errorf("message = %q", r.Message)
		}
	})
}

func TestALostVolumeIsGivenUpByName(t *testing.T) {
	const spec = `
statefulset "web" {
  replicas = 2
  volume "data" {}
  container "web" {
    image = "web:1"
    mount "data" { path = "/data" }
  }
}`
	play(t, func(s *stage) {
		s.apply(spec)
		s.world.RemoveContainer("web-1")
		s.world.RemoveVolume("data-web-1")
		s.settle()
		if m := s.status().Members[1]; m.Reason != "VolumeLost" || m.Available {
			t.Errorf("web-1 = %+v", m)
		}
		r := client.FreshVolumeRequest{Ordinal: 1}
		var p *client.Problem
		if _, err := s.FreshVolume(t.Context(), web, r); !errors.As(err, &p) || p.Type != client.ProblemUnconfirmed {
			t.Errorf("unconfirmed: %v", err)
		}
		r.Yes = true
		if _, err := s.FreshVolume(t.Context(), web, client.FreshVolumeRequest{Write: r.Write, Ordinal: 7}); !errors.As(err, &p) || p.Type != client.ProblemNotFound {
			t.Errorf("a member that is not there: %v", err)
		}
		if _, err := s.FreshVolume(t.Context(), web, r); err != nil {
			t.Fatal(err)
		}
		s.settle()
		if st := s.status(); st.AvailableReplicas != 2 {
			t.Errorf("status = %+v", st)
		}
	})
}

func TestATagThatMovedIsANewRevision(t *testing.T) {
	play(t, func(s *stage) {
		first := s.apply(twoWebs, "image=web:1")
		if r := s.apply(twoWebs, "image=web:1"); r.Changed {
			t.Error("nothing moved, and the apply changed something")
		}
		s.world.Program("web:1", sim.Program{}) // another image of the same name
		second := s.apply(twoWebs, "image=web:1")
		if !second.Changed || second.Revision == first.Revision {
			t.Errorf("first %+v, second %+v", first, second)
		}
		for _, m := range s.status().Members {
			if m.Revision != second.Revision || !m.Available {
				t.Errorf("%s runs %s, available %v", m.Name, m.Revision, m.Available)
			}
		}
	})
}

func TestRestartMakesEveryMemberAnewAndSurvivesAnEqualApply(t *testing.T) {
	play(t, func(s *stage) {
		s.apply(twoWebs, "image=web:1")
		before := s.status().UpdateRevision
		if _, err := s.Rollout(t.Context(), web, client.RolloutRequest{Do: "restart"}); err != nil {
			t.Fatal(err)
		}
		s.settle()
		after := s.status()
		if after.UpdateRevision == before || after.UpdatedReplicas != 2 || after.AvailableReplicas != 2 {
			t.Errorf("status = %+v", after)
		}
		if r := s.apply(twoWebs, "image=web:1"); r.Changed {
			t.Error("an equal apply rolled the set again")
		}
	})
}

func TestAWriteThatSawAnotherGenerationIsRefused(t *testing.T) {
	play(t, func(s *stage) {
		s.apply(twoWebs, "image=web:1")
		r := client.ScaleRequest{Replicas: 3, Write: client.Write{Expect: map[string]int64{web.String(): 7}}}
		var p *client.Problem
		if _, err := s.Scale(t.Context(), web, r); !errors.As(err, &p) || p.Type != client.ProblemChanged {
			t.Errorf("scale = %v", err)
		}
	})
}

func TestAnOrphanedSetIsTakenOverWithoutARestart(t *testing.T) {
	play(t, func(s *stage) {
		s.apply(twoWebs, "image=web:1")
		ids := containers(s)
		if _, err := s.Delete(t.Context(), web, client.DeleteRequest{Orphan: true}); err != nil {
			t.Fatal(err)
		}
		s.settle()
		if got := containers(s); got != ids {
			t.Errorf("containers = %s, want %s: orphans run on", got, ids)
		}
		s.apply(twoWebs, "image=web:1")
		if got := containers(s); got != ids || s.status().AvailableReplicas != 2 {
			t.Errorf("containers = %s, want %s; status %+v", got, ids, s.status())
		}
	})
}

// Members that are left alone are: what ends stays down, until a set takes them over.
func TestOrphansAreNotStartedAgain(t *testing.T) {
	play(t, func(s *stage) {
		s.apply(twoWebs, "image=web:1")
		if _, err := s.Delete(t.Context(), web, client.DeleteRequest{Orphan: true}); err != nil {
			t.Fatal(err)
		}
		s.settle()
		s.world.Kill("web-0")
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		var states []string
		for _, c := range s.world.Containers() {
			states = append(states, c.Name+" "+c.State)
		}
		want(t, "containers", strings.Join(states, ", "), "web-0 exited, web-1 running")
		s.apply(twoWebs, "image=web:1")
		s.settle()
		want(t, "members", s.names(), "web-0 Running true, web-1 Running true")
	})
}

func containers(s *stage) string {
	var ids []string
	for _, c := range s.world.Containers() {
		ids = append(ids, c.Name+"="+c.ID)
	}
	return strings.Join(ids, " ")
}

func TestDryRunsWriteNothing(t *testing.T) {
	play(t, func(s *stage) {
		s.apply(twoWebs, "image=web:1")
		before, writes := s.status(), len(s.world.Writes())
		dry := client.Write{DryRun: true}
		r := request(twoWebs, "image=web:2")
		r.DryRun = true
		if _, err := s.Apply(t.Context(), r); err != nil {
			t.Error(err)
		}
		for name, err := range map[string]error{
			"scale":   second(s.Scale(t.Context(), web, client.ScaleRequest{Write: dry, Replicas: 5})),
			"image":   second(s.SetImage(t.Context(), web, client.ImageRequest{Write: dry, Images: map[string]string{"web": "web:2"}})),
			"restart": second(s.Rollout(t.Context(), web, client.RolloutRequest{Write: dry, Do: "restart"})),
			"delete":  second(s.Delete(t.Context(), web, client.DeleteRequest{Write: dry})),
		} {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		s.settle()
		if after := s.status(); after.Generation != before.Generation || after.UpdateRevision != before.UpdateRevision || len(s.world.Writes()) != writes {
			t.Errorf("generation %d → %d, %d → %d engine writes", before.Generation, after.Generation, writes, len(s.world.Writes()))
		}
	})
}

func second[T any](_ T, err error) error { return err }
