package redisstore_test

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/adapters/redisstore"
	"github.com/reprise-sqs/reprise/idempotency"
)

// The work of each message is done once by all processes that share a Redis server.
func Example() {
	run := func(ctx context.Context, sqsClient reprise.Client, queueURL string, handler reprise.Handler) error {
		client := redis.NewClient(&redis.Options{Addr: "localhost:6379", ContextTimeoutEnabled: true})
		defer client.Close()
		store, err := redisstore.New(client, redisstore.Config{})
		if err != nil {
			return err
		}
		once, err := idempotency.New(store, idempotency.Config{})
		if err != nil {
			return err
		}
		consumer, err := reprise.New(sqsClient, queueURL, once(handler), reprise.Config{})
		if err != nil {
			return err
		}
		return consumer.Run(ctx)
	}
	_ = run // it needs a server and a queue: the tests of this package have the first
}
