package test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stsd/stsd/daemon/planner"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/runtime/pods"
	"github.com/stsd/stsd/runtime/sim"
)

// Pods of several containers, as a set of a story has them: pod=PART,PART…
//
//	init      init container "prepare" of image prep=…
//	sidecar   sidecar "watch" of image side=…
//	extra     a second main container
//	hooks     post_start and pre_stop in the first one
//	disk      scratch folder on disk, in the first main and the second
//	memory    the same in memory
//	share     one process namespace
//
// secret=yes puts a generated secret into the environment; form=yes has a hook
// that runs when all are ready.

func init() {
	maps.Copy(defaults, map[string]string{"pod": "", "prep": "prep:1", "side": "side:1", "secret": "no", "form": "no"})
	maps.Copy(images, map[string]sim.Program{
		"prep:1":    {ExitAfter: time.Second},
		"prep:2":    {ExitAfter: 6 * time.Second},
		"tryprep:1": {ExitAfter: 500 * time.Millisecond, ExitCode: 1, Failures: 2},
		"badprep:1": {ExitAfter: 500 * time.Millisecond, ExitCode: 2},
		"side:1":    {Exec: answer},
		"side:2":    {ReadyAfter: 2 * time.Second, TermTime: time.Second, Exec: answer},
		"badside:1": {ExitAfter: 4 * time.Second, ExitCode: 1},
		"warm:1":    {PostStartTime: 3 * time.Second, PreStopTime: 2 * time.Second, Exec: answer},
		"cold:1":    {PostStartError: errors.New("it stays cold"), Exec: answer},
		"dull:1":    {PreStopTime: -1, Exec: answer},
		"hungry:1":  {ExitAfter: 5 * time.Second, ExitCode: 137, OOM: true},
	})
}

// has tells whether the set's pods have that part.
func (s setSpec) has(part string) bool {
	return slices.Contains(strings.Split(s.get("pod"), ","), part)
}

// parts are the names of the containers that last, beside the first.
func (s setSpec) parts() (names []string) {
	if s.has("sidecar") {
		names = append(names, "watch")
	}
	if s.has("extra") {
		names = append(names, "extra")
	}
	return names
}

// first is what stands before the set.
func (s setSpec) first() string {
	if s.get("secret") != "yes" {
		return ""
	}
	return "secret \"cookie\" {\nlength = 16\nformat = \"hex\"\n}\n"
}

// others are the blocks of a pod beside its first container.
func (s setSpec) others() string {
	var b strings.Builder
	if s.get("form") == "yes" {
		b.WriteString("hook \"form\" {\non = \"set_ready\"\nonce = true\ncommand = [\"yes\"]\n}\n")
	}
	if s.has("share") {
		b.WriteString("share_processes = true\n")
	}
	if medium := s.scratch(); medium != "" {
		fmt.Fprintf(&b, "scratch \"tmp\" {\nmedium = %q\n}\n", medium)
	}
	if s.has("init") {
		fmt.Fprintf(&b, "init \"prepare\" {\nimage = %q\n}\n", s.get("prep"))
	}
	if s.has("sidecar") {
		fmt.Fprintf(&b, "sidecar \"watch\" {\nimage = %q\n%s}\n", s.get("side"), probe("readiness", "exec {\n command = [\"check\"]\n }", "3s", 2))
	}
	return b.String()
}

// second is the second main container, after the first.
func (s setSpec) second() string {
	if !s.has("extra") {
		return ""
	}
	return fmt.Sprintf("container \"extra\" {\nimage = \"app:1\"\n%s}\n", s.mounts())
}

func (s setSpec) scratch() string {
	switch {
	case s.has("disk"):
		return jobspecs.MediumDisk
	case s.has("memory"):
		return jobspecs.MediumMemory
	}
	return ""
}

// mounts is the scratch folder inside a container.
func (s setSpec) mounts() string {
	if s.scratch() == "" {
		return ""
	}
	return "mount \"tmp\" {\npath = \"/tmp\"\n}\n"
}

// inside are the blocks of the first container that parts bring.
func (s setSpec) inside() string {
	out := s.mounts()
	if s.has("hooks") {
		out += "lifecycle {\npost_start {\nexec {\ncommand = [\"warm\"]\n}\n}\npre_stop {\nexec {\ncommand = [\"drain\"]\n}\n}\n}\n"
	}
	return out
}

// cookie is a line of the first container's environment.
func (s setSpec) cookie() string {
	if s.get("secret") != "yes" {
		return ""
	}
	return "COOKIE = secret.cookie\n"
}

// party is what the witness knows of pods as containers.
type party struct {
	inits  map[string]bool // init containers that ended with 0, by the pod's life
	cookie string          // the secret, once a container had it
}

// lifeOf is one life of a pod, as far as its init containers go.
func lifeOf(labels map[string]string) string {
	return labels[jobspecs.LabelSet] + "-" + labels[jobspecs.LabelOrdinal] + " " + labels[jobspecs.LabelRevision] + " " + labels[jobspecs.LabelSandbox]
}

// made judges a container that the agent makes.
func (w *witness) made(spec *pods.ContainerSpec) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reached["container: "+or(spec.Main.Kind, jobspecs.KindMain)]++
	life := spec.Pod.Name + " " + spec.Pod.Revision + " " + spec.Sandbox + " " + spec.Main.Name
	if spec.Main.Kind == jobspecs.KindInit && w.party.inits[life] {
		w.say("promise 5: init container %s of %s ended with 0 in this life of its pod, and is made again", spec.Main.Name, spec.Pod.Name)
	}
	value := spec.Main.Env["COOKIE"]
	switch {
	case value == "":
	case w.party.cookie == "":
		w.party.cookie = value
	case w.party.cookie != value:
		w.say("promise 5: the secret of %s was %s and is %s", spec.Pod.Name, w.party.cookie, value)
	}
}

// unmade notes an init container that ended well and is taken away.
func (w *witness) unmade(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.rig.world.Containers() {
		if c.ID == id && c.Labels[jobspecs.LabelKind] == jobspecs.KindInit && !c.Running() && c.ExitCode == 0 && !c.FinishedAt.IsZero() {
			if w.party.inits == nil {
				w.party.inits = map[string]bool{}
			}
			w.party.inits[lifeOf(c.Labels)+" "+c.Labels[jobspecs.LabelContainer]] = true
		}
	}
}

// ended notes the end of a pod's life.
func (w *witness) ended(pod runtime.PodName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.endLife(pod.Name)
}

func (w *witness) endLife(member string) {
	for life := range w.party.inits {
		if strings.HasPrefix(life, member+" ") {
			delete(w.party.inits, life)
		}
	}
}

// runsWhole tells whether all lasting containers of a member run, and whether they
// are sound.
func (w *witness) runsWhole(m *jobspecs.Member) (runs, sound bool) {
	for _, part := range m.Containers {
		if part.Kind == jobspecs.KindInit {
			continue
		}
		c, there := w.container(m, part.Name)
		if !there || !c.Running() || c.Labels[jobspecs.LabelDaemon] != w.rig.world.Daemon() {
			return false, false
		}
		sound = (sound || !runs) && c.State == "running" && w.sound(&c)
		runs = true
	}
	return runs, sound
}

// container is that of a block: the first main has the pod's own name.
func (w *witness) container(m *jobspecs.Member, block string) (c pods.Container, there bool) {
	for _, part := range []string{block, ""} {
		c, there = w.rig.world.Container(jobspecs.ContainerName(m.Namespace, m.Name, part))
		if there && c.Labels[jobspecs.LabelContainer] == block {
			return c, true
		}
	}
	return c, false
}

// hooked notes a hook of the membership.
func (w *witness) hooked() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reached["op: "+string(planner.RunHook)]++
}

// partOf tells whether a container is one of a member's that last.
func partOf(c *pods.Container, member string) bool {
	switch c.Labels[jobspecs.LabelKind] {
	case jobspecs.KindInit, jobspecs.KindSandbox:
		return false
	}
	return c.Name == member || strings.HasPrefix(c.Name, member+"_") && !strings.HasSuffix(c.Name, "_"+jobspecs.PartPrevious)
}

// lookAtScratch: a scratch folder ends with its pod.
func (w *witness) lookAtScratch(set string) {
	for _, d := range w.rig.world.Scratches() {
		if d.Labels[jobspecs.LabelSet] == set && d.Labels[jobspecs.LabelDaemon] == w.rig.world.Daemon() {
			w.say("set %s is deleted and scratch folder %s is left", set, d.Name)
		}
	}
}

// partWords are changes of a set's pods.
func (g *inventor) partWord() string {
	return g.pick("pod=", "pod=", "pod=init", "pod=sidecar", "pod=extra", "pod=hooks", "pod=hooks", "pod=init,sidecar,disk", "pod=extra,memory,share",
		"pod=init,sidecar,extra,hooks,disk", "prep=prep:2", "prep=tryprep:1", "prep=badprep:1", "side=side:2", "side=badside:1", "secret=yes", "form=yes", "form=yes")
}

// part is a container of a member by its name: mostly the first.
func (g *inventor) part(member string) string {
	return member + g.pick("", "", "", "_"+jobspecs.PartSandbox, "_prepare", "_watch", "_extra")
}
