package hcl

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty/function"
	"pgregory.net/rapid"

	"github.com/stsd/stsd/jobspecs"
)

func TestMomentsAreWhatExpressionsMayLookAt(t *testing.T) {
	neither, fresh, formed, both := Moment{}, Moment{Fresh: true}, Moment{Formed: true}, Moment{true, true}
	for text, want := range map[string]Moment{
		`"${self.name}:${self.ip}"`:       neither,
		`self.fresh ? "new" : "old"`:      fresh,
		`self["fresh"]`:                   fresh,
		`"${set.formed}"`:                 formed,
		`set["formed"]`:                   formed,
		`join(",", set.members[*].fqdn)`:  neither,
		`join(",", set.members[*].fresh)`: fresh,
		`join(",", set.peers.*.ip)`:       neither,
		`set.members[0].name`:             neither,
		`set.members[self.index].fqdn`:    neither,
		`set.members[self.index].fresh`:   fresh,
		`set.first.fresh`:                 fresh,
		`set.first.fqdn`:                  neither,
		`join(" ", [for m in set.members : "${m.name}=${m.ip}"])`: neither,
		`join(" ", [for m in set.members : m.name if m.fresh])`:   fresh,
		`join(" ", [for i, m in set.members : "${i}-${m.name}"])`: neither,
		`[for m in set.members : m][0].name`:                      neither,
		`{for m in set.members : m.name => m.ip}["web-0"]`:        neither,
		`jsonencode({for m in set.members : m.name => m})`:        fresh,
		`"%{ for m in set.members }${m.fqdn} %{ endfor }"`:        neither,
		`"%{ for m in set.members }${m.fresh} %{ endfor }"`:       fresh,
		`"%{ if set.formed }yes%{ endif }"`:                       formed,
		`length(set.members)`:                                     neither,
		`length(set.members) > 2 && self.ordinal == 0`:            neither,
		`jsonencode(self)`:                                        fresh,
		`self == set.first`:                                       fresh,
		`jsonencode(set)`:                                         both,
		`jsonencode(set.members)`:                                 fresh,
		`[for k, v in self : v]`:                                  fresh,
		`self[var.what]`:                                          fresh,
		`(self.ordinal == 0 ? self : set.first).name`:             neither,
		`(self.ordinal == 0 ? self : set.first).fresh`:            fresh,
		`(self.ordinal == 0 ? "x" : set.first)`:                   fresh,
		`[for m in [self, set.first] : m.name]`:                   fresh, // more than it looks at: a list that was written is not followed
		`sets.etcd.fqdn`:                                          neither,
		`join(",", sets.etcd.members[*].fqdn)`:                    neither,
		`join(",", sets.etcd.members[*].fresh)`:                   fresh,
		`jsonencode(sets.etcd)`:                                   both, // more than it looks at: sets have no formed
		`jsonencode(sets)`:                                        both,
		`[for m in ["a"] : m]`:                                    neither,
		`[for m in set.members : [for n in ["x"] : m.fresh]]`:     fresh,
		`[for m in set.members : [for m in ["x"] : m]]`:           neither,
		`{ fresh = 1, self = 2, (self.name) = 3 }`:                neither,
		`self[*].name`:                                            neither,
		`self[*].fresh`:                                           fresh,
		`values(self)`:                                            fresh,
		`try(self.fresh, false)`:                                  fresh,
		`-length(set.members)`:                                    neither,
		`["a", "b"][0]`:                                           neither,
		`this is no expression`:                                   both,
	} {
		if got := Moments(encode(document{"container": document{"main": document{"args": []any{symbolicValue(text)}}}})); got != want {
			t.Errorf("%s looks at %+v, want %+v", text, got, want)
		}
	}
}

func TestMomentsOfAPartThatCannotBeReadAreAll(t *testing.T) {
	if got := Moments([]byte("{")); got != (Moment{true, true}) {
		t.Errorf("got %+v", got)
	}
	if got := Moments(nil); got != (Moment{}) {
		t.Errorf("of nothing: %+v", got)
	}
}

// What an expression does not look at makes no difference to it.
func TestWhatIsNotLookedAtMakesNoDifference(t *testing.T) {
	set := &jobspecs.Set{Namespace: "default", Name: "web"}
	value := func(e hclsyntax.Expression, env Env) string {
		v := newView(set, "web", env)
		funcs := map[string]function.Function{}
		for name, f := range pure {
			funcs[name] = f
		}
		got, ds := e.Value(&hcl.EvalContext{Variables: v.variables(true), Functions: funcs})
		if ds.HasErrors() {
			return ds.Error()
		}
		return fmt.Sprintf("%#v", got)
	}
	followed := 0
	rapid.Check(t, func(t *rapid.T) {
		text := genText(t, 3, nil)
		e, ds := hclsyntax.ParseExpression([]byte(text), "", hcl.InitialPos)
		if ds.HasErrors() {
			t.Fatalf("%s: %v", text, ds)
		}
		env := momentEnv(t)
		m := Moments(encode(document{"x": symbolicValue(text)}))
		if m != (Moment{true, true}) {
			followed++
		}
		if now, then := value(e, env), value(e, env.Without(m)); now != then {
			t.Fatalf("%s, which looks at %+v, is\n%s and\n%s", text, m, now, then)
		}
	})
	if followed == 0 {
		t.Error("every expression is taken to look at everything")
	}
}

func momentEnv(t *rapid.T) Env {
	env := Env{Ordinals: []int{0, 1}, Ordinal: rapid.IntRange(0, 1).Draw(t, "ordinal"), Formed: rapid.Bool().Draw(t, "formed"), Fresh: map[int]bool{}, Addresses: map[int]netip.Addr{}}
	for _, o := range env.Ordinals {
		env.Fresh[o] = rapid.Bool().Draw(t, "fresh")
	}
	env.Sets = map[string]Other{"etcd": {Service: "etcd", Ordinals: []int{0}, Fresh: map[int]bool{0: rapid.Bool().Draw(t, "fresh of etcd-0")}}}
	return env
}

// genText is an expression of any kind, good or not. names are the variables in scope.
func genText(t *rapid.T, depth int, names []string) string {
	inner := func() string { return genText(t, depth-1, names) }
	leaves := append([]string{
		`"a"`, "1", "self", "set", "sets", "self.name", "self.fresh", "self.ordinal", `self["fresh"]`, `self["name"]`, "set.formed", "set.first", "set.first.fresh", "set.first.name",
		"set.members", "set.peers", "set.members[*].name", "set.members[*].fresh", "set.peers[*].fresh", "set.members[*]", "set.members[0]", "set.members[1].fresh", "set.members[0].name", "set.replicas",
		"sets.etcd", "sets.etcd.fqdn", "sets.etcd.members", "sets.etcd.members[*].fresh", "sets.etcd.members[0].name", "self[*].fresh", "self.*.name", "true",
	}, names...)
	if depth == 0 {
		return rapid.SampledFrom(leaves).Draw(t, "leaf")
	}
	switch rapid.IntRange(0, 15).Draw(t, "kind") {
	case 0, 1:
		return rapid.SampledFrom(leaves).Draw(t, "leaf")
	case 2:
		return fmt.Sprintf("jsonencode(%s)", inner())
	case 3:
		return fmt.Sprintf("length(%s)", inner())
	case 4:
		return fmt.Sprintf("(%s ? %s : %s)", inner(), inner(), inner())
	case 5:
		return fmt.Sprintf("[%s, %s]", inner(), inner())
	case 6:
		return fmt.Sprintf("{a = %s, (%s) = 1}", inner(), inner())
	case 7:
		return fmt.Sprintf("(%s)[%s]", inner(), inner())
	case 8:
		return fmt.Sprintf("(%s).%s", inner(), rapid.SampledFrom([]string{"name", "fresh", "formed", "members", "a", "first"}).Draw(t, "field"))
	case 9:
		return fmt.Sprintf("(%s)[*].%s", inner(), rapid.SampledFrom([]string{"name", "fresh"}).Draw(t, "field"))
	case 10:
		return fmt.Sprintf("(%s)[*]", inner())
	case 11:
		name := rapid.SampledFrom([]string{"m", "n", "self"}).Draw(t, "name")
		return fmt.Sprintf("[for %s in %s : %s if %s]", name, inner(), genText(t, depth-1, append(names, name, name+".fresh", name+".name")), genText(t, depth-1, append(names, name)))
	case 12:
		return fmt.Sprintf("{for k, v in %s : k => %s}", inner(), genText(t, depth-1, append(names, "k", "v", "v.fresh", "v.name")))
	case 13:
		return fmt.Sprintf("(%s == %s)", inner(), inner())
	case 14:
		return fmt.Sprintf(`"x${%s}%%{ if %s }y%%{ endif }"`, inner(), inner())
	}
	return fmt.Sprintf("try(%s, %s)", inner(), inner())
}
