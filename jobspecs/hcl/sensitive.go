package hcl

import (
	"fmt"
	"slices"
	"strings"

	hcl2 "github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// What is sensitive carries a mark while it is evaluated, which every function
// and template hands on. In a document it stands in a wrapper,
// {"$sensitive": value or symbolic value}; whoever shows a document shows the
// wrapper as hidden.
//
// Sensitive are the values of variables with sensitive = true, secrets, the
// content of a file block with sensitive = true, and a password, whatever it is
// made of.

// A secrecy is the mark that tells what is sensitive.
type secrecy string

const sensitive secrecy = "sensitive"

const (
	sensitiveKey = "$sensitive"

	// hidden is what is shown instead of a sensitive value.
	hidden = "(sensitive)"
	// hiddenOther is shown for another one than before.
	hiddenOther = "(sensitive, another value)"
)

func sensitiveValue(v any) document { return document{sensitiveKey: v} }

// revealed is what a sensitive value's wrapper holds.
func revealed(v any) (any, bool) {
	m, ok := v.(document)
	if !ok || len(m) != 1 {
		return nil, false
	}
	inner, ok := m[sensitiveKey]
	return inner, ok
}

// A place says what becomes of a sensitive value that stands in an attribute.
type place struct {
	allowed bool
	shown   string // who sees it there, for a warning; empty: nobody
}

// sensitivePlaces are the attributes that may hold something sensitive, by
// block and attribute. Elsewhere a value ends up in names, labels and answers.
var sensitivePlaces = map[string]place{
	"file.content":           {allowed: true},
	"registry_auth.username": {allowed: true},
	"registry_auth.password": {allowed: true},
	"container.env":          inspected, "init.env": inspected, "sidecar.env": inspected,
	"container.args": inspected, "init.args": inspected, "sidecar.args": inspected,
	"container.command": inspected, "init.command": inspected, "sidecar.command": inspected,
	"exec.command":   {allowed: true, shown: "docker events and a list of processes show it"},
	"hook.command":   {allowed: true, shown: "docker events and a list of processes show it"},
	"http.headers":   {allowed: true, shown: "it is sent over the members' network"},
	"volume.options": {allowed: true, shown: "docker volume inspect shows it"},
	"log.options":    inspected,
}

var inspected = place{allowed: true, shown: "docker inspect shows it"}

// placed tells of a sensitive value at e whether it may stand there, and says
// so where not, or where it will be seen.
func (d *decoder) placed(e hclsyntax.Expression) bool {
	switch p := d.sensitiveAt; {
	case !p.allowed:
		d.error(e.Range(), "a sensitive value is shown here", sensitivePlacesText)
		return false
	case p.shown != "":
		d.warn(e.Range(), "this sensitive value can be seen: "+p.shown, "A file block is the place that leaks nowhere.")
	}
	return true
}

const sensitivePlacesText = "It may stand in a file's content and in registry_auth; also in env, command and args, in the commands and\nheaders of probes and hooks, and in the options of volumes and logs, where it can be seen by others."

// taints tells whether an expression uses a sensitive variable or a secret,
// whatever it comes to.
func (s *scope) taints(e hclsyntax.Expression) bool {
	return s.tainted(e, map[string]bool{})
}

func (s *scope) tainted(e hclsyntax.Expression, seen map[string]bool) bool {
	return slices.ContainsFunc(hclsyntax.Variables(e), func(t hcl2.Traversal) bool {
		name := secondName(t)
		switch t.RootName() {
		case "secret":
			return true
		case "var":
			v := s.vars[name]
			return v != nil && v.Sensitive
		case "local":
			l := s.locals[name]
			if l == nil || seen[name] {
				return false
			}
			seen[name] = true
			return l.scope.tainted(l.expr, seen)
		}
		return false
	})
}

// unsaid takes out of findings about sensitive values what they say of them.
func unsaid(ds hcl2.Diagnostics) hcl2.Diagnostics {
	out := make(hcl2.Diagnostics, len(ds))
	for i, d := range ds {
		c := *d
		c.Detail = "It uses a sensitive value, so that no more is said."
		out[i] = &c
	}
	return out
}

// sensitiveConvert is convert for a value that has something sensitive in it. Of
// a list or map only the elements that are sensitive are wrapped.
func (d *decoder) sensitiveConvert(e hclsyntax.Expression, k *kind, v cty.Value) (any, bool) {
	if !d.placed(e) {
		return nil, false
	}
	plain, paths := v.UnmarkDeepWithPaths()
	out, err := k.read(plain)
	if err != nil {
		d.error(e.Range(), fmt.Sprintf("the sensitive value is not %s", k.word), "")
		return nil, false
	}
	for _, p := range paths {
		if len(p.Path) == 0 || !wrapElement(out, p.Path[0]) {
			return sensitiveValue(out), true
		}
	}
	return out, true
}

// wrapElement wraps one element of a list or map in place. It reports false when
// there is no such element to wrap.
func wrapElement(v any, step cty.PathStep) bool {
	key := cty.NilVal
	switch s := step.(type) {
	case cty.GetAttrStep:
		key = cty.StringVal(s.Name)
	case cty.IndexStep:
		key, _ = s.Key.Unmark()
	}
	switch v := v.(type) {
	case document:
		if key == cty.NilVal || key.Type() != cty.String {
			return false
		}
		item, ok := v[key.AsString()]
		if _, twice := revealed(item); ok && !twice {
			v[key.AsString()] = sensitiveValue(item)
		}
		return true // a null is left out
	case []any:
		if key == cty.NilVal || key.Type() != cty.Number {
			return false
		}
		i, _ := key.AsBigFloat().Int64()
		if i < 0 || int(i) >= len(v) {
			return false
		}
		if _, twice := revealed(v[i]); !twice {
			v[i] = sensitiveValue(v[i])
		}
		return true
	}
	return false
}

// secretValue reads an attribute that is sensitive by its nature. Written in the
// clear it is hidden from now on, but the file still says it.
func (d *decoder) secretValue(a *hclsyntax.Attribute, at attr, path string) (any, bool) {
	tainted := d.taints(a.Expr)
	if !tainted {
		d.hideLines(a.Expr.Range())
	}
	v, ok := d.secretlyRead(a, at, path)
	if !ok || v == nil {
		return v, ok
	}
	if s, isText := opened(v).(string); isText {
		d.keepUnsaid(cty.StringVal(s))
	}
	if !tainted {
		d.warn(a.NameRange, fmt.Sprintf("%s is written in the clear", a.Name), "Whoever reads the file sees it. Take it from a variable with sensitive = true, or from a secret.")
	}
	return sensitiveValue(opened(v)), true
}

// secretlyRead is value, for which variables and files are hidden too that are kept
// to make it.
func (d *decoder) secretlyRead(a *hclsyntax.Attribute, at attr, path string) (any, bool) {
	outer := d.refs.vars
	d.refs.vars, d.secretly = map[string]bool{}, true
	v, ok := d.value(a.Expr, at.kind, at.member, path)
	for name := range d.refs.vars {
		outer[name], d.refs.hidden[name] = true, true
	}
	d.refs.vars, d.secretly = outer, false
	return v, ok
}

// isSecret tells whether a path of a template leads to an attribute that is
// sensitive by its nature.
func isSecret(path string) bool {
	rest, found := strings.CutSuffix(path, ".password")
	return found && (rest == authSchema.name || strings.HasSuffix(rest, "."+authSchema.name))
}

// fileBlock reads a file block, and what it reads for a sensitive one as sensitive.
func (d *decoder) fileBlock(b *hclsyntax.Block, path string) document {
	if hides(b) {
		d.secretly = true
		defer func() { d.secretly = false }()
		if a := b.Body.Attributes["content"]; a != nil {
			d.hideLines(a.Expr.Range())
		}
	}
	out := d.body(b.Body, b.DefRange(), fileSchemaBlock, path)
	d.sensitiveFile(b, out)
	return out
}

// sensitiveFile makes a file block whose content is sensitive a sensitive file,
// and hides the content of one that says it is.
func (d *decoder) sensitiveFile(b *hclsyntax.Block, out document) {
	said, written := out["sensitive"].(bool)
	_, wrapped := revealed(out["content"])
	switch {
	case wrapped && written && !said:
		d.error(b.Body.Attributes["sensitive"].Expr.Range(), "the content of this file is sensitive", "Take sensitive = false out.")
	case wrapped:
		out["sensitive"] = true
	case said && out["content"] != nil:
		out["content"] = sensitiveValue(out["content"])
	case written && !said:
		delete(out, "sensitive")
	}
}

// opened is a value without the wrapper that it may have.
func opened(v any) any {
	if inner, ok := revealed(v); ok {
		return inner
	}
	return v
}

// encoded is a variable's value as documents hold it.
func (v *variable) encoded() (any, error) {
	plain, _ := v.value.UnmarkDeep()
	out, err := encodeValue(plain)
	if v.Sensitive {
		out = sensitiveValue(out)
	}
	return out, err
}
