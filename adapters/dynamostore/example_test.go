package dynamostore_test

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/adapters/dynamostore"
	"github.com/reprise-sqs/reprise/idempotency"
)

// A Lambda function in Python gets the same orders. Each is worked off once, by either side. The
// function has
//
//	@idempotent(
//	    persistence_store=DynamoDBPersistenceLayer(table_name="idempotency"),
//	    config=IdempotencyConfig(event_key_jmespath="order_id"),
//	    key_prefix="orders",
//	)
func Example_powertools() {
	run := func(ctx context.Context, client *dynamodb.Client, sqsClient reprise.Client, queueURL string, handler reprise.Handler) error {
		store, err := dynamostore.New(client, dynamostore.Config{Table: "idempotency"})
		if err != nil {
			return err
		}
		once, err := idempotency.New(store, idempotency.Config{
			Key: dynamostore.PythonKey("orders", idempotency.ByJSON("/order_id")),
		})
		if err != nil {
			return err
		}
		consumer, err := reprise.New(sqsClient, queueURL, once(handler), reprise.Config{})
		if err != nil {
			return err
		}
		return consumer.Run(ctx)
	}
	_ = run // it needs a table and a queue: TestPowertoolsForPython has the first, and the function
}
