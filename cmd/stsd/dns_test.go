package main

import (
	"strings"
	"testing"

	"github.com/stsd/stsd/daemon/api/apitest"
	"github.com/stsd/stsd/daemon/client"
)

func TestDNSShowsWhatIsAnsweredToWhomAndWhy(t *testing.T) {
	t.Parallel()
	c := against(t, apitest.World())
	for _, tt := range []struct{ args, want string }{
		{"dns web.svc", `
NAME     TYPE  ANSWER                  TOLD TO                                              WHY
web.svc  A     10.87.0.10              the host, containers of namespace default (10.87.0.0/22)  ready members
web.svc  A     10.87.0.10, 10.87.0.11  members of default/web                               running members, for their peers
`},
		{"dns web-9.svc --from web-0", `
NAME       TYPE  ANSWER    TOLD TO                                                       WHY
web-9.svc  A     NXDOMAIN  the host, containers of namespace default (10.87.0.0/22)  no set or namespace of this name
`},
		{"dns example.test", `
NAME          TYPE  ANSWER                TOLD TO                                        WHY
example.test  A     as 192.0.2.1:53 says  containers of namespace default (10.87.0.0/22)  not a name of ours: forwarded
`},
	} {
		got := c.run(strings.Fields(tt.args)...)
		if got.code != exitOK || squeezed(got.stdout) != squeezed(tt.want) {
			t.Errorf("%s: exit %d %s\n%s\nwant%s", tt.args, got.code, got.stderr, got.stdout, tt.want)
		}
	}
	all := c.run("dns")
	for _, want := range []string{"Listeners", "10.87.0.1:53  -", "127.0.0.1:5300  listen on 127.0.0.1:5300: bind: address already in use"} {
		if !strings.Contains(squeezed(all.stdout), squeezed(want)) {
			t.Errorf("dns: exit %d\n%s\nlacks %q", all.code, all.stdout, want)
		}
	}
	if got := c.run("dns", "web.svc", "-o", "json"); !strings.Contains(got.stdout, `"why": "running members, for their peers"`) {
		t.Errorf("as JSON: %s", got.stdout)
	}
}

// squeezed drops the width of columns.
func squeezed(s string) string {
	var lines []string
	for line := range strings.Lines(strings.TrimSpace(s)) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return strings.Join(lines, "\n")
}

func TestALineOfATrace(t *testing.T) {
	t.Parallel()
	want := []string{
		"10.87.0.10  web-1.svc. A  10.87.0.11  member  12µs",
		"10.87.0.10 over TCP  example.test. TYPE65  NXDOMAIN  not a name of ours: forwarded  1.5ms",
		"10.87.0.11  (unreadable)  FORMERR  could not be read as a question of class IN  3µs",
	}
	for i, q := range apitest.World().Asked {
		_, got, _ := strings.Cut(strings.TrimSuffix(traceLine(q), "\n"), "  ") // without the time of day
		if got != want[i] {
			t.Errorf("line %q, want %q", got, want[i])
		}
	}
	for want, q := range map[string]client.DNSTraced{
		"A  10.87.0.11 (cut)  ":      {Type: "A", Rcode: "NOERROR", Records: []string{"web. 5 A 10.87.0.11"}, Cut: true},
		"AAAA  NODATA  running memb": {Type: "AAAA", Rcode: "NOERROR", Why: "running members"},
		"A  NOERROR  not a name":     {Type: "A", Rcode: "NOERROR", Foreign: true, Why: "not a name of ours: forwarded"},
	} {
		q.Name = "web."
		if got := traceLine(q); !strings.Contains(got, want) {
			t.Errorf("line %q, want %q in it", got, want)
		}
	}
}
