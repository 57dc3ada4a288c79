package e2e_test

import (
	"testing"
)

func TestABrokenFirstImageIsRepairedByACorrectedSpec(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fails(4, []string{"stsd explain " + w.ns + "/web-0"}, "apply", "--timeout", "4s", w.spec(spec{image: "stsd-demo:broken"}))
	w.explains("web-0", "exit code 1", "stsd logs --previous "+w.ns+"/web-0")
	w.explains("web-2", "web-0", "exit code 1")
	w.apply(spec{})
	w.version("web-2", "1")
}

func TestABrokenRolloutIsRepairedByACorrectedSpec(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(spec{})
	before := w.ids("web")
	w.fails(4, nil, "apply", "--timeout", "4s", w.spec(spec{image: "stsd-demo:broken"}))
	w.explains("web-2", "exit code 1")
	w.explains("web-0", "web-2", "exit code 1")
	w.untouched(before, "web-0", "web-1")
	w.apply(spec{image: "stsd-demo:2"})
	for _, m := range []string{"web-0", "web-1", "web-2"} {
		w.version(m, "2")
	}
}

func TestAnImageThatIsNotHereIsNamedAndEndsApplyWithCode3(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	absent := spec{image: "stsd-demo:absent", inside: "    pull = \"never\"\n"}
	w.fails(3, []string{"stsd-demo:absent", "stsd explain " + w.ns + "/web-0"}, "apply", "--timeout", patience.String(), w.spec(absent))
	w.explains("web-0", "stsd-demo:absent", "never", "stsd set image "+w.ns+"/web")
	w.apply(spec{})
	w.version("web-0", "1")
}

func TestAnImageThatNobodyHasIsNamedAndRepaired(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	unknown := spec{image: "stsd.invalid/none:1"} // a registry that does not exist
	if r := w.stsd("apply", "--timeout", "4s", w.spec(unknown)); r.code != 3 && r.code != 4 {
		t.Errorf("want exit code 3 or 4: %v", r)
	}
	w.explains("web-0", "stsd.invalid/none:1")
	w.apply(spec{replicas: 1})
	w.version("web-0", "1")
}

func TestASlowStartWithinItsBudgetIsNotRestarted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(spec{replicas: 1, env: "START_DELAY=20s", inside: `
    probe "startup" {
      tcp {
        port = "http"
      }
      period            = "1s"
      failure_threshold = 60
    }
    probe "liveness" {
      tcp {
        port = "http"
      }
      period = "1s"
    }
`})
	if m := w.settled("web", 1).Members[0]; m.Restarts != 0 {
		t.Errorf("restarts = %d, want 0", m.Restarts)
	}
	w.prints(boots("web-0", 1), "exec", "web-0", "--", "/demo", "cat", "/data/log")
}
