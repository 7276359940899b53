package consumer

import (
	"strconv"
	"testing"
	"time"
)

// TestTimeAllows: during a stop, handlers start only if they will probably end in time, and only
// if they may start at all.
func TestTimeAllows(t *testing.T) {
	for name, tt := range map[string]struct {
		usual  time.Duration // of a handler
		others int           // messages that wait
		paused bool
		want   bool
	}{
		"unknown":                {},
		"quick":                  {usual: time.Second, want: true},
		"slow":                   {usual: 10 * time.Second},
		"behind a few":           {usual: time.Second, others: 6, want: true},
		"behind many":            {usual: time.Second, others: 20},
		"quick, but it may not":  {usual: time.Second, paused: true},
		"unknown, and it is not": {paused: true},
	} {
		c := at(New(Settings{Concurrency: 2, Settings: leased, SoftBudget: 10 * time.Second, StopBudget: 13 * time.Second}), 0)
		c.SetPaused(tt.paused)
		c.Stop()
		c.taskTime.mean, c.waiting = tt.usual, tt.others
		if got := c.timeAllows(c.now); got != tt.want {
			t.Errorf("%s: the time allows it: %v", name, got)
		}
	}
}

// TestNoReceiveDuringAStop: a receive that was under way when the stop began is full. No other
// follows it.
func TestNoReceiveDuringAStop(t *testing.T) {
	c := at(New(Settings{Concurrency: 50, Prefetch: 10, Settings: leased, SoftBudget: 10 * time.Second, StopBudget: 13 * time.Second}), 0)
	c.Start(false)
	receives := effects(c, Receive)
	if len(receives) != 1 || receives[0].N != MaxBatch {
		t.Fatalf("receives %+v, want one of ten messages", receives)
	}
	c.Stop()
	if more := effects(c, Receive); len(more) > 0 {
		t.Errorf("the stop begins with the receives %+v", more)
	}
	batch := make([]*Delivery, MaxBatch)
	for i := range batch {
		batch[i] = &Delivery{ID: strconv.Itoa(i)}
	}
	c.Took(receives[0].Poller, MaxBatch, batch, c.now, c.now, 0)
	if more := effects(c, Receive); len(more) > 0 || c.Receives() > 0 {
		t.Errorf("after a full receive the stop makes the receives %+v", more)
	}
}
