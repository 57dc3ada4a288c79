package hcl

import (
	"encoding/json"
	"fmt"
	"strings"

	hcl2 "github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/stsd/stsd/jobspecs"
)

// VarPrefix begins the names of environment variables that give variables.
const VarPrefix = "STSD_VAR_"

// Vars collects the values of variables for Inputs by Terraform's rules: the
// environment, then var files in their order, then assignments NAME=VALUE; the
// later one wins. From the environment and an assignment a variable that is a
// string, number, bool or untyped takes the text as it stands, others read it as
// HCL. Sources tell what is declared; what is wrong in them is Parse's to say.
func Vars(assignments []string, files, sources []jobspecs.Source, lookupEnv func(string) (string, bool)) (map[string]json.RawMessage, []jobspecs.Diagnostic) {
	v := &assigner{report: &report{}, declared: declared(sources), values: map[string]json.RawMessage{}}
	if v.declared == nil {
		return nil, nil
	}
	for _, name := range sortedKeys(v.declared) {
		if lookupEnv == nil {
			break
		}
		if text, ok := lookupEnv(VarPrefix + name); ok {
			v.text(VarPrefix+name, name, text)
		}
	}
	for _, f := range files {
		v.file(f)
	}
	for _, a := range assignments {
		v.assignment(a)
	}
	return v.values, v.done()
}

// An assigner collects values.
type assigner struct {
	*report
	declared map[string]*variable
	values   map[string]json.RawMessage
}

// declared are the variables of the sources; nil when those cannot be parsed.
func declared(sources []jobspecs.Source) map[string]*variable {
	quiet := &report{}
	bodies := quiet.parse(sources)
	if bodies == nil {
		return nil
	}
	s := &scope{report: quiet, read: &jobspecs.Inputs{}, vars: map[string]*variable{}, secrets: map[string]*secret{}, values: cty.EmptyObjectVal}
	s.funcs = functions(s, nil, quiet.meter)
	for _, b := range bodies {
		for _, c := range b.Blocks {
			if c.Type == "variable" {
				s.declareVariable(c)
			}
		}
	}
	return s.vars
}

func (v *assigner) assignment(a string) {
	name, text, ok := strings.Cut(a, "=")
	if !ok {
		v.error(hcl2.Range{}, fmt.Sprintf("-var %s: want NAME=VALUE", a), "")
		return
	}
	name = strings.TrimSpace(name)
	if v.declared[name] == nil {
		v.error(hcl2.Range{}, fmt.Sprintf("-var %s: there is no variable %q%s", name, name, didYouMean(name, sortedKeys(v.declared))), "")
		return
	}
	v.text("-var "+name, name, text)
}

// text takes a value as a user typed it; origin is what to call it.
func (v *assigner) text(origin, name, text string) {
	value := cty.StringVal(text)
	if t := v.declared[name].kind; v.declared[name].typed && !t.IsPrimitiveType() {
		var problem string
		if value, problem = expressionValue(text); problem != "" {
			if v.declared[name].Sensitive {
				problem = "this is not a value as in the language"
			}
			v.error(hcl2.Range{}, fmt.Sprintf("%s: %s", origin, problem), "")
			return
		}
	}
	v.set(hcl2.Range{}, origin, name, value)
}

func expressionValue(text string) (cty.Value, string) {
	if len(text) > maxFile {
		return cty.NilVal, "the value is too long"
	}
	tokens, _ := hclsyntax.LexExpression([]byte(text), "", hcl2.InitialPos)
	if _, problem := tooMuch(tokens); problem != "" {
		return cty.NilVal, problem
	}
	e, ds := hclsyntax.ParseExpression([]byte(text), "", hcl2.InitialPos)
	if ds.HasErrors() {
		return cty.NilVal, reason(ds)
	}
	m := newMeter(expressionWork)
	instrument(e, m)
	value, ds := m.value(e, nil)
	if ds.HasErrors() {
		return cty.NilVal, reason(ds)
	}
	return value, ""
}

func (v *assigner) set(at hcl2.Range, origin, name string, value cty.Value) {
	if v.declared[name].Sensitive {
		v.hideLines(at)
		v.keepUnsaid(value)
	}
	converted, err := v.declared[name].convert(value)
	if err != nil {
		v.error(at, fmt.Sprintf("%s: the value does not fit", origin), v.declared[name].why(err))
		return
	}
	raw, err := ctyjson.Marshal(converted, converted.Type())
	if err != nil {
		v.error(at, fmt.Sprintf("%s: %s", origin, err), "")
		return
	}
	v.values[name] = raw
}

// file reads NAME = VALUE lines; a name that is not declared is only warned of,
// since one file may serve several specs.
func (v *assigner) file(f jobspecs.Source) {
	if strings.HasSuffix(f.Name, ".json") {
		v.jsonFile(f)
		return
	}
	bodies := v.parse([]jobspecs.Source{f})
	if bodies == nil {
		return
	}
	for _, b := range bodies[0].Blocks {
		v.error(b.TypeRange, "a var file holds NAME = VALUE only", "")
	}
	for _, a := range sortedAttributes(bodies[0]) {
		if v.declared[a.Name] == nil {
			v.undeclared(a.NameRange, a.Name)
			continue
		}
		value, ds := v.meter.value(a.Expr, nil)
		v.hcl(ds)
		if !ds.HasErrors() {
			v.set(a.Expr.Range(), a.Name, a.Name, value)
		}
	}
}

func (v *assigner) jsonFile(f jobspecs.Source) {
	values := map[string]json.RawMessage{}
	at := hcl2.Range{Filename: f.Name}
	if err := json.Unmarshal(f.Text, &values); err != nil {
		v.error(at, "this is no JSON object of variables", err.Error())
		return
	}
	for _, name := range sortedKeys(values) {
		if v.declared[name] == nil {
			v.undeclared(at, name)
			continue
		}
		value, err := fromJSON(values[name])
		if err != nil {
			v.error(at, name+": "+err.Error(), "")
			continue
		}
		v.set(at, name, name, value)
	}
}

func (v *assigner) undeclared(at hcl2.Range, name string) {
	detail := ""
	if near := nearest(name, sortedKeys(v.declared)); near != "" {
		detail = fmt.Sprintf("Did you mean %q?", near)
	}
	v.warn(at, fmt.Sprintf("there is no variable %q", name), detail)
}
