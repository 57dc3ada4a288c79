package daemon

import (
	"errors"
	"strings"
	"testing"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/jobspecs/hcl"
)

// What expressions do not look at is, for them, as it will be, so that nothing is
// rendered again when it comes to be.
func TestTheEnvironmentHasWhatExpressionsLookAt(t *testing.T) {
	for _, c := range []struct {
		name, value   string
		guard         string
		fresh, formed bool
	}{
		{"neither", "${self.name}", "1", false, false},
		{"fresh", "${self.fresh}", "1", true, false},
		{"formed", "${set.formed}", "1", false, true},
		{"the guard, formed", "x", "set.formed ? 1 : 0", false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			play(t, func(s *stage) {
				s.apply("statefulset \"web\" {\nreplicas = 2\nguard {\nmin_available = " + c.guard + "\n}\nvolume \"data\" {}\ncontainer \"web\" {\nimage = \"web:1\"\nenv = { V = \"" + c.value + "\" }\nmount \"data\" {\npath = \"/d\"\n}\n}\n}\n")
				v, err := s.store.Look(jobspecs.Key{Namespace: "default", Name: "web"})
				if err != nil {
					t.Fatal(err)
				}
				v.Record.Formed, v.Members, v.Volumes = false, nil, nil // as in its first moment
				env := s.env(&sight{view: v})
				if fresh := env.Fresh[0]; fresh != c.fresh {
					t.Errorf("fresh is %v, want %v", fresh, c.fresh)
				}
				if env.Formed == c.formed {
					t.Errorf("formed is %v", env.Formed)
				}
				if want := !c.fresh && !c.formed; env.IsSteady() != want {
					t.Errorf("steady is %v, want %v", env.IsSteady(), want)
				}
			})
		})
	}
}

// A template that is too long to be looked through is taken to look at everything.
func TestOfALongPartNothingIsKnown(t *testing.T) {
	long := []byte(`{"container":{"a":{"image":"` + strings.Repeat("x", longestRead) + `"}}}`)
	if got := momentsOf(long); got != (hcl.Moment{Fresh: true, Formed: true}) {
		t.Errorf("it looks at %+v", got)
	}
}

// A spec that declares variables is read twice, and said to be wrong where one read
// once is.
func TestWhatIsWrongBetweenMembersIsSaidOfSpecsWithVariablesToo(t *testing.T) {
	play(t, func(s *stage) {
		const set = "statefulset \"web\" {\nreplicas = 2\ncontainer \"web\" {\nimage = %\nport \"http\" {\ncontainer = 80\nhost = 8080\n}\n}\n}\n"
		for image, above := range map[string]string{`"web:1"`: "", "var.image": "variable \"image\" {\ntype = string\n}\n"} {
			var vars []string
			if above != "" {
				vars = []string{"image=web:1"}
			}
			_, err := s.Apply(t.Context(), request(above+strings.Replace(set, "%", image, 1), vars...))
			var p *client.Problem
			if !errors.As(err, &p) || len(p.Diagnostics) != 1 || !strings.Contains(p.Diagnostics[0].Summary, "8080") {
				t.Errorf("%s: %v, %+v", image, err, p)
			}
		}
	})
}
