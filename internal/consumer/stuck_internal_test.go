package consumer

import (
	"testing"
	"time"
)

// TestStuckInOneOutbox: a message counts as stuck while one outbox is refused again and again. If
// it then goes to another outbox it does not, until that is refused as often.
func TestStuckInOneOutbox(t *testing.T) {
	c := at(New(Settings{Concurrency: 1, Settings: leased}), 0)
	d := &Delivery{ID: "a", state: stateSettling}
	c.settling++
	refuse := func(o *Outbox, times, want int) {
		t.Helper()
		for range times {
			c.noteRefusal(o, d, &Failure{Err: errFails}, c.now)
			at(c, c.now.Sub(noon)+time.Second)
			c.answered = c.now // about another message
		}
		if c.stuck != want {
			t.Errorf("%d messages are stuck after %d refusals of %s, want %d", c.stuck, times, o, want)
		}
	}
	refuse(&c.copies, unsettledMany-1, 0)
	refuse(&c.copies, 2, 1)
	refuse(&c.hides, 1, 0)
	refuse(&c.hides, unsettledMany, 1)
	if c.move(d, stateGone); c.stuck != 0 {
		t.Errorf("%d messages are stuck, though none is held", c.stuck)
	}
}

// TestRoomBesideStuckMessages: a few messages whose settlements are refused again and again do not
// keep the consumer from receiving. Of many each takes memory, so receiving ends.
func TestRoomBesideStuckMessages(t *testing.T) {
	const places = 20
	for name, tt := range map[string]struct {
		settling, stuck int
		receives        bool
	}{
		"none":                       {0, 0, true},
		"many that are not stuck":    {settleAllowance + places, 0, false},
		"one fewer":                  {settleAllowance + places - 1, 0, true},
		"as many as may be stuck":    {maxStuck, maxStuck, true},
		"those, and many others":     {maxStuck + settleAllowance + places, maxStuck, false},
		"more than may be stuck":     {maxStuck + settleAllowance + places, maxStuck + settleAllowance + places, false},
		"more, but not by so many":   {maxStuck + settleAllowance, maxStuck + settleAllowance, true},
		"many of all, and all stuck": {10 * maxStuck, 10 * maxStuck, false},
	} {
		c := at(New(Settings{Concurrency: 10, Prefetch: places - 10, Settings: leased}), 0)
		c.settling, c.stuck = tt.settling, tt.stuck
		if free, _, _ := c.room(); (free > 0) != tt.receives {
			t.Errorf("%s: there is room for %d messages", name, free)
		}
	}
}
