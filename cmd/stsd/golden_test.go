package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stsd/stsd/daemon/api/apitest"
)

// What scripts rely on, and what people see, of every verb that shows something.
func TestGolden(t *testing.T) {
	t.Parallel()
	s := apitest.World()
	c := against(t, s)
	file := write(t, "web.hcl", spec)
	bad := write(t, "bad.hcl", "statefulset \"web\" {\n  replica = 3\n}\n")
	for _, tc := range []struct {
		name string
		args []string
	}{
		{"ls.json", []string{"ls", "-o", "json"}},
		{"ls.txt", []string{"ls", "-A"}},
		{"ls-wide.txt", []string{"ls", "-o", "wide"}},
		{"ls.name", []string{"ls", "-A", "-q"}},
		{"ps.json", []string{"ps", "--format", "json"}},
		{"ps.txt", []string{"ps"}},
		{"ps-wide.txt", []string{"ps", "web-[1-2]", "-o", "wide"}},
		{"ps.yaml", []string{"ps", "web-0", "-o", "yaml"}},
		{"ps.template", []string{"ps", "-o", `go-template={{range .}}{{if eq .ordinal 1}}{{.name}} {{.restarts}}{{"\n"}}{{end}}{{end}}`}},
		{"status.json", []string{"status", "web", "-o", "json"}},
		{"status.txt", []string{"status", "web"}},
		{"status-wide.txt", []string{"status", "web", "-o", "wide"}},
		{"plan.json", []string{"plan", file, "-o", "json"}},
		{"plan.txt", []string{"plan", file}},
		{"plan-all.txt", []string{"plan", file, "-v"}},
		{"diff.json", []string{"diff", file, "-o", "json"}},
		{"diff.txt", []string{"diff", file}},
		{"apply.json", []string{"apply", file, "--detach", "-o", "json"}},
		{"apply.txt", []string{"apply", file, "--detach"}},
		{"scale.json", []string{"scale", "web", "5", "--detach", "-o", "json"}},
		{"delete.json", []string{"delete", "web", "-o", "json"}},
		{"history.json", []string{"rollout", "history", "web", "-o", "json"}},
		{"history.txt", []string{"rollout", "history", "web"}},
		{"history-1.txt", []string{"rollout", "history", "web", "--revision", "1"}},
		{"history-1.json", []string{"rollout", "history", "web", "--revision", "1", "-o", "json"}},
		{"explain.json", []string{"explain", "web-2", "-o", "json"}},
		{"explain.txt", []string{"explain", "web-2"}},
		{"events.jsonl", []string{"events", "-o", "json"}},
		{"events.txt", []string{"events"}},
		{"events-one.txt", []string{"events", "web-1"}},
		{"version.json", []string{"version", "-o", "json"}},
		{"validate.json", []string{"validate", bad, "-o", "json"}},
		{"logs.txt", []string{"logs", "web-0,1"}},
		{"logs-one.txt", []string{"logs", "web-1"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := c.run(tc.args...)
			if got.code != exitOK && tc.name != "validate.json" {
				t.Fatalf("exit %d: %s", got.code, got.stderr)
			}
			golden(t, "testdata/golden/"+tc.name, scrub(got.stdout, bad))
		})
	}
}

var varying = regexp.MustCompile(`"(version|go|os)": "(dev|v[^"]*\+dirty[^"]*|v0\.0[^"]*|go[0-9][^"]*|[a-z]+/[a-z0-9]+)"`)

// scrub takes out what differs from machine to machine.
func scrub(s, file string) string {
	s = strings.ReplaceAll(s, file, "bad.hcl")
	return varying.ReplaceAllString(s, `"$1": "…"`)
}
