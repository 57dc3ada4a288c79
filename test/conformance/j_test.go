package conformance

import (
	"testing"
	"time"

	"github.com/stsd/stsd/jobspecs"
)

func defaults() []row {
	return []row{
		is("J1", "no set", "one is applied", "its generation is 1, and its status is what is seen", story(func(s *stage) {
			if r := s.apply("replicas=1"); r.Generation != 1 || !r.Created {
				s.Errorf("result = %+v", r)
			}
			s.rest()
			s.want("counters", s.counters(), every(1))
		})),
		is("J2", "a set that is whole", "its file changes", "the generation rises by one, and what was counted stays", story(func(s *stage) {
			s.apply("")
			s.rest()
			if r := s.apply("image=never:1"); r.Generation != 2 {
				s.Errorf("generation = %d", r.Generation)
			}
			s.pass(time.Minute)
			s.want("counters", s.counters(), "replicas 3 current 2 updated 1 ready 2 available 2")
		})),
		none("J3", "status cannot be written"),
		is("J4", "a file that says nothing", "it is read", "rolling, partition 0, history 10, ordered; replicas 1 for a new set", all(
			reads(set(""), func(s jobspecs.Spec) bool {
				u := s.Set.Update
				return u.Strategy == jobspecs.Rolling && u.Partition == 0 && s.Set.RevisionHistoryLimit == 10 && s.Set.PodManagement == jobspecs.Ordered && s.Set.Replicas == nil
			}),
			story(func(s *stage) {
				s.applyText(set(""))
				s.rest()
				s.want("counters", s.counters(), every(1))
			}))),
		differs("J5", "a file that says rolling and no more", "it is read", "it is the same as one that says nothing",
			"Kubernetes takes the absent block for another strategy by half, which nobody expects.", func(t *testing.T) {
				a, _ := parse(set(""))
				b, _ := parse(updates(`strategy = "rolling"`))
				if a.Specs[0].Set.Update != b.Specs[0].Set.Update {
					t.Errorf("%+v, %+v", a.Specs[0].Set.Update, b.Specs[0].Set.Update)
				}
			}),
		is("J6", "on_delete", "the file is read and the image changes", "partition and max_unavailable have no effect", all(
			reads(updates(`strategy = "on_delete"`), func(s jobspecs.Spec) bool { return s.Set.Update.Strategy == jobspecs.OnDelete }),
			plans(world(onDelete, to("r2"), maxUnavailable("3"), full(0, 2)), ""))),
		is("J7", "a claim that says one retention", "it is read", "the other is retain", all(
			reads(mounts(`on_delete = "delete"`), func(s jobspecs.Spec) bool {
				return s.Set.Claims[0].OnDelete == "delete" && s.Set.Claims[0].OnScaleDown == "retain"
			}),
			reads(mounts(`on_scale_down = "delete"`), func(s jobspecs.Spec) bool {
				return s.Set.Claims[0].OnDelete == "retain" && s.Set.Claims[0].OnScaleDown == "delete"
			}))),
		is("J8", "a file without max_unavailable", "it is read", "it is 1", reads(set(""), func(s jobspecs.Spec) bool { return s.Set.Update.MaxUnavailableOf(10) == 1 })),
		none("J9-J13", "there are no feature gates: a version has a feature, or refuses its word"),
		none("J14", "there is one version of the language"),
		differs("J15", "revision_history_limit -1 and -2", "the file is read", "-1 keeps all without a warning, anything below is refused",
			"One number means \"all\", and it is documented.", all(takes(set("revision_history_limit = -1")), refuses(set("revision_history_limit = -2"), "-2 is not a whole number from -1"))),
	}
}
