package api

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stsd/stsd/daemon/client"
)

// Within gives callers another time to send a body.
func (s *Server) Within(d time.Duration) { s.within = d }

// Reference is docs/api.md, for the tests outside the package.
func Reference() string { return reference() }

func reference() string {
	var b strings.Builder
	b.WriteString("# The API\n\nHTTP/1.1 and JSON on the daemon's unix socket. The daemon serves its full description, OpenAPI 3.1 with every schema, at\n" +
		"`/v1/openapi.json`; this page is made from the same table. Unknown fields in a request are refused; answers only ever gain\n" +
		"fields. `daemon/client` is its Go client.\n\n| method and path | what it does | query | body | answer |\n|---|---|---|---|---|\n")
	for _, rt := range routes() {
		var query []string
		for _, p := range rt.query {
			query = append(query, "`"+p.name+"`")
		}
		fmt.Fprintf(&b, "| `%s %s` | %s | %s | %s | %s |\n", rt.method, rt.path, rt.summary, strings.Join(query, " "), typeName(rt.in), answerOf(rt))
	}
	b.WriteString("\n" + framesText + "\n\nErrors are RFC 9457 problem details (`application/problem+json`) with one of these types:\n\n| type | status |\n|---|---|\n")
	for _, p := range []struct {
		kind, status string
	}{
		{client.ProblemInvalid, "422, with diagnostics; 405 for another method, with Allow; 408 when the body did not come in time"}, {client.ProblemNotFound, "404"}, {client.ProblemChanged, "409, the generation moved on"},
		{client.ProblemUnconfirmed, "403, with the data that would be lost sight of"}, {client.ProblemConflict, "409"},
		{client.ProblemGuard, "409, the set's guard refuses it; `force` overrides"},
		{client.ProblemEngine, "503"}, {client.ProblemInternal, "500"},
	} {
		fmt.Fprintf(&b, "| `%s` | %s |\n", p.kind, p.status)
	}
	for _, list := range []struct{ title, file, prefix string }{
		{"Phases of a member", "../../runtime/engine.go", "Pending Pulling Initializing Starting Running Stopping Stopped Failed Backoff Unknown"},
		{"Reasons of a member", "../../runtime/engine.go", "Reason"},
		{"Reasons of a member that no engine gives", "../planner/status.go", "Reason"},
		{"Conditions of a set", "../../jobspecs/status.go", "Cond"},
		{"Ops of a plan's steps", "../../jobspecs/status.go", "Op"},
	} {
		fmt.Fprintf(&b, "\n## %s\n\n", list.title)
		for _, c := range constants(list.file, list.prefix) {
			fmt.Fprintf(&b, "- `%s`%s\n", c[0], c[1])
		}
	}
	return b.String()
}

// constants are the values and comments of a file's string constants whose names
// are one of those in prefix, or begin with it.
func constants(file, prefix string) [][2]string {
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	if err != nil {
		panic(err)
	}
	names := strings.Fields(prefix)
	var out [][2]string
	ast.Inspect(f, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok || len(v.Values) != 1 {
			return true
		}
		name := v.Names[0].Name
		if len(names) == 1 && !strings.HasPrefix(name, prefix) || len(names) > 1 && !slices.Contains(names, name) {
			return true
		}
		text, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			panic(err)
		}
		about := strings.TrimSpace(v.Comment.Text())
		if about != "" {
			about = ": " + about
		}
		out = append(out, [2]string{text, about})
		return true
	})
	return out
}

func typeName(v any) string {
	if v == nil {
		return ""
	}
	t := reflect.TypeOf(v)
	if t.Kind() == reflect.Slice {
		return "list of " + t.Elem().Name()
	}
	return t.Name()
}

func answerOf(rt route) string {
	switch rt.stream {
	case streamLines:
		return typeName(rt.out) + ", one a line"
	case streamWatch:
		return typeName(rt.out) + ", one a line with `watch=true`"
	case streamFrames:
		return "frames"
	case streamExec:
		return "an upgraded connection of frames"
	case streamText:
		return "text"
	}
	return typeName(rt.out)
}
