// Package plan holds a retry policy against the queue it is meant for, and says
// where the two conflict before production does. It reads plain values and calls
// nothing.
package plan

import (
	"fmt"
	"time"

	"github.com/reprise-sqs/reprise/retry"
)

// Queue is what a queue's own attributes say. A zero field is one that is not
// known, unless it says otherwise.
type Queue struct {
	FIFO bool
	// Visibility is the queue's VisibilityTimeout, Retention its
	// MessageRetentionPeriod.
	Visibility, Retention time.Duration
	// MaxReceives is the RedrivePolicy's maxReceiveCount; zero if the queue has no
	// RedrivePolicy.
	MaxReceives int
	// DeadLetterARN is the RedrivePolicy's target; empty if there is none.
	DeadLetterARN string
	// DeadLetterRetention is the target's MessageRetentionPeriod.
	DeadLetterRetention time.Duration
}

// Settings is what the consumer adds to the policy.
type Settings struct {
	// HandlerTimeout is the longest one attempt may take; zero: no limit.
	HandlerTimeout time.Duration
	// DeadLetterURL is a dead-letter queue that the consumer was given, instead of
	// the queue's own; empty if none.
	DeadLetterURL string
}

// Severity orders findings.
type Severity uint8

// The severities: Info explains, Warning will surprise somebody, Error breaks a
// promise that the policy makes.
const (
	Info Severity = iota
	Warning
	Error
)

// String returns the severity in lower case.
func (s Severity) String() string { return [...]string{"info", "warning", "error"}[s] }

// Finding is one conflict, with what to do about it.
type Finding struct {
	Severity Severity
	// Code names the kind of finding: stable, fit for a metric label.
	Code string
	// Problem says what will happen, Remedy what to change.
	Problem, Remedy string
}

// String is the finding on one line.
func (f Finding) String() string {
	return fmt.Sprintf("%s (%s): %s Remedy: %s", f.Severity, f.Code, f.Problem, f.Remedy)
}

// The codes of findings.
const (
	CodeNoDeadLetterQueue   = "no-dead-letter-queue"
	CodeReceivesLimit       = "max-receives-below-attempts"
	CodeFIFOReceives        = "fifo-receives-are-not-attempts"
	CodeRetention           = "retention-ends-first"
	CodeVisibility          = "visibility-below-handler-timeout"
	CodeDeadLetterRetention = "dead-letter-retention"
	CodeLongWait            = "wait-beyond-12-hours"
)

// DefaultRetention is SQS's own default, taken where the attribute is unknown.
const DefaultRetention = 4 * 24 * time.Hour

// fifoReceivesPerAttempt is how many receives a FIFO queue should allow for each
// attempt: siblings of a failing message are received along with it without
// being run.
const fifoReceivesPerAttempt = 10

// MaxAttempts returns the number of attempts that p allows on q: p's own, or the
// queue's maxReceiveCount where p leaves it open, or the default of package
// retry. Negative: unlimited.
func MaxAttempts(p retry.Policy, q Queue) int {
	switch {
	case p.MaxAttempts != 0:
		return p.MaxAttempts
	case q.MaxReceives > 0:
		return q.MaxReceives
	}
	return retry.DefaultMaxAttempts
}

// Check returns every conflict between p, q and s, the gravest kinds first.
func Check(p retry.Policy, q Queue, s Settings) []Finding {
	var found []Finding
	add := func(sev Severity, code, problem, remedy string) {
		found = append(found, Finding{Severity: sev, Code: code, Problem: problem, Remedy: remedy})
	}
	attempts := MaxAttempts(p, q)

	if q.MaxReceives > 0 && !q.FIFO && (attempts < 0 || q.MaxReceives < attempts) {
		add(Error, CodeReceivesLimit,
			fmt.Sprintf("the policy allows %s attempts, but the queue gives a message up after %d receives.", count(attempts), q.MaxReceives),
			fmt.Sprintf("raise maxReceiveCount in the queue's RedrivePolicy above %s, or lower attempts to %d.", count(attempts), q.MaxReceives))
	}
	if q.FIFO && q.MaxReceives > 0 && attempts > 0 && q.MaxReceives/fifoReceivesPerAttempt < attempts {
		add(Error, CodeFIFOReceives,
			fmt.Sprintf("messages behind a failing one are received with it: %d receives may be used up before %d attempts.", q.MaxReceives, attempts),
			fmt.Sprintf("raise maxReceiveCount to at least %d (its limit is 1000).", min(1000, attempts*fifoReceivesPerAttempt)))
	}
	if q.DeadLetterARN == "" && s.DeadLetterURL == "" {
		add(Warning, CodeNoDeadLetterQueue,
			"there is no dead-letter queue: a message that is given up stays hidden until the queue's retention deletes it.",
			"give the queue a RedrivePolicy, or name a dead-letter queue in the configuration.")
	}
	if age := maxAge(p); q.Retention > 0 && age > q.Retention {
		add(Warning, CodeRetention,
			fmt.Sprintf("the policy retries for %v, but the queue deletes a message %v after it was sent.", age, q.Retention),
			"raise MessageRetentionPeriod (up to 14 days), or lower the policy's age.")
	}
	if q.DeadLetterRetention > 0 && q.Retention > 0 && !q.FIFO && q.DeadLetterRetention <= q.Retention {
		add(Warning, CodeDeadLetterRetention,
			fmt.Sprintf("the dead-letter queue keeps messages %v from their first sending, the queue itself %v: one that SQS moves late has little time left.", q.DeadLetterRetention, q.Retention),
			"set the dead-letter queue's MessageRetentionPeriod to 14 days.")
	}
	if wait := longestWait(p, attempts); wait > retry.MaxVisibility {
		add(Warning, CodeLongWait,
			fmt.Sprintf("the policy waits up to %v between attempts, beyond SQS's 12 hours: such waits are parked, and a restart of the consumer forgets their end.", wait),
			"keep the backoff's max at 12h or below.")
	}
	if s.HandlerTimeout > 0 && q.Visibility > 0 && q.Visibility < s.HandlerTimeout {
		add(Info, CodeVisibility,
			fmt.Sprintf("the queue's own visibility timeout (%v) is shorter than one attempt may take (%v).", q.Visibility, s.HandlerTimeout),
			"nothing for this consumer, which asks for and renews its own lease; raise VisibilityTimeout if others read the queue.")
	}
	return found
}

// count is n in words: unlimited where negative.
func count(n int) string {
	if n < 0 {
		return "unlimited"
	}
	return fmt.Sprint(n)
}

// maxAge is the age after which p gives up; zero if never.
func maxAge(p retry.Policy) time.Duration {
	switch {
	case p.MaxAge < 0:
		return 0
	case p.MaxAge == 0:
		return retry.DefaultMaxAge
	}
	return p.MaxAge
}

// longestWait is p's longest wait before one of the given attempts, jitter
// aside. Backoffs need not grow, so each is asked, up to a number by which every
// backoff of package retry has reached its maximum.
func longestWait(p retry.Policy, attempts int) time.Duration {
	const enough = 1000
	if attempts < 0 || attempts > enough {
		attempts = enough
	}
	backoff := p.Backoff
	if backoff == nil {
		backoff = retry.Exponential{}
	}
	var longest time.Duration
	for n := 1; n < attempts; n++ {
		longest = max(longest, backoff.Delay(n))
	}
	return longest
}
