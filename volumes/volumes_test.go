package volumes

import (
	"testing"

	"github.com/stsd/stsd/jobspecs"
)

func claim(onScaleDown, onDelete string) *jobspecs.Claim {
	return &jobspecs.Claim{Name: "data", OnScaleDown: onScaleDown, OnDelete: onDelete}
}

func TestDecide(t *testing.T) {
	const keep, del = jobspecs.Retain, jobspecs.Delete
	for _, c := range []struct {
		name string
		c    Case
		want Retention
	}{
		{"a volume of a member of the set is kept", Case{Claim: claim(del, del), InRange: true, PodGone: true}, Kept},
		{"scaled down, retain", Case{Claim: claim(keep, del), PodGone: true}, Kept},
		{"scaled down, delete", Case{Claim: claim(del, keep), PodGone: true}, Reclaimed},
		{"scaled down, delete, its pod still there", Case{Claim: claim(del, keep)}, Kept},
		{"a claim that the set no longer has is kept", Case{PodGone: true}, Kept},
		{"set deleted, retain", Case{Claim: claim(keep, keep), InRange: true, Deleting: true, PodGone: true}, Kept},
		{"set deleted, delete", Case{Claim: claim(keep, del), InRange: true, Deleting: true, PodGone: true}, Reclaimed},
		{"set deleted, delete, its pod still there", Case{Claim: claim(keep, del), InRange: true, Deleting: true}, Kept},
		{"set deleted, an ordinal that was to go with the scale-down", Case{Claim: claim(del, keep), Deleting: true, PodGone: true}, Reclaimed},
		{"set deleted, an ordinal left by an earlier scale-down", Case{Claim: claim(keep, keep), Deleting: true, PodGone: true}, Kept},
		{"scaled down, delete, of a set that was deleted before", Case{Claim: claim(del, del), PodGone: true, Former: true}, Kept},
		{"set deleted, delete, of a set that was deleted before", Case{Claim: claim(del, del), Deleting: true, PodGone: true, Former: true}, Kept},
		{"--volumes=delete takes those of a set that was deleted before too", Case{Claim: claim(keep, keep), Deleting: true, Policy: del, PodGone: true, Former: true}, Reclaimed},
		{"--volumes=retain wins", Case{Claim: claim(del, del), InRange: true, Deleting: true, Policy: keep, PodGone: true}, Kept},
		{"--volumes=delete wins", Case{Claim: claim(keep, keep), InRange: true, Deleting: true, Policy: del, PodGone: true}, Reclaimed},
		{"--volumes=delete takes those of former claims too", Case{InRange: true, Deleting: true, Policy: del, PodGone: true}, Reclaimed},
		{"set deleted, a former claim", Case{InRange: true, Deleting: true, PodGone: true}, Kept},
	} {
		if got := Decide(c.c); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
