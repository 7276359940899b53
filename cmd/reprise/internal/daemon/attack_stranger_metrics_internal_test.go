package daemon

// Holds off: a client without a key, whose words must not break what operators read.

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// exposed is the page of the metrics.
func exposed(t *testing.T, metrics collect) string {
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics)
	w := httptest.NewRecorder()
	writeMetrics(w, slog.New(slog.NewTextHandler(t.Output(), nil)), registry)
	return w.Body.String()
}

// TestAttackMetricsOfManyQueues: the metrics of any number of queues are of a bounded
// size, and the totals are true.
func TestAttackMetricsOfManyQueues(t *testing.T) {
	for _, c := range []struct {
		queues int
		want   []string
	}{
		{maxQueueMetrics, []string{
			`reprise_messages_total{action="SendMessage",arn="arn:aws:sqs:r:a:q0",queue="q0"} 2`, `reprise_messages_total{action="DeleteMessage",arn="arn:aws:sqs:r:a:q0",queue="q0"} 5`,
			`reprise_queue_messages{arn="arn:aws:sqs:r:a:q0",queue="q0",state="visible"} 1`, `reprise_queue_messages{arn="arn:aws:sqs:r:a:q0",queue="q0",state="in_flight"} 3`,
			`reprise_queue_messages{arn="arn:aws:sqs:r:a:q0",queue="q0",state="delayed"} 4`, `reprise_queue_long_polls{arn="arn:aws:sqs:r:a:q0",queue="q0"} 2`,
		}},
		{100_000, []string{
			`reprise_messages_total{action="SendMessage",arn="*",queue="*"} 200000`, `reprise_messages_total{action="DeleteMessage",arn="*",queue="*"} 500000`,
			`reprise_queue_messages{arn="*",queue="*",state="visible"} 100000`, `reprise_queue_messages{arn="*",queue="*",state="in_flight"} 300000`,
			`reprise_queue_messages{arn="*",queue="*",state="delayed"} 400000`, `reprise_queue_long_polls{arn="*",queue="*"} 200000`,
		}},
	} {
		queues := make([]sqsserver.QueueInfo, c.queues)
		m := newMetrics(nil)
		for i := range queues {
			name := fmt.Sprint("q", i)
			queues[i] = sqsserver.QueueInfo{Name: name, ARN: "arn:aws:sqs:r:a:" + name, Visible: 1, Polls: 2, InFlight: 3, Delayed: 4}
			m.messages[queueName{"r", "a", name}] = map[string]uint64{"SendMessage": 2, "DeleteMessage": 5}
		}
		text := exposed(t, func(out chan<- prometheus.Metric) {
			collectQueues(out, totalOf(queues))
			m.collectMessages(out, queues)
		})
		if len(text) > 1<<20 {
			t.Errorf("%d queues: %d bytes, want at most 1 MiB", c.queues, len(text))
		}
		for _, want := range c.want {
			if !strings.Contains(text, want+"\n") {
				t.Errorf("%d queues: want %s: %.2000s", c.queues, want, text)
			}
		}
	}
	if got := totalOf(make([]sqsserver.QueueInfo, maxQueueMetrics+1)); len(got) != 1 || got[0].Name != allQueues {
		t.Errorf("totals are %+v", got)
	}
}

// TestAttackManyDeletedQueues: the counts of queues that are deleted are freed with them, although
// nobody asks for the metrics, and those of requests that end after the deletion do not pile up.
func TestAttackManyDeletedQueues(t *testing.T) {
	kept := []sqsserver.QueueInfo{{Name: "kept", ARN: "arn:aws:sqs:r:a:kept"}}
	m := newMetrics(nil)
	m.queues = func() []sqsserver.QueueInfo { return kept }
	request := func(queue, action string, messages int) {
		m.request(sqsserver.Request{Region: "r", Account: "a", Queue: queue, Action: action, Status: 200, Messages: messages})
	}
	request("kept", "SendMessage", 3)
	request("gone", "SendMessage", 3)
	request("gone", "ReceiveMessage", 2)
	m.request(sqsserver.Request{Region: "r", Account: "a", Queue: "kept", Action: "DeleteQueue", Status: 400, Code: "AccessDenied"})
	request("gone", "DeleteQueue", 0)
	request("gone", "SendMessage", 1) // one of the same name
	want := map[string]Traffic{"arn:aws:sqs:r:a:kept": {Sent: 3}, "arn:aws:sqs:r:a:gone": {Sent: 1}}
	if diff := cmp.Diff(want, m.traffic()); diff != "" {
		t.Errorf("traffic (-want +got):\n%s", diff)
	}
	most := 0
	for i := range 100_000 {
		name := fmt.Sprint("q", i)
		request(name, "SendMessage", 1)
		request(name, "DeleteQueue", 0)
		if i%10 == 0 {
			request(name, "ReceiveMessage", 1) // a receive that ends late
		}
		most = max(most, len(m.messages))
	}
	if most > minTidy {
		t.Errorf("%d queues had counts at once, with one queue that exists", most)
	}
	if got := m.traffic()["arn:aws:sqs:r:a:kept"]; got.Sent != 3 {
		t.Errorf("traffic of the queue that is kept: %+v", got)
	}
}

// TestAttackLabelValues: no value of a label, which an older journal may bring, makes a
// scrape fail or a line of its own.
func TestAttackLabelValues(t *testing.T) {
	desc := prometheus.NewDesc("m", "help", []string{"arn"}, nil)
	text := exposed(t, func(out chan<- prometheus.Metric) { out <- gauge(desc, 1, "eu\xff\x00\x1b\u009b\n\"\\é") })
	if want := `m{arn="eu` + strings.Repeat("\uFFFD", 4) + `\n\"\\é"} 1` + "\n"; !strings.HasSuffix(text, want) {
		t.Errorf("wrote %q, want %q", text, want)
	}
}

// TestAttackSlowScrapes: of those who ask for something and read no answer, only so many
// hold one; the next is told to come again, and may when one has gone.
func TestAttackSlowScrapes(t *testing.T) {
	read := make(chan struct{})
	began := make(chan struct{}, 2)
	handler := atMost(2, func(http.ResponseWriter, *http.Request) {
		began <- struct{}{}
		<-read
	})
	ask := func() int {
		w := httptest.NewRecorder()
		handler(w, httptest.NewRequest("GET", "/metrics", nil))
		return w.Code
	}
	ended := make(chan int)
	for range 2 {
		go func() { ended <- ask() }()
		<-began
	}
	if code := ask(); code != http.StatusServiceUnavailable {
		t.Errorf("status %d for the third, want 503", code)
	}
	close(read)
	for range 2 {
		if code := <-ended; code != http.StatusOK {
			t.Errorf("status %d for one of the first two, want 200", code)
		}
	}
	if code := ask(); code != http.StatusOK {
		t.Errorf("status %d after they have gone, want 200", code)
	}
}
