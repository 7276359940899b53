package reprise

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/reprise-sqs/reprise/internal/breaker"
)

// BreakerState is where the circuit breaker over the handlers' outcomes stands.
// It is a closed set, fit for a metric label.
type BreakerState uint8

// The states of a breaker.
const (
	// BreakerClosed: handlers run as they are configured to.
	BreakerClosed = BreakerState(breaker.Closed)
	// BreakerOpen: what the handlers need is unavailable; none is started.
	BreakerOpen = BreakerState(breaker.Open)
	// BreakerHalfOpen: a probe is under way.
	BreakerHalfOpen = BreakerState(breaker.HalfOpen)
	// BreakerRamping: it answers again; more and more handlers run at once.
	BreakerRamping = BreakerState(breaker.Ramping)

	breakerStates = BreakerRamping + 1
)

var breakerStateNames = [breakerStates]string{"closed", "open", "half-open", "ramping"}

// String returns the state's name, fit for a metric label.
func (s BreakerState) String() string { return nameOf(breakerStateNames[:], uint8(s), "BreakerState") }

const (
	// defaultThreshold is how many distinct messages must have failed. Fewer could
	// be a handful of slow ones.
	defaultThreshold = 20
	maxThreshold     = 1000
)

// Outage says how a [Consumer] recognises an outage of what its handlers need, and
// how it finds the end of one.
//
// A circuit breaker watches how attempts end. When nearly all fail because
// something is unavailable, it opens: no handler is started and nothing is
// received, so that no message uses up receives or attempts for nothing. Messages
// that were received already, and those that fail then, are held under their
// lease. From time to time a probe is made; when one succeeds, handlers are
// started again, one at a time at first, then more and more, for as long as no
// fewer attempts succeed than usual. Then messages that this process had hidden
// for want of the dependency are made visible, at the rate at which they can be
// worked off.
//
// The zero Outage does all that, carefully: a breaker opens when 20 different
// messages have failed so and nothing else has happened in between. Each consumer
// decides for itself.
type Outage struct {
	// Off keeps breakers from opening.
	Off bool

	// Unavailable says whether an attempt failed because something is unavailable,
	// rather than for a reason of the message's own. Steering errors that are not
	// retries, [Permanent] and [Release], are not asked about. Default:
	// [IsUnavailable].
	Unavailable func(error) bool

	// Key returns what a message needs, a tenant or a host, say: then each key has
	// a breaker of its own, receiving goes on while one is open, and an outage of
	// one delays no messages but its own. Of the keys whose messages fail a
	// thousand are watched. It is called once for each message received. Default:
	// nil; one breaker for the whole consumer.
	Key func(*Message) string

	// Probe tests whether what a key needs, or the whole consumer with the empty
	// key, is available again: nil says so. Its context ends after 30 s; of one that
	// does not return then messages take the place. Default: nil; a probe is a run
	// of the handler with one of the messages held, which counts as no attempt if it
	// fails.
	Probe func(ctx context.Context, key string) error

	// Threshold is how many different messages must have failed before a breaker
	// opens, from 1 to 1,000. What else happens in between asks for as many
	// failures again, so 20 stands for 95 % of the recent attempts. Default: 20.
	Threshold int
}

func (o Outage) withDefaults() Outage {
	if o.Unavailable == nil {
		o.Unavailable = IsUnavailable
	}
	if o.Threshold == 0 {
		o.Threshold = defaultThreshold
	}
	return o
}

// OutageEvent is a change of a breaker's state.
type OutageEvent struct {
	// Key is the breaker's key: empty for the whole consumer's.
	Key string
	// State is what the breaker has become, Previous what it was.
	State, Previous BreakerState
	// At is when that was, Since when the outage began.
	At, Since time.Time
	// NextProbe is when a probe is due: zero unless the State is BreakerOpen.
	NextProbe time.Time
	// Held is how many messages wait for the outage to end, under lease.
	Held int
	// Err is the latest failure for want of the dependency.
	Err error
}

// BreakerStatus is the state of a breaker that is not closed, or of a key that is
// paused.
type BreakerStatus struct {
	// Key is the breaker's key: empty for the whole consumer's.
	Key   string
	State BreakerState
	// Since is when the outage began: zero if the breaker is closed.
	Since time.Time
	// NextProbe is when a probe is due: zero unless the State is BreakerOpen.
	NextProbe time.Time
	// Held is how many messages wait, under lease.
	Held int
	// Level is how many messages may run at once while the State is BreakerRamping:
	// one also stands for one with pauses in between. Zero otherwise.
	Level int
	// Paused says that PauseKey has been called.
	Paused bool
	// Problem is the text of the latest failure for want of the dependency.
	Problem string
}

// isUnavailable asks the user's code whether err is for want of the dependency.
// The caller does not hold c.mu.
func (c *Consumer) isUnavailable(err, passedOn error) (unavailable bool) {
	if c.cfg.Outage.Off {
		return false
	}
	if errors.Is(passedOn, context.DeadlineExceeded) {
		err = errors.Join(err, passedOn) // which context.Canceled does not say
	}
	defer func() {
		if v := recover(); v != nil {
			unavailable = false
			c.complain("unavailable", fmt.Sprintf("Config.Outage.Unavailable panicked, which counts as no: %v\n%s", v, debug.Stack()))
		}
	}()
	return c.cfg.Outage.Unavailable(err)
}

// nameKeys fills in the messages' keys, by the user's code: c.mu is not held.
func (c *Consumer) nameKeys(batch []delivery) {
	if c.cfg.Outage.Key == nil {
		return
	}
	for i := range batch {
		batch[i].Key = c.keyOf(&batch[i])
	}
}

// keyOf returns the key of d; the empty one if the user's code panics.
func (c *Consumer) keyOf(d *delivery) (key string) {
	defer func() {
		if v := recover(); v != nil {
			key = ""
			c.complain("key", fmt.Sprintf("Config.Outage.Key panicked; the message has the empty key: %v\n%s", v, debug.Stack()))
		}
	}()
	var m Message
	d.write(&m, 0, d.Trail)
	return c.cfg.Outage.Key(&m)
}
