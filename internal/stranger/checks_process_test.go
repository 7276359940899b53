package stranger_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise"
)

func contains(s, part string) bool { return strings.Contains(s, part) }

// senderIsHonest holds that the sender says of every message what became of it.
func senderIsHonest(f *facts) (how []string) {
	for n, s := range f.r.sent {
		there := len(f.byMessage[n]) + len(f.left[n]) + len(f.letters[n])
		switch {
		case !s.done && f.r.cut && f.s.Messages[n].At >= f.r.over: // it was not sent
		case !s.done:
			how = append(how, fmt.Sprintf("%s has no result", f.name(n)))
		case s.err == nil && s.id == "":
			how = append(how, fmt.Sprintf("%s is acknowledged without an id", f.name(n)))
		case s.err != nil && !s.unconfirmed && there > 0:
			how = append(how, fmt.Sprintf("%s failed with %q, which means that SQS does not have it, but it has", f.name(n), s.err))
		}
	}
	return how
}

// stopsInBudget holds that a stop ends within its budget, and names what it leaves.
func stopsInBudget(f *facts) (how []string) {
	for p, l := range f.r.processes {
		if l.report == nil {
			continue
		}
		budget := cmp.Or(l.settings.StopBudget, 25*time.Second)
		if took := l.until - l.stopped; took > budget {
			how = append(how, fmt.Sprintf("process %d took %v to stop, and had %v", p, took, budget))
		}
		if l.err != nil && !errors.Is(l.err, reprise.ErrDrainTimeout) {
			how = append(how, fmt.Sprintf("process %d ended with %v", p, l.err))
		}
		drained := l.report.Drained() && (l.laneReport == nil || l.laneReport.Drained())
		if l.err == nil && !drained {
			how = append(how, fmt.Sprintf("process %d: Run returned nil, and its report says %v", p, *l.report))
		}
		if want := 1 + b2i(l.laneReport != nil); len(l.events) != want {
			how = append(how, fmt.Sprintf("process %d: Observer.Stopped was called %d times for %d consumers", p, len(l.events), want))
		}
		abandoned := slices.Clone(l.report.Abandoned)
		if l.laneReport != nil {
			abandoned = append(abandoned, l.laneReport.Abandoned...)
		}
		for _, r := range f.r.runs {
			switch {
			case r.process != p:
			case r.began > l.until:
				how = append(how, fmt.Sprintf("process %d started a run of %s at %v, after Run had returned at %v", p, f.name(r.message), r.began, l.until))
			case f.until(r) > l.until && !slices.Contains(abandoned, r.id):
				how = append(how, fmt.Sprintf("process %d: the run of %s (%s) ended at %v, after Run had returned at %v, and is not among the abandoned %v", p, f.name(r.message), r.id, f.until(r), l.until, abandoned))
			}
		}
	}
	return how
}

// sum adds the counts of a process and its lane.
func (l *life) sum() (c reprise.Counts) {
	c = l.report.Counts
	if l.laneReport != nil {
		o := l.laneReport.Counts
		c.Received += o.Received
		c.Duplicates += o.Duplicates
		c.Attempts += o.Attempts
		c.Panics += o.Panics
		c.Deleted += o.Deleted
		c.Retried += o.Retried
		c.Released += o.Released
		c.Parked += o.Parked
		c.DeadLettered += o.DeadLettered
		c.Kept += o.Kept
		c.Lost += o.Lost
		c.Requeued += o.Requeued
		c.Expiring += o.Expiring
	}
	return c
}

// countsAddUp holds that a report counts what happened.
func countsAddUp(f *facts) (how []string) {
	for p, l := range f.r.processes {
		if l.report == nil {
			continue
		}
		c := l.sum()
		wrong := func(what string, counted int64, seen int) {
			if counted != int64(seen) {
				how = append(how, fmt.Sprintf("process %d counts %d %s, and there were %d", p, counted, what, seen))
			}
		}
		var runs, panicked, expiring, requeued int
		for _, r := range f.r.runs {
			if r.process == p && r.began <= l.until {
				runs++ // an abandoned one too
				panicked += b2i(r.result == panics && r.ended <= l.until)
			}
		}
		outcomes := make(map[reprise.Outcome]int)
		for _, s := range f.r.settled {
			if s.process == p && s.at <= l.until {
				outcomes[s.outcome]++
				requeued += b2i(s.requeued && s.outcome != reprise.OutcomeDeadLetter)
			}
		}
		for _, e := range f.r.expiring {
			expiring += b2i(e.process == p && e.at <= l.until)
		}
		wrong("messages received", c.Received, l.received)
		wrong("messages received, by the observer", c.Received, l.receivedEvents)
		wrong("duplicates, by the observer", c.Duplicates, l.duplicates)
		wrong("attempts", c.Attempts, runs)
		wrong("starts, by the observer", c.Attempts, l.starting)
		if len(l.report.Abandoned) == 0 && (l.laneReport == nil || len(l.laneReport.Abandoned) == 0) {
			wrong("attempts, by the observer", c.Attempts, l.attempted)
		}
		wrong("messages deleted", c.Deleted, outcomes[reprise.OutcomeDelete])
		wrong("messages retried", c.Retried, outcomes[reprise.OutcomeRetry])
		wrong("messages released", c.Released, outcomes[reprise.OutcomeRelease])
		wrong("messages parked", c.Parked, outcomes[reprise.OutcomePark])
		wrong("messages dead-lettered", c.DeadLettered, outcomes[reprise.OutcomeDeadLetter])
		wrong("messages kept", c.Kept, outcomes[reprise.OutcomeKeep])
		wrong("messages lost", c.Lost, outcomes[reprise.OutcomeLost])
		wrong("copies", c.Requeued, requeued)
		wrong("expiring messages", c.Expiring, expiring)
		if !l.settings.Batch {
			wrong("panics", c.Panics, panicked)
		}
		drained := l.report.Drained() && (l.laneReport == nil || l.laneReport.Drained())
		ends := c.Deleted + c.Retried + c.Released + c.Parked + c.DeadLettered + c.Kept + c.Lost
		if held := c.Received - c.Duplicates; drained && held != ends {
			how = append(how, fmt.Sprintf("process %d has drained, and counts %d messages (%d duplicates aside) and %d settlements: %+v", p, held, c.Duplicates, ends, c))
		}
	}
	return how
}

// callsAreCounted holds that the requests that are counted are those that were made.
func callsAreCounted(f *facts) (how []string) {
	for p, l := range f.r.processes {
		if l.report == nil {
			continue
		}
		c := l.report.Calls
		if l.laneReport != nil {
			o := l.laneReport.Calls
			c.Receives += o.Receives
			c.Deletes += o.Deletes
			c.Visibilities += o.Visibilities
			c.Heartbeats += o.Heartbeats
			c.Sends += o.Sends
			c.Attributes += o.Attributes
		}
		c.Visibilities, c.Heartbeats = c.Visibilities+c.Heartbeats, 0
		if c != l.calls || c != l.observed {
			how = append(how, fmt.Sprintf("process %d counts %+v, its observer saw %+v, and it made %+v", p, c, l.observed, l.calls))
		}
	}
	return how
}

// afterDeletesRun holds that AfterDelete is called once for each message deleted.
func afterDeletesRun(f *facts) (how []string) {
	for p, l := range f.r.processes {
		if l.report == nil || !l.settings.AfterDelete {
			continue
		}
		deleted := make(map[int]int)
		for _, s := range f.r.settled {
			if s.process == p && s.outcome == reprise.OutcomeDelete {
				deleted[s.message]++
			}
		}
		for _, n := range l.afterDeletes {
			deleted[n]--
		}
		for _, c := range f.r.copies { // where a copy or a dead letter has taken its place, it is deleted without its work being done
			if c.process >= 0 {
				delete(deleted, c.message)
			}
		}
		for n, count := range deleted {
			if drained := l.report.Drained() && (l.laneReport == nil || l.laneReport.Drained()); count != 0 && drained || count < 0 {
				how = append(how, fmt.Sprintf("process %d: %s was deleted, and AfterDelete called, %d times more or less", p, f.name(n), count))
			}
		}
	}
	return how
}

// healthIsHonest holds that a process is not healthy while something is wrong.
func healthIsHonest(f *facts) (how []string) {
	const noticed = 2 * time.Minute // that a receive fails
	ended := make(map[int][]sample)
	for _, s := range f.r.samples {
		var wrong []string
		for _, b := range s.status.Breakers {
			if b.State != reprise.BreakerClosed {
				wrong = append(wrong, fmt.Sprintf("the breaker %q is %v", b.Key, b.State))
			}
		}
		if s.status.GivingUp != nil {
			wrong = append(wrong, s.status.GivingUp.String())
		}
		if s.failing > noticed && !f.r.processes[s.process].pausedWithin(s.at-s.failing, s.at) { // a process that is paused does not receive
			wrong = append(wrong, fmt.Sprintf("receives have failed for %v", s.failing))
		}
		for _, before := range ended[s.process] {
			was, is := before.status.Counts, s.status.Counts
			if s.at-before.at < 5*time.Minute && is.LeasesEnded+is.LateHeartbeats > was.LeasesEnded+was.LateHeartbeats {
				wrong = append(wrong, fmt.Sprintf("%d leases have ended and %d heartbeats were late since %v", is.LeasesEnded-was.LeasesEnded, is.LateHeartbeats-was.LateHeartbeats, before.at))
				break
			}
		}
		if n, e := f.announced(s); e != nil {
			wrong = append(wrong, fmt.Sprintf("%s expires at %v", f.name(n), e.when))
		}
		ended[s.process] = append(ended[s.process], s)
		if len(wrong) > 0 && s.status.Health == reprise.HealthOK {
			how = append(how, fmt.Sprintf("process %d was healthy at %v, although %s", s.process, s.at, strings.Join(wrong, "; ")))
		}
		if f.calm && f.allInnocent() && !f.runLongerThan(15*time.Minute) && s.status.Health != reprise.HealthOK && s.status.Health != reprise.HealthNew {
			how = append(how, fmt.Sprintf("process %d was %v at %v (%s), and nothing was wrong", s.process, s.status.Health, s.at, s.status.Problem))
		}
	}
	return how
}

// announced returns a message of the process that it has announced to expire, and that is still there to expire.
func (f *facts) announced(s sample) (n int, e *expiring) {
	if len(f.s.Changes)+len(f.s.Jumps) > 0 {
		return 0, nil
	}
	for i := range f.r.expiring {
		e := &f.r.expiring[i]
		if e.process != s.process || e.at > s.at-time.Second || e.when < s.at+time.Second {
			continue
		}
		runs := slices.ContainsFunc(f.byMessage[max(e.message, 0)], func(r *run) bool { return r.began > e.at })
		if !runs && e.message >= 0 && len(f.r.processes) == 1 {
			return e.message, e
		}
	}
	return 0, nil
}

func (f *facts) allInnocent() bool {
	for i := range f.s.Messages {
		if !f.s.Messages[i].innocent() {
			return false
		}
	}
	return true
}
