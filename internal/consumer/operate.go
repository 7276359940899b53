package consumer

import (
	"time"

	"github.com/reprise-sqs/reprise/internal/shortkey"
)

const (
	// rateBurst is how far handlers may start ahead of their even spacing: at more than a
	// hundred a second, a timer for each start would cost too much.
	rateBurst = 10 * time.Millisecond

	// rateAhead limits how long a message waits for its start because of Settings.Rate: no
	// more messages are received than can start within that time.
	rateAhead = 10 * time.Second
)

// SetConcurrency changes how many handlers may run at once.
func (c *Machine) SetConcurrency(n int) {
	c.concurrency = n
	c.wholePool = false
}

// SetConcurrency changes how many handlers may run at once. It is a section of its own, at
// now.
func (p *Pool) SetConcurrency(n int, now time.Time) {
	p.concurrency = n
	for c := range p.Each {
		c.now = now
		c.takeWhole()
	}
	p.endSection(nil, now)
}

// SetRate changes how many handlers may start a second; 0: no limit. The next start keeps the new
// distance from the last one, however far off the old rate had put it.
func (c *Machine) SetRate(rate float64) {
	switch old := c.Rate; {
	case rate == 0:
		c.nextAt = time.Time{}
	case old != 0:
		c.nextAt = c.nextAt.Add(rateSpacing(rate) - rateSpacing(old))
	}
	c.Rate = rate
}

// SetPaused pauses the consumer, so that no handler starts and no message is received, or
// ends the pause.
func (c *Machine) SetPaused(paused bool) {
	c.paused = paused
	if s := c.solo; s.next != nil && s.owner == c {
		if paused {
			c.endSolo(c.now)
		} else {
			c.claimSolo(c.now)
		}
	}
}

// SetKeyPaused pauses one key, so that no handler starts for its messages, or ends the
// pause.
func (c *Machine) SetKeyPaused(key string, paused bool) {
	key = shortkey.Of(key)
	g := c.gates.byKey[key]
	if g == nil {
		if !paused {
			return
		}
		g = c.addGate(key)
	}
	g.Paused = paused
	c.gateTurned(g, c.now)
}

// SetRetryLaneOf notes that c's queue is the retry lane of other. It precedes all other inputs.
func (c *Machine) SetRetryLaneOf(other *Machine) {
	c.retryLaneOf = other
	c.early = other.early // whoever names a message need not know in which of both queues it waits
}

// PoolShare returns c's share of its pool.
func (c *Machine) PoolShare() Share { return Share{c.turns.Priority, c.turns.Weight} }

// Handlers returns how many handlers run.
func (c *Machine) Handlers() int { return c.handlers() }
