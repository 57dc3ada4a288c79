package jobspecs

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Words of the language that Set and Update hold.
const (
	Ordered  = "ordered"
	Parallel = "parallel"

	Rolling  = "rolling"
	OnDelete = "on_delete"

	Retain = "retain"
	Delete = "delete"

	Always  = "always"
	Running = "running"
	Ready   = "ready"
	Peers   = "peers"

	PullMissing = "missing"
	PullAlways  = "always"
	PullNever   = "never"
)

// MaxReplicas is the most members a set may have.
const MaxReplicas = 10000

// Set is what a statefulset block says beside its template: a change of it
// makes no revision and restarts nobody.
type Set struct {
	Namespace            string        `json:"namespace"`
	Name                 string        `json:"name"`
	Replicas             *int          `json:"replicas,omitempty"` // nil: not written; the stored count, 1 for a new set
	StartOrdinal         int           `json:"start_ordinal"`
	Reserve              []int         `json:"reserve,omitempty"` // ordinals that are left out, ascending
	Service              string        `json:"service"`           // part of the template too; here for names
	PodManagement        string        `json:"pod_management"`
	RecoveryWait         time.Duration `json:"recovery_wait"`
	RevisionHistoryLimit int           `json:"revision_history_limit"` // live ones come on top; negative keeps all
	Update               Update        `json:"update"`
	DNS                  DNS           `json:"dns"`
	HostAccess           string        `json:"host_access,omitempty"` // HostDirect …; empty: HostAccessOn
	Claims               []Claim       `json:"claims,omitempty"`      // in source order
	StartAfter           []string      `json:"start_after,omitempty"` // sets of the namespace that must be available before a first start
	Guard                *Guard        `json:"guard,omitempty"`       // nil: none
	Hooks                []Hook        `json:"hooks,omitempty"`       // in source order
}

// Ordinals are those of the set with that many members, ascending: from
// StartOrdinal on, without the reserved ones.
func (s *Set) Ordinals(replicas int) []int {
	out := make([]int, 0, replicas)
	for o := s.StartOrdinal; len(out) < replicas; o++ {
		if !slices.Contains(s.Reserve, o) {
			out = append(out, o)
		}
	}
	return out
}

// Guard refuses voluntary stops.
type Guard struct {
	Spec json.RawMessage `json:"spec"` // min_available in normal form; may use set
}

// Hook is a command that runs in a member when the membership changes.
type Hook struct {
	Name      string          `json:"name"`
	On        string          `json:"on"`                // OnJoin, OnLeave, OnSetReady
	Once      bool            `json:"once"`              // in the life of the set; of OnSetReady
	Ordinal   *int            `json:"ordinal,omitempty"` // where it runs; nil: in the member that joins or leaves, for OnSetReady in the first
	Container string          `json:"container"`         // "": the first main
	Timeout   time.Duration   `json:"timeout"`
	OnFailure string          `json:"on_failure"` // FailAbort, FailContinue
	Spec      json.RawMessage `json:"spec"`       // command in normal form; may use self and set
}

// When a Hook runs, and what its failure means.
const (
	OnJoin     = "join"      // a member of a set that was formed is ready for the first time
	OnLeave    = "leave"     // before a member is stopped because its ordinal goes
	OnSetReady = "set_ready" // all members are ready at the same time

	FailAbort    = "abort" // it is tried again; a member that wants to leave stays
	FailContinue = "continue"
)

// Key names the set.
func (s *Set) Key() Key { return Key{s.Namespace, s.Name} }

// Update is the update block.
type Update struct {
	Strategy       string        `json:"strategy"`
	Partition      int           `json:"partition"`       // real ordinals below it keep the current revision
	MaxUnavailable string        `json:"max_unavailable"` // "1" or "30%"
	MinReady       time.Duration `json:"min_ready"`       // ready for this long counts as available
	Deadline       time.Duration `json:"deadline"`        // per member, without pull and init; zero: none
	OnFailure      string        `json:"on_failure"`      // FailPause, FailRollback, FailWait
	Order          string        `json:"order"`           // OrderDescending, OrderRole
	Last           string        `json:"last"`            // role that goes last, of OrderRole
}

// What becomes of a rollout whose member misses the deadline, and the order of an
// update.
const (
	FailPause    = "pause"
	FailRollback = "rollback"
	FailWait     = "wait"

	OrderDescending = "descending"
	OrderRole       = "role"
)

// MaxUnavailableOf resolves max_unavailable against the replica count. A
// percentage is rounded down; the result is never below 1
// (k8s getStatefulSetMaxUnavailable).
func (u Update) MaxUnavailableOf(replicas int) int {
	s := u.MaxUnavailable
	n, err := strconv.Atoi(strings.TrimSuffix(s, "%"))
	if err != nil {
		return 1
	}
	if strings.HasSuffix(s, "%") {
		n = int(math.Floor(float64(replicas) * float64(n) / 100))
	}
	return max(n, 1)
}

// DNS is the dns block.
type DNS struct {
	MemberNames string        `json:"member_names"` // Always, Running, Ready
	SetName     string        `json:"set_name"`     // Peers, Ready, Running
	TTL         time.Duration `json:"ttl"`
	NegativeTTL time.Duration `json:"negative_ttl"`
}

// Claim is a volume block: one volume per ordinal.
type Claim struct {
	Name        string          `json:"name"`
	OnScaleDown string          `json:"on_scale_down"`  // Retain, Delete
	OnDelete    string          `json:"on_delete"`      // Retain, Delete
	Spec        json.RawMessage `json:"spec,omitempty"` // size, driver, options in normal form; may use self
}

// Template is everything that makes a pod, in normal form: canonical JSON of
// what was written, where an attribute that depends on self or set stays an
// expression. Only jobspecs/hcl reads inside; others compare and store it.
type Template []byte

// Equal tells whether two templates make the same pods. Both must have been
// computed by the running binary.
func (t Template) Equal(u Template) bool { return string(t) == string(u) }

// MarshalJSON embeds the template as it is.
func (t Template) MarshalJSON() ([]byte, error) {
	if t == nil {
		return []byte("null"), nil
	}
	return t, nil
}

// UnmarshalJSON keeps the bytes.
func (t *Template) UnmarshalJSON(b []byte) error {
	*t = append((*t)[:0:0], b...)
	return nil
}

// Source is one file a user wrote.
type Source struct {
	Name string `json:"name"`
	Text []byte `json:"text"`
}

// Inputs is everything beside the source that a spec was evaluated with. With
// the same source and inputs the result is the same on any machine.
type Inputs struct {
	Vars   map[string]json.RawMessage `json:"vars,omitempty"`   // values of variables, as JSON
	Files  map[string][]byte          `json:"files,omitempty"`  // what file(), templatefile() read, by the path as written
	Absent map[string]bool            `json:"absent,omitempty"` // paths for which fileexists() said false
	Env    map[string]string          `json:"env,omitempty"`    // what env() gave in a variable's default
	Images map[string]string          `json:"images,omitempty"` // --image OLD=NEW: put in wherever an image is OLD
	Pull   string                     `json:"pull,omitempty"`   // --pull: replaces every container's pull policy

	// Secrets are the values of secret blocks, by "namespace/name". The daemon
	// makes them; from a client they are not taken.
	Secrets map[string]string `json:"secrets,omitempty"`
}

// Spec is one statefulset block, evaluated as far as it can be without a member.
type Spec struct {
	Set      Set      `json:"set"`
	Template Template `json:"template"`
	Images   []Image  `json:"images"` // images that do not depend on the member, by container
	Ports    []Port   `json:"ports"`  // named ports, host not resolved; for DNS
	Line     int      `json:"line"`   // of the block, in its file
	File     string   `json:"file"`
	Placed   bool     `json:"placed"` // the source names the namespace
}

// Image is the image of one container of a template.
type Image struct{ Container, Ref, Pull string }

// Overrides are stored beside the source and dropped by the next apply that
// differs from it; Restarted stays.
type Overrides struct {
	Replicas  *int              `json:"replicas,omitempty"`
	Images    map[string]string `json:"images,omitempty"`    // container → image
	Undo      string            `json:"undo,omitempty"`      // revision whose template is used instead of the source's
	Restarted string            `json:"restarted,omitempty"` // RFC 3339; `rollout restart` makes a revision of the same template
}

// None tells whether a set is what its source says.
func (o *Overrides) None() bool {
	return o.Replicas == nil && len(o.Images) == 0 && o.Undo == "" && o.Restarted == ""
}

// Kept says in one sentence what stands on top of the source until another one is
// applied; "" when nothing does. Restarted is no part of it: it stays.
func (o *Overrides) Kept() string {
	kept := o.list()
	if len(kept) == 0 {
		return ""
	}
	drops := "drops it"
	if len(kept) > 1 {
		drops = "drops them"
	}
	return "kept on top of the file: " + strings.Join(kept, ", ") + "; applying a changed file " + drops
}

// Dropped says what the overrides were that a changed file took back; "" nothing.
func (o *Overrides) Dropped() string {
	if list := o.list(); len(list) > 0 {
		return "dropped, since the file changed: " + strings.Join(list, ", ")
	}
	return ""
}

func (o *Overrides) list() (kept []string) {
	if o.Replicas != nil {
		kept = append(kept, fmt.Sprintf("replicas = %d", *o.Replicas))
	}
	if o.Undo != "" {
		kept = append(kept, "the template of "+o.Undo+" (rolled back)")
	}
	for _, name := range slices.Sorted(maps.Keys(o.Images)) {
		kept = append(kept, fmt.Sprintf("container.%s.image = %q", name, o.Images[name]))
	}
	if o.Undo != "" && len(o.Images) > 0 { // the images stand on top of that template
		i := len(kept) - len(o.Images)
		kept = append(kept[:i-1], kept[i-1]+" with "+strings.Join(kept[i:], " and "))
	}
	return kept
}

// Revision is a stored template.
type Revision struct {
	Name     string            `json:"name"`
	Number   int               `json:"number"`
	Template Template          `json:"template"`
	Origin   Origin            `json:"origin"`
	Cause    string            `json:"cause,omitempty"`
	Created  time.Time         `json:"created"`
	ImageIDs map[string]string `json:"image_ids,omitempty"` // image → id of the first member made under it
}

// Origin is what a revision's template was made from. The running binary makes
// the template from it anew to compare revisions, so that an upgrade that
// writes templates another way rolls no set.
type Origin struct {
	Source    []Source          `json:"source,omitempty"`
	Inputs    Inputs            `json:"inputs"`
	Images    map[string]string `json:"images,omitempty"`    // overrides, by container
	Restarted string            `json:"restarted,omitempty"` //
}

// Size is a number of bytes as a user writes it: "64MiB", "1GiB", "10GB", "512".
func Size(s string) (int64, error) {
	i := strings.LastIndexAny(s, "0123456789")
	num, unit := s[:i+1], strings.TrimSpace(s[i+1:])
	factor, ok := map[string]float64{
		"": 1, "B": 1, "k": 1e3, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
		"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40,
		"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
	}[unit]
	v, err := strconv.ParseFloat(num, 64)
	if !ok || err != nil || v < 0 || v*factor > math.MaxInt64/2 {
		return 0, fmt.Errorf("%q is no size: want a number and a unit, as in 64MiB or 1GiB", s)
	}
	return int64(v * factor), nil
}

// FormatSize writes a number of bytes for people: "1GiB", "950.3MiB", "10GB".
func FormatSize(n int64) string {
	for _, u := range []struct {
		name string
		size int64
	}{{"GB", 1e9}, {"MB", 1e6}} {
		if n >= u.size && n%u.size == 0 && n%(1<<20) != 0 {
			return strconv.FormatInt(n/u.size, 10) + u.name
		}
	}
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	v, i := float64(n), 0
	for ; v >= 1024 && i < len(units)-1; i++ {
		v /= 1024
	}
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0") + units[i]
}
