package e2e_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// slowly bounds the waits for real servers, which start slowly where other tests run
// as well.
const slowly = 4 * time.Minute

func TestEtcdHasItsQuorumAndDataAgainWhenEveryMemberIsKilled(t *testing.T) { // L17
	t.Parallel()
	w := newWorld(t)
	w.ok("apply", "--timeout", slowly.String(), w.file("etcd.hcl", w.ok("example", "etcd")))
	w.etcd("etcd-0", "OK", "put", "before", "1")

	w.killAll("etcd", 3)
	w.etcd("etcd-2", "before\n1\n", "get", "before")
	w.etcd("etcd-1", "OK", "put", "after", "2")
	w.etcd("etcd-0", "after\n2\n", "get", "after")
	w.members(3)

	// One more joins, with the data, and is off the list before it goes.
	w.ok("scale", "etcd", "4", "--timeout", slowly.String())
	w.members(4)
	w.etcd("etcd-3", "before\n1\n", "get", "before")
	w.ok("scale", "etcd", "3", "--yes", "--timeout", slowly.String())
	w.members(3)
}

// killAll kills every container of a set of n at once, and waits until all members
// are back, each in another container.
func (w *world) killAll(set string, n int) {
	w.t.Helper()
	before := w.ids(set)
	if len(before) != n {
		w.t.Fatalf("members %v, want %d", before, n)
	}
	killed := make(chan error, n)
	for _, id := range before {
		go func() { killed <- engine().ContainerKill(w.t.Context(), id, "KILL") }()
	}
	var errs []error
	for range n {
		errs = append(errs, <-killed)
	}
	if err := errors.Join(errs...); err != nil {
		w.t.Fatal(err)
	}
	w.awaitFor(slowly, set+" to come back", func() error {
		s := w.status(set)
		for _, m := range s.Members {
			if !m.Available || w.ids(set)[m.Name] == before[m.Name] {
				return fmt.Errorf("%+v", s.Members)
			}
		}
		return nil
	})
}

// etcd waits until etcdctl in a member says word.
func (w *world) etcd(member, word string, command ...string) {
	w.t.Helper()
	w.says(member, word, append([]string{"etcdctl"}, command...)...)
}

// members waits until the cluster's own list has n members, all started.
func (w *world) members(n int) {
	w.t.Helper()
	w.awaitFor(slowly, fmt.Sprintf("etcd to list %d members", n), func() error {
		r := w.stsd("exec", "etcd-0", "--", "etcdctl", "member", "list")
		if r.code != 0 || strings.Count(r.out, "\n") != n || strings.Count(r.out, ", started, ") != n {
			return fmt.Errorf("%v", r)
		}
		return nil
	})
}

// says waits until a command in a member ends well and prints word.
func (w *world) says(member, word string, command ...string) {
	w.t.Helper()
	w.awaitFor(slowly, fmt.Sprintf("%v on %s", command, member), func() error {
		r := w.stsd(append([]string{"exec", member, "--"}, command...)...)
		if r.code != 0 || !strings.Contains(r.out, word) {
			return fmt.Errorf("%v", r)
		}
		return nil
	})
}
