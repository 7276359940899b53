package main_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// The causes of second runs that docs/run.md names.
const (
	answerLost   = "the target's answer was lost: cut off, or the target was killed after its work"
	tookTooLong  = "the work was done after the attempt's timeout"
	runKilled    = "reprise run was killed before its delete was acknowledged"
	serverKilled = "the server was killed: a receive that was not yet on disk, or a lease that ended meanwhile"
)

// fail notes what a soak must not show.
func (s *soak) fail(format string, args ...any) {
	s.problems = append(s.problems, fmt.Sprintf(format, args...))
}

// audit compares what was sent with what the target has done and the dead letters, and
// explains each second run.
func (s *soak) audit(dead map[string]int) {
	s.t.Helper()
	attempts, err := readAttempts(s.notes)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, problem := range s.wire.problems {
		s.fail("%s", problem)
	}
	kills := make(map[string]int)
	for _, r := range s.roles {
		for _, l := range r.lives {
			if l.killed > 0 {
				kills[r.name]++
			}
		}
		if kills[r.name] == 0 {
			s.fail("%s was never killed: nothing was tested", r.name)
		}
	}
	done := make(map[string][]*attempt)
	for _, a := range attempts {
		if a.done > 0 {
			done[a.key] = append(done[a.key], a)
		}
	}
	s.auditLost(done, dead)
	again := s.auditDeletes()
	causes, late := s.auditSecondRuns(done)

	held := soakConcurrency + soakPrefetch
	runs := kills["run-a"] + kills["run-b"]
	bounds := map[string]int{
		// One attempt of 100 is cut off by design, and one of 200 takes too long.
		answerLost:   len(attempts)/25 + kills["target"]*2*soakConcurrency,
		tookTooLong:  len(attempts) / 50,
		runKilled:    runs * held,
		serverKilled: kills["serve"] * 2 * held,
	}
	s.t.Logf("%d sends acknowledged, %d unknown; %d attempts, %d messages done, %d dead letters", len(s.sent), s.unsure, len(attempts), len(done), len(dead))
	s.t.Logf("killed: %v", kills)
	for _, cause := range slices.Sorted(maps.Keys(bounds)) {
		s.t.Logf("second runs: %5d of at most %5d: %s", causes[cause], bounds[cause], cause)
		if causes[cause] > bounds[cause] {
			s.fail("%d second runs, more than %d: %s", causes[cause], bounds[cause], cause)
		}
	}
	s.t.Logf("second runs: %5d of these began after the delete was acknowledged: both consumers had received the message before", late)
	s.t.Logf("received again after an acknowledged delete: %d, all of them by an older handle than the newest", again)
	if bound := (kills["serve"] + runs) * 2 * held; again > bound {
		s.fail("%d, more than the %d receives whose replies kills can lose", again, bound)
	}
	if aim := int(s.lasting.Seconds()) * soakRate / 4; len(s.sent) < aim {
		s.fail("only %d sends were acknowledged, want %d: there was too little load", len(s.sent), aim)
	}
}

// auditLost fails for each acknowledged message that is neither done nor a dead letter, and
// for each dead letter that should not be one.
func (s *soak) auditLost(done map[string][]*attempt, dead map[string]int) {
	lost := 0
	for _, key := range s.sent {
		refused := strings.HasPrefix(key, hopeless)
		switch {
		case refused && dead[key] > 0, !refused && len(done[key]) > 0:
		default:
			lost++
			s.t.Logf("lost: %s, dead letters %d", key, dead[key])
		}
	}
	if lost > 0 {
		s.fail("%d messages of %d are lost", lost, len(s.sent))
	}
	for key := range dead {
		if !strings.HasPrefix(key, hopeless) {
			s.fail("%s is a dead letter, and the target never refused it for good", key)
		}
	}
}

// auditDeletes fails for each message that was received again after its delete had been
// acknowledged. Of a standard queue that is not a delete which names an older handle than the
// newest: it is acknowledged, as on AWS, and does nothing. The newest may be one that nobody
// knows, of a receive whose reply was lost with a process that was killed; the receive count
// tells. It returns how often that happened.
func (s *soak) auditDeletes() (again int) {
	for id, deletes := range s.wire.deletes {
		for _, d := range deletes {
			for _, r := range s.wire.receives[id] {
				if r.asked < d.at && r.at < d.at+int64(5*time.Second) {
					continue // it may have been received before
				}
				if r.count > d.of.count+1 {
					again++
					continue
				}
				s.fail("%s was received by %s %v after its delete was acknowledged, for the %dth time after the %dth",
					r.key, r.role, time.Duration(r.at-d.at), r.count, d.of.count)
			}
		}
	}
	return again
}

// auditSecondRuns counts the second runs by their causes, and those of them that began after
// the message's delete had been acknowledged. It fails for each without a cause.
func (s *soak) auditSecondRuns(done map[string][]*attempt) (causes map[string]int, late int) {
	causes = make(map[string]int)
	for key, all := range done {
		slices.SortFunc(all, func(a, b *attempt) int { return cmp.Compare(a.start, b.start) })
		for i := 1; i < len(all); i++ {
			cause := s.cause(all[i-1], all[i])
			if cause == "" {
				s.fail("%s ran at %s and, %v later, at %s, without a documented cause: %+v, %+v; received %+v",
					key, all[i-1].runner, time.Duration(all[i].start-all[i-1].start), all[i].runner, *all[i-1], *all[i], s.receipts(all[i]))
			}
			causes[cause]++
			if slices.ContainsFunc(s.wire.deletes[all[i].id], func(d deletion) bool { return d.at < all[i].start }) {
				late++
			}
		}
	}
	return causes, late
}

func (s *soak) receipts(a *attempt) (found []receipt) {
	for _, r := range s.wire.receives[a.id] {
		found = append(found, *r)
	}
	return found
}

// cause is why a message whose work was done in an attempt ran again; empty if there is none.
func (s *soak) cause(before, again *attempt) string {
	runner, received := s.receiptOf(before), s.receiptOf(again)
	switch {
	case runner == nil || received == nil:
		return "" // an attempt without a receive
	case before.answered == 0 && before.done-before.start < int64(soakTimeout):
		return answerLost
	case before.answered == 0:
		return tookTooLong
	case s.killedBetween(before.runner, before.start, again.start):
		return runKilled
	case s.killedBetween("serve", min(runner.at, received.at), max(runner.at, received.at)): // the second may run first
		return serverKilled
	}
	return ""
}

// receiptOf is the receive that led to an attempt: the latest before it, of its role.
func (s *soak) receiptOf(a *attempt) (latest *receipt) {
	name, _, _ := strings.Cut(a.runner, ".")
	for _, r := range s.wire.receives[a.id] {
		if r.role == name && r.at < a.start {
			latest = r
		}
	}
	return latest
}

// killedBetween reports whether a role, or a life of it as X-Runner names it, was killed in
// that time. On a busy machine a process goes on for a while after it is told to be killed.
func (s *soak) killedBetween(who string, from, to int64) bool {
	for _, r := range s.roles {
		for _, l := range r.lives {
			if (who == r.name || who == l.name()) && from <= l.gone && l.killed <= to && l.killed > 0 {
				return true
			}
		}
	}
	return false
}

// sample is the memory of a process.
type sample struct {
	at     time.Time
	memory int64
}

// watchMemory samples the memory of all processes that have lived for five seconds.
func (s *soak) watchMemory(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			for _, r := range s.roles {
				l := r.last()
				if l == nil || now.Sub(l.begin) < 5*time.Second {
					continue
				}
				if memory, err := memoryOf(l.cmd.Process.Pid); err == nil && memory > 0 { // else it has just been killed
					l.samples = append(l.samples, sample{now, memory})
				}
			}
		}
	}
}

// reportMemory compares the memory of each role in the last third of the soak with that in
// the second, and of its longest life likewise. Short soaks tell nothing: a process takes
// memory while it starts.
func (s *soak) reportMemory() {
	const slack = 16 << 20
	for _, r := range s.roles {
		var all []sample
		var longest *life
		for _, l := range r.lives {
			all = append(all, l.samples...)
			if longest == nil || len(l.samples) > len(longest.samples) {
				longest = l
			}
		}
		second, last := thirds(all, s.begin, s.lasting)
		s.t.Logf("memory of %-6s in the second third %4d MiB, in the last %4d MiB (medians)", r.name, second>>20, last>>20)
		allowed := second + second/4 + slack
		if r.name == "serve" {
			allowed += 64 << 20 // its journal's tables in memory, full or empty
		}
		if s.lasting >= 5*time.Minute && last > allowed {
			s.fail("the memory of %s grew from %d to %d MiB", r.name, second>>20, last>>20)
		}
		if n := len(longest.samples); n >= 60 {
			from, to := longest.samples[0].at, longest.samples[n-1].at
			second, last := thirds(longest.samples, from, to.Sub(from))
			s.t.Logf("memory of %-6s in its longest life, %v: %4d MiB, then %4d MiB", r.name, to.Sub(from).Round(time.Second), second>>20, last>>20)
			if r.name != "serve" && last > second+second/4+slack { // a server's tables fill up
				s.fail("the memory of %s grew from %d to %d MiB in one life", r.name, second>>20, last>>20)
			}
		}
	}
}

// thirds returns the medians of the second and of the last third of a time.
func thirds(all []sample, begin time.Time, lasting time.Duration) (second, last int64) {
	var in [3][]int64
	for _, x := range all {
		third := min(2, int(3*x.at.Sub(begin)/lasting))
		in[third] = append(in[third], x.memory)
	}
	return median(in[1]), median(in[2])
}

func median(all []int64) int64 {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2]
}
