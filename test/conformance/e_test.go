package conformance

import (
	"time"
)

func statusWrites() []row {
	return []row{
		is("E1", "a set in the middle of a rollout", "its status is asked for", "the counters are what was seen", story(func(s *stage) {
			s.apply("")
			s.rest()
			s.image("never:1")
			s.pass(time.Minute)
			s.want("counters", s.counters(), "replicas 3 current 2 updated 1 ready 2 available 2")
		})),
		is("E2", "a set", "it is changed", "observed_generation follows generation", story(func(s *stage) {
			r := s.apply("")
			s.rest()
			s.scale(2)
			if st := s.status(); st.Generation != r.Generation+1 {
				s.Errorf("generation = %d after %d", st.Generation, r.Generation)
			}
			s.rest()
			if st := s.status(); st.ObservedGeneration != st.Generation {
				s.Errorf("observed %d of %d", st.ObservedGeneration, st.Generation)
			}
		})),
		none("E3-E5 E7", "status is a snapshot in memory, made anew at each look: nothing is written that could fail, conflict or be stale"),
		is("E6", "min_ready of a minute", "members are ready for half of it", "they are ready and not available", story(func(s *stage) {
			s.apply("manage=parallel minready=1m")
			s.pass(30 * time.Second)
			s.want("counters", s.counters(), "replicas 3 current 3 updated 3 ready 3 available 0")
			s.pass(31 * time.Second)
			s.want("counters", s.counters(), every(3))
		})),
	}
}
