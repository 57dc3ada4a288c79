package hcl

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	hcl2 "github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// A decoder turns the blocks of one statefulset into normal form.
type decoder struct {
	*scope
	samples []*sample             // members that symbolic attributes are tried with
	places  map[string]hcl2.Range // where each attribute and block of the document stands
	refs    *references           // of the document that is being made
	mounts  mountables            // what a mount block may name
	vague   map[string]bool       // expressions, as printed, that came to nothing known
	unknown bool                  // a variable without value was met: what depends on it is left out

	sensitiveAt place // what a sensitive value may do in the attribute that is read
	secretly    bool  // in a file block that says it is sensitive
}

// references are what the symbolic attributes of one document read.
type references struct {
	vars    map[string]bool
	secrets map[string]bool
	hidden  map[string]bool // of vars: a password is made of them
	read    document        // path → text; nil: fileexists() said false
}

func newReferences() *references {
	return &references{vars: map[string]bool{}, secrets: map[string]bool{}, hidden: map[string]bool{}, read: document{}}
}

// addTo puts the values that were referred to beside the attributes.
func (r *references) addTo(d document, s *scope) {
	values := document{}
	for _, name := range sortedKeys(r.vars) {
		if v := s.vars[name]; v != nil && v.value.IsWhollyKnown() {
			encoded, err := v.encoded()
			if err == nil && r.hidden[name] {
				encoded = sensitiveValue(opened(encoded))
			}
			if err == nil {
				values[name] = encoded
			}
		}
	}
	secrets := document{}
	for _, name := range sortedKeys(r.secrets) {
		if v, _ := s.secretValues[name].Unmark(); v != cty.NilVal {
			secrets[name] = sensitiveValue(v.AsString())
		}
	}
	if len(secrets) > 0 {
		d["secret"] = secrets
	}
	if len(values) > 0 {
		d["var"] = values
	}
	if len(r.read) > 0 {
		d["read"] = r.read
	}
}

// body reads the attributes and blocks that the schema knows and refuses others.
func (d *decoder) body(b *hclsyntax.Body, at hcl2.Range, s *block, path string) document {
	out := document{}
	for _, a := range sortedAttributes(b) {
		d.attribute(a, s, path, out)
	}
	for _, c := range b.Blocks {
		d.block(c, s, path, out)
	}
	for _, a := range s.attrs {
		if _, written := b.Attributes[a.name]; a.required && !written {
			d.error(at, fmt.Sprintf("%s needs %s", s.name, a.name), "")
		}
	}
	return out
}

func (d *decoder) attribute(a *hclsyntax.Attribute, s *block, path string, out document) {
	at, ok := s.attr(a.Name)
	if !ok || at.later {
		d.unknownAttribute(a, s)
		return
	}
	path = join(path, a.Name)
	d.places[path] = a.Expr.Range()
	d.sensitiveAt = sensitivePlaces[s.name+"."+a.Name]
	if at.setOnly && d.selfish(a.Expr) {
		d.error(a.Expr.Range(), fmt.Sprintf("self has no value in %s: it belongs to the set as a whole", s.where()), "")
		return
	}
	v, ok := d.attributeValue(a, at, path)
	if !ok || v == nil || at.empty && isEmpty(v) {
		return
	}
	out[a.Name] = v
}

func (d *decoder) attributeValue(a *hclsyntax.Attribute, at attr, path string) (any, bool) {
	if at.secret {
		return d.secretValue(a, at, path)
	}
	return d.value(a.Expr, at.kind, at.member, path)
}

func isEmpty(v any) bool {
	m, isMap := v.(document)
	return isMap && len(m) == 0
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// value is an attribute's normal form; nil: as if it were not written.
func (d *decoder) value(e hclsyntax.Expression, k *kind, member bool, path string) (any, bool) {
	if !d.check(e, member, nil) {
		return nil, false
	}
	if !d.symbolic(e) {
		return d.known(e, k)
	}
	if k.elem != nil {
		if k.isMap() {
			if o, ok := d.inside(e).(*hclsyntax.ObjectConsExpr); ok {
				return d.object(o, e, k, path)
			}
		} else if t, ok := d.inside(e).(*hclsyntax.TupleConsExpr); ok {
			return d.tuple(t, k, path)
		}
	}
	return d.expression(e, k)
}

// known evaluates an expression that depends on no member.
func (d *decoder) known(e hclsyntax.Expression, k *kind) (any, bool) {
	v, ds := d.eval(e, nil)
	d.hcl(ds)
	if ds.HasErrors() {
		return nil, false
	}
	if v.IsNull() {
		return nil, true
	}
	if !v.IsWhollyKnown() {
		d.unknown = true
		return nil, !v.ContainsMarked() || d.placed(e)
	}
	return d.convert(e, k, v)
}

func (d *decoder) convert(e hclsyntax.Expression, k *kind, v cty.Value) (any, bool) {
	if v.ContainsMarked() {
		return d.sensitiveConvert(e, k, v)
	}
	out, err := k.read(v)
	if err != nil {
		d.error(e.Range(), err.Error(), "")
		return nil, false
	}
	if k == image {
		out = d.replace(out.(string))
	}
	return out, true
}

func (d *decoder) replace(image string) string {
	if other, ok := d.read.Images[image]; ok {
		d.replaced[image] = true
		return other
	}
	return image
}

// inside is the expression that parentheses and locals stand for.
func (d *decoder) inside(e hclsyntax.Expression) hclsyntax.Expression {
	for {
		switch x := e.(type) {
		case *hclsyntax.ParenthesesExpr:
			e = x.Expression
		case *hclsyntax.ScopeTraversalExpr:
			l := d.locals[secondName(x.Traversal)]
			if x.Traversal.RootName() != "local" || len(x.Traversal) != 2 || l == nil {
				return e
			}
			e = l.expr
		default:
			return e
		}
	}
}

// object keeps the members of a map apart, so that one that depends on the
// member leaves the others as they are.
func (d *decoder) object(o *hclsyntax.ObjectConsExpr, e hclsyntax.Expression, k *kind, path string) (any, bool) {
	keys, ok := literalKeys(o)
	if !ok {
		return d.expression(e, k)
	}
	out, sound := document{}, true
	for i, item := range o.Items {
		if err := k.keys(keys[i]); err != nil {
			d.error(item.KeyExpr.Range(), err.Error(), "")
			sound = false
			continue
		}
		d.places[join(path, keys[i])] = item.ValueExpr.Range()
		v, ok := d.value(item.ValueExpr, k.elem, true, path)
		sound = sound && ok
		delete(out, keys[i])
		if v != nil {
			out[keys[i]] = v
		}
	}
	return out, sound
}

func (d *decoder) tuple(t *hclsyntax.TupleConsExpr, k *kind, path string) (any, bool) {
	list, sound := []any{}, true
	for i, e := range t.Exprs {
		d.places[fmt.Sprintf("%s[%d]", path, i)] = e.Range()
		v, ok := d.value(e, k.elem, true, path)
		if ok && v == nil && !d.unknown {
			d.error(e.Range(), fmt.Sprintf("null is not %s", k.elem.word), "")
		}
		sound = sound && ok
		list = append(list, v)
	}
	return list, sound
}

// expression tries a symbolic expression with every sample and prints it.
func (d *decoder) expression(e hclsyntax.Expression, k *kind) (any, bool) {
	if !d.readFiles(e, map[string]bool{}) {
		return nil, false
	}
	replaced, unknown, tainted := false, false, d.taints(e)
	for _, m := range d.samples {
		v, ds := d.eval(e, m)
		if ds.HasErrors() {
			d.hcl(forMember(ds, m))
			return nil, false
		}
		if v.IsNull() {
			continue
		}
		if !v.IsWhollyKnown() {
			d.unknown = true
			unknown = true
			tainted = tainted || v.ContainsMarked()
			continue
		}
		v, marks := v.UnmarkDeep()
		tainted = tainted || len(marks) > 0
		if tainted && !d.sensitiveAt.allowed {
			break // said below
		}
		out, err := k.read(v)
		if err != nil && tainted {
			err = fmt.Errorf("the sensitive value is not %s", k.word)
		}
		if err != nil {
			d.error(e.Range(), err.Error(), fmt.Sprintf("That is its value for %s.", m.name))
			return nil, false
		}
		replaced = replaced || k == image && d.replace(out.(string)) != out
	}
	text, ok := d.print(e)
	if unknown {
		d.vague[text] = true
	}
	if replaced {
		text = replacement(d.read.Images, text)
	}
	if tainted {
		return sensitiveValue(symbolicValue(text)), ok && d.placed(e)
	}
	return symbolicValue(text), ok
}

// replacement is --image for an image that depends on the member.
func replacement(images map[string]string, text string) string {
	var pairs []string
	for _, old := range sortedKeys(images) {
		pairs = append(pairs, quote(old)+" = "+quote(images[old]))
	}
	return fmt.Sprintf("lookup({%s}, (%s), (%s))", strings.Join(pairs, ", "), text, text)
}

func forMember(ds hcl2.Diagnostics, m *sample) hcl2.Diagnostics {
	out := make(hcl2.Diagnostics, len(ds))
	for i, d := range ds {
		c := *d
		c.Detail += fmt.Sprintf(" (For %s.)", m.name)
		out[i] = &c
	}
	return out
}

func (d *decoder) print(e hclsyntax.Expression) (string, bool) {
	p := &printer{vars: d.refs.vars, secrets: d.refs.secrets, locals: func(name string) hclsyntax.Expression {
		if l := d.locals[name]; l != nil {
			return l.expr
		}
		return nil
	}}
	p.expr(e)
	text := p.out.String()
	if p.tooLong() {
		d.error(e.Range(), fmt.Sprintf("with its locals put in, this expression is longer than %d KiB", maxExpression>>10), "")
		return "", false
	}
	tokens, _ := hclsyntax.LexExpression([]byte(text), "", hcl2.InitialPos)
	if _, problem := tooMuch(tokens); problem != "" {
		d.error(e.Range(), problem+", with its locals put in", "")
		return "", false
	}
	return text, true
}

// readFiles keeps the files that a symbolic expression will read when it is
// rendered. Their paths must be known now.
func (d *decoder) readFiles(e hclsyntax.Expression, seen map[string]bool) bool {
	ok := true
	hclsyntax.VisitAll(e, func(n hclsyntax.Node) hcl2.Diagnostics {
		if call, isCall := n.(*hclsyntax.FunctionCallExpr); isCall && readsFiles[call.Name] && len(call.Args) > 0 {
			ok = d.readFile(call) && ok
		}
		return nil
	})
	for _, t := range hclsyntax.Variables(e) {
		l := d.locals[secondName(t)]
		if t.RootName() == "local" && l != nil && !seen[l.name] {
			seen[l.name] = true
			ok = d.readFiles(l.expr, seen) && ok
		}
	}
	return ok
}

func (d *decoder) readFile(call *hclsyntax.FunctionCallExpr) bool {
	arg := call.Args[0]
	for _, t := range hclsyntax.Variables(arg) {
		l := d.locals[secondName(t)]
		if root := t.RootName(); root != "var" && (root != "local" || l == nil || l.symbolic) {
			d.error(t.SourceRange(), fmt.Sprintf("the path of %s() may use var and local only", call.Name), "A file is read when the spec is applied, before there are members.")
			return false
		}
	}
	v, ds := d.eval(arg, nil)
	if ds.HasErrors() || v.IsNull() || !v.IsWhollyKnown() || v.Type() != cty.String {
		d.unknown = d.unknown || !v.IsWhollyKnown()
		return !ds.HasErrors()
	}
	if v.IsMarked() {
		d.error(arg.Range(), fmt.Sprintf("the path of %s() may not be sensitive", call.Name), "")
		return false
	}
	path := v.AsString()
	if there, err := d.exists(path); err == nil && !there {
		d.refs.read[path] = nil
		return true
	}
	text, err := d.file(path)
	if err != nil {
		d.error(arg.Range(), err.Error(), "")
		return false
	}
	_, wrapped := revealed(d.refs.read[path])
	if d.refs.read[path] = text; wrapped || d.secretly {
		d.refs.read[path] = sensitiveValue(text)
	}
	return true
}

// block reads one block into its parent: under its label, in a list, or alone.
func (d *decoder) block(b *hclsyntax.Block, parent *block, path string, out document) {
	s := parent.block(b.Type)
	if s == nil || s.later {
		d.unknownBlock(b, parent)
		return
	}
	if s.name == "locals" || !d.labelled(b, s) {
		return
	}
	path = join(path, b.Type)
	if s.label == "" {
		d.alone(b, s, path, out, b.Type)
		return
	}
	name := b.Labels[0]
	if s == mountSchema && !d.mountable(b) {
		return
	}
	if s.normalLabel != nil {
		name, _ = s.normalLabel(name)
	}
	group, _ := out[b.Type].(document)
	if group == nil {
		group = document{}
		out[b.Type] = group
	}
	path = join(path, name)
	if !s.list {
		d.alone(b, s, path, group, name)
		return
	}
	list, _ := group[name].([]any)
	path = fmt.Sprintf("%s[%d]", path, len(list))
	d.places[path] = b.DefRange()
	group[name] = append(list, d.special(b, s, path))
}

// alone reads a block of which there may be one at its path.
func (d *decoder) alone(b *hclsyntax.Block, s *block, path string, parent document, key string) {
	if _, twice := parent[key]; twice {
		d.twice(b, s, path)
		return
	}
	d.places[path] = b.DefRange()
	parent[key] = d.special(b, s, path)
}

func (d *decoder) twice(b *hclsyntax.Block, s *block, path string) {
	what := s.name
	if len(b.Labels) > 0 {
		what += fmt.Sprintf(" %q", b.Labels[0])
	}
	old := d.places[path]
	d.error(b.DefRange(), fmt.Sprintf("there are two blocks %s", what), fmt.Sprintf("The other one is at %s:%d.", old.Filename, old.Start.Line))
}

// ownValues are the blocks that are kept beside the template, and with them the
// values that their expressions read.
var ownValues = map[*block]bool{volumeSchema: true, guardSchema: true, hookSchema: true}

// special reads a block's body, with the rules that a schema cannot say.
func (d *decoder) special(b *hclsyntax.Block, s *block, path string) document {
	if s == fileSchemaBlock {
		return d.fileBlock(b, path)
	}
	if !ownValues[s] {
		out := d.body(b.Body, b.DefRange(), s, path)
		if s.one {
			d.exactlyOne(b, s)
		}
		if s == probeSchema {
			d.probe(b, out)
		}
		return out
	}
	outer := d.refs
	d.refs = newReferences()
	out := d.body(b.Body, b.DefRange(), s, path)
	d.refs.addTo(out, d.scope)
	d.refs = outer
	return out
}

// exactlyOne holds a block against the rule that one of its blocks must stand.
func (d *decoder) exactlyOne(b *hclsyntax.Block, s *block) {
	var names []string
	for _, c := range s.blocks {
		names = append(names, c.name)
	}
	count := 0
	for _, c := range b.Body.Blocks {
		if slices.Contains(names, c.Type) {
			count++
		}
	}
	if count != 1 {
		d.error(b.DefRange(), fmt.Sprintf("%s needs exactly one of %s", titleOf(b), strings.Join(names, ", ")), "")
	}
}

// titleOf is a block as its first line says it: probe "liveness".
func titleOf(b *hclsyntax.Block) string {
	if len(b.Labels) == 0 {
		return b.Type
	}
	return fmt.Sprintf("%s %q", b.Type, b.Labels[0])
}

// probe holds a probe against the rules of its kind.
func (d *decoder) probe(b *hclsyntax.Block, out document) {
	kind := b.Labels[0]
	for _, c := range b.Body.Blocks {
		switch {
		case kind == "role" && c.Type != "exec" && probeSchema.block(c.Type) != nil:
			d.error(c.DefRange(), "a role probe takes exec only", "What the command prints is the member's role.")
		case kind == "liveness" && c.Type == "log":
			d.error(c.DefRange(), "a liveness probe cannot look at the log", "A line that was written once says nothing of now. It is for startup and readiness.")
		}
	}
	for _, name := range []string{"success_threshold", "failure_threshold"} {
		a := b.Body.Attributes[name]
		switch {
		case a == nil || out[name] == nil:
		case kind == "role":
			d.error(a.NameRange, "the thresholds of a role probe are fixed", "Its last output counts.")
		case name == "success_threshold" && kind != "readiness" && fmt.Sprint(out[name]) != "1":
			d.error(a.Expr.Range(), fmt.Sprintf("success_threshold of a %s probe is always 1", kind), "")
		}
	}
}

// labelled tells whether a block has the label its schema asks for.
func (s *scope) labelled(b *hclsyntax.Block, schema *block) bool {
	want := 0
	if schema.label != "" {
		want = 1
	}
	switch {
	case len(b.Labels) < want:
		s.error(b.TypeRange, fmt.Sprintf("%s needs a label", schema.name), fmt.Sprintf("Write %s \"%s\" { … }.", schema.name, schema.label))
		return false
	case len(b.Labels) > want:
		s.error(b.LabelRanges[want], fmt.Sprintf("%s has a label too many", schema.name), "")
		return false
	case want == 0 || schema.check == nil:
		return true
	}
	err := schema.check(b.Labels[0])
	if errors.Is(err, errLater) {
		s.error(b.LabelRanges[0], fmt.Sprintf("%s %q is not supported yet", schema.name, b.Labels[0]), "")
		return false
	}
	if err != nil {
		s.error(b.LabelRanges[0], err.Error(), "")
	}
	return err == nil
}

// where names the block that something stands in, for messages.
func (b *block) where() string {
	if b == fileSchema {
		return "a spec"
	}
	return "the " + b.name + " block"
}

func (s *scope) unknownAttribute(a *hclsyntax.Attribute, schema *block) {
	if why, never := schema.never[a.Name]; never {
		s.error(a.NameRange, fmt.Sprintf("%s cannot have %s", schema.where(), a.Name), why)
		return
	}
	if known, ok := schema.attr(a.Name); ok && known.later {
		s.error(a.NameRange, a.Name+" is not supported yet", "")
		return
	}
	if b := schema.block(a.Name); b != nil {
		if b.later {
			s.error(a.NameRange, a.Name+" is not supported yet", "")
			return
		}
		s.error(a.NameRange, fmt.Sprintf("%s is a block", a.Name), "Write "+blockForm(b)+", without =.")
		return
	}
	s.error(a.NameRange, fmt.Sprintf("%s has no attribute %q", schema.where(), a.Name), hint(a.Name, schema))
}

func (s *scope) unknownBlock(b *hclsyntax.Block, schema *block) {
	if why, never := schema.never[b.Type]; never {
		s.error(b.DefRange(), fmt.Sprintf("%s cannot have %s", schema.where(), b.Type), why)
		return
	}
	if known := schema.block(b.Type); known != nil && known.later {
		s.error(b.DefRange(), b.Type+" is not supported yet", "")
		return
	}
	if a, ok := schema.attr(b.Type); ok {
		if a.later {
			s.error(b.DefRange(), b.Type+" is not supported yet", "")
			return
		}
		s.error(b.DefRange(), fmt.Sprintf("%s is an attribute", b.Type), fmt.Sprintf("Write %s = …, with =.", b.Type))
		return
	}
	s.error(b.TypeRange, fmt.Sprintf("%s has no block %q", schema.where(), b.Type), hint(b.Type, schema))
}

func blockForm(b *block) string {
	if b.label == "" {
		return b.name + " { … }"
	}
	return fmt.Sprintf("%s %q { … }", b.name, b.label)
}

// hint says what an unknown name should have been, or where it belongs.
func hint(name string, schema *block) string {
	if _, isForeign := foreign[name]; !isForeign {
		if homes := homesOf(name, fileSchema); len(homes) > 0 {
			return fmt.Sprintf("It belongs in the %s block.", strings.Join(homes, " or "))
		}
		snake := snakeCase(name)
		if homes := homesOf(snake, fileSchema); len(homes) > 0 && !slices.Contains(homes, schema.name) {
			return fmt.Sprintf("Its name here: %s, in the %s block.", snake, strings.Join(homes, " or "))
		}
	}
	return cure(name, schema.names())
}

// homesOf are the blocks of the language that know a name.
func homesOf(name string, b *block) []string {
	var homes []string
	if slices.Contains(b.names(), name) && b != fileSchema {
		homes = append(homes, b.name)
	}
	for _, c := range b.blocks {
		if c.like != nil {
			continue
		}
		for _, home := range homesOf(name, c) {
			if !slices.Contains(homes, home) {
				homes = append(homes, home)
			}
		}
	}
	return homes
}
