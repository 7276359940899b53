package sqsserver_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/reprise-sqs/reprise/sqsserver"
)

func isCode(err error, code string) bool {
	var e *sqsserver.Error
	return errors.As(err, &e) && e.Code == code
}

func TestFaultOverLimit(t *testing.T) {
	b := newTestServer(t, nil)
	b.fault(sqsserver.Fault{Kind: sqsserver.FaultOverLimit, Limit: 1})
	b.send("x")
	if _, err := b.server.ReceiveMessage(t.Context(), &sqsserver.ReceiveMessageInput{QueueUrl: b.url}); !isCode(err, "OverLimit") {
		t.Errorf("the struck receive returned %v, want OverLimit", err)
	}
	if got := b.receive(b.url); len(got) != 1 || got[0].Attributes.ApproximateReceiveCount != 1 {
		t.Errorf("then received %v, want the message for the first time", got)
	}
}

// The connection is cut before a send has an effect: the SDK's own retry makes one
// message, and the direct call none.
func TestFaultDropConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestServer(t, nil)
		b.fault(sqsserver.Fault{Kind: sqsserver.FaultDropConnection, Action: "SendMessage", Limit: 2})
		in := &sqsserver.SendMessageInput{QueueUrl: b.url, SendMessageEntry: sqsserver.SendMessageEntry{MessageBody: "x"}}
		if _, err := b.server.SendMessage(t.Context(), in); !errors.Is(err, sqsserver.ErrReplyLost) {
			t.Errorf("the struck send returned %v, want ErrReplyLost", err)
		}
		client := sdkClient("http://sqs.localhost", inProcess{b.server})
		if _, err := client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &b.url, MessageBody: aws.String("x")}); err != nil {
			t.Fatal(err)
		}
		if n := len(b.receive(b.url)); n != 1 {
			t.Errorf("received %d messages, want 1", n)
		}
	})
}

func TestFaultSlowReply(t *testing.T) {
	for _, delay := range []time.Duration{0, 5 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			b := newTestServer(t, nil)
			b.fault(sqsserver.Fault{Kind: sqsserver.FaultSlowReply, Action: "SendMessage", Delay: delay, Limit: 1})
			start := time.Now()
			b.send("x")
			want := delay
			if want == 0 {
				want = time.Second
			}
			if took := time.Since(start); took != want {
				t.Errorf("with the delay %v the send took %v", delay, took)
			}
		})
	}
}

// A slow reply delays a client, but not the effect of its request: if the client leaves, a
// message that it sent is there, and one that it received is visible again.
func TestFaultSlowReplyToWhoGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestServer(t, nil)
		b.fault(sqsserver.Fault{Kind: sqsserver.FaultSlowReply, Delay: time.Minute, Limit: 2})
		hasty := func() context.Context {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			t.Cleanup(cancel)
			return ctx
		}
		in := &sqsserver.SendMessageInput{QueueUrl: b.url, SendMessageEntry: sqsserver.SendMessageEntry{MessageBody: "x"}}
		if _, err := b.server.SendMessage(hasty(), in); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the send returned %v", err)
		}
		if _, _, err := b.poll(hasty()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the receive returned %v", err)
		}
		if got := b.receive(b.url); len(got) != 1 || got[0].Attributes.ApproximateReceiveCount != 2 {
			t.Errorf("then received %v, want the message for the second time", got)
		}
	})
}

func TestFaultEarlyRedelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestServer(t, map[string]string{"VisibilityTimeout": "600"})
		b.send("x")
		b.fault(sqsserver.Fault{Kind: sqsserver.FaultEarlyRedelivery, Action: "ReceiveMessage", Delay: 3 * time.Second, Limit: 1})
		b.receive(b.url)
		again, took, err := b.poll(t.Context())
		if err != nil || len(again) != 1 || took != 3*time.Second {
			t.Fatalf("the message came again as %v, %v after %v; want it after 3s", again, err, took)
		}
		b.fault(sqsserver.Fault{Kind: sqsserver.FaultEarlyRedelivery, Action: "ChangeMessageVisibility", Limit: 1})
		if err := b.changeVisibility(again[0].ReceiptHandle, 7200); err != nil {
			t.Fatal(err)
		}
		if again, took, err := b.poll(t.Context()); err != nil || len(again) != 1 || took != time.Second {
			t.Errorf("after the change it came again as %v, %v after %v; want it after 1s", again, err, took)
		}
	})
}

// An early redelivery never makes a message come later than the client asked for.
func TestFaultEarlyRedeliveryIsNeverLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestServer(t, map[string]string{"VisibilityTimeout": "2"})
		b.fault(sqsserver.Fault{Kind: sqsserver.FaultEarlyRedelivery, Delay: time.Minute})
		b.send("x")
		b.receive(b.url)
		if again, took, err := b.poll(t.Context()); err != nil || len(again) != 1 || took != 2*time.Second {
			t.Errorf("the message came again as %v, %v after %v; want it after 2s", again, err, took)
		}
	})
}

func TestFaultLoseDelete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestServer(t, map[string]string{"VisibilityTimeout": "10"})
		b.fault(sqsserver.Fault{Kind: sqsserver.FaultLoseDelete, Limit: 1})
		b.send("x")
		if err := b.delete(b.receive(b.url)[0].ReceiptHandle); err != nil {
			t.Fatalf("the lost delete returned %v, want an acknowledgement", err)
		}
		again, took, err := b.poll(t.Context())
		if err != nil || len(again) != 1 || took != 10*time.Second {
			t.Fatalf("the message came again as %v, %v after %v; want it after 10s", again, err, took)
		}
		if err := b.delete(again[0].ReceiptHandle); err != nil {
			t.Fatal(err)
		}
		if left, err := b.server.Messages("q", sqsserver.Page{}); err != nil || len(left) != 0 {
			t.Errorf("the queue has %v, %v; the second delete is none of the fault's", left, err)
		}
	})
}

func TestFaultStaleHandle(t *testing.T) {
	for name, code := range map[string]string{"q": "ReceiptHandleIsInvalid", "q.fifo": "InvalidParameterValue"} {
		b := &testServer{T: t, server: newServer(t)}
		attributes := map[string]string{}
		if name == "q.fifo" {
			attributes = map[string]string{"FifoQueue": "true", "ContentBasedDeduplication": "true"}
		}
		b.url = b.create(name, attributes)
		if err := b.server.SetFaults(name, sqsserver.Fault{Kind: sqsserver.FaultStaleHandle, Limit: 1}); err != nil {
			t.Fatal(err)
		}
		b.send("x", func(in *sqsserver.SendMessageInput) { in.MessageGroupId = "g" })
		handle := b.receive(b.url)[0].ReceiptHandle
		if err := b.delete(handle); !isCode(err, code) {
			t.Errorf("%s: the struck delete returned %v, want %s", name, err, code)
		}
		if n := len(b.receive(b.url)); n != 0 {
			t.Errorf("%s: the message is not in flight any more", name)
		}
		if err := b.delete(handle); err != nil {
			t.Errorf("%s: the next delete returned %v", name, err)
		}
	}
}

func TestFaultWrongCounts(t *testing.T) {
	counts := func(seed uint64) (numbers [3]int) {
		server := sqsserver.New(sqsserver.Config{Seed: seed})
		defer server.Close()
		b := &testServer{T: t, server: server}
		b.url = b.create("q", nil)
		b.fault(sqsserver.Fault{Kind: sqsserver.FaultWrongCounts})
		for range 20 {
			b.send("x")
		}
		out, err := server.GetQueueAttributes(t.Context(), &sqsserver.GetQueueAttributesInput{QueueUrl: b.url, AttributeNames: []string{"All"}})
		if err != nil {
			t.Fatal(err)
		}
		for i, name := range []string{"ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible", "ApproximateNumberOfMessagesDelayed"} {
			if numbers[i], err = strconv.Atoi(out.Attributes[name]); err != nil {
				t.Fatal(err)
			}
		}
		return numbers
	}
	if first, again := counts(1), counts(1); first != again {
		t.Error("the seed does not decide the counts")
	}
	wrong := false
	for seed := range uint64(20) {
		n := counts(seed + 1)
		if n[0] < 0 || n[0] > 49 || n[1] < 0 || n[1] > 9 || n[2] < 0 || n[2] > 9 {
			t.Errorf("the counts of 20, 0 and 0 messages are %v", n)
		}
		wrong = wrong || n != [3]int{20, 0, 0}
	}
	if !wrong {
		t.Error("no count was wrong")
	}
}

// Which chances a fault strikes does not depend on what happens elsewhere.
func TestFaultsAreIndependent(t *testing.T) {
	pattern := func(disturb bool) (pattern string) {
		server := sqsserver.New(sqsserver.Config{Seed: 1})
		defer server.Close()
		b := &testServer{T: t, server: server}
		b.url = b.create("q", nil)
		b.create("other", nil)
		for _, queue := range []string{"q", "other"} {
			if err := server.SetFaults(queue, sqsserver.Fault{Kind: sqsserver.FaultThrottle, Probability: 0.5}); err != nil {
				t.Fatal(err)
			}
		}
		for range 100 {
			if disturb {
				_, _ = server.GetQueueUrl(t.Context(), &sqsserver.GetQueueUrlInput{QueueName: "other"}) // struck or not
			}
			if _, err := server.GetQueueUrl(t.Context(), &sqsserver.GetQueueUrlInput{QueueName: "q"}); err != nil {
				pattern += "!"
			} else {
				pattern += "."
			}
		}
		return pattern
	}
	if alone, beside := pattern(false), pattern(true); alone != beside {
		t.Errorf("alone the fault strikes\n%s, beside traffic of another queue\n%s", alone, beside)
	}
}

// Two faults of a queue that differ in their place alone strike different chances.
func TestFaultsOfAQueueDiffer(t *testing.T) {
	b := newTestServer(t, nil)
	b.fault(sqsserver.Fault{Kind: sqsserver.FaultThrottle, Action: "GetQueueUrl", Probability: 0.5},
		sqsserver.Fault{Kind: sqsserver.FaultThrottle, Action: "ReceiveMessage", Probability: 0.5})
	first, second := "", ""
	for range 100 {
		_, err := b.server.GetQueueUrl(t.Context(), &sqsserver.GetQueueUrlInput{QueueName: "q"})
		first += strconv.FormatBool(err == nil) + " "
		_, err = b.server.ReceiveMessage(t.Context(), &sqsserver.ReceiveMessageInput{QueueUrl: b.url})
		second += strconv.FormatBool(err == nil) + " "
	}
	if first == second {
		t.Errorf("both faults let pass\n%s", first)
	}
}

func TestAllFaults(t *testing.T) {
	server := newServer(t)
	throttle := sqsserver.Fault{Kind: sqsserver.FaultThrottle}
	for _, queue := range []string{"", "a", "b"} {
		if err := server.SetFaults(queue, throttle); err != nil {
			t.Fatal(err)
		}
	}
	if err := server.SetFaults("b"); err != nil {
		t.Fatal(err)
	}
	all := server.AllFaults()
	if len(all) != 2 || len(all["*"]) != 1 || len(all["a"]) != 1 || all["a"][0].Fault != throttle {
		t.Errorf("the faults are %v, want those of * and a", all)
	}
}
