package api

import (
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/stsd/stsd/daemon/client"
)

type object = map[string]any

// Document is the OpenAPI 3.1 description of the API. It is made from the same
// table and the same types as the handlers; testdata/openapi.json holds it, so
// that a change of the API is seen in review.
func Document() map[string]any {
	s := schemas{defs: object{}}
	paths := object{}
	for _, rt := range routes() {
		ops, ok := paths[rt.path].(object)
		if !ok {
			ops = object{}
			paths[rt.path] = ops
		}
		ops[strings.ToLower(rt.method)] = s.operation(rt)
	}
	s.of(reflect.TypeFor[client.Problem]())
	s.of(reflect.TypeFor[client.Exit]())
	s.of(reflect.TypeFor[client.Resize]())
	return object{
		"openapi": "3.1.0",
		"info": object{
			"title":       "stsd",
			"version":     "v1",
			"description": "The API of the stsd daemon on its unix socket. Fields are only ever added to answers; unknown fields in a request are refused. " + framesText,
		},
		"paths":      paths,
		"components": object{"schemas": s.defs},
	}
}

const framesText = "Frames (" + client.FramesType + " and the upgraded connection of exec) are one byte of kind, four bytes of length (big endian), and that many bytes. " +
	"Kinds: 0 stdin, 1 stdout, 2 stderr, 3 exit (JSON Exit), 4 error (JSON Problem), 5 resize (JSON Resize), 6 end of stdin, 7 end of logs."

type schemas struct{ defs object }

func (s schemas) operation(rt route) object {
	op := object{"summary": rt.summary, "responses": s.responses(rt)}
	var params []any
	for _, name := range pathParams(rt.path) {
		params = append(params, object{"name": name, "in": "path", "required": true, "schema": object{"type": "string"}})
	}
	for _, p := range rt.query {
		params = append(params, object{"name": p.name, "in": "query", "required": p.name == "command", "description": p.about, "schema": paramSchema(p.kind)})
	}
	if params != nil {
		op["parameters"] = params
	}
	if rt.in != nil {
		op["requestBody"] = object{"required": true, "content": object{"application/json": object{"schema": s.of(reflect.TypeOf(rt.in))}}}
	}
	return op
}

func pathParams(path string) []string {
	var names []string
	for part := range strings.SplitSeq(path, "/") {
		if strings.HasPrefix(part, "{") {
			names = append(names, strings.Trim(part, "{}"))
		}
	}
	return names
}

func paramSchema(kind string) object {
	switch kind {
	case "date-time":
		return object{"type": "string", "format": "date-time"}
	case "strings":
		return object{"type": "array", "items": object{"type": "string"}}
	}
	return object{"type": kind}
}

func (s schemas) responses(rt route) object {
	status, content := http.StatusOK, object{}
	if rt.out != nil && rt.stream != streamLines {
		content["application/json"] = object{"schema": s.of(reflect.TypeOf(rt.out))}
	}
	switch rt.stream {
	case streamLines, streamWatch:
		content[linesType] = object{"schema": s.of(reflect.TypeOf(rt.out)), "x-stream": "one document a line; a stream that fails ends with a Problem"}
	case streamFrames:
		content[client.FramesType] = object{"schema": object{"type": "string", "contentEncoding": "binary"}}
	case streamText:
		content["text/plain"] = object{"schema": object{"type": "string"}}
	case streamExec:
		status = http.StatusSwitchingProtocols
	}
	ok := object{"description": rt.summary}
	if len(content) > 0 {
		ok["content"] = content
	}
	problem := object{"description": "A problem (RFC 9457)", "content": object{problemType: object{"schema": s.of(reflect.TypeFor[client.Problem]())}}}
	return object{strconv.Itoa(status): ok, "default": problem}
}

// of is the schema of a type: in place for plain ones, a reference for structs.
func (s schemas) of(t reflect.Type) object {
	switch {
	case t == timeType:
		return object{"type": "string", "format": "date-time"}
	case t == reflect.TypeFor[json.RawMessage](), t.Name() == "Template":
		return object{}
	case t.Kind() == reflect.Pointer:
		return nullable(s.of(t.Elem()))
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return object{"type": "string", "contentEncoding": "base64"}
	case t.Kind() == reflect.Slice:
		return object{"type": "array", "items": s.of(t.Elem())}
	case t.Kind() == reflect.Map && t.Elem().Kind() == reflect.Interface:
		return object{"type": "object"}
	case t.Kind() == reflect.Map:
		return object{"type": "object", "additionalProperties": s.of(t.Elem())}
	case t.Kind() == reflect.Struct:
		return s.ref(t)
	}
	return object{"type": plain(t.Kind())}
}

func plain(k reflect.Kind) string {
	switch k {
	case reflect.Bool:
		return "boolean"
	case reflect.String:
		return "string"
	case reflect.Float64, reflect.Float32:
		return "number"
	}
	return "integer"
}

func nullable(schema object) object {
	if t, ok := schema["type"].(string); ok {
		c := maps.Clone(schema)
		c["type"] = []any{t, "null"}
		return c
	}
	return object{"anyOf": []any{schema, object{"type": "null"}}}
}

func (s schemas) ref(t reflect.Type) object {
	name := t.Name()
	if _, ok := s.defs[name]; !ok {
		s.defs[name] = object{} // stops a circle
		props, required := object{}, []string{}
		s.fields(t, props, &required)
		slices.Sort(required)
		def := object{"type": "object", "properties": props}
		if len(required) > 0 {
			def["required"] = required
		}
		s.defs[name] = def
	}
	return object{"$ref": "#/components/schemas/" + name}
}

func (s schemas) fields(t reflect.Type, props object, required *[]string) {
	for f := range t.Fields() {
		if f.Anonymous {
			s.fields(f.Type, props, required)
			continue
		}
		name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		props[name] = s.of(f.Type)
		if !strings.Contains(opts, "omitempty") {
			*required = append(*required, name)
		}
	}
}
