package idempotencytest

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise/idempotency"
)

// slow grants each claim at once, and keeps its first answer for ten seconds.
type slow struct {
	idempotency.Store
	granted idempotency.Token
}

func (s *slow) Acquire(_ context.Context, _ []idempotency.Request) ([]idempotency.Answer, error) {
	s.granted++
	token := s.granted
	if token == 1 {
		time.Sleep(10 * time.Second)
	}
	return []idempotency.Answer{{State: idempotency.Acquired, Token: token}}, nil
}

// TestOracleWaitsForNoOrderOfAnswers: a claim whose answer was slower than a lease is no mistake of
// the store when another claim has followed it, though the other was answered first.
func TestOracleWaitsForNoOrderOfAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOracle(t, &slow{})
		claim := func() {
			if _, err := o.Acquire(t.Context(), []idempotency.Request{{Key: "k", Lease: time.Second}}); err != nil {
				t.Error(err)
			}
		}
		go claim()
		synctest.Wait()
		time.Sleep(2 * time.Second)
		claim()
		time.Sleep(time.Minute)
		if k := o.truth("k"); k.latest != 2 {
			t.Errorf("the latest claim is %d, want 2", k.latest)
		}
	})
}
