package simulate_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/plan"
	"github.com/reprise-sqs/reprise/simulate"
)

// TestWaitsAreCarriedAsPlanned holds a plan against the machines of the consumer and the queue: in drawn settings, a message
// that always fails is attempted, received and copied as often as the plan says. Where one wait takes dozens of copies, the
// milliseconds of the network and whole seconds add up: one copy of thirty may be missing then.
func TestWaitsAreCarriedAsPlanned(t *testing.T) {
	var copies, parked, given int
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		between := func(least, most time.Duration) time.Duration { // each length is as likely as its double
			return time.Duration(float64(least) * math.Pow(float64(most)/float64(least), r.Float64())).Round(time.Second)
		}
		retention := between(time.Minute, 14*24*time.Hour)
		waits := fmt.Sprintf("list(%v,%v,%v)", between(time.Second, 50*time.Hour), between(time.Second, 50*time.Hour), min(2*retention, between(time.Second, 100*time.Hour)))
		p := policy(t, fmt.Sprintf("%s jitter=none attempts=%d age=unlimited", waits, 2+r.IntN(4)))
		s := simulate.Scenario{
			Traffic: simulate.Traffic{Backlog: 1}, Policy: p, Seed: seed,
			Queue:   simulate.Queue{Retention: retention, MaxReceives: max(0, r.IntN(12)-4)},
			Handler: simulate.Handler{Takes: simulate.Constant(time.Millisecond), Always: 1},
			Fleet:   simulate.Fleet{NoBreaker: true, Via: []string{"auto", "visibility", "requeue"}[r.IntN(3)]},
		}
		via := map[string]plan.Via{"auto": plan.ViaAuto, "visibility": plan.ViaVisibility, "requeue": plan.ViaRequeue}[s.Fleet.Via]
		q := plan.Queue{Retention: retention, MaxReceives: s.Queue.MaxReceives, DeadLetterARN: "arn:aws:sqs:eu-west-1:123456789012:dead"}
		want := plan.NewSchedule(p, q, plan.Settings{Via: via}).Expected
		got := run(t, s)
		allowed := want.Copies / 30
		if got.Attempts.Started != want.Attempts || apart(got.Requests.Receives, want.Receives) > allowed*2 || apart(got.Requests.Copies, want.Copies) > allowed {
			t.Errorf("seed %d: %v on a queue that keeps messages for %v and permits %d receives, via %s: %d attempts, %d receives and %d copies, the plan says %d, %d and %d (%v)", seed, p, retention, s.Queue.MaxReceives, s.Fleet.Via,
				got.Attempts.Started, got.Requests.Receives, got.Requests.Copies, want.Attempts, want.Receives, want.Copies, want.Stop)
		}
		copies += want.Copies
		parked += want.Receives - want.Attempts - want.Copies
		if want.Stop == plan.StopReceives || want.Stop == plan.StopRetention {
			given++
		}
	}
	if copies < 300 || parked < 300 || given < 30 {
		t.Errorf("%d copies, %d receives that hid a message again and %d that were given up for the queue's limits: too few", copies, parked, given)
	}
}

// apart returns how far a and b are from each other.
func apart(a, b int) int { return max(a-b, b-a) }
