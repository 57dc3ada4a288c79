package api_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stsd/stsd/daemon/api"
	"github.com/stsd/stsd/daemon/api/apitest"
)

// bodies are valid requests for the operations that take one.
var bodies = map[string]string{
	"POST /v1/apply":                               `{"scopes":[]}`,
	"POST /v1/plan":                                `{"scopes":[]}`,
	"POST /v1/sets/{namespace}/{set}/scale":        `{"replicas":1}`,
	"POST /v1/sets/{namespace}/{set}/fresh-volume": `{"ordinal":1}`,
	"POST /v1/sets/{namespace}/{set}/members":      `{"do":"restart"}`,
	"POST /v1/sets/{namespace}/{set}/image":        `{"images":{"":"web:2"}}`,
	"POST /v1/sets/{namespace}/{set}/rollout":      `{"do":"pause"}`,
	"POST /v1/sets/{namespace}/{set}/delete":       `{}`,
	"POST /v1/secrets/{namespace}/{secret}/delete": `{}`,
	"POST /v1/members/{namespace}/{member}/exec":   ``,
}

// Every operation of the document is asked of the handlers, and every answer is
// held against its schema: all required fields, no other fields, right types.
func TestTheHandlersAnswerAsTheDocumentSays(t *testing.T) {
	t.Parallel()
	doc := plainJSON(t, api.Document())
	host := apitest.Serve(t, apitest.World())
	asked := 0
	for path, ops := range doc["paths"].(map[string]any) {
		for method, op := range ops.(map[string]any) {
			asked++
			key := strings.ToUpper(method) + " " + path
			t.Run(key, func(t *testing.T) { holdAgainst(t, doc, host, key, op.(map[string]any)) })
		}
	}
	if asked < 19 {
		t.Errorf("the document has %d operations; it lost some", asked)
	}
}

func holdAgainst(t *testing.T, doc map[string]any, host, key string, op map[string]any) {
	method, path, _ := strings.Cut(key, " ")
	path = strings.NewReplacer("{namespace}", "default", "{set}", "web", "{member}", "web-0").Replace(path)
	if strings.HasSuffix(path, "/explain") {
		path = strings.Replace(path, "web-0", "web-2", 1)
	}
	body, has := bodies[key]
	if _, wants := op["requestBody"]; wants != (has && body != "") {
		t.Fatalf("the test has a body: %v, the document wants one: %v", has, wants)
	}
	if strings.HasSuffix(path, "/exec") {
		if _, ok := op["responses"].(map[string]any)["101"]; !ok {
			t.Error("exec does not switch protocols")
		}
		return // TestExec speaks the other protocol
	}
	got := fetch(t, host, method, path, body)
	if got.status != 200 {
		t.Fatalf("answer = %d %s", got.status, got.body)
	}
	kind, _, _ := strings.Cut(got.kind, ";")
	content := op["responses"].(map[string]any)["200"].(map[string]any)["content"].(map[string]any)
	media, ok := content[kind].(map[string]any)
	if !ok {
		t.Fatalf("content type %q is none of the document", kind)
	}
	documents := []string{got.body}
	switch kind {
	case "application/x-ndjson":
		documents = strings.Split(strings.TrimSpace(got.body), "\n")
	case "application/json":
	default:
		return
	}
	for _, d := range documents {
		var v any
		if err := json.Unmarshal([]byte(d), &v); err != nil {
			t.Fatal(err)
		}
		for _, problem := range fits(doc, media["schema"].(map[string]any), v, "$") {
			t.Error(problem)
		}
	}
}

// A problem fits its schema too.
func TestProblemsFitTheDocument(t *testing.T) {
	t.Parallel()
	doc := plainJSON(t, api.Document())
	got := fetch(t, apitest.Serve(t, apitest.World()), "GET", "/v1/sets/default/nothing", "")
	var v any
	if err := json.Unmarshal([]byte(got.body), &v); err != nil {
		t.Fatal(err)
	}
	for _, problem := range fits(doc, map[string]any{"$ref": "#/components/schemas/Problem"}, v, "$") {
		t.Error(problem)
	}
}

// fits holds a value against the part of JSON Schema that the document uses.
func fits(doc, schema map[string]any, v any, at string) []string {
	if ref, ok := schema["$ref"].(string); ok {
		name := ref[strings.LastIndexByte(ref, '/')+1:]
		def, ok := doc["components"].(map[string]any)["schemas"].(map[string]any)[name].(map[string]any)
		if !ok {
			return []string{at + ": no schema " + name}
		}
		return fits(doc, def, v, at)
	}
	if options, ok := schema["anyOf"].([]any); ok {
		for _, s := range options {
			if len(fits(doc, s.(map[string]any), v, at)) == 0 {
				return nil
			}
		}
		return []string{at + ": fits none"}
	}
	if !rightType(schema["type"], v) {
		return []string{fmt.Sprintf("%s: %v is no %v", at, v, schema["type"])}
	}
	var bad []string
	switch v := v.(type) {
	case []any:
		for i, e := range v {
			bad = append(bad, fits(doc, schema["items"].(map[string]any), e, fmt.Sprintf("%s[%d]", at, i))...)
		}
	case map[string]any:
		bad = fitsObject(doc, schema, v, at)
	}
	return bad
}

func fitsObject(doc, schema, v map[string]any, at string) []string {
	props, ok := schema["properties"].(map[string]any)
	if !ok {
		return nil // a map, or anything
	}
	var bad []string
	for name, value := range v {
		s, known := props[name].(map[string]any)
		if !known {
			bad = append(bad, at+"."+name+": not in the document")
			continue
		}
		bad = append(bad, fits(doc, s, value, at+"."+name)...)
	}
	required, _ := schema["required"].([]any)
	for _, name := range required {
		if _, ok := v[name.(string)]; !ok {
			bad = append(bad, at+"."+name.(string)+": missing")
		}
	}
	return bad
}

func rightType(want, v any) bool {
	switch want := want.(type) {
	case nil:
		return true
	case []any:
		return slices.ContainsFunc(want, func(w any) bool { return rightType(w, v) })
	case string:
		return want == typeOf(v) || want == "number" && typeOf(v) == "integer"
	}
	return false
}

func typeOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case float64:
		if v == float64(int64(v)) {
			return "integer"
		}
		return "number"
	case []any:
		return "array"
	}
	return "object"
}

func plainJSON(t *testing.T, v any) map[string]any {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]any{}
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	return out
}
