package hcl

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/stsd/stsd/jobspecs"
)

// The normal form of a template and of a claim's spec, as decoded JSON:
//
//	service, labels, extra_hosts, sysctls, termination_grace, share_processes   as written
//	networks    names, sorted
//	restarted   stamp of `rollout restart`
//	volume      names of the claims, sorted
//	scratch, bind   NAME → its attributes
//	container, init, sidecar
//	            NAME → its attributes, and
//	              port, file, probe   label → block
//	              mount               name → blocks, sorted
//	              lifecycle, restart, resources, security, log, registry_auth
//	order       names of the containers as they begin, where there are several
//	var, read   variables and files that symbolic attributes read
//
// A value is a string, a json.Number, a bool, a list or a map of these, or
// symbolic: {"$expr": "…"}.
type document = map[string]any

const exprKey = "$expr"

func symbolicValue(text string) document { return document{exprKey: text} }

// expression is the text of a symbolic value.
func expression(v any) (string, bool) {
	m, ok := v.(document)
	if !ok || len(m) != 1 {
		return "", false
	}
	s, ok := m[exprKey].(string)
	return s, ok
}

// encode writes the canonical bytes. json.Marshal sorts the keys of maps, and
// escapes <, > and & as it will when the bytes are embedded in another document:
// stored and read again they are the same bytes.
func encode(d document) []byte {
	b, err := json.Marshal(d)
	if err != nil {
		panic(err) // a document holds nothing that JSON cannot
	}
	return b
}

func decodeDocument(b []byte) (document, error) {
	d := document{}
	if len(b) == 0 {
		return d, nil
	}
	r := json.NewDecoder(bytes.NewReader(b))
	r.UseNumber()
	if err := r.Decode(&d); err != nil {
		return nil, fmt.Errorf("read template: %w", err)
	}
	return d, nil
}

// part is a map inside a document; nil when it is not there.
func part(d document, keys ...string) document {
	for _, k := range keys {
		d, _ = d[k].(document)
	}
	return d
}

// encodeValue writes a variable's value: a string, number or bool as it is,
// anything else together with its type.
func encodeValue(v cty.Value) (any, error) {
	t := v.Type()
	if v.IsNull() || !t.IsPrimitiveType() {
		t = cty.DynamicPseudoType
	}
	b, err := ctyjson.Marshal(v, t)
	if err != nil {
		return nil, err
	}
	var out any
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	err = d.Decode(&out)
	return out, err
}

func decodeValue(v any) (cty.Value, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return cty.NilVal, err
	}
	if _, typed := v.(document); typed {
		return ctyjson.Unmarshal(b, cty.DynamicPseudoType)
	}
	t, err := ctyjson.ImpliedType(b)
	if err != nil {
		return cty.NilVal, err
	}
	return ctyjson.Unmarshal(b, t)
}

func sortedUnique(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list)
}

func nonEmpty(list ...string) []string {
	return slices.DeleteFunc(list, func(s string) bool { return strings.TrimSpace(s) == "" })
}

// Images are the images of a template that do not depend on the member.
func Images(t jobspecs.Template) []jobspecs.Image {
	d, err := decodeDocument(t)
	if err != nil {
		return nil
	}
	var images []jobspecs.Image
	for _, p := range partsOf(d) {
		if ref, ok := p.doc["image"].(string); ok {
			images = append(images, jobspecs.Image{Container: p.name, Ref: ref, Pull: textOr(p.doc, "pull", jobspecs.PullMissing)})
		}
	}
	return images
}
