package simulate_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/simulate"
)

// changed is a deploy that makes 15 % of the attempts fail, and its rollback.
func changed(t *testing.T) simulate.Scenario {
	t.Helper()
	return simulate.Scenario{
		Traffic: simulate.Traffic{Rate: 20, For: time.Hour, Even: true}, Policy: policy(t, "exponential(base=1s,max=10s) attempts=3"), Seed: 5,
		Handler: simulate.Handler{Takes: simulate.Constant(50 * time.Millisecond), Fails: []float64{0.02}, Changes: []simulate.Change{
			{At: 20 * time.Minute, Fails: []float64{0.15, 0.9}}, {At: 40 * time.Minute, Fails: []float64{0.02}},
		}},
	}
}

// TestChanges: from the time of each change on, attempts fail with its chances, by their number, and
// an attempt before it ends as without it.
func TestChanges(t *testing.T) {
	s := changed(t)
	s.Trace = 100_000
	r := run(t, s)
	type kind struct{ part, attempt int }
	tried, failed := make(map[kind]float64), make(map[kind]float64)
	for _, a := range r.Trace {
		k := kind{min(int(a.Started/(20*time.Minute)), 2), min(a.Attempt, 2)}
		tried[k]++
		if !a.Succeeded {
			failed[k]++
		}
	}
	for k, want := range map[kind]float64{{0, 1}: 0.02, {0, 2}: 0.02, {1, 1}: 0.15, {1, 2}: 0.9, {2, 1}: 0.02} {
		n, share := tried[k], failed[k]/tried[k]
		if off := math.Abs(share - want); n < 300 || off > 4*math.Sqrt(want*(1-want)/n) {
			t.Errorf("part %d: of %g attempts %d %.3f fail, want %g", k.part, n, k.attempt, share, want)
		}
	}
	s.Handler.Changes = nil
	without := run(t, s)
	for i, a := range r.Trace {
		if a.Ended >= 20*time.Minute {
			break
		}
		if a != without.Trace[i] {
			t.Fatalf("before the first change there is %+v, without changes %+v", a, without.Trace[i])
		}
	}
}

// TestFluidChanges: in every ten minutes the expected numbers have as many attempts and failures as
// single messages, to 3 % of the attempts.
func TestFluidChanges(t *testing.T) {
	s := changed(t)
	s.Bucket = 10 * time.Minute
	machines := run(t, s)
	s.Fluid = true
	fluid := run(t, s)
	for i, one := range machines.Series[:6] {
		other := fluid.Series[i]
		if off := math.Abs(float64(one.Started-other.Started)) + math.Abs(float64(one.Failed-other.Failed)); off > 0.03*float64(one.Started) {
			t.Errorf("at %v: %d attempts of which %d fail, with expected numbers %d and %d", one.At, one.Started, one.Failed, other.Started, other.Failed)
		}
	}
	if off := math.Abs(float64(machines.Messages.Dead - fluid.Messages.Dead)); machines.Messages.Dead < 1000 || off > 0.05*float64(machines.Messages.Dead) {
		t.Errorf("%d dead letters, with expected numbers %d", machines.Messages.Dead, fluid.Messages.Dead)
	}
	// A change within a step holds for a part of it: the steps of this one are 15 minutes long.
	s.Horizon, s.Traffic.For = 25*time.Hour, 25*time.Hour
	s.Handler.Changes = []simulate.Change{{At: 10*time.Hour + 7*time.Minute, Fails: []float64{1}}}
	s.Policy = policy(t, "constant(1s) attempts=1")
	want := s.Traffic.Rate * (0.02*s.Handler.Changes[0].At.Seconds() + (s.Horizon - s.Handler.Changes[0].At).Seconds())
	if got := float64(run(t, s).Messages.Dead); math.Abs(got/want-1) > 0.001 {
		t.Errorf("%g dead letters of expected numbers, want %g", got, want)
	}
}

// TestChangesAreChecked: what is wrong with changes is named, with the remedy.
func TestChangesAreChecked(t *testing.T) {
	for want, changes := range map[string][]simulate.Change{
		"handler.changes[0].at is 0s: what holds from the start is handler.fails": {{Fails: []float64{0.5}}},
		"handler.changes[0].at is -1s: set 1ns to":                                {{At: -time.Second, Fails: []float64{0.5}}},
		"handler.changes[1].at is 1h0m0s: the change before it is at 1h0m0s: put": {{At: time.Hour, Fails: []float64{0.5}}, {At: time.Hour, Fails: []float64{0.1}}},
		"handler.changes[0].fails is empty: set the shares":                       {{At: time.Hour}},
		"handler.changes[0].fails[1] is 1.5: set a share from 0 to 1":             {{At: time.Hour, Fails: []float64{0.5, 1.5}}},
		"handler.changes[0].fails[0] is NaN: set a share from 0 to 1":             {{At: time.Hour, Fails: []float64{math.NaN()}}},
		"the length of handler.changes is 1001: set 0 to 1000":                    make([]simulate.Change, 1001),
		"it never gives up, and there are messages of which every attempt fails":  {{At: time.Hour, Fails: []float64{0, 1}}},
	} {
		s := simulate.Scenario{Traffic: simulate.Traffic{Backlog: 1}, Handler: simulate.Handler{Changes: changes}, Policy: policy(t, "constant(1s) attempts=unlimited age=unlimited")}
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.200s: the error is %.500v, want %q", fmt.Sprintf("%+v", changes), err, want)
		}
	}
	// Attempts that all fail for a while are no reason why a simulation never ends.
	s := simulate.Scenario{Traffic: simulate.Traffic{Backlog: 1}, Policy: policy(t, "constant(1s) attempts=unlimited age=unlimited")}
	s.Handler = simulate.Handler{Fails: []float64{1}, Changes: []simulate.Change{{At: time.Minute, Fails: []float64{0}}}}
	if r := run(t, s); r.Messages.Done != 1 || r.Last < time.Minute {
		t.Errorf("%+v at %v, want one message that is done after a minute", r.Messages, r.Last)
	}
	// Traffic that is too much only from a change on is noted with its time.
	s = simulate.Scenario{Traffic: simulate.Traffic{Rate: 60, For: time.Minute}, Handler: simulate.Handler{Changes: []simulate.Change{{At: 30 * time.Second, Fails: []float64{0.5}}}}}
	if notes := strings.Join(run(t, s).Notes, "\n"); !strings.Contains(notes, "attempts a second from 30s on, of which fleet.concurrency permits 100") {
		t.Errorf("the notes are %q", notes)
	}
	// In a pool too: the attempts of both queues, at the time when they need most handlers.
	s.Traffic.Rate = 30
	s.Pool = []simulate.Pooled{{Name: "other", Traffic: s.Traffic, Handler: &simulate.Handler{Changes: []simulate.Change{{At: 40 * time.Second, Fails: []float64{0.5}}}}}}
	if notes := strings.Join(run(t, s).Notes, "\n"); !strings.Contains(notes, "the traffic of all queues needs 12 handlers from 40s on, of which there are 10,") {
		t.Errorf("the notes of a pool are %q", notes)
	}
}
