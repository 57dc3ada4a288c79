package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/volume"
	"github.com/docker/docker/client"
	"github.com/docker/docker/pkg/stdcopy"

	"github.com/stsd/stsd/jobspecs"
)

// engine is a client of our own, to look at the engine from outside.
var engine = sync.OnceValue(func() *client.Client {
	c, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		panic(err)
	}
	return c
})

func labelled(id string) filters.Args {
	return filters.NewArgs(filters.Arg("label", jobspecs.LabelDaemon+"="+id))
}

// wipe removes what has this daemon's label.
func (w *world) wipe(id string) {
	if id == "" {
		return
	}
	ctx, mine := context.Background(), labelled(id)
	list, err := engine().ContainerList(ctx, container.ListOptions{All: true, Filters: mine})
	w.check(err)
	for _, c := range list {
		w.check(engine().ContainerRemove(ctx, c.ID, container.RemoveOptions{Force: true, RemoveVolumes: true}))
	}
	vols, err := engine().VolumeList(ctx, volume.ListOptions{Filters: mine})
	w.check(err)
	for _, v := range vols.Volumes {
		w.check(engine().VolumeRemove(ctx, v.Name, true))
	}
	nets, err := engine().NetworkList(ctx, network.ListOptions{Filters: mine})
	w.check(err)
	for _, n := range nets {
		w.check(engine().NetworkRemove(ctx, n.ID))
	}
}

// check reports an error, unless the thing is gone already.
func (w *world) check(err error) {
	w.t.Helper()
	if err != nil && !cerrdefs.IsNotFound(err) {
		w.t.Error(err)
	}
}

// container is the engine's name of a member.
func (w *world) container(member string) string {
	return jobspecs.ContainerName(w.ns, member, "")
}

// volume is the engine's name of a volume ("data-web-0").
func (w *world) volume(name string) string { return w.ns + "." + name }

func (w *world) inspect(member string) container.InspectResponse {
	w.t.Helper()
	c, err := engine().ContainerInspect(w.t.Context(), w.container(member))
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// ids are the containers of a set's members, by member.
func (w *world) ids(set string) map[string]string {
	w.t.Helper()
	list, err := engine().ContainerList(w.t.Context(), container.ListOptions{All: true, Filters: labelled(w.id)})
	if err != nil {
		w.t.Fatal(err)
	}
	out := map[string]string{}
	for _, c := range list {
		member := strings.TrimPrefix(strings.TrimPrefix(c.Names[0], "/"), w.ns+".")
		if name, _, ok := jobspecs.ParseMember(member); ok && name == set {
			out[member] = c.ID
		}
	}
	return out
}

func (w *world) address(member string) string {
	w.t.Helper()
	return w.inspect(member).NetworkSettings.Networks[w.network()].IPAddress
}

func (w *world) network() string { return jobspecs.NetworkName(w.ns) }

func (w *world) remove(member string) {
	w.t.Helper()
	err := engine().ContainerRemove(w.t.Context(), w.container(member), container.RemoveOptions{Force: true})
	if err != nil {
		w.t.Fatal(err)
	}
}

// hasVolume tells whether the engine has a volume ("data-web-0").
func (w *world) hasVolume(name string) bool {
	w.t.Helper()
	_, err := engine().VolumeInspect(w.t.Context(), w.volume(name))
	if err != nil && !cerrdefs.IsNotFound(err) {
		w.t.Fatal(err)
	}
	return err == nil
}

// started is when a member's process was started, created when its container
// was made.
func (w *world) started(member string) time.Time {
	return w.time(w.inspect(member).State.StartedAt)
}

func (w *world) created(member string) time.Time { return w.time(w.inspect(member).Created) }

func (w *world) time(text string) time.Time {
	w.t.Helper()
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		w.t.Fatal(err)
	}
	return at
}

// inside runs a command in a member by the engine alone, without a daemon.
func (w *world) inside(member string, command ...string) (string, error) {
	ctx := w.t.Context()
	e, err := engine().ContainerExecCreate(ctx, w.container(member),
		container.ExecOptions{Cmd: command, AttachStdout: true, AttachStderr: true})
	if err != nil {
		return "", err
	}
	a, err := engine().ContainerExecAttach(ctx, e.ID, container.ExecAttachOptions{})
	if err != nil {
		return "", err
	}
	defer a.Close()
	var out bytes.Buffer
	if _, err := stdcopy.StdCopy(&out, &out, a.Reader); err != nil {
		return "", err
	}
	end, err := engine().ContainerExecInspect(ctx, e.ID)
	if err == nil && end.ExitCode != 0 {
		err = fmt.Errorf("%v in %s: exit code %d: %s", command, member, end.ExitCode, out.String())
	}
	return strings.TrimSpace(out.String()), err
}

// lookup asks for a name inside a member.
func (w *world) lookup(member, name string) ([]string, error) {
	out, err := w.inside(member, "/demo", "lookup", name)
	return strings.Fields(out), err
}

// gateway is where DNS answers for the namespace.
func (w *world) gateway() netip.Addr {
	w.t.Helper()
	n, err := engine().NetworkInspect(w.t.Context(), w.network(), network.InspectOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return netip.MustParseAddr(n.IPAM.Config[0].Gateway)
}

// resolve asks the gateway for a name, as a program on the host would.
func (w *world) resolve(name string) ([]string, error) {
	at := netip.AddrPortFrom(w.gateway(), 53).String()
	r := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, proto, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, proto, at)
	}}
	ctx, cancel := context.WithTimeout(w.t.Context(), 10*time.Second)
	defer cancel()
	found, err := r.LookupHost(ctx, name)
	slices.Sort(found)
	return found, err
}

// foreign makes a container that is nobody's, gone after the test.
func (w *world) foreign(config *container.Config, host *container.HostConfig, name string) string {
	w.t.Helper()
	made, err := engine().ContainerCreate(w.t.Context(), config, host, nil, nil, name)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		w.check(engine().ContainerRemove(context.Background(), made.ID, container.RemoveOptions{Force: true, RemoveVolumes: true}))
	})
	return made.ID
}
