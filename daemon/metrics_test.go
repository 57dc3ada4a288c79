package daemon

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/stsd/stsd/daemon/planner"
	"github.com/stsd/stsd/daemon/store"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/runtime/sim"
)

// scraped is what Prometheus would read: name{labels} → value; of a histogram its
// count.
func scraped(t *testing.T, text string) map[string]float64 {
	t.Helper()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	values := map[string]float64{}
	for name, f := range families {
		for _, m := range f.Metric {
			var labels []string
			for _, l := range m.Label {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			key := name
			if len(labels) > 0 {
				key += "{" + strings.Join(labels, ",") + "}"
			}
			values[key] = m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount()) + float64(m.GetSummary().GetSampleCount())
		}
	}
	return values
}

func metricsOf(d *Daemon) string {
	w := httptest.NewRecorder()
	d.Metrics().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}

func TestMetricsTellWhatIsThere(t *testing.T) {
	t.Parallel()
	r := resolve(t, t.TempDir(), resolvingConfig{})
	r.apply(strings.ReplaceAll(readyWebs, "container \"web\" {", "container \"web\" {\n    env = { PASSWORD = \"s3cr3t-value\" }"))
	until(t, "three members", func() bool {
		return scraped(t, metricsOf(r.Daemon))["stsd_set_replicas_ready{namespace=default,set=web}"] == 3
	})
	r.told("198.18.0.10", "web.svc")
	r.metrics.called("POST /containers/{id}/start", 20*time.Millisecond, false)
	r.metrics.called("POST /containers/{id}/start", time.Second, true)
	text := metricsOf(r.Daemon)
	got := scraped(t, text)
	for name, want := range map[string]float64{
		"stsd_build_info{version=}":                                           1,
		"stsd_engine_up":                                                      1,
		"stsd_engine_stale_seconds":                                           0,
		"stsd_sets":                                                           1,
		"stsd_set_replicas{namespace=default,set=web}":                        3,
		"stsd_members{namespace=default,phase=Running,set=web}":               3,
		"stsd_set_generation{namespace=default,set=web}":                      1,
		"stsd_member_restarts_total{member=web-1,namespace=default,set=web}":  0,
		"stsd_set_condition{namespace=default,set=web,type=Stalled}":          0,
		"stsd_actions_total{op=create}":                                       3,
		"stsd_actions_total{op=create_volume}":                                0,
		"stsd_actions_total{op=stop}":                                         0,
		"stsd_action_errors_total{op=create}":                                 0,
		"stsd_events_total{reason=Created,type=Normal}":                       3,
		"stsd_engine_call_duration_seconds{call=POST /containers/{id}/start}": 2,
		"stsd_engine_call_errors_total{call=POST /containers/{id}/start}":     1,
		"stsd_store_commit_errors_total":                                      0,
		"stsd_dns_queries_total":                                              0,
		"stsd_dns_dropped_total{reason=rate}":                                 0,
		"stsd_dns_forward_errors_total":                                       0,
		"stsd_dns_trace_watchers":                                             0,
	} {
		if v, ok := got[name]; !ok || v != want {
			t.Errorf("%s = %v (there: %t), want %v", name, v, ok, want)
		}
	}
	for _, name := range []string{
		"stsd_loop_duration_seconds{step=look}", "stsd_loop_duration_seconds{step=decide}", "stsd_loop_duration_seconds{step=act}",
		"stsd_store_commit_duration_seconds", "stsd_dns_propagation_duration_seconds", "stsd_dns_snapshot_age_seconds", "go_goroutines",
	} {
		if got[name] <= 0 {
			t.Errorf("%s = %v, want more than 0", name, got[name])
		}
	}
	if strings.Contains(text, "s3cr3t") || strings.Contains(text, "web:1") {
		t.Errorf("metrics hold what a spec says:\n%s", text)
	}
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	if t.Failed() {
		t.Log(slices.Sorted(maps.Keys(got)))
	}
}

func TestMetricsAreServedOnTCP(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	_, port, _ := net.SplitHostPort(addr)
	stop := metered(t, ":"+port)
	get := func(path string) (int, string) {
		resp, err := http.Get("http://" + addr + path)
		if err != nil {
			return 0, err.Error()
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(b)
	}
	until(t, "an answer", func() bool { code, _ := get("/metrics"); return code == 200 })
	if _, text := get("/metrics"); scraped(t, text)["stsd_sets"] != 0 || !strings.Contains(text, "stsd_sets 0\n") {
		t.Errorf("metrics:\n%s", text)
	}
	for _, path := range []string{"/v1/sets", "/v1/secrets", "/healthz"} {
		if code, text := get(path); code != 404 {
			t.Errorf("%s = %d %s, want 404: there are metrics here and nothing else", path, code, text)
		}
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if code, said := get("/metrics"); code != 0 {
		t.Errorf("after the end: %d %s", code, said)
	}
}

// An address that is taken ends the daemon with the reason: whoever scrapes it would
// read another program's numbers.
func TestATakenAddressOfTheMetricsEndsTheDaemon(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	d := idle(t, l.Addr().String())
	if err := d.Run(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "metrics: listen tcp "+l.Addr().String()) {
		t.Errorf("err = %v", err)
	}
}

func idle(t *testing.T, metrics string) *Daemon {
	t.Helper()
	d, err := New(Config{
		DataDir: t.TempDir(), DNSOff: true, Metrics: metrics, Store: store.Options{NoSync: true},
		Engine: func(id string, h Hooks) (Parts, error) {
			world := sim.New(sim.Config{Daemon: id})
			engine := sim.NewEngine(world)
			return Parts{Engine: engine, Volumes: world.Volumes(), Run: engine.Run, Name: func(context.Context) (string, error) { return "sim", nil }}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func metered(t *testing.T, metrics string) (stop func() error) {
	t.Helper()
	d := idle(t, metrics)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	return func() error {
		cancel()
		http.DefaultClient.CloseIdleConnections()
		return <-done
	}
}

func TestFailuresAndSilenceAreCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := idle(t, "")
		defer d.store.Close()
		m := d.metrics
		m.acted(planner.Stop, nil)
		m.acted(planner.Stop, errors.New("no"))
		m.acted(planner.Stop, context.Canceled)
		lost := m.around(func(commit func() error) error { return errors.New("no power") })
		if err := lost(func() error { return nil }); err == nil {
			t.Error("the error of a commit is lost")
		}
		m.looked(runtime.ErrUnreachable)
		time.Sleep(time.Minute)
		m.looked(runtime.ErrUnreachable)
		got := scraped(t, metricsOf(d))
		for name, want := range map[string]float64{
			"stsd_actions_total{op=stop}": 1, "stsd_action_errors_total{op=stop}": 1, "stsd_store_commit_errors_total": 1, "stsd_engine_stale_seconds": 60,
		} {
			if got[name] != want {
				t.Errorf("%s = %v, want %v", name, got[name], want)
			}
		}
		m.looked(nil)
		if got := scraped(t, metricsOf(d))["stsd_engine_stale_seconds"]; got != 0 {
			t.Errorf("stale for %v s after an answer", got)
		}
	})
}

func TestTheDocsHaveEveryMetric(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, m := range regexp.MustCompile("`(stsd_[a-z_]+)`").FindAllStringSubmatch(string(text), -1) {
		documented[m[1]] = true
	}
	r := resolve(t, t.TempDir(), resolvingConfig{})
	r.apply(sizedWebs)
	until(t, "its members and what their volumes hold", func() bool {
		text := metricsOf(r.Daemon)
		return strings.Contains(text, "stsd_members{") && strings.Contains(text, "stsd_volume_used_bytes{")
	})
	r.metrics.called("GET /info", time.Millisecond, true)
	r.names.server.Propagated(time.Millisecond)
	there := map[string]bool{
		"stsd_dns_answers_total":      true, // once somebody has asked
		"stsd_dns_lost_packets_total": true, // where the kernel says it
	}
	for name := range scraped(t, metricsOf(r.Daemon)) {
		name, _, _ = strings.Cut(name, "{")
		if strings.HasPrefix(name, "stsd_") {
			there[name] = true
		}
	}
	if !maps.Equal(documented, there) {
		t.Errorf("docs/metrics.md has %q\nthe daemon       %q", slices.Sorted(maps.Keys(documented)), slices.Sorted(maps.Keys(there)))
	}
}
