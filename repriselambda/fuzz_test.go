package repriselambda_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/repriselambda"
)

// agreeable is a client that has no queue and grants everything.
type agreeable struct{ reprise.Client }

func (agreeable) GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	return &sqs.GetQueueAttributesOutput{}, nil
}

func (agreeable) ChangeMessageVisibilityBatch(_ context.Context, in *sqs.ChangeMessageVisibilityBatchInput, _ ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	out := &sqs.ChangeMessageVisibilityBatchOutput{}
	for _, e := range in.Entries {
		out.Successful = append(out.Successful, types.ChangeMessageVisibilityBatchResultEntry{Id: e.Id})
	}
	return out, nil
}

func (agreeable) SendMessageBatch(_ context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	out := &sqs.SendMessageBatchOutput{}
	for _, e := range in.Entries {
		out.Successful = append(out.Successful, types.SendMessageBatchResultEntry{Id: e.Id})
	}
	return out, nil
}

// doesAtOnce is does, but for waiting for a deadline that is not there.
func doesAtOnce(ctx context.Context, m *reprise.Message) error {
	if strings.HasPrefix(m.Body, "wait") {
		return nil
	}
	return does(ctx, m)
}

// FuzzEvent gives functions arbitrary events. They must not panic, and their replies
// have to be ones that Lambda does not take for the failure of the whole batch.
func FuzzEvent(f *testing.F) {
	f.Add([]byte(`{"Records":[{"messageId":"059f36b4-87a3-44ab-83d2-661975830a7d","receiptHandle":"AQEBwJnK","body":"fail",
		"attributes":{"ApproximateReceiveCount":"1","SentTimestamp":"1545082649183","SenderId":"AIDAIENQZJOLO23YVJ4VO","ApproximateFirstReceiveTimestamp":"1545082649185"},
		"messageAttributes":{"k":{"stringValue":"v","stringListValues":[],"binaryListValues":[],"dataType":"String"}},
		"md5OfBody":"e4e68fb7bd0e697a0ae8f1bb342846b3","md5OfMessageAttributes":null,
		"eventSource":"aws:sqs","eventSourceARN":"arn:aws:sqs:us-east-2:123456789012:my-queue","awsRegion":"us-east-2"}]}`))
	f.Add([]byte(`{"Records":[{"messageId":"1","receiptHandle":"h","body":"permanent","attributes":{"ApproximateReceiveCount":"7","SentTimestamp":"-1","ApproximateFirstReceiveTimestamp":"99999999999999999","MessageGroupId":"g","SequenceNumber":"x"},
		"messageAttributes":{"reprise-history":{"stringValue":"{}","dataType":"String"},"b":{"binaryValue":"AP8H","dataType":"Binary"}},"eventSourceARN":"arn:aws-cn:sqs:cn-north-1:1:q.fifo"},
		{"messageId":"1","receiptHandle":"h","body":"ok","eventSourceARN":"arn:aws-cn:sqs:cn-north-1:1:q.fifo"}]}`))
	f.Add([]byte(`{"Records":[{}]}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var event repriselambda.Event
		if json.Unmarshal(text, &event) != nil || len(event.Records) > 50 {
			return
		}
		for _, in := range modes {
			f, err := in.make(doesAtOnce, repriselambda.Config{Client: agreeable{}, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			response, err := f(context.Background(), event)
			if err != nil {
				continue
			}
			reply, err := json.Marshal(response)
			if err != nil {
				t.Fatal(err)
			}
			failures(t, event, reply)
		}
	})
}
