package hcl

import (
	"encoding/json"
	"fmt"

	hcl2 "github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// A Variable is a variable block of a scope.
type Variable struct {
	Name        string `json:"name"`
	Given       bool   `json:"given"` // by Inputs.Vars; else its default or, with AllowMissing, nothing
	HasDefault  bool   `json:"has_default"`
	Description string `json:"description,omitempty"`
	Sensitive   bool   `json:"sensitive,omitempty"`
}

// A variable is one block, while it is read.
type variable struct {
	Variable
	at          hcl2.Range
	kind        cty.Type
	typed       bool // a type was written
	defaults    *typeexpr.Defaults
	fallback    hclsyntax.Expression
	validations []*hclsyntax.Block
	value       cty.Value
}

// declaration reads a variable block, all but its value. nil: it has no name.
func (s *scope) declaration(b *hclsyntax.Block) *variable {
	schema := fileSchema.block("variable")
	if !s.labelled(b, schema) {
		return nil
	}
	v := &variable{at: b.DefRange(), kind: cty.DynamicPseudoType}
	v.Name = b.Labels[0]
	for _, a := range sortedAttributes(b.Body) {
		s.variableAttribute(v, a, schema)
	}
	for _, c := range b.Body.Blocks {
		if c.Type != "validation" {
			s.unknownBlock(c, schema)
			continue
		}
		v.validations = append(v.validations, c)
	}
	if v.Sensitive && v.fallback != nil {
		s.hideLines(v.fallback.Range())
	}
	return v
}

func (s *scope) variableAttribute(v *variable, a *hclsyntax.Attribute, schema *block) {
	switch a.Name {
	case "type":
		t, defaults, ds := typeexpr.TypeConstraintWithDefaults(a.Expr)
		s.hcl(ds)
		if !ds.HasErrors() {
			v.kind, v.defaults, v.typed = t, defaults, true
		}
	case "default":
		v.fallback, v.HasDefault = a.Expr, true
	case "description":
		if d, ok := s.constant(a.Expr, text, nil); ok {
			v.Description = d.(string)
		}
	case "sensitive":
		if d, ok := s.constant(a.Expr, boolean, nil); ok {
			v.Sensitive = d.(bool)
		}
	default:
		s.unknownAttribute(a, schema)
	}
}

// constant evaluates an expression that may use names only when the variables
// have their values (names is not nil).
func (s *scope) constant(e hclsyntax.Expression, k *kind, names map[string]cty.Value) (any, bool) {
	if refs := hclsyntax.Variables(e); names == nil && len(refs) > 0 {
		s.error(refs[0].SourceRange(), "no name may be used here", "")
		return nil, false
	}
	v, ds := s.eval(e, nil)
	s.hcl(ds)
	if ds.HasErrors() || v.IsNull() || !v.IsWhollyKnown() {
		return nil, false
	}
	plain, marks := v.UnmarkDeep()
	out, err := k.read(plain)
	switch {
	case err != nil && len(marks) > 0:
		s.error(e.Range(), "this takes "+k.word, "")
	case err != nil:
		s.error(e.Range(), err.Error(), "")
	}
	return out, err == nil
}

// assign gives every variable its value: the one given, else its default.
func (s *scope) assign() {
	s.values = cty.EmptyObjectVal
	values := map[string]cty.Value{}
	for _, name := range sortedKeys(s.vars) {
		v := s.vars[name]
		v.value = s.valueOf(v)
		if v.Sensitive {
			s.keepUnsaid(v.value)
			v.value = v.value.Mark(sensitive)
		}
		values[name] = v.value
	}
	s.values = cty.ObjectVal(values)
	for _, name := range sortedKeys(s.vars) {
		for _, b := range s.vars[name].validations {
			s.validate(s.vars[name], b)
		}
	}
}

func (s *scope) valueOf(v *variable) cty.Value {
	if raw, ok := s.in.Vars[v.Name]; ok {
		return s.given(v, raw)
	}
	if v.HasDefault {
		return s.fallback(v)
	}
	if !s.opt.AllowMissing {
		s.error(v.at, fmt.Sprintf("variable %q has no value", v.Name),
			fmt.Sprintf("Give it one: -var %s=…, --var-file FILE, the environment's STSD_VAR_%s, or a default here.", v.Name, v.Name))
	}
	return cty.UnknownVal(v.kind.WithoutOptionalAttributesDeep())
}

func (s *scope) given(v *variable, raw json.RawMessage) cty.Value {
	v.Given = true
	value, err := fromJSON(raw)
	if err == nil {
		value, err = v.convert(value)
	}
	if err != nil {
		s.error(v.at, fmt.Sprintf("the value of variable %q does not fit", v.Name), v.why(err))
		return cty.DynamicVal
	}
	if s.read.Vars == nil {
		s.read.Vars = map[string]json.RawMessage{}
	}
	s.read.Vars[v.Name] = raw
	return value
}

func fromJSON(raw json.RawMessage) (cty.Value, error) {
	t, err := ctyjson.ImpliedType(raw)
	if err != nil {
		return cty.NilVal, err
	}
	return ctyjson.Unmarshal(raw, t)
}

func (v *variable) convert(value cty.Value) (cty.Value, error) {
	if weigh(value, expressionWork)+conversion(value, expressionWork) > expressionWork {
		return cty.NilVal, errTooMuch
	}
	if v.defaults != nil && !value.IsNull() {
		value = v.defaults.Apply(value)
	}
	converted, err := convert.Convert(value, v.kind)
	if err != nil {
		return cty.NilVal, fmt.Errorf("want %s: %w", typeexpr.TypeString(v.kind), err)
	}
	return converted, nil
}

func (s *scope) fallback(v *variable) cty.Value {
	if refs := hclsyntax.Variables(v.fallback); len(refs) > 0 {
		s.error(refs[0].SourceRange(), "a variable's default may use no names", "A value made of others belongs in a locals block.")
		return cty.DynamicVal
	}
	outer := s.funcs
	s.funcs = functions(s, s.getenv, s.meter)
	value, ds := s.eval(v.fallback, nil)
	s.funcs = outer
	if v.Sensitive {
		ds = unsaid(ds)
	}
	s.hcl(ds)
	if ds.HasErrors() {
		return cty.DynamicVal
	}
	converted, err := v.convert(value)
	if err != nil {
		s.error(v.fallback.Range(), fmt.Sprintf("the default of variable %q does not fit its type", v.Name), v.why(err))
		return cty.DynamicVal
	}
	return converted
}

// why is an error about the variable's value, without what it says of a
// sensitive one.
func (v *variable) why(err error) string {
	if v.Sensitive {
		return "Want " + typeexpr.TypeString(v.kind) + "."
	}
	return err.Error()
}

// validate holds a variable against one of its validation blocks.
func (s *scope) validate(v *variable, b *hclsyntax.Block) {
	schema := fileSchema.block("variable").block("validation")
	for _, a := range sortedAttributes(b.Body) {
		if _, ok := schema.attr(a.Name); !ok {
			s.unknownAttribute(a, schema)
		}
	}
	for _, c := range b.Body.Blocks {
		s.unknownBlock(c, schema)
	}
	condition, message := b.Body.Attributes["condition"], b.Body.Attributes["error_message"]
	if condition == nil || message == nil {
		s.error(b.DefRange(), "a validation block needs condition and error_message", "")
		return
	}
	if !s.variablesOnly(condition.Expr) || !s.variablesOnly(message.Expr) {
		return
	}
	ok, evaluated := s.constant(condition.Expr, boolean, s.values.AsValueMap())
	if !evaluated || ok.(bool) {
		return
	}
	said := "its validation says no"
	if s.taints(message.Expr) {
		said += "; its message holds a sensitive value"
	} else if m, ok := s.constant(message.Expr, text, s.values.AsValueMap()); ok {
		said = m.(string)
	}
	s.error(v.at, fmt.Sprintf("the value of variable %q is refused", v.Name), said)
}

func (s *scope) variablesOnly(e hclsyntax.Expression) bool {
	for _, t := range hclsyntax.Variables(e) {
		if t.RootName() != "var" {
			s.error(t.SourceRange(), "a validation may use var.NAME only", "")
			return false
		}
	}
	return s.check(e, false, nil)
}
