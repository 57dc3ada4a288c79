package conformance

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/stsd/stsd/daemon/planner"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

// member checks how a name is split.
func splits(name, set string, ordinal int, ok bool) func(*testing.T) {
	return func(t *testing.T) {
		if gotSet, got, gotOK := jobspecs.ParseMember(name); gotSet != set || got != ordinal || gotOK != ok {
			t.Errorf("%s is %q, %d, %v", name, gotSet, got, gotOK)
		}
	}
}

// comes checks what max_unavailable comes to.
func comes(id, limit string, of, want int) row {
	given := "max_unavailable " + limit
	if limit == "" {
		given = "no max_unavailable"
	}
	return is(id, given, "it is taken of a number of members", "it is rounded down, and never below one", func(t *testing.T) {
		if got := (jobspecs.Update{MaxUnavailable: limit}).MaxUnavailableOf(of); got != want {
			t.Errorf("of %d it is %d, want %d", of, got, want)
		}
	})
}

const noOwners = "volumes and containers carry stsd's labels for good instead of owner references: what becomes of a volume is decided from the file when its member is gone (A6-A9, D16-D29)"

func helpers() []row {
	return []row{
		is("F1", "a name", "it is read as a member's", "all before the last dash is the set, decimal digits behind it the ordinal", all(
			splits("foo-1", "foo", 1, true), splits("a-b-20", "a-b", 20, true), splits("1-bar", "", 0, false), splits("foo-01", "", 0, false), splits("foo", "", 0, false))),
		differs("F2", "claims data and data-a, sets a-b and b", "both would name a volume data-a-b-0", "the second set is refused",
			"A volume's owner is read from its labels, so names need not be parsed; two sets cannot fight over one volume.", func(t *testing.T) {
				if got := jobspecs.CollidingVolumes("a-b", []string{"data"}, "b", []string{"data-a"}); got != "data-a-b" {
					t.Errorf("colliding = %q", got)
				}
			}),
		is("F3", "sets foo and foo2", "members are told apart", "each belongs to the set of its own name", all(splits("foo-1", "foo", 1, true), splits("foo2-1", "foo2", 1, true))),
		is("F4-F7", "a container of our set, ones of another name's set and of another namespace, and one without our label", "members are listed", "only ours counts", story(func(s *stage) {
			s.world.ForeignContainer("other-0", netip.Addr{}, labelsOf(s.world.Daemon(), "other", "0"))
			elsewhere := labelsOf(s.world.Daemon(), "web", "1")
			elsewhere[jobspecs.LabelNamespace] = "prod"
			s.world.ForeignContainer("prod.web-1", netip.Addr{}, elsewhere)
			s.world.ForeignContainer("web-2", netip.Addr{}, labelsOf("another", "web", "2"))
			s.apply("replicas=2")
			s.rest()
			s.want("counters", s.counters(), every(2))
			s.want("host", s.host(), "other-0 foreign, prod.web-1 foreign, web-0 app:1, web-1 app:1, web-2 foreign")
		})),
		is("F8-F12", "claims and an ordinal", "a member is rendered", "each mount is of the volume CLAIM-SET-ORDINAL", func(t *testing.T) {
			for _, c := range []struct{ ns, claim, set, want string }{
				{"default", "data", "web", "data-web-20"}, {"prod", "data", "web", "prod.data-web-20"}, {"default", "a-b", "c-d", "a-b-c-d-20"},
			} {
				if got := jobspecs.VolumeName(c.ns, c.claim, c.set, 20); got != c.want {
					t.Errorf("volume = %s, want %s", got, c.want)
				}
			}
		}),
		none("F13-F14", "labels and mounts of a Docker container cannot be changed: there is nothing to update in place"),
		is("F15-F16", "a volume block with or without retention", "it is read", "absent means retain, otherwise what is written", all(
			reads(set("volume \"data\" {\n}"), func(s jobspecs.Spec) bool {
				return s.Set.Claims[0].OnScaleDown == "retain" && s.Set.Claims[0].OnDelete == "retain"
			}),
			reads(set("volume \"data\" {\non_scale_down = \"delete\"\non_delete = \"delete\"\n}"), func(s jobspecs.Spec) bool {
				return s.Set.Claims[0].OnScaleDown == "delete" && s.Set.Claims[0].OnDelete == "delete"
			}))),
		is("F17-F20", "containers of another daemon that name our set", "members are listed and the set is deleted", "they are not ours: they neither count nor are touched", story(func(s *stage) {
			s.world.ForeignContainer("web-7", netip.Addr{}, labelsOf("another", "web", "7"))
			s.apply("")
			s.rest()
			s.want("counters", s.counters(), every(3))
			s.deleted("delete")
			s.want("host", s.host(), "web-7 foreign")
		})),
		none("F21-F161", noOwners),
		is("F162", "members that are absent, running and ready", "they are counted", "only running ones whose probe says so are ready", all(
			counts(world(replicas(1)), readyOf, 0), counts(world(replicas(1), unready(0, "r1")), readyOf, 0),
			counts(world(replicas(1), phase(0, "r1", runtime.Starting, "")), readyOf, 0), counts(world(replicas(1), full(0, 0)), readyOf, 1))),
		is("F163", "pods in any order", "status lists members", "they stand by ordinal", func(t *testing.T) {
			w := world(replicas(12), running("web-10", "web-2", "web-0", "web-11"))
			var got []int
			for _, m := range planner.Status(w, planner.Next(w)).Members {
				got = append(got, m.Ordinal)
			}
			if !slices.Equal(got, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}) {
				t.Errorf("ordinals = %v", got)
			}
		}),
		none("F164", "two sets never overlap (C19)"),
		is("F165", "a member that is made", "its container is looked at", "it names one daemon, namespace, set, ordinal and revision", story(func(s *stage) {
			r := s.apply("replicas=1")
			s.rest()
			c, _ := s.world.Container("web-0")
			want := labelsOf(s.world.Daemon(), "web", "0")
			want[jobspecs.LabelRevision] = r.Revision
			for k, v := range want {
				if c.Labels[k] != v {
					s.Errorf("label %s = %q, want %q", k, c.Labels[k], v)
				}
			}
		})),
		is("F166", "a set that was scaled and updated", "its first revision is brought back", "the template is the first one's, the number of members stays", story(func(s *stage) {
			s.apply("")
			s.rest()
			s.apply("image=app:2 replicas=5 max=2")
			s.rest()
			s.rollout("undo", 1)
			s.rest()
			s.want("host", s.host(), containers(5, 5))
		})),
		is("F167", "revisions with and without a variable in env", "each is brought back", "env is the one of that revision", story(func(s *stage) {
			env := func() string {
				rows, err := s.History(s.Context(), web)
				if err != nil {
					s.Fatal(err)
				}
				return string(rows[len(rows)-1].Template)
			}
			s.apply("replicas=1")
			s.rest()
			first := env()
			s.apply("replicas=1 env=set")
			s.rest()
			second := env()
			s.rollout("undo", 1)
			s.pass(time.Minute)
			s.want("template", env(), first)
			s.rollout("undo", 2)
			s.pass(time.Minute)
			s.want("template", env(), second)
		})),
		none("F168-F171", "there is no selector whose labels a volume could inherit; its labels say daemon, namespace, set, ordinal and claim (A3)"),
		comes("F172", "", 10, 1), comes("F173", "3", 10, 3), comes("F174", "3", 0, 3), comes("F175", "0", 0, 1), comes("F176", "10%", 25, 2),
		comes("F177", "100%", 5, 5), comes("F178", "50%", 5, 2), comes("F179", "10%", 5, 1), comes("F180", "1%", 0, 1), comes("F181", "0%", 10, 1),
	}
}
