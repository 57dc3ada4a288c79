package daemon

import (
	"maps"
	"slices"

	"github.com/stsd/stsd/daemon/planner"
	"github.com/stsd/stsd/daemon/store"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/volumes"
)

// reasonUnseen is that of conditions of a set before the first look at it.
const reasonUnseen = "NotLookedAtYet"

// unseen is the status of a set as the store alone knows it: which members and
// volumes there are, and of no member how it is.
func (d *Daemon) unseen(v *store.View, reason, message string) jobspecs.Status {
	s := d.remember(v)
	status := planner.Status(s.world, planner.Plan{})
	status.Generation, status.Created, status.Waiting = v.Record.Generation, v.Record.Created, nil
	for i := range status.Members {
		m := &status.Members[i]
		m.Phase, m.Reason, m.Message = string(runtime.Unknown), "", message
		if ran := v.Members[m.Ordinal].Revision; ran != "" {
			m.Revision = ran
		}
	}
	setCondition(&status, jobspecs.CondAvailable, false, reason, message)
	setCondition(&status, jobspecs.CondProgressing, true, reason, message)
	setCondition(&status, jobspecs.CondDegraded, false, "", "")
	return status
}

// remember is a set as it is stored, with the volumes that held data when they were
// seen last, and without pods.
func (d *Daemon) remember(v *store.View) sight {
	s := sight{view: *v}
	key := v.Record.Key()
	s.addresses, _ = d.store.Addresses(key) // without them a member has no address to show
	if subnets, err := d.store.Subnets(); err == nil {
		s.subnet = subnets[key.Namespace]
	}
	s.world = d.world(v, d.now(), nil, rememberedVolumes(key, v.Volumes))
	s.env = d.env(&s)
	maps.Copy(s.world.Specs, d.renderings(v, s.env, s.world.Needed(), s.subnet))
	return s
}

// rememberedVolumes are taken to be there until the engine says that they are lost.
func rememberedVolumes(key jobspecs.Key, records map[string]volumes.Record) []volumes.Volume {
	var out []volumes.Volume
	for _, name := range slices.Sorted(maps.Keys(records)) {
		if r := records[name]; r.Used && !r.Deleting {
			out = append(out, volumes.Volume{Name: name, Set: key, Claim: r.Claim, Ordinal: r.Ordinal})
		}
	}
	return out
}
