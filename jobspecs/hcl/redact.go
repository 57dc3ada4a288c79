package hcl

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	hcl2 "github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/stsd/stsd/jobspecs"
)

// Sensitive tells whether a template holds something sensitive.
func Sensitive(t jobspecs.Template) bool { return holdsSensitive(t) }

// SensitiveSet tells whether the claims or hooks of a set hold something sensitive.
func SensitiveSet(set *jobspecs.Set) bool {
	return slices.ContainsFunc(Beside(set), func(b json.RawMessage) bool { return holdsSensitive(b) })
}

// holdsSensitive looks for a wrapper's name. Quotes inside strings are escaped,
// so that no value looks like one.
func holdsSensitive(b []byte) bool { return strings.Contains(string(b), `"`+sensitiveKey+`":`) }

// Redacted is a template that may be shown: each sensitive value is replaced by
// a name that is another one for another value, and cannot be computed without
// the key.
func Redacted(t jobspecs.Template, key []byte) jobspecs.Template {
	if !Sensitive(t) {
		return t
	}
	doc, err := decodeDocument(t)
	if err != nil {
		return nil // what cannot be read cannot be known to be harmless
	}
	return encode(redact(doc, key, "").(document))
}

func redact(v any, key []byte, path string) any {
	if inner, ok := revealed(v); ok {
		return sensitiveValue(nameOf(inner, key, path))
	}
	switch v := v.(type) {
	case document:
		out := document{}
		for _, k := range sortedKeys(v) {
			out[k] = redact(v[k], key, join(path, k))
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = redact(v[i], key, fmt.Sprintf("%s[%d]", path, i))
		}
		return out
	}
	return v
}

func nameOf(v any, key []byte, path string) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(path + "\x00"))
	mac.Write(encode(document{"": v}))
	return hex.EncodeToString(mac.Sum(nil)[:8])
}

// minScrubbed is how long a text must be to be looked for in messages: shorter
// ones are part of any sentence, and no secret.
const minScrubbed = 4

// SensitiveTexts are the texts that must not be shown of a template and a set:
// values of sensitive variables, secrets, and what was made of them without a
// member. Longest first.
func SensitiveTexts(set *jobspecs.Set, t jobspecs.Template) []string {
	var found []string
	for _, b := range append([]json.RawMessage{json.RawMessage(t)}, Beside(set)...) {
		if !holdsSensitive(b) {
			continue
		}
		if doc, err := decodeDocument(b); err == nil {
			sensitiveTexts(doc, false, &found)
		}
	}
	found = sortedUnique(found)
	slices.SortStableFunc(found, func(a, b string) int { return len(b) - len(a) })
	return found
}

// Beside are the parts in normal form that a set has beside its template: what it says
// of claims, hooks and the guard.
func Beside(set *jobspecs.Set) []json.RawMessage {
	var out []json.RawMessage
	for _, c := range set.Claims {
		out = append(out, c.Spec)
	}
	for _, h := range set.Hooks {
		out = append(out, h.Spec)
	}
	if set.Guard != nil {
		out = append(out, set.Guard.Spec)
	}
	return out
}

func sensitiveTexts(v any, inside bool, found *[]string) {
	if inner, ok := revealed(v); ok {
		sensitiveTexts(inner, true, found)
		return
	}
	if _, symbolic := expression(v); symbolic {
		return
	}
	switch v := v.(type) {
	case document:
		for _, k := range sortedKeys(v) {
			sensitiveTexts(v[k], inside, found)
		}
	case []any:
		for _, item := range v {
			sensitiveTexts(item, inside, found)
		}
	case string:
		if inside && len(v) >= minScrubbed {
			*found = append(*found, v)
		}
	case json.Number:
		if s := v.String(); inside && len(s) >= minScrubbed {
			*found = append(*found, s)
		}
	}
}

// RedactedScope is what a user wrote and what it was evaluated with, fit to be
// shown: without the defaults of sensitive variables, the contents of sensitive
// files and the values of sensitive variables. Where anything is sensitive,
// neither files nor the environment are shown: what was read for it is not told
// from the rest.
func RedactedScope(sources []jobspecs.Source, in jobspecs.Inputs) ([]jobspecs.Source, jobspecs.Inputs) {
	shown, names, some := redactSources(sources)
	if !some && len(in.Secrets) == 0 {
		return sources, in
	}
	out := in
	out.Secrets = nil
	out.Vars = map[string]json.RawMessage{}
	for name, v := range in.Vars {
		if slices.Contains(names, name) {
			v = json.RawMessage(`"` + hidden + `"`)
		}
		out.Vars[name] = v
	}
	out.Files, out.Env = hideAll(in.Files), nil
	for name := range in.Env {
		if out.Env == nil {
			out.Env = map[string]string{}
		}
		out.Env[name] = hidden
	}
	return shown, out
}

func hideAll(files map[string][]byte) map[string][]byte {
	var out map[string][]byte
	for path := range files {
		if out == nil {
			out = map[string][]byte{}
		}
		out[path] = []byte(hidden)
	}
	return out
}

// redactSources hides what is written in the clear; names are the sensitive
// variables; some tells whether anything in the sources is sensitive.
func redactSources(sources []jobspecs.Source) (shown []jobspecs.Source, names []string, some bool) {
	passwords := passwordsOf(readable(sources)).names
	for _, s := range sources {
		text := bytes.ReplaceAll(bytes.TrimPrefix(s.Text, []byte("\xef\xbb\xbf")), []byte("\r\n"), []byte("\n")) // as it was read
		f, ds := hclsyntax.ParseConfig(text, s.Name, hcl2.InitialPos)
		if ds.HasErrors() { // it cannot be told what is sensitive in it
			shown = append(shown, jobspecs.Source{Name: s.Name, Text: []byte("# " + hidden + "\n")})
			some = true
			continue
		}
		r := &sourceRedactor{passwords: passwords}
		r.body(f.Body.(*hclsyntax.Body))
		shown = append(shown, jobspecs.Source{Name: s.Name, Text: r.apply(text)})
		names = append(names, r.names...)
		some = some || r.some
	}
	return shown, names, some
}

// readable are the syntax trees of the sources that have one.
func readable(sources []jobspecs.Source) []*hclsyntax.Body {
	var bodies []*hclsyntax.Body
	for _, s := range sources {
		f, ds := hclsyntax.ParseConfig(plainText(s.Text), s.Name, hcl2.InitialPos)
		if !ds.HasErrors() {
			bodies = append(bodies, f.Body.(*hclsyntax.Body))
		}
	}
	return bodies
}

// SensitiveVariables are those that sources declare to be sensitive.
func SensitiveVariables(sources []jobspecs.Source) []string {
	_, names, _ := redactSources(sources)
	return names
}

// A sourceRedactor finds what a source must not show.
type sourceRedactor struct {
	cut   []hcl2.Range // expressions
	names []string     // sensitive variables
	some  bool         // anything sensitive

	passwords map[string]bool // as in passwordUse
}

// A passwordUse is what the passwords of some sources are made of.
type passwordUse struct {
	exprs  []hclsyntax.Expression // the passwords themselves
	locals map[string]hclsyntax.Expression
	names  map[string]bool // var.NAME and local.NAME that they use, through other locals too
}

func passwordsOf(bodies []*hclsyntax.Body) *passwordUse {
	p := &passwordUse{locals: map[string]hclsyntax.Expression{}, names: map[string]bool{}}
	for _, b := range bodies {
		p.collect(b)
	}
	for _, e := range p.exprs {
		p.follow(e)
	}
	return p
}

func (p *passwordUse) collect(b *hclsyntax.Body) {
	for _, c := range b.Blocks {
		a := c.Body.Attributes["password"]
		switch {
		case c.Type == authSchema.name && a != nil:
			p.exprs = append(p.exprs, a.Expr)
		case c.Type == "locals":
			for name, a := range c.Body.Attributes {
				p.locals["local."+name] = a.Expr
			}
		}
		p.collect(c.Body)
	}
}

func (p *passwordUse) follow(e hclsyntax.Expression) {
	for _, t := range hclsyntax.Variables(e) {
		name := t.RootName() + "." + secondName(t)
		if root := t.RootName(); root != "var" && root != "local" || p.names[name] {
			continue
		}
		p.names[name] = true
		if l := p.locals[name]; l != nil {
			p.follow(l)
		}
	}
}

// keepPasswords keeps what passwords are made of out of what is found, as far as
// it is written in the clear.
func (s *scope) keepPasswords(p *passwordUse) {
	written := slices.Clone(p.exprs)
	for _, name := range sortedKeys(p.names) {
		if l := p.locals[name]; l != nil {
			written = append(written, l)
		}
		if v := s.vars[strings.TrimPrefix(name, "var.")]; v != nil && strings.HasPrefix(name, "var.") {
			s.keepUnsaid(v.value)
		}
	}
	for _, e := range written {
		if len(hclsyntax.Variables(e)) > 0 {
			continue
		}
		if v, ds := s.evaluated(e, nil); !ds.HasErrors() {
			s.keepUnsaid(v)
		}
	}
}

func (r *sourceRedactor) body(b *hclsyntax.Body) {
	if b == nil {
		return
	}
	for _, c := range b.Blocks {
		r.some = r.some || c.Type == "secret"
		if hides(c) || c.Type == "variable" && len(c.Labels) > 0 && r.passwords["var."+c.Labels[0]] {
			r.some = true
			r.hide(c)
		}
		if c.Type == authSchema.name {
			r.hidePassword(c)
		}
		if c.Type == "locals" {
			r.hideLocals(c)
		}
		r.body(c.Body)
	}
}

// hides tells whether a block says that it is sensitive. What is not a plain
// false may be true.
func hides(b *hclsyntax.Block) bool {
	a := b.Body.Attributes["sensitive"]
	if a == nil {
		return false
	}
	v, ds := a.Expr.Value(nil)
	no := !ds.HasErrors() && v.IsWhollyKnown() && !v.IsNull() && v.Type() == cty.Bool && v.False()
	return !no
}

func (r *sourceRedactor) hide(b *hclsyntax.Block) {
	if b.Type == "variable" && len(b.Labels) > 0 {
		r.names = append(r.names, b.Labels[0])
	}
	for _, name := range []string{"default", "content"} {
		if a := b.Body.Attributes[name]; a != nil {
			r.cut = append(r.cut, a.Expr.Range())
		}
	}
}

// hidePassword hides a password that is not just the name of something else.
func (r *sourceRedactor) hidePassword(b *hclsyntax.Block) {
	a := b.Body.Attributes["password"]
	if a == nil {
		return
	}
	if _, name := a.Expr.(*hclsyntax.ScopeTraversalExpr); !name {
		r.some = true
		r.cut = append(r.cut, a.Expr.Range())
	}
}

// hideLocals hides the locals that passwords are made of.
func (r *sourceRedactor) hideLocals(b *hclsyntax.Block) {
	for name, a := range b.Body.Attributes {
		if r.passwords["local."+name] {
			r.some = true
			r.cut = append(r.cut, a.Expr.Range())
		}
	}
}

func (r *sourceRedactor) apply(text []byte) []byte {
	slices.SortFunc(r.cut, func(a, b hcl2.Range) int { return b.Start.Byte - a.Start.Byte })
	out := slices.Clone(text)
	for _, at := range r.cut {
		from, to := at.Start.Byte, min(at.End.Byte, len(text))
		end := ""
		if to > from && text[to-1] == '\n' { // of a heredoc
			end = "\n"
		}
		out = slices.Replace(out, from, to, []byte(quote(hidden)+end)...)
	}
	return out
}
