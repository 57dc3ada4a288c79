package docker

import (
	"encoding/json"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/go-connections/nat"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/runtime/pods"
)

func fullSpec() pods.ContainerSpec {
	return pods.ContainerSpec{
		Name:   "web-1",
		Labels: map[string]string{jobspecs.LabelRendering: "r", jobspecs.LabelRestarts: "3"},
		Image:  pods.Image{ID: "sha256:1"},
		Pod: jobspecs.PodSpec{
			Set: jobspecs.Key{Namespace: "default", Name: "web"}, Ordinal: 1, Name: "web-1", Revision: "web-abc", Service: "www",
			Domain: "www.default.svc.cluster.local", Search: []string{"default.svc.cluster.local"},
			Network: "stsd", Subnet: netip.MustParsePrefix("10.87.0.0/22"), Gateway: netip.MustParseAddr("10.87.0.1"),
			Address:          netip.MustParseAddr("10.87.0.3"),
			Labels:           map[string]string{"team": "shop", "stsd.daemon": "forged"},
			ExtraHosts:       map[string]string{"db": "10.1.2.3", "a": "10.1.2.4"},
			Sysctls:          map[string]string{"net.core.somaxconn": "9"},
			TerminationGrace: 1500 * time.Millisecond,
			Volumes: []jobspecs.VolumeSpec{{Claim: "data", Name: "data-web-1", Driver: "rexray", Size: 5,
				Options: map[string]string{"fs": "xfs"}}},
			Scratch: []jobspecs.Scratch{
				{Name: "tmp", Volume: "tmp-web-1_scratch", Medium: jobspecs.MediumMemory, Size: 64},
				{Name: "work", Volume: "work-web-1_scratch", Medium: jobspecs.MediumDisk},
			},
		},
		Main: jobspecs.Container{
			Name: "nginx", Image: "nginx:1", Command: []string{"run"}, Env: map[string]string{"B": "2", "A": "1"},
			User: "1:2", WorkingDir: "/w", StopSignal: "SIGQUIT", CPU: 1.5, Memory: 100,
			Ports: []jobspecs.Port{
				{Name: "http", Container: 80, Protocol: "tcp", Host: 8081, HostIP: "0.0.0.0"},
				{Name: "dns", Container: 53, Protocol: "udp", Host: 5301},
				{Name: "inner", Container: 9000, Protocol: "tcp"},
			},
			Mounts: []jobspecs.Mount{
				{Kind: jobspecs.MountVolume, Claim: "data", Volume: "data-web-1", Path: "/data", ReadOnly: true},
				{Kind: jobspecs.MountVolume, Claim: "data", Volume: "data-web-1", Path: "/part", SubPath: "a/b"},
				{Kind: jobspecs.MountBind, Claim: "certs", Source: "/etc/ssl", Path: "/certs", ReadOnly: true},
				{Kind: jobspecs.MountScratch, Claim: "tmp", Path: "/tmp"},
				{Kind: jobspecs.MountScratch, Claim: "work", Path: "/work"},
			},
			Ulimits:           []jobspecs.Ulimit{{Name: "core", Soft: 0, Hard: -1}, {Name: "nofile", Soft: 10, Hard: 20}},
			MemoryReservation: 50, PIDs: 7, ShmSize: 1000, GPUs: "all",
			Privileged: true, ReadOnlyRoot: true, NoNewPrivileges: true, FSGroup: pointer(2000),
			CapAdd: []string{"NET_ADMIN"}, CapDrop: []string{"ALL"},
		},
	}
}

func TestRequestHasAllOfTheSpec(t *testing.T) {
	t.Parallel()
	log := container.LogConfig{Type: "json-file", Config: map[string]string{"max-size": "10m"}}
	spec := fullSpec()
	spec.Pod.Containers = []jobspecs.Container{spec.Main}
	around := surroundings{
		daemon: "d1", image: "nginx:1", resolvConf: "/run/stsd/x/resolv.conf", log: log, subpaths: true,
		gpus: must(gpusOf(spec.Main.GPUs))(t),
	}
	got := newRequest(spec, around)
	grace := 2
	labels := map[string]string{
		"stsd.daemon": "d1", "stsd.namespace": "default", "stsd.set": "web", "stsd.ordinal": "1",
	}
	want := request{
		name: "web-1",
		config: &container.Config{
			Image: "nginx:1", Hostname: "web-1", Domainname: "www.default.svc.cluster.local", User: "1:2", WorkingDir: "/w",
			Env: []string{"A=1", "B=2"}, Entrypoint: []string{"run"}, Cmd: []string{}, StopSignal: "SIGQUIT", StopTimeout: &grace,
			Healthcheck:  &container.HealthConfig{Test: []string{"NONE"}},
			ExposedPorts: nat.PortSet{"80/tcp": {}, "53/udp": {}, "9000/tcp": {}},
			Labels: with(labels, "team", "shop", "stsd.revision", "web-abc", "stsd.service", "www",
				"stsd.container", "nginx", "stsd.rendering", "r", "stsd.restarts", "3"),
		},
		host: &container.HostConfig{
			NetworkMode:   "stsd",
			RestartPolicy: container.RestartPolicy{Name: "no"},
			PortBindings: nat.PortMap{
				"80/tcp": {{HostIP: "0.0.0.0", HostPort: "8081"}},
				"53/udp": {{HostIP: "127.0.0.1", HostPort: "5301"}},
			},
			ExtraHosts: []string{"a:10.1.2.4", "db:10.1.2.3"},
			Sysctls:    map[string]string{"net.core.somaxconn": "9"},
			LogConfig:  log,
			Resources: container.Resources{
				NanoCPUs: 1_500_000_000, Memory: 100, MemorySwap: 100, MemoryReservation: 50, PidsLimit: pointer(int64(7)),
				Ulimits:        []*container.Ulimit{{Name: "core", Soft: 0, Hard: -1}, {Name: "nofile", Soft: 10, Hard: 20}},
				DeviceRequests: []container.DeviceRequest{{Count: -1, Capabilities: [][]string{{"gpu"}}}},
			},
			ShmSize: 1000, Privileged: true, ReadonlyRootfs: true, SecurityOpt: []string{"no-new-privileges:true"},
			CapAdd: []string{"NET_ADMIN"}, CapDrop: []string{"ALL"}, GroupAdd: []string{"2000"},
			Tmpfs: map[string]string{"/tmp": "exec,size=64,mode=3777,gid=2000"},
			Mounts: []mount.Mount{
				{Type: "volume", Source: "data-web-1", Target: "/data", ReadOnly: true, VolumeOptions: dataVolume("")},
				{Type: "volume", Source: "data-web-1", Target: "/part", VolumeOptions: dataVolume("a/b")},
				{Type: "bind", Source: "/etc/ssl", Target: "/certs", ReadOnly: true},
				{Type: "volume", Source: "work-web-1_scratch", Target: "/work", VolumeOptions: &mount.VolumeOptions{
					NoCopy: true, Labels: map[string]string{"stsd.unasked": "d1"}, DriverConfig: &mount.Driver{Name: "local"},
				}},
				{Type: "bind", Source: "/run/stsd/x/resolv.conf", Target: "/etc/resolv.conf"},
			},
		},
		network: &network.NetworkingConfig{EndpointsConfig: map[string]*network.EndpointSettings{"stsd": {
			IPAMConfig: &network.EndpointIPAMConfig{IPv4Address: "10.87.0.3"},
			Aliases: []string{
				"web-1.www", "web-1.www.default", "web-1.www.default.svc", "web-1.svc", "web-1.www.default.svc.cluster.local",
				"www", "www.default", "www.default.svc", "www.svc", "www.default.svc.cluster.local",
			},
		}}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %s\nwant %s", asJSON(got), asJSON(want))
	}
}

// dataVolume is a folder of the volume of fullSpec.
func dataVolume(sub string) *mount.VolumeOptions {
	return &mount.VolumeOptions{
		Labels:  map[string]string{"stsd.unasked": "d1"},
		Subpath: sub,
	}
}

func TestRequestBindsASubPathOnAnOldEngine(t *testing.T) {
	t.Parallel()
	got := newRequest(fullSpec(), surroundings{daemon: "d1", folders: map[string]string{"data-web-1": "/var/lib/v/_data"}}).host.Mounts[1]
	want := mount.Mount{Type: "bind", Source: "/var/lib/v/_data/a/b", Target: "/part"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %s", asJSON(got))
	}
}

// What belongs to the network and the host name is the sandbox's: the engine
// refuses it here.
func TestRequestOfOneThatJoinsASandbox(t *testing.T) {
	t.Parallel()
	spec := fullSpec()
	spec.Sandbox, spec.Pod.ShareProcesses = "b0x", true
	got := newRequest(spec, surroundings{daemon: "d1", image: "nginx:1", resolvConf: "/r"})
	c, h := got.config, got.host
	if got.network != nil || c.Hostname != "" || c.Domainname != "" || c.ExposedPorts != nil ||
		h.PortBindings != nil || h.ExtraHosts != nil || h.Sysctls != nil || h.DNS != nil || h.ShmSize != 0 || h.Tmpfs != nil {
		t.Errorf("asked for what the sandbox has: %s", asJSON(got))
	}
	if h.NetworkMode != "container:b0x" || h.IpcMode != "container:b0x" || h.PidMode != "container:b0x" {
		t.Errorf("joins %s, %s, %s", h.NetworkMode, h.IpcMode, h.PidMode)
	}
	tmp := mount.Mount{Type: "volume", Source: "tmp-web-1_scratch", Target: "/tmp", VolumeOptions: &mount.VolumeOptions{
		NoCopy: true, Labels: map[string]string{"stsd.unasked": "d1"},
	}}
	tmp.VolumeOptions.DriverConfig = &mount.Driver{Name: "local", Options: map[string]string{
		"type": "tmpfs", "device": "tmpfs", "o": "size=64,mode=1777",
	}}
	if !reflect.DeepEqual(h.Mounts[3], tmp) || h.Mounts[5].Target != "/etc/resolv.conf" {
		t.Errorf("mounts %s", asJSON(h.Mounts))
	}
	spec.Pod.ShareProcesses = false
	if h := newRequest(spec, surroundings{}).host; h.PidMode != "" || h.DNS != nil {
		t.Errorf("got %s", asJSON(h))
	}
}

func TestRequestOfASandbox(t *testing.T) {
	t.Parallel()
	spec := fullSpec()
	side := jobspecs.Container{Name: "side", ShmSize: 2000, Ports: []jobspecs.Port{{Container: 81, Host: 8181}}}
	spec.Pod.Containers = []jobspecs.Container{spec.Main, side}
	spec.Main = sandboxOf(&spec.Pod)
	spec.Labels = map[string]string{jobspecs.LabelKind: jobspecs.KindSandbox}
	got := newRequest(spec, surroundings{daemon: "d1", image: sandboxImage, resolvConf: "/r", log: container.LogConfig{Type: "json-file"}})
	grace := 1
	want := request{
		name: "web-1",
		config: &container.Config{
			Image: "stsd/sandbox:1", Hostname: "web-1", Domainname: "www.default.svc.cluster.local", StopTimeout: &grace,
			Healthcheck:  &container.HealthConfig{Test: []string{"NONE"}},
			ExposedPorts: nat.PortSet{"80/tcp": {}, "53/udp": {}, "9000/tcp": {}, "81/tcp": {}},
			Labels: map[string]string{
				"stsd.daemon": "d1", "stsd.namespace": "default", "stsd.set": "web", "stsd.ordinal": "1", "team": "shop",
				"stsd.revision": "web-abc", "stsd.service": "www", "stsd.container": "sandbox", "stsd.kind": "sandbox",
			},
		},
		host: &container.HostConfig{
			NetworkMode: "stsd", IpcMode: "shareable", ShmSize: 2000,
			RestartPolicy: container.RestartPolicy{Name: "no"},
			PortBindings: nat.PortMap{
				"80/tcp": {{HostIP: "0.0.0.0", HostPort: "8081"}},
				"53/udp": {{HostIP: "127.0.0.1", HostPort: "5301"}},
				"81/tcp": {{HostIP: "127.0.0.1", HostPort: "8181"}},
			},
			ExtraHosts:     []string{"a:10.1.2.4", "db:10.1.2.3"},
			Sysctls:        map[string]string{"net.core.somaxconn": "9"},
			LogConfig:      container.LogConfig{Type: "none"},
			ReadonlyRootfs: true, SecurityOpt: []string{"no-new-privileges:true"}, CapDrop: []string{"ALL"},
			Mounts: []mount.Mount{
				{Type: "volume", Source: "tmp-web-1_scratch", Target: "/scratch/tmp", VolumeOptions: &mount.VolumeOptions{
					NoCopy: true, Labels: map[string]string{"stsd.unasked": "d1"},
					DriverConfig: &mount.Driver{Name: "local", Options: map[string]string{
						"type": "tmpfs", "device": "tmpfs", "o": "size=64,mode=3777,gid=2000",
					}},
				}},
				{Type: "bind", Source: "/r", Target: "/etc/resolv.conf"},
			},
		},
		network: networkingConfig(&spec),
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %s\nwant %s", asJSON(got), asJSON(want))
	}
}

func TestGPUs(t *testing.T) {
	t.Parallel()
	gpu := [][]string{{"gpu"}}
	for text, want := range map[string]container.DeviceRequest{
		"all":                            {Count: -1, Capabilities: gpu},
		"2":                              {Count: 2, Capabilities: gpu},
		"device=0":                       {DeviceIDs: []string{"0"}, Capabilities: gpu},
		`"device=0,1",driver=nvidia`:     {DeviceIDs: []string{"0", "1"}, Driver: "nvidia", Capabilities: gpu},
		`count=3,"capabilities=a,b"`:     {Count: 3, Capabilities: [][]string{{"a", "b", "gpu"}}},
		`driver=x,"options=k=v,opt=a=b"`: {Count: 1, Driver: "x", Options: map[string]string{"k": "v", "opt": "a=b"}, Capabilities: gpu},
		"capabilities=utility,count=all": {Count: -1, Capabilities: [][]string{{"utility", "gpu"}}},
	} {
		got, err := gpusOf(text)
		if err != nil || !reflect.DeepEqual(got, []container.DeviceRequest{want}) {
			t.Errorf("%s: %s, %v", text, asJSON(got), err)
		}
	}
	for text, want := range map[string]string{
		"some":      `gpus "some": want "all" or a number`,
		"-1":        `gpus "-1": want "all" or a number`,
		"device":    `gpus "device": want "all" or a number`,
		"x=1":       `gpus "x=1": "x" is none of count, device, driver, capabilities, options`,
		"options=k": `gpus "options=k": option "k": want KEY=VALUE`,
	} {
		_, err := gpusOf(text)
		wantProblem(t, err, runtime.ReasonCreateFailed, want)
	}
	if got, err := gpusOf(""); got != nil || err != nil {
		t.Errorf("none: %v, %v", got, err)
	}
}

func TestRequestWithoutOurFilesAsksTheGateway(t *testing.T) {
	t.Parallel()
	got := newRequest(fullSpec(), surroundings{daemon: "d1", image: "nginx:1"}).host
	if asJSON(got.DNS) != `["10.87.0.1"]` || asJSON(got.DNSSearch) != `["default.svc.cluster.local"]` || len(got.Mounts) != 4 {
		t.Errorf("got %s", asJSON(got))
	}
}

func TestRequestOfAPlainSpecLeavesTheImagesWords(t *testing.T) {
	t.Parallel()
	spec := pods.ContainerSpec{Main: jobspecs.Container{Log: &jobspecs.Log{Driver: "local"}}}
	r := newRequest(spec, surroundings{log: container.LogConfig{Type: "json-file"}})
	c, h := r.config, r.host
	if c.Cmd != nil || c.Entrypoint != nil || c.Env != nil || c.ExposedPorts != nil || c.User != "" || c.StopSignal != "" ||
		h.PortBindings != nil || h.Mounts != nil || h.LogConfig.Type != "local" || *c.StopTimeout != 0 {
		t.Errorf("got %s and %s", asJSON(c), asJSON(h))
	}
}

func with(m map[string]string, pairs ...string) map[string]string {
	all := map[string]string{}
	for k, v := range m {
		all[k] = v
	}
	for i := 0; i < len(pairs); i += 2 {
		all[pairs[i]] = pairs[i+1]
	}
	return all
}

func asJSON(v any) string {
	if r, ok := v.(request); ok {
		v = []any{r.name, r.config, r.host, r.network}
	}
	b, _ := json.Marshal(v)
	return string(b)
}
