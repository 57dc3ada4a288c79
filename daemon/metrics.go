package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/stsd/stsd/daemon/planner"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

// metrics are what the daemon counts about itself. No label holds text that a user
// or a program wrote, but the names of sets and members.
type metrics struct {
	registry *prometheus.Registry

	turns    *prometheus.HistogramVec // by step
	actions  *prometheus.CounterVec   // by op
	failures *prometheus.CounterVec   // by op
	calls    *prometheus.HistogramVec // by call
	refused  *prometheus.CounterVec   // by call
	commits  prometheus.Histogram
	lost     prometheus.Counter
	events   *prometheus.CounterVec // by type and reason

	blind atomic.Int64 // since when the engine is out of reach, in Unix nanoseconds; zero: it is not
}

// Steps of a turn of a set's loop.
const (
	stepLook   = "look"
	stepDecide = "decide"
	stepAct    = "act"
)

// callBuckets are seconds: an engine's call takes 2 ms to a minute, a commit of the
// store 1 ms to a second.
var callBuckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}

// turnBuckets are seconds: a set is decided on in 20 µs to 20 ms.
var turnBuckets = []float64{.00001, .0001, .001, .0025, .005, .01, .025, .05, .1, .5, 1, 5, 30}

func newMetrics(d *Daemon) *metrics {
	counter := func(name, help string) prometheus.CounterOpts { return prometheus.CounterOpts{Name: name, Help: help} }
	histogram := func(name, help string, buckets []float64) prometheus.HistogramOpts {
		return prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}
	}
	m := &metrics{
		registry: prometheus.NewRegistry(),
		turns:    prometheus.NewHistogramVec(histogram("stsd_loop_duration_seconds", "What the steps of a turn of a set's loop take.", turnBuckets), []string{"step"}),
		actions:  prometheus.NewCounterVec(counter("stsd_actions_total", "Actions that were done."), []string{"op"}),
		failures: prometheus.NewCounterVec(counter("stsd_action_errors_total", "Actions that failed; they are tried again."), []string{"op"}),
		calls:    prometheus.NewHistogramVec(histogram("stsd_engine_call_duration_seconds", "Requests to the engine, until its answer begins.", callBuckets), []string{"call"}),
		refused:  prometheus.NewCounterVec(counter("stsd_engine_call_errors_total", "Requests that the engine answered with an error, or not at all."), []string{"call"}),
		commits:  prometheus.NewHistogram(histogram("stsd_store_commit_duration_seconds", "Commits of the state file.", callBuckets)),
		lost:     prometheus.NewCounter(counter("stsd_store_commit_errors_total", "Commits of the state file that failed.")),
		events:   prometheus.NewCounterVec(counter("stsd_events_total", "Events, those that repeat one too."), []string{"type", "reason"}),
	}
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "stsd_build_info", Help: "1, for the version that runs."}, []string{"version"})
	build.WithLabelValues(d.cfg.Version).Set(1)
	m.registry.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		build, m.turns, m.actions, m.failures, m.calls, m.refused, m.commits, m.lost, m.events,
		setMetrics{d}, dnsMetrics{d},
	)
	// What has not happened yet is 0, not absent.
	for _, op := range []planner.Op{planner.CreateVolume, planner.DeleteVolume, planner.Create, planner.Refresh, planner.Stop, planner.Remove, planner.Forget, planner.RunHook} {
		m.actions.WithLabelValues(opLabel(op))
		m.failures.WithLabelValues(opLabel(op))
	}
	for _, step := range []string{stepLook, stepDecide, stepAct} {
		m.turns.WithLabelValues(step)
	}
	return m
}

// took notes how long a step of a turn took.
func (m *metrics) took(step string, since time.Time) {
	m.turns.WithLabelValues(step).Observe(time.Since(since).Seconds())
}

// acted notes what came of an action.
func (m *metrics) acted(op planner.Op, err error) {
	switch {
	case err == nil:
		m.actions.WithLabelValues(opLabel(op)).Inc()
	case !errors.Is(err, context.Canceled):
		m.failures.WithLabelValues(opLabel(op)).Inc()
	}
}

// opLabel is an op as one word: "create_volume".
func opLabel(op planner.Op) string { return strings.ReplaceAll(string(op), " ", "_") }

// looked notes whether the engine is in reach.
func (m *metrics) looked(err error) {
	if errors.Is(err, runtime.ErrUnreachable) {
		m.blind.CompareAndSwap(0, time.Now().UnixNano())
		return
	}
	m.blind.Store(0)
}

// called notes a request to the engine.
func (m *metrics) called(call string, took time.Duration, failed bool) {
	m.calls.WithLabelValues(call).Observe(took.Seconds())
	if failed {
		m.refused.WithLabelValues(call).Inc()
	}
}

// around times the commits of the store.
func (m *metrics) around(next func(commit func() error) error) func(func() error) error {
	return func(commit func() error) error {
		start := time.Now()
		var err error
		if next == nil {
			err = commit()
		} else {
			err = next(commit)
		}
		m.commits.Observe(time.Since(start).Seconds())
		if err != nil {
			m.lost.Inc()
		}
		return err
	}
}

// Metrics answers with everything that is counted, as Prometheus reads it.
func (d *Daemon) Metrics() http.Handler {
	return promhttp.HandlerFor(d.metrics.registry, promhttp.HandlerOpts{})
}

// serveMetrics answers GET /metrics at the configured address until ctx ends.
func (d *Daemon) serveMetrics(ctx context.Context) error {
	addr := d.cfg.Metrics
	if strings.HasPrefix(addr, ":") {
		addr = "127.0.0.1" + addr
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", d.Metrics())
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "/metrics\n") })
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, WriteTimeout: time.Minute}
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { defer close(ended); _ = srv.Close() })
	defer func() {
		if !stop() {
			<-ended
		}
	}()
	d.log.Info("metrics", "addr", l.Addr().String())
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", l.Addr(), err)
	}
	return nil
}

// setMetrics are the sets and members as they are now.
type setMetrics struct{ d *Daemon }

var (
	setLabels = []string{"namespace", "set"}

	descUp         = prometheus.NewDesc("stsd_engine_up", "1 while the engine answers.", nil, nil)
	descStale      = prometheus.NewDesc("stsd_engine_stale_seconds", "Since when the engine does not answer: how old is what is shown and what DNS says.", nil, nil)
	descSets       = prometheus.NewDesc("stsd_sets", "Sets that are stored.", nil, nil)
	descReplicas   = prometheus.NewDesc("stsd_set_replicas", "Members that a set shall have.", setLabels, nil)
	descReady      = prometheus.NewDesc("stsd_set_replicas_ready", "Members that are ready.", setLabels, nil)
	descAvailable  = prometheus.NewDesc("stsd_set_replicas_available", "Members that are available.", setLabels, nil)
	descUpdated    = prometheus.NewDesc("stsd_set_replicas_updated", "Members that run the wanted revision.", setLabels, nil)
	descGeneration = prometheus.NewDesc("stsd_set_generation", "Changes of what a set shall be.", setLabels, nil)
	descCondition  = prometheus.NewDesc("stsd_set_condition", "1 for a condition of a set that holds.", append(slices.Clone(setLabels), "type"), nil)
	descMembers    = prometheus.NewDesc("stsd_members", "Members of a set by phase.", append(slices.Clone(setLabels), "phase"), nil)
	descSize       = prometheus.NewDesc("stsd_volume_size_bytes", "The size that a volume is watched for.", append(slices.Clone(setLabels), "volume"), nil)
	descUsed       = prometheus.NewDesc("stsd_volume_used_bytes", "What a volume that has a size holds.", append(slices.Clone(setLabels), "volume"), nil)
	descRestarts   = prometheus.NewDesc("stsd_member_restarts_total", "Restarts of a member's containers.", append(slices.Clone(setLabels), "member"), nil)
)

// Describe says nothing: what there is depends on the sets.
func (setMetrics) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c setMetrics) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	gauge(descUp, zeroOne(c.d.Ready() == nil))
	stale := 0.0
	if since := c.d.metrics.blind.Load(); since != 0 {
		stale = time.Since(time.Unix(0, since)).Seconds()
	}
	gauge(descStale, stale)
	records, err := c.d.store.Records()
	if err != nil {
		out <- prometheus.NewInvalidMetric(descSets, err)
		return
	}
	gauge(descSets, float64(len(records)))
	for i := range records {
		s := c.d.statusOf(records[i].Key(), &records[i])
		ns, name := records[i].Set.Namespace, records[i].Set.Name
		gauge(descReplicas, float64(records[i].Replicas), ns, name)
		gauge(descReady, float64(s.ReadyReplicas), ns, name)
		gauge(descAvailable, float64(s.AvailableReplicas), ns, name)
		gauge(descUpdated, float64(s.UpdatedReplicas), ns, name)
		gauge(descGeneration, float64(records[i].Generation), ns, name)
		for _, k := range s.Conditions {
			gauge(descCondition, zeroOne(k.Status), ns, name, k.Type)
		}
		for _, v := range s.Volumes {
			if v.Size > 0 {
				gauge(descSize, float64(v.Size), ns, name, v.Name)
			}
			if v.Used != nil {
				gauge(descUsed, float64(*v.Used), ns, name, v.Name)
			}
		}
		phases := map[string]int{}
		for j := range s.Members {
			m := &s.Members[j]
			phases[m.Phase]++
			out <- prometheus.MustNewConstMetric(descRestarts, prometheus.CounterValue, float64(m.Restarts), ns, name, m.Name)
		}
		for phase, n := range phases {
			gauge(descMembers, float64(n), ns, name, phase)
		}
	}
}

func zeroOne(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// happened counts an event.
func (m *metrics) happened(e *jobspecs.Event) { m.events.WithLabelValues(e.Type, e.Reason).Inc() }
