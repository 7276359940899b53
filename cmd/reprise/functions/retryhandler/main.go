// Command retryhandler is the AWS Lambda function behind the retry queue of
// asynchronous functions: repriselambda.RetryHandler, set up by its environment.
//
// Its event source is the retry queue, with ReportBatchItemFailures. Durations are
// whole seconds, or like 90s, 10m and 24h. Every variable is optional unless its
// description says otherwise:
//
//	MODE                   envelope (default): the function is invoked asynchronously, in
//	                       the envelope that counts its retries. direct: synchronously,
//	                       with its payload as it was
//	TARGET_TIMEOUT         the longest timeout of the functions; direct mode needs it, and
//	                       a timeout of this function that is 30 s longer
//	BASE_BACKOFF           the first wait; before the n-th retry it is between this and
//	                       2^(n-1) times as long, at most 12 h. Default: 1
//	MAX_RETRIES            runs after the first one. Default: unlimited
//	MAX_AGE                the time since the first failure. Default: 24h
//	RETRY_POLICY           instead of those three, a policy in the text form of package retry:
//	                       "exponential(base=2s,max=1h) jitter=full attempts=10 age=12h".
//	                       What it leaves out has that package's default: 20 attempts, 96h
//	RETRY_CONFIG           policies by function, and the types of errors that no retry can fix,
//	                       {"functions": {"NAME or ARN": "POLICY"}, "permanent": ["TYPE"]},
//	                       or the path of a file with that, such as retry.json, in this
//	                       function's package
//	DEAD_LETTER_QUEUE_URL  the queue for events that are given up. Default: the retry queue's own
//	                       dead-letter queue, which needs sqs:GetQueueAttributes
//	ALLOWED_FUNCTIONS      the functions that may be invoked, by name or ARN, separated by
//	                       commas: records of others go to the dead-letter queue.
//	                       Default: all that the role may invoke
//	REPRISE_SIGNING_KEYS   the keys that sign the histories of copies and the stories of
//	                       dead letters, a line ID:SECRET each. Default: none
//	CONCURRENCY            functions invoked at once by one invocation. Default: 10
//	IDEMPOTENCY_TABLE      a DynamoDB table with the string id for a partition key: a
//	                       function is then not invoked again if this one died after it had
//	                       invoked it. Default: none
//
// The role needs lambda:InvokeFunction on the functions; on the retry queue what
// Lambda's pollers need, sqs:ChangeMessageVisibility, sqs:SendMessage and
// sqs:GetQueueAttributes; sqs:SendMessage on the dead-letter queue; and, on the
// table, dynamodb:PutItem, dynamodb:UpdateItem, dynamodb:DeleteItem and
// dynamodb:GetItem.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	awslambda "github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/adapters/dynamostore"
	"github.com/reprise-sqs/reprise/idempotency"
	"github.com/reprise-sqs/reprise/repriselambda"
)

func main() {
	slog.SetDefault(slog.New(slog.NewJSONHandler(os.Stderr, nil)))
	handle, err := handler(context.Background(), os.Getenv)
	if err != nil {
		slog.Error("the retry handler cannot start", "error", err)
		os.Exit(1)
	}
	lambda.Start(handle)
}

type handleFunc = func(context.Context, repriselambda.Event) (repriselambda.Response, error)

// handler makes the function from its environment and the AWS settings.
func handler(ctx context.Context, getenv func(string) string) (handleFunc, error) {
	env, err := read(getenv)
	if err != nil {
		return nil, err
	}
	aws, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the AWS settings: %w", err)
	}
	cfg := env.retry
	cfg.Client = sqs.NewFromConfig(aws, reprise.Tuned(reprise.Transport{}))
	cfg.Lambda = awslambda.NewFromConfig(aws)
	if env.table != "" {
		store, err := dynamostore.New(dynamodb.NewFromConfig(aws), dynamostore.Config{Table: env.table})
		if err != nil {
			return nil, fmt.Errorf("IDEMPOTENCY_TABLE: %w", err)
		}
		if cfg.Middleware, err = idempotency.New(store, idempotency.Config{Prefix: "retryhandler/"}); err != nil {
			return nil, err
		}
	}
	return repriselambda.RetryHandler(cfg)
}
