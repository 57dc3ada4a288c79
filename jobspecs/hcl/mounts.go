package hcl

import (
	"fmt"

	hcl2 "github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/stsd/stsd/jobspecs"
)

// mountables are the blocks that a mount block may name, by that name: volumes,
// scratch folders and paths of the host share their names.
type mountables map[string]*mountable

type mountable struct {
	kind string // of mountableKinds
	at   hcl2.Range
}

// mountableKinds are the blocks that can be mounted.
var mountableKinds = []string{jobspecs.MountVolume, jobspecs.MountScratch, jobspecs.MountBind}

// declareMountable notes a block; two of different kinds under one name are said,
// two of one kind are two blocks of one name.
func (d *decoder) declareMountable(b *hclsyntax.Block) {
	if d.mounts == nil {
		d.mounts = mountables{}
	}
	name := b.Labels[0]
	old := d.mounts[name]
	if old == nil {
		d.mounts[name] = &mountable{b.Type, b.DefRange()}
		return
	}
	if old.kind != b.Type {
		d.error(b.DefRange(), fmt.Sprintf("%q is a %s already", name, old.kind), fmt.Sprintf("It is at %s:%d. volume, scratch and bind blocks share their names.", old.at.Filename, old.at.Start.Line))
	}
}

// mountable tells whether there is something that a mount block names.
func (d *decoder) mountable(b *hclsyntax.Block) bool {
	m := d.mounts[b.Labels[0]]
	if m == nil {
		d.undeclared(b)
		return false
	}
	if a := b.Body.Attributes["sub_path"]; a != nil && m.kind == jobspecs.MountBind {
		d.error(a.NameRange, "a bind has no sub_path", "Write the whole path as its source.")
	}
	return true
}

func (d *decoder) undeclared(b *hclsyntax.Block) {
	name := b.Labels[0]
	detail := fmt.Sprintf("Declare it in the statefulset block: volume %q { }, scratch or bind.", name)
	if near := nearest(name, sortedKeys(d.mounts)); near != "" {
		detail = fmt.Sprintf("Did you mean %q?", near)
	}
	d.error(b.LabelRanges[0], fmt.Sprintf("there is no volume, scratch or bind %q to mount", name), detail)
}

// mounted warns of what no container would see.
func (d *decoder) mounted(t jobspecs.Template) {
	doc, err := decodeDocument(t)
	if err != nil {
		return
	}
	seen := map[string]bool{}
	for _, p := range partsOf(doc) {
		for name := range part(p.doc, "mount") {
			seen[name] = true
		}
	}
	for _, name := range sortedKeys(d.mounts) {
		if m := d.mounts[name]; !seen[name] {
			d.warn(m.at, fmt.Sprintf("%s %q is never mounted", m.kind, name), fmt.Sprintf("Write mount %q { path = … } in the container.", name))
		}
	}
}

// kindOfMount tells what a name of a mount block stands for in a template.
func kindOfMount(t document, name string) string {
	for _, kind := range []string{jobspecs.MountScratch, jobspecs.MountBind} {
		if part(t, kind, name) != nil {
			return kind
		}
	}
	return jobspecs.MountVolume
}
