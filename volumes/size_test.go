package volumes

import (
	"maps"
	"testing"

	"github.com/stsd/stsd/jobspecs"
)

func TestFillOf(t *testing.T) {
	for _, c := range []struct {
		used, size int64
		want       Fill
	}{
		{0, 0, Room}, {1 << 40, 0, Room}, {0, 100, Room}, {90, 100, Room}, {91, 100, NearlyFull}, {100, 100, NearlyFull}, {101, 100, Over},
		{1 << 40, 1 << 62, Room}, {1<<62 + 1, 1 << 62, Over},
	} {
		if got := FillOf(c.used, c.size); got != c.want {
			t.Errorf("FillOf(%d, %d) = %v, want %v", c.used, c.size, got, c.want)
		}
	}
}

func TestOptions(t *testing.T) {
	written := map[string]string{"device": "/disk"}
	for _, c := range []struct {
		name string
		spec jobspecs.VolumeSpec
		want map[string]string
	}{
		{"driver local has no quota", jobspecs.VolumeSpec{Driver: "local", Size: 1 << 30, Options: written}, written},
		{"no driver is local", jobspecs.VolumeSpec{Size: 1 << 30}, nil},
		{"others are told the size", jobspecs.VolumeSpec{Driver: "other", Size: 1 << 30, Options: written}, map[string]string{"device": "/disk", "size": "1073741824"}},
		{"an option that is written wins", jobspecs.VolumeSpec{Driver: "other", Size: 1, Options: map[string]string{"size": "2GiB"}}, map[string]string{"size": "2GiB"}},
	} {
		if got := Options(c.spec); !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	if len(written) != 1 {
		t.Error("the options of the spec were changed")
	}
}

func TestDiffers(t *testing.T) {
	opts := func(words ...string) map[string]string {
		m := map[string]string{}
		for i := 0; i < len(words); i += 2 {
			m[words[i]] = words[i+1]
		}
		return m
	}
	for _, c := range []struct {
		name string
		have Volume
		want jobspecs.VolumeSpec
		says string
	}{
		{"a larger limit is no difference", Volume{Driver: "local"}, jobspecs.VolumeSpec{Driver: "local", Size: 2 << 30}, ""},
		{"none is local", Volume{Driver: "local"}, jobspecs.VolumeSpec{}, ""},
		{"an engine adds the tag of a plugin", Volume{Driver: "Other:latest"}, jobspecs.VolumeSpec{Driver: "other"}, ""},
		{"another driver", Volume{Driver: "local"}, jobspecs.VolumeSpec{Driver: "other"}, "driver local, not other"},
		{"a quota", Volume{Driver: "other", Options: opts("size", "1073741824")}, jobspecs.VolumeSpec{Driver: "other", Size: 2 << 30}, "size 1GiB, not 2GiB"},
		{"a quota that is new", Volume{Driver: "other"}, jobspecs.VolumeSpec{Driver: "other", Size: 2 << 30}, "no option size"},
		{"values are not told", Volume{Options: opts("o", "password=old", "type", "cifs")}, jobspecs.VolumeSpec{Options: opts("o", "password=new", "device", "//nas/data")}, "no option device; another option o; option type"},
	} {
		if got := Differs(c.have, c.want); got != c.says {
			t.Errorf("%s: %q, want %q", c.name, got, c.says)
		}
	}
}

func TestSizeOf(t *testing.T) {
	spec := jobspecs.VolumeSpec{Size: 2 << 30}
	for _, c := range []struct {
		name string
		have Volume
		want int64
	}{
		{"a watched limit is what the claim says now", Volume{}, 2 << 30},
		{"a quota is for life", Volume{Options: map[string]string{"size": "1GiB"}}, 1 << 30},
		{"what is no size does not count", Volume{Options: map[string]string{"size": "large"}}, 2 << 30},
	} {
		if got := SizeOf(c.have, spec); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}
