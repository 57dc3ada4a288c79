package docker

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/go-connections/nat"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime/pods"
)

// request is everything the engine is asked for when a container is made.
type request struct {
	name    string
	config  *container.Config
	host    *container.HostConfig
	network *network.NetworkingConfig
}

// surroundings are the facts outside a ContainerSpec that a request depends on.
type surroundings struct {
	daemon     string
	image      string // what the container is made from, a name where that is exact
	resolvConf string // path of the file to bind; empty: the engine writes it, with the gateway as its server
	log        container.LogConfig
	gpus       []container.DeviceRequest
	bound      []mount.Mount     // files
	subpaths   bool              // the engine mounts a folder of a volume by itself
	folders    map[string]string // where it does not: volume → its folder on the engine's host
}

func newRequest(spec pods.ContainerSpec, s surroundings) request {
	return request{
		name:    spec.Name,
		config:  containerConfig(spec, s),
		host:    hostConfig(spec, s),
		network: networkingConfig(&spec),
	}
}

func containerConfig(spec pods.ContainerSpec, s surroundings) *container.Config {
	main, grace := &spec.Main, wholeSeconds(spec.Pod.TerminationGrace)
	if isSandbox(&spec) {
		grace = wholeSeconds(sandboxGrace)
	}
	c := &container.Config{
		Image:       s.image,
		User:        main.User,
		WorkingDir:  main.WorkingDir,
		Env:         pairs(main.Env, "="),
		Labels:      containerLabels(spec, s.daemon),
		StopSignal:  main.StopSignal,
		StopTimeout: &grace, // for whoever types docker stop, and for the engine's own end
		Healthcheck: &container.HealthConfig{Test: []string{"NONE"}},
		Cmd:         main.Args,
	}
	if spec.Sandbox == "" {
		c.Hostname = spec.Pod.Name
		c.Domainname = spec.Pod.Domain
		c.ExposedPorts = exposed(main.Ports)
	}
	if len(main.Command) > 0 {
		c.Entrypoint = main.Command
		c.Cmd = append([]string{}, main.Args...) // never the image's: they belong to its entrypoint
	}
	return c
}

func hostConfig(spec pods.ContainerSpec, s surroundings) *container.HostConfig {
	main := &spec.Main
	c := &container.HostConfig{
		RestartPolicy:  container.RestartPolicy{Name: container.RestartPolicyDisabled},
		LogConfig:      s.log,
		Mounts:         append(mountsOf(spec, s), s.bound...),
		Tmpfs:          tmpfsOf(&spec),
		Resources:      resources(main, s.gpus),
		Privileged:     main.Privileged,
		ReadonlyRootfs: main.ReadOnlyRoot,
		CapAdd:         main.CapAdd,
		CapDrop:        main.CapDrop,
	}
	if main.NoNewPrivileges {
		c.SecurityOpt = []string{"no-new-privileges:true"}
	}
	if main.FSGroup != nil {
		c.GroupAdd = []string{strconv.Itoa(*main.FSGroup)}
	}
	if main.Log != nil {
		c.LogConfig = container.LogConfig{Type: main.Log.Driver, Config: main.Log.Options}
	}
	if s.resolvConf != "" {
		c.Mounts = append(c.Mounts, mount.Mount{Type: mount.TypeBind, Source: s.resolvConf, Target: "/etc/resolv.conf"})
	}
	if spec.Sandbox != "" {
		joinSandbox(c, &spec)
		return c
	}
	ownNetwork(c, &spec, s.resolvConf == "")
	return c
}

// ownNetwork is what a container has that joins no sandbox.
func ownNetwork(c *container.HostConfig, spec *pods.ContainerSpec, engineResolves bool) {
	pod := &spec.Pod
	c.NetworkMode = container.NetworkMode(pod.Network)
	c.PortBindings = bindings(spec.Main.Ports)
	c.ExtraHosts = pairs(pod.ExtraHosts, ":")
	c.Sysctls = pod.Sysctls
	c.ShmSize = spec.Main.ShmSize
	if isSandbox(spec) {
		c.IpcMode = container.IPCModeShareable
	}
	if engineResolves {
		c.DNSSearch = pod.Search
		c.DNS = []string{pod.Gateway.String()}
	}
}

// joinSandbox is what makes a container one of a pod. The engine takes no host
// name, port, sysctl or server of names here: they are the sandbox's.
func joinSandbox(c *container.HostConfig, spec *pods.ContainerSpec) {
	of := "container:" + spec.Sandbox
	c.NetworkMode = container.NetworkMode(of)
	c.IpcMode = container.IpcMode(of)
	if spec.Pod.ShareProcesses {
		c.PidMode = container.PidMode(of)
	}
}

func resources(main *jobspecs.Container, gpus []container.DeviceRequest) container.Resources {
	r := container.Resources{
		NanoCPUs:          int64(main.CPU * 1e9),
		Memory:            main.Memory,
		MemorySwap:        main.Memory, // the limit is one of both: no swap on top
		MemoryReservation: main.MemoryReservation,
		DeviceRequests:    gpus,
	}
	if main.PIDs > 0 {
		r.PidsLimit = &main.PIDs
	}
	for _, u := range main.Ulimits {
		r.Ulimits = append(r.Ulimits, &container.Ulimit{Name: u.Name, Soft: u.Soft, Hard: u.Hard})
	}
	return r
}

// networkingConfig is nil where the network is the sandbox's.
func networkingConfig(spec *pods.ContainerSpec) *network.NetworkingConfig {
	if spec.Sandbox != "" {
		return nil
	}
	pod := &spec.Pod
	endpoint := &network.EndpointSettings{Aliases: aliases(pod)}
	if pod.Address.IsValid() {
		endpoint.IPAMConfig = &network.EndpointIPAMConfig{IPv4Address: pod.Address.String()}
	}
	return &network.NetworkingConfig{EndpointsConfig: map[string]*network.EndpointSettings{pod.Network: endpoint}}
}

// aliases are the names under which the engine itself finds a member and its set
// on their network. They answer in the members' files only while our DNS does not.
func aliases(pod *jobspecs.PodSpec) []string {
	ns, service := pod.Set.Namespace, pod.Service
	return []string{
		pod.Name + "." + service,
		pod.Name + "." + service + "." + ns,
		pod.Name + "." + service + "." + ns + ".svc",
		pod.Name + ".svc",
		pod.FQDN(),
		service,
		service + "." + ns,
		service + "." + ns + ".svc",
		service + ".svc",
		pod.Domain,
	}
}

// containerLabels are the user's, then stsd's on top.
func containerLabels(spec pods.ContainerSpec, daemon string) map[string]string {
	labels := map[string]string{}
	for k, v := range spec.Pod.Labels {
		if !strings.HasPrefix(k, "stsd.") {
			labels[k] = v
		}
	}
	maps.Copy(labels, objectLabels(daemon, spec.Pod.Set, spec.Pod.Ordinal))
	labels[jobspecs.LabelRevision] = spec.Pod.Revision
	labels[jobspecs.LabelService] = spec.Pod.Service
	labels[jobspecs.LabelContainer] = spec.Main.Name
	maps.Copy(labels, spec.Labels)
	labels[jobspecs.LabelDaemon] = daemon
	return labels
}

func objectLabels(daemon string, set jobspecs.Key, ordinal int) map[string]string {
	return map[string]string{
		jobspecs.LabelDaemon:    daemon,
		jobspecs.LabelNamespace: set.Namespace,
		jobspecs.LabelSet:       set.Name,
		jobspecs.LabelOrdinal:   strconv.Itoa(ordinal),
	}
}

func volumeLabels(daemon string, set jobspecs.Key, ordinal int, claim string) map[string]string {
	labels := objectLabels(daemon, set, ordinal)
	labels[jobspecs.LabelClaim] = claim
	return labels
}

func exposed(ports []jobspecs.Port) nat.PortSet {
	if len(ports) == 0 {
		return nil
	}
	set := nat.PortSet{}
	for _, p := range ports {
		set[natPort(p)] = struct{}{}
	}
	return set
}

func bindings(ports []jobspecs.Port) nat.PortMap {
	var m nat.PortMap
	for _, p := range ports {
		if p.Host == 0 {
			continue
		}
		if m == nil {
			m = nat.PortMap{}
		}
		m[natPort(p)] = append(m[natPort(p)], nat.PortBinding{HostIP: hostIP(p), HostPort: strconv.Itoa(p.Host)})
	}
	return m
}

func natPort(p jobspecs.Port) nat.Port {
	return nat.Port(strconv.Itoa(p.Container) + "/" + protocol(p))
}

func protocol(p jobspecs.Port) string {
	if p.Protocol == "" {
		return "tcp"
	}
	return p.Protocol
}

func hostIP(p jobspecs.Port) string {
	if p.HostIP == "" {
		return "127.0.0.1"
	}
	return p.HostIP
}

// pairs lists a map as key, sep, value, sorted by key.
func pairs(m map[string]string, sep string) []string {
	var list []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		list = append(list, k+sep+m[k])
	}
	return list
}

func wholeSeconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }
