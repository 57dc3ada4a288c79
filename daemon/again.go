package daemon

import (
	"github.com/stsd/stsd/daemon/store"
	"github.com/stsd/stsd/jobspecs/hcl"
	"github.com/stsd/stsd/runtime"
)

// again names the revisions of pods whose template is that of the wanted one but
// for the mark that `rollout restart` leaves: their members come back as they were.
func again(v *store.View, pods []runtime.Pod) map[string]bool {
	wanted := revisionNamed(v, v.Record.Update)
	if wanted == nil {
		return nil
	}
	out := map[string]bool{}
	for i := range pods {
		name := pods[i].Revision
		r := revisionNamed(v, name)
		if _, known := out[name]; known || name == wanted.Name || r == nil || r.Origin.Restarted == wanted.Origin.Restarted {
			continue
		}
		out[name] = hcl.WithRestart(r.Template, "").Equal(hcl.WithRestart(wanted.Template, ""))
	}
	return out
}
