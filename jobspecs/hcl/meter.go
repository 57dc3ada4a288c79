package hcl

import (
	"errors"
	"fmt"

	hcl2 "github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// A meter bounds what evaluating expressions may cost in time and memory. What is
// written is bounded by the size of a source; what could make more of it is a
// loop, whose body is paid for at every turn, a function, which pays before it
// works (costs.go), and a name that stands for a long value, paid for wherever it
// is used. The unit is about one step of the evaluator, one value, or 32 bytes of
// text; a million take some tenths of a second.
type meter struct {
	left  int  // of everything that is evaluated with it
	once  int  // of the expression that is evaluated
	spent bool // by that expression
	said  bool // that nothing is left
	pure  map[string]function.Function
}

const (
	expressionWork = 2 << 20  // of one expression
	readWork       = 20 << 20 // of reading the files of one scope
	memberWork     = 8 << 20  // of rendering one member
	membersWork    = 20 << 20 // of rendering the members that a spec is checked with
)

func newMeter(work int) *meter { return &meter{left: work, once: min(work, expressionWork)} }

// pay reports false when this is more than what is left, or something before it
// was. A refused expression has cost all that it could.
func (m *meter) pay(work int) bool {
	switch {
	case m.spent:
		return false
	case work > min(m.once, m.left):
		m.left = max(m.left-m.once, 0)
		m.spent = true
		return false
	}
	m.once -= work
	m.left -= work
	return true
}

var errTooMuch = errors.New("this takes too much time or memory")

const (
	tooMuchWork       = "this takes too much time or memory"
	tooMuchWorkDetail = "Loops inside loops over long lists, or long texts put together many times, are work for a program, not for a spec."
)

// value evaluates an expression that was instrumented with this meter.
func (m *meter) value(e hclsyntax.Expression, ctx *hcl2.EvalContext) (cty.Value, hcl2.Diagnostics) {
	return m.valueOf(e, sizeOf(e), hclsyntax.Variables(e), ctx)
}

// valueOf is value, where steps and names of the expression are known.
func (m *meter) valueOf(e hclsyntax.Expression, steps int, refs []hcl2.Traversal, ctx *hcl2.EvalContext) (cty.Value, hcl2.Diagnostics) {
	m.once, m.spent = expressionWork, false
	if !m.enter(steps, refs, ctx) {
		return cty.DynamicVal, m.refusal(e)
	}
	v, ds := e.Value(ctx)
	if m.spent {
		return cty.DynamicVal, m.refusal(e)
	}
	return v, ds
}

// refusal says that an expression takes too much; of those that follow when
// nothing is left at all, only the first is told.
func (m *meter) refusal(e hclsyntax.Expression) hcl2.Diagnostics {
	d := &hcl2.Diagnostic{Severity: hcl2.DiagError, Summary: tooMuchWork, Detail: tooMuchWorkDetail, Subject: e.Range().Ptr()}
	if m.said {
		d.Extra = alreadySaid{}
	}
	m.said = m.said || m.left == 0
	return hcl2.Diagnostics{d}
}

// alreadySaid marks a finding that repeats an earlier one.
type alreadySaid struct{}

// enter pays for one evaluation of an expression: its steps, and what its names
// stand for.
func (m *meter) enter(steps int, refs []hcl2.Traversal, ctx *hcl2.EvalContext) bool {
	if !m.pay(steps) {
		return false
	}
	for _, t := range refs {
		if !m.pay(m.weightOf(t, ctx)) {
			return false
		}
	}
	return true
}

// weightOf is the weight of what a name stands for. self and set are ours: of set
// its lists count.
func (m *meter) weightOf(t hcl2.Traversal, ctx *hcl2.EvalContext) int {
	v, ds := t.TraverseAbs(ctx)
	if ds.HasErrors() {
		return 1
	}
	if root := t.RootName(); root == "self" || root == "set" {
		return 1 + memberWeight*countOf(v)
	}
	return weigh(v, m.once)
}

// memberWeight is about what one object of set.members weighs.
const memberWeight = 10

// countOf is the number of elements of a list or map; 0 of anything else.
func countOf(v cty.Value) int {
	v, _ = v.Unmark()
	if v.IsNull() || !v.IsKnown() || !v.CanIterateElements() {
		return 0
	}
	return v.LengthInt()
}

// weigh gives the weight of a value, or something above limit.
func weigh(v cty.Value, limit int) int {
	v, _ = v.Unmark()
	t := v.Type()
	switch {
	case v.IsNull() || !v.IsKnown():
		return 1
	case t == cty.String:
		return 1 + len(v.AsString())/textUnit
	case t == cty.Number && bitsOf(v) > maxBits:
		return limit + 1 // it was not made by an operation; to write it out takes long
	case t == cty.Number:
		return 1 + bitsOf(v)/64
	case !v.CanIterateElements():
		return 1
	}
	sum := 1
	for it := v.ElementIterator(); sum <= limit && it.Next(); {
		_, e := it.Element()
		sum += weigh(e, limit-sum)
	}
	return sum
}

// textUnit is how many bytes of text are one unit of work.
const textUnit = 32

// maxBits bounds how long a number is when it is written out: about 2500 digits.
const maxBits = 8 << 10

// bitsOf is how far a number is from 1 in powers of two.
func bitsOf(v cty.Value) int {
	n := v.AsBigFloat().MantExp(nil)
	return max(n, -n)
}

func tooLong(v cty.Value) bool {
	v, _ = v.Unmark()
	return v.Type() == cty.Number && v.IsKnown() && !v.IsNull() && bitsOf(v) > maxBits
}

// sizeOf is the number of steps of an expression when each is taken once.
func sizeOf(e hclsyntax.Node) int {
	n := 0
	hclsyntax.VisitAll(e, func(hclsyntax.Node) hcl2.Diagnostics {
		n++
		return nil
	})
	return n
}

// instrument lets the loops of a syntax tree pay for every turn, and bounds its
// numbers. What was written can still be told from it (print.go).
func instrument(tree hclsyntax.Node, m *meter) {
	hclsyntax.VisitAll(tree, func(n hclsyntax.Node) hcl2.Diagnostics {
		switch n := n.(type) {
		case *hclsyntax.ForExpr:
			n.KeyExpr, n.ValExpr, n.CondExpr = m.body(n.KeyExpr), m.body(n.ValExpr), m.body(n.CondExpr)
		case *hclsyntax.SplatExpr:
			n.Each = m.body(n.Each)
		case *hclsyntax.ConditionalExpr:
			n.TrueResult, n.FalseResult = m.converted(n.TrueResult), m.converted(n.FalseResult)
		case *hclsyntax.FunctionCallExpr:
			for i := range n.Args {
				switch t := taken(n.Name, i); {
				case t.IsSetType():
					n.Args[i] = m.paid(n.Args[i], 0, nil, setCost)
				case t.IsCollectionType():
					n.Args[i] = m.converted(n.Args[i])
				}
			}
		case *hclsyntax.BinaryOpExpr:
			n.Op = bounded(n.Op)
		case *hclsyntax.UnaryOpExpr:
			n.Op = bounded(n.Op)
		}
		return nil
	})
}

// taken is the type that a function wants for an argument: into a list, set or map
// a tuple or object is converted before it is called.
func taken(name string, i int) cty.Type {
	f, ok := pure[name]
	if !ok {
		return cty.DynamicPseudoType
	}
	if params := f.Params(); i < len(params) {
		return params[i].Type
	}
	if p := f.VarParam(); p != nil {
		return p.Type
	}
	return cty.DynamicPseudoType
}

// A paid expression pays for its evaluation: the body of a loop for every turn, an
// operand that is converted for that. It looks like parentheses to whoever walks
// the tree.
type paid struct {
	hclsyntax.ParenthesesExpr
	meter *meter
	steps int
	refs  []hcl2.Traversal
	after func(v cty.Value, limit int) int
}

// body is the body of a loop. What comes out at every turn is kept, and paid for
// too.
func (m *meter) body(e hclsyntax.Expression) hclsyntax.Expression {
	if e == nil {
		return nil
	}
	const turn = 8 // steps of the evaluator beside the body
	return m.paid(e, turn+sizeOf(e), hclsyntax.Variables(e), weigh)
}

func (m *meter) converted(e hclsyntax.Expression) hclsyntax.Expression {
	return m.paid(e, 0, nil, conversion)
}

func (m *meter) paid(e hclsyntax.Expression, steps int, refs []hcl2.Traversal, after func(cty.Value, int) int) hclsyntax.Expression {
	p := &paid{meter: m, steps: steps, refs: refs, after: after}
	p.Expression, p.SrcRange = e, e.Range()
	return p
}

// Value pays, and evaluates in between. When nothing is left the loops around it
// come to their end without doing more; the user hears of it from meter.value.
func (p *paid) Value(ctx *hcl2.EvalContext) (cty.Value, hcl2.Diagnostics) {
	if !p.meter.enter(p.steps, p.refs, ctx) {
		return cty.DynamicVal, p.tooMuch()
	}
	v, ds := p.Expression.Value(ctx)
	if !p.meter.pay(p.after(v, p.meter.once)) {
		return cty.DynamicVal, p.tooMuch()
	}
	return v, ds
}

func (p *paid) tooMuch() hcl2.Diagnostics {
	return hcl2.Diagnostics{{Severity: hcl2.DiagError, Summary: tooMuchWork, Subject: p.SrcRange.Ptr()}}
}

// asWritten is the expression as it stands in the source.
func asWritten(e hclsyntax.Expression) hclsyntax.Expression {
	if p, ok := e.(*paid); ok {
		return p.Expression
	}
	return e
}

// conversion is what it takes to find the one type of all the elements of a tuple
// or object: each is compared with each.
func conversion(v cty.Value, limit int) int {
	v, _ = v.Unmark()
	t := v.Type()
	if v.IsNull() || !v.IsKnown() || !v.CanIterateElements() {
		return 0
	}
	sum := 0
	if n := v.LengthInt(); t.IsTupleType() || t.IsObjectType() {
		sum = product(n, n) / 25
	}
	for it := v.ElementIterator(); sum <= limit && it.Next(); {
		_, e := it.Element()
		sum += conversion(e, limit-sum)
	}
	return sum
}

// boundedOps are the operations whose numbers could grow without end, with those
// that stop them.
var boundedOps = map[*hclsyntax.Operation]*hclsyntax.Operation{
	hclsyntax.OpAdd: boundedOp(hclsyntax.OpAdd), hclsyntax.OpSubtract: boundedOp(hclsyntax.OpSubtract),
	hclsyntax.OpMultiply: boundedOp(hclsyntax.OpMultiply), hclsyntax.OpDivide: boundedOp(hclsyntax.OpDivide),
	hclsyntax.OpModulo: boundedOp(hclsyntax.OpModulo), hclsyntax.OpNegate: boundedOp(hclsyntax.OpNegate),
}

func bounded(op *hclsyntax.Operation) *hclsyntax.Operation {
	if b, ok := boundedOps[op]; ok {
		return b
	}
	return op
}

// writtenOp is the operation as it was written.
func writtenOp(op *hclsyntax.Operation) *hclsyntax.Operation {
	for plain, b := range boundedOps {
		if b == op {
			return plain
		}
	}
	return op
}

func boundedOp(op *hclsyntax.Operation) *hclsyntax.Operation {
	b := *op
	b.Impl = function.New(&function.Spec{
		Params: op.Impl.Params(),
		Type: func(args []cty.Value) (cty.Type, error) {
			if err := checkNumbers(args); err != nil {
				return cty.NilType, err
			}
			return op.Impl.ReturnTypeForValues(args)
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			v, err := op.Impl.Call(args)
			if err == nil {
				err = checkNumbers([]cty.Value{v})
			}
			return v, err
		},
	})
	return &b
}

func checkNumbers(args []cty.Value) error {
	for i, a := range args {
		if tooLong(a) {
			return function.NewArgError(i, fmt.Errorf("the number has more than %d digits", maxBits*3/10))
		}
	}
	return nil
}
