package sqsserver_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// A long poll ends with the event that makes a message available, for every such event.
func TestLongPollWakes(t *testing.T) {
	tests := []struct {
		name       string
		attributes map[string]string
		prepare    func(*testServer)                // before the poll
		during     func(b *testServer, held string) // 7 s into it; held is the handle of a message received before
		want       time.Duration
	}{
		{name: "nothing comes", want: 20 * time.Second},
		{name: "a message is sent", want: 7 * time.Second,
			during: func(b *testServer, held string) { b.send("x") }},
		{name: "a delay ends", want: 5 * time.Second,
			prepare: func(b *testServer) {
				b.send("x", func(in *sqsserver.SendMessageInput) { in.DelaySeconds = sqsserver.Int(5) })
			}},
		{name: "a delay begins and ends", want: 9 * time.Second,
			during: func(b *testServer, held string) {
				b.send("x", func(in *sqsserver.SendMessageInput) { in.DelaySeconds = sqsserver.Int(2) })
			}},
		{name: "a lease ends", want: 11 * time.Second, attributes: map[string]string{"VisibilityTimeout": "11"},
			prepare: func(b *testServer) { b.send("x"); b.receive(b.url) }},
		{name: "a lease is cut short", want: 7 * time.Second,
			prepare: func(b *testServer) { b.send("x") },
			during: func(b *testServer, held string) {
				if err := b.changeVisibility(held, 0); err != nil {
					b.Error(err)
				}
			}},
		{name: "a lease is shortened", want: 10 * time.Second,
			prepare: func(b *testServer) { b.send("x") },
			during: func(b *testServer, held string) {
				if err := b.changeVisibility(held, 3); err != nil {
					b.Error(err)
				}
			}},
		{name: "a lease is renewed", want: 20 * time.Second, attributes: map[string]string{"VisibilityTimeout": "11"},
			prepare: func(b *testServer) { b.send("x") },
			during: func(b *testServer, held string) {
				if err := b.changeVisibility(held, 30); err != nil {
					b.Error(err)
				}
			}},
		{name: "the head of a FIFO group is deleted", want: 7 * time.Second,
			attributes: map[string]string{"FifoQueue": "true", "ContentBasedDeduplication": "true"},
			prepare: func(b *testServer) {
				for _, body := range []string{"1", "2"} {
					b.send(body, func(in *sqsserver.SendMessageInput) { in.MessageGroupId = "g" })
				}
			},
			during: func(b *testServer, held string) {
				if err := b.delete(held); err != nil {
					b.Error(err)
				}
			}},
		{name: "an operator releases a message", want: 7 * time.Second,
			prepare: func(b *testServer) { b.send("x"); b.receive(b.url) },
			during: func(b *testServer, held string) {
				messages, err := b.server.Messages("q", sqsserver.Page{})
				if err != nil || b.server.Release("q", messages[0].ID) != nil {
					b.Errorf("cannot release %v: %v", messages, err)
				}
			}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				name := "q"
				if test.attributes["FifoQueue"] != "" {
					name = "q.fifo"
				}
				b := &testServer{T: t, server: newServer(t)}
				b.url = b.create(name, test.attributes)
				if test.prepare != nil {
					test.prepare(b)
				}
				if test.during != nil {
					held := ""
					if messages := b.receiveOne(); len(messages) == 1 {
						held = messages[0].ReceiptHandle
					}
					time.AfterFunc(7*time.Second, func() { test.during(b, held) })
				}
				messages, took, err := b.poll(t.Context())
				if err != nil || took != test.want {
					t.Errorf("the poll took %v, %v; want %v", took, err, test.want)
				}
				if got, want := len(messages), 1; (got == want) != (test.want < 20*time.Second) {
					t.Errorf("the poll returned %d messages after %v", got, took)
				}
			})
		})
	}
}

func (b *testServer) receiveOne() []sqsserver.Message {
	out, err := b.server.ReceiveMessage(b.Context(), &sqsserver.ReceiveMessageInput{QueueUrl: b.url})
	if err != nil {
		b.Fatal(err)
	}
	return out.Messages
}

// A dead-lettered message wakes those who poll the dead-letter queue.
func TestLongPollOfDeadLetters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestServer(t, map[string]string{"VisibilityTimeout": "5"})
		source := b.url
		dead := b.create("dead", nil)
		err := b.server.SetQueueAttributes(t.Context(), &sqsserver.SetQueueAttributesInput{QueueUrl: source, Attributes: map[string]string{
			"RedrivePolicy": `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:dead","maxReceiveCount":1}`,
		}})
		if err != nil {
			t.Fatal(err)
		}
		b.send("x")
		b.receive(source)
		time.AfterFunc(7*time.Second, func() {
			if messages := b.receive(source); len(messages) != 0 {
				t.Errorf("the source delivered %v once too often", messages)
			}
		})
		b.url = dead
		if messages, took, err := b.poll(t.Context()); err != nil || len(messages) != 1 || took != 7*time.Second {
			t.Errorf("the poll returned %v, %v after %v; want the dead letter after 7s", messages, err, took)
		}
	})
}

// Ten thousand wait; one message wakes one of them, the one that came first.
func TestLongPollWakesOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const polls = 10_000
		b := newTestServer(t, nil)
		var mu sync.Mutex
		var served []int
		var wg sync.WaitGroup
		for i := range polls {
			wg.Go(func() {
				messages, _, err := b.poll(t.Context())
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Error(err)
				} else if len(messages) > 0 {
					served = append(served, i)
				}
			})
			if i == 0 {
				synctest.Wait() // so that it is the first
			}
		}
		synctest.Wait()
		if waiting := b.server.Queues()[0].Polls; waiting != polls {
			t.Fatalf("%d polls wait, want %d", waiting, polls)
		}
		b.send("x")
		synctest.Wait()
		if info := b.server.Queues()[0]; info.Polls != polls-1 || info.InFlight != 1 {
			t.Errorf("after one send %d polls wait and %d messages are in flight, want %d and 1", info.Polls, info.InFlight, polls-1)
		}
		wg.Wait()
		if len(served) != 1 || served[0] != 0 {
			t.Errorf("polls %v got a message, want the first", served)
		}
	})
}

// A batch is shared out among the polls that wait, in their order and up to what
// each asked for.
func TestLongPollsShareABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestServer(t, nil)
		got := make([]int, 4)
		var wg sync.WaitGroup
		for i, limit := range []int32{3, 6, 10, 1} {
			wg.Go(func() {
				out, err := b.server.ReceiveMessage(t.Context(), &sqsserver.ReceiveMessageInput{
					QueueUrl: b.url, MaxNumberOfMessages: sqsserver.Int(limit), WaitTimeSeconds: sqsserver.Int(20)})
				if err != nil {
					t.Error(err)
					return
				}
				got[i] = len(out.Messages)
			})
			synctest.Wait()
		}
		in := &sqsserver.SendMessageBatchInput{QueueUrl: b.url}
		for i := range 10 {
			in.Entries = append(in.Entries, sqsserver.SendMessageBatchRequestEntry{
				Id: fmt.Sprint(i), SendMessageEntry: sqsserver.SendMessageEntry{MessageBody: "x"}})
		}
		if _, err := b.server.SendMessageBatch(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		if want := []int{3, 6, 1, 0}; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("the polls got %v messages, want %v", got, want)
		}
	})
}

func TestCancelledPollReceivesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestServer(t, nil)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if _, took, err := b.poll(ctx); !errors.Is(err, context.DeadlineExceeded) || took != 3*time.Second {
			t.Errorf("the poll returned %v after %v, want DeadlineExceeded after 3s", err, took)
		}
		b.send("x")
		if messages := b.receive(b.url); len(messages) != 1 || messages[0].Attributes.ApproximateReceiveCount != 1 {
			t.Errorf("received %v, want the message for the first time", messages)
		}
		if _, _, err := b.poll(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a poll whose context has ended returned %v", err)
		}
	})
}

func TestCloseEndsPollsAndRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestServer(t, nil)
		time.AfterFunc(7*time.Second, func() { b.server.Close() })
		if messages, took, err := b.poll(t.Context()); err != nil || len(messages) != 0 || took != 7*time.Second {
			t.Errorf("the poll returned %v, %v after %v; want nothing after 7s", messages, err, took)
		}
		var e *sqsserver.Error
		if _, _, err := b.poll(t.Context()); !errors.As(err, &e) || e.HTTPStatus() != 503 {
			t.Errorf("a poll of a closed server returned %v, want ServiceUnavailable", err)
		}
	})
}

func TestDeleteQueueEndsPolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestServer(t, nil)
		time.AfterFunc(7*time.Second, func() {
			if err := b.server.DeleteQueue(t.Context(), &sqsserver.DeleteQueueInput{QueueUrl: b.url}); err != nil {
				t.Error(err)
			}
		})
		var e *sqsserver.Error
		if _, took, err := b.poll(t.Context()); !errors.As(err, &e) || e.Type() != "com.amazonaws.sqs#QueueDoesNotExist" || took != 7*time.Second {
			t.Errorf("the poll returned %v after %v, want QueueDoesNotExist after 7s", err, took)
		}
	})
}

// At the limit in flight a short poll is refused, and a long poll waits for room.
func TestInFlightLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := sqsserver.New(sqsserver.Config{InFlightLimit: 1})
		defer server.Close()
		b := &testServer{T: t, server: server}
		b.url = b.create("q", nil)
		b.send("a")
		b.send("b")
		held := b.receiveOne()[0].ReceiptHandle

		var e *sqsserver.Error
		_, err := server.ReceiveMessage(t.Context(), &sqsserver.ReceiveMessageInput{QueueUrl: b.url})
		if !errors.As(err, &e) || e.Code != "OverLimit" || e.HTTPStatus() != 403 {
			t.Errorf("a short poll at the limit returned %v, want OverLimit", err)
		}
		time.AfterFunc(7*time.Second, func() {
			if err := b.delete(held); err != nil {
				t.Error(err)
			}
		})
		if messages, took, err := b.poll(t.Context()); err != nil || len(messages) != 1 || took != 7*time.Second {
			t.Errorf("a long poll at the limit returned %v, %v after %v; want a message after 7s", messages, err, took)
		}
		if messages, took, err := b.poll(t.Context()); err != nil || len(messages) != 0 || took != 20*time.Second {
			t.Errorf("a long poll at the limit returned %v, %v after %v; want nothing after 20s", messages, err, took)
		}
	})
}

// Messages that a receive moves to the dead-letter queue, however many, do not hide the
// messages behind them from a short poll.
func TestShortPollSeesBehindABacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const backlog = 500
		b := newTestServer(t, map[string]string{"VisibilityTimeout": "0"})
		b.create("dead", nil)
		for range backlog {
			b.send("poison")
		}
		for range backlog / 10 {
			if n := len(b.receive(b.url)); n != 10 {
				t.Fatalf("received %d, want 10", n)
			}
		}
		err := b.server.SetQueueAttributes(t.Context(), &sqsserver.SetQueueAttributesInput{QueueUrl: b.url, Attributes: map[string]string{
			"RedrivePolicy": `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:dead","maxReceiveCount":1}`,
		}})
		if err != nil {
			t.Fatal(err)
		}
		b.send("fresh")
		if messages := b.receive(b.url); len(messages) != 1 || messages[0].Body != "fresh" {
			t.Errorf("received %v, want the fresh message", messages)
		}
		if dead := b.server.Queues()[0]; dead.Name != "dead" || dead.Visible != backlog {
			t.Errorf("%d messages in %s, want %d in dead", dead.Visible, dead.Name, backlog)
		}
	})
}

// Polls of several queues wait for messages that become visible one after the other:
// each gets its own when it does.
func TestPollsOfSeveralQueuesAreServedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestServer(t, nil)
		var polls sync.WaitGroup
		for i := 1; i <= 5; i++ {
			one := *b
			one.url = b.create(fmt.Sprint("q", i), nil)
			one.send("x", func(in *sqsserver.SendMessageInput) { in.DelaySeconds = sqsserver.Int(int32(i)) })
			polls.Go(func() {
				messages, took, err := one.poll(t.Context())
				if want := time.Duration(i) * time.Second; err != nil || len(messages) != 1 || took != want {
					t.Errorf("queue %d: %d messages and %v after %v, want one after %v", i, len(messages), err, took, want)
				}
			})
		}
		polls.Wait()
	})
}
