package hcl

import (
	"slices"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/stsd/stsd/jobspecs"
)

// A containerPart is one container of a template: of an init, sidecar or container block.
type containerPart struct {
	kind, name string
	doc        document
}

// path is where it stands in a template: "sidecar.exporter".
func (p *containerPart) path() string { return join(p.kind, p.name) }

// partsOf are the containers of a template in the order in which they begin.
func partsOf(t document) []containerPart {
	found := map[string]containerPart{}
	var names []string
	for _, kind := range containerKinds {
		blocks := part(t, kind)
		for _, name := range sortedKeys(blocks) {
			if doc := part(blocks, name); doc != nil {
				found[name] = containerPart{kind, name, doc}
				names = append(names, name)
			}
		}
	}
	var parts []containerPart
	for _, name := range append(textsOf(t["order"]), names...) {
		if p, ok := found[name]; ok {
			parts = append(parts, p)
			delete(found, name)
		}
	}
	return parts
}

// textsOf is a list of names in a document, read back from JSON or not.
func textsOf(v any) []string {
	names, _ := v.([]string)
	list, _ := v.([]any)
	for _, item := range list {
		if s, ok := item.(string); ok {
			names = append(names, s)
		}
	}
	return slices.Clone(names)
}

// orderOf are the names of a set's containers in the order in which they begin:
// inits and sidecars as written, then the containers as written.
func orderOf(b *hclsyntax.Block, doc document) []string {
	var early, mains []string
	for _, c := range b.Body.Blocks {
		if !slices.Contains(containerKinds, c.Type) || len(c.Labels) != 1 || part(doc, c.Type, c.Labels[0]) == nil {
			continue
		}
		if c.Type == jobspecs.KindMain {
			mains = append(mains, c.Labels[0])
			continue
		}
		early = append(early, c.Labels[0])
	}
	return append(early, mains...)
}
