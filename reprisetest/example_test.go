package reprisetest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
)

// What docs/go.md has as the test of a day of retries.
func TestOrdersOutliveADayOfOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // time passes as fast as nothing happens
		orders := reprisetest.NewQueue(t, nil)
		dead := orders.NewDeadLetterQueue(100)
		opens := time.Now().Add(24 * time.Hour)
		consumer := orders.Consume(reprise.HandlerFunc(func(context.Context, *reprise.Message) error {
			if time.Now().Before(opens) {
				return errors.New("the warehouse is closed")
			}
			return nil
		}), reprise.Config{Retry: retry.Policy{MaxAge: 48 * time.Hour}})

		orders.Send(`{"id":"o-1"}`)
		orders.WaitEmpty(48 * time.Hour)

		if n := len(dead.Messages()); n > 0 {
			t.Errorf("%d orders were given up", n)
		}
		t.Log(consumer.Status().Counts.Attempts, "attempts")
	})
}
