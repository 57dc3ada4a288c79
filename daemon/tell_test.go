package daemon

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stsd/stsd/daemon/planner"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

// What cannot go since a container runs that nobody stops is for somebody to mend.
func TestARemovalThatARunningContainerHoldsUpIsStalled(t *testing.T) {
	err := fmt.Errorf("remove pod web-1: container web-1_previous runs, docker stop web-1_previous ends it: %w", runtime.ErrRunning)
	for _, op := range []planner.Op{planner.Remove, planner.Forget, planner.DeleteVolume} {
		for tries, stalled := range map[int]bool{1: false, 2: true} {
			l := &loop{d: &Daemon{}, failing: map[failureKey]failure{{op: op, member: "web-1"}: {err: err, tries: tries}}}
			status := jobspecs.Status{Members: []jobspecs.Member{{Name: "web-1", Ordinal: 1}}}
			l.tellFailures(&status)
			if holds(status, jobspecs.CondStalled) != stalled {
				t.Errorf("%s, try %d: conditions are %+v, want Stalled: %v", op, tries, status.Conditions, stalled)
			}
			if stalled && !strings.Contains(status.Conditions[0].Message, "docker stop web-1_previous") {
				t.Errorf("%s: %q names no command", op, status.Conditions[0].Message)
			}
			if m := status.Members[0]; m.Reason != runtime.ReasonWaitingForFence {
				t.Errorf("%s: the member says %q", op, m.Reason)
			}
		}
	}
}

// Peers are not led to a member that is on no network any more, whatever its own probe
// says; its name keeps its address.
func TestAMemberTakenOffItsNetworkIsNotListed(t *testing.T) {
	play(t, func(s *stage) {
		s.apply(pair(""))
		v, err := s.store.Look(web)
		if err != nil {
			t.Fatal(err)
		}
		look := sight{view: v}
		if look.addresses, err = s.store.Addresses(web); err != nil {
			t.Fatal(err)
		}
		pods, err := s.parts.Engine.List(t.Context(), web)
		if err != nil {
			t.Fatal(err)
		}
		pods[1].Address = netip.Addr{}
		look.world = s.Daemon.world(&v, time.Now(), pods, nil)
		for i, m := range s.namesOf(&look, planner.Plan{}).Members {
			if m.Ready != (i == 0) || m.Address != look.addresses[i] || !m.Running {
				t.Errorf("%+v", m)
			}
		}
	})
}
