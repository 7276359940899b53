package stranger_test

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/reprise-sqs/reprise"
)

func (f *facts) anyLambda() bool {
	return slices.ContainsFunc(f.r.processes, func(l *life) bool { return l.settings.Lambda })
}

// endableByLambda reports whether each message ends although invocations share nothing: "On FIFO queues ... every attempt counts as
// the first", and "A message that is given up but that no dead-letter queue accepts runs again when it comes back".
func (f *facts) endableByLambda() bool {
	for i := range f.s.Messages {
		m := &f.s.Messages[i]
		last := m.step(1 << 30)
		if last.Result != succeed || m.Forged == plausible {
			return false
		}
		for _, l := range f.r.processes {
			if v := l.settings; v.Lambda && 2*last.Takes > v.timeout() || !v.Lambda && v.HandlerTimeout > 0 && !v.OutageOff {
				return false
			}
		}
	}
	return !f.anyBatch() // of a batch all messages have one time
}

// runsOf returns the runs of an invocation, in the order of their beginnings.
func (f *facts) runsOf(in *invocation) (all []*run) {
	for _, r := range f.r.runs {
		if r.invocation == in {
			all = append(all, r)
		}
	}
	return all
}

// copiedIn reports whether SQS has accepted a copy or a dead letter of message n during an invocation.
func (f *facts) copiedIn(in *invocation, n int) bool {
	return slices.ContainsFunc(f.r.copies, func(c copied) bool {
		return c.message == n && c.process == in.process && c.accepted && c.at >= in.began && c.at <= in.ended
	})
}

// repliesAreRight holds that a function's reply names what must come again, and nothing else.
func repliesAreRight(f *facts) (how []string) {
	for _, in := range f.r.invocations {
		if in.ended == 0 {
			continue
		}
		wrong := func(format string, args ...any) {
			how = append(how, fmt.Sprintf("invocation at %v: ", in.began)+fmt.Sprintf(format, args...))
		}
		if in.err != nil {
			wrong("it failed with %v", in.err)
			continue
		}
		for i, id := range in.named {
			if _, there := in.messages[id]; !there || slices.Contains(in.named[:i], id) {
				wrong("the reply names %s, which is not in the event, or twice", id)
			}
		}
		succeeded := make(map[string]bool)
		late := false
		for _, r := range f.runsOf(in) {
			late = late || r.batch && !r.done
			if r.done && !r.interrupted && r.result == succeed {
				succeeded[r.id] = true
			}
		}
		for id, n := range in.messages {
			named := slices.Contains(in.named, id)
			switch {
			case succeeded[id] && named && late: // the verdicts on the batch came when the invocation was over
			case succeeded[id] && named && !(f.s.Queue.FIFO && f.r.processes[in.process].settings.Batch): // behind a failure verdicts are ignored
				wrong("%s succeeded, and the reply names it", f.name(n))
			case !succeeded[id] && !named && !f.copiedIn(in, n):
				wrong("%s did not succeed, no copy of it was accepted, and the reply does not name it", f.name(n))
			}
		}
	}
	return how
}

// deadlinesHold holds that a function leaves time to settle, runs no more handlers at once than it may, and replies in time.
func deadlinesHold(f *facts) (how []string) {
	for _, in := range f.r.invocations {
		v := f.r.processes[in.process].settings
		end := in.deadline - min(3*time.Second, v.timeout()/4)
		runs := f.runsOf(in)
		ignored := slices.ContainsFunc(runs, func(r *run) bool { return r.step.Ignores || r.step.Result == kill })
		running, most := 0, 0
		var ends []time.Duration
		for _, r := range runs {
			if r.began > end {
				how = append(how, fmt.Sprintf("invocation at %v: a run of %s began at %v, and contexts end at %v", in.began, f.name(r.message), r.began, end))
			}
			if r.done && !r.step.Ignores && !(r.batch && ignored) && r.ended > end { // of a batch one run waits for the one before
				how = append(how, fmt.Sprintf("invocation at %v: the context of %s ended at %v, and should have at %v", in.began, f.name(r.message), r.ended, end))
			}
			ends = slices.DeleteFunc(ends, func(t time.Duration) bool { return t <= r.began })
			running = len(ends)
			if until := cmp.Or(r.ended, in.deadline); until > r.began {
				ends = append(ends, until)
				most = max(most, running+1)
			}
		}
		if limit := cmp.Or(v.Concurrency, 10); most > limit && !v.Batch {
			how = append(how, fmt.Sprintf("invocation at %v: %d handlers ran at once, and %d may", in.began, most, limit))
		}
		if in.died >= in.deadline && !ignored && f.s.Latency < 10*time.Millisecond && len(f.s.Faults) == 0 {
			how = append(how, fmt.Sprintf("invocation at %v: it had not replied at %v, and no handler ignores the end of its context", in.began, in.deadline))
		}
	}
	return how
}

// groupsStop holds that nothing of a FIFO group runs behind a message that comes again, in one invocation.
func groupsStop(f *facts) (how []string) {
	if !f.s.Queue.FIFO {
		return nil
	}
	for _, in := range f.r.invocations {
		if f.r.processes[in.process].settings.Batch {
			continue
		}
		failed := make(map[string]*run)
		for _, r := range f.runsOf(in) {
			if before := failed[r.group]; before != nil {
				how = append(how, fmt.Sprintf("invocation at %v: %s ran at %v, behind %s of its group, which had failed at %v", in.began, f.name(r.message), r.began, f.name(before.message), before.ended))
			}
			again := slices.ContainsFunc(f.r.attempts, func(a attempt) bool {
				return a.id == r.id && a.process == r.process && a.at >= r.ended && a.at <= r.ended+time.Second && (a.outcome == reprise.OutcomeRetry || a.outcome == reprise.OutcomeRelease)
			})
			if r.done && r.result != succeed && again {
				failed[r.group] = r
			}
		}
	}
	return how
}
