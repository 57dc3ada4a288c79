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
	found = append(found, reserved(old, new, oldT)...)
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
	if len(gone) == 1 && len(fresh) == 1 && slices.Equal(pathsOf(mountsOf(oldT, gone[0])), pathsOf(mountsOf(newT, fresh[0]))) {
		return []string{fmt.Sprintf("data: claim %s is renamed to %s; members get new volumes and the old ones are not mounted", gone[0], fresh[0])}
	}
	var found []string
	for _, c := range gone {
		found = append(found, fmt.Sprintf("data: claim %s is no longer mounted", c))
	}
	return found
}

// moved are the claims that some container does not find any more where it found
// them. That others see them too loses nothing.
func moved(oldT, newT jobspecs.Template) []string {
	still := MountedClaims(newT)
	var found []string
	for _, claim := range MountedClaims(oldT) {
		before, after := mountsOf(oldT, claim), mountsOf(newT, claim)
		if slices.Contains(still, claim) && slices.ContainsFunc(before, func(m mounting) bool { return lost(m, after, newT) }) {
			found = append(found, fmt.Sprintf("data: claim %s is mounted at %s instead of %s", claim, strings.Join(pathsOf(after), ", "), strings.Join(pathsOf(before), ", ")))
		}
	}
	return found
}

// lost tells whether a container, or whoever took its place, has a mount no longer.
func lost(m mounting, after []mounting, newT jobspecs.Template) bool {
	return !slices.ContainsFunc(after, func(n mounting) bool {
		return n.path == m.path && (n.container == m.container || !hasContainer(newT, m.container))
	})
}

func hasContainer(t jobspecs.Template, name string) bool {
	doc, err := decodeDocument(t)
	return err == nil && slices.ContainsFunc(partsOf(doc), func(p containerPart) bool { return p.name == name })
}

// A mounting is a path, as written, at which a container sees a claim.
type mounting struct{ container, path string }

func mountsOf(t jobspecs.Template, claim string) []mounting {
	doc, err := decodeDocument(t)
	if err != nil {
		return nil
	}
	var found []mounting
	for _, p := range partsOf(doc) {
		list, _ := part(p.doc, "mount")[claim].([]any)
		for _, m := range list {
			mount, _ := m.(document)
			path := strings.Trim(written(mount["path"]), `"`)
			if sub := mount["sub_path"]; sub != nil && sub != "" {
				path += " (sub_path " + written(sub) + ")"
			}
			found = append(found, mounting{p.name, path})
		}
	}
	return found
}

func pathsOf(list []mounting) []string {
	var paths []string
	for _, m := range list {
		paths = append(paths, m.path)
	}
	return sortedUnique(paths)
}

// leaving are the ordinals that a set has no longer, ascending.
func leaving(old, new *jobspecs.Set) []int {
	kept := new.Ordinals(*new.Replicas)
	return slices.DeleteFunc(old.Ordinals(*old.Replicas), func(o int) bool {
		_, stays := slices.BinarySearch(kept, o)
		return stays
	})
}

// reserved are the members with data whose ordinal is left out from now on.
func reserved(old, new *jobspecs.Set, oldT jobspecs.Template) []string {
	if old.Replicas == nil || new.Replicas == nil || len(MountedClaims(oldT)) == 0 {
		return nil
	}
	var found []string
	for _, o := range leaving(old, new) {
		if slices.Contains(new.Reserve, o) {
			found = append(found, fmt.Sprintf("data: ordinal %d is reserved; %s goes, and the others do not use its volumes", o, jobspecs.MemberName(old.Name, o)))
		}
	}
	return found
}

// deleted are the volumes that go with their members.
func deleted(old, new *jobspecs.Set) []string {
	if old.Replicas == nil || new.Replicas == nil {
		return nil
	}
	gone := leaving(old, new)
	var found []string
	for _, c := range new.Claims {
		if c.OnScaleDown != jobspecs.Delete || !slices.ContainsFunc(old.Claims, func(o jobspecs.Claim) bool { return o.Name == c.Name }) {
			continue
		}
		var names []string
		for _, o := range gone {
			names = append(names, jobspecs.VolumeName(new.Namespace, c.Name, new.Name, o))
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
