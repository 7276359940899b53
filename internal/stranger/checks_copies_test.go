package stranger_test

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// fewCopies holds that messages do not multiply beyond what lost replies and crashes explain. A message whose copy is
// confirmed, and which waits for its delete to succeed, is not one more to a user: so what counts is how often a
// message ends, and how often it lies in its queue where every delete succeeds at once.
func fewCopies(f *facts) (how []string) {
	if f.calm {
		for _, t := range f.r.transits {
			if t.count > 2 { // the original is deleted when its copy is confirmed
				how = append(how, fmt.Sprintf("%s was %d times in its queue at %v, and nothing was wrong", f.name(t.message), t.count, t.at))
			}
		}
	}
	if f.has(sqsserver.FaultLoseDelete) { // SQS confirms deletes that it does not make
		return how
	}
	several := len(f.r.processes) > 1 || f.anyLambda()
	leaps := len(f.s.Jumps) > 0 && !f.calm
	if f.repeatedBySDK() {
		return how
	}
	if f.anyLambda() && len(f.s.Faults) > 0 { // no process remembers what Lambda could not delete
		return how
	}
	// A process forgets what it has deleted, and a reply from before may come later.
	late := f.has(sqsserver.FaultSlowReply, sqsserver.FaultLoseReply)
	if (several || late) && (leaps || f.has(sqsserver.FaultDuplicate, sqsserver.FaultEarlyRedelivery, sqsserver.FaultLoseLease, sqsserver.FaultStaleHandle)) { // SQS gives a message to two of them
		return how
	}
	if f.shortLeases() && (several || f.anyBatch()) { // a lease may end while its message is settled, whatever SQS confirms
		return how
	}
	for n := range f.s.Messages {
		if f.s.Messages[n].Forged == plausible {
			continue
		}
		ends := 0
		for _, m := range f.letters[n] {
			ends += b2i(m.Source == "" || f.calm) // SQS may move what it did not delete
		}
		// Another process does not know what this one has done; in a batch of a FIFO queue what is behind a failure runs again.
		if !several && !(f.s.Queue.FIFO && f.anyBatch()) {
			ends += f.successes(n)
		}
		if most := 1 + len(f.unanswered[n]) + f.lost[n] + len(f.crashes) + f.cutShort(n) + f.leasesLost(n) + f.originalsLeft(n); ends > most {
			how = append(how, fmt.Sprintf("%s was handled %d times and has %d dead letters, after %d sends without a reply (%d to the dead-letter queue) and %d crashes",
				f.name(n), f.successes(n), len(f.letters[n]), len(f.unanswered[n])+f.lost[n], f.lost[n], len(f.crashes)))
		}
	}
	return how
}

// estimated reports whether receives without an attempt can have been taken for attempts: "exactly for runs in this process and for
// those in a copy's history; others are estimated". A run that died with its process counts; so may receives that a fault
// of SQS has added, in a process that has not seen the run, or that SQS adds after it has confirmed a delete, or one
// after which a process has stopped without a run, in the next one, by the age.
func (f *facts) estimated() bool {
	stops := slices.ContainsFunc(f.s.Processes, func(p process) bool { return p.Until > 0 })
	return len(f.crashes) > 0 || f.anyLambda() || stops || len(f.r.processes) > 1 && len(f.s.Faults) > 0 || len(f.s.Jumps) > 0 && !f.calm ||
		f.has(sqsserver.FaultLoseDelete, sqsserver.FaultLoseReply, sqsserver.FaultSlowReply, sqsserver.FaultDuplicate, sqsserver.FaultEarlyRedelivery, sqsserver.FaultLoseLease)
}

// repeatedBySDK reports whether the SDK may have sent a request again whose reply was lost: nobody sees how often.
func (f *facts) repeatedBySDK() bool {
	return f.has(sqsserver.FaultLoseReply, sqsserver.FaultSlowReply, sqsserver.FaultDropConnection) &&
		slices.ContainsFunc(f.r.processes, func(l *life) bool { return l.settings.SDK })
}

// originalsLeft returns how many originals of copies of message n a process may have held when it crashed, because their deletes
// failed until then.
func (f *facts) originalsLeft(n int) (count int) {
	const slowestRetry = 5 * time.Second
	for _, c := range f.r.copies {
		if c.message != n || !c.accepted || c.letter || c.process < 0 {
			continue
		}
		l := f.r.processes[c.process]
		count += b2i(l.crashed && c.at <= l.until && slices.ContainsFunc(f.s.Faults, func(s spell) bool {
			return !s.DeadLetters && (s.Action == "" || s.Action == "DeleteMessageBatch") && s.When.has(c.at) && s.When.Until+slowestRetry > l.until
		}))
	}
	return count
}

// cutShort returns how often processes had to leave message n unsettled when they stopped: that may come between a copy and the
// delete of its original.
func (f *facts) cutShort(n int) (count int) {
	ids := map[string]bool{f.r.sent[n].id: true}
	for _, r := range f.byMessage[n] {
		ids[r.id] = true
	}
	for _, g := range f.r.gone {
		ids[g.id] = ids[g.id] || g.message == n
	}
	for _, m := range f.left[n] {
		ids[m.ID] = true
	}
	for _, l := range f.r.processes {
		for _, r := range []*reprise.Report{l.report, l.laneReport} {
			if r == nil {
				continue
			}
			for _, id := range slices.Concat(r.Unsettled, r.Abandoned) {
				count += b2i(ids[id])
			}
		}
	}
	return count
}

// shortLeases reports whether SQS takes too long for the leases: "give Lease ten times as long as SQS takes to answer, or more". A
// function has no more time than its timeout.
func (f *facts) shortLeases() bool {
	if f.calm {
		return false
	}
	needed := 10 * f.s.Latency
	for _, s := range f.s.Faults {
		if s.Kind == sqsserver.FaultSlowReply && s.Action != "GetQueueAttributes" { // a heartbeat goes out half-way
			needed = max(needed, 2*s.Delay)
		}
	}
	return slices.ContainsFunc(f.r.processes, func(l *life) bool {
		return needed > cmp.Or(l.settings.Lease, time.Minute) || l.settings.Lambda && needed > l.settings.timeout()
	})
}

// lostInTime reports whether leases were too short for SQS's replies, and message n was lost for it, or by a function, which does not say.
func (f *facts) lostInTime(n int) bool {
	return f.shortLeases() && (f.anyLambda() || slices.ContainsFunc(f.r.settled, func(s settled) bool { return s.message == n && s.outcome == reprise.OutcomeLost }))
}

// leasesLost returns how often a process of several has lost its lease on message n: another may have received it then.
func (f *facts) leasesLost(n int) (count int) {
	for _, s := range f.r.settled {
		count += b2i(s.message == n && s.outcome == reprise.OutcomeLost && (len(f.r.processes) > 1 || f.anyLambda()))
	}
	return count
}
