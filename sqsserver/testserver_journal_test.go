package sqsserver_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// journalServer is a server with a journal in memory.
type journalServer struct {
	*sqsserver.Server
	t       *testing.T
	journal *memoryJournal
	config  sqsserver.Config
}

func openJournalServer(t *testing.T, journal *memoryJournal, config sqsserver.Config) *journalServer {
	t.Helper()
	config.Logger = slog.New(slog.DiscardHandler)
	s, err := sqsserver.Open(journal, config)
	if err != nil {
		t.Fatal(err)
	}
	k := &journalServer{s, t, journal, config}
	t.Cleanup(func() { k.Close() })
	return k
}

// restart closes the server and opens another one on the same journal.
func (k *journalServer) restart() *journalServer {
	k.t.Helper()
	if err := k.Close(); err != nil {
		k.t.Fatalf("close: %v", err)
	}
	return openJournalServer(k.t, k.journal.reopened(), k.config)
}

func (k *journalServer) url(name string) string {
	return "http://sqs.us-east-1.localhost/000000000000/" + name
}
func (k *journalServer) arn(name string) string { return "arn:aws:sqs:us-east-1:000000000000:" + name }

func (k *journalServer) create(name string, attributes map[string]string) {
	k.t.Helper()
	_, err := k.CreateQueue(context.Background(), &sqsserver.CreateQueueInput{QueueName: name, Attributes: attributes})
	if err != nil {
		k.t.Fatalf("create %s: %v", name, err)
	}
}

func (k *journalServer) send(queue, body string) {
	k.t.Helper()
	if err := k.trySend(queue, body); err != nil {
		k.t.Fatalf("send %s: %v", body, err)
	}
}

func (k *journalServer) trySend(queue, body string) error {
	in := &sqsserver.SendMessageInput{QueueUrl: k.url(queue)}
	in.MessageBody = body
	if strings.HasSuffix(queue, ".fifo") {
		in.MessageGroupId, in.MessageDeduplicationId = "g", body
	}
	_, err := k.SendMessage(context.Background(), in)
	return err
}

// receive returns up to n messages, for the lease given in seconds.
func (k *journalServer) receive(queue string, n, lease int32) []sqsserver.Message {
	k.t.Helper()
	out, err := k.ReceiveMessage(context.Background(), &sqsserver.ReceiveMessageInput{
		QueueUrl: k.url(queue), MaxNumberOfMessages: sqsserver.Int(n), VisibilityTimeout: sqsserver.Int(lease),
		MessageAttributeNames: []string{"All"}, MessageSystemAttributeNames: []string{"All"},
	})
	if err != nil {
		k.t.Fatalf("receive: %v", err)
	}
	return out.Messages
}

func (k *journalServer) deleteMessage(queue, handle string) error {
	return k.DeleteMessage(context.Background(), &sqsserver.DeleteMessageInput{QueueUrl: k.url(queue), ReceiptHandle: handle})
}

func (k *journalServer) changeVisibility(queue, handle string, seconds int32) error {
	return k.ChangeMessageVisibility(context.Background(), &sqsserver.ChangeMessageVisibilityInput{
		QueueUrl: k.url(queue), ReceiptHandle: handle, VisibilityTimeout: sqsserver.Int(seconds)})
}

func bodies(messages []sqsserver.Message) string {
	var all []string
	for _, m := range messages {
		all = append(all, m.Body)
	}
	return strings.Join(all, " ")
}
