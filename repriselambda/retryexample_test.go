package repriselambda_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"time"

	"github.com/reprise-sqs/reprise/idempotency"
	"github.com/reprise-sqs/reprise/repriselambda"
	"github.com/reprise-sqs/reprise/retry"
)

func ExampleRetryHandler() {
	sqsClient, lambdaClient := agreeable{}, new(willing) // stand for sqs.NewFromConfig(cfg) and lambda.NewFromConfig(cfg)

	handle, err := repriselambda.RetryHandler(repriselambda.RetryConfig{
		Client: sqsClient,
		Lambda: lambdaClient,
		Retry: retry.Policy{
			Backoff:     retry.Exponential{Base: 2 * time.Second, Max: 12 * time.Hour},
			Jitter:      retry.FromBase,
			MaxAttempts: -1,
			MaxAge:      72 * time.Hour,
		},
		Functions: map[string]retry.Policy{
			"billing": {Backoff: retry.Constant(10 * time.Minute), MaxAttempts: -1, MaxAge: 7 * 24 * time.Hour},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	// In the function: lambda.Start(handle)

	failure := `{"version":"1.0","timestamp":"` + time.Now().Add(-time.Hour).UTC().Format(time.RFC3339) + `",
		"requestContext":{"requestId":"4e2b","functionArn":"arn:aws:lambda:us-east-1:123456789012:function:ship:$LATEST","condition":"RetriesExhausted","approximateInvokeCount":1},
		"requestPayload":{"order":"o-1"},
		"responsePayload":{"errorType":"Timeout","errorMessage":"no carrier today"}}`
	response, err := handle(context.Background(), repriselambda.Event{Records: []repriselambda.Record{
		{MessageID: "m-1", ReceiptHandle: "h-1", Body: failure, EventSourceARN: "arn:aws:sqs:us-east-1:123456789012:retry"},
	}})
	if err != nil {
		log.Fatal(err)
	}
	for _, in := range lambdaClient.invoked {
		var envelope struct {
			Metadata struct{ Attempt int } `json:"_retry_metadata"`
			Payload  json.RawMessage       `json:"_original_payload"`
		}
		if err := json.Unmarshal(in.Payload, &envelope); err != nil {
			log.Fatal(err)
		}
		fmt.Println(in.InvocationType, *in.FunctionName, "retry", envelope.Metadata.Attempt, string(envelope.Payload))
	}
	fmt.Println(len(response.BatchItemFailures), "messages come again")
	// Output:
	// Event arn:aws:lambda:us-east-1:123456789012:function:ship retry 1 {"order":"o-1"}
	// 0 messages come again
}

// A function that the retry handler invoked before it died is not invoked again. The store
// must outlive the retry handler.
func ExampleRetryConfig_middleware() {
	sqsClient, lambdaClient := agreeable{}, new(willing)
	store := idempotency.NewMemory(idempotency.MemoryConfig{}) // stands for one of DynamoDB

	once, err := idempotency.New(store, idempotency.Config{Prefix: "retryhandler/"})
	if err != nil {
		log.Fatal(err)
	}
	handle, err := repriselambda.RetryHandler(repriselambda.RetryConfig{
		Client:     sqsClient,
		Lambda:     lambdaClient,
		Middleware: once,
	})
	if err != nil {
		log.Fatal(err)
	}

	failure := `{"timestamp":"` + time.Now().Add(-time.Hour).UTC().Format(time.RFC3339) + `","requestContext":{"requestId":"4e2b","functionArn":"ship","condition":"RetriesExhausted"},"requestPayload":{}}`
	event := repriselambda.Event{Records: []repriselambda.Record{
		{MessageID: "m-1", ReceiptHandle: "h-1", Body: failure, EventSourceARN: "arn:aws:sqs:us-east-1:123456789012:retry"},
	}}
	for range 2 { // the first reply was lost
		if _, err := handle(context.Background(), event); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(len(lambdaClient.invoked), "invocation")
	// Output: 1 invocation
}
