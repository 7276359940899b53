package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/reprise-sqs/reprise/retry"
)

// Severity orders findings.
type Severity uint8

// The severities: Info explains, Warning announces behaviour that users may not expect, Error means
// that the policy cannot be kept.
const (
	Info Severity = iota
	Warning
	Error
)

var severityNames = [...]string{Info: "info", Warning: "warning", Error: "error"}

// String returns the severity in lower case.
func (s Severity) String() string {
	if int(s) >= len(severityNames) {
		return fmt.Sprintf("Severity(%d)", uint8(s))
	}
	return severityNames[s]
}

// Finding is one conflict, with its remedy.
type Finding struct {
	Severity Severity
	// Code names the kind of finding: stable, suitable as a metric label.
	Code string
	// Problem describes what will happen, Remedy what to change.
	Problem, Remedy string
}

// String is the finding on one line.
func (f Finding) String() string {
	return fmt.Sprintf("%s (%s): %s Remedy: %s", f.Severity, f.Code, f.Problem, f.Remedy)
}

// The codes of findings.
const (
	// Limits that end the attempts before the policy does.
	CodeReceivesLimit    = "max-receives-below-attempts"
	CodeSingleReceive    = "single-receive"
	CodeFIFOReceives     = "fifo-receives-are-not-attempts"
	CodeRetention        = "retention-ends-first"
	CodeRetentionUnknown = "retention-unknown"
	CodeNeverGivenUp     = "never-given-up"

	// Where dead letters go.
	CodeNoDeadLetterQueue      = "no-dead-letter-queue"
	CodeDeadLetterQueueUnknown = "dead-letter-queue-unknown"
	CodeDeadLetterQueueIsQueue = "dead-letter-queue-is-the-queue"
	CodeDeadLetterQueueType    = "dead-letter-queue-type"
	CodeDeadLetterRetention    = "dead-letter-retention"

	// Waits and runs.
	CodeLongWait       = "wait-beyond-12-hours"
	CodeQueueDelay     = "queue-delay"
	CodeInFlight       = "in-flight-quota"
	CodeVisibility     = "visibility-below-handler-timeout"
	CodeHandlerTimeout = "handler-timeout-beyond-12-hours"
	CodeLease          = "lease-outlasts-handler"
	CodeLeaseRetention = "lease-outlasts-retention"

	// FIFO queues.
	CodeFIFORequeue          = "requeue-on-fifo"
	CodeFIFOBlocks           = "fifo-wait-blocks-group"
	CodeFIFOThroughput       = "fifo-throughput"
	CodeContentDeduplication = "content-deduplication"

	// Lambda and KMS.
	CodeFunctionVisibility = "visibility-below-function-timeout"
	CodeFunctionCrash      = "function-crash-waits-visibility"
	CodeFunctionReceives   = "function-receives"
	CodeKMS                = "kms-permissions"
	CodePermission         = "permission-denied"
)

// Check returns every conflict between p, q and s, the most severe first. A code occurs at most
// once.
func Check(p retry.Policy, q Queue, s Settings) []Finding {
	e := examination{p: p, q: q, s: s, attempts: MaxAttempts(p, q)}
	e.look()
	e.checkReceives()
	e.checkRetention()
	e.checkLimits()
	e.checkDeadLetters()
	e.checkWaits()
	e.checkInFlight()
	e.checkHandler()
	e.checkFIFO()
	e.checkFunction()
	e.checkKMS()
	slices.SortStableFunc(e.found, func(a, b Finding) int { return int(b.Severity) - int(a.Severity) })
	return e.found
}

// examination is one Check under way.
type examination struct {
	p        retry.Policy
	q        Queue
	s        Settings
	attempts int

	// Over the policy's own waits and those of its rules: the longest wait, the last
	// attempt's time if nothing but the policy ended them, and whether the queue's
	// receives end them first.
	longestWait time.Duration
	lastAttempt time.Duration
	outOfReach  bool
	// expectedWaits is the sum of the policy's own waits, as expected.
	expectedWaits time.Duration
	// endless reports whether neither attempts nor age are limited.
	endless bool

	found []Finding
}

// look computes the schedules of the policy and of each of its rules.
func (e *examination) look() {
	e.endless = e.p.MaxAttempts < 0 && e.p.MaxAge < 0
	for i := -1; i < len(e.p.Rules); i++ {
		p := e.p
		if i >= 0 {
			p.Backoff, p.Jitter = p.Rules[i].Backoff, p.Rules[i].Jitter
		}
		schedule, expected, latest := forecast(p, e.q, e.s)
		if i < 0 {
			e.expectedWaits = expected
		}
		e.lastAttempt = max(e.lastAttempt, latest)
		e.outOfReach = e.outOfReach || schedule.Longest.Stop == StopReceives
		for _, a := range schedule.Attempts {
			e.longestWait = max(e.longestWait, a.Wait.Most)
		}
	}
}

func (e *examination) add(severity Severity, code, problem, remedy string) {
	e.found = append(e.found, Finding{Severity: severity, Code: code, Problem: problem, Remedy: remedy})
}

// copies reports whether a copy may serve where hiding cannot.
func (e *examination) copies() bool { return e.s.takesCopies(e.q) }

// count is n in words: unlimited where negative.
func count(n int) string {
	if n < 0 {
		return "unlimited"
	}
	return fmt.Sprint(n)
}
