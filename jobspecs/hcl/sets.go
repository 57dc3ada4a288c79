package hcl

import (
	"bytes"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	hcl2 "github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/stsd/stsd/jobspecs"
)

// An Other is another set, as expressions see it: sets.NAME.
type Other struct {
	Service   string
	Ordinals  []int // ascending
	Addresses map[int]netip.Addr
	Fresh     map[int]bool // ordinals of which no container has used the volumes yet
}

// otherFields are those of sets.NAME; docs/spec.md explains them.
var otherFields = []string{"members", "fqdn", "replicas"}

// checkSets looks at sets.NAME.FIELD.
func (s *scope) checkSets(t hcl2.Traversal, name string, member bool) bool {
	switch {
	case !member:
		s.error(t.SourceRange(), "sets has no value here", noMember)
		return false
	case name == "":
		s.error(t.SourceRange(), "sets needs the name of a set, as in sets.etcd.fqdn", "")
		return false
	case s.others != nil:
		if _, known := s.others[name]; !known {
			s.error(t.SourceRange(), fmt.Sprintf("there is no set %q in namespace %s", name, s.namespace), knownSets(sortedKeys(s.others)))
			return false
		}
	}
	if len(t) < 3 {
		return true
	}
	field := secondName(t[1:])
	if field == "" || slices.Contains(otherFields, field) {
		return true
	}
	s.error(t.SourceRange(), fmt.Sprintf("sets.%s has no %q", name, field), "It has "+strings.Join(otherFields, ", ")+".")
	return false
}

func knownSets(names []string) string {
	if len(names) == 0 {
		return "There is no other set, neither in this apply nor stored."
	}
	return "There are, in this apply or stored: " + strings.Join(names, ", ") + "."
}

// setsValue is the value of sets; unknown where nobody knows the other sets.
func (v view) setsValue() cty.Value {
	if v.env.Sets == nil {
		return cty.DynamicVal
	}
	r := v.roster
	if r.sets == cty.NilVal {
		all := map[string]cty.Value{}
		for name, o := range v.env.Sets {
			all[name] = o.value(name, v)
		}
		r.sets = cty.ObjectVal(all)
	}
	return r.sets
}

func (o Other) value(name string, v view) cty.Value {
	env := v.env
	env.Ordinals, env.Addresses, env.Fresh = o.Ordinals, o.Addresses, o.Fresh
	set := jobspecs.Set{Namespace: v.set.Namespace, Name: name}
	if len(o.Ordinals) > 0 {
		set.StartOrdinal = o.Ordinals[0]
	}
	other := newView(&set, o.Service, env)
	members, _ := other.members()
	return cty.ObjectVal(map[string]cty.Value{
		"members":  members,
		"fqdn":     cty.StringVal(jobspecs.ServiceDomain(o.Service, set.Namespace, env.domain())),
		"replicas": cty.NumberIntVal(int64(len(o.Ordinals))),
	})
}

// sampleOthers gives members without an address one, as the daemon will.
func sampleOthers(others map[string]Other) map[string]Other {
	out := map[string]Other{}
	address := netip.MustParseAddr("10.87.2.1")
	for _, name := range sortedKeys(others) {
		o := others[name]
		o.Addresses = maps.Clone(o.Addresses)
		if o.Addresses == nil {
			o.Addresses = map[int]netip.Addr{}
		}
		for _, n := range o.Ordinals {
			if address = address.Next(); !o.Addresses[n].IsValid() {
				o.Addresses[n] = address
			}
		}
		out[name] = o
	}
	return out
}

var setsReference = regexp.MustCompile(`\bsets(?:\.|\[\\?")([a-z0-9-]+)`)

// Uses names the other sets that expressions of a set and of its templates may
// name. It may name some that are none.
func Uses(set *jobspecs.Set, templates ...jobspecs.Template) []string {
	var found []string
	note := func(text []byte) {
		if !bytes.Contains(text, []byte("sets")) { // asked at every turn of a set's loop
			return
		}
		for _, m := range setsReference.FindAllSubmatch(text, -1) {
			found = append(found, string(m[1]))
		}
	}
	for _, t := range templates {
		note(t)
	}
	for _, b := range Beside(set) {
		note(b)
	}
	return sortedUnique(found)
}
