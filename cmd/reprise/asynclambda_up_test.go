//go:build unix

package main_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/reprise-sqs/reprise/repriselambda"
)

// TestAsyncLambdaUp runs the example's template by one command: an event that fails
// twice succeeds at the third attempt, and one that never succeeds is dead-lettered.
func TestAsyncLambdaUp(t *testing.T) {
	t.Parallel()
	p := startIn(t, lambdaEnvironment(t), "lambda", "up", "--allow-outside", "../../examples/asynclambda/template.yaml", "--addr", "127.0.0.1:0",
		"--param", "BaseBackoff=200ms", "--param", "MaxRetries=2")
	endpoint := p.await("SQS endpoint")
	t.Logf("the example is ready %s", p.await("ready"))
	for _, payload := range []string{`{"id":"u-1","fail_until":3}`, `{"id":"u-2","fail_until":1000}`} {
		if r := reprise(t, "", "lambda", "invoke", "Flaky", payload, "--event", "--endpoint", endpoint); r.code != 0 {
			t.Fatalf("the invoke of %s exits with %d: %s%s", payload, r.code, r.stdout, r.stderr)
		}
	}
	want := map[string]bool{
		"failing id=u-1 attempt=1": true, "failing id=u-1 attempt=2": true, "done id=u-1 attempt=3": true,
		"failing id=u-2 attempt=1": true, "failing id=u-2 attempt=2": true, "failing id=u-2 attempt=3": true,
	}
	timeout := time.After(patience)
	for len(want) > 0 {
		select {
		case line := <-p.lines:
			for text := range want {
				if strings.Contains(line, text) {
					delete(want, text)
				}
			}
		case <-timeout:
			t.Fatalf("the function never said %v. All that was printed:\n%s", want, p.output())
		}
	}
	out, err := client(endpoint).ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{
		QueueUrl: aws.String(endpoint + "/000000000000/DeadLetterQueue"), WaitTimeSeconds: 20, MessageAttributeNames: []string{"All"},
	})
	if err != nil || len(out.Messages) != 1 {
		t.Fatalf("the dead-letter queue gives %+v, %v, and not one message", out, err)
	}
	m := out.Messages[0]
	if *m.Body != `{"id":"u-2","fail_until":1000}` || aws.ToString(m.MessageAttributes[repriselambda.ReasonAttribute].StringValue) != "attempts" {
		t.Errorf("the dead letter is %s, with %v", *m.Body, m.MessageAttributes)
	}
	p.signal(syscall.SIGINT)
	if code, output := p.wait(); code != 0 {
		t.Errorf("it exits with %d:\n%s", code, output)
	}
}
