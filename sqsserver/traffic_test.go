package sqsserver_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// Producers, consumers that give up at random, and faults, all at once: in the end every
// message has been received, and no other one. The race detector finds data that no lock
// guards.
func TestConcurrentTraffic(t *testing.T) {
	const producers, perProducer, consumers = 4, 500, 8
	b := newTestServer(t, map[string]string{"VisibilityTimeout": "43200"})
	b.fault(sqsserver.Fault{Kind: sqsserver.FaultDuplicate, Every: 50},
		sqsserver.Fault{Kind: sqsserver.FaultThrottle, Action: "ReceiveMessage", Probability: 0.05},
		sqsserver.Fault{Kind: sqsserver.FaultFailEntry, Action: "DeleteMessageBatch", Probability: 0.05})

	var sent, deleted sync.Map
	var left atomic.Int64
	left.Store(producers * perProducer)
	done, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()

	var wg sync.WaitGroup
	for range producers {
		wg.Go(func() {
			for range perProducer {
				out, err := b.server.SendMessage(t.Context(), &sqsserver.SendMessageInput{
					QueueUrl: b.url, SendMessageEntry: sqsserver.SendMessageEntry{MessageBody: "x"}})
				if err != nil {
					t.Error(err)
					return
				}
				sent.Store(out.MessageId, true)
			}
		})
	}
	for i := range consumers {
		random := rand.New(rand.NewPCG(1, uint64(i)))
		wg.Go(func() {
			for done.Err() == nil {
				ctx, cancel := context.WithTimeout(done, time.Duration(random.IntN(2000))*time.Microsecond)
				out, err := b.server.ReceiveMessage(ctx, &sqsserver.ReceiveMessageInput{
					QueueUrl: b.url, MaxNumberOfMessages: sqsserver.Int(1 + random.Int32N(10)), WaitTimeSeconds: sqsserver.Int(20)})
				cancel()
				if err != nil {
					continue // throttled, or given up
				}
				in := &sqsserver.DeleteMessageBatchInput{QueueUrl: b.url}
				for j := range out.Messages {
					in.Entries = append(in.Entries, sqsserver.DeleteMessageBatchRequestEntry{
						Id: string(rune('a' + j)), ReceiptHandle: out.Messages[j].ReceiptHandle})
				}
				result, err := b.server.DeleteMessageBatch(t.Context(), in)
				if err != nil {
					t.Error(err)
					return
				}
				for _, e := range result.Successful {
					if _, known := deleted.LoadOrStore(out.Messages[e.Id[0]-'a'].MessageId, true); !known && left.Add(-1) == 0 {
						stop()
					}
				}
				for _, e := range result.Failed {
					err := b.server.ChangeMessageVisibility(t.Context(), &sqsserver.ChangeMessageVisibilityInput{
						QueueUrl: b.url, ReceiptHandle: out.Messages[e.Id[0]-'a'].ReceiptHandle, VisibilityTimeout: sqsserver.Int(0)})
					// Where the delete of a duplicate failed here, another consumer may
					// have deleted the message.
					if err != nil && !isCode(err, "InvalidParameterValue") {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	if n := left.Load(); n != 0 {
		t.Errorf("after a minute %d messages have not been received and deleted", n)
	}
	deleted.Range(func(id, _ any) bool {
		if _, known := sent.Load(id); !known {
			t.Errorf("received message %v that nobody sent", id)
		}
		return true
	})
	// Only messages that were deleted by an older receipt handle may be left, not one that
	// was never deleted.
	messages, err := b.server.Messages("q", sqsserver.Page{})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range messages {
		if m.Receives < 2 {
			t.Errorf("message %s was not received to its end: %+v", m.ID, m)
		}
	}
}
