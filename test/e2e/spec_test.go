package e2e_test

import (
	"cmp"
	"fmt"
	"strings"
)

// spec is a set of demo servers. The zero value is "web" with three members, a
// volume and a readiness probe.
type spec struct {
	name     string
	replicas int
	image    string
	set      string // further lines of the set
	inside   string // further lines of the container
	env      string // "A=1 B=2"
	noProbe  bool
	noVolume bool
}

func (s spec) String() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("statefulset %q {", cmp.Or(s.name, "web"))
	line("  replicas = %d\n  termination_grace = \"5s\"\n%s", cmp.Or(s.replicas, 3), s.set)
	if !s.noVolume {
		line("  volume \"data\" {\n  }")
	}
	line("  container \"web\" {\n    image = %q\n%s", cmp.Or(s.image, "stsd-demo:1"), s.inside)
	if s.env != "" {
		line("    env = {")
		for _, pair := range strings.Fields(s.env) {
			k, v, _ := strings.Cut(pair, "=")
			line("      %s = %q", k, v)
		}
		line("    }")
	}
	line("    port \"http\" {\n      container = 8080\n    }")
	if !s.noVolume {
		line("    mount \"data\" {\n      path = \"/data\"\n    }")
	}
	if !s.noProbe {
		line("    probe \"readiness\" {\n      http {\n        port = \"http\"\n        path = \"/healthz\"\n      }\n      period = \"1s\"\n    }")
	}
	line("  }\n}")
	return b.String()
}

// apply applies a set and follows until it runs.
func (w *world) apply(s spec) string {
	w.t.Helper()
	return w.ok("apply", "--timeout", patience.String(), w.spec(s))
}

func (w *world) spec(s spec) string {
	w.t.Helper()
	return w.file(cmp.Or(s.name, "web")+".hcl", s.String())
}

// The parts of `-o json` that the tests read.
type (
	version struct {
		Daemon *struct {
			Daemon, Engine string
			Connected      bool
			EngineError    string `json:"engine_error"`
		}
		Error string
	}
	member struct {
		Name, Phase, Reason, Message, Revision, Image, IP, Waiting string
		Ready, Available                                           bool
		Restarts                                                   int
	}
	status struct {
		Replicas       int
		Ready          int `json:"ready_replicas"`
		Available      int `json:"available_replicas"`
		Updated        int `json:"updated_replicas"`
		Generation     int
		UpdateRevision string `json:"update_revision"`
		Waiting        *struct{ Member, For string }
		Conditions     []struct {
			Type, Reason, Message string
			Status                bool
		}
		Members []member
		Volumes []struct{ Name, State string }
	}
	setPlan struct {
		Set      string
		Changes  bool
		Steps    []struct{ Op, Member, Volume, Why string }
		Data     []string
		Warnings []string
	}
)

func (w *world) status(set string) status { return decode[status](w, "status", set) }

// condition is one condition of a set in one line, "" when it is not true.
func (s status) condition(kind string) string {
	for _, c := range s.Conditions {
		if c.Type == kind && c.Status {
			return c.Reason + ": " + c.Message
		}
	}
	return ""
}

// says waits until a set's status or a member's explanation names the cause.
func (w *world) explains(m string, words ...string) {
	w.t.Helper()
	w.await("explain "+m+" to name the cause", func() error {
		r := w.stsd("explain", m)
		for _, word := range words {
			if !strings.Contains(r.out, word) {
				return fmt.Errorf("%q is not said: %v", word, r)
			}
		}
		return nil
	})
}

// settled waits until a set has n members and nothing to do.
func (w *world) settled(set string, n int) status {
	w.t.Helper()
	var s status
	w.await(fmt.Sprintf("%s to have %d members", set, n), func() error {
		s = w.status(set)
		for _, c := range s.Conditions {
			if c.Type == "Progressing" && !c.Status && s.Available == n && len(s.Members) == n {
				return nil
			}
		}
		return fmt.Errorf("%+v", s)
	})
	return s
}
