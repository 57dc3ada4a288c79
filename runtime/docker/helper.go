package docker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/docker/docker-credential-helpers/credentials"
	"github.com/docker/docker/api/types/registry"
)

// helperPrefix begins the names of the programs that keep credentials for Docker.
const helperPrefix = "docker-credential-"

// helperTime is how long one may take: some ask a keychain that is locked, and
// wait for ever. A test makes it shorter.
var helperTime = 10 * time.Second

// maxHelperOutput is what a helper may print, in bytes.
const maxHelperOutput = 64 << 10

// askHelper asks one for a registry; empty: it knows none. What it printed never
// enters an error.
func askHelper(ctx context.Context, helper, server string) (registry.AuthConfig, error) {
	name := helperPrefix + helper
	if strings.ContainsAny(helper, `/\`) {
		return registry.AuthConfig{}, fmt.Errorf("%q is no name of a credential helper", helper)
	}
	ctx, cancel := context.WithTimeout(ctx, helperTime)
	defer cancel()
	out := &limited{max: maxHelperOutput}
	cmd := exec.CommandContext(ctx, name, "get")
	cmd.Stdin, cmd.Stdout = strings.NewReader(server), out
	cmd.WaitDelay = time.Second // a child of it may hold its output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	err := cmd.Run()
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return registry.AuthConfig{}, fmt.Errorf("%s did not answer within %s", name, helperTime)
	case err != nil && credentials.IsErrCredentialsNotFoundMessage(out.b.String()):
		return registry.AuthConfig{}, nil
	case errors.Is(err, exec.ErrNotFound):
		return registry.AuthConfig{}, fmt.Errorf("%s is not in PATH", name)
	case err != nil:
		return registry.AuthConfig{}, fmt.Errorf("%s: %w", name, err)
	}
	var got credentials.Credentials
	if json.Unmarshal(out.b.Bytes(), &got) != nil {
		return registry.AuthConfig{}, fmt.Errorf("%s did not answer in JSON", name)
	}
	if got.Username == TokenUser {
		return registry.AuthConfig{IdentityToken: got.Secret, ServerAddress: server}, nil
	}
	return registry.AuthConfig{Username: got.Username, Password: got.Secret, ServerAddress: server}, nil
}

// limited takes max bytes and refuses more.
type limited struct {
	b   bytes.Buffer
	max int
}

func (l *limited) Write(p []byte) (int, error) {
	if l.b.Len()+len(p) > l.max {
		return 0, io.ErrShortWrite
	}
	return l.b.Write(p)
}
