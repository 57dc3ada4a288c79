package conformance

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/daemon/store"
	"github.com/stsd/stsd/jobspecs"
	reader "github.com/stsd/stsd/jobspecs/hcl"
)

// rewrites lets a former version have written the templates of some revisions
// another way, and checks that this one rolls nobody.
func rewrites(revisions int, which ...int) func(*testing.T) {
	return story(func(s *stage) {
		opts := ""
		for n := range revisions {
			opts = "env=" + strings.Repeat("x", n+1)
			s.apply(opts)
			s.rest()
		}
		s.end()
		s.rewrite(which)
		before := s.runs()
		history := func() string { rows, _ := s.History(s.Context(), web); return rows[len(rows)-1].Name }
		s.boot()
		s.pass(time.Minute)
		newest := history()
		if r := s.apply(opts); r.Revision != newest {
			s.Errorf("an equal apply made revision %s of %s", r.Revision, newest)
		}
		s.pass(time.Minute)
		s.untouched(before, "web-0", "web-1", "web-2")
	})
}

// rewrite changes how the templates of revisions are written in the store.
func (s *stage) rewrite(numbers []int) {
	s.Helper()
	st, err := store.Open(s.dir, store.Options{NoSync: true})
	if err != nil {
		s.Fatal(err)
	}
	defer st.Close()
	v, err := st.Look(web)
	if err != nil {
		s.Fatal(err)
	}
	for _, r := range v.Revisions {
		if !slices.Contains(numbers, r.Number) {
			continue
		}
		r.Template = jobspecs.Template(`{"written":"another way"}`)
		record := v.Record
		if err := st.Put(&store.Intent{Record: record, Revision: &r, Replaces: r.Number, Expect: v.Record.Generation}); err != nil {
			s.Fatal(err)
		}
		v.Record.Generation++
	}
}

func upgrades() []row {
	return []row{
		is("G1", "a revision whose template another version wrote another way", "this version runs and the same file is applied", "there is no new revision, and nobody is restarted", rewrites(1, 1)),
		is("G2", "two revisions, both written another way", "this version runs and the same file is applied", "there is no new revision, and nobody is restarted", rewrites(2, 1, 2)),
		is("G3", "an older revision written another way and a newer one as now", "the same file is applied", "the newer one is used, and nobody is restarted", rewrites(2, 1)),
	}
}

func revisionStore() []row {
	return []row{
		is("H1", "two sets with revisions", "those of one are listed", "they are all of its own and none of the other's; a set that is not there has none", story(func(s *stage) {
			s.apply("")
			s.rest()
			s.apply("image=app:2")
			db := strings.ReplaceAll(hcl("image=app:3"), `statefulset "web"`, `statefulset "db"`)
			if _, err := s.Apply(s.Context(), request(db, sure)); err != nil {
				s.Fatal(err)
			}
			s.rest()
			s.want("history", s.history(), "1 app:1; 2 app:2 web-0,web-1,web-2")
			_, err := s.History(s.Context(), jobspecs.Key{Namespace: "default", Name: "none"})
			s.has("history of no set", s.problem(err), "none")
		})),
		is("H2", "templates of equal and of different content", "they are named", "equal ones of one set have one name, different ones different names, and a name that is taken is salted", func(t *testing.T) {
			a, b := jobspecs.Template(`{"a":1}`), jobspecs.Template(`{"a":2}`)
			names := []string{reader.Hash(a, "", nil), reader.Hash(b, "", nil), reader.Hash(a, "+", nil)}
			if reader.Hash(a, "", nil) != names[0] || names[0] == names[1] || names[0] == names[2] {
				t.Errorf("names = %v", names)
			}
		}),
		is("H3", "two revisions", "the first is brought back, and the write conflicts once", "its number rises when the write is taken, and stays when it is the newest already", story(func(s *stage) {
			s.apply("")
			s.rest()
			s.apply("image=app:2")
			s.rest()
			_, err := s.Rollout(s.Context(), web, client.RolloutRequest{Do: "undo", Write: client.Write{Expect: map[string]int64{"default/web": 1}}})
			s.has("undo", s.problem(err), "changed")
			s.want("history", s.history(), "1 app:1; 2 app:2 web-0,web-1,web-2")
			s.rollout("undo", 1)
			s.rest()
			s.want("history", s.history(), "2 app:2; 3 app:1 web-0,web-1,web-2")
			s.rollout("undo", 3)
			s.rest()
			s.want("history", s.history(), "2 app:2; 3 app:1 web-0,web-1,web-2")
		})),
		is("H4", "a set with revisions", "it is deleted", "they go with it, and a set of the name begins with number 1", story(func(s *stage) {
			s.apply("")
			s.rest()
			s.apply("image=app:2")
			s.rest()
			s.deleted("")
			s.apply("image=app:3")
			s.rest()
			s.want("history", s.history(), "1 app:3 web-0,web-1,web-2")
			_, err := s.Delete(s.Context(), jobspecs.Key{Namespace: "default", Name: "none"}, client.DeleteRequest{Write: sure})
			s.has("deletion of no set", s.problem(err), "none")
		})),
		none("H5-H6", "revisions are stored inside of their set: they have no owner that could be missing or change"),
		is("H7", "stored revisions", "a template is applied", "an equal one is found whatever its number, and nothing is found where none is equal", story(func(s *stage) {
			first := s.apply("env=a")
			s.rest()
			second := s.apply("env=b")
			s.rest()
			if r := s.apply("env=a"); r.Revision != first.Revision {
				s.Errorf("revision = %s, want %s", r.Revision, first.Revision)
			}
			if r := s.apply("env=c"); r.Revision == first.Revision || r.Revision == second.Revision {
				s.Errorf("revision = %s is an old one", r.Revision)
			}
		})),
		is("H8", "revisions whose numbers have changed", "they are listed", "they stand by number", story(func(s *stage) {
			for _, image := range []string{"app:1", "app:2", "app:3", "app:2", "app:1"} {
				s.apply("image=" + image)
				s.rest()
			}
			s.want("history", s.history(), "3 app:3; 4 app:2; 5 app:1 web-0,web-1,web-2")
		})),
	}
}
