package stranger_test

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// notLost holds that every message that SQS has accepted was handled, dead-lettered, is still in its queue,
// or was announced to expire.
func notLost(f *facts) (how []string) {
	for n := range f.s.Messages {
		if f.r.sent[n].err != nil || !f.r.sent[n].done || f.r.cut && f.r.sent[n].at >= f.r.over { // no process was left for it
			continue
		}
		announced := slices.ContainsFunc(f.r.expiring, func(e expiring) bool { return e.message == n })
		if f.successes(n) > 0 || len(f.letters[n])+len(f.left[n]) > 0 || announced || f.expiredUnseen(n) || f.killsWithoutEnd(n) || f.behindKept(n) || f.toldLost(n) {
			continue
		}
		how = append(how, fmt.Sprintf("%s was neither handled nor dead-lettered, is not in its queue, and nobody announced that it would expire", f.name(n)))
	}
	return how
}

// toldLost reports whether a process has said that it held message n, and lost it, when it expired or so shortly before that its
// lease kept it hidden until then: Counts.Lost, Observer.Settled, or Report.Unsettled and Report.Abandoned.
func (f *facts) toldLost(n int) bool {
	expires := f.s.expires(f.s.byServer(f.r.sent[n].at))
	hidden := func(l *life) time.Duration { return max(cmp.Or(l.settings.Lease, time.Minute), 10*time.Minute) }
	for _, l := range f.r.processes {
		if l.report != nil && l.until > expires-hidden(l) && slices.Contains(slices.Concat(l.report.Unsettled, l.report.Abandoned), f.r.sent[n].id) {
			return true
		}
	}
	return slices.ContainsFunc(f.r.settled, func(s settled) bool {
		lease := cmp.Or(f.r.processes[s.process].settings.Lease, time.Minute)
		return s.message == n && s.outcome == reprise.OutcomeLost && s.at > expires-max(lease, time.Minute)
	})
}

// killsWithoutEnd reports whether message n has killed every process that ran it: none could announce anything.
func (f *facts) killsWithoutEnd(n int) bool {
	return slices.ContainsFunc(f.s.Messages[n].Steps, func(s step) bool { return s.Result == kill })
}

// longestLease returns how long the messages of a killed process stay hidden at most.
func (f *facts) longestLease() (longest time.Duration) {
	for _, l := range f.r.processes {
		longest = max(longest, cmp.Or(l.settings.Lease, time.Minute))
	}
	return longest
}

// behindKept reports whether a message of n's group was hidden until the queue drops it, because there is no dead-letter
// queue: "its group waits with it".
func (f *facts) behindKept(n int) bool {
	group := func(m int) bool { return m >= 0 && f.s.Messages[m].Group == f.s.Messages[n].Group }
	return f.s.Queue.FIFO && (slices.ContainsFunc(f.r.expiring, func(e expiring) bool { return group(e.message) }) ||
		slices.ContainsFunc(f.r.settled, func(s settled) bool { return group(s.message) && s.outcome == reprise.OutcomeKeep }))
}

// expiredUnseen reports whether message n expired and no consumer could know: it was never received, or
// a change or a fault had kept the consumers from knowing the retention.
func (f *facts) expiredUnseen(n int) bool {
	shortest := f.s.shortest()
	if sent := f.r.sent[n]; !f.r.known[sent.id] && f.s.byServer(sent.at)+shortest <= f.s.byServer(f.r.over) {
		return true // no receive has brought it
	}
	for _, g := range f.r.gone {
		old := f.r.since(g.sent)+shortest <= f.s.byServer(g.at)
		if g.message != n || !old {
			continue
		}
		if !g.received || g.visible { // it waited in its queue, and no process held it or hid it
			return true
		}
		if slices.ContainsFunc(f.s.Jumps, func(j jump) bool { return f.s.byServer(j.At) >= f.r.since(g.sent) || !f.knownSkew() }) {
			return true // the clock by which it expires was not the one that the processes knew
		}
		expires := f.s.expires(f.r.since(g.sent))
		if !slices.ContainsFunc(f.r.processes, func(l *life) bool {
			return l.from < expires && (l.until == 0 || l.until > expires || l.stopped == f.r.over)
		}) {
			return true // no process lived then
		}
		if slices.ContainsFunc(f.r.invocations, func(in *invocation) bool {
			hidden := cmp.Or(in.ended, in.died, f.r.over) + 6*f.r.processes[in.process].settings.timeout()
			_, had := in.messages[g.id]
			return had && in.began < expires && hidden > expires
		}) {
			return true // "After a crash or a timeout of the function this is the wait, whatever the policy says"
		}
		hidden := max(f.longestLease(), 10*time.Minute) // "or up to 10 minutes behind a handler that has run for longer than Lease"
		if len(f.crashes) > 0 && f.longestLease() > shortest/2 || slices.ContainsFunc(f.crashes, func(at time.Duration) bool { return at < expires && at+hidden > expires }) {
			return true // "If the process is killed, the messages that it held stay hidden until their leases end"
		}
		if slices.ContainsFunc(f.byMessage[n], func(r *run) bool { return f.heldUntil(r) > expires-10*time.Second }) {
			return true // it expired while it was handled, or settled: that is counted as lost
		}
		for _, c := range f.s.Changes { // "takes effect in 12.5 minutes at most"
			if c.Retention > 0 && g.from <= c.At+12*time.Minute+30*time.Second {
				return true
			}
		}
		if slices.ContainsFunc(f.s.Faults, func(s spell) bool {
			lost := s.Kind == sqsserver.FaultLoseReply || s.Kind == sqsserver.FaultSlowReply
			return lost && !s.DeadLetters && (s.Action == "" || s.Action == "ReceiveMessage") && s.When.From < expires && s.When.Until+f.longestLease() > expires
		}) {
			return true // a receive whose reply is lost hides it for a whole lease
		}
		if f.anyLambda() && f.shortLeases() {
			return true // its function has no time to settle it
		}
		// "As long as no reading has succeeded, the retention is not known, and a wait of more than 15 minutes is ..."
		if len(f.s.Faults) > 0 && shortest < 15*time.Minute {
			return true
		}
	}
	return false
}

// endsInTime holds that everything ends within what the policies allow, if a process lives that can end it.
func endsInTime(f *facts) []string {
	alive := slices.ContainsFunc(f.r.processes, func(l *life) bool { return !l.crashed && l.stopped == f.r.over })
	if f.r.inTime || f.r.cut || !alive || endsBy(f.s) > mostPatience || !f.endable() {
		return nil
	}
	var what []string
	for n := range f.s.Messages {
		if f.behindKept(n) {
			continue
		}
		for _, m := range f.left[n] {
			if slices.ContainsFunc(f.r.settled, func(s settled) bool { return s.id == m.ID && s.outcome == reprise.OutcomeKeep }) {
				continue // it is given up, and its queue has no dead-letter queue: a lane may outlast its queue's retention
			}
			what = append(what, fmt.Sprintf("%s is still %s, due at %v, at %v", f.name(n), m.State, f.r.since(m.Due), f.r.over))
		}
	}
	return what
}

// endable reports whether each message ends at all.
func (f *facts) endable() bool {
	kept := make(map[string]bool)
	for _, s := range f.r.settled {
		if s.outcome == reprise.OutcomeKeep {
			kept[s.id] = true
		}
	}
	if limit := f.s.Queue.InFlightLimit; limit > 0 && len(kept) >= limit && f.s.longest() >= 3*time.Hour {
		return false // what no dead-letter queue accepts is in flight until it expires, and may use up the quota
	}
	if len(f.s.Jumps) > 0 && !f.knownSkew() {
		return false // a process that does not know SQS's clock takes no history for a consumer's own, and counts from one
	}
	if f.anyLambda() {
		return f.endableByLambda()
	}
	if f.s.longest() < 3*time.Hour && f.s.Queue.MaxReceives == 0 && !f.s.Queue.SeparateDeadLetters {
		return true
	}
	for _, m := range f.s.Messages {
		switch m.step(1 << 30).Result {
		case release, retryAfter, kill, unavailable:
			return false
		}
		if m.Forged == plausible {
			return false // "can delay its own message, for a year at most"
		}
	}
	for _, l := range f.r.processes {
		if l.settings.HandlerTimeout > 0 && !l.settings.OutageOff { // timeouts alone are an outage
			return false
		}
	}
	return true
}

// onceInCalm holds that where nothing goes wrong, each message ends once.
func onceInCalm(f *facts) (how []string) {
	if !f.calm || f.s.Queue.FIFO && f.anyBatch() { // "the messages of its group behind it run again"
		return nil
	}
	for n := range f.s.Messages {
		successes := f.successes(n)
		if ends := successes + len(f.letters[n]) + len(f.left[n]); ends > 1 {
			how = append(how, fmt.Sprintf("%s was handled %d times, has %d dead letters, and is %d times in its queue", f.name(n), successes, len(f.letters[n]), len(f.left[n])))
		}
	}
	return how
}

// attemptsInCalm holds that runs are numbered as they are made, and limited, where nothing goes wrong.
func attemptsInCalm(f *facts) (how []string) {
	v, one := f.version()
	if !f.calm || !one || f.s.Queue.FIFO && (v.Batch || len(f.r.processes) > 1) {
		return nil
	}
	for n := range f.s.Messages {
		if !f.exact(n, v) {
			continue
		}
		made := 0
		for _, r := range f.byMessage[n] {
			if r.attempt != made+1 && !(r.attempt == made && len(f.r.processes) > 1 && f.cutByAge(r, v)) {
				how = append(how, fmt.Sprintf("%s: a run after %d others, at %v, was attempt %d, receive %d", f.name(n), made, r.began, r.attempt, r.receives))
				break
			}
			made += b2i(r.counted())
		}
		if most := f.maxAttempts(v); most > 0 && made > most {
			how = append(how, fmt.Sprintf("%s was run %d times, and its policy allows %d", f.name(n), made, most))
		}
	}
	return how
}

// cutByAge reports whether the wait before a run can have been cut short by MaxAge: another process counts waits "only as far as the
// policy's own waits fit" (retry.Policy.Attempts), so that the last attempt has the number of the one before.
func (f *facts) cutByAge(r *run, v settings) bool {
	age := v.policy().MaxAge
	from := min(f.r.since(r.first), f.r.since(r.sent)) - f.s.skew()
	return age > 0 && r.began-from >= age*8/10
}

// exact reports whether the documents promise exact numbers for message n: not across processes where
// a handler shortens a wait, releases, or where one process alone knows the end of a wait.
func (f *facts) exact(n int, v settings) bool {
	if len(f.r.processes) == 1 {
		return true
	}
	p := v.policy()
	for i := range f.s.Messages[n].Steps {
		st := f.s.Messages[n].Steps[i]
		if st.Result == release || st.Result == retryAfter || st.Wait > 11*time.Hour && v.Via == reprise.ViaVisibility {
			return false
		}
		if _, longest := p.Bounds(i + 1); longest > 11*time.Hour && v.Via == reprise.ViaVisibility {
			return false
		}
	}
	return true
}

// innocentsLive holds that a message whose runs all succeed is not given up.
func innocentsLive(f *facts) (how []string) {
	for n := range f.s.Messages {
		m := &f.s.Messages[n]
		if !m.innocent() || slices.ContainsFunc(f.byMessage[n], func(r *run) bool { return r.result != succeed }) {
			continue
		}
		for _, letter := range f.letters[n] {
			story := f.r.readings[letter.ID]
			switch {
			case f.shortLeases():
				continue // leases are lost all the time
			case story.err == nil && story.story.Reason == retry.ReasonCrash.String() && len(f.crashes) >= 2:
				continue // "If a process dies twice in a row this way": bad luck
			case story.err == nil && story.story.Reason == retry.ReasonCrash.String() && (f.has(sqsserver.FaultStaleHandle) || f.has(sqsserver.FaultLoseDelete) && f.successes(n) > 0) && len(f.r.processes) > 1:
				continue // SQS refuses every settlement, or confirms deletes that it does not make: to the other processes none of its receives has an outcome
			case story.err == nil && slices.Contains([]string{retry.ReasonAge.String(), retry.ReasonAttempts.String()}, story.story.Reason) && f.estimated():
				continue // its receives were taken for attempts
			case story.err != nil && letter.Source == "" && (m.Attributes >= 10 || m.Size > 1<<20-2000) && !f.calm:
				continue // no copy of it is possible, nor a story: a stop at its last receive gives it up
			case story.err == nil && story.story.Reason == retry.ReasonRetention.String() && (f.s.Queue.FIFO || f.s.shortest() < 15*time.Minute && f.troubled(f.r.sent[n].at, f.r.since(letter.Sent))):
				continue // it had to wait, behind another or for what was down, until the end of the retention
			case story.err == nil && story.story.Reason == retry.ReasonReceives.String() && !f.calm && (f.s.Queue.FIFO || f.anyVia(reprise.ViaVisibility) || m.Attributes >= 10 || m.Size > 1<<20-2000):
				continue // "at the last permitted receive they are dead-lettered with the reason receives"
			case story.err != nil && f.anyLambda():
				continue // messages that are not begun come back at once, and SQS counts their receives
			case story.err != nil && (len(f.s.Faults)+len(f.crashes)+len(f.s.Changes)+len(f.s.Jumps) > 0 || !f.calm && (f.s.Queue.FIFO || f.anyVia(reprise.ViaVisibility))):
				continue // SQS has moved it, after receives that no consumer has seen
			}
			how = append(how, fmt.Sprintf("%s, whose runs all succeed (%d of them), has a dead letter: story %+v (%v), receives %d", f.name(n), len(f.byMessage[n]), story.story, story.err, letter.Receives))
		}
	}
	return how
}

func (f *facts) anyVia(via reprise.Via) bool {
	return slices.ContainsFunc(f.r.processes, func(l *life) bool { return l.settings.Via == via })
}

func (f *facts) anyBatch() bool {
	return slices.ContainsFunc(f.r.processes, func(l *life) bool { return l.settings.Batch })
}

// troubled reports whether anything kept a message waiting between two times, or shortly before.
func (f *facts) troubled(from, to time.Duration) bool {
	const recovery = 30 * time.Minute
	during := func(s span) bool { return s.From < to && s.Until+recovery > from }
	return slices.ContainsFunc(f.s.Outages, during) ||
		slices.ContainsFunc(f.s.Faults, func(s spell) bool { return during(s.When) }) ||
		slices.ContainsFunc(f.crashes, func(at time.Duration) bool { return at < to && at+recovery > from })
}
