package dashboard

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
)

// statsAt are statistics of the queue orders and its consumer, which knows the queue by another host of the same server
// than the server itself.
func statsAt(when, began time.Time, times int64) *admin.Stats {
	c := admin.Consumer{Queue: "orders", URL: "http://127.0.0.1:9324/0/orders", InBackoff: 4, Counts: admin.Counts{Retried: 5 * times, DeadLettered: 6 * times, Deleted: 70 * times}}
	return &admin.Stats{
		At: when, Since: began,
		Consumers: []admin.ConsumerStats{{Consumer: c, Attempts: admin.Attempts{Failed: 11 * times}}},
		Queues: []admin.QueueStats{{
			Queue:   operate.Queue{Name: "orders", URL: "http://localhost:9324/0/orders", Visible: 1, InFlight: 2, Delayed: 3, Oldest: when.Add(-time.Minute)},
			Traffic: &admin.Traffic{Sent: 8 * times, Deleted: 9 * times},
		}},
	}
}

// TestFiguresOfAQueue: each line of a chart has its own figure, also the lines of what the consumer does.
func TestFiguresOfAQueue(t *testing.T) {
	began := time.Unix(1000, 0)
	var h history
	first, second := statsAt(began, began, 0), statsAt(began.Add(2*time.Second), began, 2)
	h.add(first, nil)
	h.add(second, first)
	text, err := json.Marshal(h.queues["http://localhost:9324/0/orders"].after(1000))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"at":[1002],"visible":[1],"inFlight":[2],"delayed":[3],"backoff":[4],"oldest":[60],"in":[8],"out":[9],"failed":[11],"retried":[5],"dead":[6]}`
	if string(text) != want {
		t.Errorf("the figures are %s, want %s", text, want)
	}
}

// TestFiguresThatAreForgotten: the oldest figures of all lines are forgotten together: those that are left stay beside
// their time.
func TestFiguresThatAreForgotten(t *testing.T) {
	began := time.Unix(1000, 0)
	var h history
	var before *admin.Stats
	for i := range maxPoints + 2 {
		now := statsAt(began.Add(time.Duration(2*i)*time.Second), began, int64(i))
		h.add(now, before)
		before = now
	}
	s := h.queues["http://localhost:9324/0/orders"]
	if len(s.At) != maxPoints || s.At[0] != 1004 {
		t.Fatalf("there are %d times, the first %v", len(s.At), s.At[0])
	}
	for i, figures := range s.figures() {
		if len(*figures) != maxPoints || (*figures)[0] == nil {
			t.Errorf("line %d has %d figures, want %d", i, len(*figures), maxPoints)
		}
	}
}

// TestConsumerByAnotherHost: the page of a queue knows its consumer, although that calls the server by another name
// than the server itself.
func TestConsumerByAnotherHost(t *testing.T) {
	now := statsAt(time.Unix(1000, 0), time.Unix(900, 0), 1)
	q, err := findQueue(newOverview(now, nil), now, "orders")
	if err != nil || q.Consumer == nil || q.Consumer.InBackoff != 4 {
		t.Errorf("%+v, %v: want the consumer", q, err)
	}
}
