package daemon

// Holds off: a client without a key, whose words must not break what operators read.

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestAttackMetricsOfManyQueues: the metrics of any number of queues are of a bounded
// size, and the totals are true.
func TestAttackMetricsOfManyQueues(t *testing.T) {
	for _, c := range []struct {
		queues int
		want   string
	}{
		{maxQueueMetrics, `reprise_messages_total{queue="q0",arn="arn:aws:sqs:r:a:q0",action="SendMessage"} 2`},
		{100_000, `reprise_messages_total{queue="*",arn="*",action="SendMessage"} 200000`},
	} {
		queues := make([]sqsserver.QueueInfo, c.queues)
		m := newMetrics()
		for i := range queues {
			name := fmt.Sprint("q", i)
			queues[i] = sqsserver.QueueInfo{Name: name, ARN: "arn:aws:sqs:r:a:" + name, Visible: 1, Polls: 2}
			m.messages[messageLabels{"r", "a", name, "SendMessage"}] = 2
		}
		var text strings.Builder
		out := &exposition{bufio.NewWriter(&text)}
		new(Daemon).writeQueueMetrics(out, totalOf(queues))
		m.write(out, queues)
		if err := out.w.Flush(); err != nil {
			t.Fatal(err)
		}
		if text.Len() > 1<<20 || !strings.Contains(text.String(), c.want+"\n") {
			t.Errorf("%d queues: %d bytes, want at most 1 MiB with %s: %.2000s", c.queues, text.Len(), c.want, text.String())
		}
	}
	if got := totalOf(make([]sqsserver.QueueInfo, maxQueueMetrics+1)); len(got) != 1 || got[0].Name != allQueues {
		t.Errorf("totals are %+v", got)
	}
}

// TestAttackLabelValues: no value of a label, which an older journal may bring, makes a
// scrape fail or a line of its own.
func TestAttackLabelValues(t *testing.T) {
	var text strings.Builder
	out := exposition{bufio.NewWriter(&text)}
	out.sample("m", 1, "arn", "eu\xff\x00\x1b\u009b\n\"\\é")
	if err := out.w.Flush(); err != nil {
		t.Fatal(err)
	}
	if want := `m{arn="eu` + strings.Repeat("\uFFFD", 4) + `\n\"\\é"} 1` + "\n"; text.String() != want {
		t.Errorf("wrote %q, want %q", text.String(), want)
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
