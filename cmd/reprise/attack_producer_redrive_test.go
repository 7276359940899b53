//go:build unix

// This file holds off a producer that may send to one queue, and whose messages an
// operator sends back from its dead-letter queue: they must not reach another queue.

package main_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	library "github.com/reprise-sqs/reprise"
)

// sendForgedStory sends a message to queue whose story names another queue as its source.
func sendForgedStory(t *testing.T, endpoint, queue, source, body string) {
	t.Helper()
	story := fmt.Sprintf(`{"source":%q}`, source)
	if _, err := client(endpoint).SendMessage(t.Context(), &sqs.SendMessageInput{
		QueueUrl: queueURL(endpoint, queue), MessageBody: &body,
		MessageAttributes: map[string]types.MessageAttributeValue{library.StoryAttribute: {DataType: aws.String("String"), StringValue: &story}},
	}); err != nil {
		t.Fatal(err)
	}
}

// poll returns the messages of one receive without waiting.
func poll(t *testing.T, endpoint, queue string) (bodies []string) {
	t.Helper()
	out, err := client(endpoint).ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: queueURL(endpoint, queue), MaxNumberOfMessages: 10})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range out.Messages {
		bodies = append(bodies, *m.Body)
	}
	return bodies
}

// TestAttackRedriveToPayroll: a forged story does not make `reprise redrive` deliver to another
// queue, neither of a message that SQS has moved nor of one that was sent to the dead-letter
// queue; letters that stay are named with the remedy, and the exit code is 3.
func TestAttackRedriveToPayroll(t *testing.T) {
	t.Parallel()
	_, endpoint := serve(t, "--queue", "a,dead-letter=a-dead,max-receives=1,VisibilityTimeout=0", "--queue", "payroll,dead-letter=payroll-dead")
	sendForgedStory(t, endpoint, "a", "arn:aws:sqs:us-east-1:000000000000:payroll", "moved")
	for range 2 { // the receive after the last that is permitted moves it
		poll(t, endpoint, "a")
	}
	sendForgedStory(t, endpoint, "a-dead", "arn:aws:sqs:us-east-1:000000000000:payroll", "sent")
	sendForgedStory(t, endpoint, "a-dead", *queueURL(endpoint, "payroll"), "sent")
	sendForgedStory(t, endpoint, "a-dead", "arn:aws:sqs:us-east-1:111111111111:a", "sent")
	sendForgedStory(t, endpoint, "a-dead", "\u009b2J\u202e\x7f\nreprise: done", "sent")
	for _, args := range [][]string{{"--dry-run"}, nil} {
		got := reprise(t, "", append([]string{"redrive", "a-dead", "--endpoint", endpoint}, args...)...)
		if got.code != 3 || !strings.Contains(got.stdout, "back to "+*queueURL(endpoint, "a")+"\n") || strings.Contains(got.stdout, "back to "+*queueURL(endpoint, "payroll")) {
			t.Errorf("%q: exit code %d, %s%s", args, got.code, got.stdout, got.stderr)
		}
		for _, want := range []string{"payroll\", which does not exist or does not have this queue", "another account or region", "--to"} {
			if !strings.Contains(got.stdout, want) {
				t.Errorf("%q: does not say %q: %s", args, want, got.stdout)
			}
		}
		if strings.ContainsAny(got.stdout+got.stderr, "\u009b\u202e\x7f") || strings.Contains(got.stdout, "\nreprise: done") {
			t.Errorf("%q: printed %q", args, got.stdout)
		}
	}
	if got := poll(t, endpoint, "payroll"); len(got) > 0 {
		t.Errorf("payroll got %q", got)
	}
	if got := received(t, endpoint, "a", 1); len(got) != 1 || got[0] != "moved" {
		t.Errorf("a got %q", got)
	}
}

// TestAttackRedriveWithKeys: if only the consumer uses the dead-letter queue and no RedrivePolicy
// names it, redrive accepts stories that the consumer has signed, and no forged ones.
func TestAttackRedriveWithKeys(t *testing.T) {
	t.Parallel()
	_, endpoint := serve(t, "--queue", "orders", "--queue", "dead", "--queue", "payroll")
	keys := []string{"--signing-key-file", written(t, "keys", keyText+"\n")}
	p := start(t, append([]string{
		"run", "--queue", "orders", "--dead-letter", "dead", "--endpoint", endpoint, "--admin-addr", "none", "--long-poll", "1s", "--exec", "exit 100",
	}, keys...)...)
	sendOrders(t, endpoint, 1)
	p.await("message dead-lettered")
	p.signal(os.Interrupt)
	p.wait()
	sendForgedStory(t, endpoint, "dead", "arn:aws:sqs:us-east-1:000000000000:payroll", "forged")

	got := reprise(t, "", "redrive", "dead", "--any-queue", "--endpoint", endpoint)
	if got.code != 3 || strings.Contains(got.stdout, "sent back to") || !strings.Contains(got.stdout, "it is not signed") {
		t.Errorf("without keys: exit code %d, %s%s", got.code, got.stdout, got.stderr)
	}
	got = reprise(t, "", append([]string{"redrive", "dead", "--endpoint", endpoint}, keys...)...)
	if got.code != 3 || !strings.HasPrefix(got.stdout, "1 sent back to "+*queueURL(endpoint, "orders")+"\n1 left in ") {
		t.Errorf("with keys: exit code %d, %s%s", got.code, got.stdout, got.stderr)
	}
	if bodies := poll(t, endpoint, "payroll"); len(bodies) > 0 {
		t.Errorf("payroll got %q", bodies)
	}
}
