package e2e_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// userNetwork is one that somebody else made. The world that joins it is made
// after it, and so gone before it.
func userNetwork(t *testing.T) string {
	t.Helper()
	if reason := noDocker(); reason != "" {
		t.Skip(reason)
	}
	name := "stsd-e2e-shop-" + random()
	docker(t, "network", "create", name)
	t.Cleanup(func() { docker(t, "network", "rm", name) })
	return name
}

// on is where a member is on a network.
func (w *world) on(network, member string) string {
	w.t.Helper()
	e := w.inspect(member).NetworkSettings.Networks[network]
	if e == nil || e.IPAddress == "" {
		w.t.Fatalf("%s is not on %s", member, network)
	}
	return e.IPAddress
}

// An application of somebody else, as docker compose starts it, reaches members and
// their set by short names on its own network, while they restart.
func TestAnApplicationReachesMembersOnItsOwnNetwork(t *testing.T) {
	t.Parallel()
	shop := userNetwork(t)
	w := newWorld(t, func(w *world) { w.flags = append(w.flags, "--dns-listen", "127.0.0.1:0") })
	needs(t, resolversImage)
	app := "stsd-e2e-app-" + w.ns
	docker(t, "run", "-d", "--name", app, "--network", shop, "--network-alias", "app", resolversImage)
	t.Cleanup(func() { docker(t, "rm", "-f", app) })
	w.apply(spec{replicas: 2, image: resolversImage, set: fmt.Sprintf("  networks = [%q]\n", shop)})

	finds := func(want map[string][]string) {
		t.Helper()
		for resolver, command := range lookers {
			for name, addresses := range want {
				out, err := exec.Command("docker", append(append([]string{"exec", app}, command...), name)...).CombinedOutput()
				got := slices.Compact(slices.Sorted(slices.Values(strings.Fields(string(out)))))
				slices.Sort(addresses)
				if err != nil || !slices.Equal(got, addresses) {
					t.Errorf("the application finds %s at %v by %s, %v; want %v", name, got, resolver, err, addresses)
				}
			}
		}
	}
	all := func() map[string][]string {
		zero, one := w.on(shop, "web-0"), w.on(shop, "web-1")
		return map[string][]string{"web": {zero, one}, "web-0": {zero}, "web-1": {one}, "web-0.web": {zero}, "web-1.web": {one}}
	}
	finds(all())
	address := docker(t, "inspect", "-f", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", app)
	w.await("the application's names in members", func() error {
		for _, name := range []string{"app", app} {
			if got, err := w.lookup("web-0", name); err != nil || !slices.Equal(got, []string{address}) {
				return fmt.Errorf("%s is %v, %v, want %s", name, got, err, address)
			}
		}
		return nil
	})
	if got, err := w.lookup("web-0", "web-1.svc"); err != nil || !slices.Equal(got, []string{w.address("web-1")}) {
		t.Errorf("web-0 finds web-1 at %v, %v, want %s: its own network comes first", got, err, w.address("web-1"))
	}

	const loop = `n=0; while [ ! -e /tmp-enough ]; do n=$((n+1)); /lookup-musl web >/dev/null || echo failed; done; echo "$n times"`
	done := make(chan string, 1)
	go func() {
		out, err := exec.Command("docker", "exec", app, "/bin/sh", "-c", loop).CombinedOutput()
		done <- fmt.Sprint(string(out), err)
	}()
	before := w.ids("web")
	w.ok("restart", "web")
	w.changedAll(before, w.ids("web"))
	docker(t, "exec", app, "/bin/touch", "/tmp-enough")
	if got := <-done; strings.Contains(got, "failed") || !strings.HasSuffix(got, "times\n<nil>") || strings.HasPrefix(got, "0 ") {
		t.Errorf("look-ups of the set while its members restarted: %s", got)
	}
	finds(all())
	text := scrape(t, w.socket())
	for _, want := range []string{
		"\nstsd_engine_call_duration_seconds_count{call=\"POST /networks/{id}/connect\"} 4\n", // two members, twice
		"\nstsd_dns_answers_total{rcode=\"NOERROR\",view=\"member\",zone=\"short\"} ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in the metrics:\n%s", want, text)
		}
	}

	docker(t, "network", "disconnect", shop, w.container("web-1"))
	var cure string
	w.await("what happened to web-1", func() error {
		m := w.status("web").Members[1]
		if m.Reason != "Disconnected" || !m.Ready {
			return fmt.Errorf("%+v", m)
		}
		_, cure, _ = strings.Cut(m.Message, "; docker ")
		return nil
	})
	w.stays(2*time.Second, func() error { // it is said, and left
		if w.inspect("web-1").NetworkSettings.Networks[shop] != nil {
			return fmt.Errorf("web-1 was joined again")
		}
		return nil
	})
	docker(t, strings.Fields(strings.TrimSuffix(cure, " brings it back"))...)
	w.await("web-1 to be well", func() error {
		if m := w.status("web").Members[1]; m.Reason != "" {
			return fmt.Errorf("%+v", m)
		}
		return nil
	})
	finds(all())
	if after := w.ids("web"); after["web-1"] == before["web-1"] {
		t.Error("the ids are those from before")
	}

	ids := w.ids("web")
	w.kill() // whoever takes over leaves them as they are
	w.start()
	w.settled("web", 2)
	w.untouched(ids, "web-0", "web-1")
	finds(all())
}

func TestAMemberWaitsForANetwork(t *testing.T) {
	t.Parallel()
	if reason := noDocker(); reason != "" {
		t.Skip(reason)
	}
	absent := "stsd-e2e-absent-" + random()
	t.Cleanup(func() { docker(t, "network", "rm", absent) })
	w := newWorld(t, func(w *world) { w.flags = append(w.flags, "--dns-listen", "127.0.0.1:0") })
	file := w.spec(spec{replicas: 1, set: fmt.Sprintf("  networks = [%q]\n", absent)})
	w.fails(3, []string{"network " + absent + " is not there", "docker network create " + absent}, "apply", file)
	w.explains("web-0", "NetworkMissing", "docker network ls")
	docker(t, "network", "create", absent)
	start := time.Now()
	w.settled("web", 1)
	if took := time.Since(start); took > 15*time.Second { // the back-off alone would be 30 s by now
		t.Errorf("it took %s", took)
	}
	w.on(absent, "web-0")
	w.ok("delete", "web", "--yes")
}

// scrape reads the metrics from the daemon's socket.
func scrape(t *testing.T, socket string) string {
	t.Helper()
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
	}}
	resp, err := client.Get("http://stsd/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s, %v: %s", resp.Status, err, text)
	}
	return string(text)
}

// A namespace's network has IPv4; where members share one with IPv6, they find each
// other by that too.
func TestMembersFindEachOtherByIPv6OnANetworkThatTheyJoined(t *testing.T) {
	t.Parallel()
	if reason := noDocker(); reason != "" {
		t.Skip(reason)
	}
	six := "stsd-e2e-six-" + random()
	prefix := fmt.Sprintf("fd57:%s:%s:", random()[:4], random()[:4])
	if out, err := exec.Command("docker", "network", "create", "--ipv6", "--subnet", prefix+":/64", six).CombinedOutput(); err != nil {
		t.Skipf("this engine makes no network with IPv6: %s", out)
	}
	t.Cleanup(func() { docker(t, "network", "rm", six) })
	w := newWorld(t, func(w *world) { w.flags = append(w.flags, "--dns-listen", "127.0.0.1:0") })
	w.apply(spec{replicas: 2, set: fmt.Sprintf("  networks = [%q]\n", six)})
	want := []string{w.address("web-1"), w.inspect("web-1").NetworkSettings.Networks[six].GlobalIPv6Address}
	w.await("web-1 by both families", func() error {
		if got, err := w.lookup("web-0", "web-1.svc"); err != nil || !slices.Equal(got, want) {
			return fmt.Errorf("%v, %v, want %v", got, err, want)
		}
		return nil
	})
	w.ok("exec", "web-0", "--", "/demo", "get", "http://["+want[1]+"]:8080/healthz")
}
