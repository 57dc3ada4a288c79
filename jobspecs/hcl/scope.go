package hcl

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"

	hcl2 "github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/stsd/stsd/jobspecs"
)

// A scope is what the files of one argument share: variables, locals and what
// they read. A statefulset block has a scope of its own on top of it.
type scope struct {
	*report
	opt    Options
	in     jobspecs.Inputs  // given
	read   *jobspecs.Inputs // used, so that the same reading succeeds elsewhere
	vars   map[string]*variable
	locals map[string]*local
	funcs  map[string]function.Function
	set    bool // of a statefulset block: self and set may be used in locals

	namespace string           // of that block
	others    map[string]Other // the sets that sets.NAME may name there; nil: not known
	values    cty.Value        // of var

	secrets      map[string]*secret
	secretValues map[string]cty.Value // of the namespace of a statefulset block

	// replaced are the keys of Images that were met.
	replaced map[string]bool
}

// A local is one name of a locals block.
type local struct {
	name     string
	expr     hclsyntax.Expression
	at       hcl2.Range
	scope    *scope
	state    state
	symbolic bool // depends on self, set or a secret
	member   bool // depends on self or set
	value    map[*sample]cty.Value
}

type state int

const (
	unseen  state = iota
	visited       // its references are being followed
	sound
	broken // said once; whoever uses it says nothing more
)

// A sample is a member that expressions are tried with. nil: none, for constants.
type sample struct {
	name string
	view view
	full map[string]cty.Value // variables with the other members
}

func (m *sample) variables(others bool) map[string]cty.Value {
	if !others {
		return m.view.variables(false)
	}
	if m.full == nil {
		m.full = m.view.variables(true)
	}
	return m.full
}

// inSet is the scope of a statefulset block.
func (s *scope) inSet() *scope {
	inner := *s
	inner.set = true
	inner.locals = maps.Clone(s.locals)
	return &inner
}

// declare adds the names of a locals block.
func (s *scope) declare(b *hclsyntax.Block) {
	if len(b.Labels) > 0 {
		s.error(b.LabelRanges[0], "a locals block has no label", "")
	}
	for _, c := range b.Body.Blocks {
		s.error(c.TypeRange, "a locals block holds names only", fmt.Sprintf("Write %s = { … }.", c.Type))
	}
	for _, a := range sortedAttributes(b.Body) {
		if old, ok := s.locals[a.Name]; ok {
			s.error(a.NameRange, fmt.Sprintf("local.%s is declared twice", a.Name), fmt.Sprintf("The other one is at %s:%d.", old.at.Filename, old.at.Start.Line))
			continue
		}
		s.locals[a.Name] = &local{name: a.Name, expr: a.Expr, at: a.NameRange, scope: s, value: map[*sample]cty.Value{}}
	}
}

func sortedAttributes(b *hclsyntax.Body) []*hclsyntax.Attribute {
	var list []*hclsyntax.Attribute
	for _, a := range b.Attributes {
		list = append(list, a)
	}
	slices.SortFunc(list, func(a, b *hclsyntax.Attribute) int { return a.SrcRange.Start.Byte - b.SrcRange.Start.Byte })
	return list
}

// tryLocals evaluates the scope's own locals, used or not, so that what is wrong
// with them is said.
func (s *scope) tryLocals(samples []*sample) {
	for _, name := range sortedKeys(s.locals) {
		l := s.locals[name]
		if l.scope != s {
			continue
		}
		s.resolve(l, nil)
		for _, m := range samples {
			s.localValue(l, m)
		}
	}
}

// resolve follows what a local refers to; path are the locals on the way to it.
func (s *scope) resolve(l *local, path []*local) {
	switch l.state {
	case visited:
		s.circle(l, path)
		return
	case sound, broken:
		return
	}
	l.state = visited
	ok := s.check(l.expr, s.set && l.scope.set, append(path, l))
	if l.state == broken {
		return
	}
	l.state = broken
	if ok {
		l.state = sound
		l.symbolic = s.symbolic(l.expr)
		l.member = s.memberly(l.expr)
	}
}

func (s *scope) circle(l *local, path []*local) {
	from := slices.Index(path, l)
	var steps []string
	for _, p := range path[from:] {
		p.state = broken
		steps = append(steps, fmt.Sprintf("local.%s (line %d)", p.name, p.at.Start.Line))
	}
	steps = append(steps, "local."+l.name)
	if len(steps) > 12 {
		steps = append(append(steps[:6:6], "…"), steps[len(steps)-5:]...)
	}
	s.error(l.at, "these locals go in a circle", strings.Join(steps, " → "))
}

// check looks at every name in an expression before anything is evaluated;
// member tells whether self and set have a value here.
func (s *scope) check(e hclsyntax.Expression, member bool, path []*local) bool {
	before, ok := len(s.found), true
	hclsyntax.VisitAll(e, func(n hclsyntax.Node) hcl2.Diagnostics {
		if f, isFor := n.(*hclsyntax.ForExpr); isFor {
			s.checkIterator(f)
		}
		return nil
	})
	for _, t := range hclsyntax.Variables(e) {
		ok = s.checkReference(t, member, path) && ok
	}
	return ok && len(s.found) == before
}

var roots = []string{"var", "local", "self", "set", "sets", "secret"}

func (s *scope) checkIterator(f *hclsyntax.ForExpr) {
	for _, name := range []string{f.KeyVar, f.ValVar} {
		if slices.Contains(roots, name) {
			s.error(f.OpenRange, fmt.Sprintf("%q cannot be the name of a for expression's variable", name), "It is a name of the language.")
		}
	}
}

func (s *scope) checkReference(t hcl2.Traversal, member bool, path []*local) bool {
	switch root, name := t.RootName(), secondName(t); root {
	case "var":
		if _, ok := s.vars[name]; !ok {
			s.noName(t, "variable", "var", name, sortedKeys(s.vars))
			return false
		}
	case "local":
		l, ok := s.locals[name]
		if !ok {
			s.noName(t, "local", "local", name, sortedKeys(s.locals))
			return false
		}
		return s.checkLocal(t, l, member, path)
	case "self":
		return s.checkMember(t, name, member, selfFields)
	case "set":
		return s.checkMember(t, name, member, setFields)
	case "secret":
		return s.checkSecret(t, name)
	case "sets":
		return s.checkSets(t, name, member)
	default:
		s.unknownRoot(t)
		return false
	}
	return true
}

func (s *scope) noName(t hcl2.Traversal, what, root, name string, known []string) {
	if name == "" {
		s.error(t.SourceRange(), fmt.Sprintf("%s needs a name, as in %s.NAME", root, root), "")
		return
	}
	detail := ""
	if near := nearest(name, known); near != "" {
		detail = fmt.Sprintf("Did you mean %s.%s?", root, near)
	}
	s.error(t.SourceRange(), fmt.Sprintf("there is no %s %q", what, name), detail)
}

func (s *scope) checkLocal(t hcl2.Traversal, l *local, member bool, path []*local) bool {
	s.resolve(l, path)
	if l.state == broken {
		return false
	}
	if l.member && !member {
		s.error(t.SourceRange(), fmt.Sprintf("local.%s depends on self or set, which have no value here", l.name), noMember)
		return false
	}
	return true
}

const noMember = "self and set belong to one member: they may stand in a container, in a volume's size and options,\nin scratch and bind blocks, in labels, extra_hosts and sysctls, and in the set's own locals block."

func (s *scope) checkMember(t hcl2.Traversal, name string, member bool, fields []string) bool {
	if !member {
		s.error(t.SourceRange(), t.RootName()+" has no value here", noMember)
		return false
	}
	if name == "" || slices.Contains(fields, name) {
		return true
	}
	detail := "It has " + strings.Join(fields, ", ") + "."
	if near := nearest(name, fields); near != "" {
		detail = fmt.Sprintf("Did you mean %s.%s?", t.RootName(), near)
	}
	s.error(t.SourceRange(), fmt.Sprintf("%s has no %q", t.RootName(), name), detail)
	return false
}

var capitals = regexp.MustCompile(`^[A-Z][A-Z0-9_]*$`)

func (s *scope) unknownRoot(t hcl2.Traversal) {
	name := t.RootName()
	summary, detail := fmt.Sprintf("there is no %q", name), ""
	switch {
	case capitals.MatchString(name):
		detail = fmt.Sprintf("For the shell's variable write $${%s}; a variable of the spec is var.NAME.", name)
	case s.vars[name] != nil:
		detail = fmt.Sprintf("Did you mean var.%s?", name)
	case s.locals[name] != nil:
		detail = fmt.Sprintf("Did you mean local.%s?", name)
	case slices.Contains(selfFields, name) || name == "each":
		detail = fmt.Sprintf("Did you mean self.%s?", strings.Replace(name, "each", "ordinal", 1))
	case nearest(name, roots[:4]) != "":
		detail = fmt.Sprintf("Did you mean %s?", nearest(name, roots[:4]))
	case len(t) == 1:
		detail = fmt.Sprintf("A string stands in quotes: %q.", name)
	default:
		detail = "Names begin with var, local, self or set."
	}
	s.error(t.SourceRange(), summary, detail)
}

// symbolic tells whether a checked expression stays one: it depends on self or
// set, or on a secret, which another namespace has another one of.
func (s *scope) symbolic(e hclsyntax.Expression) bool {
	return slices.ContainsFunc(hclsyntax.Variables(e), func(t hcl2.Traversal) bool {
		switch t.RootName() {
		case "self", "set", "sets", "secret":
			return true
		case "local":
			l := s.locals[secondName(t)]
			return l != nil && l.symbolic
		}
		return false
	})
}

// memberly tells whether a checked expression depends on self or set.
func (s *scope) memberly(e hclsyntax.Expression) bool {
	return slices.ContainsFunc(hclsyntax.Variables(e), func(t hcl2.Traversal) bool {
		switch t.RootName() {
		case "self", "set", "sets":
			return true
		case "local":
			l := s.locals[secondName(t)]
			return l != nil && l.member
		}
		return false
	})
}

// selfish tells whether a checked expression depends on self.
func (s *scope) selfish(e hclsyntax.Expression) bool {
	return s.reads("self", e, map[string]bool{})
}

// reads tells whether an expression, or a local that it uses, names a root.
func (s *scope) reads(root string, e hclsyntax.Expression, seen map[string]bool) bool {
	return slices.ContainsFunc(hclsyntax.Variables(e), func(t hcl2.Traversal) bool {
		name := secondName(t)
		l := s.locals[name]
		if t.RootName() != "local" || l == nil || seen[name] {
			return t.RootName() == root
		}
		seen[name] = true
		return s.reads(root, l.expr, seen)
	})
}

// eval evaluates a checked expression, for a sample where it is symbolic. What it
// finds about sensitive values does not quote them.
func (s *scope) eval(e hclsyntax.Expression, m *sample) (cty.Value, hcl2.Diagnostics) {
	v, ds := s.evaluated(e, m)
	if len(ds) > 0 && s.taints(e) {
		ds = unsaid(ds)
	}
	return v, ds
}

func (s *scope) evaluated(e hclsyntax.Expression, m *sample) (v cty.Value, ds hcl2.Diagnostics) {
	defer func() { // a library that panics must not take the daemon with it
		if p := recover(); p != nil {
			v, ds = cty.DynamicVal, hcl2.Diagnostics{{
				Severity: hcl2.DiagError, Summary: "this cannot be evaluated", Detail: fmt.Sprint(p), Subject: e.Range().Ptr(),
			}}
		}
	}()
	ctx := &hcl2.EvalContext{Functions: s.funcs, Variables: map[string]cty.Value{"var": s.values}}
	refs := hclsyntax.Variables(e)
	if m != nil {
		maps.Copy(ctx.Variables, m.variables(asksForOthers(refs)))
	}
	locals := map[string]cty.Value{}
	for _, t := range refs {
		if l := s.locals[secondName(t)]; t.RootName() == "local" && l != nil {
			locals[l.name] = s.localValue(l, m)
		}
	}
	ctx.Variables["local"] = cty.ObjectVal(locals)
	ctx.Variables["secret"] = cty.ObjectVal(s.secretValues)
	return s.meter.value(e, ctx)
}

// maxValue is about how many bytes a local may hold: a dozen lines that double
// one another must not fill the memory.
const maxValue = 4 << 20

func (s *scope) localValue(l *local, m *sample) cty.Value {
	if l.state != sound {
		return cty.DynamicVal
	}
	if !l.symbolic {
		m = nil
	} else if m == nil {
		return cty.DynamicVal
	}
	if v, ok := l.value[m]; ok {
		return v
	}
	v, ds := s.eval(l.expr, m)
	s.hcl(ds)
	tooLarge := !ds.HasErrors() && weight(v) > maxValue
	if tooLarge {
		s.error(l.at, fmt.Sprintf("local.%s is larger than %d MiB", l.name, maxValue>>20), "")
	}
	if tooLarge || ds.HasErrors() {
		l.state = broken
		v = cty.DynamicVal
	}
	l.value[m] = v
	return v
}

// weight is about the size of a value in memory.
func weight(v cty.Value) int {
	sum := 0
	_ = cty.Walk(v, func(_ cty.Path, e cty.Value) (bool, error) {
		sum += 16
		e, _ = e.Unmark()
		if e.IsKnown() && !e.IsNull() && e.Type() == cty.String {
			sum += len(e.AsString())
		}
		return sum <= maxValue, nil
	})
	return sum
}

// maxFiles is how much all the files may have that a scope reads: they are kept.
const maxFiles = 16 << 20

var errManyFiles = fmt.Errorf("the files that the spec reads have more than %d MiB", maxFiles>>20)

// file gives what file() and templatefile() read, each file once.
func (s *scope) file(path string) (string, error) {
	if text, ok := s.read.Files[path]; ok {
		return string(text), nil
	}
	if text, ok := s.in.Files[path]; ok {
		return s.keep(path, text)
	}
	if s.in.Absent[path] {
		s.absent(path)
		return "", fmt.Errorf("there is no file %q", path)
	}
	if s.filesRead > maxFiles {
		return "", errManyFiles
	}
	if s.opt.ReadFile == nil {
		return "", fmt.Errorf("the file %q was not sent along with the spec", path)
	}
	text, err := s.opt.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("there is no file %q (paths are relative to the spec's file)", path)
	}
	if err != nil {
		return "", fmt.Errorf("read %q: %w", path, err)
	}
	return s.keep(path, text)
}

func (s *scope) keep(path string, text []byte) (string, error) {
	if len(text) > maxFile {
		return "", fmt.Errorf("the file %q has %d bytes; %d (1 MiB) is the most", path, len(text), maxFile)
	}
	if notText(text) > 0 {
		return "", fmt.Errorf("the file %q is not text in UTF-8", path)
	}
	if s.filesRead += len(text); s.filesRead > maxFiles {
		return "", errManyFiles
	}
	if s.read.Files == nil {
		s.read.Files = map[string][]byte{}
	}
	s.read.Files[path] = text
	return string(text), nil
}

// exists answers fileexists(). A file that exists is read, so that Inputs say so.
func (s *scope) exists(path string) (bool, error) {
	if _, ok := s.read.Files[path]; ok || s.read.Absent[path] {
		return ok, nil
	}
	if _, ok := s.in.Files[path]; !ok && s.in.Absent[path] {
		s.absent(path)
		return false, nil
	}
	if s.filesRead > maxFiles {
		return false, errManyFiles
	}
	if _, ok := s.in.Files[path]; !ok && s.opt.ReadFile != nil {
		if _, err := s.opt.ReadFile(path); errors.Is(err, fs.ErrNotExist) {
			s.absent(path)
			return false, nil
		}
	}
	_, err := s.file(path)
	return err == nil, err
}

func (s *scope) absent(path string) {
	if s.read.Absent == nil {
		s.read.Absent = map[string]bool{}
	}
	s.read.Absent[path] = true
}

// getenv answers env().
func (s *scope) getenv(name string) (string, error) {
	value, ok := s.in.Env[name]
	if !ok && s.opt.LookupEnv == nil {
		return "", fmt.Errorf("the environment variable %s was not sent along with the spec", name)
	}
	if !ok {
		value, _ = s.opt.LookupEnv(name)
	}
	if s.read.Env == nil {
		s.read.Env = map[string]string{}
	}
	s.read.Env[name] = value
	return value, nil
}
