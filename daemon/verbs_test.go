package daemon

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime/sim"
)

func TestASetHasNoMoreMembersThanASpecMaySay(t *testing.T) {
	play(t, func(s *stage) {
		s.apply(twoWebs, "image=web:1")
		var p *client.Problem
		_, err := s.Scale(t.Context(), web, client.ScaleRequest{Replicas: jobspecs.MaxReplicas, Relative: true})
		if !errors.As(err, &p) || p.Type != client.ProblemInvalid || p.Title != "replicas must be between 0 and 10000, not 10002" {
			t.Errorf("scale = %v", err)
		}
		if got := s.status().Replicas; got != 2 {
			t.Errorf("replicas = %d, want the 2 of before", got)
		}
	})
}

// undo goes back, or says why not.
func (s *stage) undo(r client.RolloutRequest) string {
	r.Do = "undo"
	_, err := s.Rollout(s.t.Context(), web, r)
	s.settle()
	var p *client.Problem
	if errors.As(err, &p) {
		return p.Title + ": " + p.Detail
	}
	return fmt.Sprint(err)
}

func TestUndoSkipsWhatWasRolledBackFrom(t *testing.T) {
	play(t, func(s *stage) {
		s.broken()
		s.world.Program("web:3", sim.Program{NeverReady: true})
		s.world.Program("web:0", sim.Program{})
		text := ready("update {\ndeadline = \"5m\"\non_failure = \"rollback\"\n}")
		fails := func(image string) client.Result {
			r := s.apply(text, "image="+image)
			time.Sleep(6 * time.Minute)
			s.settle()
			want(t, "images after "+image, s.images(), "web:1 web:1")
			return r
		}
		first := s.apply(text, "image=web:1")
		second := fails("web:2")
		before := s.status().Generation
		refused := fmt.Sprintf("already rolled back from %s to %s; stsd rollout resume web or stsd rollout undo web --to 2 tries it again", second.Revision, first.Revision)
		for _, dry := range []bool{true, false} {
			if got := s.undo(client.RolloutRequest{Write: client.Write{DryRun: dry}}); !strings.Contains(got, refused) {
				t.Errorf("undo, dry run %v = %q, want %q", dry, got, refused)
			}
		}
		if after := s.status().Generation; after != before {
			t.Errorf("generation %d → %d", before, after)
		}

		fails("web:3") // the one before that failed, too, and is not forgotten
		if got := s.undo(client.RolloutRequest{}); !strings.Contains(got, "already rolled back") {
			t.Errorf("undo after a second failure = %q", got)
		}
		s.apply(text, "image=web:0")
		want(t, "undo", s.undo(client.RolloutRequest{}), "<nil>")
		want(t, "images after undo", s.images(), "web:1 web:1")
		want(t, "undo of the undo", s.undo(client.RolloutRequest{}), "<nil>")
		want(t, "images after that", s.images(), "web:0 web:0")
	})
}

func TestARevisionThatFailedIsTriedAgainByNumberAndIsGoodOnceItWasComplete(t *testing.T) {
	play(t, func(s *stage) {
		s.world.Program("web:2", sim.Program{ReadyAfter: 6 * time.Minute})
		within := func(deadline string) string {
			return ready("update {\ndeadline = \"" + deadline + "\"\non_failure = \"rollback\"\n}")
		}
		s.apply(within("5m"), "image=web:1")
		s.apply(within("5m"), "image=web:2")
		time.Sleep(6 * time.Minute)
		s.settle()
		want(t, "images when it is late", s.images(), "web:1 web:1")
		want(t, "undo --to", s.undo(client.RolloutRequest{To: 2}), "<nil>")
		want(t, "images when it is tried again", s.images(), "web:1 web:2")
		time.Sleep(6 * time.Minute)
		s.settle()
		want(t, "images when it is late again", s.images(), "web:1 web:1")
		s.apply(within("30m"), "image=web:2")
		time.Sleep(15 * time.Minute)
		s.settle()
		want(t, "images when it has the time", s.images(), "web:2 web:2")
		want(t, "undo", s.undo(client.RolloutRequest{}), "<nil>")
		want(t, "images after undo", s.images(), "web:1 web:1")
		want(t, "undo of the undo", s.undo(client.RolloutRequest{}), "<nil>")
		want(t, "images of the one that was complete", s.images(), "web:1 web:2")
	})
}

func TestHistoryShowsTheImageThatWasSet(t *testing.T) {
	play(t, func(s *stage) {
		s.apply(twoWebs, "image=web:1")
		if _, err := s.SetImage(t.Context(), web, client.ImageRequest{Images: map[string]string{"": "web:2"}}); err != nil {
			t.Fatal(err)
		}
		rows, err := s.History(t.Context(), web)
		if err != nil || len(rows) != 2 {
			t.Fatalf("history = %+v, %v", rows, err)
		}
		want(t, "the first", string(rows[0].Source[0].Text), twoWebs)
		want(t, "the second", string(rows[1].Source[0].Text), strings.Replace(twoWebs, "image = var.image", `image = "web:2" /* set image; the file says var.image */`, 1))
	})
}

// Images that are set on top of a revision that was gone back to leave its other ones.
func TestAnImageSetAfterAnUndoStandsOnTopOfThatRevision(t *testing.T) {
	const text = "statefulset \"web\" {\ncontainer \"a\" {\nimage = \"web:1\"\n}\ncontainer \"b\" {\nimage = \"web:1\"\n}\n}\n"
	play(t, func(s *stage) {
		set := func(container string) client.Result {
			r, err := s.SetImage(t.Context(), web, client.ImageRequest{Images: map[string]string{container: "web:2"}})
			if err != nil {
				t.Fatal(err)
			}
			s.settle()
			return r
		}
		s.apply(text)
		second := set("a")
		third := set("b")
		want(t, "undo", s.undo(client.RolloutRequest{}), "<nil>")
		if again := set("b"); again.Revision != third.Revision {
			t.Errorf("the same images are revision %s, and were %s", again.Revision, third.Revision)
		}
		kept := fmt.Sprintf(`kept on top of the file: the template of %s (rolled back) with container.b.image = "web:2"; applying a changed file drops it`, second.Revision)
		want(t, "overrides", s.status().Overrides.Kept(), kept)
		if r := s.apply(text); r.Changed || r.Message != "web unchanged; "+kept {
			t.Errorf("equal apply = %+v", r)
		}
	})
}

func TestADryRunSaysThatTheRolloutStandsStill(t *testing.T) {
	play(t, func(s *stage) {
		dry := func() []string {
			r, err := s.SetImage(t.Context(), web, client.ImageRequest{Write: client.Write{DryRun: true}, Images: map[string]string{"": "web:2"}})
			if err != nil {
				t.Fatal(err)
			}
			return r.Plan.Warnings
		}
		s.apply(twoWebs, "image=web:1")
		if got := dry(); len(got) != 0 {
			t.Errorf("warnings = %q", got)
		}
		if _, err := s.Rollout(t.Context(), web, client.RolloutRequest{Do: "pause"}); err != nil {
			t.Fatal(err)
		}
		paused := []string{"the rollout is paused: no outdated member is replaced until stsd rollout resume web"}
		if got := dry(); !reflect.DeepEqual(got, paused) {
			t.Errorf("warnings = %q, want %q", got, paused)
		}
		r, err := s.Scale(t.Context(), web, client.ScaleRequest{Write: client.Write{DryRun: true}, Replicas: 2})
		if err != nil || !reflect.DeepEqual(r.Plan.Warnings, paused) {
			t.Errorf("scale: warnings = %q, %v, want %q", r.Plan.Warnings, err, paused)
		}
	})
}

func TestADryRunSaysThatTheRolloutFailed(t *testing.T) {
	play(t, func(s *stage) {
		s.broken()
		text := ready("update {\ndeadline = \"5m\"\n}")
		s.apply(text)
		s.apply(text, "image=web:2")
		time.Sleep(5 * time.Minute)
		s.settle()
		r, err := s.Scale(t.Context(), web, client.ScaleRequest{Write: client.Write{DryRun: true}, Replicas: 3})
		if err != nil || len(r.Plan.Warnings) != 1 || !strings.Contains(r.Plan.Warnings[0], "stands still: no outdated member is replaced until stsd rollout resume web") {
			t.Errorf("warnings = %q, %v", r.Plan.Warnings, err)
		}
	})
}

func TestADryRunOfADeleteSaysWhichVolumesStay(t *testing.T) {
	play(t, func(s *stage) {
		s.apply(oneVolume)
		for policy, want := range map[string]string{"": jobspecs.OpKeepVolume, jobspecs.Delete: jobspecs.OpDeleteVolume} {
			r, err := s.Delete(t.Context(), web, client.DeleteRequest{Write: client.Write{DryRun: true}, Volumes: policy})
			if err != nil || !r.Plan.Changes {
				t.Fatalf("delete = %+v, %v", r, err)
			}
			got := map[string]string{}
			for _, step := range r.Plan.Steps {
				if step.Volume != "" {
					got[step.Volume] = step.Op
				}
			}
			if all := map[string]string{"data-web-0": want, "data-web-1": want}; !reflect.DeepEqual(got, all) {
				t.Errorf("volumes %q: %v, want %v", policy, got, all)
			}
		}
		if err := s.scale(0, client.Write{}); err != nil {
			t.Fatal(err)
		}
		r, err := s.Delete(t.Context(), web, client.DeleteRequest{Write: client.Write{DryRun: true}})
		if err != nil || !r.Plan.Changes {
			t.Errorf("delete of a set without members = %+v, %v", r.Plan, err)
		}
	})
}
