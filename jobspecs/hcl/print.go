package hcl

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	hcl2 "github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// maxExpression is the longest text of an expression with its locals put in.
const maxExpression = 256 << 10

// A printer writes an expression from its syntax tree, so that layout, comments
// and the way strings are quoted leave no trace. Locals are put in; variables
// are noted.
type printer struct {
	locals  func(name string) hclsyntax.Expression // nil: no such local
	vars    map[string]bool                        // read by what was printed
	secrets map[string]bool                        // the same
	out     strings.Builder
}

func (p *printer) tooLong() bool { return p.out.Len() > maxExpression }

func (p *printer) write(parts ...string) {
	for _, s := range parts {
		p.out.WriteString(s)
	}
}

func (p *printer) expr(e hclsyntax.Expression) {
	if p.tooLong() {
		return
	}
	switch e := e.(type) {
	case *paid:
		p.expr(e.Expression)
	case *hclsyntax.ParenthesesExpr:
		p.expr(e.Expression)
	case *hclsyntax.LiteralValueExpr:
		p.write(literal(e.Val))
	case *hclsyntax.TemplateWrapExpr:
		p.expr(e.Wrapped)
	case *hclsyntax.TemplateExpr:
		p.template(e.Parts)
	case *hclsyntax.TemplateJoinExpr:
		p.write(`join("", `)
		p.expr(e.Tuple)
		p.write(")")
	case *hclsyntax.ScopeTraversalExpr:
		p.reference(e.Traversal)
	case *hclsyntax.RelativeTraversalExpr:
		p.operand(e.Source)
		p.steps(e.Traversal)
	case *hclsyntax.IndexExpr:
		p.operand(e.Collection)
		p.write("[")
		p.expr(e.Key)
		p.write("]")
	case *hclsyntax.SplatExpr:
		p.operand(e.Source)
		p.write("[*]")
		p.each(e.Each)
	case *hclsyntax.FunctionCallExpr:
		p.call(e)
	case *hclsyntax.ConditionalExpr:
		p.operand(e.Condition)
		p.write(" ? ")
		p.operand(e.TrueResult)
		p.write(" : ")
		p.operand(e.FalseResult)
	case *hclsyntax.BinaryOpExpr:
		p.operand(e.LHS)
		p.write(" ", binary[writtenOp(e.Op)], " ")
		p.operand(e.RHS)
	case *hclsyntax.UnaryOpExpr:
		p.write(unary[writtenOp(e.Op)])
		p.operand(e.Val)
	case *hclsyntax.TupleConsExpr:
		p.write("[")
		p.list(e.Exprs)
		p.write("]")
	case *hclsyntax.ObjectConsExpr:
		p.object(e)
	case *hclsyntax.ForExpr:
		p.loop(e)
	}
}

var binary = map[*hclsyntax.Operation]string{
	hclsyntax.OpLogicalOr: "||", hclsyntax.OpLogicalAnd: "&&",
	hclsyntax.OpEqual: "==", hclsyntax.OpNotEqual: "!=",
	hclsyntax.OpGreaterThan: ">", hclsyntax.OpGreaterThanOrEqual: ">=",
	hclsyntax.OpLessThan: "<", hclsyntax.OpLessThanOrEqual: "<=",
	hclsyntax.OpAdd: "+", hclsyntax.OpSubtract: "-", hclsyntax.OpMultiply: "*",
	hclsyntax.OpDivide: "/", hclsyntax.OpModulo: "%",
}

var unary = map[*hclsyntax.Operation]string{hclsyntax.OpLogicalNot: "!", hclsyntax.OpNegate: "-"}

// operand prints in parentheses whatever could be read in two ways.
func (p *printer) operand(e hclsyntax.Expression) {
	if p.tooLong() {
		return
	}
	e = asWritten(e)
	if p.atomic(e) {
		p.expr(e)
		return
	}
	p.write("(")
	p.expr(e)
	p.write(")")
}

func (p *printer) atomic(e hclsyntax.Expression) bool {
	switch e := e.(type) {
	case *hclsyntax.ParenthesesExpr:
		return p.atomic(e.Expression)
	case *hclsyntax.TemplateWrapExpr:
		return p.atomic(e.Wrapped)
	case *hclsyntax.LiteralValueExpr:
		return !(e.Val.Type() == cty.Number && !e.Val.IsNull() && e.Val.AsBigFloat().Sign() < 0)
	case *hclsyntax.ScopeTraversalExpr:
		local := p.localOf(e.Traversal)
		return local == nil || len(e.Traversal) > 2 || p.atomic(local)
	case *hclsyntax.TemplateExpr, *hclsyntax.TemplateJoinExpr, *hclsyntax.FunctionCallExpr, *hclsyntax.TupleConsExpr,
		*hclsyntax.ObjectConsExpr, *hclsyntax.ForExpr, *hclsyntax.RelativeTraversalExpr, *hclsyntax.IndexExpr:
		return true
	}
	return false
}

func (p *printer) localOf(t hcl2.Traversal) hclsyntax.Expression {
	if t.RootName() != "local" || p.locals == nil {
		return nil
	}
	return p.locals(secondName(t))
}

// secondName is NAME of var.NAME, local["NAME"], self.NAME; "" when there is none.
func secondName(t hcl2.Traversal) string {
	if len(t) < 2 {
		return ""
	}
	return fieldOf(t[1])
}

func (p *printer) reference(t hcl2.Traversal) {
	if local := p.localOf(t); local != nil {
		if len(t) == 2 {
			p.expr(local)
			return
		}
		p.operand(local)
		p.steps(t[2:])
		return
	}
	if t.RootName() == "var" && p.vars != nil {
		p.vars[secondName(t)] = true
	}
	if t.RootName() == "secret" && p.secrets != nil {
		p.secrets[secondName(t)] = true
	}
	p.write(t.RootName())
	p.steps(t[1:])
}

func (p *printer) steps(t hcl2.Traversal) {
	for _, step := range t {
		switch step := step.(type) {
		case hcl2.TraverseAttr:
			p.write(".", step.Name)
		case hcl2.TraverseIndex:
			p.index(step.Key)
		}
	}
}

func (p *printer) index(key cty.Value) {
	if key.Type() == cty.String && hclsyntax.ValidIdentifier(key.AsString()) {
		p.write(".", key.AsString())
		return
	}
	p.write("[", literal(key), "]")
}

// each prints what a splat does with every element: steps upon a symbol that
// itself prints as nothing.
func (p *printer) each(e hclsyntax.Expression) {
	switch e := e.(type) {
	case *paid:
		p.each(e.Expression)
	case *hclsyntax.RelativeTraversalExpr:
		p.each(e.Source)
		p.steps(e.Traversal)
	case *hclsyntax.IndexExpr:
		p.each(e.Collection)
		p.write("[")
		p.expr(e.Key)
		p.write("]")
	case *hclsyntax.SplatExpr:
		p.each(e.Source)
		p.write("[*]")
		p.each(e.Each)
	}
}

func (p *printer) call(e *hclsyntax.FunctionCallExpr) {
	p.write(e.Name, "(")
	p.list(e.Args)
	if e.ExpandFinal {
		p.write("...")
	}
	p.write(")")
}

func (p *printer) list(es []hclsyntax.Expression) {
	for i, e := range es {
		if i > 0 {
			p.write(", ")
		}
		p.expr(e)
	}
}

// object prints members sorted by name where every name is known.
func (p *printer) object(e *hclsyntax.ObjectConsExpr) {
	items := slices.Clone(e.Items)
	if keys, ok := literalKeys(e); ok {
		order := make(map[hclsyntax.Expression]string, len(items))
		for i, item := range items {
			order[item.KeyExpr] = keys[i]
		}
		slices.SortStableFunc(items, func(a, b hclsyntax.ObjectConsItem) int {
			return strings.Compare(order[a.KeyExpr], order[b.KeyExpr])
		})
	}
	p.write("{")
	for i, item := range items {
		if i > 0 {
			p.write(", ")
		}
		p.key(item.KeyExpr)
		p.write(" = ")
		p.expr(item.ValueExpr)
	}
	p.write("}")
}

func (p *printer) key(e hclsyntax.Expression) {
	if name, ok := literalKey(e); ok {
		p.write(quote(name))
		return
	}
	if k, ok := e.(*hclsyntax.ObjectConsKeyExpr); ok {
		e = k.Wrapped
	}
	p.write("(")
	p.expr(e)
	p.write(")")
}

// literalKeys are the names of an object's members; ok is false when one of them
// has to be evaluated.
func literalKeys(e *hclsyntax.ObjectConsExpr) (keys []string, ok bool) {
	for _, item := range e.Items {
		key, ok := literalKey(item.KeyExpr)
		if !ok {
			return nil, false
		}
		keys = append(keys, key)
	}
	return keys, true
}

func literalKey(e hclsyntax.Expression) (string, bool) {
	k, ok := e.(*hclsyntax.ObjectConsKeyExpr)
	if !ok {
		return "", false
	}
	if word := hcl2.ExprAsKeyword(k.Wrapped); word != "" && !k.ForceNonLiteral {
		return word, true
	}
	t, ok := k.Wrapped.(*hclsyntax.TemplateExpr)
	if !ok || !t.IsStringLiteral() {
		return "", false
	}
	v, ds := t.Value(nil)
	if ds.HasErrors() {
		return "", false
	}
	return v.AsString(), true
}

func (p *printer) loop(e *hclsyntax.ForExpr) {
	open, end := "[for ", "]"
	if e.KeyExpr != nil {
		open, end = "{for ", "}"
	}
	p.write(open)
	if e.KeyVar != "" {
		p.write(e.KeyVar, ", ")
	}
	p.write(e.ValVar, " in ")
	p.expr(e.CollExpr)
	p.write(" : ")
	if e.KeyExpr != nil {
		p.expr(e.KeyExpr)
		p.write(" => ")
	}
	p.expr(e.ValExpr)
	if e.Group {
		p.write("...")
	}
	if e.CondExpr != nil {
		p.write(" if ")
		p.expr(e.CondExpr)
	}
	p.write(end)
}

// template prints a quoted string; text that was split by the parser is one
// piece again.
func (p *printer) template(parts []hclsyntax.Expression) {
	if len(parts) == 1 {
		if _, ok := literalText(parts[0]); !ok && !alwaysText(parts[0]) { // "${x}" would keep x's type
			p.write("tostring(")
			p.expr(parts[0])
			p.write(")")
			return
		}
	}
	if len(parts) == 1 && alwaysText(parts[0]) {
		p.expr(parts[0])
		return
	}
	p.write(`"`)
	var text strings.Builder
	for _, part := range parts {
		if s, ok := literalText(part); ok {
			text.WriteString(s)
			continue
		}
		p.write(escape(text.String(), true), "${")
		text.Reset()
		p.expr(part)
		p.write("}")
	}
	p.write(escape(text.String(), false), `"`)
}

// alwaysText tells an %{ if } or %{ for } of a template from an interpolation.
func alwaysText(e hclsyntax.Expression) bool {
	switch e := e.(type) {
	case *hclsyntax.TemplateJoinExpr:
		return true
	case *hclsyntax.ConditionalExpr:
		return isTemplate(e.TrueResult) && isTemplate(e.FalseResult)
	}
	return false
}

func isTemplate(e hclsyntax.Expression) bool {
	_, ok := asWritten(e).(*hclsyntax.TemplateExpr)
	return ok
}

func literalText(e hclsyntax.Expression) (string, bool) {
	lit, ok := e.(*hclsyntax.LiteralValueExpr)
	if !ok || lit.Val.Type() != cty.String || lit.Val.IsNull() {
		return "", false
	}
	return lit.Val.AsString(), true
}

func literal(v cty.Value) string {
	switch {
	case v.IsNull():
		return "null"
	case v.Type() == cty.String:
		return quote(v.AsString())
	case v.Type() == cty.Bool:
		return strconv.FormatBool(v.True())
	case v.Type() == cty.Number:
		return v.AsBigFloat().Text('f', -1)
	}
	return "null"
}

// quote writes a string as HCL.
func quote(s string) string { return `"` + escape(s, false) + `"` }

// escape writes the inside of a quoted string. A $ or % stands for itself unless
// a brace follows it; more then means that an interpolation follows the text.
func escape(s string, more bool) string {
	var b strings.Builder
	runes := []rune(s)
	for i, r := range runes {
		next := rune(0)
		if i+1 < len(runes) {
			next = runes[i+1]
		} else if more {
			next = '$'
		}
		switch {
		case r == '"' || r == '\\':
			b.WriteRune('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case (r == '$' || r == '%') && next == '{' && (i == 0 || runes[i-1] != r):
			b.WriteRune(r)
			b.WriteRune(r)
		case (r == '$' || r == '%') && (next == '{' || next == '$' || next == '%'):
			fmt.Fprintf(&b, `\u%04x`, r)
		case r > 0xffff && !unicode.IsPrint(r):
			fmt.Fprintf(&b, `\U%08x`, r)
		case !unicode.IsPrint(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
