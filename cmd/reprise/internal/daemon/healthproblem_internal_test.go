package daemon

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/reprisetest"
)

// TestHealthOfNewConsumers: a queue without a problem has none in the health of all.
func TestHealthOfNewConsumers(t *testing.T) {
	var all []*consumer
	for range 2 {
		q := reprisetest.NewQueue(t, nil)
		c, err := newConsumer(Consume{Client: q.Client(), QueueURL: q.URL(), Handler: reprise.HandlerFunc(func(context.Context, *reprise.Message) error { return nil })}, false, Watching{})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	var h health
	if code := h.consumed(all); code != http.StatusOK || h.Status != reprise.HealthNew.String() || h.Problem != "" || len(h.Queues) != 2 {
		t.Errorf("%d: %+v", code, h)
	}
}

// TestHealthOfAPausedKey: what an operator has paused is not shown as a breaker that is just closed, and not by name.
func TestHealthOfAPausedKey(t *testing.T) {
	q := reprisetest.NewQueue(t, nil)
	key := func(*reprise.Message) string { return "acme" }
	c, err := newConsumer(Consume{Client: q.Client(), QueueURL: q.URL(), Handler: reprise.HandlerFunc(func(context.Context, *reprise.Message) error { return nil }),
		Config: reprise.Config{Outage: reprise.Outage{Key: key}}}, false, Watching{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.PauseKey("acme"); err != nil {
		t.Fatal(err)
	}
	var h health
	h.consumed([]*consumer{c})
	if text, err := json.Marshal(h.Breakers); err != nil || string(text) != `[{"state":"closed","held":0,"paused":true}]` {
		t.Errorf("%v: %s", err, text)
	}
}
