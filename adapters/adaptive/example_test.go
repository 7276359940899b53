package adaptive_test

import (
	"context"
	"log"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/adapters/adaptive"
)

// As many orders are shipped at once as the warehouse bears.
func Example() {
	var (
		ctx       context.Context
		sqsClient *sqs.Client
		queueURL  string
		ship      reprise.Handler
	)
	limiter, err := adaptive.New(adaptive.Config{Most: 200})
	if err != nil {
		log.Fatal(err)
	}
	consumer, err := reprise.New(sqsClient, queueURL, limiter.Wrap(ship), reprise.Config{
		Concurrency: limiter.Concurrency(),
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := limiter.Drive(consumer); err != nil {
		log.Fatal(err)
	}
	log.Fatal(consumer.Run(ctx))
}
