package reprise_test

import (
	"context"
	"log"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/reprise-sqs/reprise"
)

// additiveIncrease finds the concurrency that a dependency can bear: it adds a little with each
// success, and removes a third when the dependency is unavailable.
type additiveIncrease struct {
	mu          sync.Mutex
	consumer    interface{ SetConcurrency(n int) error }
	limit, most float64
}

// drive sets the consumer to adjust, which is made after its Config.
func (a *additiveIncrease) drive(c interface{ SetConcurrency(n int) error }) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.consumer = c
}

// attempt is an Observer's Attempt.
func (a *additiveIncrease) attempt(_ context.Context, e reprise.Attempt) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.consumer == nil:
		return
	case reprise.IsUnavailable(e.Err):
		a.limit = max(1, a.limit*2/3)
	case e.Err == nil:
		a.limit = min(a.most, a.limit+1/a.limit)
	}
	if err := a.consumer.SetConcurrency(int(a.limit)); err != nil {
		log.Print(err)
	}
}

// The concurrency follows the load that the warehouse can bear. Any limiter that needs the results
// of attempts can be connected in this way.
func ExampleConsumer_SetConcurrency() {
	var (
		ctx       context.Context
		sqsClient *sqs.Client
		queueURL  string
	)
	adaptive := &additiveIncrease{limit: 8, most: 64}
	consumer, err := reprise.New(sqsClient, queueURL, reprise.JSON(ship), reprise.Config{
		Concurrency: 8,
		Observer:    reprise.Observer{Attempt: adaptive.attempt},
	})
	if err != nil {
		log.Fatal(err)
	}
	adaptive.drive(consumer)
	log.Fatal(consumer.Run(ctx))
}
