package jobspecs

import (
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

	Labels           map[string]string `json:"labels,omitempty"`
	ExtraHosts       map[string]string `json:"extra_hosts,omitempty"` // name → address
	Sysctls          map[string]string `json:"sysctls,omitempty"`
	TerminationGrace time.Duration     `json:"termination_grace"` // from the stop signal to the kill; zero kills at once

	Volumes    []VolumeSpec `json:"volumes,omitempty"`
	Containers []Container  `json:"containers"`
}

// FQDN is the member's full name.
func (p *PodSpec) FQDN() string { return p.Name + "." + p.Domain }

// Digest tells two renderings apart. It is a name, not a proof of equality
// across versions of the program: a difference never restarts a pod. The image
// that a revision is pinned to is not part of it: the first member, which
// settles it, runs that image already.
func (p *PodSpec) Digest() string {
	q := *p
	q.Containers = slices.Clone(p.Containers)
	for i := range q.Containers {
		q.Containers[i].ImageID = ""
	}
	b, err := json.Marshal(q)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}

// VolumeSpec is one claim of one ordinal.
type VolumeSpec struct {
	Claim   string            `json:"claim"`
	Name    string            `json:"name"` // at the engine: "data-web-0"
	Driver  string            `json:"driver"`
	Options map[string]string `json:"options,omitempty"`
	Size    int64             `json:"size,omitempty"` // bytes; zero: no limit
}

// Container is one container of a pod.
type Container struct {
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
	Restart    Restart           `json:"restart"`
	CPU        float64           `json:"cpu,omitempty"`    // cores; zero: no limit
	Memory     int64             `json:"memory,omitempty"` // bytes; zero: no limit
	Log        *Log              `json:"log,omitempty"`    // nil: the engine's
}

// Port is one port of a container.
type Port struct {
	Name      string `json:"name"`
	Container int    `json:"container"`
	Protocol  string `json:"protocol"`          // "tcp", "udp", "sctp"
	Host      int    `json:"host,omitempty"`    // published on the host; zero: not published
	HostIP    string `json:"host_ip,omitempty"` // where it is published
}

// Mount binds a claim's volume to a path.
type Mount struct {
	Claim    string `json:"claim"`
	Volume   string `json:"volume"` // name at the engine
	Path     string `json:"path"`
	ReadOnly bool   `json:"read_only,omitempty"`
}

// File is put into the container before it starts.
type File struct {
	Path    string `json:"path"`
	Content []byte `json:"content"`
	Mode    uint32 `json:"mode"`            // permission bits
	Owner   string `json:"owner,omitempty"` // "uid:gid"; empty: the container's user if numeric, else root
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

// Probe is one check of a container. Exactly one of Exec, HTTP, TCP is set.
type Probe struct {
	Exec             []string      `json:"exec,omitempty"`
	HTTP             *HTTPCheck    `json:"http,omitempty"`
	TCP              *TCPCheck     `json:"tcp,omitempty"`
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
