package daemon

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/daemon/store"
	"github.com/stsd/stsd/jobspecs"
)

// Sets of one request see each other, and keep apart.

func setIn(namespace, name, lines, env string) string {
	if namespace != "" {
		lines = "namespace = \"" + namespace + "\"\n" + lines
	}
	return "statefulset \"" + name + "\" {\n" + lines + "\ncontainer \"web\" {\nimage = \"web:1\"\nenv = { V = " + env + " }\n}\n}\n"
}

func (s *stage) plans(text string, vars ...string) []jobspecs.Plan {
	s.t.Helper()
	r, err := s.Plan(s.t.Context(), request(text, vars...))
	if err != nil {
		s.t.Fatalf("plan: %v", err)
	}
	return r.Plans
}

// warnings are those of all plans.
func warningsOf(plans []jobspecs.Plan) string {
	var out []string
	for _, p := range plans {
		out = append(out, p.Warnings...)
	}
	return strings.Join(out, "\n")
}

func TestSetsOfOneNameInTwoNamespacesOfAFileAreTwo(t *testing.T) {
	play(t, func(s *stage) {
		file := setIn("prod", "db", "", `"production"`) + setIn("test", "db", "", `"test"`)
		s.apply(file)
		if p := s.plans(file); p[0].Changes || p[1].Changes {
			t.Errorf("the same file again changes %v and %v", p[0].Changes, p[1].Changes)
		}
		key := jobspecs.Key{Namespace: "test", Name: "db"}
		r, err := s.SetImage(t.Context(), key, client.ImageRequest{Images: map[string]string{"web": "web:2"}, Write: client.Write{DryRun: true}})
		if err != nil || len(r.Plan.Diff) != 1 {
			t.Errorf("another image changes %+v, %v", r.Plan, err)
		}
		if _, err := s.Scale(t.Context(), key, client.ScaleRequest{Replicas: 2, Write: client.Write{Yes: true}}); err != nil {
			t.Fatal(err)
		}
		if s.apply(file); s.statusIn(key).Replicas != 2 {
			t.Errorf("the same file again drops the replicas")
		}
	})
}

func (s *stage) statusIn(key jobspecs.Key) jobspecs.Status {
	s.t.Helper()
	st, err := s.Status(s.t.Context(), key)
	if err != nil {
		s.t.Fatal(err)
	}
	return st
}

func TestNewNamespacesOfARequestGetSubnetsOfTheirOwn(t *testing.T) {
	play(t, func(s *stage) {
		s.apply(setIn("one", "a", "", `"x"`) + setIn("two", "b", "", `"x"`) + setIn("two", "c", "", `"x"`) + setIn("three", "d", "", `"x"`))
		subnets, err := s.store.Subnets()
		if err != nil {
			t.Fatal(err)
		}
		seen := map[netip.Prefix]string{}
		for namespace, p := range subnets {
			if other, ok := seen[p]; ok {
				t.Errorf("%s and %s both have %s", namespace, other, p)
			}
			seen[p] = namespace
		}
		if len(seen) != 3 {
			t.Errorf("there are %d subnets: %v", len(seen), subnets)
		}
		if err := s.store.Reserve("four", subnets["one"], nil); !errors.Is(err, store.ErrSubnetTaken) {
			t.Errorf("a subnet that another namespace has: %v", err)
		}
		for _, name := range []string{"two", "two"} {
			if err := s.store.Reserve(name, subnets[name], nil); err != nil {
				t.Errorf("its own: %v", err)
			}
		}
	})
}

func TestAKeptVariableCountsForSetsThatNameEachOther(t *testing.T) {
	play(t, func(s *stage) {
		file := "variable \"n\" {\ndefault = \"1\"\n}\n" + setIn("", "ka", "replicas = var.n", `"x"`) + setIn("", "kb", "", "sets.ka.members[2].fqdn")
		s.apply(file, "n=3")
		if p := s.plans(file); p[0].Changes || p[1].Changes {
			t.Errorf("the same file again changes %v and %v", p[0].Changes, p[1].Changes)
		}
		s.apply(file)
		if _, err := s.Scale(t.Context(), jobspecs.Key{Namespace: "default", Name: "ka"}, client.ScaleRequest{Replicas: 1, Write: client.Write{Yes: true}}); err != nil {
			t.Fatal(err)
		}
		s.settle()
		_, err := s.Apply(t.Context(), request(file))
		if p := (*client.Problem)(nil); !errors.As(err, &p) || !strings.Contains(p.Diagnostics[0].Summary, "invalid index") {
			t.Errorf("a set that names a member which was scaled away: %v", err)
		}
	})
}

func TestAPlanOfNewSetsThatNameEachOtherWarnsOfNothing(t *testing.T) {
	play(t, func(s *stage) {
		file := setIn("", "ca", "", "sets.cb.fqdn") + setIn("", "cb", "", "sets.ca.members[0].fqdn")
		if got := warningsOf(s.plans(file)); strings.Contains(got, "there is no set") {
			t.Errorf("it warns: %s", got)
		}
		s.apply(file)
		longer := strings.Replace(file, "sets.ca.members[0]", "sets.ca.members[1]", 1)
		longer = strings.Replace(longer, "statefulset \"ca\" {\n", "statefulset \"ca\" {\nreplicas = 2\n", 1)
		if got := warningsOf(s.plans(longer)); strings.Contains(got, "index") {
			t.Errorf("of a set that grows in the same request it warns: %s", got)
		}
	})
}

func TestAPlanSaysThatTheGuardWillRefuse(t *testing.T) {
	play(t, func(s *stage) {
		file := setIn("", "web", "replicas = 3\nguard {\nmin_available = 2\n}", `"x"`)
		s.apply(file)
		smaller := strings.Replace(file, "replicas = 3", "replicas = 1", 1)
		if got := warningsOf(s.plans(smaller)); !strings.Contains(got, "refused by the guard") {
			t.Errorf("it warns of %q", got)
		}
		if _, err := s.Apply(t.Context(), request(smaller)); err == nil {
			t.Error("the guard let them go")
		}
		r := request(smaller)
		r.Write.Force = true
		if p, err := s.Plan(t.Context(), r); err != nil || strings.Contains(warningsOf(p.Plans), "guard") {
			t.Errorf("forced, it warns of %q, %v", warningsOf(p.Plans), err)
		}
	})
}

// A member that could not be made again is not stopped, whoever asks for it.
func TestARestartInTurnLeavesAMemberThatCouldNotBeMadeAgain(t *testing.T) {
	play(t, func(s *stage) {
		s.apply(setIn("", "ka", "replicas = 3", `"x"`) + setIn("", "kb", "", "sets.ka.members[2].fqdn"))
		ka, kb := jobspecs.Key{Namespace: "default", Name: "ka"}, jobspecs.Key{Namespace: "default", Name: "kb"}
		if _, err := s.Scale(t.Context(), ka, client.ScaleRequest{Replicas: 1, Write: client.Write{Yes: true}}); err != nil {
			t.Fatal(err)
		}
		s.settle()
		if _, err := s.ChangeMembers(t.Context(), kb, client.MembersRequest{Do: "restart"}); err != nil {
			t.Fatal(err)
		}
		s.settle()
		st := s.statusIn(kb)
		if st.AvailableReplicas != 1 || !strings.Contains(st.Members[0].Waiting, "it could not be made again") {
			t.Errorf("%d available; it waits for %q", st.AvailableReplicas, st.Members[0].Waiting)
		}
		if !slices.ContainsFunc(st.Conditions, func(c jobspecs.Condition) bool { return c.Type == jobspecs.CondAvailable && c.Status }) {
			t.Errorf("conditions are %+v", st.Conditions)
		}
	})
}
