package docker

import (
	"bufio"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/docker/docker/api/types/container"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

// PortOwner names the container, else the process of this machine, that has a
// port of the host. It is best effort: what cannot be seen is "".
func (h *Host) PortOwner(ctx context.Context, pod runtime.PodName, p jobspecs.Port) string {
	if p.Host == 0 {
		return ""
	}
	running, err := h.cli().ContainerList(ctx, container.ListOptions{})
	if err != nil {
		return ""
	}
	for _, c := range running {
		if !slices.ContainsFunc(c.Ports, func(q container.Port) bool { return clashes(q, p) }) {
			continue
		}
		if key, ok := podOf(c.Labels); ok && h.ours(c.Labels) && key == (podKey{pod.Namespace, pod.Name}) {
			return ""
		}
		return h.describe(strings.Join(c.Names, ", "), c.Image, c.Labels)
	}
	if h.remote {
		return ""
	}
	return listener(p)
}

func clashes(q container.Port, p jobspecs.Port) bool {
	return int(q.PublicPort) == p.Host && q.Type == protocol(p) && sameAddress(q.IP, hostIP(p))
}

// sameAddress tells whether two listeners would meet: at one address, or one of
// them at all.
func sameAddress(a, b string) bool {
	x, err1 := netip.ParseAddr(a)
	y, err2 := netip.ParseAddr(b)
	return err1 != nil || err2 != nil || x.IsUnspecified() || y.IsUnspecified() || x.Unmap() == y.Unmap()
}

// listener names the process that listens on the port of this machine.
func listener(p jobspecs.Port) string {
	for _, suffix := range []string{"", "6"} {
		f, err := os.Open("/proc/net/" + protocol(p) + suffix)
		if err != nil {
			continue
		}
		inode := listening(f, p)
		f.Close()
		if inode != "" {
			return processOf(inode)
		}
	}
	return ""
}

// listening finds a socket in the text of /proc/net/tcp or udp and returns its inode.
func listening(r io.Reader, p jobspecs.Port) (inode string) {
	state := "0A" // LISTEN
	if protocol(p) == "udp" {
		state = "07" // unconnected
	}
	for s := bufio.NewScanner(r); s.Scan(); {
		f := strings.Fields(s.Text())
		if len(f) < 10 || f[3] != state {
			continue
		}
		addr, port, ok := parseSocket(f[1])
		if ok && port == p.Host && sameAddress(addr.String(), hostIP(p)) {
			return f[9]
		}
	}
	return ""
}

// parseSocket reads "0100007F:1F90": words of an address, each in the machine's
// byte order, and a port.
func parseSocket(s string) (netip.Addr, int, bool) {
	a, p, _ := strings.Cut(s, ":")
	b, err := hex.DecodeString(a)
	port, err2 := strconv.ParseUint(p, 16, 16)
	if err != nil || err2 != nil || len(b)%4 != 0 {
		return netip.Addr{}, 0, false
	}
	for word := range slices.Chunk(b, 4) {
		slices.Reverse(word)
	}
	addr, ok := netip.AddrFromSlice(b)
	return addr, int(port), ok
}

func processOf(inode string) string {
	link := "socket:[" + inode + "]"
	fds, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err != nil || to != link {
			continue
		}
		proc := filepath.Dir(filepath.Dir(fd))
		name, err := os.ReadFile(filepath.Join(proc, "comm"))
		if err != nil {
			break
		}
		return fmt.Sprintf("process %s (pid %s)", strings.TrimSpace(string(name)), filepath.Base(proc))
	}
	return "a process on the host"
}
