package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/daemon/planner"
	"github.com/stsd/stsd/daemon/store"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/volumes"
)

// foreignVolume is who has the name of a volume that is not the set's; nil nobody,
// or it is not known.
func (d *Daemon) foreignVolume(ctx context.Context, set jobspecs.Key, name string) *volumes.ForeignError {
	owners, ok := d.parts.Volumes.(volumes.Owners)
	if !ok {
		return nil
	}
	var foreign *volumes.ForeignError
	errors.As(owners.Foreign(ctx, set, name), &foreign)
	return foreign
}

// inTheWay refuses to give up a member's data while a volume that is not the
// set's has the name that the fresh one would need.
func (d *Daemon) inTheWay(ctx context.Context, v *store.View, ordinal int) error {
	key := v.Record.Key()
	for _, r := range given(v, ordinal) {
		if foreign := d.foreignVolume(ctx, key, r.Name); foreign != nil {
			return &client.Problem{
				Type: client.ProblemConflict, Status: http.StatusConflict, Set: key.Name,
				Title:  fmt.Sprintf("set %s: %s; it is in the way of a fresh one, and nothing was given up", key.Name, foreign),
				Detail: "docker volume rm " + r.Name + ", when nobody needs what it holds",
			}
		}
	}
	return nil
}

// explainLost adds to an explanation how the lost volumes of a member come back.
func (d *Daemon) explainLost(ctx context.Context, s jobspecs.Status, m *jobspecs.Member, e *jobspecs.Explanation) {
	if m.Reason != planner.ReasonVolumeLost {
		return
	}
	key, member := jobspecs.Key{Namespace: s.Namespace, Name: s.Name}, typed(m.Namespace, m.Name)
	next := []string{"stsd stop " + member + ", so that it does not begin before its data is back"}
	for _, v := range s.Volumes {
		if v.State != "lost" || v.Ordinal != m.Ordinal {
			continue
		}
		if foreign := d.foreignVolume(ctx, key, v.Name); foreign != nil {
			e.Because = append(e.Because, fmt.Sprintf("volume %s exists but is not stsd's (%s): without its labels it is not the member's", v.Name, foreign.Owner))
			next = append(next, "docker volume rm "+v.Name+", when what it holds is saved: a volume gets labels only when it is made")
		}
		next = append(next, d.createLine(key, &v)+", and restore its data into it")
	}
	next = append(next, "stsd start "+member)
	e.Next = append(next, e.Next...)
}

// createLine is the command that makes a volume that is its member's.
func (d *Daemon) createLine(set jobspecs.Key, v *jobspecs.VolumeStatus) string {
	args := []string{"docker volume create"}
	for _, l := range [][2]string{
		{jobspecs.LabelDaemon, d.store.ID()}, {jobspecs.LabelNamespace, set.Namespace}, {jobspecs.LabelSet, set.Name},
		{jobspecs.LabelOrdinal, strconv.Itoa(v.Ordinal)}, {jobspecs.LabelClaim, v.Claim},
	} {
		args = append(args, "--label "+l[0]+"="+l[1])
	}
	return strings.Join(append(args, v.Name), " ")
}
