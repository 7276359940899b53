package simulation_test

import (
	"errors"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/internal/consumer"
	"github.com/reprise-sqs/reprise/internal/engine"
	"github.com/reprise-sqs/reprise/internal/simulation"
	"github.com/reprise-sqs/reprise/retry"
)

var errUnavailable = errors.New("500")

// poison is a scenario in which some messages always fail as if the dependency were unavailable, among
// a steady traffic of good ones.
type poison struct {
	harmful int // they come together, poisonAt after the start
	rate    int // good messages a second, for goodFor
	backoff retry.Backoff
	off     bool          // there is no breaker
	outage  time.Duration // outageAt after the start, for everybody; 0: none
}

const (
	poisonAt = 5 * time.Second
	outageAt = 30 * time.Second
	goodFor  = 3 * time.Minute
)

// poisoned is what comes of it.
type poisoned struct {
	attempts int           // at harmful messages
	givenUp  int           // harmful messages
	over     time.Duration // from poisonAt until the last was
	late     time.Duration // the longest that a good message took from the moment it was sent
	lost     int           // good messages that were given up
	charged  int           // the most failed attempts of a good message that counted
	done     int           // good messages
}

// run runs the scenario until long after the last good message.
func (p poison) run(t *testing.T, seed uint64) (got poisoned) {
	var s *scenario
	sent, charged := make([]time.Duration, p.rate*int(goodFor.Seconds())), make(map[int]int)
	isDown := func() bool { return s.Since() >= outageAt && s.Since() < outageAt+p.outage }
	s = newScenario(t, seed, engine.Settings{}, func(spec *simulation.Spec) {
		spec.Settings.Threshold, spec.Settings.Seed = 20, seed+1
		spec.Settings.BreakerOff = p.off
		spec.Settings.Retry = retry.Policy{Backoff: p.backoff, MaxAttempts: 5, MaxAge: -1}
		spec.Handler = func(m *simulation.Message) simulation.Run {
			return simulation.Run{Takes: 20 * time.Millisecond, Ends: func() []simulation.Result {
				n := m.Payload.(int)
				switch {
				case n < 0:
					got.attempts++
				case !isDown():
					got.done++
					got.late = max(got.late, s.Since()-sent[n])
					return nil
				}
				return []simulation.Result{{Err: errUnavailable, Unavailable: true}}
			}}
		}
		spec.Attempted = func(a simulation.Attempt) {
			n, failed := a.Payload.(int), a.Err != nil
			dead := a.Outcome == consumer.OutcomeDeadLetter
			switch {
			case n < 0 && dead:
				got.givenUp++
				got.over = s.Since() - poisonAt
			case n >= 0 && dead:
				got.lost++
			case n >= 0 && failed && a.Outcome == consumer.OutcomeRetry:
				charged[n]++
				got.charged = max(got.charged, charged[n])
			}
		}
	})
	for n := range sent {
		sent[n] = time.Duration(n) * time.Second / time.Duration(p.rate)
		s.After(sent[n], "producer", func() { s.queue.Put(engine.Message{Payload: n, Delay: -1}) })
	}
	s.After(poisonAt, "producer", func() {
		for n := range p.harmful {
			s.queue.Put(engine.Message{Payload: -1 - n, Delay: -1})
		}
	})
	s.runFor(t, goodFor+p.outage+5*time.Minute)
	return got
}

// TestPoisonIsNoOutage: as many messages as open a breaker always fail with 500, and come together. The
// breaker opens, since that may be an outage; the first probe with a good message shows that it is
// none. From then on the harmful messages use up their attempts nearly as fast as without a breaker, and
// keep the others waiting no more.
func TestPoisonIsNoOutage(t *testing.T) {
	for _, backoff := range []retry.Backoff{retry.Constant(2 * time.Second), retry.Exponential{Base: time.Second, Max: time.Minute}} {
		for _, rate := range []int{1, 5, 20} {
			for seed := range uint64(4) {
				p := poison{harmful: 20, rate: rate, backoff: backoff}
				got := p.run(t, seed)
				p.off = true
				without := p.run(t, seed)
				t.Logf("%d good ones a second, backoff %v: given up after %v, without a breaker %v; %d attempts, without %d; a good one takes %v at most, without %v", rate, backoff, got.over, without.over, got.attempts, without.attempts, got.late, without.late)
				allowed := without.over + 15*time.Second
				if rate == 1 { // few others show that they are at fault
					allowed = without.over + 80*time.Second
				}
				if got.givenUp != p.harmful || got.over > allowed || got.attempts > without.attempts*11/10 {
					t.Errorf("%d good ones a second, backoff %v: %d given up after %v and %d attempts; without a breaker %v and %d", rate, backoff, got.givenUp, got.over, got.attempts, without.over, without.attempts)
				}
				if got.late > 8*time.Second || got.lost > 0 || got.done != rate*int(goodFor.Seconds()) {
					t.Errorf("%d good ones a second, backoff %v: %d done, one takes %v, %d lost", rate, backoff, got.done, got.late, got.lost)
				}
			}
		}
	}
}

// TestPoisonSparesInnocents: with the same messages a dependency goes down for everybody, half a minute
// later. No good message is given up, and its failures count for one attempt at most: the one by which
// the outage is found. With one good one a second the traffic ends before all harmful ones are given up:
// what fails then may be an outage.
func TestPoisonSparesInnocents(t *testing.T) {
	for _, outage := range []time.Duration{10 * time.Second, 2 * time.Minute} {
		for _, rate := range []int{1, 5, 20} {
			for seed := range uint64(4) {
				got := poison{harmful: 20, rate: rate, backoff: retry.Constant(2 * time.Second), outage: outage}.run(t, seed)
				t.Logf("an outage of %v, %d good ones a second: %d attempts at harmful ones, %d given up; %d good ones lost, %d attempts counted, at most %v late", outage, rate, got.attempts, got.givenUp, got.lost, got.charged, got.late)
				if got.lost > 0 || got.charged > 1 || got.done != rate*int(goodFor.Seconds()) || rate > 1 && got.givenUp != 20 {
					t.Errorf("an outage of %v, %d good ones a second: %d done, %d lost, %d attempts of one are counted; %d harmful ones are given up", outage, rate, got.done, got.lost, got.charged, got.givenUp)
				}
			}
		}
	}
}
