package sqsserver_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// At the quota of messages in flight a short poll of a standard queue is refused;
// a long poll, and a FIFO queue, answer nothing.
func TestInFlightQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := sqsserver.New(sqsserver.Config{InFlightLimit: 1})
		t.Cleanup(func() { server.Close() })
		for name, attributes := range map[string]map[string]string{"q": nil, "q.fifo": {"FifoQueue": "true", "ContentBasedDeduplication": "true"}} {
			b := &testServer{T: t, server: server}
			b.url = b.create(name, attributes)
			for _, group := range []string{"a", "b"} {
				b.send(group, func(in *sqsserver.SendMessageInput) { in.MessageGroupId = group })
			}
			if n := len(b.receive(b.url)); n != 1 {
				t.Fatalf("%s: received %d messages, want 1", name, n)
			}
			_, err := server.ReceiveMessage(t.Context(), &sqsserver.ReceiveMessageInput{QueueUrl: b.url})
			if refused := err != nil && strings.HasPrefix(err.Error(), "OverLimit: Too many messages"); refused != (name == "q") {
				t.Errorf("%s: a short poll at the quota returned %v", name, err)
			}
			if messages, took, err := b.poll(t.Context()); err != nil || len(messages) != 0 || took != 20*time.Second {
				t.Errorf("%s: a long poll at the quota returned %v, %v after %v", name, messages, err, took)
			}
		}
	})
}

// Without MaxResults a list has a thousand queues and no token.
func TestListsWithoutMaxResults(t *testing.T) {
	b := &testServer{T: t, server: newServer(t)}
	b.create("dead", nil)
	for i := range 1001 {
		b.create(fmt.Sprintf("q%04d", i), map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:dead","maxReceiveCount":1}`})
	}
	queues, err := b.server.ListQueues(t.Context(), &sqsserver.ListQueuesInput{QueueNamePrefix: "q"})
	if err != nil || len(queues.QueueUrls) != 1000 || queues.NextToken != "" {
		t.Errorf("%d queues, token %q, %v; want 1000 and none", len(queues.QueueUrls), queues.NextToken, err)
	}
	sources, err := b.server.ListDeadLetterSourceQueues(t.Context(), &sqsserver.ListDeadLetterSourceQueuesInput{QueueUrl: "dead"})
	if err != nil || len(sources.QueueUrls) != 1000 || sources.NextToken != "" {
		t.Errorf("%d sources, token %q, %v; want 1000 and none", len(sources.QueueUrls), sources.NextToken, err)
	}
}
