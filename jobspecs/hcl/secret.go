package hcl

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	hcl2 "github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/stsd/stsd/jobspecs"
)

var secretSchema = &block{
	name: "secret", label: "NAME", check: checkIdentifier,
	doc: "a value that the daemon makes once for a namespace and keeps until `stsd secret rm`; `secret.NAME` in expressions",
	attrs: []attr{
		{name: "length", kind: number(minSecretLength, maxSecretLength), def: "32; 36 of a uuid", doc: "how many characters"},
		{name: "format", kind: oneOf(secretFormats...), def: "`hex`", doc: "which characters"},
	},
}

// secretFormats are what a secret may be made of, and how long it is then.
var secretFormats = []string{FormatHex, FormatBase64URL, FormatUUID}

// Formats of a secret.
const (
	FormatHex       = "hex"
	FormatBase64URL = "base64url"
	FormatUUID      = "uuid"
)

const (
	defaultSecretLength = 32
	minSecretLength     = 8
	maxSecretLength     = 1024
	uuidLength          = 36
)

// A Secret is a secret block of a scope. The daemon makes its value, once for
// each namespace.
type Secret struct {
	Name   string `json:"name"`
	Format string `json:"format"` // FormatHex, FormatBase64URL, FormatUUID
	Length int    `json:"length"` // characters
}

// secret is one block, while it is read.
type secret struct {
	Secret
	at hcl2.Range
}

// declareSecret reads a secret block.
func (s *scope) declareSecret(b *hclsyntax.Block) {
	schema := fileSchema.block("secret")
	if !s.labelled(b, schema) {
		return
	}
	x := &secret{at: b.DefRange(), Secret: Secret{Name: b.Labels[0], Format: FormatHex}}
	for _, a := range sortedAttributes(b.Body) {
		at, ok := schema.attr(a.Name)
		if !ok {
			s.unknownAttribute(a, schema)
			continue
		}
		v, ok := s.constant(a.Expr, at.kind, nil)
		switch {
		case !ok:
		case a.Name == "length":
			x.Length = number64(v.(json.Number))
		case a.Name == "format":
			x.Format = v.(string)
		}
	}
	for _, c := range b.Body.Blocks {
		s.unknownBlock(c, schema)
	}
	if x.Format == FormatUUID && x.Length != 0 && x.Length != uuidLength {
		s.error(b.Body.Attributes["length"].Expr.Range(), "a uuid has a length of its own", "Take length out.")
	}
	x.Length = lengthOf(x.Format, x.Length)
	if old, twice := s.secrets[x.Name]; twice {
		s.error(x.at, fmt.Sprintf("secret %q is declared twice", x.Name), fmt.Sprintf("The other one is at %s:%d.", old.at.Filename, old.at.Start.Line))
		return
	}
	s.secrets[x.Name] = x
}

func lengthOf(format string, written int) int {
	switch {
	case format == FormatUUID:
		return uuidLength
	case written == 0:
		return defaultSecretLength
	}
	return written
}

// SecretKey is the name of a secret's value in Inputs.Secrets.
func SecretKey(namespace, name string) string { return namespace + "/" + name }

// secretsOf gives the secrets of a namespace their values, as far as they are
// known: with AllowMissing, one that was not made yet is something of its form.
func (s *scope) secretsOf(namespace string) {
	s.secretValues = map[string]cty.Value{}
	for _, name := range sortedKeys(s.secrets) {
		key := SecretKey(namespace, name)
		value, made := s.in.Secrets[key]
		switch {
		case made:
			if s.read.Secrets == nil {
				s.read.Secrets = map[string]string{}
			}
			s.read.Secrets[key] = value
			s.keepUnsaid(cty.StringVal(value))
		case s.opt.AllowMissing:
			value = Placeholder(s.secrets[name].Secret)
		default:
			s.error(s.secrets[name].at, fmt.Sprintf("secret %q has no value in namespace %s", name, namespace), "The daemon makes it when the spec is applied.")
		}
		s.secretValues[name] = cty.StringVal(value).Mark(sensitive)
	}
}

// Placeholder has the form of a secret that was not made yet.
func Placeholder(s Secret) string {
	if s.Format == FormatUUID {
		return "00000000-0000-4000-8000-000000000000"
	}
	return strings.Repeat("0", s.Length)
}

func (s *scope) checkSecret(t hcl2.Traversal, name string) bool {
	if _, ok := s.secrets[name]; !ok {
		s.noName(t, "secret", "secret", name, sortedKeys(s.secrets))
		return false
	}
	if len(t) > 2 {
		s.error(t.SourceRange(), fmt.Sprintf("secret.%s is a string", name), "")
		return false
	}
	return true
}

// unusedSecrets warns of secrets that no set reads.
func (s *scope) unusedSecrets(specs []jobspecs.Spec) {
	var used []string
	for i := range specs {
		used = append(used, SecretNames(&specs[i].Set, specs[i].Template)...)
	}
	for _, name := range sortedKeys(s.secrets) {
		if !slices.Contains(used, name) && !s.failed() {
			s.warn(s.secrets[name].at, fmt.Sprintf("secret %q is used nowhere", name), fmt.Sprintf("Its value is secret.%s.", name))
		}
	}
}

// SecretNames are the secrets that a template and the claims of its set read.
func SecretNames(set *jobspecs.Set, t jobspecs.Template) []string {
	var names []string
	for _, b := range append([]json.RawMessage{json.RawMessage(t)}, Beside(set)...) {
		if !bytes.Contains(b, []byte(`"secret":`)) { // quotes inside strings are escaped
			continue
		}
		if doc, err := decodeDocument(b); err == nil {
			names = append(names, sortedKeys(part(doc, "secret"))...)
		}
	}
	return sortedUnique(names)
}
