package test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime/sim"
)

// A story is a list of lines; every random history is one, and can be written
// down and read again:
//
//	apply SET option=value…          see defaults
//	scale SET N | image SET IMAGE | undo SET | undo SET N
//	restart-now SET[-N] | stop-member SET[-N] | start-member SET[-N] | fresh SET-N | force SET N (a scale)
//	pause SET | resume SET | restart SET | delete SET [volumes=delete|retain]
//	pass DURATION
//	fail VERB [when=before|after] [times=N]     -1: until mend
//	slow VERB DURATION               latency; VERB "" is "all"
//	mend                             no faults, no latency
//	kill NAME | rm NAME | start NAME | freeze NAME | thaw NAME | sicken NAME | heal NAME
//	rmvolume NAME                    with the containers that hold it
//	retag IMAGE                      the name means another image from now on
//	clock DURATION                   the host's wall clock is set forward, or back
//	reboot DURATION                  the engine ends all containers and is away
//	disconnect DURATION              the engine is away
//	crash [down=DURATION]            kill -9 of the daemon
//	crash-at N [when=before|after] [of=store] [down=DURATION]     at its N-th write to the host, or commit, from now
//	stop [down=DURATION]             of the daemon, in order
//	foreign container|volume NAME [stsd=ID]     somebody else's, or another stsd's of a set of the same name
//
// How long something takes is measured by the bubble of testing/synctest; what the
// daemon and the engine take for the time of day is that of the host's clock.
type story []string

// do is one line of a story.
func (r *rig) do(line string) {
	words := strings.Fields(line)
	opts := map[string]string{}
	var args []string
	for _, w := range words[1:] {
		if k, v, ok := strings.Cut(w, "="); ok {
			opts[k] = v
			continue
		}
		args = append(args, w)
	}
	arg := func(i int) string {
		if i < len(args) {
			return args[i]
		}
		return ""
	}
	verb := words[0]
	r.witness.reached["step: "+verb]++
	if slices.Contains([]string{"apply", "scale", "image", "undo", "pause", "resume", "restart", "delete", "force", "restart-now", "stop-member", "start-member", "fresh"}, verb) {
		r.ask(line, verb, args, opts)
		return
	}
	r.note("%s", line)
	switch verb {
	case "pass":
		r.pass(duration(arg(0)))
	case "fail", "slow", "mend":
		r.disturb(verb, args, opts)
	case "kill", "rm", "start", "freeze", "thaw", "sicken", "heal", "rmvolume", "retag":
		r.hand(verb, arg(0))
	case "clock":
		r.unrest(60 * time.Second)
		r.clock.step(duration(arg(0)))
	case "reboot":
		r.unrest(duration(arg(0)))
		r.world.RestartEngine(duration(arg(0)))
	case "disconnect":
		r.unrest(duration(arg(0)))
		r.world.Disconnect(duration(arg(0)))
	case "crash", "crash-at", "stop":
		r.down = duration(or(opts["down"], "0s"))
		r.end(verb, arg(0), opts)
	case "foreign":
		r.intrude(arg(0), arg(1), opts["stsd"])
	default:
		panic("no such line in a story: " + line)
	}
	r.settle()
}

// ask is a line that asks the daemon for something.
func (r *rig) ask(line, verb string, args []string, opts map[string]string) {
	if !r.up() {
		r.note("%s   (the daemon is down)", line)
		return
	}
	arg := func(i int) string { return append(args, "", "")[i] }
	var err error
	set := arg(0)
	switch verb {
	case "apply":
		err = r.apply(setSpec{set, opts})
	case "scale":
		err = r.scale(set, number(arg(1)), false)
	case "force":
		err = r.scale(set, number(arg(1)), true)
	case "restart-now", "stop-member", "start-member":
		do, _, _ := strings.Cut(verb, "-")
		if name, o, ok := jobspecs.ParseMember(set); ok {
			err = r.members(name, do, []int{o})
		} else {
			err = r.members(set, do, nil)
		}
	case "fresh":
		name, o, _ := jobspecs.ParseMember(set)
		err = r.fresh(name, o)
	case "image":
		err = r.setImage(set, arg(1))
	case "undo":
		err = r.rollout(set, "undo", max(0, number(arg(1))))
	case "pause", "resume", "restart":
		err = r.rollout(set, verb, 0)
	case "delete":
		err = r.remove(set, opts["volumes"])
	}
	if err != nil {
		r.note("%s   (refused: %v)", line, err)
		r.witness.reached["refused: "+verb]++
	} else {
		r.note("%s", line)
	}
	r.settle()
}

func (r *rig) disturb(verb string, args []string, opts map[string]string) {
	switch verb {
	case "mend":
		r.slow = sooner(r.slow, r.clock.now().Add(longest))
		r.world.Mend()
		r.restless = r.clock.now().Add(90 * time.Second)
		return
	case "slow":
		r.slow = r.clock.now().Add(forever)
		r.world.Latency(strings.TrimPrefix(args[0], "all"), duration(args[1]))
	case "fail":
		f := sim.Fault{Verb: args[0], Times: number(or(opts["times"], "1"))}
		if opts["when"] == "after" {
			f.When = sim.After
		}
		r.world.Fail(f)
	}
	r.unrest(forever)
}

// longest is how long a loop may look at slow things before it acts.
const longest = 10 * time.Second

// lag is how old the intent may be that a loop acts by.
func (r *rig) lag(at time.Time) time.Duration {
	if at.After(r.slow) {
		return 0
	}
	return longest
}

func sooner(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// hand is what a user or fate does to one object.
func (r *rig) hand(verb, name string) {
	c, ok := r.world.Container(name)
	if ok && c.Labels[jobspecs.LabelDaemon] != r.world.Daemon() {
		return // what is not ours is left to itself
	}
	r.unrest(60 * time.Second)
	switch verb {
	case "kill":
		r.world.Kill(name)
	case "rm":
		r.world.RemoveContainer(name)
	case "start":
		r.world.Restart(name)
	case "freeze":
		r.world.Pause(name)
		r.unrest(forever)
	case "thaw":
		r.world.Unpause(name)
	case "sicken":
		r.world.Sicken(name, "out of order")
		r.witness.sick[runOf(&c)] = true
		r.unrest(forever)
	case "heal":
		r.world.Heal(name)
		delete(r.witness.sick, runOf(&c))
	case "rmvolume":
		if d, ok := r.world.Disk(name); ok && d.Labels[jobspecs.LabelDaemon] == r.world.Daemon() {
			r.removeVolume(name)
		}
	case "retag":
		r.world.Program(name, images[name])
	}
}

func (r *rig) end(verb, n string, opts map[string]string) {
	d := &r.life.host
	if opts["of"] == "store" {
		d = &r.life.store
	}
	switch {
	case !r.up():
	case verb == "crash-at":
		r.life.doom(d, number(n), opts["when"] == "after")
	case verb == "crash":
		r.kill()
	case verb == "stop":
		r.stop()
		r.life.die()
	}
}

// intrude puts somebody else's object where one of ours may want to be.
func (r *rig) intrude(kind, name, stsd string) {
	labels := map[string]string{}
	if stsd != "" { // another one has a set of the same name
		set, ordinal, _ := jobspecs.ParseMember(strings.TrimPrefix(name, "data-"))
		labels = map[string]string{
			jobspecs.LabelDaemon: stsd, jobspecs.LabelNamespace: jobspecs.DefaultNamespace, jobspecs.LabelSet: set,
			jobspecs.LabelOrdinal: strconv.Itoa(ordinal), jobspecs.LabelRevision: set + "-other", jobspecs.LabelClaim: "data",
		}
	}
	what := kind + " " + name
	switch kind {
	case "container":
		if _, taken := r.world.Container(name); taken {
			return
		}
		r.world.ForeignContainer(name, netip.Addr{}, labels)
		c, _ := r.world.Container(name)
		r.witness.foreign[what] = c.ID
	case "volume":
		if _, taken := r.world.Disk(name); taken {
			return
		}
		r.world.ForeignVolume(name, labels)
		d, _ := r.world.Disk(name)
		r.witness.foreign[what] = strconv.Itoa(d.Serial)
	}
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func duration(s string) time.Duration {
	d, err := time.ParseDuration(s)
	if err != nil {
		panic(fmt.Sprintf("%q in a story: %v", s, err))
	}
	return d
}

// end of a story: faults stop, intruders leave, lost volumes are brought back,
// a corrected spec is applied. Everything must come to rest where it belongs.

// patience is how long that may take.
const patience = 30 * time.Minute

func (r *rig) finale() {
	r.note("the end: faults stop, corrected specs are applied")
	r.peace()
	for _, set := range []string{"web", "db"} {
		r.correct(set)
	}
	if !r.until(patience, func() bool { r.restore(); return len(r.unsettled()) == 0 }) {
		r.witness.complain("liveness: after %s: %s", patience, strings.Join(r.unsettled(), "; "))
		return
	}
	r.note("everything is as it was asked for")
	r.idle()
}

func (r *rig) peace() {
	r.down, r.slow = 0, sooner(r.slow, r.clock.now().Add(longest))
	r.world.Mend()
	r.life.spare()
	r.settle()
	for what := range r.witness.foreign {
		kind, name, _ := strings.Cut(what, " ")
		delete(r.witness.foreign, what)
		if kind == "volume" {
			r.world.RemoveVolume(name)
		} else {
			r.world.RemoveContainer(name)
		}
	}
	for _, c := range r.world.Containers() {
		r.world.Heal(c.Name)
		r.world.Unpause(c.Name)
	}
	clear(r.witness.sick)
	r.life.volumesChanged()
	r.restless = r.clock.now().Add(90 * time.Second)
	r.until(time.Minute, func() bool { return r.life.daemon.Ready() == nil })
}

// correct applies a spec of the set that works.
func (r *rig) correct(set string) {
	i := r.witness.wanted(set)
	if i == nil || i.gone || i.deleting {
		return
	}
	if i.paused {
		r.do("resume " + set)
	}
	probe, rests := i.spec.get("probe"), len(i.stopped) > 0
	good := i.spec.with("image=app:9", "strategy=rolling", "partition=0", "args=corrected", "probe="+probe, "after=", "guard=0", "leave=", "join=", "deadline=0s", "prep=prep:1", "side=side:1")
	r.do("apply " + good.String())
	if rests { // also those that the set has again only now
		r.do("start-member " + set)
	}
}

// restore brings back the volumes that status says are lost.
func (r *rig) restore() {
	for _, set := range []string{"web", "db"} {
		s, _ := r.status(set)
		for _, v := range s.Volumes {
			if _, there := r.world.Disk(v.Name); v.State == "lost" && !there {
				r.witness.reached["volume lost, and brought back"]++
				r.note("the user brings back %s", v.Name)
				r.restoreVolume(set, v.Claim, v.Name, v.Ordinal)
			}
		}
	}
}

// unsettled says what is not yet as it was asked for.
func (r *rig) unsettled() (out []string) {
	for _, set := range []string{"web", "db"} {
		i := r.witness.wanted(set)
		switch {
		case i == nil || i.gone:
		case i.deleting:
			out = append(out, set+" is being deleted")
		default:
			out = append(out, r.unsettledSet(set, i)...)
		}
	}
	return out
}

func (r *rig) unsettledSet(set string, i *intent) (out []string) {
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	s, ok := r.status(set)
	if !ok {
		return []string{set + " has no status"}
	}
	complete := false
	for _, c := range s.Conditions {
		complete = complete || c.Type == jobspecs.CondProgressing && !c.Status && c.Reason == "Complete"
		if c.Type == jobspecs.CondAvailable && !c.Status || c.Type == jobspecs.CondStalled && c.Status {
			say("%s: %s %s", set, c.Reason, c.Message)
		}
	}
	if !complete {
		say("%s does not report Complete: %+v", set, s.Conditions)
	}
	if s.Replicas != i.replicas || s.AvailableReplicas != i.replicas || s.UpdatedReplicas != i.replicas || len(s.Members) != i.replicas || s.CurrentRevision != i.update {
		say("%s: status says %d of %d available, %d updated, %d members, revision %s of %s", set, s.AvailableReplicas, i.replicas, s.UpdatedReplicas, len(s.Members), s.CurrentRevision, i.update)
	}
	run := map[string]bool{}
	for _, c := range r.world.Containers() {
		if c.Labels[jobspecs.LabelSet] != set || strings.HasSuffix(c.Name, "_"+jobspecs.PartPrevious) || c.Labels[jobspecs.LabelKind] == jobspecs.KindInit {
			continue
		}
		o := number(c.Labels[jobspecs.LabelOrdinal])
		if !i.fits(o) || !c.Running() || c.Labels[jobspecs.LabelRevision] != i.update {
			say("container %s is %s with %s", c.Name, c.State, c.Labels[jobspecs.LabelRevision])
		}
		run[c.Name] = true
	}
	for _, o := range i.ordinals() {
		for _, part := range i.spec.parts() {
			if name := jobspecs.ContainerName(jobspecs.DefaultNamespace, jobspecs.MemberName(set, o), part); !run[name] {
				say("%s does not run", name)
			}
		}
	}
	if lost := r.witness.unanswered(set, i); lost != "" {
		say("%s", lost)
	}
	for _, o := range i.ordinals() {
		if !run[jobspecs.MemberName(set, o)] {
			say("%s does not run", jobspecs.MemberName(set, o))
		}
		for _, c := range i.spec.claims() {
			if _, ok := r.world.Disk(jobspecs.VolumeName(jobspecs.DefaultNamespace, c.name, set, o)); !ok {
				say("a volume of %d is missing", o)
			}
		}
	}
	return out
}

// idle: when all is well nothing is written, and without probes nothing is asked.
func (r *rig) idle() {
	r.pass(30 * time.Second)
	probed := false
	for _, set := range []string{"web", "db"} {
		i := r.witness.wanted(set)
		probed = probed || i != nil && !i.gone && (i.spec.get("probe") != "none" || i.spec.has("sidecar"))
	}
	r.world.Forget()
	r.pass(time.Minute)
	if n := len(r.world.Writes()); n > 0 {
		r.witness.complain("promise 8: an idle daemon writes: %v", r.world.Writes())
	}
	if n := r.world.Reads(); n > 0 && !probed {
		r.witness.complain("promise 8: an idle daemon asks %d times", n)
	}
}

// close ends the daemon and the host's last timers.
func (r *rig) close() {
	if r.up() {
		r.stop()
	}
	<-r.life.done
	time.Sleep(time.Hour) // what was begun at the host ends
}

// invent makes a random story: at least 30 lines, 3 faults and a crash.
func invent(seed uint64) story {
	g := &inventor{rand.New(rand.NewPCG(seed, 1)), map[string]setSpec{}}
	s := story{g.apply("web")}
	faults := 0
	for len(s) < 28+g.IntN(4) || faults < 3 {
		line, fault := g.line()
		if verb, _, _ := strings.Cut(line, " "); fault && !slices.Contains([]string{"mend", "heal", "thaw", "crash", "crash-at"}, verb) {
			faults++
		}
		s = append(s, line)
	}
	s = slices.Insert(s, 5+g.IntN(len(s)-5), g.crash("crash"))
	s = slices.Insert(s, 2+g.IntN(len(s)-5), g.crash("crash-at "+strconv.Itoa(1+g.IntN(12))+g.pick(" when=before", " when=after")))
	if some := rand.New(rand.NewPCG(seed, 2)); some.IntN(4) == 0 {
		by := []string{"-90m", "-90m", "-3s", "3s", "90m", "48h"}
		s = slices.Insert(s, 3+some.IntN(len(s)-3), "clock "+by[some.IntN(len(by))])
	}
	return s
}

type inventor struct {
	*rand.Rand
	sets map[string]setSpec
}

func (g *inventor) pick(from ...string) string { return from[g.IntN(len(from))] }

func (g *inventor) line() (line string, fault bool) {
	switch n := g.IntN(100); {
	case n < 33:
		return g.user(), false
	case n < 58:
		return "pass " + g.pick("0s", "100ms", "1s", "3s", "10s", "30s", "40s", "3m"), false
	}
	return g.fate(), true
}

func (g *inventor) set() string { return g.pick("web", "web", "web", "db") }

func (g *inventor) user() string {
	set := g.set()
	switch g.IntN(24) {
	case 16, 17:
		return "restart-now " + set + g.pick("", "-0", "-1", "-2")
	case 18, 19:
		return "stop-member " + set + g.pick("", "-0", "-1", "-1", "-2")
	case 20, 21:
		return "start-member " + set + g.pick("", "", "-1")
	case 22:
		return "fresh " + set + "-" + g.pick("0", "1", "2")
	case 23:
		return fmt.Sprintf("force %s %d", set, g.IntN(4))
	case 0, 1, 2, 3, 4, 5:
		return g.apply(set)
	case 6, 7:
		return fmt.Sprintf("scale %s %d", set, g.IntN(6))
	case 8, 9:
		return "image " + set + " " + g.image()
	case 10, 11:
		return "undo " + set
	case 12:
		return "pause " + set
	case 13:
		return "resume " + set
	case 14:
		return "restart " + set
	}
	return "delete " + set + g.pick("", "", " volumes=delete", " volumes=retain")
}

func (g *inventor) image() string {
	return g.pick("app:1", "app:1", "app:2", "app:2", "app:3", "app:3", "slow:1", "remote:1", "stubborn:1", "never:1", "crash:1", "unstart:1", "absent:1", "warm:1", "cold:1", "dull:1", "hungry:1")
}

// apply writes a set, or changes a little of what was written before.
func (g *inventor) apply(set string) string {
	s, ok := g.sets[set]
	if !ok || g.IntN(6) == 0 {
		s = setSpec{set, nil}.with("image="+g.pick("app:1", "app:2", "app:3"), "replicas="+g.pick("1", "2", "3", "3", "4", "5"),
			"manage="+g.pick(jobspecs.Ordered, jobspecs.Ordered, jobspecs.Parallel), "probe="+g.pick("tcp", "tcp", "none", "exec", "startup", "live"),
			"failure="+g.pick(jobspecs.FailPause, jobspecs.FailRollback, jobspecs.FailRollback, jobspecs.FailWait), "deadline="+g.pick("20s", "40s", "3m", "10m"))
		for range g.IntN(4) {
			s = g.change(s)
		}
	}
	for range 1 + g.IntN(2) {
		s = g.change(s)
	}
	if g.IntN(3) == 0 {
		s = s.with(g.partWord())
	}
	g.sets[set] = s
	return "apply " + s.String()
}

func (g *inventor) change(s setSpec) setSpec {
	return s.with(g.pick(
		"image="+g.image(), "image="+g.image(), "image="+g.image(), "args=a"+strconv.Itoa(g.IntN(3)),
		"replicas="+strconv.Itoa(g.IntN(6)), "start="+g.pick("0", "0", "1", "3"), "manage="+g.pick(jobspecs.Ordered, jobspecs.Parallel),
		"max="+g.pick("1", "2", "3", "50%"), "minready="+g.pick("0s", "4s", "20s"), "partition="+g.pick("0", "0", "1", "2", "4"),
		"strategy="+g.pick(jobspecs.Rolling, jobspecs.Rolling, jobspecs.OnDelete), "recovery="+g.pick("0s", "8s", "40s"),
		"claim="+g.pick("none", "data:retain:retain", "data:delete:retain", "data:retain:delete", "data:delete:delete", "data:delete:retain,log:retain:delete"),
		"reserve="+g.pick("", "1", "0,2"), "guard="+g.pick("0", "1", "2"), "leave="+g.pick("", "yes", "no"), "join="+g.pick("", "yes", "no"),
		"deadline="+g.pick("40s", "3m"), "failure="+g.pick(jobspecs.FailPause, jobspecs.FailRollback, jobspecs.FailWait), "after="+g.pick("", "", "db"),
		"probe="+g.pick("tcp", "none", "exec", "startup", "live"), "grace="+g.pick("0s", "5s", "30s"), "pull="+g.pick(jobspecs.PullMissing, jobspecs.PullAlways, jobspecs.PullNever),
	))
}

func (g *inventor) fate() string {
	member := g.set() + "-" + strconv.Itoa(g.IntN(6))
	verb := g.pick("create", "start", "stop", "remove", "rename", "image", "pull", "inspect", "list", "watch", "check", "hook", "sandbox.image", "scratch.remove", "volume.list", "volume.create", "volume.delete")
	switch g.IntN(24) {
	case 0, 1, 2:
		return "fail " + verb + g.pick(" when=before", " when=after") + " times=" + g.pick("1", "1", "2", "4")
	case 3:
		return "fail " + verb + g.pick(" when=before", " when=after") + " times=-1"
	case 4:
		return "slow " + g.pick(verb, "all") + " " + g.pick("20ms", "500ms", "3s")
	case 5, 6, 7:
		return "mend"
	case 8, 9, 10:
		return "kill " + g.part(member)
	case 11, 12:
		return "rm " + g.part(member)
	case 13:
		return g.pick("start ", "freeze ", "thaw ") + g.part(member)
	case 14:
		return "sicken " + g.part(member)
	case 15:
		return "heal " + member
	case 16:
		return "rmvolume data-" + member
	case 17:
		return "retag " + g.pick("app:1", "app:2", "app:3")
	case 18:
		return "reboot " + g.pick("0s", "1s", "20s")
	case 19:
		return "disconnect " + g.pick("0s", "1s", "20s")
	case 20, 21:
		return g.crash("crash-at " + strconv.Itoa(1+g.IntN(8)) + g.pick(" when=before", " when=after") + g.pick("", " of=store"))
	case 22:
		return g.pick(g.crash("stop"), g.crash("crash"))
	}
	return "foreign " + g.pick("container "+member, "volume data-"+member) + g.pick("", " stsd=other")
}

func (g *inventor) crash(how string) string { return how + " down=" + g.pick("0s", "0s", "2s", "30s") }
