package hcl

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stsd/stsd/jobspecs"
)

// DataChanges says, one sentence each, where an apply would lose sight of data
// or delete it: claims that are no longer mounted or mounted elsewhere, other
// names or numbers, fewer members whose volumes go with them. Counts are taken
// from Replicas; where one is nil they are not compared.
func DataChanges(old, new *jobspecs.Set, oldT, newT jobspecs.Template) []string {
	var found []string
	found = append(found, unmounted(oldT, newT)...)
	found = append(found, moved(oldT, newT)...)
	if old.Service != new.Service {
		found = append(found, fmt.Sprintf("data: the service changes from %s to %s; members that wrote each other's names down will not find them", old.Service, new.Service))
	}
	if old.StartOrdinal != new.StartOrdinal {
		found = append(found, fmt.Sprintf("data: the first ordinal changes from %d to %d; volumes of ordinals that go are not used by the others", old.StartOrdinal, new.StartOrdinal))
	}
	return append(found, deleted(old, new)...)
}

// unmounted are the claims that were mounted and are not any more.
func unmounted(oldT, newT jobspecs.Template) []string {
	before, after := MountedClaims(oldT), MountedClaims(newT)
	var gone, fresh []string
	for _, c := range before {
		if !slices.Contains(after, c) {
			gone = append(gone, c)
		}
	}
	for _, c := range after {
		if !slices.Contains(before, c) {
			fresh = append(fresh, c)
		}
	}
	if len(gone) == 1 && len(fresh) == 1 && slices.Equal(mountsOf(oldT)[gone[0]], mountsOf(newT)[fresh[0]]) {
		return []string{fmt.Sprintf("data: claim %s is renamed to %s; members get new volumes and the old ones are not mounted", gone[0], fresh[0])}
	}
	var found []string
	for _, c := range gone {
		found = append(found, fmt.Sprintf("data: claim %s is no longer mounted", c))
	}
	return found
}

// moved are the claims whose paths changed.
func moved(oldT, newT jobspecs.Template) []string {
	before, after := mountsOf(oldT), mountsOf(newT)
	var found []string
	for _, claim := range sortedKeys(before) {
		to, still := after[claim]
		if still && !slices.Equal(before[claim], to) {
			found = append(found, fmt.Sprintf("data: claim %s is mounted at %s instead of %s", claim, strings.Join(to, ", "), strings.Join(before[claim], ", ")))
		}
	}
	return found
}

// mountsOf are the paths of each claim, as written, sorted.
func mountsOf(t jobspecs.Template) map[string][]string {
	paths := map[string][]string{}
	doc, err := decodeDocument(t)
	if err != nil {
		return paths
	}
	containers := part(doc, "container")
	for _, c := range sortedKeys(containers) {
		mounts := part(containers, c, "mount")
		for _, claim := range sortedKeys(mounts) {
			list, _ := mounts[claim].([]any)
			for _, m := range list {
				mount, _ := m.(document)
				paths[claim] = append(paths[claim], strings.Trim(written(mount["path"]), `"`))
			}
		}
	}
	for _, list := range paths {
		slices.Sort(list)
	}
	return paths
}

// deleted are the volumes that go with their members.
func deleted(old, new *jobspecs.Set) []string {
	if old.Replicas == nil || new.Replicas == nil {
		return nil
	}
	first, last := old.StartOrdinal, old.StartOrdinal+*old.Replicas-1
	keptFirst, keptLast := new.StartOrdinal, new.StartOrdinal+*new.Replicas-1
	var found []string
	for _, c := range new.Claims {
		if c.OnScaleDown != jobspecs.Delete || !slices.ContainsFunc(old.Claims, func(o jobspecs.Claim) bool { return o.Name == c.Name }) {
			continue
		}
		var names []string
		for o := first; o <= last; o++ {
			if o < keptFirst || o > keptLast {
				names = append(names, jobspecs.VolumeName(new.Namespace, c.Name, new.Name, o))
			}
		}
		if len(names) > 0 {
			found = append(found, fmt.Sprintf("data: fewer members and on_scale_down = \"delete\": %s would be deleted", listed(names)))
		}
	}
	return found
}

// listed is a list that stays readable when it is long.
func listed(names []string) string {
	if len(names) > 5 {
		return fmt.Sprintf("%s … %s (%d volumes)", names[0], names[len(names)-1], len(names))
	}
	return strings.Join(names, ", ")
}
