package e2e_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/volume"
	"github.com/docker/go-connections/nat"
)

func TestOfTwoSetsOfWhichOneIsBadNoneIsStored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bad := spec{name: "bad", replicas: 1, inside: "    imagge = \"x\"\n"}
	w.fails(1, []string{"imagge", "both.hcl:"}, "apply", w.file("both.hcl", spec{}.String()+bad.String()))
	w.empty()
	// A clash that only the daemon can see.
	w.apply(spec{name: "old", replicas: 1})
	w.fails(1, []string{"old-0"}, "apply", w.file("clash.hcl", spec{}.String()+spec{name: "old-0", replicas: 1}.String()))
	if sets := w.ok("-o", "name", "ls"); strings.Contains(sets, "web") {
		t.Errorf("sets: %q", sets)
	}
}

// empty checks that nothing is stored.
func (w *world) empty() {
	w.t.Helper()
	for _, set := range decode[[]struct{ Name, State string }](w, "ls", "-A") {
		if set.State != "Stray" { // pods that were left alone, of a set that is not stored
			w.t.Errorf("stored: %v", set)
		}
	}
}

func TestARenamedClaimAsksForConfirmation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(spec{replicas: 1})
	before := w.ids("web")
	renamed := w.file("renamed.hcl", strings.ReplaceAll(spec{replicas: 1}.String(), `"data"`, `"store"`))

	if plan := decode[[]setPlan](w, "plan", renamed)[0]; len(plan.Data) == 0 {
		t.Errorf("plan says nothing about the data: %+v", plan)
	}
	w.fails(6, []string{"data:", "--yes"}, "apply", renamed)
	w.untouched(before, "web-0")
	w.ok("apply", "--yes", "--timeout", patience.String(), renamed)
	w.prints(boots("web-0", 1), "exec", "web-0", "--", "/demo", "cat", "/data/log")
	if !w.hasVolume("data-web-0") {
		t.Error("the old volume is gone")
	}
}

func TestAVolumeThatIsGoneIsNotReplacedByAnEmptyOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(spec{})
	before := w.ids("web")
	w.terminate()
	w.remove("web-1")
	if err := engine().VolumeRemove(t.Context(), w.volume("data-web-1"), true); err != nil {
		t.Fatal(err)
	}
	w.start()
	w.explains("web-1", "VolumeLost", "data-web-1", "stsd replace "+w.ns+"/web-1 --fresh-volume")
	w.stays(2*time.Second, func() error {
		if w.hasVolume("data-web-1") {
			return fmt.Errorf("an empty volume was made")
		}
		return nil
	})
	if got := w.status("web").condition("Stalled"); !strings.Contains(got, "VolumeLost") {
		t.Errorf("Stalled = %q, want VolumeLost", got)
	}
	w.fails(6, []string{"data-web-1"}, "replace", w.ns+"/web-1", "--fresh-volume")
	w.ok("replace", w.ns+"/web-1", "--fresh-volume", "--yes", "--timeout", patience.String())
	w.settled("web", 3)
	w.untouched(before, "web-0", "web-2")
}

var idleServer = &container.Config{Image: "stsd-demo:1", Cmd: []string{"serve"}, ExposedPorts: nat.PortSet{"8080/tcp": {}}}

func TestAForeignContainerOfAMembersNameIsNamedAndLeftAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.foreign(idleServer, nil, w.container("web-1"))
	w.fails(3, []string{w.container("web-1"), id[:12], "stsd explain " + w.ns + "/web-1"}, "apply", "--timeout", patience.String(), w.spec(spec{}))
	w.explains("web-1", w.container("web-1"), id[:12])
	if got := w.inspect("web-1").ID; got != id {
		t.Errorf("the container is %s, want the foreign %s", got, id)
	}
	w.remove("web-1")
	w.settled("web", 3)
}

func TestAForeignVolumeOfAMembersNameIsNamedAndLeftAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	name := w.volume("data-web-1")
	made, err := engine().VolumeCreate(t.Context(), volume.CreateOptions{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { w.check(removeForeign(name)) }()
	w.fails(3, []string{name}, "apply", "--timeout", patience.String(), w.spec(spec{}))
	w.explains("web-1", name)
	if got, err := engine().VolumeInspect(t.Context(), name); err != nil || got.CreatedAt != made.CreatedAt {
		t.Errorf("the volume is %+v, %v", got, err)
	}
	if err := engine().VolumeRemove(t.Context(), name, false); err != nil {
		t.Fatal(err)
	}
	w.settled("web", 3)
}

// removeForeign removes a volume if it is nobody's.
func removeForeign(name string) error {
	v, err := engine().VolumeInspect(context.Background(), name)
	if err != nil || len(v.Labels) > 0 {
		return err
	}
	return engine().VolumeRemove(context.Background(), name, true)
}

func TestAForeignNetworkOfTheNamespacesNameIsNamedAndLeftAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made, err := engine().NetworkCreate(t.Context(), w.network(), network.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.check(engine().NetworkRemove(context.Background(), made.ID)) })
	w.fails(3, []string{w.network()}, "apply", "--timeout", patience.String(), w.spec(spec{replicas: 1}))
	w.explains("web-0", w.network(), "left alone")
	if err := engine().NetworkRemove(t.Context(), made.ID); err != nil {
		t.Fatal(err)
	}
	w.settled("web", 1)
}

func TestATakenHostPortNamesItsOwner(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	port := freePorts(t, 3)
	published := spec{inside: fmt.Sprintf("    port \"out\" {\n      container = 8080\n      host      = %d + self.ordinal\n    }\n", port)}

	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	other := w.ns + "-other"
	id := w.foreign(idleServer, &container.HostConfig{PortBindings: nat.PortMap{
		"8080/tcp": {{HostIP: "127.0.0.1", HostPort: strconv.Itoa(port + 1)}},
	}}, other)
	if err := engine().ContainerStart(t.Context(), id, container.StartOptions{}); err != nil {
		t.Fatal(err)
	}

	plan := decode[[]setPlan](w, "plan", w.spec(published))[0]
	if got := strings.Join(plan.Warnings, "\n"); !strings.Contains(got, other) || !strings.Contains(got, strconv.Itoa(port)) {
		t.Errorf("plan warns of %q, want both ports", got)
	}
	process := fmt.Sprintf("(pid %d)", os.Getpid())
	w.fails(3, []string{strconv.Itoa(port), process}, "apply", "--timeout", patience.String(), w.spec(published))
	w.explains("web-0", strconv.Itoa(port), process)
	listener.Close()
	w.explains("web-1", strconv.Itoa(port+1), other)
	w.check(engine().ContainerRemove(t.Context(), id, container.RemoveOptions{Force: true}))
	w.settled("web", 3)
}

func TestPublishedPortsAreFixedPerOrdinal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	port := freePorts(t, 4)
	w.apply(spec{replicas: 2, inside: fmt.Sprintf(`
    port "a" {
      container = 8080
      host      = %d + self.ordinal
    }
    port "b" {
      container = 8080
      host      = %d + self.ordinal
    }
`, port, port+2)})
	for at, want := range []string{"web-0", "web-1", "web-0", "web-1"} {
		resp, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/", port+at))
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if !strings.HasPrefix(string(text), "hostname "+want+"\n") {
			t.Errorf("port %d answers %q, want %s", port+at, text, want)
		}
	}
}

// freePorts is the first of n ports in a row that nobody listens on.
func freePorts(t *testing.T, n int) int {
	t.Helper()
	for range 100 {
		first, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := first.Addr().(*net.TCPAddr).Port
		first.Close()
		if free(port, n) {
			return port
		}
	}
	t.Fatalf("no %d free ports in a row", n)
	return 0
}

func free(port, n int) bool {
	for i := range n {
		l, err := net.Listen("tcp", fmt.Sprintf(":%d", port+i))
		if err != nil {
			return false
		}
		l.Close()
	}
	return true
}
