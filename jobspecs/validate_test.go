package jobspecs

import "testing"

func TestClash(t *testing.T) {
	set := func(ns, name string, claims ...string) *Set {
		s := &Set{Namespace: ns, Name: name}
		for _, c := range claims {
			s.Claims = append(s.Claims, Claim{Name: c})
		}
		return s
	}
	for _, c := range []struct {
		rule string
		a, b *Set
		want string
	}{
		{"two names", set("n", "a", "data"), set("n", "b", "data"), ""},
		{"a set with itself", set("n", "a", "data"), set("n", "a", "data"), ""},
		{"a member's name", set("n", "web-1"), set("n", "web"), "n/web-1 is named like a member of n/web"},
		{"a member's name, the other way round", set("n", "web"), set("n", "web-1"), "n/web would have a member named like n/web-1"},
		{"almost a member's name", set("n", "web-01"), set("n", "web"), ""},
		{"one volume name", set("n", "b", "data-a"), set("n", "a-b", "data"), "n/b and n/a-b would both use volumes named data-a-b-ORDINAL"},
		{"other namespaces", set("n", "web-1", "data"), set("m", "web", "data"), ""},
	} {
		got := ""
		if err := Clash(c.a, c.b); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.rule, got, c.want)
		}
	}
}
