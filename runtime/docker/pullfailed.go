package docker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/stsd/stsd/runtime"
)

// pullFailed tells in one sentence why a pull failed, and what to do where the
// engine's own words do not.
func (h *Host) pullFailed(ctx context.Context, ref string, with login, err error) error {
	err = engineError(err)
	if errors.Is(err, runtime.ErrUnreachable) {
		return fmt.Errorf("pull %s: %w", ref, err)
	}
	text := err.Error()
	reason := pullReason(text)
	switch reason {
	case runtime.ReasonAccessDenied:
		return problem(reason, nil, "pull %s: %s: %s", ref, text, with.advice())
	case runtime.ReasonImageUnknown:
		return problem(reason, nil, "pull %s: the registry has no such %s: %s", ref, missing(text), text)
	case runtime.ReasonWrongPlatform:
		return problem(reason, nil, "image %s is not made for this engine, %s: %s", ref, cmp.Or(h.platform(ctx), "whose platform is unknown"), text)
	}
	return problem(reason, nil, "pull %s: %s%s", ref, brokenPull(text), text)
}

// pullReason tells why a pull failed.
func pullReason(text string) string {
	switch {
	case contains(text, "no matching manifest for", "no match for platform", "does not match the specified platform"):
		return runtime.ReasonWrongPlatform
	case contains(text, "toomanyrequests", "too many requests", "rate limit"):
		return runtime.ReasonPullFailed
	case contains(text, "pull access denied", "unauthorized", "no basic auth credentials", "authentication required", "insufficient_scope",
		"access denied", "access forbidden", "status: 403", "status: 401", "403 forbidden", "401 unauthorized", "incorrect username or password"):
		return runtime.ReasonAccessDenied
	case contains(text, "unknown blob"): // of an image that it has
		return runtime.ReasonPullFailed
	case contains(text, "manifest unknown", "not found: manifest", "manifest for", "name unknown", "repository name not known",
		"invalid reference format", "failed to resolve reference") && !contains(text, "dial tcp", "x509", "tls:", "timeout", "i/o", "eof"),
		notFoundReference(text):
		return runtime.ReasonImageUnknown
	}
	return runtime.ReasonPullFailed
}

// notFoundReference knows the sentence of engines that keep images in containerd:
// "docker.io/library/redis:nope: not found".
func notFoundReference(text string) bool {
	return strings.HasSuffix(strings.TrimSpace(text), ": not found") && !contains(text, "dial tcp", "no such host")
}

// missing is what the registry does not have.
func missing(text string) string {
	if contains(text, "name unknown", "repository name not known", "name_unknown") {
		return "repository"
	}
	return "tag or digest"
}

// brokenPull leads in what engines say of a pull that broke.
func brokenPull(text string) string {
	switch {
	case contains(text, "no space left on device"):
		return "the engine's disk is full: "
	case contains(text, "verification failed for digest", "digest mismatch", "unexpected commit digest", "failed precondition"):
		return "a layer or manifest came damaged, its digest is another: "
	case contains(text, "unexpected eof", "connection reset", "unexpected commit size"):
		return "the registry broke off: "
	case contains(text, "x509:", "tls:", "server gave http response to https client"):
		return "no trusted TLS connection to the registry: "
	case contains(text, "connection refused", "no such host", "no route to host", "network is unreachable", "i/o timeout",
		"timeout", "deadline exceeded", "name resolution", "server misbehaving"):
		return "the registry does not answer: "
	case contains(text, "toomanyrequests", "too many requests", "rate limit"):
		return "the registry wants us to wait: "
	}
	return ""
}
