package sqsserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise/sqsserver"
)

func (b *testServer) fault(faults ...sqsserver.Fault) {
	b.Helper()
	if err := b.server.SetFaults("q", faults...); err != nil {
		b.Fatal(err)
	}
}

func TestFaultsThatRefuseRequests(t *testing.T) {
	tests := []struct {
		kind   sqsserver.FaultKind
		code   string
		status int
	}{
		{sqsserver.FaultThrottle, "RequestThrottled", 403},
		{sqsserver.FaultServerError, "InternalFailure", 500},
	}
	for _, test := range tests {
		t.Run(string(test.kind), func(t *testing.T) {
			b := newTestServer(t, nil)
			b.fault(sqsserver.Fault{Kind: test.kind, Action: "SendMessage", Limit: 1})
			in := &sqsserver.SendMessageInput{QueueUrl: b.url, SendMessageEntry: sqsserver.SendMessageEntry{MessageBody: "x"}}
			_, err := b.server.SendMessage(t.Context(), in)
			var e *sqsserver.Error
			if !errors.As(err, &e) || e.Code != test.code || e.HTTPStatus() != test.status {
				t.Errorf("the struck send returned %v, want %s with status %d", err, test.code, test.status)
			}
			if n := len(b.receive(b.url)); n != 0 {
				t.Errorf("the refused send had an effect: received %d messages", n)
			}
			b.send("x") // the limit is reached
			if n := len(b.receive(b.url)); n != 1 {
				t.Errorf("received %d messages, want 1", n)
			}
		})
	}
}

func TestFaultLoseReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestServer(t, map[string]string{"VisibilityTimeout": "30"})
		b.fault(sqsserver.Fault{Kind: sqsserver.FaultLoseReply, Action: "SendMessage", Limit: 1},
			sqsserver.Fault{Kind: sqsserver.FaultLoseReply, Action: "ReceiveMessage", Limit: 1})
		in := &sqsserver.SendMessageInput{QueueUrl: b.url, SendMessageEntry: sqsserver.SendMessageEntry{MessageBody: "x"}}
		if _, err := b.server.SendMessage(t.Context(), in); !errors.Is(err, sqsserver.ErrReplyLost) {
			t.Errorf("the struck send returned %v, want ErrReplyLost", err)
		}
		if _, _, err := b.poll(t.Context()); !errors.Is(err, sqsserver.ErrReplyLost) {
			t.Errorf("the struck receive returned %v, want ErrReplyLost", err)
		}
		if messages, took, err := b.poll(t.Context()); err != nil || len(messages) != 0 || took != 20*time.Second {
			t.Errorf("the message of the lost reply came after %v (%v, %v); want it in flight for 30s", took, messages, err)
		}
		if messages, took, err := b.poll(t.Context()); err != nil || len(messages) != 1 || took != 10*time.Second {
			t.Errorf("the next poll returned %v, %v after %v; want the message after 10s", messages, err, took)
		}
	})
}

// The SDK's retryers know a broken connection by its method.
func TestErrReplyLostIsAConnectionError(t *testing.T) {
	var broken interface{ ConnectionError() bool }
	if !errors.As(sqsserver.ErrReplyLost, &broken) || !broken.ConnectionError() {
		t.Errorf("%v is no connection error", sqsserver.ErrReplyLost)
	}
}

// Over HTTP a lost reply is a cut connection, which the SDK meets by a retry.
func TestFaultLoseReplyOverHTTP(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestServer(t, nil)
		client := sdkClient("http://sqs.localhost", inProcess{b.server})
		b.fault(sqsserver.Fault{Kind: sqsserver.FaultLoseReply, Action: "SendMessage", Limit: 1})
		if _, err := client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &b.url, MessageBody: aws.String("x")}); err != nil {
			t.Fatal(err)
		}
		if n := len(b.receive(b.url)); n != 2 {
			t.Errorf("received %d messages, want 2: the SDK sent again what had been taken", n)
		}
	})
}

func TestFaultFailEntry(t *testing.T) {
	b := newTestServer(t, nil)
	b.fault(sqsserver.Fault{Kind: sqsserver.FaultFailEntry, Skip: 1, Every: 2})
	in := &sqsserver.SendMessageBatchInput{QueueUrl: b.url}
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		in.Entries = append(in.Entries, sqsserver.SendMessageBatchRequestEntry{Id: id, SendMessageEntry: sqsserver.SendMessageEntry{MessageBody: id}})
	}
	out, err := b.server.SendMessageBatch(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	failed := func(id string) sqsserver.BatchResultErrorEntry {
		return sqsserver.BatchResultErrorEntry{Id: id, Code: "InternalError", Message: "This failure was injected."}
	}
	if diff := cmp.Diff([]sqsserver.BatchResultErrorEntry{failed("c"), failed("e")}, out.Failed); diff != "" {
		t.Errorf("failed entries (-want +got):\n%s", diff)
	}
	messages := b.receive(b.url)
	if len(messages) != 3 {
		t.Fatalf("received %d messages, want 3", len(messages))
	}

	b.fault(sqsserver.Fault{Kind: sqsserver.FaultFailEntry, Action: "DeleteMessageBatch", Limit: 1})
	remove := &sqsserver.DeleteMessageBatchInput{QueueUrl: b.url}
	for i := range messages {
		remove.Entries = append(remove.Entries, sqsserver.DeleteMessageBatchRequestEntry{Id: messages[i].Body, ReceiptHandle: messages[i].ReceiptHandle})
	}
	deleted, err := b.server.DeleteMessageBatch(t.Context(), remove)
	if err != nil || len(deleted.Failed) != 1 || deleted.Failed[0] != failed("a") {
		t.Errorf("the deletes that failed are %v, %v; want the first", deleted, err)
	}
	left, err := b.server.Messages("q", sqsserver.Page{})
	if err != nil || len(left) != 1 || left[0].Body != "a" {
		t.Errorf("the queue has %v, %v; want the message whose delete failed", left, err)
	}
}

func TestFaultDuplicate(t *testing.T) {
	for _, name := range []string{"q", "q.fifo"} {
		t.Run(name, func(t *testing.T) {
			b := &testServer{T: t, server: newServer(t)}
			attributes := map[string]string{}
			if name == "q.fifo" {
				attributes = map[string]string{"FifoQueue": "true", "ContentBasedDeduplication": "true"}
			}
			b.url = b.create(name, attributes)
			if err := b.server.SetFaults(name, sqsserver.Fault{Kind: sqsserver.FaultDuplicate, Limit: 1}); err != nil {
				t.Fatal(err)
			}
			b.send("x", func(in *sqsserver.SendMessageInput) { in.MessageGroupId = "g" })
			first, second, third := b.receive(b.url), b.receive(b.url), b.receive(b.url)
			if len(first) != 1 || len(second) != 1 || len(third) != 0 {
				t.Fatalf("received %d, %d and %d messages; want the same twice and then none", len(first), len(second), len(third))
			}
			if first[0].MessageId != second[0].MessageId || second[0].Attributes.ApproximateReceiveCount != 2 {
				t.Errorf("received %v and %v, want the same message", first, second)
			}
		})
	}
}

func TestFaultLoseLease(t *testing.T) {
	b := newTestServer(t, nil)
	b.fault(sqsserver.Fault{Kind: sqsserver.FaultLoseLease, Action: "ChangeMessageVisibilityBatch", Limit: 1})
	b.send("x")
	held := b.receive(b.url)[0].ReceiptHandle
	if err := b.changeVisibility(held, 60); err != nil {
		t.Errorf("the fault struck another action than its own: %v", err)
	}
	out, err := b.server.ChangeMessageVisibilityBatch(t.Context(), &sqsserver.ChangeMessageVisibilityBatchInput{
		QueueUrl: b.url,
		Entries:  []sqsserver.ChangeMessageVisibilityBatchRequestEntry{{Id: "a", ReceiptHandle: held, VisibilityTimeout: sqsserver.Int(60)}},
	})
	if err != nil || len(out.Failed) != 1 || out.Failed[0].Code != "ReceiptHandleIsInvalid" || !out.Failed[0].SenderFault {
		t.Fatalf("the struck heartbeat returned %v, %v; want the entry to fail with ReceiptHandleIsInvalid", out, err)
	}
	again := b.receive(b.url)
	if len(again) != 1 {
		t.Fatal("the message is still in flight")
	}
	var e *sqsserver.Error
	for what, err := range map[string]error{"change": b.changeVisibility(held, 0), "delete": b.delete(held)} {
		if !errors.As(err, &e) || e.Code != "ReceiptHandleIsInvalid" {
			t.Errorf("to %s with the lost handle returned %v, want ReceiptHandleIsInvalid", what, err)
		}
	}
	if n := len(b.receive(b.url)); n != 0 {
		t.Error("the lost handle exposed the message of the new receiver")
	}
	if err := b.delete(again[0].ReceiptHandle); err != nil {
		t.Errorf("the new receiver cannot delete: %v", err)
	}
}

// Which chances a fault strikes, of ten.
func TestFaultSelection(t *testing.T) {
	tests := []struct {
		name  string
		fault sqsserver.Fault
		want  string
	}{
		{"all", sqsserver.Fault{}, "!!!!!!!!!!"},
		{"the first three", sqsserver.Fault{Limit: 3}, "!!!......."},
		{"every third", sqsserver.Fault{Every: 3}, "..!..!..!."},
		{"after four, every second, twice", sqsserver.Fault{Skip: 4, Every: 2, Limit: 2}, ".....!.!.."},
		{"the third alone", sqsserver.Fault{Skip: 2, Limit: 1}, "..!......."},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := newTestServer(t, nil)
			test.fault.Kind = sqsserver.FaultThrottle
			b.fault(test.fault)
			got := ""
			for range 10 {
				if _, err := b.server.GetQueueUrl(t.Context(), &sqsserver.GetQueueUrlInput{QueueName: "q"}); err != nil {
					got += "!"
				} else {
					got += "."
				}
			}
			if got != test.want {
				t.Errorf("struck %s, want %s", got, test.want)
			}
			counts := b.server.Faults("q")
			want := []sqsserver.FaultCount{{Fault: test.fault, Chances: 10, Strikes: strings.Count(test.want, "!")}}
			if diff := cmp.Diff(want, counts); diff != "" {
				t.Errorf("counts (-want +got):\n%s", diff)
			}
		})
	}
}

// A probability strikes its part of the chances, the same ones for the same seed.
func TestFaultProbabilityIsSeeded(t *testing.T) {
	strikes := func(seed uint64) (pattern string) {
		server := sqsserver.New(sqsserver.Config{Seed: seed})
		defer server.Close()
		if err := server.SetFaults("", sqsserver.Fault{Kind: sqsserver.FaultThrottle, Probability: 0.3}); err != nil {
			t.Fatal(err)
		}
		for range 1000 {
			if _, err := server.ListQueues(t.Context(), &sqsserver.ListQueuesInput{}); err != nil {
				pattern += "!"
			} else {
				pattern += "."
			}
		}
		return pattern
	}
	first, again, other := strikes(1), strikes(1), strikes(2)
	if first != again || first == other {
		t.Error("the seed does not decide what is struck")
	}
	if n := strings.Count(first, "!"); n < 250 || n > 350 {
		t.Errorf("%d of 1000 chances struck, want about 300", n)
	}
}

func TestFaultsByQueue(t *testing.T) {
	b := newTestServer(t, nil)
	other := b.create("other", nil)
	throttled := func(url string) bool {
		_, err := b.server.ReceiveMessage(t.Context(), &sqsserver.ReceiveMessageInput{QueueUrl: url})
		return err != nil
	}
	throttle := sqsserver.Fault{Kind: sqsserver.FaultThrottle}
	for _, target := range []string{"q", b.url, "arn:aws:sqs:us-east-1:000000000000:q"} {
		if err := b.server.SetFaults(target, throttle); err != nil || !throttled(b.url) || throttled(other) {
			t.Errorf("a fault set for %s does not strike that queue alone", target)
		}
		if err := b.server.SetFaults(target); err != nil || throttled(b.url) {
			t.Errorf("the fault set for %s is not cleared", target)
		}
	}
	for _, target := range []string{"", "*"} {
		if err := b.server.SetFaults(target, throttle); err != nil || !throttled(b.url) || !throttled(other) {
			t.Errorf("a fault set for %q does not strike every queue", target)
		}
		if _, err := b.server.ReceiveMessage(sqsserver.WithoutFaults(context.Background()), &sqsserver.ReceiveMessageInput{QueueUrl: b.url}); err != nil {
			t.Errorf("a request without faults returned %v", err)
		}
		if err := b.server.SetFaults(target); err != nil || throttled(b.url) {
			t.Errorf("the fault set for %q is not cleared", target)
		}
	}
}

// TestFaultsAreReplacedAtOnce: while all faults are replaced, each request meets the former or the new ones.
func TestFaultsAreReplacedAtOnce(t *testing.T) {
	b := newTestServer(t, nil)
	all := map[string][]sqsserver.Fault{"q": {{Kind: sqsserver.FaultThrottle}}}
	for i := range 200 {
		all[fmt.Sprint("other-", i)] = []sqsserver.Fault{{Kind: sqsserver.FaultServerError}}
	}
	if err := b.server.ReplaceFaults(all); err != nil {
		t.Fatal(err)
	}
	replaced := make(chan struct{})
	go func() {
		defer close(replaced)
		for range 300 {
			if err := b.server.ReplaceFaults(all); err != nil {
				t.Error(err)
			}
		}
	}()
	for requests := 0; ; requests++ {
		in := &sqsserver.SendMessageInput{QueueUrl: b.url, SendMessageEntry: sqsserver.SendMessageEntry{MessageBody: "x"}}
		if _, err := b.server.SendMessage(t.Context(), in); err == nil {
			t.Fatalf("request %d was not throttled", requests)
		}
		select {
		case <-replaced:
			if requests < 100 {
				t.Logf("only %d requests were sent meanwhile", requests)
			}
			return
		default:
		}
	}
}

// If several faults could strike a request, the queue's own come first, in their order, and
// those for every queue last.
func TestOrderOfFaults(t *testing.T) {
	b := newTestServer(t, nil)
	if err := b.server.SetFaults("*", sqsserver.Fault{Kind: sqsserver.FaultOverLimit}); err != nil {
		t.Fatal(err)
	}
	b.fault(sqsserver.Fault{Kind: sqsserver.FaultThrottle, Limit: 1}, sqsserver.Fault{Kind: sqsserver.FaultServerError, Limit: 1})
	for _, want := range []string{"RequestThrottled", "InternalFailure", "OverLimit"} {
		if _, _, err := b.poll(t.Context()); !isCode(err, want) {
			t.Errorf("received %v, want %s", err, want)
		}
	}
}

func TestSetFaultsRefusesNonsense(t *testing.T) {
	tests := []struct {
		fault sqsserver.Fault
		want  string // in the message
	}{
		{sqsserver.Fault{}, `kind "" is unknown`},
		{sqsserver.Fault{Kind: "fire"}, `kind "fire" is unknown`},
		{sqsserver.Fault{Kind: sqsserver.FaultThrottle, Action: "Launch"}, `action "Launch"`},
		{sqsserver.Fault{Kind: sqsserver.FaultDuplicate, Action: "SendMessage"}, "use one of ReceiveMessage"},
		{sqsserver.Fault{Kind: sqsserver.FaultThrottle, Probability: 1.5}, "probability 1.5"},
		{sqsserver.Fault{Kind: sqsserver.FaultThrottle, Every: -1}, "negative"},
		{sqsserver.Fault{Kind: sqsserver.FaultSlowReply, Delay: -1}, "delay -1ns"},
		{sqsserver.Fault{Kind: sqsserver.FaultThrottle, Delay: time.Second}, "nothing to delay"},
		{sqsserver.Fault{Kind: sqsserver.FaultOverLimit, Action: "SendMessage"}, "use one of ReceiveMessage"},
	}
	for _, test := range tests {
		server := newServer(t)
		err := server.SetFaults("q", sqsserver.Fault{Kind: sqsserver.FaultThrottle}, test.fault)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("SetFaults(%+v) = %v, want an error with %q", test.fault, err, test.want)
		}
		if set := server.Faults("q"); len(set) != 0 {
			t.Errorf("the refused faults %v are set", set)
		}
	}
}

// A fault reads the same text form through whichever package decodes it.
func TestFaultsReadTheirTextForm(t *testing.T) {
	want := sqsserver.Fault{Kind: sqsserver.FaultSlowReply, Action: "SendMessage", Skip: 1, Every: 2, Probability: 0.5, Limit: 3, Delay: 90 * time.Second}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	decode := func(form any) error { return json.Unmarshal(text, form) } // stands in for a package of YAML
	var fromJSON, fromYAML sqsserver.Fault
	if err := errors.Join(json.Unmarshal(text, &fromJSON), fromYAML.UnmarshalYAML(decode)); err != nil || fromJSON != want || fromYAML != want {
		t.Errorf("%s is read as %+v from JSON and %+v from YAML, %v", text, fromJSON, fromYAML, err)
	}
	text = []byte(`{"kind": "slow-reply", "delay": "soon"}`)
	for _, err := range []error{json.Unmarshal(text, &fromJSON), fromYAML.UnmarshalYAML(decode)} {
		if err == nil || !strings.Contains(err.Error(), `delay is "soon": write a duration like "2s"`) || fromJSON != want || fromYAML != want {
			t.Errorf("error %v, faults %+v and %+v", err, fromJSON, fromYAML)
		}
	}
}

// TestFaultCountIsReadAsItIsWritten: programs that ask for the faults of a server get what it has.
func TestFaultCountIsReadAsItIsWritten(t *testing.T) {
	want := sqsserver.FaultCount{Fault: sqsserver.Fault{Kind: sqsserver.FaultSlowReply, Action: "SendMessage", Skip: 1, Every: 2, Probability: 0.5, Limit: 3, Delay: 4 * time.Second}, Chances: 5, Strikes: 6}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got sqsserver.FaultCount
	if err := json.Unmarshal(text, &got); err != nil || got != want {
		t.Errorf("%s is read as %+v, %v; want %+v", text, got, err, want)
	}
	for _, mistake := range []string{`{"kind":"throttle","strike":1}`, `{"kind":"slow-reply","delay":"soon"}`, `{"chances":"many"}`} {
		if err := json.Unmarshal([]byte(mistake), &got); err == nil || got != want {
			t.Errorf("%s is read as %+v", mistake, got)
		}
	}
}
