package plan

import (
	"fmt"
	"time"

	"github.com/reprise-sqs/reprise/retry"
)

// MaxListed is how many attempts a Schedule lists at most.
const MaxListed = 1000

// Schedule is what happens to a message that fails at every attempt with plain errors, which match
// no rule of the policy and contain no verdict of the handler. For the errors of a rule, plan a
// policy with that rule's Backoff and Jitter.
//
// Times count from the first receive, which is assumed to come as soon as the queue's delay has
// passed. They are those of [retry.Policy.Decide] for attempts that take no time, so add the runs
// of the handler; SQS rounds each wait up to whole seconds.
type Schedule struct {
	// Attempts are those that some message may reach, at most MaxListed.
	Attempts []ScheduledAttempt
	// Shortest is the end of a message whose waits are all the shortest that the jitter can draw;
	// Expected is the end with the mean waits; Longest is the end with the longest waits, and so
	// the fewest attempts.
	Shortest, Expected, Longest End
}

// Span is a time at its least, as expected, and at its most.
type Span struct{ Least, Expected, Most time.Duration }

// ScheduledAttempt is one attempt of a schedule, a run of the handler. If Longest ends earlier,
// the draws decide whether it is reached.
type ScheduledAttempt struct {
	// N is its number, 1 for the first.
	N int
	// Wait is the policy's wait before it, zero for the first. The expected wait is
	// the mean of all draws; where Decorrelated jitter can meet its maximum it is
	// that of some thousand seeds, exact to a few percent. The policy's MaxAge cuts
	// the last wait short.
	Wait Span
	// Since is when it comes, counted from the first receive. Least and Most are exact. Expected is
	// the sum of the expected waits, within Least and Most.
	Since Span
	// Leg is how the longest wait before it is carried out.
	Leg Leg
}

// Leg is how one wait is carried out.
type Leg struct {
	Carry Carry
	// Receives is how many receives the wait costs, that of the attempt included.
	Receives int
	// Copies is how many copies are sent.
	Copies int
}

// Carry is how a wait is carried out.
type Carry uint8

const (
	// CarryNone belongs to the first attempt, which has no wait.
	CarryNone Carry = iota
	// CarryHide hides the message once, by its visibility timeout.
	CarryHide
	// CarryPark hides it again and again, without running the handler: one receive
	// hides for less than 12 hours.
	CarryPark
	// CarryRequeue sends a copy, whose receives and retention begin anew.
	CarryRequeue
)

var carryNames = [...]string{CarryNone: "", CarryHide: "hide", CarryPark: "park", CarryRequeue: "requeue"}

// String returns the kind in one word; empty for CarryNone.
func (c Carry) String() string {
	if int(c) >= len(carryNames) {
		return fmt.Sprintf("Carry(%d)", uint8(c))
	}
	return carryNames[c]
}

// End is where the attempts of one message end, and what they cost.
type End struct {
	Stop Stop
	// Attempts is how many were made, Receives how many receives they needed, Copies how many
	// copies were sent.
	Attempts, Receives, Copies int
	// After is when it ends, counted from the first receive.
	After time.Duration
}

// Stop is why attempts end.
type Stop uint8

const (
	// StopAttempts is the policy's MaxAttempts.
	StopAttempts Stop = iota + 1
	// StopAge is the policy's MaxAge.
	StopAge
	// StopReceives is the queue's maxReceiveCount, where no copy can be sent.
	StopReceives
	// StopRetention is the end of the queue's retention, where no copy can be sent: SQS deletes the
	// message. Where there is a dead-letter queue, the consumer gives the message up before.
	StopRetention
	// StopUnlisted is the end of the list: there are more than MaxListed attempts.
	StopUnlisted
)

var stopNames = [...]string{
	StopAttempts:  "attempts",
	StopAge:       "age",
	StopReceives:  "receives",
	StopRetention: "retention",
	StopUnlisted:  "unlisted",
}

// String returns the reason in one word.
func (s Stop) String() string {
	if s == 0 || int(s) >= len(stopNames) {
		return fmt.Sprintf("Stop(%d)", uint8(s))
	}
	return stopNames[s]
}

// NewSchedule returns the schedule of p on q. It calls p's Backoff, which may be the user's own
// code, once for each wait.
func NewSchedule(p retry.Policy, q Queue, s Settings) Schedule {
	schedule, _, _ := forecast(p, q, s)
	return schedule
}

// forecast also returns when the last attempt would come, as expected and at the
// latest, if only the policy ended them.
func forecast(p retry.Policy, q Queue, s Settings) (schedule Schedule, lastExpected, lastLatest time.Duration) {
	p.MaxAttempts = MaxAttempts(p, q)
	p.Rules = nil
	p.Backoff = remembered(p.Backoff)
	waits := waitsOf(p)
	shortest := follow(p, q, s, draws{func(n int) time.Duration { return waits[n-1].Least }, 0})
	expected := follow(p, q, s, draws{func(n int) time.Duration { return waits[n-1].Expected }, 0.5})
	longest := follow(p, q, s, draws{func(n int) time.Duration { return waits[n-1].Most }, 1})

	lastFrom, lastTo := lastPart(p, q)
	expires := time.Duration(maxDuration)
	if !s.takesCopies(q) { // nothing comes after SQS has deleted the message
		expires = max(q.retention()-max(q.Delay, 0), 0)
	}
	schedule = Schedule{
		Attempts: make([]ScheduledAttempt, max(shortest.end.Attempts, expected.end.Attempts, longest.end.Attempts)),
		Shortest: shortest.end,
		Expected: expected.end,
		Longest:  longest.end,
	}
	for i := range schedule.Attempts {
		a := &schedule.Attempts[i]
		a.N = i + 1
		a.Since = Span{
			Least:    shortest.since(i),
			Expected: min(expected.since(i), expires),
			Most:     min(longest.since(i), expires),
		}
		if i == 0 {
			continue
		}
		a.Wait = waits[i-1]
		if ended := min(longest.since(i-1), lastFrom); ended+a.Wait.Least > lastTo {
			a.Since.Least = min(a.Since.Least, lastFrom) // even the shortest wait is cut short
		}
		for _, c := range []*course{&longest, &expected, &shortest} {
			if i < c.end.Attempts {
				a.Leg = c.legs[i]
				break
			}
		}
	}
	return schedule, expected.last(p, q), max(longest.last(p, q), longest.latest)
}

// lastPart returns the beginning and the end of the part of p's MaxAge in which last attempts run,
// counted from the first receive. Without a MaxAge it never comes.
func lastPart(p retry.Policy, q Queue) (from, to time.Duration) {
	over := retry.Failure{First: epoch, Sent: epoch.Add(-max(q.Delay, 0)), Ended: epoch.Add(maxDuration)}
	start, end, _ := p.LastRetry(over)
	if end.IsZero() {
		return maxDuration, maxDuration
	}
	return start.Sub(epoch), end.Sub(epoch)
}

// remembered calls b, the policy's backoff or nil, once for each wait.
func remembered(b retry.Backoff) retry.Backoff {
	b = retry.Policy{Backoff: b}.WithDefaults().Backoff
	delays := make(map[int]time.Duration)
	return retry.Func(func(n int) time.Duration {
		delay, known := delays[n]
		if !known {
			delay = b.Delay(n)
			delays[n] = delay
		}
		return delay
	})
}

// course is the sequence of attempts of one message.
type course struct {
	// at has the times at which the policy makes the attempts, as if the queue had no limits.
	at []time.Duration
	// legs has how the wait before each attempt is carried out, up to the last attempt that the
	// queue permits.
	legs []Leg
	end  End
	// stop is why the policy makes no more attempts.
	stop Stop
	// latest is when the last attempt of any message comes at the latest.
	latest time.Duration
}

// draws are the random draws of one message: wait returns its wait before retry n; if MaxAge cuts
// the last wait short, last is the position of the last retry in the range of
// [retry.Policy.LastRetry], from 0 to 1.
type draws struct {
	wait func(n int) time.Duration
	last float64
}

// since returns when attempt i+1 comes; for i past the last attempt, the latest possible time:
// attempts end by age, which is the same for all, or by their number.
func (c *course) since(i int) time.Duration {
	if i < len(c.at) {
		return c.at[i]
	}
	return c.latest
}

// epoch is some time at which a message is first received.
var epoch = time.Date(2026, 1, 31, 9, 0, 0, 0, time.UTC)

// follow returns the course of a message with those draws. It calls Decide and LastRetry itself,
// so that a schedule cannot differ from the consumer.
func follow(p retry.Policy, q Queue, s Settings, drawn draws) course {
	fixed := p
	fixed.Backoff, fixed.Jitter = retry.Func(drawn.wait), retry.None
	a := retry.Failure{N: 1, First: epoch, Sent: epoch.Add(-max(q.Delay, 0)), Ended: epoch}
	c := course{at: []time.Duration{0}}
	for c.stop == 0 {
		d := fixed.Decide(a)
		from, to, ok := p.LastRetry(a)
		switch {
		case d.Reason == retry.ReasonAttempts:
			c.stop = StopAttempts
		case d.Reason == retry.ReasonAge || !ok:
			c.stop = StopAge
		case a.N == MaxListed:
			c.stop = StopUnlisted
		default:
			if d.At.Before(a.Ended.Add(drawn.wait(a.N))) { // cut short
				d.At = from.Add(time.Duration(drawn.last * float64(to.Sub(from))))
			}
			a.N++
			a.Ended = d.At
			c.at = append(c.at, d.At.Sub(epoch))
		}
	}
	c.latest = c.at[len(c.at)-1]
	if _, to, _ := p.LastRetry(a); c.stop == StopAge && to.After(a.Ended) {
		c.latest = to.Sub(epoch)
	}
	c.carry(q, s)
	return c
}

// carry fills in how the waits are carried out, and where the attempts end: at the policy's stop,
// or before.
func (c *course) carry(q Queue, s Settings) {
	carrier := newCarrier(q, s)
	c.legs = []Leg{{Receives: 1}}
	c.end = End{Attempts: 1, Receives: 1}
	for i := 1; i < len(c.at); i++ {
		leg, halt, when := carrier.leg(c.at[i-1], c.at[i])
		c.end.Receives += leg.Receives
		c.end.Copies += leg.Copies
		if halt != 0 {
			c.end.Stop, c.end.After = halt, when
			return
		}
		c.legs = append(c.legs, leg)
		c.end.Attempts++
	}
	c.end.Stop, c.end.After = c.stop, c.at[len(c.at)-1]
}

// last returns when the policy makes its last attempt. After the list it assumes that every wait is
// as long as the last one listed.
func (c *course) last(p retry.Policy, q Queue) time.Duration {
	last := len(c.at) - 1
	if c.stop != StopUnlisted {
		return c.at[last]
	}
	end := time.Duration(maxDuration)
	wait := c.at[last] - c.at[last-1]
	if more := p.MaxAttempts - MaxListed; more > 0 && (wait == 0 || time.Duration(more) < (maxDuration-c.at[last])/wait) {
		end = c.at[last] + time.Duration(more)*wait
	}
	p = p.WithDefaults()
	if p.MaxAge < 0 {
		return end
	}
	oldest := p.MaxAge
	if p.AgeFrom == retry.Sent {
		oldest -= max(q.Delay, 0)
	}
	return min(end, oldest)
}
