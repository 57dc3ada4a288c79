package jobspecs

import "time"

// The documents that `-o json` and the API give. Fields are only ever added.

// Member is one row of `ps`.
type Member struct {
	Namespace  string            `json:"namespace"`
	Set        string            `json:"set"`
	Name       string            `json:"name"`
	Ordinal    int               `json:"ordinal"`
	Phase      string            `json:"phase"`
	Ready      bool              `json:"ready"`
	Available  bool              `json:"available"`
	Reason     string            `json:"reason"`
	Message    string            `json:"message"`
	Revision   string            `json:"revision"`
	Image      string            `json:"image"`
	Restarts   int               `json:"restarts"`
	IP         string            `json:"ip"`
	Ports      []MemberPort      `json:"ports"`
	StartedAt  *time.Time        `json:"started_at"`
	Volumes    []string          `json:"volumes"`
	FQDN       string            `json:"fqdn"`
	Role       string            `json:"role"`
	ImageID    string            `json:"image_id"`
	Stale      bool              `json:"stale"`     // runs an older rendering of self and set than a new start would
	StaleWhy   string            `json:"stale_why"` // what differs then, as far as is known, and what takes it over
	Waiting    string            `json:"waiting"`   // for what
	Containers []MemberContainer `json:"containers"`
	Since      *time.Time        `json:"since"`    // of the phase; nil: nothing of it was made yet
	NextTry    *time.Time        `json:"next_try"` // when what failed is tried again at the latest; nil: nothing waits for it
}

// MemberPort is a port of a member; Host is 0 when it is not published.
type MemberPort struct {
	Name      string `json:"name"`
	Container int    `json:"container"`
	Host      int    `json:"host"`
	HostIP    string `json:"host_ip"`
	Protocol  string `json:"protocol"`
}

// MemberContainer is one container of a member.
type MemberContainer struct {
	Name      string     `json:"name"`
	Kind      string     `json:"kind"` // KindInit, KindSidecar, KindMain
	Image     string     `json:"image"`
	ImageID   string     `json:"image_id"`
	State     string     `json:"state"`
	Ready     bool       `json:"ready"`
	ExitCode  *int       `json:"exit_code"` // of the last ended one; nil: none ended
	OOMKilled bool       `json:"oom_killed"`
	Signal    string     `json:"signal"`
	Restarts  int        `json:"restarts"`
	StartedAt *time.Time `json:"started_at"`
	Reason    string     `json:"reason"` // as of a member, of this container alone
	Message   string     `json:"message"`
}

// Status is what `status` shows of a set.
type Status struct {
	Namespace          string         `json:"namespace"`
	Name               string         `json:"name"`
	Replicas           int            `json:"replicas"`           // wanted
	CurrentReplicas    int            `json:"current_replicas"`   // existing, not stopping, of the current revision
	UpdatedReplicas    int            `json:"updated_replicas"`   // existing, not stopping, of the update revision
	ReadyReplicas      int            `json:"ready_replicas"`     //
	AvailableReplicas  int            `json:"available_replicas"` //
	CurrentRevision    string         `json:"current_revision"`
	UpdateRevision     string         `json:"update_revision"`
	Generation         int64          `json:"generation"`
	ObservedGeneration int64          `json:"observed_generation"`
	Paused             bool           `json:"paused"`
	Deleting           bool           `json:"deleting"`
	Waiting            *Waiting       `json:"waiting"`
	Conditions         []Condition    `json:"conditions"`
	Members            []Member       `json:"members"`
	Volumes            []VolumeStatus `json:"volumes"`
	Endpoints          []Endpoint     `json:"endpoints"`
	Overrides          *Overrides     `json:"overrides,omitempty"`
	Strategy           string         `json:"strategy"`
	Partition          int            `json:"partition"`
	Created            time.Time      `json:"created"`
}

// Waiting is what a set waits for.
type Waiting struct {
	Member string    `json:"member"`
	For    string    `json:"for"`
	Since  time.Time `json:"since"`
}

// Condition types.
const (
	CondAvailable   = "Available"   // every member is available
	CondProgressing = "Progressing" // there is work to do and it goes on
	CondStalled     = "Stalled"     // an error that no retry mends; the daemon goes on trying
	CondPaused      = "Paused"
	CondRolledBack  = "RolledBack"
	CondDegraded    = "Degraded" // a member that was available is not, or nobody reaches it
)

// Condition is one fact about a set, with the reason.
type Condition struct {
	Type    string    `json:"type"`
	Status  bool      `json:"status"`
	Reason  string    `json:"reason"`
	Message string    `json:"message"`
	Since   time.Time `json:"since"`
}

// VolumeStatus is one volume of a set.
type VolumeStatus struct {
	Name    string `json:"name"`
	Claim   string `json:"claim"`
	Ordinal int    `json:"ordinal"`
	State   string `json:"state"` // "bound", "retained", "missing", "lost"
	Driver  string `json:"driver"`
	Size    int64  `json:"size"`    // bytes; zero: none
	Used    *int64 `json:"used"`    // bytes, of one that has a size; nil: not measured
	Message string `json:"message"` // how it differs from what its claim says now, or why it is not measured
}

// Endpoint is one name that DNS serves for a set.
type Endpoint struct {
	Name      string   `json:"name"`
	Addresses []string `json:"addresses"`
}

// SetRow is one row of `ls`.
type SetRow struct {
	Namespace      string    `json:"namespace"`
	Name           string    `json:"name"`
	Replicas       int       `json:"replicas"`
	Ready          int       `json:"ready_replicas"`
	Available      int       `json:"available_replicas"`
	Updated        int       `json:"updated_replicas"`
	UpdateRevision string    `json:"update_revision"`
	State          string    `json:"state"` // one word: the condition that matters most
	Waiting        string    `json:"waiting"`
	Images         []string  `json:"images"`
	Created        time.Time `json:"created"`
}

// Ops of a plan's steps.
const (
	OpCreate       = "create"
	OpKeep         = "keep"
	OpReplace      = "replace"
	OpRestart      = "restart"
	OpStop         = "stop"
	OpRemove       = "remove"
	OpCreateVolume = "create-volume"
	OpKeepVolume   = "keep-volume"
	OpDeleteVolume = "delete-volume"
)

// Plan is what an apply would do.
type Plan struct {
	Namespace  string       `json:"namespace"`
	Set        string       `json:"set"`
	Generation int64        `json:"generation"` // stored now; 0: a new set
	Changes    bool         `json:"changes"`
	Revision   PlanRevision `json:"revision"`
	Steps      []Step       `json:"steps"` // in execution order
	Diff       []Change     `json:"diff"`
	Warnings   []string     `json:"warnings"`
	Data       []string     `json:"data"` // data that would be lost sight of; non-empty asks for confirmation
}

// PlanRevision is the change of template.
type PlanRevision struct {
	From    string `json:"from"` // "" for a new set
	To      string `json:"to"`
	EqualTo int    `json:"equal_to"` // number of the older revision it goes back to; 0: none
}

// Step is one step of a plan.
type Step struct {
	Op     string `json:"op"`
	Member string `json:"member"`
	Volume string `json:"volume"`
	Why    string `json:"why"`
	Now    bool   `json:"now"` // would happen at once
}

// Change is one attribute that differs.
type Change struct {
	Path   string `json:"path"`
	Before string `json:"before"`
	After  string `json:"after"`
}

// Event is something that happened, kept in the store and counted when it repeats.
type Event struct {
	Time      time.Time `json:"time"`
	Namespace string    `json:"namespace"`
	Set       string    `json:"set"`
	Member    string    `json:"member"`
	Type      string    `json:"type"` // "Normal", "Warning"
	Reason    string    `json:"reason"`
	Message   string    `json:"message"`
	Count     int       `json:"count"`
	FirstTime time.Time `json:"first_time"` // of the first that Count counts; Time is of the last
}

// HistoryRow is one row of `rollout history`.
type HistoryRow struct {
	Number   int       `json:"number"`
	Name     string    `json:"name"`
	Created  time.Time `json:"created"`
	Cause    string    `json:"cause"`
	Members  []string  `json:"members"` // that run it now
	Current  bool      `json:"current"`
	Update   bool      `json:"update"`
	Images   []string  `json:"images"`
	Changes  []Change  `json:"changes"` // of the template, from the revision before
	Template Template  `json:"template,omitempty"`
	Source   []Source  `json:"source,omitempty"`
}

// Explanation is the chain of reasons for a member's state.
type Explanation struct {
	Namespace string   `json:"namespace"`
	Member    string   `json:"member"`
	State     string   `json:"state"`   // one sentence
	Because   []string `json:"because"` // the chain, outermost first
	Next      []string `json:"next"`    // commands to type
	Events    []Event  `json:"events"`

	Containers []MemberContainer `json:"containers"` // of the member
}

// Diagnostic is one finding of the spec reader, with its place.
type Diagnostic struct {
	Severity string `json:"severity"` // "error", "warning"
	Summary  string `json:"summary"`
	Detail   string `json:"detail"`
	File     string `json:"file"`
	Line     int    `json:"line"`   // from 1; 0: no place
	Column   int    `json:"column"` // from 1
	EndLine  int    `json:"end_line"`
	EndCol   int    `json:"end_column"`
	Snippet  string `json:"snippet"` // the source line, without its end
}
