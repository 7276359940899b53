package reprise

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise/internal/chance"
	"github.com/reprise-sqs/reprise/internal/consumer"
	"github.com/reprise-sqs/reprise/plan"
	"github.com/reprise-sqs/reprise/retry"
)

// Config configures a [Consumer]. The zero Config is a good start. [New] copies it, so that
// later changes have no effect.
type Config struct {
	// Concurrency is how many handlers run at once, from 1 to 100,000. Default: 10; for a
	// consumer that [Pool.Add] makes, as many as the pool has places.
	Concurrency int

	// Prefetch is how many messages may wait, leased, for a free handler, so that a handler
	// that becomes free does not cost a receive of one message. At most 10,000. Negative:
	// none, at more calls per message; in a Pool whose places are all taken by others, the
	// messages of one handler may wait all the same, or the consumer would never have a
	// turn. On FIFO queues, messages that wait behind the head of their group are held in
	// addition: nine at most for each head. Default: 10.
	Prefetch int

	// LongPoll is how long a receive waits for a message. A stop waits for it too, because
	// SQS may be sending messages to a receive, and leaves them hidden for Lease if it is
	// cancelled; it does not wait if the endpoint makes them visible again, as package
	// sqsserver does. A shorter LongPoll takes more calls: 86,400 a day for an idle
	// consumer at 1 s. Whole seconds from 1 s to 20 s. Default: 20 s.
	LongPoll time.Duration

	// Rate is how many handlers may start per second, evenly spaced, bursts of 10 ms
	// aside. No more messages are received than can start within 10 s. From 0.001
	// to 1,000,000. SetRate changes it. Default: 0, unlimited.
	Rate float64

	// Retry decides when a failed message is attempted again and when it is
	// given up. Its MaxAttempts, if zero, is the queue's own maxReceiveCount.
	// Default: the zero [retry.Policy].
	Retry retry.Policy

	// Via says how a message to be tried again is given back: hidden, or sent again as a
	// copy with its history. Default: ViaAuto.
	Via Via

	// RetryLane is a second queue, for retries, so that they do not wait behind this
	// queue's backlog. Default: none.
	RetryLane RetryLane

	// FIFO says what happens to a message group of a FIFO queue while one of its messages
	// has failed. On standard queues it has no effect. Default: FIFOHold.
	FIFO FIFO

	// InFlightQuota is how many messages of the queue may be in flight, those of other
	// consumers included; AWS can raise it. Hidden messages count: near the quota, retries
	// are sent as delayed copies if Via permits. Negative: the queue's count is not
	// watched. Default: 120,000, as on AWS.
	InFlightQuota int

	// HandlerTimeout is the time after which the context of an attempt ends. A handler that
	// runs on keeps its place; see HealthFailing. Default: 0, no timeout.
	HandlerTimeout time.Duration

	// Lease is the visibility timeout of each receive, whatever the queue's own
	// VisibilityTimeout is. Heartbeats renew it until the message is settled. If the process is
	// killed, the messages that it held stay hidden until their leases end, and the rest of
	// their FIFO groups wait with them: up to Lease, or up to 10 minutes behind a handler that
	// has run for longer than Lease, because renewals get longer with its age. Where that is
	// too long, for example on a queue whose own timeout is 10 s, set a shorter Lease: each
	// halving doubles the heartbeats of messages that are held for longer than half a lease,
	// and halves the time for which SQS may fail before leases are lost and messages run twice.
	// A heartbeat without a reply within a fifth of Lease, or 5 s if that is less, counts as failed: give Lease
	// ten times as long as SQS takes to answer, or more.
	// Whole seconds from 2 s to 1 h. Default: 1 min.
	Lease time.Duration

	// StopBudget is the time from the end of Run's context to Run's return. It
	// covers the outstanding long poll (see LongPoll), running handlers and the
	// last settlements. By default Kubernetes kills a process after 30 s.
	// Default: 25 s.
	StopBudget time.Duration

	// DeadLetterURL is the URL of the queue for messages that are given up. Default: the
	// target of the queue's own RedrivePolicy; of a retry lane without one, that of its queue's.
	DeadLetterURL string

	// Name is the consumer's name in the stories of its dead letters. Default: the host's
	// name.
	Name string

	// SigningKeys sign what consumers of this queue write into messages for each other: the
	// histories of copies and the stories of dead letters. The first key signs; a history
	// that any of them has signed is accepted. With keys, a history that is not signed for
	// this very message is ignored, and its attempts count from 1. All consumers of a queue
	// and its retry lane need the same keys. To rotate them, add the new key at the end
	// everywhere, then put it first, and remove the old one when no message that it has
	// signed can still be waiting, which is a year at most. At most 16. Default: none; then
	// any producer of the queue can write a history, which can delay its own message, have
	// it given up, or claim another message's [Message].OriginID.
	SigningKeys []SigningKey

	// Outage says how the consumer recognises that a dependency of its handlers is
	// unavailable, and what it does then. Default: the zero [Outage], which is on.
	Outage Outage

	// AfterDelete is called when SQS has confirmed the delete of a message whose work is
	// done, for work that must not happen before, such as removing a payload that is stored
	// elsewhere. It is not called for messages that are retried, released or
	// dead-lettered. It takes no handler's place; at most Concurrency calls run at once,
	// and receiving pauses when too many wait. A stop waits for them; their context ends
	// with StopBudget. If the process dies after the delete, it is never called: such
	// payloads need another way to be cleaned up. Default: none.
	AfterDelete func(ctx context.Context, m *Message)

	// Observer is told what happens. Default: the zero [Observer], which does nothing.
	Observer Observer

	// Logger logs what an operator must know: failures, findings, changes of state.
	// Nothing is logged for a message that succeeds. Default: slog.Default().
	Logger *slog.Logger

	// seed is that of the consumer's random choices, for tests that must be repeatable: see
	// internal/chance. Zero: a random one.
	seed uint64
}

func init() {
	chance.Seeded = func(config any, seed uint64) any {
		cfg := config.(Config)
		cfg.seed = seed
		return cfg
	}
}

const (
	defaultConcurrency = 10
	defaultPrefetch    = 10
	defaultLease       = time.Minute
	defaultStopBudget  = 25 * time.Second

	minLease      = 2 * time.Second
	maxLease      = time.Hour
	minLongPoll   = time.Second
	maxLongPoll   = 20 * time.Second
	maxPrefetch   = 10_000
	maxConcurrent = 100_000
)

// withDefaults returns c with every zero field replaced by its default.
func (c Config) withDefaults() Config {
	if c.Concurrency == 0 {
		c.Concurrency = defaultConcurrency
	}
	switch {
	case c.Prefetch == 0:
		c.Prefetch = defaultPrefetch
	case c.Prefetch < 0:
		c.Prefetch = 0
	}
	if c.Lease == 0 {
		c.Lease = defaultLease
	}
	if c.LongPoll == 0 {
		c.LongPoll = maxLongPoll
	}
	if c.StopBudget == 0 {
		c.StopBudget = defaultStopBudget
	}
	if c.InFlightQuota == 0 {
		c.InFlightQuota = plan.MaxInFlight
	}
	c.Outage = c.Outage.withDefaults()
	if c.Name == "" {
		c.Name = hostname()
	}
	c.SigningKeys = slices.Clone(c.SigningKeys)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// validate returns every problem of a Config whose defaults are filled in.
func (c Config) validate() error {
	var problems []error
	bad := func(field string, value any, problem string) {
		problems = append(problems, fmt.Errorf("Config.%s is %v: %s", field, value, problem))
	}
	if c.Concurrency < 1 || c.Concurrency > maxConcurrent {
		bad("Concurrency", c.Concurrency, fmt.Sprintf("set 1 to %d handlers, or 0 for %d", maxConcurrent, defaultConcurrency))
	}
	if c.Prefetch > maxPrefetch {
		bad("Prefetch", c.Prefetch, fmt.Sprintf("set at most %d messages, 0 for %d, or a negative number for none", maxPrefetch, defaultPrefetch))
	}
	if !validRate(c.Rate) {
		bad("Rate", c.Rate, fmt.Sprintf("set %v to %v handlers per second, or 0 for no limit", minRate, maxRate))
	}
	if c.Outage.Threshold < 1 || c.Outage.Threshold > maxThreshold {
		bad("Outage.Threshold", c.Outage.Threshold, fmt.Sprintf("set 1 to %d messages, or 0 for %d", maxThreshold, defaultThreshold))
	}
	if c.Via > ViaRequeue {
		bad("Via", c.Via, "set ViaAuto, ViaVisibility or ViaRequeue")
	}
	if c.FIFO >= fifoChoices {
		bad("FIFO", uint8(c.FIFO), "set FIFOHold, FIFOBlock or FIFOSkip")
	}
	if c.HandlerTimeout < 0 {
		bad("HandlerTimeout", c.HandlerTimeout, "set a positive duration, or 0 for none")
	}
	if c.Lease < minLease || c.Lease > maxLease || c.Lease%time.Second != 0 {
		bad("Lease", c.Lease, fmt.Sprintf("SQS counts visibility in whole seconds: set %v to %v, or 0 for %v", minLease, maxLease, defaultLease))
	}
	if c.LongPoll < minLongPoll || c.LongPoll > maxLongPoll || c.LongPoll%time.Second != 0 {
		bad("LongPoll", c.LongPoll, fmt.Sprintf("SQS counts it in whole seconds: set %v to %v, or 0 for %v", minLongPoll, maxLongPoll, maxLongPoll))
	}
	if c.StopBudget < 0 {
		bad("StopBudget", c.StopBudget, fmt.Sprintf("set a positive duration, or 0 for %v", defaultStopBudget))
	}
	if c.DeadLetterURL != "" {
		if _, err := parseQueueURL(c.DeadLetterURL); err != nil {
			problems = append(problems, fmt.Errorf("Config.DeadLetterURL: %w", err))
		}
	}
	if err := validateKeys(c.SigningKeys); err != nil {
		problems = append(problems, fmt.Errorf("Config.SigningKeys: %w", err))
	}
	if err := c.Retry.Validate(); err != nil {
		problems = append(problems, fmt.Errorf("Config.Retry: %w", err))
	}
	return errors.Join(problems...)
}

// queueURL is the URL of a queue, and its parts.
type queueURL struct {
	url  string
	base string // scheme, host and any path before the account
	acct string // account id
	name string
	fifo bool
}

// parseQueueURL parses a queue URL of SQS's form: scheme://host/account/name.
func parseQueueURL(raw string) (queueURL, error) {
	const remedy = "pass the URL that GetQueueUrl returns, like https://sqs.us-east-1.amazonaws.com/123456789012/orders"
	if raw == "" {
		return queueURL{}, fmt.Errorf("the queue URL is empty: %s", remedy)
	}
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		if strings.HasPrefix(raw, "arn:") {
			return queueURL{}, fmt.Errorf("queue URL %q is an ARN: %s", raw, remedy)
		}
		return queueURL{}, fmt.Errorf("queue URL %q is not an http or https URL: %s", raw, remedy)
	}
	raw = strings.TrimRight(raw, "/")
	path := strings.Trim(u.Path, "/")
	slash := strings.LastIndexByte(path, '/')
	if slash < 0 || path[slash+1:] == "" {
		return queueURL{}, fmt.Errorf("queue URL %q does not end in /account/name: %s", raw, remedy)
	}
	before, name := path[:slash], path[slash+1:]
	acct := before[strings.LastIndexByte(before, '/')+1:]
	return queueURL{
		url:  raw,
		base: strings.TrimSuffix(raw, "/"+acct+"/"+name),
		acct: acct,
		name: name,
		fifo: strings.HasSuffix(name, ".fifo"),
	}, nil
}

// plain returns the queue as the machine knows it.
func (q queueURL) plain() consumer.Queue {
	return consumer.Queue{URL: q.url, Name: q.name, FIFO: q.fifo}
}

// place names the queue without its host: two endpoints can lead to the same queue.
func (q queueURL) place() string { return q.acct + "/" + q.name }

// sibling returns the URL of the queue that arn names, in the same service as q:
// SQS keeps a queue and its dead-letter queue in one account and region, so the
// two URLs differ in the last path elements only.
func (q queueURL) sibling(arn string) (queueURL, error) {
	parts := strings.Split(arn, ":")
	if len(parts) != 6 || parts[0] != "arn" || parts[4] == "" || parts[5] == "" {
		return queueURL{}, fmt.Errorf("%q is not the ARN of a queue (arn:aws:sqs:region:account:name)", arn)
	}
	return queueURL{
		url:  q.base + "/" + parts[4] + "/" + parts[5],
		base: q.base,
		acct: parts[4],
		name: parts[5],
		fifo: strings.HasSuffix(parts[5], ".fifo"),
	}, nil
}

// validRate reports whether a rate can be set; NaN cannot.
func validRate(perSecond float64) bool {
	return perSecond == 0 || perSecond >= minRate && perSecond <= maxRate
}
