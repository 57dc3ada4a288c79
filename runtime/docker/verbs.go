package docker

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/go-connections/nat"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/runtime/pods"
)

// Start starts a created container. One that runs already is nil.
func (h *Host) Start(ctx context.Context, id string) error {
	done, err := h.slot(ctx)
	if err != nil {
		return err
	}
	defer done()
	err = h.cli().ContainerStart(ctx, id, container.StartOptions{})
	if err == nil {
		if err := h.checkFolders(ctx, id); err != nil {
			return err
		}
		return h.startedHere(ctx, id)
	}
	if sandboxGone(err.Error(), id) {
		return errSandboxGone()
	}
	if reason := startReason(err.Error()); reason != "" {
		return h.explainStart(ctx, id, reason, err)
	}
	if contains(err.Error(), "no such container") {
		return fmt.Errorf("start: %w", pods.ErrNoContainer)
	}
	return h.explainRefusal(ctx, id, err)
}

// explainRefusal says which setting of the container the engine refuses to start
// it with.
func (h *Host) explainRefusal(ctx context.Context, id string, cause error) error {
	asked := &container.HostConfig{}
	if c, err := h.cli().ContainerInspect(ctx, id); err == nil && c.HostConfig != nil {
		asked = c.HostConfig
	}
	return refused(cause, asked, "start")
}

// explainStart finds out who holds what the container needs.
func (h *Host) explainStart(ctx context.Context, id, reason string, cause error) error {
	if reason == runtime.ReasonBadCommand {
		return h.explainCommand(ctx, id, cause)
	}
	c, err := h.cli().ContainerInspect(ctx, id)
	if err != nil {
		return known(reason, cause, "start")
	}
	switch reason {
	case runtime.ReasonPortTaken:
		return h.portTaken(ctx, &c, cause)
	case runtime.ReasonNetworkMissing:
		return h.explainMissing(ctx, &c, cause)
	}
	return h.addressTaken(ctx, &c, cause)
}

func (h *Host) portTaken(ctx context.Context, c *container.InspectResponse, cause error) error {
	key, _ := podOf(c.Config.Labels)
	for port, list := range c.HostConfig.PortBindings {
		for _, b := range list {
			p := publishedPort(port, b)
			if owner := h.PortOwner(ctx, runtime.PodName{Namespace: key.namespace, Name: key.pod}, p); owner != "" {
				return problem(runtime.ReasonPortTaken, nil, "port %s:%d is taken by %s", p.HostIP, p.Host, owner)
			}
		}
	}
	return known(runtime.ReasonPortTaken, cause, "publish ports")
}

func publishedPort(port nat.Port, b nat.PortBinding) jobspecs.Port {
	host, _ := strconv.Atoi(b.HostPort)
	return jobspecs.Port{Container: port.Int(), Protocol: port.Proto(), Host: host, HostIP: b.HostIP}
}

// addressTaken names the container that has the address. When it is one of ours,
// the address has done its work as a fence: the other one must end first.
func (h *Host) addressTaken(ctx context.Context, c *container.InspectResponse, cause error) error {
	want := address(c.NetworkSettings.Networks, string(c.HostConfig.NetworkMode))
	n, err := h.cli().NetworkInspect(ctx, string(c.HostConfig.NetworkMode), network.InspectOptions{})
	if err != nil {
		return known(runtime.ReasonAddressTaken, cause, "take address %s", want)
	}
	for id, e := range n.Containers {
		p, err := netip.ParsePrefix(e.IPv4Address)
		if err != nil || p.Addr() != want {
			continue
		}
		other, err := h.cli().ContainerInspect(ctx, id)
		if err != nil {
			return problem(runtime.ReasonAddressTaken, nil, "address %s is taken by container %s", want, e.Name)
		}
		reason := runtime.ReasonAddressTaken
		if h.ours(other.Config.Labels) {
			reason = runtime.ReasonWaitingForFence
		}
		return problem(reason, nil, "address %s is taken by %s", want, h.describe(other.Name, other.Config.Image, other.Config.Labels))
	}
	return known(runtime.ReasonAddressTaken, cause, "take address %s", want)
}

// commandError is the part of the engine's sentence that a person needs: what
// comes before names the tools that passed the error on.
func commandError(text string) string {
	if !contains(text, "oci runtime") && !contains(text, "error response from daemon") {
		return text
	}
	return plain(text)
}

// Stop ends a container and returns when it has ended.
func (h *Host) Stop(ctx context.Context, id, signal string, grace time.Duration) error {
	err := h.stopWith(ctx, id, signal, grace)
	if err == nil || isNotFound(err) || isConflict(err) && contains(err.Error(), "is not running") {
		return nil
	}
	return fmt.Errorf("stop: %w", engineError(err))
}

// Remove removes an ended or created container. The volumes that an image's
// VOLUME made for it alone go with it; one with a name never does.
func (h *Host) Remove(ctx context.Context, id string) error {
	done, err := h.slot(ctx)
	if err != nil {
		return err
	}
	defer done()
	err = h.cli().ContainerRemove(ctx, id, container.RemoveOptions{RemoveVolumes: true})
	if err != nil && isConflict(err) && contains(err.Error(), "is already in progress") { // somebody else's hand
		err = h.awaitRemoval(ctx, id)
	}
	if err != nil && !isNotFound(err) {
		return fmt.Errorf("remove: %w", engineError(err))
	}
	h.forgetContainers(id)
	return nil
}

// removalTime is how long the removal by somebody else is waited for.
const removalTime = 10 * time.Second

// awaitRemoval returns when a removal that goes on is over.
func (h *Host) awaitRemoval(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, removalTime)
	defer cancel()
	done, errs := h.cli().ContainerWait(ctx, id, container.WaitConditionRemoved)
	select {
	case <-done:
		return nil
	case err := <-errs:
		return err
	}
}

// Rename gives a container another name. One that has it is nil.
func (h *Host) Rename(ctx context.Context, id, name string) error {
	done, err := h.slot(ctx)
	if err != nil {
		return err
	}
	defer done()
	err = h.cli().ContainerRename(ctx, id, name)
	switch {
	case err == nil, contains(fmt.Sprint(err), "same name as its current name"):
		return nil
	case isNotFound(err):
		return fmt.Errorf("rename to %s: %w", name, pods.ErrNoContainer)
	case isConflict(err):
		return h.renameConflict(ctx, name, err)
	}
	return fmt.Errorf("rename to %s: %w", name, engineError(err))
}

func (h *Host) renameConflict(ctx context.Context, name string, cause error) error {
	c, err := h.cli().ContainerInspect(ctx, name)
	if err != nil {
		return fmt.Errorf("rename to %s: %w", name, errors.Join(engineError(cause), engineError(err)))
	}
	if h.ours(c.Config.Labels) {
		return problem(runtime.ReasonWaitingForFence, nil, "container %s of an earlier start is still there (%s)", name, c.State.Status)
	}
	return problem(runtime.ReasonNameTaken, nil, "container name %s is taken by %s, which is left alone",
		name, h.describe(shortID(c.ID), c.Config.Image, c.Config.Labels))
}
