package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"

	"github.com/stsd/stsd/jobspecs"
)

// drift is something that somebody does by hand to the only member of a set, and what
// is said and done about it.
type drift struct {
	set  string
	away bool                        // it can only be done while no daemon runs
	hand func(w *world, name string) // name is the container's

	reason string                    // of the member, until it is cured; "": it is repaired by itself
	says   []string                  // by explain meanwhile
	event  string                    // that is told of it while a daemon runs, one of several between |; "": another way
	cure   func(w *world, m *member) // what they say

	anew  bool // it has another container in the end
	fresh bool // and another volume
}

var drifts = []drift{
	{set: "renamed", hand: func(w *world, name string) { docker(w.t, "rename", name, name+"-mine") }, event: "Renamed"},
	{set: "misnamed", away: true, hand: func(w *world, name string) {
		docker(w.t, "rename", name, name+"-mine")
		w.foreign(idleServer, nil, name)
	}, reason: "ContainerRenamed", says: []string{"-mine", "not made by stsd", "docker rename"}, cure: removeContainer},
	{set: "paused", hand: func(w *world, name string) { docker(w.t, "pause", name) },
		reason: "ContainerPaused", says: []string{"docker unpause"}, event: "Unready",
		cure: func(w *world, m *member) { docker(w.t, "unpause", w.container(m.Name)) }},
	{set: "cut", hand: func(w *world, name string) { docker(w.t, "network", "disconnect", w.network(), name) },
		reason: "Disconnected", says: []string{"docker network connect --ip"}, event: "Disconnected",
		cure: asTold},
	{set: "moved", hand: func(w *world, name string) {
		docker(w.t, "network", "disconnect", w.network(), name)
		docker(w.t, "network", "connect", "--ip", w.farAddress(), w.network(), name)
	}, reason: "Disconnected", says: []string{"docker network disconnect", "docker network connect --ip"}, event: "Disconnected", cure: asTold},
	{set: "removed", hand: func(w *world, name string) { docker(w.t, "rm", "-f", name) }, event: "Restarted|Removed", anew: true}, // which news comes first is the engine's
	{set: "stopped", hand: func(w *world, name string) { docker(w.t, "stop", "-t", "1", name) }, event: "Restarted", anew: true},
	{set: "killed", hand: func(w *world, name string) { docker(w.t, "kill", name) }, event: "Restarted", anew: true},
	{set: "emptied", away: true, hand: func(w *world, name string) {
		docker(w.t, "rm", "-f", name)
		docker(w.t, "volume", "rm", w.volume("data-emptied-0"))
	}, reason: "VolumeLost", says: []string{"data-emptied-0", "held data", "--fresh-volume"}, cure: freshVolume, anew: true, fresh: true},
	{set: "exchanged", away: true, hand: func(w *world, name string) { // made anew by hand, with other labels
		docker(w.t, "rm", "-f", name)
		c := *idleServer
		c.Labels = map[string]string{jobspecs.LabelDaemon: "feed", jobspecs.LabelSet: "exchanged", jobspecs.LabelOrdinal: "0"}
		w.foreign(&c, nil, name)
	}, reason: "NameTaken", says: []string{"of another stsd, feed", "left alone", "docker inspect"}, cure: removeContainer, anew: true},
	{set: "usurped", away: true, hand: func(w *world, name string) {
		docker(w.t, "rm", "-f", name)
		docker(w.t, "volume", "rm", w.volume("data-usurped-0"))
		docker(w.t, "volume", "create", "--label", jobspecs.LabelDaemon+"=feed", w.volume("data-usurped-0"))
		w.t.Cleanup(func() { _ = exec.Command("docker", "volume", "rm", w.volume("data-usurped-0")).Run() }) // if it is there still
	}, reason: "VolumeLost", says: []string{"data-usurped-0", "held data", "--fresh-volume"}, cure: func(w *world, m *member) {
		w.explains(m.Name, w.volume("data-usurped-0")+" exists but is not stsd's (of another stsd, feed)", "docker volume create --label stsd.daemon="+w.id)
		w.fails(1, []string{"of another stsd, feed", "try: docker volume rm " + w.volume("data-usurped-0")}, "replace", w.ns+"/"+m.Name, "--fresh-volume", "--yes")
		w.awaitReason(m.Name, "VolumeLost")
		docker(w.t, "volume", "rm", w.volume("data-usurped-0"))
		freshVolume(w, m)
	}, anew: true, fresh: true},
}

// asTold types what the member's message says.
func asTold(w *world, m *member) {
	_, cure, _ := strings.Cut(m.Message, "; docker ")
	for line := range strings.SplitSeq(strings.TrimSuffix(cure, " brings it back"), " && ") {
		docker(w.t, strings.Fields(strings.TrimPrefix(line, "docker "))...)
	}
}

// farAddress is one of the network that no member has.
func (w *world) farAddress() string {
	w.t.Helper()
	p, err := netip.ParsePrefix(docker(w.t, "network", "inspect", "-f", "{{(index .IPAM.Config 0).Subnet}}", w.network()))
	if err != nil {
		w.t.Fatal(err)
	}
	b := p.Masked().Addr().As4()
	b[3] += 200 // members have the first ones
	return netip.AddrFrom4(b).String()
}

func removeContainer(w *world, m *member) { docker(w.t, "rm", "-f", w.container(m.Name)) }

func freshVolume(w *world, m *member) {
	w.ok("replace", w.ns+"/"+m.Name, "--fresh-volume", "--yes", "--timeout", patience.String())
}

// What is done by hand is repaired or said, by one rule each, whether a daemon runs
// meanwhile or not; no volume is harmed, and nobody else's object.
func TestDriftIsRepairedOrReported(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]bool{"while the daemon runs": false, "while it is away": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.drift(slices.DeleteFunc(slices.Clone(drifts), func(d drift) bool { return d.away && !away }), away)
		})
	}
}

func (w *world) drift(all []drift, away bool) {
	text := spec{name: "calm", replicas: 1}.String()
	for _, d := range all {
		text += spec{name: d.set, replicas: 1}.String()
	}
	w.ok("apply", "--timeout", (3 * patience).String(), w.file("drifts.hcl", text))
	before := map[string]trace{}
	for _, d := range append(all, drift{set: "calm"}) {
		before[d.set] = w.trace(d.set)
	}
	if away {
		w.terminate()
	}
	for _, d := range all {
		d.hand(w, w.container(d.set+"-0"))
	}
	if away {
		w.start()
	}
	for _, d := range all {
		w.said(d, away)
	}
	for _, d := range all {
		if d.cure != nil {
			m := w.status(d.set).Members[0]
			d.cure(w, &m)
		}
	}
	for _, d := range append(all, drift{set: "calm"}) {
		w.settled(d.set, 1)
		w.compare(d, before[d.set])
	}
}

// trace is what tells that a member is the one it was.
type trace struct {
	id, started, address, volume string // volume is when it was made
	boots                        int
}

func (w *world) trace(set string) trace {
	w.t.Helper()
	m := set + "-0"
	c := w.inspect(m)
	return trace{
		id: c.ID, started: c.State.StartedAt, address: w.address(m),
		volume: docker(w.t, "volume", "inspect", "-f", "{{.CreatedAt}} {{.Labels}}", w.volume("data-"+m)),
		boots:  w.startsOf(m),
	}
}

func (w *world) compare(d drift, before trace) {
	w.t.Helper()
	w.await(d.set+"-0 to have its name", func() error { // it is ready under another one, too
		_, err := engine().ContainerInspect(w.t.Context(), w.container(d.set+"-0"))
		return err
	})
	now := w.trace(d.set)
	if d.anew && now.id == before.id || !d.anew && (now.id != before.id || now.started != before.started) {
		w.t.Errorf("%s: container %s started at %s, was %s started at %s; want another one: %v", d.set, now.id, now.started, before.id, before.started, d.anew)
	}
	if now.address != before.address {
		w.t.Errorf("%s: address %s, was %s", d.set, now.address, before.address)
	}
	boots := before.boots
	switch {
	case d.fresh:
		boots = 1
	case d.anew:
		boots++
	}
	if now.boots != boots || !d.fresh && now.volume != before.volume {
		w.t.Errorf("%s: its volume (%s) has seen %d starts, want %d; it was %s", d.set, now.volume, now.boots, boots, before.volume)
	}
}

// said waits for what status, explain and events say of a drift.
func (w *world) said(d drift, away bool) {
	w.t.Helper()
	m := d.set + "-0"
	if d.reason != "" {
		w.awaitReason(m, d.reason)
		w.explains(m, d.says...)
	}
	if away || d.event == "" {
		return
	}
	w.await("the event "+d.event+" of "+m, func() error {
		events := w.events(m)
		if !slices.ContainsFunc(strings.Split(d.event, "|"), func(e string) bool { return slices.Contains(events, e) }) {
			return fmt.Errorf("events are %v", events)
		}
		return nil
	})
}

func (w *world) awaitReason(m, reason string) {
	w.t.Helper()
	w.await(m+" to say "+reason, func() error {
		members := w.status(strings.TrimSuffix(m, "-0")).Members // without a reason before the first look
		if len(members) != 1 || members[0].Reason != reason {
			return fmt.Errorf("%+v", members)
		}
		return nil
	})
}

// events are the reasons of those that were told of a member.
func (w *world) events(m string) (reasons []string) {
	w.t.Helper()
	for line := range strings.Lines(w.ok("-o", "json", "events")) {
		var e struct{ Member, Reason string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			w.t.Fatalf("%v: %s", err, line)
		}
		if e.Member == m {
			reasons = append(reasons, e.Reason)
		}
	}
	return reasons
}

// docker restart of a member's container is an end and a start; whoever wins, one
// container runs, with its data.
func TestARestartByHandLeavesOneMember(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(spec{replicas: 1})
	before := w.trace("web")
	docker(t, "restart", "-t", "5", before.id)
	w.await("web-0 to be started again", func() error {
		w.settled("web", 1)
		if now := w.trace("web"); now.started == before.started || now.boots == before.boots {
			return fmt.Errorf("it is %+v, was %+v", now, before)
		}
		return nil
	})
	if now := w.trace("web"); now.volume != before.volume || now.address != before.address {
		t.Errorf("it is %+v, was %+v", now, before)
	}
	list, err := engine().ContainerList(t.Context(), container.ListOptions{Filters: labelled(w.id)})
	if err != nil || len(list) != 1 {
		t.Errorf("%d containers run, %v; want 1", len(list), err)
	}
}
