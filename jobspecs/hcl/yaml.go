package hcl

import (
	"errors"
	"fmt"
	"strings"

	yaml "github.com/zclconf/go-cty-yaml"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// yamldecode is the standard one without what makes that take all memory: a few
// lines of aliases to aliases stand for a value of any size. The parts of a decoded
// value are shared, so that to decode costs what is written; it is the first look
// at every part, as at its type, that costs what is meant. No look is taken before
// the value was counted within bounds, which is why its type is not told first.
var yamldecode = function.New(&function.Spec{
	Params: yaml.YAMLDecodeFunc.Params(),
	Type:   function.StaticReturnType(cty.DynamicPseudoType),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		text := args[0].AsString()
		if nested(text) {
			return cty.NilVal, errTooDeep
		}
		v, err := yaml.Standard.Unmarshal([]byte(text), cty.DynamicPseudoType)
		if err != nil {
			return cty.NilVal, err
		}
		if _, err := count(v, maxDecoded, maxDepth); err != nil {
			return cty.NilVal, err
		}
		return v, nil
	},
})

// maxDecoded is how many values may be decoded from a text: as many as a local holds.
const maxDecoded = maxValue / 16

var errTooDeep = function.NewArgError(0, fmt.Errorf("this is nested more than %d deep", maxDepth))

var errTooManyParts = errors.New("this stands for too many values; aliases of aliases multiply them")

// count is what is left of limit when each part of a value has taken one, a part
// that stands at several places wherever it stands.
func count(v cty.Value, limit, depth int) (left int, err error) {
	if limit--; limit < 0 {
		return 0, errTooManyParts
	}
	if v.IsNull() || !v.IsKnown() || !v.CanIterateElements() {
		return limit, nil
	}
	if depth == 0 {
		return 0, errTooDeep
	}
	for it := v.ElementIterator(); it.Next(); {
		_, e := it.Element()
		if limit, err = count(e, limit, depth-1); err != nil {
			return 0, err
		}
	}
	return limit, nil
}

// yamlDecodeCost is that of the text, of its values, and of maps that are merged
// into others: every merge copies all the keys.
func yamlDecodeCost(args []cty.Value) int {
	text := textAt(args, 0)
	if nested(text) { // it is refused
		return len(text) / textUnit
	}
	keys := counted(text, ":", "?", ",", "{")
	return len(text)/2 + 16*(keys+counted(text, "\n", "[", "-")) + 4*product(merges(text), keys)
}

// merges is how often a text of YAML may merge a map into another at most: a key
// is << or has the tag of one, either of them perhaps escaped.
func merges(text string) int {
	text = strings.ToLower(text)
	n := counted(text, "<<", "merge", `\x3c`, `\u003c`, `\u0000003c`, "<\\\n") + min(strings.Count(text, "!"), strings.Count(text, "%"))
	if n == 0 {
		return 0
	}
	return n + strings.Count(text, "*")
}

func counted(text string, parts ...string) int {
	n := 0
	for _, p := range parts {
		n += strings.Count(text, p)
	}
	return n
}
