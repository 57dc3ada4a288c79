package hcl

import (
	"maps"
	"net/netip"
	"slices"

	hcl2 "github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/stsd/stsd/jobspecs"
)

// DefaultDomain is the DNS domain when Env names none.
const DefaultDomain = "cluster.local"

// Env is what a member's rendering depends on beside its set and template.
type Env struct {
	Domain    string // DefaultDomain when empty
	Revision  string // name
	Ordinal   int
	Ordinals  []int // the set's, in order; Ordinal may be missing from them: a member that is being removed
	Addresses map[int]netip.Addr
	HostIP    netip.Addr       // the gateway
	Fresh     map[int]bool     // ordinals of which no container has used the volumes yet
	Formed    bool             // all members were ready at the same time once
	Sets      map[string]Other // other sets of the namespace, for sets.NAME: those of Uses
	ImageIDs  map[string]string
}

// IsSteady: the set has formed, and no volume of it or of another set is fresh.
func (e Env) IsSteady() bool {
	fresh := func(of map[int]bool) bool { return slices.Contains(slices.Collect(maps.Values(of)), true) }
	for _, o := range e.Sets {
		if fresh(o.Fresh) {
			return false
		}
	}
	return e.Formed && !fresh(e.Fresh)
}

// Steady is the environment as it will be when it IsSteady and nothing else changes.
func (e Env) Steady() Env {
	e.Formed, e.Fresh, e.Sets = true, nil, maps.Clone(e.Sets)
	for name, o := range e.Sets {
		o.Fresh = nil
		e.Sets[name] = o
	}
	return e
}

func (e Env) domain() string {
	if e.Domain == "" {
		return DefaultDomain
	}
	return e.Domain
}

// Fields of self and set; docs/spec.md explains them.
var (
	selfFields = []string{"ordinal", "index", "name", "fqdn", "ip", "host_ip", "fresh"}
	setFields  = []string{"name", "namespace", "service", "replicas", "fqdn", "members", "peers", "first", "formed"}
)

// A view gives self and set their values.
type view struct {
	set     *jobspecs.Set
	service string // of the template
	env     Env
	roster  *roster
}

// A roster is the values of all members of one Env, made when the first
// expression asks for them and shared by the views of these members.
type roster struct {
	values []cty.Value
	list   cty.Value
	sets   cty.Value            // NilVal: not made yet
	fields map[string]cty.Value // of set, but for members and peers
}

func newView(set *jobspecs.Set, service string, env Env) view {
	return view{set: set, service: service, env: env, roster: &roster{}}
}

// of is the view of another member of the same Env.
func (v view) of(ordinal int) view {
	v.env.Ordinal = ordinal
	return v
}

// variables are self, set and sets; without members and peers, which take long to make
// for a long set, unless others tells that they are asked for.
func (v view) variables(others bool) map[string]cty.Value {
	return map[string]cty.Value{"self": v.member(v.env.Ordinal), "set": v.setValue(others), "sets": v.setsValue()}
}

// asksForOthers tells whether an expression looks at the other members.
func asksForOthers(refs []hcl2.Traversal) bool {
	return slices.ContainsFunc(refs, func(t hcl2.Traversal) bool {
		name := secondName(t)
		return t.RootName() == "set" && (name == "members" || name == "peers" || name == "")
	})
}

func (v view) member(ordinal int) cty.Value {
	name := jobspecs.MemberName(v.set.Name, ordinal)
	return cty.ObjectVal(map[string]cty.Value{
		"ordinal": cty.NumberIntVal(int64(ordinal)),
		"index":   cty.NumberIntVal(int64(v.index(ordinal))),
		"name":    cty.StringVal(name),
		"fqdn":    cty.StringVal(jobspecs.FQDN(name, v.service, v.set.Namespace, v.env.domain())),
		"ip":      addressValue(v.env.Addresses[ordinal]),
		"host_ip": addressValue(v.env.HostIP),
		"fresh":   cty.BoolVal(v.env.Fresh[ordinal]),
	})
}

// index is the position in the set; a member that is being removed keeps the one
// it had.
func (v view) index(ordinal int) int {
	if i, ok := slices.BinarySearch(v.env.Ordinals, ordinal); ok {
		return i
	}
	return ordinal - v.set.StartOrdinal
}

// addressValue is "" where no address is known.
func addressValue(a netip.Addr) cty.Value {
	if !a.IsValid() {
		return cty.StringVal("")
	}
	return cty.StringVal(a.String())
}

func (v view) setValue(others bool) cty.Value {
	fields := maps.Clone(v.commonFields())
	if others {
		fields["members"], fields["peers"] = v.members()
	}
	return cty.ObjectVal(fields)
}

// commonFields of set are the same for all members. A set without any is its own
// first.
func (v view) commonFields() map[string]cty.Value {
	if v.roster.fields != nil && len(v.env.Ordinals) > 0 {
		return v.roster.fields
	}
	first := v.env.Ordinal
	if len(v.env.Ordinals) > 0 {
		first = v.env.Ordinals[0]
	}
	v.roster.fields = map[string]cty.Value{
		"name":      cty.StringVal(v.set.Name),
		"namespace": cty.StringVal(v.set.Namespace),
		"service":   cty.StringVal(v.service),
		"replicas":  cty.NumberIntVal(int64(len(v.env.Ordinals))),
		"fqdn":      cty.StringVal(jobspecs.ServiceDomain(v.service, v.set.Namespace, v.env.domain())),
		"first":     v.member(first),
		"formed":    cty.BoolVal(v.env.Formed),
	}
	return v.roster.fields
}

func (v view) members() (members, peers cty.Value) {
	r := v.roster
	if r.list == cty.NilVal {
		for _, o := range v.env.Ordinals {
			r.values = append(r.values, v.member(o))
		}
		r.list = listOfMembers(r.values)
	}
	others := r.values
	if i, ok := slices.BinarySearch(v.env.Ordinals, v.env.Ordinal); ok {
		others = slices.Concat(r.values[:i], r.values[i+1:])
	}
	return r.list, listOfMembers(others)
}

var memberType = view{set: &jobspecs.Set{}}.member(0).Type()

func listOfMembers(list []cty.Value) cty.Value {
	if len(list) == 0 {
		return cty.ListValEmpty(memberType)
	}
	return cty.ListVal(list)
}
