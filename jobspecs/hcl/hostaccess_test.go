package hcl

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stsd/stsd/jobspecs"
)

// host is web with a mode of host_access.
func host(mode, lines string) string {
	return strings.Replace(web(lines), "replicas", "host_access {\nmode = \""+mode+"\"\n}\nreplicas", 1)
}

func TestHostAccess(t *testing.T) {
	t.Parallel()
	ports := "port \"a\" {\ncontainer = 80\n}\nport \"b\" {\ncontainer = 81\nhost = 90 + self.ordinal\n}"
	for text, want := range map[string]string{
		web(ports):              "",
		host("loopback", ports): jobspecs.HostLoopback,
		host("none", ports):     jobspecs.HostNone,
		host("ports", ports):    jobspecs.HostPorts,
	} {
		if got := good(t, text).Specs[0].Set.HostAccess; got != want {
			t.Errorf("%s\n%q, want %q", text, got, want)
		}
	}
	a, b := jobspecs.Set{}, jobspecs.Set{HostAccess: jobspecs.HostPorts}
	want := []jobspecs.Change{{Path: "host_access.mode", Before: "", After: `"ports"`}}
	if got := DiffSets(&a, &b); !reflect.DeepEqual(got, want) {
		t.Errorf("diff %+v, want %+v", got, want)
	}
}
