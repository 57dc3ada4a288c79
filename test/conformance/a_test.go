package conformance

import (
	"slices"
	"strconv"
	"strings"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/jobspecs"
)

// watched runs the life of an ordered set (creation, growth, update, shrinking)
// and looks at its members at every step.
func watched(opts string, look func(*stage, []jobspecs.Member)) func(*stage) {
	return func(s *stage) {
		s.watch = func() {
			if st, err := s.Status(s.Context(), web); err == nil {
				look(s, present(st.Members))
			}
		}
		s.apply(opts + " image=slow:1")
		s.rest()
		s.scale(5)
		s.rest()
		s.image("app:2")
		s.rest()
		s.scale(2)
		s.rest()
	}
}

// present are the members that have a container.
func present(members []jobspecs.Member) []jobspecs.Member {
	return slices.DeleteFunc(slices.Clone(members), func(m jobspecs.Member) bool { return m.StartedAt == nil })
}

// kept runs a set of three through a scale-down to one and its deletion, and
// checks which volumes are there after each.
func kept(retention, scaled, deleted string) func(*stage) {
	return func(s *stage) {
		s.apply("claim=data:" + retention)
		s.rest()
		s.want("volumes of the running set", s.disks(), "data-web-0 data-web-1 data-web-2")
		s.scale(1)
		s.rest()
		s.want("volumes after a scale-down", s.disks(), scaled)
		s.deleted("")
		s.want("volumes after the deletion", s.disks(), deleted)
	}
}

func invariants() []row {
	return []row{
		is("A1", "an ordered set that is made, grows, is updated and shrinks", "a member is ready", "the one before it is available",
			story(watched("start=3", func(s *stage, members []jobspecs.Member) {
				for i, m := range members {
					if i > 0 && m.Ready && !members[i-1].Available {
						s.Errorf("%s is ready while %s is not available: %s", m.Name, members[i-1].Name, members[i-1].Phase)
					}
				}
			}))),
		is("A2", "an ordered set that is made, grows, is updated and shrinks", "its members are listed", "their ordinals have no gap",
			story(watched("start=3 claim=", func(s *stage, members []jobspecs.Member) {
				for i, m := range members[:max(0, len(members)-1)] {
					if m.Ordinal != 3+i {
						s.Errorf("member %d is %s", i, m.Name)
					}
				}
			}))),
		is("A3", "a set with two claims, ordered or parallel", "members run", "each runs with CLAIM-SET-ORDINAL of every claim, and nobody else does",
			inBoth(func(s *stage, manage string) {
				s.apply(manage + " claim=data:retain:retain,log:retain:retain")
				s.rest()
				for _, d := range s.world.Disks() {
					claim, ordinal := d.Labels[jobspecs.LabelClaim], d.Labels[jobspecs.LabelOrdinal]
					if d.Name != claim+"-web-"+ordinal || !slices.Equal(d.Writers, []string{"web-" + ordinal}) {
						s.Errorf("%s of claim %s, ordinal %s, is used by %v", d.Name, claim, ordinal, d.Writers)
					}
				}
				s.want("volumes", s.disks(), "data-web-0 data-web-1 data-web-2 log-web-0 log-web-1 log-web-2")
			})),
		is("A4", "a set, ordered or parallel", "members run", "name, namespace, set and ordinal stand on each container and fit together",
			inBoth(func(s *stage, manage string) {
				s.apply(manage)
				s.rest()
				for i, c := range s.world.Containers() {
					got := []string{c.Name, c.Labels[jobspecs.LabelNamespace], c.Labels[jobspecs.LabelSet], c.Labels[jobspecs.LabelOrdinal]}
					if want := []string{"web-" + strconv.Itoa(i), "default", "web", strconv.Itoa(i)}; !slices.Equal(got, want) {
						s.Errorf("identity = %v, want %v", got, want)
					}
				}
			})),
		is("A5", "volumes that are retained", "the set is made, grows, is updated and shrinks", "the volume of every member that runs is there",
			story(watched("", func(s *stage, members []jobspecs.Member) {
				for _, m := range members {
					if !strings.Contains(s.disks(), "data-"+m.Name) {
						s.Errorf("%s runs without its volume", m.Name)
					}
				}
			}))),
		is("A6", `on_scale_down and on_delete "retain"`, "the set shrinks and is deleted", "every volume stays",
			story(kept("retain:retain", "data-web-0 data-web-1 data-web-2", "data-web-0 data-web-1 data-web-2"))),
		is("A7", `only on_delete "delete"`, "the set shrinks and is deleted", "a scale-down keeps volumes, the deletion takes all of them",
			story(kept("retain:delete", "data-web-0 data-web-1 data-web-2", ""))),
		is("A8", `only on_scale_down "delete"`, "the set shrinks and is deleted", "the volumes of those that went go, the others stay",
			story(kept("delete:retain", "data-web-0", "data-web-0"))),
		is("A9", `on_scale_down and on_delete "delete"`, "the set shrinks and is deleted", "volumes go with their members",
			story(kept("delete:delete", "data-web-0", ""))),
		is("A10", "a rollout under way", "members are listed by ordinal", "old ones come first, new ones last",
			story(func(s *stage) {
				s.apply("replicas=5")
				s.rest()
				s.watch = func() {
					lowest := true
					for _, m := range present(s.status().Members) {
						if m.Image == "app:2" {
							lowest = false
						} else if !lowest {
							s.Errorf("%s is old above a new one: %s", m.Name, s.host())
						}
					}
				}
				s.asked(s.SetImage(s.Context(), web, client.ImageRequest{Images: map[string]string{"main": "app:2"}}))
				s.rest()
				s.want("host", s.host(), "web-0 app:2, web-1 app:2, web-2 app:2, web-3 app:2, web-4 app:2")
			})),
	}
}
