package consumer

import (
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/retry"
)

// TestLostIsLeftAlone: another consumer may have a message whose lease was lost. However its
// attempt fails, also because the consumer stops, nothing is asked of SQS about it.
func TestLostIsLeftAlone(t *testing.T) {
	for cut := CutNone; cut <= CutOther; cut++ {
		for action := retry.ActionRetry; action <= retry.ActionDeadLetter; action++ {
			c := at(New(Settings{Concurrency: 1, Settings: leased}), 0)
			d := &Delivery{ID: "a"}
			o := Opinion{Err: errFails, Cut: cut, Decision: retry.Decision{Action: action, At: c.now.Add(time.Hour)}}
			if got := c.judge(d, o, c.now); got.Outcome == OutcomeLost {
				t.Errorf("it is lost without a reason, after cut %d and with %v", cut, action)
			}
			d.lease.Lose()
			if got := c.judge(d, o, c.now); got.Outcome != OutcomeLost {
				t.Errorf("after cut %d and with %v the verdict is %v, want lost", cut, action, got.Outcome)
			}
		}
	}
}

// TestReleasesInARow: the wait of a release grows with the releases before it, until an attempt
// comes between.
func TestReleasesInARow(t *testing.T) {
	c := at(New(Settings{Concurrency: 1, Settings: leased}), 0)
	d := &Delivery{ID: "a"}
	for n, tt := range []struct {
		ends Outcome
		want int // releases in a row
	}{
		{OutcomeRelease, 1}, {OutcomeRelease, 2}, {OutcomeRelease, 3}, {OutcomeRetry, 0}, {OutcomeRelease, 1},
	} {
		d.Attempt = n + 1
		d.verdict = Verdict{Outcome: tt.ends, Due: c.now.Add(time.Minute)}
		if c.remember(d, c.now); c.releases(d, c.now) != tt.want {
			t.Errorf("after end %d, %v, there are %d releases in a row, want %d", n+1, tt.ends, c.releases(d, c.now), tt.want)
		}
	}
}
