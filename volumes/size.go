package volumes

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/stsd/stsd/jobspecs"
)

// Meter is met by stores that can tell how much a volume holds. A size that the
// driver does not enforce is a limit that is watched with it.
type Meter interface {
	// Used is how many bytes one of ours takes on its disk. It may go on until ctx
	// ends; the error says why that cannot be told. It asks the engine for nothing
	// that List would not.
	Used(ctx context.Context, name string) (int64, error)
}

// Fill is how full a volume is beside its size.
type Fill int

// The steps of Fill, ascending.
const (
	Room       Fill = iota
	NearlyFull      // above nine tenths of its size
	Over            // above its size
)

// FillOf compares; without a size there is room.
func FillOf(used, size int64) Fill {
	switch {
	case size <= 0:
		return Room
	case used > size:
		return Over
	case used > size-size/10:
		return NearlyFull
	}
	return Room
}

// Options are what the driver is given for a volume. A size is an option "size", in
// bytes, for drivers other than "local", which has no quota in general.
func Options(v jobspecs.VolumeSpec) map[string]string {
	if v.Size == 0 || isLocal(v.Driver) || v.Options["size"] != "" {
		return v.Options
	}
	options := maps.Clone(v.Options)
	if options == nil {
		options = map[string]string{}
	}
	options["size"] = strconv.FormatInt(v.Size, 10)
	return options
}

func isLocal(driver string) bool { return driverName(driver) == "local" }

// driverName is a driver's name without the tag that an engine adds to a plugin's.
func driverName(driver string) string {
	if driver == "" {
		return "local"
	}
	return strings.TrimSuffix(strings.ToLower(driver), ":latest")
}

// SizeOf is the size that counts for a volume: the one that its driver was given, as
// that is its quota for life, else the one that its claim says now. Zero: none.
func SizeOf(v Volume, spec jobspecs.VolumeSpec) int64 {
	if n, err := jobspecs.Size(v.Options["size"]); err == nil && n > 0 {
		return n
	}
	return spec.Size
}

// Differs says how a volume that is there is another one than its claim would make
// now; "" it is none. An engine never changes a volume. Values of options are not
// told, as they may be sensitive; a size is.
func Differs(v Volume, spec jobspecs.VolumeSpec) string {
	var found []string
	if have, want := driverName(v.Driver), driverName(spec.Driver); have != want {
		found = append(found, fmt.Sprintf("driver %s, not %s", have, want))
	}
	want := Options(spec)
	for _, name := range names(v.Options, want) {
		if v.Options[name] != want[name] {
			found = append(found, differing(name, v.Options[name], want[name]))
		}
	}
	return strings.Join(found, "; ")
}

func names(a, b map[string]string) []string {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

// differing tells of one option.
func differing(name, have, want string) string {
	from, fromErr := jobspecs.Size(have)
	to, toErr := jobspecs.Size(want)
	switch {
	case have == "":
		return "no option " + name
	case want == "":
		return "option " + name
	case name == "size" && fromErr == nil && toErr == nil:
		return fmt.Sprintf("size %s, not %s", jobspecs.FormatSize(from), jobspecs.FormatSize(to))
	}
	return "another option " + name
}
