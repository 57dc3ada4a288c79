package docker

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/runtime/pods"
)

// Check runs one probe. ctx carries its time-out.
func (h *Host) Check(ctx context.Context, t pods.Target, probe jobspecs.Probe) (said string, err error) {
	switch {
	case probe.HTTP != nil:
		return "", checkHTTP(ctx, t.Address, probe.HTTP)
	case probe.TCP != nil:
		return "", checkTCP(ctx, t.Address, probe.TCP)
	case len(probe.Exec) > 0:
		return "", h.checkExec(ctx, t.ID, probe.Exec)
	}
	return "", nil
}

// SandboxImage implements pods.Host.
func (h *Host) SandboxImage(ctx context.Context) (pods.Image, error) {
	return pods.Image{}, errors.New("not written yet")
}

// Hook implements pods.Host.
func (h *Host) Hook(ctx context.Context, t pods.Target, hook pods.Hook) error {
	return errors.New("not written yet")
}

// RemoveScratch implements pods.Host.
func (h *Host) RemoveScratch(ctx context.Context, pod runtime.PodName) error { return nil }

// probes makes a connection per probe, as a client that comes fresh would, and
// trusts any certificate, as the kubelet does. A redirect within the host is
// followed; one that leads away says that the server answers, and is success.
var probes = &http.Client{
	Transport: &http.Transport{
		DisableKeepAlives:   true,
		DisableCompression:  true,
		TLSClientConfig:     &tls.Config{InsecureSkipVerify: true},
		TLSHandshakeTimeout: 0, // ctx has the time-out
	},
	CheckRedirect: func(req *http.Request, via []*http.Request) error {
		if req.URL.Hostname() != via[0].URL.Hostname() || len(via) >= 10 {
			return http.ErrUseLastResponse
		}
		return nil
	},
}

func checkHTTP(ctx context.Context, addr netip.Addr, c *jobspecs.HTTPCheck) error {
	scheme, path := c.Scheme, c.Path
	if scheme == "" {
		scheme = "http"
	}
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	at := netip.AddrPortFrom(addr, uint16(c.Port)).String() + path
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+at, nil)
	if err != nil {
		return fmt.Errorf("%s %s: %w", scheme, at, err)
	}
	req.Header.Set("User-Agent", "stsd-probe/1")
	req.Header.Set("Accept", "*/*")
	for name, value := range c.Headers {
		req.Header.Set(name, value)
		if strings.EqualFold(name, "Host") {
			req.Host = value
		}
	}
	resp, err := probes.Do(req)
	if err != nil {
		return fmt.Errorf("%s %s: %w", scheme, at, cause(ctx, err))
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 10<<10)) // the server sees its answer read
	if resp.StatusCode < 200 || resp.StatusCode > 399 {
		return fmt.Errorf("%s %s: status %d", scheme, at, resp.StatusCode)
	}
	return nil
}

func checkTCP(ctx context.Context, addr netip.Addr, c *jobspecs.TCPCheck) error {
	at := netip.AddrPortFrom(addr, uint16(c.Port)).String()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", at)
	if err != nil {
		return fmt.Errorf("tcp %s: %w", at, cause(ctx, err))
	}
	return conn.Close()
}

// cause is the innermost reason: "connection refused", "timed out".
func cause(ctx context.Context, err error) error {
	var errno syscall.Errno
	var timeout net.Error
	switch {
	case errors.As(err, &errno):
		return errno
	case errors.Is(ctx.Err(), context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return errTimedOut
	}
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return err
}

// errTimedOut reads better than the library's sentence, and is the same error.
var errTimedOut = timedOut{}

type timedOut struct{}

func (timedOut) Error() string        { return "timed out" }
func (timedOut) Is(target error) bool { return target == context.DeadlineExceeded }

// checkExec runs a command in the container. Only few run at once on the whole
// host, and one that outlives ctx is killed.
func (h *Host) checkExec(ctx context.Context, id string, command []string) error {
	title := "exec " + shorten(strings.Join(command, " "), 60)
	select {
	case h.execs <- struct{}{}:
		defer func() { <-h.execs }()
	case <-ctx.Done():
		return fmt.Errorf("%s: %w before its turn among the execs of this host came", title, cause(ctx, ctx.Err()))
	}
	var out tail
	code, err := h.exec(ctx, id, container.ExecOptions{Cmd: command, AttachStdout: true, AttachStderr: true},
		streams{stdout: &out, stderr: &out})
	switch line := commandError(out.lastLine()); {
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", title, cause(ctx, ctx.Err()))
	case err != nil:
		return fmt.Errorf("%s: %w", title, err)
	case code != 0 && line != "":
		return fmt.Errorf("%s: exit code %d: %s", title, code, line)
	case code != 0:
		return fmt.Errorf("%s: exit code %d", title, code)
	}
	return nil
}

// tail keeps the end of what is written to it.
type tail struct {
	mu sync.Mutex
	b  []byte
}

const tailSize = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	if n := len(t.b) - tailSize; n > 0 {
		t.b = append(t.b[:0], t.b[n:]...)
	}
	return len(p), nil
}

func (t *tail) lastLine() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := bytes.TrimSpace(t.b)
	return shorten(strings.TrimSpace(string(text[bytes.LastIndexByte(text, '\n')+1:])), 200)
}

func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

// killExec kills what an exec left running, with all its children, where we see
// the engine's processes. It must be the container's: a pid may have been taken
// by another process since.
func (h *Host) killExec(ctx context.Context, execID string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	e, err := h.cli().ContainerExecInspect(ctx, execID)
	if err != nil || !e.Running || e.Pid <= 1 || h.remote {
		return
	}
	groups, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", e.Pid))
	if err != nil || !bytes.Contains(groups, []byte(e.ContainerID)) {
		return
	}
	for _, pid := range processTree(e.Pid) {
		_ = syscall.Kill(pid, syscall.SIGKILL) // one that has ended meanwhile is as good
	}
}

// processTree is a process and everything below it, parents first.
func processTree(root int) []int {
	children := map[int][]int{}
	procs, _ := filepath.Glob("/proc/[0-9]*")
	for _, proc := range procs {
		pid, _ := strconv.Atoi(filepath.Base(proc))
		if parent, ok := parentOf(proc); ok {
			children[parent] = append(children[parent], pid)
		}
	}
	tree := []int{root}
	for i := 0; i < len(tree); i++ {
		tree = append(tree, children[tree[i]]...)
	}
	return tree
}

// parentOf reads /proc/PID/stat: the parent is the second word after the name,
// which is in brackets and may hold anything.
func parentOf(proc string) (pid int, ok bool) {
	text, err := os.ReadFile(filepath.Join(proc, "stat"))
	if err != nil {
		return 0, false
	}
	f := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(f) < 2 {
		return 0, false
	}
	pid, err = strconv.Atoi(f[1])
	return pid, err == nil
}
