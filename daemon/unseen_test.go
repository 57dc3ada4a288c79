package daemon

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/daemon/store"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/runtime/sim"
	"github.com/stsd/stsd/volumes"
)

// life is a daemon that is started again and again on one folder and one world.
type life struct {
	t     *testing.T
	dir   string
	world *sim.World

	mute time.Duration // how long the engine does not answer the first try to connect
	deaf bool          // it lists no volumes
	full atomic.Bool   // the disk takes nothing
	log  journal
}

// journal is a log that may be read while it is written.
type journal struct {
	mu sync.Mutex
	b  strings.Builder
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.String()
}

func (j *journal) Reset() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.b.Reset()
}

// deafVolumes are those of an engine that has stopped answering.
type deafVolumes struct{ volumes.Store }

func (deafVolumes) List(ctx context.Context, _ jobspecs.Key) ([]volumes.Volume, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// live runs f beside a daemon whose Run has just begun.
func (l *life) live(f func(*Daemon)) {
	l.t.Helper()
	d, err := New(Config{
		DataDir: l.dir, DNSOff: true, Log: hclog.New(&hclog.LoggerOptions{Output: &l.log, Mutex: new(sync.Mutex)}),
		Store: store.Options{NoSync: true, Around: func(commit func() error) error {
			if l.full.Load() {
				return syscall.ENOSPC
			}
			return commit()
		}},
		Engine: func(id string, _ Hooks) (Parts, error) {
			if l.world == nil {
				l.world = sim.New(sim.Config{Daemon: id})
				l.world.Program("web:1", sim.Program{})
			}
			e, vols := sim.NewEngine(l.world), l.world.Volumes()
			if l.deaf {
				vols = deafVolumes{vols}
			}
			run := func(ctx context.Context) error {
				select {
				case <-time.After(l.mute):
					return e.Run(ctx)
				case <-ctx.Done():
					return nil
				}
			}
			return Parts{Engine: e, Volumes: vols, Run: run, Name: func(context.Context) (string, error) { return "sim", nil }}, nil
		},
	})
	if err != nil {
		l.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(l.t.Context())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	synctest.Wait()
	f(d)
	cancel()
	if err := <-done; err != nil {
		l.t.Error(err)
	}
}

// comeback is a set that is available, and whose daemon has ended.
func comeback(t *testing.T, f func(l *life)) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		l := &life{t: t, dir: dir}
		l.live(func(d *Daemon) {
			if _, err := d.Apply(t.Context(), request(oneVolume)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			if s, err := d.Status(t.Context(), web); err != nil || s.AvailableReplicas != 2 {
				t.Fatalf("status = %+v, %v", s, err)
			}
		})
		l.log.Reset()
		f(l)
	})
}

func TestBeforeTheFirstLookMembersAreKnownAndNothingOfThem(t *testing.T) {
	comeback(t, func(l *life) {
		l.mute = time.Hour
		l.live(func(d *Daemon) {
			for _, at := range []struct {
				since   time.Duration
				message string
				warned  bool
			}{{0, "not looked at yet", false}, {firstAnswer + time.Second, "engine is not reachable: not connected yet", true}} {
				time.Sleep(at.since)
				synctest.Wait()
				members, err := d.Members(t.Context(), "default")
				if err != nil || len(members) != 2 {
					t.Fatalf("after %s: members = %+v, %v", at.since, members, err)
				}
				for _, m := range members {
					if m.Phase != string(runtime.Unknown) || m.Message != at.message || m.Available || m.IP == "" || m.Image != "web:1" || m.Revision == "" {
						t.Errorf("after %s: %+v", at.since, m)
					}
				}
				s, err := d.Status(t.Context(), web)
				if err != nil || len(s.Volumes) != 2 || s.Volumes[0].State != "bound" || holds(s, jobspecs.CondDegraded) || holds(s, jobspecs.CondAvailable) || holds(s, jobspecs.CondStalled) {
					t.Errorf("after %s: status = %+v, %v", at.since, s, err)
				}
				if rows, err := d.Sets(t.Context(), ""); err != nil || len(rows) != 1 || rows[0].State != "Unknown" {
					t.Errorf("after %s: sets = %+v, %v", at.since, rows, err)
				}
				if e, err := d.Explain(t.Context(), "default", "web-1"); err != nil || !strings.Contains(e.State+strings.Join(e.Because, "; "), at.message) {
					t.Errorf("after %s: explain = %+v, %v", at.since, e, err)
				}
				if got := strings.Contains(l.log.String(), "[WARN]"); got != at.warned {
					t.Errorf("after %s: warned %v: %s", at.since, got, &l.log)
				}
			}
		})
	})
}

func TestADaemonThatConnectsWarnsOfNothing(t *testing.T) {
	comeback(t, func(l *life) {
		l.mute = time.Second
		l.live(func(d *Daemon) {
			time.Sleep(10 * time.Second)
			if s, err := d.Status(t.Context(), web); err != nil || s.AvailableReplicas != 2 || holds(s, jobspecs.CondDegraded) {
				t.Errorf("status = %+v, %v", s, err)
			}
			if strings.Contains(l.log.String(), "[WARN]") {
				t.Errorf("log: %s", &l.log)
			}
		})
	})
}

func TestAnEngineThatDoesNotListVolumesIsOutOfReach(t *testing.T) {
	comeback(t, func(l *life) {
		l.deaf = true
		l.live(func(d *Daemon) {
			time.Sleep(lookTime + time.Second)
			s, err := d.Status(t.Context(), web)
			if err != nil || len(s.Members) != 2 || s.Members[0].Reason != runtime.ReasonUnreachable || !strings.Contains(s.Members[0].Message, "list volumes") {
				t.Errorf("status = %+v, %v", s, err)
			}
		})
	})
}

func TestAFullDiskSaysWhereToMakeRoom(t *testing.T) {
	comeback(t, func(l *life) {
		l.live(func(d *Daemon) {
			l.full.Store(true)
			_, err := d.Apply(t.Context(), request(strings.Replace(oneVolume, "replicas = 2", "replicas = 3", 1)))
			var p *client.Problem
			if !errors.As(err, &p) || p.Status != http.StatusInsufficientStorage || !strings.Contains(p.Detail, "no space left on device") || !strings.Contains(p.Detail, "df -h "+l.dir) {
				t.Errorf("apply: %v: %+v", err, p)
			}
			l.full.Store(false)
		})
	})
}

func TestWhoIsAwayIsOutOfTheNamesAlsoWhenNothingCanBeStored(t *testing.T) {
	t.Parallel()
	var full atomic.Bool
	r := resolve(t, t.TempDir(), resolvingConfig{around: func(commit func() error) error {
		if full.Load() {
			return syscall.ENOSPC
		}
		return commit()
	}})
	defer full.Store(false)
	r.apply(readyWebs)
	until(t, "all listed", func() bool { return len(strings.Fields(r.told(host, "web.svc"))) == 3 })
	full.Store(true)
	r.world.Pause("web-1")
	until(t, "web-1 left out", func() bool { return len(strings.Fields(r.told(host, "web.svc"))) == 2 })
}
