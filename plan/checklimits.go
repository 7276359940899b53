package plan

import (
	"fmt"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise/internal/carry"
	"github.com/reprise-sqs/reprise/internal/plural"
	"github.com/reprise-sqs/reprise/retry"
)

// fifoReceivesPerAttempt is how many receives a FIFO queue should allow for each
// attempt: siblings of a failing message are received along with it without
// being run.
const fifoReceivesPerAttempt = 10

// checkReceives compares the queue's maxReceiveCount with the attempts.
func (e *examination) checkReceives() {
	if e.q.MaxReceives <= 0 {
		return
	}
	if e.q.FIFO {
		e.checkFIFOReceives()
		return
	}
	fewer := e.attempts < 0 || e.q.MaxReceives < e.attempts
	without := fmt.Sprintf("raise maxReceiveCount above %d to do without copies.", e.attempts)
	remedy := fmt.Sprintf("raise maxReceiveCount in the queue's RedrivePolicy above %d, lower attempts to %d, or permit copies.", e.attempts, e.q.MaxReceives)
	if e.attempts < 0 || e.attempts >= MaxReceives { // no maxReceiveCount is above that
		without = fmt.Sprintf("to do without copies raise maxReceiveCount to its limit, %d, and lower attempts to at most that.", MaxReceives)
		remedy = fmt.Sprintf("raise maxReceiveCount in the queue's RedrivePolicy to its limit, %d, and lower attempts to at most that, or permit copies.", MaxReceives)
	}
	switch {
	case fewer && e.copies():
		e.add(Info, CodeReceivesLimit,
			fmt.Sprintf("the policy allows %s attempts and the queue %s: at its last permitted receive a message is sent back as a copy, which begins anew.", count(e.attempts), plural.Of(e.q.MaxReceives, "receive")),
			"none is needed if the consumer may send to the queue; "+without)
	case fewer:
		e.add(Error, CodeReceivesLimit,
			fmt.Sprintf("the policy allows %s attempts, but the queue gives a message up after %s.", count(e.attempts), plural.Of(e.q.MaxReceives, "receive")),
			remedy)
	case e.outOfReach:
		e.add(Error, CodeReceivesLimit,
			fmt.Sprintf("a wait of up to %s takes %s, and the queue gives a message up after %d: not all of %s are reached.", short(e.longestWait), plural.Of(carry.Hides(e.longestWait), "receive"), e.q.MaxReceives, plural.Of(e.attempts, "attempt")),
			"keep the backoff's max at 12h or below, raise maxReceiveCount, or permit copies.")
	}
	if e.q.MaxReceives == 1 {
		fate := "no message is retried."
		if e.copies() {
			fate = "every retry, and every quarter of an hour of its wait, is a copy."
		}
		e.add(Warning, CodeSingleReceive,
			"the queue permits one receive: SQS moves a message to the dead-letter queue, without a story, once a crash, a lost lease or a release has used it up, and "+fate,
			"raise maxReceiveCount in the queue's RedrivePolicy to 5 or more.")
	}
}

func (e *examination) checkFIFOReceives() {
	if e.attempts > 0 && e.q.MaxReceives/fifoReceivesPerAttempt >= e.attempts {
		return
	}
	remedy := fmt.Sprintf("raise maxReceiveCount to at least %d.", e.attempts*fifoReceivesPerAttempt)
	if highest := MaxReceives / fifoReceivesPerAttempt; e.attempts < 0 || e.attempts > highest {
		remedy = fmt.Sprintf("raise maxReceiveCount to its limit, %d, and lower attempts to at most %d.", MaxReceives, highest)
	}
	e.add(Error, CodeFIFOReceives,
		fmt.Sprintf("messages behind a failing one are received with it: %s may be used up before %s attempts.", plural.Of(e.q.MaxReceives, "receive"), count(e.attempts)),
		remedy)
}

// checkRetention compares the queue's retention with the schedule, and with leases.
func (e *examination) checkRetention() {
	if e.q.Retention <= 0 {
		e.add(Warning, CodeRetentionUnknown,
			fmt.Sprintf("the queue's retention is not known and taken as SQS's default, %s.", short(DefaultRetention)),
			"permit sqs:GetQueueAttributes on the queue.")
	}
	retention := e.q.retention()
	left := max(retention-max(e.q.Delay, 0), 0) // at the first receive
	const remedy = "raise MessageRetentionPeriod (up to 14 days), or lower the policy's age."
	switch {
	case e.endless: // reported by a separate finding
	case e.lastAttempt < left && e.p.MaxAge > retention:
		e.add(Info, CodeRetention,
			fmt.Sprintf("the policy's age of %s is never reached: the queue deletes a message %s after it was sent.", short(e.p.MaxAge), short(retention)),
			remedy)
	case e.lastAttempt < left:
	case e.copies():
		e.add(Info, CodeRetention,
			fmt.Sprintf("the policy retries for up to %s, but the queue deletes a message %s after it was sent: before that it is sent back as a copy, which begins anew.", short(e.lastAttempt), short(retention)),
			"none is needed if the consumer may send to the queue; raise MessageRetentionPeriod (up to 14 days) to do without copies.")
	default:
		e.add(Warning, CodeRetention,
			fmt.Sprintf("the policy retries for up to %s, but the queue deletes a message %s after it was sent.", short(e.lastAttempt), short(retention)),
			remedy)
	}
	if e.q.Retention > 0 && e.s.Lease >= e.q.Retention {
		e.add(Warning, CodeLeaseRetention,
			fmt.Sprintf("a lease lasts %s, and the queue deletes a message %s after it was sent: the messages of a process that died are lost.", short(e.s.Lease), short(e.q.Retention)),
			"lower the lease: it is renewed while a handler runs; or raise MessageRetentionPeriod (up to 14 days).")
	}
}

// checkLimits looks for a policy that never gives up, and for effects of the queue's delay on its
// limits.
func (e *examination) checkLimits() {
	if e.endless && (e.copies() || e.q.MaxReceives <= 0) {
		fate := fmt.Sprintf("until the queue's retention of %s silently deletes it.", short(e.q.retention()))
		if e.copies() {
			fate = "for ever, in copies that renew the queue's retention."
		}
		e.add(Warning, CodeNeverGivenUp,
			"neither attempts nor age are limited: a message that always fails is tried "+fate,
			"limit the policy's attempts or its age.")
	}
	if e.q.Delay <= 0 {
		return
	}
	switch age := e.p.MaxAge; {
	case e.p.AgeFrom == retry.Sent && age > 0 && age <= e.q.Delay:
		e.add(Error, CodeQueueDelay,
			fmt.Sprintf("the policy's age of %s counts from the sending and is used up by the queue's delay of %s: no message is retried.", short(age), short(e.q.Delay)),
			"raise the policy's age, count it from the first receive, or lower the queue's DelaySeconds.")
	case e.copies():
		e.add(Info, CodeQueueDelay,
			fmt.Sprintf("the queue delays messages sent to it by %s, also copies whose own wait is less than a second.", short(e.q.Delay)),
			"set the queue's DelaySeconds to 0 if copies must be quicker.")
	}
}

// checkDeadLetters checks the destination of messages that are given up.
func (e *examination) checkDeadLetters() {
	if !e.s.hasDeadLetters(e.q) {
		e.add(Warning, CodeNoDeadLetterQueue,
			"there is no dead-letter queue: a message that is given up stays hidden until the queue's retention deletes it.",
			"give the queue a RedrivePolicy, or name a dead-letter queue in the configuration.")
		return
	}
	target := e.q.DeadLetterARN
	if e.s.DeadLetterURL != "" {
		target = e.s.DeadLetterURL
	}
	if fifo := strings.HasSuffix(target, ".fifo"); fifo != e.q.FIFO {
		e.add(Error, CodeDeadLetterQueueType,
			fmt.Sprintf("the queue is %s and its dead-letter queue %s: SQS neither accepts the pair in a RedrivePolicy nor moves messages back from the one to the other.", queueType(e.q.FIFO), queueType(fifo)),
			"use a dead-letter queue of the queue's own type.")
	}
	if e.sameQueue(target) {
		e.add(Error, CodeDeadLetterQueueIsQueue,
			"the dead-letter queue is the queue itself: messages that are given up come back as new ones, for ever.",
			"use a queue of its own for dead letters.")
		return // its retention is not relevant
	}
	e.checkDeadLetterRetention()
}

func queueType(fifo bool) string {
	if fifo {
		return "FIFO"
	}
	return "standard"
}

// sameQueue reports whether target, an ARN or a URL, is the queue. An account and
// a name identify a queue within a region, and both end in them.
func (e *examination) sameQueue(target string) bool {
	own := strings.Split(e.q.ARN, ":")
	other := strings.FieldsFunc(target, func(r rune) bool { return r == ':' || r == '/' })
	if len(own) != arnParts || len(other) < 2 {
		return false
	}
	return own[4] == other[len(other)-2] && own[5] == other[len(other)-1]
}

func (e *examination) checkDeadLetterRetention() {
	kept, retention := e.q.DeadLetterRetention, e.q.retention()
	remedy := "set the dead-letter queue's MessageRetentionPeriod to 14 days."
	if kept >= MaxRetention {
		remedy = "lower the queue's own MessageRetentionPeriod: the dead-letter queue's 14 days are SQS's maximum."
	}
	switch {
	case kept <= 0:
		e.add(Info, CodeDeadLetterQueueUnknown,
			"the dead-letter queue's attributes are not known: neither how long it keeps messages nor its encryption is part of this plan.",
			"permit sqs:GetQueueAttributes on the dead-letter queue.")
	case !e.q.FIFO && kept <= retention:
		e.add(Warning, CodeDeadLetterRetention,
			fmt.Sprintf("the dead-letter queue keeps messages %s from their first sending, the queue itself %s: a message that SQS moves late has little time left.", short(kept), short(retention)),
			remedy)
	case e.q.FIFO && kept < retention:
		e.add(Warning, CodeDeadLetterRetention,
			fmt.Sprintf("the dead-letter queue keeps messages %s, less than the queue itself, %s.", short(kept), short(retention)),
			remedy)
	}
}

// checkWaits looks for waits that one receive cannot serve.
func (e *examination) checkWaits() {
	hides := carry.Hides(e.longestWait)
	if hides == 1 {
		return
	}
	problem := fmt.Sprintf("the policy waits up to %s between attempts, and one receive hides a message for less than 12 hours: such a wait takes %d receives", short(e.longestWait), hides)
	const remedy = "keep the backoff's max at 12h or below."
	if e.copies() {
		e.add(Info, CodeLongWait, problem+", which run nothing, or a copy where the queue's limits end sooner.", remedy)
		return
	}
	e.add(Warning, CodeLongWait, problem+", and a restart of the consumer forgets where it ends.", remedy)
}

// checkInFlight compares the expected rate with the in-flight quota, by Little's law: the number of
// waiting messages is the rate times the mean wait.
func (e *examination) checkInFlight() {
	if e.s.Rate <= 0 {
		return
	}
	waits := e.expectedWaits
	if !e.copies() {
		waits = min(waits, e.q.retention())
	}
	waiting := e.s.Rate * waits.Seconds()
	if waiting <= MaxInFlight {
		return
	}
	full := time.Duration(MaxInFlight / e.s.Rate * float64(time.Second))
	problem := fmt.Sprintf("while all of %g messages a second fail, each waits %s in all, on average: after %s the %d that SQS lets a queue have in flight are used up", e.s.Rate, short(waits), short(full), MaxInFlight)
	if e.copies() {
		e.add(Info, CodeInFlight, problem+", and further retries are sent as copies.",
			"none is needed if the consumer may send to the queue; a lower age or shorter waits need no copies.")
		return
	}
	e.add(Warning, CodeInFlight, problem+", and it hands out no more, which looks like an empty queue.",
		"lower the policy's age or its waits, pause in outages, or permit copies on a standard queue.")
}
