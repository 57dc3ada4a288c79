// Package volumes says what a volume is, when one may be deleted, and what a
// store of volumes promises.
package volumes

import (
	"context"
	"errors"
	"fmt"

	"github.com/stsd/stsd/jobspecs"
)

// Volume is one claim of one ordinal, as the engine has it.
type Volume struct {
	Set     jobspecs.Key
	Name    string // at the engine: "data-web-0"
	Claim   string
	Ordinal int
	Driver  string
	Options map[string]string // that the driver was given; they may be sensitive
}

// Store makes, lists and deletes volumes. Every call is idempotent.
type Store interface {
	// List shows the set's volumes that carry this daemon's label, by name. It
	// is served from memory and reads its own writes. While the engine is out of
	// reach it fails: nothing is known.
	List(ctx context.Context, set jobspecs.Key) ([]Volume, error)
	// Create makes the volume. One of ours that exists is left as it is; a
	// foreign one of the name is a *ForeignError and is not touched.
	Create(ctx context.Context, set jobspecs.Key, ordinal int, v jobspecs.VolumeSpec) error
	// Delete deletes one of ours. An absent one is nil; one that a container
	// uses is ErrInUse; a foreign one is a *ForeignError.
	Delete(ctx context.Context, name string) error
}

// Owners is met by stores that can tell whose a name is.
type Owners interface {
	// Foreign is a *ForeignError when a volume of that name exists that is not the
	// set's, and nil when there is none or it is. Another error: it is not known.
	Foreign(ctx context.Context, set jobspecs.Key, name string) error
}

// ErrInUse is returned by Delete while a container has the volume.
var ErrInUse = errors.New("volume is in use")

// ForeignError says that a wanted name belongs to somebody else.
type ForeignError struct {
	Name  string
	Owner string // what is known of it: "made by docker compose project x", "of another stsd", …
}

func (e *ForeignError) Error() string {
	return fmt.Sprintf("volume %s exists and is not ours (%s)", e.Name, e.Owner)
}

// Record is what the state store remembers of a volume, so that one that held
// data and is gone is never replaced by an empty one in silence.
type Record struct {
	Name     string `json:"name"`
	Claim    string `json:"claim"`
	Ordinal  int    `json:"ordinal"`
	Used     bool   `json:"used"`     // a container has run with it
	Deleting bool   `json:"deleting"` // its deletion was decided; on disk before the engine is asked
	// Former: it is of a set of this name that was forgotten, and no member of today's
	// set had it yet. What that set says of its members is not said of it.
	Former bool `json:"former,omitempty"`
}

// Retention is the pure rule of when a volume goes.
//
//	Kept       the set keeps it
//	Reclaimed  its retention deletes it now
type Retention int

// The verdicts of Decide.
const (
	Kept Retention = iota
	Reclaimed
)

// Case is everything Decide needs to know.
type Case struct {
	Claim    *jobspecs.Claim // nil: the set no longer has the claim
	InRange  bool            // the ordinal is one of the set's
	Deleting bool            // the set is being deleted
	Policy   string          // `delete --volumes`: overrides on_delete; "" leaves it
	PodGone  bool            // no pod of the ordinal is listed
	Former   bool            // of a set of this name that was forgotten; no member had it since
}

// Decide tells what happens to a volume. A claim that the set no longer has is
// kept: only its own retention may delete a volume, and it has none. So is one that
// was kept when a former set was deleted, until a member has it again.
func Decide(c Case) Retention {
	if !c.PodGone {
		return Kept
	}
	if c.Deleting {
		policy := c.Policy
		if policy == "" && c.Claim != nil && !c.Former {
			policy = c.Claim.OnDelete
			if !c.InRange && c.Claim.OnScaleDown == jobspecs.Delete {
				policy = jobspecs.Delete
			}
		}
		if policy == jobspecs.Delete {
			return Reclaimed
		}
		return Kept
	}
	if c.InRange || c.Former || c.Claim == nil || c.Claim.OnScaleDown != jobspecs.Delete {
		return Kept
	}
	return Reclaimed
}
