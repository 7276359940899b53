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
