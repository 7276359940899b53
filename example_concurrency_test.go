package reprise_test

import (
	"context"
	"log"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/reprise-sqs/reprise"
)

// additiveIncrease finds the concurrency that a dependency bears: a little more
// with each success, a third less with each failure for want of the dependency.
type additiveIncrease struct {
	mu          sync.Mutex
	consumer    interface{ SetConcurrency(n int) error }
	limit, most float64
}

// drive sets what is to be driven: the consumer, which is made after its Config.
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

// The concurrency follows what the warehouse bears. Any limiter that wants to know
// how attempts end can be hooked in like this.
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
