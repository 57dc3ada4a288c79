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
		},
		Main: jobspecs.Container{
			Name: "nginx", Image: "nginx:1", Command: []string{"run"}, Env: map[string]string{"B": "2", "A": "1"},
			User: "1:2", WorkingDir: "/w", StopSignal: "SIGQUIT", CPU: 1.5, Memory: 100,
			Ports: []jobspecs.Port{
				{Name: "http", Container: 80, Protocol: "tcp", Host: 8081, HostIP: "0.0.0.0"},
				{Name: "dns", Container: 53, Protocol: "udp", Host: 5301},
				{Name: "inner", Container: 9000, Protocol: "tcp"},
			},
			Mounts: []jobspecs.Mount{{Claim: "data", Volume: "data-web-1", Path: "/data", ReadOnly: true}},
		},
	}
}

func TestRequestHasAllOfTheSpec(t *testing.T) {
	t.Parallel()
	log := container.LogConfig{Type: "json-file", Config: map[string]string{"max-size": "10m"}}
	got := newRequest(fullSpec(), surroundings{daemon: "d1", image: "nginx:1", resolvConf: "/run/stsd/x/resolv.conf", log: log})
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
			Resources:  container.Resources{NanoCPUs: 1_500_000_000, Memory: 100, MemorySwap: 100},
			Mounts: []mount.Mount{
				{Type: "volume", Source: "data-web-1", Target: "/data", ReadOnly: true, VolumeOptions: &mount.VolumeOptions{
					Labels:       map[string]string{"stsd.unasked": "d1"},
					DriverConfig: &mount.Driver{Name: "rexray", Options: map[string]string{"fs": "xfs", "size": "5"}},
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

func TestRequestWithoutOurFilesAsksTheGateway(t *testing.T) {
	t.Parallel()
	got := newRequest(fullSpec(), surroundings{daemon: "d1", image: "nginx:1"}).host
	if asJSON(got.DNS) != `["10.87.0.1"]` || asJSON(got.DNSSearch) != `["default.svc.cluster.local"]` || len(got.Mounts) != 1 {
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
