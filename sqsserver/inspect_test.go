package sqsserver_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise/sqsserver"
)

const deadLetterPolicy = `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:dead","maxReceiveCount":5}`

func TestQueues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer(t)
		b := &testServer{T: t, server: server}
		b.create("dead", nil)
		_, err := server.CreateQueue(t.Context(), &sqsserver.CreateQueueInput{
			QueueName: "q", Attributes: map[string]string{"RedrivePolicy": deadLetterPolicy}, Tags: map[string]string{"team": "a"}})
		if err != nil {
			t.Fatal(err)
		}
		b.url = "q"
		b.send("in flight")
		b.receive(b.url)
		b.send("visible")
		b.send("delayed", func(in *sqsserver.SendMessageInput) { in.DelaySeconds = sqsserver.Int(60) })
		b.send("delayed", func(in *sqsserver.SendMessageInput) { in.DelaySeconds = sqsserver.Int(60) })

		created := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
		want := []sqsserver.QueueInfo{
			{
				Name: "dead", Account: "000000000000", Region: "us-east-1", ARN: "arn:aws:sqs:us-east-1:000000000000:dead",
				URL: "http://sqs.us-east-1.localhost/000000000000/dead", Created: created,
			},
			{
				Name: "q", Account: "000000000000", Region: "us-east-1", ARN: "arn:aws:sqs:us-east-1:000000000000:q",
				URL: "http://sqs.us-east-1.localhost/000000000000/q", Created: created, Tags: map[string]string{"team": "a"},
				Visible: 1, InFlight: 1, Delayed: 2, Oldest: created,
				DeadLetter: "arn:aws:sqs:us-east-1:000000000000:dead", MaxReceives: 5,
			},
		}
		if diff := cmp.Diff(want, server.Queues()); diff != "" {
			t.Errorf("queues (-want +got):\n%s", diff)
		}
	})
}

func TestMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestServer(t, nil)
		color := []sqsserver.MessageAttribute{{Name: "color", DataType: "String", StringValue: "blue"}}
		b.send("a", func(in *sqsserver.SendMessageInput) { in.MessageAttributes = color; in.MessageGroupId = "tenant" })
		b.send("b", func(in *sqsserver.SendMessageInput) { in.DelaySeconds = sqsserver.Int(60) })
		b.send("c")
		time.Sleep(time.Second)
		b.receiveOne()

		got, err := b.server.Messages("q", sqsserver.Page{})
		if err != nil || len(got) != 3 {
			t.Fatalf("messages %v, %v; want three", got, err)
		}
		second := func(n int) time.Time { return time.Date(2000, 1, 1, 0, 0, n, 0, time.UTC) }
		want := []sqsserver.MessageInfo{
			{
				Body: "a", Attributes: color, Group: "tenant", State: sqsserver.InFlight,
				Sent: second(0), FirstReceived: second(1), Receives: 1, Due: second(31),
			},
			{Body: "b", State: sqsserver.Delayed, Sent: second(0), Due: second(60)},
			{Body: "c", State: sqsserver.Visible, Sent: second(0)},
		}
		for i := range want {
			want[i].ID, want[i].Number = got[i].ID, got[i].Number // the server's choice
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("messages (-want +got):\n%s", diff)
		}
	})
}

func TestMessagesByPage(t *testing.T) {
	b := newTestServer(t, nil)
	for i := range 150 {
		b.send(string(rune('a' + i)))
	}
	all, err := b.server.Messages(b.url, sqsserver.Page{})
	if err != nil || len(all) != 150 {
		t.Fatalf("%d messages, %v; want 150", len(all), err)
	}
	var paged []sqsserver.MessageInfo
	page := sqsserver.Page{Limit: 70}
	for {
		messages, err := b.server.Messages(b.url, page)
		if err != nil {
			t.Fatal(err)
		}
		paged = append(paged, messages...)
		if len(messages) < page.Limit {
			break
		}
		page.After = messages[len(messages)-1].Number
	}
	if diff := cmp.Diff(all, paged); diff != "" {
		t.Errorf("pages (-whole +pages):\n%s", diff)
	}
}

func TestOperatorActions(t *testing.T) {
	setUp := func(t *testing.T) (b *testServer, id string) {
		b = newTestServer(t, nil)
		b.send("x")
		b.receive(b.url)
		messages, err := b.server.Messages("q", sqsserver.Page{})
		if err != nil || len(messages) != 1 {
			t.Fatalf("messages %v, %v; want one", messages, err)
		}
		return b, messages[0].ID
	}
	t.Run("Release", func(t *testing.T) {
		b, id := setUp(t)
		if err := b.server.Release("q", id); err != nil {
			t.Fatal(err)
		}
		if messages := b.receive(b.url); len(messages) != 1 || messages[0].Attributes.ApproximateReceiveCount != 2 {
			t.Errorf("received %v, want the message for the second time", messages)
		}
	})
	t.Run("Hide", func(t *testing.T) {
		b, id := setUp(t)
		if err := b.server.Hide("q", id, time.Minute); err == nil || !strings.Contains(err.Error(), "release it first") {
			t.Errorf("hiding a message in flight returned %v", err)
		}
		if err := b.server.Release("q", id); err != nil {
			t.Fatal(err)
		}
		for _, d := range []time.Duration{0, -time.Second, 12*time.Hour + 1} {
			if err := b.server.Hide("q", id, d); err == nil || !strings.Contains(err.Error(), "at most 12h") {
				t.Errorf("hiding it for %v returned %v", d, err)
			}
		}
		if err := b.server.Hide("q", id, time.Hour); err != nil {
			t.Fatal(err)
		}
		if messages := b.receive(b.url); len(messages) != 0 {
			t.Errorf("received %v of a hidden message", messages)
		}
		if m, err := b.server.Message("q", id); err != nil || m.State == sqsserver.Visible || m.Receives != 1 {
			t.Errorf("it is %+v, %v", m, err)
		}
		if err := b.server.Advance(time.Hour); err != nil {
			t.Fatal(err)
		}
		if messages := b.receive(b.url); len(messages) != 1 || messages[0].Attributes.ApproximateReceiveCount != 2 {
			t.Errorf("an hour later received %v, want the message for the second time", messages)
		}
	})
	t.Run("Delete", func(t *testing.T) {
		b, id := setUp(t)
		if err := b.server.Delete("q", id); err != nil {
			t.Fatal(err)
		}
		if info := b.server.Queues()[0]; info.InFlight != 0 || info.Visible != 0 {
			t.Errorf("after Delete the queue has %+v", info)
		}
		if err := b.server.Delete("q", id); err == nil || !strings.Contains(err.Error(), "no such message") {
			t.Errorf("deleting again returned %v", err)
		}
	})
	t.Run("DeadLetter", func(t *testing.T) {
		b, id := setUp(t)
		if err := b.server.DeadLetter("q", id); err == nil || !strings.Contains(err.Error(), "RedrivePolicy") {
			t.Errorf("dead-lettering without a dead-letter queue returned %v", err)
		}
		b.create("dead", nil)
		err := b.server.SetQueueAttributes(t.Context(), &sqsserver.SetQueueAttributesInput{
			QueueUrl: b.url, Attributes: map[string]string{"RedrivePolicy": deadLetterPolicy}})
		if err != nil {
			t.Fatal(err)
		}
		if err := b.server.DeadLetter("q", id); err != nil {
			t.Fatal(err)
		}
		if messages := b.receive("dead"); len(messages) != 1 || messages[0].MessageId.String() != id {
			t.Errorf("the dead-letter queue delivers %v, want the message", messages)
		}
	})
	t.Run("bad input", func(t *testing.T) {
		b, id := setUp(t)
		for _, err := range []error{
			b.server.Release("nothing", id),
			b.server.Release("q", "x"),
			b.server.Release("q", strings.ReplaceAll(id, "-", "")),
			b.server.Release("q", "00000000-0000-4000-8000-000000000000"),
			b.server.Hide("q", "00000000-0000-4000-8000-000000000000", time.Second),
		} {
			if err == nil {
				t.Error("a message or queue that does not exist was released")
			}
		}
		if _, err := b.server.Messages("nothing", sqsserver.Page{}); err == nil {
			t.Error("a queue that does not exist has messages")
		}
	})
}

// TestMessagesWithANegativeLimit are all, as those without a limit.
func TestMessagesWithANegativeLimit(t *testing.T) {
	b := newTestServer(t, nil)
	for range 100 {
		b.send("x")
	}
	if all, err := b.server.Messages(b.url, sqsserver.Page{Limit: -1}); err != nil || len(all) != 100 {
		t.Errorf("%d messages, %v; want 100", len(all), err)
	}
}

// TestWaitEmptyOfAServerThatStops: nobody can empty its queues any more, whatever it stopped for.
func TestWaitEmptyOfAServerThatStops(t *testing.T) {
	for name, stop := range map[string]func(*testing.T, *sqsserver.Server, *breakable){
		"closed": func(t *testing.T, s *sqsserver.Server, _ *breakable) {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		},
		"its journal has failed": func(_ *testing.T, s *sqsserver.Server, j *breakable) {
			j.broken.Store(true)
			_, _ = s.CreateQueue(context.Background(), &sqsserver.CreateQueueInput{QueueName: "another"}) // it must fail
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				journal := &breakable{Journal: newMemoryJournal()}
				server, err := sqsserver.Open(journal, sqsserver.Config{Logger: withoutOutput()})
				if err != nil {
					t.Fatal(err)
				}
				b := &testServer{T: t, server: server}
				b.url = b.create("q", nil)
				b.send("x")
				time.AfterFunc(time.Second, func() { stop(t, server, journal) })
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				began := time.Now()
				err = server.WaitEmpty(ctx, "q")
				if took := time.Since(began); err == nil || errors.Is(err, context.DeadlineExceeded) || took > time.Minute {
					t.Errorf("after %v: %v, want that the server has stopped", took, err)
				}
				_ = server.Close() // a second time, or of a journal that is broken
			})
		})
	}
}

// breakable is a journal that can be broken.
type breakable struct {
	sqsserver.Journal
	broken atomic.Bool
}

func (b *breakable) Commit(batch *sqsserver.Batch, sync bool) error {
	if b.broken.Load() {
		return errors.New("input/output error")
	}
	return b.Journal.Commit(batch, sync)
}

func TestWaitEmpty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestServer(t, nil)
		wait := func(limit time.Duration) (time.Duration, error) {
			start := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			err := b.server.WaitEmpty(ctx, "q")
			return time.Since(start), err
		}
		if took, err := wait(time.Hour); err != nil || took != 0 {
			t.Errorf("waiting for an empty queue took %v, %v", took, err)
		}
		b.send("x")
		if took, err := wait(time.Minute); !errors.Is(err, context.DeadlineExceeded) || took != time.Minute {
			t.Errorf("waiting for a queue with a message took %v, %v", took, err)
		}
		time.AfterFunc(7*time.Second, func() {
			if err := b.delete(b.receiveOne()[0].ReceiptHandle); err != nil {
				t.Error(err)
			}
		})
		if took, err := wait(time.Hour); err != nil || took != 7*time.Second {
			t.Errorf("waiting for the delete took %v, %v; want 7s", took, err)
		}
		b.send("x")
		time.AfterFunc(7*time.Second, func() {
			if err := b.server.DeleteQueue(t.Context(), &sqsserver.DeleteQueueInput{QueueUrl: b.url}); err != nil {
				t.Error(err)
			}
		})
		var e *sqsserver.Error
		if took, err := wait(time.Hour); !errors.As(err, &e) || took != 7*time.Second {
			t.Errorf("waiting for a queue that is deleted took %v, %v; want QueueDoesNotExist after 7s", took, err)
		}
	})
}

// TestMessage: one message, in whatever state it is, is that of the list; others are not there.
func TestMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestServer(t, nil)
		b.send("in flight")
		b.receive(b.url)
		b.send("visible")
		b.send("delayed", func(in *sqsserver.SendMessageInput) { in.DelaySeconds = sqsserver.Int(60) })
		all, err := b.server.Messages(b.url, sqsserver.Page{})
		if err != nil || len(all) != 3 {
			t.Fatalf("%d messages, %v", len(all), err)
		}
		for _, want := range all {
			got, err := b.server.Message(b.url, want.ID)
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("%v (-list +one):\n%s", err, diff)
			}
		}
		if err := b.server.Delete(b.url, all[1].ID); err != nil {
			t.Fatal(err)
		}
		for _, test := range []struct{ queue, id, want string }{
			{b.url, all[1].ID, "no such message"},
			{b.url, "00000000-0000-0000-0000-000000000000", "no such message"},
			{b.url, "x", "not a UUID"},
			{"absent", all[0].ID, "does not exist"},
		} {
			if got, err := b.server.Message(test.queue, test.id); err == nil || !strings.Contains(err.Error(), test.want) || got.ID != "" {
				t.Errorf("%s of %s: %+v, %v; want %q", test.id, test.queue, got, err, test.want)
			}
		}
	})
}

// TestHideIsOfOneMessage: hiding a message changes that message alone, and not the lease of one that
// somebody has.
func TestHideIsOfOneMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestServer(t, nil)
		b.send("received")
		b.receiveOne()
		b.send("visible")
		b.send("to be hidden")
		want, err := b.server.Messages("q", sqsserver.Page{})
		if err != nil || len(want) != 3 || want[0].State != sqsserver.InFlight {
			t.Fatal(want, err)
		}
		if err := b.server.Hide("q", want[0].ID, time.Hour); err == nil {
			t.Error("a message that somebody has was hidden")
		}
		if err := b.server.Hide("q", want[2].ID, time.Hour); err != nil {
			t.Error(err)
		}
		want[2].State, want[2].Due, want[2].DelayedLater = sqsserver.Delayed, time.Date(2000, 1, 1, 1, 0, 0, 1, time.UTC), true // the nanosecond: see engine.Hide
		got, err := b.server.Messages("q", sqsserver.Page{})
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	})
}
