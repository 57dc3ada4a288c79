package hcl

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	hcl2 "github.com/hashicorp/hcl/v2"

	"github.com/stsd/stsd/jobspecs"
)

// Check renders a set's members and says what is wrong between them or within
// one: a port that two would publish, paths that overlap. It is for a set whose
// replicas changed without its source. Of a long set some members are looked at.
func Check(set *jobspecs.Set, t jobspecs.Template) error {
	for _, p := range problems(set, t) {
		return fmt.Errorf("%s: %w", set.Key(), p)
	}
	return nil
}

// A problem is something wrong with members, at an attribute.
type problem struct {
	attributeError
	detail string
}

func problemAt(path, detail, format string, args ...any) *problem {
	return &problem{attributeError{path, fmt.Errorf(format, args...)}, detail}
}

// checkMembers says the problems at their places and gives the ports of the
// first member.
func (d *decoder) checkMembers(spec *jobspecs.Spec) []jobspecs.Port {
	for _, p := range problems(&spec.Set, spec.Template) {
		d.error(d.place(p.path), p.err.Error(), p.detail)
	}
	pod, err := Render(&spec.Set, spec.Template, sampleOf(&spec.Set, 0))
	if err != nil {
		return nil
	}
	var ports []jobspecs.Port
	for _, c := range pod.Containers {
		for _, p := range c.Ports {
			p.Host, p.HostIP = 0, ""
			ports = append(ports, p)
		}
	}
	return ports
}

// place is where an attribute stands, or the innermost block around it that is known.
func (d *decoder) place(path string) hcl2.Range {
	for path != "" {
		if at, ok := d.places[path]; ok {
			return at
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return hcl2.Range{}
}

// lookedAt are the members of a set that are rendered to find problems: of a
// long one the first and the last.
func lookedAt(replicas int) []int {
	const most = 32
	var list []int
	for i := range min(replicas, most) {
		list = append(list, i)
	}
	if replicas > most {
		list = append(list, replicas-1)
	}
	return list
}

func sampleOf(set *jobspecs.Set, index int) Env {
	ordinals := ordinalsOf(set, max(replicasOf(set), 1))
	env := sampleEnv(ordinals, true)
	env.Ordinal = ordinals[index]
	return env
}

func replicasOf(set *jobspecs.Set) int {
	if set.Replicas == nil {
		return 1
	}
	return *set.Replicas
}

func problems(set *jobspecs.Set, t jobspecs.Template) []*problem {
	env := sampleOf(set, 0)
	r, err := newRenderer(set, t, env)
	if err != nil {
		return []*problem{problemAt("", "", "%w", err)}
	}
	published := map[hostPort]string{}
	for _, i := range lookedAt(len(env.Ordinals)) {
		ordinal := env.Ordinals[i]
		pod, err := r.pod(ordinal)
		if err != nil {
			return []*problem{renderProblem(err, jobspecs.MemberName(set.Name, ordinal))}
		}
		found := podProblems(&pod)
		found = append(found, portClashes(&pod, published)...)
		if len(found) > 0 {
			return found
		}
	}
	return nil
}

func renderProblem(err error, member string) *problem {
	at := &attributeError{err: err}
	if errors.As(err, &at) {
		err = at.err
	}
	return problemAt(at.path, fmt.Sprintf("That is so for %s.", member), "%w", err)
}

// podProblems are those of one member alone.
func podProblems(pod *jobspecs.PodSpec) []*problem {
	var found []*problem
	for _, c := range pod.Containers {
		found = append(found, overlaps(&c)...)
		found = append(found, filesInMounts(&c)...)
	}
	return found
}

func overlaps(c *jobspecs.Container) []*problem {
	var found []*problem
	paths := mountPaths(c)
	for i, m := range c.Mounts {
		for _, other := range c.Mounts[:i] {
			if inside(m.Path, other.Path) || inside(other.Path, m.Path) {
				found = append(found, problemAt(paths[i], "", "mount paths overlap: %s of %q and %s of %q", m.Path, m.Claim, other.Path, other.Claim))
			}
		}
	}
	return found
}

// mountPaths are the places of a container's mounts, in the order of Mounts.
func mountPaths(c *jobspecs.Container) []string {
	paths, count := make([]string, len(c.Mounts)), map[string]int{}
	for i, m := range c.Mounts {
		paths[i] = mountPath("container."+c.Name, m.Claim, count[m.Claim])
		count[m.Claim]++
	}
	return paths
}

// inside tells whether a clean path is another or lies below it.
func inside(path, other string) bool {
	return path == other || strings.HasPrefix(path, strings.TrimSuffix(other, "/")+"/")
}

func filesInMounts(c *jobspecs.Container) []*problem {
	var found []*problem
	for _, f := range c.Files {
		for _, m := range c.Mounts {
			if inside(f.Path, m.Path) {
				found = append(found, problemAt("container."+c.Name+".file."+f.Path, fmt.Sprintf("%s lies inside the mount of %q at %s. Put the file elsewhere.", f.Path, m.Claim, m.Path), "a file inside a mount is not supported yet"))
			}
			if f.Path != m.Path && inside(m.Path, f.Path) {
				found = append(found, problemAt("container."+c.Name+".file."+f.Path, "", "%s cannot be a file: %q is mounted below it", f.Path, m.Claim))
			}
		}
		for _, other := range c.Files {
			if f.Path != other.Path && inside(f.Path, other.Path) {
				found = append(found, problemAt("container."+c.Name+".file."+f.Path, "", "%s cannot be below %s, which is a file", f.Path, other.Path))
			}
		}
	}
	return found
}

type hostPort struct {
	port     int
	protocol string
}

// portClashes notes what a member publishes and finds what another one
// publishes too. Different addresses of the host do not clash, unless one means
// all of them.
func portClashes(pod *jobspecs.PodSpec, published map[hostPort]string) []*problem {
	var found []*problem
	for _, c := range pod.Containers {
		for _, p := range c.Ports {
			if p.Host == 0 {
				continue
			}
			key := hostPort{p.Host, p.Protocol}
			for _, taken := range strings.Fields(published[key]) {
				owner, address, _ := strings.Cut(taken, "@")
				if !sameAddress(address, p.HostIP) {
					continue
				}
				found = append(found, problemAt("container."+c.Name+".port."+p.Name+".host", "Write host = BASE + self.ordinal, so that each member has its own.",
					"host port %d/%s would be published twice: by %s and by %s", p.Host, p.Protocol, owner, pod.Name))
				break
			}
			published[key] += " " + pod.Name + "@" + p.HostIP
		}
	}
	return found
}

func sameAddress(a, b string) bool {
	return a == b || everyAddress(a) || everyAddress(b)
}

func everyAddress(s string) bool {
	a, err := netip.ParseAddr(s)
	return err == nil && a.IsUnspecified()
}
