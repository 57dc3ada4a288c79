// Package planner decides what a set needs next. It is pure: a World goes in, a
// Plan comes out; no I/O, clock, randomness or logging happens here.
//
// Next says what may be done now, in stages, each a file of its own in reading
// order; Classify, from the same slots and predicates, what has to become of
// every slot in the end (keep, create, replace, stop, remove) and why:
//
//	slots    which ordinals the set has, and what stands in them
//	fill     missing members whose gate is open; volumes first
//	shrink   members that the set no longer has, from the top
//	update   outdated members, from the top
//	reclaim  volumes whose retention says so
//	status   counts and conditions
//
// That web-1 waits for web-0 is decided in fill.go, gate.
package planner

import (
	"time"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/volumes"
)

// World is everything known of one set at one moment.
type World struct {
	Now      time.Time
	Set      *jobspecs.Set
	Replicas int    // wanted; the set's, or the override's
	Current  string // revision that the set was last complete with; "" never
	Update   string // revision that is wanted
	Paused   bool
	Deleting *Deleting // nil: the set is to stay

	After        []string         // sets of start_after that are not available: a first start waits for them
	PortHeld     map[int]PortHeld // by ordinal: of a member that is not made for the sake of a port
	MinAvailable int              // the guard's; zero: none
	Forced       bool             // the user overrode guard and vetoes for this change
	Formed       bool             // all members were ready at once before
	HooksDone    map[string]bool  // set_ready hooks that have run, by DoneKey
	Halted       *Halt            // nil: no rollout has failed

	// Again are the revisions whose template is that of Update: a member of one
	// comes back as it was (`rollout restart`).
	Again map[string]bool

	Pods    []runtime.Pod             // all of the set, by ordinal
	Volumes map[string]volumes.Volume // ours, by name
	Records map[string]volumes.Record // what the store remembers of volumes, by name
	Members map[int]Member            // what the store remembers of members
	Specs   map[Target]Rendered       // for every Target that Needed names
}

// PortHeld is a port of the host that a member of another set has, or may have.
type PortHeld struct {
	Why   string
	Known bool // that it has
}

// Halt is a rollout that failed: a member missed its deadline.
type Halt struct {
	Revision string    `json:"revision"` // the one that was rolled out; another one is not halted
	Member   string    `json:"member"`
	Why      string    `json:"why"`
	At       time.Time `json:"at"`
}

// Ask is what a user asked of a member and has not happened yet. It is over when
// the next pod of the member is made.
type Ask string

// The asks.
const (
	AskNone  Ask = ""
	AskTurn  Ask = "turn"  // restart it in its turn, by the update block
	AskNow   Ask = "now"   // restart it
	AskFresh Ask = "fresh" // replace it, with fresh volumes
)

// Deleting says how a set ends.
type Deleting struct {
	Volumes string `json:"volumes"` // jobspecs.Delete or jobspecs.Retain; "" is what the set says
}

// Member is what the store remembers of one ordinal.
type Member struct {
	// Revision is the one it shall come back with when its pod is lost. It is
	// written before its pod is made, and before its pod is stopped for an
	// update, so that a crash between the two loses nothing.
	Revision string `json:"revision"`
	// ReadySince holds until a probe contradicts; zero: not ready.
	ReadySince time.Time `json:"ready_since"`
	// Unready is since when it runs and is not ready, where it was ready before. Zero:
	// it is, or it does not run.
	Unready time.Time `json:"unready,omitzero"`
	// Once is the revision under which it was available; "" never. It comes back
	// with that revision without waiting for others: recovery.
	Once string `json:"once"`
	// Used is set when a container has run with its volumes.
	Used bool `json:"used"`
	// Trying is since when its pod of the wanted revision could have become
	// available, without the time of pulls and init containers. Zero: it is, or it has
	// not tried yet. Resting is since when that clock stands still; zero: it goes.
	Trying  time.Time `json:"trying,omitzero"`
	Resting time.Time `json:"resting,omitzero"`
	// Stopped is set by the user, until the member is started again.
	Stopped bool `json:"stopped,omitempty"`
	Ask     Ask  `json:"ask,omitempty"`
	// Joined is set when its join hooks have run, or it was there when the set
	// was formed; Left when its leave hooks have.
	Joined bool `json:"joined,omitempty"`
	Left   bool `json:"left,omitempty"`
}

// Target is one rendering.
type Target struct {
	Ordinal  int
	Revision string
}

// Rendered is a PodSpec and its digest, or why there is none.
type Rendered struct {
	Spec   jobspecs.PodSpec
	Steady jobspecs.PodSpec // what Spec.Steady is the digest of
	Digest string
	Err    error
}

// Op is one verb.
type Op string

// The verbs of an Action.
const (
	CreateVolume Op = "create volume"
	DeleteVolume Op = "delete volume"
	Create       Op = "create"
	Refresh      Op = "refresh" // hand the newest rendering to a pod that stays: Engine.Create of the same revision
	Stop         Op = "stop"
	Remove       Op = "remove"
	RunHook      Op = "hook"   // Action.Hook, in the member
	Forget       Op = "forget" // an ordinal that is no longer the set's: what is kept of it at the engine, then in the store
)

// Action is one verb that is allowed now. The actions of a plan do not depend
// on each other.
type Action struct {
	Op      Op
	Ordinal int
	Member  string
	// Target is the revision of the member when it comes back: of Create and
	// Refresh the one that is made, of Stop and Remove the one that follows.
	// Empty: none follows.
	Target string
	Volume string // of CreateVolume and DeleteVolume
	Hook   string // of RunHook: its name
	For    int    // of RunHook: the ordinal that joins or leaves; of set_ready that of Member
	Keep   bool   // Remove: keep the ended container for `logs --previous`
	Reason string // of Stop: one of runtime.Why…, which its hooks see as STSD_REASON
	Why    string // for people
}

func (a Action) String() string {
	subject := a.Member
	if a.Hook != "" {
		subject = a.Hook + " in " + a.Member
	}
	if a.Volume != "" {
		subject = a.Volume
	}
	return string(a.Op) + " " + subject + " (" + a.Why + ")"
}

// Wait is a pause and its reason.
type Wait struct {
	Member string // who waits
	On     string // whom it waits for; may be itself
	For    string // "not ready: readiness http …: connection refused"
	Since  time.Time
	// NeedsPeers is set when On has run for a while without becoming ready and
	// Member was never made: On may be waiting for Member.
	NeedsPeers bool
}

func (w Wait) String() string {
	if w.Member == w.On || w.On == "" {
		return w.Member + " waits: " + w.For
	}
	return w.Member + " waits for " + w.On + ": " + w.For
}

// Plan is what Next decides.
type Plan struct {
	Actions []Action
	Waiting []Wait
	Wake    time.Time // look again then at the latest; zero: a kick will come

	Complete bool     // every member is available with Update: Current may become it
	Formed   bool     // all members are ready at this moment
	Drop     []string // volume records whose volume is deleted
	Gone     bool     // a set being deleted has nothing left
	Failed   *Halt    // the rollout fails: what update.on_failure says is to be done. At is not set

	leaving int // available members that this plan stops
}

func (p *Plan) act(a Action) { p.Actions = append(p.Actions, a) }
func (p *Plan) wait(w Wait)  { p.Waiting = append(p.Waiting, w) }
func (p *Plan) wakeAt(t time.Time) {
	if p.Wake.IsZero() || t.Before(p.Wake) {
		p.Wake = t
	}
}
