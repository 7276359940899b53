package sqsserver_test

import (
	"context"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// testServer is a server with a queue, called without HTTP.
type testServer struct {
	*testing.T
	server *sqsserver.Server
	url    string
}

func newTestServer(t *testing.T, attributes map[string]string) *testServer {
	b := &testServer{T: t, server: newServer(t)}
	b.url = b.create("q", attributes)
	return b
}

func (b *testServer) create(name string, attributes map[string]string) (url string) {
	b.Helper()
	out, err := b.server.CreateQueue(b.Context(), &sqsserver.CreateQueueInput{QueueName: name, Attributes: attributes})
	if err != nil {
		b.Fatal(err)
	}
	return out.QueueUrl
}

func (b *testServer) send(body string, change ...func(*sqsserver.SendMessageInput)) {
	b.Helper()
	in := &sqsserver.SendMessageInput{QueueUrl: b.url, SendMessageEntry: sqsserver.SendMessageEntry{MessageBody: body}}
	for _, f := range change {
		f(in)
	}
	if _, err := b.server.SendMessage(b.Context(), in); err != nil {
		b.Fatal(err)
	}
}

// poll receives one message with a long poll of 20 s, and returns how long it
// took.
func (b *testServer) poll(ctx context.Context) ([]sqsserver.Message, time.Duration, error) {
	start := time.Now()
	out, err := b.server.ReceiveMessage(ctx, &sqsserver.ReceiveMessageInput{QueueUrl: b.url, WaitTimeSeconds: sqsserver.Int(20)})
	if err != nil {
		return nil, time.Since(start), err
	}
	return out.Messages, time.Since(start), nil
}

// receive receives up to ten messages without waiting.
func (b *testServer) receive(url string) []sqsserver.Message {
	b.Helper()
	out, err := b.server.ReceiveMessage(b.Context(), &sqsserver.ReceiveMessageInput{
		QueueUrl: url, MaxNumberOfMessages: sqsserver.Int(10), MessageSystemAttributeNames: []string{"All"},
	})
	if err != nil {
		b.Fatal(err)
	}
	return out.Messages
}

func (b *testServer) changeVisibility(handle string, seconds int32) error {
	return b.server.ChangeMessageVisibility(b.Context(), &sqsserver.ChangeMessageVisibilityInput{
		QueueUrl: b.url, ReceiptHandle: handle, VisibilityTimeout: sqsserver.Int(seconds),
	})
}

func (b *testServer) delete(handle string) error {
	return b.server.DeleteMessage(b.Context(), &sqsserver.DeleteMessageInput{QueueUrl: b.url, ReceiptHandle: handle})
}
