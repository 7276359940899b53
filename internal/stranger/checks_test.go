package stranger_test

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// check holds a record against one promise.
type check struct {
	name  string
	says  string // the sentence, and where it is
	holds func(f *facts) []string
}

// checks are all checks. A test for each makes a record that it must refuse: see checks_forged_test.go.
var checks = []check{
	{"accepted", `Config: "It checks everything that can be checked without a request" (New)`, accepted},
	{"joined", `Run: "Run consumes until ctx ends, then drains"; Sender.Close: "returns when ... every goroutine of the sender has ended"`, joined},
	{"not lost", `README: "No message is lost"; fifo.md: "Nothing expires silently"; promises.md: "no message is dropped silently"`, notLost},
	{"ends in time", `README: "every message is accounted for"; Outage: "When a probe succeeds, handlers start again"`, endsInTime},
	{"once in calm", `promises.md: "A message that comes again while it runs here is not run twice"; "run n is attempt n"`, onceInCalm},
	{"attempts in calm", `promises.md: "run n is attempt n, at most MaxAttempts, in any number of processes"`, attemptsInCalm},
	{"copies", `promises.md: "one copy more at most for each send without a reply, crash, and original lost between copy and delete"`, fewCopies},
	{"innocent", `retries.md: "counts runs of the handler, not receives"; promises.md: "At the last receive of maxReceiveCount a message is copied, or dead-lettered with its story"`, innocentsLive},
	{"story", `retries.md: "as a copy with its story in the attribute reprise-story: the reason, the number of attempts, first and last time, the last error, queue and consumer"`, storiesAreTrue},
	{"content", `promises.md: "A copy equals the original message, its tenant too, or none is made"`, contentIsKept},
	{"never early", `promises.md: "Never early, whatever the clocks show"`, neverEarly},
	{"schedule", `retries.md: "the consumer and plan call the same one, and any process that knows the message computes the same schedule"`, scheduleIsShown},
	{"one at a time", `promises.md: "A message that comes again while it runs here is not run twice"`, oneAtATime},
	{"concurrency", `Handler: "Handle is called concurrently, at most Config.Concurrency calls at once"`, withinConcurrency},
	{"order", `fifo.md: "no message behind it starts earlier, whatever fails"`, inOrder},
	{"rate", `Config.Rate: "how many handlers may start per second, evenly spaced, bursts of 10 ms aside"`, withinRate},
	{"timeout", `Config.HandlerTimeout: "the time after which the context of an attempt ends"`, timeoutsHold},
	{"lease in calm", `promises.md: "Leases run from receipt to acknowledgement"`, leasesHoldInCalm},
	{"given up", `promises.md: "none that was given up runs again"`, givenUpStays},
	{"sender", `Sender: "Each message gets its own result, and none is dropped without one"; ErrUnconfirmed: "Any other error means that SQS does not have the message"`, senderIsHonest},
	{"budget", `Config.StopBudget: "the time from the end of Run's context to Run's return"; Report`, stopsInBudget},
	{"counts", `Report: "describes, at the end of Run, what happened to all messages"; Counts`, countsAddUp},
	{"calls", `Calls: "counts requests to SQS by kind"; Observer.Call: "called after each request"`, callsAreCounted},
	{"after delete", `Config.AfterDelete: "called when SQS has confirmed the delete of a message whose work is done"`, afterDeletesRun},
	{"pool", `PoolConfig.Concurrency: "how many handlers run at once, of all queues together"; PoolStatus.Queues: "in descending order of their priorities"; priorities.md: "A stop takes one budget"`, poolsHold},
	{"priority", `Pool: "Priorities are strict: a handler starts only if no message of a higher priority is ready"`, prioritiesAreStrict},
	{"weights", `priorities.md: "Among queues that all have messages, handlers are started in proportion to the weights, over any time, exact to one start"; "except at most ten"`, weightsHold},
	{"errands", `promises.md: "A pool stops whole or in part, loses nothing in crashes"; Pool: "If one consumer has no message for a place, the others can use it"`, errandsAreDone},
	{"reply", `lambda.md: "the reply does not name it: Lambda deletes it, without a call"; "the reply names it, and it is hidden as the policy says"; Response: "tells Lambda which messages of an event it must not delete"`, repliesAreRight},
	{"deadline", `lambda.md: "its context ends 3 seconds before, or a quarter of the time if less: a failed attempt"; SQS: "They end with time left to settle"`, deadlinesHold},
	{"group", `lambda.md: "its group stops there and comes back with it, hidden for no longer than it is"`, groupsStop},
	{"paused", `Pause: "stops the consumer from starting handlers and from receiving, until Consumer.Resume"; PauseKey: "It fails if there is no Config.Outage.Key"`, pausesHold},
	{"keyed", `Outage.Key: "Then each key has a breaker of its own ... and an outage of one key delays only its own messages"`, keysAreApart},
	{"health", `Status.Problem: "describes what is wrong"; Counts.LeasesEnded: "While there are any, and for five minutes after, the health is degraded"`, healthIsHonest},
}

// broken is a promise that a record breaks.
type broken struct {
	check check
	how   []string
}

// judge returns the promises that the record of s breaks.
func judge(s *scenario, r *record) (all []broken) {
	f := newFacts(s, r)
	for _, c := range checks {
		if (r.refused != nil || r.stuck != "") && c.name != "accepted" && c.name != "joined" {
			continue // nothing else can be told of it
		}
		if how := c.holds(f); len(how) > 0 {
			all = append(all, broken{c, how})
		}
	}
	return all
}

// facts are what several checks need to know.
type facts struct {
	s          *scenario
	r          *record
	byMessage  [][]*run // in the order of their beginnings
	letters    map[int][]sqsserver.MessageInfo
	left       map[int][]sqsserver.MessageInfo
	unanswered map[int][]time.Duration // sends to the queue or the lane
	lost       map[int]int             // sends to the dead-letter queue without a reply
	crashes    []time.Duration
	calm       bool
}

func newFacts(s *scenario, r *record) *facts {
	f := &facts{
		s: s, r: r, byMessage: make([][]*run, len(s.Messages)),
		letters: make(map[int][]sqsserver.MessageInfo), left: make(map[int][]sqsserver.MessageInfo),
		unanswered: make(map[int][]time.Duration), lost: make(map[int]int),
	}
	for _, r := range r.runs {
		if r.message >= 0 && r.message < len(s.Messages) {
			f.byMessage[r.message] = append(f.byMessage[r.message], r)
		}
	}
	for _, m := range r.letters {
		f.letters[number(m.Body)] = append(f.letters[number(m.Body)], m)
	}
	for _, m := range r.left {
		f.left[number(m.Body)] = append(f.left[number(m.Body)], m)
	}
	for _, c := range r.copies {
		switch {
		case c.unanswered && c.letter:
			f.lost[c.message]++
		case c.unanswered:
			f.unanswered[c.message] = append(f.unanswered[c.message], c.at)
		}
	}
	for _, l := range r.processes {
		if l.crashed {
			f.crashes = append(f.crashes, l.until)
		}
	}
	for _, in := range r.invocations {
		if in.died > 0 {
			f.crashes = append(f.crashes, in.died)
		}
	}
	f.calm = f.isCalm()
	return f
}

// isCalm reports whether nothing goes wrong but handlers that return errors or panic: SQS is well, nobody
// intervenes, no process stops, and nothing looks like an outage.
func (f *facts) isCalm() bool {
	s := f.s
	if len(s.Faults)+len(s.Outages)+len(s.KeyDown)+len(s.Changes)+len(s.Acts)+len(f.crashes) > 0 || s.Queue.InFlightLimit > 0 {
		return false
	}
	if f.anyLambda() || len(s.Jumps) > 0 && !f.knownSkew() {
		return false
	}
	for _, v := range s.Versions { // "A heartbeat that takes longer than a fifth of it counts as failed"
		if 6*max(s.Latency, time.Millisecond) > cmp.Or(v.Lease, time.Minute) {
			return false
		}
	}
	for _, p := range s.Processes {
		if p.Until > 0 {
			return false
		}
	}
	for _, m := range s.Messages {
		if m.Forged != notForged {
			return false
		}
		for _, st := range m.Steps {
			if st.Result == kill || st.Ignores {
				return false
			}
		}
	}
	return !slices.ContainsFunc(f.r.runs, func(r *run) bool { return r.result == unavailable || r.result == timeout || r.cause == "stopping" })
}

// knownSkew reports whether the clocks differ by the same time from the beginning, and all processes can know it from SQS's replies.
// A function gets its messages without one.
func (f *facts) knownSkew() bool {
	return !f.anyLambda() && !slices.ContainsFunc(f.s.Jumps, func(j jump) bool { return j.At > 0 }) &&
		!slices.ContainsFunc(f.s.Processes, func(p process) bool { return !f.s.version(p).SDK })
}

// byServer returns SQS's time at a time of the processes.
func (s *scenario) byServer(at time.Duration) time.Duration {
	ahead := time.Duration(0)
	for _, j := range s.Jumps {
		if j.At <= at {
			ahead += j.By
		}
	}
	return at + ahead
}

// skew is how far SQS's clock is ahead from the beginning.
func (s *scenario) skew() time.Duration { return s.byServer(0) }

// expires returns when a message is dropped that SQS got at a time by its clock: by the clock of the processes.
func (s *scenario) expires(sent time.Duration) time.Duration {
	end, ahead := sent+s.shortest(), time.Duration(0)
	jumps := slices.SortedFunc(slices.Values(s.Jumps), func(a, b jump) int { return cmp.Compare(a.At, b.At) })
	for _, j := range jumps {
		if end-ahead < j.At {
			break
		}
		if ahead += j.By; j.At+ahead >= end {
			return j.At // this one leaps over its end
		}
	}
	return end - ahead
}

// version returns the only version that runs, if there is only one.
func (f *facts) version() (settings, bool) {
	if len(f.r.processes) == 0 {
		return settings{}, false
	}
	v := f.r.processes[0].settings
	for _, l := range f.r.processes {
		if l.settings != v {
			return v, false
		}
	}
	return v, true
}

// maxAttempts returns the limit of attempts under v; below 0: there is none.
func (f *facts) maxAttempts(v settings) int {
	p := v.policy()
	if p.MaxAttempts == 20 && f.s.Queue.MaxReceives > 0 && !f.s.Queue.SeparateDeadLetters && !v.namesAttempts() {
		return f.s.Queue.MaxReceives
	}
	return p.MaxAttempts
}

// counted reports whether a run is an attempt.
func (r *run) counted() bool { return r.done && !r.interrupted && r.result != release }

func (f *facts) has(kinds ...sqsserver.FaultKind) bool {
	return slices.ContainsFunc(f.s.Faults, func(s spell) bool { return slices.Contains(kinds, s.Kind) })
}

// name names message n and what it is, for a person.
func (f *facts) name(n int) string {
	id := ""
	if n >= 0 && n < len(f.r.sent) {
		id = f.r.sent[n].id
	}
	return fmt.Sprintf("message %d (%s)", n, id)
}

func accepted(f *facts) []string {
	if f.r.refused != nil {
		return []string{f.r.refused.Error()}
	}
	return nil
}

func joined(f *facts) []string {
	if f.r.stuck != "" {
		return []string{f.r.stuck}
	}
	return nil
}

// successes returns how many runs of message n have done its work.
func (f *facts) successes(n int) (count int) {
	for _, r := range f.byMessage[n] {
		count += b2i(r.done && !r.interrupted && r.result == succeed)
	}
	return count
}
