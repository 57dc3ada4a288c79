package daemon

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/runtime/pods"
	"github.com/stsd/stsd/runtime/sim"
)

const hooked = `
variable "image" { type = string }
statefulset "web" {
  replicas = 2
  container "web" {
    image = var.image
    lifecycle {
      pre_stop {
        exec {
          command = ["leave"]
        }
      }
    }
  }
}`

// reasons collects what pre_stop hooks are told.
type reasons struct {
	mu   sync.Mutex
	told []string
}

func (r *reasons) hook(h pods.Hook) (time.Duration, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told = append(r.told, h.Kind+" "+h.Env["STSD_REASON"])
	return 0, nil
}

// take gives what was told since, each once.
func (r *reasons) take() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.Sort(r.told)
	out := strings.Join(slices.Compact(r.told), ", ")
	r.told = nil
	return out
}

func TestAPreStopHookIsToldWhy(t *testing.T) {
	play(t, func(s *stage) {
		var told reasons
		for _, ref := range []string{"web:1", "web:2"} {
			s.world.Program(ref, sim.Program{Hook: told.hook})
		}
		s.apply(hooked, "image=web:1")
		for _, step := range []struct {
			what, want string
			do         func() error
		}{
			{"an update", "pre_stop update", func() error { s.apply(hooked, "image=web:2"); return nil }},
			{"a rollout restart", "pre_stop restart", func() error {
				_, err := s.Rollout(t.Context(), web, client.RolloutRequest{Do: "restart"})
				return err
			}},
			{"a scale-down", "pre_stop scale_down", func() error {
				_, err := s.Scale(t.Context(), web, client.ScaleRequest{Replicas: 1})
				return err
			}},
			{"the set's end", "pre_stop delete", func() error {
				_, err := s.Delete(t.Context(), web, client.DeleteRequest{})
				return err
			}},
		} {
			if err := step.do(); err != nil {
				t.Fatal(fmt.Errorf("%s: %w", step.what, err))
			}
			s.settle()
			if got := told.take(); got != step.want {
				t.Errorf("%s: hooks were told %q, want %q", step.what, got, step.want)
			}
		}
	})
}
