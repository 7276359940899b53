package stranger_test

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/retry"
)

// storiesAreTrue holds that a dead letter says what happened.
func storiesAreTrue(f *facts) (how []string) {
	for n, letters := range f.letters {
		if n < 0 || n >= len(f.s.Messages) || f.s.Messages[n].Forged != notForged {
			continue
		}
		for _, letter := range letters {
			read := f.r.readings[letter.ID]
			if read.err != nil {
				// "if ten are used, a copy or dead letter goes without the attribute that Reprise would add"
				if m := f.s.Messages[n]; letter.Source == "" && m.Attributes < 10 && m.Size < 1<<19 {
					how = append(how, fmt.Sprintf("%s has a dead letter without a story (%v), and SQS has not moved it", f.name(n), read.err))
				}
				continue
			}
			if v, one := f.version(); one && (f.calm || !v.Signed) && read.trusted != v.Signed {
				how = append(how, fmt.Sprintf("%s: the story is trusted: %v, and consumers sign: %v", f.name(n), read.trusted, v.Signed))
			}
			for _, lie := range f.lies(n, read.story) {
				how = append(how, fmt.Sprintf("%s: the story says %+v, but %s", f.name(n), read.story, lie))
			}
		}
	}
	return how
}

// lies returns what is not true of a story.
func (f *facts) lies(n int, story reprise.Story) (lies []string) {
	runs := f.byMessage[n]
	ended := func(results ...result) bool {
		return slices.ContainsFunc(runs, func(r *run) bool { return r.done && slices.Contains(results, r.result) })
	}
	made := 0
	var last *run
	for _, r := range runs {
		if made += b2i(r.counted()); r.counted() {
			last = r
		}
	}
	// A history whose time is minutes from SQS's, by clocks that differ unknown to the process, is not taken for a consumer's own.
	clocks := len(f.s.Jumps) == 0 || f.knownSkew()
	if clocks && story.Source != f.r.queueARN && story.Source != f.r.queueURL && !(f.anyLambda() && len(f.s.Faults) > 0 && story.Source == f.r.urlInEvents()) {
		lies = append(lies, "its queue is "+f.r.queueARN)
	}
	if clocks && f.r.sent[n].id != "" && len(f.unanswered[n]) == 0 && story.Origin != f.r.sent[n].id {
		lies = append(lies, "it was sent as "+f.r.sent[n].id)
	}
	switch story.Reason {
	case retry.ReasonPermanent.String():
		if !ended(permanent) {
			lies = append(lies, "no handler returned Permanent")
		}
	case retry.ReasonAttempts.String(), retry.ReasonAge.String(), retry.ReasonSkip.String():
		// "a process that has not seen it ... may count a message's first release as one"
		if ended(release) && len(f.r.processes) > 1 {
			break
		}
		if !ended(fail, failRule, retryAfter, panics, unavailable, timeout) && !f.interruptedRuns(n) && !f.estimated() && !f.lostInTime(n) {
			lies = append(lies, "no run of it has failed")
		}
	case retry.ReasonCrash.String():
		outlived := slices.ContainsFunc(f.r.runs, func(r *run) bool { // its function: to SQS a crash
			return r.invocation != nil && !r.done && slices.Contains(slices.Collect(maps.Values(r.invocation.messages)), n)
		})
		if len(f.crashes) == 0 && len(f.s.Faults) == 0 && !outlived && !f.lostInTime(n) {
			lies = append(lies, "no process has crashed")
		}
	}
	// A process that has not seen the runs can only say that they are used up.
	unseen := len(f.r.processes) > 1 && contains(story.Error, "were used up before this receive")
	heard := f.calm && !unseen || story.Reason == retry.ReasonPermanent.String() || story.Reason == retry.ReasonSkip.String()
	ran := story.Attempts > 0 || made > 0 && len(f.r.processes) == 1 || story.Reason == retry.ReasonPermanent.String() || story.Reason == retry.ReasonSkip.String()
	if heard && ran && story.Error != "" && !slices.ContainsFunc(runs, func(r *run) bool { return sameError(r.err, story.Error) }) {
		lies = append(lies, "no run ended with this error")
	}
	v, one := f.version()
	if f.calm && one && !f.s.Queue.FIFO && f.exact(n, v) && last != nil {
		if story.Attempts != made && !(story.Attempts == made-1 && len(f.r.processes) > 1 && story.Reason == retry.ReasonAge.String() && f.cutByAge(last, v)) {
			lies = append(lies, fmt.Sprintf("%d attempts were made", made))
		}
		if most := f.maxAttempts(v); story.Reason == retry.ReasonAttempts.String() && made != most {
			lies = append(lies, fmt.Sprintf("%d attempts of %d were made", made, most))
		}
		// A release after the last attempt is an error too.
		if !unseen && !slices.ContainsFunc(runs, func(r *run) bool { return r.began >= last.began && sameError(r.err, story.Error) }) {
			lies = append(lies, fmt.Sprintf("the last error was %q", last.err))
		}
	}
	return lies
}

// urlInEvents is the URL that a function makes of its queue's ARN: Story.Source, where the queue's attributes cannot be read.
func (r *record) urlInEvents() string {
	part := strings.Split(r.queueARN, ":")
	return "https://sqs." + part[3] + ".amazonaws.com/" + part[4] + "/" + part[5]
}

func sameError(err, told string) bool {
	return told != "" && (err == told || len(told) >= 8 && len(err) > 0 && (contains(err, told) || contains(told, err)))
}

func (f *facts) interruptedRuns(n int) bool {
	return slices.ContainsFunc(f.byMessage[n], func(r *run) bool { return r.interrupted || !r.done })
}

// contentIsKept holds that handlers get what was sent, from copies too, and that dead letters have it.
func contentIsKept(f *facts) (how []string) {
	for _, r := range f.r.runs {
		if r.message < 0 || !r.contentOK {
			how = append(how, fmt.Sprintf("run of %s, as %s at %v: body or attributes differ from what was sent", f.name(r.message), r.id, r.began))
		}
	}
	for _, letter := range f.r.letters {
		if read := f.r.readings[letter.ID]; !read.contentOK && !errors.Is(read.err, errNotReceived) {
			how = append(how, fmt.Sprintf("the dead letter %s of %s: body or attributes differ from what was sent", letter.ID, f.name(number(letter.Body))))
		}
	}
	return how
}

// neverEarly holds that no run comes before the time that the attempt before it has announced, where no
// other process can take the message from a lease that SQS has broken.
func neverEarly(f *facts) (how []string) {
	leaps := slices.ContainsFunc(f.s.Jumps, func(j jump) bool { return j.At > 0 })
	alone := len(f.r.processes) == 1 && !(f.anyLambda() && len(f.s.Faults)+len(f.s.Jumps) > 0) && len(f.s.Acts) == 0 && len(f.s.Outages) == 0 && !f.anyResult(unavailable, timeout)
	if !f.calm && !alone {
		return nil
	}
	for _, a := range f.r.attempts {
		if a.outcome != reprise.OutcomeRetry || a.due == 0 || a.message < 0 || f.s.Messages[a.message].Forged != notForged || len(f.unanswered[a.message]) > 0 {
			continue
		}
		var next *run
		for _, r := range f.byMessage[a.message] {
			if r.began >= a.ended && r.nth > 0 && (next == nil || r.began < next.began) && r.began > a.at-1 && r.attempt != a.n {
				next = r
			}
		}
		wait := a.due - a.ended
		allowed := time.Duration(0)
		if wait > 11*time.Hour {
			allowed = retry.AllowedShortfall(wait)
		}
		if leaps && next != nil && next.id != a.id {
			continue // a copy, which is due by SQS's clock
		}
		if next != nil && next.began < a.due-allowed {
			how = append(how, fmt.Sprintf("%s: attempt %d ended at %v and said that it is due at %v, and attempt %d began at %v", f.name(a.message), a.n, a.ended, a.due, next.attempt, next.began))
		}
	}
	return how
}

func (f *facts) anyResult(results ...result) bool {
	return slices.ContainsFunc(f.r.runs, func(r *run) bool { return slices.Contains(results, r.result) })
}

// scheduleIsShown holds that package retry computes the same times as the consumers.
func scheduleIsShown(f *facts) (how []string) {
	v, one := f.version()
	if !f.calm || !one || f.s.Queue.FIFO {
		return nil
	}
	p := v.policy()
	p.MaxAttempts = f.maxAttempts(v)
	if v.Rule {
		p.Rules = []retry.Rule{retry.On(errFailRule, retry.Constant(time.Second), retry.None)}
	}
	for _, a := range f.r.attempts {
		if a.outcome != reprise.OutcomeRetry && a.outcome != reprise.OutcomeDeadLetter || a.reason == retry.ReasonRetention || a.reason == retry.ReasonReceives {
			continue
		}
		got := retry.ActionRetry
		if a.outcome == reprise.OutcomeDeadLetter {
			got = retry.ActionDeadLetter
		}
		var d retry.Decision
		same := false
		for _, skew := range f.skews() {
			if d = p.Decide(retry.Failure{N: a.n, Seed: a.origin, Sent: a.sent, First: a.first, Ended: f.r.began.Add(a.ended + skew), Err: a.err}); d.Action == got {
				same = got != retry.ActionRetry || f.r.since(d.At)-skew == a.due
			}
			if same {
				break
			}
		}
		if !same {
			how = append(how, fmt.Sprintf("%s: attempt %d ended at %v as %v (%v), due at %v, and the policy says %v (%v) at %v",
				f.name(a.message), a.n, a.ended, a.outcome, a.reason, a.due, d.Action, d.Reason, f.r.since(d.At)))
		}
	}
	return how
}

// skews are the differences of the clocks that a process may know: a Date header counts whole seconds, and a small difference
// may be no error of a clock.
func (f *facts) skews() []time.Duration {
	by := f.s.skew()
	if by == 0 {
		return []time.Duration{0}
	}
	all := []time.Duration{by, by - time.Second, by + time.Second}
	if by < 5*time.Second {
		all = append(all, 0)
	}
	return all
}

// until returns when a run was over, for what it could disturb.
func (f *facts) until(r *run) time.Duration {
	if !r.done {
		if in := r.invocation; in != nil {
			return max(r.began, cmp.Or(in.died, in.ended, f.r.over))
		}
		if l := f.r.processes[r.process]; l.crashed {
			return max(r.began, l.until)
		}
		return cmp.Or(r.ended, f.r.over)
	}
	return r.ended
}

// oneAtATime holds that no message runs twice at once, in one process, and in calm anywhere.
func oneAtATime(f *facts) (how []string) {
	for n := range f.s.Messages {
		runs := f.byMessage[n]
		for i, a := range runs {
			for _, b := range runs[i+1:] {
				same := a.process == b.process && a.id == b.id && (a.invocation == b.invocation || len(f.s.Faults)+len(f.s.Jumps) == 0)
				if (same || f.calm) && a.began < f.until(b) && b.began < f.until(a) {
					how = append(how, fmt.Sprintf("%s ran in process %d from %v to %v, and in process %d from %v", f.name(n), a.process, a.began, f.until(a), b.process, b.began))
				}
			}
		}
	}
	return how
}

// withinConcurrency holds that no more handlers run at once than the settings permit.
func withinConcurrency(f *facts) (how []string) {
	if len(f.s.Acts) > 0 {
		return nil
	}
	for p, l := range f.r.processes {
		if l.settings.Batch || l.settings.Lambda {
			continue
		}
		type edge struct {
			at   time.Duration
			step int
		}
		var edges []edge
		for _, r := range f.r.runs {
			if r.process == p && f.until(r) > r.began {
				edges = append(edges, edge{r.began, 1}, edge{f.until(r), -1})
			}
		}
		slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.step, b.step)) })
		running := 0
		for _, e := range edges {
			if running += e.step; running > l.settings.handlers() {
				how = append(how, fmt.Sprintf("process %d ran %d handlers at %v, and may run %d", p, running, e.at, l.settings.handlers()))
				break
			}
		}
	}
	return how
}

// inOrder holds that messages of a FIFO group run in the order in which they were sent.
func inOrder(f *facts) (how []string) {
	if !f.s.Queue.FIFO || !f.calm || f.anyBatch() {
		return nil
	}
	for a := range f.s.Messages {
		for b := range f.s.Messages {
			ma, mb := f.s.Messages[a], f.s.Messages[b]
			if ma.Group != mb.Group || !(ma.At < mb.At || ma.At == mb.At && a < b) || len(f.byMessage[a])*len(f.byMessage[b]) == 0 {
				continue
			}
			last, first := f.byMessage[a][len(f.byMessage[a])-1], f.byMessage[b][0]
			if f.s.byServer(first.began) >= f.r.since(last.sent)+f.s.shortest() {
				continue // "the queue drops what is in flight too"
			}
			if first.began < f.until(last) && !(last.batch && first.batch && first.began == last.began) {
				how = append(how, fmt.Sprintf("%s began at %v, and %s before it in the group ran until %v", f.name(b), first.began, f.name(a), f.until(last)))
			}
		}
	}
	return how
}

// withinRate holds that handlers do not start faster than the settings permit.
func withinRate(f *facts) (how []string) {
	if len(f.s.Acts) > 0 {
		return nil
	}
	for p, l := range f.r.processes {
		if l.settings.Rate == 0 || l.settings.Lambda || l.settings.Lane || l.settings.Batch {
			continue
		}
		var starts []time.Duration
		for _, r := range f.r.runs {
			if r.process == p {
				starts = append(starts, r.began)
			}
		}
		slices.Sort(starts)
		for i := range starts {
			for j := i + 1; j < len(starts); j++ {
				allowed := 1 + l.settings.Rate*(starts[j]-starts[i]+10*time.Millisecond).Seconds()
				if float64(j-i) > allowed {
					return []string{fmt.Sprintf("process %d started %d handlers from %v to %v, and may start %v a second", p, j-i+1, starts[i], starts[j], l.settings.Rate)}
				}
			}
		}
	}
	return how
}

// timeoutsHold holds that the context of a run ends with HandlerTimeout.
func timeoutsHold(f *facts) (how []string) {
	for _, r := range f.r.runs {
		v := f.r.processes[r.process].settings
		if v.HandlerTimeout == 0 || v.Lambda || r.batch || r.step.Ignores || !r.done {
			continue
		}
		if r.ended-r.began > v.HandlerTimeout {
			how = append(how, fmt.Sprintf("a run of %s took %v, and its context should have ended after %v", f.name(r.message), r.ended-r.began, v.HandlerTimeout))
		}
	}
	return how
}

// leasesHoldInCalm holds that a handler keeps its message as long as it runs, up to the twelve hours of SQS.
func leasesHoldInCalm(f *facts) (how []string) {
	if !f.calm {
		return nil
	}
	for _, r := range f.r.runs {
		if f.s.byServer(f.until(r)) >= f.r.since(r.sent)+f.s.shortest() {
			return nil // the queue drops what is in flight too
		}
	}
	for _, r := range f.r.runs {
		if r.cause == "lease lost" && r.ended-r.began < 11*time.Hour {
			how = append(how, fmt.Sprintf("a run of %s lost its lease after %v, and nothing was wrong", f.name(r.message), r.ended-r.began))
		}
	}
	for p, l := range f.r.processes {
		if l.report != nil && l.report.Counts.LeasesEnded+l.report.Counts.LateHeartbeats > 0 && !f.longRuns() {
			how = append(how, fmt.Sprintf("process %d counts %d leases that ended and %d late heartbeats, and nothing was wrong", p, l.report.Counts.LeasesEnded, l.report.Counts.LateHeartbeats))
		}
	}
	return how
}

// heldUntil is when the handler that r is a part of has ended: a batch's verdicts come at its end.
func (f *facts) heldUntil(r *run) time.Duration {
	until := f.until(r)
	for _, other := range f.r.runs {
		if r.batch && other.batch && other.process == r.process && other.began == r.began {
			until = max(until, f.until(other))
		}
	}
	return until
}

func (f *facts) longRuns() bool { return f.runLongerThan(10 * time.Hour) }

// runLongerThan reports whether a handler ran for longer than d. For fifteen minutes: "no handler has ended ..." if they have all places.
func (f *facts) runLongerThan(d time.Duration) bool {
	return slices.ContainsFunc(f.r.runs, func(r *run) bool { return f.until(r)-r.began > d })
}

// givenUpStays holds that a message that was given up does not run again in the same process.
func givenUpStays(f *facts) (how []string) {
	for _, a := range f.r.attempts {
		if a.reason != retry.ReasonPermanent || f.r.processes[a.process].settings.Lambda || a.message < 0 || f.s.Messages[a.message].Forged != notForged {
			continue
		}
		for _, r := range f.byMessage[a.message] {
			if r.process == a.process && r.id == a.id && r.began > a.at {
				how = append(how, fmt.Sprintf("%s was given up by process %d at %v, and ran there again at %v", f.name(a.message), a.process, a.at, r.began))
				break
			}
		}
	}
	return how
}
