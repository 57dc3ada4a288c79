package hcl

import (
	"reflect"
	"strings"
	"testing"
)

func TestNetworksToJoinAreHeldAgainstTheRules(t *testing.T) {
	for _, c := range []struct{ says, line, want string }{
		{"another network", `networks = ["myapp_default"]`, ""},
		{"several, and one from a variable's text", `networks = ["b.c-d", "${"a"}_1"]`, ""},
		{"another namespace's", `networks = ["stsd.shop"]`, ""},
		{"no name", `networks = [""]`, `"" is no name of a network`},
		{"a name with a space", `networks = ["my app"]`, `"my app" is no name of a network`},
		{"a container's network", `networks = ["container:web"]`, `"container:web" is no name of a network`},
		{"the host's", `networks = ["host"]`, "network host cannot be joined: containers have no names there"},
		{"the engine's default", `networks = ["bridge"]`, "network bridge cannot be joined: containers have no names there"},
		{"its own", `networks = ["stsd"]`, "stsd is the network of namespace default: every member is on it"},
		{"one twice", `networks = ["a", "b", "a"]`, "network a stands here twice"},
		{"no list", `networks = "a"`, `this takes a list, as in ["a", "b"], not "a"`},
	} {
		got := found(withLines(c.line))
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: found %q, want %q", c.says, got, c.want)
		}
	}
}

func TestNetworksArePartOfTheTemplateWhateverTheirOrder(t *testing.T) {
	template := func(line string) string { return string(good(t, withLines(line)).Specs[0].Template) }
	none, one, two := template(""), template(`networks = ["a"]`), template(`networks = ["a", "b"]`)
	if none == one || one == two {
		t.Errorf("another network makes no other template:\n%s\n%s\n%s", none, one, two)
	}
	if got := template(`networks = ["b", "a"]`); got != two {
		t.Errorf("template = %s\nwant       %s", got, two)
	}
	if got := template(`networks = []`); got != none {
		t.Errorf("template = %s\nwant       %s", got, none)
	}
}

func TestAMemberIsRenderedWithItsNetworks(t *testing.T) {
	spec := good(t, withLines(`networks = ["b", "a"]`)).Specs[0]
	pod, err := Render(&spec.Set, spec.Template, Env{Ordinals: []int{0}})
	if want := []string{"a", "b"}; err != nil || !reflect.DeepEqual(pod.Networks, want) {
		t.Errorf("networks = %q, %v, want %q", pod.Networks, err, want)
	}
}
