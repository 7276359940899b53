package forward_test

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/retry"
)

// decide says what the default policy does with a handler's error: the verdict as
// the consumer will act on it.
func decide(err error) (retry.Action, time.Duration) {
	now := time.Now()
	d := retry.Policy{Jitter: retry.None}.Decide(retry.Failure{N: 1, Seed: "m", First: now, Ended: now, Err: err})
	return d.Action, d.At.Sub(now)
}

func message(body string) *reprise.Message {
	return &reprise.Message{
		ID: "m-1", OriginID: "m-0", Body: body, GroupID: "eu",
		Sent:          time.Date(2026, 11, 21, 7, 40, 0, 123e6, time.UTC),
		FirstReceived: time.Date(2026, 11, 21, 8, 0, 0, 0, time.FixedZone("CET", 3600)),
		Attempt:       3, Receives: 4,
		Attributes: map[string]types.MessageAttributeValue{
			"traceId":        {DataType: aws.String("String"), StringValue: aws.String("abc")},
			"retries.max-x1": {DataType: aws.String("Number.int"), StringValue: aws.String("42")},
			"raw":            {DataType: aws.String("Binary"), BinaryValue: []byte{0, 1}},
			"lines":          {DataType: aws.String("String"), StringValue: aws.String("a\nb")},
			"größe":          {DataType: aws.String("String"), StringValue: aws.String("XL")},
			"name":           {DataType: aws.String("String"), StringValue: aws.String("Zoë 🚀")},
		},
	}
}
