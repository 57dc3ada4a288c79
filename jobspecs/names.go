package jobspecs

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// DefaultNamespace is the namespace of a set that names none. Its objects carry
// no namespace in their names.
const DefaultNamespace = "default"

// MaxLabel is the longest DNS label (RFC 1035 section 2.3.4).
const MaxLabel = 63

// Key names a set.
type Key struct{ Namespace, Name string }

// String is "namespace/name", the form used by the store, the API and logs.
func (k Key) String() string { return k.Namespace + "/" + k.Name }

// ParseKey reads "name" (in DefaultNamespace) or "namespace/name".
func ParseKey(s string) (Key, error) {
	ns, name, ok := strings.Cut(s, "/")
	if !ok {
		ns, name = DefaultNamespace, s
	}
	if !IsLabel(ns) || !IsLabel(name) {
		return Key{}, fmt.Errorf("%q is no set name: want NAME or NAMESPACE/NAME in lower-case letters, digits and dashes", s)
	}
	return Key{ns, name}, nil
}

var label = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)

// IsLabel tells whether s is a DNS label in lower case (RFC 1123): what every
// set, namespace, claim, container and port name must be.
func IsLabel(s string) bool { return len(s) <= MaxLabel && label.MatchString(s) }

// MemberName is the name, host name and DNS label of one member: "web-0".
func MemberName(set string, ordinal int) string { return set + "-" + strconv.Itoa(ordinal) }

// ParseMember splits a member's name; ok is false when s does not end in a dash
// and an ordinal without leading zeros.
func ParseMember(s string) (set string, ordinal int, ok bool) {
	i := strings.LastIndexByte(s, '-')
	if i <= 0 {
		return "", 0, false
	}
	n, err := strconv.ParseInt(s[i+1:], 10, 32)
	if err != nil || n < 0 || strconv.FormatInt(n, 10) != s[i+1:] {
		return "", 0, false
	}
	return s[:i], int(n), true
}

// ContainerName is the name of a pod's container at the engine: "web-0" for the
// main one (part "") in the default namespace, "NS.web-0" in another, and
// "web-0_PART" for a further part.
func ContainerName(namespace, member, part string) string {
	name := member
	if namespace != DefaultNamespace {
		name = namespace + "." + member
	}
	if part != "" {
		name += "_" + part
	}
	return name
}

// Parts that no container block may be named: the last ended container of a pod
// is kept as "web-0_previous" (of another part as "web-0_PART_previous") for `logs
// --previous`, and "web-0_sandbox" holds what the containers of a pod share.
const (
	PartPrevious = "previous"
	PartSandbox  = "sandbox"
)

// PreviousPart is the part under which the last ended container of a part is kept.
func PreviousPart(part string) string {
	if part == "" {
		return PartPrevious
	}
	return part + "_" + PartPrevious
}

// ScratchName is the volume of a pod's scratch folder at the engine:
// "tmp-web-0_scratch", or "NS.tmp-web-0_scratch" outside the default namespace.
func ScratchName(namespace, scratch, set string, ordinal int) string {
	return VolumeName(namespace, scratch, set, ordinal) + "_scratch"
}

// VolumeName is the name of a claim's volume at the engine: "data-web-0", or
// "NS.data-web-0" outside the default namespace.
func VolumeName(namespace, claim, set string, ordinal int) string {
	name := claim + "-" + MemberName(set, ordinal)
	if namespace != DefaultNamespace {
		name = namespace + "." + name
	}
	return name
}

// NetworkName is the bridge of a namespace: "stsd" for the default one,
// "stsd.NS" for others.
func NetworkName(namespace string) string {
	if namespace == DefaultNamespace {
		return "stsd"
	}
	return "stsd." + namespace
}

// ServiceDomain is the domain of a set's members:
// "redis.default.svc.cluster.local" (Kubernetes DNS specification, headless services).
func ServiceDomain(service, namespace, domain string) string {
	return service + "." + namespace + ".svc." + domain
}

// FQDN is a member's full name, without the final dot.
func FQDN(member, service, namespace, domain string) string {
	return member + "." + ServiceDomain(service, namespace, domain)
}

// RevisionName is the name of a stored template: the set's name and a hash.
func RevisionName(set, hash string) string { return set + "-" + hash }

// HashLength is the number of characters of a revision's hash.
const HashLength = 10

// CollidingVolumes reports a volume name that two sets of one namespace would
// both use ("data" of "a-b" is "data-a" of "b"), or "" when there is none.
// Claims are the names of the volume blocks.
func CollidingVolumes(a string, aClaims []string, b string, bClaims []string) string {
	for _, ca := range aClaims {
		for _, cb := range bClaims {
			if ca+"-"+a == cb+"-"+b {
				return ca + "-" + a
			}
		}
	}
	return ""
}

// Labels that stsd puts on every object it makes.
const (
	LabelDaemon    = "stsd.daemon"    // id of the store that made it
	LabelNamespace = "stsd.namespace" //
	LabelSet       = "stsd.set"       //
	LabelOrdinal   = "stsd.ordinal"   //
	LabelRevision  = "stsd.revision"  // name of the revision
	LabelContainer = "stsd.container" // name of the container block
	LabelKind      = "stsd.kind"      // KindInit, KindSidecar, KindMain, KindSandbox; none: KindMain
	LabelSandbox   = "stsd.sandbox"   // id of the sandbox that the container joined
	LabelClaim     = "stsd.claim"     // on volumes
	LabelScratch   = "stsd.scratch"   // on volumes of scratch folders: the block's name
	LabelRestarts  = "stsd.restarts"  // restart count of this container's pod when it was made
	LabelRendering = "stsd.rendering" // digest of the PodSpec it was made from
	LabelSteady    = "stsd.steady"    // Steady of that PodSpec
	LabelService   = "stsd.service"   //
	LabelUnasked   = "stsd.unasked"   // on a volume that an engine made by itself, because the one to mount was gone: id of the store
)
