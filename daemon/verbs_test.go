package daemon

import (
	"errors"
	"testing"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/jobspecs"
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
