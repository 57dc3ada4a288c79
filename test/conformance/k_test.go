package conformance

import (
	"strings"
	"testing"
	"time"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/runtime/sim"
)

// numbered makes a set of these options, checks its members, and scales it to one.
func numbered(opts, members, first string) func(*testing.T) {
	return story(func(s *stage) {
		s.apply(opts)
		s.rest()
		var names []string
		for _, c := range s.world.Containers() {
			names = append(names, c.Name)
			if _, o, ok := strings.Cut(c.Name, "-"); !ok || c.Labels[jobspecs.LabelOrdinal] != o {
				s.Errorf("%s has ordinal %s", c.Name, c.Labels[jobspecs.LabelOrdinal])
			}
		}
		s.want("members", strings.Join(names, " "), members)
		s.scale(1)
		s.rest()
		s.want("host", s.host(), first+" app:1")
	})
}

func integration() []row {
	return []row{
		is("K1", "a claim with its defaults left out", "the same file is applied, and one that writes them out", "both times nothing changes", story(func(s *stage) {
			s.applyText(mounts(""))
			s.rest()
			for _, text := range []string{mounts(""), mounts("on_scale_down = \"retain\"\non_delete = \"retain\"")} {
				if r := s.applyText(text); r.Changed {
					s.Errorf("it changed: %+v", r)
				}
			}
		})),
		is("K2", "two members", "the set is scaled to three, none and two, and gets a label", "status and observed generation follow each time", story(func(s *stage) {
			s.apply("replicas=2")
			s.rest()
			for _, n := range []int{3, 0, 2} {
				s.scale(n)
				s.rest()
				s.want("counters", s.counters(), every(n))
			}
			s.apply("replicas=2 label=a")
			s.rest()
			if st := s.status(); st.ObservedGeneration != 5 || st.UpdatedReplicas != 2 {
				s.Errorf("observed %d, updated %d", st.ObservedGeneration, st.UpdatedReplicas)
			}
		})),
		is("K3", "one member on its way out and two that ended", "the planner looks", "the ended ones are cleared away to be made anew, the other one is waited for", all(
			plans(world(parallel, stopping(0), ended(1, runtime.ReasonEngineRestarted), ended(2, runtime.ReasonRemoved), once("r1", 0, 1, 2)),
				"remove web-1 (ended: found stopped when the engine was connected), remove web-2 (ended: its container was removed)"),
			plans(world(parallel, stopping(0), once("r1", 0, 1, 2)), "create web-1 (recovery), create web-2 (recovery)"),
			plans(world(parallel, full(1, 2), once("r1", 0, 1, 2)), "create web-0 (recovery)"))),
		is("K4", "min_ready of an hour; one member not ready, one ready just now, two for two hours", "status is asked for", "three are ready, two available", func() func(*testing.T) {
			w := world(replicas(4), minReady(time.Hour), unready(0, "r1"), readyFor(1, "r1", 0), readyFor(2, "r1", 2*time.Hour), readyFor(3, "r1", 2*time.Hour))
			return all(counts(w, readyOf, 3), counts(w, availableOf, 2))
		}()),
		is("K5", "a host that makes two of four members", "a parallel set is applied", "two run and are counted in spite of the errors", story(func(s *stage) {
			s.world.Fail(sim.Fault{Verb: "create", Name: "web-2", Times: -1})
			s.world.Fail(sim.Fault{Verb: "create", Name: "web-3", Times: -1})
			s.apply("manage=parallel replicas=4")
			s.pass(time.Minute)
			s.want("host", s.host(), containers(2, 2))
			if st := s.status(); st.ReadyReplicas != 2 || st.AvailableReplicas != 2 {
				s.Errorf("ready %d, available %d", st.ReadyReplicas, st.AvailableReplicas)
			}
		})),
		is("K6", "volumes that are retained", "the set really shrinks and is deleted", "all stay", story(kept("retain:retain", "data-web-0 data-web-1 data-web-2", "data-web-0 data-web-1 data-web-2"))),
		is("K7", `on_delete "delete"`, "the set really shrinks and is deleted", "all stay at first, then all go", story(kept("retain:delete", "data-web-0 data-web-1 data-web-2", ""))),
		is("K8", `on_scale_down "delete"`, "the set really shrinks and is deleted", "volumes 1 and 2 go, 0 stays", story(kept("delete:retain", "data-web-0", "data-web-0"))),
		is("K9", "both delete", "the set really shrinks and is deleted", "volumes 1 and 2 go, then 0", story(kept("delete:delete", "data-web-0", ""))),
		is("K10", "partition 1 and a rollout that has done web-1", "web-0 is removed", "it comes back as it was, old", story(func(s *stage) {
			s.apply("replicas=2 partition=1")
			s.rest()
			s.apply("replicas=2 partition=1 image=app:2")
			s.rest()
			s.world.RemoveContainer("web-0")
			s.pass(time.Second)
			s.rest()
			s.want("host", s.host(), containers(2, 1))
		})),
		is("K11", "no start_ordinal", "a set is applied and scaled to one", "ordinals begin with 0, and the first stays", numbered("", "web-0 web-1 web-2", "web-0")),
		is("K12", "start_ordinal 0", "a set is applied and scaled to one", "ordinals begin with 0, and the first stays", numbered("start=0", "web-0 web-1 web-2", "web-0")),
		is("K13", "start_ordinal 4 and four members", "a set is applied and scaled to one", "ordinals begin with 4, and the first stays", numbered("start=4 replicas=4", "web-4 web-5 web-6 web-7", "web-4")),
		is("K14", "start_ordinal 2 and seven members", "a set is applied and scaled to one", "ordinals begin with 2, and the first stays", numbered("start=2 replicas=7", "web-2 web-3 web-4 web-5 web-6 web-7 web-8", "web-2")),
		is("K15", "a set with a service of another name", "members run", "their domain is that service's", story(func(s *stage) {
			s.apply("service=nodes replicas=1")
			s.rest()
			s.want("name", s.member(0).FQDN, "web-0.nodes.default.svc.cluster.local")
			s.delete(client.DeleteRequest{})
		})),
	}
}
