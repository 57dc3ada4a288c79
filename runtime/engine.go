// Package runtime is the contract between stsd and whatever runs its pods: an
// Engine. Docker, Nomad and the simulator meet it; runtime/enginetest is the
// suite that each of them passes.
package runtime

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"time"

	"github.com/stsd/stsd/jobspecs"
)

// Engine runs pods. Every call is idempotent, and a lost reply is healed by the
// next List. A pod's name is unique in its namespace: the engine never has two
// pods of one name, which is the first lock against two members on one volume.
type Engine interface {
	// List shows every pod of the set that this daemon's engine holds, in any
	// phase, with the reason it is in it, sorted by ordinal. It is served from
	// memory and reads the engine's own writes: it shows a pod's new state once
	// a verb has returned. While the engine is out of reach it returns
	// ErrUnreachable: nothing is known, and unknown is never replaced.
	List(ctx context.Context, set jobspecs.Key) ([]Pod, error)

	// Create accepts a pod; that it runs, or why it does not, shows in List.
	// The same revision again returns nil and keeps this rendering for the next
	// container start (so a restarted daemon hands specs back). A pod of
	// another revision, or one that is stopping or ended, is ErrConflict.
	Create(ctx context.Context, spec jobspecs.PodSpec) error

	// Stop accepts the end of a pod: hooks and stop signal, then a kill after the
	// grace. It cancels a creation under way. Progress shows in List: Stopping,
	// then Stopped. An absent or ended pod is nil. A later Stop can only shorten
	// the grace.
	Stop(ctx context.Context, name PodName, o StopOptions) error

	// Remove forgets an ended pod and removes its containers and scratch folders.
	// With keep the last ended one of each main stays, renamed, for `logs
	// --previous` of the pod that follows; it no longer counts as a pod. It never
	// touches a claim's volume. An absent pod is nil
	// (without keep, a container kept earlier goes too); a running one is
	// ErrRunning.
	Remove(ctx context.Context, name PodName, keep bool) error

	// Release leaves the pods of a set to themselves, as a restart of the daemon does
	// until their specs are handed back: they run on, are not probed, and what ends
	// is not started again.
	Release(set jobspecs.Key)

	// Watch hints at sets that may have changed. Hints may be dropped when the
	// reader is slow and may repeat; the zero Key means "look at everything"
	// (after a reconnect). The channel closes when ctx ends.
	Watch(ctx context.Context) (<-chan jobspecs.Key, error)
}

// StopOptions say how a pod ends.
type StopOptions struct {
	Grace time.Duration // from the begin of its end to the kill; zero kills at once
	Why   string        // one of Why…, given to its hooks as STSD_REASON; empty: WhyDelete
}

// Why a pod ends, or a hook is called: the values of STSD_REASON.
const (
	WhyRestart   = "restart"    // it comes back as it was
	WhyUpdate    = "update"     // it comes back with another revision
	WhyScaleDown = "scale_down" // its ordinal goes
	WhyDelete    = "delete"     // its set goes
	WhyReplace   = "replace"    // it comes back with fresh volumes
	WhyStop      = "stop"       // it stays away until it is started
	WhyStart     = "start"      // post_start of a pod's first container; of a later one it is WhyRestart
)

// PodName names one pod.
type PodName struct{ Namespace, Name string }

// Phase is where a pod is in its life.
type Phase string

// The phases, a closed list.
const (
	Pending      Phase = "Pending"      // accepted, nothing done yet
	Pulling      Phase = "Pulling"      // its image is on the way
	Initializing Phase = "Initializing" // its init containers run
	Starting     Phase = "Starting"     // its container is made, started or not past its startup probe
	Running      Phase = "Running"      // past startup; Ready says whether it answers
	Stopping     Phase = "Stopping"     // its end was asked for
	Stopped      Phase = "Stopped"      // ended, and the planner's: see Reason
	Failed       Phase = "Failed"       // cannot be made; the engine goes on trying with back-off
	Backoff      Phase = "Backoff"      // ended and waits for its next start
	Unknown      Phase = "Unknown"      // the engine cannot tell
)

// Reasons of a pod's phase, a closed list; Message has the details.
const (
	ReasonEngineRestarted = "EngineRestarted"   // Stopped: found dead when the engine was (re)connected
	ReasonRemoved         = "Removed"           // Stopped: its container disappeared
	ReasonStopRequested   = "StopRequested"     // Stopping, Stopped: Stop was called
	ReasonImageMissing    = "ImageMissing"      // Failed: not here and pull = "never"
	ReasonImageUnknown    = "ImageUnknown"      // Failed: the registry does not have it
	ReasonPullFailed      = "PullFailed"        // Failed: registry not reachable or broken
	ReasonAccessDenied    = "AccessDenied"      // Failed: the registry refuses us
	ReasonBadCommand      = "BadCommand"        // Failed: the process cannot be started
	ReasonWrongPlatform   = "WrongPlatform"     // Failed: the image is for another architecture
	ReasonRunsAsRoot      = "RunsAsRoot"        // Failed: run_as_non_root, and the user is root or not known
	ReasonNoMemoryFolder  = "NoMemoryFolder"    // Failed: no folder in memory for sensitive files
	ReasonNameTaken       = "NameTaken"         // Failed: a foreign container has the name; Message names it
	ReasonPortTaken       = "PortTaken"         // Failed: a host port is taken; Message names the owner where known
	ReasonAddressTaken    = "AddressTaken"      // Failed: a foreign container has the address
	ReasonNetworkTaken    = "NetworkTaken"      // Failed: a foreign network has the name or subnet
	ReasonNetworkMissing  = "NetworkMissing"    // Failed: a network to join is not there; tried again when one is made
	ReasonVolumeForeign   = "VolumeForeign"     // Failed: a foreign volume has the name
	ReasonCreateFailed    = "CreateFailed"      // Failed: the engine refuses it
	ReasonInitRunning     = "InitRunning"       // Initializing: an init container runs; Message names it
	ReasonPostStart       = "PostStartPending"  // Starting: its post_start hook runs
	ReasonPostStartFailed = "PostStartFailed"   // Backoff, Stopping: restarted because its post_start hook failed
	ReasonPreStop         = "PreStopRunning"    // Stopping: its pre_stop hook runs
	ReasonSandbox         = "SandboxEnded"      // Stopping, Backoff: its sandbox ended; the whole pod begins again
	ReasonExited          = "Exited"            // Backoff: the process ended
	ReasonOOMKilled       = "OOMKilled"         // Backoff: out of memory
	ReasonLiveness        = "LivenessFailed"    // Backoff, Stopping: restarted by its liveness probe
	ReasonStartup         = "StartupFailed"     // Backoff: its startup probe gave up
	ReasonNotReady        = "NotReady"          // Running: its readiness probe fails; Message is the probe's
	ReasonStartupPending  = "StartupPending"    // Starting: its startup probe has not succeeded yet
	ReasonWaitingForFence = "WaitingForFence"   // Pending: an ended container of ours still holds name or address
	ReasonUnreachable     = "EngineUnreachable" // Unknown: the engine does not answer
	ReasonLookFailed      = "LookFailed"        // Unknown: the state file or the network cannot be read; Message says why
	ReasonNoAddress       = "NoAddress"         // Pending: the network has no address left
	ReasonPaused          = "ContainerPaused"   // Running: paused at the engine by somebody
	ReasonRenamed         = "ContainerRenamed"  // Running: renamed by somebody, and its own name is taken; given back when it is free
)

// Permanent tells whether a failure is one that no retry mends: somebody has to
// change the spec or the host.
func Permanent(reason string) bool {
	switch reason {
	case ReasonImageMissing, ReasonImageUnknown, ReasonAccessDenied, ReasonBadCommand,
		ReasonWrongPlatform, ReasonRunsAsRoot, ReasonNoMemoryFolder,
		ReasonNameTaken, ReasonPortTaken, ReasonAddressTaken, ReasonNetworkTaken, ReasonNetworkMissing, ReasonVolumeForeign, ReasonNoAddress:
		return true
	}
	return false
}

// Pod is one member as the engine sees it.
type Pod struct {
	Set      jobspecs.Key
	Name     string // "web-0"
	Ordinal  int
	Revision string // name
	Service  string // of the set when its container was made; empty: there is none

	Phase   Phase
	Reason  string    // from the list above; empty when there is nothing to say
	Message string    // for people
	Tries   int       // failures of this kind in a row (Failed, Backoff)
	Since   time.Time // of the phase
	NextTry time.Time // when what failed is tried again at the latest; zero: nothing waits for it

	Ready      bool
	ReadySince time.Time // zero while not Ready

	// ReadyKnown is false after a restart of the daemon until a probe of the
	// running container has succeeded, or failed as often as its threshold says:
	// what was known before holds until then.
	ReadyKnown bool
	StartedAt  time.Time // of the running container; zero before
	CreatedAt  time.Time

	// Managed is false until the pod's spec was handed over after a restart of
	// the daemon: probes, files and hooks are not known. Such a pod is listed
	// with Ready false and ReadyKnown false, and left alone: it is not probed
	// and not restarted.
	Managed bool

	// Rendering is the digest of the PodSpec the next container start will use;
	// Started that of the one the running container was made from, and Steady the
	// Steady of that one; "" is not known.
	Rendering, Started, Steady string

	Address  netip.Addr // on its own network
	Address6 netip.Addr // of the other family there; zero: none
	Joined   []Endpoint // where it is beside its own network, by name; none while nothing of it runs
	Detached []string   // networks of its spec that it was taken off while it runs, sorted

	// Published are the ports of what runs that are published on the host, without
	// names: those of the next container start may be others.
	Published []jobspecs.Port

	Restarts int    // of all its containers that are meant to last
	Image    string // of its first main
	ImageID  string
	Role     string // what its role probe printed last

	Containers []Container // in the order in which they begin; the sandbox is none of them
	Notes      []Note      // what happened to it lately, oldest first
}

// Endpoint is a pod's place on a network that it joined.
type Endpoint struct {
	Network   string
	Addresses []netip.Addr // IPv4 first
}

// Note is something that happened to a pod and that its phase does not tell: a
// hook that failed, a kill after the grace.
type Note struct {
	N         int // grows by one, from 1, as long as the pod is known to the engine
	Time      time.Time
	Container string
	Warning   bool
	Reason    string // an event's
	Message   string
}

// Container is one container of a pod.
type Container struct {
	Name      string
	Kind      string // jobspecs.KindInit, KindSidecar, KindMain
	ID        string // empty: there is none yet
	Image     string
	ImageID   string
	State     string // "waiting", "created", "running", "paused", "exited", "dead"
	Ready     bool
	Reason    string // as of a pod, of this container alone
	Message   string
	ExitCode  *int // of the last ended one; nil: none
	OOMKilled bool
	Signal    string
	Restarts  int
	StartedAt time.Time
}

// Gone tells whether nothing of the pod runs any more and the planner may
// remove it.
func (p *Pod) Gone() bool { return p.Phase == Stopped }

// Errors of an Engine.
var (
	// ErrConflict is returned by Create when the pod exists with another
	// revision, or is on its way out. Stop and Remove it first.
	ErrConflict = errors.New("pod exists with another revision")
	// ErrRunning is returned by Remove when the pod has not ended.
	ErrRunning = errors.New("pod is running")
	// ErrUnreachable is returned by every call while the engine does not answer.
	ErrUnreachable = errors.New("engine is not reachable")
	// ErrConnecting comes with ErrUnreachable until the first try to connect has
	// ended. How it ended is hinted at to Watch.
	ErrConnecting = errors.New("not connected yet")
	// ErrNotFound is returned by the optional interfaces for an absent pod.
	ErrNotFound = errors.New("no such pod")
	// ErrNotRunning is returned by Exec when the container does not run now: it was
	// not started yet, has ended, or is paused. The error's text says which.
	ErrNotRunning = errors.New("container is not running")
)

// Networks is met by engines that give every namespace a network of its own.
type Networks interface {
	// Subnet is the subnet of the namespace's network: the one it has, or a free
	// one when there is none yet. It writes nothing. taken are subnets that
	// other namespaces hold in the store.
	Subnet(ctx context.Context, namespace string, taken []netip.Prefix) (netip.Prefix, error)
}

// Sets is met by engines that can tell of which sets they hold pods, whether these
// are stored or not.
type Sets interface {
	// Sets are their keys, sorted. ErrUnreachable as List.
	Sets(ctx context.Context) ([]jobspecs.Key, error)
}

// Images is met by engines that can say what an image name means now.
type Images interface {
	// ImageID is the local id of ref; "" when it is not here.
	ImageID(ctx context.Context, ref string) (string, error)
}

// Ports is met by engines that can tell who holds a port of the host.
type Ports interface {
	// PortOwner names who holds the port, or "" when it is free or held by pod.
	PortOwner(ctx context.Context, pod PodName, p jobspecs.Port) string
}

// Joins is met by engines that can tell whether pods can join a network of others.
type Joins interface {
	// MissingNetwork says what to do about a network that is not there; "" when it
	// is, or when that cannot be told.
	MissingNetwork(ctx context.Context, name string) string
}

// LogOptions select what Logs writes.
type LogOptions struct {
	Follow     bool
	Tail       string // number of lines, or "all"
	Since      time.Time
	Timestamps bool
	Previous   bool   // of the last ended container
	Container  string // empty: the main one
}

// Logs is met by engines that keep output.
type Logs interface {
	// Logs copies a pod's output until it ends or, following, until ctx ends.
	Logs(ctx context.Context, name PodName, o LogOptions, stdout, stderr io.Writer) error
}

// ExecOptions describe one command in a pod.
type ExecOptions struct {
	Command   []string
	Container string            // empty: the main one
	Env       map[string]string // on top of the container's own
	TTY       bool
	Once      string    // a name: a command of this name that was begun before a restart of stsd is waited for, where the engine can; empty: none
	Stdin     io.Reader // nil: none
	Stdout    io.Writer
	Stderr    io.Writer
	Resize    <-chan [2]uint // rows, columns; may be nil
}

// Execs is met by engines that can run a command in a pod.
type Execs interface {
	// Exec runs the command and returns its exit code.
	Exec(ctx context.Context, name PodName, o ExecOptions) (int, error)
}
