package reprise_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// Reading is a measurement of the example's sensors.
type Reading struct {
	Sensor  string  `json:"sensor"`
	Celsius float64 `json:"celsius"`
}

// readings stands for a table of measurements.
var readings = struct {
	InsertAll func(context.Context, []Reading) error
}{}

func insertReadings(ctx context.Context, rows []Reading, ms []*reprise.Message) []error {
	err := readings.InsertAll(ctx, rows)
	return slices.Repeat([]error{err}, len(rows)) // nil: all are done; else each is retried by the policy
}

func consumeReadings(ctx context.Context, sqsClient *sqs.Client, queueURL string) error {
	consumer, err := reprise.NewBatchConsumer(sqsClient, queueURL, reprise.JSONBatch(insertReadings), reprise.BatchConfig{
		Size:   1000,
		Linger: time.Second,
		Config: reprise.Config{Concurrency: 4}, // batches at once
	})
	if err != nil {
		return err
	}
	return consumer.Run(ctx)
}

// Rows are inserted together; a message that is not a row is given up by itself.
func ExampleNewBatchConsumer() {
	server := httptest.NewServer(sqsserver.New(sqsserver.Config{}))
	defer server.Close()
	client := sqs.New(sqs.Options{
		BaseEndpoint: &server.URL,
		Region:       "us-east-1",
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "local", SecretAccessKey: "local"}, nil
		}),
	}, reprise.Tuned(reprise.Transport{}))

	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	queue, err := client.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String("readings")})
	if err != nil {
		log.Fatal(err)
	}
	var entries []types.SendMessageBatchRequestEntry
	for i, body := range []string{`{"sensor":"roof","celsius":21.5}`, `21.5`, `{"sensor":"cellar","celsius":12}`} {
		entries = append(entries, types.SendMessageBatchRequestEntry{Id: aws.String(fmt.Sprint(i)), MessageBody: &body})
	}
	if _, err := client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: queue.QueueUrl, Entries: entries}); err != nil {
		log.Fatal(err)
	}

	readings.InsertAll = func(_ context.Context, rows []Reading) error {
		fmt.Println(len(rows), "rows in one insert")
		stop() // as a SIGTERM would
		return nil
	}
	fmt.Println(consumeReadings(ctx, client, *queue.QueueUrl))
	// Output:
	// 2 rows in one insert
	// <nil>
}
