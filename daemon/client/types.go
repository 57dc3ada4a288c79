package client

import (
	"fmt"
	"strings"
	"time"

	"github.com/stsd/stsd/jobspecs"
)

// Scope is one FILE argument: its sources share variables and locals.
type Scope struct {
	Sources []jobspecs.Source `json:"sources"`
	Inputs  jobspecs.Inputs   `json:"inputs"`
}

// Write is what every call that changes something may carry.
type Write struct {
	DryRun bool `json:"dry_run,omitempty"` // plan only; nothing is written anywhere
	// Expect is the generation the caller saw, by set key; 0 means "not there".
	// Another one now is ProblemChanged.
	Expect map[string]int64 `json:"expect,omitempty"`
	// Confirm names the sets of which the caller knows that data will be lost
	// sight of; Yes confirms all.
	Confirm []string `json:"confirm,omitempty"`
	Yes     bool     `json:"yes,omitempty"`
	Cause   string   `json:"cause,omitempty"` // kept with the revision
	// Force goes past guard and vetoes of hooks, until the next change.
	Force bool `json:"force,omitempty"`
}

// ApplyRequest is POST /v1/apply and /v1/plan.
type ApplyRequest struct {
	Write
	Scopes    []Scope `json:"scopes"`
	Namespace string  `json:"namespace,omitempty"` // of sets that name none; a set that names another is an error
	// Sealed is PlanResponse.Sealed of the daemon that is asked, instead of Scopes.
	Sealed []byte `json:"sealed,omitempty"`
	// Registries are credentials for the registries of images, by registry
	// (jobspecs.Registry). The daemon keeps them sealed and shows them nowhere.
	Registries map[string]jobspecs.RegistryAuth `json:"registries,omitempty"`
}

// ScaleRequest is POST /v1/sets/NS/NAME/scale.
type ScaleRequest struct {
	Write
	Replicas int  `json:"replicas"`
	Relative bool `json:"relative,omitempty"` // Replicas is added
}

// ImageRequest is POST /v1/sets/NS/NAME/image.
type ImageRequest struct {
	Write
	Images map[string]string `json:"images"` // container → image; "" means the only one
}

// RolloutRequest is POST /v1/sets/NS/NAME/rollout.
type RolloutRequest struct {
	Write
	Do string `json:"do"`           // "undo", "pause", "resume", "restart"
	To int    `json:"to,omitempty"` // undo: number of the revision; 0: the one before
}

// MembersRequest is POST /v1/sets/NS/NAME/members.
type MembersRequest struct {
	Write
	Do       string `json:"do"`                 // "restart", "replace", "stop", "start"
	Ordinals []int  `json:"ordinals,omitempty"` // absent: all, a restart one by one as the update block says
}

// FreshVolumeRequest is POST /v1/sets/NS/NAME/fresh-volume: the member is replaced and
// starts with empty volumes.
type FreshVolumeRequest struct {
	Write
	Ordinal int `json:"ordinal"`
}

// DeleteRequest is POST /v1/sets/NS/NAME/delete.
type DeleteRequest struct {
	Write
	Volumes string `json:"volumes,omitempty"` // "delete", "retain"; "" is what the set says
	Orphan  bool   `json:"orphan,omitempty"`  // forget the set, leave its pods and volumes
}

// Result is what a write did to one set.
type Result struct {
	Namespace  string         `json:"namespace"`
	Set        string         `json:"set"`
	Generation int64          `json:"generation"`
	Revision   string         `json:"revision"`
	Created    bool           `json:"created"`
	Changed    bool           `json:"changed"`
	Message    string         `json:"message"` // "web scaled to 5", "skipped: template already matches revision 2"
	Plan       *jobspecs.Plan `json:"plan,omitempty"`
}

// ApplyResponse is the answer to ApplyRequest, and of the other writes with one result.
type ApplyResponse struct {
	Results     []Result              `json:"results"`
	Diagnostics []jobspecs.Diagnostic `json:"diagnostics"` // warnings
}

// PlanResponse is the answer to /v1/plan.
type PlanResponse struct {
	Plans       []jobspecs.Plan       `json:"plans"`
	Diagnostics []jobspecs.Diagnostic `json:"diagnostics"`
	// Sealed is the request, for an apply of this plan; set where the request has
	// something sensitive in it, which a file must not hold in the clear.
	Sealed []byte `json:"sealed,omitempty"`
}

// SecretRequest is POST /v1/secrets/NS/NAME/delete.
type SecretRequest struct {
	Write
}

// SecretResult is the answer to SecretRequest.
type SecretResult struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Removed   bool   `json:"removed"`
	Message   string `json:"message"`
}

// Secret is one row of GET /v1/secrets: a generated secret, without its value.
type Secret struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	Format    string    `json:"format"` // "hex", "base64url", "uuid"
	Length    int       `json:"length"` // characters
	Created   time.Time `json:"created"`
	UsedBy    []string  `json:"used_by"` // sets
}

// StoredSource is GET /v1/sets/NS/NAME/source. What is sensitive is not in it.
type StoredSource struct {
	Generation int64              `json:"generation"`
	Scope      Scope              `json:"scope"`
	Overrides  jobspecs.Overrides `json:"overrides"`
}

// Version is GET /v1/version.
type Version struct {
	Version     string   `json:"version"`
	API         string   `json:"api"`    // "v1"
	Daemon      string   `json:"daemon"` // id of the store
	Engine      string   `json:"engine"` // "docker 20.10.24"
	Connected   bool     `json:"connected"`
	EngineError string   `json:"engine_error,omitempty"`
	DNS         []string `json:"dns"` // listeners, "10.87.0.1:53" or "10.87.0.1:53: permission denied"
	DataDir     string   `json:"data_dir"`
	PID         int      `json:"pid"`
}

// Types of a Problem, a closed list.
const (
	ProblemInvalid     = "urn:stsd:invalid"     // 422: the spec or the request is wrong; Diagnostics say where
	ProblemNotFound    = "urn:stsd:not-found"   // 404
	ProblemChanged     = "urn:stsd:changed"     // 409: the generation moved on
	ProblemUnconfirmed = "urn:stsd:unconfirmed" // 403: data would be lost sight of; Data says which
	ProblemConflict    = "urn:stsd:conflict"    // 409: it clashes with what is stored, or the state forbids it
	ProblemGuard       = "urn:stsd:guard"       // 409: the guard of the set refuses it; Force overrides
	ProblemEngine      = "urn:stsd:engine"      // 503: the engine does not answer
	ProblemInternal    = "urn:stsd:internal"    // 500
)

// Problem is an error of the API: RFC 9457 problem details.
type Problem struct {
	Type        string                `json:"type"`
	Title       string                `json:"title"`
	Status      int                   `json:"status"`
	Detail      string                `json:"detail,omitempty"`
	Set         string                `json:"set,omitempty"`
	Data        []string              `json:"data,omitempty"`
	Diagnostics []jobspecs.Diagnostic `json:"diagnostics,omitempty"`
}

func (p *Problem) Error() string {
	if p.Detail == "" {
		return p.Title
	}
	return fmt.Sprintf("%s: %s", p.Title, strings.TrimSpace(p.Detail))
}
