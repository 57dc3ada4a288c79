package hcl

import (
	"encoding/json"

	hcl2 "github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// A Moment is what expressions may look at that changes while a set starts: a
// rendering that looks at neither stays the same.
type Moment struct {
	Fresh  bool // fresh, of some member
	Formed bool // set.formed
}

// Moments tells what the expressions of a part in normal form may look at: of a
// template, or of one that a set has Beside. It may name what they do not look at;
// of a part that it cannot read it names all.
func Moments(part json.RawMessage) Moment {
	doc, err := decodeDocument(part)
	if err != nil {
		return Moment{true, true}
	}
	l := &looker{}
	l.document(doc)
	return l.Moment
}

// And is what either looks at.
func (m Moment) And(o Moment) Moment { return Moment{m.Fresh || o.Fresh, m.Formed || o.Formed} }

// Without is the environment for expressions that look at no more than m: what they
// do not look at is as in Steady.
func (e Env) Without(m Moment) Env {
	steady := e.Steady()
	if !m.Fresh {
		e.Fresh, e.Sets = steady.Fresh, steady.Sets
	}
	e.Formed = e.Formed || !m.Formed
	return e
}

// A looker reads what expressions look at. Where an object with something of the
// moment in it goes to what could look at all of it, it is taken to be looked at.
type looker struct {
	Moment
	bound map[string]held                    // names of the for expressions around
	items map[*hclsyntax.AnonSymbolExpr]held // of the splat expressions around
}

// held is what the value of an expression may hold.
type held int

const (
	nothing held = iota // nothing of the moment
	aMember             // an object with fresh in it
	members             // a list of those
	aWhole              // set or sets, or something that holds one
)

func (l *looker) document(v any) {
	if text, ok := expression(v); ok {
		e, ds := hclsyntax.ParseExpression([]byte(text), "", hcl2.InitialPos)
		if ds.HasErrors() {
			l.leak(aWhole)
			return
		}
		l.use(e)
		return
	}
	switch v := v.(type) {
	case document:
		for _, inner := range v {
			l.document(inner)
		}
	case []any:
		for _, inner := range v {
			l.document(inner)
		}
	}
}

func (l *looker) leak(h held) {
	l.Fresh = l.Fresh || h != nothing
	l.Formed = l.Formed || h == aWhole
}

// use reads expressions whose whole values go somewhere.
func (l *looker) use(list ...hclsyntax.Expression) {
	for _, e := range list {
		if e != nil {
			l.leak(l.of(e))
		}
	}
}

func (l *looker) of(e hclsyntax.Expression) held {
	switch e := e.(type) {
	case *hclsyntax.ScopeTraversalExpr:
		return l.named(e.Traversal)
	case *hclsyntax.RelativeTraversalExpr:
		return l.steps(l.of(e.Source), e.Traversal)
	case *hclsyntax.AnonSymbolExpr:
		return l.items[e]
	case *hclsyntax.ParenthesesExpr:
		return l.of(e.Expression)
	case *hclsyntax.TemplateWrapExpr:
		return l.of(e.Wrapped)
	case *hclsyntax.IndexExpr:
		return l.index(e)
	case *hclsyntax.SplatExpr:
		return l.splat(e)
	case *hclsyntax.ForExpr:
		return l.loop(e)
	case *hclsyntax.ConditionalExpr:
		l.use(e.Condition)
		return l.either(l.of(e.TrueResult), l.of(e.FalseResult))
	case *hclsyntax.FunctionCallExpr:
		if e.Name == "length" && len(e.Args) == 1 && l.of(e.Args[0]) <= members { // of an object too, it is always the same
			return nothing
		}
		l.use(e.Args...)
	case *hclsyntax.BinaryOpExpr:
		l.use(e.LHS, e.RHS)
	case *hclsyntax.UnaryOpExpr:
		l.use(e.Val)
	case *hclsyntax.TemplateExpr:
		l.use(e.Parts...)
	case *hclsyntax.TemplateJoinExpr:
		l.use(e.Tuple)
	case *hclsyntax.TupleConsExpr:
		l.use(e.Exprs...)
	case *hclsyntax.ObjectConsExpr:
		for _, item := range e.Items {
			l.use(item.KeyExpr, item.ValueExpr)
		}
	case *hclsyntax.ObjectConsKeyExpr:
		if e.ForceNonLiteral || hcl2.ExprAsKeyword(e.Wrapped) == "" {
			l.use(e.Wrapped)
		}
	case *hclsyntax.LiteralValueExpr:
	default:
		l.leak(aWhole)
	}
	return nothing
}

// named is a reference by its root.
func (l *looker) named(t hcl2.Traversal) held {
	root := t.RootName()
	if h, ok := l.bound[root]; ok {
		return l.steps(h, t[1:])
	}
	switch root {
	case "self":
		return l.steps(aMember, t[1:])
	case "set", "sets":
		if root == "sets" && len(t) > 1 {
			t = t[1:]
		}
		switch secondName(t) {
		case "":
			return aWhole
		case "formed":
			l.Formed = true
		case "first":
			return l.steps(aMember, t[2:])
		case "members", "peers":
			return l.steps(members, t[2:])
		}
	}
	return nothing
}

// steps are attributes and elements of what is held.
func (l *looker) steps(h held, t hcl2.Traversal) held {
	for _, step := range t {
		switch h {
		case nothing:
			return nothing
		case members:
			if _, ok := step.(hcl2.TraverseIndex); !ok {
				return aWhole
			}
			h = aMember
		case aMember:
			l.Fresh = l.Fresh || fieldOf(step) == "fresh" || fieldOf(step) == ""
			h = nothing
		default:
			return aWhole
		}
	}
	return h
}

// fieldOf names an attribute; "" for what is none.
func fieldOf(step hcl2.Traverser) string {
	switch s := step.(type) {
	case hcl2.TraverseAttr:
		return s.Name
	case hcl2.TraverseIndex:
		if s.Key.Type() == cty.String && s.Key.IsKnown() && !s.Key.IsNull() {
			return s.Key.AsString()
		}
	}
	return ""
}

func (l *looker) index(e *hclsyntax.IndexExpr) held {
	l.use(e.Key)
	return l.element(e.Collection, nothing)
}

func (l *looker) splat(e *hclsyntax.SplatExpr) held {
	item := l.element(e.Source, aMember) // of what is no list it makes one
	if l.items == nil {
		l.items = map[*hclsyntax.AnonSymbolExpr]held{}
	}
	l.items[e.Item] = item
	return l.listOf(e.Each)
}

func (l *looker) loop(e *hclsyntax.ForExpr) held {
	item := l.element(e.CollExpr, nothing)
	outer := l.bound
	defer func() { l.bound = outer }()
	l.bound = map[string]held{}
	for name, h := range outer {
		l.bound[name] = h
	}
	if e.KeyVar != "" {
		l.bound[e.KeyVar] = nothing
	}
	l.bound[e.ValVar] = item
	if e.CondExpr != nil {
		l.use(e.CondExpr)
	}
	if e.KeyExpr == nil {
		return l.listOf(e.ValExpr)
	}
	l.use(e.KeyExpr, e.ValExpr)
	return nothing
}

// element is what the elements of a collection hold. single is what a lone member
// counts as: aMember, as its own only element; or nothing, since all of it is looked at.
func (l *looker) element(e hclsyntax.Expression, single held) held {
	switch h := l.of(e); {
	case h == members:
		return aMember
	case h == aMember && single == aMember:
		return aMember
	default:
		l.leak(h)
		return nothing
	}
}

func (l *looker) listOf(e hclsyntax.Expression) held {
	h := l.of(e)
	if h == aMember {
		return members
	}
	l.leak(h)
	return nothing
}

// either is what a choice of two may hold.
func (l *looker) either(a, b held) held {
	if a == b {
		return a
	}
	l.leak(a)
	l.leak(b)
	return nothing
}
