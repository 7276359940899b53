package emulator_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	lambdaclient "github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/smithy-go/middleware"
	"github.com/google/go-cmp/cmp"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/lambda/emulator"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestAsynchronousInvoke: an event that a real client sends and a real function
// fails, three times, ends as a record in a queue, under the id that the client got.
func TestAsynchronousInvoke(t *testing.T) {
	t.Parallel()
	const queue = "arn:aws:sqs:us-east-1:000000000000:failed"
	f := self(t, "f")
	f.Async.OnFailure = queue
	records := make(chan string, 10)
	l, j := open(t, emulator.Config{
		Functions: []emulator.Function{f},
		TimeScale: 6000, // AWS's minute in 10 ms
		Send: func(_ context.Context, to, body string, _ []sqsserver.MessageAttribute) error {
			if to != queue {
				t.Errorf("sent to %s", to)
			}
			records <- body
			return nil
		},
	})
	out, err := sdk(serve(t, l)).Invoke(t.Context(), &lambdaclient.InvokeInput{
		FunctionName: aws.String("f"), InvocationType: types.InvocationTypeEvent, Payload: encode(t, order{Do: "fail", Text: "no stock"}),
	})
	if err != nil {
		t.Fatal(err)
	}
	id := requestID(out.ResultMetadata)

	var got map[string]any
	if err := json.Unmarshal([]byte(<-records), &got); err != nil {
		t.Fatal(err)
	}
	delete(got, "timestamp")
	want := map[string]any{
		"version": "1.0",
		"requestContext": map[string]any{
			"requestId": id, "functionArn": "arn:aws:lambda:us-east-1:000000000000:function:f:$LATEST",
			"condition": "RetriesExhausted", "approximateInvokeCount": 3.0,
		},
		"requestPayload":  map[string]any{"do": "fail", "text": "no stock"},
		"responseContext": map[string]any{"statusCode": 200.0, "executedVersion": "$LATEST", "functionError": "Unhandled"},
		"responsePayload": map[string]any{"errorMessage": "no stock", "errorType": "refusal"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the record (-want +got):\n%s", diff)
	}
	starts := 0
	for _, text := range j.texts(emulator.SourcePlatform) {
		if text == "START RequestId: "+id+" Version: $LATEST" {
			starts++
		}
	}
	if starts != 3 {
		t.Errorf("the function was started %d times under the id %s, want 3", starts, id)
	}
}

func requestID(metadata middleware.Metadata) string {
	id, _ := awsmiddleware.GetRequestIDMetadata(metadata)
	return id
}
