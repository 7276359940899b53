package reprise

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/reprise-sqs/reprise/internal/breaker"
)

// BreakerState is the state of a circuit breaker, which watches how attempts end. It is a
// closed set, fit for a metric label.
type BreakerState uint8

// The states of a breaker.
const (
	// BreakerClosed: handlers run normally.
	BreakerClosed = BreakerState(breaker.Closed)
	// BreakerOpen: the handlers' dependency is unavailable; no handler starts.
	BreakerOpen = BreakerState(breaker.Open)
	// BreakerHalfOpen: a probe is under way.
	BreakerHalfOpen = BreakerState(breaker.HalfOpen)
	// BreakerRamping: the dependency answers again, or it was overloaded soon after an outage; more
	// and more handlers run at once.
	BreakerRamping = BreakerState(breaker.Ramping)
)

// String returns the state's name, fit for a metric label.
func (s BreakerState) String() string { return nameOf(breaker.StateNames[:], uint8(s), "BreakerState") }

const (
	// defaultThreshold is how many different messages must have failed. If there are fewer,
	// they could be just a few slow ones.
	defaultThreshold = 20
	maxThreshold     = 1000
)

// Outage says how a [Consumer] recognises that a dependency of its handlers is unavailable,
// and that it is available again.
//
// A circuit breaker watches how attempts end. When nearly all fail because something is
// unavailable, it opens: no handler starts and no message is received, so that no message
// uses up receives or attempts in vain. Messages that were received already, and those that
// fail meanwhile, are held under their lease. From time to time the consumer probes the
// dependency. When a probe succeeds, handlers start again: one at a time at first, then more
// and more, while as many attempts succeed as usual. Then messages that this process has
// hidden because of the outage are made visible, as fast as the handlers can run them.
//
// For as long as the outage has lasted, a minute to an hour, the consumer compares the share of
// attempts that succeed with the usual one: if it is lower, the dependency is overloaded by the
// backlog, and fewer handlers run at once again.
//
// The zero Outage does all of this, and is careful: a breaker opens when 20 different
// messages have failed because something is unavailable, and no attempt has ended otherwise
// in between. Each consumer decides for itself.
type Outage struct {
	// Off turns breakers off: none opens.
	Off bool

	// Unavailable reports whether an attempt failed because something is unavailable, and
	// not because of the message. It is not called for [Permanent] and [Release]. Default:
	// [IsUnavailable].
	Unavailable func(error) bool

	// Key returns the dependency of a message, for example a tenant or a host. Then each key
	// has a breaker of its own, receiving goes on while one is open, and an outage of one
	// key delays only its own messages. At most 1,000 keys whose messages fail are watched
	// at once. It is called once for each message received. A key of more than 256 bytes is
	// replaced by its beginning and a digest of all of it, of 256 bytes at most: that is the
	// key of Probe, OutageEvent and BreakerStatus. PauseKey, ResumeKey, Wake and Probe of a
	// Consumer accept either. Default: nil; one breaker for the whole consumer.
	Key func(*Message) string

	// Probe tests whether the dependency of a key is available again, or with the empty key
	// that of the whole consumer: it returns nil if so. Its context ends after 30 s; if it
	// does not return then, messages are run as probes instead. Default: nil; a probe is a
	// run of the handler with one of the held messages, which counts as no attempt if it
	// fails.
	Probe func(ctx context.Context, key string) error

	// Threshold is how many different messages must have failed before a breaker opens, from
	// 1 to 1,000. Each attempt that ends otherwise in between takes Threshold failures
	// more, so that 20 means 95 % of the recent attempts. Default: 20.
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
	// State is the new state, Previous the one before.
	State, Previous BreakerState
	// At is when the state changed, Since when the outage began.
	At, Since time.Time
	// NextProbe is when a probe is due: zero unless the State is BreakerOpen.
	NextProbe time.Time
	// Held is how many messages are held under lease until the outage ends.
	Held int
	// Err is the latest error that counted as unavailable.
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
	// Held is how many messages are held under lease.
	Held int
	// Level is how many messages may run at once while the State is BreakerRamping; 1 can
	// also mean one at a time with pauses in between. Zero in other states.
	Level int
	// Paused reports whether the key is paused: see Consumer.PauseKey.
	Paused bool
	// Problem is the text of the latest error that counted as unavailable.
	Problem string
}

// isUnavailable asks the user's code whether err means that something is unavailable. The
// caller does not hold c.mu.
func (c *Consumer) isUnavailable(err, passedOn error) (unavailable bool) {
	if c.cfg.Outage.Off {
		return false
	}
	if errors.Is(passedOn, context.DeadlineExceeded) {
		err = errors.Join(err, passedOn) // context.Canceled alone does not show the timeout
	}
	defer func() {
		if v := recover(); v != nil {
			unavailable = false
			c.complain("unavailable", fmt.Sprintf("Config.Outage.Unavailable panicked, which counts as no: %v\n%s", v, debug.Stack()))
		}
	}()
	return c.cfg.Outage.Unavailable(err)
}

// nameKeys fills in the messages' keys. It calls the user's code: the caller does not hold
// c.mu.
func (c *Consumer) nameKeys(batch []delivery) {
	if c.cfg.Outage.Key == nil {
		return
	}
	for i := range batch {
		batch[i].Key = c.keyOf(&batch[i])
	}
}

// keyOf returns the key of d; an empty one if the user's code panics.
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
