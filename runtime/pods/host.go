package pods

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

// Host runs single containers: Docker's, or the simulator's. It is the small
// interface that the pod agent stands on. Every call may fail after it took
// effect; the agent looks again. Implementations are safe for concurrent use.
type Host interface {
	// Watch subscribes to changes and returns once the subscription is live, so
	// that a List that follows misses nothing. The channel closes when the
	// connection is lost or ctx ends.
	Watch(ctx context.Context) (<-chan Event, error)
	// List is every container with this daemon's label, in any state, inspected.
	List(ctx context.Context) ([]Container, error)
	// Inspect is one container, by id or name, whoever made it. ErrNoContainer.
	Inspect(ctx context.Context, id string) (Container, error)

	// Create makes the container but does not start it: network, resolver, scratch
	// folders and sub-paths of the pod are made where missing, files are put into
	// it, fresh volumes are given to its group and user, and networks of others are
	// joined (NetworkMissing where one is not there). When it fails nothing is
	// left behind. Its errors are *Problem where a reason is known.
	Create(ctx context.Context, spec ContainerSpec) (id string, err error)
	// Start starts a created container. Its errors are *Problem where a reason is
	// known (PortTaken, AddressTaken, BadCommand).
	Start(ctx context.Context, id string) error
	// Stop sends the signal (empty: the container's own), kills after grace, and
	// returns when the container has ended. An ended or absent one is nil.
	Stop(ctx context.Context, id, signal string, grace time.Duration) error
	// Remove removes an ended or created container, never a volume. Absent is nil.
	Remove(ctx context.Context, id string) error
	// Rename gives a container another name. An absent one is ErrNoContainer.
	Rename(ctx context.Context, id, name string) error

	// Image is the local image that ref (a name or an id) means. ErrNoImage.
	Image(ctx context.Context, ref string) (Image, error)
	// Pull brings an image, with these credentials (nil: what the host has);
	// progress gets short texts ("12 MB of 30 MB"). Errors are *Problem.
	Pull(ctx context.Context, ref string, auth *jobspecs.RegistryAuth, progress func(string)) error
	// SandboxImage is the image of a pod's sandbox, made where it is missing.
	SandboxImage(ctx context.Context) (Image, error)

	// Check runs one probe against a running container and returns nil when it
	// succeeded. said is the first line that an exec printed, without its end. ctx
	// carries the probe's time-out; an exec that outlives it is killed. The error
	// is what a person should read:
	// "http 10.87.0.11:8080/healthz: connection refused".
	Check(ctx context.Context, t Target, probe jobspecs.Probe) (said string, err error)
	// Hook runs a lifecycle hook in or against a running container; ctx bounds it,
	// and an exec that outlives it is killed. A post_start that succeeded is
	// remembered for this run of the container (Container.PostStarted), over a
	// restart of stsd where the host can. The error reads as Check's.
	Hook(ctx context.Context, t Target, h Hook) error

	// RemoveScratch removes the scratch folders of a pod. None is nil; what a
	// container has still is ErrScratchInUse.
	RemoveScratch(ctx context.Context, pod runtime.PodName) error
}

// Listener is met by a Host that can tell, more cheaply than by asking, when a
// container begins to listen. It is a hint when to ask: a Host without it is asked
// by the clock alone.
type Listener interface {
	// Listening returns nil once something in the container's network listens on
	// the port, or an error when ctx has ended or it cannot be told.
	Listening(ctx context.Context, t Target, port int) error
}

// Target is a running container that is asked something.
type Target struct {
	ID      string
	Address netip.Addr
	Run     time.Time // when this run of it began
	Since   time.Time // of the last check of the same probe that came back; zero: none yet. A log probe reads on from there
}

// Hook is one lifecycle hook to run.
type Hook struct {
	Kind    string // PostStart, PreStop
	Handler jobspecs.Handler
	Env     map[string]string // of an exec, on top of the container's own
}

// Kinds of a Hook.
const (
	PostStart = "post_start"
	PreStop   = "pre_stop"
)

// Event is a hint that something happened to a container.
type Event struct {
	ID      string // of the container; empty: look at everything
	Started bool   // it was started, by us or by somebody's hand
	Freed   bool   // something that a pod may wait for is free, or there: a name, an address, a port, a network. ID says nothing
}

// ContainerSpec is one container to make.
type ContainerSpec struct {
	Name   string            // at the engine
	Labels map[string]string // stsd's own; the pod's are in Pod.Labels
	Image  Image             // resolved
	Pod    jobspecs.PodSpec
	Main   jobspecs.Container // which of Pod.Containers; of the sandbox only its Kind is set

	// Sandbox is the id of the running sandbox whose network, host name and (where
	// the pod shares them) processes it joins. Empty: it has its own, the pod's
	// address and ports too.
	Sandbox string
	// Fresh are the volumes (names at the engine) that no container of the pod was
	// made with and that have never run: they are given to the container's group
	// and user.
	Fresh []string
}

// Container is one container as the host has it.
type Container struct {
	ID, Name   string
	Labels     map[string]string
	State      string // "created", "running", "paused", "restarting", "removing", "exited", "dead"
	ExitCode   int
	OOMKilled  bool
	Error      string // the engine's, when it could not be started
	Image      string // as it was named
	ImageID    string
	Address    netip.Addr         // on the pod's own network
	Address6   netip.Addr         // of the other family there; zero: none
	Joined     []runtime.Endpoint // on other networks, by name; of a running one
	Published  []jobspecs.Port    // what it was made with that is published on the host; no names
	CreatedAt  time.Time
	StartedAt  time.Time // zero: never
	FinishedAt time.Time // zero: not ended

	PostStarted bool // this run's post_start hook is known to have succeeded
}

// Running tells whether its process lives (a paused one does).
func (c *Container) Running() bool {
	return c.State == "running" || c.State == "paused" || c.State == "restarting"
}

// Image is a local image.
type Image struct {
	ID          string
	Healthcheck []string // the image's HEALTHCHECK as an argv (CMD-SHELL becomes /bin/sh -c …); nil: none
	Platform    string   // "linux/amd64"
	User        string   // the image's USER; "": root
}

// Errors of a Host.
var (
	ErrNoContainer  = errors.New("no such container")
	ErrNoImage      = errors.New("no such image")
	ErrScratchInUse = errors.New("it is in use")
)

// Problem is an error with one of runtime's reasons and the sentence for people.
type Problem struct {
	Reason  string // runtime.Reason…
	Message string
	Err     error
}

func (p *Problem) Error() string {
	if p.Err == nil {
		return p.Message
	}
	return fmt.Sprintf("%s: %v", p.Message, p.Err)
}

// Unwrap gives the cause.
func (p *Problem) Unwrap() error { return p.Err }
