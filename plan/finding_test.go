package plan_test

import (
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/plan"
	"github.com/reprise-sqs/reprise/retry"
)

const day = 24 * time.Hour

// sound is a queue that no default policy conflicts with, soundFIFO its sibling.
var (
	sound = plan.Queue{
		ARN:                 "arn:aws:sqs:us-east-1:123456789012:orders",
		Visibility:          30 * time.Second,
		Retention:           10 * day,
		MaxReceives:         100,
		DeadLetterARN:       "arn:aws:sqs:us-east-1:123456789012:dead",
		DeadLetterRetention: 14 * day,
	}
	soundFIFO = plan.Queue{
		ARN:                 "arn:aws:sqs:us-east-1:123456789012:orders.fifo",
		FIFO:                true,
		Visibility:          30 * time.Second,
		Retention:           10 * day,
		MaxReceives:         200,
		DeadLetterARN:       "arn:aws:sqs:us-east-1:123456789012:dead.fifo",
		DeadLetterRetention: 14 * day,
	}
)

// with returns q changed by f.
func with(q plan.Queue, f func(*plan.Queue)) plan.Queue {
	f(&q)
	return q
}

func TestCheck(t *testing.T) {
	// Every FIFO queue has this finding, beside that of the case.
	ignored := []string{plan.CodeFIFOBlocks}
	visibility := plan.Settings{Via: plan.ViaVisibility}
	for _, tt := range []struct {
		name     string
		policy   retry.Policy
		queue    plan.Queue
		settings plan.Settings
		code     string // of the one finding; empty: none
		severity plan.Severity
		says     string
	}{
		{name: "nothing to find", queue: sound},
		{name: "nothing to find by visibility", queue: sound, settings: visibility},
		{name: "nothing to find on a FIFO queue", policy: retry.Policy{MaxAttempts: 20}, queue: soundFIFO},

		{name: "the queue's limit fills in for the policy's", queue: with(sound, func(q *plan.Queue) { q.MaxReceives = 3 }), settings: visibility},
		{
			name: "fewer receives than attempts", policy: retry.Policy{MaxAttempts: 20},
			queue: with(sound, func(q *plan.Queue) { q.MaxReceives = 3 }), settings: visibility,
			code: plan.CodeReceivesLimit, severity: plan.Error, says: "allows 20 attempts, but the queue gives a message up after 3",
		},
		{
			name: "fewer receives than attempts, met by copies", policy: retry.Policy{MaxAttempts: 20},
			queue: with(sound, func(q *plan.Queue) { q.MaxReceives = 3 }),
			code:  plan.CodeReceivesLimit, severity: plan.Info, says: "at its last permitted receive a message is sent back as a copy",
		},
		{
			name: "unlimited attempts", policy: retry.Policy{MaxAttempts: -1},
			queue: sound, settings: visibility,
			code: plan.CodeReceivesLimit, severity: plan.Error, says: "raise maxReceiveCount in the queue's RedrivePolicy to its limit, 1000, and lower attempts to at most that, or permit copies.",
		},
		{
			name: "unlimited attempts, met by copies", policy: retry.Policy{MaxAttempts: -1},
			queue: sound,
			code:  plan.CodeReceivesLimit, severity: plan.Info, says: "to do without copies raise maxReceiveCount to its limit, 1000, and lower attempts to at most that.",
		},
		{
			name: "more attempts than SQS permits receives", policy: retry.Policy{MaxAttempts: 1001, Backoff: retry.Constant(time.Second)},
			queue: sound, settings: visibility,
			code: plan.CodeReceivesLimit, severity: plan.Error, says: "to its limit, 1000, and lower attempts to at most that",
		},
		{
			name: "as many attempts as SQS permits receives", policy: retry.Policy{MaxAttempts: 1000, Backoff: retry.Constant(time.Second)},
			queue: sound, settings: visibility,
			code: plan.CodeReceivesLimit, severity: plan.Error, says: "to its limit, 1000, and lower attempts to at most that",
		},
		{
			name:   "as many receives as attempts, but none for parking",
			policy: retry.Policy{MaxAttempts: 3, Backoff: retry.Constant(11 * time.Hour), Jitter: retry.Percent(10)},
			queue:  with(sound, func(q *plan.Queue) { q.MaxReceives = 3 }), settings: visibility,
		},
		{
			name:  "one receive",
			queue: with(sound, func(q *plan.Queue) { q.MaxReceives = 1 }),
			code:  plan.CodeSingleReceive, severity: plan.Warning, says: "quarter of an hour of its wait, is a copy",
		},
		{
			name:  "one receive, by visibility",
			queue: with(sound, func(q *plan.Queue) { q.MaxReceives = 1 }), settings: visibility,
			code: plan.CodeSingleReceive, severity: plan.Warning, says: "no message is retried",
		},
		{
			name: "FIFO receives", policy: retry.Policy{MaxAttempts: 20},
			queue: with(soundFIFO, func(q *plan.Queue) { q.MaxReceives = 100 }),
			code:  plan.CodeFIFOReceives, severity: plan.Error, says: "at least 200",
		},
		{
			name:  "FIFO receives that fill in for the attempts",
			queue: with(soundFIFO, func(q *plan.Queue) { q.MaxReceives = 5 }),
			code:  plan.CodeFIFOReceives, severity: plan.Error, says: "5 receives may be used up before 5 attempts. Remedy: raise maxReceiveCount to at least 50",
		},
		{
			name: "unlimited attempts on a FIFO queue", policy: retry.Policy{MaxAttempts: -1},
			queue: soundFIFO,
			code:  plan.CodeFIFOReceives, severity: plan.Error, says: "to its limit, 1000, and lower attempts to at most 100",
		},
		{
			name: "more FIFO receives than SQS permits", policy: retry.Policy{MaxAttempts: 150},
			queue: soundFIFO,
			code:  plan.CodeFIFOReceives, severity: plan.Error, says: "lower attempts to at most 100",
		},

		{
			name: "as many FIFO attempts as SQS permits receives for", policy: retry.Policy{MaxAttempts: 100},
			queue: soundFIFO,
			code:  plan.CodeFIFOReceives, severity: plan.Error, says: "raise maxReceiveCount to at least 1000",
		},

		{
			name:  "retention ends first",
			queue: with(sound, func(q *plan.Queue) { q.Retention = time.Hour }), settings: visibility,
			code: plan.CodeRetention, severity: plan.Warning, says: "retries for up to 4d, but the queue deletes a message 1h after",
		},
		{
			name:  "retention ends first, met by copies",
			queue: with(sound, func(q *plan.Queue) { q.Retention = time.Hour }),
			code:  plan.CodeRetention, severity: plan.Info, says: "sent back as a copy",
		},
		{
			name: "retention ends with the last attempt", policy: retry.Policy{MaxAge: 10 * day},
			queue: sound, settings: visibility,
			code: plan.CodeRetention, severity: plan.Warning, says: "10d",
		},
		{
			name: "the delay counts against the retention", policy: retry.Policy{MaxAge: 10*day - time.Minute},
			queue: with(sound, func(q *plan.Queue) { q.Delay = 15 * time.Minute }), settings: visibility,
			code: plan.CodeRetention, severity: plan.Warning, says: "10d",
		},
		{
			name: "unlimited age that ends by attempts", policy: retry.Policy{MaxAge: -1, MaxAttempts: 5},
			queue: with(sound, func(q *plan.Queue) { q.Retention = time.Hour }), settings: visibility,
		},
		{
			name: "an age beyond the retention that attempts end first", policy: retry.Policy{MaxAge: 11 * day, MaxAttempts: 5},
			queue: sound, settings: visibility,
			code: plan.CodeRetention, severity: plan.Info, says: "age of 11d is never reached",
		},
		{
			name: "an age as long as the retention that attempts end first", policy: retry.Policy{MaxAge: 10 * day, MaxAttempts: 5},
			queue: sound, settings: visibility,
		},
		{
			name: "an age beyond the retention, which ends with the last attempt", policy: retry.Policy{MaxAge: 11 * day, MaxAttempts: 2, Backoff: retry.Constant(time.Hour), Jitter: retry.None},
			queue: with(sound, func(q *plan.Queue) { q.Retention = time.Hour }), settings: visibility,
			code: plan.CodeRetention, severity: plan.Warning, says: "retries for up to 1h",
		},
		{
			name: "attempts without end in no time", policy: retry.Policy{MaxAttempts: math.MaxInt, MaxAge: -1, Backoff: retry.Constant(0)},
			queue: with(sound, func(q *plan.Queue) { q.MaxReceives = 0 }), settings: visibility,
		},
		{
			name: "more attempts than fit into the longest duration", policy: retry.Policy{MaxAttempts: math.MaxInt, MaxAge: -1, Backoff: retry.Constant(time.Hour)},
			queue: with(sound, func(q *plan.Queue) { q.MaxReceives = 0 }), settings: visibility,
			code: plan.CodeRetention, severity: plan.Warning, says: "up to 106751d",
		},
		{
			name: "more attempts than are listed", policy: retry.Policy{MaxAttempts: 100_000, Backoff: retry.Constant(time.Second)},
			queue: with(sound, func(q *plan.Queue) { q.MaxReceives, q.Retention = 0, day }), settings: visibility,
			code: plan.CodeRetention, severity: plan.Warning, says: "up to 1d 4h", // 99,999 s
		},
		{
			name: "unlimited attempts that age ends", policy: retry.Policy{MaxAttempts: -1, MaxAge: 2 * day, Backoff: retry.Constant(time.Second)},
			queue: with(sound, func(q *plan.Queue) { q.MaxReceives, q.Retention = 0, day }), settings: visibility,
			code: plan.CodeRetention, severity: plan.Warning, says: "up to 2d",
		},
		{
			name: "an age from the sending that ends before the retention", policy: retry.Policy{MaxAttempts: -1, MaxAge: 2 * day, AgeFrom: retry.Sent, Backoff: retry.Constant(time.Second)},
			queue: with(sound, func(q *plan.Queue) {
				q.MaxReceives, q.Delay, q.Retention = 0, 15*time.Minute, 2*day+10*time.Minute
			}), settings: visibility,
		},
		{
			name:   "a rule outlives the retention",
			policy: retry.Policy{MaxAttempts: 5, Rules: []retry.Rule{retry.On(io.EOF, retry.Constant(8*time.Hour), retry.None)}},
			queue:  with(sound, func(q *plan.Queue) { q.Retention = day }), settings: visibility,
			code: plan.CodeRetention, severity: plan.Warning, says: "1d 8h",
		},
		{
			name:  "retention is not known",
			queue: with(sound, func(q *plan.Queue) { q.Retention, q.MaxReceives = 0, 5 }),
			code:  plan.CodeRetentionUnknown, severity: plan.Warning, says: "default, 4d",
		},
		{
			name: "never given up", policy: retry.Policy{MaxAttempts: -1, MaxAge: -1, Backoff: retry.Constant(time.Second)},
			queue: with(sound, func(q *plan.Queue) { q.MaxReceives = 0 }),
			code:  plan.CodeNeverGivenUp, severity: plan.Warning, says: "for ever",
		},
		{
			name: "never given up, by visibility", policy: retry.Policy{MaxAttempts: -1, MaxAge: -1, Backoff: retry.Constant(time.Second)},
			queue: with(sound, func(q *plan.Queue) { q.MaxReceives = 0 }), settings: visibility,
			code: plan.CodeNeverGivenUp, severity: plan.Warning, says: "retention of 10d",
		},
		{
			name: "the default number of attempts gives up", policy: retry.Policy{MaxAge: -1},
			queue: with(sound, func(q *plan.Queue) { q.MaxReceives = 0 }),
		},
		{
			name: "the default age gives up", policy: retry.Policy{MaxAttempts: -1},
			queue: with(sound, func(q *plan.Queue) { q.MaxReceives = 0 }),
		},
		{
			name: "the queue's limit gives up", policy: retry.Policy{MaxAttempts: -1, MaxAge: -1, Backoff: retry.Constant(time.Second)},
			queue: sound, settings: visibility,
			code: plan.CodeReceivesLimit, severity: plan.Error, says: "after 100 receives",
		},

		{
			name:  "no dead-letter queue",
			queue: with(sound, func(q *plan.Queue) { q.MaxReceives, q.DeadLetterARN = 0, "" }),
			code:  plan.CodeNoDeadLetterQueue, severity: plan.Warning, says: "RedrivePolicy",
		},
		{
			name:     "a dead-letter queue of the consumer's",
			queue:    with(sound, func(q *plan.Queue) { q.MaxReceives, q.DeadLetterARN = 0, "" }),
			settings: plan.Settings{DeadLetterURL: "https://sqs.us-east-1.amazonaws.com/123456789012/dead"},
		},
		{
			name:  "a dead-letter queue that nothing is known of",
			queue: with(sound, func(q *plan.Queue) { q.DeadLetterRetention = 0 }),
			code:  plan.CodeDeadLetterQueueUnknown, severity: plan.Info, says: "sqs:GetQueueAttributes",
		},
		{
			name:  "dead letters have no time left",
			queue: with(sound, func(q *plan.Queue) { q.DeadLetterRetention = 10 * day }),
			code:  plan.CodeDeadLetterRetention, severity: plan.Warning, says: "MessageRetentionPeriod to 14 days",
		},
		{
			name:  "dead letters have no time left, and cannot have more",
			queue: with(sound, func(q *plan.Queue) { q.Retention = 14 * day }),
			code:  plan.CodeDeadLetterRetention, severity: plan.Warning, says: "lower the queue's own",
		},
		{
			name: "dead letters of a FIFO queue begin anew", policy: retry.Policy{MaxAttempts: 20},
			queue: with(soundFIFO, func(q *plan.Queue) { q.DeadLetterRetention = 10 * day }),
		},
		{
			name: "dead letters of a FIFO queue are gone early", policy: retry.Policy{MaxAttempts: 20},
			queue: with(soundFIFO, func(q *plan.Queue) { q.DeadLetterRetention = day }),
			code:  plan.CodeDeadLetterRetention, severity: plan.Warning, says: "keeps messages 1d",
		},
		{
			name:     "a FIFO dead-letter queue of a standard queue",
			queue:    sound,
			settings: plan.Settings{DeadLetterURL: "https://sqs.us-east-1.amazonaws.com/123456789012/dead.fifo"},
			code:     plan.CodeDeadLetterQueueType, severity: plan.Error, says: "the queue is standard and its dead-letter queue FIFO",
		},
		{
			name:     "the dead-letter queue is the queue",
			queue:    sound,
			settings: plan.Settings{DeadLetterURL: "https://sqs.us-east-1.amazonaws.com/123456789012/orders"},
			code:     plan.CodeDeadLetterQueueIsQueue, severity: plan.Error, says: "for ever",
		},
		{
			name:  "the redrive policy names the queue",
			queue: with(sound, func(q *plan.Queue) { q.DeadLetterARN = q.ARN }),
			code:  plan.CodeDeadLetterQueueIsQueue, severity: plan.Error, says: "for ever",
		},
		{
			name:     "another account has a queue of the same name",
			queue:    sound,
			settings: plan.Settings{DeadLetterURL: "https://sqs.us-east-1.amazonaws.com/210987654321/orders"},
		},

		{
			name: "a wait beyond 12 hours", policy: retry.Policy{MaxAttempts: 3, Backoff: retry.List{time.Second, 30 * time.Hour}},
			queue: sound, settings: visibility,
			code: plan.CodeLongWait, severity: plan.Warning, says: "up to 1d 6h between attempts, and one receive hides a message for less than 12 hours: such a wait takes 3 receives, and a restart",
		},
		{
			name: "a wait beyond 12 hours, met by copies", policy: retry.Policy{MaxAttempts: 3, Backoff: retry.List{time.Second, 20 * time.Hour}},
			queue: sound,
			code:  plan.CodeLongWait, severity: plan.Info, says: "or a copy",
		},
		{
			name: "a wait beyond 12 hours by its jitter", policy: retry.Policy{MaxAttempts: 3, Backoff: retry.Constant(11 * time.Hour), Jitter: retry.Percent(50)},
			queue: sound,
			code:  plan.CodeLongWait, severity: plan.Info, says: "16h30m",
		},
		{
			name: "a wait beyond 12 hours that no attempt reaches", policy: retry.Policy{MaxAttempts: 2, Backoff: retry.List{time.Second, 20 * time.Hour}},
			queue: sound,
		},
		{
			name: "the allowed shortfall is no wait beyond 12 hours", policy: retry.Policy{Backoff: retry.Constant(12 * time.Hour)},
			queue: sound,
		},
		{
			name: "a wait beyond 12 hours by a rule", policy: retry.Policy{MaxAttempts: 3, Rules: []retry.Rule{retry.On(io.EOF, retry.Constant(day), retry.None)}},
			queue: sound,
			code:  plan.CodeLongWait, severity: plan.Info, says: "1d",
		},
		{
			name:  "the queue delays copies",
			queue: with(sound, func(q *plan.Queue) { q.Delay = time.Minute }),
			code:  plan.CodeQueueDelay, severity: plan.Info, says: "by 1m",
		},
		{
			name: "the delay uses up the age", policy: retry.Policy{MaxAge: 10 * time.Minute, AgeFrom: retry.Sent},
			queue: with(sound, func(q *plan.Queue) { q.Delay = 15 * time.Minute }),
			code:  plan.CodeQueueDelay, severity: plan.Error, says: "no message is retried",
		},
		{
			name: "the delay is as long as the age", policy: retry.Policy{MaxAge: 15 * time.Minute, AgeFrom: retry.Sent},
			queue: with(sound, func(q *plan.Queue) { q.Delay = 15 * time.Minute }),
			code:  plan.CodeQueueDelay, severity: plan.Error, says: "no message is retried",
		},
		{
			name: "the delay does not count for an age from the first receive", policy: retry.Policy{MaxAge: 10 * time.Minute},
			queue: with(sound, func(q *plan.Queue) { q.Delay = 15 * time.Minute }), settings: visibility,
		},
		{
			name: "the delay does not use up the default age", policy: retry.Policy{AgeFrom: retry.Sent},
			queue: with(sound, func(q *plan.Queue) { q.Delay = 15 * time.Minute }), settings: visibility,
		},
		{
			name:  "an outage fills the quota",
			queue: sound, settings: plan.Settings{Rate: 50, Via: plan.ViaVisibility},
			code: plan.CodeInFlight, severity: plan.Warning, says: "50 messages a second fail, each waits 3d 15h in all, on average: after 40m the 120000",
		},
		{
			name:  "an outage fills the quota, met by copies",
			queue: sound, settings: plan.Settings{Rate: 50},
			code: plan.CodeInFlight, severity: plan.Info, says: "further retries are sent as copies",
		},
		{name: "an outage that the quota bears", queue: sound, settings: plan.Settings{Rate: 0.3}},
		{
			name: "an outage that uses the quota up to the last message", policy: retry.Policy{MaxAttempts: 2, Backoff: retry.Constant(1000 * time.Second), Jitter: retry.None},
			queue: sound, settings: plan.Settings{Rate: 120},
		},
		{
			name:   "an outage that a rule alone would make too long",
			policy: retry.Policy{MaxAttempts: 3, Backoff: retry.Constant(time.Second), Rules: []retry.Rule{retry.On(io.EOF, retry.Constant(11*time.Hour), retry.None)}},
			queue:  sound, settings: plan.Settings{Rate: 5},
		},

		{
			name:     "visibility below the handler's timeout",
			queue:    sound,
			settings: plan.Settings{HandlerTimeout: time.Minute},
			code:     plan.CodeVisibility, severity: plan.Info, says: "30s",
		},
		{
			name:     "a handler beyond any lease",
			queue:    with(sound, func(q *plan.Queue) { q.Visibility = 0 }),
			settings: plan.Settings{HandlerTimeout: 12 * time.Hour},
			code:     plan.CodeHandlerTimeout, severity: plan.Error, says: "another consumer runs the message too",
		},
		{
			name:     "a lease that outlasts the handler",
			queue:    sound,
			settings: plan.Settings{HandlerTimeout: 10 * time.Second, Lease: 30 * time.Minute},
			code:     plan.CodeLease, severity: plan.Info, says: "30m",
		},
		{
			name:     "a lease as long as the retention",
			queue:    with(sound, func(q *plan.Queue) { q.Retention = 2 * time.Hour }),
			policy:   retry.Policy{MaxAge: time.Hour},
			settings: plan.Settings{Lease: 2 * time.Hour},
			code:     plan.CodeLeaseRetention, severity: plan.Warning, says: "the messages of a process that died are lost",
		},
		{
			name:     "a lease just below the retention",
			queue:    with(sound, func(q *plan.Queue) { q.Retention = 2 * time.Hour }),
			policy:   retry.Policy{MaxAge: time.Hour},
			settings: plan.Settings{Lease: 2*time.Hour - time.Second},
		},
		{name: "a handler as long as the visibility timeout", queue: sound, settings: plan.Settings{HandlerTimeout: 30 * time.Second}},
		{
			name:  "a handler as long as the longest lease",
			queue: with(sound, func(q *plan.Queue) { q.Visibility = 0 }), settings: plan.Settings{HandlerTimeout: 43_195 * time.Second},
		},
		{
			name:  "a handler as long as the lease",
			queue: with(sound, func(q *plan.Queue) { q.Visibility = 0 }), settings: plan.Settings{HandlerTimeout: 30 * time.Minute, Lease: 30 * time.Minute},
		},
		{name: "a long lease of a handler without a timeout", queue: sound, settings: plan.Settings{Lease: 30 * time.Minute}},
		{name: "the default lease is no finding", queue: sound, settings: plan.Settings{HandlerTimeout: 10 * time.Second, Lease: time.Minute}},

		{
			name: "requeue on a FIFO queue", policy: retry.Policy{MaxAttempts: 20},
			queue: soundFIFO, settings: plan.Settings{Via: plan.ViaRequeue},
			code: plan.CodeFIFORequeue, severity: plan.Error, says: "behind its group",
		},
		{
			name: "more than a FIFO queue bears", policy: retry.Policy{MaxAttempts: 2},
			queue: soundFIFO, settings: plan.Settings{Rate: 5000},
			code: plan.CodeFIFOThroughput, severity: plan.Warning, says: "perMessageGroupId",
		},
		{
			name: "as much as a FIFO queue bears", policy: retry.Policy{MaxAttempts: 2},
			queue: soundFIFO, settings: plan.Settings{Rate: 3000},
		},
		{
			name: "a FIFO queue of high throughput", policy: retry.Policy{MaxAttempts: 2},
			queue: with(soundFIFO, func(q *plan.Queue) { q.HighThroughput = true }), settings: plan.Settings{Rate: 5000},
		},
		{
			name: "deduplication by content", policy: retry.Policy{MaxAttempts: 20},
			queue: with(soundFIFO, func(q *plan.Queue) { q.ContentDeduplication = true }),
			code:  plan.CodeContentDeduplication, severity: plan.Info, says: "MessageDeduplicationId",
		},

		{
			name:     "visibility below the function's timeout",
			queue:    with(sound, func(q *plan.Queue) { q.Visibility = 30 * time.Second }),
			settings: plan.Settings{FunctionTimeout: time.Minute},
			code:     plan.CodeFunctionVisibility, severity: plan.Error, says: "VisibilityTimeout to 6m",
		},
		{
			name:     "visibility as long as the function's timeout",
			queue:    with(sound, func(q *plan.Queue) { q.Visibility = time.Minute }),
			settings: plan.Settings{FunctionTimeout: time.Minute},
			code:     plan.CodeFunctionVisibility, severity: plan.Warning, says: "VisibilityTimeout to 6m",
		},
		{
			name:     "visibility below six times the function's timeout",
			queue:    with(sound, func(q *plan.Queue) { q.Visibility = 5 * time.Minute }),
			settings: plan.Settings{FunctionTimeout: time.Minute},
			code:     plan.CodeFunctionVisibility, severity: plan.Warning, says: "VisibilityTimeout to 6m",
		},
		{
			name:     "a function that crashes",
			queue:    with(sound, func(q *plan.Queue) { q.Visibility = 6 * time.Minute }),
			settings: plan.Settings{FunctionTimeout: time.Minute},
			code:     plan.CodeFunctionCrash, severity: plan.Info, says: "6m, whatever the policy says",
		},
		{
			name:     "receives that throttling uses up",
			queue:    with(sound, func(q *plan.Queue) { q.Visibility, q.MaxReceives = 0, 3 }),
			settings: plan.Settings{FunctionTimeout: time.Minute},
			code:     plan.CodeFunctionReceives, severity: plan.Warning, says: "at least 5",
		},
		{
			name:  "receives that are enough for a function",
			queue: with(sound, func(q *plan.Queue) { q.Visibility, q.MaxReceives = 0, 5 }), settings: plan.Settings{FunctionTimeout: time.Minute},
		},
		{
			name:  "a function on a queue without a limit of receives",
			queue: with(sound, func(q *plan.Queue) { q.Visibility, q.MaxReceives = 0, 0 }), settings: plan.Settings{FunctionTimeout: time.Minute},
		},
		{
			name: "keys of the customer's",
			queue: with(sound, func(q *plan.Queue) {
				q.KMSKey, q.DeadLetterKMSKey = "alias/orders", "9fd8ca6a"
			}),
			code: plan.CodeKMS, severity: plan.Info,
			says: "kms:Decrypt and kms:GenerateDataKey on the queue's key alias/orders, and kms:Decrypt and kms:GenerateDataKey on the dead-letter queue's key 9fd8ca6a",
		},
		{
			name:  "a key that is only received with",
			queue: with(sound, func(q *plan.Queue) { q.KMSKey = "alias/orders" }), settings: visibility,
			code: plan.CodeKMS, severity: plan.Info, says: "it needs kms:Decrypt on the queue's key alias/orders.",
		},
		{name: "a key of AWS's", queue: with(sound, func(q *plan.Queue) { q.KMSKey = "alias/aws/sqs" })},
	} {
		t.Run(tt.name, func(t *testing.T) {
			found := plan.Check(tt.policy, tt.queue, tt.settings)
			found = slices.DeleteFunc(found, func(f plan.Finding) bool {
				return slices.Contains(ignored, f.Code) ||
					tt.code == plan.CodeFunctionVisibility && f.Code == plan.CodeFunctionCrash
			})
			if tt.code == "" {
				if len(found) != 0 {
					t.Fatalf("found %v, want nothing", found)
				}
				return
			}
			if len(found) != 1 {
				t.Fatalf("found %v, want one finding", found)
			}
			f := found[0]
			if f.Code != tt.code || f.Severity != tt.severity || !strings.Contains(f.String(), tt.says) || f.Remedy == "" {
				t.Errorf("found %v, want %s (%v) that says %q", f, tt.code, tt.severity, tt.says)
			}
		})
	}
}

// TestCheckFIFOBlocks is the one finding that every FIFO queue has, unless
// nothing ever waits there.
func TestCheckFIFOBlocks(t *testing.T) {
	p := retry.Policy{MaxAttempts: 3, Backoff: retry.Constant(time.Hour)}
	found := plan.Check(p, soundFIFO, plan.Settings{})
	if len(found) != 1 || found[0].Code != plan.CodeFIFOBlocks || found[0].Severity != plan.Info ||
		!strings.Contains(found[0].Problem, "up to 1h at a time, and 2h in all") {
		t.Errorf("found %v, want %s with the waits", found, plan.CodeFIFOBlocks)
	}
	p.MaxAttempts = 1
	if found := plan.Check(p, soundFIFO, plan.Settings{}); len(found) != 0 {
		t.Errorf("found %v without a retry", found)
	}
}

// TestCheckParkingUsesUpReceives: attempts that fit into maxReceiveCount one by
// one do not, with the receives of waits beyond 12 hours.
func TestCheckParkingUsesUpReceives(t *testing.T) {
	p := retry.Policy{MaxAttempts: 3, Backoff: retry.Constant(day), Jitter: retry.None}
	q := with(sound, func(q *plan.Queue) { q.MaxReceives = 4 })
	found := plan.Check(p, q, plan.Settings{Via: plan.ViaVisibility})
	if len(found) != 2 || found[0].Code != plan.CodeReceivesLimit || found[0].Severity != plan.Error || found[1].Code != plan.CodeLongWait ||
		!strings.Contains(found[0].Problem, "a wait of up to 1d takes 2 receives, and the queue gives a message up after 4: not all of 3 attempts") {
		t.Errorf("found %v, want %s and %s", found, plan.CodeReceivesLimit, plan.CodeLongWait)
	}
	p.Rules = []retry.Rule{retry.On(io.EOF, retry.Constant(time.Second), retry.None)}
	if found := plan.Check(p, q, plan.Settings{Via: plan.ViaVisibility}); len(found) != 2 {
		t.Errorf("found %v with a rule of short waits beside, want the same two", found)
	}
	q.MaxReceives = 5
	if found := plan.Check(p, q, plan.Settings{Via: plan.ViaVisibility}); len(found) != 1 {
		t.Errorf("found %v with enough receives, want %s alone", found, plan.CodeLongWait)
	}
}

// TestCheckRuleWithItsJitter: a rule's waits are those of its own jitter, not of the policy's.
func TestCheckRuleWithItsJitter(t *testing.T) {
	for _, tt := range []struct {
		own, rule retry.Jitter
		long      bool
	}{
		{retry.None, retry.Percent(50), true}, // up to 16.5 hours
		{retry.Percent(50), retry.None, false},
	} {
		p := retry.Policy{MaxAttempts: 3, Backoff: retry.Constant(time.Minute), Jitter: tt.own, Rules: []retry.Rule{retry.On(io.EOF, retry.Constant(11*time.Hour), tt.rule)}}
		found := plan.Check(p, sound, plan.Settings{})
		if long := slices.ContainsFunc(found, func(f plan.Finding) bool { return f.Code == plan.CodeLongWait }); long != tt.long {
			t.Errorf("with a rule of 11 h and %v, beside %v, found %v; want %s %v", tt.rule, tt.own, found, plan.CodeLongWait, tt.long)
		}
	}
}

// TestCheckQuotaOfWhatIsKept: SQS deletes what waits longer than its retention, which leaves the quota.
func TestCheckQuotaOfWhatIsKept(t *testing.T) {
	q := with(sound, func(q *plan.Queue) { q.Retention = time.Hour })
	found := plan.Check(retry.Policy{}, q, plan.Settings{Rate: 50, Via: plan.ViaVisibility})
	if !slices.ContainsFunc(found, func(f plan.Finding) bool {
		return f.Code == plan.CodeInFlight && strings.Contains(f.Problem, "each waits 1h in all")
	}) {
		t.Errorf("found %v, want %s with waits of 1h", found, plan.CodeInFlight)
	}
	if found := plan.Check(retry.Policy{}, q, plan.Settings{Rate: 33, Via: plan.ViaVisibility}); len(found) != 1 || found[0].Code != plan.CodeRetention {
		t.Errorf("found %v, want %s alone: 33 messages a second are 118,800 in an hour", found, plan.CodeRetention)
	}
}

// TestMaxAttempts: the policy's own number, else the queue's, else the default.
func TestMaxAttempts(t *testing.T) {
	for _, tt := range []struct{ own, receives, want int }{
		{7, 3, 7}, {-1, 3, -1}, {0, 3, 3}, {0, 1, 1}, {0, 0, retry.DefaultMaxAttempts},
	} {
		if got := plan.MaxAttempts(retry.Policy{MaxAttempts: tt.own}, plan.Queue{MaxReceives: tt.receives}); got != tt.want {
			t.Errorf("MaxAttempts of %+v = %d", tt, got)
		}
	}
}

// TestCheckGravestFirst: the first finding is the worst, for readers who stop there.
func TestCheckGravestFirst(t *testing.T) {
	q := plan.Queue{FIFO: true, MaxReceives: 3, ContentDeduplication: true, Visibility: time.Second}
	found := plan.Check(retry.Policy{MaxAttempts: 20}, q, plan.Settings{HandlerTimeout: 13 * time.Hour, FunctionTimeout: time.Hour})
	if len(found) < 4 || found[0].Severity != plan.Error {
		t.Fatalf("found %v, want several, an error first", found)
	}
	seen := map[string]bool{}
	for i, f := range found {
		if seen[f.Code] {
			t.Errorf("%s is found twice", f.Code)
		}
		seen[f.Code] = true
		if i > 0 && f.Severity > found[i-1].Severity {
			t.Errorf("%v comes after %v", f, found[i-1])
		}
	}
}
