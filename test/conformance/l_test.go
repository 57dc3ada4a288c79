package conformance

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

// moves lets the ordinals of a set move and checks what runs in the end.
func moves(first, then, want string) func(*testing.T) {
	return story(func(s *stage) {
		s.apply(first)
		s.rest()
		s.apply(then)
		s.rest()
		s.want("host", s.host(), want)
	})
}

// rollsBothWays updates and goes back while web-1 breaks in between.
func rollsBothWays(opts string) func(*testing.T) {
	return story(func(s *stage) {
		first := s.apply(opts)
		s.rest()
		s.world.Forget()
		s.apply(opts + " image=app:2")
		s.rest()
		s.want("stops", s.deeds("stop"), "stop web-2, stop web-1, stop web-0")
		s.world.Sicken("web-1", "out of order")
		s.pass(30 * time.Second)
		s.world.Heal("web-1")
		s.rest()
		s.world.Forget()
		s.rollout("undo", 0)
		s.rest()
		s.want("stops", s.deeds("stop"), "stop web-2, stop web-1, stop web-0")
		s.want("host", s.host(), containers(3, 3))
		s.want("revision", s.status().UpdateRevision, first.Revision)
	})
}

// replacedByHand checks that web-0 below the partition comes back old.
func replacedByHand(how func(*stage)) func(*testing.T) {
	return story(func(s *stage) {
		s.apply("partition=1")
		s.rest()
		s.apply("partition=1 image=app:2")
		s.rest()
		how(s)
		s.pass(10 * time.Second)
		s.rest()
		s.want("host", s.host(), containers(3, 1))
	})
}

func endToEnd() []row {
	return append(lives(), claimsEndToEnd()...)
}

func lives() []row {
	return []row{
		is("L1", "three members with claims", "the set is emptied and filled again", "each has its name, its number and the volume that only it has used", story(func(s *stage) {
			s.apply("service=nodes")
			s.rest()
			before := s.world.Disks()
			s.emptied(3)
			for i, d := range s.world.Disks() {
				m := s.member(i)
				if d.Serial != before[i].Serial || !slices.Equal(d.Writers, []string{m.Name}) || m.FQDN != m.Name+".nodes.default.svc.cluster.local" {
					s.Errorf("%s: volume %s was used by %v", m.FQDN, d.Name, d.Writers)
				}
			}
		})),
		is("L2", "a set that was forgotten", "it is applied again, twice", "it takes its members over each time, and nobody is restarted", story(func(s *stage) {
			s.apply("")
			s.rest()
			before := s.runs()
			for range 2 {
				s.delete(client.DeleteRequest{Orphan: true})
				s.pass(time.Minute)
				s.apply("")
				s.rest()
			}
			s.untouched(before, "web-0", "web-1", "web-2")
		})),
		is("L3", "web-0 is fine and web-1 is not", "web-0 is removed", "it is made again although web-1 is sick; both become ready", story(func(s *stage) {
			s.apply("replicas=2")
			s.rest()
			s.world.Sicken("web-1", "out of order")
			s.pass(time.Minute)
			s.world.RemoveContainer("web-0")
			s.pass(10 * time.Second)
			if m := s.member(0); !m.Available {
				s.Errorf("web-0 is %s: %s", m.Phase, m.Message)
			}
			s.world.Heal("web-1")
			s.rest()
		})),
		is("L4", "three members with claims", "the image changes and goes back, and web-1 is sick in between", "both go from the top, web-1 heals, and the first revision has its name", rollsBothWays("claim=data:retain:retain")),
		is("L5", "three members without claims", "the image changes and goes back, and web-1 is sick in between", "both go from the top, web-1 heals, and the first revision has its name", rollsBothWays("claim=")),
		is("L6", "partition 3 of three", "the image changes, members are removed and the partition falls to 2, 1, 0", "each step adds one, those removed come back as they were, and in the end all is new", story(func(s *stage) {
			s.apply("partition=3")
			s.rest()
			second := s.apply("partition=3 image=app:2")
			s.rest()
			s.want("partition 3", s.host(), containers(3, 3))
			s.apply("partition=2 image=app:2")
			s.rest()
			s.want("partition 2", s.host(), containers(3, 2))
			s.world.RemoveContainer("web-0")
			s.world.RemoveContainer("web-2")
			s.pass(time.Second)
			s.rest()
			s.want("after removals", s.host(), containers(3, 2))
			for _, p := range []int{1, 0} {
				s.apply(fmt.Sprintf("partition=%d image=app:2", p))
				s.rest()
				s.want(fmt.Sprintf("partition %d", p), s.host(), containers(3, p))
			}
			s.want("current revision", s.status().CurrentRevision, second.Revision)
		})),
		is("L7", "partition 1 and a rollout that is done above it", "web-0 is removed", "it comes back old", replacedByHand(func(s *stage) { s.world.RemoveContainer("web-0") })),
		is("L8", "partition 1 and a rollout that is done above it", "web-0's process ends with an error", "it comes back old", replacedByHand(func(s *stage) { s.world.Kill("web-0") })),
		is("L9", "five members and max_unavailable 2", "the image changes", "never more than two are unavailable, and all are new in the end", story(func(s *stage) {
			s.apply("replicas=5 max=2")
			s.rest()
			s.apply("replicas=5 max=2 image=lingers:1")
			least := 5
			s.watch = func() { least = min(least, s.status().AvailableReplicas) }
			s.rest()
			if least != 3 {
				s.Errorf("at the least %d were available, want 3", least)
			}
			s.want("host", s.host(), strings.ReplaceAll(containers(5, 5), "app:1", "lingers:1"))
		})),
		is("L10", "on_delete", "members are removed before and after the image changes", "they come back with the revision that is wanted then", story(func(s *stage) {
			s.apply("strategy=on_delete")
			s.rest()
			s.world.RemoveContainer("web-1")
			s.pass(time.Second)
			s.rest()
			s.want("host", s.host(), containers(3, 3))
			s.apply("strategy=on_delete image=app:2")
			s.rest()
			s.world.RemoveContainer("web-1")
			s.world.RemoveContainer("web-2")
			s.pass(time.Second)
			s.rest()
			s.want("host", s.host(), containers(3, 1))
		})),
		differs("L11", "an ordered set whose probe is broken", "it is scaled from one to three, and to none", "it stays at one until the probe is mended, then they come in order; it shrinks from the top though they are sick",
			"Sick members are the ones that a scale-down is there to remove.", story(func(s *stage) {
				s.apply("replicas=1")
				s.rest()
				s.world.Sicken("web-0", "out of order")
				s.pass(30 * time.Second)
				s.scale(3)
				s.pass(time.Minute)
				s.want("host of a sick set", s.host(), "web-0 app:1")
				s.world.Heal("web-0")
				s.world.Forget()
				s.rest()
				s.want("starts", s.deeds("start"), "start web-1, start web-2")
				for _, m := range []string{"web-0", "web-1", "web-2"} {
					s.world.Sicken(m, "out of order")
				}
				s.pass(30 * time.Second)
				s.world.Forget()
				s.scale(0)
				s.rest()
				s.want("stops", s.deeds("stop"), "stop web-2, stop web-1, stop web-0")
			})),
		is("L12", "a parallel set whose probe is broken", "it is scaled from one to three, and to none", "both run to the end", story(func(s *stage) {
			s.apply("replicas=1 manage=parallel image=never:1")
			s.pass(time.Minute)
			s.scale(3)
			s.pass(10 * time.Second)
			s.want("host", s.host(), strings.ReplaceAll(containers(3, 3), "app:1", "never:1"))
			s.scale(0)
			s.pass(time.Minute)
			s.want("host", s.host(), "")
		})),
		is("L13", "a host port that somebody else has", "a set that publishes it is applied", "the member says so, tries again, and runs when the port is free", story(func(s *stage) {
			port := jobspecs.Port{Name: "http", Container: 80, Host: 8080, HostIP: "127.0.0.1", Protocol: "tcp"}
			s.world.ForeignPort(port, "process nginx")
			s.applyText(strings.Replace(hcl("replicas=1"), "container = 80", "container = 80\nhost = 8080", 1))
			s.pass(time.Minute)
			if m := s.member(0); m.Reason != runtime.ReasonPortTaken || !strings.Contains(m.Message, "nginx") {
				s.Errorf("web-0 is %s (%s): %s", m.Phase, m.Reason, m.Message)
			}
			s.world.ForeignPort(port, "")
			s.pass(2 * time.Minute)
			s.rest()
		})),
		is("L14", "one member", "it is scaled to two, and by two more", "the set has two, then four; the file's own count is no override", story(func(s *stage) {
			s.apply("replicas=1")
			s.rest()
			s.scale(2)
			s.rest()
			s.asked(s.Scale(s.Context(), web, client.ScaleRequest{Replicas: 2, Relative: true, Write: sure}))
			s.rest()
			s.want("counters", s.counters(), every(4))
			s.scale(1)
			s.rest()
			if o := s.status().Overrides; o != nil && o.Replicas != nil {
				s.Errorf("overrides = %+v", o)
			}
		})),
		is("L15", "three sets", "they are listed, one is changed, and all are deleted", "each verb does what it says", story(func(s *stage) {
			for _, name := range []string{"web", "db", "mq"} {
				s.applyText(strings.Replace(hcl("replicas=1"), `"web"`, `"`+name+`"`, 1))
			}
			s.pass(time.Minute)
			s.asked(s.SetImage(s.Context(), jobspecs.Key{Namespace: "default", Name: "db"}, client.ImageRequest{Images: map[string]string{"main": "app:2"}}))
			s.pass(time.Minute)
			s.want("host", s.host(), "db-0 app:2, mq-0 app:1, web-0 app:1")
			sets, err := s.Sets(s.Context(), "default")
			if err != nil || len(sets) != 3 {
				s.Fatalf("sets = %v, %v", sets, err)
			}
			for _, set := range sets {
				s.asked(s.Delete(s.Context(), jobspecs.Key{Namespace: set.Namespace, Name: set.Name}, client.DeleteRequest{Write: sure}))
			}
			s.pass(time.Minute)
			s.want("host", s.host(), "")
		})),
		is("L16", "somebody who watches a set", "it is scaled", "every change of status comes, the newest last", story(func(s *stage) {
			s.apply("")
			s.rest()
			ctx, cancel := context.WithCancel(s.Context())
			defer cancel()
			news, err := s.WatchStatus(ctx, web)
			if err != nil {
				s.Fatal(err)
			}
			last := make(chan jobspecs.Status, 1)
			go func() {
				var st jobspecs.Status
				for st = range news {
					if st.ObservedGeneration == 2 && st.AvailableReplicas == 4 {
						break
					}
				}
				last <- st
			}()
			s.scale(4)
			s.rest()
			if st := <-last; st.AvailableReplicas != 4 {
				s.Errorf("last = %+v", st)
			}
		})),
		is("L17", "a cluster that needs a quorum (etcd)", "data is written, every member is killed at once", "they come back without waiting for each other; the quorum and the data are there from any of them", nil).
			in("test/e2e", "TestEtcdHasItsQuorumAndDataAgainWhenEveryMemberIsKilled", ""),
		is("L18", "an ordered cluster whose nodes wait at their start for each other (RabbitMQ)", "messages are written, every member is killed at once", "all nodes run again, and the messages are read from another", nil).
			in("test/e2e", "TestRabbitMQRunsOnAllNodesAndHasItsMessagesWhenEveryMemberIsKilled", ""),
		is("L19", "a replicated database (Redis)", "data is written, every member is killed", "the data is read again from the members that come back", nil).
			in("test/e2e", "TestRedisReplicatesAndKeepsItsDataWhenEveryMemberIsKilled", "redis"),
		is("L20", "a set without min_ready", "its member is ready", "it is available", story(func(s *stage) {
			s.apply("replicas=1")
			s.rest()
			s.want("counters", s.counters(), every(1))
		})),
		is("L21", "two members and min_ready 30s", "it becomes an hour, then nothing", "none, two, none and two are available", story(func(s *stage) {
			available := func(want int) {
				s.Helper()
				if got := s.status().AvailableReplicas; got != want {
					s.Errorf("available = %d, want %d", got, want)
				}
			}
			opts := "replicas=2 manage=parallel minready="
			s.apply(opts + "30s")
			s.pass(5 * time.Second)
			available(0)
			s.pass(30 * time.Second)
			available(2)
			s.apply(opts + "1h")
			s.pass(time.Second)
			available(0)
			s.apply(opts + "0s")
			s.pass(time.Second)
			available(2)
		})),
	}
}

func claimsEndToEnd() []row {
	return []row{
		is("L22", `on_delete "delete"`, "the set is deleted", "its volumes go", story(func(s *stage) {
			s.apply("claim=data:retain:delete")
			s.rest()
			s.deleted("")
			s.want("volumes", s.disks(), "")
		})),
		is("L23", `on_scale_down "delete"`, "the set is scaled from three to one", "volume 0 stays", story(func(s *stage) {
			s.apply("claim=data:delete:retain")
			s.rest()
			s.scale(1)
			s.rest()
			s.want("volumes", s.disks(), "data-web-0")
		})),
		is("L24", "volume 1 was made by another stsd", "the set is emptied with both retentions delete", "it stays; ours go", story(func(s *stage) {
			s.world.ForeignVolume("data-web-1", map[string]string{jobspecs.LabelDaemon: "another", jobspecs.LabelNamespace: "default", jobspecs.LabelSet: "web", jobspecs.LabelOrdinal: "1", jobspecs.LabelClaim: "data"})
			s.apply("manage=parallel claim=data:delete:delete")
			s.pass(time.Minute)
			s.scale(0)
			s.pass(time.Minute)
			s.want("volumes", s.disks(), "data-web-1")
		})),
		is("L25", `a set with on_delete "delete" that was forgotten and taken over`, "it is deleted", "its volumes go", story(func(s *stage) {
			s.apply("claim=data:retain:delete")
			s.rest()
			s.delete(client.DeleteRequest{Orphan: true})
			s.apply("claim=data:retain:delete")
			s.rest()
			s.deleted("")
			s.want("volumes", s.disks(), "")
		})),
		is("L26", `a set with on_scale_down "delete" that was forgotten and taken over`, "it is scaled to one", "volume 0 stays", story(func(s *stage) {
			s.apply("claim=data:delete:retain")
			s.rest()
			s.delete(client.DeleteRequest{Orphan: true})
			s.apply("claim=data:delete:retain")
			s.rest()
			s.scale(1)
			s.rest()
			s.want("volumes", s.disks(), "data-web-0")
		})),
		none("L27", "a volume has no owner references that others could add to, or that could be stale or incomplete"),
		differs("L28", "a member whose container and volume were removed by hand", "the set looks at it", "the member is held back (VolumeLost) until the volume is back or it is given up by name",
			"Data is not replaced by an empty volume in silence.", story(func(s *stage) {
				s.apply("")
				s.rest()
				before := s.runs()
				s.world.RemoveContainer("web-1")
				s.world.RemoveVolume("data-web-1")
				s.hooks.Changed()
				s.pass(5 * time.Minute)
				if m := s.member(1); m.Reason != "VolumeLost" {
					s.Errorf("web-1 is %s (%s): %s", m.Phase, m.Reason, m.Message)
				}
				s.untouched(before, "web-0", "web-2")
				s.asked(s.FreshVolume(s.Context(), web, client.FreshVolumeRequest{Ordinal: 1, Write: sure}))
				s.rest()
				s.untouched(before, "web-0", "web-2")
			})),
		is("L29", "three members from 0", "start_ordinal becomes 2", "2, 3 and 4 run", moves("", "start=2", "web-2 app:1, web-3 app:1, web-4 app:1")),
		is("L30", "three members from 2", "start_ordinal becomes 4", "4, 5 and 6 run", moves("start=2", "start=4", "web-4 app:1, web-5 app:1, web-6 app:1")),
		is("L31", "two members from 3", "start_ordinal becomes 2", "2 and 3 run", moves("replicas=2 start=3", "replicas=2 start=2", "web-2 app:1, web-3 app:1")),
		is("L32", "two members from 3", "start_ordinal is taken out", "0 and 1 run", moves("replicas=2 start=3", "replicas=2", containers(2, 2))),
		is("L33", "a set that runs", "stsd is stopped and another run of it takes over", "nobody is restarted, volumes are the same, and it goes on", story(func(s *stage) {
			s.apply("")
			s.rest()
			before, disks := s.runs(), s.world.Disks()
			s.end()
			time.Sleep(time.Hour)
			s.world.Latency("check", 4*time.Second)
			s.boot()
			s.pass(time.Second)
			s.want("counters before the first probe", s.counters(), every(3))
			s.pass(time.Minute)
			s.world.Mend()
			s.rest()
			s.untouched(before, "web-0", "web-1", "web-2")
			for i, d := range s.world.Disks() {
				if d.Serial != disks[i].Serial {
					s.Errorf("%s is another one", d.Name)
				}
			}
			s.scale(4)
			s.rest()
		})),
		is("L34", "a host that goes down without a word", "it is up again", "nothing is known until then; every member comes back with its volume, and waits for nobody", story(func(s *stage) {
			s.apply("image=slow:1")
			s.rest()
			disks := s.world.Disks()
			s.world.RestartEngine(time.Minute)
			s.pass(30 * time.Second)
			if c := condition(s.status(), jobspecs.CondAvailable); c.Status || s.member(0).Phase != string(runtime.Unknown) {
				s.Errorf("condition = %+v, web-0 is %s", c, s.member(0).Phase)
			}
			s.pass(32 * time.Second)
			if n := len(s.runs()); n != 3 {
				s.Errorf("%d run at once, want 3: %s", n, s.host())
			}
			s.rest()
			for i, d := range s.world.Disks() {
				if d.Serial != disks[i].Serial {
					s.Errorf("%s is another one", d.Name)
				}
			}
		})),
	}
}
