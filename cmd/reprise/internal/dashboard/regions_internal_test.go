package dashboard

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
)

// TestQueuesOfOneName: of queues with one name in two regions each has its own dead letters, consumer, problems and page.
func TestQueuesOfOneName(t *testing.T) {
	const eu, us = "https://sqs.eu-west-1.amazonaws.com/123456789012/", "https://sqs.us-east-1.amazonaws.com/123456789012/"
	const euARN, usARN = "arn:aws:sqs:eu-west-1:123456789012:", "arn:aws:sqs:us-east-1:123456789012:"
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	stats := &admin.Stats{
		At: now,
		Queues: []admin.QueueStats{
			{Queue: operate.Queue{Name: "dead", URL: eu + "dead", ARN: euARN + "dead", Visible: 3, DeadLettersOf: []string{"orders"}}},
			{Queue: operate.Queue{Name: "dead", URL: us + "dead", ARN: usARN + "dead", Visible: 5, DeadLettersOf: []string{"orders"}}},
			{Queue: operate.Queue{Name: "mails", URL: us + "mails", ARN: usARN + "mails"}},
			{Queue: operate.Queue{Name: "orders", URL: eu + "orders", ARN: euARN + "orders", Visible: 10, DeadLetterQueue: "dead"}},
			{Queue: operate.Queue{Name: "orders", URL: us + "orders", ARN: usARN + "orders", Visible: 20, DeadLetterQueue: "dead"}},
		},
		Consumers: []admin.ConsumerStats{
			{Consumer: admin.Consumer{Queue: "orders", URL: us + "orders", Health: "degraded", Breakers: []admin.Breaker{{State: "open", Since: now.Add(-time.Minute)}}}},
			{Consumer: admin.Consumer{Queue: "orders", URL: eu + "orders", Health: "ok"}},
		},
	}
	o := newOverview(stats, nil)
	for url, want := range map[string]struct{ visible, dead, problems int }{eu + "orders": {10, 3, 0}, us + "orders": {20, 5, 1}} {
		q, err := findQueue(o, stats, url)
		if err != nil || q.URL != url || *q.Visible != want.visible || q.Dead == nil || *q.Dead != want.dead || len(q.Problems) != want.problems || q.Consumer == nil || q.Consumer.URL != url {
			t.Errorf("%s: %+v, %v, want %+v", url, q, err, want)
		}
	}
	if q, err := findQueue(o, stats, "orders"); err == nil || !strings.Contains(err.Error(), us+"orders") {
		t.Errorf("by its name: %+v, %v, want that it is ambiguous", q, err)
	}
	if q, err := findQueue(o, stats, "mails"); err != nil || q.Key != "mails" {
		t.Errorf("by a name that is that of one: %+v, %v", q, err)
	}
	var b bytes.Buffer
	if err := parse(pages)["overview"].ExecuteTemplate(&b, "live", frame{Now: now, Data: o}); err != nil {
		t.Fatal(err)
	}
	if err := parse(pages)["workers"].ExecuteTemplate(&b, "live", frame{Now: now, Data: newWorkers(stats, nil)}); err != nil {
		t.Fatal(err)
	}
	for _, link := range []string{queueURL(eu + "orders"), queueURL(us + "orders"), deadURL(eu + "dead"), deadURL(us + "dead"), queueURL("mails")} {
		if !strings.Contains(b.String(), `href="`+link+`"`) {
			t.Errorf("there is no link to %s", link)
		}
	}
	for _, link := range []string{queueURL("orders"), deadURL("dead")} {
		if strings.Contains(b.String(), `href="`+link+`"`) {
			t.Errorf("a link leads to %s, which is either of two queues", link)
		}
	}
}
