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

	"github.com/reprise-sqs/reprise/internal/consumer"
	"github.com/reprise-sqs/reprise/plan"
	"github.com/reprise-sqs/reprise/retry"
)

// Config says how a [Consumer] works. The zero Config works and is good; a
// Config is copied by [New] and cannot change afterwards.
type Config struct {
	// Concurrency is how many handlers run at once. Default: 10; of a consumer that
	// [Pool.Add] makes, as many as the pool has places.
	Concurrency int

	// Prefetch is how many messages may wait, leased, for a free handler, so
	// that a freed slot does not cost a receive of one. Negative: none, at more
	// calls per message; in a Pool that is full of others' handlers, one handler's
	// messages all the same, or it would never have a turn. On FIFO queues those that wait behind the head of their
	// group come on top: nine at most for each head. Default: 10.
	Prefetch int

	// LongPoll is how long a receive waits for a message. A stop waits for it too, unless
	// the endpoint says that it takes back what a cancelled receive was being handed, as
	// package sqsserver does: SQS leaves that hidden for the time of Lease. A shorter one
	// takes more calls, 86,400 a day for an idle consumer with one of 1 s. Whole seconds
	// from 1 s to 20 s. Default: 20 s.
	LongPoll time.Duration

	// Rate is how many handlers may start per second, evenly spaced, bursts of 10 ms
	// aside. No more messages are received than can start within 10 s. From 0.001
	// to 1,000,000. SetRate changes it. Default: 0, unlimited.
	Rate float64

	// Retry decides when a failed message is attempted again and when it is
	// given up. Its MaxAttempts, if zero, is the queue's own maxReceiveCount.
	// Default: the zero [retry.Policy].
	Retry retry.Policy

	// Via says how messages that are to come again are given back: hidden, or sent
	// again as a copy with its history. Default: ViaAuto.
	Via Via

	// RetryLane is a second queue, for retries, so that they do not wait behind this
	// queue's backlog. Default: none.
	RetryLane RetryLane

	// FIFO says what becomes of a FIFO queue's message group while one of its
	// messages has failed. Other queues' messages do not wait for each other.
	// Default: FIFOHold.
	FIFO FIFO

	// InFlightQuota is how many messages of the queue SQS lets be in flight, those of
	// other consumers included; AWS can raise it. Near it retries are sent as delayed
	// copies where Via permits, for what is hidden counts. Negative: the queue's count
	// is not watched. Default: 120,000, as on AWS.
	InFlightQuota int

	// HandlerTimeout ends the handler's context after one attempt has taken this
	// long. A handler that goes on keeps its place; see HealthFailing. Default: none.
	HandlerTimeout time.Duration

	// Lease is the visibility timeout asked for at each receive and renewed,
	// from receipt until the message is settled. It bounds how long messages
	// stay hidden when the process dies. Whole seconds from 2 s to 1 h.
	// Default: 1 min.
	Lease time.Duration

	// StopBudget is the time from the end of Run's context to Run's return. It
	// covers the outstanding long poll (see LongPoll), running handlers and the
	// last settlements. Kubernetes kills after 30 s unless told otherwise.
	// Default: 25 s.
	StopBudget time.Duration

	// DeadLetterURL is the queue that receives what is given up. Default: the
	// target of the queue's own RedrivePolicy.
	DeadLetterURL string

	// Name says which consumer wrote a dead letter's story. Default: the host's
	// name.
	Name string

	// SigningKeys are the secrets by which consumers of this queue recognise what they
	// have written into messages for each other. The first signs the histories of
	// copies and the stories of dead letters; histories signed by any of them count. With
	// keys, a history that is not signed, or not for this very message, is ignored: the
	// message begins anew. All consumers of a queue and its retry lane need the same keys. To rotate
	// them, add the new one at the end everywhere, then put it first, and remove the
	// old one when nothing that it has signed can still be waiting, which is a year at
	// most. Default: none; then whoever may send to the queue can write a history, by
	// which it can delay or give up its own message, and claim another's
	// [Message].OriginID. At most 16.
	SigningKeys []SigningKey

	// Outage says how the consumer recognises that what its handlers need is
	// unavailable, and what it does then. Default: the zero [Outage], which is on.
	Outage Outage
	// AfterDelete is called when SQS has confirmed the delete of a message whose
	// work is done, for what must not happen before, such as removing a payload that
	// is kept elsewhere. It is not called for messages that are retried, released or
	// dead-lettered. It takes no handler's place; at most Concurrency calls run at
	// once, and receiving pauses when too many wait. A stop waits for them within
	// StopBudget, at whose end their context ends. If the process dies after the
	// delete it is never called: what depends on it needs another way to be cleaned
	// up. Default: none.
	AfterDelete func(ctx context.Context, m *Message)

	// Observer is told what happens. Default: nobody.
	Observer Observer

	// Logger gets what an operator must know: failures, findings, state changes.
	// Nothing is logged for a message that succeeds. Default: slog.Default().
	Logger *slog.Logger

	// seed fixes what a consumer leaves to chance, for tests that must repeat. Zero:
	// each draws its own.
	seed uint64
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

// queueURL is a queue's URL taken apart.
type queueURL struct {
	url  string
	base string // scheme, host and whatever path stands before the account
	acct string // account id
	name string
	fifo bool
}

// parseQueueURL takes apart a URL of the form SQS gives out:
// scheme://host/account/name.
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

// plain is what the machine knows of the queue.
func (q queueURL) plain() consumer.Queue {
	return consumer.Queue{URL: q.url, Name: q.name, FIFO: q.fifo}
}

// place names the queue whatever the host is called by: two endpoints can lead to it.
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
