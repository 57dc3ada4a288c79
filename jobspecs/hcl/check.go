package hcl

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	hcl2 "github.com/hashicorp/hcl/v2"

	"github.com/stsd/stsd/jobspecs"
)

// Check renders a set's members and says what is wrong between them or within
// one: a port that two would publish, paths that overlap. It is for a set whose
// replicas changed without its source; others are the sets that it may name. Of a long set some members are looked at.
func Check(set *jobspecs.Set, t jobspecs.Template, others map[string]Other) error {
	found, _ := problems(set, t, others)
	for _, p := range found {
		if !p.warning {
			return fmt.Errorf("%s: %w", set.Key(), p)
		}
	}
	return nil
}

// A problem is something wrong with members, at an attribute.
type problem struct {
	attributeError
	detail  string
	warning bool
}

func problemAt(path, detail, format string, args ...any) *problem {
	return &problem{attributeError{path, fmt.Errorf(format, args...)}, detail, false}
}

func warningAt(path, detail, format string, args ...any) *problem {
	p := problemAt(path, detail, format, args...)
	p.warning = true
	return p
}

// checkMembers says the problems at their places and gives the ports of the
// first member.
func (d *decoder) checkMembers(spec *jobspecs.Spec) []jobspecs.Port {
	found, pod := problems(&spec.Set, spec.Template, d.others)
	for _, p := range found {
		if p.warning {
			d.warn(d.place(p.path), p.err.Error(), p.detail)
			continue
		}
		d.error(d.place(p.path), p.err.Error(), p.detail)
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

// checkInPart says the problems that do not depend on what is missing: values that
// are not known, and what is wrong. What took too much work is not looked at again.
func (d *decoder) checkInPart(spec *jobspecs.Spec) {
	if d.meter.said {
		return
	}
	env := sampleOf(&spec.Set, 0, d.others)
	r, err := newRenderer(&spec.Set, spec.Template, env)
	if err != nil {
		return
	}
	d.dropVague(r.doc)
	pod, err := r.pod(env.Ordinal)
	found := podProblems(&pod)
	if err != nil {
		found = append(found, attributeProblems(err, pod.Name)...)
	}
	_, written := d.places["termination_grace"]
	if _, known := r.doc["termination_grace"]; !written || known {
		found = append(found, podWarnings(&pod)...)
	}
	for _, p := range found {
		if p.warning {
			d.warn(d.place(p.path), p.err.Error(), p.detail)
			continue
		}
		d.error(d.place(p.path), p.err.Error(), p.detail)
	}
}

// dropVague takes expressions without a known value out of a document.
func (d *decoder) dropVague(doc document) {
	for key, v := range doc {
		if text, ok := expression(opened(v)); ok {
			if d.vague[text] {
				delete(doc, key)
			}
			continue
		}
		switch v := v.(type) {
		case document:
			d.dropVague(v)
		case []any:
			d.dropVagueItems(v)
		}
	}
}

func (d *decoder) dropVagueItems(list []any) {
	for i, item := range list {
		if text, ok := expression(opened(item)); ok && d.vague[text] {
			list[i] = ""
		} else if doc, ok := item.(document); ok {
			d.dropVague(doc)
		}
	}
}

// place is where an attribute stands, or the innermost block around it that is known.
func (d *decoder) place(path string) hcl2.Range {
	for path != "" {
		if at, ok := d.places[path]; ok {
			return at
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return d.places[""] // of the set
}

// lookedAt are the members of a set that are rendered to find problems: of a
// long one the first and the last, fewer where each may have to name thousands.
func lookedAt(replicas int) []int {
	most := 32
	if replicas > 1000 {
		most = 8
	}
	var list []int
	for i := range min(replicas, most) {
		list = append(list, i)
	}
	if replicas > most {
		list = append(list, replicas-1)
	}
	return list
}

func sampleOf(set *jobspecs.Set, index int, others map[string]Other) Env {
	ordinals := set.Ordinals(max(replicasOf(set), 1))
	env := sampleEnv(ordinals, true, others)
	env.Ordinal = ordinals[index]
	return env
}

func replicasOf(set *jobspecs.Set) int {
	if set.Replicas == nil {
		return 1
	}
	return *set.Replicas
}

// problems are those of a set's members, and the first of these.
func problems(set *jobspecs.Set, t jobspecs.Template, others map[string]Other) (list []*problem, first jobspecs.PodSpec) {
	env := sampleOf(set, 0, others)
	r, err := newRenderer(set, t, env)
	if err != nil {
		return []*problem{problemAt("", "", "%w", err)}, first
	}
	published, warnings, work := map[hostPort]string{}, []*problem(nil), 0
	for n, i := range lookedAt(len(env.Ordinals)) {
		ordinal := env.Ordinals[i]
		pod, err := r.pod(ordinal)
		if err != nil {
			return renderProblems(err, &pod, jobspecs.MemberName(set.Name, ordinal)), first
		}
		if n == 0 {
			first = pod
		}
		if work += memberWork - r.meter.left; work > membersWork {
			return append(warnings, problemAt("", tooMuchWorkDetail, "to render its members takes too much time or memory")), first
		}
		found := podProblems(&pod)
		reached := pod
		reached.Publish(set.HostAccess)
		found = append(found, portClashes(&reached, published)...)
		if len(found) > 0 {
			return append(warnings, found...), first
		}
		if warnings == nil {
			warnings = podWarnings(&pod)
		}
	}
	return warnings, first
}

// renderProblems are what is wrong with a member that cannot be rendered: all of
// it that is about single attributes, else the one thing that stopped it.
func renderProblems(err error, pod *jobspecs.PodSpec, member string) []*problem {
	if found := attributeProblems(err, member); len(found) > 0 {
		return append(found, podProblems(pod)...)
	}
	return []*problem{renderProblem(err, member)}
}

// attributeProblems are those that rendering found in containers, each at its attribute.
func attributeProblems(err error, member string) []*problem {
	var all wrongs
	if !errors.As(err, &all) {
		return nil
	}
	var found []*problem
	for _, e := range all {
		found = append(found, renderProblem(e, member))
	}
	return found
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
		found = append(found, filesAndMounts(&c)...)
		found = append(found, contradictions(&c)...)
	}
	return append(found, samePorts(pod)...)
}

// contradictions are attributes of one container that cannot both be.
func contradictions(c *jobspecs.Container) []*problem {
	var found []*problem
	if c.Memory > 0 && c.MemoryReservation > c.Memory {
		found = append(found, problemAt(pathOf(c)+".resources.memory_reservation", "", "memory_reservation %s is more than memory %s", formatSize(c.MemoryReservation), formatSize(c.Memory)))
	}
	if c.RunAsNonRoot && isRoot(c.User) {
		found = append(found, problemAt(pathOf(c)+".user", "run_as_non_root refuses to start it.", "user %q is root", c.User))
	}
	return found
}

func isRoot(user string) bool {
	name, _, _ := strings.Cut(user, ":")
	id, err := strconv.Atoi(name)
	return name == "root" || err == nil && id == 0
}

// samePorts finds what the containers of a pod cannot both have: they share one
// network, and names of ports are looked up in the whole pod.
func samePorts(pod *jobspecs.PodSpec) []*problem {
	var found []*problem
	type number struct {
		port     int
		protocol string
	}
	numbers, names := map[number]string{}, map[string]string{}
	for i := range pod.Containers {
		c := &pod.Containers[i]
		for _, p := range c.Ports {
			path, key := pathOf(c)+".port."+p.Name, number{p.Container, p.Protocol}
			if owner := names[p.Name]; owner != "" {
				found = append(found, problemAt(path, "Names of ports are unique in a member.", "port %q is declared in container %q too", p.Name, owner))
			}
			if owner := numbers[key]; p.Container != 0 && owner != "" && owner != c.Name {
				found = append(found, problemAt(path+".container", "The containers of a member share one network.", "port %d/%s is used by container %q too", p.Container, p.Protocol, owner))
			}
			names[p.Name], numbers[key] = c.Name, c.Name
		}
	}
	return found
}

// podWarnings are what is allowed and will not do what it seems to.
func podWarnings(pod *jobspecs.PodSpec) []*problem {
	var found []*problem
	for i := range pod.Containers {
		c := &pod.Containers[i]
		if c.PreStop != nil && c.PreStop.Sleep > pod.TerminationGrace {
			found = append(found, warningAt(pathOf(c)+".lifecycle.pre_stop.sleep.duration", "The process is killed when the grace is over, without a stop signal before.",
				"a sleep of %s is longer than termination_grace, %s", formatDuration(c.PreStop.Sleep), formatDuration(pod.TerminationGrace)))
		}
		if c.Privileged && len(c.CapAdd) > 0 {
			found = append(found, warningAt(pathOf(c)+".security.cap_add", "", "privileged gives every capability; cap_add adds nothing"))
		}
	}
	return found
}

func overlaps(c *jobspecs.Container) []*problem {
	var found []*problem
	paths := mountPaths(c)
	for i, m := range c.Mounts {
		for _, other := range c.Mounts[:i] {
			if m.Path == "" || other.Path == "" { // not known
				continue
			}
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
		paths[i] = mountPath(pathOf(c), m.Claim, count[m.Claim])
		count[m.Claim]++
	}
	return paths
}

// inside tells whether a clean path is another or lies below it.
func inside(path, other string) bool {
	return path == other || strings.HasPrefix(path, strings.TrimSuffix(other, "/")+"/")
}

func filesAndMounts(c *jobspecs.Container) []*problem {
	var found []*problem
	for _, f := range c.Files {
		at := pathOf(c) + ".file." + f.Path
		for _, m := range c.Mounts {
			switch {
			case f.Path == m.Path:
				found = append(found, problemAt(at, "", "%s cannot be a file: %q is mounted there", f.Path, m.Claim))
			case inside(m.Path, f.Path):
				found = append(found, problemAt(at, "", "%s cannot be a file: %q is mounted below it", f.Path, m.Claim))
			}
		}
		for _, other := range c.Files {
			if f.Path != other.Path && inside(f.Path, other.Path) {
				found = append(found, problemAt(at, "", "%s cannot be below %s, which is a file", f.Path, other.Path))
			}
		}
	}
	return found
}

const maxPort = 65535

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
			if p.Host > maxPort {
				found = append(found, problemAt(pathOf(&c)+".port."+p.Name, "Write host in the port block, or another mode of host_access.",
					"%s would be published at port %d of the host; %d is the last", pod.Name, p.Host, maxPort))
				continue
			}
			key := hostPort{p.Host, p.Protocol}
			for _, taken := range strings.Fields(published[key]) {
				owner, address, _ := strings.Cut(taken, "@")
				if !sameAddress(address, p.HostIP) {
					continue
				}
				found = append(found, problemAt(pathOf(&c)+".port."+p.Name+".host", "Write host = BASE + self.ordinal, so that each member has its own.",
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
