package e2e_test

import (
	"fmt"
	"strings"
	"testing"
)

func TestRedisReplicatesAndKeepsItsDataWhenEveryMemberIsKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ok("apply", "--timeout", patience.String(), w.file("redis.hcl", w.ok("example", "redis")))
	w.redis("redis-0", "OK", "set", "before", "1")
	w.redis("redis-2", "1", "get", "before")

	for member := range w.ids("redis") {
		if err := engine().ContainerKill(t.Context(), w.container(member), "KILL"); err != nil {
			t.Fatal(err)
		}
	}
	w.settled("redis", 3)
	w.redis("redis-0", "1", "get", "before")
	for _, replica := range []string{"redis-1", "redis-2"} {
		w.redis(replica, "master_link_status:up", "info", "replication")
	}
	w.redis("redis-0", "OK", "set", "after", "2")
	w.redis("redis-1", "2", "get", "after")
	w.redis("redis-2", "2", "get", "after")
}

// redis waits until a command in a member says word.
func (w *world) redis(member, word string, command ...string) {
	w.t.Helper()
	w.await(fmt.Sprintf("%v on %s", command, member), func() error {
		r := w.stsd(append([]string{"exec", member, "--", "redis-cli"}, command...)...)
		if r.code != 0 || !strings.Contains(r.out, word) {
			return fmt.Errorf("%v", r)
		}
		return nil
	})
}
