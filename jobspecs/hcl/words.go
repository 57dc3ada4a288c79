package hcl

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// errLater is said about everything that the language has and this version does
// not do.
var errLater = errors.New("not supported yet")

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

// foreign words of Kubernetes, Nomad, Compose and Terraform, with what says the
// same here.
var foreign = map[string]string{
	"auto_revert":                          `on_failure = "rollback" in the update block`,
	"build":                                "an image made beforehand",
	"capabilities":                         "cap_add and cap_drop in the security block",
	"containerPort":                        "container in a port block",
	"containers":                           `a container block: container "NAME" { … }`,
	"count":                                "replicas",
	"depends_on":                           "start_after in the statefulset block",
	"dnsConfig":                            "the dns block",
	"dynamic":                              "a for expression; dynamic blocks are not part of the language",
	"emptyDir":                             `a scratch block: scratch "NAME" { … }`,
	"entrypoint":                           "command in the container block",
	"environment":                          "env in the container block: env = { NAME = \"value\" }",
	"for_each":                             "replicas",
	"group":                                "a statefulset block",
	"health_check":                         `a probe block: probe "readiness" { … }`,
	"healthcheck":                          `a probe block: probe "readiness" { … }`,
	"hostAliases":                          "extra_hosts",
	"hostPath":                             `a bind block: bind "NAME" { source = "/path" }`,
	"hostname":                             "nothing: a member's host name is its own name, such as web-0",
	"imagePullPolicy":                      "pull",
	"imagePullSecrets":                     "a registry_auth block in the container",
	"initContainers":                       "an init block",
	"job":                                  "a statefulset block",
	"kill_signal":                          "stop_signal in the container block",
	"kill_timeout":                         "termination_grace",
	"limits":                               "the resources block: cpu, memory",
	"livenessProbe":                        `probe "liveness" { … }`,
	"max_parallel":                         "max_unavailable in the update block",
	"mem_limit":                            "memory in the resources block",
	"minReadySeconds":                      "min_ready in the update block",
	"min_healthy_time":                     "min_ready in the update block",
	"mountPath":                            "path in a mount block",
	"parallelism":                          "max_unavailable in the update block",
	"persistentVolumeClaimRetentionPolicy": "on_scale_down and on_delete in a volume block",
	"pids_limit":                           "pids in the resources block",
	"podManagementPolicy":                  "pod_management",
	"ports":                                `port blocks in the container: port "NAME" { container = 80 }`,
	"readOnlyRootFilesystem":               "read_only_root",
	"read_only_root_filesystem":            "read_only_root",
	"readinessProbe":                       `probe "readiness" { … }`,
	"revisionHistoryLimit":                 "revision_history_limit",
	"runAsUser":                            "user in the container block",
	"securityContext":                      "the security block",
	"serviceName":                          "service",
	"services":                             "statefulset blocks",
	"shareProcessNamespace":                "share_processes in the statefulset block",
	"startupProbe":                         `probe "startup" { … }`,
	"stop_grace_period":                    "termination_grace",
	"task":                                 `a container block: container "NAME" { … }`,
	"template":                             "a file block in the container; the template is the statefulset block itself",
	"terminationGracePeriodSeconds":        "termination_grace, with a unit: \"30s\"",
	"tmpfs":                                `a scratch block: scratch "NAME" { medium = "memory" }`,
	"updateStrategy":                       "the update block",
	"volumeClaimTemplates":                 `volume blocks: volume "NAME" { … }`,
	"volumeMounts":                         `mount blocks in the container: mount "CLAIM" { path = "/data" }`,
	"volume_mount":                         `a mount block in the container: mount "CLAIM" { path = "/data" }`,
	"volumes":                              `volume blocks: volume "NAME" { … }`,
	"workdir":                              "working_dir",
	"workingDir":                           "working_dir",
}

// cure says what to write instead of an unknown name, as a sentence, or "".
func cure(name string, known []string) string {
	if here, ok := foreign[name]; ok {
		return fmt.Sprintf("Its name here: %s.", here)
	}
	if near := nearest(snakeCase(name), known); near != "" {
		return fmt.Sprintf("Did you mean %q?", near)
	}
	return ""
}

var capital = regexp.MustCompile(`[A-Z]`)

// snakeCase turns Kubernetes' camelCase into the way names are written here.
func snakeCase(s string) string {
	return strings.TrimPrefix(capital.ReplaceAllStringFunc(s, func(c string) string { return "_" + strings.ToLower(c) }), "_")
}

// didYouMean ends a message with the nearest of the known words, if one is near.
func didYouMean(s string, known []string) string {
	if near := nearest(s, known); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}

// nearest is the known word that takes the fewest edits, "" when none is near.
func nearest(s string, known []string) string {
	best, limit := "", min(3, 1+len(s)/3)
	if len(s) > 64 {
		return ""
	}
	for _, k := range known {
		if d := distance(s, k); d < limit || k == s {
			best, limit = k, d
		}
	}
	return best
}

// distance counts insertions, deletions, replacements and swaps of neighbours.
func distance(a, b string) int {
	before, row := []int(nil), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next := make([]int, len(b)+1)
		next[0] = i
		for j := 1; j <= len(b); j++ {
			next[j] = min(row[j]+1, next[j-1]+1, row[j-1]+cost(a[i-1], b[j-1]))
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], before[j-2]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}

func cost(a, b byte) int {
	if a == b {
		return 0
	}
	return 1
}
