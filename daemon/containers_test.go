package daemon

import (
	"testing"

	"github.com/stsd/stsd/jobspecs"
)

func TestAContainerThatAMemberDoesNotHaveIsRefusedWithThoseItHas(t *testing.T) {
	all := several(func(*jobspecs.Member, *jobspecs.MemberContainer, *jobspecs.MemberContainer, *jobspecs.MemberContainer) {
	})
	for _, c := range []struct {
		name, container string
		member          jobspecs.Member
		want            string
	}{
		{"none is named", "", all, ""},
		{"the main one", "web", all, ""},
		{"an init container", "prepare", all, ""},
		{"one that it does not have", "sidecar", all, "member web-0 has no container sidecar: it has prepare (init), exporter (sidecar), web"},
		{"nothing of the member was made", "sidecar", jobspecs.Member{Name: "web-0"}, ""},
	} {
		got := ""
		if err := lacksContainer(&c.member, c.container); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
