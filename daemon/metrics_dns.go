package daemon

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/stsd/stsd/dns"
)

// dnsMetrics are the counters of the DNS server; none when DNS is off.
type dnsMetrics struct{ d *Daemon }

var (
	descQueries     = prometheus.NewDesc("stsd_dns_queries_total", "Packets from sources that are served.", nil, nil)
	descAnswers     = prometheus.NewDesc("stsd_dns_answers_total", "Questions that were answered, by who asked, for what, and how it ended.", []string{"view", "zone", "rcode"}, nil)
	descFast        = prometheus.NewDesc("stsd_dns_fast_answers_total", "Answers from packed records, without an allocation.", nil, nil)
	descLatency     = prometheus.NewDesc("stsd_dns_answer_duration_seconds", "From the packet to the reply, forwards included.", nil, nil)
	descForwards    = prometheus.NewDesc("stsd_dns_forwards_total", "Questions that were asked of other servers.", nil, nil)
	descFailed      = prometheus.NewDesc("stsd_dns_forward_errors_total", "Questions to other servers without an answer, and those over the limit.", nil, nil)
	descDropped     = prometheus.NewDesc("stsd_dns_dropped_total", "Packets and connections without an answer, by reason.", []string{"reason"}, nil)
	descCut         = prometheus.NewDesc("stsd_dns_cut_answers_total", "Replies that said \"ask over TCP\" to a source that asked too often.", nil, nil)
	descLost        = prometheus.NewDesc("stsd_dns_lost_packets_total", "Packets that the kernel dropped because a socket's queue was full.", nil, nil)
	descPropagation = prometheus.NewDesc("stsd_dns_propagation_duration_seconds", "From the moment a change was seen to the answers that show it.", nil, nil)
	descAge         = prometheus.NewDesc("stsd_dns_snapshot_age_seconds", "Since the latest change of what is answered.", nil, nil)
	descWatchers    = prometheus.NewDesc("stsd_dns_trace_watchers", "Who follows the questions as they come.", nil, nil)
)

// Describe says nothing: DNS may be off.
func (dnsMetrics) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (m dnsMetrics) Collect(out chan<- prometheus.Metric) {
	c, ok := m.d.DNSCounters()
	if !ok {
		return
	}
	put := func(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, kind, v, labels...)
	}
	put(descQueries, prometheus.CounterValue, float64(c.Queries))
	put(descFast, prometheus.CounterValue, float64(c.Fast))
	put(descForwards, prometheus.CounterValue, float64(c.Forwarded))
	put(descFailed, prometheus.CounterValue, float64(c.Failed))
	put(descCut, prometheus.CounterValue, float64(c.Cut))
	put(descAge, prometheus.GaugeValue, c.SnapshotAge.Seconds())
	put(descWatchers, prometheus.GaugeValue, float64(c.Watchers))
	for _, a := range c.Answers {
		put(descAnswers, prometheus.CounterValue, float64(a.Count), a.View, a.Zone, a.Rcode)
	}
	for reason, n := range c.Drops {
		put(descDropped, prometheus.CounterValue, float64(n), reason)
	}
	if c.Lost >= 0 { // else the kernel does not say
		put(descLost, prometheus.CounterValue, float64(c.Lost))
	}
	out <- histogramOf(descLatency, c.Latency)
	out <- histogramOf(descPropagation, c.Propagation)
}

// histogramOf adds up the buckets, as Prometheus counts them.
func histogramOf(d *prometheus.Desc, h dns.Histogram) prometheus.Metric {
	buckets, total := map[float64]uint64{}, uint64(0)
	for i, n := range h.Counts {
		total += n
		if i < len(h.Bounds) {
			buckets[h.Bounds[i].Seconds()] = total
		}
	}
	return prometheus.MustNewConstHistogram(d, total, h.Sum.Seconds(), buckets)
}
