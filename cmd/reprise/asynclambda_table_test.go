//go:build unix

package main_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// TestAsyncLambdaUpOnce: the example's table is kept with --data. A failure that the
// retry handler has worked on is not worked on again when its record comes a second
// time, after everything was killed and started again.
func TestAsyncLambdaUpOnce(t *testing.T) {
	t.Parallel()
	args := []string{"lambda", "up", "--allow-outside", "../../examples/asynclambda/template.yaml", "--addr", "127.0.0.1:0", "--data", filepath.Join(t.TempDir(), "data"), "--param", "BaseBackoff=200ms"}
	record := func(id string) string {
		return fmt.Sprintf(`{"version":"1.0","timestamp":%q,"requestContext":{"requestId":"request-of-%s","functionArn":"arn:aws:lambda:us-east-1:000000000000:function:Flaky:$LATEST",`+
			`"condition":"RetriesExhausted","approximateInvokeCount":1},"requestPayload":{"id":%q},"responsePayload":{}}`, time.Now().UTC().Format("2006-01-02T15:04:05.000Z"), id, id)
	}
	send := func(endpoint, id string) {
		t.Helper()
		if got := reprise(t, "", "lambda", "send", "--endpoint", endpoint, "RetryQueue", record(id)); got.code != 0 {
			t.Fatalf("lambda send: %+v", got)
		}
	}
	env := lambdaEnvironment(t)
	p := startIn(t, env, args...)
	endpoint := p.await("SQS endpoint")
	p.await("ready")
	send(endpoint, "once")
	p.await("done id=once attempt=2")
	awaitEmpty(t, endpoint, "RetryQueue") // then the table knows, too
	if got := reprise(t, "", "lambda", "invoke", "Flaky", `{"id":"between"}`, "--endpoint", endpoint); got.code != 0 {
		t.Fatalf("lambda invoke: %+v", got) // by its end, that of the event before is kept
	}
	p.signal(syscall.SIGKILL)
	p.wait()

	p = startIn(t, env, args...)
	endpoint = p.await("SQS endpoint")
	p.await("ready")
	send(endpoint, "once")
	awaitEmpty(t, endpoint, "RetryQueue")
	send(endpoint, "other")
	p.await("done id=other attempt=2")
	if text := p.output(); strings.Contains(text, "id=once") {
		t.Errorf("the function has run again for a record that came twice:\n%s", text)
	}
}

// awaitEmpty waits until a queue has no message, not even one in flight.
func awaitEmpty(t *testing.T, endpoint, queue string) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		out, err := client(endpoint).GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{
			QueueUrl: queueURL(endpoint, queue), AttributeNames: []types.QueueAttributeName{"ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"},
		})
		if err != nil {
			t.Fatal(err)
		}
		if out.Attributes["ApproximateNumberOfMessages"] == "0" && out.Attributes["ApproximateNumberOfMessagesNotVisible"] == "0" {
			return
		}
	}
	t.Fatalf("messages are left in %s", queue)
}
