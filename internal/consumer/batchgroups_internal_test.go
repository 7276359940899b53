package consumer

import (
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/internal/history"
	"github.com/reprise-sqs/reprise/internal/lease"
	"github.com/reprise-sqs/reprise/internal/memory"
	"github.com/reprise-sqs/reprise/retry"
)

// TestMayGoAlong: of the messages behind the head of a group, a batch takes those along that would
// run at once if they were the head.
func TestMayGoAlong(t *testing.T) {
	later := noon.Add(time.Second)
	for name, tt := range map[string]struct {
		known memory.Note
		of    Delivery
		key   func(*Machine) // changes the gate of its key
		held  time.Duration  // since it was received; its lease is a minute, less the slack of a second
		want  bool
	}{
		"new":               {want: true},
		"its lease ends":    {held: 59*time.Second - 1, want: true},
		"its lease is over": {held: 59 * time.Second},
		"it was due":        {known: memory.Note{Due: noon}, want: true},
		"not yet due":       {known: memory.Note{Due: later}},
		"done":              {known: memory.Note{Done: true}},
		"given up":          {known: memory.Note{Spent: true}},
		"to run alone":      {of: Delivery{History: &Past{History: history.History{Alone: 1}}}},
		"runs":              {of: Delivery{state: stateRunning}},
		"its last attempt":  {of: Delivery{Attempt: 3}, want: true},
		"attempts used up":  {of: Delivery{Attempt: 4}},
		"its key fails":     {key: func(c *Machine) { c.addGate("key") }, want: true},
		"its key is paused": {key: func(c *Machine) { c.addGate("key").Paused = true }},
		"its key is down":   {key: func(c *Machine) { c.addGate("key").Breaker.Open(noon, 0.5) }},
	} {
		c := at(New(Settings{Settings: leased, Keyed: true, Retry: retry.Policy{MaxAttempts: 3}}), 0)
		d := tt.of
		d.ID, d.Key = "a", "key"
		received := c.now.Add(-tt.held)
		d.lease = lease.Received(received, received, time.Minute, 0)
		note := c.memory.Note("a", c.now)
		note.Due, note.Done, note.Spent = tt.known.Due, tt.known.Done, tt.known.Spent
		if tt.key != nil {
			tt.key(c)
		}
		if got := c.mayGoAlong(&d, c.now); got != tt.want {
			t.Errorf("%s: it may go along: %v", name, got)
		}
	}
}
