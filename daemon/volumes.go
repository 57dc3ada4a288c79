package daemon

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stsd/stsd/daemon/planner"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/volumes"
)

// sized is a volume, or a scratch folder on disk, with its size.
type sized struct {
	name   string // at the engine
	title  string // for people
	member string
	size   int64
}

// text is "volume data-web-0", or that of a scratch folder, with what is so.
func (v *sized) text(format string, args ...any) string {
	return v.title + " " + fmt.Sprintf(format, args...)
}

// claimed are the volumes of a set's claims as they would be made now, by name.
func claimed(w *planner.World) map[string]jobspecs.VolumeSpec {
	if len(w.Set.Claims) == 0 {
		return nil
	}
	out := map[string]jobspecs.VolumeSpec{}
	for _, r := range w.Specs {
		for _, v := range r.Spec.Volumes {
			out[v.Name] = v
		}
	}
	return out
}

// sizedVolumes are those that are there and have a size, by name.
func sizedVolumes(w *planner.World, specs map[string]jobspecs.VolumeSpec) []sized {
	var out []sized
	for name, spec := range specs {
		v, exists := w.Volumes[name]
		if size := volumes.SizeOf(v, spec); exists && size > 0 {
			out = append(out, sized{name, "volume " + name, jobspecs.MemberName(w.Set.Name, v.Ordinal), size})
		}
	}
	for i := range w.Pods {
		p := &w.Pods[i]
		for _, s := range w.Specs[planner.Target{Ordinal: p.Ordinal, Revision: p.Revision}].Spec.Scratch {
			if s.Medium == jobspecs.MediumDisk && s.Size > 0 && !p.StartedAt.IsZero() {
				out = append(out, sized{s.Volume, fmt.Sprintf("scratch %s of %s", s.Name, p.Name), p.Name, s.Size})
			}
		}
	}
	slices.SortFunc(out, func(a, b sized) int { return strings.Compare(a.name, b.name) })
	return out
}

// tellVolumes says how much volumes hold that have a size, and which are other ones
// than their claim would make now.
func (l *loop) tellVolumes(s *sight, status *jobspecs.Status) {
	specs := claimed(&s.world)
	sizes := sizedVolumes(&s.world, specs)
	names := make([]string, len(sizes))
	for i := range sizes {
		names[i] = sizes[i].name
	}
	l.d.usage.watch(l.key, names)
	for i := range status.Volumes {
		v := &status.Volumes[i]
		spec, wanted := specs[v.Name]
		have, exists := s.world.Volumes[v.Name]
		if wanted && exists {
			v.Message = outlives(volumes.Differs(have, spec), typed(l.key.Namespace, jobspecs.MemberName(l.key.Name, v.Ordinal)))
		}
	}
	l.tellFills(sizes, status)
}

// outlives is the sentence for a volume that differs from its claim.
func outlives(differs, member string) string {
	if differs == "" {
		return ""
	}
	return fmt.Sprintf("made with %s: it stays so; stsd replace %s --fresh-volume makes it anew, empty", differs, member)
}

// tellFills shows what was measured, at the volume and at its member.
func (l *loop) tellFills(sizes []sized, status *jobspecs.Status) {
	fills := map[string]volumes.Fill{}
	for i := range sizes {
		v := &sizes[i]
		r, known := l.d.usage.of(v.name)
		showUsage(v, r, known, status)
		if !known || r.err != nil {
			fills[v.name] = l.fills[v.name]
			continue
		}
		fill := volumes.FillOf(r.used, v.size)
		if fill > l.fills[v.name] {
			l.d.events.record(l.key, v.member, warning, fillReason(fill), v.crossed(fill))
		}
		fills[v.name] = fill
		if fill > volumes.Room {
			showFill(v, r.used, fill, status)
		}
	}
	l.fills = fills
}

// showUsage puts the figures into the row of a volume.
func showUsage(v *sized, r reading, known bool, status *jobspecs.Status) {
	i := slices.IndexFunc(status.Volumes, func(row jobspecs.VolumeStatus) bool { return row.Name == v.name })
	if i < 0 {
		return
	}
	row := &status.Volumes[i]
	row.Size = v.size
	switch {
	case known && r.err == nil:
		row.Used = &r.used
	case known && row.Message == "":
		row.Message = "not measured: " + r.err.Error()
	}
}

// showFill puts a volume that is short of room beside its member, unless that has
// something worse to say.
func showFill(v *sized, used int64, fill volumes.Fill, status *jobspecs.Status) {
	text := v.holds(used, fill)
	for i := range status.Members {
		if m := &status.Members[i]; m.Name == v.member && m.Available && m.Reason == "" {
			m.Reason, m.Message = fillReason(fill), text
		}
	}
	if fill == volumes.Over {
		addCondition(status, jobspecs.CondDegraded, fillReason(fill), text)
	}
}

func fillReason(f volumes.Fill) string {
	if f == volumes.Over {
		return planner.ReasonVolumeOverSize
	}
	return planner.ReasonVolumeNearlyFull
}

// crossed is what an event says, without figures that change.
func (v *sized) crossed(f volumes.Fill) string {
	if f == volumes.Over {
		return v.text("is above its size %s", jobspecs.FormatSize(v.size))
	}
	return v.text("is above 90%% of its size %s", jobspecs.FormatSize(v.size))
}

func (v *sized) holds(used int64, f volumes.Fill) string {
	if f == volumes.Over {
		return v.text("holds %s, more than its size %s", jobspecs.FormatSize(used), jobspecs.FormatSize(v.size))
	}
	return v.text("holds %s, %.0f%% of its size %s", jobspecs.FormatSize(used), float64(used)*100/float64(v.size), jobspecs.FormatSize(v.size))
}

// planMeasuring bounds what a plan measures by itself.
const planMeasuring = 2 * time.Second

// claimsChange tells whether some claim is another one than before.
func (c *change) claimsChange() bool {
	return c.before == nil || !reflect.DeepEqual(c.before.Record.Set.Claims, c.intent.Record.Set.Claims)
}

// volumeNotes says what a change of claims does not do to the volumes that are
// there, and which of them hold more than they shall.
func (d *Daemon) volumeNotes(ctx context.Context, c *change, s *sight) []string {
	if !c.claimsChange() {
		return nil
	}
	specs := claimed(&s.world)
	notes := c.outlasting(specs, s.world.Volumes)
	for _, claim := range s.world.Set.Claims {
		if note := c.smaller(claim.Name); note != "" {
			notes = append(notes, note)
		}
	}
	return append(notes, d.overfull(ctx, sizedVolumes(&s.world, specs))...)
}

// overfull are the notes on those that hold more than their size would be.
func (d *Daemon) overfull(ctx context.Context, sizes []sized) []string {
	if len(sizes) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, planMeasuring)
	defer cancel()
	var notes []string
	for _, v := range sizes {
		if used, ok := d.usage.now(ctx, v.name); ok && volumes.FillOf(used, v.size) == volumes.Over {
			notes = append(notes, v.holds(used, volumes.Over)+" would be")
		}
	}
	return notes
}

// outlasting are the volumes that stay what they are, by claim and difference.
func (c *change) outlasting(specs map[string]jobspecs.VolumeSpec, have map[string]volumes.Volume) []string {
	members := map[[2]string][]int{}
	for name, spec := range specs {
		v, exists := have[name]
		if what := volumes.Differs(v, spec); exists && what != "" {
			members[[2]string{spec.Claim, what}] = append(members[[2]string{spec.Claim, what}], v.Ordinal)
		}
	}
	var notes []string
	keys := slices.SortedFunc(maps.Keys(members), func(a, b [2]string) int { return strings.Compare(a[0]+" "+a[1], b[0]+" "+b[1]) })
	for _, k := range keys {
		ordinals := slices.Sorted(slices.Values(members[k]))
		notes = append(notes, fmt.Sprintf("volume %q of %s was made with %s and stays so; what changes holds for volumes made from now on. stsd replace %s --fresh-volume makes one anew, empty",
			k[0], namedMembers(c.key.Name, ordinals), k[1], typed(c.key.Namespace, jobspecs.MemberName(c.key.Name, ordinals[0]))))
	}
	return notes
}

// namedMembers is a list that stays readable when it is long.
func namedMembers(set string, ordinals []int) string {
	var names []string
	for _, o := range ordinals {
		names = append(names, jobspecs.MemberName(set, o))
	}
	if n := len(names); n > 5 {
		return fmt.Sprintf("%s … %s (%d members)", names[0], names[n-1], n)
	}
	return strings.Join(names, ", ")
}

// smaller is the note on a claim whose size shrinks; "" it does not, or depends on
// the member.
func (c *change) smaller(claim string) string {
	for _, d := range c.diff {
		if d.Path != "volume."+claim+".size" {
			continue
		}
		before, after := sizeWritten(d.Before), sizeWritten(d.After)
		if before > 0 && after > 0 && after < before {
			return fmt.Sprintf("volume %q: its size shrinks from %s to %s; no volume that is there is made smaller", claim, jobspecs.FormatSize(before), jobspecs.FormatSize(after))
		}
	}
	return ""
}

// sizeWritten is the size on one side of a difference; zero it is none.
func sizeWritten(text string) int64 {
	if s, err := strconv.Unquote(text); err == nil {
		text = s
	}
	n, err := jobspecs.Size(text)
	if err != nil {
		return 0
	}
	return n
}
