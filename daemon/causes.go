package daemon

import (
	"fmt"
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
		if c.Kind == jobspecs.KindInit && c.ExitCode != nil && *c.ExitCode == 0 {
			continue // it did what it is for
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
		return "a container counts as started once its post_start hook has ended"
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
	case runtime.ReasonEngineRestarted:
		return "it did not run when the engine was connected, and is made anew"
	case runtime.ReasonRemoved:
		return "somebody removed its container, and it is made anew"
	case planner.ReasonDisconnected:
		return "nobody reaches a container that is not on its network"
	}
	return ""
}

// doing tells of a container that holds up the others how long it has run.
func doing(m *jobspecs.Member, c *jobspecs.MemberContainer, now time.Time) string {
	if c.State != "running" || c.StartedAt == nil {
		return ""
	}
	switch {
	case c.Kind == jobspecs.KindInit:
		return fmt.Sprintf("init container %s has run for %s", c.Name, lasting(*c.StartedAt, now))
	case m.Phase == string(runtime.Stopping) && len(m.Containers) > 1:
		return fmt.Sprintf("container %s has not ended yet", c.Name)
	case !c.Ready && len(m.Containers) > 1:
		return fmt.Sprintf("container %s is not ready", c.Name) + after(c.Message)
	}
	return ""
}

// ended tells how a container ended last.
func ended(c *jobspecs.MemberContainer) string {
	switch {
	case c.OOMKilled:
		return fmt.Sprintf("container %s was killed because it ran out of memory", c.Name)
	case c.Signal != "":
		return fmt.Sprintf("container %s ended by signal %s", c.Name, c.Signal)
	case c.ExitCode != nil:
		return fmt.Sprintf("container %s last ended with exit code %d, %d restarts", c.Name, *c.ExitCode, c.Restarts)
	}
	return ""
}

// advice is what to type next.
func advice(m *jobspecs.Member) []string {
	name, set := typed(m.Namespace, m.Name), typed(m.Namespace, m.Set)
	network := jobspecs.NetworkName(m.Namespace)
	image := imageOf(m)
	switch m.Reason {
	case runtime.ReasonImageMissing, runtime.ReasonImageUnknown:
		return []string{"docker image ls", fmt.Sprintf("stsd set image %s IMAGE", set)}
	case runtime.ReasonPullFailed, runtime.ReasonAccessDenied:
		return []string{"docker pull " + image}
	case runtime.ReasonWrongPlatform:
		return []string{"docker image inspect -f '{{.Os}}/{{.Architecture}}' " + image, fmt.Sprintf("stsd set image %s IMAGE", set)}
	case runtime.ReasonRunsAsRoot:
		return []string{"docker image inspect -f '{{.Config.User}}' " + image}
	case runtime.ReasonNoMemoryFolder:
		return []string{"findmnt -t tmpfs"}
	case runtime.ReasonNameTaken:
		return []string{"docker inspect " + jobspecs.ContainerName(m.Namespace, m.Name, "")}
	case runtime.ReasonPortTaken:
		return []string{"ss -ltnp"}
	case runtime.ReasonAddressTaken, runtime.ReasonNetworkTaken, runtime.ReasonNoAddress, planner.ReasonDisconnected:
		return []string{"docker network inspect " + network}
	case runtime.ReasonVolumeForeign:
		return []string{"docker volume ls"}
	case planner.ReasonVolumeLost:
		return []string{fmt.Sprintf("stsd replace %s --fresh-volume", name)}
	case runtime.ReasonPaused:
		return []string{"docker unpause " + jobspecs.ContainerName(m.Namespace, m.Name, "")}
	case runtime.ReasonUnreachable, runtime.ReasonLookFailed:
		return []string{"stsd version"}
	case runtime.ReasonSandbox, runtime.ReasonCreateFailed, runtime.ReasonWaitingForFence:
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
	switch m.Reason {
	case runtime.ReasonExited, runtime.ReasonOOMKilled, runtime.ReasonLiveness, runtime.ReasonStartup, runtime.ReasonBadCommand, runtime.ReasonPostStartFailed:
		if c != nil && c.Kind == jobspecs.KindInit {
			return []string{"stsd logs " + name, "stsd events " + member}
		}
		return []string{"stsd logs --previous " + name, "stsd events " + member}
	case runtime.ReasonNotReady, runtime.ReasonStartupPending, runtime.ReasonInitRunning, runtime.ReasonPostStart,
		runtime.ReasonPreStop, runtime.ReasonStopRequested:
		return []string{"stsd logs " + name}
	}
	return nil
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
