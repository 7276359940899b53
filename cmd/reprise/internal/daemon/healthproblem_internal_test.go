package daemon

import (
	"context"
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
