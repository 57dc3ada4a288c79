package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// Whose turn it is in an update is not the ordinal's to say alone (V50's unordered
// update).
func TestThePrimaryIsUpdatedLastWhoeverItIsByThen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ok("apply", "--timeout", (3 * patience).String(), w.file("redis.hcl", w.ok("example", "redis-roles")))
	w.roles("master", "slave", "slave")
	if out := w.ok("ps", "redis-0", "-o", "wide"); !strings.Contains(out, "master") {
		t.Errorf("ps -o wide shows no role:\n%s", out)
	}
	w.redis("redis-0", "OK", "set", "kept", "1")

	w.movePrimary(2)
	w.roles("slave", "slave", "master")
	w.ok("rollout", "restart", "redis", "--timeout", (8 * patience).String())
	w.inOrder("redis-1", "redis-0", "redis-2")
	w.roles("slave", "slave", "master")

	// Once more, and the role changes when one of two replicas is done. Both follow the
	// primary again first: a replica that lost it is not ready, and its turn comes sooner.
	for _, replica := range []string{"redis-0", "redis-1"} {
		w.redis(replica, "master_link_status:up", "info", "replication")
	}
	w.settled("redis", 3)
	before := w.ids("redis")
	w.ok("rollout", "restart", "redis", "--detach")
	w.comesBack("redis-1", before["redis-1"])
	w.ok("rollout", "pause", "redis")
	w.untouched(before, "redis-0", "redis-2")
	w.redis("redis-1", "master_link_status:up", "info", "replication")
	w.movePrimary(0)
	w.roles("master", "slave", "slave")
	w.ok("rollout", "resume", "redis", "--timeout", (8 * patience).String())
	w.changedAll(before, w.ids("redis"))
	w.inOrder("redis-1", "redis-2", "redis-0")
	w.roles("master", "slave", "slave")
	for _, member := range []string{"redis-0", "redis-1", "redis-2"} {
		w.redis(member, "1", "get", "kept")
	}
}

// movePrimary makes a member the primary of all, and waits until they follow it.
func (w *world) movePrimary(ordinal int) {
	w.t.Helper()
	primary := fmt.Sprintf("redis-%d", ordinal)
	w.redis(primary, "OK", "replicaof", "no", "one")
	for i := range 3 {
		member := fmt.Sprintf("redis-%d", i)
		if i != ordinal {
			w.redis(member, "OK", "replicaof", fmt.Sprintf("%s.redis.%s.svc.cluster.local", primary, w.ns), "6379")
			w.redis(member, "master_link_status:up", "info", "replication")
		}
		w.redis(member, "OK", "config", "rewrite")
	}
}

// roles waits until ps shows these, by ordinal.
func (w *world) roles(want ...string) {
	w.t.Helper()
	w.await(fmt.Sprintf("the roles %v", want), func() error {
		var got []string
		for _, m := range decode[[]struct{ Role string }](w, "ps", "redis") {
			got = append(got, m.Role)
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("they are %v", got)
		}
		return nil
	})
}

// inOrder compares when the members' containers were made.
func (w *world) inOrder(members ...string) {
	w.t.Helper()
	var last time.Time
	for _, m := range members {
		at := w.created(m)
		if !last.Before(at) {
			w.t.Errorf("%s was made at %v, not after the one before it of %v", m, at, members)
		}
		last = at
	}
}
