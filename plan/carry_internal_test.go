package plan

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/retry"
)

// TestRepeatedWaits: a wait that is like the one before is carried as if it were walked through.
func TestRepeatedWaits(t *testing.T) {
	waits := []time.Duration{time.Second, time.Hour, 11 * time.Hour, 13 * time.Hour, 5*24*time.Hour + time.Minute}
	repeated := 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		q := Queue{MaxReceives: r.IntN(4), Retention: []time.Duration{4 * time.Hour, 96 * time.Hour, 336 * time.Hour}[r.IntN(3)]}
		s := Settings{Via: Via(r.IntN(3))}
		quick, slow := newCarrier(q, s), newCarrier(q, s)
		at, wait := time.Duration(0), waits[0]
		for n := range 40 {
			if r.IntN(4) == 0 {
				wait = waits[r.IntN(len(waits))]
			}
			leg, halt, when := quick.leg(at, at+wait)
			wantLeg, wantHalt, wantWhen := slow.walk(at, at+wait)
			if leg != wantLeg || halt != wantHalt || when != wantWhen || quick.kept != slow.kept || quick.receives != slow.receives {
				t.Fatalf("seed %d, wait %d of %v on %+v, %v: %+v, %v %v, kept since %v, %d receives; want %+v, %v %v, %v, %d",
					seed, n, wait, q, s.Via, leg, halt, when, quick.kept, quick.receives, wantLeg, wantHalt, wantWhen, slow.kept, slow.receives)
			}
			if halt != 0 {
				break
			}
			if quick.last.leg == leg && n > 0 {
				repeated++
			}
			at += wait
		}
	}
	if repeated < 1000 {
		t.Errorf("%d waits were like the one before, want more", repeated)
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
