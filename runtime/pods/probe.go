package pods

import (
	"slices"
	"time"

	"github.com/stsd/stsd/jobspecs"
)

// Kind is one of a container's probes.
type Kind string

// The kinds, in the order in which they matter.
const (
	Startup   Kind = "startup"
	Readiness Kind = "readiness"
	Liveness  Kind = "liveness"
	Role      Kind = "role" // what it prints is shown; it changes nothing
)

// The first hurried check after a start. An exec costs the host forty times
// what a connection does.
const (
	earlyConnect = 20 * time.Millisecond
	earlyExec    = 100 * time.Millisecond
)

// Prober schedules one probe of one container and counts what it says.
type Prober struct {
	On    bool
	Probe jobspecs.Probe // thresholds and times filled in
	Due   time.Time      // of the next check
	Early bool           // the next check, or the one that is out, is hurried: its failure does not count
	Gap   time.Duration  // from a hurried check to the next
	Sent  time.Time      // of the last check
	Since time.Time      // Sent of the last check that came back with a verdict
	Again bool           // its port opened while a check was out: the next one comes at once
	Done  bool           // a log probe that has succeeded: it is not asked again
	Busy  bool           // a check is out
	Wins  int            // successes in a row
	Fails int            // failures in a row that count
	Said  string         // of the last failure, for people
}

// newProber plans the first check; hurried ones come early and double up to the
// period.
func newProber(p *jobspecs.Probe, due time.Time, hurried bool) Prober {
	if p == nil {
		return Prober{}
	}
	r := Prober{On: true, Probe: filled(*p), Due: due}
	if hurried {
		r.Gap = min(early(p), r.Probe.Period)
		r.Early = r.Gap < r.Probe.Period
	}
	return r
}

func early(p *jobspecs.Probe) time.Duration {
	if len(p.Exec) > 0 {
		return earlyExec
	}
	return earlyConnect
}

// filled has the defaults of SPEC where p is zero.
func filled(p jobspecs.Probe) jobspecs.Probe {
	p.Period = or(p.Period, 10*time.Second)
	p.Timeout = or(p.Timeout, 5*time.Second)
	p.SuccessThreshold = or(p.SuccessThreshold, 1)
	p.FailureThreshold = or(p.FailureThreshold, 3)
	return p
}

// opened notes that the port of the probe has begun to listen: it is asked now.
func (r *Prober) opened(now time.Time) {
	switch {
	case !r.On || r.Wins > 0:
	case r.Busy:
		r.Again = true
	default:
		r.Due = sooner(r.Due, now)
	}
}

func (r *Prober) again(now time.Time) {
	if r.Again && r.Wins == 0 {
		r.Due = now
	}
	r.Again = false
}

// hurriedPorts are the ports that probes wait for, each once.
func hurriedPorts(probes ...*jobspecs.Probe) []int {
	var ports []int
	for _, p := range probes {
		if n := portOf(p); n != 0 && !slices.Contains(ports, n) {
			ports = append(ports, n)
		}
	}
	return ports
}

// portOf is the port that a probe connects to; zero: it connects to none.
func portOf(p *jobspecs.Probe) int {
	switch {
	case p == nil:
	case p.HTTP != nil:
		return p.HTTP.Port
	case p.TCP != nil:
		return p.TCP.Port
	case p.GRPC != nil:
		return p.GRPC.Port
	}
	return 0
}

// sent notes that a check is out.
func (r *Prober) sent(now time.Time) { r.Busy, r.Sent = true, now }

// dropped notes that a check ended without a verdict.
func (r *Prober) dropped(now time.Time) { r.Busy, r.Due = false, now }

// heard notes the verdict of a check.
func (r *Prober) heard(err error, now time.Time) {
	r.Busy, r.Since = false, r.Sent
	defer r.again(now)
	if err == nil {
		r.Done = r.Probe.Log != nil
		r.Wins, r.Fails, r.Said, r.Early = r.Wins+1, 0, "", false
		r.Due = later(r.Sent.Add(r.Probe.Period), now)
		return
	}
	r.Wins, r.Said = 0, err.Error()
	if !r.Early {
		r.Fails++
		r.Due = later(r.Sent.Add(r.Probe.Period), now)
		return
	}
	r.Due, r.Early = now.Add(r.Gap), r.Gap < r.Probe.Period
	r.Gap = min(2*r.Gap, r.Probe.Period)
}

func (r *Prober) won() bool  { return r.Wins >= r.Probe.SuccessThreshold }
func (r *Prober) lost() bool { return r.Fails >= r.Probe.FailureThreshold }

// Probes is what is known of the health of one run of a container.
type Probes struct {
	ID        string    // of the container; empty: nothing is probed yet
	RunAt     time.Time // its StartedAt: another run of the same container is probed anew
	Began     time.Time // when this run began, by our clock
	TakenOver bool      // it ran before its spec was handed over: started until contradicted
	Started   bool      // past its startup probe, or without one

	Startup, Readiness, Liveness, Role Prober

	Said string // by the role probe: the member's role

	Ready      bool
	Known      bool // see runtime.Pod.ReadyKnown
	ReadySince time.Time
}

// newProbes begins to probe a run. A run that was found is taken over: where its
// startup could be over it counts as over, and readiness is unknown.
func newProbes(c *Container, main *jobspecs.Container, health []string, found bool, now time.Time) Probes {
	p := Probes{ID: c.ID, RunAt: c.StartedAt, Began: now, TakenOver: found, Known: !found}
	if found && !c.StartedAt.IsZero() {
		p.Began = sooner(c.StartedAt, now)
	}
	p.Liveness = newProber(main.Liveness, time.Time{}, false)
	p.Readiness = newProber(main.Readiness, time.Time{}, true)
	p.Role = newProber(main.Role, time.Time{}, true)
	if main.Readiness == nil && len(health) > 0 {
		p.Readiness = newProber(&jobspecs.Probe{Exec: health}, time.Time{}, true)
	}
	p.Startup = newProber(main.Startup, time.Time{}, true)
	if !p.Startup.On || found && !now.Before(p.giveUp()) {
		p.started(now)
		return p
	}
	p.Startup.Due = later(p.Began.Add(p.Startup.Probe.InitialDelay+p.Startup.Gap), now)
	return p
}

// started begins readiness and liveness. After a startup probe, and for a run
// that was taken over, readiness is asked at once.
func (p *Probes) started(now time.Time) {
	p.Started = true
	r, l := &p.Readiness, &p.Liveness
	p.Role.Due = later(p.Began.Add(p.Role.Probe.InitialDelay+p.Role.Gap), now)
	if l.On {
		l.Due = later(p.Began.Add(l.Probe.InitialDelay), now.Add(l.Probe.Period))
	}
	if !r.On {
		p.ready(true, now)
		if p.TakenOver {
			p.ReadySince = p.Began
		}
		return
	}
	r.Due = p.Began.Add(r.Probe.InitialDelay)
	if !p.Startup.On && !p.TakenOver {
		r.Due = r.Due.Add(r.Gap)
	}
	r.Due = later(r.Due, now)
}

// giveUp is when the startup probe's time is over.
func (p *Probes) giveUp() time.Time {
	s := &p.Startup.Probe
	return p.Began.Add(s.InitialDelay + time.Duration(s.FailureThreshold)*s.Period)
}

// gaveUp tells whether the startup probe has failed for good. A check that is
// still out may save it.
func (p *Probes) gaveUp(now time.Time) bool {
	s := &p.Startup
	return s.On && !p.Started && !s.Busy && s.Said != "" && !now.Before(p.giveUp())
}

// opened notes that a port has begun to listen.
func (p *Probes) opened(port int, now time.Time) {
	for _, r := range []*Prober{&p.Startup, &p.Readiness} {
		if r.On && portOf(&r.Probe) == port {
			r.opened(now)
		}
	}
}

func (p *Probes) of(k Kind) *Prober {
	switch k {
	case Startup:
		return &p.Startup
	case Readiness:
		return &p.Readiness
	case Role:
		return &p.Role
	}
	return &p.Liveness
}

// heard notes the verdict of a check.
func (p *Probes) heard(k Kind, err error, now time.Time) {
	r := p.of(k)
	r.heard(err, now)
	switch {
	case k == Startup && r.won():
		p.started(now)
	case k == Startup:
		if r.Sent.Before(p.giveUp()) {
			r.Due = sooner(r.Due, later(p.giveUp(), now)) // the last one, before it gives up
		}
	case k == Role && r.lost():
		p.Said = ""
	case k == Readiness && r.won():
		p.ready(true, now)
	case k == Readiness && r.lost():
		p.ready(false, now)
	}
}

func (p *Probes) ready(is bool, now time.Time) {
	p.Known = true
	switch {
	case !is:
		p.Ready, p.ReadySince = false, time.Time{}
	case !p.Ready:
		p.Ready, p.ReadySince = true, now
	}
}

// kinds are the probes that run now. While a startup probe is pending there is
// no other; one that must end is asked only whether it still answers.
func (p *Probes) kinds(ending, paused bool) []Kind {
	switch {
	case p.ID == "":
		return nil
	case !p.Started && (ending || paused):
		return nil
	case !p.Started:
		return []Kind{Startup}
	case ending || paused:
		return []Kind{Readiness}
	}
	return []Kind{Readiness, Liveness, Role}
}

// due are the checks to send now, and when the next one is due (zero: none). One
// exec is out at a time: the one that has waited longest follows its answer, so that
// a slow one holds up the others and keeps none of them from its turn.
func (p *Probes) due(now time.Time, kinds []Kind) (send []Kind, wake time.Time) {
	busy := p.execOut()
	next := -1 // of send: the exec
	for _, k := range kinds {
		r := p.of(k)
		switch exec := len(r.Probe.Exec) > 0; {
		case !r.On, r.Busy, r.Done, exec && busy:
		case r.Due.After(now):
			wake = first(wake, r.Due)
		case exec && next >= 0:
			if r.Due.Before(p.of(send[next]).Due) {
				send[next] = k
			}
		default:
			send = append(send, k)
			if exec {
				next = len(send) - 1
			}
		}
	}
	return send, wake
}

func (p *Probes) execOut() bool {
	for _, r := range []*Prober{&p.Startup, &p.Readiness, &p.Liveness, &p.Role} {
		if r.Busy && len(r.Probe.Exec) > 0 {
			return true
		}
	}
	return false
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

func sooner(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// first is the sooner of two times, where zero means never.
func first(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
