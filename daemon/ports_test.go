package daemon

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/runtime/sim"
)

// published is a set of one member with a port of the host.
func published(name string, host int) string {
	return fmt.Sprintf("statefulset %q {\nreplicas = 1\ncontainer \"web\" {\nimage = \"%s:1\"\nport \"http\" {\ncontainer = 80\nhost = %d\n}\n}\n}\n", name, name, host)
}

func (s *stage) member(set string) jobspecs.Member {
	s.t.Helper()
	st, err := s.Status(s.t.Context(), jobspecs.Key{Namespace: "default", Name: set})
	if err != nil {
		s.t.Fatal(err)
	}
	return st.Members[0]
}

func (s *stage) shown(set string) string {
	m := s.member(set)
	return strings.TrimSuffix(fmt.Sprintf("%s (%s)", m.Phase, m.Reason), " ()")
}

// "aa" and "zz": whichever a map or a sort comes to first, the port is not its.
func TestAPortOfTheHostStaysWithTheMemberThatHadIt(t *testing.T) {
	for _, newcomer := range []string{"aa", "zz"} {
		t.Run(newcomer, func(t *testing.T) {
			play(t, func(s *stage) {
				s.world.Program(newcomer+":1", sim.Program{})
				s.apply(published("web", 8080))
				s.apply(published(newcomer, 8080))
				taken := "port 127.0.0.1:8080 is taken by member web-0 (ours, of default/web)"
				check := func(when string) {
					t.Helper()
					want(t, when+": web", s.shown("web"), "Running")
					want(t, when+": the other", s.shown(newcomer), "Pending ("+runtime.ReasonPortTaken+")")
					want(t, when+": message", s.member(newcomer).Message, taken)
					st, _ := s.Status(t.Context(), jobspecs.Key{Namespace: "default", Name: newcomer})
					if !holds(st, jobspecs.CondStalled) {
						t.Errorf("%s: it is not stalled: %+v", when, st.Conditions)
					}
				}
				check("applied")
				s.world.RestartEngine(10 * time.Second)
				s.settle()
				s.settle()
				check("after a boot")
				s.world.Kill("web-0")
				s.settle()
				check("after a crash")
				if err := s.members("stop", client.Write{}, 0); err != nil {
					t.Fatal(err)
				}
				want(t, "once it is stopped", s.shown(newcomer), "Running")
			})
		})
	}
}

func TestAPortThatAnotherAddressOrProtocolHasIsFree(t *testing.T) {
	has := jobspecs.Member{Ports: []jobspecs.MemberPort{{Host: 80, HostIP: "127.0.0.1", Protocol: "tcp"}}}
	for _, c := range []struct {
		name string
		port jobspecs.Port
		want bool
	}{
		{"the same", jobspecs.Port{Host: 80, HostIP: "127.0.0.1", Protocol: "tcp"}, true},
		{"by default", jobspecs.Port{Host: 80}, true},
		{"at all addresses", jobspecs.Port{Host: 80, HostIP: "0.0.0.0", Protocol: "tcp"}, true},
		{"at another address", jobspecs.Port{Host: 80, HostIP: "127.0.0.2", Protocol: "tcp"}, false},
		{"of another protocol", jobspecs.Port{Host: 80, HostIP: "127.0.0.1", Protocol: "udp"}, false},
		{"another number", jobspecs.Port{Host: 81, HostIP: "127.0.0.1", Protocol: "tcp"}, false},
	} {
		if got := clash([]jobspecs.Port{c.port}, &has) != nil; got != c.want {
			t.Errorf("%s: in the way = %v, want %v", c.name, got, c.want)
		}
	}
}
