package daemon

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/daemon/planner"
	"github.com/stsd/stsd/daemon/store"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/volumes"
)

// FreshVolume gives up what a member's lost volumes held: it starts with empty
// ones. Volumes that are there are not touched.
func (d *Daemon) FreshVolume(ctx context.Context, key jobspecs.Key, r client.FreshVolumeRequest) (client.Result, error) {
	d.write.Lock()
	defer d.write.Unlock()
	v, err := d.existing(key, r.Write)
	if err != nil {
		return client.Result{}, err
	}
	member := jobspecs.MemberName(key.Name, r.Ordinal)
	lost, err := d.lostVolumes(ctx, v, r.Ordinal)
	if err != nil {
		return client.Result{}, err
	}
	if len(lost) == 0 {
		return client.Result{}, conflict(key, member+" has lost no volume; replacing one that is there is not supported yet")
	}
	c := &change{key: key, before: v, name: v.Record.Update, result: client.Result{Namespace: key.Namespace, Set: key.Name}}
	c.intent = store.Intent{Record: v.Record, Expect: v.Record.Generation}
	for _, l := range lost {
		c.data = append(c.data, fmt.Sprintf("data: %s starts with an empty %s; what that volume held is given up", member, l.Name))
	}
	if r.DryRun {
		c.result.Message = fmt.Sprintf("%s would start with empty volumes", member)
		return c.result, nil
	}
	if err := c.confirmed(r.Write); err != nil {
		return c.result, err
	}
	m := v.Members[r.Ordinal]
	m.Used = false
	facts := store.Facts{Volumes: lost}
	if _, known := v.Members[r.Ordinal]; known {
		facts.Members = map[int]planner.Member{r.Ordinal: m}
	}
	if err := d.store.Learn(key, facts); err != nil {
		return c.result, err
	}
	c.result.Message = fmt.Sprintf("%s starts with empty volumes", member)
	err = d.commit([]*change{c})
	return c.result, err
}

// lostVolumes are the records of a member's volumes that held data and are gone,
// as of volumes that never did.
func (d *Daemon) lostVolumes(ctx context.Context, v *store.View, ordinal int) ([]volumes.Record, error) {
	d.first(ctx)
	have, err := d.parts.Volumes.List(ctx, v.Record.Key())
	if err != nil {
		return nil, engineProblem(err)
	}
	var out []volumes.Record
	for _, r := range v.Volumes {
		gone := !slices.ContainsFunc(have, func(x volumes.Volume) bool { return x.Name == r.Name })
		if r.Ordinal == ordinal && r.Used && !r.Deleting && gone {
			r.Used = false
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b volumes.Record) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}
