package hcl

import (
	"fmt"
	"slices"
	"time"

	"github.com/stsd/stsd/jobspecs"
)

// container is one container of a member.
func (v view) container(p containerPart, pod podDoc) (jobspecs.Container, []error) {
	c := pod.container(p)
	out := jobspecs.Container{
		Kind:       p.kind,
		Name:       p.name,
		Image:      c.Image,
		ImageID:    v.env.ImageIDs[c.Image],
		Pull:       or(c.Pull, jobspecs.PullMissing),
		Command:    c.Command,
		Args:       c.Args,
		Env:        c.Env,
		User:       c.User,
		WorkingDir: c.WorkingDir,
		StopSignal: c.StopSignal,
		Ports:      ports(c.Port),
		Mounts:     v.mounts(c.Mount, pod),
		Files:      files(c.File),
		Restart: jobspecs.Restart{
			First:   c.Restart.First.or(0),
			Initial: c.Restart.Initial.or(time.Second),
			Max:     c.Restart.Max.or(time.Minute),
			Reset:   c.Restart.Reset.or(5 * time.Minute),
		},
		Ulimits: ulimitsOf(c.Ulimits),
		Auth:    c.RegistryAuth,

		CPU:               c.Resources.CPU,
		Memory:            int64(c.Resources.Memory),
		MemoryReservation: int64(c.Resources.MemoryReservation),
		PIDs:              c.Resources.PIDs,
		ShmSize:           int64(c.Resources.ShmSize),
		GPUs:              c.Resources.GPUs,

		Privileged:      c.Security.Privileged,
		ReadOnlyRoot:    c.Security.ReadOnlyRoot,
		NoNewPrivileges: c.Security.NoNewPrivileges,
		RunAsNonRoot:    c.Security.RunAsNonRoot,
		FSGroup:         c.Security.FSGroup,
		CapAdd:          sortedUnique(c.Security.CapAdd),
		CapDrop:         sortedUnique(c.Security.CapDrop),
	}
	if c.Log != nil {
		out.Log = &jobspecs.Log{Driver: c.Log.Driver, Options: c.Log.Options}
	}
	return out, slices.Concat(filesFit(&out), probes(&out, c), hooks(&out, c))
}

// maxRendered is the longest file of a container, 16 MiB.
const maxRendered = 16 << 20

func filesFit(c *jobspecs.Container) (wrong []error) {
	for _, f := range c.Files {
		if len(f.Content) > maxRendered {
			wrong = append(wrong, &attributeError{pathOf(c) + ".file." + f.Path + ".content", fmt.Errorf("the file has %d bytes; %d (16 MiB) is the most", len(f.Content), maxRendered)})
		}
	}
	return wrong
}

func (pod *podDoc) container(p containerPart) containerDoc {
	switch p.kind {
	case jobspecs.KindInit:
		return pod.Init[p.name]
	case jobspecs.KindSidecar:
		return pod.Sidecar[p.name]
	}
	return pod.Container[p.name]
}

// mounts are sorted by the name of what is mounted.
func (v view) mounts(written map[string][]mountDoc, pod podDoc) []jobspecs.Mount {
	var out []jobspecs.Mount
	for _, name := range sortedKeys(written) {
		for _, m := range written[name] {
			out = append(out, v.mount(name, m, pod))
		}
	}
	return out
}

func (v view) mount(name string, m mountDoc, pod podDoc) jobspecs.Mount {
	out := jobspecs.Mount{Claim: name, Path: m.Path, SubPath: m.SubPath, ReadOnly: m.ReadOnly}
	if bind, ok := pod.Bind[name]; ok {
		out.Kind, out.Source = jobspecs.MountBind, bind.Source
		out.ReadOnly = m.ReadOnly || bind.ReadOnly
		return out
	}
	if _, ok := pod.Scratch[name]; ok {
		out.Kind = jobspecs.MountScratch
		return out
	}
	out.Kind = jobspecs.MountVolume
	out.Volume = jobspecs.VolumeName(v.set.Namespace, name, v.set.Name, v.env.Ordinal)
	return out
}

// scratch are the folders that some container mounts, by name.
func (v view) scratch(pod podDoc, containers []jobspecs.Container) []jobspecs.Scratch {
	var out []jobspecs.Scratch
	for _, name := range sortedKeys(pod.Scratch) {
		if !slices.ContainsFunc(containers, func(c jobspecs.Container) bool { return mountsScratch(&c, name) }) {
			continue
		}
		s := pod.Scratch[name]
		out = append(out, jobspecs.Scratch{
			Name:   name,
			Volume: jobspecs.ScratchName(v.set.Namespace, name, v.set.Name, v.env.Ordinal),
			Medium: or(s.Medium, jobspecs.MediumDisk),
			Size:   int64(s.Size),
		})
	}
	return out
}

func mountsScratch(c *jobspecs.Container, name string) bool {
	return slices.ContainsFunc(c.Mounts, func(m jobspecs.Mount) bool { return m.Kind == jobspecs.MountScratch && m.Claim == name })
}

// ulimitsOf are sorted by name. What does not parse was refused before.
func ulimitsOf(written map[string]string) []jobspecs.Ulimit {
	var out []jobspecs.Ulimit
	for _, name := range sortedKeys(written) {
		if l, err := parseUlimit(written[name]); err == nil {
			l.Name = name
			out = append(out, l)
		}
	}
	return out
}

// pathOf is where a container stands in a template: "sidecar.exporter".
func pathOf(c *jobspecs.Container) string { return join(c.Kind, c.Name) }

func probes(out *jobspecs.Container, c containerDoc) (wrong []error) {
	into := map[string]**jobspecs.Probe{"startup": &out.Startup, "readiness": &out.Readiness, "liveness": &out.Liveness, "role": &out.Role}
	for _, kind := range sortedKeys(c.Probe) {
		p, err := probe(c.Probe[kind], c.Port)
		if err != nil {
			wrong = append(wrong, &attributeError{fmt.Sprintf("%s.probe.%s.%s.port", pathOf(out), kind, checkOf(p)), err})
			continue
		}
		if kind == "role" {
			p.FailureThreshold = 1
		}
		*into[kind] = p
	}
	return wrong
}

func probe(p probeDoc, ports map[string]portDoc) (*jobspecs.Probe, error) {
	out := &jobspecs.Probe{
		InitialDelay:     p.InitialDelay.or(0),
		Period:           p.Period.or(10 * time.Second),
		Timeout:          p.Timeout.or(5 * time.Second),
		SuccessThreshold: max(p.SuccessThreshold, 1),
		FailureThreshold: p.FailureThreshold,
	}
	if out.FailureThreshold == 0 {
		out.FailureThreshold = 3
	}
	var err error
	switch {
	case p.Exec != nil:
		out.Exec = p.Exec.Command
	case p.HTTP != nil:
		out.HTTP, err = httpCheck(p.HTTP, ports)
	case p.TCP != nil:
		out.TCP = &jobspecs.TCPCheck{}
		out.TCP.Port, err = portNumber(p.TCP.Port, ports)
	case p.GRPC != nil:
		out.GRPC = &jobspecs.GRPCCheck{Service: p.GRPC.Service}
		out.GRPC.Port, err = portNumber(p.GRPC.Port, ports)
	case p.Log != nil:
		out.Log = &jobspecs.LogCheck{Pattern: p.Log.Pattern}
	}
	return out, err
}

func httpCheck(h *httpDoc, ports map[string]portDoc) (*jobspecs.HTTPCheck, error) {
	out := &jobspecs.HTTPCheck{Path: or(h.Path, "/"), Scheme: or(h.Scheme, "http"), Headers: h.Headers}
	var err error
	out.Port, err = portNumber(h.Port, ports)
	return out, err
}

// checkOf is the block of a probe that names a port.
func checkOf(p *jobspecs.Probe) string {
	switch {
	case p.HTTP != nil:
		return "http"
	case p.GRPC != nil:
		return "grpc"
	}
	return "tcp"
}

// hooks are the handlers of a lifecycle block.
func hooks(out *jobspecs.Container, c containerDoc) (wrong []error) {
	var err error
	if out.PostStart, err = handler(c.Lifecycle.PostStart, c.Port); err != nil {
		wrong = append(wrong, &attributeError{pathOf(out) + ".lifecycle.post_start.http.port", err})
	}
	if out.PreStop, err = handler(c.Lifecycle.PreStop, c.Port); err != nil {
		wrong = append(wrong, &attributeError{pathOf(out) + ".lifecycle.pre_stop.http.port", err})
	}
	return wrong
}

func handler(h *handlerDoc, ports map[string]portDoc) (*jobspecs.Handler, error) {
	switch {
	case h == nil:
		return nil, nil
	case h.Exec != nil:
		return &jobspecs.Handler{Exec: h.Exec.Command}, nil
	case h.HTTP != nil:
		check, err := httpCheck(h.HTTP, ports)
		return &jobspecs.Handler{HTTP: check}, err
	case h.Sleep != nil:
		return &jobspecs.Handler{Sleep: h.Sleep.Duration.or(0)}, nil
	}
	return nil, nil
}

// portNumber resolves the port of a check, a number or the name of a port block.
func portNumber(ref any, ports map[string]portDoc) (int, error) {
	if n, ok := ref.(float64); ok {
		return int(n), nil
	}
	if ref == nil {
		return 0, nil // not known
	}
	name, _ := ref.(string)
	p, ok := ports[name]
	if !ok {
		return 0, fmt.Errorf("there is no port %q in this container%s", name, didYouMean(name, sortedKeys(ports)))
	}
	return p.Container, nil
}
