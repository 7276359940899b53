package plan

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/retry"
)

// TestRepeatedWaits: a wait that is like the one before is carried as if it were walked through. What may
// make it unlike is drawn from its range, so that waits that are alike in all but one thing follow each other.
func TestRepeatedWaits(t *testing.T) {
	between := func(r *rand.Rand, least, most time.Duration) time.Duration { // each order of magnitude as often
		span := math.Log(float64(most) / float64(least))
		return min(most, time.Duration(float64(least)*math.Exp(span*r.Float64())).Round(time.Second))
	}
	repeated, walked := 0, 0
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 1))
		q := Queue{MaxReceives: r.IntN(8), Retention: between(r, time.Minute, MaxRetention)}
		if r.IntN(2) == 0 {
			q.Delay = between(r, time.Second, MaxDelay)
		}
		s := Settings{Via: Via(r.IntN(3))}
		quick, slow := newCarrier(q, s), newCarrier(q, s)
		at, wait := time.Duration(0), between(r, time.Second, 20*24*time.Hour)
		for n := range 40 {
			if r.IntN(4) == 0 {
				wait = between(r, time.Second, 20*24*time.Hour)
			}
			before := quick.last
			leg, halt, when := quick.leg(at, at+wait)
			wantLeg, wantHalt, wantWhen := slow.walk(at, at+wait)
			if leg != wantLeg || halt != wantHalt || when != wantWhen || quick.kept != slow.kept || quick.receives != slow.receives {
				t.Fatalf("seed %d, wait %d of %v on %+v, %v: %+v, %v %v, kept since %v, %d receives; want %+v, %v %v, %v, %d",
					seed, n, wait, q, s.Via, leg, halt, when, quick.kept, quick.receives, wantLeg, wantHalt, wantWhen, slow.kept, slow.receives)
			}
			if halt != 0 {
				break
			}
			switch {
			case n == 0 || wait != before.wait:
			case quick.last == before:
				repeated++
			default:
				walked++
			}
			at += wait
		}
	}
	if repeated < 1000 || walked < 1000 {
		t.Errorf("%d waits were repeated, %d were as long as the one before and walked through: want more of each", repeated, walked)
	}
}

// BenchmarkCheck examines policies without an end, as a consumer does every ten minutes.
func BenchmarkCheck(b *testing.B) {
	q := Queue{MaxReceives: 3, Visibility: 30 * time.Second, Retention: 96 * time.Hour, DeadLetterARN: "arn:aws:sqs:eu-west-1:1:dead"}
	for _, text := range []string{
		"exponential(base=1s,max=12h)",
		"list(1h,240h) jitter=none attempts=unlimited age=unlimited",
		"list(1h,240h) jitter=full attempts=unlimited age=unlimited",
	} {
		b.Run(text, func(b *testing.B) {
			var p retry.Policy
			if err := p.UnmarshalText([]byte(text)); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				Check(p, q, Settings{HandlerTimeout: 30 * time.Second})
			}
		})
	}
}
