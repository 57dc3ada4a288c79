package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestADaemonWithoutAnEngineSaysSoTakesSpecsAndRecovers(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	w := idleWorld(t, behind(p))
	w.start()
	if v := decode[version](w, "version").Daemon; v.Connected || v.EngineError == "" {
		t.Errorf("version = %+v, want no connection and why", v)
	}
	w.fails(0, []string{"not reachable"}, "version")
	w.ok("apply", "--detach", w.spec(spec{replicas: 2}))
	w.fails(0, []string{"web"}, "ls")
	w.fails(0, []string{"not reachable"}, "status", "web")
	w.explains("web-0", "not reachable")

	p.start()
	w.settled("web", 2)
	if v := decode[version](w, "version").Daemon; !v.Connected || !strings.HasPrefix(v.Engine, "docker ") {
		t.Errorf("version = %+v, want a connection", v)
	}
}

func TestALostEngineChangesNothingUntilItIsBack(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	w := idleWorld(t, behind(p))
	p.start()
	w.start()
	w.apply(spec{})
	before := w.ids("web")

	p.stop()
	w.await("the loss to be seen", func() error {
		if s := w.status("web"); s.Members[0].Phase != "Unknown" || s.Available != 0 {
			return fmt.Errorf("%+v", s)
		}
		return nil
	})
	w.ok("scale", "web", "4", "--detach")
	w.untouched(before, "web-0", "web-1", "web-2")
	if err := engine().ContainerKill(t.Context(), w.container("web-1"), "KILL"); err != nil {
		t.Fatal(err)
	}
	p.start()
	w.comesBack("web-1", before["web-1"])
	w.settled("web", 4)
	w.untouched(before, "web-0", "web-2")
	w.prints(boots("web-1", 2), "exec", "web-1", "--", "/demo", "cat", "/data/log")
}

func TestASecondDaemonIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	folder, socket := *w, *w
	folder.dir, socket.dir = t.TempDir(), t.TempDir()
	w.refused("state", "--data-dir", w.state(), "--socket", folder.socket())
	w.refused("socket", "--data-dir", socket.state(), "--socket", w.socket())
	w.ok("ls")
}

// refused starts another daemon, which must end and say word.
func (w *world) refused(word string, args ...string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 30*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, binary, append([]string{"daemon", "--subnet-pool", w.pool}, args...)...).CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || ctx.Err() != nil {
		w.t.Errorf("a second daemon %v ended with %v, want a failure", args, err)
	}
	if !strings.Contains(string(out), word) {
		w.t.Errorf("%q is not said: %s", word, out)
	}
}
