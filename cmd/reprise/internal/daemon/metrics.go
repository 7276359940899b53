package daemon

import (
	"bufio"
	"cmp"
	"fmt"
	"maps"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// durationBuckets are the upper bounds, in seconds, of the classes that durations
// are counted in. Long polls take up to 20.
var durationBuckets = []float64{0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10, 25}

// metrics counts what the server does, for Prometheus, in few lines: it has no use
// for a library. A consumer's metrics come from OpenTelemetry, see consumerMetrics.
// No label has values that clients invent: only actions, codes and queues that exist.
type metrics struct {
	connections atomic.Int64 // open

	mu        sync.Mutex
	requests  map[requestLabels]uint64
	durations map[string]*histogram    // by action
	messages  map[messageLabels]uint64 // of queues that may have gone since
}

type requestLabels struct{ action, protocol, code string }

type messageLabels struct{ region, account, queue, action string }

func (l messageLabels) arn() string {
	return "arn:aws:sqs:" + l.region + ":" + l.account + ":" + l.queue
}

// histogram counts durations: those of a class, not of the classes below it.
type histogram struct {
	counts []uint64 // one more than there are buckets
	sum    time.Duration
}

func newMetrics() *metrics {
	return &metrics{
		requests:  make(map[requestLabels]uint64),
		durations: make(map[string]*histogram),
		messages:  make(map[messageLabels]uint64),
	}
}

// connection is the hook of http.Server.
func (m *metrics) connection(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		m.connections.Add(1)
	case http.StateClosed, http.StateHijacked:
		m.connections.Add(-1)
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
	bucket, _ := slices.BinarySearch(durationBuckets, r.Duration.Seconds())
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests[requestLabels{r.Action, r.Protocol, code}]++
	h := m.durations[r.Action]
	if h == nil {
		h = &histogram{counts: make([]uint64, len(durationBuckets)+1)}
		m.durations[r.Action] = h
	}
	h.counts[bucket]++
	h.sum += r.Duration
	if r.Messages > 0 {
		m.messages[messageLabels{r.Region, r.Account, r.Queue, r.Action}] += uint64(r.Messages)
	}
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
			http.Error(w, fmt.Sprintf("%d others are being answered, as many as may be at a time: try again", limit), http.StatusServiceUnavailable)
			return
		}
		defer func() { <-places }()
		next(w, r)
	}
}

func (d *Daemon) serveMetrics(w http.ResponseWriter, _ *http.Request) {
	out := beginExposition(w)
	queues := d.sqs.Queues()
	d.writeQueueMetrics(out, totalOf(queues))
	d.writeFaultMetrics(out)
	d.metrics.write(out, queues)
	d.writeHealthMetrics(out)
	writeProcessMetrics(out)
	d.consumer.writeMetrics(out, d.cfg.Logger)
	_ = out.w.Flush() // who is not there needs no metrics
}

func (d *Daemon) writeQueueMetrics(out *exposition, queues []sqsserver.QueueInfo) {
	out.family("reprise_queue_messages", "gauge", "Messages in a queue now, by their state.")
	for _, q := range queues {
		for _, state := range []struct {
			name string
			n    int
		}{{"visible", q.Visible}, {"in_flight", q.InFlight}, {"delayed", q.Delayed}} {
			out.sample("reprise_queue_messages", float64(state.n), "queue", q.Name, "arn", q.ARN, "state", state.name)
		}
	}
	out.family("reprise_queue_long_polls", "gauge", "Long polls that wait for a message of a queue now.")
	for _, q := range queues {
		out.sample("reprise_queue_long_polls", float64(q.Polls), "queue", q.Name, "arn", q.ARN)
	}
}

func (d *Daemon) writeFaultMetrics(out *exposition) {
	out.family("reprise_fault_strikes_total", "counter", "How often the faults that are set now have struck.")
	all := d.sqs.AllFaults()
	for _, queue := range slices.Sorted(maps.Keys(all)) {
		for i, f := range all[queue] {
			out.sample("reprise_fault_strikes_total", float64(f.Strikes), "queue", queue, "kind", string(f.Kind), "number", strconv.Itoa(i+1))
		}
	}
}

func (m *metrics) write(out *exposition, queues []sqsserver.QueueInfo) {
	m.mu.Lock()
	defer m.mu.Unlock()
	exists := make(map[string]bool, len(queues))
	for _, q := range queues {
		exists[q.ARN] = true
	}
	maps.DeleteFunc(m.messages, func(l messageLabels, _ uint64) bool { return !exists[l.arn()] })

	out.family("reprise_requests_total", "counter", "Requests that have ended, by the code of their error; ok, and connection-cut.")
	for _, l := range slices.SortedFunc(maps.Keys(m.requests), func(a, b requestLabels) int {
		return cmp.Or(cmp.Compare(a.action, b.action), cmp.Compare(a.protocol, b.protocol), cmp.Compare(a.code, b.code))
	}) {
		out.sample("reprise_requests_total", float64(m.requests[l]), "action", l.action, "protocol", l.protocol, "code", l.code)
	}
	out.family("reprise_messages_total", "counter", "Messages sent, received, deleted and hidden, by the action that did it.")
	m.writeMessages(out, len(queues) > maxQueueMetrics)
	out.family("reprise_request_duration_seconds", "histogram", "How long requests took, long polls with their wait.")
	for _, action := range slices.Sorted(maps.Keys(m.durations)) {
		out.histogram("reprise_request_duration_seconds", m.durations[action], "action", action)
	}
	out.family("reprise_connections", "gauge", "Connections that are open now.")
	out.sample("reprise_connections", float64(m.connections.Load()))
}

// writeMessages writes what became of messages, by queue or in total. The lock is held.
func (m *metrics) writeMessages(out *exposition, total bool) {
	if total {
		byAction := make(map[string]uint64)
		for l, n := range m.messages {
			byAction[l.action] += n
		}
		for _, action := range slices.Sorted(maps.Keys(byAction)) {
			out.sample("reprise_messages_total", float64(byAction[action]), "queue", allQueues, "arn", allQueues, "action", action)
		}
		return
	}
	for _, l := range slices.SortedFunc(maps.Keys(m.messages), func(a, b messageLabels) int {
		return cmp.Or(cmp.Compare(a.arn(), b.arn()), cmp.Compare(a.action, b.action))
	}) {
		out.sample("reprise_messages_total", float64(m.messages[l]), "queue", l.queue, "arn", l.arn(), "action", l.action)
	}
}

func (d *Daemon) writeHealthMetrics(out *exposition) {
	healthy := 1.0
	if d.sqs.Err() != nil {
		healthy = 0
	}
	out.family("reprise_healthy", "gauge", "1 while the server takes requests, 0 once it has stopped for a failure.")
	out.sample("reprise_healthy", healthy)
}

func writeProcessMetrics(out *exposition) {
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	out.family("go_goroutines", "gauge", "Goroutines of the process.")
	out.sample("go_goroutines", float64(runtime.NumGoroutine()))
	out.family("go_memstats_heap_alloc_bytes", "gauge", "Bytes of objects on the heap.")
	out.sample("go_memstats_heap_alloc_bytes", float64(memory.HeapAlloc))
	out.family("go_memstats_sys_bytes", "gauge", "Bytes of memory got from the system.")
	out.sample("go_memstats_sys_bytes", float64(memory.Sys))
}

// exposition writes the text format of Prometheus.
// https://prometheus.io/docs/instrumenting/exposition_formats/
type exposition struct{ w *bufio.Writer }

func (e *exposition) family(name, kind, help string) {
	fmt.Fprintf(e.w, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

var labelEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// labelValue escapes a value. One that is not UTF-8 would make the whole scrape fail: a
// journal may hold regions from before they were checked.
func labelValue(text string) string {
	return labelEscapes.Replace(strings.Map(func(c rune) rune {
		if c != '\n' && unicode.IsControl(c) {
			return unicode.ReplacementChar
		}
		return c
	}, strings.ToValidUTF8(text, string(unicode.ReplacementChar))))
}

// sample writes a value; labels are names and values by turns.
func (e *exposition) sample(name string, value float64, labels ...string) {
	fmt.Fprint(e.w, name)
	separator := "{"
	for i := 0; i < len(labels); i += 2 {
		fmt.Fprintf(e.w, `%s%s="%s"`, separator, labels[i], labelValue(labels[i+1]))
		separator = ","
	}
	if len(labels) > 0 {
		fmt.Fprint(e.w, "}")
	}
	fmt.Fprintf(e.w, " %s\n", strconv.FormatFloat(value, 'g', -1, 64))
}

func (e *exposition) histogram(name string, h *histogram, labels ...string) {
	total := uint64(0)
	for i, n := range h.counts {
		total += n
		bound := "+Inf"
		if i < len(durationBuckets) {
			bound = strconv.FormatFloat(durationBuckets[i], 'g', -1, 64)
		}
		e.sample(name+"_bucket", float64(total), append(slices.Clone(labels), "le", bound)...)
	}
	e.sample(name+"_sum", h.sum.Seconds(), labels...)
	e.sample(name+"_count", float64(total), labels...)
}
