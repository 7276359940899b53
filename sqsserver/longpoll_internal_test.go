package sqsserver

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise/internal/engine"
)

// A poll that is served in the moment in which its context ends gives the message
// back. The test holds the lock, so that the poll has seen its context end and
// cannot leave the list before it is served.
func TestPollServedTooLateGivesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{})
		defer s.Close()
		created, err := s.CreateQueue(t.Context(), &CreateQueueInput{QueueName: "q"})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		result := make(chan error, 1)
		go func() {
			_, err := s.ReceiveMessage(ctx, &ReceiveMessageInput{QueueUrl: created.QueueUrl, WaitTimeSeconds: Int(20)})
			result <- err
		}()
		synctest.Wait()

		q := s.byARN["arn:aws:sqs:us-east-1:000000000000:q"]
		err = s.underLock(q, func(now time.Time) {
			cancel()
			s.engine.Send(now, q.engine, engine.Message{ID: engine.ID{1}, Payload: &content{body: body{text: "x"}}})
		})
		if err != nil {
			t.Fatal(err)
		}

		if err := <-result; !errors.Is(err, context.Canceled) {
			t.Errorf("the poll returned %v, want Canceled", err)
		}
		messages, err := s.Messages("q", Page{})
		if err != nil || len(messages) != 1 {
			t.Fatalf("the queue has %v, %v; want the message", messages, err)
		}
		if m := messages[0]; m.State != Visible || m.Receives != 1 {
			t.Errorf("the message is %s after %d receives, want it received once and visible again", m.State, m.Receives)
		}
	})
}

// The timer is armed only while a long poll waits for a hidden message.
func TestTimerIsArmedOnlyForPolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{})
		defer s.Close()
		created, err := s.CreateQueue(t.Context(), &CreateQueueInput{QueueName: "q"})
		if err != nil {
			t.Fatal(err)
		}
		send := &SendMessageInput{QueueUrl: created.QueueUrl, SendMessageEntry: SendMessageEntry{MessageBody: "x", DelaySeconds: Int(60)}}
		if _, err := s.SendMessage(t.Context(), send); err != nil {
			t.Fatal(err)
		}
		if !s.longPoll.due.IsZero() {
			t.Errorf("nobody polls, and the timer is armed for %v", s.longPoll.due)
		}
		armed := make(chan time.Time, 1)
		time.AfterFunc(time.Second, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			armed <- s.longPoll.due
		})
		want := time.Now().Add(time.Minute)
		if _, err := s.ReceiveMessage(t.Context(), &ReceiveMessageInput{QueueUrl: created.QueueUrl, WaitTimeSeconds: Int(20)}); err != nil {
			t.Fatal(err)
		}
		if due := <-armed; !due.Equal(want) {
			t.Errorf("during the poll the timer is armed for %v, want %v", due, want)
		}
		if !s.longPoll.due.IsZero() || len(s.longPoll.polled) != 0 {
			t.Errorf("after the poll the timer is armed for %v", s.longPoll.due)
		}
	})
}

// A direct short poll and a direct delete allocate little.
func TestDirectCallsAllocateLittle(t *testing.T) {
	s := New(Config{})
	defer s.Close()
	created, err := s.CreateQueue(t.Context(), &CreateQueueInput{QueueName: "q"})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	receive := &ReceiveMessageInput{QueueUrl: created.QueueUrl, MaxNumberOfMessages: Int(10), MessageSystemAttributeNames: []string{"All"}}
	send := &SendMessageBatchInput{QueueUrl: created.QueueUrl}
	for _, id := range []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"} {
		send.Entries = append(send.Entries, SendMessageBatchRequestEntry{Id: id, SendMessageEntry: SendMessageEntry{MessageBody: "body"}})
	}

	if got := testing.AllocsPerRun(100, func() { s.ReceiveMessage(ctx, receive) }); got > 1 {
		t.Errorf("an empty receive allocates %v times, want the output only", got)
	}
	got := testing.AllocsPerRun(100, func() {
		s.SendMessageBatch(ctx, send)
		out, err := s.ReceiveMessage(ctx, receive)
		if err != nil || len(out.Messages) != 10 {
			t.Fatalf("received %v, %v; want ten messages", out, err)
		}
		in := &DeleteMessageBatchInput{QueueUrl: created.QueueUrl}
		for i := range out.Messages {
			in.Entries = append(in.Entries, DeleteMessageBatchRequestEntry{Id: send.Entries[i].Id, ReceiptHandle: out.Messages[i].ReceiptHandle})
		}
		if out, err := s.DeleteMessageBatch(ctx, in); err != nil || len(out.Failed) > 0 {
			t.Fatalf("deleted %v, %v", out, err)
		}
	})
	// Ten contents, ten handles; the rest is inputs and outputs of three calls.
	if got > 32 {
		t.Errorf("the life of ten messages allocates %v times, want at most 32", got)
	}
}
