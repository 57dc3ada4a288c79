package daemon

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/stsd/stsd/daemon/planner"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

// causes are what lies behind the reason of a member's state: what it means, what
// its containers do, and how they ended.
func causes(m *jobspecs.Member, now time.Time) []string {
	var out []string
	if text := meaning(m.Reason); text != "" {
		out = append(out, text)
	}
	for i := range m.Containers {
		c := &m.Containers[i]
		if text := doing(m, c, now); text != "" {
			out = append(out, text)
		}
		if past(m, c, now) {
			continue
		}
		if text := ended(c); text != "" {
			out = append(out, text)
		}
	}
	return out
}

// meaning says what a reason means, where its name and message may not do.
func meaning(reason string) string {
	switch reason {
	case runtime.ReasonInitRunning:
		return "its init containers run to their end, one after the other, before the rest"
	case runtime.ReasonPostStart:
		return "a container counts as started once its post_start hook has ended, for which it has no time-out; what the hook prints stands in no log"
	case runtime.ReasonPostStartFailed:
		return "a container whose post_start hook fails is started anew"
	case runtime.ReasonPreStop:
		return "the stop signal follows its pre_stop hook, and the kill follows when its termination_grace is over"
	case runtime.ReasonStopRequested:
		return "a container that does not end by itself is killed when its termination_grace is over"
	case runtime.ReasonSandbox:
		return "the container that holds what its containers share has ended: all of them begin again, init containers too"
	case runtime.ReasonWrongPlatform:
		return "the image is made for another architecture than that of this host"
	case runtime.ReasonRunsAsRoot:
		return `run_as_non_root is set, and the user is root or a name that cannot be looked up: write user = "UID:GID"`
	case runtime.ReasonNoMemoryFolder:
		return "sensitive files are kept in memory only: stsd has to be root, to mount a tmpfs below its run folder, or needs a /dev/shm that it may write to"
	case runtime.ReasonNoAddress:
		return "every address of the network is reserved for a member or its volume"
	case runtime.ReasonWaitingForFence:
		return "two containers must never run for one member: the earlier one has to end first"
	case runtime.ReasonPaused:
		return "somebody paused it at the engine"
	case runtime.ReasonRenamed:
		return "it runs as before; what looks for its container by name at the engine does not find it"
	case runtime.ReasonEngineRestarted:
		return "it did not run when the engine was connected, and is made anew"
	case runtime.ReasonRemoved:
		return "somebody removed its container, and it is made anew"
	case planner.ReasonByUser:
		return "it stays down until it is started again; nobody waits for it"
	case planner.ReasonHookFailed:
		return "its hook is tried again with back-off; --force of the verb that changes the set goes on without it, on_failure = \"continue\" makes its failures count for nothing"
	case planner.ReasonDisconnected:
		return "who is on that network does not reach it"
	case planner.ReasonVolumeNearlyFull, planner.ReasonVolumeOverSize:
		return "where its driver has no quota, a size is a limit that is watched: nothing keeps the member from writing more; a larger size in the file counts at once and restarts nobody"
	}
	return ""
}

// doing tells of a container that holds up the others how long it has run.
func doing(m *jobspecs.Member, c *jobspecs.MemberContainer, now time.Time) string {
	if c.State != "running" || c.StartedAt == nil {
		return ""
	}
	who := kindNamed(c.Kind, c.Name)
	switch {
	case c.Kind == jobspecs.KindInit:
		return fmt.Sprintf("%s has run for %s", who, lasting(*c.StartedAt, now))
	case m.Phase == string(runtime.Stopping) && len(m.Containers) > 1:
		return who + " has not ended yet"
	case !c.Ready && len(m.Containers) > 1 && (c.Message == "" || !strings.Contains(m.Message, c.Message)):
		return who + " is not ready" + after(c.Message)
	}
	return ""
}

// ended tells how a container ended last.
func ended(c *jobspecs.MemberContainer) string {
	who := kindNamed(c.Kind, c.Name)
	switch {
	case c.OOMKilled:
		return who + " was killed because it ran out of memory"
	case c.Signal != "":
		return fmt.Sprintf("%s ended by signal %s", who, c.Signal)
	case c.ExitCode != nil:
		restarts := "restarts"
		if c.Restarts == 1 {
			restarts = "restart"
		}
		return fmt.Sprintf("%s last ended with exit code %d, %d %s", who, *c.ExitCode, c.Restarts, restarts)
	}
	return ""
}

// past tells whether a container's last end says nothing of how its member is now:
// it did what it is for, runs again and is well or has run for long, was not started
// anew after it, or something else keeps the member.
func past(m *jobspecs.Member, c *jobspecs.MemberContainer, now time.Time) bool {
	switch {
	case c.Kind == jobspecs.KindInit && c.ExitCode != nil && *c.ExitCode == 0:
		return true
	case over(c.State):
		return false
	case c.State == "running" && (c.Ready || c.StartedAt != nil && now.Sub(*c.StartedAt) >= longAgo):
		return true
	case m.Phase == string(runtime.Backoff):
		return false
	}
	return c.State == "paused" || c.Restarts == 0 || !beginning(m.Phase)
}

// beginning tells whether a phase is one of a member that is not ready yet.
func beginning(phase string) bool {
	switch runtime.Phase(phase) {
	case runtime.Initializing, runtime.Starting, runtime.Running:
		return true
	}
	return false
}

// longAgo is after how long the end of a container before is no reason any more.
const longAgo = 10 * time.Minute

// advice is what to type next.
func advice(m *jobspecs.Member) []string {
	name, set := typed(m.Namespace, m.Name), typed(m.Namespace, m.Set)
	network := jobspecs.NetworkName(m.Namespace)
	image := imageOf(m)
	switch m.Reason {
	case runtime.ReasonImageMissing, runtime.ReasonImageUnknown:
		return []string{"docker image ls", fmt.Sprintf("stsd set image %s IMAGE", set)}
	case runtime.ReasonPullFailed:
		return []string{"docker pull " + image}
	case runtime.ReasonAccessDenied:
		return []string{
			"docker login " + jobspecs.Registry(image) + ", as the user that stsd runs as",
			"stsd apply FILE, with a registry_auth block for " + jobspecs.Registry(image) + " in its container",
		}
	case runtime.ReasonWrongPlatform:
		return []string{"docker image inspect -f '{{.Os}}/{{.Architecture}}' " + image, fmt.Sprintf("stsd set image %s IMAGE", set)}
	case runtime.ReasonRunsAsRoot:
		return []string{"docker image inspect -f '{{.Config.User}}' " + image}
	case runtime.ReasonNoMemoryFolder:
		return []string{"findmnt -t tmpfs"}
	case runtime.ReasonNameTaken:
		return []string{"docker inspect " + jobspecs.ContainerName(m.Namespace, m.Name, "")}
	case runtime.ReasonRenamed:
		taken := jobspecs.ContainerName(m.Namespace, m.Name, partWhere(m, func(c *jobspecs.MemberContainer) bool { return c.Reason == m.Reason }))
		return []string{"docker inspect " + taken, "docker rename " + taken + " ANOTHER-NAME, and it has its name back"}
	case runtime.ReasonPortTaken:
		if owner := ownSet(m.Message); owner != "" {
			return []string{"stsd status " + owner}
		}
		return []string{"ss -ltnp"}
	case runtime.ReasonAddressTaken, runtime.ReasonNetworkTaken, runtime.ReasonNoAddress, planner.ReasonDisconnected:
		return []string{"docker network inspect " + network}
	case runtime.ReasonNetworkMissing:
		return []string{"docker network ls"}
	case runtime.ReasonVolumeForeign:
		return []string{"docker volume ls"}
	case planner.ReasonByUser:
		return []string{"stsd start " + name}
	case planner.ReasonHookFailed:
		return []string{"stsd events " + name, "stsd exec " + name + " -- COMMAND, to see what keeps it"}
	case planner.ReasonVolumeNearlyFull, planner.ReasonVolumeOverSize:
		return []string{"stsd status " + set, "stsd apply FILE, with a larger size"}
	case planner.ReasonVolumeLost:
		return []string{fmt.Sprintf("stsd replace %s --fresh-volume", name)}
	case runtime.ReasonPaused:
		return []string{"docker unpause " + jobspecs.ContainerName(m.Namespace, m.Name, partWhere(m, paused))}
	case runtime.ReasonUnreachable, runtime.ReasonLookFailed:
		return []string{"stsd version"}
	case runtime.ReasonCreateFailed:
		return createAdvice(m.Message)
	case runtime.ReasonSandbox, runtime.ReasonWaitingForFence:
		return []string{"stsd events " + name}
	}
	return logAdvice(m, name)
}

// logAdvice is where to read what a container says.
func logAdvice(m *jobspecs.Member, name string) []string {
	c, member := guilty(m), name
	if len(m.Containers) > 1 && c != nil {
		name += " -c " + c.Name
	}
	if m.Reason == runtime.ReasonBadCommand {
		return []string{"stsd apply FILE, with another command, args or working_dir" + ofContainer(m, c)}
	}
	switch m.Reason {
	case runtime.ReasonPostStart:
		return []string{"stsd exec " + name + " -- ps, which shows whether the hook's command still runs", "stsd apply FILE, with a hook that ends"}
	case runtime.ReasonExited, runtime.ReasonOOMKilled, runtime.ReasonLiveness, runtime.ReasonStartup, runtime.ReasonPostStartFailed:
		if c != nil && c.Kind == jobspecs.KindInit {
			return []string{"stsd logs " + name, "stsd events " + member}
		}
		return []string{"stsd logs --previous " + name, "stsd events " + member}
	case runtime.ReasonNotReady, runtime.ReasonStartupPending, runtime.ReasonInitRunning,
		runtime.ReasonPreStop, runtime.ReasonStopRequested:
		return []string{"stsd logs " + name}
	}
	return nil
}

// ofContainer names the container where a member has several.
func ofContainer(m *jobspecs.Member, c *jobspecs.MemberContainer) string {
	if c == nil || len(m.Containers) < 2 {
		return ""
	}
	return " of " + kindNamed(c.Kind, c.Name)
}

// ourSet is how an engine's message names a set of ours.
var ourSet = regexp.MustCompile(`\bours, of ([a-z0-9-]+)/([a-z0-9-]+)`)

// ownSet is the set of ours that a message names as an owner, as it is typed; ""
// none.
func ownSet(message string) string {
	m := ourSet.FindStringSubmatch(message)
	if m == nil {
		return ""
	}
	return typed(m[1], m[2])
}

func paused(c *jobspecs.MemberContainer) bool { return c.State == "paused" }

// partWhere is the part of its name at the engine of the first container that is meant.
func partWhere(m *jobspecs.Member, meant func(*jobspecs.MemberContainer) bool) string {
	main := false // seen
	for i := range m.Containers {
		c := &m.Containers[i]
		first := c.Kind == jobspecs.KindMain && !main
		main = main || first
		switch {
		case !meant(c):
		case first:
			return ""
		default:
			return c.Name
		}
	}
	return ""
}

// createCures are what to do about what an engine refuses, by what its message
// says; the first that fits counts.
var createCures = []struct{ said, cure string }{
	{"bind source path does not exist", "mkdir -p the source of the bind on the host; it is tried again by itself"},
	{"gpus", "install the driver's container runtime on the host, or stsd apply FILE without gpus"},
	{"device driver", "install the driver's container runtime on the host, or stsd apply FILE without gpus"},
	{"sysctl", "stsd apply FILE, without that sysctl; those of the host are set with sysctl -w there"},
	{"ulimit", "stsd apply FILE, with a lower limit"},
	{"memory", "stsd apply FILE, with another limit of memory"},
	{"cpu", "stsd apply FILE, with a cpu that the host has"},
	{"no such file or directory", "stsd apply FILE, with a path that is there; it is tried again by itself"},
	{"no space left", "df -h, and docker system df: the host's disk is full"},
}

func createAdvice(message string) []string {
	lower := strings.ToLower(message)
	for _, c := range createCures {
		if strings.Contains(lower, c.said) {
			return []string{c.cure}
		}
	}
	return []string{"stsd apply FILE, with what the engine refuses mended; it is tried again by itself"}
}

// guilty is the container that a member's reason is about: the one that has it,
// else the first that runs and is not ready; nil: none is known.
func guilty(m *jobspecs.Member) *jobspecs.MemberContainer {
	for i := range m.Containers {
		if m.Reason != "" && m.Containers[i].Reason == m.Reason {
			return &m.Containers[i]
		}
	}
	for i := range m.Containers {
		if c := &m.Containers[i]; c.State == "running" && !c.Ready {
			return c
		}
	}
	return nil
}

// imageOf is the image that a member's reason is about.
func imageOf(m *jobspecs.Member) string {
	if c := guilty(m); c != nil && m.Reason != "" && c.Reason == m.Reason && c.Image != "" {
		return c.Image
	}
	return m.Image
}
