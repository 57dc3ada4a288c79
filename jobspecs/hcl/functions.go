package hcl

import (
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"strings"

	hcl2 "github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/tryfunc"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	yaml "github.com/zclconf/go-cty-yaml"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// pure are the functions whose value depends on their arguments alone.
var pure = map[string]function.Function{
	"abs": stdlib.AbsoluteFunc, "ceil": stdlib.CeilFunc, "floor": stdlib.FloorFunc, "log": stdlib.LogFunc,
	"max": stdlib.MaxFunc, "min": stdlib.MinFunc, "parseint": stdlib.ParseIntFunc, "pow": stdlib.PowFunc, "signum": stdlib.SignumFunc,

	"chomp": stdlib.ChompFunc, "endswith": textTest(strings.HasSuffix), "format": narrow(stdlib.FormatFunc), "formatlist": narrow(stdlib.FormatListFunc),
	"indent": indent, "join": joinFunc, "lower": stdlib.LowerFunc, "regex": stdlib.RegexFunc, "regexall": stdlib.RegexAllFunc,
	"regexreplace": stdlib.RegexReplaceFunc, "replace": stdlib.ReplaceFunc, "split": stdlib.SplitFunc, "startswith": textTest(strings.HasPrefix),
	"strlen": stdlib.StrlenFunc, "strrev": stdlib.ReverseFunc, "substr": stdlib.SubstrFunc, "title": stdlib.TitleFunc, "trim": stdlib.TrimFunc,
	"trimprefix": stdlib.TrimPrefixFunc, "trimspace": stdlib.TrimSpaceFunc, "trimsuffix": stdlib.TrimSuffixFunc, "upper": stdlib.UpperFunc,

	"chunklist": stdlib.ChunklistFunc, "coalesce": stdlib.CoalesceFunc, "coalescelist": stdlib.CoalesceListFunc, "compact": stdlib.CompactFunc,
	"concat": stdlib.ConcatFunc, "contains": stdlib.ContainsFunc, "distinct": stdlib.DistinctFunc, "element": stdlib.ElementFunc,
	"flatten": stdlib.FlattenFunc, "keys": stdlib.KeysFunc, "length": length, "lookup": stdlib.LookupFunc, "merge": stdlib.MergeFunc,
	"range": stdlib.RangeFunc, "reverse": stdlib.ReverseListFunc, "setintersection": stdlib.SetIntersectionFunc, "setproduct": stdlib.SetProductFunc,
	"setsubtract": stdlib.SetSubtractFunc, "setunion": stdlib.SetUnionFunc, "slice": stdlib.SliceFunc, "sort": stdlib.SortFunc,
	"values": stdlib.ValuesFunc, "zipmap": stdlib.ZipmapFunc,

	"base64decode": base64decode, "base64encode": textFunc(func(s string) (string, error) { return base64.StdEncoding.EncodeToString([]byte(s)), nil }),
	"csvdecode": lateTyped(stdlib.CSVDecodeFunc), "jsondecode": shallow(stdlib.JSONDecodeFunc), "jsonencode": stdlib.JSONEncodeFunc,
	"urlencode":  textFunc(func(s string) (string, error) { return url.QueryEscape(s), nil }),
	"yamldecode": yamldecode, "yamlencode": yaml.YAMLEncodeFunc,

	"basename": textFunc(func(s string) (string, error) { return path.Base(s), nil }),
	"dirname":  textFunc(func(s string) (string, error) { return path.Dir(s), nil }),
	"md5":      textFunc(func(s string) (string, error) { sum := md5.Sum([]byte(s)); return hex.EncodeToString(sum[:]), nil }),
	"sha256": textFunc(func(s string) (string, error) {
		sum := sha256.Sum256([]byte(s))
		return hex.EncodeToString(sum[:]), nil
	}),

	"cidrhost": cidrhost, "cidrnetmask": cidrnetmask,
	"formatdate": stdlib.FormatDateFunc, "timeadd": stdlib.TimeAddFunc,

	"can": tryfunc.CanFunc, "try": tryfunc.TryFunc,
	"tobool": stdlib.MakeToFunc(cty.Bool), "tolist": stdlib.MakeToFunc(cty.List(cty.DynamicPseudoType)), "tomap": stdlib.MakeToFunc(cty.Map(cty.DynamicPseudoType)),
	"tonumber": stdlib.MakeToFunc(cty.Number), "toset": stdlib.MakeToFunc(cty.Set(cty.DynamicPseudoType)), "tostring": stdlib.MakeToFunc(cty.String),
}

// impure functions read something that Inputs record; with their documentation.
var impure = map[string]string{
	"env":          "an environment variable, \"\" when it is not set; in a variable's default only",
	"file":         "the text of a file, its path relative to the spec's file",
	"fileexists":   "whether there is such a file",
	"templatefile": "a file with ${…} in it, rendered with a map of values",
}

var readsFiles = map[string]bool{"file": true, "fileexists": true, "templatefile": true}

// Functions are the names of all functions of the language, sorted.
func Functions() []string {
	all := sortedKeys(pure)
	all = append(all, sortedKeys(impure)...)
	return sortedUnique(all)
}

func textFunc(f func(string) (string, error)) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "str", Type: cty.String}},
		Type:   function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			s, err := f(args[0].AsString())
			return cty.StringVal(s), err
		},
	})
}

func textTest(f func(s, part string) bool) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "str", Type: cty.String}, {Name: "part", Type: cty.String}},
		Type:   function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			return cty.BoolVal(f(args[0].AsString(), args[1].AsString())), nil
		},
	})
}

// shallow guards a function that decodes text: what is nested thousands deep
// takes it minutes, or its stack. The text is not decoded to tell a type first.
func shallow(f function.Function) function.Function {
	return function.New(&function.Spec{
		Params: f.Params(),
		Type:   function.StaticReturnType(cty.DynamicPseudoType),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			if nested(args[0].AsString()) {
				return cty.NilVal, errTooDeep
			}
			return f.Call(args)
		},
	})
}

// lateTyped does the work of a function once, not for its type first.
func lateTyped(f function.Function) function.Function {
	return function.New(&function.Spec{
		Params: f.Params(),
		Type:   function.StaticReturnType(cty.DynamicPseudoType),
		Impl:   func(args []cty.Value, _ cty.Type) (cty.Value, error) { return f.Call(args) },
	})
}

// wide is a verb of format() that asks for a width or precision of gigabytes.
var wide = regexp.MustCompile(`%[^A-Za-z%]*[1-9][0-9]{4}`)

func narrow(f function.Function) function.Function {
	return function.New(&function.Spec{
		Params:   f.Params(),
		VarParam: f.VarParam(),
		Type: func(args []cty.Value) (cty.Type, error) {
			if args[0].IsKnown() && args[0].Type() == cty.String && wide.MatchString(args[0].AsString()) {
				return cty.NilType, function.NewArgErrorf(0, "a width above 9999 is not possible")
			}
			return f.ReturnTypeForValues(args)
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) { return f.Call(args) },
	})
}

// indent is the standard one, for up to 1000 spaces.
var indent = function.New(&function.Spec{
	Params: stdlib.IndentFunc.Params(),
	Type:   function.StaticReturnType(cty.String),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		if n, _ := args[0].AsBigFloat().Float64(); n < 0 || n > 1000 {
			return cty.NilVal, function.NewArgErrorf(0, "want 0 to 1000 spaces")
		}
		return stdlib.IndentFunc.Call(args)
	},
})

// nested tells whether text opens more than maxDepth brackets, or begins more
// than maxDepth lists on one line of YAML.
func nested(text string) bool {
	depth, dashes := 0, 0
	for _, c := range text {
		switch c {
		case '[', '{':
			depth++
		case ']', '}':
			depth = max(depth-1, 0)
		case '-', '?', ':':
			dashes++
		case '\n', ',':
			dashes = 0
		}
		if depth > maxDepth || dashes > 10*maxDepth {
			return true
		}
	}
	return false
}

// length counts the characters of a string too, as Terraform's does.
var length = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "value", Type: cty.DynamicPseudoType, AllowDynamicType: true}},
	Type:   function.StaticReturnType(cty.Number),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		if args[0].Type() == cty.String {
			return stdlib.Strlen(args[0])
		}
		if t := args[0].Type(); t.IsObjectType() {
			return cty.NumberIntVal(int64(len(t.AttributeTypes()))), nil
		}
		if !args[0].CanIterateElements() {
			return cty.NilVal, function.NewArgErrorf(0, "want a list, a map or a string")
		}
		return stdlib.Length(args[0])
	},
})

// joinFunc takes lists as they are. Converting a tuple, which is what a for
// expression gives, into a list of one type takes a time that grows with the
// square of its length.
var joinFunc = function.New(&function.Spec{
	Params:   []function.Parameter{{Name: "separator", Type: cty.String}},
	VarParam: &function.Parameter{Name: "lists", Type: cty.DynamicPseudoType},
	Type:     function.StaticReturnType(cty.String),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		if len(args) < 2 {
			return cty.NilVal, errors.New("at least one list is needed")
		}
		var items []string
		for i, list := range args[1:] {
			if t := list.Type(); !t.IsTupleType() && !t.IsListType() && !t.IsSetType() {
				return cty.NilVal, function.NewArgErrorf(i+1, "want a list of strings")
			}
			for n, e := range list.AsValueSlice() {
				if !e.IsKnown() {
					return cty.UnknownVal(cty.String), nil
				}
				s, err := convert.Convert(e, cty.String)
				if err != nil || s.IsNull() {
					return cty.NilVal, function.NewArgErrorf(i+1, "element %d is no string", n)
				}
				items = append(items, s.AsString())
			}
		}
		return cty.StringVal(strings.Join(items, args[0].AsString())), nil
	},
})

var base64decode = textFunc(func(s string) (string, error) {
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return "", errors.New("this is no base64")
	}
	if notText(b) > 0 {
		return "", errors.New("what is encoded is no text")
	}
	return string(b), nil
})

var cidrhost = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "prefix", Type: cty.String}, {Name: "host", Type: cty.Number}},
	Type:   function.StaticReturnType(cty.String),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		prefix, err := netip.ParsePrefix(args[0].AsString())
		if err != nil {
			return cty.NilVal, function.NewArgErrorf(0, "%q is no address range, as in 10.0.0.0/24", args[0].AsString())
		}
		addr, err := hostOf(prefix.Masked(), args[1].AsBigFloat())
		return cty.StringVal(addr.String()), err
	},
})

// hostOf is the address at a position of a range; negative ones count from its end.
func hostOf(prefix netip.Prefix, position *big.Float) (netip.Addr, error) {
	n, accuracy := position.Int(nil)
	if accuracy != big.Exact {
		return netip.Addr{}, function.NewArgErrorf(1, "want a whole number")
	}
	room := new(big.Int).Lsh(big.NewInt(1), uint(prefix.Addr().BitLen()-prefix.Bits()))
	if n.Sign() < 0 {
		n.Add(n, room)
	}
	if n.Sign() < 0 || n.Cmp(room) >= 0 {
		return netip.Addr{}, function.NewArgErrorf(1, "%s has no such host", prefix)
	}
	sum := n.Add(n, new(big.Int).SetBytes(prefix.Addr().AsSlice()))
	addr, _ := netip.AddrFromSlice(sum.FillBytes(make([]byte, prefix.Addr().BitLen()/8)))
	return addr, nil
}

var cidrnetmask = textFunc(func(s string) (string, error) {
	prefix, err := netip.ParsePrefix(s)
	if err != nil || !prefix.Addr().Is4() {
		return "", fmt.Errorf("%q is no IPv4 address range, as in 10.0.0.0/24", s)
	}
	ones := ^uint32(0)
	mask := uint64(ones) << (32 - prefix.Bits())
	return netip.AddrFrom4([4]byte{byte(mask >> 24), byte(mask >> 16), byte(mask >> 8), byte(mask)}).String(), nil
})

// A reader gives the files that a spec names.
type reader interface {
	file(path string) (string, error)
	exists(path string) (bool, error)
}

// functions are all of them, with files from r and env() from env, paid for with
// m; env nil: env() has no place here.
func functions(r reader, env func(string) (string, error), m *meter) map[string]function.Function {
	all := make(map[string]function.Function, len(pure)+len(impure))
	maps.Copy(all, m.functions())
	maps.Copy(all, impureFunctions(r, env, m))
	return all
}

func impureFunctions(r reader, env func(string) (string, error), m *meter) map[string]function.Function {
	all := make(map[string]function.Function, len(impure))
	all["file"] = m.metered("file", fileFunc(r))
	all["fileexists"] = existsFunc(r)
	all["templatefile"] = m.metered("templatefile", templateFunc(r, m))
	if env == nil {
		env = func(string) (string, error) { return "", errors.New("env() may stand in a variable's default only") }
	}
	all["env"] = textFunc(env)
	return all
}

// pathParam takes a value that is marked too: paths are kept with the spec and
// shown, so that the functions refuse it.
var pathParam = function.Parameter{Name: "path", Type: cty.String, AllowMarked: true}

var errSensitivePath = function.NewArgErrorf(0, "a path may not be sensitive")

func fileFunc(r reader) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{pathParam},
		Type:   function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			if args[0].IsMarked() {
				return cty.NilVal, errSensitivePath
			}
			s, err := r.file(args[0].AsString())
			return cty.StringVal(s), err
		},
	})
}

func existsFunc(r reader) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{pathParam},
		Type:   function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			if args[0].IsMarked() {
				return cty.NilVal, errSensitivePath
			}
			ok, err := r.exists(args[0].AsString())
			return cty.BoolVal(ok), err
		},
	})
}

func templateFunc(r reader, m *meter) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{pathParam, {Name: "vars", Type: cty.DynamicPseudoType}},
		Type:   function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			if args[0].IsMarked() {
				return cty.NilVal, errSensitivePath
			}
			text, err := r.file(args[0].AsString())
			if err != nil {
				return cty.NilVal, function.NewArgError(0, err)
			}
			s, err := renderTemplate(args[0].AsString(), text, args[1], m)
			return cty.StringVal(s), err
		},
	})
}

// renderTemplate renders the text of a file as an HCL template. It may call pure
// functions only, so that the files a spec reads can be told without rendering it.
func renderTemplate(name, text string, vars cty.Value, m *meter) (string, error) {
	if !m.pay(len(text)) {
		return "", errTooMuch
	}
	if t := vars.Type(); !t.IsObjectType() && !t.IsMapType() {
		return "", function.NewArgErrorf(1, "want a map of values, as in { name = self.name }")
	}
	tokens, _ := hclsyntax.LexTemplate([]byte(text), name, hcl2.InitialPos)
	if at, problem := tooMuch(tokens); problem != "" {
		return "", fmt.Errorf("%s: %s", at, problem)
	}
	expr, ds := hclsyntax.ParseTemplate([]byte(text), name, hcl2.InitialPos)
	if ds.HasErrors() {
		return "", firstError(ds)
	}
	instrument(expr, m)
	ctx := &hcl2.EvalContext{Variables: vars.AsValueMap(), Functions: m.functions()}
	if !m.enter(sizeOf(expr), hclsyntax.Variables(expr), ctx) {
		return "", errTooMuch
	}
	v, ds := expr.Value(ctx)
	if ds.HasErrors() {
		return "", firstError(ds)
	}
	return toText(v, "text")
}

func firstError(ds hcl2.Diagnostics) error {
	for _, d := range ds {
		if d.Severity == hcl2.DiagError && d.Subject != nil {
			return fmt.Errorf("%s: %s", d.Subject, strings.Join(nonEmpty(d.Summary, d.Detail), ": "))
		}
	}
	return ds
}
