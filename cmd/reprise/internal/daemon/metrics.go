package daemon

import (
	"bufio"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// durationBuckets are the upper bounds, in seconds, of the classes that durations
// are counted in. Long polls take up to 20.
var durationBuckets = []float64{0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10, 25}

// metrics counts what the server does, for Prometheus. A consumer's metrics come from
// OpenTelemetry, see consumerMetrics. No label has values that clients invent: only
// actions, codes and queues that exist.
type metrics struct {
	registry    *prometheus.Registry
	connections prometheus.Gauge
	requests    *prometheus.CounterVec
	durations   *prometheus.HistogramVec

	mu       sync.Mutex
	messages map[queueName]map[string]uint64 // by action, of queues that exist, and of some that are gone
	// tidyAt is the number of queues from which on those that are gone are looked for.
	tidyAt int
	queues func() []sqsserver.QueueInfo
}

type queueName struct{ region, account, name string }

func (q queueName) arn() string { return "arn:aws:sqs:" + q.region + ":" + q.account + ":" + q.name }

// The metrics that are made anew for each scrape, from what the server knows.
var (
	queueMessagesDesc = prometheus.NewDesc("reprise_queue_messages", "Messages in a queue now, by their state.", []string{"queue", "arn", "state"}, nil)
	longPollsDesc     = prometheus.NewDesc("reprise_queue_long_polls", "Long polls that wait for a message of a queue now.", []string{"queue", "arn"}, nil)
	strikesDesc       = prometheus.NewDesc("reprise_fault_strikes_total", "How often the faults that are set now have struck.", []string{"queue", "kind", "number"}, nil)
	messagesDesc      = prometheus.NewDesc("reprise_messages_total", "Messages sent, received, deleted and hidden, by the action that did it.", []string{"queue", "arn", "action"}, nil)
	healthyDesc       = prometheus.NewDesc("reprise_healthy", "1 while the server takes requests, 0 once it has stopped for a failure.", nil, nil)
	goroutinesDesc    = prometheus.NewDesc("go_goroutines", "Goroutines of the process.", nil, nil)
	heapDesc          = prometheus.NewDesc("go_memstats_heap_alloc_bytes", "Bytes of objects on the heap.", nil, nil)
	memoryDesc        = prometheus.NewDesc("go_memstats_sys_bytes", "Bytes of memory got from the system.", nil, nil)
)

// collect is a [prometheus.Collector] whose metrics depend on what there is.
type collect func(chan<- prometheus.Metric)

func (collect) Describe(chan<- *prometheus.Desc)       {}
func (c collect) Collect(out chan<- prometheus.Metric) { c(out) }

// newMetrics returns the metrics of a server, which server returns once it exists.
func newMetrics(server func() *sqsserver.Server) *metrics {
	m := &metrics{
		registry:    prometheus.NewRegistry(),
		connections: prometheus.NewGauge(prometheus.GaugeOpts{Name: "reprise_connections", Help: "Connections that are open now."}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "reprise_requests_total", Help: "Requests that have ended, by the code of their error; ok, and connection-cut.",
		}, []string{"action", "protocol", "code"}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "reprise_request_duration_seconds", Help: "How long requests took, long polls with their wait.", Buckets: durationBuckets,
		}, []string{"action"}),
		messages: make(map[queueName]map[string]uint64),
		queues:   func() []sqsserver.QueueInfo { return server().Queues() },
	}
	m.registry.MustRegister(m.connections, m.requests, m.durations, collect(collectProcess), collect(func(out chan<- prometheus.Metric) {
		server := server()
		queues := server.Queues()
		collectQueues(out, totalOf(queues))
		m.collectMessages(out, queues)
		collectFaults(out, server.AllFaults())
		healthy := 1.0
		if server.Err() != nil {
			healthy = 0
		}
		out <- gauge(healthyDesc, healthy)
	}))
	return m
}

// connection is the hook of http.Server.
func (m *metrics) connection(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		m.connections.Inc()
	case http.StateClosed, http.StateHijacked:
		m.connections.Dec()
	}
}

func (m *metrics) request(r sqsserver.Request) {
	code := r.Code
	switch {
	case r.Status == 0:
		code = "connection-cut"
	case code == "":
		code = "ok"
	}
	m.requests.WithLabelValues(r.Action, r.Protocol, code).Inc()
	m.durations.WithLabelValues(r.Action).Observe(r.Duration.Seconds())
	of := queueName{r.Region, r.Account, r.Queue}
	switch {
	case r.Messages > 0:
		m.count(of, r.Action, r.Messages)
	case r.Action == "DeleteQueue" && r.Status == http.StatusOK:
		// One of the same name counts from 0.
		m.mu.Lock()
		delete(m.messages, of)
		m.mu.Unlock()
	}
}

// minTidy is the least number of queues with counts from which on those that are gone are looked for.
const minTidy = 1000

func (m *metrics) count(of queueName, action string, messages int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.messages[of] == nil {
		if len(m.messages) >= max(minTidy, m.tidyAt) {
			// A request may end after its queue has been deleted. Twice as many queues as there
			// are at most have counts, so that this look costs each request little.
			m.forgetGone(m.queues())
			m.tidyAt = 2 * len(m.messages)
		}
		m.messages[of] = make(map[string]uint64)
	}
	m.messages[of][action] += uint64(messages) //nolint:gosec // G115: it is not negative
}

// forgetGone forgets the counts of all queues but these. The caller holds the lock.
func (m *metrics) forgetGone(queues []sqsserver.QueueInfo) {
	exists := make(map[string]bool, len(queues))
	for i := range queues {
		exists[queues[i].ARN] = true
	}
	maps.DeleteFunc(m.messages, func(q queueName, _ map[string]uint64) bool { return !exists[q.arn()] })
}

// Traffic is how many messages requests of clients sent to a queue, received and deleted.
type Traffic struct{ Sent, Received, Deleted int64 }

// Traffic returns that of all queues that had any, by ARN.
func (d *Daemon) Traffic() map[string]Traffic { return d.metrics.traffic() }

func (m *metrics) traffic() map[string]Traffic {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make(map[string]Traffic)
	for q, counts := range m.messages {
		all[q.arn()] = Traffic{
			Sent:     int64(counts["SendMessage"] + counts["SendMessageBatch"]),     //nolint:gosec // G115: far fewer
			Received: int64(counts["ReceiveMessage"]),                               //nolint:gosec // G115: far fewer
			Deleted:  int64(counts["DeleteMessage"] + counts["DeleteMessageBatch"]), //nolint:gosec // G115: far fewer
		}
	}
	return all
}

// maxQueueMetrics is how many queues have metrics of their own. Of more there are only
// totals: anybody may ask for the metrics, of 100,000 queues they would be 40 MB.
const maxQueueMetrics = 1000

// allQueues is the queue and the ARN of totals. No queue has that name.
const allQueues = "*"

// totalOf makes one queue of more than maxQueueMetrics.
func totalOf(queues []sqsserver.QueueInfo) []sqsserver.QueueInfo {
	if len(queues) <= maxQueueMetrics {
		return queues
	}
	total := sqsserver.QueueInfo{Name: allQueues, ARN: allQueues}
	for i := range queues {
		total.Visible += queues[i].Visible
		total.InFlight += queues[i].InFlight
		total.Delayed += queues[i].Delayed
		total.Polls += queues[i].Polls
	}
	return []sqsserver.QueueInfo{total}
}

// maxScrapes is how many readers of the metrics there may be at a time. They ask for no
// signature, and a slow one holds a megabyte.
const maxScrapes = 8

// atMost answers no more than so many requests at a time by next, and others with 503.
func atMost(limit int, next http.HandlerFunc) http.HandlerFunc {
	places := make(chan struct{}, limit)
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case places <- struct{}{}:
		default:
			http.Error(w, fmt.Sprintf("%d other requests are being answered, the most at a time: try again", limit), http.StatusServiceUnavailable)
			return
		}
		defer func() { <-places }()
		next(w, r)
	}
}

func (d *Daemon) serveMetrics(w http.ResponseWriter, _ *http.Request) {
	writeMetrics(w, d.cfg.Logger, d.metrics.registry, d.gatherers()...)
}

// writeMetrics answers GET /metrics with those of the registry and of the others.
func writeMetrics(w http.ResponseWriter, logger *slog.Logger, registry *prometheus.Registry, more ...prometheus.Gatherer) {
	families, err := append(prometheus.Gatherers{registry}, more...).Gather()
	if err != nil { // about some of them
		logger.Error("some metrics cannot be shown", "error", err)
	}
	format := expfmt.NewFormat(expfmt.TypeTextPlain)
	w.Header().Set("Content-Type", string(format))
	w.Header().Set("Cache-Control", "no-store")
	out := bufio.NewWriter(w)
	encoder := expfmt.NewEncoder(out, format)
	for _, family := range families {
		if err := encoder.Encode(family); err != nil {
			return // the client is gone
		}
	}
	_ = out.Flush() // the client is gone
}

func collectQueues(out chan<- prometheus.Metric, queues []sqsserver.QueueInfo) {
	for i := range queues {
		q := &queues[i]
		out <- gauge(queueMessagesDesc, float64(q.Visible), q.Name, q.ARN, "visible")
		out <- gauge(queueMessagesDesc, float64(q.InFlight), q.Name, q.ARN, "in_flight")
		out <- gauge(queueMessagesDesc, float64(q.Delayed), q.Name, q.ARN, "delayed")
		out <- gauge(longPollsDesc, float64(q.Polls), q.Name, q.ARN)
	}
}

func collectFaults(out chan<- prometheus.Metric, all map[string][]sqsserver.FaultCount) {
	for queue, faults := range all {
		for i, f := range faults {
			out <- counter(strikesDesc, float64(f.Strikes), queue, string(f.Kind), strconv.Itoa(i+1))
		}
	}
}

// collectMessages gives the counts of messages by action, by queue or in total, and
// forgets queues that are gone.
func (m *metrics) collectMessages(out chan<- prometheus.Metric, queues []sqsserver.QueueInfo) {
	m.mu.Lock()
	m.forgetGone(queues)
	type labels struct{ queue, arn, action string }
	counts := make(map[labels]uint64)
	for q, byAction := range m.messages {
		l := labels{queue: q.name, arn: q.arn()}
		if len(queues) > maxQueueMetrics {
			l.queue, l.arn = allQueues, allQueues
		}
		for l.action = range byAction {
			counts[l] += byAction[l.action]
		}
	}
	m.mu.Unlock()
	for l, n := range counts {
		out <- counter(messagesDesc, float64(n), l.queue, l.arn, l.action)
	}
}

func collectProcess(out chan<- prometheus.Metric) {
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	out <- gauge(goroutinesDesc, float64(runtime.NumGoroutine()))
	out <- gauge(heapDesc, float64(memory.HeapAlloc))
	out <- gauge(memoryDesc, float64(memory.Sys))
}

func gauge(desc *prometheus.Desc, value float64, labels ...string) prometheus.Metric {
	return sample(desc, prometheus.GaugeValue, value, labels)
}

func counter(desc *prometheus.Desc, value float64, labels ...string) prometheus.Metric {
	return sample(desc, prometheus.CounterValue, value, labels)
}

func sample(desc *prometheus.Desc, kind prometheus.ValueType, value float64, labels []string) prometheus.Metric {
	for i, label := range labels {
		labels[i] = labelValue(label)
	}
	return prometheus.MustNewConstMetric(desc, kind, value, labels...)
}

// labelValue replaces text that would make the whole scrape fail, such as bytes that
// are not UTF-8: a journal may hold regions from before they were checked.
func labelValue(text string) string {
	return strings.Map(func(c rune) rune {
		if c != '\n' && unicode.IsControl(c) {
			return unicode.ReplacementChar
		}
		return c
	}, strings.ToValidUTF8(text, string(unicode.ReplacementChar)))
}
