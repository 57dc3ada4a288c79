package hcl

import (
	"regexp"
	"strings"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// functions are the pure ones, each paying for what it does.
func (m *meter) functions() map[string]function.Function {
	if m.pure == nil {
		m.pure = make(map[string]function.Function, len(pure))
		for name, f := range pure {
			m.pure[name] = m.metered(name, f)
		}
	}
	return m.pure
}

// lazy functions evaluate their arguments themselves.
var lazy = map[string]bool{"can": true, "try": true}

// metered lets a function pay what it is about to do, where that is more than to
// look at its arguments, and then what it gave.
func (m *meter) metered(name string, f function.Function) function.Function {
	if lazy[name] {
		return f
	}
	cost := costs[name]
	return function.New(&function.Spec{
		Params:   f.Params(),
		VarParam: f.VarParam(),
		Type: func(args []cty.Value) (cty.Type, error) {
			if err := checkNumbers(args); err != nil {
				return cty.NilType, err
			}
			if cost != nil && !m.pay(max(cost(args), 0)) {
				return cty.NilType, errTooMuch
			}
			return f.ReturnTypeForValues(args)
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			v, err := f.Call(args)
			if err == nil && !m.pay(weigh(v, m.once)) {
				return cty.NilVal, errTooMuch
			}
			return v, err
		},
	})
}

// costs are what functions do beyond a look at each of their arguments, in units
// of a meter. A cost that cannot be told before the work is done is told too high.
var costs = map[string]func(args []cty.Value) int{
	"setproduct":   productCost,
	"join":         joinCost,
	"replace":      replaceCost,
	"regex":        regexCost,
	"regexall":     regexAllCost,
	"regexreplace": regexReplaceCost,
	"format":       formatCost,
	"formatlist":   formatCost,
	"indent":       indentCost,
	"split":        func(args []cty.Value) int { return 2 * (1 + strings.Count(textAt(args, 1), textAt(args, 0))) },
	"trim":         func(args []cty.Value) int { return product(len(textAt(args, 0)), len(textAt(args, 1))) / 16 },
	"distinct":     func(args []cty.Value) int { return product(countOf(args[0]), weigh(args[0], expressionWork)) },
	"jsondecode":   valuesCost(",", ":", "[", "{"),
	"csvdecode":    valuesCost(",", "\n"),
	"yamldecode":   yamlDecodeCost,
	"parseint":     decodeCost(1),
	"strlen":       decodeCost(1),
	"strrev":       decodeCost(1),
	"substr":       decodeCost(1),
	"length":       decodeCost(1),
	"jsonencode":   writeCost(2, false),
	"yamlencode":   writeCost(8, true),
	"toset":        func(args []cty.Value) int { return encodeCost(4)(args) + setCost(args[0], expressionWork) },
	"tolist":       convertCost,
	"tomap":        convertCost,
	"setunion":     encodeCost(4), "setintersection": encodeCost(4), "setsubtract": encodeCost(4),
	"flatten": encodeCost(1), "merge": encodeCost(1), "concat": encodeCost(1), "contains": encodeCost(1), "sort": encodeCost(4),
}

// product is a*b, or more than anybody has.
func product(a, b int) int {
	const most = 1 << 50
	if a > 0 && b > most/a {
		return most
	}
	return a * b
}

// textAt is an argument as text; "" where it is none or not known.
func textAt(args []cty.Value, i int) string {
	if i >= len(args) {
		return ""
	}
	v, _ := args[i].Unmark()
	if v.IsNull() || !v.IsKnown() || v.Type() != cty.String {
		return ""
	}
	return v.AsString()
}

func productCost(args []cty.Value) int {
	n := 1 + len(args)
	for _, a := range args {
		n = product(n, countOf(a))
	}
	return n
}

func joinCost(args []cty.Value) int {
	n := 0
	for _, list := range args[1:] {
		n += countOf(list)
	}
	return product(n, 1+len(textAt(args, 0))/textUnit)
}

func replaceCost(args []cty.Value) int {
	text, old, other := textAt(args, 0), textAt(args, 1), textAt(args, 2)
	return product(1+strings.Count(text, old), 1+len(other)/textUnit)
}

var digits = regexp.MustCompile(`[0-9]+`)

// formatCost is what every verb may write: all the arguments, as wide as it asks.
func formatCost(args []cty.Value) int {
	form := textAt(args, 0)
	width, lists, rest := 0, 1, 0
	for _, n := range digits.FindAllString(form, -1) {
		width = max(width, min(len(n), 5))
	}
	for _, a := range args[1:] {
		lists = max(lists, countOf(a))
		rest += weigh(a, expressionWork)
	}
	wide := []int{0, 1, 10, 100, 1000, 10000}[width] / textUnit
	return len(form)/textUnit + product(strings.Count(form, "%"), product(lists, 1+wide+rest))
}

func indentCost(args []cty.Value) int {
	spaces, _ := args[0].Unmark()
	if spaces.IsNull() || !spaces.IsKnown() {
		return 0
	}
	n, _ := spaces.AsBigFloat().Int64()
	return product(1+strings.Count(textAt(args, 1), "\n"), 1+int(min(max(n, 0), 1000))/textUnit)
}

// decodeCost is times the length of the first text.
func decodeCost(times int) func([]cty.Value) int {
	return func(args []cty.Value) int { return times * len(textAt(args, 0)) / 2 }
}

// valuesCost is that of a text and of the values in it, which begin after marks.
func valuesCost(marks ...string) func([]cty.Value) int {
	return func(args []cty.Value) int {
		text := textAt(args, 0)
		if nested(text) { // it is refused
			return len(text) / textUnit
		}
		return len(text)/4 + 16*counted(text, marks...)
	}
}

func convertCost(args []cty.Value) int {
	return encodeCost(4)(args) + conversion(args[0], expressionWork)
}

// setCost is that of making a set: elements that fall into one place of a table,
// which may be all, are compared with each other.
func setCost(v cty.Value, limit int) int {
	sum := conversion(v, limit)
	if t := v.Type(); t.IsListType() || t.IsMapType() {
		n := countOf(v)
		sum += product(n, n) / 25
	}
	return sum
}

// writeCost is times the weight of all arguments, and what their texts may become:
// each character six, and in YAML a line of its own behind its indentation.
func writeCost(times int, indented bool) func([]cty.Value) int {
	return func(args []cty.Value) int {
		sum, limit := 0, expressionWork
		for _, a := range args {
			sum += times*weigh(a, limit) + escaped(a, indented, 0, limit)
		}
		return sum
	}
}

// escaped is how much the texts of a value may become when it is written, in units,
// or something above limit.
func escaped(v cty.Value, indented bool, depth, limit int) int {
	v, _ = v.Unmark()
	if v.IsNull() || !v.IsKnown() {
		return 0
	}
	if v.Type() == cty.String {
		each := 6
		if indented {
			each += 2 * depth
		}
		return product(len(v.AsString()), each) / textUnit
	}
	if !v.CanIterateElements() {
		return 0
	}
	sum := 0
	for it := v.ElementIterator(); sum <= limit && it.Next(); {
		_, e := it.Element()
		sum += 1 + escaped(e, indented, depth+1, limit-sum)
	}
	return sum
}

// encodeCost is times the weight of all arguments.
func encodeCost(times int) func([]cty.Value) int {
	return func(args []cty.Value) int {
		sum := 0
		for _, a := range args {
			sum += weigh(a, expressionWork)
		}
		return times * sum
	}
}
