package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/stsd/stsd/daemon/planner"
	"github.com/stsd/stsd/daemon/store"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

// A store that was lost is put together again from labels: sets, ordinals, revision
// names, addresses. What the user wrote is not in them. Until it is applied again
// nothing is made, stopped or restarted; an equal spec restarts nobody.

// reasonSpecLost is that of a set of which only the pods are known.
const reasonSpecLost = "SpecLost"

func specLost(key jobspecs.Key) string {
	return fmt.Sprintf("the state file was lost and the set was put together from its containers: nothing is made or stopped until its spec is applied again; an equal one restarts nobody (stsd apply FILE, for %s)", typed(key.Namespace, key.Name))
}

// takeOver waits for the engine and stores what it has of sets that are not stored.
func (d *Daemon) takeOver(ctx context.Context) error {
	engine, ok := d.parts.Engine.(runtime.Sets)
	if !ok {
		return errors.New("this engine cannot tell of which sets it has pods")
	}
	for d.Ready() != nil && ctx.Err() == nil {
		pause(ctx, 100*time.Millisecond)
	}
	if ctx.Err() != nil {
		return nil
	}
	keys, err := engine.Sets(ctx)
	if err != nil {
		return err
	}
	var found []store.Found
	for _, key := range keys {
		pods, err := d.parts.Engine.List(ctx, key)
		if err != nil {
			return err
		}
		f := foundSet(key, pods, d.now().UTC())
		f.Subnet = d.subnetOf(ctx, key.Namespace)
		found = append(found, f)
	}
	d.write.Lock()
	defer d.write.Unlock()
	taken, err := d.store.TakeOver(found)
	if err != nil {
		return err
	}
	for _, key := range taken {
		d.events.record(key, "", warning, reasonSpecLost, specLost(key))
		d.log.Warn("taken over", "set", key.String())
		d.Kick(key)
	}
	return nil
}

func (d *Daemon) subnetOf(ctx context.Context, namespace string) netip.Prefix {
	nets, ok := d.parts.Engine.(runtime.Networks)
	if !ok {
		return netip.Prefix{}
	}
	p, err := nets.Subnet(ctx, namespace, nil)
	if err != nil {
		return netip.Prefix{} // it is found when a member needs an address
	}
	return p
}

// foundSet is what pods tell of their set. Updates come from the top: the revision of
// the highest member is the wanted one, that of the lowest the one before.
func foundSet(key jobspecs.Key, pods []runtime.Pod, now time.Time) store.Found {
	slices.SortFunc(pods, func(a, b runtime.Pod) int { return a.Ordinal - b.Ordinal })
	first, last := pods[0], pods[len(pods)-1]
	set := jobspecs.Set{
		Namespace: key.Namespace, Name: key.Name, Service: key.Name, StartOrdinal: first.Ordinal,
		PodManagement: jobspecs.Ordered, RevisionHistoryLimit: 10,
		Update: jobspecs.Update{Strategy: jobspecs.Rolling, MaxUnavailable: "1", OnFailure: jobspecs.FailPause, Order: jobspecs.OrderDescending},
		DNS:    jobspecs.DNS{MemberNames: jobspecs.Always, SetName: jobspecs.Peers, TTL: 5 * time.Second, NegativeTTL: 2 * time.Second},
	}
	f := store.Found{
		Record:  store.Record{Created: now, Replicas: len(pods), Update: last.Revision, Current: first.Revision, Formed: true, Lost: true},
		Members: map[int]planner.Member{}, Addresses: map[int]netip.Addr{},
	}
	next := first.Ordinal
	for i := range pods {
		p := &pods[i]
		for ; next < p.Ordinal; next++ {
			set.Reserve = append(set.Reserve, next)
		}
		next++
		if p.Service != "" {
			set.Service = p.Service
		}
		m := planner.Member{Revision: p.Revision, Once: p.Revision, Used: true, Joined: true}
		if p.Phase == runtime.Running { // it holds until a probe contradicts
			m.ReadySince = p.StartedAt
		}
		f.Members[p.Ordinal] = m
		if p.Address.IsValid() {
			f.Addresses[p.Ordinal] = p.Address
		}
	}
	f.Record.Set = set
	return f
}

// strays are the sets of which the engine has pods of ours, and that are not stored:
// forgotten with --cascade=orphan, or with a state file. Nobody touches them.
func (d *Daemon) strays(ctx context.Context) []jobspecs.Key {
	engine, ok := d.parts.Engine.(runtime.Sets)
	if !ok {
		return nil
	}
	keys, err := engine.Sets(ctx)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(keys, func(key jobspecs.Key) bool {
		_, err := d.store.Get(key)
		return !errors.Is(err, store.ErrNotFound)
	})
}

// stateStray is the state of a row that is no set, and the reason of its members.
const stateStray = planner.ReasonStray

// notStored says what a stray is.
const notStored = "its set is not stored: it is left alone; an apply of its spec takes it over"

// strayText says of a set that it is not stored and runs, and what to type.
func (d *Daemon) strayText(key jobspecs.Key) (title, next string) {
	return fmt.Sprintf("%s is not stored; its members run as strays", key.Name),
		fmt.Sprintf("stsd apply FILE, which takes them over; to remove them: docker rm -f $(docker ps -aq --filter label=%s=%s --filter label=%s=%s --filter label=%s=%s)",
			jobspecs.LabelDaemon, d.store.ID(), jobspecs.LabelNamespace, key.Namespace, jobspecs.LabelSet, key.Name)
}

// strayMembers are those of ps.
func (d *Daemon) strayMembers(ctx context.Context, namespace string) []jobspecs.Member {
	var out []jobspecs.Member
	for _, key := range d.strays(ctx) {
		if namespace != "" && key.Namespace != namespace {
			continue
		}
		pods, _ := d.parts.Engine.List(ctx, key) // it answered a moment ago
		for i := range pods {
			out = append(out, planner.Stray(key, &pods[i], notStored))
		}
	}
	return out
}

// strayRows are those of ls.
func (d *Daemon) strayRows(ctx context.Context, namespace string) []jobspecs.SetRow {
	var out []jobspecs.SetRow
	for _, key := range d.strays(ctx) {
		if namespace != "" && key.Namespace != namespace {
			continue
		}
		row := jobspecs.SetRow{Namespace: key.Namespace, Name: key.Name, State: stateStray, Images: []string{}, Waiting: "not stored: its members are left alone; an apply of its spec takes them over"}
		pods, _ := d.parts.Engine.List(ctx, key) // it answered a moment ago
		for i := range pods {
			row.Replicas++
			if pods[i].Phase == runtime.Running {
				row.Ready++
			}
			row.UpdateRevision = pods[i].Revision
			if image := pods[i].Image; image != "" && !slices.Contains(row.Images, image) {
				row.Images = append(row.Images, image)
			}
			if row.Created.IsZero() || pods[i].CreatedAt.Before(row.Created) {
				row.Created = pods[i].CreatedAt
			}
		}
		out = append(out, row)
	}
	return out
}
