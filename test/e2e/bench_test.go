package e2e_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/volume"
	"github.com/docker/docker/pkg/stdcopy"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/jobspecs"
)

// rounds is how often each side is measured, in turns; medians are compared.
const rounds = 3

// BenchmarkParallelStart compares apply-to-all-running with the same calls made
// by hand, as many at once.
func BenchmarkParallelStart(b *testing.B) {
	for _, n := range []int{10, 20} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := stage(b, spec{replicas: n, noProbe: true, set: "  pod_management = \"parallel\"\n", inside: confFile})
			s.compare(b, s.start, s.rawParallel)
		})
	}
}

// BenchmarkOrderedStart compares a set of 5 that starts in order with a loop
// that makes a member, polls it until it answers, and makes the next. The gap is
// that between a member that can answer and the creation of the next, both by
// the engine's clock: what stsd adds to the members' own start.
func BenchmarkOrderedStart(b *testing.B) {
	s := stage(b, spec{replicas: 5, inside: confFile})
	var gaps []time.Duration
	s.compare(b, func() time.Duration {
		took := s.start()
		for i := 1; i < s.n; i++ {
			gaps = append(gaps, s.created(fmt.Sprintf("web-%d", i)).Sub(s.listening(fmt.Sprintf("web-%d", i-1))))
		}
		return took
	}, s.rawOrdered)
	b.ReportMetric(float64(median(gaps).Microseconds())/1000, "ms-gap")
	b.ReportMetric(float64(gaps[len(gaps)-1].Microseconds())/1000, "ms-gap-max")
}

// listening is when a member began to listen, as its log says.
func (s *bench) listening(member string) time.Time {
	out, err := engine().ContainerLogs(s.t.Context(), s.container(member), container.LogsOptions{ShowStdout: true, Timestamps: true})
	must(s.t, err)
	defer out.Close()
	var text bytes.Buffer
	_, err = stdcopy.StdCopy(&text, &text, out)
	must(s.t, err)
	for line := range strings.Lines(text.String()) {
		if at, said, _ := strings.Cut(line, " "); strings.HasPrefix(said, "demo: listening") {
			return s.time(at)
		}
	}
	s.t.Fatalf("%s does not listen: %s", member, text.String())
	return time.Time{}
}

// BenchmarkRestart compares a killed member that runs again with remove, create
// and start by hand. Each round kills another member: only the first restart of
// each has no delay.
func BenchmarkRestart(b *testing.B) {
	s := stage(b, spec{replicas: rounds, noProbe: true, set: "  pod_management = \"parallel\"\n", inside: confFile})
	s.start()
	round := 0
	over := s.compare(b, func() time.Duration { round++; return s.killed(round - 1) }, s.rawKilled)
	b.ReportMetric(float64(over.Microseconds())/1000, "ms-over-raw")
}

// BenchmarkReady compares the time from a member's start to its being ready, as a
// watcher of the set hears it, with the time that its own process needs until it
// listens: what probing adds.
func BenchmarkReady(b *testing.B) {
	const members = 20
	s := stage(b, spec{replicas: 1, env: "START_DELAY=500ms"})
	var ready, own, over []time.Duration
	for b.Loop() {
		for range members {
			s.start()
			heard := time.Now()
			began, listens := s.started("web-0"), s.listening("web-0")
			ready, own, over = append(ready, heard.Sub(began)), append(own, listens.Sub(began)), append(over, heard.Sub(listens))
			s.stop()
		}
	}
	b.ReportMetric(float64(median(ready))/float64(median(own)), "x-own")
	b.ReportMetric(float64(median(own).Milliseconds()), "ms-own")
	b.ReportMetric(float64(median(over).Microseconds())/1000, "ms-over")
}

const confFile = `
    file "/etc/app.conf" {
      content = "member = ${self.name}\n"
    }
`

// bench is a set on a daemon, and the same containers made by hand.
type bench struct {
	*world
	n       int
	client  *client.Client
	request client.ApplyRequest
	key     jobspecs.Key
	members []rawMember
}

// rawMember is what the engine is asked for to make one member.
type rawMember struct {
	name, address string
	volume        volume.CreateOptions
	config        *container.Config
	host          *container.HostConfig
	network       *network.NetworkingConfig
	files         []byte
}

// stage runs the set once, to learn its containers, and deletes it again.
func stage(b *testing.B, s spec) *bench {
	w := newWorld(b)
	c, err := client.New("unix://" + w.socket())
	must(b, err)
	b.Cleanup(c.Close)
	out := &bench{world: w, n: s.replicas, client: c, key: jobspecs.Key{Namespace: w.ns, Name: "web"}}
	out.request = client.ApplyRequest{Namespace: w.ns, Scopes: []client.Scope{{Sources: []jobspecs.Source{{Name: "web.hcl", Text: []byte(s.String())}}}}}
	out.start()
	for i := range out.n {
		out.members = append(out.members, out.learn(i))
	}
	out.stop()
	return out
}

func must(b testing.TB, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// learn copies a member's container under another label, name and volume.
func (s *bench) learn(i int) rawMember {
	name := fmt.Sprintf("web-%d", i)
	c := s.inspect(name)
	vol := s.ns + ".raw-" + name
	m := rawMember{name: s.ns + ".raw-" + name, config: c.Config, host: c.HostConfig, files: archive(s.t, name)}
	labels := map[string]string{"whose": "bench"}
	m.config.Labels, m.volume = labels, volume.CreateOptions{Name: vol, Labels: labels}
	for j := range m.host.Mounts {
		switch at := &m.host.Mounts[j]; at.Type {
		case mount.TypeVolume:
			at.Source, at.VolumeOptions.Labels = vol, labels
		case mount.TypeBind: // resolv.conf, which goes with the member
			at.Source = s.ownCopy(at.Source, fmt.Sprintf("bound-%d-%d", i, j))
		}
	}
	e := c.NetworkSettings.Networks[s.network()]
	m.address = e.IPAddress
	m.network = &network.NetworkingConfig{EndpointsConfig: map[string]*network.EndpointSettings{s.network(): {
		Aliases:    slices.DeleteFunc(e.Aliases, func(a string) bool { return strings.HasPrefix(c.ID, a) }),
		IPAMConfig: &network.EndpointIPAMConfig{IPv4Address: e.IPAddress},
	}}}
	return m
}

// ownCopy copies a file into the world's folder.
func (s *bench) ownCopy(source, name string) string {
	content, err := os.ReadFile(source)
	must(s.t, err)
	own := filepath.Join(s.dir, name)
	must(s.t, os.WriteFile(own, content, 0o644))
	return own
}

func archive(t testing.TB, member string) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	content := "member = " + member + "\n"
	must(t, w.WriteHeader(&tar.Header{Name: "etc/app.conf", Mode: 0o644, Size: int64(len(content))}))
	_, err := w.Write([]byte(content))
	must(t, err)
	must(t, w.Close())
	return b.Bytes()
}

// compare measures both sides in turns and reports the ratio of their medians.
func (s *bench) compare(b *testing.B, ours, raw func() time.Duration) (over time.Duration) {
	var mine, theirs []time.Duration
	restart := strings.Contains(b.Name(), "Restart")
	for b.Loop() {
		for range rounds {
			mine = append(mine, ours())
			if !restart {
				s.stop()
			}
			theirs = append(theirs, raw())
			s.rawStop()
		}
	}
	m, t := median(mine), median(theirs)
	b.ReportMetric(float64(m)/float64(t), "x-raw")
	b.ReportMetric(float64(m.Milliseconds()), "ms-stsd")
	b.ReportMetric(float64(t.Milliseconds()), "ms-raw")
	return m - t
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

// start applies the set and takes the time until all its members are ready.
func (s *bench) start() time.Duration {
	begin := time.Now()
	_, err := s.client.Apply(s.t.Context(), s.request)
	must(s.t, err)
	errReady := errors.New("ready")
	err = s.client.WatchStatus(s.t.Context(), s.key, func(st jobspecs.Status) error {
		if st.ReadyReplicas == s.n {
			return errReady
		}
		return nil
	})
	if !errors.Is(err, errReady) {
		s.t.Fatal(err)
	}
	return time.Since(begin)
}

// stop deletes the set and its volumes.
func (s *bench) stop() {
	s.ok("delete", "web", "--volumes=delete", "--yes", "--wait")
}

func (s *bench) rawParallel() time.Duration {
	begin := time.Now()
	var wg sync.WaitGroup
	for i := range s.members {
		wg.Go(func() { s.rawMake(&s.members[i]) })
	}
	wg.Wait()
	return time.Since(begin)
}

func (s *bench) rawOrdered() time.Duration {
	begin := time.Now()
	for i := range s.members {
		s.rawMake(&s.members[i])
		s.rawReady(&s.members[i])
	}
	return time.Since(begin)
}

// rawMake makes the calls that a member takes.
func (s *bench) rawMake(m *rawMember) {
	_, err := engine().VolumeCreate(s.t.Context(), m.volume)
	s.check(err)
	s.rawRun(m)
}

func (s *bench) rawRun(m *rawMember) {
	ctx := s.t.Context()
	made, err := engine().ContainerCreate(ctx, m.config, m.host, m.network, nil, m.name)
	s.check(err)
	s.check(engine().CopyToContainer(ctx, made.ID, "/", bytes.NewReader(m.files), container.CopyToContainerOptions{}))
	s.check(engine().ContainerStart(ctx, made.ID, container.StartOptions{}))
}

func (s *bench) rawReady(m *rawMember) {
	plain := http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for begin := time.Now(); time.Since(begin) < patience; time.Sleep(2 * time.Millisecond) {
		resp, err := plain.Get("http://" + m.address + ":8080/healthz")
		if err != nil {
			continue
		}
		resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			return
		}
	}
	s.t.Fatalf("%s does not answer", m.name)
}

func (s *bench) rawStop() {
	ctx := context.Background()
	for _, m := range s.members {
		s.check(engine().ContainerRemove(ctx, m.name, container.RemoveOptions{Force: true}))
		s.check(engine().VolumeRemove(ctx, m.volume.Name, true))
	}
}

// killed is how long a member was down that was killed, by the engine's clock.
func (s *bench) killed(i int) time.Duration {
	name := fmt.Sprintf("web-%d", i)
	old := s.inspect(name).ID
	must(s.t, engine().ContainerKill(s.t.Context(), old, "KILL"))
	var started time.Time
	s.await(name+" to run again", func() error {
		c, err := engine().ContainerInspect(s.t.Context(), s.container(name))
		if err != nil || c.ID == old || !c.State.Running {
			return fmt.Errorf("not yet: %v", err)
		}
		started = s.time(c.State.StartedAt)
		return nil
	})
	c, err := engine().ContainerInspect(s.t.Context(), old)
	must(s.t, err)
	return started.Sub(s.time(c.State.FinishedAt))
}

// rawKilled is the same by hand; the member has another address than ours.
func (s *bench) rawKilled() time.Duration {
	m := s.members[0]
	m.network = &network.NetworkingConfig{EndpointsConfig: map[string]*network.EndpointSettings{s.network(): {}}}
	s.rawMake(&m)
	ctx := s.t.Context()
	must(s.t, engine().ContainerKill(ctx, m.name, "KILL"))
	ended, errs := engine().ContainerWait(ctx, m.name, container.WaitConditionNotRunning)
	select {
	case <-ended:
	case err := <-errs:
		s.t.Fatal(err)
	}
	c, err := engine().ContainerInspect(ctx, m.name)
	must(s.t, err)
	s.check(engine().ContainerRemove(ctx, m.name, container.RemoveOptions{}))
	s.rawRun(&m)
	again, err := engine().ContainerInspect(ctx, m.name)
	must(s.t, err)
	return s.time(again.State.StartedAt).Sub(s.time(c.State.FinishedAt))
}
