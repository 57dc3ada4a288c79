package hcl

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"time"

	hcl2 "github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/stsd/stsd/jobspecs"
)

// statefulset reads one block. What is wrong in it is in the report then; its
// name is good.
func (s *scope) statefulset(b *hclsyntax.Block) jobspecs.Spec {
	before := len(s.found)
	d := &decoder{scope: s.inSet(), places: map[string]hcl2.Range{}, vague: map[string]bool{}, refs: newReferences()}
	for _, c := range b.Body.Blocks {
		switch {
		case c.Type == "locals":
			d.declare(c)
		case slices.Contains(mountableKinds, c.Type) && len(c.Labels) > 0:
			d.declareMountable(c)
		}
	}
	d.tryLocals([]*sample{nil})
	d.samples = d.sampleMembers(b)
	d.tryLocals(d.samples)
	d.places[""] = b.DefRange()
	doc := d.body(b.Body, b.DefRange(), setSchema, "")
	if names := orderOf(b, doc); len(names) > 1 {
		doc["order"] = names
	}
	spec := jobspecs.Spec{Set: setOf(b.Labels[0], doc), Line: b.DefRange().Start.Line, File: b.DefRange().Filename}
	_, spec.Placed = doc["namespace"]
	spec.Template = d.template(doc)
	if len(spec.Template) > maxTemplate {
		d.error(b.DefRange(), fmt.Sprintf("with everything put in, the set has %d bytes; %d (64 MiB) is the most", len(spec.Template), maxTemplate), "")
	}
	spec.Set.Claims = claims(b, doc)
	spec.Set.Guard = guardOf(doc)
	spec.Set.Hooks = hooksOf(b, doc)
	d.containers(b)
	d.names(b, &spec.Set)
	d.membership(b, &spec.Set, doc)
	d.joined(&spec.Set, doc)
	d.mounted(spec.Template)
	spec.Images = Images(spec.Template)
	switch {
	case HasErrors(s.found[before:]), d.unknown && !s.opt.Draft:
		d.checkInPart(&spec)
	case !s.opt.Draft:
		spec.Ports = d.checkMembers(&spec)
	}
	return spec
}

// maxTemplate is the largest template: it is kept with every revision.
const maxTemplate = 64 << 20

// setOf is what a set's document says beside its template, with defaults.
func setOf(name string, doc document) jobspecs.Set {
	set := jobspecs.Set{
		Namespace:            textOr(doc, "namespace", jobspecs.DefaultNamespace),
		Name:                 name,
		StartOrdinal:         intOr(doc, "start_ordinal", 0),
		Service:              textOr(doc, "service", name),
		PodManagement:        textOr(doc, "pod_management", jobspecs.Ordered),
		RecoveryWait:         durationOr(doc, "recovery_wait", 0),
		RevisionHistoryLimit: intOr(doc, "revision_history_limit", 10),
	}
	if n, ok := doc["replicas"].(json.Number); ok {
		replicas := number64(n)
		set.Replicas = &replicas
	}
	set.HostAccess = textOr(part(doc, "host_access"), "mode", "")
	set.Reserve, set.StartAfter = numbersOf(doc["reserve"]), textsOf(doc["start_after"])
	update, dns := part(doc, "update"), part(doc, "dns")
	set.Update = jobspecs.Update{
		Strategy:       textOr(update, "strategy", jobspecs.Rolling),
		Partition:      intOr(update, "partition", 0),
		MaxUnavailable: textOr(update, "max_unavailable", "1"),
		MinReady:       durationOr(update, "min_ready", 0),
		Deadline:       durationOr(update, "deadline", 10*time.Minute),
		OnFailure:      textOr(update, "on_failure", jobspecs.FailPause),
		Order:          textOr(update, "order", jobspecs.OrderDescending),
		Last:           textOr(update, "last", ""),
	}
	set.DNS = jobspecs.DNS{
		MemberNames: textOr(dns, "member_names", jobspecs.Always),
		SetName:     textOr(dns, "set_name", jobspecs.Peers),
		TTL:         durationOr(dns, "ttl", 5*time.Second),
		NegativeTTL: durationOr(dns, "negative_ttl", 2*time.Second),
	}
	return set
}

func textOr(d document, key, other string) string {
	if s, ok := d[key].(string); ok {
		return s
	}
	return other
}

func intOr(d document, key string, other int) int {
	if n, ok := d[key].(json.Number); ok {
		return number64(n)
	}
	return other
}

func durationOr(d document, key string, other time.Duration) time.Duration {
	if s, ok := d[key].(string); ok {
		v, _ := time.ParseDuration(s)
		return v
	}
	return other
}

func number64(n json.Number) int {
	v, _ := n.Int64()
	return int(v)
}

// claims takes the volume blocks out of a set's document, in source order.
func claims(b *hclsyntax.Block, doc document) []jobspecs.Claim {
	var list []jobspecs.Claim
	volumes := part(doc, "volume")
	for _, c := range b.Body.Blocks {
		if c.Type != "volume" || len(c.Labels) != 1 {
			continue
		}
		v := part(volumes, c.Labels[0])
		if v == nil {
			continue
		}
		delete(volumes, c.Labels[0])
		claim := jobspecs.Claim{
			Name:        c.Labels[0],
			OnScaleDown: textOr(v, "on_scale_down", jobspecs.Retain),
			OnDelete:    textOr(v, "on_delete", jobspecs.Retain),
		}
		delete(v, "on_scale_down")
		delete(v, "on_delete")
		if len(v) > 0 {
			claim.Spec = encode(v)
		}
		list = append(list, claim)
	}
	return list
}

// templateKeys are the parts of a statefulset block whose change makes a revision.
var templateKeys = []string{"service", "termination_grace", "labels", "extra_hosts", "sysctls", "share_processes", "networks", "scratch", "bind", "init", "sidecar", "container", "order"}

// template is the normal form of a set's document.
func (d *decoder) template(doc document) jobspecs.Template {
	t := document{}
	for _, key := range templateKeys {
		if v, ok := doc[key]; ok {
			t[key] = v
		}
	}
	sortNetworks(t)
	if names := sortedKeys(part(doc, "volume")); len(names) > 0 {
		t["volume"] = names
	}
	for _, p := range partsOf(t) {
		if d.read.Pull != "" {
			p.doc["pull"] = d.read.Pull
		}
		for _, key := range []string{"restart", "resources", "security", "lifecycle"} {
			if isEmpty(p.doc[key]) {
				delete(p.doc, key)
			}
		}
		d.sortMounts(p.doc, p.path())
	}
	d.refs.addTo(t, d.scope)
	return encode(t)
}

// sampleMembers are the members that expressions are tried with: the first,
// the second and the last, new and settled. The attributes they depend on are
// read here without a word, and again, aloud, with all others.
func (d *decoder) sampleMembers(b *hclsyntax.Block) []*sample {
	said := d.meter.said
	quiet := *d.scope
	quiet.report = &report{meter: d.meter}
	q := &decoder{scope: &quiet, places: map[string]hcl2.Range{}, vague: map[string]bool{}, refs: newReferences()}
	doc := document{}
	for _, name := range []string{"namespace", "replicas", "start_ordinal", "reserve", "service"} {
		if a := b.Body.Attributes[name]; a != nil && q.check(a.Expr, false, nil) {
			q.attribute(a, setSchema, "", doc)
		}
	}
	d.meter.said = said // what was said in between was not heard
	set := setOf(b.Labels[0], doc)
	d.secretsOf(set.Namespace)
	d.namespace = set.Namespace
	if d.opt.Others != nil {
		d.others = sampleOthers(d.opt.Others(set.Namespace))
	}
	count := 3
	if set.Replicas != nil {
		count = max(*set.Replicas, 1)
	}
	ordinals := set.Ordinals(count)
	young := newView(&set, set.Service, sampleEnv(ordinals, true, d.others))
	settled := newView(&set, set.Service, sampleEnv(ordinals, false, d.others))
	samples := []*sample{newSample(young, ordinals[0]), newSample(settled, ordinals[0])}
	if count > 1 {
		samples = append(samples, newSample(young, ordinals[count-1]))
	}
	if count > 2 {
		samples = append(samples, newSample(young, ordinals[1]))
	}
	return samples
}

func newSample(v view, ordinal int) *sample {
	return &sample{name: jobspecs.MemberName(v.set.Name, ordinal), view: v.of(ordinal)}
}

// sampleEnv has an address for every member, as the daemon will.
func sampleEnv(ordinals []int, fresh bool, others map[string]Other) Env {
	env := Env{Sets: others, Ordinals: ordinals, HostIP: netip.MustParseAddr("10.87.0.1"), Addresses: map[int]netip.Addr{}, Fresh: map[int]bool{}, Formed: !fresh}
	address := env.HostIP
	for _, o := range ordinals {
		address = address.Next()
		env.Addresses[o] = address
		env.Fresh[o] = fresh
	}
	return env
}

// containers refuses a set without a container, and two of one name.
func (d *decoder) containers(b *hclsyntax.Block) {
	first, mains := map[string]*hclsyntax.Block{}, 0
	for _, c := range b.Body.Blocks {
		if !slices.Contains(containerKinds, c.Type) || len(c.Labels) != 1 {
			continue
		}
		if c.Type == jobspecs.KindMain {
			mains++
		}
		other := first[c.Labels[0]]
		if other == nil {
			first[c.Labels[0]] = c
			continue
		}
		if other.Type != c.Type { // two of one kind are two blocks of one name
			at := other.DefRange()
			d.error(c.DefRange(), fmt.Sprintf("there are two containers named %q", c.Labels[0]), fmt.Sprintf("The other one is at %s:%d. init, sidecar and container blocks share their names.", at.Filename, at.Start.Line))
		}
	}
	if mains == 0 && !slices.ContainsFunc(b.Body.Blocks, func(c *hclsyntax.Block) bool { return c.Type == jobspecs.KindMain }) {
		d.error(b.DefRange(), fmt.Sprintf("statefulset %q needs a container", b.Labels[0]), "Write container \"NAME\" { image = … } in it.")
	}
}

// names holds what is made of the set's name against DNS.
func (d *decoder) names(b *hclsyntax.Block, set *jobspecs.Set) {
	ordinals := set.Ordinals(max(replicasOf(set), 1))
	last := ordinals[len(ordinals)-1]
	at := b.LabelRanges[0]
	if last > maxOrdinal {
		d.error(at, fmt.Sprintf("the last ordinal would be %d; %d is the most", last, maxOrdinal), "")
		return
	}
	for _, name := range []string{jobspecs.MemberName(set.Name, last), jobspecs.RevisionName(set.Name, hashOfNothing)} {
		if !jobspecs.IsLabel(name) {
			d.error(at, "the set's name is too long", fmt.Sprintf("%s would have %d characters; a DNS label has %d at most.", name, len(name), jobspecs.MaxLabel))
			return
		}
	}
	if p := set.Update.Partition; set.Replicas != nil && p > last+1 {
		d.warn(d.places["update.partition"], fmt.Sprintf("partition %d is above every ordinal: no member will be updated", p), "")
	}
}

// maxOrdinal is the largest that ParseMember reads.
const maxOrdinal = math.MaxInt32

// sortMounts makes the order of mount blocks leave no trace; their places move along.
func (d *decoder) sortMounts(container document, path string) {
	mounts := part(container, "mount")
	for _, claim := range sortedKeys(mounts) {
		list, _ := mounts[claim].([]any)
		type placed struct {
			text  string
			mount any
			at    hcl2.Range
		}
		var sorted []placed
		for i, m := range list {
			sorted = append(sorted, placed{string(encode(m.(document))), m, d.places[mountPath(path, claim, i)]})
		}
		slices.SortFunc(sorted, func(a, b placed) int { return cmp.Compare(a.text, b.text) })
		for i, p := range sorted {
			list[i] = p.mount
			d.places[mountPath(path, claim, i)] = p.at
		}
	}
}

func mountPath(container, claim string, i int) string {
	return fmt.Sprintf("%s.mount.%s[%d]", container, claim, i)
}
