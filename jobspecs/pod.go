package jobspecs

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/netip"
	"slices"
	"time"
)

// PodSpec is one member, rendered: every expression has its value. It is what
// an engine is asked to run.
type PodSpec struct {
	Set      Key          `json:"set"`
	Ordinal  int          `json:"ordinal"`
	Name     string       `json:"name"`     // "web-0"; also the host name
	Revision string       `json:"revision"` // name
	Service  string       `json:"service"`
	Domain   string       `json:"domain"` // "web.default.svc.cluster.local"
	Search   []string     `json:"search"` // resolver search list
	Network  string       `json:"network"`
	Subnet   netip.Prefix `json:"subnet"`  // of the network
	Gateway  netip.Addr   `json:"gateway"` // where DNS answers
	Address  netip.Addr   `json:"address"` // reserved for this ordinal; zero where the engine gives one

	// Networks are those of others that the pod joins beside its own, by name,
	// sorted: the pod's, the service's and both names together are its aliases there.
	Networks []string `json:"networks,omitempty"`

	Labels           map[string]string `json:"labels,omitempty"`
	ExtraHosts       map[string]string `json:"extra_hosts,omitempty"` // name → address
	Sysctls          map[string]string `json:"sysctls,omitempty"`
	TerminationGrace time.Duration     `json:"termination_grace"` // from the stop signal to the kill; zero kills at once

	ShareProcesses bool `json:"share_processes,omitempty"` // one process namespace for all containers

	Volumes []VolumeSpec `json:"volumes,omitempty"`
	Scratch []Scratch    `json:"scratch,omitempty"`

	// Containers in the order in which they begin: init containers and sidecars as
	// written, then the mains. There is one main at least.
	Containers []Container `json:"containers"`

	// Steady is the Digest of the pod as it is rendered once the set has formed and all
	// volumes are in use: by it renderings are compared that differ because a set
	// forms. Empty: not known. No part of Digest.
	Steady string `json:"-"`

	// Key makes Digest one that nobody without it can compute from a guess of what
	// is sensitive. It is the store's. Empty: none of the spec is sensitive.
	Key []byte `json:"-"`
}

// First is the main container that the pod's own name belongs to.
func (p *PodSpec) First() *Container {
	for i := range p.Containers {
		if p.Containers[i].Kind == KindMain {
			return &p.Containers[i]
		}
	}
	return &p.Containers[0]
}

// Sandboxed tells whether the pod needs a container that holds what its others
// share: two of them run at the same time, or they share processes. Init
// containers alone need none.
func (p *PodSpec) Sandboxed() bool {
	lasting := 0
	for i := range p.Containers {
		if p.Containers[i].Kind != KindInit {
			lasting++
		}
	}
	return lasting > 1 || p.ShareProcesses
}

// FQDN is the member's full name.
func (p *PodSpec) FQDN() string { return p.Name + "." + p.Domain }

// Digest tells two renderings apart. It is a name, not a proof of equality
// across versions of the program: a difference never restarts a pod. The image
// that a revision is pinned to is not part of it: the first member, which
// settles it, runs that image already. Nor are the registry's credentials, nor how
// volumes are made: they make no other container.
func (p *PodSpec) Digest() string {
	q := *p
	q.Containers = slices.Clone(p.Containers)
	for i := range q.Containers {
		q.Containers[i].ImageID, q.Containers[i].Auth = "", nil
	}
	q.Volumes = make([]VolumeSpec, len(p.Volumes))
	for i, v := range p.Volumes {
		q.Volumes[i] = VolumeSpec{Claim: v.Claim, Name: v.Name}
	}
	b, err := json.Marshal(q)
	if err != nil {
		return ""
	}
	mac := hmac.New(sha256.New, p.Key)
	mac.Write(b)
	return hex.EncodeToString(mac.Sum(nil)[:8])
}

// VolumeSpec is one claim of one ordinal.
type VolumeSpec struct {
	Claim   string            `json:"claim"`
	Name    string            `json:"name"` // at the engine: "data-web-0"
	Driver  string            `json:"driver"`
	Options map[string]string `json:"options,omitempty"`
	Size    int64             `json:"size,omitempty"` // bytes; zero: no limit

	// Fresh says that no container has run with it yet: its first one makes it
	// writable for its group and user. No part of Digest.
	Fresh bool `json:"fresh,omitempty"`
}

// Scratch is a folder that lives as long as the pod: over restarts of its
// containers, not over the pod's own end.
type Scratch struct {
	Name   string `json:"name"`
	Volume string `json:"volume"`         // at the engine, where one is needed: ScratchName
	Medium string `json:"medium"`         // MediumDisk, MediumMemory
	Size   int64  `json:"size,omitempty"` // bytes; zero: no limit. On disk it is watched, and nothing enforces it
}

// Media of a Scratch.
const (
	MediumDisk   = "disk"
	MediumMemory = "memory"
)

// Kinds of a Container.
const (
	KindInit    = "init"      // runs to its end before what follows
	KindSidecar = "sidecar"   // begins before the mains and ends after them
	KindMain    = "container" //
	KindSandbox = "sandbox"   // stsd's own; never in a PodSpec
)

// Container is one container of a pod.
type Container struct {
	Kind       string            `json:"kind"` // KindInit, KindSidecar, KindMain
	Name       string            `json:"name"`
	Image      string            `json:"image"`
	ImageID    string            `json:"image_id,omitempty"` // pinned; empty: whatever Image names now
	Pull       string            `json:"pull"`               // PullMissing, PullAlways, PullNever
	Command    []string          `json:"command,omitempty"`  // replaces the entrypoint; nil: the image's
	Args       []string          `json:"args,omitempty"`     // nil: the image's
	Env        map[string]string `json:"env,omitempty"`
	User       string            `json:"user,omitempty"`
	WorkingDir string            `json:"working_dir,omitempty"`
	StopSignal string            `json:"stop_signal,omitempty"` // empty: the image's, else SIGTERM
	Ports      []Port            `json:"ports,omitempty"`
	Mounts     []Mount           `json:"mounts,omitempty"`
	Files      []File            `json:"files,omitempty"`
	Startup    *Probe            `json:"startup,omitempty"`
	Readiness  *Probe            `json:"readiness,omitempty"` // nil: the image's HEALTHCHECK, else ready when started
	Liveness   *Probe            `json:"liveness,omitempty"`
	Role       *Probe            `json:"role,omitempty"` // what it prints is the member's role; nil: it has none
	PostStart  *Handler          `json:"post_start,omitempty"`
	PreStop    *Handler          `json:"pre_stop,omitempty"`
	Restart    Restart           `json:"restart"`
	Ulimits    []Ulimit          `json:"ulimits,omitempty"` // by name; others are the engine's
	Log        *Log              `json:"log,omitempty"`     // nil: the engine's
	Auth       *RegistryAuth     `json:"auth,omitempty"`    // nil: the Docker configuration's

	CPU               float64 `json:"cpu,omitempty"`                // cores; zero: no limit
	Memory            int64   `json:"memory,omitempty"`             // bytes; zero: no limit
	MemoryReservation int64   `json:"memory_reservation,omitempty"` // bytes; zero: none
	PIDs              int64   `json:"pids,omitempty"`               // zero: no limit
	ShmSize           int64   `json:"shm_size,omitempty"`           // bytes; zero: the engine's
	GPUs              string  `json:"gpus,omitempty"`               // as docker run --gpus takes it; "": none

	Privileged      bool     `json:"privileged,omitempty"`
	ReadOnlyRoot    bool     `json:"read_only_root,omitempty"`
	NoNewPrivileges bool     `json:"no_new_privileges,omitempty"`
	RunAsNonRoot    bool     `json:"run_as_non_root,omitempty"` // refuse to start as uid 0
	FSGroup         *int     `json:"fs_group,omitempty"`        // owns fresh volumes, and is a group of the process; nil: none
	CapAdd          []string `json:"cap_add,omitempty"`
	CapDrop         []string `json:"cap_drop,omitempty"`
}

// Ulimit is one limit of the processes of a container.
type Ulimit struct {
	Name string `json:"name"` // "nofile"
	Soft int64  `json:"soft"` // -1: unlimited
	Hard int64  `json:"hard"`
}

// RegistryAuth opens a registry.
type RegistryAuth struct {
	Username string `json:"username"`
	Password string `json:"password"`
}

// Handler is what a lifecycle hook does. Exactly one field is set.
type Handler struct {
	Exec  []string      `json:"exec,omitempty"`
	HTTP  *HTTPCheck    `json:"http,omitempty"`
	Sleep time.Duration `json:"sleep,omitempty"`
}

// Port is one port of a container.
type Port struct {
	Name      string `json:"name"`
	Container int    `json:"container"`
	Protocol  string `json:"protocol"`          // "tcp", "udp", "sctp"
	Host      int    `json:"host,omitempty"`    // published on the host; zero: not published
	HostIP    string `json:"host_ip,omitempty"` // where it is published
}

// Mount puts a claim's volume, a scratch folder or a path of the host at a path.
type Mount struct {
	Kind     string `json:"kind"`             // MountVolume, MountScratch, MountBind
	Claim    string `json:"claim"`            // name of the volume, scratch or bind block
	Volume   string `json:"volume,omitempty"` // at the engine; of MountVolume
	Source   string `json:"source,omitempty"` // path of the host; of MountBind
	Path     string `json:"path"`
	SubPath  string `json:"sub_path,omitempty"` // inside the volume or scratch, made where missing; no link is followed
	ReadOnly bool   `json:"read_only,omitempty"`
}

// Kinds of a Mount.
const (
	MountVolume  = "volume"
	MountScratch = "scratch"
	MountBind    = "bind"
)

// File is put into the container before it starts.
type File struct {
	Path    string `json:"path"`
	Content []byte `json:"content"`
	Mode    uint32 `json:"mode"`            // permission bits
	Owner   string `json:"owner,omitempty"` // "uid:gid"; empty: the container's user if numeric, else root

	// Sensitive content never reaches a disk that we know of: the file is a
	// read-only mount from memory.
	Sensitive bool `json:"sensitive,omitempty"`
}

// Restart says how long a container that ended waits for its next start: First
// for the first time, then Initial, doubling up to Max; forgotten after it ran
// for Reset.
type Restart struct {
	First   time.Duration `json:"first"`
	Initial time.Duration `json:"initial"`
	Max     time.Duration `json:"max"`
	Reset   time.Duration `json:"reset"`
}

// Log names Docker's log driver.
type Log struct {
	Driver  string            `json:"driver"`
	Options map[string]string `json:"options,omitempty"`
}

// Probe is one check of a container. Exactly one of Exec, HTTP, TCP, GRPC, Log is
// set.
type Probe struct {
	Exec             []string      `json:"exec,omitempty"`
	HTTP             *HTTPCheck    `json:"http,omitempty"`
	TCP              *TCPCheck     `json:"tcp,omitempty"`
	GRPC             *GRPCCheck    `json:"grpc,omitempty"`
	Log              *LogCheck     `json:"log,omitempty"`
	InitialDelay     time.Duration `json:"initial_delay"`
	Period           time.Duration `json:"period"`
	Timeout          time.Duration `json:"timeout"`
	SuccessThreshold int           `json:"success_threshold"`
	FailureThreshold int           `json:"failure_threshold"`
}

// HTTPCheck is a GET; 200 to 399 succeeds.
type HTTPCheck struct {
	Port    int               `json:"port"`
	Path    string            `json:"path"`
	Scheme  string            `json:"scheme"` // "http", "https" (certificates are not verified, as in the kubelet)
	Headers map[string]string `json:"headers,omitempty"`
}

// TCPCheck succeeds when a connection opens.
type TCPCheck struct {
	Port int `json:"port"`
}

// GRPCCheck asks the gRPC health protocol; SERVING succeeds.
type GRPCCheck struct {
	Port    int    `json:"port"`
	Service string `json:"service,omitempty"` // empty: the server as a whole
}

// LogCheck succeeds once a line of the container's output, since its start,
// matches; from then on it succeeds for this run of the container.
type LogCheck struct {
	Pattern string `json:"pattern"` // RE2
}
