package hcl

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stsd/stsd/jobspecs"
)

// withLines is web with more lines beside its container.
func withLines(lines string) string {
	return "statefulset \"web\" {\nreplicas = 3\n" + lines + "\ncontainer \"web\" {\nimage = \"x\"\n}\n}\n"
}

func TestMembershipIsRefused(t *testing.T) {
	for _, c := range []struct{ name, spec, want string }{
		{"an ordinal that is none", withLines("reserve = [\"a\"]"), `this takes a whole number from 0`},
		{"a negative one", withLines("reserve = [-1]"), `is not a whole number from 0`},
		{"an ordinal that depends on the member", withLines("reserve = [self.ordinal]"), "self has no value here"},
		{"a set after itself", withLines("start_after = [\"web\"]"), "a set cannot start after itself"},
		{"a set with a wrong name", withLines("start_after = [\"Web\"]"), `"Web" is no DNS label`},
		{"two that wait for each other", withLines("start_after = [\"db\"]") + strings.ReplaceAll(withLines("start_after = [\"web\"]"), "statefulset \"web\"", "statefulset \"db\""), "these sets wait for each other to start"},
		{"a guard without a number", withLines("guard {\n}"), "guard needs min_available"},
		{"a guard of one member", withLines("guard {\nmin_available = self.ordinal\n}"), "self has no value in the guard block"},
		{"a guard of one member, through a local", withLines("locals {\na = self.ordinal\n}\nguard {\nmin_available = local.a\n}"), "self has no value in the guard block"},
		{"half a member", withLines("guard {\nmin_available = set.replicas / 2\n}"), "1.5 is not a whole number"},
		{"a hook without a command", withLines("hook \"a\" {\non = \"join\"\n}"), "hook needs command"},
		{"a hook without an occasion", withLines("hook \"a\" {\ncommand = [\"x\"]\n}"), "hook needs on"},
		{"a hook at another time", withLines("hook \"a\" {\non = \"leaves\"\ncommand = [\"x\"]\n}"), `did you mean "leave"?`},
		{"joining once", withLines("hook \"a\" {\non = \"join\"\nonce = true\ncommand = [\"x\"]\n}"), `once is for on = "set_ready" only`},
		{"a hook in a container that is not there", withLines("hook \"a\" {\non = \"join\"\ncontainer = \"wep\"\ncommand = [\"x\"]\n}"), `there is no container or sidecar "wep"`},
		{"a hook in an ordinal that is not there", withLines("hook \"a\" {\non = \"join\"\nordinal = 7\ncommand = [\"x\"]\n}"), `hook "a" runs in ordinal 7, which the set does not have`},
		{"two hooks of one name", withLines("hook \"a\" {\non = \"join\"\ncommand = [\"x\"]\n}\nhook \"a\" {\non = \"leave\"\ncommand = [\"x\"]\n}"), `there are two blocks hook "a"`},
		{"an order without its last", withLines("update {\norder = \"role\"\n}"), `needs last`},
		{"a last without its order", withLines("update {\nlast = \"primary\"\n}"), `last means nothing without order = "role"`},
		{"an order by a role that nobody has", withLines("update {\norder = \"role\"\nlast = \"primary\"\n}"), "needs a role probe"},
		{"a failure that means nothing", withLines("update {\non_failure = \"retry\"\n}"), `"retry" is none of "pause", "rollback", "wait"`},
		{"another set without a name", withLines("labels = {\na = sets.fqdn.x\n}"), `sets.fqdn has no "x"`},
		{"sets where nothing is rendered", withLines("service = sets.db.fqdn"), "sets has no value here"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, ds := Parse([]jobspecs.Source{{Name: "web.hcl", Text: []byte(c.spec)}}, jobspecs.Inputs{}, Options{})
			if got := reportOf(ds); !strings.Contains(got, c.want) {
				t.Errorf("report:\n%s\nwant it to say %q", got, c.want)
			}
		})
	}
}

func TestAHookRunsInAnyContainerThatGoesOn(t *testing.T) {
	parts := "init \"first\" {\nimage = \"x\"\n}\nsidecar \"beside\" {\nimage = \"x\"\n}\n"
	for container, want := range map[string]string{"web": "", "beside": "", "first": `there is no container or sidecar "first"`} {
		hook := fmt.Sprintf("hook \"a\" {\non = \"join\"\ncontainer = %q\ncommand = [\"x\"]\n}", container)
		_, ds := Parse([]jobspecs.Source{{Name: "web.hcl", Text: []byte(withLines(parts + hook))}}, jobspecs.Inputs{}, Options{})
		if got := reportOf(ds); want == "" && HasErrors(ds) || !strings.Contains(got, want) {
			t.Errorf("in %s: report:\n%s\nwant %q", container, got, want)
		}
	}
}

func TestMembershipIsReadWithItsDefaults(t *testing.T) {
	spec := good(t, withLines(`
		reserve = [4, 1, 4]
		start_after = ["etcd", "db"]
		guard {
			min_available = floor(set.replicas / 2) + 1
		}
		hook "forget" {
			on      = "leave"
			ordinal = 0
			command = ["forget", self.name, set.name]
		}
		hook "form" {
			on         = "set_ready"
			once       = true
			container  = "web"
			timeout    = "5m"
			on_failure = "continue"
			command    = ["form"]
		}`)).Specs[0]
	zero := 0
	want := []jobspecs.Hook{
		{Name: "forget", On: "leave", Ordinal: &zero, Timeout: time.Minute, OnFailure: "abort", Spec: json.RawMessage(`{"command":["forget",{"$expr":"self.name"},{"$expr":"set.name"}]}`)},
		{Name: "form", On: "set_ready", Once: true, Container: "web", Timeout: 5 * time.Minute, OnFailure: "continue", Spec: json.RawMessage(`{"command":["form"]}`)},
	}
	if !reflect.DeepEqual(spec.Set.Hooks, want) {
		t.Errorf("hooks = %s\nwant    %s", show2(spec.Set.Hooks), show2(want))
	}
	update := jobspecs.Update{Strategy: "rolling", MaxUnavailable: "1", Deadline: 10 * time.Minute, OnFailure: "pause", Order: "descending"}
	if spec.Set.Update != update {
		t.Errorf("update = %+v, want %+v", spec.Set.Update, update)
	}
	if got, want := spec.Set.Ordinals(3), []int{0, 2, 3}; !reflect.DeepEqual(got, want) || !reflect.DeepEqual(spec.Set.Reserve, []int{1, 4}) {
		t.Errorf("ordinals = %v of reserve %v, want %v", got, spec.Set.Reserve, want)
	}
	if want := []string{"etcd", "db"}; !reflect.DeepEqual(spec.Set.StartAfter, want) {
		t.Errorf("start_after = %v, want %v", spec.Set.StartAfter, want)
	}
	for n, want := range map[int]int{1: 1, 3: 2, 5: 3} {
		got, err := RenderGuard(&spec.Set, Env{Ordinals: spec.Set.Ordinals(n)})
		if err != nil || got != want {
			t.Errorf("min_available of %d = %d, %v, want %d", n, got, err, want)
		}
	}
	got, err := RenderHook(&spec.Set, &spec.Set.Hooks[0], Env{Ordinals: []int{0, 2}, Ordinal: 3})
	if want := []string{"forget", "web-3", "web"}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("command = %v, %v, want %v", got, err, want)
	}
}

func show2(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

func TestMembershipIsNoPartOfTheRevision(t *testing.T) {
	plain, full := good(t, withLines("")).Specs[0], good(t, withLines(`
		reserve     = [7]
		start_after = ["db"]
		update {
			deadline   = "1m"
			on_failure = "rollback"
		}
		guard {
			min_available = 1
		}
		hook "a" {
			on      = "leave"
			command = ["x"]
		}`)).Specs[0]
	if !plain.Template.Equal(full.Template) {
		t.Errorf("templates differ:\n%s\n%s", plain.Template, full.Template)
	}
	want := []jobspecs.Change{
		{Path: "guard.min_available", After: "1"},
		{Path: "hook.a.command", After: `["x"]`},
		{Path: "hook.a.on", After: `"leave"`},
		{Path: "hook.a.on_failure", After: `"abort"`},
		{Path: "hook.a.timeout", After: `"1m"`},
		{Path: "reserve", After: "[7]"},
		{Path: "start_after", After: `["db"]`},
		{Path: "update.deadline", Before: `"10m"`, After: `"1m"`},
		{Path: "update.on_failure", Before: `"pause"`, After: `"rollback"`},
	}
	if got := DiffSets(&plain.Set, &full.Set); !reflect.DeepEqual(got, want) {
		t.Errorf("diff = %+v\nwant   %+v", got, want)
	}
}

func TestAReservedMemberWithDataIsMarked(t *testing.T) {
	lines := "volume \"data\" {\n}\n"
	mount := "\ncontainer \"web\" {\nimage = \"x\"\nmount \"data\" {\npath = \"/d\"\n}\n}\n}\n"
	old := good(t, "statefulset \"web\" {\nreplicas = 3\n"+lines+mount).Specs[0]
	now := good(t, "statefulset \"web\" {\nreplicas = 3\nreserve = [1]\n"+lines+mount).Specs[0]
	got := DataChanges(&old.Set, &now.Set, old.Template, now.Template)
	want := []string{"data: ordinal 1 is reserved; web-1 goes, and the others do not use its volumes"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("data = %q, want %q", got, want)
	}
}

func TestOtherSetsAreKnownByWhoRenders(t *testing.T) {
	text := withLines("guard {\nmin_available = sets.etcd.replicas\n}\nlabels = {\nall = join(\",\", sets.etcd.members[*].name)\nat = sets.etcd.fqdn\nip = sets.etcd.members[1].ip\n}")
	source := []jobspecs.Source{{Name: "web.hcl", Text: []byte(text)}}
	etcd := Other{Service: "etcd-nodes", Ordinals: []int{1, 2}, Addresses: map[int]netip.Addr{2: netip.MustParseAddr("10.0.0.2")}}
	known := func(ns string) map[string]Other {
		return map[string]Other{"etcd": etcd, "web": {Service: ns}}
	}
	unknown := good(t, text).Specs[0]
	f, ds := Parse(source, jobspecs.Inputs{}, Options{Others: known})
	if f == nil {
		t.Fatal(reportOf(ds))
	}
	spec := f.Specs[0]
	if !spec.Template.Equal(unknown.Template) {
		t.Errorf("the template depends on who reads it:\n%s\n%s", spec.Template, unknown.Template)
	}
	if got, want := Uses(&spec.Set, spec.Template), []string{"etcd"}; !reflect.DeepEqual(got, want) {
		t.Errorf("uses = %v, want %v", got, want)
	}
	env := Env{Ordinals: []int{0}, Sets: map[string]Other{"etcd": etcd}}
	pod, err := Render(&spec.Set, spec.Template, env)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"all": "etcd-1,etcd-2", "at": "etcd-nodes.default.svc.cluster.local", "ip": "10.0.0.2"}
	if !reflect.DeepEqual(pod.Labels, want) {
		t.Errorf("labels = %v, want %v", pod.Labels, want)
	}
	if n, err := RenderGuard(&spec.Set, env); n != 2 || err != nil {
		t.Errorf("min_available = %d, %v, want 2", n, err)
	}
	_, ds = Parse(source, jobspecs.Inputs{}, Options{Others: func(string) map[string]Other { return map[string]Other{"db": {}, "web": {}} }})
	if got := reportOf(ds); !strings.Contains(got, `there is no set "etcd" in namespace default`) || !strings.Contains(got, "in this apply or stored: db, web.") {
		t.Errorf("report:\n%s", got)
	}
	if _, err := Render(&spec.Set, spec.Template, Env{Ordinals: []int{0}, Sets: map[string]Other{}}); err == nil || !strings.Contains(err.Error(), "etcd") {
		t.Errorf("without the set: %v", err)
	}
}
