package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/client"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/runtime/pods"
)

// engineError makes an error of the client readable, and a lost connection
// runtime.ErrUnreachable. The cause stays inside.
func engineError(err error) error {
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case lostConnection(err):
		return fmt.Errorf("%w: %w", runtime.ErrUnreachable, err)
	}
	return &said{err}
}

// said is what the engine said, without the names of those that passed it on.
type said struct{ err error }

func (s *said) Error() string { return plain(s.err.Error()) }

func (s *said) Unwrap() error { return s.err }

func lostConnection(err error) bool {
	var op *net.OpError
	return client.IsErrConnectionFailed(err) || errors.As(err, &op) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		strings.Contains(err.Error(), "Cannot connect to the Docker daemon") ||
		strings.Contains(err.Error(), "cannot connect to the Docker daemon")
}

// startReason tells why a start failed, from what the engine said; "" when the
// text is none we know. The texts are those of 20.10 to 28.
func startReason(text string) string {
	switch {
	case contains(text, "port is already allocated", "failed to bind host port", "error starting userland proxy",
		"cannot listen on the tcp port", "failed programming external connectivity"):
		return runtime.ReasonPortTaken
	case contains(text, "address already in use"):
		return runtime.ReasonAddressTaken
	case commandSentence(text) != "":
		return runtime.ReasonBadCommand
	case contains(text, "network ") && contains(text, "not found"):
		return runtime.ReasonNetworkMissing
	}
	return ""
}

// createReason is startReason for creates.
func createReason(text string) string {
	switch {
	case commandSentence(text) != "":
		return runtime.ReasonBadCommand
	case contains(text, "no such image"):
		return runtime.ReasonImageMissing
	}
	return runtime.ReasonCreateFailed
}

func contains(text string, any ...string) bool {
	text = strings.ToLower(text)
	for _, s := range any {
		if strings.Contains(text, s) {
			return true
		}
	}
	return false
}

// owner says in a few words whose an object is, by its labels.
func (h *Host) owner(labels map[string]string) string {
	switch daemon, project := labels[jobspecs.LabelDaemon], labels["com.docker.compose.project"]; {
	case daemon == h.cfg.Daemon && daemon != "":
		return "ours, of " + labels[jobspecs.LabelNamespace] + "/" + labels[jobspecs.LabelSet]
	case daemon != "":
		return "of another stsd, " + daemon
	case project != "":
		return "made by docker compose, project " + project
	case labels["com.docker.stack.namespace"] != "":
		return "of the swarm stack " + labels["com.docker.stack.namespace"]
	}
	return "not made by stsd"
}

func (h *Host) ours(labels map[string]string) bool {
	return h.cfg.Daemon != "" && labels[jobspecs.LabelDaemon] == h.cfg.Daemon
}

// describe names a container for people: "container shop-db-1 (postgres:16, made by docker compose, project shop)".
func (h *Host) describe(name, image string, labels map[string]string) string {
	return fmt.Sprintf("container %s (%s, %s)", strings.TrimPrefix(name, "/"), image, h.owner(labels))
}

func problem(reason string, err error, format string, args ...any) error {
	return &pods.Problem{Reason: reason, Message: fmt.Sprintf(format, args...), Err: err}
}

// known turns an error with a reason into a Problem; a lost connection and a
// cancelled call say nothing about the object and stay what they are.
func known(reason string, err error, format string, args ...any) error {
	err = engineError(err)
	if errors.Is(err, runtime.ErrUnreachable) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf(format+": %w", append(args, err)...)
	}
	var already *pods.Problem
	if errors.As(err, &already) {
		return err
	}
	if reason == runtime.ReasonBadCommand {
		return problem(reason, nil, format+": %s", append(args, commandSentence(err.Error()))...)
	}
	return problem(reason, err, format, args...)
}

func isNotFound(err error) bool { return cerrdefs.IsNotFound(err) }
func isConflict(err error) bool { return cerrdefs.IsConflict(err) }
