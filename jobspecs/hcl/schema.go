package hcl

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/stsd/stsd/jobspecs"
)

// A block of the language: what may stand in it. docs/spec.md is made from these.
type block struct {
	name   string
	label  string             // word for its label in the docs; empty: it has none
	check  func(string) error // of the label
	list   bool               // several blocks may have one label (mount)
	later  bool               // known, refused: not supported yet
	doc    string
	attrs  []attr
	blocks []*block
	like   *block            // takes what this one takes, but for what never says
	never  map[string]string // names it refuses, with the reason
	one    bool              // exactly one of its blocks must stand
	// normalLabel is the form of the label in a template; nil: as it is.
	normalLabel func(string) (string, error)
}

// An attr is one attribute of a block.
type attr struct {
	name     string
	kind     *kind
	required bool
	member   bool // may use self and set
	setOnly  bool // of those that may: not self
	later    bool // known, refused: not supported yet
	empty    bool // written empty it is as if absent
	secret   bool // sensitive by its nature, whatever it is made of
	def      string
	doc      string
}

func (b *block) attr(name string) (attr, bool) {
	i := slices.IndexFunc(b.attrs, func(a attr) bool { return a.name == name })
	if i < 0 {
		return attr{}, false
	}
	return b.attrs[i], true
}

func (b *block) block(name string) *block {
	i := slices.IndexFunc(b.blocks, func(c *block) bool { return c.name == name })
	if i < 0 {
		return nil
	}
	return b.blocks[i]
}

// names of everything that may stand in the block.
func (b *block) names() []string {
	var names []string
	for _, a := range b.attrs {
		names = append(names, a.name)
	}
	for _, c := range b.blocks {
		names = append(names, c.name)
	}
	return names
}

var fileSchema = &block{
	blocks: []*block{
		{name: "variable", label: "NAME", check: checkIdentifier, doc: "a value given from outside: `-var NAME=…`, `--var-file`, `STSD_VAR_NAME`; one not given again keeps its stored value", attrs: []attr{
			{name: "type", doc: "a type as in Terraform: `string`, `number`, `bool`, `list(string)`, `map(number)`, `object({…})`", def: "any; a value from outside is a string"},
			{name: "default", doc: "its value when none is given; may call functions, `env()` too, but use no variable"},
			{name: "description", doc: "for people"},
			{name: "sensitive", doc: "`true`: shown as (sensitive) everywhere, and stored sealed", def: "`false`"},
		}, blocks: []*block{
			{name: "validation", doc: "a rule for the value; several may stand", attrs: []attr{
				{name: "condition", required: true, doc: "an expression over `var.*` that must be true"},
				{name: "error_message", required: true, doc: "what is said when it is not"},
			}},
		}},
		{name: "locals", doc: "names for expressions, `local.NAME`; several blocks may stand"},
		setSchema,
		secretSchema,
	},
}

var setSchema = &block{
	name: "statefulset", label: "NAME", check: checkLabel,
	doc: "one set; several may stand in a file",
	attrs: []attr{
		{name: "namespace", kind: label, def: "`default`", doc: "names are unique within it; it has its own network and DNS domain"},
		{name: "replicas", kind: number(0, jobspecs.MaxReplicas), def: "the stored count; 1 for a new set", doc: "how many members"},
		{name: "start_ordinal", kind: number(0, math.MaxInt32), def: "0", doc: "the first member's number"},
		{name: "service", kind: label, def: "the set's name", doc: "the DNS name over the members: `redis-0.SERVICE.default.svc.cluster.local`"},
		{name: "pod_management", kind: oneOf(jobspecs.Ordered, jobspecs.Parallel), def: "`ordered`", doc: "`ordered`: member by member; `parallel`: creation, scaling and deletion at once"},
		{name: "recovery_wait", kind: duration, def: "0s", doc: "stagger between members that come back"},
		{name: "revision_history_limit", kind: number(-1, math.MaxInt32), def: "10", doc: "how many old revisions are kept; -1 keeps all"},
		{name: "termination_grace", kind: duration, def: "30s", doc: "from the stop signal to the kill"},
		{name: "labels", kind: labels, member: true, empty: true, doc: "put on every member's containers"},
		{name: "extra_hosts", kind: hosts, member: true, empty: true, doc: "host name → address, added to the members' hosts file"},
		{name: "sysctls", kind: sysctls, member: true, empty: true, doc: "`net.*` of the member"},
		{name: "share_processes", kind: boolean, def: "`false`", doc: "one process namespace for all containers of a member"},
		{name: "reserve", kind: ordinals, def: "none", doc: "ordinals that are left out; others take their place, above"},
		{name: "start_after", kind: setNames, def: "none", doc: "sets of the namespace that must be available before a member's first start; repairs do not wait"},
		{name: "networks", kind: networks, empty: true, def: "none", doc: "networks of others that a member joins beside its own: `redis-0`, `redis` and `redis-0.redis` lead to it there. A member waits for one that is not there"},
	},
	blocks: []*block{
		{name: "locals", doc: "names for expressions that may use `self` and `set`"},
		updateSchema, guardSchema, dnsSchema, hostAccessSchema, volumeSchema, scratchSchema, bindSchema, containerSchema, initSchema, sidecarSchema, hookSchema,
	},
}

var updateSchema = &block{
	name: "update", doc: "how a changed template reaches the members",
	attrs: []attr{
		{name: "strategy", kind: oneOf(jobspecs.Rolling, jobspecs.OnDelete), def: "`rolling`", doc: "`on_delete`: a member changes when it is restarted by hand"},
		{name: "partition", kind: number(0, math.MaxInt32), def: "0", doc: "ordinals below it keep the old revision"},
		{name: "max_unavailable", kind: percent, def: "1", doc: "how many members, or `\"30%\"`, may be away at once; those that `stsd stop` took down do not count (a `guard` counts them)"},
		{name: "min_ready", kind: duration, def: "0s", doc: "ready for this long counts as available"},
		{name: "deadline", kind: duration, def: "10m", doc: "how long a new member may take to become available, pulls and init containers not counted; 0s: for ever"},
		{name: "on_failure", kind: oneOf(jobspecs.FailPause, jobspecs.FailRollback, jobspecs.FailWait), def: "`pause`", doc: "when a member misses the deadline: `pause` stands still, `rollback` takes the changed members back to the last revision that was complete, `wait` goes on"},
		{name: "order", kind: oneOf(jobspecs.OrderDescending, jobspecs.OrderRole), def: "`descending`", doc: "`role`: by the role probe, the member whose role is `last` goes last"},
		{name: "last", kind: text, def: "none", doc: "with `order = \"role\"`: the role that goes last"},
	},
}

var guardSchema = &block{
	name: "guard", doc: "refuses voluntary stops of members, whoever asks; `--force` overrides it. Deleting the set is not held up",
	attrs: []attr{
		{name: "min_available", kind: number(0, jobspecs.MaxReplicas), required: true, member: true, setOnly: true, doc: "how many members stay available; may use `set`, but not `self`"},
	},
}

var hookSchema = &block{
	name: "hook", label: "NAME", check: checkLabel,
	doc: "a command that runs in a container when the membership changes, never for a restart or an update. It finds STSD_REASON (join, leave, set_ready), STSD_MEMBER and STSD_ORDINAL (who joins or leaves), STSD_SET and STSD_NAMESPACE in its environment; `self` is that member too. It may run again after a crash of the daemon, though not beside itself. Those of one kind run in the order in which they are written. A member that has ended, or that never was available, leaves without those that run in itself",
	attrs: []attr{
		{name: "on", kind: oneOf(jobspecs.OnJoin, jobspecs.OnLeave, jobspecs.OnSetReady), required: true, doc: "`join`: a member of a set that was formed is available for the first time; `leave`: before a member is stopped because its ordinal goes; `set_ready`: all members are ready at the same time"},
		{name: "command", kind: commandLine, required: true, member: true, doc: "an exit code other than 0 fails"},
		{name: "once", kind: boolean, def: "`false`", doc: "of `set_ready`: once in the life of the set, instead of again after each change of its members"},
		{name: "ordinal", kind: number(0, math.MaxInt32), def: "the member that joins or leaves; for `set_ready` the first", doc: "where it runs"},
		{name: "container", kind: label, def: "the first container", doc: "in which container or sidecar"},
		{name: "timeout", kind: positive, def: "1m", doc: "it is killed then, and has failed"},
		{name: "on_failure", kind: oneOf(jobspecs.FailAbort, jobspecs.FailContinue), def: "`abort`", doc: "`abort`: it is tried again, and a member that wants to leave stays; `continue`: as if it had succeeded"},
	},
}

var dnsSchema = &block{
	name: "dns", doc: "which names are answered when",
	attrs: []attr{
		{name: "member_names", kind: oneOf(jobspecs.Always, jobspecs.Running, jobspecs.Ready), def: "`always`", doc: "when a member's own name is answered"},
		{name: "set_name", kind: oneOf(jobspecs.Peers, jobspecs.Ready, jobspecs.Running), def: "`peers`", doc: "which members the set's name gives: `peers` gives running ones to members, ready ones to others"},
		{name: "ttl", kind: duration, def: "5s", doc: "how long an answer may be kept"},
		{name: "negative_ttl", kind: duration, def: "2s", doc: "how long \"no such name\" may be kept"},
	},
}

var hostAccessSchema = &block{
	name: "host_access", doc: "how programs of the engine's own machine reach members; a running member changes with its next start",
	attrs: []attr{
		{name: "mode", kind: oneOf(jobspecs.HostDirect, jobspecs.HostLoopback, jobspecs.HostPorts, jobspecs.HostNone), def: "`direct` on Linux, `loopback` elsewhere", doc: "`direct`: at the member's address; `loopback`: at a loopback address of the member's own, where its ports are published under their own numbers; `ports`: at 127.0.0.1, under its port numbers plus the ordinal; `none`: nothing is published, and their names are not answered there; on Linux a member's own address can still be reached, as that of any container"},
	},
}

var volumeSchema = &block{
	name: "volume", label: "CLAIM", check: checkLabel,
	doc: "one volume for each ordinal, bound again for life",
	attrs: []attr{
		{name: "size", kind: size, member: true, doc: "a quota where the driver has one, else a watched limit", def: "none"},
		{name: "driver", kind: text, def: "`local`", doc: "Docker's volume driver"},
		{name: "options", kind: stringMap, member: true, empty: true, doc: "the driver's options"},
		{name: "on_scale_down", kind: oneOf(jobspecs.Retain, jobspecs.Delete), def: "`retain`", doc: "what becomes of the volume when its ordinal goes"},
		{name: "on_delete", kind: oneOf(jobspecs.Retain, jobspecs.Delete), def: "`retain`", doc: "what becomes of the volumes when the set is deleted"},
	},
}

var scratchSchema = &block{
	name: "scratch", label: "NAME", check: checkLabel,
	doc: "a folder that lives as long as the member: over restarts of its containers, not over its own end",
	attrs: []attr{
		{name: "medium", kind: oneOf(jobspecs.MediumDisk, jobspecs.MediumMemory), def: "`disk`", doc: "memory: its content counts as memory of the containers"},
		{name: "size", kind: size, member: true, def: "none", doc: "the most it holds; on disk a watched limit"},
	},
}

var bindSchema = &block{
	name: "bind", label: "NAME", check: checkLabel,
	doc: "a path of the host",
	attrs: []attr{
		{name: "source", kind: absolute, required: true, member: true},
		{name: "read_only", kind: boolean, member: true, def: "`false`"},
	},
}

var containerAttrs = []attr{
	{name: "image", kind: image, required: true, member: true, doc: "a name such as `redis:7`"},
	{name: "pull", kind: oneOf(jobspecs.PullMissing, jobspecs.PullAlways, jobspecs.PullNever), def: "`missing`", doc: "when the image is pulled"},
	{name: "command", kind: argv, member: true, def: "the image's", doc: "replaces the image's entrypoint"},
	{name: "args", kind: argv, member: true, def: "the image's", doc: "replaces the image's command"},
	{name: "env", kind: env, member: true, empty: true, doc: "environment variables; null leaves one out"},
	{name: "user", kind: word, member: true, def: "the image's", doc: "`uid`, `uid:gid` or names of the image"},
	{name: "working_dir", kind: absolute, member: true, def: "the image's"},
	{name: "stop_signal", kind: signal, member: true, def: "the image's, else SIGTERM"},
	{name: "ulimits", kind: ulimits, member: true, empty: true, def: "the engine's", doc: "`nofile = 65536`, `\"1024:65536\"` for soft and hard, `\"unlimited\"`"},
}

var containerBlocks = []*block{
	portSchema, mountSchema, fileSchemaBlock, probeSchema, lifecycleSchema, restartSchema, resourcesSchema, securitySchema, logSchema, authSchema,
}

var containerSchema = &block{
	name: jobspecs.KindMain, label: "NAME", check: checkContainer,
	doc:   "what runs; one at least. Several share the network, and their names differ from each other's and from those of init and sidecar blocks",
	attrs: containerAttrs, blocks: containerBlocks,
}

var sidecarSchema = &block{
	name: jobspecs.KindSidecar, label: "NAME", check: checkContainer, like: containerSchema,
	doc:   "begins before the containers, at its place among the init blocks, and ends after them",
	attrs: containerAttrs, blocks: containerBlocks,
}

var initSchema = &block{
	name: jobspecs.KindInit, label: "NAME", check: checkContainer, like: containerSchema,
	doc:    "runs to its end, at its place among the init and sidecar blocks, before the containers begin",
	attrs:  containerAttrs,
	blocks: slices.DeleteFunc(slices.Clone(containerBlocks), func(b *block) bool { return neverInInit[b.name] != "" }),
	never:  neverInInit,
}

var neverInInit = map[string]string{
	"port":      "Nothing reaches an init container: the member's ports belong in a container or sidecar block.",
	"probe":     "An init container is not probed: it has done its work when it ends with 0.",
	"lifecycle": "An init container has no hooks: it runs to its end.",
}

// containerKinds are the blocks that make a container.
var containerKinds = []string{jobspecs.KindInit, jobspecs.KindSidecar, jobspecs.KindMain}

var portSchema = &block{
	name: "port", label: "NAME", check: checkPortName, doc: "a port of the container",
	attrs: []attr{
		{name: "container", kind: port, required: true, member: true, doc: "its number inside"},
		{name: "protocol", kind: oneOf("tcp", "udp", "sctp"), def: "`tcp`"},
		{name: "host", kind: port, member: true, def: "not published", doc: "its number on the host"},
		{name: "host_ip", kind: address, member: true, def: "`127.0.0.1`", doc: "where it is published"},
	},
}

var mountSchema = &block{
	name: "mount", label: "NAME", list: true, doc: "puts the volume, scratch or bind block of this name at a path; one may be mounted several times",
	attrs: []attr{
		{name: "path", kind: mountPoint, required: true, member: true},
		{name: "sub_path", kind: subPath, member: true, def: "the whole", doc: "a folder inside of it, made where missing; not of a bind"},
		{name: "read_only", kind: boolean, member: true, def: "`false`"},
	},
}

var fileSchemaBlock = &block{
	name: "file", label: "PATH", check: checkFilePath, normalLabel: canonicalPath,
	doc: "a file put into the container before it starts, rendered for each ordinal",
	attrs: []attr{
		{name: "content", kind: text, required: true, member: true},
		{name: "mode", kind: mode, member: true, def: "`\"0644\"`"},
		{name: "owner", kind: owner, member: true, def: "the container's user, else root", doc: "`uid:gid`"},
		{name: "sensitive", kind: boolean, def: "`false`", doc: "kept in memory only and mounted read-only; a content that holds something sensitive makes it so by itself"},
	},
}

var probeKinds = []string{"startup", "readiness", "liveness", "role"}

var probeSchema = &block{
	name: "probe", label: strings.Join(probeKinds, "|"), check: checkProbe, one: true,
	doc: "a check of the container, made by the daemon; exactly one of exec, http, tcp, grpc, log. A role probe takes exec alone: what it prints is the member's role",
	attrs: []attr{
		{name: "initial_delay", kind: duration, member: true, def: "0s", doc: "after the container's start"},
		{name: "period", kind: unhurried, member: true, def: "10s"},
		{name: "timeout", kind: unhurried, member: true, def: "5s"},
		{name: "success_threshold", kind: number(1, 1000000), member: true, def: "1", doc: "successes in a row that make it ready; of readiness only"},
		{name: "failure_threshold", kind: number(1, 1000000), member: true, def: "3", doc: "failures in a row that count; not of role"},
	},
	blocks: []*block{
		execSchema, httpSchema,
		{name: "tcp", doc: "a connection that is accepted", attrs: []attr{
			{name: "port", kind: portRef, required: true, member: true, doc: "a number or the name of a port block"},
		}},
		{name: "grpc", doc: "the gRPC health protocol; SERVING succeeds", attrs: []attr{
			{name: "port", kind: portRef, required: true, member: true, doc: "a number or the name of a port block"},
			{name: "service", kind: text, member: true, def: "the server as a whole"},
		}},
		{name: "log", doc: "a line of the container's output since its start; for startup and readiness", attrs: []attr{
			{name: "pattern", kind: pattern, required: true, member: true, doc: "a regular expression (RE2) that some part of the line matches"},
		}},
	},
}

var execSchema = &block{name: "exec", doc: "a command inside the container; exit code 0 succeeds", attrs: []attr{
	{name: "command", kind: commandLine, required: true, member: true},
}}

var httpSchema = &block{name: "http", doc: "a GET; 200 to 399 succeeds", attrs: []attr{
	{name: "port", kind: portRef, required: true, member: true, doc: "a number or the name of a port block"},
	{name: "path", kind: text, member: true, def: "`/`"},
	{name: "scheme", kind: oneOf("http", "https"), def: "`http`", doc: "certificates are not verified"},
	{name: "headers", kind: headers, member: true, empty: true},
}}

var lifecycleSchema = &block{
	name: "lifecycle", doc: "what is done when the container has started and before it is stopped",
	blocks: []*block{
		{name: "post_start", one: true, doc: "after the start, beside the process; the container is restarted when it fails, and it has no time-out; exactly one of exec (`command`), http (`port`, `path`, `scheme`, `headers`, all as in a probe) and sleep", blocks: handlerBlocks},
		{name: "pre_stop", one: true, doc: "before the stop signal, within termination_grace; exactly one of exec, http (as in post_start) and sleep", blocks: handlerBlocks},
	},
}

var handlerBlocks = []*block{
	execSchema, httpSchema,
	{name: "sleep", doc: "waits", attrs: []attr{
		{name: "duration", kind: positive, required: true, member: true},
	}},
}

var restartSchema = &block{
	name: "restart", doc: "how long a container that ended waits",
	attrs: []attr{
		{name: "first", kind: duration, member: true, def: "0s", doc: "before its first restart"},
		{name: "initial", kind: duration, member: true, def: "1s", doc: "before the next, doubling from then on"},
		{name: "max", kind: duration, member: true, def: "1m", doc: "and never longer than this"},
		{name: "reset", kind: duration, member: true, def: "5m", doc: "a run of this length forgets earlier ends"},
	},
}

var resourcesSchema = &block{
	name: "resources", doc: "limits",
	attrs: []attr{
		{name: "cpu", kind: cores, member: true, def: "no limit", doc: "cores"},
		{name: "memory", kind: memory, member: true, def: "no limit"},
		{name: "memory_reservation", kind: memory, member: true, def: "none", doc: "what is left to it when memory gets short; not more than memory"},
		{name: "pids", kind: number(1, 4194304), member: true, def: "no limit", doc: "processes and threads"},
		{name: "shm_size", kind: someSize, member: true, def: "the engine's", doc: "of /dev/shm"},
		{name: "gpus", kind: gpus, member: true, def: "none", doc: "as `docker run --gpus`: `\"all\"`, a number, `\"device=0,1\"`"},
	},
}

var securitySchema = &block{
	name: "security", doc: "what the processes may do",
	attrs: []attr{
		{name: "privileged", kind: boolean, member: true, def: "`false`", doc: "everything, as root of the host"},
		{name: "read_only_root", kind: boolean, member: true, def: "`false`", doc: "the image's files cannot be changed"},
		{name: "no_new_privileges", kind: boolean, member: true, def: "`false`", doc: "setuid programs give none"},
		{name: "run_as_non_root", kind: boolean, member: true, def: "`false`", doc: "refuse to start as root"},
		{name: "fs_group", kind: number(0, math.MaxInt32), member: true, def: "none", doc: "a group of the processes that owns fresh volumes"},
		{name: "cap_add", kind: capabilities, member: true, doc: "capabilities beyond Docker's default ones: `NET_ADMIN`, or `ALL`"},
		{name: "cap_drop", kind: capabilities, member: true, doc: "capabilities taken away"},
	},
}

var authSchema = &block{
	name: "registry_auth", doc: "who asks the registry for the image; absent: the Docker configuration's credentials",
	attrs: []attr{
		{name: "username", kind: someText, required: true, member: true},
		{name: "password", kind: someText, required: true, member: true, secret: true},
	},
}

var logSchema = &block{
	name: "log", doc: "Docker's log driver",
	attrs: []attr{
		{name: "driver", kind: text, required: true, member: true},
		{name: "options", kind: stringMap, member: true, empty: true},
	},
}

func checkPortName(s string) error {
	if bareNumber.MatchString(s) {
		return fmt.Errorf("%q is a number; a port needs a name, as in port \"http\"", s)
	}
	return checkLabel(s)
}

func checkFilePath(s string) error {
	p, err := canonicalPath(s)
	if err == nil && (p == "/" || strings.HasSuffix(s, "/")) {
		return fmt.Errorf("%q is the path of a folder, not of a file", s)
	}
	if err != nil {
		return err
	}
	return checkOwnPath(p)
}

func checkProbe(s string) error {
	if !slices.Contains(probeKinds, s) {
		return fmt.Errorf("%q is no kind of probe: want %s%s", s, quotedList(probeKinds), didYouMean(s, probeKinds))
	}
	return nil
}

// checkContainer refuses names that stsd gives to parts of a pod itself.
func checkContainer(s string) error {
	if s == jobspecs.PartPrevious || s == jobspecs.PartSandbox {
		return fmt.Errorf("a container cannot be named %q: stsd names a part of each member so", s)
	}
	return checkLabel(s)
}

func checkIdentifier(s string) error {
	if !identifier.MatchString(s) {
		return fmt.Errorf("%q is no name: want letters, digits, dashes and underscores, with a letter first", s)
	}
	return nil
}
