package idempotency

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/reprise-sqs/reprise"
)

// Config are the settings of the middleware of [New] and [NewBatch]. The zero Config is a good
// default.
type Config struct {
	// Key names the work that a message asks for: messages with equal keys ask for
	// the same. An error, or an empty key, dead-letters the message, because no retry can fix it.
	// Default: [ByOrigin].
	Key KeyFunc

	// Prefix is put before every key, so that several handlers can share a store:
	// the same message, handled by two of them, is then different work. At most 100
	// bytes. Default: none.
	Prefix string

	// Digest returns a digest of a message's payload: a message whose key was completed with
	// another digest is dead-lettered and does not count as done. If it is longer than 64 bytes,
	// stores get its SHA-256. Default: none; payloads are not compared. See [BodyDigest].
	Digest func(m *reprise.Message) []byte

	// Lease is how long a key stays claimed after the process that claimed it has
	// died. While a handler runs its claim is extended, so handlers may take longer.
	// From 1 s to 12 h. Default: 1 min.
	Lease time.Duration

	// Retention is how long a completed key is remembered. A duplicate that comes
	// later runs. It is at least Lease, and at most 10 years. Default: 14 days, the longest time
	// that SQS keeps a message; producers that repeat work later than that need more.
	Retention time.Duration

	// Timeout ends one trip to the store. Default: 5 s.
	Timeout time.Duration

	// Patience is how long recording a completed key is retried while the store fails. The handler
	// keeps its place meanwhile. Afterwards the message is given back, although its work is done:
	// see [New]. Negative: one try. Default: 10 s.
	Patience time.Duration

	// RunWithoutStore runs handlers unprotected while the store fails; the log and Observe report
	// it. Default: false; messages are retried later, and the consumer's circuit breaker opens if
	// the failure lasts: see [reprise.Outage].
	RunWithoutStore bool

	// Duplicate is called instead of the handler with a message whose work is done, and the result
	// that the handler had set: for example to send a reply again. Its return value settles the
	// message. Default: none; the message is deleted.
	Duplicate func(ctx context.Context, m *reprise.Message, result []byte) error

	// Observe is called with the outcome of each message, on the handler's goroutine: use it for
	// counters. Default: none.
	Observe func(ctx context.Context, e Event)

	// Logger gets problems that an operator must know, each kind at most every 30 s. Default:
	// slog.Default().
	Logger *slog.Logger
}

const (
	defaultLease     = time.Minute
	defaultRetention = 14 * 24 * time.Hour
	defaultTimeout   = 5 * time.Second
	defaultPatience  = 10 * time.Second

	minLease     = time.Second
	maxLease     = 12 * time.Hour
	maxRetention = 10 * 365 * 24 * time.Hour
	maxPrefix    = 100
)

func (c Config) withDefaults() Config {
	if c.Key == nil {
		c.Key = ByOrigin
	}
	if c.Lease == 0 {
		c.Lease = defaultLease
	}
	if c.Retention == 0 {
		c.Retention = defaultRetention
	}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	if c.Patience == 0 {
		c.Patience = defaultPatience
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// validate returns every problem of a Config whose defaults are filled in.
func (c Config) validate() error {
	var problems []error
	bad := func(field string, value any, remedy string) {
		problems = append(problems, fmt.Errorf("Config.%s is %v: %s", field, value, remedy))
	}
	if len(c.Prefix) > maxPrefix || c.Prefix != "" && !storable(c.Prefix) {
		bad("Prefix", fmt.Sprintf("%q", c.Prefix), fmt.Sprintf("set at most %d bytes of UTF-8 without control characters", maxPrefix))
	}
	if c.Lease < minLease || c.Lease > maxLease {
		bad("Lease", c.Lease, fmt.Sprintf("set %v to %v, or 0 for %v", minLease, maxLease, defaultLease))
	}
	if c.Retention < c.Lease || c.Retention > maxRetention {
		bad("Retention", c.Retention, fmt.Sprintf("set at least the Lease of %v and at most %v, or 0 for %v", c.Lease, maxRetention, defaultRetention))
	}
	if c.Timeout < 0 {
		bad("Timeout", c.Timeout, fmt.Sprintf("set the longest time of one trip to the store, or 0 for %v", defaultTimeout))
	}
	return errors.Join(problems...)
}

// Event is the outcome of one message.
type Event struct {
	Kind    Kind
	Message *reprise.Message
	Key     string
	// Wait is how long the message is given back for, if the Kind is KindInProgress
	// or KindLost.
	Wait time.Duration
	// Err is why, if something failed.
	Err error
}

// Kind is a closed set of outcomes of a message, suitable as a metric label.
type Kind uint8

// The outcomes of a message.
const (
	// KindDone: the handler ran and succeeded, and the success is recorded.
	KindDone Kind = iota
	// KindFailed: the handler ran and failed, and the key was released.
	KindFailed
	// KindDuplicate: the work had been done; the handler did not run.
	KindDuplicate
	// KindInProgress: another run has the key; the message comes back later.
	KindInProgress
	// KindMismatch: the key was completed with another payload.
	KindMismatch
	// KindLost: the handler ran, and meanwhile another run acquired the key, or the claim could not
	// be kept.
	KindLost
	// KindUnavailable: the store failed; the handler did not run.
	KindUnavailable
	// KindUnprotected: the store failed; the handler ran nevertheless.
	KindUnprotected
	// KindUnrecorded: the handler succeeded, but the success could not be recorded.
	KindUnrecorded
	kinds
)

var kindNames = [kinds]string{"done", "failed", "duplicate", "in-progress", "mismatch", "lost", "unavailable", "unprotected", "unrecorded"}

// String returns the kind's name, suitable as a metric label.
func (k Kind) String() string {
	if k >= kinds {
		return fmt.Sprintf("Kind(%d)", uint8(k))
	}
	return kindNames[k]
}
